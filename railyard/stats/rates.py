"""Intervals of the rate of a rare event, such as stalls: seconds stalled / seconds played, over many plays.

Stalls are few and long, and they come in clusters: one outage stalls all plays that meet it. A sample often lacks the
longest ones, so the ends of a bootstrap interval are too low. Therefore:

    event       a pair of traces with a stall, where pairs are resampled; else neighbouring plays that stall, at most
                two windows long; of plays that have nothing in common, one play that stalls. A comparison counts
                events under either scheme
    v           variance of the rate y: of the bootstrap, or that of the events' sum if it is larger; times (t / z)²,
                with one degree of freedom less than events
    interval    gamma (Fay and Feuer 1997). The lower end is the quantile of the gamma distribution with mean y and
                variance v; the upper end that with mean y + w and variance v + w², w the longest event: as if one more
                like it had not been seen. Below FEWEST events it has no ends
    difference  the events that are longer under our scheme and those that are longer under theirs are two rates, each
                with such an interval, and the ends of their difference follow from these and from the correlation of
                the two sums, which is negative: an event adds to one of them alone (MOVER, Zou 2007). A rate with fewer
                than FEWEST events takes the greatest difference of either kind for w

`railyard study interval-coverage` measures how often they cover; docs/results/gate-power.md has the figures.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from railyard.stats import distributions, intervals
from railyard.stats.bootstrap import FEWEST, Layout, Reals, weighted_sums
from railyard.stats.changes import Change
from railyard.stats.intervals import LEVEL, Interval

EVENT_WINDOWS = 2
"""The longest event, in windows of trace. A longer one is two."""
LEAST_TAIL = 1e-12
STEPS = 50  # of a bisection: far below what a p value or an end is read to
LEAST_RATIO, MOST_RATIO = 1e-9, 1e9

Ends = tuple[float, float]


@dataclass(frozen=True)
class Sums:
    """The contributions of each play to a rate, sum(top) / sum(bottom), in the order of a layout's indices."""

    top: Reals
    bottom: Reals

    @classmethod
    def of(cls, top: Sequence[float], bottom: Sequence[float]) -> "Sums":
        return cls(np.array(top, dtype=np.float64), np.array(bottom, dtype=np.float64))

    @property
    def value(self) -> float:
        """The rate; nan if the denominator is 0."""
        bottom = float(self.bottom.sum())
        return float(self.top.sum()) / bottom if bottom > 0 else math.nan

    def resampled(self, layout: Layout) -> Reals:
        """The rate under each row of the layout's weights; nan if the denominator is 0."""
        top, bottom = (weighted_sums(layout, part) for part in (self.top, self.bottom))
        ratios: Reals = np.divide(top, bottom, out=np.full(len(top), math.nan), where=bottom > 0)
        return ratios


@dataclass(frozen=True)
class _Rate:
    """A rate and the inputs of its interval."""

    value: float
    variance: float
    """Before it is widened for few events."""
    longest: float
    """w."""

    def interval(self, tail: float, freedom: int) -> Interval:
        """The interval with the share `tail` beyond each end."""
        wide = distributions.widening(freedom, 1 - tail)
        variance = self.variance * wide * wide
        return Interval(
            self.value,
            _gamma_quantile(self.value, variance, tail),
            _gamma_quantile(self.value + self.longest, variance + self.longest**2, 1 - tail),
        )


def _gamma_quantile(mean: float, variance: float, share: float) -> float:
    if mean <= 0 or variance <= 0:
        return mean
    return variance / mean * distributions.gamma_quantile(mean * mean / variance, share)


# --- events -----------------------------------------------------------------------------------------------------------


def _runs(hit: npt.NDArray[np.bool_], block: int) -> Iterator[list[int]]:
    """Runs of neighbouring plays of one cluster that are hit, around its loop. A gap of a window ends a run."""
    size, places = len(hit), [int(place) for place in np.flatnonzero(hit)]
    gaps = [(after - place - 1) % size + 1 for place, after in zip(places, places[1:] + places[:1], strict=True)]
    first = next((number + 1 for number, gap in enumerate(gaps) if gap > block), 0)
    run: list[int] = []
    for number in (*range(first, len(places)), *range(first)):
        if run and (places[number] - run[0]) % size >= EVENT_WINDOWS * block:
            yield run
            run = []
        run.append(places[number])
        if gaps[number] > block:
            yield run
            run = []
    if run:
        yield run


def _events(hit: npt.NDArray[np.bool_], layout: Layout) -> list[list[int]]:
    """The plays of each event. `hit`: whether each play belongs to one."""
    if layout.by_cluster:
        return [list(cluster) for cluster in layout.clusters if hit[list(cluster)].any()]
    events: list[list[int]] = []
    for cluster, block in zip(layout.clusters, layout.blocks, strict=True):
        if block == 1:
            events += [[play] for play in cluster if hit[play]]
        else:
            events += [[cluster[place] for place in run] for run in _runs(hit[list(cluster)], block)]
    return events


def _slots(events: Sequence[Sequence[int]], layout: Layout) -> float:
    """The largest possible number of events."""
    if layout.by_cluster:
        return float(len(layout.clusters))
    sizes = zip(layout.clusters, layout.blocks, strict=True)
    could = sum(len(cluster) if block == 1 else len(cluster) / (EVENT_WINDOWS * block) for cluster, block in sizes)
    return max(float(len(events)), could)


def _totals(sums: Sums, events: Sequence[Sequence[int]]) -> Reals:
    """The total of each event, as a share of the rate's denominator."""
    return np.array([float(sums.top[list(event)].sum()) for event in events]) / float(sums.bottom.sum())


def _variance_of_sum(totals: Reals, slots: float) -> float:
    """Variance of the sum of `slots` independent values, all zero except `totals`."""
    spread = float(totals @ totals) - float(totals.sum()) ** 2 / slots
    return max(0.0, slots / (slots - 1) * spread)


def _carries(events: Sequence[Sequence[int]], layout: Layout) -> bool:
    return intervals.carries_ends(layout) and len(events) >= FEWEST


def events_in(sums: Sums, layout: Layout) -> int:
    """The number of events in a sample."""
    return len(_events(sums.top > 0, layout))


def _freedom(events: Sequence[Sequence[int]], layout: Layout) -> int:
    return min(layout.freedom, len(events) - 1)


# --- a rate -----------------------------------------------------------------------------------------------------------


def level(sums: Sums, layout: Layout) -> Interval | None:
    """The rate with its interval; None if nothing was played."""
    if not math.isfinite(sums.value):
        return None
    events = _events(sums.top > 0, layout)
    if not _carries(events, layout):
        return Interval.alone(sums.value)
    totals, resampled = _totals(sums, events), sums.resampled(layout)
    by_bootstrap = float(np.nanvar(resampled[1:])) * layout.underestimate
    variance = max(by_bootstrap, _variance_of_sum(totals, _slots(events, layout)))
    return _Rate(sums.value, variance, float(totals.max())).interval((1 - LEVEL) / 2, _freedom(events, layout))


# --- two rates over the same plays ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Both:
    """Two rates over the same plays. `ours`, `theirs`: the total of each event / the denominator of the rate."""

    ours: Reals
    theirs: Reals
    slots: float
    freedom: int

    def difference(self, tail: float, times: float = 1.0) -> Interval:
        """The interval of ours − times · theirs."""
        net = self.ours - times * self.theirs
        parts = np.maximum(net, 0.0), np.maximum(-net, 0.0)
        more, less = (self._one_way(part, float(np.abs(net).max())) for part in parts)
        correlation = intervals.exclusive_correlation(*parts, self.slots)
        return intervals.less(more.interval(tail, self.freedom), less.interval(tail, self.freedom), correlation)

    def _one_way(self, parts: Reals, longest: float) -> _Rate:
        own = np.count_nonzero(parts) >= FEWEST
        return _Rate(float(parts.sum()), _variance_of_sum(parts, self.slots), float(parts.max()) if own else longest)

    def ratio(self, tail: float) -> Ends:
        """The interval of ours / theirs: all c for which the interval of ours − c · theirs includes zero."""
        return self._crossing(tail, 0), self._crossing(tail, 1)

    def _crossing(self, tail: float, side: int) -> float:
        """The least c for which an end is not above zero; 0 if it never is above zero, infinite if it always is."""

        def end(times: float) -> float:
            bounds = self.difference(tail, times)
            return (bounds.low, bounds.high)[side]

        low, high = LEAST_RATIO, MOST_RATIO
        if end(low) <= 0 or end(high) > 0:
            return 0.0 if end(low) <= 0 else math.inf
        for _ in range(STEPS):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if end(middle) > 0 else (low, middle)
        return low


def _both(ours: Sums, theirs: Sums, layout: Layout) -> _Both | None:
    """None if too few events happened under both schemes together."""
    events = _events((ours.top > 0) | (theirs.top > 0), layout)
    if not _carries(events, layout):
        return None
    mine, other = (_totals(sums, events) for sums in (ours, theirs))
    return _Both(mine, other, _slots(events, layout), _freedom(events, layout))


def _p_beyond(interval: Callable[[float], Interval], *, above: bool) -> float:
    """One-sided p value of a difference: the share beyond one end at which that end is zero."""
    low, high = math.log(LEAST_TAIL), math.log(0.4999)
    for _ in range(STEPS):
        middle = (low + high) / 2
        bounds = interval(math.exp(middle))
        established = bounds.low > 0 if above else bounds.high < 0
        low, high = (low, middle) if established else (middle, high)
    return math.exp(high)


def change(ours: Sums, theirs: Sums, layout: Layout) -> Change | None:
    """ours − theirs; None if nothing was played under one of them."""
    value = ours.value - theirs.value
    if not math.isfinite(value):
        return None
    both = _both(ours, theirs, layout)
    if both is None:
        alone = Interval.alone(value)
        return Change(alone, 1.0, 1.0, alone, layout.units, layout.unit_words)
    wide, inner = (replace(both.difference(tail), value=value) for tail in ((1 - LEVEL) / 2, 1 - LEVEL))
    p = 1.0 if value == 0 else _p_beyond(both.difference, above=value > 0)
    p_less, p_more = (p, 1 - p) if value < 0 else (1 - p if value else p, p)
    return Change(wide, p_less, p_more, inner, layout.units, layout.unit_words)


def ratio(ours: Sums, theirs: Sums, layout: Layout) -> Interval | None:
    """ours / theirs; none where theirs is nothing."""
    if not (theirs.value > 0 and math.isfinite(ours.value)):
        return None
    both = _both(ours, theirs, layout)
    value = ours.value / theirs.value
    return Interval.alone(value) if both is None else Interval(value, *both.ratio((1 - LEVEL) / 2))
