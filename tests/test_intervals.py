"""Intervals, differences and verdicts against known answers: tables, textbook formulas, and coverage by simulation."""

import math

import numpy as np
import pytest
from scipy import special

from railyard.stats import bootstrap, changes, design, pooled, quantiles
from railyard.stats.bootstrap import Layout, Reals
from railyard.stats.intervals import Interval, less
from railyard.stats.quantiles import Sample
from railyard.stats.statistics import nearest_rank
from railyard.stats.verdict import above, below, both, in_steps, inside, needs, of_parts
from railyard.studies import coverage

WINDOWED = Layout((tuple(range(40)),), (4,))


def sample_of(values: Reals, layout: Layout) -> Sample:
    return Sample.of([[float(value)] for value in values], layout)


def overlapping(generator: np.random.Generator, plays: int, overlap: int) -> Reals:
    """Plays on a circle of trace: each is the mean of `overlap` stretches, which it shares with its neighbours."""
    stretches = generator.normal(size=plays)
    return np.array([stretches.take(range(k, k + overlap), mode="wrap").mean() for k in range(plays)])


def bounds_of(values: Reals, layout: Layout) -> changes.Bounds:
    drawn = bootstrap.weights(layout)
    means: Reals = (drawn @ values) / drawn.sum(axis=1)
    return means, means


def share_covered(layout: Layout, overlap: int) -> float:
    generator = np.random.default_rng(3)
    hits = 0
    for _ in range(300):
        values = overlapping(generator, layout.plays, overlap)
        found = pooled.bootstrap([[float(v)] for v in values], pooled.mean, layout)
        assert found is not None
        hits += found.low <= 0 <= found.high
    return hits / 300


# --- what is independent ----------------------------------------------------------------------------------------------


def test_the_negative_of_a_lower_bound_is_an_upper_bound() -> None:
    turned = Interval(3, 1, math.inf, at_least=True, carried=False).turned()
    assert turned == Interval(-3, -math.inf, -1, at_most=True, carried=False)


def test_thirty_starts_in_a_hundred_seconds_are_five_windows() -> None:
    layout = Layout((tuple(range(30)),), (6,))
    assert (layout.windows, layout.units, layout.unit_words) == (5, 5, "windows of trace")
    pairs = Layout(tuple(tuple(range(30 * k, 30 * k + 30)) for k in range(8)), (6,) * 8)
    assert (pairs.windows, pairs.units, pairs.unit_words) == (40, 8, "pairs of traces")


def test_a_block_brings_its_neighbours_around_the_loop() -> None:
    drawn = bootstrap.weights(Layout((tuple(range(6)),), (3,)))
    assert (drawn.sum(axis=1) == 6).all() and (drawn[0] == 1).all()
    for row in drawn[1:200]:
        around = [min(row[k], row[(k + 1) % 6], row[(k + 2) % 6]) for k in range(6)]
        assert max(around) >= 1, "three neighbours are drawn together"


def test_an_interval_covers_as_often_as_it_says_where_plays_overlap() -> None:
    assert share_covered(WINDOWED, overlap=4) >= 0.91
    alone = Layout.of_independent(40)
    assert share_covered(alone, overlap=4) < 0.8, "plays that overlap are not independent"
    assert 0.92 <= share_covered(alone, overlap=1) <= 0.98


def test_an_interval_of_few_pairs_speaks_of_pairs() -> None:
    """Six pairs that differ much, twenty plays each that differ little: the pairs decide."""
    layout = Layout(tuple(tuple(range(20 * k, 20 * k + 20)) for k in range(6)), (1,) * 6)
    generator = np.random.default_rng(4)
    hits = 0
    for _ in range(200):
        values = np.repeat(generator.normal(size=6), 20) + 0.1 * generator.normal(size=120)
        found = pooled.bootstrap([[float(v)] for v in values], pooled.mean, layout)
        assert found is not None
        hits += found.low <= 0 <= found.high
    assert hits / 200 >= 0.9


def test_four_windows_carry_no_interval_and_five_do() -> None:
    found = pooled.bootstrap([[float(k)] for k in range(24)], pooled.mean, Layout((tuple(range(24)),), (6,)))
    assert found is not None and not found.known and found.text() == "11.50 [n too small]"
    five = pooled.bootstrap([[float(k)] for k in range(30)], pooled.mean, Layout((tuple(range(30)),), (6,)))
    assert five is not None and five.known


# --- quantiles --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "low", "high"), [(10, 2, 9), (20, 6, 15), (50, 18, 33), (100, 40, 61)])
def test_the_interval_of_a_median_is_the_tables(count: int, low: int, high: int) -> None:
    """Ranks of the distribution-free 95 % interval (Conover, table A3: binomial, p = 1/2)."""
    found = quantiles.order_shares(0.5, count)
    assert (math.floor(found[0] * count + 1e-9), math.ceil(found[1] * count - 1e-9)) == (low, high)


@pytest.mark.parametrize(("q", "too_few", "enough"), [(0.5, 5, 12), (0.95, 70, 90), (0.99, 360, 400)])
def test_a_quantile_is_carried_where_its_order_statistics_are_in_the_sample(
    q: float, too_few: int, enough: int
) -> None:
    """0.95^72 and 0.99^368 are 2.5 %; the effective number of values is a little below theirs."""
    for count, carried in ((too_few, False), (enough, True)):
        values = np.random.default_rng(7).exponential(size=count)
        assert quantiles.carries(sample_of(values, Layout.of_independent(count)), q) == carried, count


def test_the_longest_requests_of_one_play_do_not_carry_a_p99() -> None:
    generator = np.random.default_rng(8)
    groups = [list(map(float, generator.uniform(0, 1, 20))) for _ in range(40)]
    layout = Layout.of_independent(40)
    assert quantiles.carries(Sample.of(groups, layout), 0.99)
    fewer = Layout.of_independent(36)
    assert not quantiles.carries(Sample.of(groups[:36], fewer), 0.99), "720 requests in 36 windows of trace"
    groups[4] = [value + (2 if number < 7 else 0) for number, value in enumerate(groups[4])]
    assert not quantiles.carries(Sample.of(groups, layout), 0.99), "all seven are one outage"


def test_a_tail_that_belongs_to_two_pairs_is_known_as_little_as_from_two() -> None:
    """Eight pairs of ten plays, a hundred requests each. In six or in two of them every play has one long request."""
    layout = Layout(tuple(tuple(range(10 * k, 10 * k + 10)) for k in range(8)), (1,) * 8)
    generator = np.random.default_rng(8)
    values = generator.uniform(0, 1, (80, 100))
    of_pairs = {}
    for pairs in (6, 2):
        tails = values.copy()
        tails[: 10 * pairs, :2] += 5
        sample = Sample.of(tails.tolist(), layout)
        at = float(np.quantile(tails, 1 - 0.02 * pairs / 8, method="inverted_cdf"))
        of_pairs[pairs] = quantiles.effective_count(sample, at) / quantiles.carrying_count(sample, at)
    student = {6: 2.5706, 2: 12.7062}  # of five degrees of freedom, and of one
    assert of_pairs == pytest.approx({pairs: (t / 1.95996) ** 2 for pairs, t in student.items()}, rel=1e-3)


def test_plays_that_all_end_alike_carry_their_quantile_and_few_of_them_do_not() -> None:
    """At the time limit, for example: above it there is nothing."""
    layout = Layout.of_independent(60)
    every = quantiles.quantile(Sample.of([[60.0] * 3] * 60, layout), 0.5)
    assert every is not None and (every.value, every.low, every.high) == (60.0, 60.0, 60.0)
    two = Sample.of([[60.0] * 30] * 2 + [[1.0 + 0.01 * k] * 3 for k in range(58)], layout)
    found = quantiles.quantile(two, 0.95)
    assert found is not None and found.value == 60.0 and not found.carried


def test_values_that_are_equal_do_not_make_one_plays_outage_carry_a_p99() -> None:
    """As with plays that failed: all their requests count with the same time limit."""
    groups = [[0.1 + 0.001 * number + 0.0001 * play for number in range(50)] for play in range(12)]
    groups[3][40:] = [60.0] * 10
    assert not quantiles.carries(Sample.of(groups, Layout.of_independent(12)), 0.99)


@pytest.mark.parametrize("q", [0.5, 0.9])
def test_an_interval_of_a_quantile_covers_as_often_as_it_says(q: float) -> None:
    """Plays of ten requests that share their play's luck."""
    generator, layout = np.random.default_rng(9), Layout.of_independent(40)
    truth = float(special.ndtri(q)) * math.sqrt(1.5)
    hits = 0
    for _ in range(150):
        values = generator.normal(size=(40, 1)) + math.sqrt(0.5) * generator.normal(size=(40, 10))
        found = quantiles.quantile(Sample.of([list(map(float, row)) for row in values], layout), q)
        assert found is not None and found.known
        hits += found.low <= truth <= found.high
    assert hits / 150 >= 0.92


@pytest.mark.parametrize("censored", [0, 40])
def test_a_quantile_of_a_resample_is_that_of_the_values_it_drew(censored: int) -> None:
    generator = np.random.default_rng(11)
    counts = generator.integers(0, 9, size=60)
    groups = [generator.random(int(count)).tolist() for count in counts]
    numbered = iter(range(10**6))
    exact = [[next(numbered) >= censored for _ in group] for group in groups]
    sample = Sample.of(groups, Layout((tuple(range(60)),), (3,)), exact)
    lower = np.array([value for group in groups for value in group])
    upper = np.where([known for of_group in exact for known in of_group], lower, math.inf)
    times = np.repeat(bootstrap.weights(sample.layout), counts, axis=1)
    for q in (0.01, 0.5, 0.95, 0.99, 1.0):
        found = quantiles.quantile_bounds(sample, q)
        for bound, values in zip(found, (lower, upper), strict=True):
            for row in range(0, 2001, 20):
                assert bound[row] == nearest_rank(np.repeat(values, times[row]).tolist(), q)


def test_a_resample_that_drew_no_value_has_no_quantile() -> None:
    sample = Sample.of([[], [1.0]], Layout.of_independent(2))
    lows, _ = quantiles.quantile_bounds(sample, 0.5)
    assert np.array_equal(np.isnan(lows), bootstrap.weights(sample.layout)[:, 1] == 0) and np.isnan(lows).any()


def test_a_quantile_among_censored_values_is_a_lower_bound() -> None:
    groups = [[float(k)] for k in range(1, 91)] + [[60.0]] * 30
    exact = [[True]] * 90 + [[False]] * 30
    sample = Sample.of(groups, Layout.of_independent(120), exact)
    found = quantiles.quantile(sample, 0.9)
    assert found is not None and found.at_least and found.high == math.inf and found.low < 90
    assert found.text(".0f").startswith("≥ ") and found.text(".0f").endswith(", …]")
    median = quantiles.quantile(sample, 0.3)
    assert median is not None and not median.at_least and math.isfinite(median.high)


# --- differences ------------------------------------------------------------------------------------------------------


def test_a_difference_of_means_has_students_interval() -> None:
    values = np.random.default_rng(10).normal(0.4, 1, size=60)
    layout = Layout.of_independent(60)
    constant = np.full(60, 5.0)
    found = changes.change(bounds_of(values + 5, layout), bounds_of(constant, layout), layout, changes.absolute)
    assert found is not None
    error = values.std(ddof=1) / math.sqrt(60)
    assert found.interval.value == pytest.approx(values.mean())
    assert (found.interval.low, found.interval.high) == pytest.approx(
        (values.mean() - 2.001 * error, values.mean() + 2.001 * error), abs=0.15 * error
    )
    assert found.inner.high == pytest.approx(values.mean() + 1.671 * error, abs=0.15 * error)
    t = values.mean() / error
    assert found.p_more == pytest.approx(float(1 - special.stdtr(59, t)), rel=0.5)
    assert found.p_less > 0.9


def test_a_difference_of_independent_figures_has_movers_interval() -> None:
    found = less(Interval(10, 7, 14), Interval(4, 0, 16), correlation=0)
    assert (found.value, found.low, found.high) == pytest.approx((6, 6 - math.hypot(3, 12), 6 + math.hypot(4, 4)))


def test_without_a_difference_p_is_uniform() -> None:
    layout, generator = Layout.of_independent(30), np.random.default_rng(11)
    found = []
    for _ in range(400):
        change = changes.change(
            bounds_of(generator.normal(size=30), layout), bounds_of(np.zeros(30), layout), layout, changes.absolute
        )
        assert change is not None
        found.append(change.p_less)
    assert 0.03 <= sum(p < 0.05 for p in found) / 400 <= 0.07
    assert sum(p < 0.005 for p in found) / 400 <= 0.0125


def test_no_worse_needs_the_whole_inner_interval_below_the_margin() -> None:
    """Two one-sided tests: a small sample without a difference shows no equivalence, a large one does."""
    generator = np.random.default_rng(12)

    def of(count: int, shift: float) -> changes.Change:
        layout = Layout.of_independent(count)
        values = generator.normal(1 + shift, 0.3, size=count)
        found = changes.change(bounds_of(values, layout), bounds_of(np.ones(count), layout), layout)
        assert found is not None
        return found

    assert of(10, 0.0).no_worse(0.05) is None and of(10, 0.0).alike(0.05) is None
    assert of(2000, 0.0).no_worse(0.05) is True and of(2000, 0.0).alike(0.05) is True
    assert of(2000, 0.2).no_worse(0.05) is False and of(2000, 0.2).alike(0.05) is False
    assert of(2000, -0.2).no_worse(0.05) is True and of(2000, -0.2).alike(0.05) is False


def test_a_difference_to_censored_values_holds_whatever_they_were() -> None:
    layout = Layout.of_independent(60)
    ours = Sample.of([[1.0 + 0.01 * k] for k in range(60)], layout)
    theirs = Sample.of([[2.0 + 0.01 * k] for k in range(20)] + [[60.0]] * 40, layout, [[True]] * 20 + [[False]] * 40)
    ours_median, theirs_median = (quantiles.quantile_bounds(one, 0.5) for one in (ours, theirs))
    better = changes.change(ours_median, theirs_median, layout)
    assert better is not None and better.interval.low == -1 and better.interval.high < -0.9 and better.p_less < 0.01
    unknown = changes.change(theirs_median, theirs_median, layout)
    assert unknown is not None and unknown.interval.low <= 0 <= unknown.interval.high == math.inf
    assert unknown.p_less > 0.9 and unknown.p_more > 0.9, "two censored medians: nothing is known"
    worse = changes.change(theirs_median, ours_median, layout)
    assert worse is not None
    assert [one.interval.bound for one in (better, worse)] == ["≤ ", "≥ "]
    assert unknown.interval.is_unknown and not better.interval.is_unknown
    assert better.interval.text().startswith("≤ -0.98 [")


def test_the_p_of_a_difference_to_censored_values_is_that_of_their_worst_values() -> None:
    """Ours have a median of 1 to 1.9, and theirs of 2: no resample of the worst values comes near to theirs."""
    layout, generator = Layout.of_independent(60), np.random.default_rng(13)
    worst = generator.normal(1.9, 0.1, size=60)
    low, high, theirs = (
        bounds_of(worst - 0.9, layout)[0],
        bounds_of(worst, layout)[0],
        bounds_of(np.full(60, 2), layout),
    )
    found, of_worst = (changes.change(ours, theirs, layout) for ours in ((low, high), (high, high)))
    assert found is not None and of_worst is not None
    assert found.p_less == of_worst.p_less > 1e-12


@pytest.mark.parametrize("of_upper", [False, True])
def test_a_difference_is_a_bound_if_a_censored_value_can_move_it_by_one_place(of_upper: bool) -> None:
    """Ours are 1 to 61, of which one, a bound, may be on the other side of the median; theirs are 100."""
    layout, censored = Layout.of_independent(61), 60 if of_upper else 0
    exact = [[play != censored] for play in range(61)]
    ours = Sample.of([[float(play + 1)] for play in range(61)], layout, exact, at_most=of_upper)
    theirs = Sample.of([[100.0]] * 61, layout)
    mine, other = (quantiles.quantile_bounds(one, 0.5) for one in (ours, theirs))
    found = changes.change(mine, other, layout, changes.absolute, of_upper=of_upper)
    turned = changes.change(other, mine, layout, changes.absolute, of_upper=of_upper)
    assert found is not None and turned is not None
    assert (found.interval.value, turned.interval.value) == (-69, 69)
    assert [one.interval.bound for one in (found, turned)] == (["≤ ", "≥ "] if of_upper else ["≥ ", "≤ "])


# --- verdicts ---------------------------------------------------------------------------------------------------------


def test_a_statement_is_true_false_or_not_decided() -> None:
    assert above(Interval(2, 1, 3)) is True
    assert above(Interval(-2, -3, -1)) is False
    assert above(Interval(1, -1, 3)) is None and above(None) is None and above(Interval.alone(9.0)) is None
    assert above(Interval(-1, -2, 0)) is False and above(Interval(1, 0, 2)) is None, "at the boundary is not above it"
    assert below(Interval(-0.5, -0.7, -0.2)) is True and below(Interval(0.5, 0.2, 0.7)) is False and below(None) is None
    assert [inside(Interval(2, 1, 3), 0, high) for high in (4, 2, 0.5)] == [True, None, False]
    assert both([None, False]) is False and both([True, None]) is None


def test_what_is_not_decided_is_never_called_false() -> None:
    assert of_parts([True, True]) == "holds" and of_parts([False, False]) == "does not hold"
    assert of_parts([True, False, None]) == "partly"
    assert of_parts([True, None]) == of_parts([False, None]) == of_parts([None]) == of_parts([]) == "not decided"
    assert in_steps(None, True) == "partly" and in_steps(False, None) == "not decided"
    assert in_steps(False, False) == "does not hold"


def test_the_number_of_runs_that_would_decide_grows_with_the_square_of_the_interval() -> None:
    assert design.units_to_decide(Interval(20, -10, 50), 8) == 37
    assert design.units_to_decide(Interval(20, -40, 80), 8) == 148
    assert design.units_to_decide(Interval(20, -10, 400), 8) == 37, "the end beyond the boundary counts"
    assert design.units_to_decide(Interval(-14, -14, 0), 8) == 17, "never as few as there are"
    assert design.units_to_decide(Interval(0, -1, 1), 8) is None
    assert design.units_to_decide(Interval.alone(5), 8) is None
    assert design.units_to_decide(Interval(5, -1, math.inf), 8) is None
    assert design.units_to_decide(Interval(25, -5, 55), 8, boundary=5) == 37
    assert needs(Interval(20, -10, 50), 8).startswith("some 37 runs instead of 8")
    assert needs(Interval(20, 10, 50), 8) == ""


def test_that_many_runs_decide_in_four_of_five_cases() -> None:
    """The difference is half a standard deviation, found in ten runs."""
    generator = np.random.default_rng(13)
    width = 2 * 2.26 / math.sqrt(10)
    wanted = design.units_to_decide(Interval(0.5, 0.5 - width / 2, 0.5 + width / 2), 10)
    assert wanted is not None
    layout = Layout.of_independent(wanted)
    decided = 0
    for _ in range(200):
        values = generator.normal(0.5, 1, size=wanted)
        decided += above(pooled.bootstrap([[float(v)] for v in values], pooled.mean, layout)) is True
    assert 0.75 <= decided / 200 <= 0.95


def test_the_simulation_of_coverage_knows_its_truth_and_raises_no_false_alarm() -> None:
    """Without memory beyond a play, medians are covered. If B has the better path, its figures are lower."""
    [found] = coverage.simulate([coverage.Campaign(pairs=8, starts=6, loop_s=120, memory_s=2.0)], trials=20)
    median = found.figures["RCT median"]
    assert median.known == 20 and median.covered >= 17
    assert found.false_alarms.false <= 3 and found.false_alarms.trials == 20
    assert min(found.differences[name].covered for name in ("RCT median", "rebuffer rate")) >= 17
    assert found.faster.covered >= 17 and found.faster.false >= 8, "a difference that there is is found"
    text = coverage.markdown([found])
    assert "| 2 s | 8 pairs, each 6 starts in 120 s | 8 |" in text and "n too small" in text
