"""The time between the oracle and a scheme: its parts add up, and each has the right value."""

from dataclasses import replace
from pathlib import Path

import pytest

from conftest import FakeRun
from railyard.results import bounds, differences
from railyard.results.records import Run, load_run
from railyard.stats import intervals


def plays(folder: Path, label: str, rct_s: float, oracle_s: float, play_s: float) -> list[Run]:
    """Two plays on each of six pairs; each pair takes a tenth longer than the one before."""
    found: list[Run] = []
    for pair in range(6):
        for seed in (1, 2):
            times = [rct_s * (1 + pair / 10)] * 4
            fake = FakeRun(pair=f"pair-{pair}", label=label, seed=seed, start_offset_ms=60_000 * seed, rct_s=times)
            run = load_run(fake.write(folder))
            slower = 1 + pair / 10
            chunks = [replace(c, oracle_s=oracle_s * slower, oracle_play_s=play_s * slower) for c in run.chunks]
            found.append(replace(run, chunks=chunks))
    return found


def test_the_parts_of_the_excess_are_sharing_transport_and_information(tmp_path: Path) -> None:
    ours = plays(tmp_path, "xlink+", 0.8, 0.4, 0.6)
    clairvoyant = plays(tmp_path, "clairvoyant", 0.7, 0.45, 0.65)  # made its requests at other times
    layout = differences.layout_of(ours, clairvoyant)
    found = bounds.shares_of(ours, clairvoyant, layout)
    mean = 1.25  # of the pairs
    assert found.excess[0] == pytest.approx(0.4 * mean)
    assert [part[0] for part in found.parts] == pytest.approx([0.2 * mean, 0.05 * mean, 0.15 * mean])
    share = intervals.interval(found.sharing / found.excess, layout)
    assert share is not None and share.low == pytest.approx(0.5) and share.high == pytest.approx(0.5)
    excess = intervals.interval(found.excess, layout)
    assert excess is not None and excess.low < 0.4 * mean < excess.high
    assert bounds.above_play_s(ours, lambda chunk: chunk.index == 0) == pytest.approx(0.2 * mean)


def test_figures_of_the_oracle_are_those_of_its_times(tmp_path: Path) -> None:
    runs = plays(tmp_path, "xlink+", 0.8, 0.4, 0.6)
    median, p95 = bounds.figures("oracle's play", bounds.of_play)
    layout = differences.layout_of(runs)
    levels = [figure.level(runs, layout) for figure in (median, p95)]
    assert [level.value if level else None for level in levels] == pytest.approx([0.6 * 1.2, 0.6 * 1.5])
