#!/usr/bin/env python3
"""Measures bulk transfers over the relays of stacks: Mbit/s, and CPU seconds per GB at both ends.

Each stack carries the same bytes from a server's relay to a client's relay: over the loopback interface (one path), and
over mpshell with two paths of equal rates. The server's relay is pinned to the first core and the client's to the
second one; mpshell, the source and the sink of the bytes run where the kernel puts them, so a rate that the cores do
not sustain shows what the machine can do, not the stack. The stacks take turns, and the median of all tries counts.

Prints a table in Markdown and writes the figures to build/bench/stacks.json.
"""

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from instructions import keep

from railyard.base.errors import UserError
from railyard.base.paths import ROOT, program
from railyard.experiment.stacks import StackRun, resolve_stack
from railyard.run.runspec import CERTIFICATE_FILE, KEY_FILE, certificate_command
from railyard.stress.run import subject

STACKS = ("libxlink", "picoquic", "xquic,datagram=1420")
DELAY_MS = 10  # each way
PACKET_BITS = 1504 * 8
LIMIT_S = 120.0
CHUNK = bytes(1 << 20)


@dataclass(frozen=True)
class Case:
    name: str
    bytes: int
    mbps: int | None = None  # of each of two paths; None: the loopback interface

    def mpshell(self) -> list[str]:
        packets = max(
            64, round((self.mbps or 0) * 1e6 * 2 * DELAY_MS / 1e3 / PACKET_BITS)
        )  # one bandwidth-delay product
        link = f"up={self.mbps}mbps,down={self.mbps}mbps,delay={DELAY_MS},queue=droptail:packets={packets}"
        return [str(program("mpshell")), "--path", f"a:{link}", "--path", f"b:{link}", "--"]


CASES = (
    Case("loopback, one path", 200_000_000),
    Case("2 × 20 Mbps", 20_000_000, 20),
    Case("2 × 100 Mbps", 100_000_000, 100),
    Case("2 × 500 Mbps", 600_000_000, 500),
)


@dataclass(frozen=True)
class Figures:
    mbps: float
    server_cpu_s_per_gb: float
    client_cpu_s_per_gb: float


def cpu_ns(pid: int) -> int:
    """The processor time of a process's threads, ns."""
    files = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(file.read_text().split()[0]) for file in files)


def running(program: str, pid: int) -> Iterator[int]:
    """The processes of a program among `pid` and its descendants. mpshell starts its command within other processes,
    and others that keep the cores awake."""
    process = Path(f"/proc/{pid}")
    if process.joinpath("comm").read_text().strip() == Path(program).name[:15]:
        yield pid
    for child in process.joinpath(f"task/{pid}/children").read_text().split():
        yield from running(program, int(child))


@contextmanager
def started(command: list[str], relay: str) -> Iterator[int]:
    """A context with a relay that is ready. Yields its process ID. `relay`: the program of the command."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        if process.stdout is None or '"ready"' not in process.stdout.readline():
            raise RuntimeError(f"{command} is not ready")
        drain = threading.Thread(target=process.stdout.read, daemon=True)
        drain.start()
        try:
            [pid] = running(relay, process.pid)
            yield pid
        finally:
            process.terminate()
            process.wait(timeout=20)
            drain.join()


def serve(listener: socket.socket, total: int) -> None:
    near, _ = listener.accept()
    with near:
        near.recv(1)
        left = total
        while left > 0:
            left -= near.send(CHUNK[:left])


def transfer(listener: socket.socket, file: Path, total: int) -> float:
    """Seconds from the request to the last byte, with the handshake."""
    source = threading.Thread(target=serve, args=(listener, total), daemon=True)
    source.start()
    buffer, received = bytearray(1 << 20), 0
    with socket.socket(socket.AF_UNIX) as sink:
        sink.settimeout(LIMIT_S)
        sink.connect(str(file))
        begin = time.monotonic()
        sink.sendall(b"?")
        while n := sink.recv_into(buffer):
            received += n
        seconds = time.monotonic() - begin
    source.join(LIMIT_S)
    if received != total:
        raise RuntimeError(f"{received} bytes arrived of {total}")
    return seconds


def free_port() -> int:
    """A port that is free for UDP and TCP on every address."""
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams, socket.socket() as streams:
            datagrams.bind(("", 0))
            port: int = datagrams.getsockname()[1]
            try:
                streams.bind(("", port))
            except OSError:
                continue
            return port


def measure(stack: StackRun, case: Case, folder: Path) -> Figures:
    file, port = folder / "socket", free_port()
    file.unlink(missing_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        upstream = f"127.0.0.1:{listener.getsockname()[1]}"
        server = ["taskset", "-c", "0", *stack.server, "--listen", f"0.0.0.0:{port}", "--upstream", upstream]
        if stack.certificate:
            server += ["--certificate", str(folder / CERTIFICATE_FILE), "--key", str(folder / KEY_FILE)]
        client = ["taskset", "-c", "1", *stack.client, "--socket", str(file)]
        if case.mbps is None:
            client += ["--server", f"127.0.0.1:{port}", "--path", "a:127.0.0.1"]
        else:
            paths = '--server "$MPSHELL_GATEWAY:$0" --path "a:$MPSHELL_PATH_0_ADDR" --path "b:$MPSHELL_PATH_1_ADDR"'
            client = [*case.mpshell(), "sh", "-c", f'exec "$@" {paths}', str(port), *client]
        with started(server, stack.server[0]) as server_pid, started(client, stack.client[0]) as client_pid:
            before = cpu_ns(server_pid), cpu_ns(client_pid)
            seconds = transfer(listener, file, case.bytes)
            spent = cpu_ns(server_pid) - before[0], cpu_ns(client_pid) - before[1]
    return Figures(case.bytes * 8e-6 / seconds, *(ns / case.bytes for ns in spent))


def rows(case: Case, results: dict[str, list[Figures]]) -> Iterator[str]:
    for number, (name, tries) in enumerate(results.items()):
        rates = [one.mbps for one in tries]
        server = statistics.median(one.server_cpu_s_per_gb for one in tries)
        client = statistics.median(one.client_cpu_s_per_gb for one in tries)
        rate = f"{statistics.median(rates):.0f} | {min(rates):.0f} to {max(rates):.0f}" if rates else "– | –"
        yield f"| {case.name if number == 0 else ''} | `{name}` | {rate} | {server:.2f} | {client:.2f} |"


def known(names: list[str]) -> dict[str, StackRun]:
    stacks = {}
    for name in names:
        try:
            entry = subject("stack", name).entry
            stacks[name] = resolve_stack(str(entry.stack), entry.stack_options, ROOT)
        except UserError as error:
            print(f"without {name}: {error}", file=sys.stderr)
    return stacks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stacks", nargs="*", default=list(STACKS), help=f"NAME,KEY=VALUE; default: {' '.join(STACKS)}")
    parser.add_argument("--tries", type=int, default=5)
    options = parser.parse_args()
    stacks = known(options.stacks)
    print(f"Load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {options.tries} tries.\n")
    print("| case | stack | Mbit/s | least to most | server, CPU s/GB | client, CPU s/GB |")
    print("| --- | --- | ---: | --- | ---: | ---: |")
    record = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(certificate_command(folder), check=True, capture_output=True)
        for case in CASES:
            results: dict[str, list[Figures]] = {stack: [] for stack in stacks}
            for _ in range(options.tries):
                for stack, run in stacks.items():
                    results[stack].append(measure(run, case, folder))
            print("\n".join(rows(case, results)), flush=True)
            record[case.name] = {stack: [asdict(one) for one in tries] for stack, tries in results.items()}
    print(f"\nLoad after: {os.getloadavg()[0]:.1f}.")
    keep("stacks", record)


if __name__ == "__main__":
    main()
