"""The power of the gate and its rate of false alarms, by simulation.

The noise is real: the suite's plays run a second time with a player that starts SHIFT_MS later, so both sides of a pair
differ as after a change that makes nothing better or worse. A is drawn at random from the two sides in each window of
trace, so the null hypothesis is true. A regression is planted in one row, drawn at random: in a share of its windows
every request of B takes a factor longer. Then the gate's own comparison decides.
"""

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from railyard.base.lists import grouped
from railyard.base.style import COLOURWAY
from railyard.figures.rows import GATED
from railyard.gate.compare import Comparison, Places, compared, windows_of
from railyard.gate.suite import Suite
from railyard.results.records import Run
from railyard.stats import statistics
from railyard.stats.distributions import exact_share

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHIFT_MS = 7
FACTORS = (1.2, 2.0, 7.0)
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0)

Pair = list[tuple[float, float]]
"""The figures of both versions, in the order of GATED."""


@dataclass(frozen=True)
class Play:
    """One play's figures with either side as A: unchanged, and with B slowed by each factor."""

    as_is: tuple[Pair, Pair]
    slowed: dict[float, tuple[Pair, Pair]]


Window = list[Play]
Rows = list[list[Window]]
"""The windows of trace of each row."""


@dataclass(frozen=True)
class AlarmRate:
    """The number of trials in which the gate raised an alarm."""

    windows: int
    factor: float
    share: float
    alarms: int
    trials: int
    tests: int = 0
    """Single comparisons in which a figure moved, in trials without a regression; `rejected`: those with an uncorrected
    p value below alpha."""
    rejected: int = 0

    @property
    def rate(self) -> float:
        return self.alarms / self.trials


def _slower(run: Run, factor: float) -> Run:
    return replace(run, chunks=[replace(chunk, rct_s=factor * chunk.rct_s) for chunk in run.chunks])


def _figures(before: Run, after: Run) -> Pair:
    return [figure.of_pair(before, after) for figure in GATED]


def play_of(one: Run, other: Run, factors: Sequence[float]) -> Play:
    slowed = {f: (_figures(one, _slower(other, f)), _figures(other, _slower(one, f))) for f in factors}
    return Play((_figures(one, other), _figures(other, one)), slowed)


def rows_of(runs: Sequence[Run], shifted: Sequence[Run], places: Places, factors: Sequence[float] = FACTORS) -> Rows:
    """The windows of each row."""
    again = {run.run_id: run for run in shifted}
    rows = grouped(((places.of(run.pair), run.label), run) for run in runs)
    row_windows: Rows = []
    for of_row in rows.values():
        others = [again[run.run_id] for run in of_row]
        plays = (play_of(run, other, factors) for run, other in zip(of_row, others, strict=True))
        windows = grouped(zip(windows_of(of_row, others, places.constant), plays, strict=True))
        row_windows.append(list(windows.values()))
    return row_windows


Drawn = list[list[Pair]]
"""The figures of the plays in each window."""


def _comparisons(windows: Drawn, suite: Suite) -> list[Comparison]:
    pairs = [pair for window in windows for pair in window]
    numbers = [number for number, window in enumerate(windows) for _ in window]
    comparisons = []
    for number, figure in enumerate(GATED):
        old, new = [pair[number][0] for pair in pairs], [pair[number][1] for pair in pairs]
        comparisons.append(compared(figure, old, new, numbers, suite.floors, suite.alpha))
    return [one for one in comparisons if one.moved]


def _is_alarm(rows: Sequence[Sequence[Comparison]]) -> bool:
    """The gate's decision over all rows."""
    every = [one for row in rows for one in row]
    adjusted = statistics.holm([one.p_worse for one in every])
    return any(
        replace(one, adjusted_worse=p).verdict == "worse"
        for one, p in zip(every, adjusted, strict=True)
        if p < one.alpha
    )


def _with_sides(drawn: random.Random, row: Sequence[Window], slow: Collection[int] = (), factor: float = 1.0) -> Drawn:
    """The figures of a row's plays. The side that is A is drawn for each window. In the windows of `slow` B takes
    `factor` times as long."""
    sides: Drawn = []
    for number, window in enumerate(row):
        side = drawn.randrange(2)
        sides.append([(play.slowed[factor] if number in slow else play.as_is)[side] for play in window])
    return sides


def simulate(
    rows: Rows,
    suite: Suite,
    windows: int,
    trials: int,
    grid: Sequence[tuple[float, float]],
    seed: int = 1,
    report: Callable[[AlarmRate], None] = lambda _: None,
) -> list[AlarmRate]:
    """The rate of alarms with that number of windows in each row: without a regression (factor 1), then for each factor
    and share of slowed windows in `grid`."""
    drawn = random.Random(f"{seed} {windows}")
    chosen = [[drawn.sample(row, min(windows, len(row))) for row in rows] for _ in range(trials)]
    nothing = [[_comparisons(_with_sides(drawn, row), suite) for row in trial] for trial in chosen]
    single = [one.p_worse < suite.alpha for trial in nothing for row in trial for one in row]
    alarms = sum(_is_alarm(of_trial) for of_trial in nothing)
    results = [AlarmRate(windows, 1.0, 0.0, alarms, trials, len(single), sum(single))]
    report(results[0])
    for factor, share in grid:
        alarms = 0
        for of_trial, quiet in zip(chosen, nothing, strict=True):
            target = drawn.randrange(len(of_trial))
            row = of_trial[target]
            slow = set(drawn.sample(range(len(row)), round(share * len(row))))
            hit = _comparisons(_with_sides(drawn, row, slow, factor), suite)
            alarms += _is_alarm([hit if k == target else r for k, r in enumerate(quiet)])
        results.append(AlarmRate(windows, factor, share, alarms, trials))
        report(results[-1])
    return results


# --- what is shown ----------------------------------------------------------------------------------------------------


def share_words(tally: AlarmRate) -> str:
    """The rate with its exact 95 % interval (Clopper and Pearson)."""
    low, high = exact_share(tally.alarms, tally.trials)
    return f"{100 * tally.rate:.0f} % [{100 * low:.0f}, {100 * high:.0f}]"


def markdown(alarm_rates: Sequence[AlarmRate]) -> str:
    """One table for each number of windows a row."""
    lines: list[str] = []
    for windows in dict.fromkeys(one.windows for one in alarm_rates):
        here = {(one.factor, one.share): one for one in alarm_rates if one.windows == windows}
        shares = sorted({share for factor, share in here if factor > 1})
        nothing = here[1.0, 0.0]
        size = f"; {100 * nothing.rejected / nothing.tests:.1f} % of the single tests reject" if nothing.tests else ""
        lines += [
            f"{windows} windows a row; false alarms {share_words(nothing)}{size}:",
            "",
            "| requests take | " + " | ".join(f"in {100 * share:.0f} % of the windows" for share in shares) + " |",
            "| --- |" + " ---: |" * len(shares),
        ]
        for factor in sorted({factor for factor, _ in here if factor > 1}):
            cells = [share_words(here[factor, share]) for share in shares]
            lines.append(f"| {factor:g} times as long | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def drawn(alarm_rates: Sequence[AlarmRate]) -> "Figure":
    """Power against the share of the windows that a regression hits."""
    from matplotlib.figure import Figure  # noqa: PLC0415  it takes long to load

    numbers = list(dict.fromkeys(one.windows for one in alarm_rates))
    figure = Figure(figsize=(4.2 * len(numbers), 3.0), layout="constrained")
    axes = figure.subplots(1, len(numbers), sharey=True, squeeze=False)[0]
    for axis, windows in zip(axes, numbers, strict=True):
        for number, factor in enumerate(sorted({one.factor for one in alarm_rates if one.factor > 1})):
            curve = sorted(
                (one for one in alarm_rates if one.windows == windows and one.factor == factor), key=lambda f: f.share
            )
            axis.plot(
                [100 * one.share for one in curve],
                [100 * one.rate for one in curve],
                marker="os^"[number % 3],
                color=COLOURWAY[number],
                label=f"{factor:g} times as long",
            )
        [false] = [one for one in alarm_rates if one.windows == windows and one.factor == 1]
        axis.axhline(100 * false.rate, color="#777", linestyle=":", label="false alarms")
        axis.set(title=f"{windows} windows a row", xlabel="windows that a regression hits, %", ylim=(-2, 102))
    axes[0].set_ylabel("simulations with an alarm, %")
    axes[-1].legend(loc="lower right")
    return figure
