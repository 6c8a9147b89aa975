"""Compares completion times of the same jobs in sim, in a kernel in virtual time, and on the wall clock.

The two arenas in virtual time are compared chunk by chunk, to microseconds, up to the first chunk of a run that
differs. On the wall clock no event happens at the same microsecond twice, and a packet that gets another delivery
opportunity changes all that follows. So there distributions are compared. The yardstick is virtual time itself: the
same jobs in sim, with the player started a few milliseconds later. If the arenas differ by no more than these, they
agree as well as two runs can.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from railyard.base.lists import grouped
from railyard.figures.rows import RCT_MEDIAN
from railyard.results.aggregate import Cell, cells
from railyard.results.records import Run
from railyard.stats import pooled
from railyard.stats.intervals import Interval
from railyard.stats.statistics import ks_distance, nearest_rank

ARENAS = VIRTUAL, MACHINE, WALL = ("sim", "kernel", "mpshell")
EXACT_S = 0.000_1  # two arenas in virtual time agree on a chunk if its RCT differs by at most this
RESOLUTION_S = 0.001  # of traces: a packet moves by up to this if the player starts within a millisecond
LIMIT = 0.05  # medians that differ by at most this share agree
SHIFTS_MS = (5, 10, 15, 20, 25, 30, 35, 40)  # delays of the player's start, for the yardstick


@dataclass(frozen=True)
class Exact:
    """One scheme on one pair of traces in the two arenas in virtual time, chunk by chunk."""

    pair: str
    label: str
    runs: int
    chunks: int  # in both arenas
    same: int  # of these, those whose RCT differs by at most EXACT_S
    before: int  # of these, those requested before the first difference of their run
    before_us: float  # the largest difference among `before`
    parted_s: float | None  # the earliest request of a chunk that differs; None: all agree
    apart_ms: float  # the largest difference
    median_sim_s: float
    median_kernel_s: float
    ks_distance: float


@dataclass(frozen=True)
class Agreement:
    """One scheme on one pair of traces, in an arena in virtual time and on the wall clock."""

    pair: str
    label: str
    runs: int
    void_runs: int
    chunks_virtual: int
    chunks_mpshell: int
    median_virtual_s: float
    median_mpshell_s: float
    ks_distance: float
    shifted_medians_s: tuple[float, ...]  # in sim with the player started SHIFTS_MS later
    shifted_ks: tuple[float, ...]  # their distances to sim
    chunk_ratios: tuple[float, float, float]  # RCT in virtual time / in mpshell, chunk by chunk: 10 %, median, 90 %
    start_lag_ms: float  # of the player behind the links on the wall clock, mean over the runs
    ratio_interval: Interval | None  # of `ratio`, over the runs
    arena: str = "sim"

    @property
    def ratio(self) -> float:
        """Median in virtual time / median of mpshell."""
        return self.median_virtual_s / self.median_mpshell_s

    @property
    def range_s(self) -> tuple[float, float]:
        """The range of medians in virtual time over all starts of the player."""
        medians = (self.median_virtual_s, *self.shifted_medians_s)
        return min(medians), max(medians)

    @property
    def agrees(self) -> bool:
        return abs(self.ratio - 1) <= LIMIT


@dataclass(frozen=True)
class Bounded:
    """One scheme on one pair: whether figures of accepted runs on the wall clock are in the range of virtual time,
    extended on either side by the most that lateness can have added. The range is over the same job and its later
    starts."""

    pair: str
    label: str
    runs: int
    first_frames: int  # runs whose first frame is within its bound
    largest_bound_ms: float  # of a first frame
    farthest_ms: float  # of a first frame from the range; 0: all are in it
    medians: int  # runs whose median RCT is within its bound
    chunks: int
    chunks_within: int
    chunks_of_sim: int  # the same for virtual time itself: each start against the range of the others
    chunks_of_sim_within: int


def _rct(cell: Cell) -> list[float]:
    return [chunk.rct_s for chunk in cell.chunks]


def _common(sim: Sequence[Run], wall: Sequence[Run]) -> tuple[list[Run], list[Run]]:
    """The runs that are valid in both arenas, because an outage that only one of them met is no disagreement."""
    valid = {run.run_id for run in wall if not run.void} & {run.run_id for run in sim}
    return [run for run in sim if run.run_id in valid], [run for run in wall if run.run_id in valid]


def _by_row(runs: Sequence[Run]) -> dict[tuple[str, str], Cell]:
    return {(cell.pair, cell.label): cell for row in cells(runs).values() for cell in row}


def _median(cell: Cell) -> float:
    point = cell.point(RCT_MEDIAN)
    return float("inf") if point is None else point.value


def _differences(sim: Run, kernel: Run) -> list[tuple[float, float]]:
    """For each chunk that completed in both: the time of its request in sim, and its RCT in the kernel − that in
    sim."""
    there = {chunk.index: chunk for chunk in kernel.chunks if chunk.completed}
    both = [(chunk, there[chunk.index]) for chunk in sim.chunks if chunk.completed and chunk.index in there]
    return [(chunk.request_s, other.rct_s - chunk.rct_s) for chunk, other in both]


def _exact(here: Cell, there: Cell) -> Exact:
    kernel = {run.run_id: run for run in there.runs}
    runs = [_differences(run, kernel[run.run_id]) for run in here.runs]
    parted = [next((index for index, (_, by) in enumerate(run) if abs(by) > EXACT_S), None) for run in runs]
    before = [abs(by) for run, end in zip(runs, parted, strict=True) for _, by in run[:end]]
    times = [run[end][0] for run, end in zip(runs, parted, strict=True) if end is not None]
    all_of_them = [abs(by) for run in runs for _, by in run]
    return Exact(
        here.pair,
        here.label,
        runs=len(runs),
        chunks=len(all_of_them),
        same=sum(by <= EXACT_S for by in all_of_them),
        before=len(before),
        before_us=1e6 * max(before, default=0.0),
        parted_s=min(times, default=None),
        apart_ms=1000 * max(all_of_them, default=0.0),
        median_sim_s=_median(here),
        median_kernel_s=_median(there),
        ks_distance=ks_distance(*([round(rct, 4) for rct in _rct(cell)] for cell in (here, there))),
    )


def compare_exact(sim: Sequence[Run], kernel: Sequence[Run]) -> list[Exact]:
    """A row for each pair and scheme, over the runs that both arenas have and that are not void."""
    both_sim, both_kernel = _common(sim, kernel)
    there = _by_row(both_kernel)
    return [_exact(cell, there[cell.pair, cell.label]) for row in cells(both_sim).values() for cell in row]


def _ratio_interval(virtual: Cell, wall: Cell) -> Interval | None:
    there = {run.run_id: run for run in wall.runs}
    ours = [[chunk.rct_s for chunk in run.chunks] for run in virtual.runs]
    theirs = [[chunk.rct_s for chunk in there[run.run_id].chunks] for run in virtual.runs]
    return pooled.paired(ours, theirs, pooled.quantile_of(0.5), lambda a, b: a / b)


def compare(
    sim: Sequence[Run], wall: Sequence[Run], shifted: Sequence[Sequence[Run]] = (), arena: str = "sim"
) -> list[Agreement]:
    """A row for each pair and scheme, over the runs that both arenas have and that are not void. `arena`: that of
    `sim`."""
    both_sim, both_wall = _common(sim, wall)
    void = [run for run in wall if run.void]
    rows: list[Agreement] = []
    there = _by_row(both_wall)
    later = [_by_row(_common(runs, wall)[0]) for runs in shifted]
    for row in cells(both_sim).values():
        for cell in row:
            place = (cell.pair, cell.label)
            other, moved = there[place], [table[place] for table in later if place in table]
            if not cell.chunks or not other.chunks:
                continue
            rows.append(
                Agreement(
                    cell.pair,
                    cell.label,
                    runs=len(cell.runs),
                    void_runs=sum((run.pair, run.label) == (cell.pair, cell.label) for run in void),
                    chunks_virtual=len(cell.chunks),
                    chunks_mpshell=len(other.chunks),
                    median_virtual_s=_median(cell),
                    median_mpshell_s=_median(other),
                    ks_distance=ks_distance(_rct(cell), _rct(other)),
                    shifted_medians_s=tuple(_median(again) for again in moved),
                    shifted_ks=tuple(ks_distance(_rct(cell), _rct(again)) for again in moved),
                    chunk_ratios=_chunk_ratios(cell.runs, other.runs),
                    start_lag_ms=_start_lag_ms(other.runs),
                    ratio_interval=_ratio_interval(cell, other),
                    arena=arena,
                )
            )
    return rows


def _chunk_ratios(sim: Sequence[Run], wall: Sequence[Run]) -> tuple[float, float, float]:
    """Ratios of the RCT of the same chunk of the same run, over chunks that completed in both arenas: 10 %, median and
    90 % quantiles by nearest rank."""
    there = {(run.run_id, chunk.index): chunk for run in wall for chunk in run.chunks if chunk.completed}
    ratios = [
        chunk.rct_s / there[run.run_id, chunk.index].rct_s
        for run in sim
        for chunk in run.chunks
        if chunk.completed and (run.run_id, chunk.index) in there
    ]
    low, middle, high = (nearest_rank(ratios, q) if ratios else 1.0 for q in (0.1, 0.5, 0.9))
    return low, middle, high


def _start_lag_ms(runs: Sequence[Run]) -> float:
    lags = [run.player_start_s for run in runs if run.player_start_s is not None]
    return 1000 * sum(lags) / len(lags) if lags else 0.0


def _beyond(value_s: float, range_s: Sequence[float], bound_s: float) -> bool:
    return not min(range_s) - bound_s - RESOLUTION_S <= value_s <= max(range_s) + bound_s + RESOLUTION_S


def _leave_one_out(starts: Sequence[Run], index: int) -> tuple[int, int]:
    """The number of starts in virtual time that have a chunk, and of those that are in the range of the others."""
    times = [run.chunks[index].rct_s for run in starts if index < len(run.chunks)]
    within = [not _beyond(time, times[:k] + times[k + 1 :], 0.0) for k, time in enumerate(times) if len(times) > 1]
    return len(within), sum(within)


def _bounded(pair: str, label: str, runs: Sequence[Run], sims: Sequence[Sequence[Run]]) -> Bounded:
    frames, medians, bounds, far, chunks, of_sim = 0, 0, [0.0], [0.0], [], []
    for run in runs:
        starts = [other for of_sim in sims for other in of_sim if other.run_id == run.run_id]
        range_s = [start.first_frame_counted_s for start in starts]
        value_s, bound_s = run.first_frame_counted_s, run.first_frame_late_s or 0.0
        frames += not _beyond(value_s, range_s, bound_s)
        bounds.append(bound_s)
        far.append(max(min(range_s) - value_s, value_s - max(range_s)))
        median_s, late_s = RCT_MEDIAN.point([run]), Cell(pair, label, [run], []).late_bound_s(RCT_MEDIAN)
        of_starts = [point.value for start in starts if (point := RCT_MEDIAN.point([start])) is not None]
        medians += median_s is not None and not _beyond(median_s.value, of_starts, late_s or 0.0)
        for index, chunk in enumerate(run.chunks):
            there = [start.chunks[index].rct_s for start in starts if index < len(start.chunks)]
            if there:
                chunks.append(not _beyond(chunk.rct_s, there, chunk.late_bound_s or 0.0))
                of_sim.append(_leave_one_out(starts, index))
    return Bounded(
        pair,
        label,
        len(runs),
        frames,
        1000 * max(bounds),
        1000 * max(far),
        medians,
        len(chunks),
        sum(chunks),
        sum(count for count, _ in of_sim),
        sum(within for _, within in of_sim),
    )


def within_bounds(sims: Sequence[Sequence[Run]], wall: Sequence[Run]) -> list[Bounded]:
    """A row for each pair and scheme, over the runs on the wall clock that are not void. `sims`: the campaign in
    virtual time, and those with the player started later."""
    known = {run.run_id for run in sims[0]}
    rows = grouped(((run.pair, run.label), run) for run in wall if not run.void and run.run_id in known)
    return [_bounded(pair, label, runs, sims) for (pair, label), runs in rows.items()]
