"""The steps of a series of figures: Pettitt's test for a change point, repeated on either side of each one.

A. N. Pettitt, A Non-Parametric Approach to the Change-Point Problem, Applied Statistics 28 (1979): with the ranks r of
n values,

    U(t) = 2 (r(1) + ... + r(t)) − t (n + 1),    K = max |U(t)|

is large if the values before and after index t differ. It does not assume a distribution. p is the share of random
orders of the same values with a K as large, so it is valid for few values and for ties. K decides whether there is a
step. The step is placed where the values on either side are nearest to their median, because the largest |U| lies too
near to the middle if the sides are of unequal length.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np
import numpy.typing as npt

from railyard.stats.statistics import doubled_ranks

ALPHA = 0.01  # of each test
ORDERS = 4999
SHORTEST = 3  # values on either side of a step


@dataclass(frozen=True)
class Step:
    """A change of the level before the value with this index."""

    index: int
    before: float  # medians of the values up to the neighbouring steps
    after: float
    p: float

    @property
    def ratio(self) -> float:
        """The relative change; infinite from zero."""
        return self.after / self.before - 1 if self.before else float("inf")


def _cumulated(ranks: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """U(t) for every index at which a step may be, along the last axis."""
    count = ranks.shape[-1]
    places = np.arange(1, count + 1)
    sums: npt.NDArray[np.int64] = (np.cumsum(ranks, axis=-1) - places * (count + 1))[..., SHORTEST - 1 : -SHORTEST]
    return sums


def change_point(values: Sequence[float]) -> tuple[int, float] | None:
    """The index of the first value after the most likely step, and p; None for fewer than 2 SHORTEST values, or for
    equal values."""
    if len(values) < 2 * SHORTEST or len(set(values)) == 1:
        return None
    ranks = np.array(doubled_ranks(values), dtype=np.int64)
    own = np.abs(_cumulated(ranks))
    most = int(own.max())
    drawn = np.random.default_rng(1).permuted(np.tile(ranks, (ORDERS, 1)), axis=1)
    reached = int((np.abs(_cumulated(drawn)).max(axis=1) >= most).sum())
    place = min(range(SHORTEST, len(values) - SHORTEST + 1), key=lambda k: _spread(values[:k]) + _spread(values[k:]))
    return place, (reached + 1) / (ORDERS + 1)


def _spread(values: Sequence[float]) -> float:
    middle = median(values)
    return sum(abs(value - middle) for value in values)


def _places(values: Sequence[float], first: int, alpha: float) -> list[tuple[int, float]]:
    step = change_point(values)
    if step is None or step[1] > alpha:
        return []
    place, p = step
    left, right = _places(values[:place], first, alpha), _places(values[place:], first + place, alpha)
    return [*left, (first + place, p), *right]


def steps(values: Sequence[float], alpha: float = ALPHA) -> list[Step]:
    """All steps, in order."""
    places = _places(values, 0, alpha)
    ends = [0, *(place for place, _ in places), len(values)]
    levels = [median(values[begin:end]) for begin, end in pairwise(ends)]
    return [Step(place, levels[k], levels[k + 1], p) for k, (place, p) in enumerate(places)]
