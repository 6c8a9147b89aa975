"""A play connects if a path carries packets for three seconds: every scheme, over generated outages."""

import json
import random
import subprocess
from pathlib import Path

import pytest

from railyard.base.paths import ROOT
from railyard.experiment.settings import QUIC_SCHEMES
from railyard.figures.rows import RCT_MAX, REBUFFER_RATE
from railyard.gate.compare import Row, compare
from railyard.gate.suite import Floors
from railyard.gate.testing import Railyard
from railyard.results.aggregate import Cell

TIME_LIMIT_S = 60
WINDOW_S = 3.0
# From then on each interface has been tried: the second attempt begins 2 s after the first.
TRIED_S = 3.0
RATE_BPS = 100_000
FAILED = ("connect_failed", "connection_lost")


def lit(windows: list[tuple[float, float]], rate_bps: int = RATE_BPS) -> str:
    """A trace that delivers at a rate in these windows, nothing outside of them, and loops after the time limit."""
    step_ms = 1504 * 8 * 1000 / rate_bps
    at: set[float] = set()
    for begin, end in windows:
        count = int((end - begin) * 1000 / step_ms)
        at |= {begin * 1000 + (i + 1) * step_ms for i in range(count)}
    return "".join(f"{round(ms)}\n" for ms in sorted([*at, (TIME_LIMIT_S + 20) * 1000]))


def windows_of(draw: random.Random) -> list[list[tuple[float, float]]]:
    """Two paths that are silent except for blips too short for a handshake, and for one window on one of them."""
    paths = [
        [
            (begin, begin + draw.uniform(0.1, 1.2))
            for begin in sorted(draw.uniform(0, 58) for _ in range(draw.randint(0, 6)))
        ]
        for _ in range(2)
    ]
    begin = draw.uniform(TRIED_S, TIME_LIMIT_S - WINDOW_S - 1)
    paths[draw.randrange(2)].append((begin, begin + WINDOW_S))
    return paths


def play(folder: Path, scheme: str, traces: list[Path], **settings: object) -> dict[str, object]:
    folder.mkdir()
    job = {
        "seed": 1,
        "time_limit_s": TIME_LIMIT_S,
        "scheme": scheme,
        "paths": [
            {"name": name, "technology": name, "up": str(trace), "down": str(trace), "delay_ms": delay}
            for name, delay, trace in zip(("wifi", "lte"), (15, 40), traces, strict=True)
        ],
        "player": {"video_bytes": 5_000_000, "bitrate_bps": 2_000_000, "chunk_bytes": 262_144},
        "link_logs": False,
        "null_crypto": True,
    }
    job |= settings
    (folder / "job.json").write_text(json.dumps(job))
    program = ROOT / "build" / "bin" / "xlink-sim"
    subprocess.run([program, folder / "job.json", "--out", folder], check=False, capture_output=True, timeout=60)
    last: dict[str, object] = json.loads((folder / "player.jsonl").read_text().splitlines()[-1])
    return last


@pytest.mark.parametrize("scheme", QUIC_SCHEMES)
def test_every_scheme_connects_where_a_path_carries_100_kbps_for_three_seconds(scheme: str, tmp_path: Path) -> None:
    draw = random.Random(16)
    failed = []
    for number in range(20):
        windows = windows_of(draw)
        traces = [tmp_path / f"{number}-{name}" for name in ("wifi", "lte")]
        for trace, own in zip(traces, windows, strict=True):
            trace.write_text(lit(own))
        ended = play(tmp_path / f"run-{number}", scheme, traces)
        if ended["outcome"] in FAILED:
            failed.append((number, ended["outcome"], ended["message"], windows))
    assert not failed


def test_a_play_that_no_path_lets_through_fails_at_its_time_limit(tmp_path: Path) -> None:
    dark = tmp_path / "dark"
    dark.write_text(lit([]))
    ended = play(tmp_path / "run", "sp", [dark, dark])
    assert (ended["outcome"], ended["message"]) == ("connect_failed", "no answer from the server")
    assert ended["transport"]["attempts"] >= 2  # type: ignore[index]


def states_of(folder: Path, path: str) -> list[str]:
    events = map(json.loads, (folder / "player.jsonl").read_text().splitlines())
    return [event["state"] for event in events if event["event"] == "path" and event["name"] == path]


@pytest.fixture
def fading(tmp_path: Path) -> list[Path]:
    """10 Mbps on both paths, the first of which is dark from 3 s on."""
    (tmp_path / "fades").write_text(lit([(0, 3)], 10_000_000))
    (tmp_path / "stays").write_text(lit([(0, 79)], 10_000_000))
    return [tmp_path / "fades", tmp_path / "stays"]


def test_single_path_leaves_a_silent_interface_only_where_it_is_told_to(tmp_path: Path, fading: list[Path]) -> None:
    assert play(tmp_path / "stays-there", "sp", fading)["outcome"] == "time_limit"
    assert play(tmp_path / "leaves", "sp", fading, leave_ms=8000)["outcome"] == "complete"
    assert "tried" in states_of(tmp_path / "leaves", "lte")


@pytest.mark.parametrize(("scheme", "is_set_aside"), [("vanilla-mp", True), ("vanilla-mp-2021", False)])
def test_a_path_of_2021_is_used_until_it_is_closed(
    scheme: str, is_set_aside: bool, tmp_path: Path, fading: list[Path]
) -> None:
    out = tmp_path / "run"
    play(out, scheme, fading, qlog=True)
    logs = "".join(file.read_text() for file in (out / "qlog").glob("*_server.sqlog"))
    assert ("consecutive PTOs" in logs) == is_set_aside
    assert (json.loads((out / "server.jsonl").read_text().splitlines()[-1])["given_up_bytes"] > 0) == is_set_aside


DARK = [{"t_s": 0, "path": name, "state": "down"} for name in ("wifi", "lte")]


def test_a_play_that_fails_counts_in_every_metric_with_its_time_limit(railyard: Railyard) -> None:
    failed = railyard.run("sp", "subway-1", time_limit_s=10, duration_s=4, link_events=DARK)
    assert failed.outcome == "connect_failed" and failed.run.failed
    chunks = failed.run.chunks
    assert [chunk.rct_s for chunk in chunks] == [10.0] * 4
    assert not any(chunk.completed or chunk.requested for chunk in chunks)
    assert sum(chunk.bytes for chunk in chunks) == 4 * 4_000_000 // 8
    assert failed.run.first_frame_counted == (10.0, False)
    assert failed.run.rebuffer_counted_s == 10.0
    played = railyard.run("sp", "subway-1", time_limit_s=60, duration_s=4)
    both = Cell("subway-1", "sp", [failed.run, played.run], [])
    longest, rate = both.point(RCT_MAX), both.point(REBUFFER_RATE)
    assert longest is not None and longest.text(".3f") == "≥ 10.000"
    assert rate is not None and rate.value > 10 / 4


def test_a_play_that_fails_where_it_did_not_is_a_fault_of_the_gate(railyard: Railyard) -> None:
    before = railyard.run("sp", "subway-1", time_limit_s=10, duration_s=4).run
    after = railyard.run("sp", "subway-1", time_limit_s=10, duration_s=4, link_events=DARK).run
    assert Row("subway-1", "sp", [before], [after], False).faults == [after]
    assert not Row("subway-1", "sp", [after], [after], False).faults


def test_a_row_that_the_baseline_does_not_know_is_new_and_no_regression(railyard: Railyard) -> None:
    known, new = (railyard.run(name, "subway-1", duration_s=2).run for name in ("sp", "xlink-lean"))
    same = {known.run_id: ("a", "a")}
    rows = compare([known], [known, new], same, Floors(), 0.05)
    assert [(row.label, row.verdict, row.failed) for row in rows] == [
        ("sp", "identical", False),
        ("xlink-lean", "new, no baseline", False),
    ]
