"""The comparison of schemes as tables and sentences for the terminal."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from railyard.base.terminal import new_table, print_table
from railyard.experiment.stacks import STACK_SCHEME
from railyard.figures.figure import Figure, Quantile
from railyard.figures.rows import FIGURES
from railyard.results import differences, findings, shortage
from railyard.results.aggregate import LATE, VIRTUAL, Cell, cells
from railyard.results.records import Run
from railyard.results.shortage import Shortage
from railyard.stats.intervals import TOO_SMALL


def seconds(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def percent(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{value * 100:.{digits}f} %"


def megabytes(value: float) -> str:
    return f"{value / 1e6:.2f}"


Value = str | int | float | bool | None
"""A value of a table. None: it is missing."""
SIGNIFICANT, MOST_DIGITS = 4, 6


def aligned(rows: Sequence[Sequence[Value]]) -> list[list[str]]:
    """Values as text, with four significant digits and the same number of decimals in a column."""
    decimals = [
        _decimals([value for value in column if isinstance(value, float)]) for column in zip(*rows, strict=True)
    ]
    return [[_written(value, places) for value, places in zip(row, decimals, strict=True)] for row in rows]


def _decimals(column: Sequence[float]) -> int | None:
    """The number of decimals of a column. None: its values differ too much for one number."""
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


@dataclass(frozen=True)
class TextColumn:
    """One figure of the comparison: its name in two lines, and its text for each scheme, "–" if it has no value."""

    head: tuple[str, str]
    texts: list[str]
    number: bool = True
    figure: Figure | None = None
    short: Shortage | None = None
    """The largest shortage of a scheme. None: all schemes have enough values for the quantile."""

    @property
    def justify(self) -> JustifyMethod:
        return "right" if self.number else "left"

    @property
    def tells_nothing(self) -> bool:
        """Whether the text is equal in all rows, or no scheme's requests carry the quantile."""
        return len(set(self.texts)) == 1 or self.is_nowhere

    @property
    def is_empty(self) -> bool:
        """Whether it is a quantile of requests and no scheme requested anything."""
        return self.figure is not None and self.figure.is_if_carried and set(self.texts) == {"–"}

    @property
    def is_nowhere(self) -> bool:
        """Whether it is a quantile that no scheme's requests carry."""
        return set(self.texts) - {"–"} == {TOO_SMALL}

    @property
    def name(self) -> str:
        return " ".join(part for part in self.head if part).replace("- ", "")


def _chunks(cell: Cell) -> str:
    done = len(cell.chunks) - cell.censored
    return f"{done}/{len(cell.chunks)}" if cell.censored else f"{done}"


def columns_of(row: Sequence[Cell]) -> tuple[list[TextColumn], list[TextColumn]]:
    """The columns that tell schemes apart, and those that do not, because all rows are equal or "n too small". Values
    of stand-ins are marked."""
    every = [marked(column, row) if column.number else column for column in _columns([cell.shown for cell in row], row)]
    same = [column for column in every if column.is_nowhere or (len(row) > 1 and column.tells_nothing)]
    return [column for column in every if column not in same], same


def marked(column: TextColumn, row: Sequence[Cell]) -> TextColumn:
    texts = [
        f"{text}{cell.mark}" if text not in ("–", TOO_SMALL) else text
        for text, cell in zip(column.texts, row, strict=True)
    ]
    return replace(column, texts=texts)


def _columns(row: Sequence[Cell], ran: Sequence[Cell]) -> list[TextColumn]:
    """All columns. `row`: the cells whose values are shown; `ran`: the same cells without stand-ins."""
    paths = "/".join(next((list(cell.down_bytes) for cell in row if cell.runs), []))
    of_figures = [
        TextColumn(
            figure.head,
            [figure.text(cell.runs) for cell in row],
            figure=figure,
            short=shortage.worst(_short_of(cell, figure) for cell in row),
        )
        for figure in FIGURES
        if figure.head is not None
    ]
    return [
        *(column for column in of_figures if not column.is_empty),
        TextColumn(
            ("MB down", paths),
            ["/".join(megabytes(value) for value in cell.down_bytes.values()) or "–" for cell in row],
        ),
        TextColumn(("", "chunks"), [_chunks(cell) for cell in row]),
        TextColumn(("", "outcome"), [cell.outcomes for cell in ran], number=False),
        TextColumn(("", "fidelity"), [cell.fidelity for cell in ran], number=False),
    ]


MARKS = {
    VIRTUAL: "no run of this scheme counts here: the value is that of the same run in virtual time",
    LATE: "no run of this scheme counts here, and it has no twin in virtual time: the value is that of a void run",
}


def marks_in_words(row: Sequence[Cell]) -> str:
    """The meaning of the marks of these cells, in words."""
    marks = dict.fromkeys(cell.mark for cell in row if cell.mark)
    return "".join(f"{mark}: {MARKS[mark]}; it is in no figure and in no comparison. " for mark in marks).strip()


def _short_of(cell: Cell, figure: Figure) -> Shortage | None:
    """The shortage of a quantile that is shown only if the cell has enough values."""
    pool = figure.pool
    if not isinstance(pool, Quantile) or not pool.if_carried:
        return None
    count = pool.count(cell.runs)
    return shortage.of_values(pool.q, count, pool.things, shortage.seeds_of(cell.runs)) if count else None


def shortages(columns: Sequence[TextColumn]) -> dict[str, Shortage]:
    """The shortage of each column with a quantile that is "n too small"."""
    return {column.name: column.short for column in columns if column.short is not None and TOO_SMALL in column.texts}


def same_in_words(same: Sequence[TextColumn]) -> str:
    """ "rebuffer rate 0.0 %, outcome complete": the columns that are equal in all rows. A column without values is
    left out."""
    equal = [
        (column.name, str(column.short) if column.is_nowhere else next((t for t in column.texts if t != "–"), ""))
        for column in same
    ]
    return ", ".join(f"{name} {text}" for name, text in equal if text)


def two_line_heads(columns: Sequence[TextColumn]) -> list[str]:
    """The headings of the columns. Of neighbours that share a first line, only the first shows it."""
    before = ["", *(column.head[0] for column in columns)]
    return [
        "\n".join(("" if column.head[0] == seen else column.head[0], column.head[1]))
        for seen, column in zip(before, columns, strict=False)
    ]


def comparison(pair: str, row: list[Cell]) -> Table:
    shown, _ = columns_of(row)
    table = new_table()
    table.title, table.title_justify, table.title_style = pair, "left", "bold"
    table.add_column("\nscheme", no_wrap=True)
    for head, column in zip(two_line_heads(shown), shown, strict=True):
        table.add_column(head, justify=column.justify, no_wrap=column.number)
    for place, cell in enumerate(row):
        styles = {
            "outcome": "" if cell.all_complete else "yellow",
            "fidelity": "red" if not cell.runs and not cell.not_run else "",
        }
        texts = [Text(column.texts[place], style=styles.get(column.name, "")) for column in shown]
        table.add_row(Text(cell.label), *texts)
    return table


def figures_table(runs: Sequence[Run]) -> Table:
    """One table with all figures of every pair and scheme, including those that are equal in all rows."""
    rows = [(pair, cell) for pair, row in cells(runs).items() for cell in row]
    columns = _columns([cell.shown for _, cell in rows], [cell for _, cell in rows])
    table = Table(*("pair", "scheme"))
    for column in columns:
        table.add_column(column.name, justify=column.justify)
    for place, (pair, cell) in enumerate(rows):
        table.add_row(pair, cell.label, *(column.texts[place] for column in columns))
    return table


def print_findings(console: Console, conclusions: findings.Findings | None) -> None:
    """Prints the findings, one sentence a line."""
    if conclusions is None:
        return
    console.print(conclusions.headline, style="bold", soft_wrap=False)
    for pair, sentences in conclusions.of_pair.items():
        for sentence in sentences:
            console.print(f"{pair}: {sentence}", soft_wrap=False)


def print_established(console: Console, runs: Sequence[Run], known: findings.Compared, headline: str) -> None:
    """Prints which differences between schemes are established, or why none can be, unless the headline says it."""
    played = differences.sound(runs)
    compared = differences.usual(played)
    if not compared:
        return
    small = differences.too_small(played)
    if small:
        if small.partition(". ")[0] not in headline:
            console.print(small)
        return
    established = differences.sentences(findings.over_all(known, compared))
    for sentence in established or ["No difference between two schemes is established."]:
        console.print(f"Established: {sentence}" if established else sentence)


def print_comparison(console: Console, runs: Sequence[Run], not_run: Sequence[dict[str, str]], rule: object) -> None:
    """Prints the table of each pair, notes on how to read it, and the findings. `rule`: the rule that chose the
    starts."""
    table = cells(runs, not_run)
    for pair, row in table.items():
        print_table(console, comparison(pair, row))
        shown, same = columns_of(row)
        if few := shortage.note(shortages(shown)):
            console.print(few, style="italic dim", soft_wrap=False)
        if alike := same_in_words(same):
            console.print(f"Equal in all rows: {alike}.", style="italic dim", soft_wrap=False)
    every = [cell for row in table.values() for cell in row]
    if any(cell.measured.censored for cell in every):
        console.print(
            "≥: a lower bound. It rests on chunks that had not completed when the run ended, each with the time it had "
            "waited or, if it was never requested, with the time limit; or on plays that failed. chunks: "
            "completed/all that count.",
            style="dim",
            soft_wrap=False,
        )
    elsewhere = [row for row in not_run if row["scheme"] != STACK_SCHEME]
    if elsewhere:
        names = ", ".join(dict.fromkeys(row["label"] for row in elsewhere))
        remedy = "run the same experiment with --arena kernel or mpshell"
        console.print(f"{names}: {elsewhere[0]['reason']}; {remedy}.", style="yellow", soft_wrap=False)
    for absent in not_run:
        if absent["scheme"] == STACK_SCHEME:
            sentence = f"{absent['pair']}, {absent['label']}: {absent['reason']}"
            console.print(sentence, style="red")
    void = [run for run in runs if run.void]
    if void:
        console.print("Void, and in no figure:", style="red")
        for run in void:
            console.print(f"  {run.run_id}: {run.void_words}", style="red")
    faulty = [cell for cell in every if cell.faulty]
    if faulty:
        failed = [run for cell in faulty for run in cell.runs if run.is_fault]
        names = "; ".join(f"{run.run_id}: {run.outcome}: {run.record['message']}" for run in failed)
        console.print(f"A program failed: {names}", style="red")
    known = findings.compared(runs)
    conclusions = findings.find(runs, not_run, rule, known)
    print_findings(console, conclusions)
    print_established(console, runs, known, conclusions.headline if conclusions else "")
