"""Reports: of one campaign, and of all exhibits and campaigns. One self-contained HTML page that needs no network.
The modules that draw them take long to load, so they are loaded when a page is written."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from railyard.base import files
from railyard.results.records import Run

if TYPE_CHECKING:
    from railyard.report.sections import Context

__all__ = ["write_page_of", "write_report", "write_whole"]


def write_report(campaign: dict[str, Any], runs: Sequence[Run], out: Path) -> Path:
    """Writes `report.html` into the campaign's directory, and returns its path."""
    from railyard.report.sections import Context  # noqa: PLC0415

    return write_page_of(Context(campaign, list(runs), folder=out), out)


def write_page_of(context: "Context", out: Path) -> Path:
    """Writes the report of a context, which has its comparisons already, and returns its path."""
    from railyard.report import page  # noqa: PLC0415

    return files.write_whole(out / "report.html", page.render(context))


def write_whole(results: Path) -> Path:
    """Writes `report.html` over everything below a results directory, and returns its path."""
    from railyard.report import whole  # noqa: PLC0415

    return files.write_whole(results / "report.html", whole.render(whole.gather(results)))
