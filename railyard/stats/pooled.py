"""Intervals of statistics of the pooled values of many runs, and of their comparison between runs with the same links.

Without a layout the runs are independent: each is a unit.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from railyard.stats.bootstrap import Groups, Layout, Reals, Weights, weighted_sums, weights
from railyard.stats.intervals import Interval, interval
from railyard.stats.quantiles import Sample, carries, quantile_bounds
from railyard.stats.statistics import nearest_rank

Statistic = Callable[[Sequence[float]], float]


@dataclass(frozen=True)
class quantile_of:  # noqa: N801 - a statistic, beside `mean`
    """The statistic "nearest-rank quantile"."""

    q: float

    def __call__(self, values: Sequence[float]) -> float:
        return nearest_rank(values, self.q)


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


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
    """The statistic over all runs' values and its interval; None if there is no value. Without a layout the runs are
    independent, and those without a value are left out."""
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
    the runs are independent, and those without a value on either side are left out."""
    both = [(a, b) for a, b in zip(ours, theirs, strict=True) if layout or (a and b)]
    if not both:
        return None
    layout = layout or Layout.of_independent(len(both))
    first, second = (_statistics([pair[side] for pair in both], statistic, layout) for side in (0, 1))
    return interval(np.array([compare(a, b) for a, b in zip(first, second, strict=True)]), layout)


def improvement(ours: float, theirs: float) -> float:
    """The paper's "improvement": how much lower ours is than theirs, in percent of theirs."""
    return 100 * (1 - ours / theirs) if theirs else 0.0
