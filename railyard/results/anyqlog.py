"""The qlog of one end of a connection, written by any stack: packets, acknowledgements, losses and metrics by path.

Reads main schemas 0.3 and 0.4 and the sequential files of the present drafts, as JSON, JSON-SEQ or one record a line.
Files come from other programs: whatever they contain, reading ends or raises UserError.
"""

import json
import math
import sys
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from pydantic_core import from_json

from railyard.base.errors import UserError
from railyard.base.files import open_regular

MOST_BYTES = 1 << 30
MOST_OF_QUIC = 2**62
_ACKS = ("ack", "path_ack", "ack_mp", "mp_ack")
_METRICS = ("smoothed_rtt", "min_rtt", "congestion_window", "bytes_in_flight")
_ALIASES = {"cwnd": "congestion_window"}  # aioquic
Record = dict[str, Any]


@dataclass(slots=True)
class SentPacket:
    kind: str  # initial, handshake, 1RTT, …
    number: int
    sent_ms: float
    length: int
    acked_ms: float | None = None
    lost_ms: float | None = None


@dataclass
class PathOfLog:
    """The records of one path at this end. A connection without multipath has one path."""

    sent: list[SentPacket] = field(default_factory=list)
    received: list[tuple[float, str, int, int]] = field(default_factory=list)  # ms, kind, number, length
    metrics: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: {name: [] for name in _METRICS})


@dataclass
class AnyQlog:
    name: str
    vantage: str
    reference_ms: float | None  # time 0 as Unix time; None: the file does not have it
    paths: dict[str, PathOfLog] = field(default_factory=dict)


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def _load(text: str) -> Any:
    try:
        return from_json(text, allow_inf_nan=False)  # as in base.jsonl
    except ValueError:
        pass
    try:
        return json.loads(text, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _records(stream: BinaryIO) -> Iterator[str]:
    for line in stream:
        yield from (record for record in line.decode(errors="replace").split("\x1e") if record.strip())


def _events(stream: BinaryIO) -> tuple[Record, Iterable[Any]]:
    """The trace object and its events. A file with one record a line has the trace in its header; its events are read
    as they are used."""
    records = _records(stream)
    first = next(records, "")
    try:
        header = _load(first)
    except ValueError:
        header = _load(first + "".join(records))  # of several lines
    if not isinstance(header, dict) or not isinstance(header.get("trace", {}), dict):
        raise ValueError("its first record is no header of a qlog")
    if "traces" not in header:
        return header.get("trace", {}), _following(records)
    trace = next((one for one in header["traces"] or () if isinstance(one, dict) and "events" in one), None)
    if trace is None:
        raise ValueError("it has no 'traces' with events")
    return trace, trace["events"]


def _following(records: Iterator[str]) -> Iterator[Any]:
    """Parses the records after the header. Leaves out a last record that was cut."""
    for record in records:
        try:
            yield _load(record)
        except ValueError:
            if next(records, None) is not None:
                raise


def _clock(trace: Record) -> tuple[Callable[[float], float], float | None]:
    """A function from an event's time to ms since the file's time 0, and time 0 as Unix time (None: unknown)."""
    common = trace.get("common_fields")
    common = common if isinstance(common, dict) else {}
    form, reference = str(common.get("time_format", "relative")), common.get("reference_time")
    if isinstance(reference, dict):
        wall = reference.get("wall_clock_time")
        reference = datetime.fromisoformat(wall).timestamp() * 1000 if isinstance(wall, str) else reference.get("epoch")
    known = float(reference) if isinstance(reference, int | float) and math.isfinite(reference) else None
    last = 0.0

    def since(time: float) -> float:
        nonlocal last
        last += time
        return last

    first: list[float] = []

    def from_first(time: float) -> float:
        first[:] = first or [time]
        return time - first[0]

    if form in ("delta", "relative_to_previous_event"):
        return since, known
    if form == "absolute":
        return from_first, None
    return (lambda time: time), known


class _Outstanding:
    """Packets that were not acknowledged, lost ones among them, in order, so an acknowledgement need not scan them
    all."""

    def __init__(self) -> None:
        self._packets: dict[int, SentPacket] = {}
        self._numbers: list[int] = []  # in order

    def add(self, packet: SentPacket) -> None:
        if packet.number not in self._packets:
            insort(self._numbers, packet.number)
        self._packets[packet.number] = packet

    def get(self, number: int) -> SentPacket | None:
        return self._packets.get(number)

    def take(self, low: int, high: int) -> list[SentPacket]:
        """Removes and returns the packets of a range of any size."""
        span = slice(bisect_left(self._numbers, low), bisect_right(self._numbers, high))
        taken = [self._packets.pop(number) for number in self._numbers[span]]
        del self._numbers[span]
        return taken


class _Reader:
    def __init__(self, log: AnyQlog) -> None:
        self.log = log
        self._open: defaultdict[tuple[str, str], _Outstanding] = defaultdict(_Outstanding)  # by path and kind

    def path(self, data: Record) -> tuple[str, PathOfLog]:
        header = data.get("header") or {}
        name = next((data[key] for key in ("path_id", "path") if key in data), header.get("path_id", 0))
        return str(name), self.log.paths.setdefault(str(name), PathOfLog())

    def event(self, time_ms: float, name: str, data: Record) -> None:
        what = name.rpartition(":")[2]
        if what in ("packet_sent", "packet_received"):
            self._packet(time_ms, data, sent=what == "packet_sent")
        elif what == "packet_lost":
            kind, number, _ = self._header(data)
            packet = self._open[self.path(data)[0], kind].get(number)
            if packet is not None:
                packet.lost_ms = time_ms
        elif what.endswith("metrics_updated"):
            path = self.path(data)[1]
            for key, value in data.items():
                if (metric := _ALIASES.get(key, key)) in _METRICS:
                    path.metrics[metric].append((time_ms, _finite(value)))

    def _header(self, data: Record) -> tuple[str, int, int]:
        header = data.get("header") or {}
        kind = sys.intern(str(header.get("packet_type", data.get("packet_type", ""))))
        raw = data.get("raw") or {}
        length = raw.get("length", header.get("packet_size", data.get("packet_size", 0)))
        return kind, _whole_number(header.get("packet_number", -1)), _whole_number(length or 0)

    def _packet(self, time_ms: float, data: Record, *, sent: bool) -> None:
        kind, number, length = self._header(data)
        name, path = self.path(data)
        if sent:
            packet = SentPacket(kind, number, time_ms, length)
            path.sent.append(packet)
            if number >= 0:
                self._open[name, kind].add(packet)
            return
        path.received.append((time_ms, kind, number, length))
        for frame in data.get("frames") or ():
            if frame.get("frame_type") in _ACKS:
                self._acknowledge(time_ms, str(frame.get("path_id", name)), kind, frame.get("acked_ranges") or ())

    def _acknowledge(self, time_ms: float, path: str, kind: str, ranges: Any) -> None:
        for one in ranges:
            for packet in self._open[path, kind].take(int(one[0]), int(one[-1])):
                packet.acked_ms = time_ms


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{value} is no finite number")
    return number


def _whole_number(value: Any) -> int:
    number = int(value)
    if abs(number) >= MOST_OF_QUIC:
        raise ValueError("a packet's number or length has more than 62 bits")
    return number


def _fields(event: Any, names: Any) -> Iterator[tuple[float, str, Record]]:
    """Time, name and data of an event. Before schema 0.3 an event was a list whose fields are named in the trace."""
    if isinstance(event, list) and isinstance(names, list):
        event = dict(zip([str(name) for name in names], event, strict=False))
        event["name"] = f"{event.get('category', '')}:{event.get('event', event.get('event_type', ''))}"
        event["time"] = event.get("time", event.get("relative_time", 0))
    if isinstance(event, dict) and isinstance(event.get("data"), dict) and "time" in event:
        yield _finite(event["time"]), str(event.get("name", "")), event["data"]


def check_sizes(files: Sequence[Path]) -> None:
    """Raises UserError if qlogs that are read into memory together are too large."""
    sizes = {file: file.stat().st_size for file in files}
    if sum(sizes.values()) > MOST_BYTES:
        largest = max(sizes, key=lambda file: sizes[file])
        those = "all qlogs together are" if len(files) > 1 else "it is"
        remedy = "cut it to the part of interest, or play a shorter video"
        raise UserError(f"{largest}: {those} larger than {MOST_BYTES >> 30} GiB; {remedy}.")


def read_any_qlogs(files: Sequence[Path]) -> list[AnyQlog]:
    """Reads qlogs. Raises UserError if one is none, and before it reads the first if they are too large."""
    check_sizes(files)
    return list(map(read_any_qlog, files))


def read_any_qlog(file: Path) -> AnyQlog:
    """Reads a qlog of any size. Raises UserError if the file is not one."""
    try:
        with open_regular(file) as stream:
            trace, events = _events(stream)
            vantage = trace.get("vantage_point") or {}
            to_ms, reference = _clock(trace)
            log = AnyQlog(file.name, str(vantage.get("type") or vantage.get("name") or "one end"), reference)
            reader = _Reader(log)
            for event in events:
                for time, name, data in _fields(event, trace.get("event_fields")):
                    reader.event(_finite(to_ms(time)), name, data)
    except OSError as error:
        raise UserError(f"{file}: it cannot be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise UserError(f"{file}: it is no qlog of main schema 0.3, 0.4 or the present drafts: {error}.") from None
    if not log.paths:
        raise UserError(f"{file}: the qlog has no packets.")
    return log
