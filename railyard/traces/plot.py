"""Plots of traces and pairs: the capacity of each direction of each path over time, with outages marked."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from railyard.base.errors import UserError
from railyard.base.plotfile import write_plot
from railyard.base.strips import in_strips, to_last_edge
from railyard.base.style import BLUE, INK, layout, shade
from railyard.base.words import counted
from railyard.traces.index import Pair
from railyard.traces.stats import GAP_MS
from railyard.traces.trace import IntArray, Trace, read_trace

MAX_BINS = 100_000
_DOWN, _UP = BLUE, "#5E8C61"


@dataclass(frozen=True, eq=False)
class Strip:
    """One link of a plot."""

    title: str
    trace: Trace
    uplink: bool


def rows_of_pair(pair: Pair) -> list[Strip]:
    """Downlink and uplink of each path, in one row if both replay the same trace."""
    rows = []
    for path in pair.paths:
        shared = path.uplink == path.downlink
        title = path.name if path.name == path.technology else f"{path.name} ({path.technology})"
        down = read_trace(path.downlink)
        rows.append(Strip(f"{title} down" + (" and up" if shared else ""), down, uplink=False))
        if not shared:
            rows.append(Strip(f"{title} up", read_trace(path.uplink), uplink=True))
    return rows


def outages(trace: Trace, start_ms: int, duration_ms: int) -> list[tuple[float, float]]:
    """Silences of 200 ms or more between neighbouring opportunities, in s since the start of the plot."""
    first = trace.count_until(start_ms)
    count = trace.count_until(start_ms + duration_ms) - first
    numbers = np.arange(first, first + count + 1, dtype=np.int64)
    loops, within = np.divmod(numbers, len(trace.opportunities_ms))
    times: IntArray = loops * trace.period_ms + trace.opportunities_ms[within]
    edges = np.concatenate(([start_ms if first == 0 else trace.opportunity_ms(first - 1)], times))
    long = np.flatnonzero(np.diff(edges) >= GAP_MS)
    spans = [(int(edges[k]) - start_ms, int(edges[k + 1]) - start_ms) for k in long]
    return [(max(begin, 0) / 1e3, min(end, duration_ms) / 1e3) for begin, end in spans if begin < duration_ms]


def write_trace_plot(
    title: str, rows: Sequence[Strip], out: Path, bin_ms: int, start_ms: int, duration_ms: int
) -> None:
    """Draws the rows over one axis of time. Shorter traces loop. Raises UserError."""
    if duration_ms // bin_ms > MAX_BINS:
        raise UserError(f"{out}: {duration_ms // bin_ms} bins of {bin_ms} ms cannot be plotted; make them longer")
    if duration_ms < bin_ms:
        raise UserError(f"{out}: the plot would be shorter than one bin of {bin_ms} ms; make the bins shorter")
    write_plot(out, _drawn(title, rows, bin_ms, start_ms, duration_ms))


def _heading(row: Strip, silent: list[tuple[float, float]], duration_ms: int) -> str:
    lost = sum(end - begin for begin, end in silent) / (duration_ms / 1e3)
    outages = (
        f"{counted(len(silent), 'outage')} of {GAP_MS} ms or more, {lost:.1%} of the time" if silent else "no outages"
    )
    return f"{row.title}: mean {row.trace.mean_mbps:.2f} Mbps, {outages}"


def _drawn(title: str, rows: Sequence[Strip], bin_ms: int, start_ms: int, duration_ms: int) -> go.Figure:
    silent = [outages(row.trace, start_ms, duration_ms) for row in rows]
    headings = [_heading(row, spans, duration_ms) for row, spans in zip(rows, silent, strict=True)]
    heights = [1.1 if row.uplink else 1.7 for row in rows]
    figure = in_strips(headings, 0.22 / max(3, len(rows)), "time, s", row_heights=heights)
    for position, row in enumerate(rows, start=1):
        rate = row.trace.rate_mbps(bin_ms, duration_ms=duration_ms, start_offset_ms=start_ms)
        figure.add_scatter(
                x=(np.arange(len(rate) + 1) * bin_ms / 1e3).tolist(), y=to_last_edge(rate), name=row.title,
                mode="lines", line={"color": _UP if row.uplink else _DOWN, "width": 1.2, "shape": "hv"},
                fill="tozeroy", hovertemplate="%{x:.1f} s: %{y:.2f} Mbps", row=position, col=1,)  # fmt: skip
        figure.update_yaxes(title_text="Mbps", rangemode="tozero", row=position, col=1)
    figure.update_xaxes(range=[0, duration_ms / 1e3])
    heading = {"text": title, "x": 0.05, "font": {"size": 15, "color": INK}}
    shaded = [shade(*span, strip) for strip, spans in enumerate(silent, start=1) for span in spans]
    look = layout(130 + 150 * len(rows), title=heading, margin={"t": 70}, showlegend=False, shapes=shaded)
    figure.update_layout(**look)
    return figure
