"""The arms of a large campaign beside each other, from columns of its file: no play is held as a Python object.

Intervals are those of figures.py. Above MOST_UNITS viewers neighbours are drawn together in the bootstrap. Viewers are
independent of each other, so groups of equal size are too, and the resamples' memory does not grow any more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from railyard.figures.figure import Figure
from railyard.figures.rows import REBUFFER_RATE, REINJECTION_COST
from railyard.stats.intervals import Interval, Layout, Reals, Sample
from railyard.stats.rates import Sums
from railyard.stats.statistics import nearest_rank_of
from railyard.studies.population.figures import Compare, ViewersPlay, What, compared_rates, compared_values, values_of

MOST_UNITS = 20_000
AT_ONCE = 10_000
RATES = (REBUFFER_RATE, REINJECTION_COST)
VALUES: tuple[What, ...] = ("rct", "first_frame")
COLUMNS = (
    *("arm", "rct_s", "first_frame_s", "waited_s", "play_time_s", "rebuffer_time_s"),
    *("stream_bytes_sent", "reinjected_bytes"),
)


class Pooled:
    """The plays of a file in which each viewer has all arms, in the same order."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.arms = list(dict.fromkeys(arm for batch in self._batches(["arm"]) for arm in batch["arm"].to_pylist()))
        self._values: dict[tuple[What, str], tuple[Reals, npt.NDArray[np.int64]]] = {}
        self._sums: dict[tuple[str, str], Sums] = {}  # by name of the rate, and arm
        for arm in self.arms:
            self._read(arm)

    def _batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(self._file) as file:
            yield from file.iter_batches(AT_ONCE, columns=columns)

    def _read(self, arm: str) -> None:
        values: dict[What, list[Reals]] = {what: [] for what in VALUES}
        lengths: dict[What, list[int]] = {what: [] for what in VALUES}
        sums: dict[str, list[Sums]] = {rate.name: [] for rate in RATES}
        for batch in self._batches(list(COLUMNS)):
            rows = batch.filter(pc.equal(batch["arm"], arm)).to_pylist()
            for what in VALUES:
                groups = [values_of(row, what) for row in rows]
                lengths[what] += map(len, groups)
                values[what].append(np.array([value for group in groups for value in group], dtype=np.float64))
            plays = [ViewersPlay(row) for row in rows]
            for rate in RATES:
                sums[rate.name].append(rate.sums(plays))
        for what in VALUES:
            self._values[what, arm] = np.concatenate(values[what]), np.array(lengths[what], dtype=np.int64)
        for name, found in sums.items():
            top, bottom = ([getattr(one, side) for one in found] for side in ("top", "bottom"))
            self._sums[name, arm] = Sums(np.concatenate(top), np.concatenate(bottom))

    def count(self, arm: str) -> int:
        return len(self._values["rct", arm][1])

    def quantile(self, what: What, arm: str, q: float) -> float | None:
        """Nearest rank. None without a value."""
        values = self._values[what, arm][0]
        return nearest_rank_of(values, q) if len(values) else None

    def value(self, rate: Figure, arm: str) -> float:
        """One of RATES; NaN if it has none."""
        return self._sums[rate.name, arm].value

    def compare_quantile(self, what: What, q: float, ours: str, theirs: str, how: Compare) -> Interval | None:
        return compared_values(self._sample(what, ours), self._sample(what, theirs), q, how)

    def improvement(self, rate: Figure, ours: str, theirs: str) -> Interval | None:
        """Of one of RATES, in percent of theirs."""
        return compared_rates(*(_grouped(self._sums[rate.name, arm]) for arm in (ours, theirs)))

    def _sample(self, what: What, arm: str) -> Sample:
        values, lengths = self._values[what, arm]
        begins = np.concatenate([[0], np.cumsum(lengths)])[_begins(len(lengths))]
        groups = np.split(values, begins[1:])
        return Sample([list(group) for group in groups], Layout.of_independent(len(groups)))


def _grouped(sums: Sums) -> Sums:
    begins = _begins(len(sums.top))
    return Sums(np.add.reduceat(sums.top, begins), np.add.reduceat(sums.bottom, begins))


def _begins(viewers: int) -> npt.NDArray[np.int64]:
    """The first viewer of each group that is drawn together."""
    return np.arange(0, viewers, max(1, math.ceil(viewers / MOST_UNITS)), dtype=np.int64)
