"""The cost of re-injection against the paper's bounds: prints the table of docs/results/reinjection.md.

    .venv/bin/python scripts/cost-bounds.py [--starts N] [--pairs NAME,NAME] [--rates BPS,BPS]

railyard/studies/cost.py says what is measured. Intervals: docs/reference/statistics.md.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from railyard.base.errors import reported_by
from railyard.stats.intervals import Interval
from railyard.studies.cost import CostRow, Study

SETTINGS = ((95, 80), (90, 60), (60, 50), (20, 20))
COLUMNS = (
    "β %",
    "at least %",
    "measured %",
    "at most %",
    *(f"/ at {end}{by}" for by in ("", " by time") for end in ("least", "most")),
)


def _ratio(found: Interval | None) -> str:
    return "–" if found is None else found.text(".2f")


def _line(row: CostRow) -> str:
    measured = row.measured.mapped(lambda share: 100 * share).text(".1f")
    shares = [f"{100 * share:.1f}" for share in (row.beta, row.least, row.most)]
    ratios = (row.over_least, row.over_most, row.over_least_by_time, row.over_most_by_time)
    cells = [*shares[:2], measured, shares[2], *map(_ratio, ratios)]
    return f"| {row.setting[0]:g}-{row.setting[1]:g} | {row.rule} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    generated = ",".join(f"{model}-{number}" for model in ("subway", "hsr") for number in range(1, 7))
    parser.add_argument("--starts", type=int, default=4, help="of each pair, spread over its traces")
    parser.add_argument("--pairs", default=generated)
    parser.add_argument("--rates", default="2500000,4000000", help="of the video, bits per second")
    asked = parser.parse_args()
    print(f"| (X, Y) | rule | {' | '.join(COLUMNS)} |\n| --- | --- |{' ---: |' * len(COLUMNS)}", flush=True)
    with tempfile.TemporaryDirectory(prefix="railyard-") as folder:
        study = Study(
            asked.pairs.split(","), asked.starts, [int(rate) for rate in asked.rates.split(",")], Path(folder)
        )
        for row in study.rows(SETTINGS):
            print(_line(row), flush=True)


if __name__ == "__main__":
    with reported_by("cost-bounds"):
        main()
