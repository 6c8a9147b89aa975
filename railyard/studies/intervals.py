"""Confidence intervals by the bootstrap over runs.

Requests of one run share the links' state, so they are not independent; runs are. What is resampled is therefore whole
runs (a cluster bootstrap), and a comparison of two schemes resamples their runs in pairs: same trace, same place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from railyard.base.statistics import nearest_rank

RESAMPLES = 1000
LEVEL = 0.95
SEED = 1
METHOD = f"{LEVEL * 100:.0f} % percentile bootstrap over runs, {RESAMPLES} resamples, seed {SEED}"

Groups = Sequence[Sequence[float]]
"""The values of each run."""


@dataclass(frozen=True)
class Interval:
    value: float
    low: float
    high: float

    def text(self, form: str = ".2f") -> str:
        return f"{_number(self.value, form)} [{_number(self.low, form)}, {_number(self.high, form)}]"

    def words(self, more: str, less: str, unit: str = " %", digits: int = 1) -> str:
        """A difference as one says it, positive `more`, negative `less`: "16.5 % faster [9.2, 23.0]", "1.6 % slower
        [5.4 slower to 2.4 faster]"."""
        said = _directed(self.value, more, less, unit, digits)
        if _one_way((self.value, self.low, self.high), digits):
            low, high = sorted((abs(self.low), abs(self.high)))
            return f"{said} [{percentage(low, digits)}, {percentage(high, digits)}]"
        low_said, high_said = (_directed(end, more, less, "", digits) for end in (self.low, self.high))
        return f"{said} [{low_said} to {high_said}]"


def _number(value: float, form: str) -> str:
    """A figure as text; what rounds to zero has no sign."""
    said = format(value, form)
    return said if float(said) else format(0.0, form)


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


def quantile_of(q: float) -> Callable[[Sequence[float]], float]:
    return lambda values: nearest_rank(values, q)


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _pool(groups: Groups, picks: Sequence[int]) -> list[float]:
    return [value for pick in picks for value in groups[pick]]


def _draws(count: int) -> np.ndarray:
    return np.random.default_rng(SEED).integers(0, count, size=(RESAMPLES, count))


def _interval(value: float, samples: Sequence[float]) -> Interval:
    tail = (1 - LEVEL) / 2
    return Interval(value, nearest_rank(samples, tail), nearest_rank(samples, 1 - tail))


def bootstrap(groups: Groups, statistic: Callable[[Sequence[float]], float]) -> Interval | None:
    """The statistic over all runs' values and its interval; None where there is no value at all."""
    groups = [group for group in groups if group]
    if not groups:
        return None
    draws = _draws(len(groups))
    samples = [statistic(_pool(groups, picks)) for picks in draws]
    return _interval(statistic(_pool(groups, range(len(groups)))), samples)


def paired(
    ours: Groups,
    theirs: Groups,
    statistic: Callable[[Sequence[float]], float],
    compare: Callable[[float, float], float],
) -> Interval | None:
    """compare(statistic(ours), statistic(theirs)) and its interval; run k of both has the same links."""
    both = [(a, b) for a, b in zip(ours, theirs, strict=True) if a and b]
    if not both:
        return None
    first, second = [a for a, _ in both], [b for _, b in both]

    def value(picks: Sequence[int]) -> float:
        return compare(statistic(_pool(first, picks)), statistic(_pool(second, picks)))

    return _interval(value(range(len(both))), [value(picks) for picks in _draws(len(both))])


def improvement(ours: float, theirs: float) -> float:
    """By how much ours is below theirs, in percent of theirs: the paper's "improvement"."""
    return 100 * (1 - ours / theirs) if theirs else 0.0


def bars(intervals: Sequence[Interval | None]) -> dict[str, Any]:
    """Plotly's error bars of values that may be missing."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [None if i is None else i.high - i.value for i in intervals],
        "arrayminus": [None if i is None else i.value - i.low for i in intervals],
        "thickness": 1.2,
        "width": 4,
    }
