"""Reads, checks and writes Mahimahi traces, and computes their capacity over time.

A trace is a text file with one non-decreasing integer a line, in milliseconds. Each line is one opportunity to deliver
1504 bytes (1500 and the 4 of the TUN header). The period of the trace is its last timestamp: after it the trace loops.
"""

import codecs
import hashlib
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from railyard.base.errors import UserError
from railyard.base.files import open_regular

OPPORTUNITY_BYTES = 1504
OPPORTUNITY_BITS = OPPORTUNITY_BYTES * 8
MAX_MS = 2**32 - 1
"""The greatest timestamp, about 50 days, which is also the limit of the link library."""
MOST_BINS = 3_000_000
"""About three days in bins of 100 ms. Longer traces probably are not in ms."""
MAX_DIGITS = 15
"""Longer timestamps are refused before they are read as numbers."""

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_PIECE_BYTES = 4 << 20  # parsed at once, which takes eight times as much memory
_NEWLINE = 0x0A
_ZERO, _NINE = 0x30, 0x39


class TraceError(UserError):
    """A trace, an index or a pair's name cannot be used. The message is one sentence for the user."""

    @classmethod
    def unreadable(cls, path: Path, error: OSError) -> "TraceError":
        """The error for a file that cannot be read."""
        return cls(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}")


def bytes_of(path: Path, words: str = "cannot be read") -> bytes:
    """The bytes of a file. Raises TraceError."""
    try:
        with open_regular(path) as stream:
            return stream.read()
    except OSError as error:
        raise TraceError(f"{path}: {words}: {(error.strerror or str(error)).lower()}") from error


@dataclass(frozen=True, eq=False)
class Trace:
    """One direction of one path: delivery opportunities in ms, the first loop of them."""

    path: Path
    opportunities_ms: IntArray
    sha256: str

    @cached_property
    def _times(self) -> "array[int]":
        """The timestamps as an array, in which access to single ones is ten times as fast as in numpy's."""
        return array("q", self.opportunities_ms.tobytes())

    @cached_property
    def period_ms(self) -> int:
        """Length of one loop: the last timestamp, ms."""
        return int(self.opportunities_ms[-1])

    @property
    def mean_mbps(self) -> float:
        """Mean capacity over one loop, counting 1504 bytes an opportunity."""
        return len(self.opportunities_ms) * OPPORTUNITY_BITS / self.period_ms / 1e3

    def opportunity_ms(self, number: int) -> int:
        """Time of an opportunity in ms of trace time. Numbers run from 0 over all loops."""
        loops, within = divmod(number, len(self._times))
        return loops * self.period_ms + self._times[within]

    def count_until(self, time_ms: int) -> int:
        """The number of opportunities at or before a time, over all loops. It is also the index of the first one after
        it."""
        loops, within = divmod(max(time_ms, 0), self.period_ms)
        # The end of a loop is time 0 of the next: opportunities there belong to the loop that ends.
        return loops * len(self._times) + bisect_right(self._times, within)

    def cumulative(self, times_ms: IntArray) -> IntArray:
        """The number of opportunities before each time, over all loops. Times are in ms since the start, not
        negative."""
        loops = np.maximum(times_ms - 1, 0) // self.period_ms
        within = np.searchsorted(self.opportunities_ms, times_ms - loops * self.period_ms, side="left")
        passed: IntArray = loops * len(self.opportunities_ms) + within
        return passed

    def check_bins(self, bin_ms: int, length_ms: int) -> None:
        """Raises TraceError if there are more than MOST_BINS bins, to bound memory."""
        if length_ms // bin_ms > MOST_BINS:
            raise TraceError(
                f"{self.path}: {length_ms} ms in bins of {bin_ms} ms are more than {MOST_BINS} bins; give a trace "
                "whose timestamps are ms, or cut it"
            )

    def counts(self, bin_ms: int, *, duration_ms: int | None = None, start_offset_ms: int = 0) -> IntArray:
        """Opportunities per bin [k·bin_ms, (k+1)·bin_ms) from start_offset_ms on, looping; whole bins only.

        Without a duration: one loop of many. The opportunities at its last timestamp are at time 0 of the next loop. A
        trace shorter than a bin gives one bin. Raises TraceError if there are more than MOST_BINS.
        """
        if bin_ms <= 0 or start_offset_ms < 0 or (duration_ms is not None and duration_ms <= 0):
            raise ValueError("bin and duration are positive, the start offset is not negative")
        length, begin_ms = duration_ms or self.period_ms, start_offset_ms + (0 if duration_ms else self.period_ms)
        self.check_bins(bin_ms, length)
        edges = np.arange(max(length // bin_ms, 1) + 1, dtype=np.int64) * bin_ms + begin_ms
        return np.diff(self.cumulative(edges))

    def rate_mbps(self, bin_ms: int, *, duration_ms: int | None = None, start_offset_ms: int = 0) -> FloatArray:
        """Capacity per bin in Mbps; the arguments are those of counts()."""
        counts = self.counts(bin_ms, duration_ms=duration_ms, start_offset_ms=start_offset_ms)
        return counts.astype(np.float64) * (OPPORTUNITY_BITS / 1e3 / bin_ms)


def _first_line(faults: npt.NDArray[np.bool_]) -> int | None:
    """The 1-based line of the first fault. Each element stands for a line."""
    return int(np.argmax(faults)) + 1 if faults.any() else None


def _parse_piece(path: Path, data: bytes, lines_before: int) -> IntArray:
    """The timestamps in whole lines of a trace file. Raises TraceError with file and line."""
    if not data.endswith(b"\n"):
        data += b"\n"
    raw = np.frombuffer(data, dtype=np.uint8)
    is_end = raw == _NEWLINE
    ends = np.flatnonzero(is_end)
    lengths = np.diff(ends, prepend=-1) - 1

    alien = ~(is_end | ((raw >= _ZERO) & (raw <= _NINE)))
    blank, overlong = _first_line(lengths == 0), _first_line(lengths > MAX_DIGITS)
    faults: list[tuple[int, str]] = []
    if alien.any():
        position = int(np.argmax(alien))
        line = int(np.searchsorted(ends, position)) + 1
        text = data[int(ends[line - 2]) + 1 if line > 1 else 0 : int(ends[line - 1])][:40]
        remedy = "write one integer in ms and nothing else"
        if text.endswith(b"\r"):
            remedy = "write line ends as LF alone, as traces convert does"
        if text.startswith(codecs.BOM_UTF8):
            remedy = "the file begins with a byte order mark; write none, as traces convert does"
        faults.append((line, f"{text.decode('latin-1')!r} is not a timestamp; {remedy}"))
    if blank is not None:
        faults.append((blank, "the line is blank; remove it"))
    if overlong is not None:
        faults.append((overlong, f"the timestamp has more than {MAX_DIGITS} digits; timestamps are ms from the start"))
    if faults:
        line, problem = min(faults)
        raise TraceError(f"{path}:{lines_before + line}: {problem}")
    return np.fromstring(data.decode("ascii"), dtype=np.int64, sep="\n")


def _parse(path: Path, data: bytes) -> IntArray:
    """The timestamps in a trace file's bytes. Raises TraceError with file and line."""
    if not data:
        raise TraceError(f"{path}: the trace is empty; it needs at least one timestamp in ms greater than 0")
    times = np.empty(data.count(b"\n") + (not data.endswith(b"\n")), dtype=np.int64)
    begin = parsed = 0
    while begin < len(data):
        end = data.find(b"\n", begin + _PIECE_BYTES) + 1 or len(data)
        piece = _parse_piece(path, data[begin:end], parsed)
        times[parsed : parsed + len(piece)] = piece
        begin, parsed = end, parsed + len(piece)
    before_fall = _first_line(times[1:] < times[:-1])
    if before_fall is not None:
        raise TraceError(
            f"{path}:{before_fall + 1}: timestamp {times[before_fall]} comes after {times[before_fall - 1]}; "
            "sort the trace, timestamps never decrease"
        )
    if times[-1] > MAX_MS:
        beyond = int(np.searchsorted(times, MAX_MS, side="right")) + 1
        raise TraceError(
            f"{path}:{beyond}: timestamp {times[beyond - 1]} is beyond {MAX_MS} ms; write ms from the trace's start"
        )
    if times[-1] == 0:
        raise TraceError(f"{path}:{len(times)}: the last timestamp is 0; it is the trace's period and must be positive")
    return times


def read_trace(path: str | Path) -> Trace:
    """Reads and checks a trace. Raises TraceError with file and line."""
    return trace_of(Path(path), bytes_of(Path(path), "cannot read the trace"))


def trace_of(path: Path, data: bytes) -> Trace:
    """The trace in a file's bytes. Raises TraceError with file and line."""
    return Trace(path, _parse(path, data), hashlib.sha256(data).hexdigest())


def sha256_file(path: str | Path) -> str:
    """SHA-256 of a file's bytes in hex, without checking that it is a trace."""
    return hashlib.sha256(bytes_of(Path(path), "cannot read the trace")).hexdigest()


def format_trace(opportunities_ms: Sequence[int] | IntArray) -> bytes:
    """The bytes of a trace file."""
    parts = (opportunities_ms[begin : begin + 1_000_000] for begin in range(0, len(opportunities_ms), 1_000_000))
    return b"".join("".join(f"{int(t)}\n" for t in part).encode("ascii") for part in parts)
