"""Carries out the emulated downloads and reads their durations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from railyard.base.lists import grouped
from railyard.results.pending import Plan, make_whole
from railyard.results.records import Run
from railyard.studies.validation.models import Emulated, experiment

Durations = Mapping[tuple[str, str, int], Sequence[float]]
"""Seconds by model, scheme and number of the live download. Infinite: the download did not finish."""


def duration_s(run: Run) -> float:
    """The time from the player's start to the last byte."""
    chunk = run.chunks[0] if run.chunks else None
    return chunk.request_s + chunk.rct_s if chunk is not None and chunk.completed else math.inf


def carry_out(
    emulated: Sequence[Emulated], seed: int, folder: Path, jobs: int | None
) -> dict[tuple[str, str, int], list[float]]:
    campaign = make_whole(Plan(experiment(seed), [one.spec for one in emulated]), folder, jobs=jobs)
    took = {run.run_id: duration_s(run) for run in campaign.runs if not run.void}
    done = (one for one in emulated if one.spec.run_id in took)
    return grouped(((one.model, one.scheme, one.download), took[one.spec.run_id]) for one in done)
