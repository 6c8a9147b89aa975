"""`railyard query`."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer
from rich.table import Table as RichTable

from railyard.base.errors import UserError
from railyard.base.files import write_named
from railyard.base.paths import RESULTS_DIR
from railyard.base.terminal import new_console, new_table, print_table
from railyard.base.words import counted, printable
from railyard.base.yamlfile import near_miss
from railyard.cli.options import ResultsOption
from railyard.results.columns import CAMPAIGN, TABLES
from railyard.results.query import FORMATS, answer_bytes, connect, older_tables, plain, rows_of, run_query

console = new_console()


def _columns() -> RichTable:
    table = new_table("table", "column", "type", "meaning", overflow="fold")
    for definition in TABLES:
        table.add_row(definition.name, "", "", definition.about, style="bold")
        columns = definition.columns if definition.columns[0] is CAMPAIGN else (CAMPAIGN, *definition.columns)
        for column in columns:
            table.add_row("", column.name, str(column.type), column.meaning)
    return table


@contextmanager
def _ended_by_ctrl_c() -> Iterator[None]:
    """A context in which Ctrl-C ends the process at once. Python's own handler would wait for DuckDB."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def query_command(
    sql: Annotated[str | None, typer.Argument(metavar="SQL", help="One SELECT. Without it: list the tables.")] = None,
    results: ResultsOption = RESULTS_DIR,
    form: Annotated[str, typer.Option("--format", help=f"Output format: {', '.join(FORMATS)}.")] = "table",
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the result to FILE.")] = None,
) -> None:
    """Query all campaigns with SQL (DuckDB). Examples: docs/howto/query.md."""
    if form not in FORMATS:
        raise UserError(f"unknown format '{form}'; {near_miss(form, FORMATS)}")
    if sql is None:
        console.print(_columns())
        return
    if form == "table" and out is not None:
        raise UserError("a table is for the terminal; into a file goes --format csv, json or parquet.")
    if form == "parquet" and out is None and sys.stdout.isatty():
        raise UserError("Parquet is not text; give a file by --out FILE, or redirect the output.")
    with _ended_by_ctrl_c():
        answer = run_query(connect(results), sql)
        if note := older_tables(results):
            print(note, file=sys.stderr)
    if form == "table":
        table = new_table(*answer.column_names, overflow="fold")
        for column, field in zip(table.columns, answer.schema, strict=True):
            column.justify = "right" if pa.types.is_integer(field.type) or pa.types.is_floating(field.type) else "left"
        for row in rows_of(answer):
            table.add_row(*("" if value is None else str(plain(value)) for value in row))
        print_table(console, table)
        console.print(counted(answer.num_rows, "row"))
    elif out is None:
        made = answer_bytes(answer, form)
        shown_here = sys.stdout.isatty()  # only a terminal needs safe text
        sys.stdout.buffer.write(printable(made.decode()).encode() if shown_here else made)
        sys.stdout.buffer.flush()
    else:
        write_named(out, answer_bytes(answer, form))
