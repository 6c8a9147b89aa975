"""Tests whether intervals cover as often as they claim, by simulated plays whose true figures are known.

The capacity of two paths is a stationary process: its logarithm is autoregressive, with a correlation time like that of
recorded traces. A pair of traces is one loop of it. Plays start at offsets spread over the loop and overlap; scheme A
uses the first path, scheme B the better one of both at each moment. The true figures are those of the process, over
very many loops. Each trial draws new traces, which railyard/stats/ judges like a campaign.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from railyard.base.page import table_lines
from railyard.stats import changes, quantiles, rates
from railyard.stats.bootstrap import FEWEST, Layout, Reals
from railyard.stats.changes import Bounds, Change
from railyard.stats.distributions import exact_share
from railyard.stats.intervals import Interval
from railyard.stats.quantiles import Sample
from railyard.stats.rates import Sums

PLAY_S = 20
"""A request a second."""
SPREAD = 0.7  # standard deviation of the logarithm of a path's capacity, within a pair
PAIR_SPREAD = 0.4  # the same between pairs
LIMIT_S = 20.0  # a request that takes longer is censored
MOST_STALLED_S = 40.0  # the most of a play, by its time limit
TYPICAL_S = 0.4  # RCT at the mean of the logarithm
FAST_S = 0.12  # the same in campaigns with rare stalls
MARGIN = 0.02
FASTER = 0.15  # share by which every request is shorter, for a difference to be found
TRUTH_LOOPS = 4000
RATE = "rebuffer rate"
QUANTILES = (("RCT median", 0.5), ("RCT p95", 0.95), ("RCT p99", 0.99))


@dataclass(frozen=True)
class Campaign:
    """The number of plays and their starts."""

    pairs: int
    starts: int
    loop_s: int
    memory_s: float
    """The correlation time of the capacity."""
    typical_s: float = TYPICAL_S

    @property
    def layout(self) -> Layout:
        plays = np.arange(self.pairs * self.starts).reshape(self.pairs, self.starts)
        block = max(1, math.ceil(PLAY_S * self.starts / self.loop_s))
        return Layout(tuple(tuple(map(int, row)) for row in plays), (block,) * self.pairs)

    @property
    def speaks_of_pairs(self) -> bool:
        """Whether the interval is for pairs like these. The true figure then is over different pairs."""
        return self.pairs >= FEWEST

    @property
    def words(self) -> str:
        if self.starts == 1:
            return f"{self.pairs} viewers"
        pairs = f"{self.pairs} pairs, each" if self.pairs > 1 else "1 pair,"
        return f"{pairs} {self.starts} starts in {self.loop_s} s"


CAMPAIGNS = (
    *(
        Campaign(pairs, starts, loop_s, memory_s)
        for memory_s in (5.0, 20.0)
        for pairs, starts, loop_s in ((1, 30, 100), (1, 60, 300), (8, 10, 100), (14, 10, 100), (28, 20, 100))
    ),
    *(Campaign(pairs, 30, 300, memory_s) for pairs in (3, 6) for memory_s in (5.0, 20.0)),
    Campaign(420, 1, 100, 5.0, FAST_S),  # like a population, in which few viewers stall
)


@dataclass
class Plays:
    """Request completion times, a row for each play: of B, and of A at the same places."""

    ours: Reals
    theirs: Reals


def _loops(generator: np.random.Generator, count: int, length_s: int, memory_s: float) -> Reals:
    """Loops of the process, with a value for each second, made from its spectrum, so that the end continues at the
    start."""
    lags = np.minimum(np.arange(length_s), length_s - np.arange(length_s))
    power = np.maximum(np.fft.fft(np.exp(-lags / memory_s)).real, 0)
    noise = generator.normal(size=(count, length_s)) + 1j * generator.normal(size=(count, length_s))
    loops: Reals = SPREAD * np.fft.fft(noise * np.sqrt(power / length_s), axis=1).real
    return loops


def plays_of(generator: np.random.Generator, campaign: Campaign, differ: bool | None = None) -> Plays:
    """One campaign. `differ`: whether pairs do."""
    differ = campaign.speaks_of_pairs if differ is None else differ
    mean = (PAIR_SPREAD if differ else 0) * generator.normal(size=(campaign.pairs, 1))
    first, second = (mean + _loops(generator, campaign.pairs, campaign.loop_s, campaign.memory_s) for _ in range(2))
    offsets = (np.arange(campaign.starts) * campaign.loop_s) // campaign.starts
    at = (offsets[:, None] + np.arange(PLAY_S)) % campaign.loop_s
    theirs, ours = (
        campaign.typical_s * np.exp(-log[:, at].reshape(-1, PLAY_S)) for log in (first, np.maximum(first, second))
    )
    noise = np.exp(0.1 * generator.normal(size=(2, *theirs.shape)))
    return Plays(ours * noise[0], theirs * noise[1])


def _sample(times: Reals, layout: Layout) -> Sample:
    return Sample.of(np.minimum(times, LIMIT_S).tolist(), layout, (times < LIMIT_S).tolist())


def _stalled_s(times: Reals) -> Reals:
    """The time stalled in each play, in s. A request is due after 1 s."""
    stalled_s: Reals = np.minimum(np.maximum(times - 1, 0).sum(axis=1), MOST_STALLED_S)
    return stalled_s


def _stalls(times: Reals) -> Sums:
    """The sums of the rebuffer rate."""
    return Sums(_stalled_s(times), np.full(len(times), float(PLAY_S)))


@dataclass
class Covered:
    """Counts of intervals of a figure that had ends, and that covered the true value."""

    trials: int = 0
    known: int = 0
    covered: int = 0
    false: int = 0
    """Without a difference: how often one was found at 5 %, or "no worse" was found at the margin. With a difference:
    how often it was found."""

    def add(self, interval: Interval | None, truth: float) -> None:
        self.trials += 1
        if interval is not None and interval.known:
            self.known += 1
            self.covered += interval.low <= truth <= interval.high

    @property
    def words(self) -> str:
        if self.known < self.trials / 4:
            return "n too small" if not self.known else f"n too small in {100 - 100 * self.known / self.trials:.0f} %"
        low, high = exact_share(self.covered, self.known)
        share = f"{100 * self.covered / self.known:.0f} % [{100 * low:.0f}, {100 * high:.0f}]"
        return share if self.known == self.trials else f"{share}, carried in {100 * self.known / self.trials:.0f} %"


@dataclass
class CoverageResult:
    """The results for one kind of campaign."""

    campaign: Campaign
    figures: dict[str, Covered] = field(default_factory=dict)
    differences: dict[str, Covered] = field(default_factory=dict)
    false_alarms: Covered = field(default_factory=Covered)
    false_stalls: Covered = field(default_factory=Covered)
    false_no_worse: Covered = field(default_factory=Covered)
    false_tails: Covered = field(default_factory=Covered)
    faster: Covered = field(default_factory=Covered)
    """For the p99, if every request is shorter by FASTER."""


Measure = Callable[[Reals, Layout], Bounds]


def _bounds(q: float) -> Measure:
    return lambda times, layout: quantiles.quantile_bounds(_sample(times, layout), q)


def _truths(campaign: Campaign, generator: np.random.Generator) -> tuple[dict[str, float], dict[str, float]]:
    """The figures of A, and the differences of B to it, of the process: over TRUTH_LOOPS loops."""
    # With rare stalls, the true figure needs more loops.
    many = TRUTH_LOOPS if campaign.typical_s == TYPICAL_S else 10 * TRUTH_LOOPS
    loops = Campaign(many, 5, campaign.loop_s, campaign.memory_s, campaign.typical_s)
    plays = plays_of(generator, loops, differ=campaign.speaks_of_pairs)
    levels, differences = {}, {}
    for name, q in QUANTILES:
        ours, theirs = (float(np.quantile(times, q)) for times in (plays.ours, plays.theirs))
        levels[name], differences[name] = theirs, ours / theirs - 1
    ours, theirs = (float(_stalled_s(times).mean()) / PLAY_S for times in (plays.ours, plays.theirs))
    levels[RATE], differences[RATE] = theirs, ours - theirs
    return levels, differences


def _change(measure: Measure, ours: Reals, theirs: Reals, layout: Layout) -> Change | None:
    return changes.change(measure(ours, layout), measure(theirs, layout), layout, changes.relative)


def _trial(
    coverage: CoverageResult, generator: np.random.Generator, levels: dict[str, float], differences: dict[str, float]
) -> None:
    layout, plays = coverage.campaign.layout, plays_of(generator, coverage.campaign)
    for name, q in (one for one in QUANTILES if one[0] in coverage.figures):
        coverage.figures[name].add(quantiles.quantile(_sample(plays.theirs, layout), q), levels[name])
        change = _change(_bounds(q), plays.ours, plays.theirs, layout)
        coverage.differences[name].add(change.interval if change else None, differences[name])
    coverage.figures[RATE].add(rates.level(_stalls(plays.theirs), layout), levels[RATE])
    change = rates.change(_stalls(plays.ours), _stalls(plays.theirs), layout)
    coverage.differences[RATE].add(change.interval if change else None, differences[RATE])
    _without_difference(coverage, generator)


def _without_difference(coverage: CoverageResult, generator: np.random.Generator) -> None:
    """Simulates both schemes on paths of the same kind, where any difference found is false, and with one of them
    slower by the margin, where "no worse" is false."""
    layout, one = coverage.campaign.layout, plays_of(generator, coverage.campaign)
    swap = generator.integers(0, 2, size=len(one.ours)).astype(bool)[:, None]
    ours, theirs = np.where(swap, one.ours, one.theirs), np.where(swap, one.theirs, one.ours)
    tested = [(coverage.false_stalls, rates.change(_stalls(ours), _stalls(theirs), layout), 1.0)]
    if QUANTILES[0][0] in coverage.figures:
        median, slower = _bounds(0.5), (1 + MARGIN) * ours
        tested.append((coverage.false_alarms, _change(median, ours, theirs, layout), 1.0))
        tested.append((coverage.false_no_worse, _change(median, slower, theirs, layout), 1 + MARGIN))
        tested.append((coverage.false_tails, _change(_bounds(QUANTILES[-1][1]), ours, theirs, layout), 1.0))
        _all_shorter(coverage, generator, one.theirs)
    for tally, change, factor in tested:
        tally.trials += 1
        if change is None or not change.interval.known:
            continue
        tally.known += 1
        said = min(1.0, 2 * min(change.p_less, change.p_more)) < 0.05 if factor == 1 else change.no_worse(MARGIN)
        tally.false += bool(said)


def _all_shorter(coverage: CoverageResult, generator: np.random.Generator, theirs: Reals) -> None:
    """Simulates requests that take 1 − FASTER times as long, give or take a tenth, and counts found and covered
    differences."""
    ours = (1 - FASTER) * theirs * np.exp(0.1 * generator.normal(size=theirs.shape))
    change = _change(_bounds(QUANTILES[-1][1]), ours, theirs, coverage.campaign.layout)
    coverage.faster.add(change.interval if change else None, -FASTER)
    coverage.faster.false += change is not None and change.interval.known and change.p_less < 0.025


def simulate(
    campaigns: Iterable[Campaign], trials: int, seed: int = 1, *, rate_only: bool = False
) -> Iterator[CoverageResult]:
    """Simulates campaigns. `rate_only`: only the rebuffer rate, in a small part of the time, over the same plays."""
    for number, campaign in enumerate(campaigns):
        generator = np.random.default_rng([seed, number])
        levels, differences = _truths(campaign, generator)
        names = [RATE] if rate_only else list(levels)
        coverage = CoverageResult(campaign, {name: Covered() for name in names}, {name: Covered() for name in names})
        for _ in range(trials):
            _trial(coverage, generator, levels, differences)
        yield coverage


def _rate(tally: Covered) -> str:
    if not tally.known:
        return "n too small"
    low, high = exact_share(tally.false, tally.known)
    return f"{100 * tally.false / tally.known:.0f} % [{100 * low:.0f}, {100 * high:.0f}]"


PLACE = ("correlation time", "plays", "units")


def markdown(by_campaign: Iterable[CoverageResult]) -> str:
    """Three tables: figures, differences, and false statements where there is no difference."""
    every = list(by_campaign)
    lines: list[str] = []
    for title, of in (("a figure", "figures"), ("a difference", "differences")):
        rows = [[*_place(one), *(tally.words for tally in getattr(one, of).values())] for one in every]
        lines += [f"95 % intervals of {title} that cover the true value:", ""]
        lines += [*table_lines((*PLACE, *getattr(every[0], of)), *rows), ""]
    tallies = {
        "RCT median differs": "false_alarms",
        "RCT p99 differs": "false_tails",
        "rebuffer rate differs": "false_stalls",
        "no worse": "false_no_worse",
    }
    known = {head: of for head, of in tallies.items() if any(getattr(one, of).trials for one in every)}
    rows = [[*_place(one), *(_rate(getattr(one, of)) for of in known.values())] for one in every]
    lines += ["Comparisons without a difference that find one at 5 %:", ""]
    if "no worse" in known:
        lines[-2:] = [
            "Comparisons without a difference that find one at 5 %, and comparisons with a scheme that is slower by",
            f"the margin of {100 * MARGIN:g} % that call it no worse:",
            "",
        ]
    lines += [*table_lines((*PLACE, *known), *rows), ""]
    if any(one.faster.trials for one in every):
        shorter = f"Where every request is {100 * FASTER:g} % shorter"
        lines += [f"{shorter}: differences of the RCT p99 that cover it, and those that find it:", ""]
        rows = [[*_place(one), one.faster.words, _rate(one.faster)] for one in every]
        lines += [*table_lines((*PLACE, "covered", "found"), *rows), ""]
    return "\n".join(lines)


def _place(one: CoverageResult) -> list[str]:
    return [f"{one.campaign.memory_s:g} s", one.campaign.words, str(one.campaign.layout.units)]
