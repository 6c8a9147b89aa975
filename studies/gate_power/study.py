"""Which regressions the gate finds in real noise, and how often it raises an alarm without one; railyard/gate/power.py
says how they are simulated."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field

from railyard.arenas.sim import Sim
from railyard.base.errors import UserError
from railyard.base.plotfile import DRAWN, check_format, write_drawn
from railyard.experiment.model import Strict
from railyard.gate import power
from railyard.gate.run import run_power
from railyard.gate.suite import FEWEST_PLAYS, find_suite, load_suite
from railyard.run.arena import arena_of
from railyard.stats.distributions import exact_share
from railyard.stats.intervals import Interval
from railyard.studies.claims import Compared
from railyard.studies.study import Data, tell


class Settings(Strict):
    suite: str  # a name in experiments/suites/, or a YAML file
    windows: list[Annotated[int, Field(ge=FEWEST_PLAYS)]]  # of trace a row; beside them all that the suite has
    trials: int = Field(ge=20)  # simulations for each point of the curve
    jobs: int | None = Field(default=None, ge=1)
    plot: Path | None = None  # the curves: .svg, .png, .pdf


class Measured(Data):
    found: list[power.AlarmRate]


def measure(settings: Settings) -> Measured:
    suite, document = load_suite(find_suite(settings.suite))
    if not isinstance(arena_of(suite.arena), Sim):
        raise UserError(f"gate-power simulates suites of the sim arena; {suite.name} runs in {suite.arena}.")
    if settings.plot is not None:
        check_format(settings.plot, DRAWN)
    jobs = settings.jobs or arena_of("sim").default_jobs()
    alarm_rates = run_power(suite, document, jobs, tell, settings.windows, settings.trials)
    if settings.plot is not None:
        write_drawn(settings.plot, lambda: power.drawn(alarm_rates))
    return Measured(found=alarm_rates)


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    yield "power", power.markdown(measured.found).rstrip()


def compared(measured: Measured) -> Iterator[Compared]:
    """Shares of the simulations in which the gate raises an alarm."""
    for one in measured.found:
        low, high = exact_share(one.alarms, one.trials)
        interval = Interval(one.rate, low, high).mapped(lambda share: 100 * share)
        where = {"windows": f"{one.windows} windows a row"}
        if one.factor == 1:
            yield Compared(figure="false_alarms", a="no regression", where=where, found=interval)
        else:
            where["hit"] = f"{100 * one.share:.0f} % of them"
            yield Compared(figure="alarms", a=f"{one.factor:g} times as long", where=where, found=interval)
