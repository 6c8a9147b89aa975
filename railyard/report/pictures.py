"""Plotly figures as PNG pictures, drawn by Chromium, for readers that cannot draw plots."""

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import plotly.io
import plotly.offline
from plotly.io.base_renderers import MimetypeRenderer

from railyard.base.errors import UserError
from railyard.report.chromium import BrowserError, started

WIDTH, HEIGHT = 1000, 450
"""Pixels, if a figure has no size."""
SCALE = 1.5  # legible on a display with more pixels, and in print
PAGE = """<!doctype html><meta charset="utf-8">
<script>{plotly}</script>
<script>document.documentElement.dataset.plots = "drawn"</script>
"""


def pictures(figures: Sequence[dict[str, Any]]) -> list[bytes]:
    """A PNG of each figure, given as plotly's JSON. Raises UserError if Chromium is missing or fails."""
    with TemporaryDirectory(prefix="railyard-pictures-") as folder:
        page = Path(folder, "page.html")
        page.write_text(PAGE.format(plotly=plotly.offline.get_plotlyjs()), encoding="utf-8")
        try:
            with started() as browser:
                tab = browser.open(page)
                return [base64.b64decode(tab.evaluate(_drawing(figure)).partition(",")[2]) for figure in figures]
        except BrowserError as error:
            raise UserError(f"Chromium could not draw the plots: {error}.") from None


def _drawing(figure: dict[str, Any]) -> str:
    """JavaScript that draws a figure, as a data URL."""
    layout = figure.get("layout", {})
    size = {"width": layout.get("width", WIDTH), "height": layout.get("height", HEIGHT)}
    shown = {"data": figure.get("data", []), "layout": layout}
    return f"Plotly.toImage({json.dumps(shown)}, {json.dumps({'format': 'png', 'scale': SCALE, **size})})"


class _Picture(MimetypeRenderer):  # type: ignore[misc]  # plotly has no types
    def to_mimebundle(self, figure: dict[str, Any]) -> dict[str, str]:
        try:
            [picture] = pictures([json.loads(plotly.io.to_json(figure, validate=False))])
        except UserError as error:
            return {"text/plain": str(error)}
        return {"image/png": base64.b64encode(picture).decode()}


def also_as_pictures() -> None:
    """Makes plotly figures in a notebook also have a PNG, for pages without scripts. Without Chromium, it is a
    sentence."""
    plotly.io.renderers["railyard"] = _Picture()
    plotly.io.renderers.default = "plotly_mimetype+railyard"
