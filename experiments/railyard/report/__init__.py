"""The report of a campaign: one self-contained HTML page that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from railyard.records import Run
from railyard.report.page import render

__all__ = ["write_report"]


def write_report(campaign: dict[str, Any], runs: Sequence[Run], out: Path) -> Path:
    """Writes `report.html` into the campaign's directory, whole or not at all, and returns its path."""
    partial = out / ".report.html.partial"
    partial.write_text(render(campaign, runs), encoding="utf-8")
    page = out / "report.html"
    partial.rename(page)
    return page
