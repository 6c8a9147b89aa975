"""Carries out a population's plays, and shows its arms beside each other; what `railyard run` does with its file."""

import time

from rich.table import Table

from railyard.arenas.sim import Sim
from railyard.base.errors import UserError
from railyard.base.terminal import print_table
from railyard.base.yamlfile import YamlDocument
from railyard.figures.rows import REBUFFER_RATE, REINJECTION_COST
from railyard.run.arena import arena_of
from railyard.studies.population.campaign import Asked, Outcome, Place, Progress, Tell, run_population
from railyard.studies.population.executors import Executor, LocalExecutor
from railyard.studies.population.figures import Plays
from railyard.studies.population.model import Population, load_population
from railyard.studies.population.parts import PLAYS_FILE
from railyard.studies.request import RunRequest, refuse

EVERY_S = 10.0
ARM_HEADS = (
    *("arm", "plays", "RCT p50 s", "p95", "p99", "first frame p50 s", "p99", "rebuffer %"),
    f"{REINJECTION_COST.title} %",
)


def progress(tell: Tell) -> Progress:
    """A line now and then: logs stay readable, and a terminal is updated often enough."""
    begin = last = time.monotonic()
    first, of = 0, -1  # the count at the beginning, and of how many

    def say(done: int, total: int) -> None:
        nonlocal begin, last, first, of
        now = time.monotonic()
        if total != of:  # the pilot's plays, then those of all viewers
            begin, last, first, of = now, now, done, total
        if now - last >= EVERY_S and done < total:
            last = now
            rate = (done - first) / (now - begin)
            left = f", {(total - done) / rate:.0f} s left" if rate > 0 else ""
            tell(f"{done} of {total} plays{left}")

    return say


def carry_out(population: Population, place: Place, asked: Asked, executor: Executor, tell: Tell) -> Outcome:
    return run_population(population, place, asked, executor, tell, progress(tell))


def arm_rows(plays: Plays) -> list[list[str]]:
    """The arms beside each other, over all days."""
    rows = []
    for label in plays.arms:
        points = [*plays.points("rct", label, (0.5, 0.95, 0.99)), *plays.points("first_frame", label, (0.5, 0.99))]
        cells = ["-" if value is None else f"{value:.3f}" for value in points]
        cells += [f"{100 * plays.value(REBUFFER_RATE, label):.3f}", f"{100 * plays.value(REINJECTION_COST, label):.2f}"]
        rows.append([label, str(plays.count(label)), *cells])
    return rows


def run_population_file(document: YamlDocument, request: RunRequest) -> None:
    """`railyard run` with a file of kind population."""
    population = load_population(document)
    asked = Asked(request.size, fresh=not request.resume)
    only_sim(request)
    place = Place(population.name, request.out)
    outcome = carry_out(population, place, asked, LocalExecutor(request.jobs), request.console.print)
    table = Table(*ARM_HEADS, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    for cells in arm_rows(Plays.of_file(outcome.folder / PLAYS_FILE)):
        table.add_row(*cells)
    print_table(request.console, table)


def only_sim(request: RunRequest) -> None:
    if request.dry_run:
        raise UserError(
            "--dry-run is for experiments with runs of their own; a population prints its plays as it goes."
        )
    if request.arena is not None and not isinstance(arena_of(request.arena), Sim):
        raise UserError(f"populations play in virtual time; leave out --arena {request.arena}.")
    if request.seeds is not None:
        raise UserError("a population has viewers and no list of seeds; use --size, or change 'seed' in its file.")
    refuse({"--qlog": request.qlog}, "plays of a population keep no qlogs")
    request.refuse_wall_clock()
