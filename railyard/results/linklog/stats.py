"""The figures of a link log, as mm-throughput-graph and mm-delay-graph define them: docs/reference/results.md."""

import math
from dataclasses import dataclass

import numpy as np

from railyard.base.errors import UserError
from railyard.results.linklog.read import LinkLog
from railyard.traces.trace import FloatArray

MOST_MS = 6 * 3_600_000
"""The most ms between the first and the last arrival. The signal delay has a value for each ms."""


@dataclass(frozen=True)
class LinkStats:
    """The figures of a link log. NaN: there is nothing to measure."""

    name: str
    direction: str
    trace: str
    queue: str
    duration_s: float
    """From the first to the last event of the log."""
    capacity_mbps: float
    ingress_mbps: float
    throughput_mbps: float
    utilisation: float
    """Throughput divided by capacity."""
    delay_median_ms: float
    delay_p95_ms: float
    delay_max_ms: float
    """Per-packet queueing delay: from the arrival at the queue to the departure."""
    signal_delay_p95_ms: float
    opportunities: int
    arrived_packets: int
    arrived_bytes: int
    departed_packets: int
    departed_bytes: int
    dropped_packets: int
    dropped_bytes: int
    drop_share: float
    """Dropped packets divided by those that arrived."""


def ranked(sorted_values: FloatArray, share: float) -> float:
    """The value at index floor(share × count) of sorted values, as Mahimahi's tools take a percentile."""
    count = len(sorted_values)
    return float(sorted_values[min(int(share * count), count - 1)]) if count else math.nan


def signal_delay(log: LinkLog) -> tuple[FloatArray, FloatArray]:
    """The times t, each ms from the first to the last arrival of a packet that departed, and the signal delay at each:
    the least time that a message made at t needs to get through, min over arrivals a ≥ t of (a − t) + delay(a)."""
    if len(log.departure_ms) == 0:
        return np.empty(0), np.empty(0)
    arrival = np.floor(log.departure_ms - log.delay_ms).astype(np.int64)
    first, last = int(arrival.min()), int(arrival.max())
    if last - first > MOST_MS:
        raise UserError(f"{log.path}: its packets arrive over {last - first} ms, more than {MOST_MS}; cut it.")
    known, place = np.unique(arrival, return_inverse=True)
    through = np.full(len(known), np.inf)
    np.minimum.at(through, place, arrival + log.delay_ms)
    # A message may go with any packet that arrives at its time or later.
    through = np.minimum.accumulate(through[::-1])[::-1]
    times = np.arange(first, last + 1, dtype=np.float64)
    return times, np.repeat(through, np.diff(known, prepend=first - 1)) - times


def _mbps(total_bytes: int, duration_s: float) -> float:
    return total_bytes * 8 / duration_s / 1e6 if duration_s > 0 else math.nan


def link_stats(log: LinkLog) -> LinkStats:
    """All figures of one log."""
    first, last = log.span_ms
    duration_s = (last - first) / 1e3
    offered, arrived, departed = (
        int(sizes.sum()) for sizes in (log.opportunity_bytes, log.arrival_bytes, log.departure_bytes)
    )
    delays = np.sort(log.delay_ms)
    dropped, arrivals = int(log.drop_packets.sum()), len(log.arrival_ms)
    return LinkStats(
        name=log.name,
        direction=log.direction,
        trace=log.trace,
        queue=log.queue,
        duration_s=duration_s,
        capacity_mbps=_mbps(offered, duration_s),
        ingress_mbps=_mbps(arrived, duration_s),
        throughput_mbps=_mbps(departed, duration_s),
        utilisation=departed / offered if offered else math.nan,
        delay_median_ms=ranked(delays, 0.5),
        delay_p95_ms=ranked(delays, 0.95),
        delay_max_ms=float(delays[-1]) if len(delays) else math.nan,
        signal_delay_p95_ms=ranked(np.sort(signal_delay(log)[1]), 0.95),
        opportunities=len(log.opportunity_ms),
        arrived_packets=arrivals,
        arrived_bytes=arrived,
        departed_packets=len(delays),
        departed_bytes=departed,
        dropped_packets=dropped,
        dropped_bytes=int(log.drop_bytes.sum()),
        drop_share=dropped / arrivals if arrivals else math.nan,
    )
