"""Light traces and latencies by packet size (docs/reference/links.md), and folders of CellReplay and LeoReplayer."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from railyard.traces.delay import MAX_DELAY_MS, lines_of
from railyard.traces.trace import TraceError

_SIZE = re.compile(r"(\d{1,6}) (-?\d{1,7}(?:\.\d{1,9})?)")
OPPORTUNITY_BYTES = 1400
"""The bytes that an opportunity of CellReplay delivers."""
LEO_STEP_MS = 10
"""The time between two delays of LeoReplayer."""


@dataclass(frozen=True)
class Burst:
    """A row of a light trace: the time of a packet train, the delay of its first packet, and the others' offsets,
    ms."""

    at_ms: int
    delay_ms: int
    offsets_ms: tuple[int, ...]


def read_light_trace(path: Path) -> list[Burst]:
    """The rows of a light trace. Raises TraceError with file and line."""
    rows: list[Burst] = []
    for number, line in enumerate(lines_of(path), start=1):
        cells = line.split(" ")
        if len(cells) < 2 or not all(cell.isdecimal() and cell.isascii() and len(cell) <= 10 for cell in cells):
            raise TraceError(
                f"{path}:{number}: {line[:40]!r} is no 'ms delay_ms offset_ms ...' of whole numbers, separated by a "
                "space; correct the line"
            )
        at_ms, *delays_ms = map(int, cells)
        if rows and at_ms < rows[-1].at_ms:
            raise TraceError(f"{path}:{number}: the time {at_ms} comes before {rows[-1].at_ms}; sort the lines")
        if max(delays_ms) > MAX_DELAY_MS:
            raise TraceError(f"{path}:{number}: a delay is more than {MAX_DELAY_MS:g} ms; correct it")
        rows.append(Burst(at_ms, delays_ms[0], tuple(delays_ms[1:])))
    return rows


def read_size_latency(path: Path) -> list[float]:
    """The further delay of packets of 100, 200, ... bytes, ms. Raises TraceError with file and line."""
    latencies: list[float] = []
    for number, line in enumerate(lines_of(path), start=1):
        match = _SIZE.fullmatch(line)
        if match is None or int(match[1]) != 100 * number:
            raise TraceError(f"{path}:{number}: {line[:40]!r} is no '{100 * number} ms'; sizes are 100, 200, 300, ...")
        latencies.append(float(match[2]))
    return latencies


@dataclass(frozen=True)
class Layout:
    """The files of one path in a folder of recordings, by their use."""

    downlink: Path
    uplink: Path | None = None
    files: dict[str, Path] = field(default_factory=dict)
    """The files for settings of the link, by setting."""
    settings: dict[str, float] = field(default_factory=dict)


def layout_of(folder: Path) -> Layout:
    """The files of a folder of CellReplay (`down-delay-light-pdo`, `down-heavy-pdo`, `latency-offset-down` and the same
    for `up`) or LeoReplayer (one file `bw_*` and one `delay_*`). Raises TraceError."""
    cell = {way: folder / f"{way}-heavy-pdo" for way in ("up", "down")}
    light = {f"{way}_light_trace": folder / f"{way}-delay-light-pdo" for way in ("up", "down")}
    if all(file.is_file() for file in (*cell.values(), *light.values())):
        sizes = {f"{way}_size_latency": folder / f"latency-offset-{way}" for way in ("up", "down")}
        present = {name: file for name, file in sizes.items() if file.is_file()}
        return Layout(cell["down"], cell["up"], light | present, {"opportunity_bytes": OPPORTUNITY_BYTES})
    rates, delays = sorted(folder.glob("bw_*")), sorted(folder.glob("delay_*"))
    if len(rates) == 1 and len(delays) == 1:
        return Layout(rates[0], None, {"delay_trace": delays[0]})
    raise TraceError(
        f"{folder}: this is no folder of CellReplay (up-heavy-pdo, down-heavy-pdo, up-delay-light-pdo, "
        "down-delay-light-pdo) or LeoReplayer (one bw_* and one delay_*); name a trace file, or a folder of these"
    )
