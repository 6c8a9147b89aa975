"""Distributions whose points are plays or requests, each with a link to its run."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from railyard.base.lists import grouped
from railyard.base.style import layout, plain, scheme_styles
from railyard.figures.rows import EFFICIENCY, FIRST_FRAME, REDUNDANCY
from railyard.report.figures import RCT_AXIS
from railyard.report.sections import Drawing, embedded
from railyard.results.records import RESULT_OUTCOMES
from railyard.serve.html import address
from railyard.serve.store import Known

POINTS = 200  # for each scheme, spread over its values
TAIL = 40  # and its largest values, each one
HEIGHT = 380
# A scheme has no figure on a pair where a program failed, as in `differences.sound`.
FAULTY = f"SELECT pair, label FROM runs WHERE NOT void AND outcome NOT IN {RESULT_OUTCOMES}"  # noqa: S608


@dataclass(frozen=True)
class Distribution:
    """The values of the points: a column of a table."""

    title: str
    axis: str
    table: str
    column: str
    complete: str = "true"  # in SQL; if false, the value is a bound and has no point
    known: str = "true"  # in SQL; if false, there is no value
    is_share: bool = False
    is_below: bool = False  # bounds are upper bounds, so what they stand for is below the points


DISTRIBUTIONS = {
    "rct": Distribution("request completion time", "s", "chunks", "rct_s", "completed"),
    "first_frame": Distribution(
        FIRST_FRAME.name_in_definition, "s", "runs", "first_frame_s", "first_frame_s IS NOT NULL"
    ),
    "stalled": Distribution(
        "time stalled", "s", "runs", "coalesce(rebuffer_counted_s, rebuffer_time_s)", "failed IS NOT TRUE"
    ),
    "redundancy": Distribution(
        REDUNDANCY.title, "%", "runs", "redundancy", known="redundancy IS NOT NULL", is_share=True
    ),
    "efficiency": Distribution(
        *(EFFICIENCY.title, "%", "chunks", "efficiency", "completed", "efficiency IS NOT NULL"),
        is_share=True,
        is_below=True,
    ),
}


def where(pairs: Sequence[str], labels: Sequence[str]) -> tuple[str, list[object]]:
    """A condition on runs or chunks, and its parameters."""
    conditions, parameters = ["NOT void"], list[object]()
    for column, values in (("pair", pairs), ("label", labels)):
        if values:
            conditions.append(f"{column} IN ({', '.join('?' * len(values))})")
            parameters += values
    return " AND ".join(conditions), parameters


def _points(known: Known, of: Distribution, condition: str, parameters: Sequence[object]) -> dict[str, list[Any]]:
    """The points of each scheme: value, share of values that are no larger, run, chunk. All of the tail, and some
    others."""
    chunk = "chunk" if of.table == "chunks" else "NULL"
    sql = f"""
    WITH of_these AS (
      SELECT label, run_id, {chunk} AS chunk, {of.column} AS value, {of.complete} AS complete,
             count(*) OVER (PARTITION BY label) AS total
      FROM {of.table} WHERE {condition} AND {of.known} AND (pair, label) NOT IN ({FAULTY})
    ), ordered AS (
      SELECT *, row_number() OVER (PARTITION BY label ORDER BY value, run_id, chunk) AS place,
             count(*) OVER (PARTITION BY label) AS known
      FROM of_these WHERE complete
    )
    SELECT label, value, (place{" + total - known" if of.is_below else ""}) / total, run_id, chunk FROM ordered
    WHERE place = 1 OR place > known - {TAIL} OR place % greatest(1, known // {POINTS}) = 0
    ORDER BY label, place"""  # noqa: S608  all names in it are ours
    return grouped((label, rest) for label, *rest in known.ask(sql, parameters))


def _trace(name: str, label: str, points: list[Any], style: Any, scale: float) -> Mapping[str, Any]:
    links = [
        address("run", name, run_id) + ("" if chunk is None else f"?chunk={chunk}#chunk")
        for _, _, run_id, chunk in points
    ]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": plain(label),
        "x": [scale * value for value, *_ in points],
        "y": [share for _, share, *_ in points],
        "customdata": [[link, run_id] for link, (_, _, run_id, _) in zip(links, points, strict=True)],
        "line": {"color": style.colour, "dash": style.dash, "shape": "hv", "width": 1.8},
        "marker": {"color": style.colour, "symbol": style.symbol, "size": 6},
        "hovertemplate": f"{plain(label)}: %{{y:.1%}} within %{{x:.3f}}<br>%{{customdata[1]}}<extra></extra>",
    }


def distribution(known: Known, name: str, condition: str, parameters: Sequence[object]) -> Drawing | None:
    """The share of requests or plays with at most a value. None: there are none."""
    of = DISTRIBUTIONS[name]
    points = _points(known, of, condition, parameters)
    if not points:
        return None
    labels = list(dict.fromkeys(run.label for run in known.runs()))  # of all schemes, so that each keeps its colour
    styles = scheme_styles(labels)
    scale = 100.0 if of.is_share else 1.0
    shares = {"range": [0, 1.02], "tickformat": ".0%", "title": {"text": f"share of {of.table}"}}
    axis: dict[str, Any] = {"title": {"text": f"{of.title}, {of.axis}"}}
    if name == "rct":
        axis = RCT_AXIS
    made = layout(HEIGHT, margin={"t": 52}, xaxis=axis, yaxis=shares)
    data = [_trace(known.name, label, points[label], styles[label], scale) for label in labels if label in points]
    caption = f"Distribution of the {of.title}, by scheme. A click on a point opens its run."
    return Drawing(1, caption, embedded(json.dumps({"data": data, "layout": made})), HEIGHT, caption)
