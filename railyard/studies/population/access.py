"""The access network of a viewer who sits still: rate and delay of Wi-Fi and LTE, step by step.

A path has a rate R that differs between viewers and places, and varies by fading. Its bottleneck is shared: others
offer a load a(t), in units of R, that comes in bursts. The bottleneck's queue follows Lindley's recursion

    q(t + dt) = min(B, max(0, q(t) + (a(t) - 1) dt))        with B the queue's length in ms of R

and a viewer's packets find the rate R · max(1 - a(t), FLOOR) and the additional delay q(t) on the way down. So delay
and rate worsen together, and the round-trip time has a tail that no constant delay has.

The parameters and their sources are in `experiments/population.yaml` and docs/reference/population.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from railyard.studies.population.model import Fading, PathAccess, Spells
from railyard.traces.draws import STEPS_PER_S, Draws, ar1, whole_steps
from railyard.traces.parameters import STEP_MS
from railyard.traces.trace import FloatArray

FLOOR = 0.2
"""The least share of the rate for one more flow, as if it took turns with four others. Assumption."""
SILENT_KBPS = 8
"""A rate that counts as silence: one opportunity in 1.5 s."""
STEADY = 0.08
"""A change of the rate by less than this share makes no event."""
STEADY_MS = 2.0
LEAVES_IN_S = 3.0
"""The time in which Wi-Fi that is left behind fades out: a walk of about 4 m. Assumption."""
LEAST_LEFT = 0.01


@dataclass(frozen=True)
class Change:
    """One change of a link: an event of docs/reference/sim.md."""

    at_ms: int
    path: str
    direction: str  # up, down or both
    rate_kbps: int | None = None
    delay_ms: float | None = None
    is_down: bool = False

    def as_event(self) -> dict[str, Any]:
        event: dict[str, Any] = {"t_s": self.at_ms / 1000, "path": self.path, "direction": self.direction}
        if self.rate_kbps is not None:
            event["rate"] = f"{self.rate_kbps}kbps"
        if self.delay_ms is not None:
            event["delay_ms"] = self.delay_ms
        return event | ({"state": "down"} if self.is_down else {})


@dataclass(frozen=True)
class Drawn:
    """The drawn values of one path of one viewer."""

    name: str
    rate_mbps: float
    load: float  # mean of a(t)
    base_rtt_ms: float
    queue_ms: float
    seed: int


@lru_cache(maxsize=8192)
def _process(seed: int, label: str, steps: int, time_constant_s: float) -> FloatArray:
    """A stationary Gaussian process. Cached, because a fit uses the same ones many times."""
    return ar1(Draws(seed, label), steps, time_constant_s)


@lru_cache(maxsize=8192)
def _shape(fading: Fading, dips: Spells, silences: Spells, seed: int, steps: int) -> FloatArray:
    """The rate without load, in units of its median: fading, dips, and silences as 0."""
    shape: FloatArray = np.exp(fading.sigma * _process(seed, "fading", steps, fading.time_constant_s))
    for label, what in (("dips", dips), ("silences", silences)):
        draws = Draws(seed, label)
        at_s = draws.exponential(60 / what.per_minute)
        while at_s * STEPS_PER_S < steps:
            length_s = draws.length(what.length)
            begin = int(at_s * STEPS_PER_S)
            shape[begin : begin + whole_steps(length_s)] *= what.level
            at_s += length_s + draws.exponential(60 / what.per_minute)
    return shape


def offered(law: PathAccess, load: float, seed: int, steps: int) -> FloatArray:
    """a(t), which is lognormal with the load as its mean."""
    sigma = law.load.burst_sigma
    bursts = _process(seed, "load", steps, law.load.time_constant_s)
    loads: FloatArray = load * np.exp(sigma * bursts - sigma * sigma / 2)
    return loads


def queueing_ms(load: FloatArray, queue_ms: float) -> FloatArray:
    """q(t) at the end of each step, by Lindley's recursion from an empty queue."""
    waiting, delays = 0.0, np.empty(len(load))
    for step, grown in enumerate((load - 1.0) * STEP_MS):
        waiting = min(queue_ms, max(0.0, waiting + grown))
        delays[step] = waiting
    return delays


def _departure(steps: int, leaves_s: float | None) -> FloatArray:
    """The remaining share of the rate of a network that is left behind, in each step."""
    left = np.ones(steps)
    if leaves_s is not None:
        to_go = leaves_s - np.arange(steps) / STEPS_PER_S
        left = np.where(to_go < LEAVES_IN_S, LEAST_LEFT ** (1 - np.maximum(to_go, 0.0) / LEAVES_IN_S), left)
    return left


def _differs(one: int, other: int) -> bool:
    return one != other and (min(one, other) <= SILENT_KBPS or abs(one / other - 1) > STEADY)


def _of_direction(path: str, way: str, kbps: FloatArray, delays: Sequence[float] | None) -> list[Change]:
    """The changes of one direction, without those that have no noticeable effect."""
    changes: list[Change] = []
    last_kbps, last_ms = 0, -1.0
    for step, rate in enumerate(np.maximum(kbps, SILENT_KBPS)):
        whole_kbps, delay = int(rate), None if delays is None else round(float(delays[step]), 1)
        moved = delay is not None and abs(delay - last_ms) > STEADY_MS
        if step == 0 or moved or _differs(whole_kbps, last_kbps):
            changes.append(Change(step * STEP_MS, path, way, whole_kbps, delay))
            last_kbps, last_ms = whole_kbps, last_ms if delay is None else delay
    return changes


def changes_of(law: PathAccess, drawn: Drawn, horizon_s: float, leaves_s: float | None) -> list[Change]:
    """The changes of one path's links from the start to a horizon, after which the path has its mean rate."""
    steps = max(1, math.ceil(horizon_s * STEPS_PER_S))
    shape = _shape(law.fading, law.dips, law.silences, drawn.seed, steps)
    rate = 1e3 * drawn.rate_mbps * shape * _departure(steps, leaves_s)
    load = offered(law, drawn.load, drawn.seed, steps)
    delays = drawn.base_rtt_ms / 2 + queueing_ms(load, drawn.queue_ms)
    down = _of_direction(drawn.name, "down", rate * np.maximum(1 - load, FLOOR), [float(ms) for ms in delays])
    up = _of_direction(drawn.name, "up", rate * law.uplink, None)
    end = steps * STEP_MS
    mean = 1e3 * drawn.rate_mbps * max(1 - drawn.load, FLOOR)
    if leaves_s is None:
        last = [Change(end, drawn.name, "down", int(mean), round(drawn.base_rtt_ms / 2, 1))]
        last.append(Change(end, drawn.name, "up", int(1e3 * drawn.rate_mbps * law.uplink)))
    else:
        last = [Change(round(1e3 * leaves_s), drawn.name, "both", is_down=True)]
    return [*down, *up, *last]
