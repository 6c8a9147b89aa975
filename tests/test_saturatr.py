"""saturatr as a program: what it records inside mpshell is what mpshell replayed."""

import csv
import json
import os
import socket
import struct
import subprocess
import sys
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conftest import good, missing_for_real_runs, one_sentence, run_program
from railyard.traces.index import read_index
from railyard.traces.library import list_pairs
from railyard.traces.trace import sha256_file

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / "build" / "bin"
SATURATR = BIN / "saturatr"
TOKEN = "only for these tests"  # noqa: S105  it guards a server that lives for seconds
ENVIRONMENT = {**os.environ, "SATURATR_TOKEN": TOKEN}
NO_TOKEN = {name: value for name, value in os.environ.items() if name != "SATURATR_TOKEN"}
OPPORTUNITY_BYTES = 1504
TIMEOUT_S = 120
# What is on the border of two milliseconds when t0 is fixed, and when a second ends, may fall on either side.
BORDER_OPPORTUNITIES = 2
TOLERANCE = 0.02
REPLAY = """\
name: replay
arena: sim
pairs: [just-now]
schemes: [vanilla-mp]
player: {duration_s: 2, bitrate_bps: 8000000, chunk_bytes: 524288}
time_limit_s: 30
"""

pytestmark = pytest.mark.usefixtures("built")
in_mpshell = [
    pytest.mark.privileged,
    pytest.mark.skipif(missing_for_real_runs() is not None, reason=missing_for_real_runs() or ""),
]


def constant(folder: Path, mbps: int, seconds: int = 12) -> Path:
    """A trace of constant rate."""
    path = folder / f"{mbps}mbps.trace"
    between_ms = OPPORTUNITY_BYTES * 8 / (mbps * 1000)
    count = int(seconds * 1000 / between_ms)
    path.write_text("".join(f"{int((k + 1) * between_ms)}\n" for k in range(count)))
    return path


@dataclass(frozen=True)
class Link:
    name: str
    up: Path
    down: Path
    delay_ms: float
    queue: str = "infinite"

    def option(self) -> str:
        return f"{self.name}:up={self.up},down={self.down},delay={self.delay_ms:g},queue={self.queue}"


@contextmanager
def server(
    *arguments: str, environment: dict[str, str] = ENVIRONMENT, inside: tuple[str, ...] = ()
) -> Iterator[dict[str, Any]]:
    """A server on all addresses; gives what it announces, and its port. `inside`: a command that runs it."""
    command = [*inside, str(SATURATR), "server", "--listen", "0.0.0.0:0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            announced = json.loads(process.stdout.readline())
            yield announced | {"port": int(announced["address"].rsplit(":", 1)[1])}
        finally:
            process.terminate()
            assert process.wait(10) == 0


def client(*arguments: object, token: str = TOKEN) -> subprocess.CompletedProcess[str]:
    return run_program(
        [str(SATURATR), "client", *map(str, arguments)], timeout=TIMEOUT_S, env=ENVIRONMENT | {"SATURATR_TOKEN": token}
    )


@dataclass(frozen=True)
class Recording:
    folder: Path
    session: dict[str, Any]
    emulator: dict[str, Any]
    said: str

    def trace(self, name: str, way: str) -> list[int]:
        return [int(line) for line in (self.folder / f"{name}.{way}").read_text().splitlines()]

    def path(self, name: str) -> dict[str, Any]:
        return next(path for path in self.session["paths"] if path["name"] == name)

    def second_by_second(self, name: str, way: str) -> list[tuple[int, int]]:
        """(recorded, replayed) opportunities since t0 at the end of every second."""
        recorded = self.trace(name, way)[:-1]  # the last line closes the period
        link = next(path for path in self.emulator["paths"] if path["name"] == name)[way]
        replayed = [int(line) for line in Path(link["trace"]).read_text().splitlines()]
        offset_us = self.session["t0_monotonic_us"] - self.emulator["t0_monotonic_us"]

        def until(us: int) -> int:
            rounds, rest = divmod(us // 1000, replayed[-1])
            return int(rounds * len(replayed) + bisect_right(replayed, rest))

        before = until(offset_us)
        seconds = range(1, self.session["duration_us"] // 1_000_000 + 1)
        return [(bisect_left(recorded, s * 1000), until(offset_us + s * 1_000_000) - before) for s in seconds]


def record(tmp_path: Path, links: list[Link], *arguments: str, duration_s: float, ack_via: bool = True) -> Recording:
    """Records the links inside mpshell, acknowledgements over a further path that is not recorded."""
    recorded = [part for k, link in enumerate(links) for part in ("--path", f"{link.name}:@{k}")]
    emulated = list(links)
    if ack_via:
        reliable = constant(tmp_path, 200)
        emulated.append(Link("reliable", reliable, reliable, 1))
        recorded += ["--ack-via", f"@{len(links)}"]
    options = [part for link in emulated for part in ("--path", link.option())]
    out = tmp_path / "recording"
    with server("--once") as announced:
        command = [str(BIN / "mpshell"), *options, "--summary", str(tmp_path / "mpshell.json"), "--", str(SATURATR)]
        command += ["client", "--server", f"@:{announced['port']}", *recorded, "--out", str(out)]
        command += ["--duration", f"{duration_s:g}", *arguments]
        run = run_program(command, timeout=TIMEOUT_S, env=ENVIRONMENT)
    assert run.returncode == 0, run.stderr
    session = json.loads((out / "session.json").read_text())
    return Recording(out, session, json.loads((tmp_path / "mpshell.json").read_text()), run.stdout)


def assert_closed_loop(recording: Recording, *names: str, ways: tuple[str, ...] = ("up", "down")) -> None:
    assert recording.session["saturated_at_t0"]
    for name in names:
        for way in ways:
            pairs = recording.second_by_second(name, way)
            errors = [100 * (got - wanted) / max(wanted, 1) for got, wanted in pairs]
            print(f"{name} {way}: {pairs[-1][1]} opportunities, worst error {max(errors, key=abs):+.3f} %")
            for second, (got, wanted) in enumerate(pairs, start=1):
                allowed = max(TOLERANCE * wanted, BORDER_OPPORTUNITIES)
                assert abs(got - wanted) <= allowed, (name, way, second, pairs)


def raw_log(recording: Recording, name: str, way: str) -> tuple[dict[str, str], list[dict[str, str]]]:
    lines = (recording.folder / f"{name}.{way}.csv").read_text().splitlines()
    assert lines[0] == "# railyard saturatr raw log 1"
    comments = [line for line in lines[1:] if line.startswith("#")]
    header = dict(line[2:].split(": ", 1) for line in comments)
    return header, list(csv.DictReader(lines[1 + len(comments) :]))


class TestClosedLoop:
    """The traces that come out are those that went in."""

    pytestmark = in_mpshell

    @pytest.mark.slow
    def test_two_rates_and_a_mobility_trace_at_once_both_ways(self, tmp_path: Path) -> None:
        pair = next(pair for pair in list_pairs() if pair.name == "hsr-1")
        train = pair.paths[1]
        slow, fast = constant(tmp_path, 5), constant(tmp_path, 50)
        links = [Link("slow", slow, slow, 20), Link("fast", fast, fast, 10)]
        links.append(Link("train", train.uplink, train.downlink, train.delay_ms))
        recording = record(tmp_path, links, "--scenario", "a test", duration_s=7)
        assert_closed_loop(recording, "slow", "fast", "train")

        # Both ends have the same clock here, so the truth is known: 0.
        clock = recording.session["clock"]
        assert abs(clock["offset_us"]) <= clock["uncertainty_us"] < 5000
        assert recording.session["sizes"]["packet_ip_bytes"] + 4 == OPPORTUNITY_BYTES
        assert recording.path("slow")["base_rtt_ms"] == pytest.approx(40, abs=6)
        assert recording.path("slow")["interface"] == "slow"

        # The raw log and the trace have the same bytes.
        header, rows = raw_log(recording, "fast", "down")
        duration = int(header["duration_us"])
        inside = [row for row in rows if 0 <= int(row["received_us"]) < duration]
        total = sum(int(row["ip_bytes"]) + 4 for row in inside)
        assert total == recording.path("fast")["down"]["bytes"]
        assert len(recording.trace("fast", "down")) == total // OPPORTUNITY_BYTES + 1
        assert {row["kind"] for row in inside} == {"data"}
        delays = [int(row["received_us"]) - int(row["sent_us"]) for row in inside]
        assert min(delays) >= 10_000 - 2 * clock["uncertainty_us"]

        # And it can be replayed at once.
        (replayed,) = read_index(recording.folder / "index.yaml")
        assert [(path.kind, path.resolution_ms) for path in replayed.paths] == [("saturated-udp", 1.0)] * 3
        assert [path.name for path in replayed.paths] == ["slow", "fast", "train"]
        assert replayed.scenario == "a test"

    @pytest.mark.slow
    def test_acknowledgements_over_the_recorded_paths(self, tmp_path: Path) -> None:
        ten = constant(tmp_path, 10)
        arguments = ("--direction", "down")
        recording = record(tmp_path, [Link("one", ten, ten, 5)], *arguments, duration_s=2, ack_via=False)
        assert_closed_loop(recording, "one", ways=("down",))
        assert recording.session["ack_via"] is None
        assert not (recording.folder / "one.up").exists()
        # What else used the link is in the log.
        assert {row["kind"] for row in raw_log(recording, "one", "down")[1]} == {"data", "probe"}
        # One path is no pair. The client prints how to replay it, and that works.
        assert not (recording.folder / "index.yaml").exists()
        words = recording.said.splitlines()[-1]
        assert words.startswith("one path is no pair")
        again: list[str | Path] = [BIN / "mpshell", *words.partition("mpshell ")[2].split(), "--", "true"]
        summary = tmp_path / "again.json"
        subprocess.run([*again[:-2], "--summary", summary, *again[-2:]], check=True, timeout=TIMEOUT_S)
        (path,) = json.loads(summary.read_text())["paths"]
        assert path["down"]["trace"] == path["up"]["trace"] == str(recording.folder / "one.down")
        assert path["delay_ms"] == pytest.approx(5, abs=3)

    def test_a_recording_is_replayed_by_name_at_once(self, tmp_path: Path) -> None:
        four, eight = constant(tmp_path, 4), constant(tmp_path, 8)
        arguments = ("--name", "just-now", "--ramp", "0.3")
        recording = record(tmp_path, [Link("a", four, four, 10), Link("b", eight, eight, 20)], *arguments, duration_s=1)
        assert "just-now" in recording.said.splitlines()[-1]
        (tmp_path / "replay.yaml").write_text(REPLAY)
        command = [sys.executable, "-m", "railyard", "run", "replay.yaml", "--out", "out"]
        environment = ENVIRONMENT | {"RAILYARD_TRACE_PATH": "recording"}
        good(run_program(command, cwd=tmp_path, env=environment, timeout=TIMEOUT_S))
        (result,) = (tmp_path / "out" / "runs").iterdir()
        run_record = json.loads((result / "run.json").read_text())
        assert (run_record["outcome"], run_record["config"]["pair"]) == ("complete", "just-now")
        emulated = json.loads((result / "mpshell.json").read_text())["paths"]
        for path, name in zip(emulated, ("a", "b"), strict=True):
            for way in ("up", "down"):
                assert path[way]["trace_sha256"] == sha256_file(recording.folder / f"{name}.{way}")
                assert path[way]["departed_packets"] > 0
            assert path["delay_ms"] == pytest.approx(recording.path(name)["base_rtt_ms"] / 2, abs=0.01)

    @pytest.mark.long
    @pytest.mark.parametrize("mbps", [5, 50, 300, 1000])
    @pytest.mark.parametrize("way", ["up", "down", "both"])
    def test_constant_rates(self, tmp_path: Path, mbps: int, way: str) -> None:
        trace = constant(tmp_path, mbps)
        recording = record(tmp_path, [Link("one", trace, trace, 20)], "--direction", way, duration_s=20)
        assert_closed_loop(recording, "one", ways=("up", "down") if way == "both" else (way,))

    @pytest.mark.long
    @pytest.mark.parametrize("name", ["subway-1", "hsr-1", "hsr_1624", "walk_sbu_13_2"])
    def test_pairs_of_traces(self, tmp_path: Path, name: str) -> None:
        pair = next((pair for pair in list_pairs() if pair.name == name), None)
        if pair is None:
            pytest.skip(f"the recorded pair {name} is on no directory of RAILYARD_TRACE_PATH")
        links = [Link(path.name, path.uplink, path.downlink, path.delay_ms) for path in pair.paths]
        recording = record(tmp_path, links, duration_s=60)
        assert_closed_loop(recording, *(link.name for link in links))

    @pytest.mark.long
    def test_a_queue_that_drops(self, tmp_path: Path) -> None:
        trace = constant(tmp_path, 50)
        link = Link("one", trace, trace, 20, "droptail:packets=150")
        recording = record(tmp_path, [link], duration_s=10)
        assert_closed_loop(recording, "one")
        assert recording.path("one")["down"]["lost_packets"] > 0


class TestLight:
    pytestmark = in_mpshell

    @pytest.mark.skipif(not Path("/proc/self/ns/time").exists(), reason="needs time namespaces (Linux 5.6)")
    def test_delays_are_one_way_between_clocks_that_differ(self, tmp_path: Path) -> None:
        """The server's clock is 5000 s ahead, and the link takes longer up than down. The least delays are compared,
        which no load of this machine changes."""
        (tmp_path / "up").write_text("0 40 0 0 1 2\n2000 40\n")
        (tmp_path / "down").write_text("0 25 0 1 2 3\n2000 25\n")
        link = f"a:rate=12mbps,up-light-trace={tmp_path / 'up'},down-light-trace={tmp_path / 'down'}"
        shell = [str(BIN / "mpshell"), "--path", link, "--path", "reliable:rate=100mbps,delay=1", "--"]
        with server("--once", inside=("unshare", "--time", "--monotonic", "5000")) as announced:
            command = [*shell, str(SATURATR), "client", "--server", f"@:{announced['port']}", "--path", "a:@0"]
            command += ["--ack-via", "@1", "--out", str(tmp_path / "r"), "--duration", "2"]
            command += ["--mode", "light", "--train", "4", "--every", "100"]
            run = run_program(command, timeout=TIMEOUT_S, env=ENVIRONMENT)
        assert run.returncode == 0, run.stderr
        session = json.loads((tmp_path / "r" / "light.json").read_text())
        assert session["clock"]["offset_us"] == pytest.approx(5e9, abs=5000)
        (path,) = session["paths"]
        assert path["up"]["delay_ms"]["least"] == pytest.approx(40, abs=1.5)
        assert path["down"]["delay_ms"]["least"] == pytest.approx(25, abs=1.5)


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0"])
def test_data_that_overtakes_the_clients_go_is_recorded(tmp_path: Path, listen: str) -> None:
    """Over loopback the first window arrives with the go. If it were lost, the heartbeat would come a second later."""
    with server("--listen", listen) as announced:
        address = f"127.0.0.1:{announced['port']}"
        arguments = ["--path", "a:127.0.0.1", "--direction", "up", "--duration", "0.2", "--ramp", "0.1"]
        run = client("--server", address, *arguments, "--ramp-most", "0.1", "--out", tmp_path / "r")
    assert run.returncode == 0, run.stderr
    lines = (tmp_path / "r" / "a.up.csv").read_text().splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    first = next(row for row in rows if row["kind"] == "data")
    assert first["seq"] == "0"


def test_a_recording_is_not_overwritten_by_the_next(tmp_path: Path) -> None:
    with server() as announced:
        arguments = ["--server", f"127.0.0.1:{announced['port']}", "--path", "a:127.0.0.1", "--ack-via", "127.0.0.1"]
        arguments += ["--direction", "up", "--duration", "0.2", "--ramp", "0.1", "--ramp-most", "0.1"]
        assert client(*arguments, "--out", tmp_path / "r").returncode == 0
        kept = {file.name: file.read_bytes() for file in (tmp_path / "r").iterdir()}
        again = client(*arguments, "--out", tmp_path / "r")
    assert again.returncode == 2
    assert again.stderr == (
        f"saturatr: {tmp_path}/r/session.json is of an earlier recording, which another one would overwrite; "
        "give --out another folder\n"
    )
    assert kept == {file.name: file.read_bytes() for file in (tmp_path / "r").iterdir()}


class TestHostile:
    """Loopback, no root: who may record, and what strays in."""

    def arguments(self, announced: dict[str, Any], out: Path) -> list[object]:
        address = f"127.0.0.1:{announced['port']}"
        return ["--server", address, "--path", "a:127.0.0.1", "--ack-via", "127.0.0.1", "--out", out]

    def test_wrong_token_is_refused(self, tmp_path: Path) -> None:
        with server() as announced:
            run = client(*self.arguments(announced, tmp_path / "r"), token="not the right one")  # noqa: S106
        assert run.returncode == 2
        assert run.stderr == "saturatr: the server says: the token is not the server's\n"

    def test_each_server_makes_another_token(self) -> None:
        tokens = set()
        for _ in range(2):
            with server(environment=NO_TOKEN) as announced:
                tokens.add(announced["token"])
        assert len(tokens) == 2
        assert all(len(token) == 32 for token in tokens)

    def test_longer_than_the_server_allows_is_refused(self, tmp_path: Path) -> None:
        with server("--max-duration", "5") as announced:
            run = client(*self.arguments(announced, tmp_path / "r"), "--duration", "30")
        assert run.returncode == 2
        assert "more than this server allows" in run.stderr

    def test_nobody_is_answered_without_the_sessions_tag(self, tmp_path: Path) -> None:
        hello = struct.pack("!4sBBBBQQQ40x", b"SATR", 1, 0, 0, 0, 0, 0, 0)
        with server() as announced, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stray:
            stray.settimeout(0.3)
            for port in (announced["port"], announced["ack_port"]):
                for data in (hello, b"", b"x" * 1472, hello[:20]):
                    stray.sendto(data, ("127.0.0.1", port))
            with pytest.raises(TimeoutError):
                stray.recv(2000)
            # Nor during a recording, which such packets do not disturb.
            arguments = [*self.arguments(announced, tmp_path / "r"), "--duration", "0.5", "--ramp", "0.1"]
            with subprocess.Popen(
                [str(SATURATR), "client", *map(str, arguments), "--ramp-most", "0.3"], env=ENVIRONMENT
            ) as recorder:
                while recorder.poll() is None:
                    stray.sendto(hello, ("127.0.0.1", announced["port"]))
                    stray.sendto(os.urandom(100), ("127.0.0.1", announced["ack_port"]))
                    time.sleep(0.005)
            assert recorder.returncode == 0
            with pytest.raises(TimeoutError):
                stray.recv(2000)
        session = json.loads((tmp_path / "r" / "session.json").read_text())
        assert session["server"]["stray_datagrams"] > 50

    def test_connections_that_say_nothing_do_not_keep_others_out(self, tmp_path: Path) -> None:
        with server() as announced:
            silent = [socket.create_connection(("127.0.0.1", announced["port"])) for _ in range(20)]
            silent[3].sendall(b"\x00" * 100_000)
            silent[4].sendall(b'{"nonce": 5, "proof": []}\n')
            run = client(*self.arguments(announced, tmp_path / "r"), "--duration", "0.2", "--ramp-most", "0.2")
            for connection in silent:
                connection.close()
        assert run.returncode == 0, run.stderr

    def test_a_server_that_is_not_there(self, tmp_path: Path) -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            run = client(*self.arguments({"port": unused.getsockname()[1]}, tmp_path / "r"))
        assert run.returncode == 2
        assert "Connection refused; is a saturatr server running there?" in run.stderr

    def test_a_client_that_vanishes_ends_the_sending(self, tmp_path: Path) -> None:
        with server() as announced:
            arguments = [*self.arguments(announced, tmp_path / "r"), "--duration", "60", "--ramp-most", "0.1"]
            with subprocess.Popen([str(SATURATR), "client", *map(str, arguments)], env=ENVIRONMENT) as vanishing:
                time.sleep(0.8)
                vanishing.kill()
            # The place is free again: a second recording succeeds.
            run = client(*self.arguments(announced, tmp_path / "s"), "--duration", "0.2", "--ramp-most", "0.2")
        assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "say server or client"),
        (["sever"], "'sever' is not one of server, client"),
        (["server"], "no address; give --listen ADDR:PORT"),
        (["server", "--listen", "1.2.3.4"], "--listen takes ADDR:PORT"),
        (["server", "--listen", "::1:7000"], "IPv6 as [ADDR]:PORT, not '::1:7000'"),
        (["server", "--listen", "127.0.0.1:0", "--frobnicate"], "unknown option '--frobnicate'"),
        (["client", "--server", "127.0.0.1:1"], "no path; give --path NAME:ADDR at least once"),
        (["client", "--server", "127.0.0.1:1", "--path", "a"], "takes NAME:ADDR[:TECH]"),
        (["client", "--server", "127.0.0.1:1", "--path", "A:127.0.0.1"], "1 to 15 of a-z 0-9 -"),
        (["client", "--server", "127.0.0.1:1", "--path", "a:nowhere"], "'nowhere': this is not an IP address"),
        (
            ["client", "--server", "127.0.0.1:1", "--path", "a:127.0.0.1:6g"],
            "takes one of 5g-sa, 5g-nsa, wifi, lte as technology, not '6g'",
        ),
        (["client", "--server", "127.0.0.1:1", "--path", "a:[::1]", "--out", "x"], "different families"),
        (
            ["client", "--server", "127.0.0.1:1", "--path", "a:127.0.0.1", "--ack-via", "[::1]", "--out", "x"],
            "--ack-via and the server have addresses of different families",
        ),
        (["client", "--server", "127.0.0.1:1", "--path", "a:127.0.0.1"], "give --out DIR"),
        (
            ["client", "--server", "127.0.0.1:1", "--duration", "0"],
            "from 0.1 to 86400 with at most three decimals, not '0'.",
        ),
        (
            ["client", "--server", "127.0.0.1:1", "--packet-bytes", "9000"],
            "takes a whole number from 256 to 1500, not '9000'.",
        ),
        (["client", "--server", "127.0.0.1:1", "--direction", "left"], "takes both, up or down, not 'left'."),
        (["client", "--server", "127.0.0.1:1", "--token-file", "/nonexistent"], "cannot read the token from /nonex"),
    ],
)
def test_a_wrong_command_line_ends_in_one_sentence(arguments: list[str], sentence: str) -> None:
    one_sentence(run_program([str(SATURATR), *arguments], env=ENVIRONMENT), sentence, program="saturatr")
