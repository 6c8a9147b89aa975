"""Splits a chunk's completion time into its parts, backwards from the arrival of its last bytes:

    request    from the player's request until the server has it
    waiting    until the server sends those bytes for the first time, after all bytes before them
    recovery   until it sends the packet in which they arrive, if that is not the first packet with them
    delivery   that packet is in the downlink

Each is split again into parts by the bound that held at each moment. The parts add up to the request completion time.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from railyard.results.explain.flight import Flight, Packet, PathState, Piece

PACKET_BYTES = 1452  # libxlink's largest datagram; a window with less room than this counts as full
NEAR_S = 0.01  # a path that sends within this time before or after is in use
SHORT_S = 1e-6


@dataclass(frozen=True)
class Part:
    """Seconds of a chunk's completion time. `path` is empty if the part belongs to no single path."""

    step: str
    bound: str
    path: str
    seconds: float


@dataclass(frozen=True)
class Share:
    """The bytes of a chunk that one path carried. Bytes that had arrived before count as duplicates."""

    path: str
    new_bytes: int
    duplicate_bytes: int
    copied_bytes: int  # re-injected ones among both
    lost_packets: int
    first_s: float | None
    last_s: float | None
    arrivals: tuple[tuple[float, int], ...]  # (time, new bytes), by time


@dataclass(frozen=True)
class Split:
    """The parts of a chunk's completion time. Times are in s since t0 of the links. `done_s` is None, and there are no
    parts, if the chunk did not complete."""

    request_s: float
    done_s: float | None
    parts: tuple[Part, ...]
    shares: tuple[Share, ...]
    last: Packet | None
    missing_bytes: int
    gate: tuple[str, ...]  # decisions of the re-injection gate while the last bytes were in flight


class _Ranges:
    """Bytes that have arrived: disjoint ranges, by offset."""

    def __init__(self) -> None:
        self._ends: list[tuple[int, int]] = []

    def add(self, first: int, end: int) -> int:
        """Adds a range. Returns the number of bytes of it that are new."""
        kept = [(a, b) for a, b in self._ends if b < first or a > end]
        joined = [(a, b) for a, b in self._ends if b >= first and a <= end]
        old = sum(min(b, end) - max(a, first) for a, b in joined if min(b, end) > max(a, first))
        low, high = min([first, *(a for a, _ in joined)]), max([end, *(b for _, b in joined)])
        self._ends = sorted([*kept, (low, high)])
        return end - first - old

    def covers_to(self, end: int) -> bool:
        return bool(self._ends) and self._ends[0][0] == 0 and self._ends[0][1] >= end

    @property
    def bytes(self) -> int:
        return sum(b - a for a, b in self._ends)


def stream_of(flight: Flight, first: int, last: int, request_s: float) -> int | None:
    """The stream of the request for these bytes of the video. Of several requests, the nearest in time. None: no
    request."""
    same = [(abs(t_s - request_s), stream) for t_s, stream, a, b in flight.requests if (a, b) == (first, last)]
    return min(same)[1] if same else None


def split(flight: Flight, stream: int, request_s: float) -> Split:
    """Splits the completion time of the chunk that this stream carried."""
    sent = flight.packets_of("down", stream)
    size = max((piece.end for packet in sent for piece in packet.pieces if piece.stream == stream), default=0)
    last, shares, missing = _arrivals(sent, stream, size)
    if last is None or last.received_s is None or missing:
        return Split(request_s, None, (), shares, None, missing, ())
    final = max((piece for piece in last.pieces if piece.stream == stream), key=lambda piece: piece.end)
    carriers = sorted((p for p in sent if any(_overlap(piece, final) for piece in p.pieces)), key=lambda p: p.sent_s)
    carriers = [packet for packet in carriers if packet.sent_s <= last.sent_s]
    first_sent = carriers[0]
    asked_s, request = _request(flight, stream, request_s, first_sent.sent_s)
    parts = (
        *request,
        *_waiting(flight, stream, asked_s, first_sent.sent_s),
        *_recovery(carriers, last),
        *_transit(flight, "delivery", last, "down"),
    )
    begin_s = first_sent.sent_s
    gate = [reason for t_s, reason in flight.gate if begin_s <= t_s <= last.received_s]
    before = [reason for t_s, reason in flight.gate if t_s < begin_s]
    return Split(
        request_s,
        last.received_s,
        tuple(part for part in parts if part.seconds > SHORT_S),
        shares,
        last,
        0,
        tuple(dict.fromkeys([*before[-1:], *gate])),
    )


def _overlap(piece: Piece, other: Piece) -> bool:
    return piece.stream == other.stream and piece.first < other.end and other.first < piece.end


def _arrivals(sent: Sequence[Packet], stream: int, size: int) -> tuple[Packet | None, tuple[Share, ...], int]:
    """The last packet with new bytes of the stream, the share of each path, and the number of bytes that never
    arrived."""
    arrived, last = _Ranges(), None
    new: dict[str, list[tuple[float, int]]] = {packet.path: [] for packet in sent}
    total, copied = dict.fromkeys(new, 0), dict.fromkeys(new, 0)
    came = sorted((p.received_s, k) for k, p in enumerate(sent) if p.received_s is not None)
    for received_s, k in came:
        packet, fresh = sent[k], 0
        for piece in packet.pieces:
            if piece.stream == stream:
                fresh += arrived.add(piece.first, piece.end)
                total[packet.path] += piece.end - piece.first
                if (stream, piece.first) in packet.copies:
                    copied[packet.path] += piece.end - piece.first
        if fresh:
            new[packet.path].append((received_s, fresh))
            last = packet
    shares = []
    for path, arrivals in new.items():
        own = sum(fresh for _, fresh in arrivals)
        lost = sum(packet.path == path and packet.lost_s is not None for packet in sent)
        first_s, last_s = (arrivals[0][0], arrivals[-1][0]) if arrivals else (None, None)
        shares.append(Share(path, own, total[path] - own, copied[path], lost, first_s, last_s, tuple(arrivals)))
    missing = 0 if arrived.covers_to(size) else size - arrived.bytes
    return last, tuple(shares), missing


def _request(flight: Flight, stream: int, request_s: float, by_s: float) -> tuple[float, list[Part]]:
    """The time at which the request was at the server, and the parts before it."""
    sent = sorted(flight.packets_of("up", stream), key=lambda packet: packet.sent_s)
    came = [packet for packet in sent if packet.received_s is not None and packet.received_s <= by_s]
    if not came:
        return by_s, [Part("request", "not in the logs", "", by_s - request_s)]
    first = min(came, key=lambda packet: packet.received_s or 0.0)
    parts = [
        Part("request", "client waits", "", sent[0].sent_s - request_s),
        *_recovery([packet for packet in sent if packet.sent_s <= first.sent_s], first, "request"),
        *_transit(flight, "request", first, "up"),
    ]
    return first.received_s or by_s, parts


def _recovery(carriers: Sequence[Packet], last: Packet, step: str = "recovery") -> list[Part]:
    """The parts between the first sending of the last bytes and that of the packet in which they arrived."""
    first = carriers[0]
    if first is last or last.sent_s <= first.sent_s:
        return []
    lost_s = first.lost_s
    if lost_s is not None and lost_s <= last.sent_s:
        return [
            Part(step, "until the loss is detected", first.path, lost_s - first.sent_s),
            Part(step, "until it is sent again", last.path, last.sent_s - lost_s),
        ]
    bound = "until a copy is sent" if last.copies else "until a probe or another path repeats it"
    return [Part(step, bound, first.path, last.sent_s - first.sent_s)]


def _transit(flight: Flight, step: str, packet: Packet, way: str) -> list[Part]:
    """The parts of a packet's time on its link: base delay, further delay before the queue, outages, and queueing."""
    link = flight.links.get((packet.path, way))
    whole_s = (packet.received_s or packet.sent_s) - packet.sent_s
    if link is None:
        return [Part(step, "on the link", packet.path, whole_s)]
    left_ms = (packet.received_s or packet.sent_s) * 1000
    waited_ms = link.waited_ms(left_ms)
    waited_s = max(0.0, whole_s - link.delay_ms / 1000) if waited_ms is None else min(whole_s, waited_ms / 1000)
    base_s = min(link.delay_ms / 1000, whole_s - waited_s)
    outage_s = min(waited_s, link.outage_ms(left_ms - waited_s * 1000, left_ms) / 1000)
    return [
        Part(step, "base delay", packet.path, base_s),
        Part(step, "wake-up or jitter", packet.path, whole_s - waited_s - base_s),
        Part(step, "outage", packet.path, outage_s),
        Part(step, "queue", packet.path, waited_s - outage_s),
    ]


def _waiting(flight: Flight, stream: int, begin_s: float, end_s: float) -> list[Part]:
    """The reasons why the server did not send the last bytes earlier: earlier requests, then, at each moment, links,
    windows or the scheduler."""
    own_s = min(packet.sent_s for packet in flight.packets_of("down", stream))
    before = bisect_left(flight.sending_s, own_s)
    others_s = flight.sending_s[before - 1] if before else begin_s
    free_s = min(max(others_s, begin_s), end_s) if own_s > begin_s else begin_s
    sums = {("earlier requests", ""): free_s - begin_s}
    changes = flight.changes_s[bisect_right(flight.changes_s, free_s) : bisect_left(flight.changes_s, end_s)]
    for low, high in pairwise(_fine(sorted({free_s, end_s, *changes}))):
        key = _bound(flight, (low + high) / 2)
        sums[key] = sums.get(key, 0.0) + high - low
    return [Part("waiting", bound, path, seconds) for (bound, path), seconds in sums.items()]


def _fine(steps: Sequence[float]) -> Iterator[float]:
    """The times, with further ones between them, so that the steps are at most 5 ms."""
    for low, high in pairwise(steps):
        count = max(1, round((high - low) / 0.005 + 0.5))
        yield from (low + (high - low) * k / count for k in range(count))
    yield steps[-1]


# From bounds that a better transport would avoid to those that no transport can.
ORDER = (
    "scheduler waits",
    "scheduler uses another path",
    "path not usable",
    "window full, link idle",
    "pacing",
    "link busy",
    "outage",
)


def _bound(flight: Flight, t_s: float) -> tuple[str, str]:
    """The bound of the sender at a moment, and its paths: the first in ORDER among the bounds of all paths."""
    bounds = []
    for path, states in flight.states.items():
        place = bisect_right(states, t_s, key=lambda state: state.t_s)
        if place:
            bounds.append((_state(flight, path, states[place - 1], t_s), path))
    if not bounds:
        return "no path yet", ""
    bound, path = min(bounds, key=lambda one: ORDER.index(one[0]))
    same = [other for one, other in bounds if one == bound]
    return bound, path if len(same) == 1 else " and ".join(sorted(same))


def _state(flight: Flight, path: str, state: PathState, t_s: float) -> str:
    link = flight.links.get((path, "down"))
    is_full = state.window > 0 and state.window - state.in_flight < PACKET_BYTES
    if link is not None:
        at_ms = t_s * 1000 + link.delay_ms
        if link.outage_ms(at_ms - 1, at_ms + 1) > 0:
            return "outage"
        if link.is_busy(at_ms):
            return "link busy"
    if not state.usable:
        return "path not usable"
    if is_full:
        return "window full, link idle"
    if state.waits:
        return "scheduler waits"
    sends = flight.sends(path, t_s - NEAR_S, t_s + NEAR_S)
    others = any(flight.sends(other, t_s - NEAR_S, t_s + NEAR_S) for other in flight.states if other != path)
    return "scheduler uses another path" if others and not sends else "pacing"
