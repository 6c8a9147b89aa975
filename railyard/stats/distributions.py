"""Quantiles and probabilities of the usual distributions, from scipy, which is loaded at the first use: it is slow."""

from functools import cache
from typing import Any


@cache
def _special() -> Any:
    from scipy import special  # noqa: PLC0415

    return special


def normal(value: float) -> float:
    """Φ: the probability of a smaller value."""
    return float(_special().ndtr(value))


def normal_quantile(share: float) -> float:
    return float(_special().ndtri(share))


def less_certain(tail: float, likeness: float) -> float:
    """A tail probability of a test, corrected: the variance is `likeness` times what the test assumes."""
    return tail if likeness == 1 else normal(normal_quantile(tail) / likeness**0.5)


def student(freedom: float, value: float) -> float:
    """The probability of a smaller value."""
    return float(_special().stdtr(freedom, value))


@cache
def student_quantile(freedom: float, share: float) -> float:
    return float(_special().stdtrit(freedom, share))


def widening(freedom: float, share: float) -> float:
    """The ratio of the quantiles of Student's t and of the normal distribution."""
    return student_quantile(freedom, share) / normal_quantile(share)


def binomial_quantile(share: float, count: float, q: float) -> float:
    """k with P(B ≤ k) = share, B binomial (count, q). k and count need not be integers."""
    return float(_special().bdtrik(share, count, q))


def exact_share(hits: float, count: float, level: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share. hits and count need not be integers."""
    tail = (1 - level) / 2
    low = 0.0 if hits == 0 else float(_special().betaincinv(hits, count - hits + 1, tail))
    high = 1.0 if hits == count else float(_special().betaincinv(hits + 1, count - hits, 1 - tail))
    return low, high


def gamma_quantile(shape: float, share: float) -> float:
    """Quantile of the gamma distribution with scale 1."""
    return float(_special().gammaincinv(shape, share))
