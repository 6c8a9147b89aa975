"""`railyard report`: pages again from what was recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from railyard.aggregate import write_parquet
from railyard.errors import UserError
from railyard.paths import RESULTS_DIR
from railyard.records import load_campaign
from railyard.report import write_report, write_whole
from railyard.report.chromium import print_pdf
from railyard.report.replay import write_replay, write_replays


def _say(path: Path) -> None:
    """A path as short as it is clear from here, on a line of its own."""
    here, whole = Path.cwd(), path.resolve()
    print(whole.relative_to(here) if whole.is_relative_to(here) else whole)


def _one(directory: Path, replay: bool) -> Path:
    """The page of a campaign's directory, or of a run's."""
    if (directory / "run.json").is_file():
        return write_replay(directory)
    record, runs = load_campaign(directory)
    write_parquet(runs, directory)
    if replay:
        write_replays(directory, runs)
    return write_report(record, runs, directory)


def replay_command(
    directory: Annotated[Path, typer.Argument(metavar="RUN", help="A run's directory, results/NAME/runs/RUN.")],
) -> None:
    """Write a run's own page, replay.html: links, packets, copies, windows and buffer on one time axis."""
    _say(write_replay(directory))


def report_command(
    directory: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]", help="A campaign's or a run's directory; with --all, one that holds campaigns."
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All exhibits and campaigns below DIR on one page. Default: results.")
    ] = False,
    replay: Annotated[
        bool, typer.Option("--replay", help="Write the pages of all of the campaign's runs, too, and link them.")
    ] = False,
    pdf: Annotated[bool, typer.Option("--pdf", help="Print the page as PDF, too; needs Chromium.")] = False,
) -> None:
    """Write the report again: of one campaign, of one run, or with --all of everything that was run."""
    if everything:
        page = write_whole(directory or RESULTS_DIR)
    elif directory is None:
        raise UserError("say which campaign, results/NAME, or --all for everything below results.")
    else:
        page = _one(directory, replay)
    _say(page)
    if pdf:
        printed = page.with_suffix(".pdf")
        print_pdf(page, printed)
        _say(printed)
