"""Reads a table of rates with a row for each bin, and with numbers and dates as programs and spreadsheets write
them."""

import csv
import io
import math
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from railyard.base.words import counted
from railyard.traces.convert.capacity import Delivered, from_bins
from railyard.traces.convert.columns import US, Columns, columns_of
from railyard.traces.convert.recipe import TraceRecipe
from railyard.traces.trace import FloatArray, TraceError, bytes_of

_IPERF_UNITS = {"bits/sec": 1 / 8, "Kbits/sec": 1e3 / 8, "Mbits/sec": 1e6 / 8, "Gbits/sec": 1e9 / 8}
"""Units that iperf writes behind a rate, row by row, in bytes per second."""
MAX_BYTES_PER_S = 1e14 / 8
"""100 Tbps. A larger value has a wrong unit or is no rate."""
MAX_ASSUMED = 1000
"""Mbps: if the median is larger and the unit is unknown, the user must give it."""
MAX_ASSUMED_ONCE = 10_000
"""Mbps: the same for the largest rate, as half of the rows of a log in kbps may be idle."""
MAX_ASSUMED_STEP_S = 100
"""The same for the median time between rows and the unit of times."""
TOTALS_ROWS = 20
"""This number of rows of bytes that never decrease is a running total."""
GAP_S, GAP_STEPS = 10, 10
"""A row that lasts longer than GAP_S and GAP_STEPS medians is worth a warning."""
MISSING_STEPS = 1.5
"""A row that lasts longer than this many medians has a gap after it, where a row is missing."""
SHOWN = 40  # characters of a cell that a message repeats
_DECIMAL_COMMA = re.compile(r"([+-]?\d+),(\d+(?:[eE][+-]?\d+)?)")
_DATES = ("%Y.%m.%d_%H.%M.%S", "%a %b %d %H:%M:%S %Y", "%H:%M:%S", "%H:%M:%S.%f")
"""Dates as written by G-NetTrack (2019.12.14_10.16.30) and `date` (Wed Dec 15 16:04:38 2021), and times of day."""
_ZONE = re.compile(r" [A-Z]{3,5}(?=$| \d{4}$)")
"""The name of a time zone. It is ignored: names are ambiguous (CST is three zones), and only differences count."""


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _date_s(cell: str) -> float | None:
    """Seconds since 1970 of a date in ISO 8601 or one of _DATES, in UTC if it has no offset. None: it is no date."""
    cell = _ZONE.sub("", cell)
    for form in (None, *_DATES):
        try:
            date = datetime.fromisoformat(cell) if form is None else datetime.strptime(cell, form).replace(tzinfo=UTC)
        except ValueError:
            continue
        return (date if date.tzinfo is not None else date.replace(tzinfo=UTC)).timestamp()
    return None


def delimiter_of(line: str) -> str | None:
    """The separator of a line's cells: semicolon, tab or comma, else a space. None: the line has none."""
    delimiter = next((mark for mark in ";\t," if mark in line), None)
    return delimiter or (" " if " " in line.strip() else None)


def _cells(row: list[str], delimiter: str | None) -> list[str]:
    """The cells without spaces around them. Decimal commas, which occur only with semicolons and tabs, become
    points."""
    cells = [cell.strip() for cell in (" ".join(row).split() if delimiter == " " else row)]
    if delimiter in (";", "\t"):
        return [".".join(match.groups()) if (match := _DECIMAL_COMMA.fullmatch(cell)) else cell for cell in cells]
    return cells


def decoded(path: Path) -> str:
    """The text of a file in UTF-8 or UTF-16, else in the encoding of Windows in western Europe."""
    data = bytes_of(path)
    try:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            return data.decode("utf-16")
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            return data.decode("cp1252")
    except UnicodeDecodeError:
        raise TraceError(f"{path}: this is no text in UTF-8; save it as a CSV file in UTF-8") from None


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    stream = io.StringIO(decoded(path), newline="")
    first = next((line for line in stream if line.strip() and not line.lstrip().startswith("#")), "")
    delimiter = delimiter_of(first)
    stream.seek(0)
    try:
        reader = csv.reader(stream, delimiter=delimiter or ",", strict=True)
        return [
            (reader.line_num, _cells(row, delimiter))
            for row in reader
            if row and any(row) and not row[0].lstrip().startswith("#")
        ]
    except csv.Error as error:
        raise TraceError(f"{path}: this is not a CSV file: {error}") from None


def read_rates(path: Path, recipe: TraceRecipe) -> Delivered:
    """Reads a table. A rate lasts from the time of its row to that of the next; the last bin is as long as the one
    before."""
    rows = _rows(path)
    header = None
    if rows and not any(_is_number(cell) or _date_s(cell) is not None for cell in rows[0][1]):
        header = rows.pop(0)[1]
    if not rows:
        raise TraceError(f"{path}: there is no row of numbers in it")
    first = {at: float(cell) for at, cell in enumerate(rows[0][1]) if _is_number(cell)}
    columns = columns_of(path, recipe, header, len(rows[0][1]), first)
    _refuse_shifted(path, header, columns, rows)
    rates: list[float] = []
    times: list[float] = []
    alike = 1
    for line, cells in rows:
        rate = _value(path, line, cells, columns.rate, negative=False) * _own_unit(cells, columns)
        if rate * columns.unit.bytes_each > MAX_BYTES_PER_S:
            named = f"{rate:.3g} {columns.unit.name}"
            raise TraceError(f"{path}:{line}: {named} is more than 100 Tbps; give the column's unit")
        if columns.time is not None:
            time = _time_us(path, line, cells, columns)
            if times and time == times[-1]:
                alike += 1
                rates[-1] += (rate - rates[-1]) / alike
                continue
            alike = 1
            if times and time < times[-1]:
                raise TraceError(f"{path}:{line}: the time is earlier than that of the row before; sort the rows, "
                                 "or make a file of each recording")  # fmt: skip
            times.append(time)
        rates.append(rate)
    edges = _edges(path, times, len(rates), recipe)
    values = np.array(rates)
    _refuse_misread(path, columns, values, edges)
    in_bins = values if columns.unit.per_bin else values * np.diff(edges) / 1e6
    return replace(from_bins(edges, in_bins * columns.unit.bytes_each), note=f"{columns.words}{_gap_words(edges)}")


def _refuse_shifted(path: Path, header: list[str] | None, columns: Columns, rows: list[tuple[int, list[str]]]) -> None:
    """Refuses columns of words, and cells that are not below their column's name."""
    line, first = rows[0]
    for column in (columns.time, columns.rate):
        if column is None or column >= len(first) or _is_number(first[column]) or any(map(str.isdigit, first[column])):
            continue
        raise TraceError(f"{path}:{line}: there is no number in column {column + 1}; correct the row, or give the "
                         "columns as time-column and rate-column, or bin-ms where no column has times")  # fmt: skip
    for line, cells in rows if header is not None else ():
        if any(_is_number(cell) for cell in cells[len(header or ()) :]):
            raise TraceError(f"{path}:{line}: this row has {len(cells)} cells and the header {len(header or ())}; name "
                             "each column, and write decimals with a point")  # fmt: skip


def _refuse_misread(path: Path, columns: Columns, values: FloatArray, edges: FloatArray) -> None:
    """Refuses rates and times that only a wrong unit explains."""
    rate = float(np.median(values))
    if not columns.is_unit_known and rate > MAX_ASSUMED:
        raise TraceError(f"{path}: half of the rates are above {rate:.0f}, which is no rate in mbps; give their unit")
    if not columns.is_unit_known and values.max() > MAX_ASSUMED_ONCE:
        raise TraceError(f"{path}: the largest rate is {values.max():.0f}, which is no rate in mbps; give their unit")
    step_s = float(np.median(np.diff(edges))) / 1e6
    if columns.time is not None and not columns.is_time_unit_known and step_s >= MAX_ASSUMED_STEP_S:
        raise TraceError(f"{path}: the rows would be {step_s:g} s apart; give the unit of the times")
    if columns.unit.per_bin and len(values) >= TOTALS_ROWS and values[-1] > values[0] and np.diff(values).min() >= 0:
        raise TraceError(f"{path}: the column of {columns.unit.name} never decreases, so it is a running total; write "
                         "the difference from row to row")  # fmt: skip


def _gap_words(edges: FloatArray) -> str:
    """The number of gaps that were filled with a rate, and the longest, in words. Empty without gaps."""
    steps_s = np.diff(edges)[:-1] / 1e6  # the last one is as long as the one before it
    usual_s = float(np.median(steps_s)) if len(steps_s) else 0.0
    gaps = steps_s[steps_s > MISSING_STEPS * usual_s]
    if not len(gaps):
        return ""
    at = int(np.argmax(steps_s))
    longest = f"{steps_s[at]:g} s without a row, from {edges[at] / 1e6:g} s on"
    if steps_s[at] > max(GAP_S, GAP_STEPS * usual_s):
        others = f"; {counted(len(gaps) - 1, 'other gap')} likewise" if len(gaps) > 1 else ""
        return f"; warning: {longest}, have the rate of the row before: convert the part before or after{others}"
    if len(gaps) == 1:
        return f"; a gap has the rate of the row before: {longest}"
    return f"; {len(gaps)} gaps, {gaps.sum():g} s in all, have the rate of the row before; the longest: {longest}"


def _own_unit(cells: list[str], columns: Columns) -> float:
    """The unit that a row has after its rate, as a multiple of the column's unit."""
    named = _IPERF_UNITS.get(cells[columns.rate + 1]) if columns.rate + 1 < len(cells) else None
    return 1.0 if named is None or columns.unit.per_bin else named / columns.unit.bytes_each


def _time_us(path: Path, line: int, cells: list[str], columns: Columns) -> float:
    """The time of a row in µs. Rows with the same time count with their mean rate."""
    column = columns.time or 0
    if column < len(cells) and not _is_number(cells[column]):
        date_s = _date_s(cells[column])
        if date_s is not None:
            return round(date_s * 1e6)
        if any(character.isdigit() for character in cells[column]):
            shown = cells[column][:SHOWN]
            raise TraceError(
                f"{path}:{line}: there is no number in column {column + 1} and no date that is read: {shown}; write "
                "dates as 2021-05-03T10:00:00"
            )
    return _value(path, line, cells, column, negative=True) * US[columns.time_unit]


def _edges(path: Path, times: list[float], count: int, recipe: TraceRecipe) -> FloatArray:
    if recipe.bin_ms is not None:
        return np.arange(count + 1, dtype=np.float64) * recipe.bin_ms * 1e3
    if len(times) < 2:
        raise TraceError(f"{path}: a single row does not say how long its bin is; give the bins' length in ms, bin-ms")
    since = np.array(times) - times[0]
    return np.append(since, 2 * since[-1] - since[-2])


def _value(path: Path, line: int, cells: list[str], column: int, *, negative: bool) -> float:
    try:
        value = float(cells[column])
    except (IndexError, ValueError):
        raise TraceError(
            f"{path}:{line}: there is no number in column {column + 1}; correct or remove the row"
        ) from None
    if not math.isfinite(value) or (value < 0 and not negative):
        cell = cells[column] if len(cells[column]) <= SHOWN else f"{cells[column][:SHOWN]}…"
        raise TraceError(f"{path}:{line}: {cell} cannot be a rate or a time; correct or remove the row")
    return value
