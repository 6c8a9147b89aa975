"""Intervals of the rate of a rare event: the definition of events, the ends, and the coverage."""

import math

import numpy as np
import pytest

from railyard.stats import intervals, rates
from railyard.stats.bootstrap import Layout
from railyard.stats.intervals import Interval
from railyard.stats.rates import Sums


def _of(stalled_s: list[float]) -> Sums:
    return Sums.of(stalled_s, [10.0] * len(stalled_s))


def _pairs(count: int, plays: int = 2) -> Layout:
    return Layout(tuple(tuple(range(k * plays, (k + 1) * plays)) for k in range(count)), (1,) * count)


def test_an_interval_covers_where_few_viewers_stall_and_some_of_them_long() -> None:
    generator = np.random.default_rng(5)
    layout, truth = Layout.of_independent(300), 0.03 * math.exp(0.5) / 10
    covered, by_bootstrap = [], []
    for _ in range(120):
        found = _of(list(np.where(generator.random(300) < 0.03, np.exp(generator.normal(size=300)), 0.0)))
        rate, plain = rates.level(found, layout), intervals.interval(found.resampled(layout), layout)
        assert rate is not None and plain is not None
        if rate.known:
            covered.append(rate.low <= truth <= rate.high)
            by_bootstrap.append(plain.low <= truth <= plain.high)
    assert len(covered) > 90
    assert np.mean(covered) >= 0.93
    assert np.mean(by_bootstrap) < np.mean(covered)


def test_a_rate_needs_five_events() -> None:
    layout = Layout.of_independent(100)
    four, five = (rates.level(_of([1.0] * stalls + [0.0] * (100 - stalls)), layout) for stalls in (4, 5))
    assert four is not None and four.value == pytest.approx(0.004) and not four.known
    assert five is not None and five.known
    assert 0 < five.low < five.value < five.high < 1


def test_plays_that_never_played_leave_the_rate_of_the_others_an_interval() -> None:
    """Some resamples of five plays draw only the two that failed, and so have no rate."""
    layout = Layout.of_independent(5)
    sums = rates.Sums.of([0.5, 60, 0.5, 60, 0.5], [10, 0, 10, 0, 10])
    assert np.isnan(sums.resampled(layout)).any() and not np.isinf(sums.resampled(layout)).any()
    found = rates.level(sums, layout)
    assert found is not None and found.value == pytest.approx(4.05)
    assert 0 <= found.low < found.value < found.high < math.inf


def test_neighbours_that_stall_in_one_outage_are_one_event() -> None:
    """60 starts in 15 windows of trace: blocks of four. A gap of a window ends an outage."""
    layout = Layout((tuple(range(60)),), (4,))

    def known(stalled: list[int]) -> bool:
        found = rates.level(_of([float(play in stalled) for play in range(60)]), layout)
        return found is not None and found.known

    assert known([0, 1, 12, 13, 24, 25, 36, 37, 48, 49])  # five outages of two plays
    assert not known([0, 1, 2, 3, 4, 5, 12, 24, 36])  # as many plays, but four outages
    assert not known([58, 59, 0, 1, 12, 24, 36])  # the first play is the neighbour of the last one
    assert known([0, 4, 8, 12, 16, 20, 24, 28, 32, 36])  # no gap at all: two windows are an event, ten hold five
    assert not known([0, 4, 8, 12, 16, 20, 24, 28])  # eight windows hold four


def test_the_upper_end_grows_with_the_longest_stall() -> None:
    layout = Layout.of_independent(100)
    even, uneven = (rates.level(_of([*stalls, *[0.0] * 90]), layout) for stalls in ([1.0] * 10, [0.1] * 9 + [9.1]))
    assert even is not None and uneven is not None
    assert even.value == pytest.approx(uneven.value)
    assert uneven.high > 2 * even.high


def test_a_scheme_that_never_stalls_stalls_less_than_one_that_does_on_every_pair() -> None:
    layout = _pairs(10)
    never, often = _of([0.0] * 20), _of([1.0, 2.0] * 10)
    assert not (level := rates.level(never, layout)) or not level.known
    change = rates.change(never, often, layout)
    assert change is not None
    assert change.interval.high < 0
    assert change.p_less < 0.01 and change.p_more > 0.99


def test_the_p_of_a_difference_is_the_level_at_which_its_interval_ends_at_zero() -> None:
    generator = np.random.default_rng(2)
    layout = _pairs(14)
    ours, theirs = (_of(list(scale * generator.exponential(size=28))) for scale in (1.0, 1.6))
    change, turned = rates.change(ours, theirs, layout), rates.change(theirs, ours, layout)
    both = rates._both(ours, theirs, layout)
    assert change is not None and turned is not None and both is not None
    assert both.difference(change.p_less).high == pytest.approx(0, abs=1e-6)
    assert (change.interval.low, change.p_less) == pytest.approx((-turned.interval.high, turned.p_more))
    assert change.inner.low > change.interval.low and change.inner.high < change.interval.high


@pytest.mark.parametrize("scale", [1.0, 3.0, 8.0])
def test_a_ratio_has_one_in_its_interval_where_the_difference_has_zero(scale: float) -> None:
    generator = np.random.default_rng(4)
    layout = _pairs(14)
    ours, theirs = (_of(list(factor * generator.exponential(size=28))) for factor in (1.0, scale))
    change, ratio = rates.change(ours, theirs, layout), rates.ratio(ours, theirs, layout)
    assert change is not None and ratio is not None
    assert 0 <= ratio.low < ratio.value < ratio.high
    assert (ratio.low <= 1 <= ratio.high) == (change.interval.low <= 0 <= change.interval.high)


def test_two_schemes_that_stall_alike_in_every_play_do_not_differ() -> None:
    layout, same = _pairs(10), _of([1.0, 2.0] * 10)
    change = rates.change(same, same, layout)
    assert change is not None
    assert (change.interval.low, change.interval.high) == (0, 0)
    assert change.alike(0.005) and change.p_less == 1


def test_where_one_scheme_stalls_longer_the_other_does_not_at_the_same_time() -> None:
    """One pair adds to one of the two sums alone, so their correlation is negative, and the interval wider by it."""
    more, less = np.array([2.0, 3.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0, 4.0])
    drawn = np.random.default_rng(1).integers(0, 4, size=(100_000, 4))
    by_bootstrap = np.corrcoef(more[drawn].sum(axis=1), less[drawn].sum(axis=1))[0, 1]
    assert intervals.exclusive_correlation(more, less, 4) == pytest.approx(by_bootstrap, abs=0.01)
    assert intervals.exclusive_correlation(more, np.zeros(4), 4) == 0
    independent, mine = (intervals.less(Interval(5, 4, 7), Interval(5, 3, 6), of) for of in (0.0, -0.5))
    assert mine.low < independent.low and mine.high > independent.high


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_where_either_scheme_stalls_by_chance_one_comparison_in_twenty_differs(seed: int) -> None:
    generator = np.random.default_rng(seed)
    layout, found = _pairs(28, plays=1), []
    for _ in range(300):
        ours = generator.integers(0, 2, size=28).astype(float)
        change = rates.change(_of(list(ours)), _of(list(1 - ours)), layout)
        assert change is not None
        found.append(change.interval.low > 0 or change.interval.high < 0)
    assert np.mean(found) <= 0.06


def test_without_a_stall_nothing_is_known_of_a_difference() -> None:
    layout = _pairs(10)
    change = rates.change(_of([0.0] * 20), _of([0.0] * 20), layout)
    assert change is not None and change.interval.value == 0
    assert not change.interval.known and (change.p_less, change.p_more) == (1.0, 1.0)
    assert rates.ratio(_of([0.0] * 20), _of([0.0] * 20), layout) is None
