"""What a gate exports: its figures as Bencher's metrics, and a line of an append-only history."""

import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from railyard.base.errors import UserError
from railyard.base.provenance import version_words
from railyard.figures.figure import Figure
from railyard.figures.rows import BY_NAME
from railyard.gate.compare import Comparison
from railyard.gate.output import Verdict
from railyard.stats.steps import Step, steps

SCHEMA = 1
BOUNDS = ("lower_value", "upper_value")


def _ends(one: Comparison) -> tuple[float, float] | None:
    """The interval of the candidate's figure, as far around it as the interval of its change is around the change. The
    change is that of a typical play, so it does not lead from the baseline's figure to the candidate's."""
    if not one.moved or not one.interval.known or (one.figure.is_relative and one.change <= -1):
        return None
    _, after = one.typical
    ends = one.interval.low, one.interval.high
    if one.figure.is_relative:
        low, high = (after * (1 + end) / (1 + one.change) for end in ends)
    else:
        low, high = (after + end - one.change for end in ends)
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


def bencher(verdict: Verdict) -> dict[str, dict[str, dict[str, float]]]:
    """The candidate's figures in Bencher's metric format: benchmark, measure, value with its bounds. Times are seconds,
    rates shares. Values that are not finite and rows that were not run are left out."""
    metrics: dict[str, dict[str, dict[str, float]]] = {}
    for row in verdict.rows:
        for one in row.comparisons:
            value = one.typical[1]
            if not math.isfinite(value):
                continue
            ends = _ends(one)
            bounds = {} if ends is None else dict(zip(BOUNDS, ends, strict=True))
            metrics.setdefault(f"{row.place}/{row.label}", {})[one.figure.name] = {"value": value} | bounds
    return metrics


def line_of(verdict: Verdict, further: dict[str, Any]) -> dict[str, Any]:
    """The line of the history for this gate."""
    figures = {
        name: {measure: metric["value"] for measure, metric in of_row.items()}
        for name, of_row in bencher(verdict).items()
    }
    return {
        "schema": SCHEMA,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "railyard": version_words(),
        "suite": verdict.suite.name,
        "baseline": verdict.baseline,
        "candidate": verdict.candidate,
        "verdict": verdict.headline,
        "regression": verdict.is_regression,
        "took_s": round(verdict.wall_s, 1),
        "figures": figures,
    } | further


def append(file: Path, line: dict[str, Any]) -> None:
    """Appends one line in a single write. If a full disk cut off the last line, the new one begins on the next."""
    text = json.dumps(line, separators=(",", ":")) + "\n"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        is_cut = file.exists() and file.stat().st_size > 0 and file.read_bytes()[-1:] != b"\n"
        handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, ("\n" if is_cut else "").encode() + text.encode())
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise UserError(f"{file}: the history cannot be written: {error.strerror}.") from None


def read(file: Path) -> list[dict[str, Any]]:
    """All lines, the oldest first. Raises UserError if one is not a line of a history."""
    entries: list[dict[str, Any]] = []
    for number, text in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
        except ValueError:
            line = None
        if not isinstance(line, dict) or line.get("schema") != SCHEMA or not isinstance(line.get("figures"), dict):
            raise UserError(
                f"{file}:{number}: this is no line of a gate's history; name a file of its own with --history."
            )
        entries.append(line)
    return entries


def check(file: Path) -> None:
    """Raises UserError if the file is not a history, so that a long run does not end with that error."""
    if file.exists():
        read(file)


@dataclass(frozen=True)
class Series:
    """One figure of one row over the history."""

    row: str
    figure: Figure
    lines: list[int]  # the numbers of the history's lines that have it
    values: list[float]

    @property
    def steps(self) -> list[Step]:
        """The steps that exceed the gate's floor of this figure."""
        return [step for step in steps(self.values) if abs(self.change(step)) > self.floor]

    @property
    def floor(self) -> float:
        return self.figure.gate.floor if self.figure.gate else 0.0

    def change(self, step: Step) -> float:
        return step.ratio if self.figure.is_relative else step.after - step.before


def series_of(lines: list[dict[str, Any]]) -> Iterator[Series]:
    """Every figure of every row, ordered by the first line that has it."""
    names = dict.fromkeys(
        (row, measure) for line in lines for row, of_row in line["figures"].items() for measure in of_row
    )
    for row, measure in names:
        figure = BY_NAME.get(measure)
        values = [(number, line["figures"].get(row, {}).get(measure)) for number, line in enumerate(lines)]
        known = [(number, float(value)) for number, value in values if isinstance(value, int | float)]
        if figure is not None and known:
            yield Series(row, figure, [number for number, _ in known], [value for _, value in known])
