"""How a figure is computed for one play and for many plays, and with which interval.

A figure pools its plays in one of three ways:

    Quantile    the nearest-rank quantile over all values of all plays
    Ratio       sum(top) / sum(bottom) over the plays
    Share       the share of plays in which something happened

docs/reference/statistics.md has the rules of the intervals.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Literal, Protocol

from railyard.figures.play import Play
from railyard.stats import intervals, quantiles, rates, statistics
from railyard.stats.bootstrap import Layout
from railyard.stats.changes import Bounds
from railyard.stats.intervals import TOO_SMALL, Interval, moves, sign_of_bound
from railyard.stats.quantiles import Sample
from railyard.stats.rates import Sums
from railyard.stats.statistics import nearest_rank

Plays = Sequence[Play]
Values = Sequence[tuple[float, bool]]
"""Each value, and whether it is exact. A value that is not is a bound."""
Unit = Literal["s", "%"]

NONE = "–"
MARGINS: dict[Unit, float] = {"s": 0.02, "%": 0.005}
"""The margin of "no worse": for times a share of the other scheme's, for shares a difference (0.005: half a point)."""


@dataclass(frozen=True)
class Point:
    """A figure of these plays, without an interval. A value that was computed from censored ones is a bound."""

    value: float
    at_least: bool = False
    at_most: bool = False

    @property
    def bound(self) -> str:
        return sign_of_bound(self.at_least, self.at_most)

    def text(self, form: str) -> str:
        return f"{self.bound}{self.value:{form}}"


class Pool(Protocol):
    """How the plays of a scheme are pooled into one figure."""

    @property
    def rule(self) -> str:
        """The rule of its interval, as docs/reference/metrics.md prints it."""
        ...

    def point(self, plays: Plays) -> Point | None: ...
    def bounds(self, plays: Plays, layout: Layout) -> Bounds: ...
    def level(self, plays: Plays, layout: Layout) -> Interval | None: ...


def _always(_: Play) -> bool:
    return True


def point_of(values: Values, q: float, *, upper: bool = False) -> Point | None:
    """The nearest-rank quantile. It is a bound if a censored value moves it. `upper`: values that are not exact are
    upper bounds, else lower bounds."""
    if not values:
        return None
    value = nearest_rank([value for value, _ in values], q)
    end = nearest_rank([value if exact else -math.inf if upper else math.inf for value, exact in values], q)
    is_bound = moves(value, end)
    return Point(value, at_least=is_bound and end > value, at_most=is_bound and end < value)


@dataclass(frozen=True)
class Quantile:
    """The nearest-rank quantile over all values of all plays. Interval: order statistics (Woodruff 1952)."""

    values: Callable[[Play], Values]
    q: float
    upper: bool = False
    """Values that are not exact are upper bounds."""
    things: str = "requests"
    """The unit that has a value, in the plural."""
    if_carried: bool = False
    """A table shows it only if this number of independent values would carry it."""
    is_known: Callable[[Play], bool] = _always
    """Whether all values of a play are known. If one play's are not, there is no figure."""

    def point(self, plays: Plays) -> Point | None:
        if not all(self.is_known(play) for play in plays):
            return None
        return point_of([one for play in plays for one in self.values(play)], self.q, upper=self.upper)

    @property
    def rule(self) -> str:
        return "order statistics" if self.q < 1 else ""

    def carries(self, count: int) -> bool:
        """Whether `count` independent values carry the quantile. If not, even their maximum may be below it."""
        return self.q == 1.0 or count >= quantiles.values_for(self.q)

    def count(self, plays: Plays) -> int:
        return sum(len(self.values(play)) for play in plays)

    def sample(self, plays: Plays, layout: Layout) -> Sample:
        groups = [self.values(play) for play in plays]
        return Sample.of(
            [[value for value, _ in group] for group in groups],
            layout,
            [[exact for _, exact in group] for group in groups],
            at_most=self.upper,
        )

    def bounds(self, plays: Plays, layout: Layout) -> Bounds:
        return quantiles.quantile_bounds(self.sample(plays, layout), self.q)

    def level(self, plays: Plays, layout: Layout) -> Interval | None:
        return quantiles.quantile(self.sample(plays, layout), self.q)


@dataclass(frozen=True)
class Ratio:
    """sum(top) / sum(bottom) over the plays. Interval: the bootstrap, or for a rare event railyard/stats/rates.py."""

    top: Callable[[Play], float]
    bottom: Callable[[Play], float]
    is_rare: bool = False
    is_known: Callable[[Play], bool] = _always
    """Whether a play reports both. A play that does not is left out, and the figure then has no interval."""
    is_bound: Callable[[Play], bool] = lambda _: False
    """Whether a play's share is a lower bound. One such play makes the figure a lower bound."""

    @property
    def rule(self) -> str:
        return "rate of events" if self.is_rare else "bootstrap"

    def sums(self, plays: Plays) -> Sums:
        return Sums.of([self.top(play) for play in plays], [self.bottom(play) for play in plays])

    def point(self, plays: Plays) -> Point | None:
        known = [play for play in plays if self.is_known(play)]
        bottom = sum(self.bottom(play) for play in known)
        return Point(sum(map(self.top, known)) / bottom, any(map(self.is_bound, known))) if bottom > 0 else None

    def bounds(self, plays: Plays, layout: Layout) -> Bounds:
        ratios = self.sums(plays).resampled(layout)
        return ratios, ratios

    def level(self, plays: Plays, layout: Layout) -> Interval | None:
        if self.is_rare:
            level = rates.level(self.sums(plays), layout)
        else:
            level = intervals.interval(self.bounds(plays, layout)[0], layout)
        return None if level is None else replace(level, at_least=any(map(self.is_bound, plays)))


@dataclass(frozen=True)
class Share:
    """The share of plays in which something happened."""

    of: Callable[[Play], float]
    """1 or 0."""
    against: Callable[[float, float], bool] | None = None
    """Compares the values of two paired plays. None: each counts for itself."""

    @property
    def rule(self) -> str:
        return "exact"

    def point(self, plays: Plays) -> Point | None:
        return Point(sum(self.of(play) for play in plays) / len(plays)) if plays else None

    def bounds(self, plays: Plays, layout: Layout) -> Bounds:
        return Ratio(self.of, lambda _: 1.0).bounds(plays, layout)

    def level(self, plays: Plays, layout: Layout) -> Interval | None:
        return Ratio(self.of, lambda _: 1.0).level(plays, layout)


@dataclass(frozen=True)
class Gate:
    """How the gate compares a figure."""

    floor: float
    """The smallest change for the worse that counts: relative to the baseline for times, absolute for shares."""
    title: str = ""
    """If it differs from the figure's."""


@dataclass(frozen=True)
class Figure:
    """One row: a figure of a scheme over many plays. Higher is worse, except for efficiency."""

    name: str
    """The name in code, YAML and JSON."""
    title: str
    """The name in sentences and tables."""
    unit: Unit
    """Times are compared by their ratio, shares (0 to 1, printed in %) by their difference."""
    pool: Pool
    meaning: str = ""
    """The definition, in docs/reference/metrics.md and on the page."""
    _: KW_ONLY
    example: str = ""
    term: str = ""
    """Its name in a definition, if that is not the title."""
    where: str = ""
    """The columns of the results store that it is computed from."""
    head: tuple[str, str] | None = None
    """The two lines of its column's heading in terminal and page. None: it has no column."""
    bar_digits: int | None = None
    """Decimals of its bars on the page, one bar for each scheme. None: it has no bars."""
    is_compared: bool = False
    """`railyard compare` and the page compare schemes by it."""
    gate: Gate | None = None
    is_there: Callable[[Play], bool] = _always
    """Whether a single play has it."""
    without: float = math.inf
    """The value of a play that does not have it."""

    # --- of one play ---

    def of(self, play: Play) -> float:
        """The value of one play, as the gate compares it."""
        if isinstance(self.pool, Share):
            return self.pool.of(play)
        return self.value([play]) if self.is_there(play) else self.without

    def of_pair(self, before: Play, after: Play) -> tuple[float, float]:
        """The values of two plays with the same start."""
        first, second = self.of(before), self.of(after)
        if isinstance(self.pool, Share) and self.pool.against is not None:
            return float(self.pool.against(first, second)), float(self.pool.against(second, first))
        return first, second

    def deltas(self, before: Sequence[float], after: Sequence[float]) -> list[float]:
        """The values that are tested, pair by pair: log(after / before) of times, after − before of shares."""
        return (statistics.log_ratios if self.is_relative else statistics.differences)(before, after)

    # --- of many plays ---

    @property
    def is_relative(self) -> bool:
        return self.unit == "s"

    @property
    def is_counted(self) -> bool:
        return isinstance(self.pool, Share)

    @property
    def margin(self) -> float:
        return MARGINS[self.unit]

    @property
    def name_in_definition(self) -> str:
        return self.term or self.title

    @property
    def gate_title(self) -> str:
        return (self.gate.title if self.gate else "") or self.title

    def point(self, plays: Plays) -> Point | None:
        return self.pool.point(plays)

    def value(self, plays: Plays) -> float:
        """The point as a number; `without` if there is none."""
        point = self.pool.point(plays)
        return self.without if point is None else point.value

    def level(self, plays: Plays, layout: Layout) -> Interval | None:
        return self.pool.level(plays, layout)

    def bounds(self, plays: Plays, layout: Layout) -> Bounds:
        return self.pool.bounds(plays, layout)

    @property
    def has_interval(self) -> bool:
        """False for a maximum, which is about these plays alone."""
        return not (isinstance(self.pool, Quantile) and self.pool.q == 1.0)

    @property
    def is_if_carried(self) -> bool:
        return isinstance(self.pool, Quantile) and self.pool.if_carried

    @property
    def is_rare(self) -> bool:
        return isinstance(self.pool, Ratio) and self.pool.is_rare

    def sums(self, plays: Plays) -> Sums:
        """The contributions of each play to a ratio."""
        if not isinstance(self.pool, Ratio):
            raise TypeError(f"{self.title} is no ratio")
        return self.pool.sums(plays)

    def is_known(self, plays: Plays) -> bool:
        """Whether every play reports what the figure needs."""
        pool = self.pool
        return not isinstance(pool, Quantile | Ratio) or all(pool.is_known(play) for play in plays)

    def shown(self, plays: Plays) -> Point | None:
        """The point that a table shows: None if the values do not carry the quantile."""
        pool = self.pool
        if isinstance(pool, Quantile) and pool.if_carried:
            return pool.point(plays) if pool.carries(pool.count(plays)) else None
        return pool.point(plays)

    def text(self, plays: Plays) -> str:
        """The cell of a table: "≥ 1.234", "5.1 %", "n too small"; "–" if there is no value."""
        value = self.shown(plays)
        if value is not None:
            return value.text(".3f") if self.unit == "s" else f"{replace(value, value=100 * value.value).text('.1f')} %"
        return NONE if self.pool.point(plays) is None else TOO_SMALL
