"""Series over time of one run: its re-injections, its buffer, and capacity from traces.

All times are seconds on the clock of the links, which is the clock of the trace from the run's start offset on.
"""

from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path

from railyard.base.jsonl import read_jsonl
from railyard.results.records import Run
from railyard.results.serverlog import Points, ServerPath
from railyard.traces.trace import read_trace


def reinjected(paths: Mapping[str, ServerPath]) -> Points:
    """(s, bytes re-injected so far)."""
    copies = sorted(copy for path in paths.values() for copy in path.copies)
    times = [0.0, *(t for t, _ in copies)]
    return list(zip(times, accumulate((size for _, size in copies), initial=0.0), strict=True))


def buffered_bytes(run: Run, folder: Path) -> Points:
    """The player's buffer every 100 ms: (s, bytes)."""
    start = run.player_start_s or 0.0
    player = read_jsonl(folder / "player.jsonl")
    return [(start + e["t"], float(e["buffered_bytes"])) for e in player if e.get("event") == "buffer"]


def capacity(run: Run, name: str, bin_ms: int, show_s: float) -> Points:
    """(begin of the bin in s, Mbps) of a path's downlink."""
    path = next(path for path in run.config["paths"] if path["name"] == name)
    trace = read_trace(path["down"])
    rate = trace.rate_mbps(bin_ms, duration_ms=int(show_s * 1000), start_offset_ms=int(run.config["start_offset_ms"]))
    return [(index * bin_ms / 1000, float(value)) for index, value in enumerate(rate)]


def thinned(points: Points, step_s: float, until_s: float) -> Points:
    """The last point of each `step_s`, up to a time, as a plot cannot show more."""
    kept: dict[int, tuple[float, float]] = {}
    for t, value in points:
        if t <= until_s:
            kept[int(t / step_s)] = (t, value)
    return list(kept.values())


def at(points: Points, t: float) -> float | None:
    """The last value at or before a time. None: there is none."""
    place = bisect_right(points, t, key=lambda point: point[0])
    return points[place - 1][1] if place else None


def greatest(points: Points, begin: float, end: float) -> float | None:
    return max((value for t, value in points if begin <= t <= end), default=None)
