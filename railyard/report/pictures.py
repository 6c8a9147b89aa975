"""Plotly figures in notebooks as PNG pictures too, for readers that cannot draw plots."""

import base64
import json
from typing import Any

import plotly.io
from plotly.io.base_renderers import MimetypeRenderer

from railyard.base.paper import picture

WIDTH_IN = 7.0


class _Picture(MimetypeRenderer):  # type: ignore[misc]  # plotly has no types
    def to_mimebundle(self, figure: dict[str, Any]) -> dict[str, str]:
        plain = json.loads(plotly.io.to_json(figure, validate=False))
        return {"image/png": base64.b64encode(picture(plain, "png", WIDTH_IN)).decode()}


def also_as_pictures() -> None:
    """Makes plotly figures in a notebook also have a PNG, for pages without scripts."""
    plotly.io.renderers["railyard"] = _Picture()
    plotly.io.renderers.default = "plotly_mimetype+railyard"
