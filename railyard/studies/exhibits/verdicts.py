"""Verdicts on claims that name a figure or a range of figures, each with its rule for "holds" in words.

The paper gives ranges over days. A range is compared with the interval over all viewers, because a day of a simulated
population has few. Chance alone must not make a claim hold, so a gain counts only if its interval excludes 0. It must
not make a claim fail either, so a claim whose interval lies on both sides is not decided.
"""

import math
from collections.abc import Sequence
from typing import Any

from railyard.base.errors import UserError
from railyard.report.exhibit import Claim, Wants
from railyard.stats import verdict
from railyard.stats.bootstrap import FEWEST
from railyard.stats.design import growth_to_decide
from railyard.stats.intervals import Interval
from railyard.stats.verdict import Verdict, above, in_steps, inside
from railyard.studies.claims import PaperClaim

RULES = {
    "worse": "holds if the interval over all viewers is wholly on the worse side, partly if that is so on a single "
    "day; does not hold if it is wholly on the other side",
    "within": "holds if better beyond its interval, by {least:g} % or more, and the interval meets {least:g} to "
    "{most:g} %; partly if better beyond its interval, but by less, or by more with the whole interval; does not hold "
    "if the whole interval is worse, or touches no difference and stays below {least:g} %",
    "agrees": "holds if better beyond its interval and the interval contains {theirs:g} %; partly if only better "
    "beyond its interval; does not hold if the whole interval is worse, or touches no difference and stays below "
    "{theirs:g} %",
    "cost": "judged on the paper's form, which copies always: holds if the interval of its cost is within a factor of "
    "{factor:g} of {theirs:g} %; partly if only that of copies that pay is, or if {theirs:g} % lies between both",
}
"""The rules that several claims have, by the name in a claim's row, with the names of its numbers."""


def claim(row: PaperClaim, **judged: Any) -> Claim:
    """A row of the exhibit's file with what was found: the members `ours`, `verdict`, `because`, `needs`, `wants`."""
    rule = RULES.get(row.rule, row.rule)
    try:
        filled = [text.format(**row.numbers) for text in (row.claim, row.theirs, rule)]
    except (LookupError, ValueError) as error:
        raise UserError(f"claim '{row.id}': its text names a number that `numbers` does not have: {error}.") from None
    return Claim(id=row.id, claim=filled[0], theirs=filled[1], rule=filled[2], **judged)


def worse(change: Interval | None, days: Sequence[Interval | None]) -> Verdict:
    """The verdict on the claim "worse", where a positive change is worse."""
    answer = above(change)
    if answer is not True and any(above(day) for day in days):
        return "partly"
    return in_steps(answer, answer)


def within(gain: Interval | None, least: float, most: float) -> Verdict:
    """The verdict on the claim "better by least to most"."""
    if gain is None or not gain.known:
        return "not decided"
    if gain.low > 0:
        return "holds" if gain.value >= least and gain.low <= most else "partly"
    return "does not hold" if gain.high <= 0 or gain.high < least else "not decided"


def agrees(gain: Interval | None, theirs: float) -> Verdict:
    """The verdict on the claim "better by this much"."""
    if gain is None or not gain.known:
        return "not decided"
    if gain.low > 0:
        return "holds" if gain.low <= theirs <= gain.high else "partly"
    return "does not hold" if gain.high <= 0 or gain.high < theirs else "not decided"


def cost(paper_form: Interval | None, own_form: Interval | None, theirs: float, factor: float) -> Verdict:
    """The verdict on the claim "costs about". The paper's definition decides; this testbed's own can only make
    it "partly"."""
    if paper_form is None or own_form is None or not (paper_form.known and own_form.known):
        return "not decided"
    low, high = theirs / factor, theirs * factor
    between = min(own_form.value, paper_form.value) <= theirs <= max(own_form.value, paper_form.value)
    return in_steps(inside(paper_form, low, high), True if between else inside(own_form, low, high))


def least(gain: Interval | None, least: float) -> tuple[float, ...]:
    """The boundaries at which `within` and `agrees` decide: 0 and, if the gain is below it, `least`."""
    return (0.0, least) if gain is not None and gain.value < least else (0.0,)


def nearer(interval: Interval | None, theirs: float, factor: float) -> tuple[float, ...]:
    """The boundary at which `cost` decides: the nearer one."""
    ends = (theirs / factor, theirs * factor)
    return ends[:1] if interval is None else (min(ends, key=lambda end: abs(end - interval.value)),)


def wants(
    interval: Interval | None, viewers: int, boundaries: Sequence[float] = (0.0,), carry: int | None = None
) -> Wants | None:
    """The number of viewers that would decide on one of the boundaries. `carry`: the least number for an interval, if
    the figure has none yet."""
    factors = [] if interval is None else [growth_to_decide(interval, boundary) for boundary in boundaries]
    possible = [factor for factor in factors if factor is not None]
    if possible:
        return Wants(units=max(FEWEST, math.ceil(viewers * min(possible))), sure=True)
    return None if carry is None else Wants(units=max(carry, viewers + 1), sure=False)


def outlook(
    word: Verdict,
    interval: Interval | None,
    viewers: int,
    boundaries: Sequence[float] = (0.0,),
    carry: int | None = None,
) -> dict[str, Any]:
    """The members `verdict`, `wants` and `needs` of a claim. `needs` has words if it is not decided."""
    number = wants(interval, viewers, boundaries, carry)
    if word != "not decided":
        return {"verdict": word, "wants": number}
    if number is None:
        return {"verdict": word, "needs": verdict.needs(interval, viewers, what="viewers")}
    many = max(number.units, viewers + 1)
    needs = f"some {many} viewers instead of {viewers} would decide it with probability 80 %, if the figure is as here"
    if not number.sure:
        needs = f"at least {many} viewers instead of {viewers}: fewer do not carry an interval"
    return {"verdict": word, "wants": number, "needs": needs}
