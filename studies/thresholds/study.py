"""Thresholds of the double-threshold control in milliseconds, and the cost of re-injection by the paper's rule.
railyard/studies/thresholds.py measures them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import Field

from railyard.base.errors import UserError
from railyard.base.yamlfile import near_miss
from railyard.experiment.model import Experiment, SchemeEntry, Strict
from railyard.figures.rows import REINJECTION_COST
from railyard.results.pending import Place
from railyard.run.arena import arena_of
from railyard.studies.study import Data, changed, markdown, tell
from railyard.studies.thresholds import DANGER_MS, Distribution, Percentiles, measured, record_of


class Settings(Strict):
    experiment: str  # a YAML file, or its name in experiments/
    pairs: list[str] | None = Field(default=None, min_length=1)  # instead of the experiment's
    seeds: int | None = Field(default=None, ge=1)
    player: dict[str, Any] = Field(default={})  # instead of those of the experiment's player
    scheme: str | None = None  # None: the experiment's first xlink
    thresholds: list[Percentiles] = Field(min_length=1)
    arena: str = "sim"
    jobs: int | None = Field(default=None, ge=1)
    out: Path | None = None  # folder of the results; None: results/thresholds-NAME


class Row(Data):
    """A row of the table. (X, Y) is None with re-injection off."""

    setting: tuple[float, float] | None
    t_th1_ms: float | None
    t_th2_ms: float | None
    cost_least: float
    cost_most: float


class Measured(Data):
    basis: dict[str, Any]  # scheme, pairs, seeds, number of runs and samples, hash of the samples
    median_ms: float
    share_below_danger: float
    cost: float  # β
    rows: list[Row]


def measure(settings: Settings) -> Measured:
    changes = {"pairs": settings.pairs, "seeds": settings.seeds, "player": settings.player or None}
    if settings.pairs is not None:
        changes["threshold_pairs"] = []
    experiment, document = changed(settings.experiment, changes | {"arena": settings.arena})
    entry = _entry(experiment, settings.scheme)
    arena_of(settings.arena).check()
    place = Place(settings.out, tell=tell)
    name = f"thresholds-{experiment.name}"
    distribution = measured(experiment, document, entry, settings.arena, place, settings.jobs, name)
    return Measured(
        basis=record_of(distribution, experiment, entry, settings.arena),
        median_ms=distribution.th(50),
        share_below_danger=distribution.share_below(DANGER_MS),
        cost=distribution.cost,
        rows=rows_of(distribution, settings.thresholds),
    )


def _entry(experiment: Experiment, label: str | None) -> SchemeEntry:
    """The scheme whose control is off."""
    labels = {entry.base_label(): entry for entry in experiment.schemes}
    if label is not None and label not in labels:
        raise UserError(f"the experiment has no scheme '{label}'; {near_miss(label, labels)}")
    if label is not None:
        return labels[label]
    gated = [entry for entry in experiment.schemes if entry.scheme.startswith("xlink")]
    wanted = [entry for entry in gated if entry.thresholds not in (None, "off")] or gated
    if not wanted:
        raise UserError(f"the experiment {experiment.name} has no scheme xlink; name one with --set scheme=NAME.")
    return wanted[0]


def rows_of(distribution: Distribution, settings: list[tuple[float, float]]) -> list[Row]:
    """The thresholds of each setting, and the paper's lower and upper bound of the cost: β(1 − X), β(1 − Y)."""
    rows = [Row(setting=None, t_th1_ms=None, t_th2_ms=None, cost_least=0.0, cost_most=0.0)]
    for x, y in settings:
        least, most = (distribution.cost * (1 - percent / 100) for percent in (x, y))
        rows.append(
            Row(
                setting=(x, y),
                t_th1_ms=distribution.th(x),
                t_th2_ms=distribution.th(y),
                cost_least=least,
                cost_most=most,
            )
        )
    return rows


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    yield (
        "samples",
        f"{measured.basis['samples']} samples of play-time left in {measured.basis['runs']} runs with the control off: "
        f"median {measured.median_ms:.0f} ms, {100 * measured.share_below_danger:.1f} % below {DANGER_MS:g} ms; "
        f"{REINJECTION_COST.title} β = {100 * measured.cost:.2f} %",
    )
    heads = ["(X, Y)", "T_th1 ms", "T_th2 ms", "cost at least β(1−X) %", "at most β(1−Y) %"]
    yield "thresholds", markdown(heads, [_cells(row) for row in measured.rows])


def _cells(row: Row) -> list[str]:
    name = "off" if row.setting is None else "{:g}-{:g}".format(*row.setting)
    limits = ["–" if limit is None else f"{limit:.1f}" for limit in (row.t_th1_ms, row.t_th2_ms)]
    return [name, *limits, *(f"{100 * cost:.2f}" for cost in (row.cost_least, row.cost_most))]
