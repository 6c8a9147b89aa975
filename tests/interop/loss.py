"""The loss table: seconds for 10 MB at 1, 3 and 5 % random loss in both directions, by server.

    python -m interop.loss [--seeds N] [--server NAME ...]

The client is quic-go's, but of the row of the kernel's TCP; the link has 40 Mbps and 100 ms. Each transfer is in
virtual time, so that a row says the same on every machine; the seeds are those of the link's losses and of all else. A
column has the median of the seeds, and the least and the most.
"""

import argparse
import json
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from interop.cases import LOSS, Case
from interop.matrix import Arena, Cell, run_cell
from interop.peers import Peer, by_name
from railyard.base.paths import ROOT

SERVERS = ("xlink", "xlink-cubic", "tcp", "quinn", "ngtcp2", "quic-go")
CLIENT = {"tcp": "tcp"}  # quic-go's for all others


def measure(servers: list[Peer], seeds: range, jobs: int) -> dict[tuple[str, str], list[Cell]]:
    def one(job: tuple[int, Case, Peer]) -> Cell:
        seed, case, server = job
        cell = run_cell(
            case, server, by_name(CLIENT.get(server.name, "quic-go")), arena=Arena(is_virtual=True, seed=seed)
        )
        print(f"{case.name} {server.name} seed {seed}: {cell.seconds} s {cell.reason or ''}", file=sys.stderr)
        return cell

    wanted = [(seed, case, server) for seed in seeds for case in LOSS for server in servers]
    with ThreadPoolExecutor(jobs) as pool:
        cells = list(pool.map(one, wanted))
    return {
        (server.name, case.name): [cell for cell in cells if (cell.server, cell.case) == (server.name, case.name)]
        for server in servers
        for case in LOSS
    }


def figures(cells: list[Cell]) -> str:
    seconds = [cell.seconds for cell in cells if cell.seconds is not None and cell.verdict == "passed"]
    if len(seconds) < len(cells):
        return f"{len(cells) - len(seconds)} of {len(cells)} failed"
    return f"{statistics.median(seconds):.1f} ({min(seconds):.1f} to {max(seconds):.1f})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, metavar="N")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="transfers at a time")
    parser.add_argument("--server", action="append", choices=SERVERS)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "interop" / "loss.json")
    arguments = parser.parse_args()
    servers = []
    for server in map(by_name, arguments.server or SERVERS):
        missing = server.missing()
        if missing is None:
            servers.append(server)
        else:
            print(f"without {server.name}: {missing}", file=sys.stderr)
    results = measure(servers, range(1, arguments.seeds + 1), arguments.jobs)
    print("| server | " + " | ".join(case.about for case in LOSS) + " |")
    print("| --- |" + " ---: |" * len(LOSS))
    for server in servers:
        print(f"| {server.name} | " + " | ".join(figures(results[server.name, case.name]) for case in LOSS) + " |")
    record = {f"{server} {case}": [cell.seconds for cell in cells] for (server, case), cells in results.items()}
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
