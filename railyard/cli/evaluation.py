"""`railyard evaluation`: the evaluation over recorded pairs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from railyard.base import plotfile
from railyard.cli.main import INTERRUPTED
from railyard.results.pending import stopped
from railyard.results.records import Run
from railyard.run.arena import arena_of
from railyard.studies import recorded


def _tell(sentence: str) -> None:
    """Beside the tables, which are the output."""
    typer.echo(sentence, err=True)


def evaluation(
    experiment: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this experiment, a name or a YAML file. May be repeated."),
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Starts of each pair, instead of the experiment's.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Directory of the campaigns' folders.")] = None,
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
    try:
        first: list[Run] = []
        for number, name in enumerate(experiment or recorded.SETTINGS):
            runs = carried_out(name)
            first = first or runs
            print(f"\n### {name}\n")
            if any(run.pair.endswith(recorded.RESTORED) for run in runs):
                recorded.print_forms(runs)
                continue
            recorded.evaluate(runs)
            if plot is not None and number == 0:
                plotfile.write_drawn(plot, partial(recorded.drawn, runs))
        if not experiment:
            print(f"\n### {recorded.BUFFER}")
            by_buffer = {ms: carried_out(recorded.BUFFER, buffer_ms=ms) for ms in recorded.BUFFERS_MS}
            recorded.print_claims(recorded.with_light(by_buffer, first))
    except KeyboardInterrupt:
        stopped()
        raise typer.Exit(INTERRUPTED) from None
