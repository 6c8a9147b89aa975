#!/usr/bin/env python3
"""Measures the cost of a server's endpoint by the number of its connections: endpoint-bench, best of several runs.

With --against REVISION the library of that revision is built too (build/bench/REVISION) and runs the same load in turn
with the present one. Prints tables in Markdown and writes the figures to build/bench/connections.json.
"""

import argparse
import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

from instructions import git, keep, tree_of

from railyard.base.paths import ROOT, program

FOLDER = ROOT / "build" / "bench"
Run = dict[str, Any]


def text_of(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


def build_against(revision: str) -> Path:
    """Builds the present load with the library of another revision, of which it uses only the public interface."""
    tree, binary = tree_of(git("rev-parse", f"{revision}^{{commit}}")), FOLDER / "endpoint-bench-against"
    text_of("make", "-s", "-j2", "-C", str(tree), "build/release/libxlink.a")
    flags = shlex.split(text_of("pkg-config", "--cflags", "--libs", "gnutls"))
    source, library = ROOT / "apps" / "load" / "bench" / "main.c", tree / "build" / "release" / "libxlink.a"
    command = ["gcc", "-std=c17", "-O2", "-fno-omit-frame-pointer", f"-I{tree}/transport/include", "-D_GNU_SOURCE"]
    text_of(*command, str(source), str(library), *flags, "-lm", "-o", str(binary))
    return binary


def cheapest(runs: list[Run]) -> Run:
    """The least cost of each phase. Sent and received bytes are the same in all runs."""
    best: Run = dict(runs[0])
    for phase in ("connect", "requests", "end"):
        best[phase] = min((run[phase] for run in runs), key=lambda cost: cost["cpu_s"])
    return best


def measure(binaries: list[Path], connections: int, requests: int, tries: int) -> list[Run]:
    runs: list[list[Run]] = [[] for _ in binaries]
    for _ in range(tries):
        for binary, mine in zip(binaries, runs, strict=True):
            mine.append(json.loads(text_of(str(binary), str(connections), str(requests))))
    return [cheapest(mine) for mine in runs]


def figures(run: Run) -> tuple[float, float, float]:
    """Seconds per million packets, packets per round of the driver's loop, and microseconds for a connection's end."""
    requests = run["requests"]
    per_million = requests["cpu_s"] / requests["packets"] * 1e6
    return per_million, requests["packets"] / requests["rounds"], run["end"]["cpu_s"] / run["connections"] * 1e6


def row(runs: list[Run]) -> str:
    cells = [f"{runs[0]['connections']:,}"]
    values = [figures(run) for run in runs]
    cells += [f"{values[0][1]:.1f}", f"{values[0][0]:.2f}"]
    cells += [f"{other[0]:.2f} | {values[0][0] / other[0]:.2g}" for other in values[1:]]
    cells += [f"{values[0][2]:.0f}"]
    cells += [f"{other[2]:.0f} | {values[0][2] / other[2]:.2g}" for other in values[1:]]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", default="100,1000,4000", help="numbers of connections")
    parser.add_argument("--requests", type=int, default=5000, help="of 10 kB, by all connections in turn")
    parser.add_argument("--tries", type=int, default=3, help="the best is kept")
    parser.add_argument("--against", metavar="REVISION", help="compare with the library of this revision")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    binaries = [program("endpoint-bench")]
    other = [f"{options.against} | ratio"] if options.against else []
    if options.against:
        binaries.append(build_against(options.against))
    heads = ["connections", "packets a round", "CPU s / million packets", *other, "µs / connection's end", *other]
    print("| " + " | ".join(heads) + " |")
    print("|" + " ---: |" * (len(heads) + len(other)))
    everything = []
    for connections in map(int, options.connections.split(",")):
        runs = measure(binaries, connections, options.requests, options.tries)
        print(row(runs), flush=True)
        everything.append(runs)
    keep("connections", {"schema": 1, "against": options.against, "runs": everything})


if __name__ == "__main__":
    main()
