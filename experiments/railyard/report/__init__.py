"""The report of a campaign: one self-contained HTML page that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from railyard.records import Run
from railyard.report.page import render
from railyard.report.sections import Context

__all__ = ["write_page", "write_report"]


def write_page(text: str, page: Path) -> Path:
    """Writes a page whole or not at all, and returns its path."""
    partial = page.with_name(f".{page.name}.partial")
    partial.write_text(text, encoding="utf-8")
    return partial.rename(page)


def write_report(campaign: dict[str, Any], runs: Sequence[Run], out: Path) -> Path:
    """Writes `report.html` into the campaign's directory, and returns its path."""
    return write_page(render(Context(campaign, list(runs), folder=out)), out / "report.html")
