"""Converts a measurement into a trace file, and a recipe into a pair of a library."""

import codecs
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from railyard.base.files import open_regular
from railyard.traces.convert.archive import unpacked
from railyard.traces.convert.capacity import US_PER_MS, Delivered, bytes_at, cut, from_packets, opportunities, scaled
from railyard.traces.convert.capture import read_capture
from railyard.traces.convert.ibox import MARK, read_ibox
from railyard.traces.convert.logs import (
    DATA_RECEIVED,
    RAW_LOG_HEADER,
    is_iperf_text,
    is_sabre,
    read_iperf3,
    read_iperf_text,
    read_raw,
    read_sabre,
    read_saturatr,
)
from railyard.traces.convert.microstructure import MOST_FACTOR, restored
from railyard.traces.convert.movement import is_movement_log, read_movement
from railyard.traces.convert.rates import delimiter_of, read_rates
from railyard.traces.convert.recipe import PairRecipe, TraceRecipe
from railyard.traces.convert.tshark import TIME, read_tshark
from railyard.traces.index import PairEntry, PathEntry
from railyard.traces.links import link_defaults
from railyard.traces.names import Kind
from railyard.traces.trace import (
    OPPORTUNITY_BYTES,
    TraceError,
    bytes_of,
    format_trace,
    read_trace,
    sha256_file,
    trace_of,
)

_CAPTURE_MAGIC = (
    b"\xd4\xc3\xb2\xa1",
    b"\xa1\xb2\xc3\xd4",
    b"\x4d\x3c\xb2\xa1",
    b"\xa1\xb2\x3c\x4d",
    b"\x0a\x0d\x0d\x0a",
)
_LOOKED_AT = 65_536
_LINK_LOG = b"# mahimahi mm-link ("


def read_mahimahi(path: Path, _: TraceRecipe) -> Delivered:
    """Reads a Mahimahi trace, to cut, scale or check it, or to remove foreign line ends and a byte order mark."""
    times = trace_of(path, _plain(bytes_of(path))).opportunities_ms
    # The last opportunity, which closes the period, is added again at the end of the converted trace.
    within, last = times[:-1], int(times[-1])
    return from_packets(
        np.minimum(within * 1000, last * 1000 - 1), np.full(len(within), OPPORTUNITY_BYTES), last * 1000
    )


def _plain(data: bytes) -> bytes:
    """The bytes without a byte order mark and with line ends of Unix."""
    return data.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n").replace(b"\r", b"\n")


READERS: dict[str, Callable[[Path, TraceRecipe], Delivered]] = {
    "mahimahi": read_mahimahi,
    "saturatr": read_saturatr,
    "raw": read_raw,
    "rates": read_rates,
    "movement": read_movement,
    "pcap": read_capture,
    "tshark": read_tshark,
    "iperf3": read_iperf3,
    "iperf-text": read_iperf_text,
    "ibox": read_ibox,
    "sabre": read_sabre,
}

ONLY_OF: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("unit", "time_column", "rate_column", "time_unit"), ("rates",)),
    **dict.fromkeys(("packet_bytes", "sender_id"), ("saturatr",)),
    "address": ("pcap", "tshark"),
    "t0_epoch_s": ("saturatr", "pcap", "tshark"),
    "direction": ("pcap", "tshark", "iperf3"),
}
"""The fields of a recipe that apply only to some formats."""

KINDS: dict[str, Kind] = {"saturatr": "saturated-udp", "raw": "saturated-udp", "movement": "tcp-goodput"}
"""The kind of a trace that follows from the format alone."""


def _table_format(rows: list[bytes]) -> str | None:
    """The format of a table, by its first rows. None: unknown."""
    if is_movement_log(rows):
        return "movement"
    if rows and TIME.encode() in rows[0].split(b","):
        return "tshark"
    return "rates" if rows and (b"," in rows[0] or _looks_like_rates(rows[-1])) else None


def detect_format(path: Path) -> str:
    """The format of a file by its content. Raises TraceError if it is not recognized."""
    try:
        with open_regular(path) as stream:
            head = stream.read(_LOOKED_AT)
    except OSError as error:
        raise TraceError.unreadable(path, error) from error
    if not head:
        raise TraceError(f"{path}: the file is empty; give a measurement")
    if head.startswith(_CAPTURE_MAGIC):
        return "pcap"
    if head.startswith(RAW_LOG_HEADER.encode()):
        return "raw"
    if head.lstrip()[:1] == b"{" or DATA_RECEIVED in head:
        return "saturatr" if DATA_RECEIVED in head else "ibox" if MARK in head else "iperf3"
    if is_sabre(head):
        return "sabre"
    if head.startswith(_LINK_LOG):
        raise TraceError(f"{path}:1: this is a link log, which `railyard link-stats` reads; give a measurement")
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        head = head.decode("utf-16", errors="ignore").encode()
    head = _plain(head)
    lines = head.split(b"\n")[:-1] or [head]
    if head and all(line.isdigit() for line in lines):
        return "mahimahi"
    rows = [line for line in lines if line.strip() and not line.lstrip().startswith(b"#")][:2]
    form = "iperf-text" if is_iperf_text(head) else _table_format(rows)
    if form is not None:
        return form
    raise TraceError(f"{path}: its format cannot be told from its content; name it: {', '.join(READERS)}")


def _looks_like_rates(line: bytes) -> bool:
    """Whether a row of a table without commas has a digit in it, in two cells or more."""
    text = line.decode("utf-8", errors="replace")
    delimiter = delimiter_of(text)
    return delimiter is not None and sum(cell[:1].isdigit() for cell in text.split(delimiter.strip() or None)) >= 2


@dataclass(frozen=True)
class Converted:
    """The result of one conversion."""

    data: bytes
    """The trace file."""
    format: str
    measured_bytes: float
    opportunities: int
    period_ms: int
    kind: Kind | None
    """The kind of the trace. None: it does not follow from the format."""
    resolution_ms: float | None
    provenance: dict[str, Any] | None
    """Source, donors and blocks of a restored trace; None for any other."""
    note: str
    """The decisions about columns and units, in words. Empty if there were none."""


def convert_trace(
    path: Path, recipe: TraceRecipe, find: Callable[[str], Path] = Path, shown: Callable[[str], str] = str
) -> Converted:
    """Converts a measurement into a Mahimahi trace. `find` returns the path of a donor, `shown` a field's name in
    messages.

    Raises TraceError with the file and, if possible, the line.
    """
    if recipe.member is not None:
        with unpacked(path, recipe.member) as file:
            return convert_trace(file, recipe.model_copy(update={"member": None}), find, shown)
    form = recipe.format or detect_format(path)
    for name, forms in ONLY_OF.items():
        if form not in forms and getattr(recipe, name) != TraceRecipe.model_fields[name].default:
            raise TraceError(
                f"{path}: {shown(name)} is for {', '.join(forms)}, and this is read as {form}; leave it out or name "
                "the format"
            )
    delivered = READERS[form](path, recipe)
    note, resolution_ms = delivered.note, _resolution_ms(delivered, form)
    try:
        delivered = cut(delivered, recipe.start_s * 1e6, recipe.duration_s * 1e6 if recipe.duration_s else None)
        delivered = scaled(delivered, recipe.scale)
        kind, provenance = KINDS.get(form), None
        if recipe.microstructure is not None:
            delivered, provenance, restoration = _restored(path, form, delivered, recipe, find)
            note, kind, resolution_ms = "; ".join([note] * bool(note) + [restoration]), "restored", 1.0
        times = opportunities(delivered)
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from None
    return Converted(
        format_trace(times), form, delivered.total_bytes, len(times), int(times[-1]), kind, resolution_ms, provenance,
        note,
    )  # fmt: skip


def _restored(
    path: Path, form: str, delivered: Delivered, recipe: TraceRecipe, find: Callable[[str], Path]
) -> tuple[Delivered, dict[str, Any], str]:
    """A recording in bins with the silences of donors, their provenance, and a sentence about it."""
    asked = recipe.microstructure
    assert asked is not None  # noqa: S101  by the caller
    if recipe.bin_ms is not None:
        bin_ms = round(recipe.bin_ms)
    elif delivered.stepwise:
        raise TraceError("it does not say the length of its bins, which get silences; give it in ms, bin-ms")
    else:
        bin_ms = max(1, round(float(np.median(np.diff(delivered.times_us))) / US_PER_MS))
    count = int(delivered.duration_us // (bin_ms * US_PER_MS))
    if count == 0:
        raise TraceError(f"it is shorter than one bin of {bin_ms} ms")
    bins = np.diff(bytes_at(delivered, np.arange(count + 1, dtype=np.float64) * bin_ms * US_PER_MS))
    donors = [read_trace(find(name)) for name in asked.donors]
    done = restored(bins, bin_ms, donors, asked.seed)
    provenance = {
        "schema": 1,
        "kind": "restored",
        "source": {"file": path.name, "sha256": sha256_file(path), "bin_ms": bin_ms},
        "seed": asked.seed,
        "donors": [
            {"file": one.path.name, "sha256": one.sha256, "mean_mbps": round(one.mean_mbps, 3)} for one in donors
        ],
        "evenly_spread_share": round(done.even_share, 4),
        "blocks": [asdict(block) for block in done.blocks],
    }
    restoration = (
        f"silences of {len(donors)} donors, seed {asked.seed}; {done.even_share:.0%} of the time has no stretch of "
        f"similar rates among them (a factor of {MOST_FACTOR:g}) and stays evenly spread"
    )
    return done.delivered, provenance, restoration


def provenance_bytes(provenance: dict[str, Any]) -> bytes:
    """The file beside a restored trace."""
    head = "# Where the silences of a restored trace are from: docs/reference/traces.md.\n"
    return (head + yaml.safe_dump(provenance, sort_keys=False, allow_unicode=True)).encode()


def _resolution_ms(delivered: Delivered, form: str) -> float | None:
    """The resolution in ms: 1 for packets, the usual length for bins. None for a trace, whose origin is unknown."""
    if form == "mahimahi":
        return None
    return 1.0 if delivered.stepwise else round(float(np.median(np.diff(delivered.times_us))) / US_PER_MS, 3)


def convert_pair(recipe: PairRecipe, find: Callable[[str], Path]) -> tuple[dict[str, bytes], PairEntry]:
    """The traces of a pair by file name, and its entry in an index. `find` returns the path of a recipe's file."""
    files: dict[str, bytes] = {}
    entries = []
    for path in recipe.paths:
        names, done = {}, {}
        for direction, trace in (("down", path.downlink), ("up", path.uplink)):
            if trace is None:
                continue
            names[direction] = f"{recipe.name}.{path.name}.{direction}"
            converted = done[direction] = convert_trace(find(trace.file), trace, find)
            files[names[direction]] = converted.data
            if converted.provenance is not None:
                files[f"{names[direction]}.yaml"] = provenance_bytes(converted.provenance)
        link = link_defaults(recipe.scenario, path.technology)
        entries.append(
            PathEntry(
                name=path.name,
                technology=path.technology,
                uplink=names.get("up", names["down"]),
                downlink=names["down"],
                base_rtt_ms=link.base_rtt_ms if path.base_rtt_ms is None else path.base_rtt_ms,
                queue=path.queue or link.queue,
                kind=path.kind or done["down"].kind,
                resolution_ms=path.resolution_ms or done["down"].resolution_ms,
                link=link.settings if path.link is None else path.link,
            )
        )
    return files, PairEntry(**recipe.model_dump(exclude={"paths"}), paths=tuple(entries))
