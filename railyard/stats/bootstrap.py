"""The block bootstrap in clusters that all figures and comparisons use.

Requests of one play share the links' state, and plays that start near each other in one trace see the same stretch of
it. So the bootstrap does not resample requests: it resamples blocks of neighbouring plays or, with FEWEST or more pairs
of traces, the pairs and the blocks within them. A comparison draws the same plays under both schemes.
docs/reference/statistics.md states the rules.

    unit        an independent observation: a pair of traces, else a block of plays, else a play
    layout      which plays depend on each other; it determines the number of units
    weights     how often each play counts in each resample; a function of the layout alone
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock

import numpy as np
import numpy.typing as npt

RESAMPLES = 2000
SEED = 1
FEWEST = 5  # units for an interval: with four its ends would be rarer than one resample in 4000
AT_ONCE = 1 << 20  # values in one step of a computation: 8 MB
MOST_KEPT = 64 << 20  # bytes of weights in memory

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

    `clusters`: the plays of each pair of traces, by index, in the order of their starts. The trace loops, so the last
    one is a neighbour of the first. `blocks`: for each cluster, the number of neighbouring plays that share a stretch
    of the trace.
    """

    clusters: tuple[tuple[int, ...], ...]
    blocks: tuple[int, ...]
    fixed: bool = False
    """Statements are about these pairs, not about pairs like these, whatever their number."""
    spread: bool = True
    """The plays of each pair start at equal distances, as `start_offset_ms: spread` has them."""

    @classmethod
    def of_independent(cls, plays: int) -> "Layout":
        """The layout of independent plays."""
        return cls((tuple(range(plays)),), (1,))

    @property
    def plays(self) -> int:
        return sum(len(cluster) for cluster in self.clusters)

    @property
    def windows(self) -> int:
        """The number of stretches of trace that do not overlap."""
        return sum(max(1, len(cluster) // block) for cluster, block in zip(self.clusters, self.blocks, strict=True))

    def window_of(self) -> Counts:
        """The window number of each play. A window is a block of neighbouring plays; plays left over at a cluster's end
        belong to its last window."""
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
        """Whether pairs of traces are resampled too. The interval then is about pairs like these, else about these
        alone."""
        return not self.fixed and len(self.clusters) >= FEWEST

    def within(self) -> "Layout":
        """The same plays, for a statement about these pairs."""
        return replace(self, fixed=True) if self.by_cluster else self

    @property
    def units(self) -> int:
        """The number of independent observations."""
        return len(self.clusters) if self.by_cluster else self.windows

    @property
    def freedom(self) -> int:
        """Degrees of freedom: the units − 1; if pairs are fixed, the sum of each pair's windows − 1."""
        return self.units - 1 if self.by_cluster else self.windows - len(self.clusters)

    @property
    def underestimate(self) -> float:
        """Variance of a mean / its estimate from resampled units.

        n / (n − 1) for n units, times b² / ((2 b² + 1) / 3) for blocks of b overlapping plays: if the correlation of
        plays at distance k is their overlap 1 − k / b, resampled blocks keep (1 − k / b)² of it.
        """
        block = 1 if self.by_cluster else max(self.blocks)
        return self.units / self.freedom * _of_neighbours(block)

    @property
    def likeness(self) -> float:
        """Variance of the mean over windows / the variance if windows were independent: the last plays of a window
        overlap with the first of the next one. If the correlation of plays is their overlap, that of neighbouring
        windows is (b² − 1) / (4 b² + 2)."""
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
    """How often each play counts, shape (resamples + 1, plays). Row 0 is the sample: each play counts once. The most
    recently used weights are cached, up to MOST_KEPT bytes."""
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
    """Draws a cluster times[r] times for resample r and counts its plays: circular blocks, the last one cut to size."""
    size = len(cluster)
    for draw in range(int(times.max(initial=0))):
        every = np.flatnonzero(times > draw)
        for begin in range(0, len(every), at_once := max(1, AT_ONCE // size)):
            rows = every[begin : begin + at_once]
            starts = generator.integers(0, size, size=(len(rows), math.ceil(size / block)))
            places = (starts[:, :, None] + np.arange(block)).reshape(len(rows), -1)[:, :size] % size
            np.add.at(counts, (rows[:, None] + 1, cluster[places]), 1)


def weighted_sums(layout: Layout, values: Reals) -> Reals:
    """The sum of the plays' values under each row of `weights`, for each column of `values`. A column's last digits may
    depend on the presence of others, unless all values are integers."""
    drawn = weights(layout)
    sums = np.empty((len(drawn), *values.shape[1:]))
    for begin in range(0, len(drawn), at_once := max(1, AT_ONCE // max(1, layout.plays))):
        sums[begin : begin + at_once] = drawn[begin : begin + at_once] @ values
    return sums
