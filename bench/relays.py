#!/usr/bin/env python3
"""Measures the cost of the relays of other stacks: the same video over libxlink and over TCP on loopback, direct and
over relays (docs/reference/stacks.md).

Prints a table in Markdown: medians of the time from the player's start to its end, and of the processor time of all
programs, over tries that alternate.
"""

import argparse
import json
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from railyard.base.paths import program

QUIC = ["--path-mtu-bytes", "1452", "--ecn", "off", "--cc", "cubic"]
HOST = "127.0.0.1"
CHUNK_BYTES = 8 << 20


@contextmanager
def started(*words: str) -> Iterator[dict[str, Any]]:
    """A context with a program. Yields the line that it prints when it is ready."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield json.loads(process.stdout.readline() if process.stdout else "")
        finally:
            process.terminate()
            process.communicate()


def server(stack: ExitStack, *options: str) -> dict[str, Any]:
    return stack.enter_context(started(str(program("xlink-server")), *options))


def direct(stack: ExitStack, transport: str, _: Path) -> list[str]:
    """Starts the server and returns the player's options."""
    if transport == "tcp":
        listening = server(stack, "--http1", f"{HOST}:0", "--cc", "cubic")
        return ["--transport", "tcp", "--server", listening["http1"]]
    listening = server(stack, "--quic", f"{HOST}:0", "--scheme", "sp", *QUIC)
    return ["--transport", "quic", "--scheme", "sp", "--insecure", *QUIC, "--server", listening["quic"]]


def relayed(stack: ExitStack, transport: str, folder: Path) -> list[str]:
    upstream = server(stack, "--http1", f"{HOST}:0")["http1"]
    relay = str(program("tcp-relay" if transport == "tcp" else "xlink-relay"))
    options = [] if transport == "tcp" else ["--scheme", "sp", *QUIC]
    far = started(relay, "server", "--listen", f"{HOST}:0", "--upstream", upstream, *options)
    to = stack.enter_context(far)["listen"]
    socket = str(folder / "socket")
    stack.enter_context(started(relay, "client", "--socket", socket, "--server", to, "--path", f"a:{HOST}", *options))
    return ["--transport", "stream", "--server", f"unix:{socket}"]


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(way: Any, transport: str, megabytes: int) -> tuple[float, float]:
    """Time and processor time, in seconds."""
    before = cpu_s()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with ExitStack() as stack:
            options = way(stack, transport, folder)
            video = ["--url", f"/synthetic/{megabytes * 1_000_000}", "--chunk-bytes", str(CHUNK_BYTES)]
            video += ["--bitrate", "8000000000", "--time-limit", "120", "--out", str(folder / "player.jsonl")]
            begin = time.monotonic()
            subprocess.run([program("xlink-player"), *options, "--path", f"a:{HOST}", *video], check=True)
            took = time.monotonic() - begin
        summary = json.loads((folder / "player.jsonl").read_text().splitlines()[-1])
        if summary["outcome"] != "complete":
            raise SystemExit(f"bench/relays: {transport}: the player ended with {summary['outcome']}.")
    return took, cpu_s() - before


def print_table(rows: Sequence[tuple[str, str, float, float]], megabytes: int) -> None:
    print("| transport | way | Mbit/s | processor s / GB | against direct |")
    print("| --- | --- | ---: | ---: | ---: |")
    direct_cpu = {transport: cpu for transport, way, _, cpu in rows if way == "direct"}
    for transport, way, took, cpu in rows:
        rate, cost = 8 * megabytes / took, 1000 * cpu / megabytes
        print(f"| {transport} | {way} | {rate:.0f} | {cost:.2f} | {cpu / direct_cpu[transport]:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--tries", type=int, default=5)
    options = parser.parse_args()
    ways = [(transport, name) for transport in ("libxlink", "tcp") for name in ("direct", "relays")]
    times: dict[tuple[str, str], list[tuple[float, float]]] = {key: [] for key in ways}
    for _ in range(options.tries):
        for transport, name in ways:
            way = direct if name == "direct" else relayed
            times[transport, name].append(measure(way, transport, options.megabytes))
    rows = [
        (*key, statistics.median(took for took, _ in tries), statistics.median(cpu for _, cpu in tries))
        for key, tries in times.items()
    ]
    print(f"Relays on the loopback interface, {options.megabytes} MB, medians of {options.tries}:\n")
    print_table(rows, options.megabytes)


if __name__ == "__main__":
    main()
