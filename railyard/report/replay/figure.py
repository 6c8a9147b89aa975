"""The figure of a replay: strips above each other on one time axis. If a trace's `meta` names a row and a column, the
page also shows its value at the cursor."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import plotly.graph_objects as go

from railyard.base.strips import in_strips
from railyard.base.style import BLUE, INK, ORANGE, PATH_COLOURS, STALL_COLOUR, layout
from railyard.report.replay.series import Replay

STRIP_PX = 118
DASHES = ("solid", "dash", "dot", "dashdot")
# Lines must be visible on white, for which the yellow of filled areas is too pale.
LINE_COLOURS = (BLUE, *PATH_COLOURS[1:2], "#777777", PATH_COLOURS[3])


class _Strips:
    """Draws into the rows of a figure."""

    def __init__(self, replay: Replay, figure: go.Figure) -> None:
        self.replay = replay
        self.figure = figure

    def line(
        self,
        row: int,
        values: Sequence[float | None],
        name: str,
        meta: tuple[str, str, str],
        **style: object,
    ) -> None:
        look = {"mode": "lines", "hovertemplate": f"{name}: %{{y:.4~g}} {meta[2]} at %{{x:.2f}} s<extra></extra>"}
        label = {"row": meta[0], "column": meta[1], "unit": meta[2]}
        x = self.replay.bins.starts_s
        self.figure.add_scatter(x=x, y=values, name=name, meta=label, **(look | style), row=row, col=1)

    def of_path(
        self,
        row: int,
        index: int,
        values: Sequence[float | None],
        what: str,
        unit: str,
        column: str = "",
        width: float = 1.3,
    ) -> None:
        """A line of one path, if there is something to draw. `column`: its title in the data, if that is not `what`."""
        if values:
            name, (colour, _, dash) = self.replay.paths[index].name, _colours(index)
            style = {"color": colour, "width": width, "dash": dash, "shape": "hv"}
            self.line(row, values, f"{name} {what}", (name, column or what, unit), line=style)

    def marks(
        self, row: int, values: Sequence[float], name: str, at: Sequence[float], symbol: str, colour: str
    ) -> None:
        """A mark in each bin in which something happened."""
        happened = [number for number, value in enumerate(values) if value]
        if not happened:
            return
        self.figure.add_scatter(
            x=[self.replay.bins.starts_s[number] for number in happened],
            y=[at[number] for number in happened],
            name=name,
            mode="markers",
            marker={"symbol": symbol, "size": 7, "color": colour, "line": {"width": 1.5, "color": colour}},
            text=[f"{values[number]:g} {name}" for number in happened],
            hovertemplate="%{text} at %{x:.2f} s<extra></extra>",
            row=row,
            col=1,
        )


def _colours(index: int) -> tuple[str, str, str]:
    return LINE_COLOURS[index % 4], PATH_COLOURS[index % 4], DASHES[index % 4]


def _capacity(strips: _Strips, row: int, index: int) -> None:
    path, (_, fill, _) = strips.replay.paths[index], _colours(index)
    area = {"fill": "tozeroy", "line": {"color": fill, "width": 1, "shape": "hv"}}
    strips.line(row, path.capacity, f"{path.name} capacity", (path.name, "capacity", "Mbps"), **area)
    drawn = {"line": {"color": INK, "width": 1.4, "shape": "hv"}}
    strips.line(row, path.delivered, f"{path.name} delivered", (path.name, "delivered", "Mbps"), **drawn)
    strips.marks(row, path.drops, "dropped by the queue", path.delivered, "x-thin-open", STALL_COLOUR)


def _packets(strips: _Strips, row: int) -> None:
    for index, path in enumerate(strips.replay.paths):
        strips.of_path(row, index, path.sent, "sent", "packets")
        if path.sent:
            strips.marks(row, path.lost, "lost", path.sent, "x", _colours(index)[0])


def _copies(strips: _Strips, row: int) -> None:
    for index, path in enumerate(strips.replay.paths):
        strips.of_path(row, index, path.copied_kb, "re-injected", "kB", width=1.8)


def _windows(strips: _Strips, row: int) -> None:
    for index, path in enumerate(strips.replay.paths):
        strips.of_path(row, index, path.in_flight_kb, "in flight", "kB")
        if path.window_kb:
            thin = {"line": {"color": _colours(index)[0], "width": 2.6, "dash": "dot", "shape": "hv"}}
            strips.line(row, path.window_kb, f"{path.name} cwnd", (path.name, "cwnd", "kB"), **thin, opacity=0.6)


def _rtts(strips: _Strips, row: int) -> None:
    for index, path in enumerate(strips.replay.paths):
        strips.of_path(row, index, path.rtt_ms, "RTT", "ms", column="smoothed RTT", width=1.5)


def _chunks(strips: _Strips, row: int) -> None:
    for number, asked, done in strips.replay.chunks:
        end = strips.replay.end_s if done is None else done
        label = f"chunk {number}: {'not complete' if done is None else f'{done - asked:.3f} s'}"
        strips.figure.add_scatter(
            x=[asked, end],
            y=[number, number],
            customdata=[number, number],
            meta={"chunk": True},
            name=label,
            mode="lines+markers",
            line={"color": INK if done is not None else STALL_COLOUR, "width": 2},
            marker={"symbol": ["line-ns-open", "x-open" if done is None else "circle"], "size": 6},
            hovertemplate=label + "<extra></extra>",
            row=row,
            col=1,
        )


def _buffer(strips: _Strips, row: int) -> None:
    replay = strips.replay
    strips.figure.add_scatter(
        x=[t for t, _ in replay.buffer],
        y=[level for _, level in replay.buffer],
        name="buffer",
        meta={"row": "player", "column": "buffer", "unit": "s"},
        mode="lines",
        fill="tozeroy",
        line={"color": ORANGE, "width": 1.6},
        hovertemplate="buffer: %{y:.2f} s at %{x:.2f} s<extra></extra>",
        row=row,
        col=1,
    )
    stall = {"fillcolor": STALL_COLOUR, "opacity": 0.3, "line_width": 1, "line_color": STALL_COLOUR}
    for begin, end in replay.stalls:
        strips.figure.add_vrect(x0=begin, x1=end, **stall, row=row, col=1)


Strip = tuple[str, str, Callable[[_Strips, int], None]]


def _strips_of(replay: Replay) -> Iterator[Strip]:
    """Title, unit and drawing of each strip for which the run has data."""
    paths = replay.paths
    for index, path in enumerate(paths):
        if path.capacity:
            title = f"{path.name}: downlink capacity (filled), delivered (line)"
            yield title, "Mbps", partial(_capacity, index=index)
    if any(path.sent for path in paths):
        what = "sent by the server" if replay.from_qlog else "into the downlink"
        yield f"packets {what} per {replay.bins.width_s * 1000:g} ms, × lost", "packets", _packets
    if any(path.copied_kb and path.copied_kb[-1] for path in paths):
        yield "re-injected on each path, so far", "kB", _copies
    if any(path.in_flight_kb for path in paths):
        yield "bytes in flight, and congestion window (dotted)", "kB", _windows
    if any(path.rtt_ms for path in paths):
        yield "smoothed RTT", "ms", _rtts
    if replay.chunks:
        yield "chunks, from the request to the last byte", "chunk", _chunks
    if replay.buffer:
        yield "buffer, seconds of video (shaded: stalled)", "s", _buffer


def key(replay: Replay) -> str:
    """The key of the paths' lines."""
    dash_names = {"solid": "solid", "dash": "dashed", "dot": "dotted", "dashdot": "dashed and dotted"}
    return ", ".join(f"{path.name} {dash_names[_colours(index)[2]]}" for index, path in enumerate(replay.paths))


def draw(replay: Replay) -> go.Figure:
    shown = list(_strips_of(replay))
    height = 60 + STRIP_PX * max(1, len(shown))
    titles = [title for title, _, _ in shown]
    figure = in_strips(titles, min(0.2, 26 / height), "time since the links' time 0, s")
    drawn = _Strips(replay, figure)
    for row, (_, unit, paint) in enumerate(shown, start=1):
        paint(drawn, row)
        ground = "normal" if unit == "chunk" else "tozero"
        figure.update_yaxes(title_text=unit, rangemode=ground, nticks=4, row=row, col=1)
    figure.update_layout(**layout(height, margin={"t": 24, "b": 40}, showlegend=False, dragmode="zoom"))
    figure.update_xaxes(range=[0, replay.bins.end_s])
    figure.update_yaxes(fixedrange=True)
    return figure
