"""The checks of notebooks/lab-tail.py, which is about slow tails."""

from collections.abc import Callable, Sequence
from types import EllipsisType

from railyard import api
from railyard.figures.rows import REDUNDANCY
from railyard.lab import Check, check, is_open, judged, unanswered, whole
from railyard.results.differences import Difference
from railyard.results.records import Chunk, Run
from railyard.stats.statistics import nearest_rank

SAMPLES = ([3.0, 1.0, 2.0], *([float(value) for value in range(1, count + 1)] for count in (5, 60, 100)), [0.5])
"""Of 5 and of 60 values, ranks have fractions below 1/2: to round them is wrong."""
Number = float | EllipsisType | None


def quantile(function: Callable[[Sequence[float], float], float | EllipsisType | None]) -> Check:
    """Checks a function of values and a share that returns the quantile by nearest rank."""
    for values in SAMPLES:
        for share in (0.5, 0.95, 0.99):
            answer = function(list(values), share)
            if is_open(answer):
                return unanswered()
            right = nearest_rank(values, share)
            if answer != right:
                sample_text = f"{share:g} of {len(values)} values from {min(values):g} to {max(values):g}"
                return judged(False, f"The quantile {sample_text} is {right:g}, and the function says {answer!r}.")
    return judged(True, "", "The smallest value that so large a share does not exceed.")


def _slowest(campaign: api.Campaign, scheme: str) -> tuple[Run, Chunk]:
    runs = [run for run in campaign.runs if run.label == scheme]
    return max(((run, chunk) for run in runs for chunk in run.chunks), key=lambda both: both[1].rct_s)


def slowest(campaign: api.Campaign, scheme: str, run_id: str | EllipsisType | None, chunk: Number) -> Check:
    run, right = _slowest(campaign, scheme)
    run_check = check(run_id, run.run_id, f"Look over all chunks of all runs of {scheme} for the largest rct_s.")
    return check(chunk, right.index, "The run is right. Which of its chunks is it?") if run_check.right else run_check


def cause(campaign: api.Campaign, scheme: str, bound: str | EllipsisType | None) -> Check:
    """Checks the bound of the largest part of the slowest chunk."""
    run, chunk = _slowest(campaign, scheme)
    largest = max(campaign.explain(run.run_id, chunk.index).explanation.parts, key=lambda part: part.seconds)
    return check(bound, largest.bound, "Take the row of the table with the most ms; the answer is its 'bounded by'.")


def avoidable(campaign: api.Campaign, scheme: str, share: Number) -> Check:
    """Checks the share of the slowest chunk's time that the oracle saves."""
    _, chunk = _slowest(campaign, scheme)
    right = 1 - (chunk.oracle_s or 0.0) / chunk.rct_s
    return check(share, right, "The oracle's time is chunk.oracle_s; what is above it could have been avoided.", 0.02)


def price(campaign: api.Campaign, scheme: str, redundancy: Number) -> Check:
    point = REDUNDANCY.point([run for run in campaign.runs if run.label == scheme])
    hint = "Sum re-injected and given-up bytes over all runs of the scheme, and divide by all other stream bytes sent."
    return check(redundancy, 0.0 if point is None else point.value, hint, 0.02)


def decided(places: Number, play: Callable[[int], api.Campaign], scheme: str, against: str) -> Check:
    """Checks that a number of places is enough for an interval of the p95, and at most twice the necessary number."""
    if is_open(places):
        return unanswered()
    seeds = whole(places)
    if seeds is None or not 1 <= seeds <= 60:
        return Check(False, f"Not yet. Take 1 to 60 places; this is {places!r}.")
    own = _difference(play(seeds), scheme, against)
    if not own.carried:
        return judged(False, f"With {seeds} places the p95 has no interval: {own.words}.")
    half = _difference(play(max(1, seeds // 2)), scheme, against)
    return judged(
        not half.carried, f"Half as many have an interval, too: {half.words}.", f"{own.words}: {own.verdict}."
    )


def _difference(campaign: api.Campaign, scheme: str, against: str) -> Difference:
    """The difference of the p95 of RCTs between two schemes."""
    differences = api.compare(campaign, against=against).differences
    return next(one for one in differences if one.label == scheme and one.figure.name == "rct_p95")
