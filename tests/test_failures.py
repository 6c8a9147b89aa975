"""Plays that failed: which of them have an excuse, and the interval of their share."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import FakeRun
from railyard.results.failures import failures, has_excuse
from railyard.results.records import Run, load_run
from railyard.results.show import chunks_table
from railyard.stats.distributions import exact_share
from railyard.traces.trace import sha256_file

SILENT = "60000\n"
# 100 kbps are 25 opportunities in 3 s: here from 10 s on.
CARRIES = "".join(f"{10_000 + 120 * k}\n" for k in range(25)) + SILENT
CARRIES_LESS = "".join(f"{10_000 + 130 * k}\n" for k in range(24)) + SILENT


def failed_run(folder: Path, up: str, down: str, *, offset_ms: int = 0, limit_s: float = 20.0) -> Run:
    """A play that never connected, on one path that is silent and one that has these traces."""
    paths: list[dict[str, Any]] = []
    for name, ways in (("wifi", {"up": SILENT, "down": SILENT}), ("lte", {"up": up, "down": down})):
        path: dict[str, Any] = {"name": name, "technology": name, "delay_ms": 15.0, "queue": "infinite", "loss": 0.0}
        for way, text in ways.items():
            file = folder / f"{name}.{way}"
            file.write_text(text)
            path |= {way: str(file), f"{way}_sha256": sha256_file(file)}
        paths.append(path)
    fake = FakeRun(outcome="connect_failed", rct_s=[], first_frame_s=None, paths=paths, start_offset_ms=offset_ms)
    run = replace(load_run(fake.write(folder)), player_start_s=0.0)
    run.config["time_limit_s"] = limit_s
    return run


def test_a_play_has_no_excuse_where_a_path_carried_100_kbps_for_three_seconds(tmp_path: Path) -> None:
    assert has_excuse(failed_run(tmp_path, CARRIES, CARRIES)) is False


@pytest.mark.parametrize(
    "changed",
    [
        {"down": CARRIES_LESS},
        {"up": CARRIES_LESS},
        {"limit_s": 12.0},  # the time limit ends within the window
        {"offset_ms": 11_000},  # the play starts within it
    ],
)
def test_a_play_has_an_excuse_where_no_path_carried_it_both_ways_within_its_limit(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    assert has_excuse(failed_run(tmp_path, **{"up": CARRIES, "down": CARRIES} | changed)) is True


def test_of_a_play_that_measures_one_path_only_that_path_counts(tmp_path: Path) -> None:
    run = failed_run(tmp_path, CARRIES, CARRIES)
    run.config.update({"primary": "wifi", "parameters": {"reconnect": "same"}})
    assert has_excuse(run) is True
    run.config["primary"] = "lte"
    assert has_excuse(run) is False


def test_a_play_whose_traces_are_gone_is_counted_as_without_excuse(tmp_path: Path) -> None:
    run = load_run(FakeRun(outcome="connect_failed", rct_s=[], first_frame_s=None).write(tmp_path))
    assert has_excuse(run) is None
    assert failures([run]).without_excuse == (run,)


@pytest.mark.parametrize(
    ("duration_s", "limit_s", "missing"),
    [
        (20.0, 60.0, [4, 5, 6, 7, 8, 9]),  # all that is left was due
        (20.0, 12.0, [4, 5]),  # of 11.6 s of playing; the chunks from 12 s on were not
        (20.0, None, []),
    ],
)
def test_a_play_that_was_cut_counts_the_chunks_that_it_should_have_requested(
    tmp_path: Path, duration_s: float, limit_s: float | None, missing: list[int]
) -> None:
    """Chunks of 2 s. Three are received, one was requested, the others never."""
    folder = FakeRun(outcome="time_limit", rct_s=[0.1] * 3, unfinished_s=[4.0], first_frame_s=0.4).write(tmp_path)
    record = json.loads((folder / "run.json").read_text())
    player = {"bitrate_bps": 1_000_000, "duration_s": duration_s, "chunk_bytes": 250_000}
    record["config"] |= {"time_limit_s": limit_s, "player": player}
    (folder / "run.json").write_text(json.dumps(record))
    events = (folder / "player.jsonl").read_text()
    (folder / "player.jsonl").write_text(
        events + json.dumps({"t": limit_s or 9.0, "event": "buffer", "buffered_ms": 0})
    )
    run = load_run(folder)
    chunks = run.chunks
    assert [chunk.index for chunk in chunks if not chunk.requested] == missing
    asked_at = list(chunks_table(run).columns[1].cells)
    assert [chunk.index for chunk, said in zip(chunks, asked_at, strict=True) if said == "–"] == missing
    assert [chunk.rct_s for chunk in chunks if not chunk.requested] == [limit_s] * len(missing)
    assert [chunk.completed for chunk in chunks] == [True] * 3 + [False] * (1 + len(missing))
    assert chunks[3].rct_s == pytest.approx((limit_s or 9.0) - 0.9), "what was requested counts the time since then"


def test_the_share_of_failed_plays_counts_windows_of_trace_and_not_plays(tmp_path: Path) -> None:
    """Forty plays whose starts are within two windows count as two."""
    runs: list[Run] = []
    for seed in range(1, 41):
        fake = FakeRun(seed=seed, rct_s=[10.0, 9.5], start_offset_ms=500 * seed)
        runs.append(load_run(fake.write(tmp_path)))
    found = failures(runs)
    assert (found.plays, found.failed) == (40, ())
    assert found.windows < 3 and found.share == exact_share(0, found.windows)
