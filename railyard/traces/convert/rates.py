"""Reading a table of rates, one row a bin: numbers and dates as programs and spreadsheets write them."""

from __future__ import annotations

import csv
import math
import re
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from railyard.traces.convert.capacity import Delivered, from_bins
from railyard.traces.convert.recipe import TraceRecipe
from railyard.traces.trace import OPPORTUNITY_BYTES, TraceError

_US = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}
_BYTES_PER_S = {"gbps": 1e9 / 8, "mbps": 1e6 / 8, "kbps": 1e3 / 8, "bps": 1 / 8, "bytes-per-s": 1.0}
_BYTES_PER_BIN = {"bytes": 1.0, "packets": float(OPPORTUNITY_BYTES)}


_IPERF_UNITS = {"bits/sec": 1 / 8, "Kbits/sec": 1e3 / 8, "Mbits/sec": 1e6 / 8, "Gbits/sec": 1e9 / 8}
"""Units that iperf writes behind a rate, row by row, in bytes per second."""
MAX_BYTES_PER_S = 1e14 / 8
"""100 Tbps: more is a wrong unit, or no rate."""
SHOWN = 40  # characters of a cell that a message repeats
_DECIMAL_COMMA = re.compile(r"([+-]?\d+),(\d+(?:[eE][+-]?\d+)?)")
_GNETTRACK = "%Y.%m.%d_%H.%M.%S"
"""Dates as G-NetTrack writes them: 2019.12.14_10.16.30."""


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _date_s(cell: str) -> float | None:
    """Seconds since 1970 of an ISO 8601 date and time, or one of G-NetTrack; without an offset it is in UTC."""
    try:
        date = datetime.fromisoformat(cell)
    except ValueError:
        try:
            date = datetime.strptime(cell, _GNETTRACK).replace(tzinfo=UTC)
        except ValueError:
            return None
    return (date if date.tzinfo is not None else date.replace(tzinfo=UTC)).timestamp()


def delimiter_of(line: str) -> str | None:
    """What separates the cells of a line: semicolon, tab, comma, else white space; None where there is nothing."""
    found = next((mark for mark in ";\t," if mark in line), None)
    return found or (" " if " " in line.strip() else None)


def _cells(row: list[str], delimiter: str | None) -> list[str]:
    """The cells without spaces around them; decimal commas, which only stand beside semicolons and tabs, as points."""
    cells = [cell.strip() for cell in (" ".join(row).split() if delimiter == " " else row)]
    if delimiter in (";", "\t"):
        return [".".join(match.groups()) if (match := _DECIMAL_COMMA.fullmatch(cell)) else cell for cell in cells]
    return cells


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            first = next((line for line in stream if line.strip() and not line.lstrip().startswith("#")), "")
            delimiter = delimiter_of(first)
            stream.seek(0)
            reader = csv.reader(stream, delimiter=delimiter or ",", strict=True)
            return [
                (reader.line_num, _cells(row, delimiter))
                for row in reader
                if row and any(row) and not row[0].lstrip().startswith("#")
            ]
    except OSError as error:
        raise TraceError.unreadable(path, error) from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise TraceError(f"{path}: this is not a CSV file in UTF-8: {error}") from None


def _column(path: Path, header: list[str] | None, width: int, name: str) -> int:
    if header is not None and name in header:
        return header.index(name)
    if name.isdigit() and 1 <= int(name) <= width:
        return int(name) - 1
    known = ", ".join(header) if header is not None else f"1 to {width}"
    raise TraceError(f"{path}: there is no column {name!r}; the columns are {known}")


def read_rates(path: Path, recipe: TraceRecipe) -> Delivered:
    """A rate holds from the time of its row to that of the next; the last row's bin is as long as the one before it."""
    rows = _rows(path)
    header = None
    if rows and not any(_is_number(cell) or _date_s(cell) is not None for cell in rows[0][1]):
        header = rows.pop(0)[1]
    if not rows:
        raise TraceError(f"{path}: there is no row of numbers in it")
    width = len(rows[0][1])
    timed = recipe.bin_ms is None
    time_at = _column(path, header, width, recipe.time_column or "1") if timed else None
    default = str(1 if time_at is None else time_at + 2)
    rate_at = _column(path, header, width, recipe.rate_column or default)
    rates: list[float] = []
    times: list[float] = []
    alike = 1
    for line, cells in rows:
        rate = _value(path, line, cells, rate_at, negative=False) * _own_unit(cells, rate_at, recipe)
        if rate * _BYTES_PER_S.get(recipe.unit, _BYTES_PER_BIN.get(recipe.unit, 1.0)) > MAX_BYTES_PER_S:
            raise TraceError(f"{path}:{line}: {rate:.3g} {recipe.unit} is more than 100 Tbps; give the column's unit")
        if time_at is not None:
            time, dated = _time_us(path, line, cells, time_at, recipe)
            if dated and times and time == times[-1]:
                alike += 1
                rates[-1] += (rate - rates[-1]) / alike
                continue
            alike = 1
            times.append(time)
            if len(times) > 1 and times[-1] <= times[-2]:
                raise TraceError(f"{path}:{line}: the time is not later than that of the row before; sort the rows")
        rates.append(rate)
    edges = _edges(path, times, len(rates), recipe)
    values = np.array(rates)
    if recipe.unit in _BYTES_PER_BIN:
        return from_bins(edges, values * _BYTES_PER_BIN[recipe.unit])
    return from_bins(edges, values * _BYTES_PER_S[recipe.unit] * np.diff(edges) / 1e6)


def _own_unit(cells: list[str], rate_at: int, recipe: TraceRecipe) -> float:
    """By how much the unit that the row names behind its rate is more than the recipe's."""
    named = _IPERF_UNITS.get(cells[rate_at + 1]) if rate_at + 1 < len(cells) else None
    return 1.0 if named is None or recipe.unit in _BYTES_PER_BIN else named / _BYTES_PER_S[recipe.unit]


def _time_us(path: Path, line: int, cells: list[str], column: int, recipe: TraceRecipe) -> tuple[float, bool]:
    """The time of a row in µs, and whether it is a date. Rows with the same date count with their mean rate."""
    date_s = None if column >= len(cells) or _is_number(cells[column]) else _date_s(cells[column])
    if date_s is not None:
        return round(date_s * 1e6), True
    return _value(path, line, cells, column, negative=True) * _US[recipe.time_unit], False


def _edges(
    path: Path, times: list[float], count: int, recipe: TraceRecipe
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    if recipe.bin_ms is not None:
        return np.arange(count + 1, dtype=np.float64) * recipe.bin_ms * 1e3
    if len(times) < 2:
        raise TraceError(f"{path}: a single row does not say how long its bin is; give the bins' length in ms")
    since = np.array(times) - times[0]
    return np.append(since, 2 * since[-1] - since[-2])


def _value(path: Path, line: int, cells: list[str], column: int, *, negative: bool) -> float:
    try:
        value = float(cells[column])
    except (IndexError, ValueError):
        raise TraceError(f"{path}:{line}: there is no number in column {column + 1}; correct the row") from None
    if not math.isfinite(value) or (value < 0 and not negative):
        cell = cells[column] if len(cells[column]) <= SHOWN else f"{cells[column][:SHOWN]}…"
        raise TraceError(f"{path}:{line}: {cell} cannot be a rate or a time; correct the row")
    return value
