"""The bytes that TCP flows beside the video carried over time, from `flows.jsonl`, which mpshell writes."""

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from railyard.base.jsonl import read_jsonl

FILE = "flows.jsonl"


@dataclass(frozen=True)
class Transfer:
    """One connection from its beginning to its end."""

    began_s: float
    ended_s: float
    received_bytes: int
    failed: str | None = None

    @property
    def took_s(self) -> float:
        return self.ended_s - self.began_s


@dataclass(frozen=True)
class Connection:
    """A connection and its successors: one at a time."""

    t_s: list[float] = field(default_factory=list)
    received_bytes: list[int] = field(default_factory=list)  # up to each time, by all of them
    srtt_ms: list[float | None] = field(default_factory=list)  # as the sender's kernel estimates it
    transfers: list[Transfer] = field(default_factory=list)

    def bytes_at(self, t_s: float) -> float:
        """Bytes received by then, interpolated between two samples."""
        return float(np.interp(t_s, [0.0, *self.t_s], [0.0, *self.received_bytes]))

    def goodput_bps(self, from_s: float, to_s: float) -> float:
        return 8 * (self.bytes_at(to_s) - self.bytes_at(from_s)) / (to_s - from_s)


def read_flows(run: Path) -> dict[str, list[Connection]]:
    """The connections of each flow, by its name. Empty if the run has no flows. Times are in s since t0 of the
    links."""
    connections: dict[str, dict[int, Connection]] = defaultdict(lambda: defaultdict(Connection))
    for event in read_jsonl(run / FILE):
        connection = connections[event["flow"]][event["connection"]]
        if event["event"] in ("flow_began", "flow_sample"):
            so_far = connection.received_bytes[-1] if connection.received_bytes else 0
            connection.t_s.append(event["t"])
            connection.received_bytes.append(event.get("received_bytes", so_far))
            connection.srtt_ms.append(event.get("srtt_ms"))
        elif event["event"] in ("flow_ended", "flow_failed"):
            connection.transfers.append(Transfer(event["began_s"], event["t"], event["bytes"], event.get("why")))
    return {name: [own[number] for number in sorted(own)] for name, own in connections.items()}
