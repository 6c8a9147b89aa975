"""The nearest-rank quantile, and the gate's paired test with its correction for multiple comparisons.

Two versions run the same jobs, so their figures come in pairs. Under the null hypothesis, that the version has no
effect, both signs of each difference are equally likely. The Wilcoxon signed-rank test ranks the differences by size
and sums the ranks of the positive ones. Its distribution over all 2^n sign patterns is computed exactly, with ties, so
the test is valid for few pairs too.
"""

import math
from collections.abc import Sequence
from itertools import combinations_with_replacement
from statistics import median

import numpy as np
import numpy.typing as npt


def nearest_rank(values: Sequence[float], q: float) -> float:
    """The smallest value v such that a share q or more of the values is ≤ v: the rule of all quantiles here."""
    return sorted(values)[place(len(values), q)]


def nearest_rank_of(values: npt.NDArray[np.float64], q: float) -> float:
    """nearest_rank() of an array."""
    rank = place(len(values), q)
    return float(np.partition(values, rank)[rank])


def place(count: int, q: float) -> int:
    """The index of the nearest-rank quantile among `count` ascending values."""
    return max(0, math.ceil(q * count - 1e-9) - 1)


def ks_distance(one: npt.ArrayLike, other: npt.ArrayLike) -> float:
    """Kolmogorov and Smirnov's distance: the largest vertical gap between two empirical distributions, 0 to 1. An
    infinite value is what never happened. NaN if one of them has no values."""
    left, right = np.sort(one), np.sort(other)
    if not len(left) or not len(right):
        return math.nan
    points = np.concatenate([left, right])
    gaps = np.searchsorted(left, points, "right") / len(left) - np.searchsorted(right, points, "right") / len(right)
    return float(np.abs(gaps).max())


def differences(before: Sequence[float], after: Sequence[float]) -> list[float]:
    """after − before, pair by pair; 0 for two infinite values, which stand for "never happened" in both."""
    return [0.0 if b == a else a - b for b, a in zip(before, after, strict=True)]


def log_ratios(before: Sequence[float], after: Sequence[float]) -> list[float]:
    """log(after / before), pair by pair, of figures that are not negative."""
    return differences([_log(value) for value in before], [_log(value) for value in after])


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


def doubled_ranks(values: Sequence[float]) -> list[int]:
    """Twice the rank of each value, as integers so that sums are exact. Ties have the mean of their ranks."""
    _, places, counts = np.unique(np.array(values, dtype=np.float64), return_inverse=True, return_counts=True)
    doubled: list[int] = (2 * np.cumsum(counts) - counts + 1)[places].tolist()
    return doubled


def signed_rank_p(deltas: Sequence[float]) -> float:
    """One-sided p of the exact Wilcoxon signed-rank test against the differences being larger than zero.

    Zeros are left out, as Wilcoxon did. 1 if all are zero.
    """
    moved = [delta for delta in deltas if delta != 0]
    ranks = doubled_ranks([abs(delta) for delta in moved])
    observed = sum(rank for rank, delta in zip(ranks, moved, strict=True) if delta > 0)
    return min(1.0, float(_rank_sum_shares(ranks)[observed:].sum()))


def _rank_sum_shares(ranks: Sequence[int]) -> npt.NDArray[np.float64]:
    """At index s the share of all sign patterns whose positive ranks add up to s."""
    share = np.zeros(sum(ranks) + 1)
    share[0] = 1.0
    reach = 0
    for rank in ranks:
        share[: reach + rank + 1] = 0.5 * (
            share[: reach + rank + 1] + np.concatenate([np.zeros(rank), share[: reach + 1]])
        )
        reach += rank
    return share


def pseudo_median(deltas: Sequence[float]) -> float:
    """Hodges and Lehmann's estimate of the shift for the signed-rank test: the median of all pair means."""
    values = _pair_means(deltas)
    return median(values) if values else 0.0


def pseudo_median_ends(deltas: Sequence[float], level: float) -> tuple[float, float]:
    """The interval of the pseudo-median for the exact test (Tukey 1949): all shifts that it does not reject.

    Its ends are the c-th smallest and the c-th largest pair mean, where c is the largest number with P(rank sum < c) ≤
    (1 − level) / 2. Infinite with too few pairs (fewer than six at 95 %).
    """
    values = _pair_means(deltas)
    below = np.cumsum(_rank_sum_shares(range(1, len(deltas) + 1)))
    c = int(np.searchsorted(below, (1 - level) / 2, side="right"))
    if not 0 < c <= len(values):
        return -math.inf, math.inf
    return values[c - 1], values[len(values) - c]


def _pair_means(deltas: Sequence[float]) -> list[float]:
    pairs = combinations_with_replacement(deltas, 2)
    return sorted((one + other) / 2 for one, other in pairs if not math.isnan(one + other))


def middle(values: Sequence[float]) -> float:
    """The median; 0 if it is the mean of two infinite values of opposite signs."""
    mean = median(values)
    return 0.0 if math.isnan(mean) else mean


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p values (Holm 1979): rejecting those below alpha has a family-wise error rate of at most alpha."""
    values = np.array(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    values[order] = np.maximum.accumulate(np.minimum(1.0, values[order] * np.arange(len(values), 0, -1)))
    adjusted: list[float] = values.tolist()
    return adjusted
