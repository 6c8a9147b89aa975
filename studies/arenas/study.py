"""Compares campaigns of the same experiment that ran in different arenas.

The figures of each scheme over all pairs: the median RCT with its interval over runs, its ratio to the first
campaign's over the runs that both have, the Kolmogorov-Smirnov distance between the two distributions, and the chunks.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import Field

from railyard.experiment.model import Strict
from railyard.results.records import Run, load_campaign
from railyard.stats.bootstrap import Layout
from railyard.stats.intervals import Interval
from railyard.stats.pooled import bootstrap, paired, quantile_of
from railyard.stats.statistics import ks_distance
from railyard.studies.study import Data, markdown

MEDIAN = quantile_of(0.5)
UNKNOWN = "–"
COLUMNS = ("campaign", "median s", "ratio", "KS", "chunks", "ends")


def _rcts(runs: Sequence[Run]) -> list[list[float]]:
    return [[chunk.rct_s for chunk in run.chunks] for run in runs]


class Settings(Strict):
    campaigns: list[Path] = Field(min_length=1)  # folders of results


class Row(Data):
    """One scheme in one campaign."""

    label: str
    campaign: str
    is_first: bool
    median_s: Interval | None = None
    ratio: Interval | None = None  # to the first campaign's
    ks: float | None = None
    chunks: int
    ends: str


class Measured(Data):
    rows: list[Row]


def measure(settings: Settings) -> Measured:
    campaigns = [load_campaign(folder)[1] for folder in settings.campaigns]
    rows = []
    for label in dict.fromkeys(run.label for run in campaigns[0]):
        of_label = [[run for run in runs if run.label == label] for runs in campaigns]
        for folder, runs in zip(settings.campaigns, of_label, strict=True):
            rows.append(_row(label, folder.name, runs, of_label[0]))
    return Measured(rows=rows)


def _row(label: str, campaign: str, runs: Sequence[Run], first: Sequence[Run]) -> Row:
    valid = [run for run in runs if not run.void]
    if not valid:
        return Row(label=label, campaign=campaign, is_first=runs is first, chunks=0, ends="void" if runs else "none")
    theirs = {run.run_id: run for run in first if not run.void}
    both = [run for run in valid if run.run_id in theirs]
    others = [theirs[run.run_id] for run in both]
    ratio = paired(_rcts(both), _rcts(others), MEDIAN, lambda a, b: a / b, Layout.of_independent(len(both)))
    distance = ks_distance(*([rct for run in _rcts(side) for rct in run] for side in (both, others)))
    cut = [f"{run.pair} s{run.seed} {run.outcome.replace('_', ' ')}" for run in valid if run.outcome != "complete"]
    void = len(runs) - len(valid)
    return Row(
        label=label,
        campaign=campaign,
        is_first=runs is first,
        median_s=bootstrap(_rcts(valid), MEDIAN, Layout.of_independent(len(valid))),
        ratio=None if runs is first else ratio,
        ks=None if runs is first else distance,
        chunks=sum(len(run.chunks) for run in valid),
        ends=", ".join([*cut, *([f"{void} void"] if void else [])]) or "all complete",
    )


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    yield "arenas", markdown(["scheme", *COLUMNS], [_cells(row) for row in measured.rows], left=2)


def _cells(row: Row) -> list[str]:
    ratio, median = (UNKNOWN if one is None else one.text(".3f") for one in (row.ratio, row.median_s))
    ks = UNKNOWN if row.ks is None else f"{row.ks:.3f}"
    return [row.label if row.is_first else "", row.campaign, median, ratio, ks, str(row.chunks), row.ends]
