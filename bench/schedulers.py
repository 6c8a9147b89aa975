#!/usr/bin/env python3
"""Measures every scheduler with every congestion controller over trace pairs in the simulator.

Prints one table in Markdown for each pair and writes the figures to build/bench/schedulers.json. A row gathers plays
from start offsets spread evenly over the traces (docs/reference/metrics.md defines the figures). The virtual clock
makes every figure exact: it repeats to the digit.
"""

from __future__ import annotations

import os
import tempfile
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer
from instructions import keep

from railyard.base.errors import reported_by
from railyard.base.yamlfile import YamlDocument, parse
from railyard.experiment.model import Experiment
from railyard.experiment.settings import CONTROLLERS, SCHEDULERS
from railyard.figures.rows import RCT_MEDIAN, RCT_P95, RCT_P99, REBUFFER_RATE, REDUNDANCY
from railyard.results.aggregate import Cell, cells
from railyard.results.pending import Place, Plan, whole_campaign
from railyard.run.resolve import resolve

SHOWN = (RCT_MEDIAN, RCT_P95, RCT_P99, REBUFFER_RATE, REDUNDANCY)


def scheme(scheduler: str, cc: str) -> dict[str, Any]:
    """XLINK's scheduler is min-RTT with re-injection; the others run without any."""
    entry = {"scheme": "xlink-lean"} if scheduler == "xlink" else {"scheme": "vanilla-mp", "scheduler": scheduler}
    return entry | {"cc": cc, "label": f"{scheduler} {cc}"}


def play(pairs: list[str], offsets: int, jobs: int, folder: Path) -> dict[str, list[Cell]]:
    data: dict[str, Any] = {"name": "schedulers", "arena": "sim", "pairs": pairs, "seeds": offsets}
    data |= {"schemes": [scheme(*kind) for kind in product(SCHEDULERS, CONTROLLERS)], "start_offset_ms": "spread"}
    data |= {"player": {"bitrate_bps": 4_000_000, "duration_s": 20, "chunk_bytes": 524_288}, "time_limit_s": 60}
    document = YamlDocument(Path("schedulers"), data | {"qlog": "none", "link_logs": False}, {})
    experiment = parse(document, Experiment)
    with whole_campaign(Plan(experiment, resolve(experiment, document)), Place(out=folder), jobs=jobs) as campaign:
        return cells(campaign.runs)


def main(
    pairs: Annotated[list[str] | None, typer.Argument(help="trace pairs; the generated ones if left out")] = None,
    offsets: Annotated[int, typer.Option(min=1, help="start offsets for each row")] = 10,
    jobs: Annotated[int, typer.Option(min=1, help="runs side by side")] = os.cpu_count() or 1,
) -> None:
    with reported_by("bench/schedulers"), tempfile.TemporaryDirectory(prefix="railyard-") as folder:
        table = play(pairs or ["subway-1", "hsr-1"], offsets, jobs, Path(folder) / "schedulers")
    rows = []
    for pair, row in table.items():
        print(f"\n## {pair}, {offsets} start offsets\n")
        print(f"| scheduler and cc | {' | '.join(f'{figure.title}, {figure.unit}' for figure in SHOWN)} |")
        print("| --- |" + " ---: |" * len(SHOWN))
        for cell in row:
            points = {figure.name: figure.point(cell.runs) for figure in SHOWN}
            print(f"| `{cell.label}` | {' | '.join(figure.text(cell.runs) for figure in SHOWN)} |")
            rows.append({"pair": pair, "scheme": cell.label, "runs": len(cell.runs)})
            rows[-1] |= {name: None if point is None else point.value for name, point in points.items()}
    keep("schedulers", {"schema": 2, "rows": rows})


if __name__ == "__main__":
    typer.run(main)
