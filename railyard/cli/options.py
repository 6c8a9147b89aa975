"""What several commands have: options, and the end of one that is interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from railyard.cli.start import INTERRUPTED

ResultsOption = Annotated[Path, typer.Option(metavar="DIR", help="The folder of results.", show_default="results")]
JobsOption = Annotated[int | None, typer.Option(min=1, help="Number of parallel runs. Default: one for each core.")]
JunitOption = Annotated[Path | None, typer.Option(help="Write JUnit XML to FILE.", metavar="FILE")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@contextmanager
def resumable() -> Iterator[None]:
    """Around work that keeps what is complete: says so where the user interrupts it."""
    try:
        yield
    except KeyboardInterrupt:
        from railyard.results.pending import stopped  # noqa: PLC0415  slow to load

        stopped()
        raise typer.Exit(INTERRUPTED) from None
