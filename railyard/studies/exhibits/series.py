"""Series over time of one run: windows and bytes in flight from the server's qlog, re-injections, capacity from traces.

All times are seconds on the clock of the links, which is the clock of the trace from the run's start offset on.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path

from railyard.base.jsonl import read_json, read_jsonl
from railyard.results.qlogdiff import InFlight, events, reference_us, server_qlogs
from railyard.results.records import Run
from railyard.traces.trace import read_trace


@dataclass
class PathSeries:
    """The window and the bytes in flight of one path at the server: (s, bytes)."""

    name: str
    window: list[tuple[float, float]] = field(default_factory=list)
    in_flight: list[tuple[float, float]] = field(default_factory=list)


@dataclass
class ServerSeries:
    paths: dict[str, PathSeries]
    reinjected: list[tuple[float, float]]
    """(s, bytes re-injected so far)."""


def server_series(run: Run, folder: Path) -> ServerSeries:
    """The series in the server's qlogs of the run, over all connections in turn."""
    links = read_json(folder / "mpshell.json")
    names = {path["inside_addr"]: path["name"] for path in links["paths"]}
    series = {name: PathSeries(name) for name in names.values()}
    copied = 0.0
    reinjected: list[tuple[float, float]] = [(0.0, 0.0)]
    for file in server_qlogs(folder):
        of_path: dict[int, tuple[PathSeries, InFlight]] = {}
        zero_s = (reference_us(file) - links["t0_monotonic_us"]) / 1e6
        for event in events(file):
            t, name, data = zero_s + event["time"] / 1e3, event["name"], event["data"]
            if name == "multipath:path_new":
                address = str(data["remote"]).rpartition(":")[0]
                of_path[data["path"]] = series[names[address]], InFlight()
            elif data.get("path") in of_path:
                path, counted = of_path[data["path"]]
                if counted.take(name, data):
                    path.in_flight.append((t, counted.bytes))
                if name == "quic:recovery_metrics_updated" and "congestion_window" in data:
                    path.window.append((t, float(data["congestion_window"])))
            if name == "xlink:reinjection":
                copied += float(data["length"])
                reinjected.append((t, copied))
    return ServerSeries(series, reinjected)


def buffered_bytes(run: Run, folder: Path) -> list[tuple[float, float]]:
    """The player's buffer every 100 ms: (s, bytes)."""
    start = run.player_start_s or 0.0
    player = read_jsonl(folder / "player.jsonl")
    return [(start + e["t"], float(e["buffered_bytes"])) for e in player if e.get("event") == "buffer"]


def capacity(run: Run, name: str, bin_ms: int, show_s: float) -> list[tuple[float, float]]:
    """(begin of the bin in s, Mbps) of a path's downlink."""
    path = next(path for path in run.config["paths"] if path["name"] == name)
    trace = read_trace(path["down"])
    rate = trace.rate_mbps(bin_ms, duration_ms=int(show_s * 1000), start_offset_ms=int(run.config["start_offset_ms"]))
    return [(index * bin_ms / 1000, float(value)) for index, value in enumerate(rate)]


def thinned(points: list[tuple[float, float]], step_s: float, until_s: float) -> list[tuple[float, float]]:
    """The last point of each `step_s`, up to a time, as a plot cannot show more."""
    kept: dict[int, tuple[float, float]] = {}
    for t, value in points:
        if t <= until_s:
            kept[int(t / step_s)] = (t, value)
    return list(kept.values())


def at(points: list[tuple[float, float]], t: float) -> float | None:
    """The last value at or before a time. None: there is none."""
    place = bisect_right(points, t, key=lambda point: point[0])
    return points[place - 1][1] if place else None


def greatest(points: list[tuple[float, float]], begin: float, end: float) -> float | None:
    return max((value for t, value in points if begin <= t <= end), default=None)
