"""From intervals to verdicts: holds, partly, does not hold, not decided.

A claim consists of statements. Figures show that a statement is true or false, or leave it undecided: there is no
data, or the interval lies on both sides of the boundary. An undecided statement is never called false.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

from railyard.stats.design import units_to_decide
from railyard.stats.intervals import Interval

Verdict = Literal["holds", "partly", "does not hold", "not decided"]
Answer = bool | None


def above(interval: Interval | None, boundary: float = 0.0) -> Answer:
    """Whether a figure is above a boundary; None if its interval lies on both sides or has no ends."""
    if interval is None:
        return None
    return True if interval.low > boundary else False if interval.high <= boundary else None


def below(interval: Interval | None, boundary: float = 0.0) -> Answer:
    return None if interval is None else above(interval.turned(), -boundary)


def inside(interval: Interval | None, low: float, high: float) -> Answer:
    """Whether a figure is within a range."""
    return both([above(interval, low), below(interval, high)])


def both(answers: Iterable[Answer]) -> Answer:
    """Whether all are true; False if one is false, None if none is false and one is undecided."""
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


def in_steps(full_answer: Answer, part: Answer) -> Verdict:
    """The verdict on a claim and on a weaker form of it: "partly" if only the weaker form is established."""
    if full_answer:
        return "holds"
    if part:
        return "partly"
    return "not decided" if None in (full_answer, part) else "does not hold"


def needs(interval: Interval | None, units: int, boundary: float = 0.0, what: str = "runs") -> str:
    """How many runs would decide on which side of a boundary a figure is, as text; empty if that is decided."""
    if above(interval, boundary) is not None:
        return ""
    wanted = None if interval is None else units_to_decide(interval, units, boundary)
    if wanted is None:
        return f"no number of {what} can be given: the figure has no interval, or lies at the boundary"
    return (
        f"some {wanted} {what} instead of {units} would decide it with probability 80 %, if the figure is as it is here"
    )
