"""Compares campaigns of the same experiment that ran in different arenas: prints the tables of
docs/results/containers.md, all to the first campaign.

    .venv/bin/python scripts/compare-arenas.py FIRST OTHER [OTHER ...]

Of each scheme over all pairs: the median RCT with its interval over runs, its ratio to the first campaign's over the
runs that both have, the Kolmogorov-Smirnov distance between the two distributions, and the chunks.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from railyard.base.errors import reported_by
from railyard.results.records import Run, load_campaign
from railyard.stats.intervals import Layout, bootstrap, paired, quantile_of
from railyard.studies.agreement import ks_distance

MEDIAN = quantile_of(0.5)
COLUMNS = ("campaign", "median s", "ratio", "KS", "chunks", "ends")


def _rcts(runs: Sequence[Run]) -> list[list[float]]:
    return [[chunk.rct_s for chunk in run.chunks] for run in runs]


def _cells(runs: Sequence[Run], first: Sequence[Run]) -> list[str]:
    """Of one scheme in one campaign."""
    valid = [run for run in runs if not run.void]
    if not valid:
        return ["void", "–", "–", "0", "–"]
    level = bootstrap(_rcts(valid), MEDIAN, Layout.of_independent(len(valid)))
    theirs = {run.run_id: run for run in first if not run.void}
    both = [run for run in valid if run.run_id in theirs]
    others = [theirs[run.run_id] for run in both]
    ratio = paired(_rcts(both), _rcts(others), MEDIAN, lambda a, b: a / b, Layout.of_independent(len(both)))
    distance = ks_distance(*([rct for run in _rcts(side) for rct in run] for side in (both, others)))
    cut = [f"{run.pair} s{run.seed} {run.outcome.replace('_', ' ')}" for run in valid if run.outcome != "complete"]
    void = len(runs) - len(valid)
    ends = ", ".join([*cut, *([f"{void} void"] if void else [])]) or "all complete"
    return [
        level.text(".3f") if level else "–",
        "–" if runs is first or ratio is None else ratio.text(".3f"),
        "–" if runs is first else f"{distance:.3f}",
        str(sum(len(run.chunks) for run in valid)),
        ends,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    folders = parser.parse_args().folders
    campaigns = [load_campaign(folder)[1] for folder in folders]
    print(f"| scheme | {' | '.join(COLUMNS)} |\n| --- | --- |{' ---: |' * 4} --- |")
    for label in dict.fromkeys(run.label for run in campaigns[0]):
        of_label = [[run for run in runs if run.label == label] for runs in campaigns]
        for folder, runs in zip(folders, of_label, strict=True):
            name = label if runs is of_label[0] else ""
            print(f"| {name} | {folder.name} | {' | '.join(_cells(runs, of_label[0]))} |")


if __name__ == "__main__":
    with reported_by("compare-arenas"):
        main()
