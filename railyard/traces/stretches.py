"""Finds the stretches of a trace with the least capacity, so that a rule chooses starts."""

from dataclasses import dataclass

import numpy as np

from railyard.traces.trace import OPPORTUNITY_BITS, Trace

STEP_MS = 100


@dataclass(frozen=True)
class Stretch:
    """A stretch: its start in a trace's loop, and its mean capacity."""

    start_ms: int
    mbps: float


def worst_stretches(trace: Trace, length_ms: int, count: int, last_start_ms: int) -> list[Stretch]:
    """The `count` stretches with the fewest opportunities that do not overlap, the worst first.

    Starts are multiples of STEP_MS from 0 to last_start_ms. Of equal stretches the earliest is first. There are fewer
    if no more fit.
    """
    trace.check_bins(STEP_MS, last_start_ms)
    starts = np.arange(0, last_start_ms + 1, STEP_MS, dtype=np.int64)
    opportunities = (trace.cumulative(starts + length_ms) - trace.cumulative(starts)).astype(np.float64)
    stretches: list[Stretch] = []
    while len(stretches) < count and np.isfinite(opportunities).any():
        place = int(np.argmin(opportunities))
        start = int(starts[place])
        stretches.append(Stretch(start, float(opportunities[place]) * OPPORTUNITY_BITS / 1e3 / length_ms))
        opportunities[np.abs(starts - start) < length_ms] = np.inf
    return stretches
