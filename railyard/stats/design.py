"""How many units decide a figure, and how many units each part of a report gets within a time.

A pilot with other units estimates how many units decide each claim, and what a unit costs. The sizes follow from that
and from the time, and are fixed before the report's own units are measured. So a verdict has the error rate of its
interval. A report that added units until an interval excludes zero would have a higher one: it tests repeatedly.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from railyard.stats import distributions
from railyard.stats.intervals import LEVEL, Interval

POWER = 0.8
SURE, UNSURE = POWER, 0.4
"""The probability that the number of units in a wish decides its claim. UNSURE is a guess, for a number that only
carries an interval."""


# --- units that decide a figure ---------------------------------------------------------------------------------------


def units_to_decide(interval: Interval, units: int, boundary: float = 0.0, alpha: float = 1 - LEVEL) -> int | None:
    """How many units decide with probability 80 % on which side of the boundary the figure lies, if `interval.value` is
    its true value. None if unknown: no interval, or a value at the boundary (more than 1000 n units).

    n (h / d)² ((z + z₀.₈) / z₀.₉₇₅)², where h is the distance from the value to the interval's end on the boundary's
    side, d the distance to the boundary, and z the quantile 1 − alpha / 2. At least n + 1.
    Example: 20 % [−10, 50] over 8 pairs: 8 · 1.5² · 2.04 = 37 pairs.
    """
    factor = growth_to_decide(interval, boundary, alpha)
    return None if factor is None else max(units + 1, math.ceil(units * factor))


def growth_to_decide(interval: Interval, boundary: float, alpha: float = 1 - LEVEL) -> float | None:
    """units_to_decide() / units, before it is rounded; below 1 if fewer units would do."""
    distance = abs(interval.value - boundary)
    if not (math.isfinite(interval.low) and math.isfinite(interval.high)) or distance == 0:
        return None
    z = distributions.normal_quantile((1 + LEVEL) / 2)
    wanted = distributions.normal_quantile(1 - alpha / 2) + distributions.normal_quantile(POWER)
    arm = interval.value - interval.low if boundary < interval.value else interval.high - interval.value
    factor = (arm / distance) ** 2 * (wanted / z) ** 2
    return None if factor > 1000 else factor


# --- the sizes of a report's parts ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wish:
    """The number of units that decides a claim. Not `sure`: the least number that carries an interval."""

    units: int
    sure: bool

    @property
    def probability(self) -> float:
        return SURE if self.sure else UNSURE


@dataclass(frozen=True)
class Offer:
    """A part of a report. It can have any number of units that is not below `least`."""

    name: str
    least: int
    cost_s: Mapping[str, float]
    """The cost of a unit in seconds, by piece. Two parts that share a piece pay it once."""
    wishes: Sequence[Wish]

    def gain(self, units: int, more: int) -> float:
        """The expected number of further decided claims."""
        return sum(wish.probability for wish in self.wishes if units < wish.units <= more)


def cost_s(offers: Sequence[Offer], sizes: Mapping[str, int]) -> float:
    """The cost, in seconds, of all parts together."""
    most: dict[str, tuple[int, float]] = {}
    for offer in offers:
        for piece, seconds in offer.cost_s.items():
            units = max(sizes[offer.name], most.get(piece, (0, 0.0))[0])
            most[piece] = units, seconds
    return sum(units * seconds for units, seconds in most.values())


def sizes_within(offers: Sequence[Offer], budget_s: float) -> dict[str, int]:
    """The size of each part. Claims are served in the order of cost per probability while there is time. The time that
    is left goes to all parts in proportion, because a pilot's wishes are estimates, and often too low."""
    sizes = {offer.name: offer.least for offer in offers}
    while True:
        spent = cost_s(offers, sizes)
        steps: list[tuple[float, str, int]] = []
        for offer in offers:
            for more in sorted({wish.units for wish in offer.wishes if wish.units > sizes[offer.name]}):
                price = cost_s(offers, sizes | {offer.name: more}) - spent
                if spent + price <= budget_s:
                    steps.append((offer.gain(sizes[offer.name], more) / max(price, 1e-9), offer.name, more))
        if not steps:
            return {name: max(size, int(size * (budget_s / max(spent, 1e-9)))) for name, size in sizes.items()}
        _, name, more = max(steps)
        sizes[name] = more
