"""How far the two arenas are apart: the same jobs in virtual time and on the wall clock, completion times compared.

On the wall clock no event happens at exactly the same microsecond twice, and a packet that catches another delivery
opportunity changes what follows. So the yardstick is virtual time itself: the same jobs, the player started a few
milliseconds later. Where the arenas are no farther apart than that, they agree as well as two runs can.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import plotly.graph_objects as go
from plotly.subplots import make_subplots
from rich import box
from rich.console import Console
from rich.table import Table

from railyard.base.statistics import nearest_rank
from railyard.base.style import layout, scheme_styles
from railyard.base.terminal import print_table
from railyard.results.aggregate import Cell, cells
from railyard.results.records import Run

SCHEMA = 1
LIMIT = 0.05  # medians within so much agree
SHIFTS_MS = (5, 10, 15, 20, 25, 30, 35, 40)  # how much later the player starts, for the yardstick


@dataclass(frozen=True)
class Agreement:
    """One scheme on one pair of traces, in both arenas."""

    pair: str
    label: str
    runs: int
    void_runs: int
    chunks_sim: int
    chunks_mpshell: int
    median_sim_s: float
    median_mpshell_s: float
    ks_distance: float
    shifted_medians_s: tuple[float, ...]  # of sim with the player started SHIFTS_MS later
    shifted_ks: tuple[float, ...]  # their distances to sim
    chunk_ratios: tuple[float, float, float]  # RCT of sim / of mpshell, chunk by chunk: 10 %, median, 90 %
    start_lag_ms: float  # of the player behind the links on the wall clock, mean over the runs

    @property
    def ratio(self) -> float:
        """Median of sim / median of mpshell."""
        return self.median_sim_s / self.median_mpshell_s

    @property
    def range_s(self) -> tuple[float, float]:
        """The medians of sim, whenever the player started."""
        medians = (self.median_sim_s, *self.shifted_medians_s)
        return min(medians), max(medians)

    @property
    def agrees(self) -> bool:
        return abs(self.ratio - 1) <= LIMIT


def ks_distance(a: Sequence[float], b: Sequence[float]) -> float:
    """Kolmogorov and Smirnov's distance: the largest vertical gap between two empirical distributions, 0 to 1."""
    left, right = sorted(a), sorted(b)
    return max(
        (abs(bisect_right(left, x) / len(left) - bisect_right(right, x) / len(right)) for x in (*left, *right)),
        default=0.0,
    )


def _rct(cell: Cell) -> list[float]:
    return [chunk.rct_s for chunk in cell.chunks]


def _common(sim: Sequence[Run], wall: Sequence[Run]) -> tuple[list[Run], list[Run]]:
    """Runs of which both arenas have a valid one: an outage that only one of them met would be no disagreement."""
    valid = {run.run_id for run in wall if not run.void} & {run.run_id for run in sim}
    return [run for run in sim if run.run_id in valid], [run for run in wall if run.run_id in valid]


def _by_row(runs: Sequence[Run]) -> dict[tuple[str, str], Cell]:
    return {(cell.pair, cell.label): cell for row in cells(runs).values() for cell in row}


def _median(cell: Cell) -> float:
    found = cell.rct(0.5)
    return float("inf") if found is None else found.value


def compare(sim: Sequence[Run], wall: Sequence[Run], shifted: Sequence[Sequence[Run]] = ()) -> list[Agreement]:
    """A row a pair and scheme, over the runs that both arenas have and that are not void."""
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
                    chunks_sim=len(cell.chunks),
                    chunks_mpshell=len(other.chunks),
                    median_sim_s=_median(cell),
                    median_mpshell_s=_median(other),
                    ks_distance=ks_distance(_rct(cell), _rct(other)),
                    shifted_medians_s=tuple(_median(again) for again in moved),
                    shifted_ks=tuple(ks_distance(_rct(cell), _rct(again)) for again in moved),
                    chunk_ratios=_chunk_ratios(cell.runs, other.runs),
                    start_lag_ms=_start_lag_ms(other.runs),
                )
            )
    return rows


def _chunk_ratios(sim: Sequence[Run], wall: Sequence[Run]) -> tuple[float, float, float]:
    """Of the chunks that completed in both arenas, the same chunk of the same run; 10 %, median, 90 %, nearest rank."""
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


def print_agreement(console: Console, rows: Sequence[Agreement]) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), header_style="bold")
    for name in ("\npair", "\nscheme"):
        table.add_column(name, no_wrap=True)
    figures = ("median s\nsim", "\nmpshell", "\nratio", "\nKS", "sim, player later\nmedian s", "\nKS")
    for name in ("\nruns", *figures, "chunk by chunk\n10 / 50 / 90 %", "start\nlag ms"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row.pair,
            row.label,
            f"{row.runs}{f' ({row.void_runs} void)' if row.void_runs else ''}",
            f"{row.median_sim_s:.3f}",
            f"{row.median_mpshell_s:.3f}",
            f"{row.ratio:.3f}",
            f"{row.ks_distance:.3f}",
            f"{row.range_s[0]:.3f} to {row.range_s[1]:.3f}",
            f"≤ {max(row.shifted_ks, default=0.0):.3f}",
            " / ".join(f"{ratio:.2f}" for ratio in row.chunk_ratios),
            f"{row.start_lag_ms:.1f}",
            style="" if row.agrees else "yellow",
        )
    print_table(console, table, keys=2)
    agreeing = sum(row.agrees for row in rows)
    console.print(f"{agreeing} of {len(rows)} rows have medians within {LIMIT:.0%}.", soft_wrap=True)


def _figure(sim: Sequence[Run], wall: Sequence[Run]) -> go.Figure:
    """Distributions of the completion times, a panel a pair: mpshell solid, sim dotted."""
    panels = cells(sim)
    figure = make_subplots(rows=1, cols=max(1, len(panels)), subplot_titles=list(panels), shared_yaxes=True)
    for arena, table, dash in (("mpshell", cells(wall), "solid"), ("sim", panels, "dot")):
        for column, (_, row) in enumerate(table.items(), start=1):
            styles = scheme_styles([cell.label for cell in row])
            for cell in row:
                times = sorted(_rct(cell))
                line = {"color": styles[cell.label].colour, "dash": dash, "shape": "hv", "width": 1.8}
                shares = [(index + 1) / len(times) for index in range(len(times))]
                named = {"name": f"{cell.label}, {arena}", "showlegend": column == 1}
                figure.add_trace(go.Scatter(x=times, y=shares, mode="lines", line=line, **named), row=1, col=column)
    figure.update_layout(**{key: value for key, value in layout(420).items() if "axis" not in key})
    figure.update_layout(margin={"t": 90})
    figure.update_xaxes(type="log", title_text="request completion time, s (log scale)")
    figure.update_yaxes(range=[0, 1.02], tickformat=".0%")
    return figure


def write(out: Path, rows: Sequence[Agreement], sim: Sequence[Run], wall: Sequence[Run]) -> Path:
    """`agreement.json` and `agreement.html`, the distributions; returns the page."""
    found = [asdict(row) | {"ratio": row.ratio, "agrees": row.agrees} for row in rows]
    (out / "agreement.json").write_text(
        json.dumps({"schema": SCHEMA, "limit": LIMIT, "rows": found, "shifts_ms": SHIFTS_MS}, indent=1) + "\n"
    )
    page = out / "agreement.html"
    page.write_text(_figure(*_common(sim, wall)).to_html(include_plotlyjs=True, full_html=True), encoding="utf-8")
    return page
