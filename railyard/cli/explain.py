"""`railyard explain`."""

import json
from typing import Annotated

import typer

from railyard.base.forms import Form, FormOption, write
from railyard.base.paths import RESULTS_DIR
from railyard.base.terminal import new_console, print_table
from railyard.cli.options import ResultsOption
from railyard.results.campaigns import find_run
from railyard.results.explain.explanation import explain, parts_table, sentences, shares_table, waterfall


def explain_command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run's folder, or its name in the results.")],
    chunk: Annotated[int | None, typer.Option(min=0, help="The chunk. Default: the one that took longest.")] = None,
    form: FormOption = Form.TABLE,
    results: ResultsOption = RESULTS_DIR,
) -> None:
    """Say why a chunk took as long as it did: which bytes came last, over which path, and what held them up.

    It reads the qlogs of both ends and the link logs. A run in virtual time without qlogs is repeated with them.
    With --format: the parts; as JSON all that is known.
    """
    explanation = explain(find_run(run, results), chunk)
    if form is Form.JSON:
        typer.echo(json.dumps(explanation.as_json(), indent=1))
        return
    if form is not Form.TABLE:
        write(parts_table(explanation, repeat_steps=True), form)
        return
    console = new_console()
    for line in sentences(explanation):
        console.print(line)
    if explanation.parts:
        print_table(console, parts_table(explanation), keys=2)
    print_table(console, shares_table(explanation))
    for line in waterfall(explanation):
        console.print(line)
    if explanation.split.gate:
        console.print(f"Re-injection meanwhile: {'; '.join(explanation.split.gate)}.")
