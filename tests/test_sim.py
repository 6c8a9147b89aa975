"""xlink-sim: the same job gives the same bytes, whatever the machine does, and what it simulates is the network."""

import copy
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from conftest import good, one_sentence, run_program
from quic_programs import read_jsonl
from railyard.base.errors import UserError
from railyard.base.paths import ROOT, program
from railyard.traces import Pair, find_pair

SCHEMES = ("sp", "cm", "vanilla-mp", "xlink", "xlink+")
# If a recorded pair is not on RAILYARD_TRACE_PATH, another place in a generated pair replaces it.
PLACES: tuple[tuple[str, str, int], ...] = (
    ("subway-1", "subway-1", 0),
    ("hsr-1", "hsr-1", 12_000),
    ("hsr_1624", "hsr-1", 30_000),
    ("subway_nyc_a", "subway-1", 45_000),
    ("walk_sbu_8_1", "subway-1", 70_000),
)
Job = dict[str, Any]


def pair_or_stand_in(name: str, stand_in: str) -> Pair:
    try:
        return find_pair(name)
    except UserError:
        return find_pair(stand_in)


def make_job(pair: Pair, scheme: str = "xlink", **members: Any) -> Job:
    paths = [
        {"name": p.name, "technology": p.technology, "up": str(p.uplink), "down": str(p.downlink)}
        | {"delay_ms": p.base_rtt_ms / 2, "queue": p.queue, "loss": 0.001}
        for p in pair.paths
    ]
    player = {"video_bytes": 2_500_000, "bitrate_bps": 2_500_000, "chunk_bytes": 262_144, "verify": True}
    job: Job = {"seed": 1, "time_limit_s": 20, "scheme": scheme, "paths": paths, "player": player}
    return job | {"qlog": True, "keylog": True} | members


def the_jobs() -> list[Job]:
    player = {"video_bytes": 1_000_000, "bitrate_bps": 2_500_000, "chunk_bytes": 131_072, "verify": True}
    jobs = []
    for name, stand_in, offset in PLACES:
        pair = pair_or_stand_in(name, stand_in)
        jobs += [make_job(pair, scheme, start_offset_ms=offset, player=player) for scheme in SCHEMES]
    return jobs


def simulate(folder: Path, job: Job, binary: Path | None = None, name: str = "job.json") -> Path:
    """Runs the job from a file in the folder, outputs beside it; returns their directory."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(json.dumps(job))
    out = folder / "out"
    command: list[str | Path] = [binary or program("xlink-sim"), file, "--out", out]
    done = good(run_program(command, timeout=120))
    assert done.stdout == "" and done.stderr == ""
    return out


def fingerprint(out: Path) -> dict[str, str]:
    files = sorted(path for path in out.rglob("*") if path.is_file())
    return {str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def summary(out: Path, player: str = "player") -> dict[str, Any]:
    return read_jsonl(out / f"{player}.jsonl")[-1]


def rcts(out: Path, player: str = "player") -> list[float]:
    return [r["rct_s"] for r in read_jsonl(out / f"{player}.jsonl") if r["event"] == "chunk_done"]


@contextmanager
def busy_core() -> Iterator[None]:
    """Something else wants the processor all the time."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def subway() -> Pair:
    return find_pair("subway-1")


@pytest.fixture(scope="module")
def sanitized() -> Path:
    """xlink-sim under AddressSanitizer and UndefinedBehaviorSanitizer."""
    target = "build/asan/bin/xlink-sim"
    command = ["make", "--no-print-directory", "-s", "-j2", "VARIANT=asan", target]
    good(run_program(command, cwd=ROOT, timeout=280))
    return ROOT / target


# ---- determinism ----


@pytest.mark.slow
def test_every_job_gives_the_same_bytes_in_another_process_directory_and_build_on_a_busy_machine(
    tmp_path: Path, sanitized: Path
) -> None:
    jobs = the_jobs()
    assert len(jobs) == len(PLACES) * len(SCHEMES)
    first = [fingerprint(simulate(tmp_path / f"a{i}", job)) for i, job in enumerate(jobs)]
    with busy_core():
        second = [
            fingerprint(simulate(tmp_path / "elsewhere" / "deeper" / f"b{i}", job, name="renamed.json"))
            for i, job in enumerate(jobs)
        ]
    third = [fingerprint(simulate(tmp_path / f"c{i}", job, sanitized)) for i, job in enumerate(jobs)]
    assert second == first
    assert third == first
    # They are not one run many times.
    assert len({prints["player.jsonl"] for prints in first}) == len(jobs)
    # Only seed and scheme decide the secrets of the handshake, unless the paths decide the winner of a race.
    for i in range(SCHEMES.index("xlink+")):
        assert len({prints["server.keys"] for prints in first[i :: len(SCHEMES)]}) == 1


def test_all_outputs_are_there_and_nothing_of_the_machine_is_in_them(tmp_path: Path, subway: Pair) -> None:
    out = simulate(tmp_path / "here", make_job(subway))
    names = set(fingerprint(out))
    assert {"player.jsonl", "server.jsonl", "mpshell.json", "player.keys", "server.keys"} <= names
    assert {f"links/{path}.{way}.log" for path in ("wifi", "lte") for way in ("up", "down")} <= names
    assert sum(bool(re.fullmatch(r"qlog/[0-9a-f]{16}_(client|server)\.sqlog", name)) for name in names) == 2
    everything = b"".join((out / name).read_bytes() for name in names)
    assert str(tmp_path).encode() not in everything
    assert str(subway.paths[0].uplink.parent).encode() not in everything
    start = read_jsonl(out / "player.jsonl")[0]
    assert (start["t"], start["event"], start["monotonic_us"], start["argv"]) == (0, "start", 0, ["xlink-sim"])


def test_another_seed_gives_another_handshake_and_another_run(tmp_path: Path, subway: Pair) -> None:
    one = fingerprint(simulate(tmp_path / "one", make_job(subway, seed=1)))
    two = fingerprint(simulate(tmp_path / "two", make_job(subway, seed=2)))
    for name in ("player.jsonl", "server.jsonl", "player.keys", "server.keys", "links/wifi.down.log", "mpshell.json"):
        assert one[name] != two[name], name
    assert not {name for name in one if name.startswith("qlog/")} & set(two)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_null_crypto_changes_no_byte(tmp_path: Path, subway: Pair, scheme: str) -> None:
    job = make_job(subway, scheme, start_offset_ms=30_000)
    assert all(path["loss"] > 0 for path in job["paths"])
    real = fingerprint(simulate(tmp_path / "real", job))
    null = fingerprint(simulate(tmp_path / "null", job | {"null_crypto": True}))
    assert null == real


def test_logs_do_not_change_the_run(tmp_path: Path, subway: Pair) -> None:
    job = make_job(subway)
    loud = simulate(tmp_path / "loud", job)
    quiet = simulate(tmp_path / "quiet", job | {"qlog": False, "keylog": False, "link_logs": False})
    assert set(fingerprint(quiet)) == {"player.jsonl", "server.jsonl", "mpshell.json"}
    for name in ("player.jsonl", "server.jsonl"):
        assert (loud / name).read_bytes() == (quiet / name).read_bytes()


def test_only_xlink_sim_replaces_the_random_numbers_of_gnutls() -> None:
    programs = [entry for entry in program("xlink-sim").parent.iterdir() if entry.is_file()]
    assert len(programs) >= 8
    for each in programs:
        symbols = good(run_program(["nm", "-D", each])).stdout
        assert (" T gnutls_rnd" in symbols) == (each.name == "xlink-sim"), each.name


# ---- what is simulated ----


def constant_trace(folder: Path, opportunities_per_ms: int = 1) -> Path:
    file = folder / f"{opportunities_per_ms}.trace"
    file.write_text("".join(f"{ms}\n" * opportunities_per_ms for ms in range(1, 11)))
    return file


def flat_job(folder: Path, names: tuple[str, ...] = ("wifi",), delay_ms: float = 10, **members: Any) -> Job:
    """Paths of 12 Mbps."""
    trace = str(constant_trace(folder))
    paths = [{"name": name, "up": trace, "down": trace, "delay_ms": delay_ms} for name in names]
    player = {"video_bytes": 1_000_000, "bitrate_bps": 2_000_000, "chunk_bytes": 250_000}
    return {"scheme": "sp", "time_limit_s": 30, "paths": paths, "player": player} | members


def test_a_handshake_takes_a_round_trip_of_the_links_and_a_chunk_what_the_link_can_carry(tmp_path: Path) -> None:
    out = simulate(tmp_path, flat_job(tmp_path, delay_ms=50))
    # 50 ms each way, and the next whole millisecond of the trace in each direction; the server's flight takes four.
    assert summary(out)["handshake_s"] == pytest.approx(0.1, abs=0.006)
    # 250 kB of payload are at least 173 packets of 1452 bytes, one in a millisecond; the request takes a round trip.
    later = rcts(out)[1:]
    assert all(0.1 + 0.173 < rct < 0.1 + 0.260 for rct in later), later
    emulator = json.loads((out / "mpshell.json").read_text())
    down = emulator["paths"][0]["down"]
    assert down["lateness_us"] == {"p50": 0, "p99": 0, "max": 0, "over_1ms": 0, "count": down["departed_packets"]}
    assert emulator["duration_s"] == summary(out)["t"] and emulator["exit"] == {"code": 0, "signal": None}


def test_link_logs_hold_ip_packets_of_at_most_1500_bytes_with_their_headers(tmp_path: Path) -> None:
    out = simulate(tmp_path, flat_job(tmp_path))
    lines = [line.split() for line in (out / "links/wifi.down.log").read_text().splitlines() if line[0] != "#"]
    sizes = {int(line[2]) for line in lines if line[1] == "-"}
    assert max(sizes) == 1452 + 28 + 4
    sent = sum(int(line[2]) - 32 for line in lines if line[1] == "-")
    assert sent == summary(out)["paths"][0]["bytes_received"]


def test_with_two_paths_multipath_uses_both_and_a_single_path_one(tmp_path: Path) -> None:
    def shares(scheme: str) -> list[int]:
        job = flat_job(tmp_path, ("wifi", "lte"), scheme=scheme)
        job["player"]["bitrate_bps"] = 15_000_000  # more than one path carries
        return [path["bytes_received"] for path in summary(simulate(tmp_path / scheme, job))["paths"]]

    assert shares("sp")[1] == 0
    assert min(shares("vanilla-mp")) > 200_000


def test_two_fast_paths_limit_a_transfer_and_neither_windows_nor_buffers_do(tmp_path: Path) -> None:
    """2 x 500 Mbps; with queues of one bandwidth-delay product 5 MB are under way."""
    link = {"up": "500mbps", "down": "500mbps", "delay_ms": 10, "queue": "droptail:packets=831"}
    player = {"video_bytes": 150_000_000, "bitrate_bps": 8_000_000_000, "chunk_bytes": 150_000_000}
    paths = [link | {"name": name} for name in ("wifi", "lte")]
    job = {"scheme": "vanilla-mp", "time_limit_s": 30, "paths": paths, "player": player, "null_crypto": True}
    carried: dict[str, int] = {}
    out = simulate(tmp_path, job)
    for name in ("wifi", "lte"):
        lines = [line.split() for line in (out / f"links/{name}.down.log").read_text().splitlines() if line[0] != "#"]
        left = [(float(line[0]), int(line[2])) for line in lines if line[1] == "-"]
        carried[name] = sum(size for at, size in left if 800 <= at < 1300)
    capacity = 500e6 / 8 * 0.5  # of a link in half a second
    assert all(0.98 * capacity < sent <= 1.02 * capacity for sent in carried.values()), carried


def test_migration_leaves_a_path_that_goes_dark(tmp_path: Path) -> None:
    dark = tmp_path / "dark.trace"
    dark.write_text("".join(f"{ms}\n" for ms in range(1, 1500)) + "60000\n")
    job = flat_job(tmp_path, ("wifi", "lte"), scheme="cm")
    job["paths"][0] |= {"up": str(dark), "down": str(dark)}
    job["player"]["video_bytes"] = 2_000_000
    out = simulate(tmp_path, job)
    moves = [(r["from"], r["to"]) for r in read_jsonl(out / "player.jsonl") if r["event"] == "migrate"]
    assert moves == [("wifi", "lte")]
    assert summary(out)["outcome"] == "complete"


def test_players_that_share_links_slow_each_other_and_those_with_own_links_do_not(tmp_path: Path) -> None:
    job = flat_job(tmp_path)
    job["player"] |= {"bitrate_bps": 8_000_000, "video_bytes": 4_000_000}
    alone = simulate(tmp_path / "alone", job)
    shared = simulate(tmp_path / "shared", job | {"players": [{}, {"start_s": 0.25}]})
    own = simulate(tmp_path / "own", job | {"players": [{}, {"start_s": 0.25, "own_links": True}]})
    assert rcts(own)[0] == rcts(alone)[0] and rcts(own) == rcts(alone)
    assert sum(rcts(shared)) > 1.2 * sum(rcts(alone))
    second = read_jsonl(shared / "player-2.jsonl")[0]
    assert second["monotonic_us"] == 250_000 and second["seed"] == 2
    assert sum(rcts(own, "player-2")) == pytest.approx(sum(rcts(alone)), rel=0.1)
    paths = json.loads((own / "mpshell.json").read_text())["paths"]
    assert [path.get("player") for path in paths] == [None, 2]
    closed = [r for r in read_jsonl(own / "server.jsonl") if r["event"] == "connection_closed"]
    assert sorted(r["conn"] for r in closed) == [0, 1]


def test_every_player_has_its_own_scheme_and_settings(tmp_path: Path, subway: Pair) -> None:
    players = [{}, {"scheme": "sp", "primary": "lte", "player": {"concurrency": 2}}]
    out = simulate(tmp_path, make_job(subway, players=players))
    one, two = read_jsonl(out / "player.jsonl")[0], read_jsonl(out / "player-2.jsonl")[0]
    assert (one["scheme"], one["concurrency"], one["paths"][0]["name"]) == ("xlink", 1, "wifi")
    assert (two["scheme"], two["concurrency"], two["paths"][0]["name"]) == ("sp", 2, "lte")
    assert summary(out)["transport"]["multipath"] and not summary(out, "player-2")["transport"]["multipath"]


def test_the_time_limit_ends_a_run_at_its_microsecond(tmp_path: Path) -> None:
    out = simulate(tmp_path, flat_job(tmp_path, time_limit_s=1.234))
    assert (summary(out)["outcome"], summary(out)["t"]) == ("time_limit", 1.234)


# ---- what goes wrong ----


def run_text(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [program("xlink-sim"), "-", "--out", folder / "out", *arguments]
    return run_program(command, input=text, timeout=60, cwd=folder)


def test_standard_input_gives_what_a_file_gives(tmp_path: Path, subway: Pair) -> None:
    job = make_job(subway)
    (tmp_path / "piped").mkdir()
    assert run_text(tmp_path / "piped", json.dumps(job)).returncode == 0
    assert fingerprint(tmp_path / "piped" / "out") == fingerprint(simulate(tmp_path / "file", job))


def test_relative_traces_start_at_the_job_file(tmp_path: Path) -> None:
    job = flat_job(tmp_path)
    for path in job["paths"]:
        path |= {"up": "1.trace", "down": "../1.trace"}
    (tmp_path / "sub").mkdir()
    constant_trace(tmp_path / "sub")
    simulate(tmp_path / "sub", job)


def test_a_network_that_carries_nothing_ends_with_2_and_a_sentence(tmp_path: Path) -> None:
    job = flat_job(tmp_path)
    job["paths"][0]["loss"] = 1
    done = run_text(tmp_path, json.dumps(job))
    one_sentence(done, program="xlink-sim")
    assert done.stderr == "xlink-sim: cannot connect to 100.64.0.1:4433 by quic: no answer from the server.\n"
    assert summary(tmp_path / "out")["outcome"] == "connect_failed"


def test_a_connection_that_dies_ends_with_1(tmp_path: Path) -> None:
    dead = tmp_path / "dead.trace"
    dead.write_text("".join(f"{ms}\n" for ms in range(1, 1500)) + "3600000\n")
    job = flat_job(tmp_path, time_limit_s=400, reconnect="off")
    job["paths"][0] |= {"up": str(dead), "down": str(dead)}
    job["player"]["video_bytes"] = 4_000_000
    done = run_text(tmp_path, json.dumps(job))
    assert done.returncode == 1, done.stderr
    assert summary(tmp_path / "out")["outcome"] == "connection_lost"


@pytest.mark.parametrize(
    ("member", "value", "sentence"),
    [
        ("scheme", "mptcp", "scheme takes"),
        ("seed", -1, "seed takes a whole number"),
        ("colour", 1, "colour is not a known member"),
        ("paths", [], "paths takes an array"),
        ("time_limit_s", None, "time_limit_s is missing"),
        ("reinjection", "nonsense", "reinjection takes none, appending, frame or stream, not 'nonsense'"),
        ("player", {"video_bytes": 1}, "player.bitrate_bps is missing"),
        ("path_events", "1:go:wifi", "path_events takes T:add|remove|standby|available:NAME"),
        ("cc", "\x1b[31m", "not '?[31m'."),
        ("players", [{"player": {"chunk_bytes": "x"}}], "players[0].player.chunk_bytes takes"),
        ("paths", [{"name": "a", "up": "none", "down": "none", "delay_ms": 1}], "paths[0].up: "),
    ],
)
def test_a_wrong_member_is_named_in_one_sentence(tmp_path: Path, member: str, value: Any, sentence: str) -> None:
    job = copy.deepcopy(flat_job(tmp_path)) | {member: value}
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps(job))
    command: list[str | Path] = [program("xlink-sim"), file, "--out", tmp_path / "out"]
    one_sentence(run_program(command, timeout=60), f"{file}: ", sentence, program="xlink-sim")


def test_an_output_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    job = json.dumps(flat_job(tmp_path))
    command: list[str | Path] = [program("xlink-sim"), "-", "--out", tmp_path / "not" / "there"]
    one_sentence(run_program(command, input=job, timeout=60), str(tmp_path / "not" / "there"), program="xlink-sim")


def test_a_signal_ends_it_at_once(tmp_path: Path) -> None:
    job = flat_job(tmp_path, time_limit_s=86_400)
    job["player"] |= {"video_bytes": 10_000_000_000, "bitrate_bps": 1_000_000}
    (tmp_path / "long.json").write_text(json.dumps(job))
    with subprocess.Popen([program("xlink-sim"), tmp_path / "long.json", "--out", tmp_path / "out"]) as process:
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(timeout=20) == -signal.SIGTERM
