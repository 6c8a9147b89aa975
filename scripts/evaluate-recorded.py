"""Runs experiments/evaluation.yaml and prints its tables as Markdown: figures, differences, targets; with intervals.

    python scripts/evaluate-recorded.py [--experiment FILE] [--out DIR]

docs/reference/statistics.md says how intervals and verdicts are made.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from railyard.base.intervals import Interval
from railyard.base.paths import RESULTS_DIR
from railyard.base.verdict import Answer, below, of_parts
from railyard.experiment.model import find_experiment, load_experiment
from railyard.results import differences
from railyard.results.aggregate import median_efficiency
from railyard.results.differences import ALL, FIGURES, Difference, level_words
from railyard.results.records import Run, load_campaign

REFERENCE, VANILLA = "sp", "vanilla-mp"
CANDIDATES = ("xlink-lean", "xlink+")
RCT_TARGET, FRAME_TARGET, NO_WORSE, REDUNDANCY_TARGET = -0.19, -0.32, 0.02, 0.021


def of_pair(runs: Sequence[Run], pair: str) -> list[Run]:
    return [run for run in runs if pair in (ALL, run.pair) and not run.void]


def level(runs: Sequence[Run], name: str) -> Interval | None:
    """A figure of one scheme, for these pairs."""
    [figure] = [one for one in FIGURES if one.name == name]
    return figure.level(runs, differences.layout_of(runs).within())


def heading(*names: str) -> None:
    print(f"\n| {' | '.join(names)} |")
    print(f"|{' --- |' * len(names)}")


def print_figures(runs: Sequence[Run], pairs: Sequence[str], labels: Sequence[str]) -> None:
    seconds = ("rct_median", "rct_p95", "rct_p99", "first_frame", "first_frame_p95")
    named = {one.name: one for one in FIGURES}
    heading(
        *("pair", "scheme"),
        *(f"{named[name].title} s" for name in seconds),
        *("rebuffer %", "redundancy %", "eff. %", "failed"),
    )
    for pair in pairs:
        for label in labels:
            own = [run for run in of_pair(runs, pair) if run.label == label]
            if not own:
                continue
            cells = [level_words(level(own, name)) for name in seconds]
            cells += [level_words(level(own, name), ".2f", 100) for name in ("rebuffer_rate", "redundancy")]
            efficiency = median_efficiency([chunk for run in own for chunk in run.chunks])
            cells += ["–" if efficiency is None else f"{100 * efficiency.value:.0f}"]
            print(f"| {pair} | {label} | {' | '.join(cells)} | {sum(run.failed for run in own)} of {len(own)} |")


def print_differences(found: Sequence[Difference]) -> None:
    figures = list(dict.fromkeys(one.figure.title for one in found))
    heading("pair", "scheme", "against", *figures)
    rows: dict[tuple[str, str, str], list[str]] = {}
    for one in found:
        said = one.words if one.words == one.verdict else f"{one.words}, {one.verdict}"
        rows.setdefault((one.pair, one.label, one.against), []).append(said)
    for names, cells in rows.items():
        print(f"| {' | '.join((*names, *cells))} |")


def print_targets(runs: Sequence[Run], found: Sequence[Difference], pairs: Sequence[str]) -> None:
    heading(
        *("pair", "scheme", "RCT p99 19 % below sp's", "at most 2 % above vanilla-mp's"),
        *("first-frame p95 32 % below sp's", "redundancy at most 2.1 %", "all four"),
    )
    for pair in pairs:
        for label in CANDIDATES:
            own = [run for run in of_pair(runs, pair) if run.label == label]
            of = {(one.against, one.figure.name): one for one in found if (one.pair, one.label) == (pair, label)}
            if not own or (VANILLA, "rct_p99") not in of:
                continue
            rct, vanilla = of[REFERENCE, "rct_p99"], of[VANILLA, "rct_p99"]
            frame, cost = of[REFERENCE, "first_frame_p95"], level(own, "redundancy")
            answers = [
                _below(rct, RCT_TARGET),
                vanilla.change.no_worse(NO_WORSE) if vanilla.change is not None and vanilla.carried else None,
                _below(frame, FRAME_TARGET),
                below(cost, REDUNDANCY_TARGET),
            ]
            told = [rct.words, vanilla.words, frame.words, level_words(cost, ".2f", 100)]
            cells = [f"{words}: {_said(answer)}" for words, answer in zip(told, answers, strict=True)]
            print(f"| {pair} | {label} | {' | '.join(cells)} | {of_parts(answers)} |")


def _below(one: Difference, target: float) -> Answer:
    return below(one.change.interval, target) if one.change is not None and one.carried else None


def _said(answer: Answer) -> str:
    return "open" if answer is None else "yes" if answer else "no"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--experiment", default="evaluation", help="name or file (evaluation)")
    parser.add_argument("--out", type=Path, help="directory of the results (results/NAME)")
    options = parser.parse_args()
    folder = options.out or RESULTS_DIR / load_experiment(find_experiment(options.experiment))[0].name
    where = ["--out", str(options.out)] if options.out else []
    command = [sys.executable, "-m", "railyard", "run", options.experiment, *where]
    done = subprocess.run(command, check=False, stdout=sys.stderr)
    if done.returncode != 0:
        sys.exit(done.returncode)
    _, runs = load_campaign(folder)
    pairs = [*dict.fromkeys(run.pair for run in runs), ALL]
    print_figures(runs, pairs, list(dict.fromkeys(run.label for run in runs)))
    found = differences.differences(runs, differences.usual(runs), by_pair=True)
    found.sort(key=lambda one: pairs.index(one.pair))
    print_differences(found)
    print_targets(runs, found, pairs)


if __name__ == "__main__":
    main()
