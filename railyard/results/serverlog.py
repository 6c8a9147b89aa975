"""What the server's qlogs say of each path of a run over time. Times are in s since t0 of the links."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from railyard.base.jsonl import read_json
from railyard.results.anyqlog import check_sizes
from railyard.results.qlogdiff import InFlight, server_qlogs, timed_events

Points = list[tuple[float, float]]


@dataclass
class ServerPath:
    """The events of one path, over all connections in turn."""

    sent_s: list[float] = field(default_factory=list)
    lost_s: list[float] = field(default_factory=list)
    copies: Points = field(default_factory=list)  # bytes re-injected on this path
    window: Points = field(default_factory=list)  # bytes
    in_flight: Points = field(default_factory=list)  # bytes
    rtt: Points = field(default_factory=list)  # smoothed, ms
    counted: InFlight = field(default_factory=InFlight)  # of the present connection

    def add(self, name: str, t_s: float, data: dict[str, Any]) -> None:
        if self.counted.take(name, data):
            self.in_flight.append((t_s, self.counted.bytes))
        if name == "quic:packet_sent":
            self.sent_s.append(t_s)
        elif name == "quic:packet_lost":
            self.lost_s.append(t_s)
        elif name == "xlink:reinjection":
            self.copies.append((t_s, float(data["length"])))
        elif name == "quic:recovery_metrics_updated":
            for key, series in (("congestion_window", self.window), ("smoothed_rtt", self.rtt)):
                if key in data:
                    series.append((t_s, float(data[key])))


def server_paths(run: Path) -> dict[str, ServerPath]:
    """The paths that the server used, by name. Raises UserError without qlogs."""
    emulator = read_json(run / "mpshell.json")
    names = {path.get("inside_addr"): path["name"] for path in emulator["paths"]}
    paths: dict[str, ServerPath] = {}
    logs = server_qlogs(run)
    check_sizes(logs)
    for log in logs:
        by_number: dict[int, ServerPath] = {}
        for t_s, event in timed_events(log, float(emulator.get("t0_monotonic_us", 0))):
            data, name = event["data"], event["name"]
            if name == "multipath:path_new":
                address = str(data["remote"]).rpartition(":")[0]
                path = by_number[data["path"]] = paths.setdefault(names.get(address, address), ServerPath())
                path.counted = InFlight()
            elif data.get("path") in by_number:
                by_number[data["path"]].add(name, t_s, data)
    return paths
