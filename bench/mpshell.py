#!/usr/bin/env python3
"""Measures mpshell from outside: the lateness of packets, their cost, and the largest rate.

udp-flow sends numbered datagrams inside of the shell; a second one outside takes the kernel's receive time
(SO_TIMESTAMPNS) of each. Lateness is that time minus the time of the packet's opportunity: packets of 1500 bytes take
one each, in order, so it is the latest one that leaves each packet its own. Beyond capacity (2x) this is exact. Below
(0.95x) a packet that is a whole opportunity late may seem on time, so mpshell's own figures are shown too.

Prints tables in Markdown and writes the figures to build/bench/mpshell.json.
"""

import argparse
import array
import bisect
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from instructions import keep

from railyard.base.paths import program

OPPORTUNITY_BITS = 1504 * 8
PACKET_BYTES = 1500
SETTLE_NS = 200_000_000  # the first packets find empty queues and cold caches
Summary = dict[str, Any]


@dataclass(frozen=True)
class Flow:
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


@dataclass(frozen=True)
class Case:
    name: str
    trace: Path | str
    rate_mbps: float  # sent, on each path
    factor: float
    paths: int = 1
    segment: bool = False
    mpshell: tuple[str, ...] = ()


def constant_trace(folder: Path, mbps: float, seconds: int = 1) -> Path:
    file = folder / f"{mbps:g}mbps.trace"
    if not file.exists():
        per_ms = mbps * 1000 / OPPORTUNITY_BITS
        count = round(per_ms * 1000 * seconds)
        file.write_text("".join(f"{int((n + 1) / per_ms + 0.999999)}\n" for n in range(count)))
    return file


def recorded_trace(folder: Path) -> Path:
    """A recorded downlink if there is one, else a generated one, whose rate changes every 100 ms."""
    for place in os.environ.get("RAILYARD_TRACE_PATH", "").split(":"):
        files = sorted(Path(place).rglob("*.down")) + sorted(Path(place).rglob("*down*.trace")) if place else []
        if files:
            return files[0]
    file = folder / "made.trace"
    lines, ms, credit = [], 0, 0.0
    while ms < 30_000:
        mbps = 5 + 40 * ((ms // 100 * 7919) % 100) / 100
        ms += 1
        credit += mbps * 1000 / OPPORTUNITY_BITS
        lines += [ms] * int(credit)
        credit %= 1
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


def mean_mbps(trace: Path) -> float:
    times = [int(line) for line in trace.read_text().split()]
    return len(times) * OPPORTUNITY_BITS / times[-1] / 1000


class Opportunities:
    """The opportunities of a trace, or of a rate such as 1000mbps, in ns since t0."""

    def __init__(self, trace: Path | str) -> None:
        self.rate = float(trace.removesuffix("mbps")) * 1e6 if isinstance(trace, str) else 0
        self.at = [] if isinstance(trace, str) else [int(line) for line in trace.read_text().split()]

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


def start(command: list[str], **more: Any) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **more)
    if process.stdout is None:
        raise RuntimeError("no pipe")
    return process, json.loads(process.stdout.readline())


def stop(process: subprocess.Popen[str]) -> dict[str, Any]:
    process.terminate()
    out, _ = process.communicate(timeout=20)
    loaded: dict[str, Any] = json.loads(out)
    return loaded


def lateness(received: list[int], opportunities: Opportunities) -> list[int]:
    """The lateness of each packet, ns. Each takes its own opportunity, in order: the latest ones for which no packet
    left early."""
    late, limit = [], sys.maxsize
    for ns in reversed(received):
        limit = min(limit - 1, opportunities.until(ns) - 1)
        late.append(ns - opportunities.time(limit))
    return late


def figures(case: Case, records: Path, sink: dict[str, Any], summary: Summary, path: int) -> Flow:
    raw = array.array("Q")
    raw.frombytes(records.read_bytes())
    t0 = summary["t0_monotonic_us"] * 1000 + sink["realtime_minus_monotonic_ns"]
    times = [ns - t0 for ns in raw[2::3]]
    steady = [ns for ns in times if ns >= times[0] + SETTLE_NS]
    opportunities = Opportunities(case.trace)
    late = sorted(lateness(steady, opportunities))
    span = opportunities.until(steady[-1]) - opportunities.until(steady[0])
    up = summary["paths"][path]["up"]
    packets = sum(p[d]["departed_packets"] for p in summary["paths"] for d in ("up", "down"))
    lost = sink["overflowed"] + sum(summary["paths"][path]["device_drops"].values()) + up["write_errors"]
    return Flow(
        delivered=len(times),
        mbps=len(steady) * OPPORTUNITY_BITS / (steady[-1] - steady[0]) * 1000,
        late_p50_ms=late[len(late) // 2] / 1e6,
        late_p99_ms=late[int(len(late) * 0.99)] / 1e6,
        late_max_ms=late[-1] / 1e6,
        own_p99_ms=up["lateness_us"]["p99"] / 1e3,
        own_max_ms=up["lateness_us"]["max"] / 1e3,
        opportunities_used=len(steady) / span if span else 0,
        cpu_s_per_million=summary["cpu_s"] / packets * 1e6,
        lost_by_devices=lost,
    )


def run_case(case: Case, folder: Path, seconds: float) -> list[Flow]:
    """Floods the uplink of every path at the case's rate."""
    extra = ["--segment"] if case.segment else []
    sinks, senders, options = [], [], []
    for k in range(case.paths):
        out = folder / f"sink-{k}.bin"
        command = [str(program("udp-flow")), "sink", "--bind", "0.0.0.0:0", "--duration", "60", "--out", str(out)]
        process, ready = start([*command, *extra])
        sinks.append((process, out))
        rate = f"--rate {case.rate_mbps * 1e6:.0f} --duration {seconds} --size {PACKET_BYTES} {' '.join(extra)}"
        where = f"--to $MPSHELL_GATEWAY:{ready['port']} --bind $MPSHELL_PATH_{k}_ADDR:0"
        senders.append(f"{program('udp-flow')} send {where} {rate} >/dev/null &")
        options += ["--path", f"p{k}:up={case.trace},down={case.trace},delay=0,queue=droptail:packets=1000"]
    summary_file = folder / "summary.json"
    shell = [str(program("mpshell")), *options, *case.mpshell, "--summary", str(summary_file), "--"]
    subprocess.run([*shell, "sh", "-c", " ".join([*senders, "wait"])], check=True, timeout=60 + seconds)
    ends = [(stop(process), out) for process, out in sinks]
    summary = json.loads(summary_file.read_text())
    return [figures(case, out, end, summary, k) for k, (end, out) in enumerate(ends)]


def best(case: Case, folder: Path, seconds: float, tries: int) -> list[Flow]:
    """The try with the lowest p99, which is least affected by other load."""
    runs = [run_case(case, folder, seconds) for _ in range(tries)]
    return min(runs, key=lambda flows: max(flow.late_p99_ms for flow in flows))


@dataclass(frozen=True)
class RoundTrip:
    name: str
    rtt_median_ms: float
    rtt_p99_ms: float
    added_median_ms: float  # beyond the trace's own delay
    added_p99_ms: float


def ideal_round_trip(sent: int, there: Opportunities) -> int:
    """The earliest answer: each way the packet takes the first opportunity after its millisecond."""
    out = there.time(there.until(sent))
    return there.time(there.until(out)) - sent


def round_trips(name: str, trace: Path | str | None, folder: Path, count: int, more: tuple[str, ...] = ()) -> RoundTrip:
    """Pings over an idle link without delay, or over loopback without a trace."""
    echo, ready = start([str(program("udp-flow")), "echo", "--bind", "0.0.0.0:0", "--duration", "60"])
    ping = [str(program("udp-flow")), "ping", "--count", str(count), "--interval", "2", "--to"]
    if trace is None:
        command = [*ping, f"127.0.0.1:{ready['port']}"]
    else:
        summary_file = folder / "summary.json"
        command = [str(program("mpshell")), "--path", f"p:up={trace},down={trace},delay=0", *more]
        command += ["--summary", str(summary_file), "--", "sh", "-c"]
        command += [f"exec {' '.join(ping)} $MPSHELL_GATEWAY:{ready['port']}"]
    out = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    echo.terminate()
    echo.communicate()
    pings = [tuple(map(int, line.split())) for line in out.splitlines()]
    rtts = sorted(rtt / 1e6 for _, rtt in pings)
    added = rtts
    if trace is not None:
        t0 = json.loads(summary_file.read_text())["t0_monotonic_us"] * 1000
        opportunities = Opportunities(trace)
        added = sorted((rtt - ideal_round_trip(sent - t0, opportunities)) / 1e6 for sent, rtt in pings)
    at_99 = int(len(rtts) * 0.99)
    return RoundTrip(name, statistics.median(rtts), rtts[at_99], statistics.median(added), added[at_99])


@dataclass(frozen=True)
class Awake:
    """Lateness as mpshell counts it, without and with --keep-awake, in a pair of runs."""

    without_p50_us: float
    without_p99_us: float
    with_p50_us: float
    with_p99_us: float
    spinner_cpu_s: float


def awake_pair(folder: Path, seconds: float) -> Awake:
    """The same sparse flow twice, 12 Mbps at 0.95x: its timers sleep a millisecond each."""
    trace, summary_file = constant_trace(folder, 12), folder / "summary.json"
    summaries: dict[str, Summary] = {}
    for when in ("off", "on"):
        case = Case(when, trace, 11.4, 0.95, mpshell=("--keep-awake", when))
        run_case(case, folder, seconds)
        summaries[when] = json.loads(summary_file.read_text())
    late = {when: summary["paths"][0]["up"]["lateness_us"] for when, summary in summaries.items()}
    without, awake = late["off"], late["on"]
    spinner_cpu_s = float(summaries["on"]["keep_awake"]["spinner_cpu_s"])
    return Awake(without["p50"], without["p99"], awake["p50"], awake["p99"], spinner_cpu_s)


def cases(folder: Path) -> list[Case]:
    all_cases = []
    for mbps in (12, 120, 600, 1000):
        trace = constant_trace(folder, mbps)
        all_cases += [Case(f"{mbps} Mbps, {factor:g}x", trace, mbps * factor, factor) for factor in (0.95, 2)]
    recorded = recorded_trace(folder)
    mean = mean_mbps(recorded)
    all_cases += [Case(f"{recorded.stem} ({mean:.0f} Mbps), {f:g}x", recorded, mean * f, f) for f in (0.95, 2)]
    all_cases.append(Case("two paths, 600 Mbps, 0.95x", constant_trace(folder, 600), 570, 0.95, paths=2))
    all_cases.append(Case("600 Mbps, 0.95x, UDP_SEGMENT", constant_trace(folder, 600), 570, 0.95, segment=True))
    all_cases.append(Case("1000 Mbps, 0.95x, UDP_SEGMENT", constant_trace(folder, 1000), 950, 0.95, segment=True))
    all_cases += [Case(f"{m} Mbps evenly, 0.95x", f"{m}mbps", m * 0.95, 0.95) for m in (12, 120, 600, 1000)]
    fast = constant_trace(folder, 12000)
    all_cases.append(Case("maximum, one path", fast, 6000, 0.5))
    all_cases.append(Case("maximum, one path, UDP_SEGMENT", fast, 8000, 0.5, segment=True))
    return all_cases


def print_flows(name: str, flows: list[Flow]) -> None:
    for k, flow in enumerate(flows):
        label = name if len(flows) == 1 else f"{name}, path {k}"
        times = f"{flow.late_p50_ms:.3f} | {flow.late_p99_ms:.3f} | {flow.late_max_ms:.2f}"
        own = f"{flow.own_p99_ms:.3f} | {flow.own_max_ms:.2f}"
        rest = f"{100 * flow.opportunities_used:.1f} % | {flow.cpu_s_per_million:.2f} | {flow.lost_by_devices}"
        print(f"| {label} | {flow.mbps:.0f} | {times} | {own} | {rest} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=3, help="length of a flow")
    parser.add_argument("--tries", type=int, default=3, help="tries of each case; the best is kept")
    parser.add_argument("--only", default="", help="only the cases whose name has this")
    parser.add_argument("--mpshell", default="", help="more options for mpshell, separated by spaces")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench/mpshell: run it as root; mpshell makes network namespaces.")
    more = tuple(arguments.mpshell.split())
    results: dict[str, Any] = {"flows": {}, "round_trips": [], "keep_awake": [], "load": [os.getloadavg()[0]]}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print("| flow | Mbps out | late p50 ms | p99 | max | own p99 | own max | used | CPU s/M packets | lost |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
        for case in cases(folder):
            if arguments.only in case.name:
                asked = Case(**{**vars(case), "mpshell": more})
                flows = best(asked, folder, arguments.seconds, arguments.tries)
                print_flows(case.name, flows)
                results["flows"][case.name] = [asdict(flow) for flow in flows]
        print("\n| idle round trip | median ms | p99 | beyond the trace: median | p99 |")
        print("| --- | ---: | ---: | ---: | ---: |")
        links = [("loopback", None), ("1000 Mbps, no delay", constant_trace(folder, 1000))]
        for label, trace in [*links, ("1000 Mbps evenly, no delay", "1000mbps")]:
            if arguments.only in label:
                trip = round_trips(label, trace, folder, 500, more)
                added = "" if trace is None else f"{trip.added_median_ms:.3f}"
                p99 = "" if trace is None else f"{trip.added_p99_ms:.3f}"
                print(f"| {label} | {trip.rtt_median_ms:.3f} | {trip.rtt_p99_ms:.3f} | {added} | {p99} |", flush=True)
                results["round_trips"].append(asdict(trip))
        if arguments.only in "keep-awake":
            print("\n| lateness at 12 Mbps, us | off: p50 | p99 | on: p50 | p99 | spinners, CPU s |")
            print("| --- | ---: | ---: | ---: | ---: | ---: |")
            for number in range(1, arguments.tries + 1):
                pair = awake_pair(folder, arguments.seconds)
                figures = " | ".join(f"{value:.0f}" for value in list(asdict(pair).values())[:4])
                print(f"| keep-awake, pair {number} | {figures} | {pair.spinner_cpu_s:.2f} |", flush=True)
                results["keep_awake"].append(asdict(pair))
    results["load"].append(os.getloadavg()[0])
    before, after = results["load"]
    print(f"\nLoad of {os.cpu_count()} cores (one minute): {before:.1f} before, {after:.1f} after")
    print(f"\nFigures: {keep('mpshell', results)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
