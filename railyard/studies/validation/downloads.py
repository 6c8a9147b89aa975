"""Reads live MPTCP downloads from lists of packets, one for each carrier and download, in tshark's CSV.

The layout is that of superlitong/hsr_mptcp: `client.EPOCH.CC.….DkB.….CARRIERn.pcap.csv`, in a folder, a tar or a zip
archive. Packets of both directions were captured at the client. The protocol defines every figure.
"""

import csv
import heapq
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from railyard.base.errors import UserError
from railyard.base.words import printable
from railyard.traces.convert.archive import streams
from railyard.traces.library import search_path

LIVE = Path("live", "hsr_mptcp.tar.xz")  # in a folder of RAILYARD_TRACE_PATH
NAME = re.compile(r"client\.(\d{1,12})\.(\w{1,16})\.[^/]*\.D(\d{1,6})\.[^/.]*\.([UM])\d*\.pcap\.csv")
TRANSFER = re.compile(r"client\.(\d{1,12})\.\w{1,16}\.[^/]*\.F\d{1,6}\.[^/.]*\.([UM])\d*\.pcap\.csv")
CARRIERS = ("U", "M")
MAX_FILES = 2_000
MAX_FILE_BYTES = 16 << 20
MAX_ROWS = 200_000
MAX_PACKETS = 2_000_000  # of all downloads
HEADER_BYTES = 1_000  # if the first segment of an HTTP response is shorter, it has only the header
FIRST_ARRIVALS = 10  # segments of an initial window (RFC 6928)
FEWEST_ARRIVALS = 3
PACKET_BYTES = (
    76  # bytes of a data packet on the link beside its payload: IP 20, TCP 32, MPTCP 20, and the emulator's 4
)
_SYN, _RST, _ACK = 0x02, 0x04, 0x10
TOGETHER_S = 0.01  # packets without payload nearer than this are no retransmission
_COLUMNS = {
    "time": "frame.time_epoch",
    "source": "ip.src",
    "target": "ip.dst",
    "source_port": "tcp.srcport",
    "target_port": "tcp.dstport",
    "seq": "tcp.seq",
    "ack": "tcp.ack",
    "length": "tcp.len",
    "flags": "tcp.flags",
    "dsn": "tcp.options.mptcp.rawdataseqno",
}


@dataclass(frozen=True)
class Packet:
    time_s: float
    source: tuple[str, str]  # address and port
    target: tuple[str, str]
    seq: int
    ack: int
    length: int  # of the payload
    flags: int
    dsn: int | None  # data sequence number, modulo 2^32


@dataclass(frozen=True)
class Subflow:
    """One TCP connection of a download."""

    carrier: str
    syns: int
    syn_rtt_s: float | None  # None: no answer
    next_rtt_s: float | None
    first_rate_bps: float | None
    first_offsets_s: tuple[float, ...]  # of the first arrivals since the first one; empty if there are too few

    @property
    def wake_up_s(self) -> float | None:
        if self.syns != 1 or self.syn_rtt_s is None or self.next_rtt_s is None:
            return None
        return max(0.0, self.syn_rtt_s - self.next_rtt_s)


@dataclass(frozen=True)
class Download:
    number: int  # from 1, in order of time
    controller: str
    size_bytes: int
    subflows: tuple[Subflow, ...] = field(repr=False)  # in order of their SYNs
    duration_s: float | None  # None: it did not finish in the recording

    @property
    def primary(self) -> str | None:
        return self.subflows[0].carrier if self.subflows else None

    def subflow(self, carrier: str) -> Subflow | None:
        """The first subflow of a carrier that was answered. None: there is none."""
        return next((one for one in self.subflows if one.carrier == carrier and one.syn_rtt_s is not None), None)


# ---- packets


def _number(text: str, base: int = 10) -> int:
    """The first value of a cell, in which tshark separates several by commas."""
    value = int(text.partition(",")[0] or "0", base)
    if not 0 <= value < 1 << 64:
        raise ValueError(text)
    return value


def _packet(cells: dict[str, str]) -> Packet:
    time_s = float(cells["time"])
    if not math.isfinite(time_s):
        raise ValueError(cells["time"])
    return Packet(
        time_s,
        (cells["source"], cells["source_port"]),
        (cells["target"], cells["target_port"]),
        seq=_number(cells["seq"]),
        ack=_number(cells["ack"]),
        length=_number(cells["length"]),
        flags=_number(cells["flags"], 16),
        dsn=_number(cells["dsn"]) if cells["dsn"] else None,
    )


def packets_of(name: str, data: bytes) -> list[Packet]:
    """The packets of a list, in order of time. Raises UserError with the line that cannot be read."""
    if len(data) > MAX_FILE_BYTES:
        raise UserError(f"{name}: it is larger than {MAX_FILE_BYTES >> 20} MiB, which no list of a download is.")
    rows = csv.reader(io.StringIO(data.decode("utf-8", errors="replace"), newline=""))
    packets: list[Packet] = []
    line = 1
    try:
        names = next(rows, [])
        places = {key: names.index(column) for key, column in _COLUMNS.items() if column in names}
        if missing := [column for key, column in _COLUMNS.items() if key not in places]:
            raise UserError(f"{name}:1: there is no column {missing[0]}; print it with tshark -e {missing[0]}.")
        for row in rows:
            line = rows.line_num
            if line > MAX_ROWS:
                raise UserError(
                    f"{name}:{line}: there are more than {MAX_ROWS} lines, which no list of a download has."
                )
            if row:
                packets.append(_packet({key: row[place] for key, place in places.items()}))
    except (ValueError, IndexError, OverflowError, csv.Error) as error:
        said = printable(str(error))[:80]
        raise UserError(
            f"{name}:{line}: this is no packet as tshark prints it ({said}); print the list again."
        ) from None
    return sorted(packets, key=lambda packet: packet.time_s)


def _next_rtt_s(packets: list[Packet], client: tuple[str, str], answer: Packet) -> float | None:
    """The time from the first packet after the handshake that needs an answer to its answer. On the first subflow that
    is the request, on others the third packet of the handshake, before which the server sends nothing. None: the packet
    was sent again before the answer, or there was no answer."""
    after = [packet for packet in packets if packet.time_s >= answer.time_s and packet is not answer]
    request = next((packet for packet in after if packet.source == client and packet.length), None)
    reply = next((packet for packet in after if packet.target == client and not packet.flags & (_SYN | _RST)), None)
    if reply is None:
        return None
    if request is not None and request.time_s <= reply.time_s:
        end = request.seq + request.length
        acknowledged = (p for p in after if p.target == client and p.ack >= end and p.time_s >= request.time_s)
        reply = next(acknowledged, None)
        sent = [p for p in after if p.source == client and p.seq == request.seq and p.length]
    else:
        sent = [packet for packet in after if packet.source == client]
    sent = [packet for packet in sent if reply is not None and packet.time_s <= reply.time_s]
    if reply is None or not sent or sent[-1].time_s - sent[0].time_s > TOGETHER_S:
        return None
    return reply.time_s - sent[0].time_s


def _first_arrivals(data: list[Packet], next_rtt_s: float | None) -> list[Packet]:
    """The first data packets. Empty if there are too few. The server may wait after the header, so a packet with the
    header alone does not count."""
    if data and data[0].seq == 1 and data[0].length < HEADER_BYTES:
        data = data[1:]
    if not data or next_rtt_s is None:
        return []
    train = [packet for packet in data if packet.time_s <= data[0].time_s + next_rtt_s / 2][:FIRST_ARRIVALS]
    return train if len(train) >= FEWEST_ARRIVALS else []


def _rate_bps(train: list[Packet]) -> float | None:
    took_s = train[-1].time_s - train[0].time_s if train else 0
    if took_s <= 0:
        return None
    return 8 * sum(packet.length + PACKET_BYTES for packet in train[1:]) / took_s


def _subflow(carrier: str, packets: list[Packet], syn: Packet) -> Subflow:
    client = syn.source
    own = [packet for packet in packets if {packet.source, packet.target} == {client, syn.target}]
    syns = [packet for packet in own if packet.source == client and packet.flags & (_SYN | _ACK) == _SYN]
    answer = next((packet for packet in own if packet.target == client and packet.flags & _SYN), None)
    data = [packet for packet in own if packet.target == client and packet.length and packet.dsn is not None]
    next_rtt_s = None if answer is None else _next_rtt_s(own, client, answer)
    train = _first_arrivals(data, next_rtt_s)
    return Subflow(
        carrier,
        syns=len(syns),
        syn_rtt_s=None if answer is None else answer.time_s - syn.time_s,
        next_rtt_s=next_rtt_s,
        first_rate_bps=_rate_bps(train),
        first_offsets_s=tuple(packet.time_s - train[0].time_s for packet in train),
    )


def _first_syns(packets: list[Packet]) -> list[Packet]:
    """The first SYN of each TCP connection."""
    first: dict[tuple[tuple[str, str], tuple[str, str]], Packet] = {}
    for packet in packets:
        if packet.flags & (_SYN | _ACK) == _SYN:
            first.setdefault((packet.source, packet.target), packet)
    return list(first.values())


def _finish_s(data: Iterable[Packet], first: Packet, size_bytes: int) -> float | None:
    """The time at which all bytes of the file had arrived. `first`: the first segment of the response. Sequence numbers
    are relative to it, as they may wrap at 2^32."""
    header = first.length if first.length < HEADER_BYTES else 0
    origin, wanted, in_order = first.dsn or 0, header + size_bytes, 0
    waiting: list[tuple[int, int]] = []  # a heap: begin and end of ranges that arrived out of order
    for packet in data:
        begin = (packet.dsn or 0) - origin & 0xFFFF_FFFF
        if begin >= wanted:  # beyond a response of this size
            continue
        heapq.heappush(waiting, (begin, begin + packet.length))
        while waiting and waiting[0][0] <= in_order:
            in_order = max(in_order, heapq.heappop(waiting)[1])
        if in_order >= wanted:
            return packet.time_s
    return None


def download_of(number: int, controller: str, size_bytes: int, lists: dict[str, list[Packet]]) -> Download:
    """A download from its lists of packets. `lists`: the packets of each carrier."""
    syns = sorted(
        ((syn, carrier) for carrier, packets in lists.items() for syn in _first_syns(packets)),
        key=lambda one: one[0].time_s,
    )
    subflows = tuple(_subflow(carrier, lists[carrier], syn) for syn, carrier in syns)
    ends = {(syn.target, syn.source) for syn, _ in syns}  # without earlier connections, whose SYN is not in it
    data = sorted(
        (
            packet
            for packets in lists.values()
            for packet in packets
            if (packet.source, packet.target) in ends and packet.length and packet.dsn is not None
        ),
        key=lambda packet: packet.time_s,
    )
    duration_s = None
    if syns:
        to_first = (syns[0][0].target, syns[0][0].source)
        first = next((one for one in data if (one.source, one.target) == to_first and one.seq == 1), None)
        finish_s = None if first is None else _finish_s(data, first, size_bytes)
        duration_s = None if finish_s is None else finish_s - syns[0][0].time_s
    return Download(number, controller, size_bytes, subflows, duration_s)


def _lists(path: Path, wanted: Callable[[str], object]) -> Iterator[tuple[str, list[Packet]]]:
    """Name and packets of each list whose name, without its folders, is wanted."""
    with streams(path, lambda name: wanted(Path(name).name)) as files:
        for name, stream in files:
            if wanted(Path(name).name):
                yield Path(name).name, packets_of(printable(name), stream.read(MAX_FILE_BYTES + 1))


def live_archive(named: Path | None) -> Path:
    """The file or folder of the recordings: the one that is named, or LIVE. Raises UserError."""
    if named is not None:
        return named
    archive = next((folder / LIVE for folder in search_path() if (folder / LIVE).is_file()), None)
    if archive is None:
        raise UserError(
            "the live downloads are not at hand; get them by `railyard traces fetch hsr-mptcp`, and name the archive "
            "with --set live=FILE."
        )
    return archive


def read_downloads(path: Path) -> list[Download]:
    """All downloads of a folder or archive, in order of time. Raises UserError if one cannot be read."""
    lists: dict[tuple[int, str, int], dict[str, list[Packet]]] = {}
    packets = 0
    for count, (name, of_carrier) in enumerate(_lists(path, NAME.fullmatch)):
        if count >= MAX_FILES:
            raise UserError(f"{path}: it has more than {MAX_FILES} lists of packets; name a folder with fewer.")
        epoch, controller, size_kb, carrier = NAME.findall(name)[0]
        of_download = lists.setdefault((int(epoch), controller, 1000 * int(size_kb)), {})
        if carrier in of_download:
            raise UserError(f"{path}: {printable(name)} is there twice for carrier {carrier}; keep one of them.")
        of_download[carrier] = of_carrier
        packets += len(of_carrier)
        if packets > MAX_PACKETS:
            raise UserError(f"{path}: it has more than {MAX_PACKETS} packets; name a folder with fewer lists.")
    if not lists:
        raise UserError(
            f"{path}: there is no list of packets of a download in this folder, tar or zip archive; they are called "
            "client.EPOCH.CC.….DkB.….CARRIER.pcap.csv, as in superlitong/hsr_mptcp."
        )
    return [
        download_of(number, *key[1:], of_download) for number, (key, of_download) in enumerate(sorted(lists.items()), 1)
    ]


def read_transfers(path: Path, wanted: Sequence[tuple[str, str]]) -> dict[tuple[str, str], list[Packet]]:
    """The packets with data from the server of the long transfers that lie beside the downloads, by the epoch in their
    name and the carrier. `wanted`: those to read."""
    transfers: dict[tuple[str, str], list[Packet]] = {}

    def asked(name: str) -> tuple[str, str] | None:
        matched = TRANSFER.fullmatch(name)
        return (matched[1], matched[2]) if matched and (matched[1], matched[2]) in wanted else None

    for name, every in _lists(path, asked):
        packets = [packet for packet in every if packet.length and packet.dsn is not None]
        sent: dict[tuple[str, str], int] = {}
        for packet in packets:
            sent[packet.source] = sent.get(packet.source, 0) + packet.length
        if (key := asked(name)) is not None and sent:
            server = max(sent, key=sent.__getitem__)
            transfers[key] = [packet for packet in packets if packet.source == server]
    return transfers


# ---- fitted values of odd downloads


@dataclass(frozen=True)
class Fitted:
    """Medians of one carrier over the fitted downloads."""

    rtt_s: float
    wake_up_s: float
    rate_bps: float
    subflows: int  # with a next RTT


def odd(downloads: Iterable[Download]) -> list[Download]:
    """The downloads to which models are fitted."""
    return [one for one in downloads if one.number % 2 == 1]


def even(downloads: Iterable[Download]) -> list[Download]:
    """The downloads that judge models: finished ones."""
    return [one for one in downloads if one.number % 2 == 0 and one.duration_s is not None]


def fit(downloads: Iterable[Download], carrier: str) -> Fitted:
    """The fitted medians of a carrier. Raises UserError if there is nothing to fit."""
    flows = [flow for one in odd(downloads) if (flow := one.subflow(carrier)) is not None]
    rtts = [flow.next_rtt_s for flow in flows if flow.next_rtt_s is not None]
    wake_ups = [flow.wake_up_s for flow in flows if flow.wake_up_s is not None]
    rates = [flow.first_rate_bps for flow in flows if flow.first_rate_bps is not None]
    if not rtts or not wake_ups or not rates:
        raise UserError(f"no odd download has round trips and first arrivals over carrier {carrier} to fit.")
    return Fitted(median(rtts), median(wake_ups), median(rates), len(rtts))
