"""`railyard population`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from railyard.base.errors import UserError
from railyard.base.terminal import new_console
from railyard.base.yamlfile import load_yaml, near_miss
from railyard.experiment.model import find_experiment
from railyard.report.exhibit import SIZES, Size
from railyard.run.folders import OUT_HELP, shown
from railyard.studies.population.campaign import Asked, Place
from railyard.studies.population.executors import DaskExecutor, Executor, LocalExecutor
from railyard.studies.population.model import load_population
from railyard.studies.population.parts import PLAYS_FILE
from railyard.studies.population.run import carry_out, print_arms

EXECUTORS = ("local", "dask")


def _executor(name: str, scheduler: str | None, jobs: int | None) -> Executor:
    if name not in EXECUTORS:
        raise UserError(f"unknown executor '{name}'; {near_miss(name, EXECUTORS)}")
    if name == "dask":
        if scheduler is None:
            raise UserError("--executor dask needs the scheduler's address: --scheduler tcp://HOST:PORT.")
        return DaskExecutor(scheduler)
    if scheduler is not None:
        raise UserError("--scheduler is for --executor dask; add that, or leave it out.")
    return LocalExecutor(jobs)


def population_command(
    name: Annotated[str, typer.Argument(help="A population: a YAML file, or its name in experiments/.")] = "population",
    size: Annotated[str, typer.Option(help=f"Number of viewers: {', '.join(SIZES)}.")] = "default",
    arm: Annotated[list[str] | None, typer.Option(help="Play only this arm. May be repeated.")] = None,
    days: Annotated[int | None, typer.Option(min=1, help="Number of days. Default: the size's.")] = None,
    viewers: Annotated[
        int | None, typer.Option(min=1, help="Number of viewers of each day. Default: the size's.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Number of processes. Default: one for each core.")] = None,
    executor: Annotated[str, typer.Option(help="Where plays run: local, dask.")] = "local",
    scheduler: Annotated[
        str | None, typer.Option(help="With --executor dask: address of the scheduler, tcp://HOST:PORT.")
    ] = None,
    recorded: Annotated[
        bool, typer.Option("--recorded", help="Draw also from recorded pairs on RAILYARD_TRACE_PATH.")
    ] = False,
    rate: Annotated[
        str | None, typer.Option(help="PATH=FACTOR: multiply a path's rate in generated pairs, e.g. lte=0.5.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help=OUT_HELP),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume/--fresh", help="Keep existing plays, or play everything again in another folder.")
    ] = True,
) -> None:
    """Draw viewers and play every arm for each of them, in virtual time."""
    document = load_yaml(find_experiment(name))
    population = load_population(document)
    if rate is not None:
        population = population.with_rate(*rate_of(rate))
    asked = Asked(_size(size), tuple(arm) if arm else None, recorded, not resume, viewers, days)
    known = [entry.base_label() for entry in population.arms]
    for label in asked.arms or ():
        if label not in known:
            raise UserError(f"the population has no arm '{label}'; {near_miss(label, known)}")
    console = new_console()
    who = _executor(executor, scheduler, jobs)
    outcome, wall_s = carry_out(population, Place(population.name, out), asked, who, console)
    print_arms(console, outcome)
    console.print(f"{len(outcome.rows)} plays in {wall_s:.1f} s: {shown(outcome.folder / PLAYS_FILE)}", soft_wrap=True)


def rate_of(text: str) -> tuple[str, float]:
    path, _, factor = text.partition("=")
    try:
        value = float(factor)
    except ValueError:
        value = 0.0
    if not path or not 0.01 <= value <= 100:
        raise UserError(f"--rate '{text}' is not PATH=FACTOR with a factor of 0.01 to 100, as lte=0.5.")
    return path, value


def _size(text: str) -> Size:
    for size in SIZES:
        if size == text:
            return size
    raise UserError(f"unknown size '{text}'; {near_miss(text, SIZES)}")
