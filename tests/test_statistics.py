"""The statistics of the gate against scipy's and brute force: independent implementations of the same definitions."""

import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from railyard.stats import statistics

SEED = 20211


def _samples(count: int, size: int) -> list[list[float]]:
    generator = np.random.default_rng(SEED + size)
    return [list(generator.normal(0.3, 1.0, size)) for _ in range(count)]


@pytest.mark.parametrize("size", [3, 5, 8, 12, 20])
def test_signed_rank_p_is_scipys_exact_p_without_ties(size: int) -> None:
    for deltas in _samples(20, size):
        expected = stats.wilcoxon(deltas, alternative="greater", method="exact").pvalue
        assert statistics.signed_rank_p(deltas) == pytest.approx(expected, rel=1e-9)


@settings(max_examples=60)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9))
def test_signed_rank_p_counts_all_sign_patterns_with_ties_and_zeros(values: list[int]) -> None:
    moved = [value for value in values if value]
    ranks = stats.rankdata(np.abs(moved)) if moved else np.array([])
    observed = sum(rank for rank, value in zip(ranks, moved, strict=True) if value > 0)
    patterns = [float(np.dot(ranks, signs)) for signs in itertools.product((0, 1), repeat=len(moved))]
    expected = sum(total >= observed - 1e-9 for total in patterns) / len(patterns)
    assert statistics.signed_rank_p([float(value) for value in values]) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("size", [1, 2, 7, 20])
def test_pseudo_median_is_the_median_of_the_walsh_averages(size: int) -> None:
    for deltas in _samples(10, size):
        walsh = [(a + b) / 2 for a, b in itertools.combinations_with_replacement(deltas, 2)]
        assert statistics.pseudo_median(deltas) == pytest.approx(float(np.median(walsh)), rel=1e-12)


@pytest.mark.parametrize("size", [6, 9, 14])
def test_the_ends_of_a_pseudo_median_are_the_shifts_that_the_test_lets_stand(size: int) -> None:
    generator = random.Random(size)
    for _ in range(5):
        deltas = [generator.gauss(0.3, 1) for _ in range(size)]
        low, high = statistics.pseudo_median_ends(deltas, 0.95)

        def refused(shift: float, deltas: list[float] = deltas) -> bool:
            moved = [delta - shift for delta in deltas]
            return min(statistics.signed_rank_p(moved), statistics.signed_rank_p([-delta for delta in moved])) <= 0.025

        assert not refused(low + 1e-9) and not refused(high - 1e-9)
        assert refused(low - 1e-9) and refused(high + 1e-9)
    assert statistics.pseudo_median_ends([1.0, 2.0, 3.0, 4.0, 5.0], 0.95) == (-math.inf, math.inf), "p is 1/32 at best"


def test_pseudo_median_shifts_with_the_sample() -> None:
    deltas = _samples(1, 15)[0]
    assert statistics.pseudo_median([delta + 5 for delta in deltas]) == pytest.approx(
        statistics.pseudo_median(deltas) + 5
    )


def _step_down(p_values: list[float], alpha: float) -> list[bool]:
    """Holm's procedure as he states it: from the smallest p up, reject while p <= alpha / (hypotheses left)."""
    rejected = [False] * len(p_values)
    for done, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        if p_values[index] > alpha / (len(p_values) - done):
            break
        rejected[index] = True
    return rejected


@settings(max_examples=200)
@given(st.lists(st.floats(0.0005, 1.0), min_size=1, max_size=8), st.sampled_from([0.01, 0.05, 0.2]))
def test_holm_rejects_what_the_step_down_procedure_rejects(p_values: list[float], alpha: float) -> None:
    adjusted = statistics.holm(p_values)
    clear = [abs(value - alpha) > 1e-9 for value in adjusted]
    expected = _step_down(p_values, alpha)
    assert [a <= alpha for a, c in zip(adjusted, clear, strict=True) if c] == [
        e for e, c in zip(expected, clear, strict=True) if c
    ]


@pytest.mark.parametrize("q", [0.0, 0.1, 0.5, 0.95, 0.99, 1.0])
@pytest.mark.parametrize("size", [1, 2, 10, 99, 100])
def test_nearest_rank_is_numpys_inverted_cdf(size: int, q: float) -> None:
    for values in _samples(3, size):
        expected = float(np.quantile(values, q, method="inverted_cdf"))
        assert math.isclose(statistics.nearest_rank(values, q), expected)
