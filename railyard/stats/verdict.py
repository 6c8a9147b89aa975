"""From intervals to verdicts: holds, partly, does not hold, not decided.

A claim is made of statements. Of each statement the figures say that it is true, that it is false, or neither: there
is no data, or the interval lies on both sides. What is not decided is never called false.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from railyard.stats.intervals import Interval, units_to_decide

Verdict = Literal["holds", "partly", "does not hold", "not decided"]
Answer = bool | None


def above(found: Interval | None, boundary: float = 0.0) -> Answer:
    """Whether a figure is above a boundary; none where its interval lies on both sides, or has no ends."""
    if found is None:
        return None
    return True if found.low > boundary else False if found.high <= boundary else None


def below(found: Interval | None, boundary: float = 0.0) -> Answer:
    return None if found is None else above(found.turned(), -boundary)


def inside(found: Interval | None, low: float, high: float) -> Answer:
    """Whether a figure is within a range."""
    return both([above(found, low), below(found, high)])


def both(answers: Iterable[Answer]) -> Answer:
    """Whether all are true: false as soon as one is false."""
    given = list(answers)
    return False if False in given else None if None in given else True


def of_parts(answers: Sequence[Answer]) -> Verdict:
    """The verdict on a claim with several parts: holds if all are true, partly if some are true and some false, does
    not hold if all are false, not decided if the decided parts leave this open."""
    if not answers:
        return "not decided"
    if all(answers):
        return "holds"
    if True in answers and False in answers:
        return "partly"
    return "not decided" if None in answers else "does not hold"


def in_steps(whole: Answer, part: Answer) -> Verdict:
    """The verdict on a claim and on a weaker form of it: "partly" if only the weaker form is established."""
    if whole:
        return "holds"
    if part:
        return "partly"
    return "not decided" if None in (whole, part) else "does not hold"


def needs(found: Interval | None, units: int, boundary: float = 0.0, what: str = "runs") -> str:
    """What it would take to decide on which side of a boundary a figure is; empty where that is decided."""
    if above(found, boundary) is not None:
        return ""
    wanted = None if found is None else units_to_decide(found, units, boundary)
    if wanted is None:
        return f"no number of {what} can be given: the figure has no interval, or lies at the boundary"
    return (
        f"some {wanted} {what} instead of {units} would decide it with probability 80 %, if the figure is as it is here"
    )
