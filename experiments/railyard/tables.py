"""The comparison as a person reads it in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from railyard.aggregate import Cell, cells
from railyard.records import RESULT_OUTCOMES, Run
from railyard.terminal import print_table


def seconds(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def percent(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{value * 100:.{digits}f} %"


def megabytes(value: float) -> str:
    return f"{value / 1e6:.2f}"


Value = str | int | float | bool | None
SIGNIFICANT, MOST_DIGITS = 4, 6


def aligned(rows: Sequence[Sequence[Value]]) -> list[list[str]]:
    """Values as a person writes them: four significant digits, and as many decimals in all of a column."""
    decimals = [
        _decimals([value for value in column if isinstance(value, float)]) for column in zip(*rows, strict=True)
    ]
    return [[_written(value, places) for value, places in zip(row, decimals, strict=True)] for row in rows]


def _decimals(column: Sequence[float]) -> int | None:
    """Of a column; None where its values are too far apart for as many in each."""
    shown = [f"{value:.{SIGNIFICANT}g}" for value in column if abs(value) < 10**SIGNIFICANT]
    if any("e" in text for text in shown):
        return None
    places = max((len(text.partition(".")[2]) for text in shown), default=0)
    digits = max((len(f"{abs(value):.0f}") for value in column), default=1)
    return min(places, max(0, MOST_DIGITS - digits))


def _written(value: Value, places: int | None) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.{SIGNIFICANT}g}" if places is None else f"{value:.{places}f}" if value else "0"
    return str(value)


def comparison(pair: str, row: list[Cell]) -> Table:
    title = {"title": pair, "title_justify": "left", "title_style": "bold", "header_style": "bold"}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), **title)  # type: ignore[arg-type]
    table.add_column("\nscheme", no_wrap=True)
    paths = next((list(cell.down_bytes) for cell in row if cell.runs), [])
    figures = ("first\nframe s", "rebuffer\nrate", "redun-\ndancy", "effi-\nciency")
    for name in ("RCT s\nmedian", "\np95", "\np99", "\nmax", *figures):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column(f"MB down\n{'/'.join(paths)}", justify="right", no_wrap=True)
    table.add_column("\nchunks", justify="right", no_wrap=True)
    table.add_column("\noutcome")
    table.add_column("\nfidelity")
    for cell in row:
        done = len(cell.chunks) - cell.censored
        chunks = f"{done}/{len(cell.chunks)}" if cell.censored else f"{done}"
        table.add_row(
            cell.label,
            *(seconds(cell.rct(q)) for q in (0.5, 0.95, 0.99, 1.0)),
            seconds(cell.first_frame),
            percent(cell.rebuffer_rate),
            percent(cell.redundancy),
            str(cell.efficiency or "–"),
            "/".join(megabytes(value) for value in cell.down_bytes.values()) or "–",
            chunks,
            Text(cell.outcomes, style="" if cell.all_complete else "yellow"),
            Text(cell.fidelity, style="red" if not cell.runs and not cell.not_run else ""),
        )
    return table


def print_comparison(console: Console, runs: Sequence[Run], not_run: Sequence[dict[str, str]] = ()) -> None:
    table = cells(runs, not_run)
    for pair, row in table.items():
        print_table(console, comparison(pair, row))
    every = [cell for row in table.values() for cell in row]
    if any(cell.censored for cell in every):
        console.print(
            "≥: rests on chunks that had not completed when the run ended; each counts with the time it had waited, "
            "a lower bound. chunks: completed/requested.",
            style="dim",
        )
    if not_run:
        names = ", ".join(dict.fromkeys(row["label"] for row in not_run))
        console.print(f"{names}: {not_run[0]['reason']}; run the same experiment with --arena mpshell.", style="yellow")
    void = [run for run in runs if run.void]
    if void:
        console.print("Void, and in no figure:", style="red")
        for run in void:
            console.print(f"  {run.run_id}: {run.void_words}", style="red", markup=False, soft_wrap=True)
    faulty = [cell for cell in every if cell.faulty]
    if faulty:
        failed = [run for cell in faulty for run in cell.runs if run.outcome not in RESULT_OUTCOMES]
        names = "; ".join(f"{run.run_id}: {run.outcome}: {run.record['message']}" for run in failed)
        console.print(f"A program failed: {names}", style="red")
