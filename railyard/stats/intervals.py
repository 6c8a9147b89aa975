"""Confidence intervals, and their computation from resamples.

docs/reference/statistics.md states the rules. The module `bootstrap` draws the resamples.

    interval    expanded percentile interval of the bootstrap (Hesterberg 2015): its tails are those of Student's t with
                n − 1 degrees of freedom, so that few units give a wide interval; below FEWEST units it has no ends
    less        the difference of two figures (MOVER, Zou 2007)
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from railyard.stats import distributions
from railyard.stats.bootstrap import FEWEST, RESAMPLES, SEED, Layout, Reals
from railyard.stats.statistics import nearest_rank_of
from railyard.stats.wording import directed, number, one_way, percentage

LEVEL = 0.95
METHOD = (
    f"{LEVEL * 100:.0f} % bootstrap over runs, percentiles widened for few runs (Hesterberg 2015), {RESAMPLES} "
    f"resamples, seed {SEED}"
)
TOO_SMALL = "n too small"
LEAST_MOVE = 0.02
"""A quantile is printed as a bound if censored values can move it by more than this part of it."""


def moves(value: float, end: float) -> bool:
    """Whether a quantile that censored values can move to `end` is a bound."""
    return bool(abs(end - value) > LEAST_MOVE * abs(value))


def sign_of_bound(at_least: bool, at_most: bool) -> str:
    """What stands before a value that is a lower or an upper bound."""
    return "≥ " if at_least else "≤ " if at_most else ""


@dataclass(frozen=True)
class Interval:
    """A figure and its interval. An infinite end is unknown."""

    value: float
    low: float
    high: float
    at_least: bool = False
    """The value is a lower bound: it was computed from censored values."""
    carried: bool = True
    """False for a quantile that a sample of this size does not carry, even if its values are independent."""
    at_most: bool = False
    """The value is an upper bound."""

    @classmethod
    def alone(cls, value: float) -> "Interval":
        """A figure whose interval is unknown."""
        return cls(value, -math.inf, math.inf)

    @property
    def is_unknown(self) -> bool:
        """Whether nothing is known of the value: it is the difference of two lower bounds."""
        return self.at_least and self.at_most

    @property
    def bound(self) -> str:
        return sign_of_bound(self.at_least, self.at_most)

    @property
    def known(self) -> bool:
        """Whether at least one end is known."""
        return math.isfinite(self.low) or math.isfinite(self.high)

    def mapped(self, of: Callable[[float], float]) -> "Interval":
        """The interval in another unit. `of` must be increasing. Unknown ends stay unknown."""
        low, high = (of(end) if math.isfinite(end) else end for end in (self.low, self.high))
        return replace(self, value=of(self.value), low=low, high=high)

    def stretched(self, times: float) -> "Interval":
        """The interval with `times` the distance from the value to each end."""
        low, high = (self.value + times * (end - self.value) for end in (self.low, self.high))
        return replace(self, low=low, high=high)

    def without_ends(self) -> "Interval":
        """The figure alone: its sample is too small for an interval."""
        return replace(self, low=-math.inf, high=math.inf)

    def turned(self) -> "Interval":
        """The interval of −value."""
        value, low, high = (-one + 0.0 for one in (self.value, self.high, self.low))
        return replace(self, value=value, low=low, high=high, at_least=self.at_most, at_most=self.at_least)

    def text(self, form: str = ".2f") -> str:
        return f"{self.bound}{number(self.value, form)} [{self.ends(lambda end: number(end, form))}]"

    def ends(self, said: Callable[[float], str], between: str = ", ") -> str:
        """Both ends as text, "…" for an unknown one."""
        if not self.known:
            return TOO_SMALL
        return between.join(said(end) if math.isfinite(end) else "…" for end in (self.low, self.high))

    def words(self, more: str, less: str, unit: str = " %", digits: int = 1) -> str:
        """A difference as text, with `more` or `less` for its sign: "16.5 % faster [9.2, 23.0]", "1.6 % slower [5.4
        slower to 2.4 faster]"."""
        said = directed(self.value, more, less, unit, digits)
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            return f"{said} [{self.ends(lambda end: directed(end, more, less, '', digits), ' to ')}]"
        if one_way((self.value, self.low, self.high), digits):
            low, high = sorted((abs(self.low), abs(self.high)))
            return f"{said} [{percentage(low, digits)}, {percentage(high, digits)}]"
        low_said, high_said = (directed(end, more, less, "", digits) for end in (self.low, self.high))
        return f"{said} [{low_said} to {high_said}]"


def less(first: Interval, second: Interval, correlation: float) -> Interval:
    """first − second, of two figures whose estimates have this correlation (MOVER, Zou 2007)."""

    def distance(one: float, other: float) -> float:
        return math.sqrt(one * one + other * other - 2 * correlation * one * other)

    value = first.value - second.value
    return Interval(
        value,
        value - distance(first.value - first.low, second.high - second.value),
        value + distance(first.high - first.value, second.value - second.low),
    )


def exclusive_correlation(one: Reals, other: Reals, count: float) -> float:
    """Correlation of two sums over the same `count` observations, each of which adds to one of them at most."""
    spreads = [float(part @ part) - float(part.sum()) ** 2 / count for part in (one, other)]
    if min(spreads) <= 0:
        return 0.0
    return max(-1.0, -float(one.sum() * other.sum()) / count / math.sqrt(spreads[0] * spreads[1]))


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


# --- from resamples to an interval ------------------------------------------------------------------------------------


def _tail(layout: Layout, level: float) -> float:
    """The share of resamples beyond each end. With few units it is less than (1 − level) / 2 (Hesterberg 2015)."""
    wide = math.sqrt(layout.underestimate) * distributions.student_quantile(layout.freedom, (1 + level) / 2)
    return distributions.normal(-wide)


def carries_ends(layout: Layout) -> bool:
    return layout.units >= FEWEST and layout.freedom >= FEWEST - 1


def ends(lows: Reals, highs: Reals, layout: Layout, level: float) -> tuple[float, float]:
    """The ends of the interval from the resamples of a figure's lower and upper bound."""
    if not carries_ends(layout):
        return -math.inf, math.inf
    tail = _tail(layout, level)
    return nearest_rank_of(lows[~np.isnan(lows)], tail), nearest_rank_of(highs[~np.isnan(highs)], 1 - tail)


def interval(samples: Reals, layout: Layout, level: float = LEVEL) -> Interval | None:
    """The interval of a figure from its values under each row of `weights`. None if it has no value."""
    if not math.isfinite(samples[0]):
        return None
    drawn = samples[1:][np.isfinite(samples[1:])]
    return Interval(float(samples[0]), *ends(drawn, drawn, layout, level)) if len(drawn) else None
