"""Restores packet-level traces from bins and compares them with the originals: docs/results/restoration.md. With
`tcp_starts`, counts instead the silences that a download by the kernel's TCP makes on links without silences."""

import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import yaml
from pydantic import Field

from railyard.base.errors import UserError
from railyard.base.files import writing
from railyard.base.lists import grouped
from railyard.experiment.model import Strict
from railyard.figures import rows
from railyard.figures.figure import Quantile
from railyard.results.linklog.read import read_link_log
from railyard.results.records import Run, load_campaign
from railyard.run.children import ends_with_us
from railyard.run.folders import written
from railyard.studies.study import Data, markdown
from railyard.studies.validation.downloads import live_archive
from railyard.traces.convert.archive import streams
from railyard.traces.convert.capacity import from_bins, opportunities
from railyard.traces.convert.recipe import TraceRecipe
from railyard.traces.convert.run import convert_trace
from railyard.traces.library import search_path
from railyard.traces.stats import GAP_MS, trace_stats
from railyard.traces.trace import OPPORTUNITY_BYTES, Trace, format_trace, read_trace

SCHEMES = ("sp", "vanilla-mp")
LINK = {"base_rtt_ms": 60, "queue": "droptail:packets=200"}
QUANTILES = {"RCT p50": 0.5, "RCT p90": 0.9, "RCT p99": 0.99}
FEWEST_OPPORTUNITIES = 10
"""In each second, so that only TCP can cause silences on the link."""
QUEUES = ("droptail:packets=200", "droptail:packets=50")
DATA_BYTES = 500
"""The least size of a packet with a segment of a download, on the link."""
STATISTICS = ("silences a minute", "empty 100 ms bins, %", *QUANTILES)


@dataclass(frozen=True)
class Recording:
    """A packet-level recording. Recordings of one session are never each other's donors."""

    name: str
    session: str
    technology: str
    file: str
    address: str = ""
    """The phone's address; empty for a trace of the collection."""
    duration_s: float | None = None
    held_out: bool = True


M, U = "192.168.43.197", "192.168.43.14"
RECORDINGS = (
    Recording("hsr-329-M", "329", "LTE", "client.1529470329.olia.laptop#3.M.F100.wlan3.M3.pcap.csv", M),
    Recording("hsr-787-M", "787", "LTE", "client.1529470787.lia.laptop#3.M.F100.wlan3.M3.pcap.csv", M),
    # Too short to be held out: one lasts until the subflow was lost, the other 41 s.
    Recording("hsr-329-U", "329", "LTE", "client.1529470329.olia.laptop#3.M.F100.wlan16.U4.pcap.csv", U, 59, False),
    Recording("hsr-664-U", "664", "LTE", "client.1529470664.olia.laptop#3.M.F100.wlan16.U4.pcap.csv", U, 41, False),
    Recording("subway-4g-a", "subway-4g", "LTE", "subway_nyc_4g_a.down"),
    Recording("subway-4g-b", "subway-4g", "LTE", "subway_nyc_4g_b.down"),
    Recording("subway-3g-a", "subway-3g-a", "HSPA+", "subway_nyc_3g_a.down"),
    Recording("subway-3g-b", "subway-3g-b", "HSPA+", "subway_nyc_3g_b.down"),
    Recording("bus", "bus", "LTE", "bus_nyc_3114405.down"),
)


class Settings(Strict):
    live: Path | None = None  # folder, tar or zip archive of superlitong/hsr_mptcp; None: on RAILYARD_TRACE_PATH
    held_out: list[str] | None = Field(default=None, min_length=1)  # None: all that may be
    bins_ms: list[Annotated[int, Field(ge=1)]] = Field(min_length=1)
    seeds: list[int] = Field(min_length=1)  # of restored versions
    starts: int = Field(ge=1)  # of each version, spread over it
    tcp_starts: int | None = Field(default=None, ge=1)
    out: Path | None = None  # folder of traces and runs; None: they are not kept


class Statistics(Data):
    """STATISTICS of one held-out recording under one scheme, by version, and their relative errors."""

    name: str
    bins_ms: int
    scheme: str
    original: list[float]
    even: list[float]
    restored: list[list[float]]  # of each seed

    @property
    def errors(self) -> tuple[list[float], list[float]]:
        """Absolute, even and restored errors. Restored ones are the mean over the seeds."""
        truth = np.array(self.original)
        restored = np.abs(np.array(self.restored) - truth).mean(axis=0)
        return list(np.abs(np.array(self.even) - truth)), list(restored)

    @property
    def nearer(self) -> int:
        return sum(restored < even for even, restored in zip(*self.errors, strict=True))


class TcpDownloads(Data):
    name: str
    queue: str
    recorded: float  # silences a minute
    link: float
    made: list[float]  # in each download


class Measured(Data):
    statistics: list[Statistics]
    tcp: list[TcpDownloads]


def measure(settings: Settings) -> Measured:
    known = [one.name for one in RECORDINGS if one.held_out]
    names = known if settings.held_out is None else settings.held_out
    if unknown := sorted({*names} - {*known}):
        raise UserError(f"no recording that can be held out is called '{unknown[0]}'; there are {', '.join(known)}.")
    live = live_archive(settings.live)
    with ExitStack() as stack:
        out = settings.out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="railyard-")))
        out = out.resolve()
        with writing(out):
            out.mkdir(parents=True, exist_ok=True)
        written.add(out)
        unpack([one.file for one in RECORDINGS if one.address], live, out)
        files = {one.name: original(one, out) for one in RECORDINGS}
        if settings.tcp_starts is not None:
            of_train = [one for one in RECORDINGS if one.address]
            tcp = [of_tcp(one, files, queue, settings.tcp_starts, out) for one in of_train for queue in QUEUES]
            return Measured(statistics=[], tcp=tcp)
        held_out = [one for one in RECORDINGS if one.name in names]
        return Measured(statistics=[row for one in held_out for row in rows_of(one, files, settings, out)], tcp=[])


def rows_of(one: Recording, files: dict[str, Path], settings: Settings, out: Path) -> Iterator[Statistics]:
    made = versions(one, files, settings, out)
    runs = runs_of(one, made, settings.starts, out)

    def statistics_of(name: str, scheme: str) -> list[float]:
        own = [run for run in runs if run.pair == f"{one.name}.{name}" and run.label == scheme]
        return statistics(made[name], own)

    for bin_ms in settings.bins_ms:
        for scheme in SCHEMES:
            yield Statistics(
                name=one.name,
                bins_ms=bin_ms,
                scheme=scheme,
                original=statistics_of("original", scheme),
                even=statistics_of(f"even-{bin_ms}", scheme),
                restored=[statistics_of(f"restored-{bin_ms}-{seed}", scheme) for seed in settings.seeds],
            )


def collected(name: str) -> Path:
    for folder in search_path():
        for file in (folder / name, folder / "recorded" / name):
            if file.is_file():
                return file
    raise UserError(f"there is no {name} on RAILYARD_TRACE_PATH; add the collection of recorded traces to it")


def unpack(names: list[str], live: Path, out: Path) -> None:
    with streams(live, lambda name: Path(name).name in names) as files:
        for name, content in files:
            (out / Path(name).name).write_bytes(content.read())


def original(one: Recording, out: Path) -> Path:
    """The recording as a trace, packet by packet."""
    target = out / f"{one.name}.original"
    source = out / one.file if one.address else collected(one.file)
    options = {"file": str(source), "from": "tshark" if one.address else "mahimahi", "duration_s": one.duration_s}
    recipe = TraceRecipe.model_validate(options | {"address": one.address or None})
    target.write_bytes(convert_trace(source, recipe).data)
    return target


def in_bins(trace: Trace, bin_ms: int, least: int) -> bytes:
    """The trace as converted from a recording in bins, with at least `least` opportunities in each bin."""
    edges = np.arange(trace.period_ms // bin_ms + 1, dtype=np.int64) * bin_ms
    counts = np.diff(np.searchsorted(trace.opportunities_ms[:-1], edges)).clip(min=least)
    return format_trace(opportunities(from_bins(edges.astype(np.float64) * 1000, counts * float(OPPORTUNITY_BYTES))))


def versions(one: Recording, files: dict[str, Path], settings: Settings, out: Path) -> dict[str, Path]:
    """The original, and for each length of bins the even version and the versions restored from it."""
    made = {"original": files[one.name]}
    others = [other for other in RECORDINGS if other.name in files and other.session != one.session]
    donors = [str(files[other.name]) for other in others if other.technology == one.technology]
    for bin_ms in settings.bins_ms:
        made[f"even-{bin_ms}"] = out / f"{one.name}.even-{bin_ms}"
        made[f"even-{bin_ms}"].write_bytes(in_bins(read_trace(made["original"]), bin_ms, 0))
        for seed in settings.seeds:
            asked = {"from": "mahimahi", "bin_ms": bin_ms, "microstructure": {"donors": donors, "seed": seed}}
            source = made[f"even-{bin_ms}"]
            target = made[f"restored-{bin_ms}-{seed}"] = out / f"{one.name}.restored-{bin_ms}-{seed}"
            target.write_bytes(convert_trace(source, TraceRecipe.model_validate({"file": str(source)} | asked)).data)
    return made


def runs_of(one: Recording, made: dict[str, Path], starts: int, out: Path) -> list[Run]:
    """Plays every version beside a path of a constant rate, half of the recording's mean."""
    trace = read_trace(made["original"])
    constant = from_bins(
        np.array([0.0, trace.period_ms * 1e3]), np.array([trace.mean_mbps / 16 * trace.period_ms * 1e3])
    )
    (out / f"{one.name}.constant").write_bytes(format_trace(opportunities(constant)))
    pairs = [pair_of(one, version, file.name, f"{one.name}.constant", LINK) for version, file in made.items()]
    settings = {
        "arena": "sim", "schemes": list(SCHEMES), "seeds": starts, "start_offset_ms": "spread", "time_limit_s": 60,
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
    results = out / f"results-{name}"
    command = [sys.executable, "-m", "railyard", "run", str(file), "--out", str(results), "--qlog", "none"]
    environment = os.environ | {"RAILYARD_TRACE_PATH": str(library.resolve())}
    # In a group of its own, so that Ctrl-C reaches the study alone, which knows whether the folder is kept.
    subprocess.run(ends_with_us(command), check=True, env=environment, stdout=subprocess.DEVNULL, process_group=0)
    return load_campaign(results)[1]


def statistics(file: Path, runs: Sequence[Run]) -> list[float]:
    """The statistics of one version under one scheme."""
    stats = trace_stats(read_trace(file))
    quantiles = [Quantile(rows.rcts, q).point(runs) for q in QUANTILES.values()]
    return [stats.gaps_per_minute, 100 * stats.empty_100ms, *(math.nan if q is None else q.value for q in quantiles)]


def tcp_silences(log: Path) -> float:
    """The number of silences a minute between data packets of a download."""
    packets = read_link_log(log)
    times = packets.departure_ms[packets.departure_bytes >= DATA_BYTES]
    return float((np.diff(times) >= GAP_MS).sum() / ((times[-1] - times[0]) / 60_000))


def of_tcp(one: Recording, files: dict[str, Path], queue: str, starts: int, out: Path) -> TcpDownloads:
    """Plays downloads of nine tenths of the link's capacity in its period, from several places."""
    link = out / f"{one.name}.gapless"
    link.write_bytes(in_bins(read_trace(files[one.name]), 1000, FEWEST_OPPORTUNITIES))  # without silences
    trace = read_trace(link)
    total = int(trace.mean_mbps * 0.9e6 / 8 * trace.period_ms / 1000)
    size = queue.rpartition("=")[2]
    pair = pair_of(one, f"tcp-{size}", link.name, link.name, LINK | {"queue": queue})
    player = {"bitrate_bps": total * 8 // 100, "duration_s": 100, "chunk_bytes": total + 1000}
    settings = {
        "arena": "kernel", "schemes": [{"scheme": "tcp", "path": "wifi"}], "seeds": starts,
        "start_offset_ms": "spread", "time_limit_s": 600, "link_logs": True, "player": player,
    }  # fmt: skip
    name = f"tcp-{one.name}-{size}"
    runs = campaign(name, [pair], settings, out)
    logs = [out / f"results-{name}" / "runs" / run.run_id / "links" / "wifi.down.log" for run in runs]
    return TcpDownloads(
        name=one.name,
        queue=size,
        recorded=trace_stats(read_trace(files[one.name])).gaps_per_minute,
        link=trace_stats(trace).gaps_per_minute,
        made=[tcp_silences(log) for log in logs],
    )


# --- what is printed --------------------------------------------------------------------------------------------------


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    if measured.tcp:
        heads = ["recording", "queue, packets", "recorded, silences a minute", "link", "made by TCP (least to most)"]
        yield "tcp", markdown([*heads, "share"], [_tcp_cells(row) for row in measured.tcp])
        return
    heads = ["held out", "bins, ms", "scheme", "version", *STATISTICS, "nearer"]
    yield "held-out", markdown(heads, [cells for row in measured.statistics for cells in _cells(row)], left=4)
    heads = ["bins, ms", "scheme", "version", *STATISTICS, "nearer", "verdict"]
    kinds = grouped(((row.bins_ms, row.scheme), row) for row in measured.statistics)
    yield "errors", markdown(heads, [cells for alike in kinds.values() for cells in _mean_cells(alike)], left=3)
    heads = ["held out", "bins, ms", *(f"{name}: original, even, restored" for name in STATISTICS[:2])]
    nearer = [f"nearer, `{scheme}`" for scheme in SCHEMES]
    versions = grouped(((row.name, row.bins_ms), row) for row in measured.statistics)
    yield "silences", markdown([*heads, *nearer], map(_silence_cells, versions.values()), left=6)


def _cells(row: Statistics) -> Iterator[list[str]]:
    mean = list(np.array(row.restored).mean(axis=0))
    versions = {"original": row.original, "even": row.even, f"restored, mean of {len(row.restored)}": mean}
    for name, values in versions.items():
        last = f"{row.nearer} of {len(STATISTICS)}" if name.startswith("restored") else ""
        yield [row.name, str(row.bins_ms), row.scheme, name, *(f"{value:.2f}" for value in values), last]


def _silence_cells(alike: Sequence[Statistics]) -> list[str]:
    """What a recording and its versions have of the first two statistics, which are the same under all schemes."""
    row = alike[0]
    of_versions = zip(row.original, row.even, np.array(row.restored).mean(axis=0), strict=True)
    silences, empty, *_ = (", ".join(f"{value:.1f}" for value in values) for values in of_versions)
    nearer = (f"{one.nearer} of {len(STATISTICS)}" for one in alike)
    return [f"`{row.name}`", str(row.bins_ms), silences, empty, *nearer]


def _mean_cells(alike: Sequence[Statistics]) -> Iterator[list[str]]:
    """The relative error of each statistic, mean over the held-out recordings."""
    relative = [np.array(row.errors) / np.array(row.original) for row in alike]
    even, restored = np.array(relative).mean(axis=0)
    nearer = int((restored < even).sum())
    verdict = "holds" if nearer >= len(STATISTICS) - 1 else "does not hold"
    first = [str(alike[0].bins_ms), alike[0].scheme]
    yield [*first, "even", *(f"{100 * error:.0f} %" for error in even), "", ""]
    last = [f"{nearer} of {len(STATISTICS)}", verdict]
    yield [*first, "restored", *(f"{100 * error:.0f} %" for error in restored), *last]


def _tcp_cells(row: TcpDownloads) -> list[str]:
    mean = sum(row.made) / len(row.made)
    made = f"{mean:.1f} ({min(row.made):.1f} to {max(row.made):.1f})"
    share = f"{100 * mean / row.recorded:.0f} %"
    return [row.name, row.queue, f"{row.recorded:.1f}", f"{row.link:.1f}", made, share]
