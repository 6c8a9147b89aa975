"""`railyard serve`."""

from pathlib import Path
from typing import Annotated

import typer

from railyard.base.errors import UserError
from railyard.base.paths import RESULTS_DIR
from railyard.cli.options import ResultsOption
from railyard.run.folders import shown

PORT = 8642


def serve_command(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0: any that is free.")] = PORT,
    results: ResultsOption = RESULTS_DIR,
    export: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write the leaderboard as a static page, and serve nothing.")
    ] = None,
    campaign: Annotated[
        list[str] | None,
        typer.Option(
            help="With --export: a campaign on the leaderboard. Default: the newest complete one of each name."
        ),
    ] = None,
    figure: Annotated[
        str | None, typer.Option(help="With --export: the figure that sorts first.", show_default="rct_p95")
    ] = None,
) -> None:
    """Look at results in a browser: campaigns as they run, distributions, replays, comparisons; start simulator runs.

    The server answers this machine alone. With --export it writes the leaderboard for any web server to serve.
    """
    if results != RESULTS_DIR and not results.is_dir():
        raise UserError(f"{results}: there is no such folder; give one of results, or make it.")
    if export is not None:
        _export(export, results, campaign or [], figure)
        return
    if campaign or figure:
        raise UserError("--campaign and --figure are for --export; the pages themselves have filters.")
    try:
        from railyard.serve.app import serve  # noqa: PLC0415  needs an extra
    except ModuleNotFoundError as error:
        if error.name != "tornado":
            raise
        raise UserError("railyard serve needs Tornado: pip install 'railyard[serve]'.") from None
    serve(results, port, lambda address: typer.echo(f"{address} has {shown(results.resolve())}. Ctrl-C ends it."))


def _export(folder: Path, results: Path, names: list[str], figure: str | None) -> None:
    from railyard.serve import leaderboard  # noqa: PLC0415  not needed to serve
    from railyard.serve.store import Store  # noqa: PLC0415

    first = leaderboard.figure_named(figure or leaderboard.DEFAULT)
    known = leaderboard.chosen(Store(results.resolve()), names)
    boards = [board for one in known if (board := leaderboard.board_of(one, first)) is not None]
    typer.echo(shown(leaderboard.export(boards, folder).resolve()))
