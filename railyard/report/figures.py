"""The figures of one pair, as plotly figures. Each function draws one, from cells or runs."""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from railyard.base.errors import UserError
from railyard.base.strips import in_strips
from railyard.base.style import (
    BLUE,
    INK,
    PATH_COLOURS,
    PATH_PATTERNS,
    VERMILION,
    LineStyle,
    layout,
    plain,
    scheme_styles,
    shade,
)
from railyard.base.words import listed
from railyard.figures.figure import Point
from railyard.figures.rows import RCT_MAX, RCT_MEDIAN, RCT_P95, RCT_P99
from railyard.results.aggregate import Cell
from railyard.results.differences import ALL, Difference
from railyard.results.records import Run
from railyard.stats.intervals import Interval
from railyard.traces.trace import Trace

CAPACITY_BIN_MS = 200
ROW_PX = 30
MOST_LETTERS = 24  # of a line of a label beside a plot, which may have half of the page's width
LEGEND_LETTERS = 48  # of a line of a legend above a plot
_TICKS = [step * 10.0**power for power in range(-3, 4) for step in (1, 2, 5)]
RCT_AXIS = {
    "type": "log",
    "title": {"text": "request completion time, s (log scale)"},
    "tickvals": _TICKS,
    "ticktext": [f"{tick:g}" for tick in _TICKS],
}


def named_plainly(row: list[Cell]) -> list[Cell]:
    """The cells for the functions below, which take labels as texts of plotly."""
    return [replace(cell, label=plain(cell.label)) for cell in row]


def _styles(row: list[Cell]) -> dict[str, LineStyle]:
    return scheme_styles([cell.label for cell in row])


def capacity(run: Run, traces: dict[str, tuple[Trace, Trace]], duration_s: float) -> go.Figure:
    """Capacity of each path's links over the time of the run. `traces`: path name to (uplink, downlink)."""
    names = list(traces)
    figure = in_strips(names, 0.09, "time since the start of the run, s")
    offset, duration_ms = int(run.config["start_offset_ms"]), int(duration_s * 1000)
    for row, (name, (up, down)) in enumerate(traces.items(), start=1):
        colour = PATH_COLOURS[(row - 1) % len(PATH_COLOURS)]
        links: list[tuple[str, Trace, dict[str, object], str | None]] = [
            ("downlink", down, {"color": colour, "width": 1.5}, "tozeroy")
        ]
        if up.sha256 != down.sha256:
            links.append(("uplink", up, {"color": INK, "width": 1, "dash": "dot"}, None))
        for word, trace, line, fill in links:
            rate = trace.rate_mbps(CAPACITY_BIN_MS, duration_ms=duration_ms, start_offset_ms=offset)
            times = [index * CAPACITY_BIN_MS / 1000 for index in range(len(rate))]
            figure.add_scatter(
                x=times,
                y=[round(float(value), 3) for value in rate],
                name=f"{name} {word}",
                mode="lines",
                line=line | {"shape": "hv"},
                fill=fill,
                hovertemplate="%{x:.1f} s: %{y:.2f} Mbps",
                row=row,
                col=1,
            )
        figure.update_yaxes(title_text="Mbps", rangemode="tozero", row=row, col=1)
    figure.update_layout(**layout(90 + 120 * len(names), margin={"t": 28}, showlegend=False))
    return figure


def rct_cdf(row: list[Cell]) -> go.Figure:
    """Share of the requested chunks that had completed within t. A curve that ends below 1 left chunks unfinished."""
    shares_axis = {"range": [0, 1.02], "tickformat": ".0%", "title": {"text": "chunks completed"}}
    figure = go.Figure(layout=layout(330, margin={"t": 52}, xaxis=RCT_AXIS, yaxis=shares_axis))
    styles = _styles(row)
    for cell in row:
        done = sorted(chunk.rct_s for chunk in cell.chunks if chunk.completed)
        total = len(cell.chunks)
        if not done:
            continue
        style = styles[cell.label]
        shares = [(index + 1) / total for index in range(len(done))]
        figure.add_scatter(
            x=[done[0], *done],
            y=[0, *shares],
            name=_in_lines(cell.label, LEGEND_LETTERS),
            mode="lines",
            line={
                "color": style.colour,
                "dash": style.dash,
                "shape": "hv",
                "width": 2.5 if cell.label == "xlink" else 1.8,
            },
            hovertemplate=f"{cell.label}: %{{y:.0%}} within %{{x:.3f}} s<extra></extra>",
        )
    return figure


RCT_MARKS = (
    (RCT_MEDIAN, "median", "circle"),
    (RCT_P95, "p95", "diamond"),
    (RCT_P99, "p99", "square-open"),
    (RCT_MAX, "max", "line-ns-open"),
)


def quantile_words(row: list[Cell]) -> str:
    """ "median, p95 and max": the quantiles that a pair's chunks carry."""
    names = [word for quantile, word, _ in RCT_MARKS if any(quantile.shown(cell.runs) for cell in row)]
    return listed(names)


def rct_ranges(row: list[Cell], levels: dict[tuple[str, str], Interval | None]) -> go.Figure:
    """The quantiles of each scheme that its chunks carry, on one line. `levels`: their intervals by scheme and
    quantile's name. None: no interval."""
    figure = _schemes_down(row, 110, margin={"t": 44}, xaxis=RCT_AXIS)
    styles = _styles(row)
    marks = [mark for mark in RCT_MARKS if any(mark[0].shown(cell.runs) for cell in row)]
    for cell in row:
        values = [point.value for quantile, _, _ in marks if (point := quantile.shown(cell.runs)) is not None]
        if values:
            line = {"color": styles[cell.label].colour, "width": 2, "dash": styles[cell.label].dash}
            figure.add_scatter(
                x=[values[0], values[-1]],
                y=[cell.label] * 2,
                mode="lines",
                line=line,
                showlegend=False,
                hoverinfo="skip",
            )
    for quantile, word, symbol in marks:
        points = [(cell, value) for cell in row if (value := quantile.shown(cell.runs)) is not None]
        figure.add_scatter(
            x=[value.value for _, value in points],
            y=[cell.label for cell, _ in points],
            mode="markers",
            name=word,
            marker={
                "symbol": symbol,
                "size": 11,
                "color": [styles[cell.label].colour for cell, _ in points],
                "line": {"width": 2},
            },
            text=[f"{word} {value.text('.3f')} s{_ends(levels.get((cell.label, word)))}" for cell, value in points],
            hovertemplate="%{y}: %{text}<extra></extra>",
        )
        _draw_intervals(figure, [(cell.label, levels.get((cell.label, word))) for cell, _ in points], f"{word}, ")
    return figure


def _draw_intervals(
    figure: go.Figure, levels: list[tuple[str, Interval | None]], of: str = "", *, on_bars: bool = False
) -> None:
    """Draws a thin line for each label that has an interval. It has a light edge, so that it is visible on a bar of any
    colour. The page's script leaves the edge out of the table of values."""
    known = [(label, one) for label, one in levels if one is not None and one.known and math.isfinite(one.high)]
    if not known:
        return
    ends = {
        "x": [end for _, one in known for end in (max(one.low, 0), one.high, None)],
        "y": [place for label, _ in known for place in (label, label, None)],
        "name": f"{of}95 % interval",
        "showlegend": False,
        "hoverinfo": "skip",
    }
    if on_bars:
        figure.add_trace(go.Scatter(ends, mode="lines", line={"color": "white", "width": 4}, meta="ground"))
    marker = {"symbol": "line-ns-open", "size": 7, "color": INK}
    figure.add_trace(go.Scatter(ends, mode="lines+markers", line={"color": INK, "width": 1.2}, marker=marker))


def _ends(interval: Interval | None) -> str:
    return f" [{interval.ends(lambda end: f'{end:.3f}')}]" if interval and interval.known else ""


def _in_lines(label: str, most: int = MOST_LETTERS) -> str:
    """A label, which is markup, in two lines if it has more than `most` letters. The first line ends with the sign
    nearest to the middle that is no letter or digit, if there is one near it."""
    text = html.unescape(label)
    if len(text) <= most:
        return label
    middle = len(text) // 2
    ends = [k for k in range(middle - MOST_LETTERS // 4, middle + MOST_LETTERS // 4) if not text[k - 1].isalnum()]
    end = min(ends, key=lambda k: abs(k - middle), default=middle)
    return f"{plain(text[:end])}<br>{plain(text[end:])}"


def _schemes_down(row: list[Cell], height: int, **more: object) -> go.Figure:
    """A figure with a row for each scheme, from the top. `height`: the height of everything except the rows, in
    pixels."""
    labels = [cell.label for cell in row][::-1]
    order = {"type": "category", "categoryorder": "array", "categoryarray": labels}
    lines = {"tickvals": labels, "ticktext": list(map(_in_lines, labels))}
    down = order | lines | {"showgrid": False, "range": [-0.6, len(row) - 0.4]}
    return go.Figure(layout=layout(height + ROW_PX * len(row), yaxis=down, **more))


@dataclass(frozen=True)
class Level:
    """A figure of one scheme as a bar shows it. `ends`: None without an interval."""

    point: Point | None
    ends: Interval | None = None

    @property
    def value(self) -> float | None:
        return None if self.point is None else self.point.value

    @property
    def top(self) -> float:
        return max(self.value or 0, self.ends.high if self.ends and math.isfinite(self.ends.high) else 0)

    def scaled(self, by: float) -> "Level":
        known = self.ends is not None and self.ends.known
        ends = self.ends.mapped(lambda end: by * end) if self.ends and known else None
        return Level(self.point and replace(self.point, value=by * self.point.value), ends)

    def words(self, digits: int, unit: str) -> str:
        return "–" if self.point is None else f"{self.point.text(f'.{digits}f')}{unit}"

    def hover(self, digits: int, unit: str) -> str:
        ends = f" [{self.ends.ends(lambda end: f'{end:.{digits}f}')}]" if self.ends else ""
        return self.words(digits, unit) + ends


def bars(row: list[Cell], levels: list[Level], axis: str, digits: int) -> go.Figure:
    """A figure of each scheme with its interval, as horizontal bars. Schemes without it have an en dash. `axis` ends in
    ", %" for shares."""
    styles = [_styles(row)[cell.label] for cell in row]
    scale, unit = (100.0, " %") if axis.endswith(", %") else (1.0, "")
    shown = [level.scaled(scale) for level in levels]
    annotations = [
        {"text": level.words(digits, unit), "x": level.top, "y": cell.label}
        | {"xanchor": "left", "xshift": 5, "showarrow": False}
        for cell, level in zip(row, shown, strict=True)
    ]
    across = {"title": {"text": axis}, "range": [0, (max(level.top for level in shown) or 1) * 1.3]}
    figure = _schemes_down(row, 70, margin={"t": 8}, xaxis=across, annotations=annotations, showlegend=False)
    figure.add_bar(
        x=[level.value for level in shown],
        y=[cell.label for cell in row],
        orientation="h",
        marker={
            "color": [style.colour for style in styles],
            "pattern": {"shape": [style.pattern for style in styles], "fgcolor": "white", "size": 6},
        },
        hovertext=[level.hover(digits, unit) for level in shown],
        hovertemplate="%{y}: %{hovertext}<extra></extra>",
    )
    _draw_intervals(figure, [(cell.label, level.ends) for cell, level in zip(row, shown, strict=True)], on_bars=True)
    return figure


def path_bytes(row: list[Cell]) -> go.Figure:
    """Bytes that each path's downlink delivered, stacked, mean over the runs."""
    across = {"title": {"text": "MB delivered downlink, mean per run"}, "rangemode": "nonnegative"}
    legend = {"traceorder": "normal"}
    figure = _schemes_down(row, 96, margin={"t": 34}, xaxis=across, barmode="stack", legend=legend)
    names = next((list(cell.down_bytes) for cell in row if cell.runs), [])
    for index, name in enumerate(names):
        figure.add_bar(
            x=[cell.down_bytes.get(name, 0) / 1e6 for cell in row],
            y=[cell.label for cell in row],
            orientation="h",
            name=name,
            marker={
                "color": PATH_COLOURS[index % 4],
                "pattern": {"shape": PATH_PATTERNS[index % 4], "fgcolor": INK, "size": 5},
            },
            hovertemplate=f"%{{y}} over {name}: %{{x:.2f}} MB<extra></extra>",
        )
    return figure


def _strip_name(label: str, strip: int) -> dict[str, object]:
    """A scheme's label in the upper right corner of its strip."""
    number = "" if strip == 1 else str(strip)
    place = {"xref": f"x{number} domain", "yref": f"y{number} domain", "x": 0.995, "y": 0.96}
    look = {"xanchor": "right", "yanchor": "top", "showarrow": False, "bgcolor": "rgba(255,255,255,0.75)"}
    return {"text": f"<b>{label}</b>"} | place | look


def buffer_levels(row: list[Cell], seed: int, duration_s: float) -> go.Figure:
    """Buffer level over time, a strip per scheme on common axes; interruptions of playing are shaded."""
    styles = _styles(row)
    shown = [(cell, run) for cell in row for run in cell.runs if run.seed == seed]
    figure = make_subplots(
        rows=max(1, len(shown)),
        cols=1,
        shared_xaxes=True,
        shared_yaxes="all",
        vertical_spacing=0.25 / max(4, len(shown)),
        row_titles=None,
    )
    top = max((level for _, run in shown for _, level in run.buffer_s), default=1.0) or 1.0
    shaded: list[dict[str, object]] = []
    names: list[dict[str, object]] = []
    for index, (cell, run) in enumerate(shown, start=1):
        colour = styles[cell.label].colour
        figure.add_scatter(
            x=[round(t, 3) for t, _ in run.buffer_s],
            y=[round(level, 3) for _, level in run.buffer_s],
            mode="lines",
            line={"color": colour, "width": 1.5},
            fill="tozeroy",
            showlegend=False,
            hovertemplate=f"{cell.label}: %{{y:.2f}} s at %{{x:.1f}} s<extra></extra>",
            row=index,
            col=1,
        )
        shaded += [shade(begin, end, index) for begin, end in run.stalls]
        names.append(_strip_name(cell.label, index))
    figure.update_layout(**layout(70 + 84 * max(1, len(shown)), shapes=shaded, annotations=names))
    figure.update_yaxes(range=[0, top * 1.08], title_text="s", nticks=4)
    figure.update_xaxes(range=[0, duration_s])
    figure.update_xaxes(title_text="time since the player's start, s", row=max(1, len(shown)), col=1)
    return figure


# The colour, mark and legend of a difference in a forest plot, by the first word of its verdict.
_VERDICTS = {"lower": (BLUE, "circle", "lower"), "higher": (VERMILION, "square", "higher")}
_OPEN = ("#777777", "circle-open", "not established")
FOREST_ROW_PX = 24


FOREST_CAPTION = "Differences of schemes at the same places, with 95 % intervals; left of the line is better."


def forest(differences: Sequence[Difference]) -> go.Figure:
    """Each difference that has an interval as a mark on its own line: times in per cent above rates in points. Raises
    UserError if there is none."""
    shown = [(one, one.change.interval) for one in differences if one.change is not None and one.change.interval.known]
    strips = [
        (unit, rows)
        for unit, rows in (
            ("difference, %", [(one, ends) for one, ends in shown if one.figure.is_relative]),
            ("difference, points", [(one, ends) for one, ends in shown if not one.figure.is_relative]),
        )
        if rows
    ]
    if not strips:
        raise UserError("no difference has an interval, so there is nothing to plot; `railyard compare` says why.")
    total = sum(len(rows) for _, rows in strips)
    figure = make_subplots(
        rows=len(strips),
        cols=1,
        row_heights=[len(rows) / total for _, rows in strips],
        vertical_spacing=min(0.3, 80 / (FOREST_ROW_PX * total + 80 * len(strips))),
    )
    in_legend: set[str] = set()
    for number, (unit, rows) in enumerate(strips, start=1):
        names = [_compared(one) for one, _ in rows]
        for (one, ends), name in zip(rows, names, strict=True):
            colour, symbol, word = _VERDICTS.get(one.verdict.split(" ")[0], _OPEN)
            line = {"color": colour, "width": 2}
            cap = {"symbol": "line-ns", "size": 8, "line": line}  # a mark, because the axis leaves room for marks
            both = {"x": [100 * ends.low, 100 * ends.high], "y": [name, name], "line": line, "marker": cap}
            place = None if ends.is_unknown else 100 * ends.value
            point = {"x": [place], "y": [name], "mode": "markers", "name": word}
            mark = {"symbol": symbol, "size": 10, "color": colour, "line": {"width": 2, "color": colour}}
            said = f"{name}: {one.words}, {one.verdict}<extra></extra>"
            drawn = go.Scatter(both, mode="lines+markers", showlegend=False, hoverinfo="skip")
            figure.add_trace(drawn, row=number, col=1)
            mentioned = {
                "marker": mark,
                "showlegend": word not in in_legend,
                "legendgroup": word,
                "hovertemplate": said,
            }
            figure.add_trace(go.Scatter(point | mentioned), row=number, col=1)
            in_legend.add(word)
        figure.update_xaxes(title_text=unit, row=number, col=1)
        order = {"categoryorder": "array", "categoryarray": names[::-1], "range": [-0.6, len(names) - 0.4]}
        figure.update_yaxes(showgrid=False, row=number, col=1, **order)
        figure.add_vline(x=0, line={"color": INK, "width": 1}, row=number, col=1)
    height = 80 * len(strips) + 40 + FOREST_ROW_PX * total
    return figure.update_layout(**layout(height, margin={"t": 40}, showlegend=True))


def _compared(one: Difference) -> str:
    of_pair = "" if one.pair == ALL else f"{one.pair}: "
    return plain(f"{of_pair}{one.label} to {one.against}, {one.figure.title}")
