"""Fits the population's free parameters by railyard/studies/population/fit.py. With `viewers` it fits nothing: it plays
so many of them, none of whom is in a fit, with the parameters that the population has."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml
from pydantic import Field

from railyard.arenas.sim import PROGRAM
from railyard.base.errors import UserError
from railyard.base.files import write_named
from railyard.base.paths import EXPERIMENTS_DIR, RESULTS_DIR, program
from railyard.base.yamlfile import load_yaml, parse
from railyard.experiment.model import Strict
from railyard.figures.figure import NONE
from railyard.results.shortage import Shortage
from railyard.run.folders import shown, written
from railyard.stats import quantiles
from railyard.studies.population.executors import LocalExecutor
from railyard.studies.population.fit import Fit, FitSpec, Simulator, arms_of, as_document, check, fit
from railyard.studies.population.model import load_population
from railyard.studies.study import Data, markdown, tell

IN_USE = EXPERIMENTS_DIR / "fitted" / "population.yaml"
HEADER = "# Written by `railyard study population-fit`; the figures follow from population-fit.yaml and the programs.\n"


class Settings(Strict):
    fit: Path  # what is free, and what it is fitted to; of a checkout where it is no path from here
    viewers: int | None = Field(default=None, ge=20)
    jobs: int | None = Field(default=None, ge=1)
    folder: Path | None = None  # what was simulated stays there; results/population-fit where it is not set
    out: Path | None = None  # the file that the population reads its parameters from


class Row(Data):
    """A parameter, a moment or a figure that was held out."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    measured: float | None = None
    residual: float | None = None
    weight: float | None = None
    short: str | None = None  # why so few viewers do not carry it


class Measured(Data):
    viewers: int | None
    plays: int
    distance: float | None = None
    parameters: list[Row] = Field(default=[])
    moments: list[Row]
    held_out: list[Row] = Field(default=[])


def measure(settings: Settings) -> Measured:
    begin = time.monotonic()
    file = settings.fit if settings.fit.is_file() else EXPERIMENTS_DIR.parent / settings.fit
    spec = parse(load_yaml(file), FitSpec)
    population = load_population(load_yaml(EXPERIMENTS_DIR / f"{spec.population}.yaml"))
    folder = settings.folder or RESULTS_DIR / "population-fit"
    folder.mkdir(parents=True, exist_ok=True)
    written.add(folder)
    executor = LocalExecutor(settings.jobs)
    simulator = Simulator(population, arms_of(spec, population), executor, program(PROGRAM), folder)
    if settings.viewers is not None:
        if population.parameters is None:
            raise UserError(f"the population {population.name} has no parameters; fit them first, without viewers.")
        figures = check(spec, simulator, population.parameters, settings.viewers)
        measured = Measured(
            viewers=settings.viewers, plays=simulator.plays, moments=_checked(spec, figures, settings.viewers)
        )
    else:
        best_fit = fit(spec, simulator, tell)
        measured = _fitted(spec, best_fit)
        if settings.out is not None:
            text = yaml.safe_dump(as_document(spec, best_fit), sort_keys=False, width=120)
            write_named(settings.out, HEADER + text)
            tell(f"written: {shown(settings.out)}")
    tell(f"{measured.plays} plays in {(time.monotonic() - begin) / 60:.1f} minutes")
    return measured


def _checked(spec: FitSpec, figures: Sequence[float], viewers: int) -> list[Row]:
    """The moments of `viewers` viewers, without the quantiles that they do not carry."""
    rows = []
    for moment, value in zip([*spec.moments, *spec.held_out], figures, strict=True):
        needed = quantiles.values_for(moment.q) if moment.q else 0
        short = None if viewers >= needed else str(Shortage(needed, viewers, "viewers", f"--set viewers={needed}"))
        residual = moment.residual(value)
        rows.append(Row(name=moment.name, value=value, measured=moment.measured, residual=residual, short=short))
    return rows


def _fitted(spec: FitSpec, fit: Fit) -> Measured:
    return Measured(
        viewers=None,
        plays=fit.plays,
        distance=fit.distance,
        parameters=[
            Row(name=name, value=one.value, low=one.low, high=one.high) for name, one in fit.parameters.items()
        ],
        moments=[
            Row(
                name=moment.name,
                value=value,
                measured=moment.measured,
                residual=moment.residual(value),
                weight=1 / moment.tolerance**2,
            )
            for moment, value in zip(spec.moments, fit.simulated, strict=True)
        ],
        held_out=[
            Row(name=moment.name, value=one.value, low=one.low, high=one.high, measured=moment.measured)
            for moment, one in zip(spec.held_out, fit.predicted, strict=True)
        ],
    )


def _in_use() -> dict[str, Row]:
    """The figures of the fit that the population reads, by name."""
    kept = load_yaml(IN_USE).data
    ends = {name: {"low": low, "high": high} for name, (low, high) in kept["intervals"].items()}
    rows = [Row(name=name, value=value, **ends.get(name, {})) for name, value in kept["parameters"].items()]
    rows += [
        Row(name=one["name"], value=one["simulated"], residual=one["residual"], weight=one["weight"])
        for one in kept["moments"]
    ]
    for one in kept["held_out"]:
        low, high = one["interval"]
        rows.append(Row(name=one["name"], value=one["predicted"], low=low, high=high))
    return {row.name: row for row in rows}


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    if measured.viewers is not None:
        heads = ["figure", "measured", f"{measured.viewers} other viewers", "residual"]
        yield "check", markdown(heads, [[row.name, f"{row.measured:g}", *_cells(row)] for row in measured.moments])
        return
    in_use = _in_use()
    yield "fit", f"{measured.plays} plays; distance {measured.distance:.1f}"
    parameters = [[f"`{row.name}`", *_cells(in_use.get(row.name)), *_cells(row)] for row in measured.parameters]
    yield "parameters", markdown(["parameter", "in use", "95 % interval", "fitted", "95 % interval"], parameters)
    moments = [
        [row.name, f"{row.measured:g}", f"{row.weight:.0f}", *_cells(_weighed(in_use.get(row.name), row)), *_cells(row)]
        for row in measured.moments
    ]
    yield "moments", markdown(["moment", "measured", "weight", "in use", "residual", "fitted", "residual"], moments)
    held_out = [
        [row.name, f"{row.measured:g}", *_cells(in_use.get(row.name)), *_cells(row)] for row in measured.held_out
    ]
    heads = ["held out", "measured", "by the fit in use", "95 % interval", "predicted", "95 % interval"]
    yield "held-out", markdown(heads, held_out)


def _weighed(row: Row | None, like: Row) -> Row | None:
    """A moment with its residual at the weight of another fit."""
    if row is None or row.residual is None or row.weight is None or like.weight is None:
        return row
    return row.model_copy(update={"residual": row.residual * (like.weight / row.weight) ** 0.5})


def _cells(row: Row | None) -> list[str]:
    """A figure, and its residual or its interval."""
    if row is None:
        return [NONE, NONE]
    if row.short is not None:
        return [row.short, ""]
    beside = NONE if row.low is None or row.high is None else f"{_short(row.low)} to {_short(row.high)}"
    return [_short(row.value), beside if row.residual is None else f"{row.residual:+.1f}"]


def _short(value: float) -> str:
    """Three significant digits, and no exponent below a million."""
    return f"{float(f'{value:.3g}'):g}"
