"""Plotly figures drawn by matplotlib, for files that a page of a paper takes, at the width of a column.

It draws the elements of our figures: lines, marks, areas and bars with their intervals, in strips of one or more axes.
Lines that share a dash get marks, so that they stay distinct in a grey print.
"""

import base64
import html
import io
import math
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogFormatter, MaxNLocator, NullFormatter, NullLocator, PercentFormatter

from railyard.base.errors import UserError
from railyard.base.files import write_whole, writing
from railyard.base.forms import LATEX
from railyard.base.style import COLOURWAY, STYLE

FORMATS = ("pdf", "svg", "pgf")
PX_PER_INCH = 144  # of a figure's height: the page's text of 12 px is 6 to 7 points in print
FONT_PT = 7
LINE_PT = 0.5  # of a line that is 1 px wide on the page
INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}  # pt: TeX's
LEAST_INCHES, MOST_INCHES = 1.0, 40.0
MOST_VECTORS = 2000  # marks of one kind; more are drawn as a picture
TEX_SYSTEMS = ("pdflatex", "xelatex", "lualatex")
_PAPER: dict[Any, Any] = {
    "font.size": FONT_PT,
    "axes.titlesize": FONT_PT,
    "axes.linewidth": 0.5,
    "xtick.major.width": 0.5,
    "ytick.major.width": 0.5,
    "xtick.major.size": 2,
    "ytick.major.size": 2,
    "grid.linewidth": 0.4,
    "hatch.linewidth": 0.4,
    "legend.fontsize": FONT_PT - 0.5,
    "legend.handlelength": 2.4,
    "legend.borderaxespad": 0.2,
    "text.parse_math": False,
    "pdf.fonttype": 42,  # publishers refuse Type 3
    "pgf.rcfonts": False,  # the paper's own fonts
    "savefig.dpi": 220,  # of png, and of what is rasterized
}
_DASHES: dict[str, Any] = {
    "solid": "-",
    "dot": (0, (1, 1.4)),
    "dash": (0, (4, 1.6)),
    "longdash": (0, (8, 2)),
    "dashdot": (0, (4, 1.4, 1, 1.4)),
    "longdashdot": (0, (8, 1.6, 1, 1.6)),
}
_STEPS = {"hv": "steps-post", "vh": "steps-pre", "hvh": "steps-mid"}
_FILL_STEPS: dict[str, Any] = {"hv": "post", "vh": "pre", "hvh": "mid"}
_SYMBOLS = {
    **{"circle": "o", "square": "s", "diamond": "D", "triangle-up": "^", "triangle-down": "v", "star": "*"},
    **{"star-diamond": "P", "x": "X", "x-thin": "x", "cross": "P", "cross-thin": "+", "line-ns": "|", "line-ew": "_"},
}
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")  # of lines that share a dash
_HATCHES = {"/": "////", "\\": "\\\\\\\\", "x": "xxxx", ".": "....", "-": "----", "|": "||||", "+": "++++", "": ""}
_REFERENCE = re.compile(r"^([xy])(\d*)( domain)?$")
_COLOUR = re.compile(r"rgba?\(([^)]*)\)")


def inches(text: str) -> float:
    """A width such as 3.3in, 84mm or 241pt. Raises UserError."""
    match = re.fullmatch(r"([0-9]{1,4}(?:\.[0-9]{1,4})?) ?(in|cm|mm|pt)", text.strip())
    width = float(match[1]) * INCHES[match[2]] if match else 0.0
    if not LEAST_INCHES <= width <= MOST_INCHES:
        raise UserError(
            f"'{text}' is no width of a figure; give {LEAST_INCHES:g} to {MOST_INCHES:g} inches, for instance 3.3in, "
            "84mm or 241pt."
        )
    return width


def write_figure(figure: Mapping[str, Any], out: Path, width_in: float) -> None:
    """Writes a plotly figure, as a dictionary, to a file whose name ends in one of FORMATS. Raises UserError."""
    with writing(out):
        write_whole(out, picture(figure, out.suffix[1:], width_in))


def picture(figure: Mapping[str, Any], form: str, width_in: float) -> bytes:
    """A plotly figure, as a dictionary, in one of FORMATS or png. The same figure gives the same bytes. Raises
    UserError."""
    own: dict[Any, Any] = {"pgf.texsystem": _tex_system()} if form == "pgf" else {}
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    options: dict[str, Any] = {"metadata": undated[form]} if form in undated else {}
    data = io.BytesIO()
    with mpl.rc_context(STYLE | _PAPER | own):
        Paper(figure, width_in, tex=form == "pgf").draw().savefig(data, format=form, **options)
    return data.getvalue()


def _tex_system() -> str:
    system = next((name for name in TEX_SYSTEMS if shutil.which(name)), None)
    if system is None:
        raise UserError(
            "pgf needs LaTeX to measure the text, and it is not here; install the Debian packages texlive-latex-base "
            "and texlive-pictures, or choose pdf or svg."
        )
    return system


def _values(values: Any) -> list[Any]:
    """A list of plotly's, which may be packed."""
    if isinstance(values, dict) and "bdata" in values:
        unpacked: list[Any] = np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"]).tolist()
        return unpacked
    return [] if values is None else list(values)


def _colour(text: Any) -> Any:
    """A colour for matplotlib: rgba(r, g, b, a) as four shares, others unchanged."""
    match = _COLOUR.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return text
    red, green, blue, *alpha = (float(part) for part in match[1].split(","))
    return (red / 255, green / 255, blue / 255, alpha[0] if alpha else 1.0)


def _dash(text: str) -> Any:
    if text in _DASHES:
        return _DASHES[text]
    lengths = [float(part) / 2 for part in re.findall(r"[\d.]+", text)]
    return (0, tuple(lengths)) if lengths else "-"


def _at(values: Any, number: int) -> Any:
    """The value of a property at one point. The property has one value, or one for each point."""
    return values[number] if isinstance(values, list | tuple) else values


def _mark(trace: Mapping[str, Any], number: int, base: Any) -> dict[str, Any]:
    """The mark of one of a trace's points, as large as in the legend."""
    marker = trace.get("marker") or {}
    symbol = str(_at(marker.get("symbol") or "circle", number))
    colour = _colour(_at(marker.get("color"), number)) or base
    plain = symbol.removesuffix("-open")
    hollow = plain != symbol or plain.endswith("-thin")
    look = {"marker": _SYMBOLS.get(plain, "o"), "markersize": 4, "markeredgecolor": colour}
    return look | {"markerfacecolor": "none" if hollow else colour}


@dataclass
class _Place:
    """One axes of the figure, with the names of its axes in plotly's layout."""

    axes: Axes
    x: dict[str, Any]
    y: dict[str, Any]
    categories: dict[str, list[str]] = field(default_factory=dict)
    stacked: dict[float, float] = field(default_factory=dict)
    dashes: dict[str, int] = field(default_factory=dict)

    def along(self, which: str, values: Sequence[Any]) -> list[float]:
        """Values on an axis. Words become their places in the order of the categories."""
        if not any(isinstance(value, str) for value in values):
            return [float("nan") if value is None else float(value) for value in values]
        names = self.categories.setdefault(which, [])
        for value in values:
            if value is not None and str(value) not in names:
                names.append(str(value))
        return [float("nan") if value is None else float(names.index(str(value))) for value in values]


class Paper:
    """Draws one figure. `tex`: whether TeX typesets its words."""

    def __init__(self, figure: Mapping[str, Any], width_in: float, *, tex: bool = False) -> None:
        self.traces: list[dict[str, Any]] = [dict(trace) for trace in figure.get("data", [])]
        self.layout: dict[str, Any] = dict(figure.get("layout", {}))
        self.tex = tex
        height_in = float(self.layout.get("height") or 380) / PX_PER_INCH
        self.figure = Figure(figsize=(width_in, height_in), layout="constrained")
        self.places: dict[tuple[str, str], _Place] = {}
        self.handles: dict[str, Any] = {}

    def text(self, text: Any) -> str:
        """Plotly's text without its tags. For TeX, special characters are escaped."""
        plain = html.unescape(re.sub(r"<[^>]*>", "", str(text or "").replace("<br>", "\n")))
        # matplotlib itself escapes %.
        return (
            "".join(letter if letter == "%" else LATEX.get(letter, letter) for letter in plain) if self.tex else plain
        )

    def axis(self, name: str) -> dict[str, Any]:
        """An axis of the layout, by plotly's reference to it: x, y2."""
        axis: dict[str, Any] = self.layout.get(f"{name[0]}axis{name[1:]}") or {}
        return axis

    def draw(self) -> Figure:
        self._make_places()
        widths = self._bar_widths()
        for number, trace in enumerate(self.traces):
            kind, place = trace.get("type", "scatter"), self.places[self._names(trace)]
            colour = COLOURWAY[number % len(COLOURWAY)]
            if kind in ("scatter", "scattergl"):
                self._scatter(place, trace, colour)
            elif kind == "bar":
                self._bar(place, trace, colour, *widths[number])
            else:
                raise UserError(f"a plot of the kind '{kind}' is drawn in the report only, not for a paper.")
        for place in self.places.values():
            self._finish(place)
        for shape in self.layout.get("shapes") or ():
            self._shape(shape)
        for note in self.layout.get("annotations") or ():
            self._note(note)
        if heading := (self.layout.get("title") or {}).get("text"):
            self.figure.suptitle(self.text(heading), x=0.01, ha="left", fontsize=FONT_PT + 1, fontweight="bold")
        if self.handles:
            names = [self.text(name) for name in self.handles]
            entry_in = (max(map(len, names)) * FONT_PT / 2 + 4 * FONT_PT) / 72
            columns = max(1, min(len(names), int(self.figure.get_figwidth() / entry_in)))
            self.figure.legend(list(self.handles.values()), names, loc="outside upper left", ncols=columns)
        return self.figure

    def _names(self, trace: Mapping[str, Any]) -> tuple[str, str]:
        return str(trace.get("xaxis") or "x"), str(trace.get("yaxis") or "y")

    def _make_places(self) -> None:
        """Makes a grid of axes from the domains of plotly's axes. An overlaid axis has no domain."""
        pairs = list(dict.fromkeys(self._names(trace) for trace in self.traces)) or [("x", "y")]

        def domain(name: str) -> tuple[float, float]:
            low, high = self.axis(self.axis(name).get("overlaying") or name).get("domain") or (0.0, 1.0)
            return round(float(low), 4), round(float(high), 4)

        columns = sorted({domain(x) for x, _ in pairs})
        rows = sorted({domain(y) for _, y in pairs}, reverse=True)
        grid = self.figure.add_gridspec(
            len(rows),
            len(columns),
            width_ratios=[high - low for low, high in columns],
            height_ratios=[high - low for low, high in rows],
        )
        made: dict[tuple[int, int], Axes] = {}
        for x, y in pairs:
            where = rows.index(domain(y)), columns.index(domain(x))
            axes = made[where].twinx() if where in made else self.figure.add_subplot(grid[where])
            made.setdefault(where, axes)
            place = _Place(axes, self.axis(x), self.axis(y))
            for which, axis in (("x", place.x), ("y", place.y)):
                place.categories |= (
                    {which: [str(one) for one in _values(axis["categoryarray"])]}
                    if axis.get("categoryarray") is not None
                    else {}
                )
            self.places[x, y] = place

    # --- traces -------------------------------------------------------------------------------------------------------

    def _told(self, trace: Mapping[str, Any], handle: Any) -> None:
        """Adds a trace to the legend, if the figure has a legend and the trace belongs in it."""
        shown = trace.get("showlegend", True) and self.layout.get("showlegend", len(self.traces) > 1)
        if shown and trace.get("name"):
            self.handles.setdefault(str(trace["name"]), handle)

    def _scatter(self, place: _Place, trace: dict[str, Any], colour: str) -> None:
        x, y = place.along("x", _values(trace.get("x"))), place.along("y", _values(trace.get("y")))
        x = x or [float(k) for k in range(len(y))]
        mode, line = str(trace.get("mode") or "lines"), trace.get("line") or {}
        base = _colour(line.get("color")) or colour
        shape = str(line.get("shape") or "linear")
        if trace.get("fill") in ("tozeroy", "tonexty", "toself"):
            self._area(place, trace, (x, y), base)
        if "lines" in mode and float(line.get("width", 2)) > 0:
            style: dict[str, Any] = {"color": base, "linewidth": LINE_PT * float(line.get("width", 2))}
            style |= {"linestyle": _dash(str(line.get("dash") or "solid")), "alpha": trace.get("opacity")}
            if trace.get("meta") != "ground" and "markers" not in mode:
                style |= self._mark_of_line(place, trace, len(x))
            [drawn] = place.axes.plot(x, y, drawstyle=_STEPS.get(shape, "default"), zorder=2.5, **style)
            self._told(trace, Line2D([], [], **style, **_mark(trace, 0, base)) if "markers" in mode else drawn)
        if "markers" in mode:
            self._markers(place, trace, (x, y), base)
        self._errors(place, trace, (x, y), base)
        if "text" in mode:
            for number, text in enumerate(_values(trace.get("text"))):
                place.axes.text(x[number], y[number], self.text(text), fontsize=FONT_PT - 1)

    def _mark_of_line(self, place: _Place, trace: Mapping[str, Any], points: int) -> dict[str, Any]:
        """A mark for a line in the legend, if another line of these axes has the same dash."""
        dash = str((trace.get("line") or {}).get("dash") or "solid")
        if not trace.get("name") or trace.get("showlegend") is False or trace.get("fill"):
            return {}
        before = place.dashes.get(dash, 0)
        place.dashes[dash] = before + 1
        if before == 0:
            return {}
        every = max(1, points // 6)
        return {"marker": _MARKS[(before - 1) % len(_MARKS)], "markersize": 3, "markevery": (every // 2, every)}

    def _area(self, place: _Place, trace: Mapping[str, Any], xy: tuple[list[float], list[float]], base: Any) -> None:
        colour, solid = _colour(trace.get("fillcolor")), trace.get("fillcolor") is None
        style: dict[str, Any] = {"color": colour or base, "alpha": 0.35 if solid else None, "linewidth": 0}
        if trace["fill"] == "toself":
            place.axes.fill(*xy, **style)
            return
        below: Any = 0
        if trace["fill"] == "tonexty":
            before = self.traces[self.traces.index(trace) - 1]  # type: ignore[arg-type]
            other = place.along("y", _values(before.get("y")))
            below = other if len(other) == len(xy[1]) else 0
        step = _FILL_STEPS.get(str((trace.get("line") or {}).get("shape")))
        place.axes.fill_between(*xy, below, step=step, zorder=1.5, **style)

    def _markers(self, place: _Place, trace: Mapping[str, Any], xy: tuple[list[float], list[float]], base: Any) -> None:
        marker = trace.get("marker") or {}
        size = marker.get("size", 6)
        drawn: list[Any] = []
        if not any(isinstance(marker.get(name), list | tuple) for name in ("symbol", "color", "size")):
            look = _mark(trace, 0, base) | {"markersize": float(size) * 0.45, "rasterized": len(xy[0]) > MOST_VECTORS}
            drawn = place.axes.plot(*xy, linestyle="none", markeredgewidth=0.8, zorder=3, **look)
        for number, (x, y) in enumerate(() if drawn else zip(*xy, strict=True)):
            if np.isnan(x) or np.isnan(y):
                continue
            look = _mark(trace, number, base) | {"markersize": float(_at(size, number)) * 0.45}
            drawn += place.axes.plot([x], [y], linestyle="none", markeredgewidth=0.8, zorder=3, **look)
        if drawn and trace.get("mode") == "markers":
            grey = len({str(one.get_markeredgecolor()) for one in drawn}) > 1
            handle = Line2D([], [], linestyle="none", marker=drawn[0].get_marker(), markersize=4)
            handle.set_markerfacecolor("none" if drawn[0].get_markerfacecolor() == "none" else "#444444")
            handle.set_markeredgecolor("#444444")
            self._told(trace, handle if grey else drawn[0])

    def _errors(self, place: _Place, trace: Mapping[str, Any], xy: tuple[list[float], list[float]], base: Any) -> None:
        for name, which in (("error_x", "xerr"), ("error_y", "yerr")):
            bars = trace.get(name) or {}
            if bars.get("visible") is False or bars.get("array") is None:
                continue
            more = [0.0 if value is None else float(value) for value in _values(bars["array"])]
            less = bars.get("arrayminus")
            low = more if less is None else [0.0 if one is None else float(one) for one in _values(less)]
            style: dict[str, Any] = {"ecolor": _colour(bars.get("color")) or base, "elinewidth": 0.7, "capsize": 1.5}
            style[which] = [low, more]
            place.axes.errorbar(xy[0], xy[1], fmt="none", zorder=2.8, **style)

    def _bar_widths(self) -> dict[int, tuple[float, float]]:
        """Maps the index of each bar trace to the width of its bars and their offset from the category."""
        bars = [number for number, trace in enumerate(self.traces) if trace.get("type") == "bar"]
        if self.layout.get("barmode", "group") != "group":
            return dict.fromkeys(bars, (0.75, 0.0))
        bar_widths: dict[int, tuple[float, float]] = {}
        for names in {self._names(self.traces[number]) for number in bars}:
            here = [number for number in bars if self._names(self.traces[number]) == names]
            for place, number in enumerate(here):
                bar_widths[number] = (0.75 / len(here), 0.75 * ((place + 0.5) / len(here) - 0.5))
        return bar_widths

    def _bar(self, place: _Place, trace: Mapping[str, Any], colour: str, width: float, shift: float) -> None:
        lying = trace.get("orientation") == "h"
        x, y = place.along("x", _values(trace.get("x"))), place.along("y", _values(trace.get("y")))
        marker = trace.get("marker") or {}
        pattern = marker.get("pattern") or {}
        stack = self.layout.get("barmode") in ("stack", "relative")
        drawn: Any = None
        for number, (value, place_of) in enumerate(zip(x, y, strict=True) if lying else zip(y, x, strict=True)):
            if np.isnan(value):
                continue
            start = place.stacked.get(place_of, 0.0) if stack else 0.0
            place.stacked[place_of] = start + value
            look: dict[str, Any] = {"color": _colour(_at(marker.get("color"), number)) or colour}
            look |= {"hatch": _HATCHES.get(str(_at(pattern.get("shape", ""), number)), "")}
            look |= {"edgecolor": _colour(pattern.get("fgcolor")) or "white", "linewidth": 0, "zorder": 2}
            if lying:
                drawn = place.axes.barh(place_of + shift, value, height=width, left=start, **look)
            else:
                drawn = place.axes.bar(place_of + shift, value, width=width, bottom=start, **look)
        if drawn is not None:
            self._told(trace, drawn[0])
        along = (x, [one + shift for one in y]) if lying else ([one + shift for one in x], y)
        self._errors(place, trace, along, "#222222")

    # --- axes, shapes and words ---------------------------------------------------------------------------------------

    def _finish(self, place: _Place) -> None:
        axes = place.axes
        for which, given in (("x", place.x), ("y", place.y)):
            axis = axes.xaxis if which == "x" else axes.yaxis
            set_limits = axes.set_xlim if which == "x" else axes.set_ylim
            is_log = given.get("type") == "log"
            if is_log:
                (axes.set_xscale if which == "x" else axes.set_yscale)("log")
                axis.set_major_formatter(LogFormatter())  # the default one writes formulas
                axis.set_minor_formatter(LogFormatter(labelOnlyBase=False, minor_thresholds=(1, 0.4)))
            if names := place.categories.get(which):
                said = dict(zip(given.get("tickvals") or (), given.get("ticktext") or (), strict=False))
                axis.set_ticks(list(range(len(names))), [self.text(said.get(name, name)) for name in names])
            elif str(given.get("tickformat") or "").endswith("%"):
                axis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=self.text("%")))
            limits = [None if end is None else float(end) for end in given.get("range") or ()]
            if len(limits) == 2:
                low, high = (None if end is None else 10**end if is_log else end for end in limits)
                set_limits(low, high)
            elif given.get("rangemode") == "tozero":
                end = axes.dataLim.x1 if which == "x" else axes.dataLim.y1
                set_limits(0, 1.06 * end if 0 < end < math.inf else 1)
            low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
            if given.get("tickvals") is not None and not names:
                ticks = zip(
                    _values(given["tickvals"]), _values(given.get("ticktext") or given["tickvals"]), strict=True
                )
                inside = [(float(at), self.text(text)) for at, text in ticks if low <= float(at) <= high]
                few = self._few(inside, which)
                axis.set_ticks([at for at, _ in few], [text for _, text in few])
                axis.set_minor_locator(NullLocator())
                axis.set_minor_formatter(NullFormatter())
                set_limits(low, high)
            elif not is_log and not names and (count := given.get("nticks")):
                axis.set_major_locator(MaxNLocator(int(count)))
            axes.grid(given.get("showgrid", True) is not False, axis="x" if which == "x" else "y")
            title = self.text((given.get("title") or {}).get("text"))
            (axes.set_xlabel if which == "x" else axes.set_ylabel)(title)
            if given.get("showticklabels") is False or (which == "x" and given.get("matches") and not title):
                axes.tick_params(axis="x" if which == "x" else "y", labelbottom=False, labelleft=which == "x")
        if place.y.get("side") == "right":
            axes.spines["right"].set_visible(True)

    def _few(self, ticks: list[tuple[float, str]], which: str) -> list[tuple[float, str]]:
        """The ticks that have room: about three in an inch of width."""
        room = self.figure.get_figwidth() * 3 if which == "x" else self.figure.get_figheight() * 4
        every = max(1, -(-len(ticks) // max(2, int(room))))
        return ticks[::every]

    def _place_at(self, references: tuple[str, str]) -> tuple[_Place, bool, bool] | None:
        """The axes that a shape's references name, and for each whether coordinates are shares of its length."""
        matches = [_REFERENCE.match(one) for one in references]
        names = tuple(f"{one[1]}{one[2]}" if one else name[0] for one, name in zip(matches, ("x", "y"), strict=True))
        own_lengths = [one is None or bool(one[3]) for one in matches]  # 'paper' too
        place = self.places.get((names[0], names[1]))
        if place is None:
            place = next((one for key, one in self.places.items() if names[1] == key[1] or names[0] == key[0]), None)
        return None if place is None else (place, own_lengths[0], own_lengths[1])

    def _spots(self, references: tuple[str, str], x: Any, y: Any) -> Iterator[tuple[_Place, float, float, Any]]:
        placement = self._place_at(references)
        if placement is None:
            return
        place, whole_x, whole_y = placement
        axes = place.axes
        blended = {
            (False, False): axes.transData,
            (True, False): axes.get_yaxis_transform(),
            (False, True): axes.get_xaxis_transform(),
            (True, True): axes.transAxes,
        }[whole_x, whole_y]
        at_x = float(x) if whole_x else place.along("x", [x])[0]
        at_y = float(y) if whole_y else place.along("y", [y])[0]
        yield place, at_x, at_y, blended

    def _shape(self, shape: Mapping[str, Any]) -> None:
        references = str(shape.get("xref") or "x"), str(shape.get("yref") or "y")
        for place, x0, y0, transform in self._spots(references, shape["x0"], shape["y0"]):
            [(_, x1, y1, _)] = self._spots(references, shape["x1"], shape["y1"])
            line = shape.get("line") or {}
            if shape.get("type") == "rect":
                rectangle = mpl.patches.Rectangle((x0, y0), x1 - x0, y1 - y0, transform=transform, linewidth=0)
                rectangle.set(facecolor=_colour(shape.get("fillcolor")), alpha=shape.get("opacity"), zorder=1.2)
                place.axes.add_patch(rectangle)
            else:
                style = {"color": _colour(line.get("color")) or "#222222", "linewidth": LINE_PT * line.get("width", 2)}
                dash = _dash(str(line.get("dash") or "solid"))
                place.axes.add_line(Line2D([x0, x1], [y0, y1], transform=transform, linestyle=dash, **style))

    def _note(self, note: Mapping[str, Any]) -> None:
        references = str(note.get("xref") or "x"), str(note.get("yref") or "y")
        if references == ("paper", "paper"):
            self._title(note)
            return
        for place, x, y, transform in self._spots(references, note.get("x", 0), note.get("y", 0)):
            # On a logarithmic axis, plotly gives the exponent of ten.
            axis = place.x if not references[0].endswith("domain") else {}
            at_x = 10**x if axis.get("type") == "log" else x
            across = {"left": "left", "right": "right"}.get(str(note.get("xanchor")), "center")
            down = {"top": "top", "bottom": "bottom"}.get(str(note.get("yanchor")), "center")
            offset = float(note.get("xshift") or 0) / 2, float(note.get("yshift") or 0) / 2
            place.axes.annotate(
                self.text(note.get("text")),
                *((at_x, y), offset),
                xycoords=transform,
                textcoords="offset points",
                ha=across,
                va=down,
                fontsize=FONT_PT - 0.5,
                annotation_clip=False,
            )

    def _title(self, note: Mapping[str, Any]) -> None:
        """Writes the heading of a strip at the end of the strip's axes."""
        x, y = float(note.get("x", 0)), float(note.get("y", 0))

        def distance(place: _Place) -> float:
            left, _ = place.x.get("domain") or (0.0, 1.0)
            _, top = place.y.get("domain") or (0.0, 1.0)
            return abs(y - top) + 0.1 * abs(x - left)

        nearest = min(self.places.values(), key=distance)
        nearest.axes.set_title(self.text(note.get("text")), loc="left", pad=2)
