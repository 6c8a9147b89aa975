"""The matrix as a page: the runs, each verdict with its figure and threshold, and links to the pages of failed runs."""

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from railyard.base.errors import UserError
from railyard.report.page import environment, source
from railyard.report.replay import write_replay
from railyard.stress.output import cell_words, headline, score_words, unknown_words
from railyard.stress.predicates import Evidence, Judged
from railyard.stress.run import FAIL, PASS, Cell, Matrix, Subject, replay
from railyard.stress.scenario import Scenario

WIDTH, HEIGHT = 320, 60  # of a run's curve, in units of its picture
CLASSES = {PASS: "pass", FAIL: "fail"}


@dataclass(frozen=True)
class Failure:
    """One failed cell, for the page."""

    anchor: str
    scenario: str
    stack: str
    runs: str  # "3 of 5 runs", or empty
    judged: list[Judged]
    command: str
    replay: str | None  # address of the run's page, from this one
    curve: str | None  # points of the curve of the run's progress
    end_s: float
    event_s: float


def _anchor(scenario: Scenario, number: int) -> str:
    return f"{scenario.name}--{number}"


def _curve(evidence: Evidence) -> str | None:
    """The bytes received in order over time, as points of a polyline."""
    points, end = evidence.position, evidence.end_s
    most = max((here for _, here in points), default=0.0)
    if most <= 0 or end <= 0:
        return None
    thinned = points[:: max(1, len(points) // 200)]
    if thinned[-1] != points[-1]:
        thinned.append(points[-1])
    scaled = [(WIDTH * min(at, end) / end, HEIGHT * (1 - here / most)) for at, here in thinned]
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in [*scaled, (float(WIDTH), scaled[-1][1])])


def _replay_of(folder: Path, page: Path) -> str | None:
    """Writes the run's page and returns its address, relative to the matrix. None: the run left too little for one."""
    try:
        own = write_replay(folder)
    except UserError:
        return None
    return Path(os.path.relpath(own, page.parent)).as_posix()


def _failure(scenario: Scenario, of: Subject, cell: Cell, number: int, page: Path) -> Failure:
    evidence = Evidence.of(cell.folder) if cell.folder else None
    return Failure(
        anchor=_anchor(scenario, number),
        scenario=scenario.name,
        stack=of.label,
        runs=f"{cell.failed_runs} of {cell.runs} runs" if cell.runs > 1 else "",
        judged=cell.failures,
        command=replay(scenario, of),
        replay=_replay_of(cell.folder, page) if cell.folder else None,
        curve=_curve(evidence) if evidence else None,
        end_s=evidence.end_s if evidence else 0.0,
        event_s=scenario.event_s,
    )


def _dates(matrix: Matrix) -> str:
    """The day on which the shown runs began, or the first and the last one."""
    began: set[datetime] = {
        Evidence.of(cell.folder).run.started for cell in matrix.cells.values() if cell.folder is not None
    }
    days = sorted({f"{one:%-d %B %Y}" for one in (min(began), max(began))}) if began else []
    return " to ".join(days)


def render(matrix: Matrix, page: Path) -> str:
    """The page as HTML text. `page`: its future place, to which the addresses of the runs' pages are
    relative. Writes these pages."""
    number_of = {of.label: number for number, of in enumerate(matrix.subjects)}
    failures = [_failure(one, of, cell, number_of[of.label], page) for one, of, cell in matrix.failures()]
    rows = [
        (
            scenario,
            [
                (cell_words(cell), CLASSES.get(cell.verdict, "unknown"), _anchor(scenario, number), cell.reason)
                for number, of in enumerate(matrix.subjects)
                if (cell := matrix.cells[scenario.name, of.label])
            ],
        )
        for scenario in matrix.scenarios
    ]
    template = environment().get_template("stress.html.j2")
    return template.render(
        matrix=matrix,
        rows=rows,
        failures=failures,
        scores=[score_words(matrix, of) for of in matrix.subjects],
        headline=headline(matrix),
        unknown=list(unknown_words(matrix)),
        dates=_dates(matrix),
        width=WIDTH,
        height=HEIGHT,
        style=source("style.css"),
    )
