"""The share of trace pairs whose resolution is too coarse for the effects that are compared on them."""

from collections.abc import Iterable
from typing import Any

from railyard.results.records import Run
from railyard.traces.resolution import share_words


def note(runs: Iterable[Run]) -> str:
    """A sentence on the resolution of the runs' traces, which also counts records without a resolution. Empty if all
    are fine and there is only one pair."""
    return share_words({run.pair: [_of_path(path) for path in run.config.get("paths", [])] for run in runs})


def _of_path(path: dict[str, Any]) -> float | None:
    """The resolution of a path in ms, from the run's record. None: it has none."""
    said = path.get("resolution_ms")
    return float(said) if isinstance(said, (int, float)) else None
