"""The mobility model: what two paths of one train offer over time, drawn from a seed.

Time runs in steps of 100 ms. A path's rate is a lognormal body (AR(1) in the logarithm), interrupted by

- handoffs, near-periodic on a line whose cells are evenly spaced, irregular elsewhere: each silences the path for a
  moment, redraws a share of the body (another cell, another load), and may begin a dip, in which the rate is mostly
  below 1 Mbps;
- tunnels, which belong to the line and not to the path: they begin on all paths at the same time;
- fades, short silences that come more often inside dips and tunnels.

The uplink follows the downlink at a fraction of its rate and with a variation of its own: what silences one direction
silences both. Rates become integers (kbps) before any opportunity is placed, and the draws come from the standard
library's generator, whose uniform sequence is the same in every version: equal parameters give equal bytes.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from railyard.traces.names import DeviceName, QueueSpec, Technology
from railyard.traces.trace import OPPORTUNITY_BITS, FloatArray, IntArray

STEP_MS = 100
STEPS_PER_S = 1000 // STEP_MS
WARM_UP_S = 120
"""Simulated and thrown away, so that the trace begins anywhere in the process and not at a handoff."""
P90_QUANTILE = 1.2815515655446004
"""0.9 quantile of the standard normal distribution."""
MAX_DURATION_S = 3600

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


class Parameters(BaseModel):
    """Base of all parameter groups: immutable, and a misspelt key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Lengths(Parameters):
    """A lognormal length of time by its median and 90th percentile, cut off at a maximum; seconds."""

    median_s: Positive
    p90_s: Positive
    max_s: Positive

    @model_validator(mode="after")
    def _ordered(self) -> Lengths:
        if not self.median_s <= self.p90_s <= self.max_s:
            raise ValueError("median_s <= p90_s <= max_s must hold")
        return self


class Body(Parameters):
    """Rate outside of dips."""

    median_mbps: Positive
    sigma: NotNegative
    """Standard deviation of ln(rate)."""
    time_constant_s: Positive
    """Of the AR(1) process of ln(rate)."""
    cell_share: Share
    """Share of the variance of ln(rate) that belongs to the serving cell and is redrawn at each handoff."""
    line_share: Share
    """Share of the rest that belongs to the place on the line and moves all paths together."""
    peak_mbps: Positive
    """What the radio link can carry at most."""


class DipLevel(Parameters):
    """Rate inside of dips and tunnels: lognormal, below a ceiling."""

    median_mbps: Positive
    sigma: NotNegative
    time_constant_s: Positive
    ceiling_mbps: Positive


class Handoffs(Parameters):
    """Cell changes of one path."""

    spacing_median_s: Positive
    spacing_sigma: NotNegative
    """Standard deviation of ln(spacing): about 0.2 is near-periodic, above 1 is irregular."""
    interruption: Lengths
    dip_probability: Share
    dip: Lengths


class Fades(Parameters):
    """Short silences."""

    per_minute: NotNegative
    per_minute_in_dips: NotNegative
    length: Lengths


class Tunnels(Parameters):
    """Stretches of the line without coverage, common to all paths."""

    spacing_mean_s: Positive
    spacing_min_s: NotNegative
    length: Lengths

    @model_validator(mode="after")
    def _ordered(self) -> Tunnels:
        if not self.spacing_min_s < self.spacing_mean_s:
            raise ValueError("spacing_min_s < spacing_mean_s must hold")
        return self


class TunnelEffect(Parameters):
    """What a tunnel does to one path."""

    silence_share: Share
    """Part of the tunnel, from its beginning, without any opportunity."""
    recovery_probability: Share
    recovery: Lengths
    """Time that the path stays in a dip after the tunnel, where it has to find its network again."""


class Uplink(Parameters):
    """The uplink as a fraction of the downlink."""

    fraction: Annotated[float, Field(gt=0, le=1)]
    sigma: NotNegative
    time_constant_s: Positive


class PathModel(Parameters):
    """One path: its link, and the parameters of its process."""

    name: DeviceName
    technology: Technology
    base_rtt_ms: Positive
    queue: QueueSpec
    grant_ms: Annotated[int, Field(ge=1, le=STEP_MS)]
    """The scheduler of the cell serves the path every so many ms; divides 100."""
    body: Body
    dip_level: DipLevel
    handoffs: Handoffs
    fades: Fades
    tunnel_effect: TunnelEffect
    uplink: Uplink

    @model_validator(mode="after")
    def _grants_fit(self) -> PathModel:
        if STEP_MS % self.grant_ms:
            raise ValueError("grant_ms must divide 100")
        return self


class MobilityModel(Parameters):
    """A line and the paths of a train on it."""

    scenario: str
    tunnels: Tunnels
    paths: tuple[PathModel, ...]

    @model_validator(mode="after")
    def _two_paths_or_more(self) -> MobilityModel:
        if len(self.paths) < 2:
            raise ValueError("a pair has two paths or more; add what is missing")
        if len({path.name for path in self.paths}) != len(self.paths):
            raise ValueError("the names of the paths must differ")
        return self


@dataclass(frozen=True, eq=False)
class PathOpportunities:
    """Delivery opportunities of one generated path, ms."""

    name: str
    down: IntArray
    up: IntArray


class _Draws:
    """One independent stream of random draws; only random() is used, whose sequence no version changes."""

    def __init__(self, seed: int, label: str) -> None:
        self._random = random.Random(f"{seed}/{label}")

    def uniform(self) -> float:
        return self._random.random()

    def exponential(self, mean: float) -> float:
        return -mean * math.log1p(-self._random.random())

    def normal(self) -> float:
        radius = math.sqrt(self.exponential(2.0))
        return radius * math.cos(2.0 * math.pi * self._random.random())

    def length(self, lengths: Lengths) -> float:
        """A truncated lognormal length in seconds; at least nine draws in ten are within the maximum."""
        sigma = math.log(lengths.p90_s / lengths.median_s) / P90_QUANTILE
        while True:
            drawn = lengths.median_s * math.exp(sigma * self.normal())
            if drawn <= lengths.max_s:
                return drawn


def _steps(seconds: float) -> int:
    """Whole steps, at least one."""
    return max(1, round(seconds * STEPS_PER_S))


def _ar1(draws: _Draws, steps: int, time_constant_s: float) -> FloatArray:
    """A stationary AR(1) process of unit variance."""
    keep = math.exp(-1.0 / (time_constant_s * STEPS_PER_S))
    fresh = math.sqrt(1.0 - keep * keep)
    value, values = draws.normal(), []
    for _ in range(steps):
        values.append(value)
        value = keep * value + fresh * draws.normal()
    return np.array(values)


def _mark(flags: FloatArray, start: int, length: int) -> None:
    flags[start : start + length] = 1.0


def _tunnel_places(model: MobilityModel, seed: int, steps: int) -> list[tuple[int, int]]:
    """(first step, steps) of each tunnel of the line."""
    draws, tunnels = _Draws(seed, "tunnels"), model.tunnels
    places: list[tuple[int, int]] = []
    at_s = 0.0
    while True:
        spacing = tunnels.spacing_min_s + draws.exponential(tunnels.spacing_mean_s - tunnels.spacing_min_s)
        at_s += spacing
        length_s = draws.length(tunnels.length)
        if at_s * STEPS_PER_S >= steps:
            return places
        places.append((int(at_s * STEPS_PER_S), _steps(length_s)))
        at_s += length_s


def _handoff_places(handoffs: Handoffs, draws: _Draws, steps: int) -> Iterator[int]:
    """First step of each handoff."""
    at_s = handoffs.spacing_median_s * draws.uniform()
    while at_s * STEPS_PER_S < steps:
        yield int(at_s * STEPS_PER_S)
        at_s += handoffs.spacing_median_s * math.exp(handoffs.spacing_sigma * draws.normal())


def _path_rate_mbps(path: PathModel, tunnels: list[tuple[int, int]], line: FloatArray, seed: int) -> FloatArray:
    """Downlink rate of one path per step."""
    steps = len(line)
    label = path.name
    silent, dipped, cell = np.zeros(steps), np.zeros(steps), np.zeros(steps)

    events = _Draws(seed, f"{label}/handoffs")
    cell[:] = events.normal()
    for start in _handoff_places(path.handoffs, events, steps):
        _mark(silent, start, _steps(events.length(path.handoffs.interruption)))
        cell[start:] = events.normal()
        into_dip, dip_s = events.uniform(), events.length(path.handoffs.dip)
        if into_dip < path.handoffs.dip_probability:
            _mark(dipped, start, _steps(dip_s))

    events = _Draws(seed, f"{label}/tunnels")
    for start, length in tunnels:
        slow_recovery, recovery_s = events.uniform(), events.length(path.tunnel_effect.recovery)
        after = _steps(recovery_s) if slow_recovery < path.tunnel_effect.recovery_probability else 0
        _mark(dipped, start, length + after)
        _mark(silent, start, round(length * path.tunnel_effect.silence_share))

    events = _Draws(seed, f"{label}/fades")
    for step in range(steps):
        rate = path.fades.per_minute_in_dips if dipped[step] else path.fades.per_minute
        starts, length_s = events.uniform() < rate / (60 * STEPS_PER_S), events.length(path.fades.length)
        if starts:
            _mark(silent, step, _steps(length_s))

    body, share = path.body, path.body.cell_share
    own = _ar1(_Draws(seed, f"{label}/body"), steps, body.time_constant_s)
    place = math.sqrt(body.line_share) * line + math.sqrt(1 - body.line_share) * own
    logs = body.sigma * (math.sqrt(share) * cell + math.sqrt(1 - share) * place)
    open_rate = np.minimum(body.median_mbps * np.exp(logs), body.peak_mbps)
    level = path.dip_level
    low = level.median_mbps * np.exp(level.sigma * _ar1(_Draws(seed, f"{label}/dips"), steps, level.time_constant_s))
    rate_in_dips = np.minimum(np.minimum(low, level.ceiling_mbps), open_rate)
    return np.where(silent > 0, 0.0, np.where(dipped > 0, rate_in_dips, open_rate))


def _place_opportunities(rate_mbps: FloatArray, grant_ms: int) -> IntArray:
    """Timestamps of the opportunities of a rate per step; the last one is the period."""
    kbps = np.rint(rate_mbps * 1e3).astype(np.int64)
    bits = np.cumsum(np.repeat(kbps, STEP_MS))
    wanted = np.arange(1, int(bits[-1]) // OPPORTUNITY_BITS + 1, dtype=np.int64) * OPPORTUNITY_BITS
    at_ms = np.searchsorted(bits, wanted, side="left").astype(np.int64)
    return np.append(at_ms // grant_ms * grant_ms, len(bits))


def generate_opportunities(model: MobilityModel, seed: int, duration_s: int) -> list[PathOpportunities]:
    """All opportunities of all paths, both directions. Equal arguments give equal results."""
    if not 1 <= duration_s <= MAX_DURATION_S:
        raise ValueError(f"the duration must be 1 to {MAX_DURATION_S} s")
    steps = (WARM_UP_S + duration_s) * STEPS_PER_S
    warm_up = WARM_UP_S * STEPS_PER_S
    tunnels = _tunnel_places(model, seed, steps)
    results = []
    for path in model.paths:
        line = _ar1(_Draws(seed, "line"), steps, path.body.time_constant_s)
        down = _path_rate_mbps(path, tunnels, line, seed)
        own = _ar1(_Draws(seed, f"{path.name}/uplink"), steps, path.uplink.time_constant_s)
        up = down * path.uplink.fraction * np.exp(path.uplink.sigma * own)
        results.append(
            PathOpportunities(
                path.name,
                down=_place_opportunities(down[warm_up:], path.grant_ms),
                up=_place_opportunities(up[warm_up:], path.grant_ms),
            )
        )
    return results
