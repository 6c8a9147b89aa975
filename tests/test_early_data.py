"""0-RTT: the programs resume a session and send requests in their first packets. What that saves, in the simulator."""

import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

import sim_program
from conftest import run_program
from quic_programs import Server, events, player_command, read_jsonl
from railyard.base.paths import program
from railyard.traces import find_pair
from studies.early_data.study import first_frame_s, job


def get(folder: Path, port: int, *options: str) -> dict[str, Any]:
    """The end of a connection that keeps its session in the folder."""
    out = folder / "get.jsonl"
    command: list[str | Path] = [
        program("xlink-get"),
        "--insecure",
        "--session",
        folder / "session",
        "--out",
        out,
        *options,
    ]
    subprocess.run([*command, f"https://127.0.0.1:{port}/synthetic/50000"], check=True, timeout=60)
    closed = events(read_jsonl(out), "connection_closed")[-1]
    assert closed["stream_bytes_received"] >= 50_000
    return closed


@pytest.mark.parametrize("alpn", ["h3", "hq-interop"])
def test_each_connection_resumes_the_one_before_with_early_data(tmp_path: Path, alpn: str) -> None:
    with Server(tmp_path, "--early-data", "--quic-version", "both") as server:
        ends = [get(tmp_path, server.port, "--alpn", alpn, "--early-data", "--quic-version", "both") for _ in range(3)]
        without = get(tmp_path, server.port, "--alpn", alpn)
    assert [(end["resumed"], end["early_data"]) for end in ends] == [(False, False), (True, True), (True, True)]
    assert not without["early_data"]
    assert stat.S_IMODE((tmp_path / "session").stat().st_mode) == 0o600


def test_early_data_that_a_server_does_not_take_is_sent_again(tmp_path: Path) -> None:
    with Server(tmp_path, "--seed", "7", "--early-data") as server:
        get(tmp_path, server.port, "--early-data")
    with Server(tmp_path, "--seed", "7", "--early-data") as server:  # has the key of the tickets, and no memory of them
        end = get(tmp_path, server.port, "--early-data")
    assert (end["resumed"], end["early_data"]) == (True, False)


def test_a_damaged_session_file_is_as_none(tmp_path: Path) -> None:
    (tmp_path / "session").write_bytes(b"127.0.0.1\0" + bytes(range(256)))
    with Server(tmp_path, "--early-data") as server:
        assert not get(tmp_path, server.port, "--early-data")["resumed"]
        assert get(tmp_path, server.port, "--early-data")["early_data"]


@pytest.mark.parametrize("name", ["xlink-get", "xlink-player"])
def test_a_session_that_cannot_be_written_is_said_and_what_was_fetched_counts(tmp_path: Path, name: str) -> None:
    file = tmp_path / "nowhere" / "session"
    with Server(tmp_path) as server:
        if name == "xlink-get":
            command: list[str | Path] = [program(name), "--quiet", f"https://127.0.0.1:{server.port}/synthetic/50000"]
        else:
            command = player_command(
                tmp_path, server.port, "--scheme", "sp", "--path", "wifi:127.0.0.1", "--duration", "1"
            )
        command += ["--insecure", "--session", file]
        done = run_program(command, timeout=60)
    assert done.stderr.splitlines() == [f"{name}: cannot write the session to {file}: No such file or directory."]
    assert done.returncode == 0


def simulate(folder: Path, session: str) -> float:
    """The first-frame latency."""
    lte = next(path for path in find_pair("subway-1").paths if path.technology == "lte")
    path: dict[str, Any] = {
        "name": "lte",
        "technology": "lte",
        "up": str(lte.uplink),
        "down": str(lte.downlink),
        "delay_ms": 37,
    }
    path["queue"] = lte.queue
    player = {"video_bytes": 1_000_000, "bitrate_bps": 2_500_000, "chunk_bytes": 262_144}
    job = {
        "seed": 1,
        "time_limit_s": 60,
        "scheme": "sp",
        "session": session,
        "start_offset_ms": 3000,
        "paths": [path],
        "player": player,
    }
    summary = events(read_jsonl(sim_program.simulate(folder / session, job) / "player.jsonl"), "summary")[-1]
    assert summary["transport"].get("early_data", False) == (session == "early_data")
    assert summary["transport"].get("resumed", False) == (session != "none")
    return float(summary["first_frame_s"])


def test_early_data_saves_a_round_trip_in_the_simulator(tmp_path: Path) -> None:
    none, resumed, early = (simulate(tmp_path, session) for session in ("none", "resumed", "early_data"))
    assert resumed == pytest.approx(none, abs=0.02)
    assert 0.074 <= none - early <= 0.150


def test_a_start_whose_first_path_is_silent_is_measured_too() -> None:
    """The attempt over the second path, after 2 s, has no 0-RTT."""
    assert 2 < first_frame_s(job(find_pair("subway-1"), "xlink", "early_data", 17)) < 60
