"""`railyard study`: the studies of studies/."""

from typing import Annotated, Any

import typer
import yaml

from railyard.base.errors import UserError
from railyard.base.paths import IN_CHECKOUT
from railyard.base.yamlfile import value_of
from railyard.cli.options import resumable
from railyard.run.children import interrupted_by_signals
from railyard.run.folders import shown
from railyard.studies.study import SIZE, find_study, studies, write_pages


def _changes(words: list[str]) -> dict[str, Any]:
    changes = {}
    for word in words:
        name, equals, text = word.partition("=")
        try:
            changes[name.replace("-", "_")] = value_of(text)
        except yaml.YAMLError:
            equals = ""
        if not equals:
            raise UserError(f"--set '{word}' is not KEY=VALUE with a value of YAML, as starts=2 or pairs=[subway-1].")
    return changes


def completed(incomplete: str) -> list[str]:
    return [one.name for one in studies() if one.name.startswith(incomplete)]


def study_command(
    name: Annotated[
        str | None,
        typer.Argument(help="A study. Without it, the studies are listed.", autocompletion=completed),
    ] = None,
    size: Annotated[str, typer.Option(help="How much is measured.")] = SIZE,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of study.yaml. May be repeated."),
    ] = None,
    save: Annotated[
        bool, typer.Option("--save", help="Keep the result in studies/, and write it into the pages of docs/results/.")
    ] = False,
    kept: Annotated[bool, typer.Option("--kept", help="Measure nothing; print the result that is kept.")] = False,
) -> None:
    """Carry out a study and print its tables as Markdown."""
    if name is None:
        for one in studies():
            typer.echo(f"{one.name}: {one.declared.title} (sizes: {', '.join(one.declared.sizes)})")
        return
    study = find_study(name)
    if save and (not IN_CHECKOUT or changes or kept):
        raise UserError("--save keeps a size as study.yaml has it, in a checkout: leave out --set and --kept.")
    if kept and changes:
        raise UserError("--kept prints what was measured before; leave out --set.")
    with resumable(), interrupted_by_signals():
        measured = study.kept(size) if kept else study.measure(size, _changes(changes or []))
    for part, text in measured.parts():
        typer.echo(f"## {part}\n\n{text}\n")
    if save:
        measured.write(study.file(size))
        for file in (study.file(size), *write_pages()):
            typer.echo(f"written: {shown(file)}", err=True)
