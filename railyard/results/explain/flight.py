"""The packets of a run from the qlogs of both ends and the link logs, with times on the clock of the links."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from railyard.base.jsonl import read_json
from railyard.base.lists import grouped
from railyard.results.anyqlog import check_sizes
from railyard.results.linklog.read import LinkLog, link_log_of
from railyard.results.qlogdiff import InFlight, frame_length, no_qlogs, path_names, timed_events
from railyard.results.shapes import as_written
from railyard.traces.settings import least_delay_ms

# A link without a delivery opportunity for this long is in an outage.
OUTAGE_MS = 100.0
# The most between a packet's departure in the link log and its reception: logs are in ms, and on the wall clock a
# packet is received a little after it left its link.
NEAR_MS = 2.0


@dataclass(frozen=True, slots=True)
class Piece:
    """A STREAM frame of a packet: bytes [first, end) of a stream."""

    stream: int
    first: int
    end: int


@dataclass(slots=True)
class Packet:
    """A 1-RTT packet. Times in s on the clock of the links; `received_s` is None if it did not arrive."""

    path: str
    number: int
    sent_s: float
    pieces: list[Piece]
    received_s: float | None = None
    lost_s: float | None = None
    copies: set[tuple[int, int]] = field(default_factory=set)  # (stream, offset) of each re-injected frame in it


@dataclass(frozen=True, slots=True)
class PathState:
    """The state of a path at the server from `t_s` on."""

    t_s: float
    window: float
    in_flight: float
    usable: bool  # validated, and neither suspect, standby nor closed
    waits: bool  # the scheduler leaves the path's window unused


@dataclass(frozen=True)
class Link:
    """One direction of a path. Times in ms since t0 of the links, sorted."""

    delay_ms: float
    log: LinkLog | None

    def waited_ms(self, left_ms: float) -> float | None:
        """The time in the queue of the packet that left the link at `left_ms`. None: the log has no such packet."""
        if self.log is None or not len(self.log.departure_ms):
            return None
        times = self.log.departure_ms
        place = int(np.searchsorted(times, left_ms))
        if place == len(times) or (place and left_ms - times[place - 1] <= times[place] - left_ms):
            place = int(np.searchsorted(times, times[place - 1]))  # the first packet with that departure time
        if abs(float(times[place]) - left_ms) > NEAR_MS:
            return None
        return float(self.log.delay_ms[place])

    def outage_ms(self, begin_ms: float, end_ms: float) -> float:
        """The part of an interval that is in gaps of OUTAGE_MS or more between delivery opportunities."""
        if self.log is None or end_ms <= begin_ms:
            return 0.0
        times = self.log.opportunity_ms
        low = max(0, int(np.searchsorted(times, begin_ms, side="right")) - 1)
        high = int(np.searchsorted(times, end_ms, side="left")) + 1
        near = times[low:high].tolist()
        gaps = pairwise([*near, end_ms] if not near or near[-1] < end_ms else near)
        outages = ((max(begin, begin_ms), min(end, end_ms)) for begin, end in gaps if end - begin >= OUTAGE_MS)
        return sum((max(0.0, end - begin) for begin, end in outages), 0.0)

    def is_busy(self, at_ms: float) -> bool:
        """Whether packets are in the queue at that time."""
        if self.log is None:
            return False
        arrived = int(np.searchsorted(self.log.arrival_ms, at_ms, side="right"))
        left = int(np.searchsorted(self.log.departure_ms, at_ms, side="right"))
        dropped = int(self.log.drop_packets[: np.searchsorted(self.log.drop_ms, at_ms, side="right")].sum())
        return arrived > left + dropped


@dataclass
class Flight:
    """Both directions of a run's connections."""

    down: list[Packet]  # sent by the server, by time
    up: list[Packet]
    requests: list[tuple[float, int, int, int]]  # (time, stream, first byte, last byte) of each range request
    states: dict[str, list[PathState]]  # of the server's paths, by name
    gate: list[tuple[float, str]]  # (time, decision of the re-injection gate with its reason)
    links: dict[tuple[str, str], Link]  # by path and 'up' or 'down'

    @cached_property
    def _sending_s(self) -> dict[str, list[float]]:
        times = grouped((packet.path, packet.sent_s) for packet in self.down if packet.pieces)
        return {path: sorted(sent) for path, sent in times.items()}

    @cached_property
    def sending_s(self) -> list[float]:
        """The times at which the server sent stream data on any path, in order."""
        return sorted(chain.from_iterable(self._sending_s.values()))

    @cached_property
    def changes_s(self) -> list[float]:
        """The times at which the state of a path changed, in order."""
        return sorted(state.t_s for states in self.states.values() for state in states)

    @cached_property
    def _of_streams(self) -> dict[tuple[str, int], list[Packet]]:
        return grouped(
            ((way, stream), packet)
            for way, packets in (("down", self.down), ("up", self.up))
            for packet in packets
            for stream in {piece.stream for piece in packet.pieces}
        )

    def packets_of(self, way: str, stream: int) -> list[Packet]:
        """The packets with data of the stream. `way`: 'up' or 'down'."""
        return self._of_streams.get((way, stream), [])

    def sends(self, path: str, begin_s: float, end_s: float) -> bool:
        """Whether the server sends stream data on a path in this interval."""
        times = self._sending_s.get(path, [])
        return bisect_left(times, begin_s) < bisect_left(times, end_s)


def _pieces(data: dict[str, Any]) -> list[Piece]:
    return [
        Piece(int(frame["stream_id"]), int(frame["offset"]), int(frame["offset"]) + frame_length(frame))
        for frame in data.get("frames", ())
        if frame.get("frame_type") == "stream"
    ]


class _End:
    """One end's qlog: the packets that it sent and received, and the states of its paths."""

    def __init__(self, log: Path, t0_us: float, names: dict[str, str], own: str) -> None:
        self.sent: dict[tuple[int, int], Packet] = {}
        self.received: dict[tuple[int, int], float] = {}
        self.requests: list[tuple[float, int, int, int]] = []
        self.states: dict[str, list[PathState]] = {}
        self.gate: list[tuple[float, str]] = []
        self.migrated = False
        self._names, self._own = names, own
        self._paths: dict[int, str] = {}
        self._in_flight: dict[str, InFlight] = {}
        self._copied: dict[tuple[int, int], float] = {}
        for t_s, event in timed_events(log, t0_us):
            data = event.get("data", {})
            handler = self._HANDLERS.get(str(event["name"]))
            if handler is not None:
                handler(self, t_s, data)
            path = self._path_of(data)
            if path is not None and self._in_flight[path].take(str(event["name"]), data):
                self._change(t_s, path, in_flight=self._in_flight[path].bytes)

    def in_one_space(self) -> None:
        """Joins the packet number spaces. Without multipath all paths share one (RFC 9000, section 12.3)."""
        self.sent = {(0, number): packet for (_, number), packet in self.sent.items()}
        self.received = {(0, number): t_s for (_, number), t_s in self.received.items()}

    def _path_of(self, data: dict[str, Any]) -> str | None:
        return self._paths.get(int(data.get("path", -1)))

    def _key(self, data: dict[str, Any]) -> tuple[int, int] | None:
        header = data.get("header", {})
        if header.get("packet_type") != "1RTT" or "packet_number" not in header:
            return None
        return int(data.get("path_id", data.get("path", -1))), int(header["packet_number"])

    def _new_path(self, t_s: float, data: dict[str, Any]) -> None:
        address = str(data[self._own]).rpartition(":")[0]
        path = self._paths[int(data["path"])] = self._names.get(address, address)
        self._in_flight[path] = InFlight()
        self._change(t_s, path, usable=data.get("why") == "first path")

    def _migrated(self, t_s: float, data: dict[str, Any]) -> None:
        self.migrated = True
        for path in self._paths.values():
            self._change(t_s, path, usable=False)
        self._new_path(t_s, data)
        self._use(t_s, data, usable=True)

    def _sent(self, t_s: float, data: dict[str, Any]) -> None:
        key, path = self._key(data), self._path_of(data)
        if key is None or path is None:
            return
        pieces = _pieces(data)
        packet = self.sent[key] = Packet(path, key[1], t_s, pieces)
        packet.copies = {(p.stream, p.first) for p in pieces if self._copied.get((p.stream, p.first)) == t_s}
        if pieces:
            self._wait(t_s, data, waits=False)

    def _received(self, t_s: float, data: dict[str, Any]) -> None:
        key = self._key(data)
        if key is not None:
            self.received.setdefault(key, t_s)

    def _lost(self, t_s: float, data: dict[str, Any]) -> None:
        key = self._key(data)
        if key in self.sent:
            self.sent[key].lost_s = t_s

    def _change(self, t_s: float, path: str, **values: Any) -> None:
        states = self.states.setdefault(path, [])
        last = states[-1] if states else PathState(t_s, 0.0, 0.0, usable=True, waits=False)
        now = replace(last, t_s=t_s, **values)
        if not states or now != last:
            states.append(now)

    def _metrics(self, t_s: float, data: dict[str, Any]) -> None:
        path = self._path_of(data)
        if path is not None and "congestion_window" in data:
            self._change(t_s, path, window=float(data["congestion_window"]))

    def _use(self, t_s: float, data: dict[str, Any], *, usable: bool) -> None:
        if (path := self._path_of(data)) is not None:
            self._change(t_s, path, usable=usable)

    def _wait(self, t_s: float, _: dict[str, Any], *, waits: bool) -> None:
        for path in self._paths.values():
            self._change(t_s, path, waits=waits)

    def _copy(self, t_s: float, data: dict[str, Any]) -> None:
        self._copied[int(data["stream_id"]), int(data["offset"])] = t_s

    def _gate(self, t_s: float, data: dict[str, Any]) -> None:
        self.gate.append((t_s, f"gate {'open' if data.get('on') else 'closed'}: {data.get('why', '')}"))

    def _refused(self, t_s: float, data: dict[str, Any]) -> None:
        self.gate.append((t_s, f"no copy: {data.get('why', '')}"))

    def _request(self, t_s: float, data: dict[str, Any]) -> None:
        headers = data.get("frame", {}).get("headers", ())
        value = next((str(header.get("value")) for header in headers if header.get("name") == "range"), "")
        first, _, last = value.removeprefix("bytes=").partition("-")
        if first.isdigit() and last.isdigit():
            self.requests.append((t_s, int(data["stream_id"]), int(first), int(last)))

    _SET_ASIDE, _TAKEN_UP = partial(_use, usable=False), partial(_use, usable=True)
    _HANDLERS: ClassVar[dict[str, Callable[["_End", float, dict[str, Any]], None]]] = {
        "multipath:path_new": _new_path,
        "multipath:migrated": _migrated,
        "multipath:path_suspect": _SET_ASIDE,
        "multipath:path_standby": _SET_ASIDE,
        "multipath:path_closed": _SET_ASIDE,
        "multipath:path_recovered": _TAKEN_UP,
        "multipath:path_validated": _TAKEN_UP,
        "multipath:scheduler_waits": partial(_wait, waits=True),
        "quic:packet_sent": _sent,
        "quic:packet_received": _received,
        "quic:packet_lost": _lost,
        "quic:recovery_metrics_updated": _metrics,
        "xlink:reinjection": _copy,
        "xlink:reinjection_refused": _refused,
        "xlink:qoe_gate": _gate,
        "http3:frame_created": _request,
    }


def _base_delay_ms(path: dict[str, Any], way: str) -> float:
    """The base delay of a path in one direction, from the run's record: with a delay trace its minimum, unless the file
    is gone."""
    files = {name: Path(file) for name, file in path.get("delay_traces", {}).items() if Path(file).is_file()}
    settings = {name: value for name, value in path.get("settings", {}).items() if not name.endswith("jitter_ms")}
    return least_delay_ms(path["delay_ms"], settings, files, way)


def _links(run: Path, config: dict[str, Any]) -> dict[tuple[str, str], Link]:
    return {
        (path["name"], way): Link(_base_delay_ms(path, way), link_log_of(run, f"{path['name']}.{way}"))
        for path in config["paths"]
        for way in ("up", "down")
    }


def read_flight(run: Path, config: dict[str, Any]) -> Flight:
    """Reads the packets of a run. Raises UserError if it lacks qlogs of both ends, or if files are damaged."""
    clients = sorted((run / "qlog").glob("*_client.sqlog"))
    servers = sorted((run / "qlog").glob("*_server.sqlog"))
    if not clients or not servers:
        raise no_qlogs(run, "there are no qlogs of both ends")
    check_sizes([*clients, *servers])
    with as_written(run):
        emulator = read_json(run / "mpshell.json")
        t0_us = float(emulator.get("t0_monotonic_us", 0))
        names = path_names(run)
        flight = Flight([], [], [], {}, [], _links(run, config))
        for file in servers:
            other = file.with_name(file.name.replace("_server", "_client"))
            server = _End(file, t0_us, names, "remote")
            client = _End(other, t0_us, names, "local") if other.is_file() else None
            _join(flight, server, client)
    return flight


def _join(flight: Flight, server: _End, client: _End | None) -> None:
    """Adds one connection, from the qlogs of both ends."""
    for path, states in server.states.items():
        flight.states.setdefault(path, []).extend(states)
    flight.gate += server.gate
    if client is None:
        flight.down += server.sent.values()
        return
    if server.migrated or client.migrated:
        server.in_one_space()
        client.in_one_space()
    for key, packet in server.sent.items():
        packet.received_s = client.received.get(key)
    for key, packet in client.sent.items():
        packet.received_s = server.received.get(key)
    flight.down += server.sent.values()
    flight.up += client.sent.values()
    flight.requests += client.requests
