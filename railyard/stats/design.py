"""How many units would decide a figure; and how many each part of a report gets within a time, before any is seen.

A pilot of other units says how many decide each claim, and what a unit costs. The sizes follow from that and from the
time, and are fixed before the report's own units are measured. So a verdict has the error rate of its interval: a
report that adds units until an interval excludes zero would not, for it looks again and again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from railyard.stats import distributions
from railyard.stats.intervals import LEVEL, Interval

POWER = 0.8
SURE, UNSURE = POWER, 0.4
"""The probability that a claim is decided by so many units as it wants; and where fewer do not even carry an interval,
a guess."""


# --- units that decide a figure ---------------------------------------------------------------------------------------


def units_to_decide(interval: Interval, units: int, boundary: float = 0.0, alpha: float = 1 - LEVEL) -> int | None:
    """How many units would decide on which side of the boundary the figure lies, with probability 80 %, if it is what
    it is here. None where that is not known: no interval, or a value at the boundary (more than 1000 times as many).

    n (h / d)² ((z + z₀.₈) / z₀.₉₇₅)², with h the distance from the value to the interval's end on the boundary's side,
    d that to the boundary, and z the quantile 1 − alpha / 2 of the level at which it is to be decided. At least n + 1.
    Example: 20 % [−10, 50] over 8 pairs: 8 · 1.5² · 2.04 = 37 pairs.
    """
    factor = growth_to_decide(interval, boundary, alpha)
    return None if factor is None else max(units + 1, math.ceil(units * factor))


def growth_to_decide(interval: Interval, boundary: float = 0.0, alpha: float = 1 - LEVEL) -> float | None:
    """So many times as many units, as `units_to_decide`; below 1 where fewer would do."""
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
    """A claim, and how many units decide it. Not sure: fewer cannot."""

    units: int
    sure: bool

    @property
    def probability(self) -> float:
        return SURE if self.sure else UNSURE


@dataclass(frozen=True)
class Offer:
    """A part of a report that can have any number of units from `least` on."""

    name: str
    least: int
    cost_s: Mapping[str, float]
    """What a unit costs, by piece. Two parts that have a piece in common pay it once."""
    wishes: Sequence[Wish]

    def gain(self, units: int, more: int) -> float:
        """How many more claims are expected to be decided."""
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
    """The size of each part. The claim that costs least for its probability comes first, as long as there is time. What
    is left then goes to all parts in proportion, because a pilot's wishes are estimates, and often too low."""
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
