"""What is resampled, and how it is drawn: a block bootstrap in clusters, the same for all figures and comparisons.

Requests of one play share the links' state, and plays that start near each other in one trace see the same stretch of
it. What is resampled is therefore never a request: it is a block of neighbouring plays, and where there are enough
pairs of traces, whole pairs. A comparison resamples both schemes alike: same trace, same place.
docs/reference/statistics.md states the rules.

    unit        what is independent: pairs of traces, else blocks of plays, else plays
    layout      which plays depend on each other, and so how many units they are
    weights     how often each play counts in each resample: for one layout always the same numbers
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock

import numpy as np
import numpy.typing as npt

RESAMPLES = 2000
SEED = 1
FEWEST = 5  # units: with four the interval's ends would be rarer than one resample in 4000
AT_ONCE = 1 << 20  # values that are cumulated together: 8 MB
MOST_KEPT = 64 << 20

Groups = Sequence[Sequence[float]]
"""The values of each run."""
Reals = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Weights = npt.NDArray[np.uint8]
"""A play is drawn once on average: with 256 plays or more, 256 times has a probability below 10^-500."""


def _of_neighbours(block: int) -> float:
    return 3 * block**2 / (2 * block**2 + 1)


@dataclass(frozen=True)
class Layout:
    """Which plays depend on each other.

    `clusters`: the plays of each pair of traces, by index, in the order of their starts (the trace loops, so the last
    one is the neighbour of the first). `blocks`: of each cluster, how many neighbouring plays share a stretch of the
    trace.
    """

    clusters: tuple[tuple[int, ...], ...]
    blocks: tuple[int, ...]
    fixed: bool = False
    """The statement is about these pairs, however many they are."""
    spread: bool = True
    """The plays of each pair start at equal distances, as `start_offset_ms: spread` has them."""

    @classmethod
    def of_independent(cls, plays: int) -> Layout:
        """Plays that have nothing in common."""
        return cls((tuple(range(plays)),), (1,))

    @property
    def plays(self) -> int:
        return sum(len(cluster) for cluster in self.clusters)

    @property
    def windows(self) -> int:
        """Stretches of trace that do not overlap."""
        return sum(max(1, len(cluster) // block) for cluster, block in zip(self.clusters, self.blocks, strict=True))

    def window_of(self) -> Counts:
        """The window number of each play. A window has as many neighbouring plays as overlap; the remaining plays at a
        cluster's end belong to its last window."""
        numbers, begun = np.zeros(self.plays, dtype=np.int64), 0
        for cluster, block in zip(self.clusters, self.blocks, strict=True):
            windows = max(1, len(cluster) // block)
            numbers[list(cluster)] = begun + np.minimum(np.arange(len(cluster)) // block, windows - 1)
            begun += windows
        return numbers

    def unit_of(self) -> Counts:
        """The unit number of each play."""
        if not self.by_cluster:
            return self.window_of()
        units = np.zeros(self.plays, dtype=np.int64)
        for number, cluster in enumerate(self.clusters):
            units[list(cluster)] = number
        return units

    @property
    def by_cluster(self) -> bool:
        """Whether pairs of traces are resampled too: the interval then speaks of pairs like these. With fewer pairs it
        speaks of these alone."""
        return not self.fixed and len(self.clusters) >= FEWEST

    def within(self) -> Layout:
        """The same plays, for a statement about these pairs."""
        return replace(self, fixed=True) if self.by_cluster else self

    @property
    def units(self) -> int:
        """Independent observations."""
        return len(self.clusters) if self.by_cluster else self.windows

    @property
    def freedom(self) -> int:
        """Degrees of freedom: one less than the units, of each pair where pairs are fixed."""
        return self.units - 1 if self.by_cluster else self.windows - len(self.clusters)

    @property
    def underestimate(self) -> float:
        """Variance of a mean / what resampled units give of it.

        n / (n − 1) for few units. And b² / ((2 b² + 1) / 3) for plays of which b neighbours overlap, if they are alike
        as far as they overlap: of the correlations 1 − k / b a block keeps (1 − k / b)².
        """
        block = 1 if self.by_cluster else max(self.blocks)
        return self.units / self.freedom * _of_neighbours(block)

    @property
    def likeness(self) -> float:
        """Variance of a mean of windows / what it would be if windows had nothing in common: the last plays of a window
        overlap with the first of the next one. If plays are alike as far as they overlap, windows next to each other
        have the correlation (b² − 1) / (4 b² + 2)."""
        sizes = zip(self.clusters, self.blocks, strict=True)
        return _of_neighbours(max((block for cluster, block in sizes if len(cluster) >= 2 * block), default=1))

    @property
    def unit_words(self) -> str:
        if self.by_cluster:
            return "pairs of traces"
        return "runs" if all(block == 1 for block in self.blocks) else "windows of trace"


_kept: dict[tuple[Layout, int], Weights] = {}
_keeping = Lock()


def weights(layout: Layout, resamples: int = RESAMPLES) -> Weights:
    """How often each play counts: the first row counts each once, the others are the resamples. The last ones that were
    asked for are kept, MOST_KEPT bytes of them."""
    key = (layout, resamples)
    with _keeping:
        counts = _kept.pop(key, None)
    if counts is None:
        counts = _draw(layout, resamples)
    with _keeping:
        _kept[key] = counts
        while len(_kept) > 1 and sum(each.nbytes for each in _kept.values()) > MOST_KEPT:
            del _kept[next(iter(_kept))]
    return counts


def _draw(layout: Layout, resamples: int) -> Weights:
    generator = np.random.default_rng(SEED)
    counts = np.zeros((resamples + 1, layout.plays), dtype=np.uint8)
    counts[0] = 1
    count = len(layout.clusters)
    if layout.by_cluster:
        times = generator.multinomial(count, np.full(count, 1 / count), size=resamples)
    else:
        times = np.ones((resamples, count), dtype=np.int64)
    for number, (cluster, block) in enumerate(zip(layout.clusters, layout.blocks, strict=True)):
        _draw_blocks(generator, counts, times[:, number], np.array(cluster), min(block, len(cluster)))
    return counts


def _draw_blocks(generator: np.random.Generator, counts: Weights, times: Counts, cluster: Counts, block: int) -> None:
    """Adds, for each resample, the plays of so many draws of one cluster: circular blocks, the last one cut to size."""
    size = len(cluster)
    for draw in range(int(times.max(initial=0))):
        every = np.flatnonzero(times > draw)
        for begin in range(0, len(every), at_once := max(1, AT_ONCE // size)):
            rows = every[begin : begin + at_once]
            starts = generator.integers(0, size, size=(len(rows), math.ceil(size / block)))
            places = (starts[:, :, None] + np.arange(block)).reshape(len(rows), -1)[:, :size] % size
            np.add.at(counts, (rows[:, None] + 1, cluster[places]), 1)


def weighted_sums(layout: Layout, values: Reals) -> Reals:
    """The sum over the plays of what each contributes, under each row of `weights`. Of several columns, each by itself;
    their last digits may differ from those of a column alone, unless all are whole numbers."""
    drawn = weights(layout)
    sums = np.empty((len(drawn), *values.shape[1:]))
    for begin in range(0, len(drawn), at_once := max(1, AT_ONCE // max(1, layout.plays))):
        sums[begin : begin + at_once] = drawn[begin : begin + at_once] @ values
    return sums
