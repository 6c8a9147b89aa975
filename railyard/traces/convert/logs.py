"""Reads logs of recorders: Keith Winstein's saturatr, Railyard's saturatr, iperf3, Sabre."""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from railyard.traces.convert.capacity import TUN_BYTES, Delivered, from_bins, from_packets
from railyard.traces.convert.recipe import TraceRecipe
from railyard.traces.trace import TraceError, bytes_of

RAW_LOG_HEADER = "# railyard saturatr raw log 1"
DATA_RECEIVED = b"DATA RECEIVED"
_DATA = re.compile(rb"DATA RECEIVED senderid=(-?\d+), seq=(-?\d+), send_time=(-?\d+),\s*recv_time=(\d+)")
_MAX_NS = 2**62


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as stream:
            yield from enumerate(stream, start=1)
    except OSError as error:
        raise TraceError.unreadable(path, error) from error


def read_saturatr(path: Path, recipe: TraceRecipe) -> Delivered:
    """A log of the original saturatr: each DATA RECEIVED line is a packet that the link had delivered.

    The client's log has the downlink, the server's the uplink. Acknowledgements are no deliveries of this log's side.
    """
    times: dict[int, list[int]] = {}
    for number, line in _lines(path):
        if DATA_RECEIVED not in line:
            continue
        match = _DATA.search(line)
        if match is None or int(match[4]) > _MAX_NS:
            raise TraceError(
                f"{path}:{number}: this DATA RECEIVED line has no senderid, seq, send_time and recv_time in ns as "
                "saturatr writes them; remove or correct it"
            )
        times.setdefault(int(match[1]), []).append(int(match[4]))
    if not times:
        raise TraceError(f"{path}: there is no DATA RECEIVED line; is this a log of saturatr?")
    sender = max(times) if recipe.sender_id is None else recipe.sender_id
    if sender not in times:
        known = ", ".join(str(known) for known in sorted(times))
        raise TraceError(f"{path}: there is no session with senderid {sender}; the log has {known}")
    received = np.array(sorted(times[sender]), dtype=np.int64)
    start = received[0] if recipe.t0_epoch_s is None else round(recipe.t0_epoch_s * 1e9)
    since_us = (received - start) / 1e3
    return _until_last(path, since_us, np.full(len(since_us), float(recipe.packet_bytes)))


def _until_last(path: Path, since_us: np.ndarray[Any, np.dtype[np.float64]], sizes: Any) -> Delivered:
    if since_us.max() < 0:
        raise TraceError(f"{path}: all packets arrived before t0; correct t0")
    return from_packets(since_us, sizes, (since_us.max() // 1000 + 1) * 1000)


def read_raw(path: Path, _: TraceRecipe) -> Delivered:
    """A raw log of Railyard's saturatr (docs/reference/saturatr.md)."""
    keys: dict[str, str] = {}
    columns: list[str] | None = None
    received: list[int] = []
    sizes: list[int] = []
    for number, line in _lines(path):
        text = line.decode("utf-8", errors="replace").rstrip("\n")
        if number == 1 and text != RAW_LOG_HEADER:
            raise TraceError(f"{path}:1: the first line is not '{RAW_LOG_HEADER}'; is this a raw log of saturatr?")
        if text.startswith("#"):
            key, colon, value = text[1:].partition(":")
            if colon:
                keys[key.strip()] = value.strip()
            continue
        cells = text.split(",")
        if columns is None:
            columns = cells
            missing = [name for name in ("received_us", "ip_bytes") if name not in columns]
            if missing:
                raise TraceError(f"{path}:{number}: the column {missing[0]} is missing; is this a raw log of saturatr?")
            at, size = columns.index("received_us"), columns.index("ip_bytes")
            continue
        try:
            received.append(int(cells[at]))
            sizes.append(int(cells[size]) + TUN_BYTES)
        except (ValueError, IndexError):
            raise TraceError(f"{path}:{number}: received_us or ip_bytes is no whole number; remove the line") from None
    if "train_packets" in keys:
        raise TraceError(
            f"{path}: this log is of a light recording, which is no trace of opportunities; see its .light"
        )
    try:
        duration_us = int(keys["duration_us"])
    except (KeyError, ValueError):
        raise TraceError(f"{path}: there is no '# duration_us: N' in the header; add the recording's length") from None
    if duration_us <= 0:
        raise TraceError(f"{path}: duration_us is {duration_us}; it must be positive")
    return from_packets(np.array(received, dtype=np.int64), np.array(sizes, dtype=np.int64), duration_us)


def read_iperf3(path: Path, recipe: TraceRecipe) -> Delivered:
    """The intervals of an `iperf3 --json` result: those of the receiver if the file has them."""
    try:
        data = json.loads(bytes_of(path))
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{path}: this is not JSON: {error}; run iperf3 with --json") from None
    if not isinstance(data, dict) or not data.get("intervals"):
        said = data.get("error") if isinstance(data, dict) else None
        raise TraceError(
            f"{path}: there are no intervals in it{f' (it says: {said})' if said else ''}; run iperf3 again"
        )
    try:
        rows = _iperf3_rows(data, recipe)
        edges, sizes = [float(rows[0]["start"])], []
        for row in rows:
            start, end, size = float(row["start"]), float(row["end"]), float(row["bytes"])
            if not (0 <= start < end < math.inf and 0 <= size < math.inf and start >= edges[-1] - 0.1):
                raise ValueError
            edges.append(max(end, edges[-1]))
            sizes.append(size)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        raise TraceError(
            f"{path}: an interval has no start, end and bytes as iperf3 writes them; is it complete?"
        ) from None
    since_us = (np.array(edges) - edges[0]) * 1e6
    return from_bins(since_us, np.array(sizes))


def is_sabre(head: bytes) -> bool:
    """Whether the beginning of a file is that of a network trace of Sabre."""
    return head.lstrip()[:1] == b"[" and b'"bandwidth_kbps"' in head and b'"duration_ms"' in head


def read_sabre(path: Path, _: TraceRecipe) -> Delivered:
    """A network trace of Sabre (Spiteri et al., MMSys 2018): a list of bins, each with a duration and a rate."""
    try:
        bins = [(_number(one["duration_ms"]), _number(one["bandwidth_kbps"])) for one in json.loads(bytes_of(path))]
        durations_ms, kbps = (np.array(column) for column in zip(*bins, strict=True))
    except (KeyError, TypeError, ValueError, RecursionError):
        raise TraceError(
            f"{path}: this is no list of bins with duration_ms and bandwidth_kbps as Sabre takes it; correct it"
        ) from None
    return from_bins(np.concatenate(([0.0], np.cumsum(durations_ms))) * 1e3, durations_ms * kbps / 8)


def _number(value: Any) -> float:
    number = float(value)
    if not 0 <= number < 1e12:
        raise ValueError
    return number


_IPERF_ROW = re.compile(
    rb"\[ *\d+\] +(\d{1,7}\.\d{1,3})- *(\d{1,7}\.\d{1,3}) +sec +(\d{1,9}(?:\.\d{1,3})?) (|K|M|G)Bytes\b(.*)"
)
_IPERF_BYTES = {b"": 1, b"K": 1 << 10, b"M": 1 << 20, b"G": 1 << 30}


def is_iperf_text(head: bytes) -> bool:
    """Whether the beginning of a file has the heading and a row of iperf3's text output."""
    return b"Interval" in head and _IPERF_ROW.search(head) is not None


def read_iperf_text(path: Path, _: TraceRecipe) -> Delivered:
    """The intervals that iperf3 prints without --json, of a single stream; its summary does not count.

    Printed bytes have three digits: with each interval an error of up to 0.5 %, or 50 bytes.
    """
    edges: list[float] = []
    sizes: list[float] = []
    for number, line in _lines(path):
        match = _IPERF_ROW.search(line)  # --timestamps, or a program around it, writes a time before each line
        if match is None or b"omitted" in match[5]:
            continue
        start, end = float(match[1]), float(match[2])
        if match[5].rstrip().endswith((b"sender", b"receiver")):
            break
        if not (start < end and (not edges or abs(start - edges[-1]) < 0.01)):
            raise TraceError(
                f"{path}:{number}: the interval does not follow the one before it; a text of several streams cannot be "
                "read: run iperf3 with --json"
            )
        edges = edges or [start]
        edges.append(end)
        sizes.append(float(match[3]) * _IPERF_BYTES[match[4]])
    if not sizes:
        raise TraceError(f"{path}: there is no interval in it as iperf3 prints them; run iperf3 again")
    return from_bins((np.array(edges) - edges[0]) * 1e6, np.array(sizes))


def _iperf3_rows(data: dict[str, Any], recipe: TraceRecipe) -> list[dict[str, Any]]:
    test = data.get("start", {}).get("test_start", {})
    bidirectional = bool(test.get("bidir", 0))
    name = "sum_bidir_reverse" if bidirectional and recipe.direction == "down" else "sum"
    at_server = data.get("server_output_json")
    sends = not test.get("reverse", 0) and not bidirectional
    if sends and isinstance(at_server, dict) and at_server.get("intervals"):
        data = at_server
    return [row[name] for row in data["intervals"] if not row[name].get("omitted", False)]
