"""Confidence intervals of figures and of differences: the one code for all comparisons.

Requests of one play share the links' state, and plays that start near each other in one trace see the same stretch of
it. What is resampled is therefore never a request: it is a block of neighbouring plays, and where there are enough
pairs of traces, whole pairs (a block bootstrap in clusters). A comparison resamples both schemes alike: same trace,
same place. docs/reference/statistics.md states the rules.

    unit        what is independent: pairs of traces, else blocks of plays, else plays
    interval    expanded percentile interval of the bootstrap (Hesterberg 2015): its tails are those of Student's t with
                n − 1 degrees of freedom, so that few units give a wide interval; below FEWEST units it has no ends
    quantile    between two order statistics (binomial, with the effective number of values: Woodruff 1952, Korn and
                Graubard 1998), with one degree of freedom less than units on the quantile's rarer side; a quantile is
                carried only if both of them lie within the sample, and the windows are enough
    difference  percentiles of the difference under resamples that both schemes share; it needs no carried quantiles
    censored    a value that is a lower bound counts as its bound for the lower end and as infinite for the upper one
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from railyard.stats import distributions
from railyard.stats.statistics import nearest_rank, nearest_rank_of, place

RESAMPLES = 2000
LEVEL = 0.95
SEED = 1
FEWEST = 5  # units: with four the interval's ends would be rarer than one resample in 4000
MOST_OF_WINDOW = 10  # so many values of one window of trace count as independent, at most
METHOD = (
    f"{LEVEL * 100:.0f} % bootstrap over runs, percentiles widened for few runs (Hesterberg 2015), {RESAMPLES} "
    f"resamples, seed {SEED}"
)
TOO_SMALL = "n too small"
AT_ONCE = 1 << 20  # values that are cumulated together: 8 MB
MOST_KEPT = 64 << 20
LOOK_UP = 40  # how many products of a matrix take as long as one look at a weight: sizes the blocks, changes no figure

Groups = Sequence[Sequence[float]]
"""The values of each run."""
Reals = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Weights = npt.NDArray[np.uint8]
"""A play is drawn once on average: with 256 plays or more, 256 times has a probability below 10^-500."""


@dataclass(frozen=True)
class Interval:
    """A figure and its interval. An end that is infinite is not known."""

    value: float
    low: float
    high: float
    at_least: bool = False
    """The value rests on censored ones: it is a lower bound."""
    carried: bool = True
    """False for a quantile that the sample does not carry, whatever is independent in it: the value says little."""

    @classmethod
    def alone(cls, value: float) -> Interval:
        """A figure whose interval is not known."""
        return cls(value, -math.inf, math.inf)

    @property
    def known(self) -> bool:
        """Whether the sample carries any statement about the figure's error."""
        return math.isfinite(self.low) or math.isfinite(self.high)

    def mapped(self, of: Callable[[float], float]) -> Interval:
        """In another unit; `of` must not fall. Ends that are not known stay so."""
        low, high = (of(end) if math.isfinite(end) else end for end in (self.low, self.high))
        return replace(self, value=of(self.value), low=low, high=high)

    def without_ends(self) -> Interval:
        """The figure alone: its sample is too small for an interval."""
        return replace(self, low=-math.inf, high=math.inf)

    def turned(self) -> Interval:
        """The same of the figure with the other sign."""
        return Interval(-self.value + 0.0, -self.high + 0.0, -self.low + 0.0)

    def text(self, form: str = ".2f") -> str:
        value = f"{'≥ ' if self.at_least else ''}{_number(self.value, form)}"
        return f"{value} [{self.ends(lambda end: _number(end, form))}]"

    def ends(self, said: Callable[[float], str], between: str = ", ") -> str:
        """Both ends in words, "…" for one that is not known."""
        if not self.known:
            return TOO_SMALL
        return between.join(said(end) if math.isfinite(end) else "…" for end in (self.low, self.high))

    def words(self, more: str, less: str, unit: str = " %", digits: int = 1) -> str:
        """A difference as one says it, positive `more`, negative `less`: "16.5 % faster [9.2, 23.0]", "1.6 % slower
        [5.4 slower to 2.4 faster]"."""
        said = _directed(self.value, more, less, unit, digits)
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            return f"{said} [{self.ends(lambda end: _directed(end, more, less, '', digits), ' to ')}]"
        if _one_way((self.value, self.low, self.high), digits):
            low, high = sorted((abs(self.low), abs(self.high)))
            return f"{said} [{percentage(low, digits)}, {percentage(high, digits)}]"
        low_said, high_said = (_directed(end, more, less, "", digits) for end in (self.low, self.high))
        return f"{said} [{low_said} to {high_said}]"


def less(first: Interval, second: Interval) -> Interval:
    """first − second, of independent figures: ends from those of both (MOVER, Zou and Donner 2008)."""
    value = first.value - second.value
    return Interval(
        value,
        value - math.hypot(first.value - first.low, second.high - second.value),
        value + math.hypot(first.high - first.value, second.value - second.low),
    )


def _number(value: float, form: str) -> str:
    """A figure as text; what rounds to zero has no sign."""
    said = format(value, form)
    return said if float(said) else format(0.0, form)


def signed(value: float, digits: int) -> str:
    """A difference as text: "+3", "−3", "±0"."""
    number = f"{value:+.{digits}f}"
    return number.replace("-", "−") if float(number) else "±0"


def percentage(value: float, digits: int = 1) -> str:
    """A figure as text, from 100 on without decimals: they would say more than is known."""
    return _number(value, f".{digits}f" if abs(value) < 99.95 else ".0f")


def _rounded(value: float, digits: int) -> float:
    return float(percentage(value, digits))


def _one_way(values: Sequence[float], digits: int) -> bool:
    """Whether all are said with the word of the first one; what rounds to zero goes with either."""
    up = _rounded(values[0], digits) >= 0
    return all((end := _rounded(value, digits)) == 0 or (end > 0) == up for value in values)


def _directed(value: float, more: str, less: str, unit: str, digits: int) -> str:
    return f"{percentage(abs(value), digits)}{unit} {more if _rounded(value, digits) >= 0 else less}"


def range_words(values: Sequence[float], more: str, less: str, digits: int = 1) -> str:
    """From the least to the greatest difference, as one says it: "3 % slower to 10 % faster"."""
    low, high = min(values), max(values)
    near, far = sorted((low, high), key=abs)
    if _one_way((far, near), digits):
        return f"{percentage(abs(near), digits)} to {_directed(far, more, less, ' %', digits)}"
    return " to ".join(_directed(end, more, less, " %", digits) for end in (low, high))


# --- what is independent ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """Which plays depend on each other.

    `clusters`: the plays of each pair of traces, by index, in the order of their starts (the trace loops, so the last
    one is the neighbour of the first). `blocks`: of each cluster, how many neighbouring plays share a stretch of the
    trace.
    """

    clusters: tuple[tuple[int, ...], ...]
    blocks: tuple[int, ...]
    fixed: bool = False
    """The statement is about these pairs, however many they are."""

    @classmethod
    def of_independent(cls, plays: int) -> Layout:
        """Plays that have nothing in common."""
        return cls((tuple(range(plays)),), (1,))

    @property
    def plays(self) -> int:
        return sum(len(cluster) for cluster in self.clusters)

    @property
    def windows(self) -> int:
        """Stretches of trace that do not overlap."""
        return sum(max(1, len(cluster) // block) for cluster, block in zip(self.clusters, self.blocks, strict=True))

    def window_of(self) -> Counts:
        """The window number of each play. A window has as many neighbouring plays as overlap; the remaining plays at a
        cluster's end belong to its last window."""
        numbers, begun = np.zeros(self.plays, dtype=np.int64), 0
        for cluster, block in zip(self.clusters, self.blocks, strict=True):
            windows = max(1, len(cluster) // block)
            numbers[list(cluster)] = begun + np.minimum(np.arange(len(cluster)) // block, windows - 1)
            begun += windows
        return numbers

    def unit_of(self) -> Counts:
        """The unit number of each play."""
        if not self.by_cluster:
            return self.window_of()
        units = np.zeros(self.plays, dtype=np.int64)
        for number, cluster in enumerate(self.clusters):
            units[list(cluster)] = number
        return units

    @property
    def by_cluster(self) -> bool:
        """Whether pairs of traces are resampled too: the interval then speaks of pairs like these. With fewer pairs it
        speaks of these alone."""
        return not self.fixed and len(self.clusters) >= FEWEST

    def within(self) -> Layout:
        """The same plays, for a statement about these pairs."""
        return Layout(self.clusters, self.blocks, fixed=True) if self.by_cluster else self

    @property
    def units(self) -> int:
        """Independent observations."""
        return len(self.clusters) if self.by_cluster else self.windows

    @property
    def freedom(self) -> int:
        """Degrees of freedom: one less than the units, of each pair where pairs are fixed."""
        return self.units - 1 if self.by_cluster else self.windows - len(self.clusters)

    @property
    def underestimate(self) -> float:
        """Variance of a mean / what resampled units give of it.

        n / (n − 1) for few units. And b² / ((2 b² + 1) / 3) for plays of which b neighbours overlap, if they are alike
        as far as they overlap: of the correlations 1 − k / b a block keeps (1 − k / b)².
        """
        block = 1 if self.by_cluster else max(self.blocks)
        return self.units / self.freedom * 3 * block**2 / (2 * block**2 + 1)

    @property
    def unit_words(self) -> str:
        if self.by_cluster:
            return "pairs of traces"
        return "runs" if all(block == 1 for block in self.blocks) else "windows of trace"


_kept: dict[tuple[Layout, int], Weights] = {}
_keeping = Lock()


def weights(layout: Layout, resamples: int = RESAMPLES) -> Weights:
    """How often each play counts: the first row counts each once, the others are the resamples. The last ones that were
    asked for are kept, MOST_KEPT bytes of them."""
    key = (layout, resamples)
    with _keeping:
        counts = _kept.pop(key, None)
    if counts is None:
        counts = _draw(layout, resamples)
    with _keeping:
        _kept[key] = counts
        while len(_kept) > 1 and sum(each.nbytes for each in _kept.values()) > MOST_KEPT:
            del _kept[next(iter(_kept))]
    return counts


def _draw(layout: Layout, resamples: int) -> Weights:
    generator = np.random.default_rng(SEED)
    counts = np.zeros((resamples + 1, layout.plays), dtype=np.uint8)
    counts[0] = 1
    count = len(layout.clusters)
    if layout.by_cluster:
        times = generator.multinomial(count, np.full(count, 1 / count), size=resamples)
    else:
        times = np.ones((resamples, count), dtype=np.int64)
    for number, (cluster, block) in enumerate(zip(layout.clusters, layout.blocks, strict=True)):
        _draw_blocks(generator, counts, times[:, number], np.array(cluster), min(block, len(cluster)))
    return counts


def _draw_blocks(generator: np.random.Generator, counts: Weights, times: Counts, cluster: Counts, block: int) -> None:
    """Adds, for each resample, the plays of so many draws of one cluster: circular blocks, the last one cut to size."""
    size = len(cluster)
    for draw in range(int(times.max(initial=0))):
        every = np.flatnonzero(times > draw)
        for begin in range(0, len(every), at_once := max(1, AT_ONCE // size)):
            rows = every[begin : begin + at_once]
            starts = generator.integers(0, size, size=(len(rows), math.ceil(size / block)))
            places = (starts[:, :, None] + np.arange(block)).reshape(len(rows), -1)[:, :size] % size
            np.add.at(counts, (rows[:, None] + 1, cluster[places]), 1)


def weighted_sums(layout: Layout, values: Reals) -> Reals:
    """The sum over the plays of what each contributes, under each row of `weights`."""
    drawn = weights(layout)
    sums = np.empty(len(drawn))
    for begin in range(0, len(drawn), at_once := max(1, AT_ONCE // max(1, layout.plays))):
        sums[begin : begin + at_once] = drawn[begin : begin + at_once] @ values
    return sums


# --- from resamples to an interval ------------------------------------------------------------------------------------


def _tail(layout: Layout, level: float) -> float:
    """The share of resamples beyond each end, less than (1 − level) / 2 where the units are few (Hesterberg 2015)."""
    wide = math.sqrt(layout.underestimate) * distributions.student_quantile(layout.freedom, (1 + level) / 2)
    return distributions.normal(-wide)


def carries_ends(layout: Layout) -> bool:
    return layout.units >= FEWEST and layout.freedom >= FEWEST - 1


def _ends(lows: Reals, highs: Reals, layout: Layout, level: float) -> tuple[float, float]:
    """The interval's ends, from the resamples of a figure's lower and upper bound."""
    if not carries_ends(layout):
        return -math.inf, math.inf
    tail = _tail(layout, level)
    return nearest_rank_of(lows[~np.isnan(lows)], tail), nearest_rank_of(highs[~np.isnan(highs)], 1 - tail)


def interval(samples: Reals, layout: Layout, level: float = LEVEL) -> Interval | None:
    """The interval of a figure from its values under each row of `weights`. None if it has no value."""
    if not math.isfinite(samples[0]):
        return None
    drawn = samples[1:][np.isfinite(samples[1:])]
    return Interval(float(samples[0]), *_ends(drawn, drawn, layout, level)) if len(drawn) else None


@dataclass(frozen=True)
class Sample:
    """The values of many plays, ascending."""

    lower: Reals
    """A value that is not exact is a lower bound."""
    upper: Reals
    """The same with values that are not exact infinite. Without any, it is `lower` itself."""
    owner: npt.NDArray[np.integer[Any]]
    """The play of each value."""
    layout: Layout

    @classmethod
    def of(cls, groups: Groups, layout: Layout, exact: Sequence[Sequence[bool]] | None = None) -> Sample:
        """`groups`: the values of each play. `exact`: which of them are; all, where it is none."""
        values = np.array([value for group in groups for value in group], dtype=np.float64)
        owner = np.repeat(np.arange(len(groups)), [len(group) for group in groups]).astype(np.int64)
        if exact is None:
            return cls.of_values(values, owner, layout)
        known = np.array([one for group in exact for one in group], dtype=bool)
        order = np.lexsort((~known, values))
        lower = values[order]
        return cls(lower, lower if known.all() else np.where(known, values, math.inf)[order], owner[order], layout)

    @classmethod
    def of_values(cls, values: Reals, owner: npt.NDArray[np.integer[Any]], layout: Layout) -> Sample:
        """Exact values in any order, and the play of each."""
        order = np.argsort(values, kind="stable")
        lower = values[order]
        return cls(lower, lower, owner[order], layout)

    @property
    def count(self) -> int:
        return len(self.lower)

    @property
    def is_censored(self) -> bool:
        return self.upper is not self.lower


def _weighted_quantiles(values: Reals, owner: npt.NDArray[np.integer[Any]], drawn: Weights, q: float) -> Reals:
    """The nearest-rank quantile of ascending values under each row of weights; nan where nothing was drawn.

    The rank is first looked for among blocks of neighbouring values, whose weights are a product of two matrices, and
    then within its block. The product is einsum's: all sums are of integers, and no thread waits for another one.
    """
    quantiles = np.full(len(drawn), math.nan)
    if len(values) == 0:
        return quantiles
    count, plays = len(values), drawn.shape[1]
    size = max(1, math.isqrt(count * plays // LOOK_UP))
    blocks = math.ceil(count / size)
    of_play = np.bincount(np.arange(count) // size * plays + owner, minlength=blocks * plays).reshape(blocks, plays)
    for begin in range(0, len(drawn), rows := max(1, AT_ONCE // max(size, blocks, plays))):
        some = drawn[begin : begin + rows].astype(np.int64)
        up_to = np.cumsum(np.einsum("rp,bp->rb", some, of_play), axis=1)
        ranks = np.maximum(1, np.ceil(q * up_to[:, -1:] - 1e-9))
        block = np.minimum(np.count_nonzero(up_to < ranks, axis=1), blocks - 1)
        before = np.where(block > 0, up_to[np.arange(len(some)), block - 1], 0)[:, None]
        within = np.minimum(block[:, None] * size + np.arange(size), count - 1)
        reached = before + np.cumsum(np.take_along_axis(some, owner[within], axis=1), axis=1)
        places = block * size + np.count_nonzero(reached < ranks, axis=1)
        drawn_any = up_to[:, -1] > 0
        quantiles[begin : begin + rows][drawn_any] = values[places[drawn_any]]
    return quantiles


def quantile_bounds(sample: Sample, q: float) -> tuple[Reals, Reals]:
    """The quantile under each row of weights, with censored values at their bounds and with them at infinity."""
    drawn = weights(sample.layout)
    lows = _weighted_quantiles(sample.lower, sample.owner, drawn, q)
    if not sample.is_censored:
        return lows, lows
    order = np.argsort(sample.upper, kind="stable")
    return lows, _weighted_quantiles(sample.upper[order], sample.owner[order], drawn, q)


def effective_count(sample: Sample, value: float) -> float:
    """How many independent values would know the share of values ≤ `value` as well as these do; at most their number.

    n_eff = p (1 − p) / var(p), with var(p) from the bootstrap, and at most n. Where several values are equal to the
    given one, it is the smaller one of those with p as the share of values ≤ and < it.
    """
    lower = sample.lower
    count = _effective_count(sample, lower <= value)
    return count if np.count_nonzero(lower == value) < 2 else min(count, _effective_count(sample, lower < value))


def _effective_count(sample: Sample, counted: npt.NDArray[np.bool_]) -> float:
    plays = sample.layout.plays
    below = np.bincount(sample.owner, weights=counted, minlength=plays).astype(np.float64)
    every = np.bincount(sample.owner, minlength=plays).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = weighted_sums(sample.layout, below) / weighted_sums(sample.layout, every)
    share, count = float(shares[0]), float(every.sum())
    variance = float(np.nanvar(shares[1:])) * sample.layout.underestimate
    return count if variance <= 0 else min(count, share * (1 - share) / variance)


def _freedom(sample: Sample, value: float) -> int:
    """Degrees of freedom of what the sample says of the share of values beyond `value`: one less than the units that
    have a value there, on the rarer side; above the greatest value there is none, and those equal to it count. A tail
    that is that of two units is known as little as from two. Of one value a unit nothing is estimated that the binomial
    distribution does not know."""
    lower, layout = sample.lower, sample.layout
    if len(lower) <= layout.units:
        return layout.freedom
    unit = layout.unit_of()[sample.owner]
    above = lower > value if lower[-1] > value else lower == value
    return min(layout.freedom, *(len(np.unique(unit[side])) - 1 for side in (above, lower <= value)))


def carrying_count(sample: Sample, value: float, level: float = LEVEL) -> float:
    """The effective number of values that an interval of the quantile at `value` may count on: less for few units."""
    freedom = _freedom(sample, value)
    return (
        effective_count(sample, value) / distributions.widening(freedom, (1 + level) / 2) ** 2 if freedom > 0 else 0.0
    )


def quantile(sample: Sample, q: float, level: float = LEVEL) -> Interval | None:
    """The nearest-rank quantile and its interval by Woodruff's method; none without values.

    The interval has no ends (`known` is false) where one of its order statistics would lie outside of the sample, or
    where there are fewer windows of trace than values_for(q) / MOST_OF_WINDOW: then the sample does not carry the
    quantile. Example: of independent values p99 needs 368, for 0.99^n ≤ 0.025, and 37 windows.
    """
    lower, count, layout = sample.lower, sample.count, sample.layout
    if count == 0:
        return None
    upper = np.sort(sample.upper) if sample.is_censored else lower
    value = float(lower[place(count, q)])
    at_least = bool(np.isinf(upper[place(count, q)]))
    if not carries_ends(layout):
        return Interval(value, -math.inf, math.inf, at_least, carried=order_shares(q, count, level)[1] <= 1)
    if layout.windows < windows_for(q):
        return Interval(value, -math.inf, math.inf, at_least, carried=False)
    low_share, high_share = order_shares(q, carrying_count(sample, value, level), level)
    low_rank, high_rank = math.floor(low_share * count + 1e-9), math.ceil(high_share * count - 1e-9)
    if low_rank < 1 or high_rank > count:
        return Interval(value, -math.inf, math.inf, at_least, carried=False)
    return Interval(value, float(lower[low_rank - 1]), float(upper[high_rank - 1]), at_least)


def values_for(q: float) -> int:
    """The least number of independent values that carry a quantile: qⁿ ≤ 2.5 %."""
    return math.ceil(math.log((1 - LEVEL) / 2) / math.log(max(q, 1 - q)) - 1e-9)


def windows_for(q: float) -> int:
    """The least number of windows of trace that carry a quantile: what the sample's own tail says of its error is not
    enough to tell that, for a sample that lacks an outage does not know of it."""
    return math.ceil(values_for(q) / MOST_OF_WINDOW)


def order_shares(q: float, count: float, level: float = LEVEL) -> tuple[float, float]:
    """The order statistics that enclose the q-quantile of so many independent values, as shares of their number.

    The u-th value is above the quantile but with probability P(B ≥ u), B binomial (count, q); the l-th is below it but
    with P(B ≤ l − 1). Both are at most (1 − level) / 2. A share below 0 or above 1: there is no such value.
    """
    tail = (1 - level) / 2
    if q**count > tail or (1 - q) ** count > tail:
        return (-1.0, 2.0)

    low, high = (distributions.binomial_quantile(share, count, q) + 1 for share in (tail, 1 - tail))
    return low / count, high / count


def carries(sample: Sample, q: float) -> bool:
    interval_of_q = quantile(sample, q)
    return interval_of_q is not None and interval_of_q.known


# --- differences ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """How a figure differs between two schemes over the same plays: as a share of theirs, or in its own unit."""

    interval: Interval
    p_less: float
    """One-sided, that it is not less."""
    p_more: float
    inner: Interval
    """At the level 1 − 2 · 5 %: a claim of "no worse than a margin" holds if it lies below the margin (TOST)."""
    units: int
    unit_words: str

    def without_ends(self) -> Change:
        """The difference alone: nothing is established."""
        wide, inner = self.interval.without_ends(), self.inner.without_ends()
        return replace(self, interval=wide, inner=inner, p_less=1.0, p_more=1.0)

    def no_worse(self, margin: float) -> bool | None:
        """Whether it is more by less than the margin, at 5 %; none where that is not decided."""
        if self.inner.high < margin:
            return True
        return False if self.inner.low > margin else None

    def alike(self, margin: float) -> bool | None:
        """Equivalence by two one-sided tests (Schuirmann 1987): within ± margin, at 5 %."""
        if -margin < self.inner.low and self.inner.high < margin:
            return True
        return False if self.inner.low > margin or self.inner.high < -margin else None


def relative(ours: Reals, theirs: Reals) -> Reals:
    """ours / theirs − 1; with both infinite or zero it is not known."""
    with np.errstate(divide="ignore", invalid="ignore"):
        differences: Reals = ours / theirs - 1
    return differences


def absolute(ours: Reals, theirs: Reals) -> Reals:
    with np.errstate(invalid="ignore"):
        differences: Reals = ours - theirs
    return differences


Bounds = tuple[Reals, Reals]
"""A figure under each row of weights: its lower and its upper bound. They differ where values are censored."""


def change(
    ours: Bounds, theirs: Bounds, layout: Layout, how: Callable[[Reals, Reals], Reals] = relative
) -> Change | None:
    """The change between figures over the same plays. `how` rises with ours and falls with theirs. None: no value.

    With censored values the lower end uses the lower bound of ours and the upper bound of theirs, and the upper end
    the opposite, so that the result holds for any censored values.
    """
    value = float(how(ours[0], theirs[0])[0])
    lows, highs = how(ours[0], theirs[1]), how(ours[1], theirs[0])
    if not math.isfinite(value):
        return None
    lows, highs = np.where(np.isnan(lows), -math.inf, lows)[1:], np.where(np.isnan(highs), math.inf, highs)[1:]
    at_least = not math.isfinite(float(ours[1][0]))
    wide, inner = (
        Interval(value, *_ends(lows, highs, layout, level), at_least=at_least) for level in (LEVEL, 1 - 2 * (1 - LEVEL))
    )
    p_less, p_more = _p_value(highs, value, layout), _p_value(-lows, -value, layout)
    return Change(wide, p_less, p_more, inner, layout.units, layout.unit_words)


def _p_value(samples: Reals, value: float, layout: Layout) -> float:
    """One-sided p of "not below zero": the level at which the interval's upper end would be zero.

    Where no resample reaches zero the share is taken from the normal curve with the resamples' mean and spread.
    """
    if not carries_ends(layout):
        return 1.0
    share = (int(np.count_nonzero(samples >= 0)) + 1) / (len(samples) + 1)
    finite = samples[np.isfinite(samples)]
    if share * (len(samples) + 1) <= 1 and len(finite) == len(samples):
        spread = float(np.std(samples))
        share = min(share, distributions.normal(value / spread)) if spread > 0 else share
    return distributions.student(layout.freedom, distributions.normal_quantile(share) / math.sqrt(layout.underestimate))


POWER = 0.8


def units_to_decide(interval: Interval, units: int, boundary: float = 0.0, alpha: float = 1 - LEVEL) -> int | None:
    """How many units would decide on which side of the boundary the figure lies, with probability 80 %, if it is what
    it is here. None where that is not known: no interval, or a value at the boundary (more than 1000 times as many).

    n (h / d)² ((z + z₀.₈) / z₀.₉₇₅)², with h the distance from the value to the interval's end on the boundary's side,
    d that to the boundary, and z the quantile 1 − alpha / 2 of the level at which it is to be decided. At least n + 1.
    Example: 20 % [−10, 50] over 8 pairs: 8 · 1.5² · 2.04 = 37 pairs.
    """
    factor = growth_to_decide(interval, boundary, alpha)
    return None if factor is None else max(units + 1, math.ceil(units * factor))


def growth_to_decide(interval: Interval, boundary: float = 0.0, alpha: float = 1 - LEVEL) -> float | None:
    """So many times as many units, as `units_to_decide`; below 1 where fewer would do."""
    distance = abs(interval.value - boundary)
    if not (math.isfinite(interval.low) and math.isfinite(interval.high)) or distance == 0:
        return None
    z = distributions.normal_quantile((1 + LEVEL) / 2)
    wanted = distributions.normal_quantile(1 - alpha / 2) + distributions.normal_quantile(POWER)
    arm = interval.value - interval.low if boundary < interval.value else interval.high - interval.value
    factor = (arm / distance) ** 2 * (wanted / z) ** 2
    return None if factor > 1000 else factor


# --- the bootstrap over runs that have nothing in common --------------------------------------------------------------


@dataclass(frozen=True)
class quantile_of:  # noqa: N801 - a statistic, beside `mean`
    """The nearest-rank quantile as a statistic."""

    q: float

    def __call__(self, values: Sequence[float]) -> float:
        return nearest_rank(values, self.q)


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


Statistic = Callable[[Sequence[float]], float]


def _statistics(groups: Groups, statistic: Statistic, layout: Layout) -> Reals:
    """The statistic of all values under each row of weights."""
    if isinstance(statistic, quantile_of):
        return quantile_bounds(Sample.of(groups, layout), statistic.q)[0]
    if statistic is mean:
        sums, counts = (np.array([float(of(group)) for group in groups]) for of in (math.fsum, len))
        means: Reals = weighted_sums(layout, sums) / weighted_sums(layout, counts)
        return means
    return np.array([statistic(_pool(groups, row)) for row in weights(layout)])


def _pool(groups: Groups, times: Weights) -> list[float]:
    return [value for group, many in zip(groups, times, strict=True) for _ in range(many) for value in group]


def bootstrap(groups: Groups, statistic: Statistic, layout: Layout | None = None) -> Interval | None:
    """The statistic over all runs' values and its interval; None where there is no value at all. Without a layout the
    runs have nothing in common, and those without a value are left out."""
    if layout is None:
        groups = [group for group in groups if group]
        layout = Layout.of_independent(len(groups))
    if not any(groups):
        return None
    bootstrapped = interval(_statistics(groups, statistic, layout), layout)
    if bootstrapped is None or not isinstance(statistic, quantile_of):
        return bootstrapped
    return bootstrapped if carries(Sample.of(groups, layout), statistic.q) else bootstrapped.without_ends()


def paired(
    ours: Groups,
    theirs: Groups,
    statistic: Statistic,
    compare: Callable[[float, float], float],
    layout: Layout | None = None,
) -> Interval | None:
    """compare(statistic(ours), statistic(theirs)) and its interval; run k of both has the same links. Without a layout
    the runs have nothing in common, and those without a value on either side are left out."""
    both = [(a, b) for a, b in zip(ours, theirs, strict=True) if layout or (a and b)]
    if not both:
        return None
    layout = layout or Layout.of_independent(len(both))
    first, second = (_statistics([pair[side] for pair in both], statistic, layout) for side in (0, 1))
    return interval(np.array([compare(a, b) for a, b in zip(first, second, strict=True)]), layout)


def improvement(ours: float, theirs: float) -> float:
    """By how much ours is below theirs, in percent of theirs: the paper's "improvement"."""
    return 100 * (1 - ours / theirs) if theirs else 0.0


def bars(intervals: Sequence[Interval | None]) -> dict[str, Any]:
    """Plotly's error bars of values that may be missing."""

    def side(of: Callable[[Interval], float]) -> list[float | None]:
        lengths = [None if one is None else of(one) for one in intervals]
        return [length if length is not None and math.isfinite(length) else None for length in lengths]

    return {
        "type": "data",
        "symmetric": False,
        "array": side(lambda one: one.high - one.value),
        "arrayminus": side(lambda one: one.value - one.low),
        "thickness": 1.2,
        "width": 4,
    }
