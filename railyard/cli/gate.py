"""`railyard gate`, for versions of this project, kernels, and builds of third parties' stacks."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from railyard.base.errors import UserError
from railyard.base.forms import Form, FormOption, write
from railyard.base.terminal import new_console
from railyard.cli.options import JobsOption, JunitOption, resumable
from railyard.gate import history, output
from railyard.gate.history_page import write_page
from railyard.gate.output import Verdict
from railyard.gate.run import run_gate
from railyard.gate.suite import DEFAULT_SUITE, find_suite, load_suite
from railyard.run.arena import arena_of
from railyard.run.folders import shown
from railyard.stress import comment
from railyard.stress.gate import Asked, StackVerdict, run_stack_gate, scenarios_of, two_builds
from railyard.stress.run import KERNEL
from railyard.stress.scenario import all_scenarios, find_scenario

console = new_console()
COMMENT = Path("railyard-gate.md")
STACK_SUITE = "stacks"
_tell = console.print


def gate(
    baseline: Annotated[
        str, typer.Option(help="The git revision to compare with; with --stack a build of it.", metavar="REV|BUILD")
    ] = "HEAD",
    candidate: Annotated[
        Path | None, typer.Option(help="With --stack: the new build, a program or a folder.", metavar="BUILD")
    ] = None,
    stack: Annotated[
        str | None,
        typer.Option(metavar="NAME[,OPTION=VALUE]", help="Compare two builds of a stack of peers/ instead."),
    ] = None,
    scenarios: Annotated[
        str | None, typer.Option(help="With --stack: scenarios of the stress corpus. Default: all.", metavar="NAME,…")
    ] = None,
    baseline_kernel: Annotated[
        Path | None, typer.Option(help="The kernel to compare with, for a suite in the kernel arena.", metavar="FILE")
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            help="A name in experiments/suites/, such as congestion, or a YAML file. "
            "Default: mobility; with --stack: stacks."
        ),
    ] = None,
    junit: JunitOption = None,
    markdown: Annotated[
        Path | None,
        typer.Option(help=f"Write Markdown to FILE. With --stack it is always written: {COMMENT}.", metavar="FILE"),
    ] = None,
    bencher: Annotated[
        Path | None, typer.Option(help="Write the figures in Bencher's metric format to FILE.", metavar="FILE")
    ] = None,
    history_file: Annotated[
        Path | None,
        typer.Option(
            "--history", help="Append a line to FILE (JSON Lines), and write the page beside it.", metavar="FILE"
        ),
    ] = None,
    jobs: JobsOption = None,
    form: FormOption = Form.TABLE,
) -> None:
    """Compare the working tree with a baseline, or two builds of a stack. Exit code 1 if a scheme got worse."""
    if stack is None and (candidate is not None or scenarios is not None):
        raise UserError("--candidate and --scenarios are for two builds of a stack; name it by --stack.")
    if history_file is not None:
        history.check(history_file)
    tell = _tell if form is Form.TABLE else partial(typer.echo, err=True)
    further: dict[str, Any] = {}
    if stack is not None:
        with resumable():
            verdict: Verdict = _stack_gate(
                stack, baseline, candidate, suite or STACK_SUITE, scenarios, markdown or COMMENT, jobs, tell
            )
        further = comment.further(verdict) if isinstance(verdict, StackVerdict) else {}
    else:
        checked, document = load_suite(find_suite(suite or DEFAULT_SUITE))
        arena_of(checked.arena).check()
        count = jobs or arena_of("sim").default_jobs()
        with resumable():
            verdict = run_gate(checked, document, baseline, count, tell, baseline_kernel)
        if markdown is not None:
            output.write(markdown, output.markdown(verdict).encode())
    if junit is not None:
        output.write(junit, output.junit(verdict))
    if bencher is not None:
        output.write(bencher, (json.dumps(history.bencher(verdict), indent=1) + "\n").encode())
    if history_file is not None:
        history.append(history_file, history.line_of(verdict, further))
        tell(f"history: {shown(write_page(history_file))}")
    if form is Form.TABLE:
        output.print_verdict(console, verdict)
    else:
        write(output.verdict_table(verdict), form, lambda: output.records(verdict))
    if verdict.is_regression:
        raise typer.Exit(1)


def _stack_gate(
    words: str,
    baseline: str,
    candidate: Path | None,
    suite_name: str,
    scenarios: str | None,
    comment_file: Path,
    jobs: int | None,
    tell: Callable[[str], None],
) -> StackVerdict:
    """Runs the gate of a stack. Writes the comment whatever happens."""
    name, *assignments = words.split(",")
    builds = Path(baseline), candidate or Path()
    try:
        if candidate is None or baseline == "HEAD":
            raise UserError("--stack compares two builds; name them by --baseline and --candidate.")
        if wrong := [word for word in assignments if "=" not in word]:
            raise UserError(f"--stack {words}: '{wrong[0]}' is not OPTION=VALUE.")
        suite, document = load_suite(find_suite(suite_name))
        if suite.arena != KERNEL:
            raise UserError(f"{document.path}: a stack runs in no simulator; give the suite 'arena: kernel'.")
        options = dict(word.split("=", 1) for word in assignments)
        asked = Asked(name, options, *builds, suite, document, [], jobs)
        named = [find_scenario(one) for one in scenarios.split(",")] if scenarios else all_scenarios()
        files = scenarios_of(named, two_builds(asked)[0])
        arena_of(KERNEL).check()
        verdict = run_stack_gate(replace(asked, scenarios=files), tell)
    except UserError as error:
        output.write(comment_file, comment.could_not(words, *builds, str(error)).encode())
        raise
    output.write(comment_file, comment.comment(verdict).encode())
    tell(f"comment: {shown(comment_file)}")
    return verdict
