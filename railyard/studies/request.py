"""What `railyard run` asks of a study."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from railyard.report.exhibit import Size


@dataclass(frozen=True)
class RunRequest:
    """What the command line asked for, beside the experiment file; None is the file's own."""

    console: Console
    arena: str | None = None
    jobs: int | None = None
    seeds: int | None = None
    out: Path | None = None
    resume: bool = True
    size: Size = "default"
    repeat_budget_s: float | None = None
    qlog: str | None = None
    dry_run: bool = False
