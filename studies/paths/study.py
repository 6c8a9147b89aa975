"""Schemes with other settings of paths, compared with the same ones without: docs/results/transport.md."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import Field

from railyard.base.errors import UserError
from railyard.base.lists import distinct, grouped
from railyard.base.yamlfile import near_miss
from railyard.experiment.model import Strict
from railyard.figures import rows
from railyard.results import differences
from railyard.results.records import Run
from railyard.run.arena import arena_of
from railyard.run.resolve import resolve
from railyard.stats.intervals import Interval
from railyard.studies import recorded
from railyard.studies.claims import Compared
from railyard.studies.study import Data, changed, markdown, tell
from railyard.studies.thresholds import left_open

LEVELS = (rows.RCT_MEDIAN, rows.RCT_P95, rows.RCT_P99, rows.REBUFFER_RATE)
CHANGES = (rows.RCT_MEDIAN, rows.RCT_P95, rows.REBUFFER_RATE)


class Settings(Strict):
    experiment: str  # a YAML file, or its name in experiments/
    against: dict[str, list[str]] = Field(min_length=1)  # schemes, by the one that they are compared with
    starts: int | None = Field(default=None, ge=1)  # of each pair, instead of the experiment's
    jobs: int | None = Field(default=None, ge=1)  # None: one for each core
    out: Path | None = None  # folder of the campaign's folder; None: results/


class Row(Data):
    """A scheme over all pairs."""

    label: str
    levels: list[Interval | None]  # of LEVELS
    changes: list[Compared]  # of CHANGES; none of the scheme that others are compared with
    migrations: float | None  # a play


class Measured(Data):
    found: dict[str, list[Row]]


def measure(settings: Settings) -> Measured:
    experiment, document = changed(settings.experiment, {})
    known = distinct(spec.label for spec in resolve(left_open(experiment, tell), document))
    for label in (label for to, labels in settings.against.items() for label in (to, *labels)):
        if label not in known:
            raise UserError(f"no run of scheme '{label}'; {near_miss(label, known)}")
    jobs = settings.jobs or arena_of("sim").default_jobs()
    fewer, called = ({}, "") if settings.starts is None else ({"seeds": settings.starts}, f"{settings.starts}")
    return of_runs(recorded.campaign(settings.experiment, settings.out, jobs, tell, fewer, called), settings.against)


def of_runs(runs: Sequence[Run], against: Mapping[str, Sequence[str]]) -> Measured:
    by_label = grouped((run.label, run) for run in runs)
    # As `railyard compare` does it: a family is all schemes against one.
    every = differences.differences(runs, differences.asked(runs, [*against]))
    of_change = {(one.figure, one.label, one.against): recorded.compared_of(one, {}) for one in every}

    def row(label: str, to: str) -> Row:
        own = by_label[label]
        moves = [run.migrations for run in own if run.migrations is not None]
        return Row(
            label=label,
            levels=[figure.level(own, differences.layout_of(own)) for figure in LEVELS],
            changes=[of_change[figure, label, to] for figure in CHANGES if label != to],
            migrations=sum(moves) / len(moves) if moves else None,
        )

    return Measured(found={to: [row(label, to) for label in (to, *labels)] for to, labels in against.items()})


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    for reference, rows_ in measured.found.items():
        titles = [f"{figure.title} {figure.unit}" for figure in LEVELS]
        against = [f"{figure.title} against `{reference}`" for figure in CHANGES]
        heads = ["scheme", *titles, *against, "migrations a play"]
        yield reference, markdown(heads, map(_cells, rows_), left=len(heads) - 1)


def _cells(row: Row) -> list[str]:
    levels = [recorded.level_cell(figure, level) for figure, level in zip(LEVELS, row.levels, strict=True)]
    changes = [f"{one.words} {one.established}" for one in row.changes] or [""] * len(CHANGES)
    return [f"`{row.label}`", *levels, *changes, "" if row.migrations is None else f"{row.migrations:.2f}"]
