"""Quantiles and probabilities of the usual distributions, from scipy. It takes long to load: only where it is used."""

from __future__ import annotations

from functools import cache


def normal(value: float) -> float:
    """Φ: the probability of a smaller value."""
    from scipy import special  # noqa: PLC0415

    return float(special.ndtr(value))


def normal_quantile(share: float) -> float:
    from scipy import special  # noqa: PLC0415

    return float(special.ndtri(share))


def student(freedom: float, value: float) -> float:
    """The probability of a smaller value."""
    from scipy import special  # noqa: PLC0415

    return float(special.stdtr(freedom, value))


@cache
def student_quantile(freedom: float, share: float) -> float:
    from scipy import special  # noqa: PLC0415

    return float(special.stdtrit(freedom, share))


def widening(freedom: float, share: float) -> float:
    """How many times as long an end is by Student's t as by the normal distribution."""
    return student_quantile(freedom, share) / normal_quantile(share)


def binomial_quantile(share: float, count: float, q: float) -> float:
    """k with P(B ≤ k) = share, B binomial (count, q); none of the three need be whole."""
    from scipy import special  # noqa: PLC0415

    return float(special.bdtrik(share, count, q))


def exact_share(hits: float, count: float, level: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share; neither count need be whole."""
    from scipy import special  # noqa: PLC0415

    tail = (1 - level) / 2
    low = 0.0 if hits == 0 else float(special.betaincinv(hits, count - hits + 1, tail))
    high = 1.0 if hits == count else float(special.betaincinv(hits + 1, count - hits, 1 - tail))
    return low, high


def gamma_quantile(shape: float, share: float) -> float:
    """Quantile of the gamma distribution with scale 1."""
    from scipy import special  # noqa: PLC0415

    return float(special.gammaincinv(shape, share))
