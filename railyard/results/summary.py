"""The result of a campaign in the terminal: one table and a few sentences, at most MOST_LINES lines. The page has all
of it, and `railyard show CAMPAIGN` prints the tables of each pair."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from railyard.base.files import write_whole
from railyard.base.lists import grouped
from railyard.base.models import FrozenModel
from railyard.base.terminal import MOST_LINES, first_lines, fits, fold, new_table, print_lines
from railyard.base.words import counted
from railyard.experiment.arenas import is_exact
from railyard.experiment.stacks import STACK_SCHEME
from railyard.figures.rows import REBUFFER_RATE
from railyard.results import differences, findings, shortage, twins
from railyard.results.aggregate import Cell, cells, pooled
from railyard.results.causes import causes
from railyard.results.records import Run
from railyard.results.tables import TextColumn, columns_of, marked, marks_in_words, shortages, two_line_heads
from railyard.stats.bootstrap import FEWEST

ANSWER = "answer.json"
MOST_ROWS = 16  # of the table
BY_PAIR = 2  # pairs that have rows of their own; with more, each scheme has one row over all pairs
MOST_APART = 3  # plays that are named if they differ from their twins
LEAST = ("redundancy", "first frame s", "RCT s p95")


@dataclass(frozen=True)
class Outcome:
    """The contents of a campaign's report."""

    runs: Sequence[Run]
    not_run: Sequence[dict[str, str]]
    conclusions: findings.Findings | None
    twins: Mapping[str, Sequence[Run]] | None = None
    command: str = ""

    @property
    def table(self) -> dict[str, list[Cell]]:
        return cells(self.runs, self.not_run, self.twins)


def _rows(outcome: Outcome) -> list[Cell]:
    """A row for each pair and scheme; with many, a row for each scheme over all pairs."""
    table = outcome.table
    if len(table) <= BY_PAIR and sum(map(len, table.values())) <= MOST_ROWS:
        return [cell for row in table.values() for cell in row]
    of_schemes = grouped((cell.label, cell) for row in table.values() for cell in row)
    return [pooled(differences.ALL, label, row) for label, row in of_schemes.items()]


def _stalled(cell: Cell, *, with_ends: bool) -> str:
    """The rebuffer rate in %, with its interval if the plays carry one."""
    rate = cell.point(REBUFFER_RATE)
    if rate is None:
        return "–"
    level = differences.level_of(cell.runs, REBUFFER_RATE) if with_ends and not cell.mark else None
    if level is not None and level.known:
        return differences.level_words(level, ".1f", 100)
    return replace(rate, value=100 * rate.value).text(".1f")


def _apart(outcome: Outcome) -> dict[str, str]:
    """The differences of plays from their twins, by run, for plays that differ."""
    agreements = twins.all_agreements(outcome.runs, outcome.twins or {})
    return {name: agreement for name, agreement in agreements.items() if agreement != twins.AGREES}


def _twin_word(cell: Cell, known: Mapping[str, Sequence[Run]], apart: Mapping[str, str]) -> str:
    disagreements = [run.run_id in apart for run in cell.runs if run.run_id in known]
    if len(disagreements) > 1:
        return f"{disagreements.count(False)} of {len(disagreements)}"
    return ("differs" if disagreements[0] else "agrees") if disagreements else "–"


def _on_time(cell: Cell) -> str:
    if not cell.void_runs:
        return "not run" if not cell.runs else "on time"
    return f"{len(cell.void_runs)} of {len(cell.void_runs) + len(cell.runs)} void" if cell.runs else "void"


def _columns(outcome: Outcome, rows: Sequence[Cell], *, with_ends: bool) -> list[TextColumn]:
    shown = [cell.shown for cell in rows]
    if any(cell.pair != differences.ALL for cell in rows):
        lasting = [findings.stalled(cell).text(".1f") if cell.runs else "–" for cell in shown]
        columns = [TextColumn(("", "pair"), [cell.pair for cell in rows], number=False)]
        columns += [TextColumn(("", "scheme"), [cell.label for cell in rows], number=False)]
        columns += [TextColumn(("stalled", "s a play"), lasting)]
    else:
        columns = [TextColumn(("", "scheme"), [cell.label for cell in rows], number=False)]
        columns += [TextColumn(("stalled", "%"), [_stalled(cell, with_ends=with_ends) for cell in shown])]
    known, same = columns_of(rows)
    every = {column.name: column for column in (*known, *same)}
    tail: list[str] = [name for name in ("RCT s p95", "RCT s p99") if name in every and not every[name].is_nowhere]
    names = ("RCT s median", *(tail or ["RCT s max"]), "first frame s", "redundancy")
    columns = [column if not column.number else marked(column, rows) for column in columns]
    columns += [every[name] for name in names if set(every[name].texts) != {"–"}]
    if outcome.twins is not None:
        apart = _apart(outcome)
        twin_words = [_twin_word(cell, outcome.twins, apart) for cell in rows]
        columns += [TextColumn(("virtual", "time"), twin_words, number=False)]
    if any(not is_exact(run.config["arena"]) for run in outcome.runs):
        columns += [TextColumn(("", "emulator"), [_on_time(cell) for cell in rows], number=False)]
    return columns


def _table(columns: Sequence[TextColumn]) -> Table:
    table = new_table()
    for head, column in zip(two_line_heads(columns), columns, strict=True):
        table.add_column(head, justify=column.justify, no_wrap=True)
    last = ""
    for row in zip(*(column.texts for column in columns), strict=True):
        again = columns[0].name == "pair" and row[0] == last
        last = row[0]
        table.add_row(*(Text("" if again and not place else text) for place, text in enumerate(row)))
    return table


def _carry(rows: Sequence[Cell]) -> bool:
    """Whether the plays of any scheme are enough for intervals."""
    return any(one.runs and differences.layout_of(one.runs).windows >= FEWEST for one in rows)


def _fitting(console: Console, outcome: Outcome, rows: Sequence[Cell]) -> tuple[Table, list[TextColumn]]:
    """The widest table that fits. To fit, it loses the intervals, then the columns LEAST one by one; if this is not
    enough, its texts have several lines."""
    wide = _carry(rows)
    for with_ends, left_out in [(wide, LEAST[:0]), *((False, LEAST[:count]) for count in range(len(LEAST) + 1))]:
        columns = [column for column in _columns(outcome, rows, with_ends=with_ends) if column.name not in left_out]
        table = _table(columns)
        if fits(console, table):
            return table, columns
    fold(console, table)
    return table, columns


def _trouble(outcome: Outcome, rows: Sequence[Cell]) -> list[tuple[str, str]]:
    """Sentences on faults with their remedies, each with its style."""
    troubles: list[tuple[str, str]] = []
    void = [run for run in outcome.runs if run.void]
    if void:
        again = f" `{outcome.command}` repeats them." if outcome.command else ""
        count = f"{len(void)} of {counted(len(outcome.runs), 'run')} void, and in no figure"
        troubles.append((f"{count}: {' '.join(causes(void))}{again}", "red"))
    if apart := _apart(outcome):
        some = "; ".join(f"{name} ({difference})" for name, difference in list(apart.items())[:MOST_APART])
        more = f"; and {len(apart) - MOST_APART} more" if len(apart) > MOST_APART else ""
        troubles.append((f"Outside of what the same runs come to in virtual time: {some}{more}.", "yellow"))
    if marks := marks_in_words(rows):
        troubles.append((marks, "yellow"))
    if fallen := fallback_words(outcome.runs):
        troubles.append((fallen, "yellow"))
    of_stacks = [row for row in outcome.not_run if row["scheme"] == STACK_SCHEME]
    troubles += [(f"{row['pair']}, {row['label']}: {row['reason']}", "red") for row in of_stacks]
    reasons = grouped((row["reason"], row["label"]) for row in outcome.not_run if row not in of_stacks)
    for why, labels in reasons.items():
        remedy = "run the same experiment with --arena kernel or mpshell"
        troubles.append((f"{', '.join(dict.fromkeys(labels))}: {why}; {remedy}.", "yellow"))
    return troubles


def fallback_words(runs: Sequence[Run]) -> str | None:
    """The number of runs in which the kernel's MPTCP fell back to TCP, by scheme, in words. None: in no run."""
    counting = grouped((run.label, run.fell_back_to_tcp) for run in runs if not run.void)
    parts = [f"{label} in {sum(of)} of {counted(len(of), 'run')}" for label, of in counting.items() if any(of)]
    return f"MPTCP fell back to plain TCP, which uses one path: {', '.join(parts)}." if parts else None


def program_fault(runs: Sequence[Run]) -> str | None:
    """The number of runs in which a program failed, and the first failure, in words. None: in no run that counts."""
    faulty = [run for run in runs if not run.void and run.is_fault]
    if not faulty:
        return None
    first = f"{faulty[0].run_id}: {faulty[0].outcome.replace('_', ' ')}: {faulty[0].record['message']}"
    return f"A program failed in {len(faulty)} of {counted(len(runs), 'run')}; the first is {first.removesuffix('.')}."


def tell_program_fault(console: Console, runs: Sequence[Run]) -> bool:
    """Prints a sentence if a program failed. Returns whether one did."""
    fault = program_fault(runs)
    if fault is not None:
        console.print(fault, style="red")
    return fault is not None


def summary_lines(console: Console, outcome: Outcome) -> list[str]:
    """The lines of the summary, at most MOST_LINES - 1, so that there is room for a line about the page."""
    rows = _rows(outcome)
    table, columns = _fitting(console, outcome, rows[:MOST_ROWS])
    few = shortage.note(shortages(columns))
    parts: list[RenderableType] = [table]
    if len(rows) > MOST_ROWS:
        parts.append(Text(f"… and {len(rows) - MOST_ROWS} more schemes, on the page.", style="dim"))
    answers = outcome.conclusions.answers if outcome.conclusions is not None else []
    parts += [Text(sentence, style="bold" if not place else "") for place, sentence in enumerate(answers)]
    parts += [Text(sentence) for sentence in (outcome.conclusions.places if outcome.conclusions is not None else [])]
    parts += [Text(few, style="dim")] if few else []
    parts += [Text(sentence, style=style) for sentence, style in _trouble(outcome, rows)]
    return first_lines(console, parts, MOST_LINES - 1)


def print_summary(console: Console, outcome: Outcome) -> None:
    print_lines(console, summary_lines(console, outcome))


class Answer(FrozenModel):
    """What a campaign came to, as `answer.json` in its folder: for the page of another one."""

    description: str
    runs: int
    void: int
    columns: list[str]
    rows: list[list[str]]
    sentences: list[str]


def answer_of(outcome: Outcome, description: str) -> Answer:
    rows = _rows(outcome)
    columns = _columns(outcome, rows, with_ends=_carry(rows))
    return Answer(
        description=description,
        runs=len(outcome.runs),
        void=sum(run.void for run in outcome.runs),
        columns=[column.name for column in columns],
        rows=[list(row) for row in zip(*(column.texts for column in columns), strict=True)],
        sentences=outcome.conclusions.answers if outcome.conclusions is not None else [],
    )


def write_answer(answer: Answer, folder: Path) -> None:
    write_whole(folder / ANSWER, answer.model_dump_json(indent=1) + "\n")


def read_answer(folder: Path) -> Answer | None:
    """Reads the answer of a campaign. None: there is none, or it cannot be read."""
    try:
        return Answer.model_validate_json((folder / ANSWER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
