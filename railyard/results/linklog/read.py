"""Reads link logs in mm-link's text format."""

import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from railyard.base.errors import UserError
from railyard.base.files import check_regular
from railyard.traces.trace import FloatArray, IntArray

_KEPT_HEADERS = {"command line": "command", "queue": "queue"}
_TITLE = re.compile(r"^mahimahi mm-link \((?P<direction>[^)]*)\) \[(?P<trace>.*)\] > ")
_HEAD = re.compile(rb"(?:#[^\r\n]*\n)*")
_LARGEST = 2**53
_MOST_DIGITS = 15
"""A number with so few digits is less than _LARGEST."""


@dataclass(frozen=True, eq=False)
class LinkLog:
    """One direction of one link. Times are in ms since the log's base timestamp. Bytes are those of IP packets + 4 for
    each packet."""

    path: Path
    direction: str
    trace: str
    queue: str
    command: str
    opportunity_ms: FloatArray
    opportunity_bytes: IntArray
    arrival_ms: FloatArray
    arrival_bytes: IntArray
    departure_ms: FloatArray
    departure_bytes: IntArray
    delay_ms: FloatArray
    """For each departure, the time since its arrival at the queue."""
    drop_ms: FloatArray
    drop_packets: IntArray
    drop_bytes: IntArray

    @property
    def name(self) -> str:
        """The file's name without .log, such as "lte.down"."""
        return self.path.name.removesuffix(".log")

    @property
    def span_ms(self) -> tuple[float, float]:
        """The times of the first and the last event."""
        events = [t for t in (self.opportunity_ms, self.arrival_ms, self.departure_ms, self.drop_ms) if len(t)]
        return float(min(t.min() for t in events)), float(max(t.max() for t in events))


class _Events:
    """The events of one log while it is read: rows of numbers, by kind."""

    FIELDS: ClassVar[dict[str, int]] = {"#": 1, "+": 1, "-": 2, "d": 2} | {"c": 1, "s": 1, "x": 2}

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[float, ...]]] = {kind: [] for kind in self.FIELDS}
        self.arrays: dict[str, FloatArray] = {}
        """The rows that `add_all` read. They replace those in `rows`."""

    def add(self, text: str) -> None:
        """Adds one line. Ignores fields after those of the format, which are an extension. Raises ValueError."""
        fields = text.split()
        wanted = self.FIELDS[fields[1]]
        numbers = (float(fields[0]), *(float(field) for field in fields[2 : 2 + wanted]))
        if len(numbers) != wanted + 1 or not all(0 <= number <= _LARGEST for number in numbers):
            raise ValueError
        self.rows[fields[1]].append(numbers)

    def add_all(self, text: bytes) -> bool:
        """Adds all lines at once, if each is as Railyard's programs write it: whole numbers, with one space between
        fields. Otherwise adds nothing and returns False."""
        if not text.endswith(b"\n"):
            return False
        characters = np.frombuffer(text, np.uint8)
        ends = np.flatnonzero((characters < ord("0")) | (characters > ord("9")))  # of numbers: other characters
        forms = characters[ends].tobytes()
        for kind, wanted in self.FIELDS.items():
            forms = forms.replace(f" {kind}{' ' * wanted}\n".encode(), b".")
        if forms.strip(b"."):
            return False
        is_kind = (characters[ends] != ord(" ")) & (characters[ends] != ord("\n"))
        digits = np.diff(ends, prepend=-1) - 1
        has_number = ~(is_kind | np.roll(is_kind, 1))
        if np.any(digits[has_number] < 1) or np.any(digits > _MOST_DIGITS) or np.any(digits[~has_number]):
            return False
        kinds = characters[ends[is_kind]]
        numbers = np.fromstring(text.translate(_KINDS_TO_SPACES).decode(), np.float64, sep=" ")
        widths = np.zeros(256, np.int64)
        widths[[ord(kind) for kind in self.FIELDS]] = [wanted + 1 for wanted in self.FIELDS.values()]
        begins = np.cumsum(widths[kinds]) - widths[kinds]
        for kind, wanted in self.FIELDS.items():
            self.arrays[kind] = numbers[begins[kinds == ord(kind), None] + np.arange(wanted + 1)]
        return True

    def columns(self, kind: str) -> list[FloatArray]:
        rows = np.array(self.arrays.get(kind, self.rows[kind]), dtype=np.float64).reshape(-1, self.FIELDS[kind] + 1)
        return [rows[:, column] for column in range(rows.shape[1])]


_KINDS_TO_SPACES = bytes.maketrans("".join(_Events.FIELDS).encode(), b" " * len(_Events.FIELDS))


def read_link_log(path: str | Path) -> LinkLog:
    """Reads and checks a link log. Raises UserError with file and line."""
    path = Path(path)
    header = {"direction": "", "trace": "", "command": "", "queue": ""}
    base: float | None = None
    events = _Events()
    try:
        check_regular(path)
        text = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}") from error
    head = _HEAD.match(text)
    if head and events.add_all(text[head.end() :]):
        text = head[0]
    for number, line in enumerate(io.TextIOWrapper(io.BytesIO(text), encoding="utf-8", errors="replace"), start=1):
        if line.startswith("#"):
            base = _read_header(path, number, line[1:].strip(), header, base)
            continue
        try:
            events.add(line)
        except (ValueError, IndexError, KeyError):
            raise UserError(
                f"{path}:{number}: {line.strip()[:40]!r} is no event; lines are 'T # bytes', 'T + bytes', "
                "'T - bytes delay' and 'T d packets bytes'"
            ) from None
    if base is None:
        raise UserError(f"{path}: there is no '# base timestamp:' line; is this a link log?")
    if not events.arrays and not any(events.rows.values()):
        raise UserError(f"{path}: there is no event in it; was the link used?")
    return _link_log(path, header, base, events)


def _read_header(path: Path, number: int, text: str, header: dict[str, str], base: float | None) -> float | None:
    title = _TITLE.match(text)
    if title:
        header.update(title.groupdict())
    key, _, value = text.partition(": ")
    if key in _KEPT_HEADERS:
        header[_KEPT_HEADERS[key]] = value
    if key != "base timestamp":
        return base
    if not value.isdigit() or len(value) > 15:
        raise UserError(f"{path}:{number}: the base timestamp is {value[:20]!r}; it must be a whole number of ms")
    return float(value)


def _link_log(path: Path, header: dict[str, str], base: float, events: _Events) -> LinkLog:
    opportunity_ms, opportunity_bytes = events.columns("#")
    arrival_ms, arrival_bytes = events.columns("+")
    departure_ms, departure_bytes, delay_ms = events.columns("-")
    drop_ms, drop_packets, drop_bytes = events.columns("d")
    return LinkLog(
        path=path,
        **header,
        opportunity_ms=opportunity_ms - base,
        opportunity_bytes=opportunity_bytes.astype(np.int64),
        arrival_ms=arrival_ms - base,
        arrival_bytes=arrival_bytes.astype(np.int64),
        departure_ms=departure_ms - base,
        departure_bytes=departure_bytes.astype(np.int64),
        delay_ms=delay_ms,
        drop_ms=drop_ms - base,
        drop_packets=drop_packets.astype(np.int64),
        drop_bytes=drop_bytes.astype(np.int64),
    )


def link_log_of(run: Path, link: str) -> LinkLog | None:
    """The log of a run's link, such as "wifi.down". None: there is none, or it cannot be read."""
    file = run / "links" / f"{link}.log"
    try:
        return read_link_log(file) if file.is_file() else None
    except UserError:
        return None
