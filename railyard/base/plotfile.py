"""Writes a figure: SVG, PNG and PDF with matplotlib, HTML with plotly. The file's suffix decides."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import plotly.graph_objects as go
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from railyard.base.errors import UserError
from railyard.base.files import write_named
from railyard.base.style import GRID, INK

DRAWN = (".svg", ".png", ".pdf")
FORMATS = (*DRAWN, ".html")
_DPI = 150
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "railyard",  # equal inputs give equal bytes
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlelocation": "left",
    "axes.titlesize": 9,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
}


def check_format(out: Path, formats: Sequence[str] = FORMATS) -> None:
    """Raises UserError if the name has no known suffix."""
    if out.suffix.lower() not in formats:
        raise UserError(f"{out}: a plot's name ends in {', '.join(formats)}; choose one of them")


def write_plot(out: Path, drawn: Callable[[], Figure], interactive: Callable[[], go.Figure]) -> None:
    """Draws a figure with matplotlib or plotly and writes it. Raises UserError."""
    check_format(out)
    if out.suffix.lower() != ".html":
        write_drawn(out, drawn)
        return
    write_named(out, interactive().to_html(include_plotlyjs=True, full_html=True, div_id="plot"))


def write_drawn(out: Path, drawn: Callable[[], Figure]) -> None:
    """Draws a figure with matplotlib and writes it. Raises UserError."""
    check_format(out, DRAWN)
    data = io.BytesIO()
    with mpl.rc_context(STYLE):
        figure = drawn()
        metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(out.suffix.lower(), {})
        figure.savefig(data, format=out.suffix[1:].lower(), dpi=_DPI, metadata=metadata)
    write_named(out, data.getvalue())


def rows_figure(heights: list[float], title: str) -> tuple[Figure, list[Axes]]:
    """A figure of rows that share the axis of time; heights in inches."""
    figure = Figure(figsize=(10, sum(heights) + 0.7), layout="constrained")
    axes = figure.subplots(len(heights), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights})
    figure.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold")
    return figure, list(axes[:, 0])
