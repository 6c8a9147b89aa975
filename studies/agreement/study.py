"""Agreement of the arenas. railyard/studies/agreement.py compares them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import plotly.graph_objects as go
from plotly.subplots import make_subplots
from pydantic import Field, field_validator

from railyard.base.errors import UserError
from railyard.base.page import markdown_of
from railyard.base.style import layout, scheme_styles
from railyard.experiment.model import Strict
from railyard.results.aggregate import cells
from railyard.results.pending import Plan, make_whole
from railyard.results.records import Run
from railyard.run.arena import arena_of
from railyard.run.campaign import identity_of
from railyard.run.folders import results_folder, shown
from railyard.run.resolve import not_run, resolve
from railyard.run.runspec import RunSpec
from railyard.stats.intervals import Interval
from railyard.studies.agreement import (
    ARENAS,
    EXACT_S,
    LIMIT,
    MACHINE,
    SHIFTS_MS,
    VIRTUAL,
    WALL,
    Agreement,
    Bounded,
    Exact,
    compare,
    compare_exact,
    within_bounds,
)
from railyard.studies.claims import Compared
from railyard.studies.study import Data, changed, markdown, tell

PAGE = "agreement.html"


class Settings(Strict):
    experiment: str  # a YAML file, or its name in experiments/
    seeds: int | None = Field(default=None, ge=1)  # instead of the experiment's
    arenas: list[str] | None = None  # two or three; None: those that can run here
    out: Path | None = None  # folder of the results; None: results/NAME

    @field_validator("arenas")
    @classmethod
    def _known(cls, value: list[str] | None) -> list[str] | None:
        if value is not None and (len({*value}) < 2 or not {*value} <= {*ARENAS}):
            raise ValueError(f"two or three of {', '.join(ARENAS)} can be compared")
        return value and [arena for arena in ARENAS if arena in value]


class Measured(Data):
    exact: list[Exact]
    rows: list[Agreement]
    bounded: list[Bounded]


def measure(settings: Settings) -> Measured:
    checked, document = changed(settings.experiment, {"seeds": settings.seeds})

    def specs_of(arena: str, start_ms: int) -> list[RunSpec]:
        here = checked.model_copy(update={"arena": arena})
        change = {"player_start_ms": start_ms}
        return [spec.model_copy(update=change) for spec in resolve(here, document)]

    jobs = {arena: specs_of(arena, 0) for arena in _arenas_here(settings.arenas)}
    if WALL in jobs:
        shifted = [name for name in jobs if arena_of(name).starts_late]
        jobs |= {f"{name}-{shift}ms-later": specs_of(name, shift) for name in shifted for shift in SHIFTS_MS}
    identity = identity_of(checked, [spec for specs in jobs.values() for spec in specs])
    with results_folder(identity, tell, out=settings.out) as folder:
        runs: dict[str, list[Run]] = {}
        for name, specs in jobs.items():
            here = checked.model_copy(update={"arena": specs[0].arena})
            plan = Plan(here, specs, not_run=not_run(here, document))
            tell(f"{name}: {len(specs)} runs")
            runs[name] = make_whole(plan, folder / name).runs
        arenas = {name: runs.pop(name) for name in ARENAS if name in runs}
        page = folder / PAGE
        page.write_text(_figure(arenas).to_html(include_plotlyjs=True, full_html=True), encoding="utf-8")
        tell(f"distributions: {shown(page)}")
    return between(arenas, list(runs.values()))


def _arenas_here(named: list[str] | None) -> list[str]:
    """The named arenas, checked. By default those that can run here."""
    if named is not None:
        for arena in named:
            arena_of(arena).check()
        return named
    left_out = {name: reason for name in ARENAS if (reason := arena_of(name).why_not()) is not None}
    for name, reason in left_out.items():
        tell(f"{name} is left out: {reason.rstrip('.')}.")
    arenas = [name for name in ARENAS if name not in left_out]
    if len(arenas) < 2:
        raise UserError("sim alone is nothing to compare; `make kernel` builds the kernel of the kernel arena.")
    return arenas


def between(arenas: "Campaigns", later: Sequence[Sequence[Run]]) -> Measured:
    """Compares the arenas that ran, and sim with the player started later."""
    sim, kernel, wall = (arenas.get(arena) for arena in ARENAS)
    virtual = [(VIRTUAL, sim, later), (MACHINE, kernel, ())] if wall is not None else []
    return Measured(
        exact=compare_exact(sim, kernel) if sim is not None and kernel is not None else [],
        rows=[
            row
            for arena, runs, shifted in virtual
            if runs is not None and wall is not None
            for row in compare(runs, wall, shifted, arena)
        ],
        bounded=within_bounds([sim, *later], wall) if sim is not None and wall is not None else [],
    )


Campaigns = Mapping[str, Sequence[Run]]
"""The runs of each arena that ran."""
DASHES = dict(zip(ARENAS, ("dot", "dash", "solid"), strict=True))


def _figure(campaigns: Campaigns) -> go.Figure:
    """Distributions of the completion times, with a panel for each pair and a line for each arena."""
    panels = list(dict.fromkeys(run.pair for runs in campaigns.values() for run in runs))
    figure = make_subplots(rows=1, cols=max(1, len(panels)), subplot_titles=panels, shared_yaxes=True)
    styles = scheme_styles(list(dict.fromkeys(run.label for runs in campaigns.values() for run in runs)))
    for arena in campaigns:
        for pair, row in cells(campaigns[arena]).items():
            for cell in row:
                times = sorted(chunk.rct_s for chunk in cell.chunks)
                line = {"color": styles[cell.label].colour, "dash": DASHES[arena], "shape": "hv", "width": 1.8}
                shares = [(index + 1) / len(times) for index in range(len(times))]
                named = {"name": f"{cell.label}, {arena}", "showlegend": pair == panels[0]}
                place = {"row": 1, "col": panels.index(pair) + 1}
                figure.add_scatter(x=times, y=shares, mode="lines", line=line, **named, **place)
    figure.update_layout(**layout(420, margin={"t": 90}))
    figure.update_xaxes(type="log", title_text="request completion time, s (log scale)")
    figure.update_yaxes(range=[0, 1.02], tickformat=".0%")
    return figure


# --- what is printed --------------------------------------------------------------------------------------------------


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    if measured.exact:
        yield "exact", _exact(measured.exact)
        same, chunks = sum(row.same for row in measured.exact), sum(row.chunks for row in measured.exact)
        yield "exact-all", f"{same} of {chunks} chunks are the same within {1e6 * EXACT_S:.0f} µs."
    for arena in (VIRTUAL, MACHINE):
        rows = [row for row in measured.rows if row.arena == arena]
        if rows:
            yield f"{arena}-mpshell", _distributions(arena, rows)
            agreeing = sum(row.agrees for row in rows)
            yield f"{arena}-mpshell-all", f"{agreeing} of {len(rows)} rows have medians within {LIMIT:.0%}."
    if measured.bounded:
        yield "bounded", _bounded(measured.bounded)
        yield "bounded-all", markdown_of([_bounded_all(measured.bounded)])


def _exact(rows: Sequence[Exact]) -> str:
    heads = ["pair", "scheme", "runs", "same chunks", "run parts first at s", "before µs", "in all ms"]
    heads += ["median s sim", "kernel", "KS"]
    return markdown(heads, [_exact_cells(row) for row in rows], left=2)


def _exact_cells(row: Exact) -> list[str]:
    parted = "never" if row.parted_s is None else f"{row.parted_s:.2f}"
    apart = [f"{row.before_us:.0f}", f"{row.apart_ms:.1f}"]
    medians = [f"{median:.3f}" for median in (row.median_sim_s, row.median_kernel_s)]
    first = [row.pair, row.label, f"{row.runs}", f"{row.same} of {row.chunks}", parted]
    return [*first, *apart, *medians, f"{row.ks_distance:.3f}"]


def _distributions(arena: str, rows: Sequence[Agreement]) -> str:
    is_late = arena_of(arena).starts_late
    heads = ["pair", "scheme", "runs", f"median s {arena}", "mpshell", "ratio [95 % interval]", "KS"]
    heads += ["player later: median s", "KS"] if is_late else []
    heads += ["chunk by chunk, 10 / 50 / 90 %", "start lag ms"]
    return markdown(heads, [_distribution_cells(row, is_late) for row in rows], left=2)


def _distribution_cells(row: Agreement, is_late: bool) -> list[str]:
    ratio = row.ratio_interval.text(".3f") if row.ratio_interval else f"{row.ratio:.3f}"
    low, high = row.range_s
    return [
        row.pair,
        row.label,
        f"{row.runs}{f' ({row.void_runs} void)' if row.void_runs else ''}",
        f"{row.median_virtual_s:.3f}",
        f"{row.median_mpshell_s:.3f}",
        ratio if row.agrees else f"**{ratio}**",
        f"{row.ks_distance:.3f}",
        *([f"{low:.3f} to {high:.3f}", f"≤ {max(row.shifted_ks, default=0.0):.3f}"] if is_late else []),
        " / ".join(f"{part:.2f}" for part in row.chunk_ratios),
        f"{row.start_lag_ms:.1f}",
    ]


def _bounded(rows: Sequence[Bounded]) -> str:
    heads = ["pair", "scheme", "runs", "first frames within", "largest bound ms", "farthest ms", "medians within"]
    heads += ["chunks within", "chunks of sim itself"]
    return markdown(heads, [_bounded_cells(row) for row in rows], left=2)


def _bounded_cells(row: Bounded) -> list[str]:
    frames = [f"{row.first_frames} of {row.runs}", f"{row.largest_bound_ms:.1f}", f"{row.farthest_ms:.1f}"]
    chunks = [f"{row.medians} of {row.runs}", f"{row.chunks_within} of {row.chunks}"]
    of_sim = f"{row.chunks_of_sim_within / max(1, row.chunks_of_sim):.1%}"
    return [row.pair, row.label, f"{row.runs}", *frames, *chunks, of_sim]


def _bounded_all(rows: Sequence[Bounded]) -> str:
    chunks, within = sum(row.chunks for row in rows), sum(row.chunks_within for row in rows)
    frames, runs = sum(row.first_frames for row in rows), sum(row.runs for row in rows)
    medians = sum(row.medians for row in rows)
    of_sim = sum(row.chunks_of_sim_within for row in rows) / max(1, sum(row.chunks_of_sim for row in rows))
    return (
        f"{frames} of {runs} first frames, {medians} of {runs} medians and {within} of {chunks} chunks of accepted "
        f"runs on the wall clock are within their bounds; {of_sim:.1%} of the chunks of virtual time itself are."
    )


def compared(measured: Measured) -> Iterator[Compared]:
    """Shares that are counted: of chunks, rows and runs that agree."""

    def counted(figure: str, a: str, within: int, of: int) -> Iterator[Compared]:
        if of:
            share = 100 * within / of
            yield Compared(figure=figure, a=a, found=Interval(share, share, share), digits=1)

    exact, bounded = measured.exact, measured.bounded
    yield from counted("same_chunks", MACHINE, sum(row.same for row in exact), sum(row.chunks for row in exact))
    for arena in (VIRTUAL, MACHINE):
        rows = [row for row in measured.rows if row.arena == arena]
        yield from counted("medians_that_agree", arena, sum(row.agrees for row in rows), len(rows))
    runs, chunks = sum(row.runs for row in bounded), sum(row.chunks for row in bounded)
    yield from counted("first_frames_within_bounds", WALL, sum(row.first_frames for row in bounded), runs)
    yield from counted("medians_within_bounds", WALL, sum(row.medians for row in bounded), runs)
    yield from counted("chunks_within_bounds", WALL, sum(row.chunks_within for row in bounded), chunks)
