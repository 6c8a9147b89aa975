#!/usr/bin/env python3
"""Measures a bulk transfer over loopback: the processor time of server and client, alternating between two revisions.

`--against REV` builds that revision with the same compiler (build/bench/REV). The two take turns, and ratios are of
neighbouring turns, so that other load on the machine affects both. strace counts datagrams per call in a separate
transfer. Prints a table in Markdown.
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from instructions import git, make, tree_of

from railyard.base.paths import ROOT

WAIT_S = 300


@dataclass(frozen=True)
class Turn:
    server_s: float  # of processor time
    client_s: float


def cpu_s(pid: int) -> float:
    """Processor time of a process that has ended, or is about to."""
    _, status, usage = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, -signal.SIGTERM):
        raise SystemExit(f"bench-bulk: a program ended with status {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime


def transfer(tree: Path, size: int, log: Path, before: tuple[str, ...] = ()) -> Turn:
    """Does one transfer. `before`: words before the server's command."""
    programs = tree / "build/bin"
    serve: list[str | Path] = [*before, programs / "xlink-server", "--quic", "127.0.0.1:0", "--seed", "1", "--out", log]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        listening = json.loads(server.stdout.readline() if server.stdout else "")
        url = f"https://{listening['quic']}/synthetic/{size}"
        fetch: list[str | Path] = [programs / "xlink-get", "--insecure", "--quiet", "--seed", "2"]
        fetch += ["--time-limit", str(WAIT_S), url]
        with subprocess.Popen(fetch, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as client:
            client_s = cpu_s(client.pid)
            client.returncode = 0
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
        os.kill(int(children[0]) if before else server.pid, signal.SIGTERM)
        server_s = cpu_s(server.pid)
        server.returncode = 0
    return Turn(server_s, client_s)


def datagrams_a_call(tree: Path, size: int, folder: Path) -> str:
    if shutil.which("strace") is None:
        return "strace is not there"
    counts, log = folder / "calls", folder / "server.jsonl"
    transfer(tree, size, log, ("strace", "-f", "-c", "-e", "trace=sendmmsg", "-o", str(counts)))
    # % time, seconds, usecs/call, calls, errors, syscall
    calls = sum(int(line.split()[3]) for line in counts.read_text().splitlines() if line.endswith(" sendmmsg"))
    closed = [
        record for record in map(json.loads, log.read_text().splitlines()) if record["event"] == "connection_closed"
    ]
    packets = sum(path["packets_sent"] for record in closed for path in record["paths"])
    return f"{packets / calls:.1f}"


def cell(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", metavar="REV", help="the other revision")
    parser.add_argument("--mb", type=int, default=200, help="of a transfer")
    parser.add_argument("--tries", type=int, default=5, help="turns of each revision")
    options = parser.parse_args()
    trees = {"now": ROOT}
    if options.against:
        revision = git("rev-parse", f"{options.against}^{{commit}}")
        trees = {revision[:7]: tree_of(revision), "now": ROOT}
    for tree in trees.values():
        make(tree, ["bulk-server"])
    size = options.mb * 1_000_000
    turns: dict[str, list[Turn]] = {name: [] for name in trees}
    print(f"| {options.mb} MB, {options.tries} turns | server, CPU s/GB | client, CPU s/GB | datagrams a call |")
    print("| --- | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory(prefix="railyard-bench-") as name:
        folder = Path(name)
        for _ in range(options.tries):
            for tree_name, tree in trees.items():
                turns[tree_name].append(transfer(tree, size, folder / "server.jsonl"))
        for tree_name, tree in trees.items():
            servers, clients = (
                [getattr(turn, which) / size * 1e9 for turn in turns[tree_name]] for which in ("server_s", "client_s")
            )
            print(f"| {tree_name} | {cell(servers)} | {cell(clients)} | {datagrams_a_call(tree, size, folder)} |")
    if options.against:
        then, now = turns.values()
        for which in ("server_s", "client_s"):
            ratios = [getattr(b, which) / getattr(a, which) for a, b in zip(then, now, strict=True)]
            print(f"\n{which.removesuffix('_s')}, now / then: {cell(ratios)}")


if __name__ == "__main__":
    main()
