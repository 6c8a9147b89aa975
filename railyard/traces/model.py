"""The mobility model: the capacity of the paths of one train over time, drawn from a seed.

Time runs in steps of 100 ms. A path's rate is a lognormal body (AR(1) in the logarithm), interrupted by

- handoffs, near-periodic on a line whose cells are evenly spaced, irregular elsewhere: each silences the path for a
  moment, redraws a share of the body (another cell, another load), and may begin a dip, in which the rate is mostly
  below 1 Mbps;
- tunnels, which belong to the line and not to the path: they begin on all paths at the same time;
- fades, short silences that come more often inside dips and tunnels.

The uplink has a fraction of the downlink's rate with its own variation; silences are common to both. The RTT has its
own process, part of which belongs to the serving cell, with a peak at each handoff.
Rates become integers (kbps) before any opportunity is placed, and the draws come from the standard
library's generator, whose uniform sequence is the same in every version: equal parameters give equal bytes.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from railyard.traces.draws import STEPS_PER_S, Draws, ar1, whole_steps
from railyard.traces.parameters import MAX_DURATION_S, STEP_MS, Handoffs, MobilityModel, PathModel, Rtt
from railyard.traces.trace import OPPORTUNITY_BITS, FloatArray, IntArray

WARM_UP_S = 120
"""Simulated time that is discarded, so that a trace begins anywhere in the process and not at a handoff."""
_RTT_SCORES = (-2.3263478740408408, -0.6744897501960817, 0.0, 0.6744897501960817, 2.3263478740408408, 3.5)
"""Quantiles of the standard normal distribution at which the RTT is given: 1, 25, 50, 75, 99 %; the maximum."""


@dataclass(frozen=True, eq=False)
class PathOpportunities:
    """Delivery opportunities of one generated path, ms."""

    name: str
    down: IntArray
    up: IntArray
    rtt_ms: FloatArray | None
    """RTT without queueing in each step of 100 ms. None: the model has none."""


def _mark(flags: FloatArray, start: int, length: int) -> None:
    flags[start : start + length] = 1.0


def _tunnel_places(model: MobilityModel, seed: int, steps: int) -> list[tuple[int, int]]:
    """(first step, steps) of each tunnel of the line."""
    draws, tunnels = Draws(seed, "tunnels"), model.tunnels
    places: list[tuple[int, int]] = []
    at_s = 0.0
    while True:
        spacing = tunnels.spacing_min_s + draws.exponential(tunnels.spacing_mean_s - tunnels.spacing_min_s)
        at_s += spacing
        length_s = draws.length(tunnels.length)
        if at_s * STEPS_PER_S >= steps:
            return places
        places.append((int(at_s * STEPS_PER_S), whole_steps(length_s)))
        at_s += length_s


def _handoff_places(handoffs: Handoffs, draws: Draws, steps: int) -> Iterator[int]:
    """First step of each handoff."""
    at_s = handoffs.spacing_median_s * draws.uniform()
    while at_s * STEPS_PER_S < steps:
        yield int(at_s * STEPS_PER_S)
        at_s += handoffs.spacing_median_s * math.exp(handoffs.spacing_sigma * draws.normal())


def _path_rate_mbps(
    path: PathModel, tunnels: list[tuple[int, int]], line: FloatArray, seed: int
) -> tuple[FloatArray, list[int]]:
    """Downlink rate of one path per step, and the first step of each of its handoffs."""
    steps = len(line)
    label = path.name
    silent, dipped, cell = np.zeros(steps), np.zeros(steps), np.zeros(steps)

    events = Draws(seed, f"{label}/handoffs")
    cell[:] = events.normal()
    handoffs = []
    for start in _handoff_places(path.handoffs, events, steps):
        handoffs.append(start)
        _mark(silent, start, whole_steps(events.length(path.handoffs.interruption)))
        cell[start:] = events.normal()
        into_dip, dip_s = events.uniform(), events.length(path.handoffs.dip)
        if into_dip < path.handoffs.dip_probability:
            _mark(dipped, start, whole_steps(dip_s))

    events = Draws(seed, f"{label}/tunnels")
    for start, length in tunnels:
        slow_recovery, recovery_s = events.uniform(), events.length(path.tunnel_effect.recovery)
        after = whole_steps(recovery_s) if slow_recovery < path.tunnel_effect.recovery_probability else 0
        _mark(dipped, start, length + after)
        _mark(silent, start, round(length * path.tunnel_effect.silence_share))

    events = Draws(seed, f"{label}/fades")
    spread = path.fades.spread
    often = math.exp(spread * events.normal() - spread**2 / 2) if spread else 1.0  # the mean is 1
    for step in range(steps):
        rate = often * (path.fades.per_minute_in_dips if dipped[step] else path.fades.per_minute)
        starts, length_s = events.uniform() < rate / (60 * STEPS_PER_S), events.length(path.fades.length)
        if starts:
            _mark(silent, step, whole_steps(length_s))

    body, share = path.body, path.body.cell_share
    own = ar1(Draws(seed, f"{label}/body"), steps, body.time_constant_s)
    place = math.sqrt(body.line_share) * line + math.sqrt(1 - body.line_share) * own
    logs = body.sigma * (math.sqrt(share) * cell + math.sqrt(1 - share) * place)
    open_rate = np.minimum(body.median_mbps * np.exp(logs), body.peak_mbps)
    level = path.dip_level
    low = level.median_mbps * np.exp(level.sigma * ar1(Draws(seed, f"{label}/dips"), steps, level.time_constant_s))
    rate_in_dips = np.minimum(np.minimum(low, level.ceiling_mbps), open_rate)
    return np.where(silent > 0, 0.0, np.where(dipped > 0, rate_in_dips, open_rate)), handoffs


def _path_rtt_ms(rtt: Rtt, label: str, handoffs: list[int], steps: int, seed: int) -> FloatArray:
    """RTT of one path in each step, ms."""
    draws = Draws(seed, f"{label}/rtt")
    cell, peak = np.full(steps, draws.normal()), np.zeros(steps)
    for start in handoffs:
        cell[start:] = draws.normal()
        peak_ms = rtt.handoff_peak_ms * math.exp(rtt.handoff_peak_sigma * draws.normal())
        peak[start : start + whole_steps(draws.length(rtt.handoff))] = peak_ms
    own = ar1(draws, steps, rtt.time_constant_s)
    score = math.sqrt(rtt.cell_share) * cell + math.sqrt(1 - rtt.cell_share) * own
    known = np.log(np.array([rtt.p1_ms, rtt.p25_ms, rtt.p50_ms, rtt.p75_ms, rtt.p99_ms, rtt.max_ms]))
    calm = np.exp(np.interp(score, _RTT_SCORES, known))
    rounded: FloatArray = np.round(np.minimum(np.maximum(calm, peak), rtt.max_ms), 1)
    return rounded


def _place_opportunities(rate_mbps: FloatArray, grant_ms: int) -> IntArray:
    """Timestamps of the opportunities, from the rate in each step. The last one is the period."""
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
        line = ar1(Draws(seed, "line"), steps, path.body.time_constant_s)
        down, handoffs = _path_rate_mbps(path, tunnels, line, seed)
        rtt_ms = _path_rtt_ms(path.rtt, path.name, handoffs, steps, seed)[warm_up:] if path.rtt else None
        own = ar1(Draws(seed, f"{path.name}/uplink"), steps, path.uplink.time_constant_s)
        up = down * path.uplink.fraction * np.exp(path.uplink.sigma * own)
        results.append(
            PathOpportunities(
                path.name,
                down=_place_opportunities(down[warm_up:], path.grant_ms),
                up=_place_opportunities(up[warm_up:], path.grant_ms),
                rtt_ms=rtt_ms,
            )
        )
    return results
