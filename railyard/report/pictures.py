"""Plotly figures in notebooks as PNG pictures too, for readers that cannot draw plots."""

import base64
import json
from typing import Any

import plotly.io
from plotly.io.base_renderers import MimetypeRenderer

from railyard.base.errors import UserError
from railyard.base.paper import picture

WIDTH_IN = 7.0


class _Picture(MimetypeRenderer):  # type: ignore[misc]  # plotly has no types
    def to_mimebundle(self, figure: dict[str, Any]) -> dict[str, str]:
        plain = json.loads(plotly.io.to_json(figure, validate=False))
        try:
            return {"image/png": base64.b64encode(picture(plain, "png", WIDTH_IN)).decode()}
        except (UserError, LookupError, TypeError, ValueError) as error:  # plots of users may have what papers lack
            return {"text/plain": f"This plot is interactive only: {error}"}


def also_as_pictures() -> None:
    """Makes plotly figures in a notebook also have a PNG, for pages without scripts. A sentence, where `picture` cannot
    draw one."""
    plotly.io.renderers["railyard"] = _Picture()
    plotly.io.renderers.default = "plotly_mimetype+railyard"
