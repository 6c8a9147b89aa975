"""The index of a trace library, `index.yaml`: the traces of each pair, and the properties of its paths."""

import math
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from textwrap import indent
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field

from railyard.base.errors import UserError
from railyard.base.files import write_whole, writing
from railyard.base.models import StrictModel, Text
from railyard.base.yamlfile import YamlDocument, document_of, parse, read_text
from railyard.traces.names import DeviceName, Kind, OfAPair, PairName, QueueSpec, Recorded, Technology
from railyard.traces.settings import LinkSettings, Value, split_files
from railyard.traces.trace import TraceError

INDEX_FILE = "index.yaml"
MAX_BASE_RTT_MS = 60_000.0
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_HEADER = "# Trace pairs of this library; `railyard traces generate` adds to it. Fields: docs/reference/traces.md.\n"

MADE_OF_SINGLES = (
    "This pair was made of two single recordings, which were not recorded together: correlations between its paths "
    "are accidental."
)

ResolutionMs = Annotated[float, Field(gt=0, le=3_600_000, allow_inf_nan=False)]


def bad_name(name: str | None) -> TraceError:
    return TraceError(f"'{name}' cannot name a pair; use letters, digits, '-', '_' and '.', at most 64 of them")


@dataclass(frozen=True)
class PairPath:
    """One path of a pair, its traces found."""

    name: str
    technology: Technology
    uplink: Path
    downlink: Path
    base_rtt_ms: float
    queue: str
    settings: dict[str, Value] = field(default_factory=dict)
    """Further settings of the link, docs/reference/links.md."""
    delay_traces: dict[str, Path] = field(default_factory=dict)
    """The paths of the files that settings name, such as delay_trace, up_delay_trace and down_delay_trace."""
    kind: Kind | None = None
    """The kind of its traces. None: unknown."""
    resolution_ms: float | None = None
    """The resolution of its traces, ms: shorter silences are not in them. None: unknown."""

    @property
    def delay_ms(self) -> float:
        """One-way delay of each direction: half of the base RTT, ms."""
        return self.base_rtt_ms / 2

    @property
    def is_cellular(self) -> bool:
        """Whether its settings have a radio that sleeps, whatever its name."""
        return any(self.settings.get(f"{way}radio", "off") != "off" for way in ("", "up_", "down_"))


@dataclass(frozen=True)
class Pair:
    """Traces that are replayed together, one path each."""

    name: str
    scenario: str
    licence: str
    source: str
    paths: tuple[PairPath, ...]
    library: Path
    """The index that has it."""
    recorded: Recorded | None = None
    """None: the pair is generated, or it is unknown."""

    @property
    def caveat(self) -> str:
        """One sentence about a pair of two single recordings; empty for all others."""
        return MADE_OF_SINGLES if self.recorded == "separately" else ""


class PathEntry(StrictModel):
    """One path as the index writes it; traces are relative to the index."""

    name: DeviceName
    technology: Technology
    uplink: Text
    downlink: Text
    base_rtt_ms: Annotated[float, Field(ge=0, le=MAX_BASE_RTT_MS)]
    queue: QueueSpec
    link: LinkSettings = Field(default={})
    kind: Kind | None = None
    resolution_ms: ResolutionMs | None = None


class PairWords(StrictModel):
    """What is said of a pair, of which a recipe makes an entry."""

    name: PairName
    scenario: Text
    licence: Text
    source: Text
    recorded: Recorded | None = None
    """Whether the recordings were made together; without it nothing is said."""


class PairEntry(PairWords):
    """One pair as the index writes it."""

    paths: Annotated[tuple[PathEntry, ...], OfAPair]


class TraceIndex(StrictModel):
    """A whole index."""

    schema_: Annotated[Literal[1], Field(alias="schema")]
    pairs: tuple[PairEntry, ...]


def _find(document: YamlDocument, location: tuple[str | int, ...], name: str) -> Path:
    trace = (document.path.parent / name).resolve()
    if not trace.is_file():
        message = f"there is no trace {trace}; traces are named relative to the index"
        raise TraceError(str(document.error(location, message)))
    return trace


def _path(document: YamlDocument, location: tuple[str | int, ...], item: PathEntry) -> PairPath:
    settings, files = split_files(item.link, document.path.parent)
    return PairPath(
        name=item.name,
        technology=item.technology,
        uplink=_find(document, (*location, "uplink"), item.uplink),
        downlink=_find(document, (*location, "downlink"), item.downlink),
        base_rtt_ms=item.base_rtt_ms,
        queue=item.queue,
        settings=settings,
        delay_traces={name: _find(document, (*location, "link", name), str(files[name])) for name in files},
        kind=item.kind,
        resolution_ms=item.resolution_ms,
    )


@lru_cache(maxsize=16)  # because a command looks up many pairs
def _parsed(path: Path, text: str) -> tuple[YamlDocument, TraceIndex]:
    document = document_of(path, text)
    return document, parse(document, TraceIndex)


def read_index(path: Path) -> list[Pair]:
    """The pairs of an index. Traces must exist but are not read. Raises UserError with file and line."""
    if not path.is_file():
        raise TraceError(f"{path}: there is no such index; a trace library is a directory with an {INDEX_FILE}")
    document, index = _parsed(path, read_text(path))
    pairs: list[Pair] = []
    for number, entry in enumerate(index.pairs):
        if entry.name in {pair.name for pair in pairs}:
            message = f"the pair {entry.name!r} is already in this index; rename or remove one"
            raise TraceError(str(document.error(("pairs", number, "name"), message)))
        paths = tuple(
            _path(document, ("pairs", number, "paths", position), item) for position, item in enumerate(entry.paths)
        )
        pairs.append(Pair(entry.name, entry.scenario, entry.licence, entry.source, paths, path, entry.recorded))
    return pairs


def entry_data(entry: PairEntry) -> dict[str, object]:
    """An entry as plain data for the YAML file, with whole numbers as integers."""
    data = entry.model_dump(mode="json")
    if entry.recorded is None:
        del data["recorded"]
    for path in data["paths"]:
        for unset in [name for name in ("link", "kind", "resolution_ms") if not path[name]]:
            del path[unset]
        for name in ("base_rtt_ms", "resolution_ms"):
            if name in path and math.floor(path[name]) == path[name]:
                path[name] = int(path[name])
    return data


def _dumped(data: object) -> str:
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=110)


def _index_bytes(index: Path, entry: PairEntry) -> bytes:
    """The bytes of the index with the entry, which replaces one of the same name. All else stays as it is written,
    comments too, unless the list is in braces and brackets."""
    text = read_text(index) if index.is_file() else ""
    entries = list(parse(document_of(index, text), TraceIndex).pairs) if index.is_file() else []
    names = [known.name for known in entries]
    number = names.index(entry.name) if entry.name in names else len(entries)
    entries[number : number + 1] = [entry]
    with suppress(yaml.YAMLError, UserError):
        changed = _with_entry(text, number, entry) if text else ""
        if list(parse(document_of(index, changed), TraceIndex).pairs) == entries:
            return changed.encode()
    return (_HEADER + _dumped({"schema": 1, "pairs": [entry_data(known) for known in entries]})).encode()


def _with_entry(text: str, number: int, entry: PairEntry) -> str:
    """The text of an index with an entry in place of that of the number, or after the last one."""
    root: Any = yaml.compose(text, _LOADER)
    pairs = next(value for key, value in root.value if key.value == "pairs")
    if pairs.value:
        end = _end_line(pairs.value[min(number, len(pairs.value) - 1)])
        column = pairs.start_mark.column
    else:  # `pairs: []`
        text = text[: pairs.start_mark.index].rstrip(" ") + text[pairs.end_mark.index :]
        end, column = pairs.start_mark.line + 1, 0
    lines = [f"{line}\n" for line in text.splitlines()]
    begin = pairs.value[number].start_mark.line if number < len(pairs.value) else end
    made = indent(_dumped([entry_data(entry)]), " " * column)
    return "".join([*lines[:begin], made, *lines[end:]])


def _end_line(node: yaml.Node) -> int:
    """The line after a node's last value. Its own end mark is after the comments that follow."""
    while isinstance(node, yaml.CollectionNode) and node.value and not node.flow_style:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return int(node.end_mark.line) + (node.end_mark.column > 0)


def write_entry(library: Path, files: dict[str, bytes], entry: PairEntry) -> list[Path]:
    """Writes a pair's files into a library and enters it in the index. Returns the files. Each file is replaced
    atomically, so other processes can read the library. Raises UserError."""
    paths = {library / name: data for name, data in files.items()}
    paths[library / INDEX_FILE] = _index_bytes(library / INDEX_FILE, entry)
    with writing(library / INDEX_FILE):
        for path, data in paths.items():
            write_whole(path, data)
    return list(paths)
