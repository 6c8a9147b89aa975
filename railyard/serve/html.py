"""The templates of pages, which use macros and styles of the report's templates."""

from functools import cache
from urllib.parse import quote

from jinja2 import ChoiceLoader, Environment, PackageLoader

from railyard.report.page import templates_of


def address(*parts: str) -> str:
    """The path of a page; names in it are quoted. A campaign's name, the second part, may have folders in it."""
    return "/" + "/".join(quote(part, safe="/" if place == 1 else "") for place, part in enumerate(parts))


@cache
def environment() -> Environment:
    made = templates_of(ChoiceLoader([PackageLoader("railyard.serve"), PackageLoader("railyard.report")]))
    made.globals["address"] = address
    return made


def source(name: str) -> str:
    """One of the application's style sheets or scripts."""
    text, _, _ = environment().loader.get_source(environment(), name)  # type: ignore[union-attr]
    return text


def style() -> str:
    return source("style.css") + source("app.css")
