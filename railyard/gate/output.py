"""The gate's verdict as Markdown for a pull request, JUnit XML for CI, CSV, and a table in the terminal."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from rich.console import Console
from rich.table import Table

from railyard.base import junit as junit_xml
from railyard.base.page import table_lines
from railyard.base.terminal import new_table, print_table
from railyard.base.words import counted
from railyard.figures.figure import NONE
from railyard.figures.rows import GATED, TAIL
from railyard.gate.compare import Comparison, Row
from railyard.gate.exercise import Exercise
from railyard.gate.suite import Suite
from railyard.results import resolution, shortage
from railyard.results.shortage import Shortage


@dataclass(frozen=True)
class Verdict:
    """The result of a gate."""

    suite: Suite
    baseline: str
    candidate: str
    rows: list[Row]
    partings: dict[tuple[str, str], str]  # of a failed row: where its worst play's runs part
    wall_s: float
    changed: Sequence[str] = field(default=(), kw_only=True)  # the files in which the two versions differ
    left_out: int = field(default=0, kw_only=True)  # plays that were not run, because others hung

    @property
    def failed(self) -> list[Row]:
        return [row for row in self.rows if row.failed]

    @property
    def is_regression(self) -> bool:
        return bool(self.failed)

    @property
    def further(self) -> list[tuple[str, str, bool]]:
        """Further comparisons: name, what moved (empty: nothing), and whether it is a regression."""
        return []

    @property
    def has_run(self) -> bool:
        return any(row.after for row in self.rows)

    @property
    def compared(self) -> int:
        return sum(comparison.moved for row in self.rows for comparison in row.comparisons)

    @property
    def headline(self) -> str:
        total = sum(len(row.regressions) + len(row.faults) for row in self.rows)
        if total:
            return counted(total, "regression")
        if not self.has_run:
            return "identical: both versions are the same program, so nothing was run"
        if all(row.identical for row in self.rows):
            return "identical: every output of every run is the same, by hash"
        better = sum(row.verdict == "better" for row in self.rows)
        of = " in what these rows exercise" if self.untried else ""
        return f"no regression{of}" + (f", {counted(better, 'row')} better" if better else "")

    @cached_property
    def exercise(self) -> Exercise:
        return Exercise.of(run for row in self.rows for run in row.after)

    @property
    def untried(self) -> str:
        """Exercise.untried() of the files that differ."""
        return self.exercise.untried(self.changed)

    @property
    def legend(self) -> str:
        versions = f"A is {self.baseline}, B is {self.candidate}."
        if not self.has_run:
            return versions
        few = shortage.note(self.shortages)
        return (
            f"{versions} Each play runs on both, from the same start. The change of "
            "a time is that of a typical play, B / A − 1 (paired ratio); that of a rate or share is the mean of B − A. "
            f"[ ]: its 95 % interval, each for itself.{f' {few}' if few else ''}"
        )

    @property
    def shortages(self) -> dict[str, Shortage]:
        """How many plays an interval would need, by figure."""
        moved = [comparison for row in self.rows for comparison in row.comparisons if comparison.moved]
        unknown = [comparison for comparison in moved if not comparison.interval.known]
        return shortage.gather(
            [(one.figure.gate_title, shortage.of_plays(len(one.deltas), one.fewest)) for one in unknown]
        )

    @property
    def facts(self) -> str:
        suite = self.suite
        counts = Counter(row.verdict for row in self.rows)
        counted_verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
        rows = counted(len(self.rows), "row")
        if not self.has_run:
            return f"Suite {suite.name}: {rows} ({counted_verdicts}). Took {self.wall_s:.0f} s."
        plays = sorted({len(row.after) for row in self.rows})
        return (
            f"Suite {suite.name}: {rows} of {' or '.join(map(str, plays))} plays ({counted_verdicts}); "
            f"{self.compared} comparisons moved and were tested, family-wise error {suite.alpha:g}. "
            f"Took {self.wall_s:.0f} s. {resolution.note(run for row in self.rows for run in row.after)}"
        ).rstrip()

    @property
    def limits(self) -> list[str]:
        """What the suite exercises, what it does not although the change affects it, and what was not run."""
        if not self.has_run:
            return []
        left_out = f"After plays that hung, {counted(self.left_out, 'play')} of the suite were not run or not compared."
        untried = [f"{self.untried}."] if self.untried else []
        return [self.exercise.sentence, *untried, *([left_out] if self.left_out else [])]


def _value(comparison: Comparison, value: float) -> str:
    if math.isnan(value):
        return NONE
    if math.isinf(value):
        return "never"
    return f"{value:.3f} s" if comparison.figure.is_relative else f"{value * 100:.2f} %"


def change(comparison: Comparison) -> str:
    """The change with its sign: in % of the baseline for times, in percentage points for rates."""
    return f"{_signed(comparison.change)} {'%' if comparison.figure.is_relative else 'points'}"


def ends(comparison: Comparison) -> str:
    """The interval of the change, in the unit of the change."""
    return f"[{comparison.interval.ends(_signed)}]"


def _signed(share: float) -> str:
    if math.isinf(share):
        return "+∞" if share > 0 else "−∞"
    number = f"{share * 100:+.1f}".replace("-", "−")
    return "±0.0" if number in ("+0.0", "−0.0") else number


def _floor(comparison: Comparison) -> str:
    return f"{comparison.floor * 100:g} {'%' if comparison.figure.is_relative else 'points'}"


def sentence(comparison: Comparison) -> str:
    """The evidence for one verdict, in one line."""
    before, after = comparison.typical
    if not comparison.is_known:
        return f"{comparison.figure.gate_title} is not reported"
    if not comparison.moved:
        return f"{comparison.figure.gate_title} {_value(comparison, after)} in both, play by play"
    worse = sum(delta > 0 for delta in comparison.play_deltas)
    of_windows = ""
    if len(comparison.deltas) < len(comparison.play_deltas):
        up = sum(delta > 0 for delta in comparison.deltas)
        of_windows = f" and {up} of {len(comparison.deltas)} windows of trace"
    title, values = comparison.figure.gate_title, [_value(comparison, value) for value in (before, after)]
    return (
        f"{title} {' → '.join(values)}, {change(comparison)} "
        f"{ends(comparison)} (floor {_floor(comparison)}); worse in {worse} of "
        f"{len(comparison.play_deltas)} plays{of_windows}, p = {comparison.p_worse:.2g}, "
        f"corrected {comparison.adjusted_worse:.2g}"
    )


def _cell(comparison: Comparison) -> str:
    before, after = comparison.typical
    if not comparison.moved:
        return _value(comparison, after)
    mark = {"worse": " **worse**", "better": " *better*"}.get(comparison.verdict, "")
    return f"{_value(comparison, before)} → {_value(comparison, after)} ({change(comparison)} {ends(comparison)}){mark}"


def _cells(row: Row) -> list[str]:
    figures = [_cell(comparison) for comparison in row.comparisons] or [NONE] * len(GATED)
    return [row.place, row.label, *figures, f"**{row.verdict}**" if row.failed else row.verdict]


def markdown(verdict: Verdict) -> str:
    lines = [
        f"### Railyard gate: {verdict.headline}",
        "",
        f"{verdict.legend} {verdict.facts}",
        "",
        *(line for limit in verdict.limits for line in (limit, "")),
        *table_lines(
            ["scenario", "scheme", *(figure.gate_title for figure in GATED), "verdict"], *map(_cells, verdict.rows)
        ),
        "",
        "Times: median over the plays; their change is that of a typical play, so it need not be the ratio of the two "
        "medians. Rates: mean over the plays. failed, stalled, tail: share of the plays; tail: "
        f"plays whose longest request takes {TAIL:g} times as long as in the other version.",
    ]
    for row in verdict.failed:
        lines += ["", f"**{row.place}, {row.label}**", ""]
        lines += [f"- {text}" for text in evidence(row)]
        if (row.place, row.label) in verdict.partings:
            lines += [
                "",
                f"The play of {row.worst.pair}, seed {row.worst.seed}:",
                "```",
                verdict.partings[row.place, row.label],
            ]
            lines += ["```"]
    return "\n".join(lines) + "\n"


def evidence(row: Row) -> list[str]:
    faults = [
        f"{run.pair}, seed {run.seed}: {run.outcome.replace('_', ' ')}: {run.record['message']}" for run in row.faults
    ]
    return faults + [sentence(comparison) for comparison in row.regressions]


def junit(verdict: Verdict) -> bytes:
    """A test suite for each scenario, a test case for each scheme and metric. A regression is a failure, a fault an
    error."""
    root = ElementTree.Element("testsuites", name=f"railyard gate, suite {verdict.suite.name}")
    for place in dict.fromkeys(row.place for row in verdict.rows):
        rows = [row for row in verdict.rows if row.place == place]
        suite = ElementTree.SubElement(root, "testsuite", name=place)
        for row in rows:
            _cases(suite, row, verdict)
    if verdict.further:
        suite = ElementTree.SubElement(root, "testsuite", name="scenarios")
        for name, message, is_regression in verdict.further:
            case = ElementTree.SubElement(suite, "testcase", classname="scenarios", name=name)
            if message:
                kind = ("failure", {"message": message}) if is_regression else ("system-out", {})
                ElementTree.SubElement(case, kind[0], kind[1]).text = message
    counts = {"tests": "testcase", "failures": "testcase/failure", "errors": "testcase/error"}
    return junit_xml.written(root, counts)


def _cases(suite: ElementTree.Element, row: Row, verdict: Verdict) -> None:
    name = f"{row.place}.{row.label}"
    runs = ElementTree.SubElement(suite, "testcase", classname=name, name="runs")
    for run in row.faults:
        fault = ElementTree.SubElement(runs, "error", message=f"{run.pair}, seed {run.seed}: {run.outcome}")
        fault.text = str(run.record["message"])
    for comparison in row.comparisons:
        case = ElementTree.SubElement(suite, "testcase", classname=name, name=comparison.figure.name)
        if comparison.verdict == "worse":
            failure = ElementTree.SubElement(case, "failure", message=sentence(comparison))
            failure.text = verdict.partings.get((row.place, row.label), "")
        else:
            said = "identical" if row.identical else comparison.verdict
            ElementTree.SubElement(case, "system-out").text = f"{said}: {sentence(comparison)}"


def _change_cell(comparison: Comparison) -> str:
    if not comparison.moved:
        return "=" if comparison.is_known else NONE
    return f"{change(comparison)}\n{ends(comparison)}"


def verdict_table(verdict: Verdict) -> Table:
    """A row for each scenario and scheme, with the change of each figure."""
    titles = [figure.gate_title for figure in GATED]
    table = new_table("scenario", "scheme", "verdict", *titles, right=titles, no_wrap=True)
    for row in verdict.rows:
        changes = [_change_cell(comparison) for comparison in row.comparisons]
        table.add_row(
            row.place, row.label, row.verdict, *(changes or [NONE] * len(GATED)), style="red" if row.failed else ""
        )
    return table


def records(verdict: Verdict) -> list[dict[str, Any]]:
    """A row for each comparison, as numbers: times in s, rates and changes as shares. A scheme whose outputs are all
    the same has no comparison and gets one row that says so. Values that are not finite are left empty."""

    def number(value: float) -> float | None:
        return value if math.isfinite(value) else None

    rows: list[dict[str, Any]] = []
    for row in verdict.rows:
        place = {"scenario": row.place, "scheme": row.label, "verdict": row.verdict}
        for one in row.comparisons:
            before, after = map(number, one.typical)
            ends = one.interval if one.moved and one.interval.known else None
            same = one.is_known and not one.moved
            figure = {"figure": one.figure.name, "figure_verdict": "identical" if same else one.verdict}
            values = {"before": before, "after": after, "change": number(one.change) if one.is_known else None}
            low, high = (None, None) if ends is None else (number(ends.low), number(ends.high))
            tested = {"low": low, "high": high, "p": one.adjusted_worse if one.moved else None}
            rows.append(place | figure | values | tested)
        if not row.comparisons:
            names = ("figure", "figure_verdict", "before", "after", "change", "low", "high", "p")
            rows.append(place | dict.fromkeys(names))
    return rows


def print_verdict(console: Console, verdict: Verdict) -> None:
    table = verdict_table(verdict)
    print_table(console, table, keys=3)
    console.print(verdict.legend)
    console.print(verdict.facts)
    for limit in verdict.limits:
        console.print(limit)
    for row in verdict.failed:
        for text in evidence(row):
            console.print(f"{row.place}, {row.label}: {text}", style="red")
        if (row.place, row.label) in verdict.partings:
            limit = verdict.partings[row.place, row.label]
            console.print(f"the play of {row.worst.pair}, seed {row.worst.seed}, {limit}")
    for name, message, is_regression in verdict.further:
        if message:
            console.print(f"{name}: {message}", style="red" if is_regression else "")
    console.print(f"gate: {verdict.headline}", style="red" if verdict.is_regression else "green")


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
