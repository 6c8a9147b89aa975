"""`railyard report`: writes pages again from recorded runs."""

import math
from pathlib import Path
from typing import Annotated

import typer

from railyard.base.errors import UserError
from railyard.base.paths import RESULTS_DIR
from railyard.base.units import value_in
from railyard.base.yamlfile import FieldError
from railyard.report import write_report, write_whole
from railyard.report.chromium import print_pdf
from railyard.report.replay import write_replay, write_replays
from railyard.results.aggregate import with_stored_oracles, write_parquet
from railyard.results.campaigns import find_run_or_campaign
from railyard.results.records import load_campaign

REPLAYED_RUNS = 24


def _say(path: Path) -> None:
    """Prints a path on its own line, relative to the current folder if it is below that."""
    here, full_path = Path.cwd(), path.resolve()
    print(full_path.relative_to(here) if full_path.is_relative_to(here) else full_path)


def _one(directory: Path, replay: bool) -> Path:
    """The page of a campaign's directory, or of a run's."""
    if (directory / "run.json").is_file():
        return write_replay(directory)
    if replay:
        write_replays(directory)
    record, runs = load_campaign(directory)
    runs = with_stored_oracles(runs, directory)
    try:
        write_parquet(runs, directory)
        return write_report(record, runs, directory)
    except OSError as error:
        raise UserError(
            f"{directory}: its report cannot be written there: {error.strerror or error}; "
            "copy the folder to a place where you can write, and name the copy."
        ) from None


def _replay_small_ones(results: Path) -> None:
    """Writes the pages of runs in every folder with few runs, because a page has 2 MB."""
    for folder in {record.parent.parent.parent.resolve() for record in results.glob("*/runs/[!.]*/run.json")}:
        if sum(1 for _ in folder.glob("runs/[!.]*/run.json")) <= REPLAYED_RUNS:
            write_replays(folder)


def _seconds(text: str) -> float:
    """A duration in seconds. Raises UserError."""
    try:
        seconds = float(value_in("time_s", text))
    except (FieldError, ValueError):
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise UserError(f"--within '{text}' is no time; give one such as 5min.")
    return seconds


def report_command(
    directory: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="Folder or name of a campaign or run; with --all, a folder of campaigns."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Put all exhibits and campaigns below DIR on one page. Default: results.")
    ] = False,
    replay: Annotated[
        bool,
        typer.Option(
            "--replay",
            help="Write and link the pages of runs; with --all, of folders with at most 24 runs.",
        ),
    ] = False,
    within: Annotated[
        str | None,
        typer.Option(
            "--within",
            metavar="TIME",
            help="First make all exhibits anew within this time, such as 5min, in results/within-TIME.",
        ),
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="With --within: parallel runs. Default: one a core.")] = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="Also write the page as PDF. Needs Chromium.")] = False,
) -> None:
    """Write the report of a campaign again, or with --all of all campaigns; or the page of a run, replay.html.

    The page of a run has links, packets, copies, windows and buffer on one time axis.
    """
    failed: list[str] = []
    if within is not None:
        if everything or directory is not None or replay:
            raise UserError("--within makes a report of its own; leave out DIR, --all and --replay.")
        from railyard.studies.exhibits.within import exhibits_within  # noqa: PLC0415  slow to import, and only needed here

        budget_s = _seconds(within)
        results = RESULTS_DIR / f"within-{within.replace(' ', '')}"
        results.mkdir(parents=True, exist_ok=True)
        failed = exhibits_within(budget_s, results, jobs, lambda text: print(text, flush=True))
        page = write_whole(results)
    elif everything:
        results = directory or RESULTS_DIR
        if replay:
            _replay_small_ones(results)
        page = write_whole(results)
    elif directory is None:
        raise UserError("say which campaign, results/NAME, or --all for everything below results.")
    else:
        page = _one(find_run_or_campaign(str(directory), RESULTS_DIR), replay)
    _say(page)
    if pdf:
        printed = page.with_suffix(".pdf")
        print_pdf(page, printed)
        _say(printed)
    if failed:
        raise UserError(f"these could not be made, see above: {', '.join(failed)}.")
