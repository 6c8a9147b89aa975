"""The page: sections in order, one style sheet, one script, everything inside the file."""

import base64
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

import plotly.offline
from jinja2 import BaseLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from railyard.report.sections import FILTERS, SECTIONS, Context, Section
from railyard.results.records import Run


@dataclass(frozen=True)
class Assets:
    """The styles and scripts that every page has inside."""

    style: Markup
    script: Markup
    plotly: Markup


def templates_of(loader: BaseLoader) -> Environment:
    made = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(FILTERS)
    return made


@cache
def environment() -> Environment:
    return templates_of(PackageLoader("railyard.report"))


def source(name: str) -> Markup:
    """One of the report's style sheets or scripts."""
    text, _, _ = environment().loader.get_source(environment(), name)  # type: ignore[union-attr]
    return Markup(text)  # noqa: S704  our own file


@cache
def gzipped_plotly() -> bytes:
    """The plotting library. The same library gives the same bytes."""
    return gzip.compress(plotly.offline.get_plotlyjs().encode(), compresslevel=6, mtime=0)


def assets() -> Assets:
    packed = Markup(base64.b64encode(gzipped_plotly()).decode())  # noqa: S704  letters and digits; 2 MB instead of 5
    return Assets(source("style.css"), source("figures.js"), packed)


def bodies(context: Context) -> list[tuple[Section, Markup]]:
    """The sections of a campaign, each with its HTML."""
    sections = [section for make in SECTIONS for section in make(context)]
    return [
        (section, Markup(environment().get_template(section.template).render(context=context, **section.data)))  # noqa: S704
        for section in sections
    ]


def measured(runs: Sequence[Run]) -> datetime:
    """When the last of the runs started."""
    return max(run.started for run in runs)


def render(context: Context) -> str:
    """The whole page of one campaign as HTML text."""
    template = environment().get_template("page.html.j2")
    return template.render(context=context, bodies=bodies(context), assets=assets(), measured=measured(context.runs))
