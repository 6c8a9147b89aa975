"""Round trips of TCP connections in client-side captures: the handshake's, the next one, and the difference.

A phone that has been silent wakes its radio for the SYN. In the next round trip of the connection the radio is awake,
so this is the RTT of a connected radio, and the difference is the wake-up (docs/reference/traces.md).
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from railyard.stats.bootstrap import Layout
from railyard.stats.intervals import Interval
from railyard.stats.pooled import bootstrap, quantile_of
from railyard.stats.statistics import nearest_rank
from railyard.traces.convert.archive import streams
from railyard.traces.trace import TraceError

BLOCK = 8
"""The number of consecutive connections that are resampled together: neighbours see the same state of the network."""
_COLUMNS = ("frame.time_epoch", "tcp.srcport", "tcp.dstport", "tcp.seq", "tcp.ack", "tcp.len", "tcp.flags")
_SYN, _ACK = 0x02, 0x10


@dataclass(frozen=True)
class Packet:
    """One TCP segment, with relative sequence numbers."""

    at_s: float
    ports: tuple[int, int]
    seq: int
    ack: int
    length: int
    flags: int


@dataclass(frozen=True)
class Handshake:
    """Round trips of one connection, ms."""

    at_s: float
    syn_ms: float
    next_ms: float | None
    """The first round trip after the handshake; None if the client sent nothing that was answered, or sent it twice."""

    @property
    def wake_up_ms(self) -> float | None:
        return None if self.next_ms is None else self.syn_ms - self.next_ms


@dataclass(frozen=True)
class Quantiles:
    """Quantiles of a sample of round trips, ms."""

    count: int
    p5: float
    p25: float
    p50: Interval
    """With the 95 % interval of a bootstrap in blocks of BLOCK."""
    p75: float
    p95: float


def read_packets(name: str, stream: Iterable[str]) -> Iterator[Packet]:
    """The TCP segments in a CSV from `tshark -T fields -E separator=, -E header=y`. Raises TraceError."""
    try:
        reader = csv.DictReader(stream, strict=True)
        missing = [column for column in _COLUMNS if column not in (reader.fieldnames or [])]
        if missing:
            raise TraceError(f"{name}:1: the column {missing[0]!r} is missing; export it with `tshark -e {missing[0]}`")
        for row in reader:
            cells = [row[column] for column in _COLUMNS]
            if not all(cells):
                continue  # no TCP segment
            try:
                at_s, source, destination, seq, ack, length = float(cells[0]), *map(int, cells[1:6])
                yield Packet(at_s, (source, destination), seq, ack, length, int(cells[6], 0))
            except ValueError:
                raise TraceError(
                    f"{name}:{reader.line_num}: a cell is no number: {', '.join(cells)[:80]!r}; correct the row"
                ) from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise TraceError(f"{name}: this is not a CSV file in UTF-8: {error}") from error


def handshakes(packets: Iterable[Packet]) -> list[Handshake]:
    """The connections whose SYN was sent once and answered by a SYN-ACK (Karn's rule leaves out the others)."""
    connections: dict[tuple[int, int], list[Packet]] = {}
    for packet in sorted(packets, key=lambda packet: packet.at_s):
        client_first = packet.ports if packet.ports[::-1] not in connections else packet.ports[::-1]
        connections.setdefault(client_first, []).append(packet)
    complete = [_handshake(ports, segments) for ports, segments in connections.items()]
    return [handshake for handshake in complete if handshake is not None]


def _handshake(ports: tuple[int, int], segments: Sequence[Packet]) -> Handshake | None:
    syns = [packet for packet in segments if packet.flags & (_SYN | _ACK) == _SYN]
    answers = [packet for packet in segments if packet.flags & (_SYN | _ACK) == _SYN | _ACK]
    if len(syns) != 1 or not answers or syns[0].ports != ports:
        return None
    sent = [packet for packet in segments if packet.ports == ports and not packet.flags & _SYN]
    received = [packet for packet in segments if packet.ports != ports and not packet.flags & _SYN]
    return Handshake(syns[0].at_s, (answers[0].at_s - syns[0].at_s) * 1e3, _next_round_trip(sent, received))


def _next_round_trip(sent: Sequence[Packet], received: Sequence[Packet]) -> float | None:
    """The time from the client's first data to their acknowledgement. If the server's first segment comes before any
    data: from the third ACK to that segment (the server acknowledges the third ACK of an MPTCP subflow, RFC 6824
    section 3.2)."""
    if not sent or not received or received[0].at_s < sent[0].at_s:
        return None
    answer = received[0]
    before = [packet for packet in sent if packet.at_s < answer.at_s]
    data = [packet for packet in before if packet.length > 0]
    question = data[0] if data else before[0]
    if data:
        sent_once = sum(packet.length > 0 and packet.seq == question.seq for packet in sent) == 1
        answered = sent_once and answer.ack >= question.seq + question.length
    else:
        answered = len(before) == 1 and answer.length == 0
    return (answer.at_s - question.at_s) * 1e3 if answered else None


def read_groups(paths: Sequence[Path], group: re.Pattern[str] | None) -> dict[str, list[Handshake]]:
    """The connections of all captures by group, in the order of time. Raises TraceError.

    The pattern's groups in a capture's name are the name of its group. Captures that do not match are left out.
    """
    groups: dict[str, list[Handshake]] = {}
    for path in paths:
        with streams(path, lambda name: name.endswith(".csv")) as captures:
            for name, stream in captures:
                text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
                match = group.search(name) if group else None
                if group is None or match:
                    label = " ".join(part or "" for part in match.groups()) if match else "all"
                    groups.setdefault(label, []).extend(handshakes(read_packets(name, text)))
    for connections in groups.values():
        connections.sort(key=lambda handshake: handshake.at_s)
    return {label: groups[label] for label in sorted(groups)}


def quantiles(values: Sequence[float]) -> Quantiles | None:
    """Quantiles of values that are in the order of time. None: there are no values."""
    if not values:
        return None
    layout = Layout((tuple(range(len(values))),), (BLOCK,))
    middle = bootstrap([[value] for value in values], quantile_of(0.5), layout)
    assert middle is not None  # noqa: S101  there is a value
    p5, p25, p75, p95 = (nearest_rank(values, q) for q in (0.05, 0.25, 0.75, 0.95))
    return Quantiles(len(values), p5, p25, middle, p75, p95)
