"""Response plots: a figure over the values of a scheme's parameter that varies in the campaign."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from railyard.base.style import COLOURWAY, layout
from railyard.figures.rows import RCT_MEDIAN, RCT_P95, REBUFFER_RATE
from railyard.results import differences
from railyard.results.records import Run

FIGURES = (RCT_MEDIAN, RCT_P95, REBUFFER_RATE)
STRIP_PX = 150
_DASHES = ("solid", "dash", "dot", "longdash", "dashdot", "longdashdot")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star")


@dataclass(frozen=True)
class Response:
    """A factor, and the runs of each of its values. A curve has the runs in which everything else is the same."""

    factor: str
    curves: dict[str, dict[str, list[Run]]]


def _settings(run: Run) -> dict[str, str]:
    return {**run.config.get("parameters", {}), "cc": str(run.config.get("congestion", ""))}


def responses(runs: Sequence[Run]) -> list[Response]:
    """The parameters of which a scheme was played with two values or more, with all others equal."""
    played = differences.sound(runs)
    names = dict.fromkeys(name for run in played for name in _settings(run))
    rows = []
    for name in names:
        curves: dict[str, dict[str, list[Run]]] = {}
        for run in played:
            own = _settings(run)
            others = [f"{key}={value}" for key, value in own.items() if key != name]
            if name in own:
                shared = [str(run.config["scheme"]), str(run.config["primary"]), *sorted(others)]
                curves.setdefault(",".join(shared), {}).setdefault(own[name], []).append(run)
        curves = {key: levels for key, levels in curves.items() if len(levels) > 1}
        if curves:
            rows.append(Response(name, curves))
    return rows


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _names(response: Response) -> dict[str, str]:
    """A name for each curve: the parts in which the curves differ, and the scheme."""
    parts = {key: key.split(",") for key in response.curves}
    common = set.intersection(*(set(of) for of in parts.values()))
    return {key: ", ".join([of[0], *(part for part in of[1:] if part not in common)]) for key, of in parts.items()}


def draw(response: Response) -> go.Figure:
    """A strip for each figure, with 95 % intervals for these traces if there are enough plays."""
    figure = make_subplots(rows=len(FIGURES), cols=1, shared_xaxes=True, vertical_spacing=0.06)
    names = _names(response)
    numeric = all(_is_number(level) for levels in response.curves.values() for level in levels)
    for number, (key, levels) in enumerate(response.curves.items()):
        order = sorted(levels, key=float) if numeric else list(levels)
        at: list[Any] = [float(level) if numeric else level for level in order]
        colour, dash = COLOURWAY[number % len(COLOURWAY)], _DASHES[number % len(_DASHES)]
        for row, of in enumerate(FIGURES, start=1):
            scale = 100.0 if of.unit == "%" else 1.0
            points = [of.point(levels[level]) for level in order]
            ends = [differences.level_of(levels[level], of) for level in order]
            known = [end if end is not None and end.known and math.isfinite(end.high) else None for end in ends]
            values = [None if point is None else scale * point.value for point in points]
            both = list(zip(values, known, strict=True))
            bars = {
                "type": "data",
                "array": [scale * end.high - value if end and value is not None else 0 for value, end in both],
                "arrayminus": [value - scale * end.low if end and value is not None else 0 for value, end in both],
            }
            figure.add_scatter(
                x=at,
                y=values,
                name=names[key],
                mode="lines+markers",
                line={"color": colour, "dash": dash, "width": 1.8},
                marker={"symbol": _SYMBOLS[number % len(_SYMBOLS)], "size": 8, "color": colour},
                error_y=bars,
                showlegend=row == 1,
                legendgroup=key,
                hovertemplate=f"{names[key]}, {response.factor}=%{{x}}: %{{y:.3f}} {of.unit}<extra></extra>",
                row=row,
                col=1,
            )
    for row, of in enumerate(FIGURES, start=1):
        figure.update_yaxes(title_text=f"{of.title}, {of.unit}", rangemode="tozero", row=row, col=1)
    figure.update_xaxes(title_text=response.factor, row=len(FIGURES), col=1)
    figure.update_layout(**layout(90 + STRIP_PX * len(FIGURES), margin={"t": 40}, showlegend=True))
    return figure


def response_figures(runs: Sequence[Run]) -> Iterator[tuple[str, go.Figure, str]]:
    """Name, figure and caption of each factor's plot."""
    for response in responses(runs):
        titles = ", ".join(of.title for of in FIGURES)
        caption = (
            f"Response to {response.factor}: {titles}, over all pairs and plays. Bars: 95 % intervals, where there "
        )
        yield f"response-{response.factor}", draw(response), caption + "are plays enough. No bar: too few."
