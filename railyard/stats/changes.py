"""The difference of a figure between two schemes over the same plays: interval, p values, equivalence.

docs/reference/statistics.md states the rules.

    difference  percentiles of the difference under the same resamples of both schemes. A quantile that the samples do
                not carry has a difference too
    censored    the ends are valid for any values that the censored ones may have had
    p value     the level at which one end of the interval is zero
    alike       two one-sided tests with a margin (Schuirmann 1987)
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from railyard.stats import distributions
from railyard.stats.bootstrap import Layout, Reals
from railyard.stats.intervals import LEVEL, Interval, carries_ends, ends, moves


@dataclass(frozen=True)
class Change:
    """The difference of a figure between two schemes over the same plays: relative, or in the figure's unit."""

    interval: Interval
    p_less: float
    """One-sided p value of the hypothesis that the figure is not less."""
    p_more: float
    inner: Interval
    """The interval at the level 1 − 2 · 5 %. "No worse than a margin" holds if it lies below the margin (TOST)."""
    units: int
    unit_words: str

    def without_ends(self) -> "Change":
        """The difference without an interval: nothing is established."""
        wide, inner = self.interval.without_ends(), self.inner.without_ends()
        return replace(self, interval=wide, inner=inner, p_less=1.0, p_more=1.0)

    def no_worse(self, margin: float) -> bool | None:
        """Whether the difference is below the margin, at 5 %; None if not decided."""
        if self.inner.high < margin:
            return True
        return False if self.inner.low > margin else None

    def alike(self, margin: float) -> bool | None:
        """Equivalence by two one-sided tests (Schuirmann 1987): within ± margin, at 5 %."""
        if -margin < self.inner.low and self.inner.high < margin:
            return True
        return False if self.inner.low > margin or self.inner.high < -margin else None


def relative(ours: Reals, theirs: Reals) -> Reals:
    """ours / theirs − 1; nan if both are infinite or both zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        differences: Reals = ours / theirs - 1
    return differences


def absolute(ours: Reals, theirs: Reals) -> Reals:
    with np.errstate(invalid="ignore"):
        differences: Reals = ours - theirs
    return differences


Bounds = tuple[Reals, Reals]
"""A figure's lower and upper bound under each row of weights. They differ if values are censored."""


def change(
    ours: Bounds,
    theirs: Bounds,
    layout: Layout,
    how: Callable[[Reals, Reals], Reals] = relative,
    *,
    of_upper: bool = False,
) -> Change | None:
    """The change between figures over the same plays; None if it has no value. `how` increases with `ours` and
    decreases with `theirs`. `of_upper`: the figures are their upper bounds, else their lower ones.

    With censored values the lower end uses the lower bound of ours and the upper bound of theirs, and the upper end
    the opposite, so that the result holds for any censored values. Between two censored figures the value is unknown.
    """
    value = float(how(ours[of_upper], theirs[of_upper])[0])
    if not math.isfinite(value):
        return None
    lows, highs = how(ours[0], theirs[1]), how(ours[1], theirs[0])
    lows, highs = np.where(np.isnan(lows), -math.inf, lows), np.where(np.isnan(highs), math.inf, highs)
    ours_moves, theirs_moves = (moves(side[of_upper][0], side[not of_upper][0]) for side in (ours, theirs))
    at_least, at_most = (theirs_moves, ours_moves) if of_upper else (ours_moves, theirs_moves)
    wide, inner = (
        Interval(value, *ends(lows[1:], highs[1:], layout, level), at_least=at_least, at_most=at_most)
        for level in (LEVEL, 1 - 2 * (1 - LEVEL))
    )
    p_less, p_more = _p_value(highs, layout), _p_value(-lows, layout)
    return Change(wide, p_less, p_more, inner, layout.units, layout.unit_words)


def _p_value(bounds: Reals, layout: Layout) -> float:
    """One-sided p of "not below zero", from an upper bound under each row of weights: the level at which the interval's
    upper end would be zero.

    If no resample reaches zero, the share comes from a normal distribution with the sample's value and the resamples'
    deviation.
    """
    if not carries_ends(layout):
        return 1.0
    value, samples = float(bounds[0]), bounds[1:]
    share = (int(np.count_nonzero(samples >= 0)) + 1) / (len(samples) + 1)
    finite = samples[np.isfinite(samples)]
    if share * (len(samples) + 1) <= 1 and len(finite) == len(samples):
        spread = float(np.std(samples))
        share = min(share, distributions.normal(value / spread)) if spread > 0 else share
    return distributions.student(layout.freedom, distributions.normal_quantile(share) / math.sqrt(layout.underestimate))
