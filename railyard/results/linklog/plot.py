"""Plots of link logs: throughput against capacity, and queueing delay, over time."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from railyard.base.errors import UserError
from railyard.base.plotfile import write_plot
from railyard.base.strips import in_strips, to_last_edge
from railyard.base.style import BLUE, INK, SKY, VERMILION, layout
from railyard.base.words import counted
from railyard.results.linklog.read import LinkLog
from railyard.results.linklog.stats import LinkStats, link_stats, signal_delay
from railyard.traces.trace import FloatArray, IntArray

MAX_BINS = 200_000
_MOST_POINTS = 8_000
_LABELS = ("capacity", "ingress", "egress")


def binned_mbps(times_ms: FloatArray, sizes: IntArray, edges_ms: FloatArray) -> FloatArray:
    """The rate in each bin [edge, next edge), in Mbps."""
    places = np.searchsorted(edges_ms, times_ms, side="right") - 1
    total = np.bincount(np.clip(places, 0, len(edges_ms) - 2), weights=sizes, minlength=len(edges_ms) - 1)
    rates: FloatArray = total * 8 / np.diff(edges_ms) / 1e3
    return rates


def _edges(log: LinkLog, bin_ms: int) -> FloatArray:
    first, last = log.span_ms
    bins = int(last // bin_ms) - int(first // bin_ms) + 1
    if bins > MAX_BINS:
        raise UserError(f"{log.path}: {bins} bins of {bin_ms} ms cannot be plotted; make them longer with --bin-ms")
    edges: FloatArray = (first // bin_ms + np.arange(bins + 1, dtype=np.float64)) * bin_ms
    return edges


def _rates(log: LinkLog, edges: FloatArray) -> list[FloatArray]:
    """Capacity, ingress and egress in each bin, in Mbps."""
    return [
        binned_mbps(log.opportunity_ms, log.opportunity_bytes, edges),
        binned_mbps(log.arrival_ms, log.arrival_bytes, edges),
        binned_mbps(log.departure_ms, log.departure_bytes, edges),
    ]


def write_link_plot(logs: Sequence[LinkLog], out: Path, bin_ms: int, log_delay: bool) -> None:
    """Writes a plot with two rows for each log. Raises UserError."""
    write_plot(out, _drawn(logs, [link_stats(log) for log in logs], bin_ms, log_delay))


def _drawn(logs: Sequence[LinkLog], stats: Sequence[LinkStats], bin_ms: int, log_delay: bool) -> go.Figure:
    figure = in_strips([title for of_log in stats for title in _titles(of_log)], 0.13 / len(logs), "time, s")
    in_legend: set[str] = set()
    for position, log in enumerate(logs):
        rows = ((2 * position + 1, _rate_traces(log, bin_ms)), (2 * position + 2, _delay_traces(log, stats[position])))
        for row, traces in rows:
            for trace in traces:
                figure.add_trace(trace.update(showlegend=trace.name not in in_legend), row=row, col=1)
                in_legend.add(trace.name)
        figure.update_yaxes(title_text="Mbps", rangemode="tozero", row=2 * position + 1, col=1)
        axis = {"type": "log"} if log_delay else {"rangemode": "tozero"}
        figure.update_yaxes(title_text="delay, ms", **axis, row=2 * position + 2, col=1)
    begin_ms, end_ms = min(log.span_ms[0] for log in logs), max(log.span_ms[1] for log in logs)
    figure.update_xaxes(range=[begin_ms / 1e3, max(end_ms, begin_ms + 1) / 1e3])
    height = 120 + 420 * len(logs)
    figure.update_layout(**layout(height, legend={"y": 1 + 45 / height}, margin={"t": 90, "l": 60, "r": 20, "b": 50}))
    return figure


def _titles(stats: LinkStats) -> tuple[str, str]:
    means = f"capacity {stats.capacity_mbps:.2f}, ingress {stats.ingress_mbps:.2f}, egress {stats.throughput_mbps:.2f}"
    used = f"; utilisation {stats.utilisation:.1%}" if stats.opportunities else ""
    dropped = f"; {counted(stats.dropped_packets, 'packet')} dropped" if stats.dropped_packets else ""
    p95 = f"{stats.delay_p95_ms:.0f} ms per packet, {stats.signal_delay_p95_ms:.0f} ms signal delay"
    delay = f"queueing delay, 95th percentile {p95}" if stats.departed_packets else "no packet departed"
    return f"{stats.name}: {means} Mbps{used}{dropped}", f"{stats.name}: {delay}"


def _rate_traces(log: LinkLog, bin_ms: int) -> list[go.Scatter]:
    edges = _edges(log, bin_ms)
    looks = (
        {"color": "#BBBBBB", "width": 0.5},
        {"color": BLUE, "width": 1, "dash": "dot"},
        {"color": VERMILION, "width": 1.6},
    )
    traces = [
        go.Scatter(
            x=(edges / 1e3).tolist(),
            y=to_last_edge(rates),
            name=label,
            legendgroup=label,
            mode="lines",
            line=line | {"shape": "hv"},
            fill="tozeroy" if label == "capacity" else None,
            hovertemplate="%{x:.1f} s: %{y:.2f} Mbps",
        )
        for rates, label, line in zip(_rates(log, edges), _LABELS, looks, strict=True)
    ]
    if not len(log.drop_ms):
        return traces
    at = np.unique(log.drop_ms / 1e3)
    mark = {"color": INK, "symbol": "line-ns-open", "size": 9}
    traces.append(
        go.Scatter(x=at.tolist(), y=[0] * len(at), mode="markers", name="drops", legendgroup="d", marker=mark)
    )
    return traces


def _delay_traces(log: LinkLog, stats: LinkStats) -> list[go.Scatter]:
    if not len(log.delay_ms):
        return [go.Scatter(x=[], y=[])]
    since, signal = _thinned(*signal_delay(log))
    times, delays = _thinned(log.departure_ms - log.delay_ms, log.delay_ms)
    span = [float(times[0]) / 1e3, float(times[-1]) / 1e3]
    hover = "%{x:.3f} s: %{y:.0f} ms"
    return [
        go.Scatter(
            x=(since / 1e3).tolist(), y=signal.tolist(), name="signal delay", legendgroup="signal", mode="lines",
            line={"color": SKY, "width": 0.5}, fill="tozeroy", hovertemplate=hover,
        ),
        go.Scatter(
            x=(times / 1e3).tolist(), y=delays.tolist(), name="per packet", legendgroup="packet", mode="markers",
            marker={"color": VERMILION, "size": 3}, hovertemplate=hover,
        ),
        go.Scatter(
            x=span, y=[stats.delay_p95_ms] * 2, name="95th percentile per packet", legendgroup="p95", mode="lines",
            line={"color": VERMILION, "width": 1, "dash": "dash"},
        ),
        go.Scatter(
            x=span, y=[stats.signal_delay_p95_ms] * 2, name="95th percentile signal delay", legendgroup="signal p95",
            mode="lines", line={"color": BLUE, "width": 1, "dash": "dot"},
        ),
    ]  # fmt: skip


def _thinned(times: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The points in order of time. If they are too many for a plot, the minimum and the maximum of each stretch."""
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]
    if len(values) <= _MOST_POINTS:
        return times, values
    kept: set[int] = set()
    for part in np.array_split(np.arange(len(values)), _MOST_POINTS // 2):
        kept |= {int(part[np.argmin(values[part])]), int(part[np.argmax(values[part])])}
    chosen = np.array(sorted(kept))
    return times[chosen], values[chosen]
