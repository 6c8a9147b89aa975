"""Figures over the plays of a population: pooled quantiles, rates, and paired comparisons with intervals.

Both arms of a comparison have the same viewers. Intervals come from a bootstrap over viewers, who are independent of
each other, where requests of one viewer are not; a drawn viewer counts with all of its requests, under both arms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from railyard.figures.figure import Figure
from railyard.figures.rows import REBUFFER_RATE
from railyard.results.records import Chunk
from railyard.stats import intervals, rates
from railyard.stats.intervals import Interval, Layout, Reals, Sample
from railyard.stats.rates import Sums
from railyard.stats.statistics import nearest_rank
from railyard.studies.population.play import Row

METHOD = intervals.METHOD.replace("over runs", "over viewers, paired between arms").replace("few runs", "few viewers")

What = Literal["rct", "first_frame", "later_first_frame", "play_time_left"]
ViewerKey = tuple[int, int]


@dataclass(frozen=True)
class ViewersPlay:
    """A row as figures read it. It counts no bytes of paths that were given up, and knows no oracle."""

    row: Row

    @property
    def chunks(self) -> list[Chunk]:
        requests = zip(self.row["rct_s"], self.row["completed"], strict=True)
        return [Chunk(number, 0.0, rct_s, bool(completed), 0) for number, (rct_s, completed) in enumerate(requests)]

    @property
    def failed(self) -> bool:
        return self.row["first_frame_s"] is None

    @property
    def first_frame_counted(self) -> tuple[float, bool]:
        first_s = self.row["first_frame_s"]
        return (float(self.row.get("waited_s") or 0.0), False) if first_s is None else (float(first_s), True)

    @property
    def rebuffer_counted_s(self) -> float:
        """A play whose first frame never came stalled for as long as was waited for it."""
        return float(self.row["rebuffer_time_s"]) + float(self.row.get("waited_s") or 0.0)

    @property
    def play_time_s(self) -> float:
        return float(self.row["play_time_s"])

    @property
    def stream_bytes_sent(self) -> int:
        return int(self.row["stream_bytes_sent"])

    @property
    def reinjected_bytes(self) -> int:
        return int(self.row["reinjected_bytes"])

    @property
    def given_up_bytes(self) -> int:
        return 0


def _lasted_s(row: Row) -> float:
    """How long a play took, to its end or its time limit."""
    started_s = row["first_frame_s"] or row["waited_s"] or 0.0
    return float(started_s + row["play_time_s"] + row["rebuffer_time_s"])


def values_of(row: Row, what: What, videos: int = 1) -> list[float]:
    """What a play of so many videos contributes. What never came counts with the time that was waited for it, and the
    first frame of a video that the play never came to with the time that the play took: lower bounds."""
    if what == "rct":
        return list(row["rct_s"])
    if what == "first_frame":
        first = row["first_frame_s"] if row["first_frame_s"] is not None else row["waited_s"]
        return [] if first is None else [first]
    if what == "later_first_frame":
        later = list(row["first_frames_s"][1:])
        return later + [_lasted_s(row)] * (videos - 1 - len(later))
    return [float(round(value)) for value in row["play_time_left_ms"]]


def _interval(samples: Reals, keys: Sequence[ViewerKey]) -> Interval | None:
    return intervals.interval(samples, Layout.of_independent(len(keys))) if keys else None


def improvement(ours: Reals, theirs: Reals) -> Reals:
    """By how much ours is below theirs, in percent of theirs; nan where theirs is nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        result: Reals = np.where(theirs > 0, 100 * (1 - ours / theirs), np.nan)
    return result


def increase(ours: Reals, theirs: Reals) -> Reals:
    return -improvement(ours, theirs)


def _rare(sums: Sums) -> Interval | None:
    return rates.level(sums, Layout.of_independent(len(sums.top)))


def compared_rates(ours: Sums, theirs: Sums) -> Interval | None:
    """By how much a rate is below theirs, in percent of theirs, over the same viewers."""
    found = rates.ratio(ours, theirs, Layout.of_independent(len(ours.top)))
    return None if found is None else found.mapped(lambda times: 100 * (times - 1)).turned()


Compare = Callable[[Reals, Reals], Reals]


def compared_values(ours: Sample, theirs: Sample, q: float, how: Compare) -> Interval | None:
    """A quantile of ours against theirs, over the same viewers."""
    quantiles = (intervals.quantile_bounds(sample, q)[0] for sample in (ours, theirs))
    found = intervals.interval(how(*quantiles), ours.layout) if ours.groups else None
    carried = found is not None and all(intervals.carries(sample, q) for sample in (ours, theirs))
    return found if carried or found is None else found.without_ends()


class Plays:
    """The plays of a campaign, or of one of its days."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = list(rows)
        self._videos = max((len(row.get("first_frames_s") or ()) for row in rows), default=1)
        self._of: dict[str, dict[ViewerKey, Row]] = {}
        self._known: dict[tuple[str, str, float, int], Reals] = {}
        self._carried: dict[tuple[str, str, float, int], bool] = {}
        for row in rows:
            self._of.setdefault(row["arm"], {})[row["day"], row["viewer"]] = row

    @property
    def arms(self) -> list[str]:
        return list(self._of)

    @property
    def days(self) -> list[int]:
        return sorted({row["day"] for row in self.rows})

    def day(self, day: int) -> Plays:
        return Plays([row for row in self.rows if row["day"] == day])

    def where(self, keep: Callable[[Row], bool]) -> Plays:
        return Plays([row for row in self.rows if keep(row)])

    def viewers(self) -> int:
        return len({(row["day"], row["viewer"]) for row in self.rows})

    def count(self, arm: str) -> int:
        return len(self._of[arm])

    def flat(self, what: What, arm: str) -> list[float]:
        return [value for row in self._of[arm].values() for value in self.values(row, what)]

    def values(self, row: Row, what: What) -> list[float]:
        """What one of these plays contributes."""
        return values_of(row, what, self._videos)

    def _keys(self, *arms: str) -> list[ViewerKey]:
        return sorted(set.intersection(*(set(self._of.get(arm, {})) for arm in arms)))

    def _sample(self, what: What, arm: str, keys: Sequence[ViewerKey]) -> Sample:
        groups = [self.values(self._of[arm][key], what) for key in keys]
        return Sample(groups, Layout.of_independent(len(groups)))

    def _quantiles(self, what: What, arm: str, keys: Sequence[ViewerKey], q: float) -> Reals:
        """The quantile over these viewers, and over every resample of them; each is asked for more than once."""
        place = (what, arm, q, hash(tuple(keys)))
        if place not in self._known:
            self._known[place], _ = intervals.quantile_bounds(self._sample(what, arm, keys), q)
        return self._known[place]

    def _carries(self, what: What, arm: str, keys: Sequence[ViewerKey], q: float) -> bool:
        """Whether the sample carries the quantile: docs/reference/statistics.md."""
        place = (what, arm, q, hash(tuple(keys)))
        if place not in self._carried:
            self._carried[place] = intervals.carries(self._sample(what, arm, keys), q)
        return self._carried[place]

    def quantile(self, what: What, arm: str, q: float) -> Interval | None:
        keys = self._keys(arm)
        if not keys:
            return None
        found = _interval(self._quantiles(what, arm, keys, q), keys)
        return found if found is None or self._carries(what, arm, keys, q) else found.without_ends()

    def compare_quantile(self, what: What, q: float, ours: str, theirs: str, how: Compare) -> Interval | None:
        keys = self._keys(ours, theirs)
        if not keys:
            return None
        found = _interval(how(self._quantiles(what, ours, keys, q), self._quantiles(what, theirs, keys, q)), keys)
        carried = all(self._carries(what, arm, keys, q) for arm in (ours, theirs))
        return found if found is None or carried else found.without_ends()

    def to_carry(self, what: What, q: float, *arms: str) -> int:
        """How many viewers like these carry a quantile under each arm, at least: the values of one viewer depend on
        each other, so their effective number counts."""
        viewers = self.viewers()
        fewest = min(self._carrying(what, arm, q) for arm in arms)
        wanted = math.ceil(viewers * intervals.values_for(q) / max(1.0, fewest))
        return max(wanted, intervals.windows_for(q), viewers + 1)

    def _carrying(self, what: What, arm: str, q: float) -> float:
        """The effective number of values that an interval of the quantile may count on."""
        sample = self._sample(what, arm, list(self._of[arm]))
        values = [value for group in sample.groups for value in group]
        if not values:
            return 0.0
        return intervals.carrying_count(sample, nearest_rank(values, q))

    def to_meet(self, event: Callable[[Row], bool], *arms: str) -> int:
        """How many viewers like these meet as many events under each arm as a rate's interval takes, at least."""
        viewers, fewest = self.viewers(), min(sum(map(event, self._of[arm].values())) for arm in arms)
        return max(math.ceil(viewers * intervals.FEWEST / max(1, fewest)), viewers + 1)

    def _plays(self, arm: str, keys: Sequence[ViewerKey]) -> list[ViewersPlay]:
        return [ViewersPlay(self._of[arm][key]) for key in keys]

    def _below(self, arm: str, keys: Sequence[ViewerKey], limit_ms: float) -> Sums:
        samples = [self._of[arm][key]["play_time_left_ms"] for key in keys]
        under = [float(sum(value < limit_ms for value in group)) for group in samples]
        return Sums.of(under, [float(len(group)) for group in samples])

    def value(self, figure: Figure, arm: str) -> float:
        """The value of a ratio; NaN if it has none."""
        return figure.sums(self._plays(arm, self._keys(arm))).value

    def level(self, figure: Figure, arm: str) -> Interval | None:
        keys = self._keys(arm)
        return figure.level(self._plays(arm, keys), Layout.of_independent(len(keys))) if keys else None

    def below(self, arm: str, limit_ms: float) -> Interval | None:
        """Share of the samples of play-time left below a limit."""
        return _rare(self._below(arm, self._keys(arm), limit_ms))

    def rebuffer_improvement(self, ours: str, theirs: str) -> Interval | None:
        """In percent of theirs."""
        keys = self._keys(ours, theirs)
        sums = (REBUFFER_RATE.sums(self._plays(arm, keys)) for arm in (ours, theirs))
        return compared_rates(*sums)

    def below_improvement(self, limit_ms: float, ours: str, theirs: str) -> Interval | None:
        keys = self._keys(ours, theirs)
        return compared_rates(self._below(ours, keys, limit_ms), self._below(theirs, keys, limit_ms))
