"""Options and the handling of interrupts that several commands share."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from railyard.cli.start import INTERRUPTED

ResultsOption = Annotated[Path, typer.Option(metavar="DIR", help="The folder of results.", show_default="results")]
JobsOption = Annotated[int | None, typer.Option(min=1, help="Number of parallel runs. Default: one for each core.")]
JunitOption = Annotated[Path | None, typer.Option(help="Write JUnit XML to FILE.", metavar="FILE")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def names_in(folder: Path) -> Callable[[str], list[str]]:
    """For `autocompletion`: the names of a folder's YAML files."""

    def complete(incomplete: str) -> list[str]:
        return [file.stem for file in sorted(folder.glob("*.yaml")) if file.stem.startswith(incomplete)]

    return complete


def names_of_pairs(incomplete: str) -> list[str]:
    from railyard.traces import list_pairs  # noqa: PLC0415  slow to load

    return [pair.name for pair in list_pairs() if pair.name.startswith(incomplete)]


@contextmanager
def resumable() -> Iterator[None]:
    """A context for work that may keep completed runs. If the user interrupts it, says whether they are kept."""
    try:
        yield
    except KeyboardInterrupt:
        from railyard.results.pending import stopped  # noqa: PLC0415  slow to load

        stopped()
        raise typer.Exit(INTERRUPTED) from None
