"""Runs experiments/stacks.yaml and prints its tables as Markdown: the schemes over all pairs, and each pair.

    python scripts/compare-stacks.py [--experiment FILE] [--out DIR]

Stacks that are not built here are left out, with the reason in their row. Intervals resample pairs of traces
(railyard/stats/intervals.py), but for those of the rebuffer rate (railyard/stats/rates.py).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from railyard.base.errors import UserError
from railyard.base.jsonl import read_jsonl
from railyard.base.paths import RESULTS_DIR
from railyard.experiment.model import find_experiment, load_experiment
from railyard.experiment.stacks import entry_from, resolve_stack
from railyard.figures.figure import Values
from railyard.figures.play import Play
from railyard.figures.rows import RCT_MAX, RCT_MEDIAN, REBUFFER_RATE, first_frames, rcts
from railyard.results.differences import layout_of
from railyard.results.records import Run, load_campaign
from railyard.stats import rates
from railyard.stats.intervals import METHOD, Interval, Layout, bootstrap, interval, paired, quantile_of

NOT_KNOWN = "–"
REFERENCE = "vanilla-mp"


@dataclass(frozen=True)
class Row:
    """A scheme over some pairs."""

    label: str
    runs: list[Run]  # those that are not void
    void: int

    @property
    def layout(self) -> Layout:
        return layout_of(self.runs)

    def quantile(self, values: Callable[[Play], Values], q: float) -> Interval | None:
        groups = [[value for value, _ in values(run)] for run in self.runs]
        return bootstrap(groups, quantile_of(q), self.layout) if self.runs else None

    @property
    def rebuffer(self) -> Interval | None:
        """In percent."""
        found = REBUFFER_RATE.level(self.runs, self.layout) if self.runs else None
        return None if found is None else found.mapped(lambda share: 100 * share)

    @property
    def wire(self) -> Interval | None:
        """Bytes that left the downlinks / bytes of the video that the player received."""
        sent = [sum(path.down_bytes for path in run.paths) for run in self.runs]
        received = [run.received_bytes for run in self.runs]
        return interval(rates.Sums.of(sent, received).resampled(self.layout), self.layout) if self.runs else None

    @property
    def ends(self) -> str:
        counts = Counter(run.outcome.replace("_", " ") for run in self.runs) + Counter({"void": self.void})
        return ", ".join(f"{count} {outcome}" for outcome, count in counts.items())


def against(row: Row, reference: Row) -> str:
    """RCT p95 against the reference's, in percent, over the pairs of traces of which both have a run."""
    theirs = {(run.pair, run.seed): run for run in reference.runs}
    both = [(run, theirs[run.pair, run.seed]) for run in row.runs if (run.pair, run.seed) in theirs]
    if not both or row is reference:
        return NOT_KNOWN
    ours, others = ([[chunk.rct_s for chunk in pair[side].chunks] for pair in both] for side in (0, 1))
    layout = layout_of([run for run, _ in both], [run for _, run in both])
    found = paired(ours, others, quantile_of(0.95), lambda a, b: 100 * (a / b - 1), layout)
    return NOT_KNOWN if found is None else found.text("+.0f")


def rows_of(runs: Sequence[Run]) -> list[Row]:
    labels = dict.fromkeys(run.label for run in runs)
    return [
        Row(
            label,
            [run for run in runs if run.label == label and not run.void],
            sum(run.void for run in runs if run.label == label),
        )
        for label in labels
    ]


def _text(found: Interval | None, form: str) -> str:
    return NOT_KNOWN if found is None else found.text(form)


def _cells(row: Row) -> list[str]:
    times = [_text(row.quantile(rcts, q), ".3f") for q in (0.5, 0.95, 0.99)]
    return [
        *times,
        _text(row.quantile(first_frames, 0.5), ".3f"),
        _text(row.rebuffer, ".1f"),
        _text(row.wire, ".3f"),
        row.ends,
    ]


HEAD = ["RCT p50 s", "p95", "p99", "first frame p50 s", "rebuffer %", "wire / delivered", "ends"]


def print_table(rows: Sequence[list[str]]) -> None:
    print(f"| scheme | RCT p95 against {REFERENCE} % | {' | '.join(HEAD)} |")
    print("| --- |" + " ---: |" * len(HEAD) + " --- |")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def print_matrix(runs: Sequence[Run]) -> None:
    """Median and largest RCT of each pair."""
    labels, pairs = (list(dict.fromkeys(names)) for names in ((r.label for r in runs), (r.pair for r in runs)))
    print(f"| pair | {' | '.join(labels)} |")
    print("| --- |" + " ---: |" * len(labels))
    for pair in pairs:
        rows = {row.label: row for row in rows_of([run for run in runs if run.pair == pair])}
        print(f"| {pair} | {' | '.join(_median_and_most(rows.get(label)) for label in labels)} |")


def _median_and_most(row: Row | None) -> str:
    both = [figure.point(row.runs if row is not None else []) for figure in (RCT_MEDIAN, RCT_MAX)]
    return " / ".join("void" if point is None else f"{point.value:.2f}" for point in (both if all(both) else both[:1]))


def troubles(runs: Sequence[Run], folder: Path) -> list[str]:
    """What went wrong, with what the relays said."""
    told = []
    for run in runs:
        if run.void:
            told.append(f"- {run.run_id}: void: {run.void_words}")
        elif run.outcome != "complete":
            relay = read_jsonl(folder / "runs" / run.run_id / "relay.jsonl")
            said = [str(record["reason"]) for record in relay if record.get("event") == "closed"]
            words = "; ".join([str(run.record.get("message") or run.outcome), *(f"its relay: {word}" for word in said)])
            told.append(f"- {run.run_id}: {run.outcome.replace('_', ' ')}: {words}")
    return told


def without_missing(file: Path) -> tuple[dict[str, Any], list[str]]:
    """The experiment without the stacks that are not built here, and why those are not."""
    document = yaml.safe_load(file.read_text())
    kept, missing = [], []
    for entry in document["schemes"]:
        if isinstance(entry, dict) and "stack" in entry:
            try:
                resolve_stack(entry["stack"], entry_from(entry)["stack_options"], file.parent)
            except UserError as error:
                missing.append(f"- {entry.get('label', entry['stack'])}: {error}")
                continue
        kept.append(entry)
    return document | {"schemes": kept}, missing


def run(file: Path, out: Path | None) -> tuple[Path, list[str]]:
    """The folder of the results, and the stacks left out."""
    document, missing = without_missing(file)
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder) / file.name
        there.write_text(yaml.safe_dump(document))
        load_experiment(there)
        where = ["--out", str(out)] if out else []
        command = [sys.executable, "-m", "railyard", "run", str(there), *where]
        done = subprocess.run(command, check=False, stdout=sys.stderr)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return out or RESULTS_DIR / document["name"], missing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--experiment", default="stacks", help="name or file (stacks)")
    parser.add_argument("--out", type=Path, help="directory of the results (results/NAME)")
    options = parser.parse_args()
    folder, missing = run(find_experiment(options.experiment), options.out)
    _, runs = load_campaign(folder)
    rows = rows_of(runs)
    reference = next(row for row in rows if row.label == REFERENCE)
    every = [[row.label, against(row, reference), *_cells(row)] for row in rows]
    print_table(every)
    print(f"\n{METHOD}.\n")
    print_matrix(runs)
    for title, lines in (("Runs that failed", troubles(runs, folder)), ("Not built here", missing)):
        if lines:
            print(f"\n{title}:\n" + "\n".join(lines))


if __name__ == "__main__":
    main()
