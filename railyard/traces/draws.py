"""Seeded random draws that give the same numbers on every machine and with every version of the libraries."""

import math
import random

import numpy as np

from railyard.traces.parameters import STEP_MS, Lengths
from railyard.traces.trace import FloatArray

STEPS_PER_S = 1000 // STEP_MS
P90_QUANTILE = 1.2815515655446004
"""0.9 quantile of the standard normal distribution."""


class Draws:
    """One independent stream of random draws. Uses only random(), whose sequence is the same in all versions."""

    def __init__(self, seed: int, label: str) -> None:
        self._random = random.Random(f"{seed}/{label}")

    def uniform(self) -> float:
        return self._random.random()

    def exponential(self, mean: float) -> float:
        return -mean * math.log1p(-self._random.random())

    def normal(self) -> float:
        radius = math.sqrt(self.exponential(2.0))
        return radius * math.cos(2.0 * math.pi * self._random.random())

    def length(self, lengths: Lengths) -> float:
        """A truncated lognormal length in seconds; at least nine draws in ten are within the maximum."""
        sigma = math.log(lengths.p90_s / lengths.median_s) / P90_QUANTILE
        while True:
            drawn = lengths.median_s * math.exp(sigma * self.normal())
            if drawn <= lengths.max_s:
                return drawn


def whole_steps(seconds: float) -> int:
    """Whole steps, at least one."""
    return max(1, round(seconds * STEPS_PER_S))


def ar1(draws: Draws, steps: int, time_constant_s: float) -> FloatArray:
    """A stationary AR(1) process of unit variance."""
    keep = math.exp(-1.0 / (time_constant_s * STEPS_PER_S))
    fresh = math.sqrt(1.0 - keep * keep)
    value, values = draws.normal(), []
    for _ in range(steps):
        values.append(value)
        value = keep * value + fresh * draws.normal()
    return np.array(values)
