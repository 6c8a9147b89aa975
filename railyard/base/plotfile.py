"""Writes a figure to a file that the user named. The file's suffix decides: SVG, PNG, PDF, or HTML to zoom into."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl
import plotly.graph_objects as go
from matplotlib.figure import Figure

from railyard.base.errors import UserError
from railyard.base.files import write_named
from railyard.base.paper import picture
from railyard.base.style import STYLE

DRAWN = (".svg", ".png", ".pdf")
FORMATS = (*DRAWN, ".html")
WIDTH_IN = 7.0
_DPI = 150


def check_format(out: Path, formats: Sequence[str] = FORMATS) -> None:
    """Raises UserError if the name has no known suffix."""
    if out.suffix.lower() not in formats:
        raise UserError(f"{out}: a plot's name ends in {', '.join(formats)}; choose one of them")


def write_plot(out: Path, figure: go.Figure) -> None:
    """Writes a plotly figure. Raises UserError."""
    check_format(out)
    form = out.suffix[1:].lower()
    if form == "html":
        write_named(out, figure.to_html(include_plotlyjs=True, full_html=True, div_id="plot"))
    else:
        write_named(out, picture(figure.to_dict(), form, WIDTH_IN))


def write_drawn(out: Path, drawn: Callable[[], Figure]) -> None:
    """Draws a figure with matplotlib and writes it. Raises UserError."""
    check_format(out, DRAWN)
    data = io.BytesIO()
    with mpl.rc_context(STYLE):
        figure = drawn()
        metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(out.suffix.lower(), {})
        figure.savefig(data, format=out.suffix[1:].lower(), dpi=_DPI, metadata=metadata)
    write_named(out, data.getvalue())
