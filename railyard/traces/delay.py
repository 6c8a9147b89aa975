"""Delay traces (docs/reference/links.md): lines `ms,delay_ms`, a step function; looped, the last time is the period."""

import re
from pathlib import Path

import numpy as np

from railyard.traces.trace import MAX_MS, FloatArray, TraceError, bytes_of

_LINE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?),(\d{1,9}(?:\.\d{1,6})?)")
MAX_DELAY_MS = 3_600_000.0
MOST_VALUES = 10_000_000


def is_delay_trace(path: Path) -> bool:
    """Whether the first line of a file is one of a delay trace."""
    try:
        with path.open("rb") as stream:
            return _LINE.fullmatch(stream.readline(64).decode("latin-1").rstrip("\n")) is not None
    except OSError:
        return False


def lines_of(path: Path) -> list[str]:
    """The lines of a file, which end in LF alone. Raises TraceError."""
    return bytes_of(path).decode("latin-1").removesuffix("\n").split("\n")


def read_delay_trace(path: Path) -> tuple[FloatArray, FloatArray]:
    """Times and one-way delays, ms. Raises TraceError with file and line."""
    rows: list[tuple[float, float]] = []
    for number, line in enumerate(lines_of(path), start=1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise TraceError(f"{path}:{number}: {line[:40]!r} is no 'ms,delay_ms'; correct the line")
        at, delay = float(match[1]), float(match[2])
        if rows and at <= rows[-1][0]:
            raise TraceError(f"{path}:{number}: the time {at:g} does not come after {rows[-1][0]:g}; sort the lines")
        if at > MAX_MS:
            raise TraceError(f"{path}:{number}: the time is beyond {MAX_MS} ms; shorten the trace")
        if delay > MAX_DELAY_MS:
            raise TraceError(f"{path}:{number}: the delay is more than {MAX_DELAY_MS:g} ms; correct it")
        rows.append((at, delay))
    times, delays = np.array(rows, dtype=np.float64).T
    return times, delays


def rtt_over_time(path: Path) -> FloatArray:
    """The RTT of a path with this delay in both directions, for each ms of one period, or one value for a single line.
    A period of more than MOST_VALUES ms has values at equal distances."""
    times, delays = read_delay_trace(path)
    if len(times) == 1:
        return 2 * delays
    period_ms = max(1, int(times[-1]))
    at = np.arange(0, period_ms, -(-period_ms // MOST_VALUES), dtype=np.float64)
    rtt: FloatArray = 2 * delays[np.maximum(np.searchsorted(times, at, side="right") - 1, 0)]
    return rtt
