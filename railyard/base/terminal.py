"""Output for a terminal of any width. A table that is wider is printed in parts; figures are never cut."""

import os
import sys
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from copy import copy
from typing import Any

import typer
from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from railyard.base.errors import UserError
from railyard.base.words import printable

LOG_WIDTH = 150
"""The width for a file or a pipe, which has none: otherwise 80 columns would be assumed."""

MOST_LINES = 30
"""The most lines of a summary at the end of a command: a screen or less. The page has everything."""

TEXT_WIDTH = 20
"""The width, including the frame, to which columns of text may be broken. Figures and words are not broken."""
LEAST_WIDTH = 8
"""The width to which they are broken where a part of a table does not fit otherwise: words, too."""


class _Console(Console):
    """A console for text of any origin: characters that control the terminal are replaced. If its reader is gone,
    raises BrokenPipeError, so that the program ends as others do."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))

    def print(self, *objects: Any, soft_wrap: bool | None = None, **options: Any) -> None:
        """Prints. A text stays one line, so that its paths and commands can be copied, unless `soft_wrap` is False."""
        is_text = all(isinstance(one, str) for one in objects)
        super().print(*objects, soft_wrap=is_text if soft_wrap is None else soft_wrap, **options)

    def on_broken_pipe(self) -> None:
        self.quiet = True
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise BrokenPipeError


def new_console() -> Console:
    """A console on standard output, with the terminal's width or LOG_WIDTH."""
    return _Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else LOG_WIDTH)


def agreed(question: str, yes: bool, refusal: str) -> bool:
    """Asks on the terminal, unless `yes`. Returns the answer. Without a terminal, raises UserError with the refusal."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise UserError(refusal)
    return typer.confirm(question, default=False)


def new_table(*names: str, right: Collection[str] = (), **column: Any) -> Table:
    """A table with a line below its headings only. `right`: the columns of numbers. `column`: options of all
    columns."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), header_style="bold")
    for name in names:
        table.add_column(name, justify="right" if name in right else "left", **column)
    return table


def print_table(console: Console, table: Table, keys: int = 1) -> None:
    """Prints a table; if it is too wide, in parts below each other. Each part has the first `keys` columns."""
    for part in fitted(console, table, keys):
        console.print(part)


def fitted(console: Console, table: Table, keys: int = 1) -> list[Table]:
    """The table, or its parts if it is wider than the console. In a part that is too wide even so, texts have several
    lines."""
    if len(table.columns) <= keys:
        return [table]
    natural = [_measure(console, _part(table, [column])) for column in table.columns]
    # Neighbouring columns share the line between them.
    both = _measure(console, _part(table, table.columns[:2])).maximum if len(natural) > 1 else 0
    shared = natural[0].maximum + natural[1].maximum - both if both else 0
    widths = [
        (size.maximum if column.no_wrap else min(size.maximum, max(size.minimum, TEXT_WIDTH))) - shared
        for column, size in zip(table.columns, natural, strict=True)
    ]
    width = console.width - shared
    if sum(widths) <= width:
        return [table]
    parts: list[list[Column]] = []
    left = 0
    for column, needed in zip(table.columns[keys:], widths[keys:], strict=True):
        if not parts or needed > left:
            parts.append(list(table.columns[:keys]))
            left = width - sum(widths[:keys])
        parts[-1].append(column)
        left -= needed
    made = [_part(table, columns) for columns in parts]
    for further in made[1:]:
        further.title = None
    for part in made:
        if not fits(console, part):
            fold(console, part)
    return made


def fits(console: Console, table: Table) -> bool:
    """Whether the console has room for a table without breaking or cutting a text."""
    return _measure(console, table).maximum <= console.width


def fold(console: Console, table: Table) -> None:
    """Lets texts have several lines, so that nothing is cut off: those with `no_wrap` only if they leave too little
    room for the others."""
    needed = [
        _measure(console, _part(table, [column])).maximum if column.no_wrap else LEAST_WIDTH for column in table.columns
    ]
    for column in table.columns:
        if column.justify != "right":
            column.overflow, column.no_wrap = "fold", column.no_wrap and sum(needed) <= console.width


def _measure(console: Console, table: Table) -> Measurement:
    """The natural width of a table, whatever the console's width."""
    return Measurement.get(console, console.options.update(width=100_000), table)


def _part(table: Table, columns: Sequence[Column]) -> Table:
    """A table with some of the columns."""
    part = copy(table)
    part.columns, part.rows = [], []
    for column in columns:
        part.add_column(
            column.header,
            justify=column.justify,
            no_wrap=column.no_wrap,
            overflow=column.overflow,
            style=column.style,
            header_style=column.header_style,
        )
    for row, cells in zip(table.rows, zip(*(column.cells for column in columns), strict=True), strict=True):
        part.add_row(*cells, style=row.style, end_section=row.end_section)
    return part


def first_lines(console: Console, parts: Sequence[RenderableType], most: int = MOST_LINES) -> list[str]:
    """At most `most` lines of the output of `parts`, with their styles. If there are more, the last one says so. In a
    log a sentence is one line."""
    shown: list[str] = []
    for part in parts:
        with console.capture() as caught:
            console.print(part, soft_wrap=isinstance(part, Text) and not console.is_terminal)
        shown += caught.get().splitlines()
        if len(shown) > most:
            return [*shown[: most - 1], "… the rest is on the page."]
    return shown


def print_lines(console: Console, lines: Sequence[str]) -> None:
    for line in lines:
        console.print(Text.from_ansi(line), soft_wrap=True)
