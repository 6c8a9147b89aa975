"""Reads packets that tshark printed as CSV (`-T fields -E header=y -E separator=,`)."""

import csv
import math
from pathlib import Path

import numpy as np

from railyard.traces.convert.capacity import TUN_BYTES, Delivered, from_epoch
from railyard.traces.convert.recipe import TraceRecipe
from railyard.traces.trace import TraceError

TIME = "frame.time_epoch"
_TCP_HEADERS = 52
"""The headers of a segment, which tcp.len does not count: IPv4, and TCP with timestamps."""
_LENGTHS = {"ip.len": 0, "tcp.len": _TCP_HEADERS}
"""Columns of lengths, the best first, with the bytes of the IP packet that they do not count."""
_MAX_IP_BYTES = 65_535
_MAX_EPOCH_S = 2**33


def read_tshark(path: Path, recipe: TraceRecipe) -> Delivered:
    """Packets to (downlink) or from (uplink) the host's address; time 0 is the first packet of the file."""
    if recipe.address is None:
        raise TraceError(f"{path}: packets need the address of the measured host, to tell downlink from uplink")
    first_s, last_s = math.inf, 0.0
    packets: list[tuple[float, int]] = []
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            rows = csv.reader(stream, strict=True)
            header = next(rows, [])
            time, size, host, extra = _columns(path, header, recipe.direction)
            for row in rows:
                if len(row) != len(header):
                    raise TraceError(f"{path}:{rows.line_num}: the row has not as many cells as the header; correct it")
                at_s, length = _packet(path, rows.line_num, row[time], row[size])
                first_s, last_s = min(first_s, at_s), max(last_s, at_s)
                if row[host] == recipe.address and length is not None:
                    packets.append((at_s, length + extra + TUN_BYTES))
    except OSError as error:
        raise TraceError.unreadable(path, error) from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise TraceError(f"{path}: this is no CSV file of tshark: {error}") from None
    if not packets:
        raise TraceError(f"{path}: there is no packet of {recipe.address} in it; check address and direction")
    start_s = first_s if recipe.t0_epoch_s is None else recipe.t0_epoch_s
    times_s, sizes = np.array(sorted(packets)).T
    return from_epoch(path, times_s, sizes, start_s, last_s)


def _columns(path: Path, header: list[str], direction: str) -> tuple[int, int, int, int]:
    """The columns of time, length and the host's address, and the bytes that the length does not count."""
    host = "ip.dst" if direction == "down" else "ip.src"
    length = next((name for name in _LENGTHS if name in header), None)
    missing = next((name for name in (TIME, host) if name not in header), "ip.len" if length is None else None)
    if missing is not None or length is None:
        raise TraceError(f"{path}:1: the column {missing} is missing; print it with -e {missing} and -E header=y")
    return header.index(TIME), header.index(length), header.index(host), _LENGTHS[length]


def _packet(path: Path, line: int, time: str, size: str) -> tuple[float, int | None]:
    """Time and length of a packet. The length is None in a row without one, for example of another protocol."""
    try:
        at_s, length = float(time), int(size) if size else None
    except ValueError:
        at_s, length = math.nan, None
    if not 0 <= at_s < _MAX_EPOCH_S or (length is not None and not 0 <= length <= _MAX_IP_BYTES):
        raise TraceError(f"{path}:{line}: there is no time in s and length in bytes in this row; correct or remove it")
    return at_s, length
