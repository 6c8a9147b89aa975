"""Tables in the forms that other programs read: JSON, CSV, Markdown, LaTeX."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from railyard.base.words import printable

NUMBER = re.compile(r"[-−+]?\d+(\.\d+)?([eE][-+]?\d+)?")
NOTHING = ("", "–")
LATEX = {
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"−": "$-$", "≥": r"$\geq$", "≤": r"$\leq$", "–": "--", "…": r"\dots{}", "α": r"$\alpha$", "β": r"$\beta$"},
}


class Form(StrEnum):
    """The forms of a command's table. All except `table` go to standard output without further sentences."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"
    LATEX = "latex"


FormOption = Annotated[Form, typer.Option("--format", help="Print the table in this form, and nothing else.")]


def value_of(text: str) -> str | int | float | None:
    """A cell's value: a number (of per cent, the share) if the text is one, None if it stands for no value,
    else the text."""
    if text.strip() in NOTHING:
        return None
    if text.endswith(" %") and NUMBER.fullmatch(text[:-2]):
        return round(float(text[:-2].replace("−", "-")) / 100, 9)
    if NUMBER.fullmatch(text):
        plain = text.replace("−", "-")
        return int(plain) if plain.lstrip("+-").isdigit() else float(plain)
    return text


def _text(cell: object) -> str:
    return " ".join((cell.plain if isinstance(cell, Text) else str(cell)).split())


def content(table: Table) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of a table as plain text. A heading of two lines becomes one line."""
    heads = [_text(column.header) for column in table.columns]
    rows = [[_text(cell) for cell in row] for row in zip(*(column.cells for column in table.columns), strict=True)]
    return heads, rows


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def latex(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[bool]) -> str:
    """A tabular with the rules of booktabs."""
    lines = [rf"\begin{{tabular}}{{{''.join('r' if number else 'l' for number in numbers)}}}", r"\toprule"]
    body = [
        " & ".join("".join(LATEX.get(letter, letter) for letter in cell) for cell in line) + r" \\"
        for line in (heads, *rows)
    ]
    return "\n".join([*lines, body[0], r"\midrule", *body[1:], r"\bottomrule", r"\end{tabular}", ""])


def csv_text(heads: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """CSV with a heading. None becomes an empty cell."""
    made = io.StringIO(newline="")
    csv.writer(made, lineterminator="\n").writerows([heads, *rows])
    return made.getvalue()


def written(table: Table, form: Form, records: Callable[[], Sequence[dict[str, Any]]] | None = None) -> str:
    """The table in a form other than `table`. JSON and CSV are made from the records if they are given."""
    heads, rows = content(table)
    if form is Form.MARKDOWN:
        return printable(markdown(heads, rows))
    if form is Form.LATEX:
        return printable(latex(heads, rows, [column.justify == "right" for column in table.columns]))
    objects = records() if records is not None else [dict(zip(heads, map(value_of, row), strict=True)) for row in rows]
    if form is Form.JSON:
        return json.dumps(objects, indent=1, ensure_ascii=False) + "\n"
    heads = list(objects[0]) if objects else heads
    return csv_text(heads, [row.values() for row in objects])


def write(table: Table, form: Form, records: Callable[[], Sequence[dict[str, Any]]] | None = None) -> None:
    """Prints the table in a form other than `table`, as UTF-8 in every locale."""
    typer.echo(written(table, form, records).encode(), nl=False)
