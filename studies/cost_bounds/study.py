"""The cost of re-injection against the paper's bounds; railyard/studies/cost.py says what is measured."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from railyard.experiment.model import Strict
from railyard.stats.intervals import Interval
from railyard.studies.cost import CostRow, Study
from railyard.studies.study import Data, markdown
from railyard.studies.thresholds import Percentiles

COLUMNS = (
    *("β %", "at least %", "measured %", "at most %"),
    *(f"/ at {end}{by}" for by in ("", " by time") for end in ("least", "most")),
)


def _ratio(interval: Interval | None) -> str:
    return "–" if interval is None else interval.text(".2f")


def _cells(row: CostRow) -> list[str]:
    measured = row.measured.mapped(lambda share: 100 * share).text(".1f")
    beta, least, most = (f"{100 * share:.1f}" for share in (row.beta, row.least, row.most))
    over = (row.over_least, row.over_most, row.over_least_by_time, row.over_most_by_time)
    return [f"{row.setting[0]:g}-{row.setting[1]:g}", row.rule, beta, least, measured, most, *map(_ratio, over)]


class Settings(Strict):
    pairs: list[str] = Field(min_length=1)
    starts: int = Field(ge=1)  # of each pair, spread over its traces
    rates: list[int] = Field(min_length=1)  # of the video, bits per second
    thresholds: list[Percentiles] = Field(min_length=1)


class Measured(Data):
    rows: list[CostRow]


def measure(settings: Settings) -> Measured:
    with tempfile.TemporaryDirectory(prefix="railyard-") as folder:
        study = Study(settings.pairs, settings.starts, settings.rates, Path(folder))
        return Measured(rows=list(study.rows(settings.thresholds)))


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    yield "bounds", markdown(["(X, Y)", "rule", *COLUMNS], [_cells(row) for row in measured.rows], left=2)
