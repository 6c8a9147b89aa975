"""Figures of strips above each other on one axis, mostly of time."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
from plotly.subplots import make_subplots


def in_strips(titles: Sequence[str], spacing: float, across: str | None = None, **more: Any) -> go.Figure:
    """A figure with a strip for each title. `spacing`: between two strips, as a share of the height. `across`: the
    common axis's title. `more`: further arguments of make_subplots()."""
    rows = max(1, len(titles))
    figure = make_subplots(rows, 1, shared_xaxes=True, vertical_spacing=spacing, subplot_titles=titles, **more)
    figure.update_annotations(x=0, xanchor="left", font={"size": 12})
    return figure.update_xaxes(title_text=across, row=rows, col=1)


def to_last_edge(rates: npt.NDArray[np.float64]) -> list[float]:
    """The rates of bins for a line of shape "hv" over the bins' edges: the last one once more, at the last edge."""
    return [round(float(rate), 3) for rate in (*rates, *rates[-1:])]
