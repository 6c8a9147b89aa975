"""What share of the pairs of runs is coarser than the effects that are read off them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from railyard.results.records import Run
from railyard.traces.resolution import share_words


def note(runs: Iterable[Run]) -> str:
    """One sentence on the resolution of their traces; of records without one it says so. Empty where all is fine and
    there is one pair alone."""
    return share_words({run.pair: [_of_path(path) for path in run.config.get("paths", [])] for run in runs})


def _of_path(path: dict[str, Any]) -> float | None:
    """What the record of a run says of one of its paths."""
    said = path.get("resolution_ms")
    return float(said) if isinstance(said, (int, float)) else None
