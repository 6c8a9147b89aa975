"""xlink+: the handshake is raced over the paths, and nothing else of the programs changes by it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from quic_programs import read_jsonl
from railyard.base.paths import program
from sim_program import simulate

SECOND = 1000


def constant(file: Path, opportunities_ms: range) -> str:
    """A trace with one opportunity at each of those milliseconds."""
    file.write_text("".join(f"{ms}\n" for ms in opportunities_ms))
    return str(file)


@pytest.fixture
def dark_at_first(tmp_path: Path) -> list[dict[str, Any]]:
    """Two paths of 12 Mbps; the primary one carries nothing in the first five seconds."""
    late = constant(tmp_path / "late", range(5 * SECOND, 60 * SECOND))
    steady = constant(tmp_path / "steady", range(1, 60 * SECOND))
    return [
        {"name": "wifi", "technology": "wifi", "up": late, "down": late, "delay_ms": 15},
        {"name": "lte", "technology": "lte", "up": steady, "down": steady, "delay_ms": 40},
    ]


def play(folder: Path, paths: list[dict[str, Any]], scheme: str) -> Path:
    player = {"video_bytes": 20_000_000, "bitrate_bps": 8_000_000, "chunk_bytes": 524_288, "verify": True}
    job = {"time_limit_s": 40, "scheme": scheme, "paths": paths, "player": player, "qlog": True}
    return simulate(folder / scheme, job)


def test_a_dark_primary_path_does_not_hold_up_the_start(tmp_path: Path, dark_at_first: list[dict[str, Any]]) -> None:
    without = read_jsonl(play(tmp_path, dark_at_first, "xlink-lean") / "player.jsonl")[-1]
    assert without["first_frame_s"] > 2, "the second path is tried after 2 s"
    out = play(tmp_path, dark_at_first, "xlink+")
    events = read_jsonl(out / "player.jsonl")
    summary = events[-1]
    # 20 ms until the second attempt, then handshake, request and first frame at 80 ms a round trip.
    assert 0.18 < summary["first_frame_s"] < 0.8
    assert summary["outcome"] == "complete" and summary["rebuffer_time_s"] == 0
    assert summary["transport"]["multipath"]
    # Both paths carry the video in the end, under their own names.
    received = {path["name"]: path["bytes_received"] for path in summary["paths"]}
    assert received["lte"] > 1_000_000 and received["wifi"] > 1_000_000
    # The server also saw the loser, once the path carried packets, and got its close.
    closed = [e for e in read_jsonl(out / "server.jsonl") if e["event"] == "connection_closed"]
    assert len(closed) >= 1


def test_a_primary_path_that_answers_is_the_only_one_tried(tmp_path: Path, dark_at_first: list[dict[str, Any]]) -> None:
    swapped = [dark_at_first[1] | {"technology": "wifi", "delay_ms": 5}, dark_at_first[0] | {"technology": "lte"}]
    out = play(tmp_path, swapped, "xlink+")
    assert read_jsonl(out / "player.jsonl")[-1]["outcome"] == "complete"
    assert len(list((out / "qlog").glob("*_client.sqlog"))) == 1


def test_all_paths_dark_is_one_failure(tmp_path: Path, dark_at_first: list[dict[str, Any]]) -> None:
    dark = constant(tmp_path / "dark", range(50 * SECOND, 51 * SECOND))
    paths = [path | {"up": dark, "down": dark} for path in dark_at_first]
    job = {"time_limit_s": 30, "scheme": "xlink+", "paths": paths}
    job["player"] = {"video_bytes": 300_000, "bitrate_bps": 2_000_000, "chunk_bytes": 262_144}
    (tmp_path / "job.json").write_text(json.dumps(job))
    command: list[str | Path] = [program("xlink-sim"), tmp_path / "job.json", "--out", tmp_path / "out"]
    done = subprocess.run(command, check=False, timeout=60)
    assert done.returncode == 2
    summary = read_jsonl(tmp_path / "out" / "player.jsonl")[-1]
    assert summary["outcome"] == "connect_failed" and summary["message"] == "no answer from the server"
