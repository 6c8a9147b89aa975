"""Progress of work in equal parts: a bar on a terminal, else a line now and then. Both go to standard error."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

LINE_EVERY_S = 10.0  # the least time between lines in a log

Advance = Callable[[], None]


def duration_words(seconds: float) -> str:
    """A duration as a person reads it: 8.3 s, 42 s, 3 min 5 s, 2 h 10 min."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole_s = round(seconds)
    if whole_s < 60:
        return f"{whole_s} s"
    if whole_s < 3600:
        return f"{whole_s // 60} min {whole_s % 60} s"
    return f"{whole_s // 3600} h {whole_s % 3600 // 60} min"


def left_words(passed_s: float, made: int, missing: int) -> str:
    """The time left, in words, if each missing part takes as long as those made. Empty if no part is made or
    missing."""
    if made < 1 or missing < 1:
        return ""
    return f", about {duration_words(max(1, round(passed_s / made * missing)))} left"


class Lines:
    """A line with count and time left, at most one in LINE_EVERY_S, so that short work prints nothing."""

    def __init__(self, console: Console, what: str, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._console, self._what, self._total, self._clock = console, what, total, clock
        self._made = 0
        self._begin = self._told = clock()

    def advance(self) -> None:
        self._made += 1
        now = self._clock()
        if now - self._told < LINE_EVERY_S or self._made >= self._total:
            return
        self._told = now
        passed_s = now - self._begin
        left = left_words(passed_s, self._made, self._total - self._made)
        count = f"{self._made}/{self._total}"
        self._console.print(f"{self._what}: {count} after {duration_words(passed_s)}{left}", soft_wrap=True)


@contextmanager
def counting(what: str, total: int) -> Iterator[Advance]:
    """Yields the function to call after each part."""
    console = Console(stderr=True, highlight=False, markup=False)
    if not console.is_terminal:
        yield Lines(console, what, total).advance
        return
    columns = (
        *(TextColumn("{task.description}", markup=False), BarColumn(bar_width=24), MofNCompleteColumn()),
        *(TimeElapsedColumn(), TimeRemainingColumn()),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)
