"""The page of a gate's history: a curve for each figure of each row, with its steps."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from railyard.base.files import write_named
from railyard.gate import history
from railyard.gate.history import Series
from railyard.report.page import environment, source
from railyard.stats.steps import ALPHA, SHORTEST, Step

WIDTH, HEIGHT = 560, 70  # of a curve, in the units of its picture


@dataclass(frozen=True)
class Curve:
    """The drawing of a series."""

    series: Series
    points: str
    marks: list[float]  # the x coordinates of its steps
    lowest: str
    highest: str


@dataclass(frozen=True)
class Row:
    """One step, as a row of the table."""

    series: Series
    line: dict[str, Any]
    change: str
    before: str
    after: str
    p: float
    is_worse: bool


def _text(series: Series, value: float) -> str:
    return f"{value:.3f} s" if series.figure.is_relative else f"{100 * value:.2f} %"


def _across(line: int, count: int) -> float:
    return WIDTH * (line + 0.5) / count


def _curve(series: Series, count: int) -> Curve:
    low, high = min(series.values), max(series.values)
    span = (high - low) or 1.0
    points = [
        f"{_across(line, count):.1f},{HEIGHT * (1 - (value - low) / span):.1f}"
        for line, value in zip(series.lines, series.values, strict=True)
    ]
    marks = [_across(series.lines[step.index], count) - WIDTH * 0.5 / count for step in series.steps]
    return Curve(series, " ".join(points), marks, _text(series, low), _text(series, high))


def _row(series: Series, step: Step, lines: list[dict[str, Any]]) -> Row:
    change = series.change(step)
    return Row(
        series,
        lines[series.lines[step.index]],
        f"{100 * change:+.1f} {'%' if series.figure.is_relative else 'points'}",
        _text(series, step.before),
        _text(series, step.after),
        step.p,
        change > 0,
    )


def render(lines: list[dict[str, Any]], name: str) -> str:
    """The page as HTML text."""
    every = list(history.series_of(lines))
    rows = [_row(series, step, lines) for series in every for step in series.steps]
    return (
        environment()
        .get_template("history.html.j2")
        .render(
            name=name,
            lines=lines,
            rows=sorted(rows, key=lambda row: str(row.line["time"])),
            curves=[_curve(series, len(lines)) for series in every if len(set(series.values)) > 1],
            constant=sum(len(set(series.values)) == 1 for series in every),
            width=WIDTH,
            height=HEIGHT,
            alpha=ALPHA,
            shortest=SHORTEST,
            style=source("style.css"),
        )
    )


def write_page(file: Path) -> Path:
    """Writes the page of a history as NAME.html in the same folder. Raises UserError."""
    page = file.with_suffix(".html")
    write_named(page, render(history.read(file), file.name))
    return page
