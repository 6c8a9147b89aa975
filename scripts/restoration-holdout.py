"""Restores packet-level traces from bins and compares them with what they were: docs/results/restoration.md.

    python scripts/restoration-holdout.py --captures FOLDER --out FOLDER [--tcp]

`--captures`: the folder elephant/ of superlitong/hsr_mptcp. The other traces are found on RAILYARD_TRACE_PATH.
`--tcp`: how many silences a download by the kernel's TCP makes on links without silences, instead.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from railyard.base.errors import UserError, reported_by
from railyard.figures import rows
from railyard.figures.figure import Quantile
from railyard.results.linklog import read_link_log
from railyard.results.records import Run, load_campaign
from railyard.traces.convert import TraceRecipe, convert_trace
from railyard.traces.convert.capacity import from_bins, opportunities
from railyard.traces.library import search_path
from railyard.traces.stats import GAP_MS, trace_stats
from railyard.traces.trace import OPPORTUNITY_BYTES, Trace, format_trace, read_trace

BINS_MS = (1000, 500)
SEEDS = (1, 2, 3, 4, 5)
STARTS = 20
SCHEMES = ("sp", "vanilla-mp")
LINK = {"base_rtt_ms": 60, "queue": "droptail:packets=200"}
QUANTILES = {"RCT p50": 0.5, "RCT p90": 0.9, "RCT p99": 0.99}
FEWEST_OPPORTUNITIES = 10
"""A second, of a link on which only TCP can make silences."""
QUEUES = ("droptail:packets=200", "droptail:packets=50")
TCP_STARTS = 3
DATA_BYTES = 500
"""Of a packet on the link; a smaller one has no segment of a download."""
STATISTICS = ("silences a minute", "empty 100 ms bins, %", *QUANTILES)


@dataclass(frozen=True)
class Recording:
    """A packet-level recording. Those of one session are never each other's donors."""

    name: str
    session: str
    technology: str
    file: str
    address: str = ""
    """Of the phone; empty for a trace of the collection."""
    duration_s: float | None = None
    held_out: bool = True


M, U = "192.168.43.197", "192.168.43.14"
RECORDINGS = (
    Recording("hsr-329-M", "329", "LTE", "client.1529470329.olia.laptop#3.M.F100.wlan3.M3.pcap.csv", M),
    Recording("hsr-787-M", "787", "LTE", "client.1529470787.lia.laptop#3.M.F100.wlan3.M3.pcap.csv", M),
    # Too short to be held out: until the subflow was lost, and of 41 s.
    Recording("hsr-329-U", "329", "LTE", "client.1529470329.olia.laptop#3.M.F100.wlan16.U4.pcap.csv", U, 59, False),
    Recording("hsr-664-U", "664", "LTE", "client.1529470664.olia.laptop#3.M.F100.wlan16.U4.pcap.csv", U, 41, False),
    Recording("subway-4g-a", "subway-4g", "LTE", "subway_nyc_4g_a.down"),
    Recording("subway-4g-b", "subway-4g", "LTE", "subway_nyc_4g_b.down"),
    Recording("subway-3g-a", "subway-3g-a", "HSPA+", "subway_nyc_3g_a.down"),
    Recording("subway-3g-b", "subway-3g-b", "HSPA+", "subway_nyc_3g_b.down"),
    Recording("bus", "bus", "LTE", "bus_nyc_3114405.down"),
)


def collected(name: str) -> Path:
    for folder in search_path():
        for file in (folder / name, folder / "recorded" / name):
            if file.is_file():
                return file
    raise UserError(f"there is no {name} on RAILYARD_TRACE_PATH; add the collection of recorded traces to it")


def original(one: Recording, captures: Path, out: Path) -> Path:
    """The recording as a trace, packet by packet."""
    target = out / f"{one.name}.original"
    source = captures / one.file if one.address else collected(one.file)
    options = {"file": str(source), "from": "tshark" if one.address else "mahimahi", "duration_s": one.duration_s}
    recipe = TraceRecipe.model_validate(options | {"address": one.address or None})
    target.write_bytes(convert_trace(source, recipe).data)
    return target


def even(trace: Trace, bin_ms: int) -> bytes:
    """The trace as a recording in bins would be converted."""
    edges = np.arange(trace.period_ms // bin_ms + 1, dtype=np.int64) * bin_ms
    sizes = np.diff(np.searchsorted(trace.opportunities_ms[:-1], edges)).astype(np.float64) * OPPORTUNITY_BYTES
    return format_trace(opportunities(from_bins(edges.astype(np.float64) * 1000, sizes)))


def versions(one: Recording, files: dict[str, Path], out: Path) -> dict[str, Path]:
    """The original, and for each length of bins the even version and those that were restored from it."""
    made = {"original": files[one.name]}
    donors = [str(files[other.name]) for other in RECORDINGS
              if other.session != one.session and other.technology == one.technology]  # fmt: skip
    for bin_ms in BINS_MS:
        made[f"even-{bin_ms}"] = out / f"{one.name}.even-{bin_ms}"
        made[f"even-{bin_ms}"].write_bytes(even(read_trace(made["original"]), bin_ms))
        for seed in SEEDS:
            asked = {"from": "mahimahi", "bin_ms": bin_ms, "microstructure": {"donors": donors, "seed": seed}}
            source = made[f"even-{bin_ms}"]
            target = made[f"restored-{bin_ms}-{seed}"] = out / f"{one.name}.restored-{bin_ms}-{seed}"
            target.write_bytes(convert_trace(source, TraceRecipe.model_validate({"file": str(source)} | asked)).data)
    return made


def runs_of(one: Recording, made: dict[str, Path], out: Path) -> list[Run]:
    """Every version beside a path of a constant rate, half of the recording's mean."""
    trace = read_trace(made["original"])
    constant = from_bins(
        np.array([0.0, trace.period_ms * 1e3]), np.array([trace.mean_mbps / 16 * trace.period_ms * 1e3])
    )
    (out / f"{one.name}.constant").write_bytes(format_trace(opportunities(constant)))
    pairs = [pair_of(one, version, file.name, f"{one.name}.constant", LINK) for version, file in made.items()]
    settings = {
        "arena": "sim", "schemes": list(SCHEMES), "seeds": STARTS, "start_offset_ms": "spread", "time_limit_s": 60,
        "player": {"bitrate_bps": round(trace.mean_mbps * 5) * 100_000, "duration_s": 20, "chunk_bytes": 131_072,
                   "first_frame_bytes": 65_536},
    }  # fmt: skip
    return campaign(f"holdout-{one.name}", pairs, settings, out)


def pair_of(one: Recording, version: str, wifi: str, lte: str, link: dict[str, Any]) -> dict[str, Any]:
    """An entry of an index in a folder beside the traces."""
    return {
        "name": f"{one.name}.{version}", "scenario": "hold-out", "licence": "as the recording", "source": one.file,
        "paths": [{"name": name, "technology": name, "uplink": f"../{file}", "downlink": f"../{file}", **link}
                  for name, file in (("wifi", wifi), ("lte", lte))],
    }  # fmt: skip


def campaign(name: str, pairs: Sequence[dict[str, Any]], settings: dict[str, Any], out: Path) -> list[Run]:
    """Runs an experiment over these pairs."""
    library = out / f"library-{name}"
    library.mkdir(exist_ok=True)
    (library / "index.yaml").write_text(yaml.safe_dump({"schema": 1, "pairs": list(pairs)}))
    file = out / f"{name}.yaml"
    file.write_text(yaml.safe_dump({"name": name, "pairs": [pair["name"] for pair in pairs], **settings}))
    command = ["railyard", "run", str(file), "--out", str(out / f"results-{name}"), "--qlog", "none"]
    subprocess.run(command, check=True, env=environment(library), stdout=subprocess.DEVNULL)
    return load_campaign(out / f"results-{name}")[1]


def environment(library: Path) -> dict[str, str]:
    return {**os.environ, "RAILYARD_TRACE_PATH": str(library.resolve())}


def statistics(file: Path, runs: Sequence[Run]) -> list[float]:
    """The five of one version under one scheme."""
    stats = trace_stats(read_trace(file))
    quantiles = [Quantile(rows.rcts, q).point(runs) for q in QUANTILES.values()]
    return [stats.gaps_per_minute, 100 * stats.empty_100ms, *(math.nan if q is None else q.value for q in quantiles)]


def without_silences(trace: Trace) -> bytes:
    """The rates of the recording's seconds, and never a silence that counts."""
    edges = np.arange(trace.period_ms // 1000 + 1, dtype=np.int64) * 1000
    counts = np.diff(np.searchsorted(trace.opportunities_ms[:-1], edges)).clip(min=FEWEST_OPPORTUNITIES)
    return format_trace(opportunities(from_bins(edges.astype(np.float64) * 1000, counts * float(OPPORTUNITY_BYTES))))


def tcp_silences(log: Path) -> float:
    """How many there are a minute between data packets of a download."""
    packets = read_link_log(log)
    times = packets.departure_ms[packets.departure_bytes >= DATA_BYTES]
    return float((np.diff(times) >= GAP_MS).sum() / ((times[-1] - times[0]) / 60_000))


def print_tcp(files: dict[str, Path], out: Path) -> None:
    """Downloads of nine tenths of what the link can carry in its period, from three places of it."""
    print("| recording | queue, packets | recorded, silences a minute | link | made by TCP (least to most) | share |")
    print("| --- | ---: | ---: | ---: | --- | ---: |")
    for one in RECORDINGS:
        link = out / f"{one.name}.gapless"
        link.write_bytes(without_silences(read_trace(files[one.name])))
        trace, recorded = read_trace(link), trace_stats(read_trace(files[one.name])).gaps_per_minute
        total = int(trace.mean_mbps * 0.9e6 / 8 * trace.period_ms / 1000)
        for queue in QUEUES:
            size = queue.rpartition("=")[2]
            pair = pair_of(one, f"tcp-{size}", link.name, link.name, LINK | {"queue": queue})
            player = {"bitrate_bps": total * 8 // 100, "duration_s": 100, "chunk_bytes": total + 1000}
            settings = {
                "arena": "kernel", "schemes": [{"scheme": "tcp", "path": "wifi"}], "seeds": TCP_STARTS,
                "start_offset_ms": "spread", "time_limit_s": 600, "link_logs": True, "player": player,
            }  # fmt: skip
            runs = campaign(f"tcp-{one.name}-{size}", [pair], settings, out)
            folder = out / f"results-tcp-{one.name}-{size}" / "runs"
            made = [tcp_silences(folder / run.run_id / "links" / "wifi.down.log") for run in runs]
            mean = sum(made) / len(made)
            of_link = trace_stats(trace).gaps_per_minute
            told = f"{mean:.1f} ({min(made):.1f} to {max(made):.1f})"
            print(f"| {one.name} | {size} | {recorded:.1f} | {of_link:.1f} | {told} | {100 * mean / recorded:.0f} % |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--captures", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tcp", action="store_true")
    arguments = parser.parse_args()
    out: Path = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    files = {one.name: original(one, arguments.captures, out) for one in RECORDINGS}
    if arguments.tcp:
        print_tcp(files, out)
        return
    errors: dict[tuple[int, str], list[list[tuple[float, float]]]] = {}
    print("| held out | bins, ms | scheme | version | " + " | ".join(STATISTICS) + " | nearer |")
    print("| --- | ---: | --- | --- |" + " ---: |" * (len(STATISTICS) + 1))
    for one in (one for one in RECORDINGS if one.held_out):
        made = versions(one, files, out)
        runs = runs_of(one, made, out)
        for bin_ms in BINS_MS:
            for scheme in SCHEMES:
                found = {
                    name: statistics(file, [r for r in runs if r.pair == f"{one.name}.{name}" and r.label == scheme])
                    for name, file in made.items()
                }
                print_one(one, bin_ms, scheme, found, errors.setdefault((bin_ms, scheme), []))
    print_all(errors)


Errors = list[list[tuple[float, float]]]


def print_one(one: Recording, bin_ms: int, scheme: str, found: dict[str, list[float]], errors: Errors) -> None:
    """Three rows; the error of what is restored is the mean over the seeds of the absolute error."""
    truth, plain = np.array(found["original"]), np.array(found[f"even-{bin_ms}"])
    seeds = np.array([found[f"restored-{bin_ms}-{seed}"] for seed in SEEDS])
    error_even, error_restored = np.abs(plain - truth), np.abs(seeds - truth).mean(axis=0)
    errors.append(list(zip(error_even / truth, error_restored / truth, strict=True)))
    nearer = int((error_restored < error_even).sum())
    shown = {"original": truth, "even": plain, f"restored, mean of {len(SEEDS)}": seeds.mean(axis=0)}
    for name, values in shown.items():
        last = f"{nearer} of {len(STATISTICS)}" if name.startswith("restored") else ""
        cells = " | ".join(f"{value:.2f}" for value in values)
        print(f"| {one.name} | {bin_ms} | {scheme} | {name} | {cells} | {last} |")


def print_all(errors: dict[tuple[int, str], Errors]) -> None:
    """By length of bins and scheme: the relative error of each statistic, mean over what was held out."""
    print("\n| bins, ms | scheme | version | " + " | ".join(STATISTICS) + " | nearer | verdict |")
    print("| ---: | --- | --- |" + " ---: |" * (len(STATISTICS) + 1) + " --- |")
    for (bin_ms, scheme), of_each in errors.items():
        mean = np.array(of_each).mean(axis=0)
        nearer = int((mean[:, 1] < mean[:, 0]).sum())
        verdict = "holds" if nearer >= len(STATISTICS) - 1 else "does not hold"
        for column, name in enumerate(("even", "restored")):
            cells = " | ".join(f"{100 * value:.0f} %" for value in mean[:, column])
            last = f"{nearer} of {len(STATISTICS)} | {verdict}" if column else " | "
            print(f"| {bin_ms} | {scheme} | {name} | {cells} | {last} |")


if __name__ == "__main__":
    with reported_by("restoration-holdout"):
        main()
