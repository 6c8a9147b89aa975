"""The request of `railyard run` to a study."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from railyard.base.errors import UserError
from railyard.report.exhibit import Size
from railyard.run.arena import Arena
from railyard.run.folders import Tell


@dataclass(frozen=True)
class RunRequest:
    """The options of the command line. None: the file's own value."""

    console: Console
    arena: str | None = None
    jobs: int | None = None
    seeds: int | None = None
    out: Path | None = None
    resume: bool = True
    size: Size = "default"
    repeat_budget_s: float | None = None
    qlog: str | None = None
    dry_run: bool = False
    keep_awake: str | None = None
    real_time: bool | None = None

    def refuse_wall_clock(self) -> None:
        """Refuses options of runs on the wall clock. Raises UserError."""
        wall = {"--keep-awake": self.keep_awake, "--real-time": self.real_time, "--repeat-budget": self.repeat_budget_s}
        refuse(wall, VIRTUAL)


def prepare(arenas: Iterable[Arena], tell: Tell, *, dry_run: bool) -> None:
    """Prepares the machine for runs in some arenas, or with `dry_run` says what would be built. Raises UserError."""
    for arena in arenas:
        if not dry_run:
            arena.check()
        elif (sentence := arena.look()) is not None:
            tell(sentence)


VIRTUAL = "these runs are in virtual time, where nothing is late"


def refuse(options: Mapping[str, object], reason: str) -> None:
    """Refuses options that would have no effect. None: not given. Raises UserError."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise UserError(f"{reason}; leave out {' and '.join(given)}.")
