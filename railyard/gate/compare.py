"""From the runs of two versions to a verdict: per scenario, scheme and metric, paired by trace and start offset.

Plays that overlap in a trace see the same stretch of it, so that their differences have the same sign more often than
not. The unit of the test is therefore a window of trace: it counts once, with the mean of its plays' differences.
"""

import hashlib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean, median

import numpy as np

from railyard.base.lists import grouped
from railyard.figures.figure import Figure
from railyard.figures.rows import GATED
from railyard.gate.suite import Floors
from railyard.results.differences import layout_of
from railyard.results.records import RESULT_OUTCOMES, Run
from railyard.run.record import ABOUT
from railyard.run.runspec import RunSpec
from railyard.stats import statistics
from railyard.stats.bootstrap import FEWEST, Reals
from railyard.stats.distributions import exact_share, less_certain
from railyard.stats.intervals import LEVEL, Interval, exclusive_correlation, less
from railyard.stats.pooled import bootstrap, mean


def _mean(deltas: Sequence[float]) -> float:
    """The mean; NaN if some plays never came that far before, and others never do now."""
    return math.nan if {math.inf, -math.inf} <= set(deltas) else fmean(deltas)


def _of_window(deltas: Sequence[float]) -> float:
    """The mean over a window's plays; 0 if it is undefined."""
    mean = _mean(deltas)
    return 0.0 if math.isnan(mean) else mean


def _counted(deltas: Sequence[float], level: float) -> Interval:
    """The share of plays that got worse minus the share that got better. Each window is one observation, of which a
    part may have changed (Korn and Graubard 1998)."""

    def share(changed: Reals) -> Interval:
        return Interval(fmean(changed), *exact_share(math.fsum(changed), len(changed), level))

    worse, better = np.maximum(deltas, 0.0), np.maximum(np.negative(deltas), 0.0)
    return less(share(worse), share(better), exclusive_correlation(worse, better, len(deltas)))


@dataclass(frozen=True)
class Comparison:
    """One metric of one scheme in one scenario, before and after, play by play."""

    figure: Figure
    before: list[float]
    after: list[float]
    floor: float
    windows: Sequence[int] | None = None
    """The number of each play's window. None: each play is a window."""
    likeness: float = 1.0
    """Variance of the mean over windows / the variance if windows were independent."""
    p_worse: float = 1.0  # one-sided, not corrected
    p_better: float = 1.0
    adjusted_worse: float = 1.0  # corrected for the number of comparisons
    adjusted_better: float = 1.0
    alpha: float = 0.05
    is_known: bool = True
    """False: no play of either version reports the metric, so `before` and `after` have no meaning."""

    @cached_property
    def play_deltas(self) -> list[float]:
        """For each play, ln(after / before) of a time or after − before of a rate."""
        return self.figure.deltas(self.before, self.after)

    @cached_property
    def deltas(self) -> list[float]:
        """The values that are tested: the mean of the plays' differences, for each window of trace."""
        windows = range(len(self.play_deltas)) if self.windows is None else self.windows
        return [_of_window(some) for some in grouped(zip(windows, self.play_deltas, strict=True)).values()]

    @property
    def moved(self) -> bool:
        return self.is_known and any(self.play_deltas)

    @property
    def typical(self) -> tuple[float, float]:
        """One value before and one after: the median over plays of a time, the mean of a rate. NaN: not reported."""
        if not self.is_known:
            return math.nan, math.nan
        of = median if self.figure.is_relative else fmean
        return of(self.before), of(self.after)

    @property
    def change(self) -> float:
        """The change: for a time the pseudo-median of the windows' ratios − 1, for a rate the mean difference."""
        if not self.figure.is_relative:
            mean = _mean(self.deltas)
            return statistics.pseudo_median(self.deltas) if math.isnan(mean) else mean
        return math.expm1(statistics.pseudo_median(self.deltas))

    @property
    def level(self) -> float:
        """The level at which an interval that assumes independent windows covers 95 %."""
        return 1 - 2 * less_certain((1 - LEVEL) / 2, 1 / self.likeness)

    @property
    def interval(self) -> Interval:
        """The change with its 95 % interval, not corrected for multiple comparisons, in the unit of the change.

        For a time: the shifts that the signed-rank test does not reject. For counts: the exact intervals of the shares
        that got worse and better. For other rates: the bootstrap.
        """
        if self.figure.is_relative:
            ends = statistics.pseudo_median_ends(self.deltas, self.level)
            return Interval(statistics.pseudo_median(self.deltas), *ends).mapped(math.expm1)
        if self.figure.is_counted:
            return _counted(self.deltas, self.level)
        if not all(map(math.isfinite, self.deltas)):  # something never happened in one of the versions
            return Interval.alone(self.change)
        of_windows = bootstrap([[delta] for delta in self.deltas], mean) or Interval.alone(self.change)
        return of_windows if self.likeness == 1 else of_windows.stretched(math.sqrt(self.likeness))

    @property
    def fewest(self) -> int:
        """The least number of windows for an interval. For a time 2 · 2⁻ⁿ ≤ 5 %, where 2⁻ⁿ is the probability of the
        rarest result of the signed-rank test."""
        return math.ceil(math.log2(2 / (1 - self.level))) if self.figure.is_relative else FEWEST

    @property
    def verdict(self) -> str:
        """'unknown', 'unchanged', 'worse', 'better', 'below floor' (significant, but too small to matter), 'noise'."""
        if not self.moved:
            return "unchanged" if self.is_known else "unknown"
        worse, better = self.adjusted_worse < self.alpha, self.adjusted_better < self.alpha
        if worse or better:
            if worse and self.change > self.floor:
                return "worse"
            return "better" if better and -self.change > self.floor else "below floor"
        return "noise"


@dataclass(frozen=True)
class Row:
    """One scheme in one scenario: its runs and their comparisons."""

    place: str
    """The scenario; the name of the pair if the suite has only one pair of that scenario."""
    label: str
    before: list[Run]  # none: the baseline does not know the scheme
    after: list[Run]
    identical: bool  # every output file of every run, by hash
    comparisons: list[Comparison] = field(default_factory=list)

    @property
    def is_new(self) -> bool:
        """True if there is nothing to compare with: the baseline refuses the row's scheme or one of its settings."""
        return not self.before and not self.identical

    @property
    def faults(self) -> list[Run]:
        """Runs of the new version with a program's fault or a failed play, where the baseline's run had neither."""
        if self.is_new:
            return []
        return [
            after
            for before, after in zip(self.before, self.after, strict=True)
            if _is_fault(after) and not _is_fault(before)
        ]

    @property
    def regressions(self) -> list[Comparison]:
        return [comparison for comparison in self.comparisons if comparison.verdict == "worse"]

    @property
    def failed(self) -> bool:
        return bool(self.faults or self.regressions)

    @property
    def verdict(self) -> str:
        if self.is_new:
            return "new, no baseline"
        if self.faults:
            return "fault"
        if self.identical:
            return "identical"
        verdicts = {comparison.verdict for comparison in self.comparisons}
        texts = {"unchanged": "unchanged", "noise": "no difference", "below floor": "below floor"}
        for verdict in ("worse", "better", "below floor", "noise", "unchanged"):
            if verdict in verdicts:
                return texts.get(verdict, verdict)
        return "no difference"

    @property
    def worst(self) -> Run:
        """The run to look at first: the one with the largest difference in the most significant regression."""
        if self.faults:
            return self.faults[0]
        clearest = min(self.regressions, key=lambda comparison: comparison.adjusted_worse)
        pairs = zip(clearest.play_deltas, self.measured, strict=True)
        return max(pairs, key=lambda pair: pair[0])[1]

    @property
    def measured(self) -> list[Run]:
        """The runs of the new version that were compared: those where both versions measured something."""
        pairs = zip(self.before, self.after, strict=True)
        return [after for _, after in _distinct([pair for pair in pairs if _both_measured(*pair)])]


def _is_fault(run: Run) -> bool:
    return run.failed or run.outcome not in RESULT_OUTCOMES


def _both_measured(before: Run, after: Run) -> bool:
    return before.outcome in RESULT_OUTCOMES and after.outcome in RESULT_OUTCOMES


def outputs_sha256(folder: Path) -> str:
    """SHA-256 over names and contents of a run's outputs: logs, qlogs, link logs, summaries."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.name not in ABOUT:
            digest.update(f"{file.relative_to(folder)}\0{file.stat().st_size}\0".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


def _distinct(pairs: Sequence[tuple[Run, Run]]) -> list[tuple[Run, Run]]:
    """Drops repeated observations: seeds with the same start and the same figures in both versions count once."""
    known: dict[object, tuple[Run, Run]] = {}
    for pair in pairs:
        figures = tuple((tuple(chunk.rct_s for chunk in run.chunks), *(m.of(run) for m in GATED)) for run in pair)
        known.setdefault((pair[0].pair, pair[0].config["start_offset_ms"], figures), pair)
    return list(known.values())


def windows_of(before: Sequence[Run], after: Sequence[Run], constant: Collection[str] = ()) -> list[int]:
    """The number of each play's window of trace. Plays whose starts are so near that they overlap share a window. A
    play of a pair in `constant`, whose links have a constant rate, is a window by itself."""
    window = [int(number) for number in layout_of(before, after).window_of()]
    alone = range(len(before), 2 * len(before))
    return [own if run.pair in constant else number for run, number, own in zip(before, window, alone, strict=True)]


def likeness_of(before: Sequence[Run], after: Sequence[Run], constant: Collection[str] = ()) -> float:
    """Comparison.likeness of the windows of these plays. Windows over links of a constant rate are independent."""
    layout = layout_of(before, after)
    known = [k for k, cluster in enumerate(layout.clusters) if before[cluster[0]].pair not in constant]
    clusters, blocks = tuple(layout.clusters[k] for k in known), tuple(layout.blocks[k] for k in known)
    return replace(layout, clusters=clusters, blocks=blocks).likeness


def _comparisons(
    before: Sequence[Run], after: Sequence[Run], floors: Floors, alpha: float, constant: Collection[str]
) -> list[Comparison]:
    both = _distinct([(b, a) for b, a in zip(before, after, strict=True) if _both_measured(b, a)])
    if not both:
        return []
    sides = [b for b, _ in both], [a for _, a in both]
    windows, likeness = windows_of(*sides, constant), likeness_of(*sides, constant)
    comparisons: list[Comparison] = []
    for figure in GATED:
        old, new = map(list, zip(*(figure.of_pair(b, a) for b, a in both), strict=True))
        one = compared(figure, old, new, windows, floors, alpha, likeness)
        comparisons.append(replace(one, is_known=any(figure.is_known([run]) for pair in both for run in pair)))
    return comparisons


def compared(
    figure: Figure,
    before: list[float],
    after: list[float],
    windows: Sequence[int],
    floors: Floors,
    alpha: float,
    likeness: float = 1.0,
) -> Comparison:
    """A comparison with the p values of the signed-rank test, not corrected for the number of comparisons."""
    plain = Comparison(figure, before, after, getattr(floors, figure.name), windows, likeness, alpha=alpha)
    worse, better = (statistics.signed_rank_p(some) for some in (plain.deltas, [-delta for delta in plain.deltas]))
    return replace(plain, p_worse=less_certain(worse, likeness), p_better=less_certain(better, likeness))


@dataclass(frozen=True)
class Places:
    """The name of the row of each pair, and the pairs whose links have a constant rate."""

    names: Mapping[str, str] = field(default_factory=dict)
    constant: Collection[str] = ()

    def of(self, pair: str) -> str:
        return self.names.get(pair, pair)


def compare(
    before: Sequence[Run],
    after: Sequence[Run],
    hashes: dict[str, tuple[str, str]],
    floors: Floors,
    alpha: float,
    places: Places = Places(),
) -> list[Row]:
    """All rows, with corrected p values. `hashes`: the hashes of each run's outputs before and after, by run ID.

    Only comparisons in which a pair differs count for the correction: without a difference a test can never be
    significant, so it cannot add to the false alarms (Tarone 1990).
    """
    later = {run.run_id: run for run in after}
    groups = grouped(((places.of(run.pair), run.label), (run, later[run.run_id])) for run in before)

    def is_same(runs: list[tuple[Run, Run]]) -> bool:
        return all(hashes[run.run_id][0] == hashes[run.run_id][1] for run, _ in runs)

    rows = [row_of(name, runs, is_same(runs), floors, alpha, places) for name, runs in groups.items()]
    return corrected(rows) + _new_rows(after, set(groups), places)


def row_of(
    name: tuple[str, str],
    runs: Sequence[tuple[Run, Run]],
    identical: bool,
    floors: Floors,
    alpha: float,
    places: Places,
) -> Row:
    """The row named by place and label, with p values that are not corrected. `runs`: each play before and after."""
    old, new = [b for b, _ in runs], [a for _, a in runs]
    return Row(*name, old, new, identical, _comparisons(old, new, floors, alpha, places.constant))


def rows_not_run(specs: Sequence[RunSpec], places: Places) -> list[Row]:
    """The rows of two versions that are the same program: nothing was run."""
    names = dict.fromkeys((places.of(spec.pair), spec.label) for spec in specs)
    return [Row(place, label, [], [], identical=True) for place, label in names]


def _new_rows(after: Sequence[Run], known: set[tuple[str, str]], places: Places) -> list[Row]:
    groups = grouped(((places.of(run.pair), run.label), run) for run in after)
    return [Row(*name, [], runs, False) for name, runs in groups.items() if name not in known]


def corrected(rows: Sequence[Row]) -> list[Row]:
    """The rows, with the p values of all of them corrected together (Holm)."""
    tested = [comparison for row in rows for comparison in row.comparisons if comparison.moved]
    worse = iter(statistics.holm([comparison.p_worse for comparison in tested]))
    better = iter(statistics.holm([comparison.p_better for comparison in tested]))

    def with_both(comparison: Comparison) -> Comparison:
        if not comparison.moved:
            return comparison
        return replace(comparison, adjusted_worse=next(worse), adjusted_better=next(better))

    return [replace(row, comparisons=[with_both(comparison) for comparison in row.comparisons]) for row in rows]
