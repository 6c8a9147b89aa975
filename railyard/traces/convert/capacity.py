"""The bytes that a link delivered over time, as packets or bins, and the opportunities that deliver the same.

Bytes count as on the emulated link: the IP packet and 4 of the TUN header. An opportunity is at the millisecond,
rounded down, in which the sum of bytes reaches the next multiple of 1504. One more closes the period and carries the
rest. So a trace delivers the measured bytes, and at most 1504 more. saturatr does the same.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from railyard.traces.trace import MAX_MS, OPPORTUNITY_BYTES, FloatArray, IntArray, TraceError

US_PER_MS = 1000
MAX_OPPORTUNITIES = 100_000_000
"""Twenty minutes at 1 Gbps, in a file of 1 GB. A larger number comes from a wrong unit."""
AT_A_TIME = 1_000_000
"""The number of opportunities in a step of the computation, which takes about ten numbers for each."""
TUN_BYTES = 4
"""The bytes that the link counts for a packet in addition to its IP length."""


@dataclass(frozen=True, eq=False)
class Delivered:
    """Cumulative bytes over time: sorted times in µs since the start, and the bytes that had arrived by then.

    Packets arrive at an instant, so the curve has steps; the bytes of a bin are spread evenly over it, so the curve is
    linear between its edges.
    """

    times_us: FloatArray
    bytes_until: FloatArray
    duration_us: float
    stepwise: bool
    note: str = ""
    """A sentence for the user about what the reader has assumed."""

    @property
    def total_bytes(self) -> float:
        return float(self.bytes_until[-1]) if len(self.bytes_until) else 0.0


def from_packets(times_us: FloatArray | IntArray, sizes: FloatArray | IntArray, duration_us: float) -> Delivered:
    """From packets in the order of their arrival: times in µs since the start, and sizes on the link.

    Packets outside of [0, duration) are left out. A packet with an earlier time than its predecessor gets that time.
    """
    times, bytes_each = np.asarray(times_us, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    inside = (times >= 0) & (times < duration_us)
    times, bytes_each = times[inside], bytes_each[inside]
    return Delivered(np.maximum.accumulate(times), np.cumsum(bytes_each), duration_us, stepwise=True)


def from_epoch(path: Path, times_s: FloatArray, sizes: FloatArray, start_s: float, last_s: float) -> Delivered:
    """From packets of a capture with their times, in s, between a given start and end. Raises TraceError."""
    duration_us = (round((last_s - start_s) * 1e6) // US_PER_MS + 1) * US_PER_MS
    if duration_us <= 0:
        raise TraceError(f"{path}: the packets end before t0; correct t0")
    return from_packets(np.round((times_s - start_s) * 1e6), sizes, duration_us)


def from_bins(edges_us: FloatArray, bytes_in_bin: FloatArray) -> Delivered:
    """From bins with their edges in µs since the start (one edge more than bins)."""
    until = np.concatenate(([0.0], np.cumsum(bytes_in_bin)))
    return Delivered(np.asarray(edges_us, dtype=np.float64), until, float(edges_us[-1]), stepwise=False)


def cut(delivered: Delivered, start_us: float, duration_us: float | None) -> Delivered:
    """The part from start_us on, for at most duration_us."""
    end = delivered.duration_us if duration_us is None else min(start_us + duration_us, delivered.duration_us)
    if start_us >= end:
        raise TraceError(
            f"the measurement lasts {delivered.duration_us / 1e6:.3f} s, so nothing is left from {start_us / 1e6:g} s "
            "on; start earlier"
        )
    if delivered.stepwise:
        sizes = np.diff(delivered.bytes_until, prepend=0.0)
        return from_packets(delivered.times_us - start_us, sizes, end - start_us)
    inside = (delivered.times_us > start_us) & (delivered.times_us < end)
    edges = np.concatenate(([start_us], delivered.times_us[inside], [end]))
    until = np.interp(edges, delivered.times_us, delivered.bytes_until)
    return from_bins(edges - start_us, np.diff(until))


def scaled(delivered: Delivered, factor: float) -> Delivered:
    """The same times with all bytes multiplied."""
    return Delivered(delivered.times_us, delivered.bytes_until * factor, delivered.duration_us, delivered.stepwise)


def bytes_at(delivered: Delivered, times_us: FloatArray) -> FloatArray:
    """The bytes that had arrived before each time."""
    if not delivered.stepwise:
        return np.interp(times_us, delivered.times_us, delivered.bytes_until)
    before = np.searchsorted(delivered.times_us, times_us, side="left")
    return np.concatenate(([0.0], delivered.bytes_until))[before]


def opportunities(delivered: Delivered) -> IntArray:
    """Timestamps of the opportunities, ms. The last one is the duration, rounded up, which is the trace's period."""
    period_ms = max(1, int(np.ceil(delivered.duration_us / US_PER_MS - 1e-9)))
    # The sum of bytes that were spread over bins is exact only up to rounding.
    count = int(np.floor(delivered.total_bytes / OPPORTUNITY_BYTES + 1e-6))
    if period_ms > MAX_MS:
        raise TraceError(
            f"the measurement lasts {period_ms / 1e3:.0f} s, more than a trace can; cut it with a duration"
        )
    if count > MAX_OPPORTUNITIES:
        raise TraceError(f"the measurement would be {count} opportunities; check the unit of its rates")
    times = np.empty(count + 1, dtype=np.int64)
    times[count] = period_ms
    for begin in range(0, count, AT_A_TIME):
        end = min(begin + AT_A_TIME, count)
        wanted = np.arange(begin + 1, end + 1, dtype=np.float64) * OPPORTUNITY_BYTES
        times[begin:end] = np.clip(_placed_ms(delivered, wanted), 0, period_ms)
    return times


def _placed_ms(delivered: Delivered, wanted: FloatArray) -> FloatArray:
    """The ms in which the sum of bytes reaches each value."""
    if delivered.stepwise:
        places = np.searchsorted(delivered.bytes_until, wanted - 1e-3, side="left")
        return delivered.times_us[places] // US_PER_MS
    # An opportunity that completes exactly at the edge of a bin belongs to that bin.
    at_ms: FloatArray = np.ceil(_crossings(delivered, wanted) / US_PER_MS - 1e-9) - 1
    return at_ms


def _crossings(delivered: Delivered, wanted: FloatArray) -> FloatArray:
    """The first time at which the piecewise linear curve reaches each value, in µs."""
    upper = np.searchsorted(delivered.bytes_until, wanted - 1e-6, side="left")
    upper = np.clip(upper, 1, len(delivered.bytes_until) - 1)
    low, high = delivered.bytes_until[upper - 1], delivered.bytes_until[upper]
    start, end = delivered.times_us[upper - 1], delivered.times_us[upper]
    share = np.clip((wanted - low) / np.where(high > low, high - low, 1.0), 0.0, 1.0)
    crossings: FloatArray = start + share * (end - start)
    return crossings
