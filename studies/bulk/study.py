"""Bulk transfers: Mbit/s, and CPU seconds per GB at both ends.

The relays of a stack carry bytes from the server's side to the client's, over the loopback interface (one path) or over
mpshell with two paths of equal rates. `direct` is xlink-server and xlink-get without relays, over loopback; with
`against`, so is that of another revision. The server's program is pinned to the first core and the client's to the
second one; mpshell, the source and the sink of the bytes run where the kernel puts them, so a rate that the cores do
not sustain shows what the machine can do, not the stack. All take turns, and ratios are of the same turns.
"""

import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import Field

from railyard.base.errors import UserError
from railyard.base.paths import ROOT, program
from railyard.experiment.model import Strict
from railyard.experiment.stacks import StackRun, resolve_stack
from railyard.run.arena import arena_of
from railyard.run.children import ends_with_us
from railyard.run.runspec import CERTIFICATE_FILE, KEY_FILE, certificate_command
from railyard.stats.intervals import Interval
from railyard.stats.pooled import bootstrap, quantile_of
from railyard.studies.claims import Compared
from railyard.studies.machine import Machine, build, check_namespaces, machine, output_of, reason, tree_of
from railyard.studies.study import Data, markdown, tell

HOST = "127.0.0.1"
DELAY_MS = 10  # each way
PACKET_BITS = 1504 * 8
LIMIT_S = 120
CHUNK = bytes(1 << 20)
CORES = {"server": ["taskset", "-c", "0"], "client": ["taskset", "-c", "1"]}
DIRECT, OURS = "direct", "libxlink"
LIKE_RELAYS = ("--scheme", "sp", "--path-mtu-bytes", "1452", "--ecn", "off", "--cc", "cubic")
FIGURES = {"Mbit/s": "mbps", "server CPU": "server_s_per_gb", "client CPU": "client_s_per_gb"}


class Case(Strict):
    name: str
    bytes: int = Field(ge=1)
    mbps: int | None = Field(default=None, ge=1)  # of each of two paths; None: the loopback interface

    def mpshell(self, mbps: int) -> list[str]:
        packets = max(64, round(mbps * 1e6 * 2 * DELAY_MS / 1e3 / PACKET_BITS))  # one bandwidth-delay product
        link = f"up={mbps}mbps,down={mbps}mbps,delay={DELAY_MS},queue=droptail:packets={packets}"
        return [str(program("mpshell")), "--path", f"a:{link}", "--path", f"b:{link}", "--"]


class Settings(Strict):
    cases: list[Case] = Field(min_length=1)
    ways: list[str] = Field(min_length=1)  # `direct`, or a stack as NAME,KEY=VALUE
    tries: int = Field(ge=1)
    against: str | None = None  # a revision, whose `direct` takes turns with this one's


class Turn(Data):
    mbps: float
    server_s_per_gb: float
    client_s_per_gb: float


class OfCase(Data):
    links_mbps: int | None
    turns: dict[str, list[Turn]]  # by way


class Measured(Data):
    cases: dict[str, OfCase]
    datagrams_a_call: dict[str, float]  # of `direct`, by the server's sendmmsg
    missing: list[str]  # with the reason
    machine: Machine


Way = Path | StackRun  # the folder of xlink-server and xlink-get, or relays


# --- programs ---------------------------------------------------------------------------------------------------------


def _cpu_s(pid: int) -> float:
    """The processor time of a process's threads."""
    files = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(file.read_text().split()[0]) for file in files) / 1e9


def _running(name: str, pid: int) -> Iterator[int]:
    """The processes of a program among `pid` and its descendants. mpshell starts its command within other processes,
    and others that keep the cores awake."""
    process = Path(f"/proc/{pid}")
    if process.joinpath("comm").read_text().strip() == Path(name).name[:15]:
        yield pid
    for child in process.joinpath(f"task/{pid}/children").read_text().split():
        yield from _running(name, int(child))


@contextmanager
def _started(command: list[str], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """A context with a program of the command that is ready, which ends with this process: its process ID, and what it
    says first. Raises UserError if it is not."""
    with subprocess.Popen(ends_with_us(command), stdout=subprocess.PIPE, text=True) as process:
        said = process.stdout.readline() if process.stdout else ""
        if not said.startswith("{") or process.stdout is None:
            process.kill()
            raise UserError(f"{' '.join(command)} did not start: {said.strip()}")
        drain = threading.Thread(target=process.stdout.read, daemon=True)
        drain.start()
        [pid] = _running(name, process.pid)
        try:
            yield pid, json.loads(said)
        finally:
            os.kill(pid, signal.SIGTERM)  # strace would leave its program alone
            process.wait(timeout=20)
            drain.join()


# --- transfers --------------------------------------------------------------------------------------------------------


def _direct(programs: Path, case: Case, folder: Path, before: tuple[str, ...] = ()) -> Turn:
    """By xlink-server and xlink-get. `before`: words before the server's command."""
    serve = [*CORES["server"], *before, str(programs / "xlink-server"), "--quic", f"{HOST}:0", *LIKE_RELAYS]
    with _started([*serve, "--out", str(folder / "server.jsonl")], "xlink-server") as (server, listening):
        fetch = [*CORES["client"], str(programs / "xlink-get"), "--insecure", "--quiet", *LIKE_RELAYS]
        url = f"https://{listening['quic']}/synthetic/{case.bytes}"
        begin, used = time.monotonic(), _cpu_s(server)
        client = subprocess.Popen([*fetch, "--time-limit", str(LIMIT_S), url], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(client.pid, 0)
        seconds, used = time.monotonic() - begin, _cpu_s(server) - used
        client.returncode = os.waitstatus_to_exitcode(status)
    if client.returncode != 0:
        raise UserError(f"xlink-get ended with {client.returncode}.")
    return _turn(case, seconds, used, usage.ru_utime + usage.ru_stime)


def _over_relays(stack: StackRun, case: Case, folder: Path) -> Turn:
    file, port = folder / "socket", _free_port()
    file.unlink(missing_ok=True)
    with socket.create_server((HOST, 0)) as listener:
        upstream = f"{HOST}:{listener.getsockname()[1]}"
        serve = [*CORES["server"], *stack.server, "--listen", f"0.0.0.0:{port}", "--upstream", upstream]
        if stack.certificate:
            serve += ["--certificate", str(folder / CERTIFICATE_FILE), "--key", str(folder / KEY_FILE)]
        fetch = [*CORES["client"], *stack.client, "--socket", str(file)]
        if case.mbps is None:
            fetch += ["--server", f"{HOST}:{port}", "--path", f"a:{HOST}"]
        else:
            paths = '--server "$MPSHELL_GATEWAY:$0" --path "a:$MPSHELL_PATH_0_ADDR" --path "b:$MPSHELL_PATH_1_ADDR"'
            fetch = [*case.mpshell(case.mbps), "sh", "-c", f'exec "$@" {paths}', str(port), *fetch]
        with _started(serve, stack.server[0]) as (server, _), _started(fetch, stack.client[0]) as (client, _):
            before = _cpu_s(server), _cpu_s(client)
            seconds = _transfer(listener, file, case.bytes)
            return _turn(case, seconds, _cpu_s(server) - before[0], _cpu_s(client) - before[1])


def _turn(case: Case, seconds: float, server_s: float, client_s: float) -> Turn:
    gb = case.bytes / 1e9
    return Turn(mbps=8000 * gb / seconds, server_s_per_gb=server_s / gb, client_s_per_gb=client_s / gb)


def _transfer(listener: socket.socket, file: Path, total: int) -> float:
    """Seconds from the request to the last byte, with the handshake."""
    source = threading.Thread(target=_serve, args=(listener, total), daemon=True)
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
    if received != total:
        raise UserError(f"{received} bytes arrived of {total}.")
    source.join(LIMIT_S)
    return seconds


def _serve(listener: socket.socket, total: int) -> None:
    near, _ = listener.accept()
    with near:
        near.recv(1)
        left = total
        while left > 0:
            left -= near.send(CHUNK[:left])


def _free_port() -> int:
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


# --- what is measured -------------------------------------------------------------------------------------------------


def measure(settings: Settings) -> Measured:
    if any(case.mbps for case in settings.cases):
        check_namespaces("bulk", ", or with --size loopback")
        arena_of("mpshell").check()
    ways, missing = _ways(settings)
    load, cases, calls = os.getloadavg()[0], {}, {}
    with tempfile.TemporaryDirectory(prefix="railyard-") as name:
        folder = Path(name)
        output_of(*certificate_command(folder))
        for case in settings.cases:
            cases[case.name] = _of_case(case, ways, settings.tries, folder)
            if not case.mbps and shutil.which("strace"):
                programs = {name: way for name, way in ways.items() if isinstance(way, Path)}
                calls = {name: _datagrams_a_call(way, case, folder) for name, way in programs.items()}
    return Measured(cases=cases, datagrams_a_call=calls, missing=missing, machine=machine(load))


def _is_direct(way: str) -> bool:
    return way.startswith(DIRECT)


def _ways(settings: Settings) -> tuple[dict[str, Way], list[str]]:
    ways: dict[str, Way] = {}
    missing = []
    for name in settings.ways:
        try:
            ways[name] = program("xlink-server").parent if name == DIRECT else _stack(name)
        except UserError as error:
            missing.append(f"{name}: {reason(error)}")
    if settings.against:
        tree = tree_of(settings.against)
        build(tree, ["build/bin/xlink-server", "build/bin/xlink-get"])
        ways[f"{DIRECT} {settings.against}"] = tree / "build" / "bin"
    return ways, missing


def _stack(text: str) -> StackRun:
    """Raises UserError."""
    name, *options = text.split(",")
    return resolve_stack(name, {key: value for key, _, value in (one.partition("=") for one in options)}, ROOT)


def _of_case(case: Case, ways: dict[str, Way], tries: int, folder: Path) -> OfCase:
    turns: dict[str, list[Turn]] = {way: [] for way in ways if not (case.mbps and _is_direct(way))}
    for number in range(tries):
        for way, of_way in turns.items():
            tell(f"{case.name}, turn {number + 1} of {tries}: {way}")
            try:
                of_way.append(_one_turn(ways[way], case, folder))
            except (OSError, UserError) as error:
                raise UserError(f"{case.name}, {way}: {error}") from None
    return OfCase(links_mbps=case.mbps and 2 * case.mbps, turns=turns)


def _one_turn(way: Way, case: Case, folder: Path) -> Turn:
    return _direct(way, case, folder) if isinstance(way, Path) else _over_relays(way, case, folder)


def _datagrams_a_call(programs: Path, case: Case, folder: Path) -> float:
    """In another transfer, because strace takes time."""
    counts = folder / "calls"
    _direct(programs, case, folder, before=("strace", "-I", "2", "-f", "-c", "-e", "trace=sendmmsg", "-o", str(counts)))
    # % time, seconds, usecs/call, calls, errors, syscall
    calls = sum(int(line.split()[3]) for line in counts.read_text().splitlines() if line.endswith(" sendmmsg"))
    records = map(json.loads, (folder / "server.jsonl").read_text().splitlines())
    closed = [record for record in records if record["event"] == "connection_closed"]
    return float(sum(path["packets_sent"] for record in closed for path in record["paths"]) / calls)


# --- what is printed --------------------------------------------------------------------------------------------------


def _pairs(turns: dict[str, list[Turn]]) -> Iterator[tuple[str, str]]:
    """Ways whose ratio is of interest: revisions, and a stack without relays; libxlink and the other stacks."""
    for way in turns:
        ours = DIRECT if _is_direct(way) and way != DIRECT else OURS
        if ours in turns and way != ours:
            yield ours, way


def _ratio(turns: dict[str, list[Turn]], ours: str, other: str, figure: str) -> Interval | None:
    """The median over turns."""
    both = zip(turns[ours], turns[other], strict=True)
    return bootstrap([[getattr(a, figure) / getattr(b, figure)] for a, b in both], quantile_of(0.5))


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    heads = ["case", "way", "Mbit/s", "least to most", "server, CPU s/GB", "client, CPU s/GB"]
    figures, ratios = [], []
    for name, case in measured.cases.items():
        figures += [[name, way, *_cells(turns)] for way, turns in case.turns.items()]
        for ours, other in _pairs(case.turns):
            found = [_ratio(case.turns, ours, other, figure) for figure in FIGURES.values()]
            ratios.append([name, f"{ours} / {other}", *("–" if one is None else one.text() for one in found)])
    yield "figures", markdown(heads, figures, left=2)
    if ratios:
        yield "ratios", markdown(["case", "ratio", *FIGURES], ratios, left=2)
    if calls := measured.datagrams_a_call:
        said = ", ".join(f"{way} {datagrams:.1f}" for way, datagrams in calls.items())
        yield "calls", f"Datagrams a call of the server: {said}."
    if measured.missing:
        yield "missing", "\n".join(["Not built here:", "", *(f"- {line}" for line in measured.missing)])


def _cells(turns: list[Turn]) -> list[str]:
    rates = [turn.mbps for turn in turns]
    costs = [[getattr(turn, figure) for turn in turns] for figure in ("server_s_per_gb", "client_s_per_gb")]
    range_of_rates = f"{min(rates):.0f} to {max(rates):.0f}"
    return [f"{statistics.median(rates):.0f}", range_of_rates, *(f"{statistics.median(cost):.2f}" for cost in costs)]


def compared(measured: Measured) -> Iterator[Compared]:
    for name, case in measured.cases.items():
        for figure, field in FIGURES.items():
            for ours, other in _pairs(case.turns):
                found = _ratio(case.turns, ours, other, field)
                yield Compared(
                    figure=figure, a=f"{ours} / {other}", where={"case": name}, found=found, unit="", digits=2
                )
        if links := case.links_mbps:
            for way, turns in case.turns.items():
                share = bootstrap([[turn.mbps / links] for turn in turns], quantile_of(0.5))
                yield Compared(figure="share of the links", a=way, where={"case": name}, found=share, unit="", digits=2)
