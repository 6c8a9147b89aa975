"""mpshell from outside: the lateness of packets, their cost, and the largest rate.

udp-flow sends numbered datagrams inside of the shell; a second one outside takes the kernel's receive time
(SO_TIMESTAMPNS) of each. Lateness is that time minus the time of the packet's opportunity: packets of 1500 bytes take
one each, in order, so it is the latest one that leaves each packet its own. Beyond capacity (2x) this is exact. Below
(0.95x) a packet that is a whole opportunity late may seem on time, so mpshell's own figures are shown too.
"""

import array
import bisect
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from railyard.base.errors import UserError
from railyard.base.paths import TRACES_DIR, program
from railyard.experiment.model import Strict
from railyard.run.arena import arena_of
from railyard.run.children import ends_with_us
from railyard.stats.statistics import nearest_rank
from railyard.studies.machine import Machine, check_namespaces, machine, output_of
from railyard.studies.study import Data, markdown, tell

OPPORTUNITY_BITS = 1504 * 8
PACKET_BYTES = 1500
SETTLE_NS = 200_000_000  # the first packets find empty queues and cold caches
MOST_MBPS = 12_000
VARYING = "walking-1.lte.down"
AWAKE_MBPS = 12
PINGS = 500


class Settings(Strict):
    rates: list[Annotated[float, Field(ge=1, le=MOST_MBPS)]] = Field(min_length=1)  # of the links, Mbps
    seconds: float = Field(gt=0.2)  # of a flow
    tries: int = Field(ge=1)  # of a flow, of which the one with the lowest p99 is shown; pairs of runs when kept awake
    only: str = ""  # what the names of the measurements have
    mpshell: list[str] = Field(default=[])  # further options of mpshell


class Flow(Data):
    """What one path carried."""

    delivered: int
    mbps: float
    late_p50_ms: float
    late_p99_ms: float
    late_max_ms: float
    own_p99_ms: float
    own_max_ms: float
    opportunities_used: float  # share of the opportunities while packets came out
    cpu_s_per_million: float  # of mpshell, over all of its paths
    lost_by_devices: int


class RoundTrips(Data):
    median_ms: float
    p99_ms: float
    added_median_ms: float | None  # beyond the trace's own delay
    added_p99_ms: float | None


class Awake(Data):
    """Lateness as mpshell counts it, p50 and p99, without and with --keep-awake, in a pair of runs."""

    without_us: tuple[float, float]
    with_us: tuple[float, float]
    spinner_cpu_s: float


class Measured(Data):
    flows: dict[str, list[list[Flow]]]  # of each try, by path
    round_trips: dict[str, RoundTrips]
    keep_awake: list[Awake]
    machine: Machine


# --- opportunities ----------------------------------------------------------------------------------------------------


class Opportunities:
    """The opportunities of a trace, or of a rate such as 1000mbps, in ns since t0."""

    def __init__(self, trace: Path | str) -> None:
        self.rate = float(trace.removesuffix("mbps")) * 1e6 if isinstance(trace, str) else 0
        self.at = [] if isinstance(trace, str) else [int(line) for line in trace.read_text().split()]

    @property
    def mbps(self) -> float:
        return self.rate / 1e6 or len(self.at) * OPPORTUNITY_BITS / self.at[-1] / 1000

    def time(self, number: int) -> int:
        if self.rate:
            return math.ceil((number + 1) * OPPORTUNITY_BITS * 1e6 / self.rate) * 1000
        rounds, rest = divmod(number, len(self.at))
        return (rounds * self.at[-1] + self.at[rest]) * 1_000_000

    def until(self, ns: int) -> int:
        """The number of opportunities at or before `ns`."""
        if self.rate:
            number = int(ns * self.rate / OPPORTUNITY_BITS / 1e9) + 1
            while number > 0 and self.time(number - 1) > ns:
                number -= 1
            return number
        rounds, rest = divmod(ns // 1_000_000, self.at[-1])
        return rounds * len(self.at) + bisect.bisect_right(self.at, rest)


def _constant(folder: Path, mbps: float) -> Path:
    """A trace of one second."""
    file = folder / f"{mbps:g}mbps.trace"
    per_ms = mbps * 1000 / OPPORTUNITY_BITS
    file.write_text("".join(f"{int((n + 1) / per_ms + 0.999999)}\n" for n in range(round(per_ms * 1000))))
    return file


def _lateness(received: list[int], opportunities: Opportunities) -> list[int]:
    """The lateness of each packet, ns. Each takes its own opportunity, in order: the latest ones for which no packet
    left early."""
    late, limit = [], sys.maxsize
    for ns in reversed(received):
        limit = min(limit - 1, opportunities.until(ns) - 1)
        late.append(ns - opportunities.time(limit))
    return late


# --- flows ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    name: str
    trace: Path | str
    factor: float  # of the link's rate is sent, on each path
    paths: int = 1
    segment: bool = False
    mpshell: tuple[str, ...] = ()

    def send_bps(self) -> float:
        return Opportunities(self.trace).mbps * self.factor * 1e6


def _cases(settings: Settings, folder: Path) -> Iterator[Case]:
    traces: dict[float, Path | str] = {mbps: _constant(folder, mbps) for mbps in (*settings.rates, MOST_MBPS)}
    for mbps in settings.rates:
        yield from (Case(f"{mbps:g} Mbps, {factor:g}x", traces[mbps], factor) for factor in (0.95, 2))
    varying = TRACES_DIR / VARYING
    mean = Opportunities(varying).mbps
    yield from (Case(f"varying rate ({mean:.0f} Mbps), {factor:g}x", varying, factor) for factor in (0.95, 2))
    for mbps in settings.rates[-2:]:
        yield Case(f"{mbps:g} Mbps, 0.95x, UDP_SEGMENT", traces[mbps], 0.95, segment=True)
    yield from (
        Case(f"two paths of {mbps:g} Mbps, 0.95x", traces[mbps], 0.95, paths=2) for mbps in settings.rates[-2:-1]
    )
    yield from (Case(f"{mbps:g} Mbps evenly, 0.95x", f"{mbps:g}mbps", 0.95) for mbps in settings.rates)
    yield Case("most of one path", traces[MOST_MBPS], 0.5)
    yield Case("most of one path, UDP_SEGMENT", traces[MOST_MBPS], 0.67, segment=True)


def _started(command: list[str]) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    """A program, which ends with this process, and what it says first."""
    process = subprocess.Popen(ends_with_us(command), stdout=subprocess.PIPE, text=True)
    return process, json.loads(process.stdout.readline() if process.stdout else "")


def _run(case: Case, folder: Path, seconds: float) -> tuple[list[Flow], dict[str, Any]]:
    """Floods the uplink of every path at the case's rate. Returns what each carried, and mpshell's summary."""
    extra = ["--segment"] if case.segment else []
    sinks, senders, options = [], [], []
    for k in range(case.paths):
        out = folder / f"sink-{k}.bin"
        command = [str(program("udp-flow")), "sink", "--bind", "0.0.0.0:0", "--duration", "60", "--out", str(out)]
        process, ready = _started([*command, *extra])
        sinks.append((process, out))
        rate = f"--rate {case.send_bps():.0f} --duration {seconds} --size {PACKET_BYTES} {' '.join(extra)}"
        where = f"--to $MPSHELL_GATEWAY:{ready['port']} --bind $MPSHELL_PATH_{k}_ADDR:0"
        senders.append(f"{program('udp-flow')} send {where} {rate} >/dev/null &")
        options += ["--path", f"p{k}:up={case.trace},down={case.trace},delay=0,queue=droptail:packets=1000"]
    file = folder / "summary.json"
    shell = [str(program("mpshell")), *options, *case.mpshell, "--summary", str(file), "--"]
    output_of(*shell, "sh", "-c", " ".join([*senders, "wait"]), limit_s=60 + seconds)
    ends = []
    for process, out in sinks:
        process.terminate()
        ends.append((json.loads(process.communicate(timeout=20)[0]), out))
    summary = json.loads(file.read_text())
    return [_flow(case, out, end, summary, k) for k, (end, out) in enumerate(ends)], summary


def _flow(case: Case, records: Path, sink: dict[str, Any], summary: dict[str, Any], path: int) -> Flow:
    raw = array.array("Q")
    raw.frombytes(records.read_bytes())
    t0 = summary["t0_monotonic_us"] * 1000 + sink["realtime_minus_monotonic_ns"]
    times = [ns - t0 for ns in raw[2::3]]
    steady = [ns for ns in times if ns >= times[0] + SETTLE_NS]
    if len(steady) < 2:
        raise UserError(f"{case.name}: no packet arrived in time; choose a higher rate or more seconds.")
    opportunities = Opportunities(case.trace)
    late = _lateness(steady, opportunities)
    span = opportunities.until(steady[-1]) - opportunities.until(steady[0])
    up = summary["paths"][path]["up"]
    packets = sum(p[way]["departed_packets"] for p in summary["paths"] for way in ("up", "down"))
    return Flow(
        delivered=len(times),
        mbps=(len(steady) - 1) * OPPORTUNITY_BITS / (steady[-1] - steady[0]) * 1000,
        late_p50_ms=nearest_rank(late, 0.5) / 1e6,
        late_p99_ms=nearest_rank(late, 0.99) / 1e6,
        late_max_ms=max(late) / 1e6,
        own_p99_ms=up["lateness_us"]["p99"] / 1e3,
        own_max_ms=up["lateness_us"]["max"] / 1e3,
        opportunities_used=(len(steady) - 1) / span if span else 0,
        cpu_s_per_million=summary["cpu_s"] / packets * 1e6,
        lost_by_devices=sink["overflowed"] + sum(summary["paths"][path]["device_drops"].values()) + up["write_errors"],
    )


# --- round trips, and cores that are kept awake -----------------------------------------------------------------------


def _round_trips(trace: Path | str | None, folder: Path, more: list[str]) -> RoundTrips:
    """Pings over an idle link without delay, or over loopback without a trace."""
    echo, ready = _started([str(program("udp-flow")), "echo", "--bind", "0.0.0.0:0", "--duration", "60"])
    command = [str(program("udp-flow")), "ping", "--count", str(PINGS), "--interval", "2", "--to"]
    file = folder / "summary.json"
    if trace is None:
        command += [f"127.0.0.1:{ready['port']}"]
    else:
        inside = ["sh", "-c", f"exec {' '.join(command)} $MPSHELL_GATEWAY:{ready['port']}"]
        command = [str(program("mpshell")), "--path", f"p:up={trace},down={trace},delay=0", *more]
        command += ["--summary", str(file), "--", *inside]
    out = output_of(*command, limit_s=120)
    echo.terminate()
    echo.communicate()
    pings = [tuple(map(int, line.split())) for line in out.splitlines()]
    rtts = [rtt / 1e6 for _, rtt in pings]
    added = []
    if trace is not None:
        t0, links = json.loads(file.read_text())["t0_monotonic_us"] * 1000, Opportunities(trace)
        added = [(rtt - _earliest(sent - t0, links)) / 1e6 for sent, rtt in pings]
    quantiles = [nearest_rank(values, q) if values else None for values in (rtts, added) for q in (0.5, 0.99)]
    return RoundTrips.model_validate(dict(zip(RoundTrips.model_fields, quantiles, strict=True)))


def _earliest(sent: int, links: Opportunities) -> int:
    """The earliest answer: each way the packet takes the first opportunity after its millisecond."""
    out = links.time(links.until(sent))
    return links.time(links.until(out)) - sent


def _awake(folder: Path, seconds: float) -> Awake:
    """The same sparse flow twice: its timers sleep a millisecond each."""
    trace, late = _constant(folder, AWAKE_MBPS), []
    for when in ("off", "on"):
        case = Case(when, trace, 0.95, mpshell=("--keep-awake", when))
        summary = _run(case, folder, seconds)[1]
        of_path = summary["paths"][0]["up"]["lateness_us"]
        late.append((of_path["p50"], of_path["p99"]))
    return Awake(without_us=late[0], with_us=late[1], spinner_cpu_s=summary["keep_awake"]["spinner_cpu_s"])


def measure(settings: Settings) -> Measured:
    check_namespaces("mpshell-lateness")
    arena_of("mpshell").check()
    load, more = os.getloadavg()[0], tuple(settings.mpshell)
    flows, trips, pairs = {}, {}, []
    with tempfile.TemporaryDirectory(prefix="railyard-") as name:
        folder = Path(name)
        for case in _cases(settings, folder):
            if settings.only in case.name:
                tell(case.name)
                asked = Case(**{**vars(case), "mpshell": more})
                flows[case.name] = [_run(asked, folder, settings.seconds)[0] for _ in range(settings.tries)]
        links = {"loopback": None, "1000 Mbps": _constant(folder, 1000), "1000 Mbps evenly": "1000mbps"}
        for link, trace in links.items():
            if settings.only in link:
                trips[link] = _round_trips(trace, folder, settings.mpshell)
        if settings.only in f"keep-awake at {AWAKE_MBPS} Mbps":
            pairs = [_awake(folder, settings.seconds) for _ in range(settings.tries)]
    if not (flows or trips or pairs):
        raise UserError(f"no measurement has '{settings.only}' in its name.")
    return Measured(flows=flows, round_trips=trips, keep_awake=pairs, machine=machine(load))


# --- what is printed --------------------------------------------------------------------------------------------------


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    if measured.flows:
        heads = ["flow", "Mbps out", "late p50 ms", "p99", "max", "own p99", "own max", "used"]
        rows = [row for name, tries in measured.flows.items() for row in _rows(name, tries)]
        yield "flows", markdown([*heads, "CPU s / M packets", "lost"], rows)
    if measured.round_trips:
        heads = ["idle round trip, no delay", "median ms", "p99", "beyond the trace: median", "p99"]
        rows = [[link, *map(_ms, trips.model_dump().values())] for link, trips in measured.round_trips.items()]
        yield "round-trips", markdown(heads, rows)
    if measured.keep_awake:
        heads = [f"lateness at {AWAKE_MBPS} Mbps, µs", "off: p50", "p99", "on: p50", "p99", "spinners, CPU s"]
        rows = [
            [f"pair {number}", *(f"{us:.0f}" for us in (*pair.without_us, *pair.with_us)), f"{pair.spinner_cpu_s:.2f}"]
            for number, pair in enumerate(measured.keep_awake, 1)
        ]
        yield "keep-awake", markdown(heads, rows)


def _rows(name: str, tries: list[list[Flow]]) -> Iterator[list[str]]:
    """The try with the lowest p99, which is least affected by other load."""
    flows = min(tries, key=lambda flows: max(flow.late_p99_ms for flow in flows))
    for k, flow in enumerate(flows):
        late = [_ms(flow.late_p50_ms), _ms(flow.late_p99_ms), f"{flow.late_max_ms:.2f}"]
        own = [_ms(flow.own_p99_ms), f"{flow.own_max_ms:.2f}"]
        rest = [f"{100 * flow.opportunities_used:.1f} %", f"{flow.cpu_s_per_million:.2f}", str(flow.lost_by_devices)]
        yield [name if len(flows) == 1 else f"{name}, path {k}", f"{flow.mbps:.0f}", *late, *own, *rest]


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
