"""`railyard population`, and what `railyard run` does with files of these kinds."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from railyard.errors import UserError
from railyard.exhibits import registry
from railyard.exhibits.model import SIZES, Exhibit, Size
from railyard.exhibits.registry import RunRequest
from railyard.exhibits.run import print_exhibit
from railyard.experiment import find_experiment
from railyard.population.campaign import Asked, Outcome, Place, Progress, run_population
from railyard.population.executors import DaskExecutor, Executor, LocalExecutor
from railyard.population.figures import Plays
from railyard.population.model import Population, load_exhibit_spec, load_population
from railyard.population.parts import PLAYS_FILE
from railyard.statistics import nearest_rank
from railyard.store.folders import OUT_HELP, shown
from railyard.terminal import new_console, print_table
from railyard.yamlfile import YamlDocument, load_yaml, near_miss

EXECUTORS = ("local", "dask")
EVERY_S = 10.0


def _progress(console: Console) -> Progress:
    """A line now and then: logs stay readable, and a terminal is told often enough."""
    begin = last = time.monotonic()
    first: int | None = None

    def tell(done: int, total: int) -> None:
        nonlocal last, first
        first = done if first is None else first
        now = time.monotonic()
        if now - last >= EVERY_S and done < total:
            last = now
            rate = (done - first) / (now - begin)
            left = f", {(total - done) / rate:.0f} s left" if rate > 0 else ""
            console.print(f"{done} of {total} plays{left}")

    return tell


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


def _carry_out(
    population: Population, place: Place, asked: Asked, executor: Executor, console: Console
) -> tuple[Outcome, float]:
    begin = time.monotonic()
    outcome = run_population(
        population, place, asked, executor, lambda text: console.print(text, soft_wrap=True), _progress(console)
    )
    return outcome, time.monotonic() - begin


def population_command(
    name: Annotated[str, typer.Argument(help="A population: a YAML file, or its name in experiments/.")] = "population",
    size: Annotated[str, typer.Option(help=f"How many viewers: {', '.join(SIZES)}.")] = "default",
    arm: Annotated[list[str] | None, typer.Option(help="Only this arm; may be given several times.")] = None,
    days: Annotated[int | None, typer.Option(min=1, help="Days instead of the size's.")] = None,
    viewers: Annotated[int | None, typer.Option(min=1, help="Viewers a day instead of the size's.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes. Default: one a core.")] = None,
    executor: Annotated[str, typer.Option(help="Who plays: local, dask.")] = "local",
    scheduler: Annotated[str | None, typer.Option(help="With --executor dask: tcp://HOST:PORT.")] = None,
    recorded: Annotated[
        bool, typer.Option("--recorded", help="Draw from recorded pairs on RAILYARD_TRACE_PATH, too.")
    ] = False,
    rate: Annotated[
        str | None, typer.Option(help="PATH=FACTOR: so many times a path's rate in generated pairs, as lte=0.5.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help=OUT_HELP),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume/--fresh", help="Keep plays that are there, or do all again, elsewhere.")
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
    outcome, wall_s = _carry_out(population, Place(population.name, out), asked, who, console)
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


def print_arms(console: Console, outcome: Outcome) -> None:
    """The arms beside each other, over all days."""
    plays = Plays(outcome.rows)
    titles = ("arm", "plays", "RCT p50 s", "p95", "p99", "first frame p50 s", "p99", "rebuffer %", "redundancy %")
    table = Table(*titles, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    for label in plays.arms:
        rct, first = plays.flat("rct", label), plays.flat("first_frame", label)
        cells = [f"{nearest_rank(rct, q):.3f}" for q in (0.5, 0.95, 0.99)] if rct else ["-"] * 3
        cells += [f"{nearest_rank(first, q):.3f}" for q in (0.5, 0.99)] if first else ["-"] * 2
        cells += [f"{100 * plays.rebuffer_rate(label):.3f}", f"{100 * plays.redundancy(label):.2f}"]
        table.add_row(label, str(plays.count(label)), *cells)
    print_table(console, table)


def run_population_file(document: YamlDocument, request: RunRequest) -> None:
    """`railyard run` with a file of kind population."""
    population = load_population(document)
    asked = Asked(request.size, fresh=not request.resume)
    _only_sim(request)
    place = Place(population.name, request.out)
    outcome, _ = _carry_out(population, place, asked, LocalExecutor(request.jobs), request.console)
    print_arms(request.console, outcome)


def _only_sim(request: RunRequest) -> None:
    if request.arena not in (None, "sim"):
        raise UserError(f"populations play in virtual time; leave out --arena {request.arena}.")
    if request.seeds is not None:
        raise UserError("a population has viewers and no list of seeds; use --size, or change 'seed' in its file.")


def run_exhibit_file(document: YamlDocument, request: RunRequest) -> None:
    """`railyard run` with a file of kind population-exhibit. Plays that another folder has are taken from there."""
    spec, population, _ = load_exhibit_spec(document)
    _only_sim(request)
    asked = Asked(request.size, arms=tuple(spec.arms), fresh=not request.resume)
    place = Place(spec.name, request.out)
    outcome, _ = _carry_out(population, place, asked, LocalExecutor(request.jobs), request.console)
    exhibit: Exhibit = registry.builder(spec.name)(outcome.folder, (spec, outcome))
    file = exhibit.write(outcome.folder)
    print_exhibit(request.console, exhibit)
    request.console.print(f"exhibit: {shown(file)}", soft_wrap=True)
