"""Why a figure is "n too small": the count that is short, the number needed, and the setting that gives them.

All code that prints "n too small" takes its words from here. Example: "n too small (43 of 72 requests; 29 more: seeds:
2)".
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from railyard.base.lists import grouped
from railyard.results.records import Run
from railyard.stats import quantiles, rates
from railyard.stats.bootstrap import FEWEST, Layout
from railyard.stats.intervals import TOO_SMALL, Interval
from railyard.stats.quantiles import Sample

SPREAD = "start_offset_ms: spread"


@dataclass(frozen=True, order=True)
class Shortage:
    """One count that is too small."""

    needed: int
    count: int
    things: str
    setting: str
    """The setting of the experiment that removes the shortage."""

    @property
    def words(self) -> str:
        """ "43 of 72 requests; 29 more: seeds: 2"."""
        return f"{self.count} of {self.needed} {self.things}; {self.needed - self.count} more: {self.setting}"

    def __str__(self) -> str:
        return f"{TOO_SMALL} ({self.words})"


def of_values(q: float, count: int, things: str, seeds: int) -> Shortage | None:
    """The shortage of a quantile of `count` independent values. None: they are enough."""
    needed = quantiles.values_for(q)
    if count >= needed:
        return None
    return Shortage(needed, count, things, f"seeds: {math.ceil(max(1, seeds) * needed / max(1, count))}")


def windows_for(layout: Layout) -> int:
    """The least number of windows of trace for an interval over these pairs."""
    return max(FEWEST, len(layout.clusters) + FEWEST - 1)


def of_windows(layout: Layout, factor: float = 1.0) -> Shortage | None:
    """The shortage of windows for an interval over these traces. None: there are enough. `factor` > 1: `factor` times
    the present number is needed, else the least number for an interval."""
    has, pairs = layout.windows, len(layout.clusters)
    needed = math.ceil(has * factor) if factor > 1 else windows_for(layout)
    if has >= needed:
        return None
    return Shortage(needed, has, "windows of trace", _more_windows(layout, needed, pairs))


def _more_windows(layout: Layout, needed: int, pairs: int) -> str:
    """The setting that gives more windows. Plays that are spread and still overlap fill their traces: then only more
    traces or shorter plays help."""
    seeds = math.ceil(needed / pairs)
    spread = f"seeds: {seeds} with {SPREAD}" if layout.plays < seeds * pairs else SPREAD
    if all(block == 1 for block in layout.blocks):
        return f"seeds: {seeds} with {SPREAD}"
    first = "" if layout.spread else f"{spread}, or "
    if pairs > 1:
        return f"{first}{math.ceil(pairs * needed / layout.windows)} pairs instead of {pairs}"
    return f"{first}more pairs, or a shorter player.duration_s"


def of_sample(sample: Sample, q: float, interval: Interval, things: str, seeds: int) -> Shortage | None:
    """The shortage of a quantile's interval over dependent values. None: it has an interval."""
    if interval.known:
        return None
    count = sample.count
    if few := of_values(q, count, things, seeds) or of_windows(sample.layout):
        return few
    if (wanted := quantiles.windows_for(q)) > sample.layout.windows:
        return of_windows(sample.layout, wanted / sample.layout.windows)
    return of_windows(sample.layout, quantiles.growth_to_carry(sample, q))


def of_rate(sums: rates.Sums, layout: Layout, interval: Interval) -> Shortage | None:
    """The shortage of the interval of a rare event's rate. None: it has an interval."""
    if interval.known:
        return None
    if few := of_windows(layout):
        return few
    events = rates.events_in(sums, layout)
    more = _more_windows(layout, math.ceil(layout.windows * FEWEST / max(1, events)), len(layout.clusters))
    return Shortage(FEWEST, events, "stretches of trace that stall", more)


def of_plays(count: int, needed: int) -> Shortage | None:
    """The shortage of a test over independent plays. None: they are enough."""
    return None if count >= needed else Shortage(needed, count, "plays", f"seeds: {needed}")


def seeds_of(runs: Iterable[Run]) -> int:
    return len({run.seed for run in runs})


def note(shortages: Mapping[str, Shortage]) -> str:
    """One line for a table in which figures are "n too small": "n too small: RCT p95 (43 of 72 requests; 29 more:
    seeds: 2); ….". Empty without shortages."""
    names = grouped((one.words, name) for name, one in shortages.items())
    listed = [f"{', '.join(of)} ({shortfall})" for shortfall, of in names.items()]
    return f"{TOO_SMALL}: {'; '.join(listed)}." if shortages else ""


def worst(shortages: Iterable[Shortage | None]) -> Shortage | None:
    """The largest shortage of one figure under several schemes."""
    return max(
        (one for one in shortages if one is not None), key=lambda one: one.needed / max(1, one.count), default=None
    )


def gather(named_shortages: Sequence[tuple[str, Shortage | None]]) -> dict[str, Shortage]:
    """The worst shortage of each figure, by name."""
    names = dict.fromkeys(name for name, one in named_shortages if one is not None)
    worst_of = {name: worst(one for other, one in named_shortages if other == name) for name in names}
    return {name: one for name, one in worst_of.items() if one is not None}
