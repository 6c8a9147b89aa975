"""Schemes with other settings of paths, compared with the same ones without: docs/results/transport.md."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import Field

from railyard.base.errors import UserError
from railyard.base.lists import distinct
from railyard.base.page import Table
from railyard.base.yamlfile import near_miss
from railyard.experiment.model import Strict
from railyard.figures import rows
from railyard.results import differences
from railyard.results.differences import Difference
from railyard.results.records import Run
from railyard.run.arena import arena_of
from railyard.studies import recorded
from railyard.studies.study import Data, tell

LEVELS = (rows.RCT_MEDIAN, rows.RCT_P95, rows.RCT_P99, rows.REBUFFER_RATE)
CHANGES = (rows.RCT_MEDIAN, rows.RCT_P95, rows.REBUFFER_RATE)


class Settings(Strict):
    experiment: str  # a YAML file, or its name in experiments/
    against: dict[str, list[str]]  # schemes, by the one that they are compared with
    starts: int | None = Field(default=None, ge=1)  # of each pair, instead of the experiment's
    jobs: int | None = Field(default=None, ge=1)  # None: one for each core
    out: Path | None = None  # folder of the campaign's folder; None: results/


class Measured(Data):
    found: dict[str, Table]


def measure(settings: Settings) -> Measured:
    jobs = settings.jobs or arena_of("sim").default_jobs()
    fewer, called = ({}, "") if settings.starts is None else ({"seeds": settings.starts}, f"{settings.starts}")
    runs = recorded.campaign(settings.experiment, settings.out, jobs, tell, fewer, called)
    # As `railyard compare` does it: a family is all schemes against one.
    known = distinct(run.label for run in runs)
    if unknown := [label for labels in settings.against.values() for label in labels if label not in known]:
        raise UserError(f"no run of scheme '{unknown[0]}'; {near_miss(unknown[0], known)}")
    every = differences.differences(runs, differences.asked(runs, [*settings.against]))
    return Measured(found={to: table(runs, to, labels, every) for to, labels in settings.against.items()})


def table(runs: Sequence[Run], reference: str, labels: Sequence[str], compared: Sequence[Difference]) -> Table:
    by_name = {(one.figure.name, one.label, one.against): one for one in compared}
    cells = []
    for label in (reference, *labels):
        own = [run for run in runs if run.label == label]
        levels = [recorded.cell(figure, own, []) for figure in LEVELS]
        against = [by_name.get((figure.name, label, reference)) for figure in CHANGES]
        changes = ["" if one is None else f"{one.words} {one.verdict}" for one in against]
        moves = [run.migrations for run in own if run.migrations is not None]
        cells.append([f"`{label}`", *levels, *changes, f"{sum(moves) / len(moves):.2f}" if moves else ""])
    titles = [f"{figure.title} {figure.unit}" for figure in LEVELS]
    against_first = [f"{figure.title} against `{reference}`" for figure in CHANGES]
    heads = ["scheme", *titles, *against_first, "migrations a play"]
    return Table(heads=heads, align="l" * (len(heads) - 1) + "r", rows=cells)


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    for reference, of_reference in measured.found.items():
        yield reference, of_reference.markdown
