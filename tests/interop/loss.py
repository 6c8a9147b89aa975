"""Seconds for 10 MB at 1, 3 and 5 % random loss in both directions, by server, as JSON: `railyard study random-loss`.

    python -m interop.loss SERVER ... --out FILE [--seeds N] [--jobs N]

The client is quic-go's, but of the row of the kernel's TCP; the link has 40 Mbps and 100 ms. Each transfer is in
virtual time, so that a row says the same on every machine; the seeds are those of the link's losses and of all else.
"""

import argparse
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from interop.cases import LOSS, LOSS_RATES, Case
from interop.matrix import Arena, Cell, run_cell
from interop.peers import Peer, by_name

CLIENT = {"tcp": "tcp"}  # quic-go's for all others


def measure(servers: list[Peer], seeds: range, jobs: int) -> dict[str, dict[str, list[float | None]]]:
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
        server.name: {
            f"{percent} %": [
                cell.seconds if cell.verdict == "passed" else None
                for cell in cells
                if (cell.server, cell.case) == (server.name, case.name)
            ]
            for percent, case in zip(LOSS_RATES, LOSS, strict=True)
        }
        for server in servers
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", nargs="+")
    parser.add_argument("--seeds", type=int, default=2, metavar="N")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="transfers at a time")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    try:
        servers = [by_name(name) for name in arguments.server]
        for peer in (*servers, *(by_name(CLIENT.get(server.name, "quic-go")) for server in servers)):
            if (missing := peer.missing()) is not None:
                raise ValueError(f"{peer.name}: {missing}")
    except ValueError as error:
        print(error)  # the study raises it
        return 2
    arguments.out.write_text(json.dumps(measure(servers, range(1, arguments.seeds + 1), arguments.jobs)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
