"""The comment on a pull request: the runs, their statistical power, the verdict, the worst pair. There is always
one."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from railyard.base.page import table_lines
from railyard.base.provenance import version_words
from railyard.base.words import counted
from railyard.gate import output
from railyard.gate.power import share_words
from railyard.stress.gate import CORPUS, StackVerdict
from railyard.stress.output import cell_words
from railyard.stress.run import FAIL

LONGEST = "rct_p99"  # in a play of fewer than 100 requests, the longest one


def could_not(stack: str, baseline: Path, candidate: Path, reason: str) -> str:
    """The comment if the gate could not run."""
    return (
        f"### Railyard gate, {stack}: could not run\n\n"
        f"**Nothing was compared.** A: `{baseline}`, B: `{candidate}`.\n\n{reason}\n"
    )


def worst_pair(verdict: StackVerdict) -> str:
    """The play of the suite whose longest request grew most, in words."""
    candidates: list[tuple[float, str]] = []
    for row in verdict.rows:
        for one in row.comparisons:
            if one.figure.name != LONGEST or row.place == CORPUS:
                continue
            for run, delta, before, after in zip(row.measured, one.play_deltas, one.before, one.after, strict=True):
                times = f"{before:.2f} s → {after:.2f} s" + (f", × {math.exp(delta):.2f}" if abs(delta) < 50 else "")
                candidates.append((delta, f"{run.pair}, seed {run.seed}: longest request {times}"))
    worst = max(candidates, default=None)
    if worst is None:
        return "none was played with both builds"
    return worst[1] if worst[0] > 0 else f"none got worse; the nearest to it is {worst[1]}"


def power_words(verdict: StackVerdict) -> str:
    if not verdict.power:
        return "unknown: no plays of a suite were compared."
    nothing, *regressions = verdict.power
    parts = [
        f"a change that makes every request {one.factor:g} times as long in {100 * one.share:.0f} % of the windows of "
        f"one row in {share_words(one)}"
        for one in regressions
    ]
    return (
        f"of {nothing.trials} simulations the gate finds {'; '.join(parts)}. It raises an alarm without any in "
        f"{share_words(nothing)}. {nothing.windows} windows a row; their noise is the differences of these plays, with "
        "signs drawn."
    )


def _ran(verdict: StackVerdict) -> Iterator[str]:
    plays = sum(len(row.after) for row in verdict.rows if row.place != CORPUS)
    runs = sum(len(row.after) for row in verdict.rows if row.place == CORPUS)
    scenarios = counted(len(verdict.changes), "scenario")
    yield (
        f"- **What ran**: {counted(plays, 'play')} of suite {verdict.suite.name} and {scenarios} of the stress corpus "
        f"({counted(runs, 'run')}) with each build, in virtual time (arena {verdict.suite.arena}), {version_words()}, "
        f"{verdict.wall_s:.0f} s."
    )
    for letter, build in zip("AB", verdict.builds, strict=True):
        programs = ", ".join(f"`{name}` {value[:12]}" for name, value in build.programs_sha256.items())
        yield f"  - {letter}: {build.title}; {programs}"


def _scenarios(verdict: StackVerdict) -> Iterator[str]:
    if not verdict.changes:
        return
    yield from ("", f"#### Stress corpus: {verdict.scores}", "")
    moved = [change for change in verdict.changes if change.moved]
    shown = [*moved, *(one for one in verdict.changes if not one.moved and one.after.verdict == FAIL)]
    if not shown:
        yield "Both builds pass every scenario."
        return
    rows = []
    for one in shown:
        word = f"**{one.verdict}**" if one.verdict == "worse" else one.verdict
        rows.append([one.scenario.name, cell_words(one.before), cell_words(one.after), word, one.reason])
    yield from table_lines(["scenario", "A", "B", "verdict", "what fails"], *rows)


def comment(verdict: StackVerdict) -> str:
    """The comment in Markdown."""
    lines = [f"### Railyard gate, {verdict.stack}: {verdict.headline}", ""]
    if verdict.matrices is None:
        lines += [f"- {letter}: {build.title}" for letter, build in zip("AB", verdict.builds, strict=True)]
        return "\n".join(lines) + "\n"
    lines += [
        *_ran(verdict),
        f"- **Power**: {power_words(verdict)}",
        f"- **Verdict**: {'a regression: ' if verdict.is_regression else ''}{verdict.headline}.",
        f"- **Worst pair**: {worst_pair(verdict)}.",
        *_scenarios(verdict),
        "",
        "#### Figures",
        "",
        *output.markdown(verdict).splitlines()[2:],
    ]
    return "\n".join(lines) + "\n"


def further(verdict: StackVerdict) -> dict[str, Any]:
    """The members that a line of the history has in addition to those of every gate."""
    return {
        "stack": verdict.stack,
        "programs": [build.programs_sha256 for build in verdict.builds],
        "scenarios": {one.scenario.name: [one.before.verdict, one.after.verdict] for one in verdict.changes},
    }
