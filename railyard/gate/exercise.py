"""Which kinds of behaviour the plays of a suite exercise. "No difference" means little where nothing was exercised.

A kind counts as exercised if at least FEWEST_PLAYS plays show it in their records, whatever the suite intends.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from railyard.base.errors import UserError
from railyard.base.lists import grouped
from railyard.gate.suite import FEWEST_PLAYS
from railyard.results.records import Run
from railyard.traces.periods import CONSTANT_MS
from railyard.traces.settings import vias
from railyard.traces.trace import read_trace

USED = 0.05  # the least share of the bytes that a used path carries
BUSY, STEADY_S = 0.9, 30.0  # a download without pause, and how long its window takes to settle


@cache
def _is_constant(file: Path) -> bool:
    try:
        return read_trace(file).period_ms <= CONSTANT_MS
    except UserError:
        return False


def is_constant(files: Iterable[Path | str]) -> bool:
    return all(_is_constant(Path(file)) for file in files)


def _has_constant_links(run: Run) -> bool:
    return not run.config.get("link_events") and is_constant(path["down"] for path in run.config["paths"])


def _used(run: Run) -> set[str]:
    """The paths that carried more than a share USED of the play's bytes."""
    least = USED * sum(path.down_bytes for path in run.paths)
    return {path.name for path in run.paths if path.down_bytes > least}


def _fills_a_queue(run: Run) -> bool:
    return any(path.queue_drops for path in run.paths) and not _has_constant_links(run)


def _is_steady(run: Run) -> bool:
    busy_s = sum(chunk.rct_s for chunk in run.chunks)
    return busy_s >= max(STEADY_S, BUSY * run.ended_s) and _has_constant_links(run)


def _shares_a_queue(run: Run) -> bool:
    used = _used(run)
    through = Counter(
        name for path in run.config["paths"] if path["name"] in used for name in set(vias(path.get("settings", {})))
    )
    return any(count > 1 for count in through.values())


@dataclass(frozen=True)
class Kind:
    """One kind of behaviour that a change can touch."""

    name: str
    room: str
    """The folder in which a change can affect it."""
    suite: str
    """The suite of this project whose plays show it."""
    has: Callable[[Run], bool]


KINDS = (
    Kind("first frames", "transport/crypto/", "mobility", lambda run: run.first_frame_s is not None),
    Kind("scheduling", "transport/scheduler/", "mobility", lambda run: len(_used(run)) > 1),
    Kind("re-injection", "transport/reinjection/", "mobility", lambda run: bool(run.reinjected_bytes)),
    Kind("loss recovery", "transport/recovery/", "mobility", lambda run: bool(run.retransmitted_bytes)),
    Kind("paths that fail", "transport/path/", "mobility", lambda run: bool(run.given_up_bytes or run.migrations)),
    Kind("windows at changing rates", "transport/congestion/", "mobility", _fills_a_queue),
    Kind("windows in steady state", "transport/congestion/", "congestion", _is_steady),
    Kind("flows in one queue", "transport/congestion/", "congestion", _shares_a_queue),
)


@dataclass(frozen=True)
class Exercise:
    """How many plays show each kind of behaviour."""

    plays: dict[str, int]

    @classmethod
    def of(cls, runs: Iterable[Run]) -> "Exercise":
        known = list(runs)
        return cls({kind.name: sum(map(kind.has, known)) for kind in KINDS})

    def _missing(self) -> list[Kind]:
        return [kind for kind in KINDS if self.plays[kind.name] < FEWEST_PLAYS]

    @property
    def sentence(self) -> str:
        """One line: what is exercised, with the number of plays, and what is not."""
        missing = self._missing()
        done = ", ".join(f"{kind.name} {self.plays[kind.name]}" for kind in KINDS if kind not in missing)
        exercised = f"Exercised, in plays: {done or 'nothing'}."
        return f"{exercised} Not exercised: {_with_suites(missing)}." if missing else exercised

    def untried(self, changed: Sequence[str]) -> str:
        """The kinds that the changed files can affect and no row exercises, as a sentence; empty if there are none."""
        touched = [kind for kind in self._missing() if any(file.startswith(kind.room) for file in changed)]
        if not touched:
            return ""
        rooms = dict.fromkeys(kind.room.removesuffix("/") for kind in touched)
        return f"{', '.join(rooms)} changed, and no row exercises {_with_suites(touched)}"


def _with_suites(kinds: Sequence[Kind]) -> str:
    """The kinds' names, grouped by suite, each group with the option that runs its suite."""
    by_suite = grouped((kind.suite, kind.name) for kind in kinds)
    return ", ".join(f"{', '.join(names)} (--suite {suite})" for suite, names in by_suite.items())
