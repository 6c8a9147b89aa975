"""`railyard archive`, and `railyard repeat` of an archive."""

from pathlib import Path
from typing import Annotated

import typer

from railyard.base.paths import RESULTS_DIR
from railyard.base.terminal import agreed, new_console
from railyard.base.words import counted
from railyard.cli.options import ResultsOption
from railyard.results.archive import opened, repeat_all, write_archive
from railyard.results.campaigns import find_run_or_campaign
from railyard.results.listing import size_words
from railyard.run.arena import arena_of
from railyard.run.folders import shown

console = new_console()


def archive_command(
    name: Annotated[str, typer.Argument(metavar="CAMPAIGN", help="A folder, or a name that is in the results.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The archive. Default: the campaign's name with .zip, here.")
    ] = None,
    with_traces: Annotated[
        bool, typer.Option("--traces/--no-traces", help="Include the traces, or leave them out: not all may be shared.")
    ] = True,
    results: ResultsOption = RESULTS_DIR,
) -> None:
    """Write a campaign as one file: data, settings, traces, hashes, commands, environment. It has no TLS keys.

    `railyard repeat FILE` checks it: it plays every run again and compares the outputs byte by byte.
    """
    folder = find_run_or_campaign(name, results)
    file = out or Path(f"{folder.resolve().name}.zip")
    written = write_archive(folder, file, with_traces=with_traces)
    left_out = f"; {counted(written.keys, 'file')} with TLS keys left out" if written.keys else ""
    files = counted(written.files, "file")
    console.print(f"{shown(file)}: {files}, {size_words(written.bytes)}{left_out}.")
    if written.too_large:
        console.print("`railyard repeat` refuses it: it has too many files or bytes.")
    for pair, licence in written.licences.items():
        console.print(f"traces of {pair}: licence {licence}.")
    for trace in written.traces_missing:
        console.print(f"not included: {trace} is not here as it was replayed.")


def repeat_archive(file: Path, program: Path | None, stack: Path | None, *, yes: bool) -> bool:
    """Repeats an archive. Returns whether all runs that can be repeated have the same bytes."""
    with opened(file, program_file=program, stack=stack) as archive:
        for change in archive.changes:
            console.print(f"it may differ: {change}")
        count = counted(len(archive.runs), "run")
        console.print(f"{file}: sound. {count} to repeat, with the programs of this installation.")
        refusal = "nothing is run without a terminal to ask on; --yes runs it without asking."
        if archive.runs and not agreed("Run this?", yes, refusal):
            return True
        outcome = repeat_all(archive, arena_of("sim").default_jobs())
    for run, reason in outcome.not_repeated.items():
        console.print(f"{run}: not repeated: {reason}.")
    for run, names in outcome.different.items():
        console.print(f"{run}: not the same: {', '.join(names[:4])}.")
    same = f"{len(outcome.same)} of {counted(len(archive.runs), 'run')}, {counted(outcome.files, 'file')}"
    console.print(f"same bytes: {same}")
    return not outcome.different
