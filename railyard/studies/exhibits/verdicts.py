"""Verdicts on claims that name a figure or a range of figures, each with its rule in words: what "holds" took.

The paper gives ranges over days; a range is compared with the interval over all viewers, since a day of a simulated
population has few. Chance alone must not make a claim hold, so a gain counts only where its interval excludes none.
"""

from __future__ import annotations

from collections.abc import Sequence

from railyard.report.exhibit import Verdict
from railyard.studies.intervals import Interval

WORSE_RULE = "holds if the interval over all viewers is wholly on the worse side, partly if that is so on a single day"


def worse(change: Interval | None, days: Sequence[Interval | None]) -> Verdict:
    """Of "worse", where positive is worse."""
    if change is not None and change.low > 0:
        return "holds"
    return "partly" if any(day is not None and day.low > 0 for day in days) else "does not hold"


def within_rule(least: float, most: float) -> str:
    return (
        f"holds if better beyond its interval, by {least:g} % or more, and the interval meets {least:g} to {most:g} %; "
        "partly if better beyond its interval, but by less, or by more with the whole interval"
    )


def within(found: Interval | None, least: float, most: float) -> Verdict:
    """Of "better by least to most"."""
    if found is None or found.low <= 0:
        return "does not hold"
    return "holds" if found.value >= least and found.low <= most else "partly"


def agrees_rule(theirs: float) -> str:
    return (
        f"holds if better beyond its interval and the interval contains {theirs:g} %; "
        "partly if only better beyond its interval"
    )


def agrees(found: Interval | None, theirs: float) -> Verdict:
    """Of "better by this much"."""
    if found is None or found.low <= 0:
        return "does not hold"
    return "holds" if found.low <= theirs <= found.high else "partly"


def cost_rule(theirs: float, factor: float) -> str:
    return (
        f"judged on the paper's form, which copies always: holds if its cost is within a factor of {factor:g} of "
        f"{theirs:g} %; partly if only that of copies that pay is, or if {theirs:g} % lies between the two"
    )


def cost(paper_form: Interval | None, own_form: Interval | None, theirs: float, factor: float) -> Verdict:
    """Of "costs about"; the paper's form decides, this testbed's own can only make it "partly"."""
    if paper_form is None or own_form is None:
        return "does not hold"
    if theirs / factor <= paper_form.value <= theirs * factor:
        return "holds"
    near = theirs / factor <= own_form.value <= theirs * factor
    between = min(own_form.value, paper_form.value) <= theirs <= max(own_form.value, paper_form.value)
    return "partly" if near or between else "does not hold"
