"""The parts of the time between the oracle and a scheme: shared links, the transport, and missing information.

    excess       mean RCT of the scheme − oracle
    sharing      oracle's play − oracle, of the scheme's plays
    transport    mean RCT of the clairvoyant scheduler − oracle's play, of its plays
    information  the rest: the scheme's time above the oracle's play − that of the clairvoyant scheduler

docs/explanation/oracle.md defines oracle and oracle's play.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from railyard.figures.figure import Figure, Quantile, Values
from railyard.figures.play import Play, Request
from railyard.results.records import Run
from railyard.stats.bootstrap import Layout, Reals, weights


def rct(chunk: Request) -> float:
    return chunk.rct_s


def of_oracle(chunk: Request) -> float:
    """The oracle's RCT; the chunk's own if the traces are unknown."""
    return chunk.rct_s if chunk.oracle_s is None else chunk.oracle_s


def of_play(chunk: Request) -> float:
    return chunk.rct_s if chunk.oracle_play_s is None else chunk.oracle_play_s


def figures(name: str, of: Callable[[Request], float]) -> tuple[Figure, Figure]:
    """Median and p95 of the times `of` the chunks of a scheme's plays."""

    def values(play: Play) -> Values:
        return [(of(chunk), True) for chunk in play.chunks]

    median, p95 = (
        Figure(f"{name} {title}", f"{name} {title}", "s", Quantile(values, q))
        for title, q in (("median", 0.5), ("p95", 0.95))
    )
    return median, p95


@dataclass(frozen=True)
class Shares:
    """The mean time above the oracle and its parts, in seconds, for each row of weights."""

    excess: Reals
    sharing: Reals
    transport: Reals

    @property
    def information(self) -> Reals:
        rest: Reals = self.excess - self.sharing - self.transport
        return rest

    @property
    def parts(self) -> tuple[Reals, Reals, Reals]:
        return self.sharing, self.transport, self.information


def shares_of(ours: Sequence[Run], clairvoyant: Sequence[Run], layout: Layout) -> Shares:
    """The shares over plays of both schemes at the same pairs and starts."""
    drawn = weights(layout)

    def mean(runs: Sequence[Run], of: Callable[[Request], float]) -> Reals:
        sums = drawn @ np.array([sum(of(chunk) for chunk in run.chunks) for run in runs])
        means: Reals = sums / (drawn @ np.array([len(run.chunks) for run in runs]))
        return means

    return Shares(
        mean(ours, rct) - mean(ours, of_oracle),
        mean(ours, of_play) - mean(ours, of_oracle),
        mean(clairvoyant, rct) - mean(clairvoyant, of_play),
    )


def above_play_s(runs: Sequence[Run], of: Callable[[Request], bool]) -> float:
    """Mean time above the oracle's play, in seconds, of the chunks for which `of` is true."""
    return float(np.mean([chunk.rct_s - of_play(chunk) for run in runs for chunk in run.chunks if of(chunk)]))
