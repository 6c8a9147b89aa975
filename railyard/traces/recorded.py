"""Pairs of a collection of recorded traces, derived from its `INDEX.csv`.

The file has a line for each trace: file, scenario, technology, direction, source, licence, pair_with and more. If the
columns kind and resolution_ms are empty, the words in the columns note and resolution decide. Two downlink traces that
name each other in pair_with are a pair. Its name is the common part of the two file names: `hsr_1624_lteU.down` and
`hsr_1624_lteM.down` make `hsr_1624`. A downlink without a recorded uplink of the same name is replayed in both
directions, because a silence of one direction silences the other.
"""

import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from railyard.base.lists import distinct
from railyard.traces.index import Pair, PairPath
from railyard.traces.links import link_defaults
from railyard.traces.names import TECHNOLOGY_ORDER, Kind, Recorded, Technology
from railyard.traces.trace import TraceError

CSV_FILE = "INDEX.csv"
COLUMNS = ("file", "scenario", "technology", "direction", "source", "licence", "pair_with")
_TECHNOLOGY_WORDS: tuple[tuple[str, Technology], ...] = (
    (r"wi-?fi|starlink|satellite|\bleo\b", "wifi"),
    (r"5g[ -]?sa", "5g-sa"),
    (r"5g", "5g-nsa"),
    (r"lte|hspa|hsdpa|umts|3g|4g", "lte"),
)


@dataclass(frozen=True)
class Recording:
    """A row of an INDEX.csv."""

    place: str
    """The file and the line of the row."""
    file: Path
    scenario: str
    technology_text: str
    direction: str
    source: str
    licence: str
    pair_with: str
    pair_kind: str
    kind: Kind | None
    resolution_ms: float | None

    @property
    def technology(self) -> Technology:
        """The access technology. Raises TraceError."""
        for pattern, technology in _TECHNOLOGY_WORDS:
            if re.search(pattern, self.technology_text.lower()):
                return technology
        raise TraceError(
            f"{self.place}: the technology {self.technology_text!r} names none of "
            f"{', '.join(TECHNOLOGY_ORDER)}; name one of them in that column"
        )


_KINDS: tuple[Kind, ...] = get_args(Kind)
_GOODPUT = re.compile(r"goodput|tcp flow|iperf|file download", re.IGNORECASE)
_RESOLUTION = re.compile(r"(\d{1,6}(?:\.\d{1,3})?) ?(ms|s)\b")


def _kind(place: str, fields: dict[str, str]) -> Kind | None:
    """The kind, from the column kind or from the words of the note. None: neither has it."""
    said = fields.get("kind") or ""
    if said:
        kind = next((kind for kind in _KINDS if kind == said), None)
        if kind is None:
            raise TraceError(f"{place}: the kind {said[:40]!r} is none of {', '.join(_KINDS)}; correct it")
        return kind
    return "tcp-goodput" if _GOODPUT.search(fields.get("note") or "") else None


def _resolution_ms(place: str, fields: dict[str, str]) -> float | None:
    """The resolution, from the column resolution_ms or from the first time in the column resolution. None: unknown."""
    said = fields.get("resolution_ms") or ""
    if said:
        if not re.fullmatch(r"\d{1,7}(\.\d{1,3})?", said) or float(said) == 0:
            raise TraceError(f"{place}: the resolution {said[:40]!r} is no positive number of ms; correct it")
        return float(said)
    match = _RESOLUTION.search(fields.get("resolution") or "")
    value = float(match[1]) * (1000 if match[2] == "s" else 1) if match else 0.0
    return value or None


def _read_rows(index: Path) -> dict[str, Recording]:
    try:
        with index.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream, strict=True)
            missing = [name for name in COLUMNS if name not in (reader.fieldnames or [])]
            if missing:
                raise TraceError(
                    f"{index}:1: the column {missing[0]!r} is missing; add it to the header and the rows, with commas "
                    "between the cells"
                )
            rows = {}
            for fields in reader:
                place = f"{index}:{reader.line_num}"
                cells = {name: fields[name] for name in COLUMNS}
                short = [name for name, cell in cells.items() if cell is None]
                if short or None in fields:
                    raise TraceError(f"{place}: the row has not as many cells as the header; correct it")
                rows[cells["file"]] = Recording(
                    place, index.parent / cells["file"], cells["scenario"], cells["technology"], cells["direction"],
                    cells["source"], cells["licence"], cells["pair_with"], fields.get("pair_kind") or "",
                    _kind(place, fields), _resolution_ms(place, fields),
                )  # fmt: skip
    except OSError as error:
        raise TraceError.unreadable(index, error) from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise TraceError(f"{index}: this is not a CSV file in UTF-8: {error}") from error
    return rows


def _pair_name(first: Recording, second: Recording) -> str:
    """The parts of the file names that agree at the same place."""
    one, other = first.file.stem.split("_"), second.file.stem.split("_")
    common = [a for a, b in zip(one, other, strict=False) if a == b]
    if not common:
        raise TraceError(
            f"{first.place}: {first.file.name} and {second.file.name} have no part of their names in common "
            "to name the pair by; rename the files"
        )
    return "_".join(common)


def _device_names(rows: list[Recording], technologies: list[Technology]) -> list[str]:
    """Names of the paths: the technology, or the last part of the file name if technologies agree or that names a
    brand."""
    names = []
    for row, technology in zip(rows, technologies, strict=True):
        plain = technologies.count(technology) == 1 and technology in ("wifi", "lte")
        brand = technology == "wifi" and not re.search(r"wi-?fi", row.technology_text.lower())
        suffix = re.sub(r"[^a-z0-9-]", "", row.file.stem.split("_")[-1].lower())[:15]
        names.append(technology if (plain and not brand) or not suffix else suffix)
    return names


def _uplink(row: Recording) -> Path:
    recorded = row.file.with_suffix(".up")
    return recorded if recorded.is_file() else row.file


def _recorded(row: Recording) -> Recorded | None:
    """How the pair was recorded, from the optional column pair_kind. None: unknown."""
    if "simultaneous" not in row.pair_kind:
        return None
    return "separately" if re.search(r"\bnot\b", row.pair_kind) else "together"


def _make_pair(index: Path, rows: list[Recording]) -> Pair:
    rows = sorted(rows, key=lambda row: TECHNOLOGY_ORDER.index(row.technology))
    technologies = [row.technology for row in rows]
    names = _device_names(rows, technologies)
    if len(set(names)) != len(names):
        raise TraceError(
            f"{rows[0].place}: the paths of {rows[0].file.name} and {rows[1].file.name} would both be named "
            f"{names[0]!r}; end the file names differently"
        )
    paths = []
    for row, technology, name in zip(rows, technologies, names, strict=True):
        if not row.file.is_file():
            raise TraceError(f"{row.place}: there is no trace {row.file}; add the file or remove the row")
        link = link_defaults(row.scenario, technology)
        paths.append(
            PairPath(
                name, technology, _uplink(row).resolve(), row.file.resolve(),
                link.base_rtt_ms, link.queue, link.settings,
                kind=row.kind, resolution_ms=row.resolution_ms,
            )
        )  # fmt: skip
    first, second = rows
    return Pair(
        name=_pair_name(first, second),
        scenario=first.scenario,
        licence="; ".join(distinct([first.licence, second.licence])),
        source="; ".join(distinct([first.source, second.source])),
        paths=tuple(paths),
        library=index,
        recorded=_recorded(first),
    )


def read_recorded(index: Path) -> list[Pair]:
    """The pairs of an INDEX.csv, in its order. Raises TraceError with file and line."""
    rows = _read_rows(index)
    pairs: list[Pair] = []
    seen: set[str] = set()
    for name, row in rows.items():
        if not row.pair_with or row.direction != "down" or name in seen:
            continue
        partner = rows.get(row.pair_with)
        if partner is None or partner.pair_with != name or partner is row:
            raise TraceError(
                f"{row.place}: {name} is paired with {row.pair_with}, which has no row that says the same; "
                "let both rows name each other"
            )
        seen |= {name, row.pair_with}
        pair = _make_pair(index, [row, partner])
        if pair.name in {known.name for known in pairs}:
            raise TraceError(f"{row.place}: a second pair would be named {pair.name!r}; rename its files")
        pairs.append(pair)
    return pairs


def describe(file: Path) -> Recording | None:
    """The row of a trace in the INDEX.csv beside it. None: there is none. Raises TraceError."""
    index = file.parent / CSV_FILE
    return _read_rows(index).get(file.name) if index.is_file() else None
