"""Quantiles of the values of many plays, with intervals, and whether a sample carries them.

docs/reference/statistics.md states the rules.

    quantile    its interval lies between two order statistics (binomial, with the effective number of values: Woodruff
                1952, Korn and Graubard 1998), with the units on the quantile's rarer side − 1 degrees of freedom. A
                sample carries a quantile if both order statistics lie within it and it has windows enough
    bounds      the quantile in each resample, for differences
    censored    a value that is a lower bound counts as that bound for the lower end, and as infinite for the upper end;
                one that is an upper bound the other way round
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from railyard.stats import distributions
from railyard.stats.bootstrap import AT_ONCE, Groups, Layout, Reals, Weights, weighted_sums, weights
from railyard.stats.intervals import LEVEL, Interval, carries_ends, moves
from railyard.stats.statistics import place

MOST_OF_WINDOW = 10  # values of one window of trace that count as independent, at most
LOOK_UP = 40  # time of reading a weight / time of a product in a matrix: sets the size of blocks, not the figures


@dataclass(frozen=True)
class Sample:
    """The values of many plays, ascending."""

    values: Reals
    """The values; those that are not exact are bounds."""
    lower: Reals
    """`values` with -infinity in place of upper bounds; the same object if there are none."""
    upper: Reals
    """`values` with infinity in place of lower bounds; the same object if there are none."""
    owner: npt.NDArray[np.integer[Any]]
    """The play of each value."""
    layout: Layout

    @classmethod
    def of(
        cls,
        groups: Groups,
        layout: Layout,
        exact: Sequence[Sequence[bool]] | None = None,
        *,
        at_most: bool = False,
    ) -> "Sample":
        """`groups`: the values of each play. `exact`: whether each value is exact; None: all are. `at_most`: the others
        are upper bounds, else lower bounds."""
        values = np.array([value for group in groups for value in group], dtype=np.float64)
        owner = np.repeat(np.arange(len(groups)), [len(group) for group in groups]).astype(np.int64)
        if exact is None:
            return cls.of_values(values, owner, layout)
        known = np.array([one for group in exact for one in group], dtype=bool)
        order = np.lexsort((known if at_most else ~known, values))
        values, owner = values[order], owner[order]
        if known.all():
            return cls(values, values, values, owner, layout)
        ends = np.where(known[order], values, -math.inf if at_most else math.inf)
        return cls(values, ends, values, owner, layout) if at_most else cls(values, values, ends, owner, layout)

    @classmethod
    def of_values(cls, values: Reals, owner: npt.NDArray[np.integer[Any]], layout: Layout) -> "Sample":
        """A sample of exact values in any order; `owner`: the play of each."""
        order = np.argsort(values, kind="stable")
        values = values[order]
        return cls(values, values, values, owner[order], layout)

    @property
    def count(self) -> int:
        return len(self.values)


def _weighted_quantiles(values: Reals, owner: npt.NDArray[np.integer[Any]], drawn: Weights, q: float) -> Reals:
    """The nearest-rank quantile of ascending values under each row of weights; nan if nothing was drawn.

    The rank is searched among blocks of neighbouring values, whose weights are a product of two matrices, and then
    within its block. einsum computes the product: integer sums, and no threads.
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
    """The lower and the upper bound of the quantile under each row of weights."""
    drawn = weights(sample.layout)

    def of(ends: Reals) -> Reals:
        order = np.argsort(ends, kind="stable")
        return _weighted_quantiles(ends[order], sample.owner[order], drawn, q)

    quantiles = _weighted_quantiles(sample.values, sample.owner, drawn, q)
    lows, highs = (quantiles if ends is sample.values else of(ends) for ends in (sample.lower, sample.upper))
    return lows, highs


def effective_count(sample: Sample, value: float) -> float:
    """The number of independent values that estimate the share of values ≤ `value` as precisely; at most n.

    n_eff = p (1 − p) / var(p), with var(p) from the bootstrap. If several values are equal to `value`, the smaller one
    of the results with p as the share of values ≤ `value` and of values < `value`.
    """
    values = sample.values
    count = _effective_count(sample, values <= value)
    return count if np.count_nonzero(values == value) < 2 else min(count, _effective_count(sample, values < value))


def _effective_count(sample: Sample, counted: npt.NDArray[np.bool_]) -> float:
    plays = sample.layout.plays
    below = np.bincount(sample.owner, weights=counted, minlength=plays).astype(np.float64)
    every = np.bincount(sample.owner, minlength=plays).astype(np.float64)
    below_drawn, every_drawn = weighted_sums(sample.layout, np.column_stack((below, every))).T
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = below_drawn / every_drawn
    share, count = float(shares[0]), float(every.sum())
    variance = float(np.nanvar(shares[1:])) * sample.layout.underestimate
    return count if variance <= 0 else min(count, share * (1 - share) / variance)


def _freedom(sample: Sample, value: float) -> int:
    """Degrees of freedom of the estimated share of values beyond `value`: the units with a value there − 1, on the
    rarer side. A tail that comes from two units is known no better than two units allow. At the greatest value the
    units that have it count. With one value per unit the binomial distribution applies, with all of the layout's
    freedom."""
    values, layout = sample.values, sample.layout
    if len(values) <= layout.units:
        return layout.freedom
    unit = layout.unit_of()[sample.owner]
    above = values > value if values[-1] > value else values == value
    return min(layout.freedom, *(len(np.unique(unit[side])) - 1 for side in (above, values <= value)))


def carrying_count(sample: Sample, value: float, level: float = LEVEL) -> float:
    """The effective number of values for the interval of the quantile at `value`, reduced if units are few."""
    freedom = _freedom(sample, value)
    return (
        effective_count(sample, value) / distributions.widening(freedom, (1 + level) / 2) ** 2 if freedom > 0 else 0.0
    )


def growth_to_carry(sample: Sample, q: float) -> float:
    """The factor by which windows of trace must grow to carry the q-quantile, if the effective number of values and the
    units on the rarer side grow as they do. At least 1, and rounded up to 2 %."""
    value = float(sample.values[place(sample.count, q)])
    units, effective, wanted = _freedom(sample, value) + 1, effective_count(sample, value), values_for(q)
    factor = max(1.0, wanted / effective)

    def is_carried(freedom: int) -> bool:
        return effective * factor >= wanted * distributions.widening(freedom, (1 + LEVEL) / 2) ** 2

    while (freedom := math.floor(units * factor) - 1) < 1 or not is_carried(freedom):
        factor *= 1.02
    return factor


def quantile(sample: Sample, q: float, level: float = LEVEL) -> Interval | None:
    """The nearest-rank quantile and its interval by Woodruff's method; None without values.

    The interval has no ends (`known` is false) if one of its order statistics lies outside of the sample, or if there
    are fewer windows of trace than values_for(q) / MOST_OF_WINDOW: then the sample does not carry the quantile.
    Example: p99 needs 368 independent values, because 0.99^n ≤ 0.025, and 37 windows.
    """
    count, layout = sample.count, sample.layout
    if count == 0:
        return None
    lower, upper = (ends if ends is sample.values else np.sort(ends) for ends in (sample.lower, sample.upper))
    rank = place(count, q)
    value = float(sample.values[rank])
    alone = replace(Interval.alone(value), at_least=moves(value, upper[rank]), at_most=moves(value, lower[rank]))
    if not carries_ends(layout):
        return replace(alone, carried=order_shares(q, count, level)[1] <= 1)
    if layout.windows < windows_for(q):
        return replace(alone, carried=False)
    low_share, high_share = order_shares(q, carrying_count(sample, value, level), level)
    low_rank, high_rank = math.floor(low_share * count + 1e-9), math.ceil(high_share * count - 1e-9)
    if low_rank < 1 or high_rank > count:
        return replace(alone, carried=False)
    return replace(alone, low=float(lower[low_rank - 1]), high=float(upper[high_rank - 1]))


def values_for(q: float) -> int:
    """The least number of independent values that carry a quantile: qⁿ ≤ 2.5 %."""
    return math.ceil(math.log((1 - LEVEL) / 2) / math.log(max(q, 1 - q)) - 1e-9)


def windows_for(q: float) -> int:
    """The least number of windows of trace that carry a quantile. The sample's own tail cannot tell: a sample without
    an outage underestimates the error."""
    return math.ceil(values_for(q) / MOST_OF_WINDOW)


def order_shares(q: float, count: float, level: float = LEVEL) -> tuple[float, float]:
    """The order statistics that enclose the q-quantile of `count` independent values, as shares of their number.

    With B binomial (count, q), the u-th value is not above the quantile with probability P(B ≥ u), and the l-th is not
    below it with P(B ≤ l − 1). Both are at most (1 − level) / 2. A share below 0 or above 1: there is no such value.
    """
    tail = (1 - level) / 2
    if q**count > tail or (1 - q) ** count > tail:
        return (-1.0, 2.0)

    low, high = (distributions.binomial_quantile(share, count, q) + 1 for share in (tail, 1 - tail))
    return low / count, high / count


def carries(sample: Sample, q: float) -> bool:
    interval_of_q = quantile(sample, q)
    return interval_of_q is not None and interval_of_q.known
