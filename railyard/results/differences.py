"""Differences between the schemes of a campaign, and which are established. Plays are paired by traces and start.

docs/reference/statistics.md states the rules. Runs that overlap in a pair's traces are resampled together.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np

from railyard.base.errors import UserError
from railyard.base.lists import grouped
from railyard.base.yamlfile import near_miss
from railyard.figures.figure import Figure, Quantile
from railyard.figures.rows import COMPARED, REDUNDANCY
from railyard.results import shortage
from railyard.results.records import Run
from railyard.results.shortage import Shortage
from railyard.stats import changes, design, distributions, intervals, rates, statistics, wording
from railyard.stats.bootstrap import FEWEST, Layout
from railyard.stats.changes import Bounds, Change
from railyard.stats.intervals import Interval

ALL = "all"
ALPHA = 0.05
SINGLE = ("sp", "cm", "tcp")  # schemes that use one path at a time
BEST = "sp:best"  # for each pair, the single path with the lower value of the figure that is compared
NO_VALUE = "no value"
ROUNDING_S = 0.001  # starts are whole ms


def neighbours(offsets_s: Sequence[float], length_s: float) -> int:
    """The largest number of plays that start within `length_s` from the start of one of them, which counts too. 1 for
    plays of length 0, whose program failed at once."""
    ordered, most, end = sorted(offsets_s), 1, 0
    for begin, start in enumerate(ordered):
        while end < len(ordered) and ordered[end] - start < length_s:
            end += 1
        most = max(most, end - begin)
    return most


def is_spread(offsets_s: Sequence[float]) -> bool:
    """Whether plays start at multiples of one distance, rounded to ms, as with `start_offset_ms: spread`. Some may be
    missing. Example: True for 0, 6 and 18 s, False for 0, 6 and 7.5 s."""
    ordered = sorted(offsets_s)
    distance = min((later - start for start, later in pairwise(ordered)), default=math.inf)
    if not 0 < distance < math.inf:
        return distance == math.inf
    distance = ordered[-1] / round(ordered[-1] / distance)
    return all(abs(start - round(start / distance) * distance) <= 2 * ROUNDING_S for start in ordered)


def layout_of(runs: Sequence[Run], others: Sequence[Run] = ()) -> Layout:
    """The layout of plays. Clusters are pairs of traces, with plays in the order of their start offsets; a block has as
    many plays as overlap. `others`: plays at the same places; the longer side decides what overlaps."""
    length_s = max(median([run.ended_s for run in side]) for side in (runs, others) if side)
    by_pair = grouped((run.pair, number) for number, run in enumerate(runs))
    start = [float(run.config["start_offset_ms"]) / 1000 for run in runs]
    clusters = [tuple(sorted(of_pair, key=lambda number: (start[number], number))) for of_pair in by_pair.values()]
    starts = [[start[number] for number in cluster] for cluster in clusters]
    blocks = tuple(neighbours(of_pair, length_s) for of_pair in starts)
    return Layout(tuple(clusters), blocks, spread=all(map(is_spread, starts)))


# --- differences ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """One figure of a scheme compared with another scheme, over one pair of traces or over all."""

    pair: str
    label: str
    against: str
    figure: Figure
    ours: Interval | None
    theirs: Interval | None
    change: Change | None
    """For pairs of traces like these; if there are too few pairs, the same as `here`. None: a figure has no value."""
    here: Change | None
    """For these pairs."""
    plays: int
    signed_rank: float | None = None
    """Two-sided p of the gate's test over windows of trace. None: the gate does not compare the figure."""
    adjusted: float = 1.0
    """Holm's p over the family: `adjusted` for pairs like these, `adjusted_here` for these pairs."""
    adjusted_here: float = 1.0

    @property
    def carried(self) -> bool:
        """Whether the difference has an interval. The schemes' own figures may have none: the uncertainty of a tail
        comes mostly from the trace, which both schemes share."""
        return any(one is not None and one.interval.known for one in (self.change, self.here))

    @property
    def has_levels(self) -> bool:
        """Whether both schemes' own figures have an interval too."""
        return all(one is not None and one.known for one in (self.ours, self.theirs))

    @property
    def verdict(self) -> str:
        """'lower', 'higher': established for pairs like these; 'alike' and 'no worse': within the margin; the same with
        ' here': for these pairs alone; 'not decided'; 'n too small'; 'no value': a figure has no value."""
        if self.ours is None or self.theirs is None:
            return NO_VALUE
        if self.change is None or self.here is None or not self.carried:
            return intervals.TOO_SMALL
        if self.adjusted < ALPHA:
            return _side(self.change)
        if self.adjusted_here < ALPHA:
            return f"{_side(self.here)} here"
        return _within(self.change, self.figure) or _within(self.here, self.figure, " here") or "not decided"

    def is_higher(self, alpha: float) -> bool:
        """Whether the figure is higher for these pairs at level `alpha`. The p value is not corrected."""
        return self.here is not None and self.carried and self.here.p_more < self.here.p_less and _p(self.here) < alpha

    @property
    def no_lower(self) -> bool:
        """Whether it is established, at 5 %, that it is not lower by more than the margin, for these pairs."""
        return self.carried and self._no_lower(self.here)

    @property
    def no_lower_elsewhere(self) -> bool:
        """Like `no_lower`, for pairs like these."""
        return self.carried and self._no_lower(self.change)

    def _no_lower(self, change: Change | None) -> bool:
        return change is not None and change.inner.low > -self.figure.margin

    @property
    def words(self) -> str:
        """ "−30 % [−45, −12]", with the interval for pairs like these. Rates are in percentage points."""
        return self._words(self.change)

    @property
    def value_words(self) -> str:
        """The first part of `words`: "−30 %"."""
        return self.words.partition(" [")[0]

    @property
    def ends_words(self) -> str:
        """The interval of `words`: "[−45, −12]"."""
        return "".join(self.words.partition("[")[1:])

    @property
    def words_here(self) -> str:
        """Like `words`, with the narrower interval for these pairs if there are enough plays for it."""
        return self._words(self.here if self.here is not None and self.here.interval.known else self.change)

    @property
    def levels_words(self) -> str:
        """The two schemes' figures: "scheme / other scheme"."""
        scale, form = (1.0, ".3f") if self.figure.is_relative else (100.0, ".2f")
        return " / ".join(level_words(side, form, scale) for side in (self.ours, self.theirs))

    def _words(self, change: Change | None) -> str:
        if change is None:
            return "–"
        interval = change.interval
        unit = " %" if self.figure.is_relative else " points"
        said = "–" if interval.is_unknown else f"{interval.bound}{_signed(interval.value, self.figure)}{unit}"
        return f"{said} [{interval.ends(lambda end: _signed(end, self.figure))}]"

    @property
    def needs(self) -> str:
        """The number of units that would establish the difference for pairs like these, in words. Empty: it is
        established, or the number is unknown."""
        if self.change is None or not self.carried or self.adjusted < ALPHA:
            return ""
        wanted = design.units_to_decide(
            self.change.interval, self.change.units, alpha=_corrected_level(self.change, self.adjusted)
        )
        return "" if wanted is None else f"{wanted} {self.change.unit_words} instead of {self.change.units}"

    @property
    def needs_here(self) -> tuple[int, str]:
        """The number of units that would establish the difference for these pairs, and the same in words. (0, ""):
        unknown."""
        if self.here is None or not self.carried:
            return 0, ""
        wanted = design.units_to_decide(
            self.here.interval, self.here.units, alpha=_corrected_level(self.here, self.adjusted_here)
        )
        return (0, "") if wanted is None else (wanted, f"{self.here.unit_words} instead of {self.here.units}")


def _side(change: Change) -> str:
    return "lower" if change.p_less < change.p_more else "higher"


def _within(change: Change, figure: Figure, where: str = "") -> str:
    """Which sides of the margin are excluded: both (alike), the worse one (no worse) or none (empty)."""
    if change.alike(figure.margin):
        return f"alike{where}"
    return f"no worse{where}" if change.no_worse(figure.margin) else ""


def _p(change: Change | None) -> float:
    """The two-sided p value. 1 without a change."""
    return 1.0 if change is None else min(1.0, 2 * min(change.p_less, change.p_more))


def _corrected_level(change: Change, adjusted: float) -> float:
    """The level that Holm's correction leaves this comparison."""
    return ALPHA * _p(change) / adjusted if _p(change) < adjusted < 1 else ALPHA


def _signed(value: float, figure: Figure) -> str:
    return wording.signed(100 * value, digits_of(figure))


def digits_of(figure: Figure) -> int:
    """Decimals of a difference: in percent for times, in percentage points for rates."""
    return 0 if figure.is_relative else 2


def sound(runs: Sequence[Run]) -> list[Run]:
    """The runs that are compared: without void runs and without pairs on which a program failed under the scheme."""
    faulty = {(run.pair, run.label) for run in runs if not run.void and run.is_fault}
    return [run for run in runs if not run.void and (run.pair, run.label) not in faulty]


def common(runs: Sequence[Run], ours: str, theirs: str) -> tuple[list[Run], list[Run]]:
    """The runs of both schemes at the places that both have, in the same order, without void runs."""
    by_place = {
        label: {(run.pair, run.seed): run for run in runs if run.label == label and not run.void}
        for label in (ours, theirs)
    }
    places = [place for place in by_place[ours] if place in by_place[theirs]]
    return [by_place[ours][place] for place in places], [by_place[theirs][place] for place in places]


def single_paths(runs: Sequence[Run]) -> list[str]:
    """The labels of schemes that use one path alone: sp, sp:NAME, sp:best:NAME."""
    labels = dict.fromkeys(run.label for run in runs if run.config["scheme"] == "sp" and not run.void)
    return [label for label in labels if label == "sp" or (label.startswith("sp:") and label != "sp:os")]


def better_path(runs: Sequence[Run], figure: Figure) -> list[Run]:
    """For each pair, the plays on the path with the lower figure, as runs of scheme `sp:best`."""
    labels, best = single_paths(runs), list[Run]()
    of_place = grouped(((run.pair, run.label), run) for run in runs if not run.void)
    for pair in dict.fromkeys(run.pair for run in runs):
        candidates: list[tuple[float, list[Run]]] = []
        for label in labels:
            plays = of_place.get((pair, label), [])
            level = figure.level(plays, layout_of(plays).within()) if plays else None
            candidates.append((level.value if level else math.inf, plays))
        best += min(candidates, key=lambda one: one[0], default=(math.inf, []))[1]
    return [replace(run, record=run.record | {"config": run.config | {"label": BEST}}) for run in best]


def sides(runs: Sequence[Run], label: str, against: str, figure: Figure = COMPARED[0]) -> tuple[list[Run], list[Run]]:
    """The runs of both schemes at the places that both have. The figure decides which single path is the better one."""
    return common([*runs, *better_path(runs, figure)] if BEST in (label, against) else runs, label, against)


def _signed_rank(
    figure: Figure, ours: Sequence[Run], theirs: Sequence[Run], layout: Layout, known: "_Known"
) -> float | None:
    """Two-sided p of the signed-rank test. A window of plays that overlap counts once, with its median difference."""
    if figure.gate is None:
        return None
    deltas = figure.deltas(*([known.value(figure, run) for run in side] for side in (theirs, ours)))
    window = layout.window_of()
    windows = [statistics.middle([deltas[k] for k in np.flatnonzero(window == one)]) for one in range(layout.windows)]
    p_more, p_less = statistics.signed_rank_p(windows), statistics.signed_rank_p([-delta for delta in windows])
    return min(1.0, 2 * distributions.less_certain(min(p_more, p_less), layout.likeness))


class _Known:
    """A cache of figures of the compared runs. More than one comparison uses each."""

    def __init__(self) -> None:
        self._bounds: dict[object, Bounds] = {}
        self._levels: dict[object, Interval | None] = {}
        self._values: dict[tuple[str, str, str, int], float] = {}
        self._better_paths: dict[str, list[Run]] = {}

    def value(self, figure: Figure, run: Run) -> float:
        """The value of a single run, as the gate compares it."""
        key = (figure.name, run.pair, run.label, run.seed)
        if key not in self._values:
            self._values[key] = figure.of(run)
        return self._values[key]

    def better_path(self, runs: Sequence[Run], figure: Figure) -> list[Run]:
        if figure.name not in self._better_paths:
            self._better_paths[figure.name] = better_path(runs, figure)
        return self._better_paths[figure.name]

    def bounds(self, figure: Figure, runs: Sequence[Run], layout: Layout) -> Bounds:
        key = (figure.name, tuple(run.run_id for run in runs), layout)
        if key not in self._bounds:
            self._bounds[key] = figure.bounds(runs, layout)
        return self._bounds[key]

    def change(self, figure: Figure, ours: Sequence[Run], theirs: Sequence[Run], layout: Layout) -> Change | None:
        if figure.is_rare:
            return rates.change(figure.sums(ours), figure.sums(theirs), layout)
        how = changes.relative if figure.is_relative else changes.absolute
        both = self.bounds(figure, ours, layout), self.bounds(figure, theirs, layout)
        of_upper = isinstance(figure.pool, Quantile) and figure.pool.upper
        change = changes.change(*both, layout, how, of_upper=of_upper)
        few = any(_shortage_of_values(figure, side) for side in (ours, theirs))
        return change.without_ends() if change is not None and few else change

    def level(self, figure: Figure, runs: Sequence[Run], layout: Layout) -> Interval | None:
        key = (figure.name, tuple(run.run_id for run in runs), layout)
        if key not in self._levels:
            self._levels[key] = figure.level(runs, layout)
        return self._levels[key]


def _shortage_of_values(figure: Figure, runs: Sequence[Run]) -> Shortage | None:
    """What a quantile lacks if it has too few values, even if all are independent. None: enough, or no quantile."""
    if not isinstance(figure.pool, Quantile):
        return None
    return shortage.of_values(figure.pool.q, figure.pool.count(runs), figure.pool.things, shortage.seeds_of(runs))


def difference(
    pair: str, both: tuple[list[Run], list[Run]], layout: Layout, figure: Figure, known: _Known
) -> Difference:
    """The difference of two schemes over the same pairs and starts."""
    ours, theirs = both
    beyond = known.change(figure, ours, theirs, layout)
    here = known.change(figure, ours, theirs, layout.within()) if layout.by_cluster else beyond
    mine, other = (_level(figure, side, layout, known) for side in (ours, theirs))
    rank = _signed_rank(figure, ours, theirs, layout, known)
    return Difference(pair, ours[0].label, theirs[0].label, figure, mine, other, beyond, here, len(ours), rank)


def _level(figure: Figure, runs: Sequence[Run], layout: Layout, known: _Known) -> Interval | None:
    """The figure with its interval for these traces, or for pairs like these if each trace has too few plays."""
    return _for_these_or_like_these(lambda of: known.level(figure, runs, of), layout)


def _for_these_or_like_these(level: Callable[[Layout], Interval | None], layout: Layout) -> Interval | None:
    interval = level(layout.within())
    return level(layout) if interval is not None and not interval.known and layout.by_cluster else interval


def _over(pair: str, runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if pair in (ALL, run.pair)]


def _sides_of(
    runs: Sequence[Run], names: tuple[str, str], figures: Sequence[Figure], known: _Known
) -> list[tuple[Sequence[Figure], tuple[list[Run], list[Run]]]]:
    """The runs of both schemes at the places that both have, each with the figures that are computed from them."""
    if BEST in names:
        return [([figure], common([*runs, *known.better_path(runs, figure)], *names)) for figure in figures]
    return [(figures, common(runs, *names))]


def differences(
    runs: Sequence[Run],
    comparisons: Iterable[tuple[str, str]],
    figures: Sequence[Figure] = COMPARED,
    *,
    by_pair: bool = False,
) -> list[Difference]:
    """Each scheme against the other, over all pairs together and, with `by_pair`, over each. The comparisons with one
    reference over all pairs are a family for Holm's correction; those over single pairs are another."""
    known, families = _Known(), dict[tuple[str, bool], list[Difference]]()
    for names in comparisons:
        of_figures = _sides_of(runs, names, figures, known)
        pairs = dict.fromkeys(run.pair for _, (ours, _) in of_figures for run in ours) if by_pair else []
        for pair in (ALL, *pairs):
            family = families.setdefault((names[1], pair == ALL), [])
            for some, (ours, theirs) in of_figures:
                both = _over(pair, ours), _over(pair, theirs)
                if both[0]:
                    layout = layout_of(*both)
                    family += [difference(pair, both, layout, figure, known) for figure in some]
    return [one for family in families.values() for one in corrected(family)]


def corrected(family: Sequence[Difference]) -> list[Difference]:
    tested = [one for one in family if one.change is not None and one.carried]
    beyond = iter(statistics.holm([_p(one.change) for one in tested]))
    here = iter(statistics.holm([_p(one.here) for one in tested]))
    return [
        replace(one, adjusted=next(beyond), adjusted_here=next(here)) if one.change is not None and one.carried else one
        for one in family
    ]


def usual(runs: Sequence[Run], others: Sequence[str] = ("sp", BEST, "vanilla-mp")) -> list[tuple[str, str]]:
    """The comparisons of a report: every scheme against single path on the primary path, every other multipath scheme
    against the better single path and against plain multipath. If none of these was played: every scheme against the
    first one."""
    schemes = {run.label: str(run.config["scheme"]) for run in runs if not run.void}
    if len(single_paths(runs)) > 1:
        schemes[BEST] = "sp"
    if not any(other in schemes for other in others):
        return [(label, other) for other in list(schemes)[:1] for label in schemes if label != other]
    return [
        (label, other)
        for other in others
        if other in schemes
        for label, scheme in schemes.items()
        if label != other and (other == others[0] or scheme not in SINGLE)
    ]


def references(runs: Sequence[Run]) -> list[str]:
    """The schemes with which others can be compared."""
    labels = list(dict.fromkeys(run.label for run in runs if not run.void))
    return [*labels, BEST] if len(single_paths(runs)) > 1 else labels


def asked(runs: Sequence[Run], against: Sequence[str], where: str = "") -> list[tuple[str, str]]:
    """Every scheme against each of `against`; if that is empty, the usual comparisons. Raises UserError with a sentence
    that begins with `where` if a scheme was not played or there is nothing to compare."""
    known = references(runs)
    labels = [label for label in known if label != BEST]
    for name in against:
        if name not in known:
            raise UserError(f"{where}no run of scheme '{name}'; {near_miss(name, known)}")
    pairs = [(one, to) for to in against for one in labels if one != to] if against else usual(runs)
    if not pairs:
        raise UserError(f"{where}there are no two schemes to compare; it has {', '.join(labels) or 'none'}.")
    return pairs


def cost(runs: Sequence[Run]) -> str:
    """The redundancy with its interval. Empty if the scheme does not report it."""
    redundancy = level_of(runs, REDUNDANCY)
    return "" if redundancy is None else level_in_unit(redundancy, REDUNDANCY)


def level_of(runs: Sequence[Run], figure: Figure) -> Interval | None:
    """A figure with its interval for these traces, or for pairs like these if each trace has too few plays."""
    if not runs or not figure.is_known(runs):
        return None
    return _for_these_or_like_these(lambda layout: figure.level(runs, layout), layout_of(runs))


def level_in_unit(interval: Interval | None, figure: Figure) -> str:
    """ "5.4 % [4.0, 6.1]", "1.20 s [1.10, 1.31]"; "–" or "n too small" if there is no value."""
    scale, form, unit = (1.0, ".2f", "s") if figure.is_relative else (100.0, ".1f", "%")
    value, _, ends = level_words(interval, form, scale).partition(" [")
    return f"{value} {unit} [{ends}" if ends else value


def level_words(interval: Interval | None, form: str = ".3f", scale: float = 1.0) -> str:
    """A figure with its interval as a table shows it. "n too small" if the sample does not carry the figure."""
    if interval is None:
        return "–"
    if not interval.carried:
        return intervals.TOO_SMALL
    return interval.mapped(lambda value: scale * value).text(form) if math.isfinite(interval.value) else "–"


def record_of(one: Difference) -> dict[str, Any]:
    """A difference as a row of numbers: relative to the other scheme's figure, or the difference of two rates. Unknown
    ends are None. `at_least`, `at_most`: a value is a bound, which text marks with ≥ or ≤; with both nothing is known
    of the difference."""
    interval = one.change.interval if one.change is not None else None
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return {
        "pair": one.pair,
        "scheme": one.label,
        "against": one.against,
        "figure": one.figure.name,
        "relative": one.figure.is_relative,
        "difference": interval.value if interval is not None and not interval.is_unknown else None,
        "at_least": interval is not None and interval.at_least,
        "at_most": interval is not None and interval.at_most,
        "low": low if low is not None and math.isfinite(low) else None,
        "high": high if high is not None and math.isfinite(high) else None,
        "verdict": one.verdict,
        "scheme_value": one.ours.value if one.ours is not None else None,
        "scheme_at_least": one.ours is not None and one.ours.at_least,
        "against_value": one.theirs.value if one.theirs is not None else None,
        "against_at_least": one.theirs is not None and one.theirs.at_least,
        "plays": one.plays,
        "rank_p": one.signed_rank,
    }


def sentences(compared: Sequence[Difference]) -> list[str]:
    """The differences established over all pairs, in one sentence for each scheme and reference."""
    by_comparison: dict[tuple[str, str], list[str]] = {}
    for one in compared:
        if one.pair == ALL and one.verdict.split(" ")[0] in ("lower", "higher"):
            change = f"{one.words_here} for these traces" if one.verdict.endswith(" here") else one.words
            by_comparison.setdefault((one.label, one.against), []).append(f"{one.figure.title} {change}")
    return [f"{label} against {against}: {'; '.join(said)}." for (label, against), said in by_comparison.items()]


def shortage_of(runs: Sequence[Run], figure: Figure, level: Interval | None) -> Shortage | None:
    """Why a figure of a scheme has no interval. None: it has one, or has no value."""
    if level is None or level.known:
        return None
    layout, pool = layout_of(runs), figure.pool
    if isinstance(pool, Quantile):
        return shortage.of_sample(pool.sample(runs, layout), pool.q, level, pool.things, shortage.seeds_of(runs))
    return shortage.of_rate(figure.sums(runs), layout, level) if figure.is_rare else shortage.of_windows(layout)


def shortages(runs: Sequence[Run], compared: Sequence[Difference]) -> dict[str, Shortage]:
    """The shortage on either side of each difference without an interval, by the figure's title."""
    found_here: list[tuple[str, Shortage | None]] = []
    for one in compared:
        if intervals.TOO_SMALL not in (one.verdict, one.ends_words.strip("[]")):
            continue
        both = tuple(_over(one.pair, side) for side in sides(runs, one.label, one.against, one.figure))
        for side, level in zip(both, (one.ours, one.theirs), strict=True):
            if one.figure.is_rare:
                found_here.append((one.figure.title, shortage_of(side, one.figure, level)))
            else:
                few = _shortage_of_values(one.figure, side) or shortage.of_windows(layout_of(*both))
                found_here.append((one.figure.title, few))
    return shortage.gather(found_here)


def too_small(runs: Sequence[Run]) -> str:
    """Why there is no interval. Empty if there can be one."""
    by_label = grouped((run.label, run) for run in runs if not run.void)
    most = max(by_label.values(), key=len, default=[])
    if most and layout_of(most).windows >= FEWEST:
        return ""
    few = shortage.of_windows(layout_of(most)) if most else None
    return (
        f"{few or intervals.TOO_SMALL}. These figures tell of these plays; which scheme is better at other places is "
        "not decided."
    )
