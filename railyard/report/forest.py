"""The forest plot of a comparison, as a file."""

import html
from collections.abc import Sequence
from pathlib import Path

from railyard.base.errors import UserError
from railyard.base.files import write_named
from railyard.base.paper import FORMATS, inches, write_figure
from railyard.report.figures import FOREST_CAPTION, forest
from railyard.results import differences
from railyard.results.differences import Difference

HTML = ".html"
WIDTH = "6in"
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>Differences</title>
<figure style="margin:0;font:15px system-ui,sans-serif">{plot}<figcaption>{caption}</figcaption></figure></html>
"""
UNDECIDED = "No difference is established."


def check_plot(out: Path, width: str | None) -> None:
    """Checks the name's format and the width before the work. Raises UserError."""
    if out.suffix not in (HTML, *(f".{form}" for form in FORMATS)):
        raise UserError(f"{out}: the name of a plot ends in {HTML}, .{', .'.join(FORMATS)}; choose one of them.")
    if width is None:
        return
    if out.suffix == HTML:
        raise UserError(f"{out}: a page is as wide as its window; leave out --width.")
    inches(width)


def write_forest(compared: Sequence[Difference], out: Path, width: str | None) -> None:
    """Writes the plot; HTML also has the sentences about established differences. Raises UserError."""
    drawn = forest(compared)
    if out.suffix != HTML:
        write_figure(drawn.to_dict(), out, inches(width or WIDTH))
        return
    caption = html.escape(" ".join([FOREST_CAPTION, *(differences.sentences(compared) or [UNDECIDED])]))
    plot = drawn.to_html(full_html=False, include_plotlyjs=True, div_id="forest")
    write_named(out, _PAGE.format(plot=plot, caption=caption))
