"""`railyard repeat`."""

from pathlib import Path
from typing import Annotated

import typer

from railyard.base.errors import UserError
from railyard.base.paths import RESULTS_DIR
from railyard.base.terminal import agreed, new_console
from railyard.cli.archive import repeat_archive
from railyard.cli.options import ResultsOption, YesOption
from railyard.results.campaigns import find_run
from railyard.results.records import load_run
from railyard.results.show import print_run
from railyard.run.arena import arena_of
from railyard.run.repeat import changes, repeat, spec_of

console = new_console()


def repeat_command(
    run: Annotated[
        str,
        typer.Argument(metavar="RUN|ARCHIVE", help="A run's folder, its name in the results, or a campaign's archive."),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="New folder for the repetition.", show_default="again")
    ] = None,
    qlog: Annotated[bool, typer.Option("--qlog", help="Write qlogs, even if the run had none.")] = False,
    program: Annotated[
        Path | None,
        typer.Option(metavar="FILE", exists=True, dir_okay=False, help="Arena sim: the xlink-sim to run."),
    ] = None,
    stack: Annotated[
        Path | None,
        typer.Option(metavar="FILE", exists=True, dir_okay=False, help="The peer.yaml of the stack."),
    ] = None,
    yes: YesOption = False,
    results: ResultsOption = RESULTS_DIR,
) -> None:
    """Repeat a recorded run with its settings, traces and seed, and show it; or check every run of an archive.

    The programs are those of this installation. Their commands are printed first, and run when you agree. The outputs
    of an archive (`railyard archive`) are compared byte by byte; exit code 1 if a run differs.
    """
    if Path(run).is_file():
        if out is not None or qlog:
            raise UserError("the runs of an archive are compared and not kept; leave out --out and --qlog.")
        if not repeat_archive(Path(run), program, stack, yes=yes):
            raise typer.Exit(1)
        return
    out = out or Path("again")
    folder = find_run(run, results)
    record = load_run(folder).record
    arena_of(record["config"]["arena"]).check()
    spec = spec_of(folder, record, program_file=program, stack=stack)
    spec = spec.model_copy(update={"qlog": spec.qlog or qlog})
    for change in changes(record, spec):
        console.print(f"it may differ: {change}")
    console.print("This runs, in network namespaces where the arena has them:")
    for line in arena_of(spec.arena).planned(spec, out.resolve()):
        console.print(f"  {line}")
    if not agreed("Run this?", yes, "nothing is run without a terminal to ask on; --yes runs it without asking."):
        return
    repeat(spec, out.resolve())
    print_run(new_console(), out)
