"""`pcap: true`: what the interfaces of both endpoints carried, in files that decrypt themselves."""

import json
import os
import shutil
import struct
import zipfile
from collections import Counter
from pathlib import Path

import dpkt
import pytest

from conftest import good, run_program
from in_process import railyard
from kernel_machine import needs_kernel
from railyard.base.errors import UserError
from railyard.base.jsonl import read_jsonl
from railyard.experiment.stacks import resolve_stack
from railyard.results.archive import write_archive
from railyard.run import captures

pytestmark = pytest.mark.usefixtures("built")
needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="there is no tshark (Debian package tshark)")


def play(folder: Path, arena: str, schemes: str = "sp:wifi,xlink", pcap: str = "on") -> Path:
    """A second of video, without qlogs."""
    settings = ["player.duration_s=1", "player.bitrate=1mbps", "qlog=none", f"pcap={pcap}", f"arena={arena}"]
    words = [word for setting in settings for word in ("--set", setting)]
    good(railyard("run", "--pair", "subway-1", "--schemes", schemes, *words, "--out", str(folder / arena)))
    return folder / arena


def run_of(campaign: Path, scheme: str) -> Path:
    return campaign / "runs" / f"subway-1--{scheme}--s1"


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return play(tmp_path_factory.mktemp("captures"), "sim")


def fields(file: Path, *names: str) -> list[list[str]]:
    """The fields of each packet that tshark decrypts with the keys in the file alone."""
    options = [word for name in names for word in ("-e", name)]
    command = ["tshark", "-r", str(file), "-d", "udp.port==4433,quic", "-o", "ip.check_checksum:TRUE", "-T", "fields"]
    done = good(run_program([*command, *options], timeout=60))
    return [line.split("\t") for line in done.stdout.splitlines()]


def check_decrypted(run: Path) -> None:
    """Every packet of single-path QUIC, at both ends."""
    for end in captures.SIDES:
        rows = fields(run / f"{end}.pcapng", "frame.interface_name", "quic.frame_type", "quic.stream.stream_id")
        assert len(rows) > 100
        assert {interface for interface, _, _ in rows} == {"wifi"}
        assert all(types for _, types, _ in rows), "not decrypted"
        assert sum("0" in streams.split(",") for _, _, streams in rows) > 50, "STREAM frames of the request"
        http3 = fields(run / f"{end}.pcapng", "_ws.col.Protocol", "http3.frame_type", "ip.checksum.status")
        assert "1" in {kind for protocol, types, _ in http3 if protocol == "HTTP3" for kind in types.split(",")}, (
            "HEADERS"
        )
        assert {status for *_, status in http3} == {"1"}, "IP checksums"


@needs_tshark
def test_tshark_decrypts_what_an_endpoint_of_the_simulator_sent_and_received(simulated: Path) -> None:
    check_decrypted(run_of(simulated, "sp"))


@needs_tshark
@pytest.mark.privileged
def test_tshark_decrypts_what_an_endpoint_in_mpshell_sent_and_received(tmp_path: Path) -> None:
    check_decrypted(run_of(play(tmp_path, "mpshell", "sp:wifi"), "sp"))


@needs_tshark
@needs_kernel
def test_tshark_decrypts_what_an_endpoint_in_the_kernel_arena_sent_and_received(tmp_path: Path) -> None:
    check_decrypted(run_of(play(tmp_path, "kernel", "sp:wifi"), "sp"))


@needs_tshark
def test_tshark_shows_all_paths_and_decrypts_path_0_of_multipath_quic(simulated: Path) -> None:
    rows = fields(
        run_of(simulated, "xlink") / "player.pcapng", "frame.interface_name", "quic.frame_type", "frame.time_epoch"
    )
    assert {interface for interface, *_ in rows} == {"wifi", "lte"}
    assert all(types for interface, types, _ in rows if interface == "wifi")
    times = [float(time) for *_, time in rows]
    assert times == sorted(times)


@needs_tshark
@pytest.mark.privileged
@pytest.mark.parametrize("name", ["libxlink", "quic-go", "noq", "tquic", "quiche", "picoquic", "xquic"])
def test_tshark_decrypts_what_the_relays_of_another_stack_sent_on_path_0(name: str, tmp_path: Path) -> None:
    try:
        stack = resolve_stack(name, {}, Path())
    except UserError as error:
        pytest.skip(f"{name} is not built: {error}")
    scheme = "{stack: libxlink, scheme: sp}" if name == "libxlink" else f"{{stack: {name}}}"
    file = tmp_path / "stack.yaml"
    file.write_text(
        f"{{name: stack, arena: mpshell, pairs: [subway-1], schemes: [{scheme}], qlog: none, pcap: true,\n"
        "  player: {duration_s: 1, bitrate_bps: 1000000}}\n"
    )
    good(railyard("run", str(file), "--out", str(tmp_path / "out")))
    (run,) = (tmp_path / "out" / "runs").iterdir()
    assert (run / captures.KEYS).stat().st_mode & 0o777 == 0o600
    assert (run / captures.KEYS).stat().st_size > 0, f"{name} writes no secrets; XQUIC does with XQC_PRINT_SECRET"
    for end in captures.SIDES:
        rows = fields(run / f"{end}.pcapng", "frame.interface_name", "quic.frame_type", "quic.dcid")
        types = [types for interface, types, _ in rows if interface == "wifi"]
        assert len(types) > 20  # tquic sends most over the other path
        # It does not know all connection IDs of two paths, which come in frames that it does not know either.
        assert sum(map(bool, types)) > (0.3 if stack.multipath else 0.99) * len(types), "not decrypted"


def packets(file: Path) -> list[tuple[float, bytes]]:
    with file.open("rb") as opened:
        return [(time, bytes(data)) for time, data in dpkt.pcapng.Reader(opened)]


def test_both_ends_have_what_the_links_delivered_and_losses_are_at_one_end_only(simulated: Path) -> None:
    run = run_of(simulated, "xlink")
    player, server = (packets(run / f"{end}.pcapng") for end in captures.SIDES)
    departed: Counter[str] = Counter()
    for log in (run / "links").glob("*.log"):
        departed[log.name.split(".")[1]] += sum(" - " in line for line in log.read_text().splitlines())
    sent: dict[str, Counter[bytes]] = {}
    for name, found in (("player", player), ("server", server)):
        sent[name] = Counter(data[20:] for _, data in found if (data[15] == 2) == (name == "player"))
    received = {
        "up": Counter(data[20:] for _, data in server if data[15] == 2),
        "down": Counter(data[20:] for _, data in player if data[15] == 1),
    }
    assert {way: sum(count.values()) for way, count in received.items()} == dict(departed)
    assert received["up"] <= sent["player"] and received["down"] <= sent["server"]
    assert sum(sent["player"].values()) > 0


def test_the_times_are_those_of_the_links(simulated: Path) -> None:
    """A packet's times at the two ends differ by its delay at least."""
    run = run_of(simulated, "sp")
    began = {data[20:]: time for time, data in packets(run / "player.pcapng") if data[15] == 2}
    arrived = {data[20:]: time for time, data in packets(run / "server.pcapng") if data[15] == 2}
    delays = [arrived[data] - began[data] for data in began if data in arrived]
    start = read_jsonl(run / "player.jsonl")[0]
    assert start["monotonic_us"] == 0 and min(began.values()) == 0.0
    (wifi,) = (p for p in json.loads((run / "run.json").read_text())["config"]["paths"] if p["name"] == "wifi")
    assert len(delays) > 10 and min(delays) * 1000 >= wifi["delay_ms"] - 1e-6


def test_without_it_nothing_is_captured_and_the_run_is_the_same(simulated: Path, tmp_path: Path) -> None:
    plain, captured = run_of(play(tmp_path, "sim", "xlink", "off"), "xlink"), run_of(simulated, "xlink")
    own = {"player.pcapng", "server.pcapng", "player.keys", "server.keys"}
    assert own <= {file.name for file in captured.iterdir()}
    assert not own & {file.name for file in plain.iterdir()}
    for file in ("player.jsonl", "server.jsonl", "mpshell.json", "links/wifi.down.log"):
        assert (plain / file).read_bytes() == (captured / file).read_bytes()
    assert not (captured / captures.FOLDER).exists()


def test_a_capture_is_its_owners_alone_and_in_no_archive(simulated: Path, tmp_path: Path) -> None:
    files = list(simulated.rglob("*.pcapng"))
    assert len(files) == 4 and all(file.stat().st_mode & 0o777 == 0o600 for file in files)
    assert all(b"CLIENT_TRAFFIC_SECRET_0" in file.read_bytes() for file in files)
    written = write_archive(simulated, tmp_path / "small.zip")
    assert written.keys == 8
    with zipfile.ZipFile(tmp_path / "small.zip") as archive:
        assert not [name for name in archive.namelist() if b"TRAFFIC_SECRET" in archive.read(name)]


def test_a_repeated_run_with_captures_is_the_same_bytes(simulated: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    good(railyard("repeat", str(run_of(simulated, "sp")), "--out", str(again), "--yes"))
    for end in captures.SIDES:
        name = f"{end}.pcapng"
        assert (again / name).read_bytes() == (run_of(simulated, "sp") / name).read_bytes()


def test_what_a_killed_emulator_left_is_kept_up_to_the_record_that_is_cut_short(tmp_path: Path) -> None:
    folder = tmp_path / captures.FOLDER
    folder.mkdir()
    head = struct.pack("=I2H4I", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 101)
    whole, cut = (struct.pack("=4I", 7, 5, 3, 40) + data for data in (b"abc", b"d"))
    (folder / "wifi.inside.pcap").write_bytes(head + whole + cut)
    (folder / "lte.inside.pcap").write_bytes(head + struct.pack("=4I", 6, 0, 4_000_000_000, 40) + b"e" * 9)
    captures.join(tmp_path, ["wifi", "lte", "5g"])
    ((time, data),) = packets(tmp_path / "player.pcapng")
    assert data == b"abc" and time == pytest.approx(7.000000005, abs=1e-7)
    assert not (tmp_path / "server.pcapng").exists() and not folder.exists()


SECRET = b"CLIENT_TRAFFIC_SECRET_0 " + b"0a" * 32 + b" " + b"1b" * 32 + b"\n"


def captured(folder: Path) -> bytes:
    """The result of `join` for a run with one packet and the given key log."""
    (folder / captures.FOLDER).mkdir()
    head = struct.pack("=I2H4I", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 101)
    record = struct.pack("=4I", 7, 5, 3, 40) + b"abc"
    (folder / captures.FOLDER / "wifi.inside.pcap").write_bytes(head + record)
    captures.join(folder, ["wifi"])
    return (folder / "player.pcapng").read_bytes()


@pytest.mark.parametrize("kind", ["symbolic link", "hard link", "folder", "pipe"])
def test_a_key_log_that_is_another_file_of_the_machine_is_removed_unread(kind: str, tmp_path: Path) -> None:
    run, other, keys = tmp_path / "run", tmp_path / "other", tmp_path / "run" / captures.KEYS
    run.mkdir()
    other.write_bytes(SECRET)
    match kind:
        case "symbolic link":
            keys.symlink_to(other)
        case "hard link":
            keys.hardlink_to(other)
        case "folder":
            keys.mkdir()
        case _:
            os.mkfifo(keys)
    assert SECRET not in captured(run)
    assert not os.path.lexists(keys) and other.read_bytes() == SECRET


def test_of_a_key_log_secrets_alone_are_taken_and_a_mebibyte_at_most(tmp_path: Path) -> None:
    lines = b"root:x:0:0\n" + SECRET + b"\x00" * 100 + b"\n" + SECRET[:-1] + b"ff" * 40 + b"\n"
    (tmp_path / captures.KEYS).write_bytes(lines + SECRET * (captures.MOST_KEYS_BYTES // len(SECRET) + 100))
    content = captured(tmp_path)
    assert b"root:x" not in content and b"ff" * 40 not in content
    assert captures.MOST_KEYS_BYTES * 0.99 < len(content) < captures.MOST_KEYS_BYTES + 1000
    assert content.count(SECRET) > 5000
