"""Finds places in a trace by a rule in the experiment file: outages of a given length."""

from dataclasses import dataclass

import numpy as np
from pydantic import Field

from railyard.experiment.model import Strict
from railyard.traces.index import Pair
from railyard.traces.trace import FloatArray, read_trace

BIN_MS = 100


class PlaceRule(Strict):
    """The downlink of `path` stays below `below_mbps` for `shortest_ms` to `longest_ms`, while the other paths keep a
    mean of at least `others_mbps`, after `lead_ms` in which it offered at least `before_mbps` on average. The run
    starts `lead_ms` before. Capacity is counted in bins of 100 ms."""

    path: str
    below_mbps: float = Field(gt=0)
    shortest_ms: int = Field(ge=BIN_MS)
    longest_ms: int = Field(ge=BIN_MS)
    lead_ms: int = Field(ge=BIN_MS)
    before_mbps: float = Field(ge=0)
    others_mbps: float = Field(default=0, ge=0)
    room_ms: int = Field(ge=0)
    """The least part of the trace from the beginning of the outage on."""
    most: int = Field(default=1, ge=1)

    def words(self) -> str:
        return (
            f"downlink of {self.path} below {self.below_mbps:g} Mbps for {self.shortest_ms} to {self.longest_ms} ms, "
            f"after {self.lead_ms / 1000:g} s at {self.before_mbps:g} Mbps or more on average, the other path at "
            f"{self.others_mbps:g} Mbps or more meanwhile (bins of {BIN_MS} ms); the first such places of each trace"
        )


@dataclass(frozen=True)
class Place:
    key: str
    start_offset_ms: int
    begin_ms: int  # of the outage, since the start of the run
    end_ms: int


def find_places(pair: Pair, rule: PlaceRule, most: int | None = None) -> list[Place]:
    """The first `most` places, in order of time. None: the rule's own number."""
    rates = {path.name: read_trace(path.downlink).rate_mbps(BIN_MS) for path in pair.paths}
    if rule.path not in rates:
        return []
    others = [rate for name, rate in rates.items() if name != rule.path]
    length = min(len(rate) for rate in rates.values())
    places: list[Place] = []
    for begin, end in spans(rates[rule.path][:length] < rule.below_mbps):
        if len(places) == (most or rule.most):
            break
        if _fits(rule, rates[rule.path], others, (begin, end), length):
            start = begin * BIN_MS - rule.lead_ms
            places.append(Place(f"at-{start}", start, rule.lead_ms, (end - begin) * BIN_MS + rule.lead_ms))
    return places


def spans(low: np.ndarray) -> list[tuple[int, int]]:
    """Begin and end of every run of true bins."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], low, [False]]).astype(np.int8)))
    return [(int(begin), int(end)) for begin, end in edges.reshape(-1, 2)]


def _fits(rule: PlaceRule, rate: FloatArray, others: list[FloatArray], span: tuple[int, int], length: int) -> bool:
    begin, end = span
    lead = rule.lead_ms // BIN_MS
    if not rule.shortest_ms <= (end - begin) * BIN_MS <= rule.longest_ms:
        return False
    if begin < lead or (length - begin) * BIN_MS < rule.room_ms:
        return False
    if float(rate[begin - lead : begin].mean()) < rule.before_mbps:
        return False
    return all(float(other[begin:end].mean()) >= rule.others_mbps for other in others)
