"""`railyard stress`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from railyard.base.errors import UserError
from railyard.base.terminal import new_console
from railyard.cli.options import JobsOption, JunitOption, names_in, resumable
from railyard.gate.output import write
from railyard.results.pending import Place
from railyard.run.folders import OUT_HELP
from railyard.stress import output, page
from railyard.stress.run import KERNEL, SCHEMES, SIM, everything, run_stress, subject
from railyard.stress.scenario import STRESS_DIR, all_scenarios, find_scenario

ARENAS = (SIM, KERNEL)


def stress_command(
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCENARIO",
            help="Names in experiments/stress/, or YAML files. Default: all.",
            autocompletion=names_in(STRESS_DIR),
        ),
    ] = None,
    scheme: Annotated[
        list[str] | None, typer.Option(metavar="NAME[,OPTION=VALUE]", help="A scheme. May be repeated.")
    ] = None,
    stack: Annotated[
        list[str] | None, typer.Option(metavar="NAME[,OPTION=VALUE]", help="A stack of peers/. May be repeated.")
    ] = None,
    all_of_them: Annotated[bool, typer.Option("--all", help="Every scheme, and every stack that is built.")] = False,
    arena: Annotated[
        str | None, typer.Option(help="sim or kernel. Default: sim for schemes of QUIC, kernel for all others.")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write JSON to FILE.", metavar="FILE")] = None,
    junit: JunitOption = None,
    markdown: Annotated[Path | None, typer.Option(help="Write Markdown to FILE.", metavar="FILE")] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write a page to FILE, and the pages of the runs that fail.", metavar="FILE")
    ] = None,
    jobs: JobsOption = None,
    out: Annotated[Path | None, typer.Option(help=OUT_HELP)] = None,
) -> None:
    """Run the multipath stress corpus. Exit code 1 if a scenario fails.

    Example: railyard stress 01 03 --scheme xlink+ --stack noq
    """
    if arena not in (None, *ARENAS):
        raise UserError(f"--arena is {' or '.join(ARENAS)}, not '{arena}'.")
    if all_of_them and (scheme or stack or arena):
        raise UserError("--all takes every scheme and stack; leave out --scheme, --stack and --arena.")
    files = [find_scenario(name) for name in scenarios or []] or all_scenarios()
    console = new_console()
    tell = console.print
    if all_of_them:
        subjects = everything(tell)
    else:
        named = [] if stack else list(SCHEMES)
        subjects = [subject("scheme", label, arena) for label in scheme or named]
        subjects += [subject("stack", label, arena) for label in stack or []]
    with resumable():
        matrix = run_stress(files, subjects, Place(out, tell=tell), jobs, tell)
    if json_file is not None:
        write(json_file, (json.dumps(output.as_json(matrix), indent=1) + "\n").encode())
    if junit is not None:
        write(junit, output.junit(matrix))
    if markdown is not None:
        write(markdown, output.markdown(matrix).encode())
    if html is not None:
        write(html, page.render(matrix, html.resolve()).encode())
    output.print_matrix(console, matrix)
    if matrix.failures():
        raise typer.Exit(1)
