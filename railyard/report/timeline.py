"""Qlogs of any stack as one page: packets, windows and round-trip times of all paths on one time axis."""

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from railyard.base.errors import UserError
from railyard.base.files import write_named
from railyard.base.strips import in_strips
from railyard.base.style import layout
from railyard.report.replay.figure import DASHES, LINE_COLOURS, STRIP_PX
from railyard.report.replay.series import MAX_BINS, Bins
from railyard.results.anyqlog import AnyQlog, PathOfLog

_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<body style="font:15px system-ui,sans-serif"><h1 style="font-size:1.2em">{title}</h1>
<p>{key}. × is a packet that its sender took for lost. Drag to zoom; a double click resets it.</p>{plot}</body></html>
"""
MOST_PATHS = 64


@dataclass(frozen=True)
class _Line:
    """One path of one end."""

    name: str
    path: PathOfLog
    start_s: float  # time 0 of its log on the common axis
    colour: str
    dash: str

    def times(self, values: Sequence[float]) -> list[float]:
        return [self.start_s + value / 1000 for value in values]


def _lines(logs: Sequence[AnyQlog]) -> Iterator[_Line]:
    """The paths of all logs, on the machine's clock if every log has its time 0. Otherwise each log begins at 0 with
    its first event, because some stacks write times since 1970."""
    known = [log.reference_ms for log in logs if log.reference_ms is not None]
    first = min(known) if len(known) == len(logs) else None
    ends = [log.vantage for log in logs]
    number = 0
    for log in logs:
        of_file = f" ({log.name})" if ends.count(log.vantage) > 1 else ""
        start_s = -_first_ms(log) / 1000 if first is None else ((log.reference_ms or 0.0) - first) / 1000
        for name, path in log.paths.items():
            look = LINE_COLOURS[number % len(LINE_COLOURS)], DASHES[number // len(LINE_COLOURS) % len(DASHES)]
            yield _Line(f"{log.vantage}, path {name}{of_file}", path, start_s, *look)
            number += 1


def _first_ms(log: AnyQlog) -> float:
    paths = log.paths.values()
    times = [packet.sent_ms for path in paths for packet in path.sent] + [
        row[0] for path in paths for row in path.received
    ]
    return min(times, default=0.0)


def _bins(lines: Sequence[_Line]) -> Bins:
    ends = [time for line in lines for time in line.times([one.sent_ms for one in line.path.sent])]
    ends += [time for line in lines for rows in line.path.metrics.values() for time in line.times([t for t, _ in rows])]
    end_s = max([end for end in ends if math.isfinite(end)], default=1.0)
    fitting = Bins.over(min(max(end_s, 0.02), 1e6))
    return fitting if fitting.count <= MAX_BINS and end_s <= 1e6 else Bins(max(end_s, 1.0) / MAX_BINS, MAX_BINS)


def draw(logs: Sequence[AnyQlog]) -> go.Figure:
    """A strip for each kind of figure that the logs have. Raises UserError if they have none."""
    lines = list(_lines(logs))
    if not any(line.path.sent or any(line.path.metrics.values()) for line in lines) or len(lines) > MOST_PATHS:
        raise UserError(f"the qlogs have no packets, or more than {MOST_PATHS} paths; there is nothing to draw.")
    bins = _bins(lines)
    kinds = (
        (f"packets sent per {bins.width_s * 1000:g} ms", "packets"),
        ("bytes in flight, and congestion window (thin)", "kB"),
        ("smoothed RTT", "ms"),
    )
    height = 70 + STRIP_PX * len(kinds)
    titles = [title for title, _ in kinds]
    figure = in_strips(titles, 26 / height, "time, s")
    for line in lines:
        _draw_packets(figure, line, bins)
        for row, metric, scale, width in (
            (2, "bytes_in_flight", 1000, 1.4),
            (2, "congestion_window", 1000, 0.8),
            (3, "smoothed_rtt", 1, 1.4),
        ):
            rows = line.path.metrics[metric]
            if rows:
                style = {"color": line.colour, "dash": line.dash, "width": width, "shape": "hv"}
                y = [value / scale for _, value in rows]
                label = f"{html.escape(line.name)}, {metric.replace('_', ' ')}"
                drawn = go.Scatter(x=line.times([t for t, _ in rows]), y=y, name=label, mode="lines", line=style)
                figure.add_trace(drawn, row=row, col=1)
    for row, (_, unit) in enumerate(kinds, start=1):
        figure.update_yaxes(title_text=unit, rangemode="tozero", nticks=4, row=row, col=1)
    figure.update_layout(**layout(height, margin={"t": 24, "b": 40}, showlegend=False))
    figure.update_xaxes(range=[0, bins.end_s])
    return figure


def _draw_packets(figure: go.Figure, line: _Line, bins: Bins) -> None:
    sent = np.array(line.times([packet.sent_ms for packet in line.path.sent]))
    lost = np.array(line.times([packet.sent_ms for packet in line.path.sent if packet.lost_ms is not None]))
    if not len(sent):
        return
    counts, losses = bins.sums(sent), bins.sums(lost)
    style = {"color": line.colour, "dash": line.dash, "width": 1.4, "shape": "hv"}
    name = f"{html.escape(line.name)}, sent"
    shown = go.Scatter(x=bins.starts_s, y=counts.tolist(), name=name, mode="lines", line=style)
    figure.add_trace(shown, row=1, col=1)
    hit = np.flatnonzero(losses)
    if len(hit):
        marker = {"symbol": "x", "size": 7, "color": line.colour}
        at = {"x": [bins.starts_s[k] for k in hit], "y": counts[hit].tolist(), "text": [f"{losses[k]:g}" for k in hit]}
        hover = f"{html.escape(line.name)}: %{{text}} lost<extra></extra>"
        figure.add_trace(go.Scatter(at, mode="markers", marker=marker, hovertemplate=hover), row=1, col=1)


def write_page(logs: Sequence[AnyQlog], out: Path) -> None:
    """Writes the page. Raises UserError."""
    drawn = draw(logs)
    dashes = {"solid": "solid", "dash": "dashed", "dot": "dotted", "dashdot": "dashed and dotted"}
    named = '<span style="color:{}">{}</span> {}'
    key = "; ".join(named.format(one.colour, html.escape(one.name), dashes[one.dash]) for one in _lines(logs))
    plot = drawn.to_html(full_html=False, include_plotlyjs=True, div_id="timeline")
    title = html.escape(", ".join(dict.fromkeys(log.name for log in logs)))
    write_named(out, _PAGE.format(title=title, key=key, plot=plot))
