"""Shows the progress of a campaign: a bar on a terminal, else one line for each event."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from railyard.base.counting import Advance, duration_words, left_words
from railyard.experiment.arenas import is_exact
from railyard.run.live import Picture
from railyard.run.runspec import RunSpec

FRAMES_A_SECOND = 4
PARTIAL = ".partial-"  # before the name of a run's folder while the run goes on
MANY = 24  # runs in virtual time up to which each has a line
USUAL = ("complete", "time_limit")


def _one_line(record: dict[str, Any]) -> str:
    fidelity = record["fidelity"]
    if is_exact(record["config"]["arena"]):
        void = ", VOID" if fidelity["void"] else ""
        return f"{record['outcome'].replace('_', ' ')}, {record['wall_s']:.2f} s on the wall clock{void}"
    added = fidelity.get("added")
    late = f"late ≤ {added['share'] * 100:.1f} %" if added else f"p99 {fidelity['lateness_p99_us'] / 1000:.2f} ms"
    word = "VOID" if fidelity["void"] else f"on time, {late}"
    return f"{record['outcome'].replace('_', ' ')} in {record['wall_s']:.1f} s ({word})"


class Silent:
    """Receives a campaign's progress and ignores it, for callers that report something larger than runs."""

    def started(self, spec: RunSpec, attempt: int) -> None: ...

    def repeated(self, spec: RunSpec, attempt: int, reasons: list[str]) -> None: ...

    def refused(self, spec: RunSpec, sentence: str) -> None: ...

    def finished(self, spec: RunSpec, record: dict[str, Any]) -> None: ...


class Counted(Silent):
    """Only counts the runs."""

    def __init__(self, advance: Advance) -> None:
        self._advance = advance

    def refused(self, spec: RunSpec, sentence: str) -> None:
        self._advance()

    def finished(self, spec: RunSpec, record: dict[str, Any]) -> None:
        self._advance()


class PlainReporter(Silent):
    """Prints a line for each run. With many runs in virtual time, a line for each tenth of them, and one for each run
    with another outcome than USUAL."""

    def __init__(self, console: Console, total: int, done: int = 0) -> None:
        self._console, self._total, self._done = console, total, done
        self._before = done
        self._watch = Stopwatch()

    def _is_many(self, record: dict[str, Any]) -> bool:
        usual = record["outcome"] in USUAL and not record["fidelity"]["void"]
        return self._total > MANY and is_exact(record["config"]["arena"]) and usual

    def _tell_tenth(self) -> None:
        if self._done * 10 // self._total > (self._done - 1) * 10 // self._total:
            left = left_words(self._watch.passed_s, self._done - self._before, self._total - self._done)
            self._console.print(f"[{self._done}/{self._total}] after {self._watch}{left}", markup=False)

    def repeated(self, spec: RunSpec, attempt: int, reasons: list[str]) -> None:
        self._console.print(f"{spec.run_id}: void at try {attempt} ({'; '.join(reasons[:1])}), again at the end")

    def refused(self, spec: RunSpec, sentence: str) -> None:
        self._done += 1
        self._console.print(f"[{self._done}/{self._total}] {sentence}", style="red", markup=False)

    def finished(self, spec: RunSpec, record: dict[str, Any]) -> None:
        self._done += 1
        if self._is_many(record):
            self._tell_tenth()
            return
        self._console.print(f"[{self._done}/{self._total}] {spec.run_id}: {_one_line(record)}", markup=False)


class _Count(MofNCompleteColumn):
    """The number of completed runs. Empty in the line of a single run."""

    def render(self, task: Task) -> Text:
        return Text() if task.total is None else super().render(task)


class _TimeLeft(ProgressColumn):
    """The time left if the other runs take as long as those done since the start."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        if task.total is None or task.elapsed is None:
            return Text()
        made = task.completed - task.fields.get("before", 0)
        return Text(left_words(task.elapsed, int(made), int(task.total - task.completed)).removeprefix(", "))


class LiveReporter(PlainReporter):
    """Prints the lines above a bar over all runs and a line for each run under way."""

    def _tell_tenth(self) -> None:
        """Does nothing: the bar shows it."""

    def __init__(self, progress: Progress, total: int, done: int, picture: Picture | None) -> None:
        super().__init__(progress.console, total, done)
        self._progress, self._picture = progress, picture
        self._all = progress.add_task("all runs", total=total, completed=done, before=done)
        self._active: dict[str, TaskID] = {}

    def started(self, spec: RunSpec, attempt: int) -> None:
        again = f" (try {attempt})" if attempt > 1 else ""
        self._forget(spec)
        self._active[spec.run_id] = self._progress.add_task(
            f"{spec.pair}: {spec.label}, seed {spec.seed}{again}", total=None
        )
        if self._picture is not None:
            self._picture.begin(spec)

    def repeated(self, spec: RunSpec, attempt: int, reasons: list[str]) -> None:
        self._forget(spec, void=True)
        super().repeated(spec, attempt, reasons)

    def refused(self, spec: RunSpec, sentence: str) -> None:
        self._forget(spec)
        self._progress.advance(self._all)
        super().refused(spec, sentence)

    def finished(self, spec: RunSpec, record: dict[str, Any]) -> None:
        self._forget(spec, void=bool(record["fidelity"]["void"]))
        self._progress.advance(self._all)
        super().finished(spec, record)

    def _forget(self, spec: RunSpec, *, void: bool = True) -> None:
        if self._picture is not None:
            self._picture.end(spec, void=void)
        if spec.run_id in self._active:
            self._progress.remove_task(self._active.pop(spec.run_id))


@contextmanager
def reporter(console: Console, total: int, done: int, runs: Path | None = None) -> Iterator[PlainReporter]:
    """The reporter for a console. `runs`: the folder of runs on the wall clock, which are shown while they play."""
    if not console.is_terminal:
        yield PlainReporter(console, total, done)
        return
    columns = (
        *(SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24), _Count()),
        *(TimeElapsedColumn(), _TimeLeft()),
    )
    progress = Progress(*columns, console=console)
    picture = Picture(runs, PARTIAL) if runs is not None else None
    shown = Group(progress, picture) if picture is not None else progress
    with Live(shown, console=console, transient=True, refresh_per_second=FRAMES_A_SECOND):
        yield LiveReporter(progress, total, done, picture)


class Stopwatch:
    def __init__(self) -> None:
        self._begin = time.monotonic()

    @property
    def passed_s(self) -> float:
        return time.monotonic() - self._begin

    def __str__(self) -> str:
        return duration_words(self.passed_s)
