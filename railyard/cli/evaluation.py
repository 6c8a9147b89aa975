"""`railyard evaluation`: the evaluation over recorded pairs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Annotated

import typer

from railyard.base import page, plotfile
from railyard.base.provenance import version_words
from railyard.cli.main import INTERRUPTED
from railyard.results.pending import stopped
from railyard.results.records import Run
from railyard.run.arena import arena_of
from railyard.studies import recorded


def _tell(sentence: str) -> None:
    """Beside the tables, which are the output."""
    typer.echo(sentence, err=True)


def _tables(printed: Callable[[], None]) -> str:
    """What that prints, and of which program it is."""
    text = StringIO()
    with redirect_stdout(text):
        print(f"Runs of {version_words()}.\n")
        printed()
    return text.getvalue().strip()


def evaluation(
    experiment: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this experiment, a name or a YAML file. May be repeated."),
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Starts of each pair, instead of the experiment's.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Directory of the campaigns' folders.")] = None,
    page_file: Annotated[
        Path | None,
        typer.Option("--page", help="Write each experiment's tables between its markers in FILE.", metavar="FILE"),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the first experiment's pairs: .svg, .png, .pdf.")] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Number of parallel runs. Default: one for each core.")
    ] = None,
) -> None:
    """Run the evaluation over recorded pairs, in two settings and with four player buffers; print its tables."""
    if plot is not None:
        plotfile.check_format(plot, plotfile.DRAWN)
    carried_out = partial(
        recorded.campaign, out=out, seeds=seeds, jobs=jobs or arena_of("sim").default_jobs(), tell=_tell
    )
    names = [Path(name).stem for name in experiment or (*recorded.SETTINGS, recorded.BUFFER)]
    if page_file is not None:
        for name in names:
            page.check(page_file, name)

    def show(name: str, printed: Callable[[], None]) -> None:
        tables = _tables(printed)
        if page_file is not None:
            page.fill(page_file, name, tables)
        print(f"\n### {name}\n\n{tables}")

    try:
        first: list[Run] = []
        for name, called in zip(experiment or recorded.SETTINGS, names, strict=False):
            runs = carried_out(name)
            first = first or runs
            restored = any(run.pair.endswith(recorded.RESTORED) for run in runs)
            show(called, partial(recorded.print_forms if restored else recorded.evaluate, runs))
            if plot is not None and called == names[0] and not restored:
                plotfile.write_drawn(plot, partial(recorded.drawn, runs))
        if not experiment:
            by_buffer = {ms: carried_out(recorded.BUFFER, buffer_ms=ms) for ms in recorded.BUFFERS_MS}
            show(recorded.BUFFER, partial(recorded.print_claims, recorded.with_light(by_buffer, first)))
    except KeyboardInterrupt:
        stopped()
        raise typer.Exit(INTERRUPTED) from None
