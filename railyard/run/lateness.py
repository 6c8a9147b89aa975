"""Bounds how much lateness can have added to a result.

A chunk ends late because of a chain of events, each of which waits for the one before: a packet leaves a link, an
endpoint handles it and sends another, which leaves a link at least one one-way delay later, and so on. Each event is
late by at most what was recorded at its time. The bound is the largest sum of lateness over any such chain.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

from railyard.base.jsonl import Event
from railyard.stats.statistics import nearest_rank

SLOT_MS = 5.0  # of mpshell's record of lateness
MAX_ADDED = 0.02  # of a figure of a run: more makes the run void


@dataclass(frozen=True)
class Chain:
    """The lateness of links and of endpoints in each slot, µs, and the least delay between a chain's events."""

    links_us: Sequence[float]
    endpoints_us: Sequence[float]
    delay_ms: float  # the shortest one-way delay of the links
    slot_ms: float = SLOT_MS

    def bound_us(self, begin_s: float, end_s: float) -> float:
        """The most that lateness can have added between two times since t0, in µs.

        L(i), E(i): lateness of links and endpoints in slot i; d: the delay in slots. From the last slot to the first,

            A(i) = max(A(i + 1), B(i), L(i) + B(i + L(i)))           the chain waits for a link,
            B(i) = max(B(i + 1), A(i + d), E(i) + A(i + E(i) + d))   the chain waits for an endpoint,

        and the bound is A of the first slot. If the delay is less than a slot, d is one slot, and L and E are
        multiplied by the number of delays in a slot. Example: 15 ms of delay, links 0.1 ms late and endpoints on time:
        0.1 ms for each 15 ms.
        """
        first = max(0, math.floor(1000 * begin_s / self.slot_ms))
        slots = min(max(len(self.links_us), len(self.endpoints_us)), math.ceil(1000 * end_s / self.slot_ms)) - first
        if slots <= 0:
            return 0.0
        spacing = max(1, math.floor(self.delay_ms / self.slot_ms))
        repeats = 1 if self.delay_ms >= self.slot_ms else math.ceil(self.slot_ms / max(1.0, self.delay_ms))
        links = [repeats * value for value in self.links_us[first : first + slots]]
        endpoints = [repeats * value for value in self.endpoints_us[first : first + slots]]
        links += [0.0] * (slots - len(links))
        endpoints += [0.0] * (slots - len(endpoints))
        slot_us = 1000 * self.slot_ms
        before_link = [0.0] * (slots + spacing + 1)  # A
        before_endpoint = [0.0] * (slots + spacing + 1)  # B
        for i in range(slots - 1, -1, -1):
            late = endpoints[i]
            then = min(slots, i + int(late / slot_us) + spacing)
            before_endpoint[i] = max(before_endpoint[i + 1], before_link[i + spacing], late + before_link[then])
            late = links[i]
            then = min(slots, i + int(late / slot_us))
            before_link[i] = max(before_link[i + 1], before_endpoint[i], late + before_endpoint[then])
        return min(before_link[0], 1e6 * (end_s - begin_s))


def on_endpoints(timers_us: Sequence[float]) -> list[float]:
    """The lateness of endpoints that follows from that of timers: the excess over the median, which timers always
    cost."""
    usual = median(timers_us) if timers_us else 0.0
    return [max(0.0, value - usual) for value in timers_us]


@dataclass(frozen=True)
class Lateness:
    """mpshell's record of a run's lateness, µs in each slot: `--lateness` (docs/reference/mpshell.md)."""

    links_us: list[float]
    timers_us: list[float]
    waits_us: list[float]  # time for which player, server and relays could not run
    delay_ms: float

    @classmethod
    def read(cls, file: Path, delay_ms: float) -> "Lateness | None":
        """Reads the record. None: there is no file. `delay_ms`: the shortest one-way delay of the links."""
        if not file.is_file():
            return None
        lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
        rows = [[float(word) for word in line.split()] for line in lines]
        links, timers, waits = ([row[k] for row in rows] for k in range(3))
        return cls(links, timers, waits, delay_ms)

    @cached_property
    def chain(self) -> Chain:
        endpoints = [max(pair) for pair in zip(self.waits_us, on_endpoints(self.timers_us), strict=True)]
        return Chain(self.links_us, endpoints, self.delay_ms)

    def shares(self) -> tuple[float, float, float]:
        """The bound for the complete run as a share of its length, from links alone, timers alone and waiting endpoints
        alone."""
        end_s = len(self.links_us) * SLOT_MS / 1000
        none = [0.0] * len(self.links_us)
        alone = (
            Chain(on_endpoints(self.links_us), none, self.delay_ms),
            Chain(none, on_endpoints(self.timers_us), self.delay_ms),
            Chain(none, self.waits_us, self.delay_ms),
        )
        links, timers, waits = (chain.bound_us(0, end_s) / max(1.0, 1e6 * end_s) for chain in alone)
        return links, timers, waits


@dataclass(frozen=True)
class Reported:
    """A figure that a run reports, and the most that lateness can have added to it."""

    name: str
    value_s: float
    added_s: float

    @property
    def share(self) -> float:
        return self.added_s / self.value_s if self.value_s > 0 else 0.0

    def __str__(self) -> str:
        return (
            f"lateness can have added {self.share * 100:.1f} % to the {self.name} "
            f"({1000 * self.added_s:.1f} ms of {self.value_s:.3f} s)"
        )


@dataclass(frozen=True)
class Added:
    """The bounds of a run."""

    figures: list[Reported]
    chunk_s: dict[int, float] = field(default_factory=dict)  # by index of the chunk

    @property
    def worst(self) -> Reported | None:
        return max(self.figures, key=lambda figure: figure.share, default=None)

    def as_json(self) -> dict[str, Any]:
        figures = {each.name: {"value_s": each.value_s, "added_s": round(each.added_s, 6)} for each in self.figures}
        chunks = {str(index): round(value, 6) for index, value in self.chunk_s.items()}
        return {"share": round(self.worst.share, 5) if self.worst else 0.0, "figures": figures, "chunk_s": chunks}


def _spans(events: Sequence[Event], end_s: float) -> dict[int, tuple[float, float]]:
    """For each requested chunk, the time from its request to its last byte, or to the end of the log."""
    asked = {event["chunk"]: event["t"] for event in events if event.get("event") == "request"}
    done = {event["chunk"]: event["t"] for event in events if event.get("event") == "chunk_done"}
    return {chunk: (begin, done.get(chunk, end_s)) for chunk, begin in sorted(asked.items())}


def added(lateness: Lateness, events: Sequence[Event], start_s: float) -> Added:
    """The most that lateness can have added to the figures of the player's log. `start_s`: the log's time 0, in s since
    t0 of the links. If a play without a first frame ended before an answer could arrive, links did not delay its end:
    nothing is added."""
    chain = lateness.chain
    end_s = max((float(event["t"]) for event in events if "t" in event), default=0.0)
    summary = next((event for event in reversed(events) if event.get("event") == "summary"), {})
    first_frame_s = summary.get("first_frame_s")
    spans = _spans(events, end_s)
    if first_frame_s is None and 1000 * end_s < 2 * lateness.delay_ms:
        return Added([], dict.fromkeys(spans, 0.0))
    late = {chunk: chain.bound_us(start_s + a, start_s + b) / 1e6 for chunk, (a, b) in spans.items()}
    times = {chunk: b - a for chunk, (a, b) in spans.items()}
    figures = []
    if first_frame_s is None:  # such a play reports only its end
        figures.append(Reported("time to its end", end_s, chain.bound_us(start_s, start_s + end_s) / 1e6))
    else:
        bound_s = chain.bound_us(start_s, start_s + first_frame_s) / 1e6
        figures.append(Reported("first frame", first_frame_s, bound_s))
    for name, q in (("median RCT", 0.5), ("largest RCT", 1.0)) if times else ():
        value_s = nearest_rank(list(times.values()), q)
        on_time_s = nearest_rank([max(0.0, times[chunk] - late[chunk]) for chunk in times], q)
        figures.append(Reported(name, value_s, value_s - on_time_s))
    return Added(figures, late)
