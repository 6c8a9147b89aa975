"""Sizes chosen from a pilot: what they spend, and that they leave the error rate of an interval as it is."""

import math

import numpy as np

from railyard.stats.design import UNSURE, Offer, Wish, cost_s, sizes_within
from railyard.stats.intervals import Interval
from railyard.studies.exhibits.verdicts import wants

PILOT, BUDGET_S, TRIALS = 40, 600.0, 1000


def test_time_goes_to_the_claims_that_cost_least_and_never_beyond_the_budget() -> None:
    dear = Offer("dear", 10, {"a": 1.0}, [Wish(500, True)])
    cheap = Offer("cheap", 10, {"b": 0.5}, [Wish(200, True), Wish(5000, True)])
    assert sizes_within([dear, cheap], 300) == {"dear": 27, "cheap": 545}
    assert sizes_within([dear, cheap], 520) == {"dear": 47, "cheap": 945}
    assert sizes_within([dear, cheap], 700) == {"dear": 583, "cheap": 233}
    assert sizes_within([dear, cheap], 1) == {"dear": 10, "cheap": 10}


def test_a_piece_that_two_parts_share_is_paid_once() -> None:
    one, other = Offer("one", 1, {"sp": 1.0}, [Wish(100, True)]), Offer("other", 1, {"sp": 1.0}, [Wish(90, True)])
    assert cost_s([one, other], {"one": 100, "other": 90}) == 100
    assert sizes_within([one, other], 100) == {"one": 100, "other": 90}


def test_what_is_decided_already_is_no_gain() -> None:
    one = Offer("one", 1, {"a": 1.0}, [Wish(100, True), Wish(200, False), Wish(201, True)])
    assert one.gain(100, 200) == UNSURE


def test_a_claim_that_is_likelier_decided_comes_first() -> None:
    sure, unsure = Offer("sure", 1, {"a": 1.0}, [Wish(100, True)]), Offer("unsure", 1, {"b": 1.0}, [Wish(90, False)])
    assert sizes_within([sure, unsure], 110) == {"sure": 108, "unsure": 1}


def _interval(values: np.ndarray) -> Interval:
    mean, half = float(values.mean()), 1.96 * float(values.std(ddof=1)) / math.sqrt(len(values))
    return Interval(mean, mean - half, mean + half)


def _offer(name: str, pilot: np.ndarray) -> Offer:
    number = wants(_interval(pilot), len(pilot))
    return Offer(name, PILOT, {name: 1.0}, [] if number is None else [Wish(number.units, number.sure)])


def _decided(values: np.ndarray) -> bool:
    found = _interval(values)
    return found.low > 0 or found.high < 0


def test_sizes_from_a_pilot_of_others_keep_the_rate_of_false_verdicts() -> None:
    """Two claims without any difference: 5 % of them may be decided. For contrast units are added until
    it is decided: more than 12 % are."""
    drawn = np.random.default_rng(1)
    planned = greedy = power = 0
    for _ in range(TRIALS):
        sizes = sizes_within([_offer(name, drawn.normal(size=PILOT)) for name in "ab"], BUDGET_S)
        planned += sum(_decided(drawn.normal(size=size)) for size in sizes.values())
        grown = drawn.normal(size=400)
        greedy += any(_decided(grown[:n]) for n in range(PILOT, 401, 40))
        sizes = sizes_within([_offer("a", drawn.normal(0.3, size=PILOT))], BUDGET_S)
        power += _decided(drawn.normal(0.3, size=sizes["a"]))
    assert 0.03 < planned / (2 * TRIALS) < 0.07
    assert greedy / TRIALS > 0.12
    assert power / TRIALS > 0.6, "less than 80 %: the pilot's figure is uncertain itself"
