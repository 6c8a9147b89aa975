"""Finds the first scheduling decision of the server that differs between two runs, from its qlogs.

A scheduling decision is one STREAM frame that the server sent: its time, path, stream and bytes, and its reason: new
data, a retransmission, or a copy of bytes in flight on another path (with the gate's reason).
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, dropwhile, zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import Any

from railyard.base.errors import UserError
from railyard.base.files import open_regular
from railyard.base.jsonl import NOT_AS_WRITTEN, parse
from railyard.experiment.arenas import is_exact
from railyard.experiment.stacks import STACK_SCHEME
from railyard.results.shapes import EMULATOR, RUN, as_written, read_record

Event = dict[str, Any]
_RECORD_SEPARATOR = "\x1e"
MOST_MS = 1e15


@dataclass(frozen=True)
class Decision:
    """One STREAM frame that the server sent. Path −1: the qlog does not have the packet's path."""

    time_ms: float
    path: int
    stream: int
    offset: int
    length: int
    why: str
    path_name: str = field(default="", compare=False)

    def __str__(self) -> str:
        last = self.offset + self.length
        what = f"stream {self.stream}, bytes {self.offset} to {last}"
        return f"at {self.time_ms / 1000:.6f} s on path {self.path_name or self.path}: {what}, {self.why}"

    def same_as(self, other: "Decision | None", *, timed: bool) -> bool:
        """Whether two decisions are the same; `timed`: at the same time, too."""
        return other is not None and self == (other if timed else replace(other, time_ms=self.time_ms))


@dataclass(frozen=True)
class Parting:
    """The first difference between two runs. `kind`: 'decision', 'event' or 'identical'. A side that has ended is
    None."""

    kind: str
    number: int  # of equal decisions, or events, before it
    first: Decision | Event | None = None
    second: Decision | Event | None = None
    from_chunk: int | None = None  # the first chunk whose decisions were compared; None: all events were

    def __str__(self) -> str:
        if self.kind == "identical" and self.from_chunk is not None:
            return f"identical: all {self.number} scheduling decisions from chunk {self.from_chunk} on are the same"
        if self.kind == "identical":
            return f"identical: all {self.number} events of the server's qlog are the same"
        word = "scheduling decision" if self.kind == "decision" else "event"
        sides = [_shown(self.first, word), _shown(self.second, word)]
        same = "the first one" if self.number == 0 else f"after {self.number} that are the same"
        note = "" if self.kind == "decision" else " (all scheduling decisions are the same)"
        since = "" if self.from_chunk is None else f" from chunk {self.from_chunk} on"
        return f"first {word}{since} that differs, {same}{note}:\n  A {sides[0]}\n  B {sides[1]}"

    def records(self) -> list[dict[str, Any]]:
        """A row for each run, as `railyard diff --format` prints them. A side that has ended has neither time nor
        words."""
        rows: list[dict[str, Any]] = []
        for run, side in (("A", self.first), ("B", self.second)):
            ms = side.time_ms if isinstance(side, Decision) else None if side is None else float(side.get("time", 0))
            text = "" if side is None else _shown(side, self.kind).partition(" s")[2].lstrip(": ")
            at = {"time_s": None if ms is None else ms / 1000, "what": text}
            rows.append({"run": run, "differs": self.kind, "same_before": self.number, **at})
        return rows


def _shown(side: Decision | Event | None, word: str) -> str:
    if side is None:
        return f"has no further {word}"
    if isinstance(side, Decision):
        return str(side)
    return f"at {float(side.get('time', 0)) / 1000:.6f} s: {side.get('name')} {json.dumps(side.get('data'))}"


def no_qlogs(run: Path, missing: str) -> UserError:
    """The error for a run without qlogs: it cannot have any, or the command that writes them."""
    record = read_record(run / "run.json", RUN)
    scheme = record["config"].get("scheme") if record else None
    if scheme in ("mptcp", "tcp"):
        return UserError(f"{run}: TCP and MPTCP write no qlogs.")
    if scheme == STACK_SCHEME:
        return UserError(f"{run}: a stack behind relays writes no qlogs.")
    return UserError(f"{run}: {missing}; `railyard repeat {run} --qlog --out DIR` does the run again with qlogs.")


def server_qlogs(run: Path) -> list[Path]:
    """The server's qlogs of a run, one for each connection, in the order of their first times."""
    qlogs = sorted((run / "qlog").glob("*_server.sqlog"), key=_order)
    if not qlogs:
        raise no_qlogs(run, "there is no qlog of the server")
    return qlogs


def _lines(file: Path) -> Iterator[str]:
    with open_regular(file) as stream:
        for line in stream:
            yield line.decode(errors="replace").lstrip(_RECORD_SEPARATOR)


def reference_us(file: Path) -> float:
    """Time 0 of a qlog, in µs of the monotonic clock."""
    header = parse(next(_lines(file), "{}"))
    return float(header["trace"]["common_fields"]["reference_monotonic_us"])


def _order(file: Path) -> tuple[float, str]:
    """The key that sorts qlogs by time 0. Qlogs without one come first."""
    with suppress(OSError, *NOT_AS_WRITTEN):
        return reference_us(file), file.name
    return 0.0, file.name


def events(file: Path) -> Iterator[Event]:
    """The events of a JSON-SEQ qlog, without its header and without a last line that was cut. Raises OSError, or
    ValueError if a record is no event."""
    for number, line in enumerate(_lines(file), 1):
        try:
            event = parse(line)
        except ValueError:
            if line.endswith("\n"):
                raise ValueError(f"{file.name}:{number} is no event of a qlog") from None
            return
        if "name" in event:
            if not (type(event["name"]) is str and type(event.get("data")) is dict and _is_time(event.get("time"))):
                raise ValueError(f"{file.name}:{number} is no event of a qlog")
            event["name"] = current_name(event["name"])
            yield event


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < MOST_MS


def timed_events(file: Path, t0_us: float) -> Iterator[tuple[float, Event]]:
    """The events of a qlog, each with its time in s since t0 of the links."""
    zero_us = reference_us(file)
    for event in events(file):
        yield (zero_us + float(event["time"]) * 1000 - t0_us) / 1e6, event


_NOT_IN_FLIGHT = {"ack", "ack_mp", "path_ack", "padding", "connection_close"}


class InFlight:
    """Follows the bytes in flight of a path from event to event. Qlogs have the number only when an acknowledgement
    arrives or a timer expires, and only if it has changed. This adds the packets that were sent since."""

    def __init__(self) -> None:
        self.bytes = 0.0
        self._logged = 0.0

    def take(self, name: str, data: Mapping[str, Any]) -> bool:
        """Takes an event. Returns whether it has changed the bytes in flight."""
        before = self.bytes
        if name == "quic:packet_sent":
            if any(frame.get("frame_type") not in _NOT_IN_FLIGHT for frame in data.get("frames", ())):
                self.bytes += float(data.get("raw", {}).get("length", 0))
        elif name == "quic:recovery_metrics_updated":
            self.bytes = self._logged = float(data.get("bytes_in_flight", self._logged))
        return self.bytes != before


# The names before qlogs followed the drafts main-schema-14 and quic-events-13.
OLD_NAMES = {
    "recovery:metrics_updated": "quic:recovery_metrics_updated",
    "recovery:congestion_state_updated": "quic:congestion_state_updated",
    "recovery:ecn_state_updated": "quic:ecn_state_updated",
    "recovery:packet_lost": "quic:packet_lost",
    "connectivity:mtu_updated": "quic:mtu_updated",
    "connectivity:connection_closed": "quic:connection_closed",
    "connectivity:key_updated": "quic:key_updated",
    "loglevel:warning": "xlink:events_omitted",
}
_OLD_CATEGORIES = {"transport": "quic", "http": "http3", "connectivity": "xlink"}


def current_name(name: str) -> str:
    """The present name of an event of an older qlog."""
    if name in OLD_NAMES:
        return OLD_NAMES[name]
    category, _, rest = name.partition(":")
    return f"{_OLD_CATEGORIES.get(category, category)}:{rest}"


def frame_length(frame: Mapping[str, Any]) -> int:
    """The length of a STREAM frame's data in bytes. Older qlogs have no `raw` in frames."""
    return int(frame.get("raw", frame)["length"])


def path_names(run: Path) -> dict[str, str]:
    """The name of each path by the client's address on it. Empty if the emulator's record has no addresses."""
    emulator = read_record(run / "mpshell.json", EMULATOR) or {}
    return {str(path["inside_addr"]): str(path["name"]) for path in emulator.get("paths", []) if "inside_addr" in path}


def decisions(log: Iterable[Event], names: Mapping[str, str] = MappingProxyType({})) -> Iterator[Decision]:
    """The scheduling decisions of a server, in order. `names`: the names of paths, by the client's address."""
    sent: dict[int, int] = {}
    named: dict[int, str] = {}
    copies: dict[tuple[int, int], tuple[float, str]] = {}  # by stream and offset; logged before the packet, at its time
    for event in log:
        time, name, data = event["time"], event["name"], event["data"]
        if name == "multipath:path_new":
            named[int(data["path"])] = names.get(str(data.get("remote", "")).rpartition(":")[0], "")
        elif name == "xlink:reinjection":
            copies[data["stream_id"], data["offset"]] = (time, str(data.get("why", "")))
        elif name == "quic:packet_sent":
            path = int(data.get("path", -1))
            for frame in data.get("frames", []):
                if frame.get("frame_type") != "stream":
                    continue
                stream, offset, length = int(frame["stream_id"]), int(frame["offset"]), frame_length(frame)
                why = "retransmission" if offset < sent.get(stream, 0) else "new data"
                copied_at, reason = copies.get((stream, offset), (None, ""))
                if copied_at == time:
                    why = f"re-injection, {reason}"
                sent[stream] = max(sent.get(stream, 0), offset + length)
                yield Decision(float(time), path, stream, offset, length, why, named.get(path, ""))


def _without_addresses(event: Event) -> Event:
    """An event without the addresses, which may differ between equal runs."""
    data = {key: value for key, value in event.get("data", {}).items() if key not in ("local", "remote")}
    return event | {"data": data}


def _in_virtual_time(run: Path) -> bool:
    record = read_record(run / "run.json", RUN)
    if record is None:
        raise UserError(f"{run}: this is not a completed run: it has no readable run.json.")
    return is_exact(record["config"]["arena"])


def _timed(event: Event, timed: bool) -> Event:
    return event if timed else event | {"time": 0}


def _events_of(run: Path, file: Path | None) -> Iterator[Event]:
    """The events of one of the server's qlogs. None without a file: the run made fewer connections."""
    event = None
    with as_written(run):
        for event in events(file) if file else ():
            yield event
    if file and event is None:
        raise UserError(f"{file}: the qlog has no events; run it again.")


def _decisions_of(run: Path, file: Path | None) -> Iterator[Decision]:
    with as_written(run):
        yield from decisions(_events_of(run, file), path_names(run))


def _from_stream(run: Path, stream: int) -> Iterator[Decision]:
    made = chain.from_iterable(_decisions_of(run, file) for file in server_qlogs(run))
    return dropwhile(lambda one: one.stream != stream, made)


def parting_from(run_a: Path, run_b: Path, chunk: int, streams: tuple[int, int]) -> Parting:
    """The first scheduling decision that differs, counted from the first packet with bytes of a chunk. `streams`: the
    chunk's stream in each run. Times are shown but not compared, as they differ once the runs have parted."""
    sides = [_from_stream(*one) for one in zip((run_a, run_b), streams, strict=True)]
    number = -1
    for number, (a, b) in enumerate(zip_longest(*sides)):
        if a is None or not a.same_as(b, timed=False):
            return Parting("decision", number, a, b, chunk)
    return Parting("identical", number + 1, from_chunk=chunk)


def parting(run_a: Path, run_b: Path) -> Parting:
    """The first scheduling decision that differs; if all are the same, the first event that does.

    If both runs are in virtual time, a decision at another time differs. Runs on the wall clock never agree to the
    microsecond, so if one is such a run, times are shown but not compared.
    """
    timed = _in_virtual_time(run_a) and _in_virtual_time(run_b)
    files = list(zip_longest(server_qlogs(run_a), server_qlogs(run_b)))
    total = 0
    for file_a, file_b in files:
        for number, (a, b) in enumerate(zip_longest(_decisions_of(run_a, file_a), _decisions_of(run_b, file_b))):
            if a is None or not a.same_as(b, timed=timed):
                return Parting("decision", number, a, b)
    for file_a, file_b in files:
        for event_a, event_b in zip_longest(_events_of(run_a, file_a), _events_of(run_b, file_b)):
            plain_a = None if event_a is None else _without_addresses(event_a)
            plain_b = None if event_b is None else _without_addresses(event_b)
            if plain_a is None or plain_b is None or _timed(plain_a, timed) != _timed(plain_b, timed):
                return Parting("event", total, event_a, event_b)
            total += 1
    return Parting("identical", total)
