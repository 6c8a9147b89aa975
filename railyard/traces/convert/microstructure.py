"""Silences for a recording in bins: a conditional block bootstrap from recordings of packets (the donors).

The recording is divided into blocks of 1 to 5 s. For each block a stretch of a donor is drawn from those with the
nearest rates, bin by bin, and with a silence at their start about as long as that at the end of the restored part. The
bytes of each bin then arrive at the times of the donor's packets. Every bin keeps its bytes. In a block without a
similar stretch they stay evenly spread.
"""

import math
from dataclasses import dataclass

import numpy as np

from railyard.traces.convert.capacity import US_PER_MS, Delivered, from_packets
from railyard.traces.draws import Draws
from railyard.traces.trace import FloatArray, IntArray, Trace, TraceError

BLOCK_S = (1.0, 5.0)
"""Blocks are whole bins, of lengths drawn evenly from this range."""
STEP_MS = 50
"""Stretches of donors begin at its multiples."""
NEAREST = 8
"""The number of nearest stretches from which one is drawn."""
MOST_FACTOR = 4.0
"""A stretch whose rates differ by more (root mean square of the logarithms) is not similar."""
FLOOR_SHARE = 0.05
"""Rates below this share of the recording's mean count as this share, because ln(0) is undefined."""
LONGEST_MS = 1000
"""Longer silences at the border of blocks count as this long."""
BORDER_MS = 200
"""This difference of silences at the border weighs as much as a factor e in the rate."""


@dataclass(frozen=True)
class Block:
    """The origin of the silences of one block."""

    start_s: float
    length_s: float
    donor: int | None
    """The donor's index. None: no stretch was similar, and bytes are evenly spread."""
    donor_start_s: float


@dataclass(frozen=True, eq=False)
class Restored:
    """The recording with silences, and their origin."""

    delivered: Delivered
    blocks: list[Block]

    @property
    def even_share(self) -> float:
        """Share of the time that kept its bytes evenly spread."""
        lengths = [block.length_s for block in self.blocks]
        return sum(block.length_s for block in self.blocks if block.donor is None) / sum(lengths)


@dataclass(frozen=True, eq=False)
class _Donor:
    """A recording of packets, prepared for the search."""

    times_ms: IntArray
    counts: FloatArray
    """Opportunities before each multiple of STEP_MS."""
    silence_ms: FloatArray
    """The length of the silence before each multiple of STEP_MS."""


def _prepared(trace: Trace) -> _Donor:
    # The last opportunity closes the period and is no packet.
    times = trace.opportunities_ms[:-1]
    if len(times) == 0:
        raise TraceError(f"{trace.path}: there is no packet in this donor; take another one")
    grid = np.arange(0, trace.period_ms + 1, STEP_MS, dtype=np.int64)
    before = np.searchsorted(times, grid, side="left")
    last = np.where(before > 0, times[np.maximum(before - 1, 0)], 0)
    return _Donor(times, before.astype(np.float64), np.minimum(grid - last, LONGEST_MS).astype(np.float64))


def _distances(donor: _Donor, logs: FloatArray, bin_ms: int, silent_ms: float, floor: float) -> FloatArray:
    """The distance of each stretch of a donor from the block, in rates and border; infinite if no stretch fits."""
    step = bin_ms // STEP_MS
    starts = len(donor.counts) - step * len(logs)
    if starts <= 0:
        return np.full(0, math.inf)
    edges = np.stack([donor.counts[number * step : number * step + starts] for number in range(len(logs) + 1)])
    rates = np.log(np.maximum(np.diff(edges, axis=0), floor))
    apart = np.sqrt(np.mean((rates - logs[:, None]) ** 2, axis=0))
    border = np.abs(donor.silence_ms[:starts] - min(silent_ms, LONGEST_MS)) / BORDER_MS
    return np.where(apart <= math.log(MOST_FACTOR), apart + border, math.inf)


def _placed(donor: _Donor, start_ms: int, bin_ms: int, wanted: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Times since the block's start, ms, and opportunities at each: those of a bin are at the donor's packets in it."""
    times: list[FloatArray] = []
    sizes: list[FloatArray] = []
    for number, amount in enumerate(wanted):
        begin = start_ms + number * bin_ms
        low, high = np.searchsorted(donor.times_ms, [begin, begin + bin_ms])
        if amount <= 0:
            continue
        if low == high:  # the donor is silent in this bin: all opportunities are at its end
            times.append(np.array([(number + 1) * bin_ms - 1.0]))
            sizes.append(np.array([amount]))
            continue
        times.append((donor.times_ms[low:high] - start_ms).astype(np.float64))
        sizes.append(np.full(high - low, amount / (high - low)))
    none = np.zeros(0)
    return (np.concatenate(times), np.concatenate(sizes)) if times else (none, none)


def restored(bytes_in_bins: FloatArray, bin_ms: int, donors: list[Trace], seed: int) -> Restored:
    """The bins with the silences of the donors. Equal arguments give equal results. Raises TraceError."""
    if bin_ms % STEP_MS or not STEP_MS <= bin_ms <= BLOCK_S[1] * 1000:
        raise TraceError(f"bins of {bin_ms} ms get no silences; they must be a multiple of {STEP_MS} ms, at most 5 s")
    prepared = [_prepared(donor) for donor in donors]
    opportunities = bytes_in_bins / 1504
    floor = max(FLOOR_SHARE * float(opportunities.mean()), 1e-9)
    draws = Draws(seed, "microstructure")
    times: list[FloatArray] = []
    sizes: list[FloatArray] = []
    blocks: list[Block] = []
    at, last_ms = 0, 0.0
    while at < len(opportunities):
        length_s = BLOCK_S[0] + (BLOCK_S[1] - BLOCK_S[0]) * draws.uniform()
        wanted = opportunities[at : at + max(1, round(length_s * 1000 / bin_ms))]
        logs = np.log(np.maximum(wanted, floor))
        start_ms = at * bin_ms
        chosen = _chosen(draws, [_distances(one, logs, bin_ms, start_ms - last_ms, floor) for one in prepared])
        if chosen is None:
            wanted = wanted[:1]  # spread only one bin: the next block begins after it
            # Bytes are spread over each ms of the bins.
            within, amounts = np.arange(len(wanted) * bin_ms, dtype=np.float64), np.repeat(wanted / bin_ms, bin_ms)
        else:
            within, amounts = _placed(prepared[chosen[0]], chosen[1] * STEP_MS, bin_ms, wanted)
        times.append(within + start_ms)
        sizes.append(amounts)
        last_ms = float(times[-1][-1]) if len(within) else last_ms
        place = (None, 0.0) if chosen is None else (chosen[0], chosen[1] * STEP_MS / 1000)
        blocks.append(Block(start_ms / 1000, len(wanted) * bin_ms / 1000, *place))
        at += len(wanted)
    duration_us = float(len(opportunities) * bin_ms * US_PER_MS)
    packets = from_packets(np.concatenate(times) * US_PER_MS, np.concatenate(sizes) * 1504, duration_us)
    return Restored(packets, blocks)


def _chosen(draws: Draws, distances: list[FloatArray]) -> tuple[int, int] | None:
    """Donor and start, in steps, of one of the nearest stretches. None: no stretch is similar."""
    number = draws.uniform()
    choices = [
        (float(of_donor[start]), donor, int(start))
        for donor, of_donor in enumerate(distances)
        for start in np.argsort(of_donor, kind="stable")[: 40 * NEAREST]
        if math.isfinite(of_donor[start])
    ]
    nearest: list[tuple[float, int, int]] = []
    for one in sorted(choices):
        # Starts that are near each other are one stretch.
        if all(one[1] != other[1] or abs(one[2] - other[2]) * STEP_MS >= 1000 for other in nearest):
            nearest.append(one)
        if len(nearest) == NEAREST:
            break
    return nearest[int(number * len(nearest))][1:] if nearest else None
