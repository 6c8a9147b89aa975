"""Whether a difference between two schemes depends on the model of the links: the same plays under several models.

r = a / b is the ratio of a figure of schemes a and b under a model, over the same pairs and places. The ratio r under a
model is compared with r1 under the first one: r / r1 - 1 is 0 if both models agree on the two schemes. All four figures
are resampled together, by pairs of traces (docs/reference/statistics.md); Holm's correction is over the whole
table.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from railyard.base.page import Block
from railyard.figures.figure import Figure
from railyard.results import differences
from railyard.results.records import Run
from railyard.stats import changes, intervals, statistics
from railyard.stats.bootstrap import Layout
from railyard.stats.changes import Bounds, Change
from railyard.studies.claims import Compared, Comparisons
from railyard.studies.recorded import CLAIMS, MEDIAN, P95, labels_of

FIGURES = (MEDIAN, P95)
Sides = tuple[Sequence[Run], Sequence[Run]]


@dataclass(frozen=True)
class Dependence:
    """r / r1 - 1 for two schemes and a figure."""

    label: str
    against: str
    figure: Figure
    head: str
    """The model."""
    change: Change | None

    @property
    def p(self) -> float:
        """The two-sided p value."""
        return 1.0 if self.change is None else min(1.0, 2 * min(self.change.p_less, self.change.p_more))

    def compared(self, adjusted: float) -> Compared | None:
        if self.change is None:
            return None
        return Compared(
            figure=self.figure.name,
            a=self.label,
            b=self.against,
            where={"links": self.head},
            found=self.change.interval.mapped(lambda share: 100 * share),
            established=_established(self.change, self.figure.margin, adjusted),
        )


def _established(change: Change, margin: float, adjusted: float) -> str:
    if not change.interval.known:
        return intervals.TOO_SMALL
    if adjusted >= differences.ALPHA:
        return "alike" if change.alike(margin) else "not decided"
    return "lower" if change.p_less < change.p_more else "higher"


def _ratio(figure: Figure, sides: Sides, layout: Layout) -> Bounds | None:
    """r under each row of weights. None: a figure of these plays is only a bound."""
    ours, theirs = (figure.bounds(side, layout) for side in sides)
    if not (math.isfinite(ours[1][0]) and math.isfinite(theirs[1][0])):
        return None
    return changes.relative(ours[0], theirs[1]) + 1, changes.relative(ours[1], theirs[0]) + 1


def _common(here: Sides, first: Sides) -> tuple[Sides, Sides]:
    """The plays at places that exist under both models."""
    places = [{(run.pair, run.seed): number for number, run in enumerate(sides[0])} for sides in (here, first)]
    both = [place for place in places[0] if place in places[1]]

    def of(sides: Sides, at: Mapping[tuple[str, int], int]) -> Sides:
        return [sides[0][at[place]] for place in both], [sides[1][at[place]] for place in both]

    return of(here, places[0]), of(first, places[1])


def depends(head: str, names: tuple[str, str], figure: Figure, here: Sides, first: Sides) -> Dependence:
    here, first = _common(here, first)
    change = None
    if here[0]:
        # The plays are at the same places in the same order: the side whose plays are longest decides.
        longest = max([*here, *first], key=lambda side: median(run.ended_s for run in side))
        layout = differences.layout_of(longest)
        ratios = [_ratio(figure, sides, layout) for sides in (here, first)]
        if ratios[0] is not None and ratios[1] is not None:
            change = changes.change(ratios[0], ratios[1], layout)
    return Dependence(*names, figure, head, change)


def dependence(columns: Mapping[str, Sequence[Run]]) -> Iterator[Block | Comparisons]:
    """A table for each figure, with a row for each comparison and a column for each model except the first."""
    first, *heads = columns
    known = {label for runs in columns.values() for label in labels_of(runs)}
    claims = [both for both in CLAIMS if known.issuperset(both) and differences.BEST not in both]
    dependences = {
        (figure.name, names, head): depends(
            head,
            names,
            figure,
            differences.common(columns[head], *names),
            differences.common(columns[first], *names),
        )
        for figure in FIGURES
        for names in claims
        for head in heads
    }
    adjusted = dict(zip(dependences, statistics.holm([one.p for one in dependences.values()]), strict=True))
    for figure in FIGURES:
        lines = {
            " against ".join(names): [
                dependences[figure.name, names, head].compared(adjusted[figure.name, names, head]) for head in heads
            ]
            for names in claims
        }
        yield Comparisons(heads=[f"{figure.title}, to {first}", *heads], rows=dict(lines), verdicts=True)
