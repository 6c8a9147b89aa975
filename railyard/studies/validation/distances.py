"""Distances of emulated durations from live ones, with intervals from a bootstrap over blocks of live downloads.

A group has the values that belong to one live download. The groups of all models have the same order, so a sample takes
the same downloads from each model, and differences between models are paired.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from railyard.stats.intervals import Interval
from railyard.stats.statistics import ks_distance, nearest_rank, nearest_rank_of, place

Groups = Sequence[Sequence[float]]
Indices = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]
Statistic = Callable[[Indices], float]
"""A figure over a sample of groups. `all_groups` is the original sample."""

QUANTILES = (0.25, 0.5, 0.75, 0.9)
RESAMPLES = 2_000
BLOCK = 5
LEVEL = 0.95
WITHIN = 0.25


def all_groups(count: int) -> Indices:
    return np.arange(count, dtype=np.int64)


def resamples(count: int, seed: int, number: int = RESAMPLES, block: int = BLOCK) -> list[Indices]:
    """Circular blocks of successive groups, as many groups as there are (Politis and Romano 1992)."""
    generator = np.random.default_rng(seed)
    blocks = math.ceil(count / block)
    starts = generator.integers(0, count, size=(number, blocks))
    indices = (starts[:, :, None] + np.arange(block)) % count
    return list(indices.reshape(number, -1)[:, :count].astype(np.int64))


def pooled(groups: Groups) -> Callable[[Indices], Values]:
    """All values of a sample of the groups."""
    arrays = [np.array(group, dtype=np.float64) for group in groups]
    if len({len(array) for array in arrays}) == 1:
        table = np.stack(arrays)
        return lambda sample: table[sample].ravel()
    return lambda sample: np.concatenate([arrays[index] for index in sample])


def ks_of(live: Groups, emulated: Groups) -> Statistic:
    theirs, ours = pooled(live), pooled(emulated)
    return lambda sample: ks_distance(theirs(sample), ours(sample))


def ratio_of(live: Groups, emulated: Groups, q: float) -> Statistic:
    """Emulated quantile / live quantile."""
    theirs, ours = pooled(live), pooled(emulated)

    def ratio(sample: Indices) -> float:
        there, here = theirs(sample), ours(sample)
        return nearest_rank_of(here, q) / nearest_rank_of(there, q) if len(here) and len(there) else math.nan

    return ratio


def log_error_of(live: Groups, emulated: Groups) -> Statistic:
    """Mean of |ln ratio| over the quantiles."""
    theirs, ours = pooled(live), pooled(emulated)

    def error(sample: Indices) -> float:
        there, here = np.sort(theirs(sample)), np.sort(ours(sample))
        if not len(there) or not len(here):
            return math.nan
        ratios = [here[place(len(here), q)] / there[place(len(there), q)] for q in QUANTILES]
        return sum(abs(math.log(ratio)) for ratio in ratios) / len(ratios)

    return error


def share_of(hits: Sequence[Sequence[bool]]) -> Statistic:
    """Share of the values that are true."""
    all_hits = pooled([[float(hit) for hit in group] for group in hits])

    def share(sample: Indices) -> float:
        values = all_hits(sample)
        return float(values.mean()) if len(values) else math.nan

    return share


def _logs(live: Sequence[float], predicted: Sequence[float], sample: Indices) -> list[float]:
    return [math.log(predicted[index] / live[index]) for index in sample]


def bias_of(live: Sequence[float], predicted: Sequence[float]) -> Statistic:
    """Median of ln(predicted / live)."""
    return lambda sample: nearest_rank(_logs(live, predicted, sample), 0.5)


def miss_of(live: Sequence[float], predicted: Sequence[float]) -> Statistic:
    """Median of |ln(predicted / live)|."""
    return lambda sample: nearest_rank([abs(log) for log in _logs(live, predicted, sample)], 0.5)


def within_of(live: Sequence[float], predicted: Sequence[float]) -> Statistic:
    """Share of the predictions that differ by at most a quarter of the live value."""
    return share_of([[abs(p / d - 1) <= WITHIN] for d, p in zip(live, predicted, strict=True)])


def less(ours: Statistic, theirs: Statistic) -> Statistic:
    def difference(sample: Indices) -> float:
        one, other = ours(sample), theirs(sample)
        return 0.0 if one == other else one - other  # two infinite values are equal

    return difference


def interval(statistic: Statistic, count: int, samples: Sequence[Indices], level: float = LEVEL) -> Interval:
    """The figure over all `count` groups, with a percentile interval. Samples without a value are left out."""
    drawn = np.array([statistic(sample) for sample in samples])
    drawn = drawn[~np.isnan(drawn)]
    value, tail = statistic(all_groups(count)), (1 - level) / 2
    if not len(drawn):
        return Interval.alone(value)
    return Interval(value, nearest_rank_of(drawn, tail), nearest_rank_of(drawn, 1 - tail))


@dataclass(frozen=True)
class Verdict:
    """Whether a model is nearer to the live downloads than the reference, by two measures."""

    ks: Interval  # difference of the KS distances, at the corrected level
    log_error: Interval  # difference of ln(error)

    @property
    def word(self) -> str:
        signs = {(one.low > 0) - (one.high < 0) for one in (self.ks, self.log_error)} - {0}
        return {frozenset({1}): "worse", frozenset({-1}): "better", frozenset({1, -1}): "mixed"}.get(
            frozenset(signs), "no verdict"
        )


def verdict(live: Groups, emulated: Groups, reference: Groups, samples: Sequence[Indices], compared: int) -> Verdict:
    """The verdict on a model. `compared`: the number of compared models, for Bonferroni's correction."""
    level, count = 1 - (1 - LEVEL) / max(1, compared), len(live)
    return Verdict(
        interval(less(ks_of(live, emulated), ks_of(live, reference)), count, samples, level),
        interval(less(log_error_of(live, emulated), log_error_of(live, reference)), count, samples, level),
    )
