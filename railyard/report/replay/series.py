"""The logs of a run on one clock and in bins: links, packets, windows, copies, player.

The clock is that of the links: seconds since their time 0. A run of any length fits into MAX_BINS bins.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from railyard.base.jsonl import Event, read_json, read_jsonl
from railyard.experiment.model import LinkEvent
from railyard.results.linklog.read import LinkLog, link_log_of
from railyard.results.records import Run, load_run
from railyard.results.serverlog import Points, ServerPath, server_paths
from railyard.results.shapes import as_written
from railyard.run.linkevents import commands
from railyard.traces.trace import FloatArray, IntArray

MAX_BINS = 800
BIN_STEPS_MS = (20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
PADDING_S = 0.25


@dataclass
class Bins:
    """Equal bins from time 0 on."""

    width_s: float
    count: int

    @classmethod
    def over(cls, duration_s: float) -> "Bins":
        least_ms = duration_s * 1000 / MAX_BINS
        width_ms = next((ms for ms in BIN_STEPS_MS if least_ms <= ms), math.ceil(least_ms))
        return cls(width_ms / 1000, max(1, int(np.ceil(duration_s * 1000 / width_ms))))

    @property
    def end_s(self) -> float:
        return round(self.count * self.width_s, 3)

    @property
    def starts_s(self) -> list[float]:
        return [round(number * self.width_s, 3) for number in range(self.count)]

    def sums(self, times_s: FloatArray, weights: FloatArray | IntArray | None = None) -> FloatArray:
        """The sum of weights, or the number of times, in each bin. Times outside of the bins are left out."""
        edges = np.arange(self.count + 1) * self.width_s
        return np.histogram(times_s, bins=edges, weights=weights)[0].astype(np.float64)

    def last(self, times_s: list[float], values: list[float]) -> list[float | None]:
        """The last value at the end of each bin. None before the first one."""
        places = np.searchsorted(np.array(times_s), (np.arange(self.count) + 1) * self.width_s, side="right")
        return [None if place == 0 else values[place - 1] for place in places]


@dataclass
class PathSeries:
    """One path with a value for each bin. Rates in Mbps, windows in kB, RTT in ms. Empty, or None: unknown."""

    name: str
    capacity: list[float] = field(default_factory=list)
    up_capacity: list[float] = field(default_factory=list)
    delivered: list[float] = field(default_factory=list)
    drops: list[float] = field(default_factory=list)
    sent: list[float] = field(default_factory=list)
    lost: list[float] = field(default_factory=list)
    copied_kb: list[float] = field(default_factory=list)  # re-injected on this path, so far
    window_kb: list[float | None] = field(default_factory=list)
    in_flight_kb: list[float | None] = field(default_factory=list)
    rtt_ms: list[float | None] = field(default_factory=list)


@dataclass
class Moment:
    """An event, in a few words."""

    t_s: float
    what: str


@dataclass
class Replay:
    run: Run
    bins: Bins
    paths: list[PathSeries]
    from_qlog: bool  # packets and windows are from the server's qlog; else packets count when they enter the link
    buffer: list[tuple[float, float]]
    stalls: list[tuple[float, float]]
    chunks: list[tuple[int, float, float | None]]  # number, asked at, complete at
    moments: list[Moment]
    end_s: float


def _mbps(bins: Bins, times_ms: FloatArray, sizes: IntArray) -> list[float]:
    return [round(float(value), 3) for value in bins.sums(times_ms / 1000, sizes) * 8 / 1e6 / bins.width_s]


def _counts(bins: Bins, times_s: FloatArray, weights: IntArray | None = None) -> list[float]:
    return [float(value) for value in bins.sums(times_s, weights)]


def _link_events(record: dict[str, Any]) -> list[tuple[float, str]]:
    """The changes of links, in s since t0: at their set times in virtual time, else when they took effect."""
    if record.get("link_events"):
        done = record["link_events"]
        return [(float(event["done_s"]), str(event["command"])) for event in done if event["done_s"] is not None]
    asked = [LinkEvent.model_validate(event) for event in record["config"].get("link_events") or []]
    return [(event.t_s, command) for event in asked for command in commands(event)]


def _in_service(times_ms: FloatArray, link: str, events: list[tuple[float, str]]) -> npt.NDArray[np.bool_]:
    """For each time, whether the link was not down. A link is PATH:up or PATH:down."""
    kept = np.ones(len(times_ms), dtype=np.bool_)
    for t_s, command in events:
        word, target, *values = command.split()
        word = values[0] if word == "interface" else word
        if word in ("up", "down") and target in (link, link.partition(":")[0]):
            kept[times_ms >= t_s * 1000] = word == "up"
    return kept


def _capacity(bins: Bins, log: LinkLog, link: str, events: list[tuple[float, str]]) -> list[float]:
    kept = _in_service(log.opportunity_ms, link, events)
    return _mbps(bins, log.opportunity_ms[kept], log.opportunity_bytes[kept])


def _path(
    folder: Path, name: str, bins: Bins, server: ServerPath | None, events: list[tuple[float, str]]
) -> PathSeries:
    series = PathSeries(name)
    down, up = link_log_of(folder, f"{name}.down"), link_log_of(folder, f"{name}.up")
    if down is not None:
        series.capacity = _capacity(bins, down, f"{name}:down", events)
        series.delivered = _mbps(bins, down.departure_ms, down.departure_bytes)
        series.drops = _counts(bins, down.drop_ms / 1000, down.drop_packets)
    if up is not None:
        series.up_capacity = _capacity(bins, up, f"{name}:up", events)
    if server is not None:
        series.sent = _counts(bins, np.array(server.sent_s))
        series.lost = _counts(bins, np.array(server.lost_s))
        copies = np.array(server.copies).reshape(-1, 2)
        series.copied_kb = [round(float(v) / 1000, 2) for v in np.cumsum(bins.sums(copies[:, 0], copies[:, 1]))]
        series.window_kb = _held(bins, server.window, scale=1000)
        series.in_flight_kb = _held(bins, server.in_flight, scale=1000)
        series.rtt_ms = _held(bins, server.rtt)
    elif down is not None:
        series.sent = _counts(bins, down.arrival_ms / 1000)
        series.lost = series.drops
    return series


def _held(bins: Bins, points: Points, scale: float = 1) -> list[float | None]:
    if not points:
        return []
    return bins.last([t for t, _ in points], [round(value / scale, 2) for _, value in points])


MOMENTS: dict[str, Callable[[Event], str]] = {
    "handshake_done": lambda event: "handshake done",
    "first_frame": lambda event: f"first frame, after {event['latency_s']:.3f} s",
    "play": lambda event: "plays",
    "stall_start": lambda event: "stalls",
    "stall_end": lambda event: f"plays again, after {event['duration_s']:.2f} s",
    "migrate": lambda event: f"migrates from {event.get('from')} to {event.get('to')}",
    "path": lambda event: f"path {event.get('name')}: {event.get('state')}",
    "error": lambda event: f"error: {event.get('message')}",
    "end": lambda event: "ends",
}


def _moments(player: list[Event], start_s: float, events: list[tuple[float, str]]) -> list[Moment]:
    moments = [Moment(round(t_s, 3), f"link event: {command}") for t_s, command in events]
    moments += [
        Moment(round(start_s + event["t"], 3), MOMENTS[event["event"]](event))
        for event in player
        if event.get("event") in MOMENTS and "t" in event
    ]
    return sorted(moments, key=lambda moment: moment.t_s)


def read_replay(folder: Path) -> Replay:
    """Everything about a run. Raises UserError if it is incomplete, or its files are damaged."""
    run = load_run(folder)
    with as_written(folder):
        emulator = read_json(folder / "mpshell.json")
        player = read_jsonl(folder / "player.jsonl")
        start_s = run.player_start_s or 0.0
        end_s = start_s + max([float(event["t"]) for event in player if "t" in event], default=0.0)
        bins = Bins.over(end_s + PADDING_S)
        servers = server_paths(folder) if any(folder.glob("qlog/*_server.sqlog")) else {}
        names = [path["name"] for path in emulator["paths"] if path.get("player", 1) == 1]
        events = _link_events(run.record)
        paths = [_path(folder, name, bins, servers.get(name), events) for name in names]
        moments = _moments(player, start_s, events)
    return Replay(
        run=run,
        bins=bins,
        paths=paths,
        from_qlog=bool(servers),
        buffer=[(round(start_s + t, 3), round(level, 3)) for t, level in run.buffer_s],
        stalls=[(start_s + begin, start_s + end) for begin, end in run.stalls],
        chunks=[
            (c.index, start_s + c.request_s, start_s + c.request_s + c.rct_s if c.completed else None)
            for c in run.chunks
        ],
        moments=moments,
        end_s=end_s,
    )
