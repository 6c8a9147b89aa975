"""Delay traces from measurements: round trips of ping, or a list of one-way delays at equal distances."""

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

import numpy as np

from railyard.traces.delay import MAX_DELAY_MS
from railyard.traces.trace import MAX_MS, FloatArray, TraceError, bytes_of

DelayFormat = Literal["ping", "list"]
_REPLY = re.compile(
    r"(?:\[(?P<stamp>[^\]]{1,40})\] )?\d+ bytes from .*icmp_seq=(?P<number>\d{1,9}) "
    r".*time=(?P<rtt>\d{1,9}(?:\.\d{1,6})?) ms(?P<twice> \(DUP!\))?"
)
_SENT = re.compile(r"(\d{1,9}) packets transmitted, .*time (\d{1,12})ms")
_VALUE = re.compile(r"\d{1,9}(\.\d{1,6})?")


@dataclass(frozen=True)
class Delays:
    """One-way delays over time."""

    times_ms: FloatArray
    """From 0, in steps of whole ms."""
    delays_ms: FloatArray
    period_ms: int
    lost: int
    """The number of lost round trips. The delay before a lost one continues."""

    def as_bytes(self) -> bytes:
        """A delay trace (docs/reference/links.md); its last line closes the period."""
        rows = zip(self.times_ms.tolist(), self.delays_ms.tolist(), strict=True)
        text = "".join(f"{at:.0f},{delay:.3f}\n" for at, delay in rows)
        return f"{text}{self.period_ms},{self.delays_ms[0]:.3f}\n".encode("ascii")


def read_delays(path: Path, form: DelayFormat | None, interval_ms: float | None) -> Delays:
    """A measurement of delays. `form`: None to tell it by the content. Raises TraceError."""
    lines = bytes_of(path).decode("latin-1").splitlines()
    if form is None:
        form = "list" if lines and _VALUE.fullmatch(lines[0].strip()) else "ping"
    return _of_list(path, lines, interval_ms) if form == "list" else _of_ping(path, lines, interval_ms)


def _of_list(path: Path, lines: list[str], interval_ms: float | None) -> Delays:
    """One-way delays in ms, a line each."""
    if interval_ms is None:
        raise TraceError(f"{path}: a list of delays does not say how far they are apart; give it in ms, interval-ms")
    values: list[float] = []
    for number, line in enumerate(lines, start=1):
        if not _VALUE.fullmatch(line.strip()) or float(line) > MAX_DELAY_MS:
            raise TraceError(f"{path}:{number}: {line[:40]!r} is no delay in ms; correct it")
        values.append(float(line))
    if not values:
        raise TraceError(f"{path}: there is no delay in it; write one in ms a line")
    return _delays(path, np.arange(len(values), dtype=np.float64) * interval_ms, np.array(values), interval_ms, 0)


def _of_ping(path: Path, lines: list[str], interval_ms: float | None) -> Delays:
    """Half of each round trip, at the time when its request was sent."""
    stamps: list[float | None] = []
    numbers: list[int] = []
    rtts: list[float] = []
    sent, lasted_ms = 0, 0
    for number, line in enumerate(lines, start=1):
        if match := _REPLY.match(line):
            if match["twice"]:
                continue
            rtts.append(float(match["rtt"]))
            numbers.append(int(match["number"]))
            stamps.append(_stamp_ms(path, number, match["stamp"]))
            if rtts[-1] > 2 * MAX_DELAY_MS:
                raise TraceError(f"{path}:{number}: the round trip took more than two hours; correct it")
        elif match := _SENT.search(line):
            sent, lasted_ms = int(match[1]), int(match[2])
    if not rtts:
        raise TraceError(f"{path}: there is no reply in it as ping prints them; is this its output?")
    rtt = np.array(rtts)
    step_ms = interval_ms or (lasted_ms / (sent - 1) if sent > 1 and lasted_ms else None)
    if any(stamp is None for stamp in stamps):
        if step_ms is None:
            raise TraceError(
                f"{path}: ping prints the interval at its end, which is not there; give it in ms, interval-ms, or run "
                "ping with -D"
            )
        at = (np.array(numbers) - min(numbers)) * step_ms
    else:
        at = np.array([stamp for stamp in stamps if stamp is not None]) - rtt
    last_step = step_ms or (float(np.median(np.diff(np.sort(at)))) if len(at) > 1 else 1000.0)
    return _delays(path, at, rtt / 2, last_step, max(0, max(sent, max(numbers) - min(numbers) + 1) - len(rtts)))


def _stamp_ms(path: Path, line: int, text: str | None) -> float | None:
    """The time of a reply: seconds since 1970 as `ping -D` prints them, or a date."""
    if text is None:
        return None
    try:
        return float(text) * 1000 if re.fullmatch(r"\d{1,12}\.\d{1,6}", text) else _date_ms(text)
    except (ValueError, OverflowError, OSError):
        raise TraceError(
            f"{path}:{line}: {text!r} is no time; write 2021-05-03 10:00:00.5 or seconds since 1970"
        ) from None


def _date_ms(text: str) -> float:
    date = datetime.fromisoformat(text)
    # Only differences count: without an offset all times of a file have the same.
    return (date.replace(tzinfo=None) - datetime(1970, 1, 1)).total_seconds() * 1000


def _delays(path: Path, at_ms: FloatArray, delays_ms: FloatArray, last_step_ms: float, lost: int) -> Delays:
    """Delays in order, from time 0. Of several in one ms, the first one counts."""
    order = np.argsort(at_ms, kind="stable")
    times = np.floor(at_ms[order] - at_ms.min())
    _, first = np.unique(times, return_index=True)
    times, delays = times[first], delays_ms[order][first]
    period_ms = int(times[-1] + max(1, round(last_step_ms)))
    if period_ms > MAX_MS:
        raise TraceError(f"{path}: the measurement lasts {period_ms / 1000:.0f} s, more than a trace can")
    return Delays(times, delays, period_ms, lost)
