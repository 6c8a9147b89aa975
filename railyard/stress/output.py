"""The matrix for the terminal, and as Markdown, JUnit XML and JSON."""

from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from rich.console import Console
from rich.text import Text

from railyard.base import junit as junit_xml
from railyard.base.page import table_lines
from railyard.base.provenance import version_words
from railyard.base.terminal import new_table, print_table
from railyard.base.words import counted
from railyard.stress.run import FAIL, PASS, UNKNOWN, Cell, Matrix, Subject, replay
from railyard.stress.scenario import Scenario

SCHEMA = 1


def score_words(matrix: Matrix, of: Subject) -> str:
    passed, known = matrix.score(of)
    return f"{passed}/{known}"


def cell_words(cell: Cell) -> str:
    """The verdict, and the longest time without progress."""
    if cell.verdict == UNKNOWN or cell.gap_s is None:
        return cell.verdict
    return f"{cell.verdict} {cell.gap_s:.2f}"


def marked(cell: Cell) -> str:
    """A cell in Markdown, where a failure is bold."""
    return f"**{cell_words(cell)}**" if cell.verdict == FAIL else cell_words(cell)


def why(cell: Cell) -> str:
    of_runs = f"{cell.failed_runs} of {counted(cell.runs, 'run')}; " if cell.runs > 1 else ""
    return of_runs + "; ".join(one.sentence for one in cell.failures)


def headline(matrix: Matrix) -> str:
    failed = len(matrix.failures())
    known = sum(cell.verdict != UNKNOWN for cell in matrix.cells.values())
    return f"{known - failed} of {known} pass"


def unknown_words(matrix: Matrix) -> Iterator[str]:
    """Each reason for a "?" with its columns."""
    of_reason: dict[str, list[str]] = {}
    for (_, label), cell in matrix.cells.items():
        if cell.verdict == UNKNOWN and label not in of_reason.setdefault(cell.reason, []):
            of_reason[cell.reason].append(label)
    yield from (f"?: {reason} ({', '.join(labels)})." for reason, labels in of_reason.items())


def markdown(matrix: Matrix) -> str:
    names = [of.label for of in matrix.subjects]
    lines = [
        f"{headline(matrix)}; {version_words()}. Beside each verdict: the longest time without progress, in seconds.",
        "",
        *table_lines(
            ["scenario", *(f"`{name}`" for name in names)],
            *([one.name, *(marked(matrix.cells[one.name, name]) for name in names)] for one in matrix.scenarios),
            ["arena", *(of.arena for of in matrix.subjects)],
            ["score", *(score_words(matrix, of) for of in matrix.subjects)],
        ),
    ]
    lines += ["", *(f"{text}\n" for text in unknown_words(matrix))]
    failed = [[one.name, f"`{of.label}`", why(cell), f"`{replay(one, of)}`"] for one, of, cell in matrix.failures()]
    if failed:
        lines += table_lines(["scenario", "stack", "what fails", "command"], *failed)
    return "\n".join(lines).rstrip() + "\n"


def junit(matrix: Matrix) -> bytes:
    """JUnit XML with a test suite for each stack and a test case for each scenario."""
    root = ElementTree.Element("testsuites", name="railyard stress")
    for of in matrix.subjects:
        suite = ElementTree.SubElement(root, "testsuite", name=of.label)
        for scenario in matrix.scenarios:
            cell = matrix.cells[scenario.name, of.label]
            case = ElementTree.SubElement(suite, "testcase", classname=of.label, name=scenario.name)
            if cell.verdict == FAIL:
                ElementTree.SubElement(case, "failure", message=why(cell)).text = replay(scenario, of)
            elif cell.verdict == UNKNOWN:
                ElementTree.SubElement(case, "skipped", message=cell.reason)
    counts = {"tests": "testcase", "failures": "testcase/failure", "skipped": "testcase/skipped"}
    return junit_xml.written(root, counts)


def _json_cell(scenario: Scenario, of: Subject, cell: Cell) -> dict[str, Any]:
    return {
        "scenario": scenario.name,
        "stack": of.label,
        "arena": of.arena,
        "verdict": cell.verdict,
        "reason": cell.reason,
        "runs": cell.runs,
        "failed_runs": cell.failed_runs,
        "gap_s": cell.gap_s,
        "predicates": [
            {
                "name": one.name,
                "figure": one.figure,
                "threshold": one.threshold,
                "unit": one.unit,
                "passed": one.passed,
                "words": one.sentence,
            }
            for one in cell.judged
        ],
        "command": replay(scenario, of),
        "folder": str(cell.folder) if cell.folder else None,
    }


def as_json(matrix: Matrix) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "railyard": version_words(),
        "versions": {of.label: of.version for of in matrix.subjects},
        "scores": {of.label: score_words(matrix, of) for of in matrix.subjects},
        "cells": [
            _json_cell(scenario, of, matrix.cells[scenario.name, of.label])
            for scenario in matrix.scenarios
            for of in matrix.subjects
        ],
    }


def print_matrix(console: Console, matrix: Matrix) -> None:
    table = new_table("scenario", *(of.label for of in matrix.subjects), no_wrap=True)
    for scenario in matrix.scenarios:
        cells = [matrix.cells[scenario.name, of.label] for of in matrix.subjects]
        styles = {PASS: "green", FAIL: "red", UNKNOWN: "dim"}
        table.add_row(scenario.name, *(Text(cell_words(cell), styles[cell.verdict]) for cell in cells))
    table.add_row("score", *(score_words(matrix, of) for of in matrix.subjects), style="bold")
    print_table(console, table, keys=1)
    for text in unknown_words(matrix):
        console.print(text)
    for scenario, of, cell in matrix.failures():
        console.print(f"{scenario.name}, {of.label}: {why(cell)}", style="red")
        console.print(f"  again: {replay(scenario, of)}")
        console.print(f"  run: {cell.folder}")
    console.print(f"stress: {headline(matrix)}", style="red" if matrix.failures() else "green")
