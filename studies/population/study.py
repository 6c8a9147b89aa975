"""Draws viewers and plays every arm for each of them, in virtual time; docs/reference/population.md says how."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field

from railyard.base.errors import UserError
from railyard.base.lists import grouped
from railyard.base.yamlfile import load_yaml, near_miss
from railyard.experiment.model import Strict, find_experiment
from railyard.figures.rows import BY_NAME, REBUFFER_RATE
from railyard.report.exhibit import Size
from railyard.run.folders import shown
from railyard.studies.claims import Compared
from railyard.studies.population.campaign import Asked, Place
from railyard.studies.population.executors import DaskExecutor, LocalExecutor
from railyard.studies.population.figures import RCT_QUANTILES, Plays, increase
from railyard.studies.population.model import Population, load_population
from railyard.studies.population.parts import PLAYS_FILE
from railyard.studies.population.run import ARM_HEADS, arm_rows, carry_out
from railyard.studies.study import Data, markdown, tell

REFERENCE = "sp"


class Settings(Strict):
    population: str  # a YAML file, or its name in experiments/
    scale: Size  # selects the population's numbers of days and viewers
    days: int | None = Field(default=None, ge=1)  # instead of the scale's
    viewers: int | None = Field(default=None, ge=1)  # of each day, instead of the scale's
    arms: list[str] | None = Field(default=None, min_length=1)  # only these
    rates: dict[str, Annotated[float, Field(ge=0.01, le=100)]] = Field(default={}, max_length=1)
    """The factor of a path's rate in generated pairs, by the path's name."""
    recorded: bool = False  # draw also from recorded pairs on RAILYARD_TRACE_PATH
    jobs: int | None = Field(default=None, ge=1)  # processes; None: one for each core
    scheduler: str | None = Field(default=None, pattern=r"^tcp://.+:\d+$")  # of Dask: plays run there
    fresh: bool = False  # play everything again, in another folder
    out: Path | None = None  # folder of the results; results/NAME where it is not set


class Measured(Data):
    arms: list[list[str]]  # a row each
    against_sp: list[Compared]


def measure(settings: Settings) -> Measured:
    begin = time.monotonic()
    population = _asked(settings)
    arms = tuple(settings.arms) if settings.arms else None
    asked = Asked(settings.scale, arms, settings.recorded, settings.fresh, settings.viewers, settings.days)
    executor = DaskExecutor(settings.scheduler, tell) if settings.scheduler else LocalExecutor(settings.jobs)
    outcome = carry_out(population, Place(population.name, settings.out), asked, executor, tell)
    wall_s = time.monotonic() - begin
    tell(f"{outcome.plays} plays in {wall_s:.1f} s: {shown(outcome.folder / PLAYS_FILE)}")
    plays = Plays.of_file(outcome.folder / PLAYS_FILE)
    return Measured(arms=arm_rows(plays), against_sp=list(_against(plays)))


def _against(plays: Plays) -> Iterator[Compared]:
    """Each arm against single path, over the viewers that both have."""
    for arm in plays.arms:
        if arm == REFERENCE or REFERENCE not in plays.arms:
            continue
        for figure, q in RCT_QUANTILES.items():
            change = plays.compare_quantile("rct", q, arm, REFERENCE, increase)
            yield Compared(figure=figure, a=arm, b=REFERENCE, found=change)
        better = plays.rebuffer_improvement(arm, REFERENCE)
        yield Compared(figure=REBUFFER_RATE.name, a=arm, b=REFERENCE, found=better and better.turned())


def _asked(settings: Settings) -> Population:
    population = load_population(load_yaml(find_experiment(settings.population)))
    for path, factor in settings.rates.items():
        population = population.with_rate(path, factor)
    known = [entry.base_label() for entry in population.arms]
    for label in settings.arms or ():
        if label not in known:
            raise UserError(f"the population has no arm '{label}'; {near_miss(label, known)}")
    return population


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    yield "arms", markdown(ARM_HEADS, measured.arms)
    figures = (*RCT_QUANTILES, REBUFFER_RATE.name)
    arms = grouped((one.a, one.words) for one in measured.against_sp)
    if arms:
        heads = ["arm", *(f"{BY_NAME[figure].title} against {REFERENCE}" for figure in figures)]
        yield "against-sp", markdown(heads, [[arm, *words] for arm, words in arms.items()])


def compared(measured: Measured) -> Iterator[Compared]:
    yield from measured.against_sp
