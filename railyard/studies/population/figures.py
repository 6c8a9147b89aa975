"""Figures over the plays of a population: pooled quantiles, rates, and paired comparisons with intervals.

All arms have the same viewers. Intervals come from a bootstrap over viewers, who are independent of each other, unlike
the requests of one viewer. A drawn viewer counts with all of its requests, under both arms.

Plays are rows of a Parquet file (parts.py), in the order of days, viewers and arms. DuckDB selects and counts them;
they are never Python objects. Above MOST_UNITS viewers the bootstrap draws groups of neighbours, to bound its memory:
groups of equal size are independent because viewers are.
"""

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from railyard.base.errors import UserError
from railyard.figures.figure import Figure
from railyard.figures.rows import RCT_MEDIAN, RCT_P95, RCT_P99, REBUFFER_RATE, REINJECTION_COST
from railyard.stats import intervals, rates
from railyard.stats.bootstrap import FEWEST, Layout, Reals
from railyard.stats.intervals import Interval
from railyard.stats.quantiles import Sample, carries, carrying_count, quantile_bounds, values_for, windows_for
from railyard.stats.rates import Sums
from railyard.stats.statistics import place
from railyard.studies.population.table import Table

METHOD = intervals.METHOD.replace("over runs", "over viewers, paired between arms").replace("few runs", "few viewers")
MOST_UNITS = 20_000

What = Literal["rct", "first_frame", "later_first_frame", "play_time_left"]
Compare = Callable[[Reals, Reals], Reals]

# In SQL: the contributions of a play to numerator and denominator of a rate. If its first frame never came, the time
# waited for it counts as stalled.
RATES = {
    REBUFFER_RATE.name: ("rebuffer_time_s + coalesce(waited_s, 0)", "play_time_s"),
    REINJECTION_COST.name: ("reinjected_bytes", "stream_bytes_sent - reinjected_bytes"),
}
RCT_QUANTILES = {RCT_MEDIAN.name: 0.5, RCT_P95.name: 0.95, RCT_P99.name: 0.99}
STALLED = "rebuffer_time_s > 0"
# The duration of a play, to its end or its time limit.
LASTED_S = "coalesce(nullif(first_frame_s, 0), waited_s, 0) + play_time_s + rebuffer_time_s"


def values_in_sql(videos: int, chunk_bytes: int | None = None) -> dict[What, str]:
    """The lists of values of a play with `videos` videos, in SQL. A request or frame that never arrived counts with the
    time waited, and the first frame of a video that was never reached with the duration of the play: lower bounds.
    `chunk_bytes`: only requests of that size, without the last one of a video, which may be smaller."""
    sql_slice = "" if chunk_bytes is None else f"[: trunc(duration_s * bitrate_bps / 8)::BIGINT // {chunk_bytes}]"
    return {
        "rct": f"rct_s{sql_slice}",
        "first_frame": "list_filter([coalesce(first_frame_s, waited_s)], lambda s: s IS NOT NULL)",
        "later_first_frame": f"list_resize(first_frames_s[2:], {videos - 1}, {LASTED_S})",
        "play_time_left": "list_transform(play_time_left_ms, lambda ms: round_even(ms::DOUBLE, 0))",
    }


def improvement(ours: Reals, theirs: Reals) -> Reals:
    """The difference theirs − ours in percent of theirs. NaN if theirs is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        result: Reals = np.where(theirs > 0, 100 * (1 - ours / theirs), np.nan)
    return result


def increase(ours: Reals, theirs: Reals) -> Reals:
    return -improvement(ours, theirs)


def _lower(ours: Sums, theirs: Sums) -> Interval | None:
    """The difference of two rates, theirs − ours in percent of theirs, over the same viewers."""
    ratio = rates.ratio(ours, theirs, Layout.of_independent(len(ours.top)))
    return None if ratio is None else ratio.mapped(lambda times: 100 * (times - 1)).turned()


class Plays:
    """The plays of a file, or of those of its viewers that meet a condition in SQL."""

    def __init__(self, table: Table, condition: str = "true", chunk_bytes: int | None = None) -> None:
        self._table = table
        self._condition = condition
        self._chunk_bytes = chunk_bytes
        self._quantiles: dict[tuple[What, str, float], tuple[Reals, bool]] = {}
        self._parts: dict[tuple[str, int | None], Plays] = {}

    @classmethod
    def of_file(cls, file: Path) -> "Plays":
        plays = cls(Table(file))
        if len(set(plays._counts.values())) > 1:
            raise UserError(f"{file}: some viewers lack an arm; the command that made it writes it again.")
        return plays

    # --- selections ---

    def day(self, day: int) -> "Plays":
        return self.where(f"day = {day}")

    def where(self, condition: str) -> "Plays":
        """The plays that meet a condition on properties that viewers have under all arms."""
        return self._part(f"{self._condition} AND {condition}", self._chunk_bytes)

    def of_size(self, chunk_bytes: int) -> "Plays":
        """The plays with only the requests of a whole chunk."""
        return self._part(self._condition, chunk_bytes)

    def _part(self, condition: str, chunk_bytes: int | None) -> "Plays":
        part = self._parts.get((condition, chunk_bytes))
        if part is None:
            part = self._parts[condition, chunk_bytes] = Plays(self._table, condition, chunk_bytes)
        return part

    def ask(self, select: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The answer to a query on these plays, which is held in memory. In SQL they are `own`."""
        return self._table.rows(self._of_own(select), parameters)

    def _of_own(self, select: str) -> str:
        return f"WITH own AS NOT MATERIALIZED (FROM plays WHERE {self._condition}) {select}"

    @cached_property
    def _counts(self) -> dict[str, int]:
        """The number of plays of each arm, in order of appearance."""
        return dict(self.ask("SELECT arm, count(*) FROM own GROUP BY arm ORDER BY min(file_row_number)"))

    @property
    def arms(self) -> list[str]:
        return list(self._counts)

    @cached_property
    def days(self) -> list[int]:
        return [day for (day,) in self.ask("SELECT DISTINCT day FROM own ORDER BY day")]

    def viewers(self) -> int:
        return max(self._counts.values(), default=0)

    def count(self, arm: str) -> int:
        return self._counts.get(arm, 0)

    def viewers_who(
        self,
        conditions: Sequence[str],
        value: str,
        arms: dict[str, str],
        worst: tuple[str, int] | None = None,
    ) -> list[int]:
        """The number of viewers that meet each condition on their scene and on the values of their plays, which are
        named by `arms`. `worst`: counts only the given number of viewers with the greatest values of that name."""
        columns = ", ".join(f"max({value}) FILTER (arm = ?) AS {name}" for name in arms)
        each = f"FROM own SELECT day, viewer, any_value(scene) AS scene, {columns} GROUP BY day, viewer"
        if worst is not None:
            each += f" ORDER BY {worst[0]} DESC, day DESC, viewer DESC LIMIT {worst[1]}"
        counts = ", ".join(f"count(*) FILTER (WHERE {condition})" for condition in conditions)
        return list(self.ask(f"FROM ({each}) SELECT {counts}", list(arms.values()))[0])

    # --- quantiles ---

    @cached_property
    def _videos(self) -> int:
        ((videos,),) = self._table.rows("SELECT coalesce(max(len(first_frames_s)), 1) FROM plays")
        return int(videos)

    def values(self, what: What) -> str:
        """The list of a play's values, in SQL."""
        return values_in_sql(self._videos, self._chunk_bytes)[what]

    def points(self, what: What, arm: str, quantiles: Sequence[float]) -> list[float | None]:
        """Nearest-rank quantiles without intervals. None without a value."""
        ((count,),) = self.ask(f"FROM own SELECT coalesce(sum(len({self.values(what)})), 0) WHERE arm = ?", [arm])
        if not count:
            return [None] * len(quantiles)
        places = [place(int(count), q) for q in quantiles]
        every = f"FROM own SELECT unnest({self.values(what)}) AS value WHERE arm = ?"
        ranked = f"FROM ({every}) SELECT row_number() OVER (ORDER BY value) - 1 AS place, value"
        by_place = dict(self.ask(f"FROM ({ranked}) WHERE place = ANY(?)", [arm, places]))
        return [float(by_place[each]) for each in places]

    @property
    def _together(self) -> int:
        """The number of neighbours that are drawn together."""
        return max(1, math.ceil(self.viewers() / MOST_UNITS))

    def sample(self, what: What, arm: str) -> Sample:
        values, lengths = self._table.lists(self._of_own(f"FROM own SELECT {self.values(what)} WHERE arm = ?"), [arm])
        units = (np.arange(len(lengths)) // self._together).astype(np.int32)
        layout = Layout.of_independent(math.ceil(len(lengths) / self._together))
        return Sample.of_values(values, np.repeat(units, lengths), layout)

    def _drawn(self, what: What, arm: str, q: float) -> tuple[Reals, bool]:
        """The quantile over these viewers and over every resample, and whether the sample carries it
        (docs/reference/statistics.md). Cached, as each is used more than once."""
        key = (what, arm, q)
        if key not in self._quantiles:
            sample = self.sample(what, arm)
            self._quantiles[key] = quantile_bounds(sample, q)[0], carries(sample, q)
        return self._quantiles[key]

    def _interval(self, drawn: Reals, *, carried: bool) -> Interval | None:
        layout = Layout.of_independent(math.ceil(self.viewers() / self._together))
        interval = intervals.interval(drawn, layout)
        return interval if interval is None or carried else interval.without_ends()

    def quantile(self, what: What, arm: str, q: float) -> Interval | None:
        if not self.count(arm):
            return None
        drawn, carried = self._drawn(what, arm, q)
        return self._interval(drawn, carried=carried)

    def compare_quantile(self, what: What, q: float, ours: str, theirs: str, how: Compare) -> Interval | None:
        if not (self.count(ours) and self.count(theirs)):
            return None
        (our_drawn, our_carried), (their_drawn, their_carried) = (self._drawn(what, arm, q) for arm in (ours, theirs))
        return self._interval(how(our_drawn, their_drawn), carried=our_carried and their_carried)

    def to_carry(self, what: What, q: float, *arms: str) -> int:
        """The least number of viewers like these that carries a quantile under each arm. The values of one viewer
        depend on each other, so their effective number counts."""
        viewers = self.viewers()
        fewest = min(self._carrying(what, arm, q) for arm in arms)
        wanted = math.ceil(viewers * values_for(q) / max(1.0, fewest))
        return max(wanted, windows_for(q), viewers + 1)

    def _carrying(self, what: What, arm: str, q: float) -> float:
        """The effective number of independent values for the quantile's interval."""
        sample = self.sample(what, arm)
        if not sample.count:
            return 0.0
        return carrying_count(sample, float(sample.values[place(sample.count, q)]))

    def to_meet(self, event: str, *arms: str) -> int:
        """The least number of viewers like these that has enough events (in SQL) under each arm for a rate's
        interval."""
        viewers, fewest = self.viewers(), min(self.meeting(event, arm) for arm in arms)
        return max(math.ceil(viewers * FEWEST / max(1, fewest)), viewers + 1)

    def meeting(self, event: str, arm: str) -> int:
        """The number of plays of an arm that meet a condition in SQL."""
        ((count,),) = self.ask(f"FROM own SELECT count(*) WHERE arm = ? AND ({event})", [arm])
        return int(count)

    # --- rates ---

    def _sums(self, arm: str, top: str, bottom: str) -> Sums:
        """The contributions to a rate of each viewer, or of each group that is drawn together."""
        each = f"FROM own SELECT {top} AS top, {bottom} AS bottom, row_number() OVER () - 1 AS number WHERE arm = ?"
        unit = f"number // {self._together}"
        sums = f"FROM ({each}) SELECT sum(top)::DOUBLE, sum(bottom)::DOUBLE GROUP BY {unit} ORDER BY {unit}"
        return Sums(*self._table.columns(self._of_own(sums), [arm]))

    def _below(self, arm: str, limit_ms: float) -> Sums:
        under = f"len(list_filter(play_time_left_ms, lambda ms: ms < {limit_ms!r}::DOUBLE))"
        return self._sums(arm, under, "len(play_time_left_ms)")

    def value(self, figure: Figure, arm: str) -> float:
        """The value of a ratio; NaN if it has none."""
        return self._sums(arm, *RATES[figure.name]).value

    def level(self, figure: Figure, arm: str) -> Interval | None:
        if not self.count(arm):
            return None
        sums = self._sums(arm, *RATES[figure.name])
        layout = Layout.of_independent(len(sums.top))
        return rates.level(sums, layout) if figure.is_rare else intervals.interval(sums.resampled(layout), layout)

    def below(self, arm: str, limit_ms: float) -> Interval | None:
        """The share of samples of play-time left below a limit."""
        sums = self._below(arm, limit_ms)
        return rates.level(sums, Layout.of_independent(len(sums.top)))

    def rebuffer_improvement(self, ours: str, theirs: str) -> Interval | None:
        """The difference of rebuffer rates, theirs − ours in percent of theirs."""
        return _lower(*(self._sums(arm, *RATES[REBUFFER_RATE.name]) for arm in (ours, theirs)))

    def below_improvement(self, limit_ms: float, ours: str, theirs: str) -> Interval | None:
        return _lower(self._below(ours, limit_ms), self._below(theirs, limit_ms))
