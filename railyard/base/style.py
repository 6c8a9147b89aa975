"""Colours and line styles: Okabe and Ito's palette, which stays apart under every common colour blindness.

A scheme has the same colour and dash in every figure; the dash keeps curves apart in a grey print.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
COLOURWAY = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)  # where a figure names no colours
STALL_COLOUR = VERMILION
INK, GRID = "#222222", "#E4E4E4"


@dataclass(frozen=True)
class LineStyle:
    colour: str
    dash: str
    symbol: str


_KNOWN = {
    "sp": LineStyle(BLACK, "solid", "circle"),
    "tcp": LineStyle(SKY, "dash", "circle-open"),
    "cm": LineStyle(ORANGE, "dashdot", "square"),
    "mptcp": LineStyle(GREEN, "dash", "diamond"),
    "vanilla-mp": LineStyle(PURPLE, "longdash", "triangle-up"),
    "vanilla-mp-2021": LineStyle(PURPLE, "dot", "triangle-up-open"),
    "xlink": LineStyle(BLUE, "solid", "star"),
    "xlink-lean": LineStyle(BLUE, "dash", "star-open"),
    "xlink+": LineStyle(VERMILION, "solid", "star-diamond"),
}
_SINGLE_PATH_ELSEWHERE = LineStyle("#777777", "dot", "circle-open")
_FURTHER = [LineStyle(c, d, "x") for d in ("dot", "dashdot") for c in (VERMILION, SKY, GREEN, PURPLE, ORANGE, BLUE)]

# Paths are no schemes: their own colours, and a pattern that survives a grey print.
PATH_COLOURS = (SKY, VERMILION, YELLOW, GREEN)
PATH_PATTERNS = ("", "/", ".", "x")


def scheme_styles(labels: list[str]) -> dict[str, LineStyle]:
    """A style for each label; variants of a scheme, with parameters of their own, get further colours in order."""
    further = iter(_FURTHER * (1 + len(labels) // len(_FURTHER)))
    styles: dict[str, LineStyle] = {}
    for label in labels:
        if label in _KNOWN:
            styles[label] = _KNOWN[label]
        elif label.startswith("sp:") and _SINGLE_PATH_ELSEWHERE not in styles.values():
            styles[label] = _SINGLE_PATH_ELSEWHERE
        else:
            styles[label] = next(further)
    return styles


def layout(height: int, **more: Any) -> dict[str, Any]:
    """What all figures share."""
    axis = {
        "gridcolor": GRID,
        "linecolor": INK,
        "ticks": "outside",
        "ticklen": 4,
        "zeroline": False,
        "automargin": True,
    }
    return {
        "height": height,
        "font": {
            "family": "system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif",
            "size": 12,
            "color": INK,
        },
        "colorway": list(COLOURWAY),
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "margin": {"l": 56, "r": 12, "t": 12, "b": 44},
        "xaxis": axis,
        "yaxis": axis,
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
        "hovermode": "closest",
    } | more
