"""The page: sections in order, one style sheet, one script, everything inside the file."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import plotly.offline
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from railyard.records import Run
from railyard.report.sections import FILTERS, SECTIONS, Context


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("railyard.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(FILTERS)
    return environment


def render(campaign: dict[str, Any], runs: Sequence[Run]) -> str:
    """The whole page as HTML text."""
    environment = _environment()
    context = Context(campaign, list(runs))
    sections = [section for make in SECTIONS for section in make(context)]
    bodies = [
        (section, Markup(environment.get_template(section.template).render(context=context, **section.data)))  # noqa: S704
        for section in sections
    ]
    style, _, _ = environment.loader.get_source(environment, "style.css")  # type: ignore[union-attr]
    script, _, _ = environment.loader.get_source(environment, "figures.js")  # type: ignore[union-attr]
    return environment.get_template("page.html.j2").render(
        context=context,
        bodies=bodies,
        style=Markup(style),  # noqa: S704  our own file
        script=Markup(script),  # noqa: S704  our own file
        plotly=Markup(plotly.offline.get_plotlyjs()),  # noqa: S704  the library itself
        measured=max(datetime.fromisoformat(run.record["started"]) for run in runs),
    )
