"""Runs experiments/evaluation.yaml and prints its table as Markdown: a row a pair and scheme, and the targets.

    python scripts/evaluate-recorded.py [--experiment FILE] [--out DIR]

Quantiles of request completion times are over all chunks of a pair's runs, of first frames over its runs.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from railyard.base.paths import RESULTS_DIR
from railyard.experiment.model import find_experiment, load_experiment

REFERENCE, VANILLA = "sp", "vanilla-mp"
CANDIDATES = ("xlink-lean", "xlink+")


def nearest_rank(values: Sequence[float], q: float) -> float:
    ordered = sorted(values)
    return ordered[max(0, math.ceil(q * len(ordered) - 1e-9) - 1)]


def columns_of(file: Path, *names: str) -> list[tuple[Any, ...]]:
    """The rows of a Parquet file, of these columns."""
    table = pq.read_table(file, columns=list(names))
    return list(zip(*(table.column(name).to_pylist() for name in names), strict=True))


def rows_of(out: Path) -> dict[str, dict[str, dict[str, float]]]:
    """pair -> scheme -> figures; the pair 'all' pools the others."""
    chunks = columns_of(out / "chunks.parquet", "pair", "label", "rct_s", "efficiency")
    figures = ("first_frame_s", "play_time_s", "rebuffer_time_s", "stream_bytes_sent", "reinjected_bytes")
    runs = columns_of(out / "runs.parquet", "pair", "label", *figures)
    labels = list(dict.fromkeys(row[1] for row in runs))
    table: dict[str, dict[str, dict[str, float]]] = {}
    for pair in [*dict.fromkeys(row[0] for row in runs), "all"]:
        table[pair] = {}
        for label in labels:
            own = [row for row in runs if pair in (row[0], "all") and row[1] == label]
            mine = [row for row in chunks if pair in (row[0], "all") and row[1] == label]
            rct = [row[2] for row in mine]
            efficiencies = [row[3] for row in mine if row[3] is not None]
            frames = [row[2] if row[2] is not None else math.inf for row in own]
            twice = sum(row[6] or 0 for row in own)
            sent = sum(row[5] or 0 for row in own)
            table[pair][label] = {
                "p50": nearest_rank(rct, 0.5),
                "p95": nearest_rank(rct, 0.95),
                "p99": nearest_rank(rct, 0.99),
                "max": max(rct),
                "frame50": nearest_rank(frames, 0.5),
                "frame99": nearest_rank(frames, 0.99),
                "rebuffer": 100 * sum(row[4] for row in own) / sum(row[3] for row in own),
                "redundancy": 100 * twice / (sent - twice) if sent > twice else 0.0,
                "efficiency": 100 * nearest_rank(efficiencies, 0.5) if efficiencies else math.nan,
            }
    return table


def print_table(table: dict[str, dict[str, dict[str, float]]]) -> None:
    print(
        "| pair | scheme | RCT p50 s | p95 | p99 | max | first frame p50 s | p99 | rebuffer % | redundancy % | eff. % |"
    )
    print("| --- | --- |" + " ---: |" * 9)
    for pair, row in table.items():
        for label, f in row.items():
            times = " | ".join(f"{f[name]:.3f}" for name in ("p50", "p95", "p99", "max", "frame50", "frame99"))
            shares = f"{f['rebuffer']:.1f} | {f['redundancy']:.2f} | {f['efficiency']:.0f}"
            print(f"| {pair} | {label} | {times} | {shares} |")


def print_targets(table: dict[str, dict[str, dict[str, float]]]) -> None:
    print("\n| pair | scheme | RCT p99 against sp | against vanilla-mp | first frame p99 against sp | redundancy % |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for pair, row in table.items():
        for label in CANDIDATES:
            mine = row[label]
            p99, frame = (100 * (mine[name] / row[REFERENCE][name] - 1) for name in ("p99", "frame99"))
            vanilla = 100 * (mine["p99"] / row[VANILLA]["p99"] - 1)
            print(f"| {pair} | {label} | {p99:+.0f} % | {vanilla:+.0f} % | {frame:+.0f} % | {mine['redundancy']:.2f} |")


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
    table = rows_of(folder)
    print_table(table)
    print_targets(table)


if __name__ == "__main__":
    main()
