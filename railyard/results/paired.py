"""Figures of runs that come in pairs: two versions of the programs (the gate), or two schemes of one campaign.

Both of a pair see the same traces from the same start. Under the null hypothesis, that it makes no difference which one
is which, the sign of each difference is a coin toss: the exact signed-rank test of railyard/stats/statistics.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from railyard.results.aggregate import quantile
from railyard.results.records import Run
from railyard.stats import statistics

TAIL = 1.5  # a play is in the tail where its longest request takes so many times as long as in its pair
STALL_S = 0.1


@dataclass(frozen=True)
class Metric:
    """One figure of a run; more of it is worse. Infinite where the thing never happened within the run."""

    name: str
    title: str
    of: Callable[[Run], float]
    relative: bool = True  # the floor is a share of the baseline, else in the metric's own unit
    counted: bool = False
    """Yes or no, 1 or 0: of many runs the share is told. The signed-rank test is then McNemar's exact test."""

    def deltas(self, before: Sequence[float], after: Sequence[float]) -> list[float]:
        """What is tested: of times the logarithm of after / before, of rates after − before; pair by pair."""
        return (statistics.log_ratios if self.relative else statistics.differences)(before, after)


def _rct(q: float) -> Callable[[Run], float]:
    def of(run: Run) -> float:
        found = quantile(run.chunks, q)
        return math.inf if found is None else found.value

    return of


def _first_frame(run: Run) -> float:
    return math.inf if run.first_frame_s is None else run.first_frame_s


def _rebuffer_rate(run: Run) -> float:
    return run.rebuffer_counted_s / run.play_time_s if run.play_time_s > 0 else math.inf


def _longest(run: Run) -> float:
    return max((chunk.rct_s for chunk in run.chunks), default=math.inf)


METRICS = (
    Metric("rct_median", "RCT median", _rct(0.5), relative=True),
    Metric("rct_p99", "RCT p99", _rct(0.99), relative=True),
    Metric("first_frame", "first frame", _first_frame, relative=True),
    Metric("rebuffer_rate", "rebuffer rate", _rebuffer_rate, relative=False),
    Metric("redundancy", "redundancy", lambda run: run.redundancy or 0.0, relative=False),
    Metric("failed", "failed", lambda run: float(run.failed), relative=False, counted=True),
    Metric("stalled", "stalled", lambda run: float(run.rebuffer_counted_s > STALL_S), relative=False, counted=True),
    Metric("tail", "tail", _longest, relative=False, counted=True),
)


def of_pair(metric: Metric, before: Run, after: Run) -> tuple[float, float]:
    """The figure of both. Whether a play is in the tail only its pair says: 1 for the one whose longest request takes
    TAIL times as long as the other's."""
    first, second = metric.of(before), metric.of(after)
    if metric.name != "tail":
        return first, second
    return float(first >= TAIL * second and first > second), float(second >= TAIL * first and second > first)
