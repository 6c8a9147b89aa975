#!/usr/bin/env python3
"""Measures every scheduler with every congestion controller over trace pairs in the simulator.

Prints one table in Markdown for each pair and writes the figures to build/bench/schedulers.json. A row gathers runs
from start offsets spread evenly over the traces: request completion time over all their chunks (one that was not done
at the time limit counts with the time waited), rebuffer rate, redundancy. The virtual clock makes every figure exact:
it repeats to the digit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from railyard.base.errors import UserError
from railyard.base.paths import ROOT, program
from railyard.experiment.settings import CONTROLLERS, SCHEDULERS
from railyard.traces import Pair, find_pair

Job = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """What one run adds to its row."""

    rct_s: list[float]
    play_s: float
    rebuffer_s: float
    stream_bytes: int
    reinjected_bytes: int


@dataclass(frozen=True)
class Row:
    pair: str
    scheduler: str
    cc: str
    runs: int
    rct_median_s: float
    rct_p95_s: float
    rct_p99_s: float
    rebuffer_rate: float
    redundancy: float


def make_job(pair: Pair, scheduler: str, cc: str, offset_ms: int) -> Job:
    paths = [
        {"name": p.name, "technology": p.technology, "up": str(p.uplink), "down": str(p.downlink)}
        | {"delay_ms": p.base_rtt_ms / 2, "queue": p.queue}
        for p in pair.paths
    ]
    player = {"video_bytes": 10_000_000, "bitrate_bps": 4_000_000, "chunk_bytes": 524_288}
    # XLINK's scheduler is min-RTT with re-injection; the others run without any.
    scheme = "xlink-lean" if scheduler == "xlink" else "vanilla-mp"
    job: Job = {"scheme": scheme, "scheduler": scheduler, "cc": cc, "paths": paths, "player": player}
    return job | {"start_offset_ms": offset_ms, "time_limit_s": 60, "link_logs": False, "null_crypto": True}


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def simulate(job: Job) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        command: list[str | Path] = [program("xlink-sim"), "-", "--out", folder]
        done = subprocess.run(command, input=json.dumps(job), capture_output=True, text=True, check=False)
        player, server = Path(folder) / "player.jsonl", Path(folder) / "server.jsonl"
        if done.returncode not in (0, 1):
            raise UserError(f"xlink-sim: {done.stderr.strip()}")
        events, totals = lines(player), lines(server)[-1]
    asked = {e["chunk"]: e["t"] for e in events if e["event"] == "request"}
    rct = {e["chunk"]: e["rct_s"] for e in events if e["event"] == "chunk_done"}
    end = events[-1]
    waited = [end["t"] - t for chunk, t in asked.items() if chunk not in rct]
    return Run(
        [*rct.values(), *waited],
        end["play_time_s"],
        end["rebuffer_time_s"],
        totals["stream_bytes_sent"],
        totals["reinjected_bytes"],
    )


def gather(pair: str, scheduler: str, cc: str, runs: list[Run]) -> Row:
    median, p95, p99 = np.percentile([value for run in runs for value in run.rct_s], [50, 95, 99])
    reinjected = sum(run.reinjected_bytes for run in runs)
    return Row(
        pair,
        scheduler,
        cc,
        len(runs),
        float(median),
        float(p95),
        float(p99),
        sum(run.rebuffer_s for run in runs) / sum(run.play_s for run in runs),
        reinjected / (sum(run.stream_bytes for run in runs) - reinjected),
    )


def table(rows: list[Row]) -> str:
    out = ["| scheduler | cc | RCT median | p95 | p99 | rebuffer rate | redundancy |"]
    out.append("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for r in rows:
        times = " | ".join(f"{value:.3f} s" for value in (r.rct_median_s, r.rct_p95_s, r.rct_p99_s))
        out.append(f"| `{r.scheduler}` | `{r.cc}` | {times} | {r.rebuffer_rate:.2%} | {r.redundancy:.1%} |")
    return "\n".join(out)


def trace_ms(pair: Pair) -> int:
    """The length of the shortest of its traces."""
    return min(int(file.read_text().split()[-1]) for p in pair.paths for file in (p.uplink, p.downlink))


def main(
    pairs: Annotated[list[str] | None, typer.Argument(help="trace pairs; the generated ones if left out")] = None,
    offsets: Annotated[int, typer.Option(min=1, help="start offsets for each row")] = 10,
    jobs: Annotated[int, typer.Option(min=1, help="runs side by side")] = os.cpu_count() or 1,
) -> None:
    kinds = list(product(SCHEDULERS, CONTROLLERS))
    rows: list[Row] = []
    for pair in (find_pair(name) for name in pairs or ["subway-1", "hsr-1"]):
        starts = [trace_ms(pair) * i // offsets for i in range(offsets)]
        work = [make_job(pair, scheduler, cc, start) for scheduler, cc in kinds for start in starts]
        with ThreadPoolExecutor(jobs) as pool:
            runs = list(pool.map(simulate, work))
        of_pair = [
            gather(pair.name, scheduler, cc, runs[i * offsets : (i + 1) * offsets])
            for i, (scheduler, cc) in enumerate(kinds)
        ]
        print(f"\n## {pair.name}, {offsets} start offsets\n\n{table(of_pair)}", flush=True)
        rows += of_pair
    file = ROOT / "build/bench/schedulers.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"schema": 1, "rows": [asdict(row) for row in rows]}, indent=1) + "\n")


if __name__ == "__main__":
    try:
        typer.run(main)
    except UserError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
