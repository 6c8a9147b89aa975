"""Writes a run as a trace for Perfetto (ui.perfetto.dev), in the JSON form of Chrome's trace events.

The player is a process, and so is each path. A path's process has a thread for each direction with a slice for each
sent packet, packets in the link as asynchronous slices with their time in flight and in the queue, and counters. An
arrow leads from a packet to the copy of its data. Times are in microseconds on the clock of the links.
"""

import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from pydantic_core import to_json

from railyard.report.replay.series import PathSeries, Replay, read_replay
from railyard.results.anyqlog import AnyQlog, PathOfLog
from railyard.results.explain.flight import Flight, Link, Packet, PathState, read_flight
from railyard.results.records import load_run

Event = dict[str, Any]
PLAYER = 1  # process IDs; paths follow
SENDS = {"down": 1, "up": 2}  # thread IDs of a path
WAYS = {"down": "server to client", "up": "client to server"}
SEND_US = 1  # length of the slice of a sent packet, which only marks the moment


def _us(seconds: float) -> float:
    return round(seconds * 1e6, 3)


def _name(pid: int, name: str, tid: int | None = None) -> Event:
    what = "process_name" if tid is None else "thread_name"
    return {"ph": "M", "name": what, "pid": pid, "tid": tid or 0, "args": {"name": name}}


def _counter(pid: int, name: str, t_s: float, value: float) -> Event:
    return {"ph": "C", "name": name, "pid": pid, "ts": _us(t_s), "args": {name: value}}


def _span(pid: int, category: str, key: str, name: str, begin_s: float, end_s: float, **args: Any) -> list[Event]:
    """An asynchronous slice. Perfetto draws it below a slice of the same category and ID that contains it."""
    both = {"cat": category, "id": key, "pid": pid, "tid": 0, "name": name}
    begin = {"ph": "b", **both, "ts": _us(begin_s), "args": args}
    return [begin, {"ph": "e", **both, "ts": _us(max(begin_s, end_s))}]


def _player(replay: Replay) -> Iterator[Event]:
    yield _name(PLAYER, "player")
    yield _name(PLAYER, "what happens", 1)
    for number, begin_s, end_s in replay.chunks:
        until_s = replay.end_s if end_s is None else end_s
        name = f"chunk {number}{'' if end_s is not None else ', not complete'}"
        yield from _span(PLAYER, "chunks", f"chunk-{number}", name, begin_s, until_s, chunk=number)
    for number, (begin_s, end_s) in enumerate(replay.stalls):
        yield from _span(PLAYER, "stalls", f"stall-{number}", "stall", begin_s, end_s)
    for moment in replay.moments:
        yield {"ph": "i", "s": "p", "name": moment.what, "pid": PLAYER, "tid": 1, "ts": _us(moment.t_s)}
    for t_s, level in replay.buffer:
        yield _counter(PLAYER, "buffer, s", t_s, level)


def _packet(pid: int, way: str, packet: Packet, key: str, link: Link | None) -> Iterator[Event]:
    """The sending of a packet, and its time on the link until it arrives or is declared lost."""
    pieces = [f"stream {piece.stream}: {piece.first} to {piece.end}" for piece in packet.pieces]
    args: dict[str, Any] = {"packet": packet.number, "frames": pieces} if pieces else {"packet": packet.number}
    copy = "copy " if packet.copies else ""
    name = f"{copy}{packet.number}"
    yield {"ph": "X", "name": name, "pid": pid, "tid": SENDS[way], "ts": _us(packet.sent_s), "dur": SEND_US,
           "args": args}  # fmt: skip
    if packet.received_s is None:
        if packet.lost_s is not None:
            yield from _span(pid, f"{way}: lost", key, f"{name} lost", packet.sent_s, packet.lost_s, **args)
        return
    begin, *rest = _span(pid, f"{way}: packets", key, name, packet.sent_s, packet.received_s, **args)
    yield begin
    waited_ms = link.waited_ms(packet.received_s * 1000) if link is not None else None
    if link is not None and waited_ms is not None:  # the delay is before the queue (docs/reference/links.md)
        queued_s = min(packet.received_s, packet.sent_s + link.delay_ms / 1000)
        yield from _span(pid, f"{way}: packets", key, "flight", packet.sent_s, queued_s)
        yield from _span(
            pid, f"{way}: packets", key, "queue", queued_s, packet.received_s, queue_ms=round(waited_ms, 3)
        )
    yield from rest


def _flows(packets: Sequence[tuple[int, Packet]]) -> Iterator[Event]:
    """Arrows from the packet that had a piece of a stream first to the one that copies it."""
    first: dict[tuple[int, int], tuple[int, Packet]] = {}
    number = 0
    for pid, packet in sorted(packets, key=lambda one: one[1].sent_s):
        for stream, offset in sorted(packet.copies):
            before = first.get((stream, offset))
            if before is None:
                continue
            number += 1
            flow = {"cat": "copies", "name": "copy", "id": number, "tid": SENDS["down"]}
            yield {"ph": "s", **flow, "pid": before[0], "ts": _us(before[1].sent_s)}
            yield {"ph": "f", "bp": "e", **flow, "pid": pid, "ts": _us(packet.sent_s)}
        for piece in packet.pieces:
            first.setdefault((piece.stream, piece.first), (pid, packet))


def _held(pid: int, name: str, starts_s: Sequence[float], values: Sequence[float | None]) -> Iterator[Event]:
    """A counter over equal bins, with an event for each change of its value."""
    last: float | None = None
    for t_s, value in zip(starts_s, values, strict=False):
        if value is not None and value != last:
            yield _counter(pid, name, t_s, value)
            last = value


def _states(pid: int, states: Sequence[PathState]) -> Iterator[Event]:
    for name, values in (
        ("window, kB", [state.window / 1000 for state in states]),
        ("in flight, kB", [state.in_flight / 1000 for state in states]),
        ("usable", [float(state.usable) for state in states]),
    ):
        yield from _held(pid, name, [state.t_s for state in states], values)


def _series(pid: int, path: PathSeries, starts_s: Sequence[float]) -> Iterator[Event]:
    for name, values in (
        ("capacity down, Mbps", path.capacity),
        ("capacity up, Mbps", path.up_capacity),
        ("delivered down, Mbps", path.delivered),
        ("RTT, ms", path.rtt_ms),
    ):
        yield from _held(pid, name, starts_s, values)


def events_of(replay: Replay, flight: Flight) -> Iterator[Event]:
    yield from _player(replay)
    pids = {path.name: PLAYER + 1 + number for number, path in enumerate(replay.paths)}
    for path in replay.paths:
        pid = pids[path.name]
        yield _name(pid, f"path {path.name}")
        for way, tid in SENDS.items():
            yield _name(pid, f"sent, {WAYS[way]}", tid)
        yield from _series(pid, path, replay.bins.starts_s)
        yield from _states(pid, flight.states.get(path.name, ()))
    for way, packets in (("down", flight.down), ("up", flight.up)):
        for number, packet in enumerate(packets):
            if packet.path in pids:
                link = flight.links.get((packet.path, way))
                yield from _packet(pids[packet.path], way, packet, f"{way}-{number}", link)
    yield from _flows([(pids[packet.path], packet) for packet in flight.down if packet.path in pids])


def document(folder: Path) -> bytearray:
    """The trace of a run. Raises UserError if it lacks qlogs of both ends."""
    run = load_run(folder)
    about = {key: run.config[key] for key in ("experiment", "arena", "pair", "label", "seed")}
    return _text({"run": run.run_id, **about}, events_of(read_replay(folder), read_flight(folder, run.config)))


def document_of_logs(logs: Sequence[AnyQlog]) -> bytearray:
    """The trace of single qlogs of any stack: a process for each path of each file. If all files have their time 0 on
    the machine's clock, they share that clock."""
    known = [log.reference_ms for log in logs if log.reference_ms is not None]
    together = len(known) == len(logs)
    ends: list[Iterator[Event]] = []
    for number, log in enumerate(logs):
        shift_ms = known[number] - min(known) if together else 0.0
        for place, (name, path) in enumerate(log.paths.items()):
            pid = 1 + sum(len(one.paths) for one in logs[:number]) + place
            ends.append(_one_end(pid, f"{log.vantage}, path {name} ({log.name})", path, shift_ms))
    return _text({"files": ", ".join(log.name for log in logs)}, chain.from_iterable(ends))


METRICS = {
    "smoothed_rtt": ("RTT, ms", 1.0),
    "congestion_window": ("window, kB", 1000.0),
    "bytes_in_flight": ("in flight, kB", 1000.0),
}


def _one_end(pid: int, title: str, path: PathOfLog, shift_ms: float) -> Iterator[Event]:
    """Packets from sending to acknowledgement or loss, received packets, and the end's metrics."""
    yield _name(pid, title)
    yield _name(pid, "sent", 1)
    yield _name(pid, "received", 2)
    for number, packet in enumerate(path.sent):
        sent_s = (packet.sent_ms + shift_ms) / 1000
        name = f"{packet.kind} {packet.number}"
        mark = {"ph": "X", "pid": pid, "dur": SEND_US, "args": {"bytes": packet.length}}
        yield {**mark, "name": name, "tid": 1, "ts": _us(sent_s)}
        end_ms, word = (packet.acked_ms, "acknowledged") if packet.lost_ms is None else (packet.lost_ms, "lost")
        if end_ms is not None:
            yield from _span(pid, word, f"{pid}-{number}", f"{name} {word}", sent_s, (end_ms + shift_ms) / 1000)
    for time_ms, kind, number, length in path.received:
        mark = {"ph": "X", "pid": pid, "dur": SEND_US, "args": {"bytes": length}}
        yield {**mark, "name": f"{kind} {number}", "tid": 2, "ts": _us((time_ms + shift_ms) / 1000)}
    for metric, (name, scale) in METRICS.items():
        points = path.metrics[metric]
        yield from _held(pid, name, [(t + shift_ms) / 1000 for t, _ in points], [v / scale for _, v in points])


def _text(about: dict[str, Any], events: Iterable[Event]) -> bytearray:
    """The events as JSON: names first, then by time. The sort is stable, so events at one time stay in order of
    nesting."""
    texts, ends, times = bytearray(), array("q", [0]), array("d")  # as texts, which take less memory than events
    for event in events:
        texts += to_json(event)
        ends.append(len(texts))
        times.append(-math.inf if event["ph"] == "M" else event["ts"])
    placed = np.argsort(np.asarray(times), kind="stable").tolist()
    written = bytearray(to_json({"displayTimeUnit": "ms", "otherData": about})[:-1] + b',"traceEvents":[')
    for at in placed:
        written += texts[ends[at] : ends[at + 1]]
        written += b","
    return written.removesuffix(b",") + b"]}\n"
