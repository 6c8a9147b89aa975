"""`railyard figures`: the figures of a report as files for a paper."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from railyard.base.errors import UserError
from railyard.base.paper import FORMATS, inches, write_figure
from railyard.base.paths import RESULTS_DIR
from railyard.base.yamlfile import near_miss
from railyard.cli.options import ResultsOption
from railyard.report.exhibit import FILE, load_exhibit
from railyard.report.response import response_figures
from railyard.report.sections import Context, pair_figures
from railyard.results.campaigns import find_run_or_campaign
from railyard.results.records import load_campaign
from railyard.run.folders import shown


@dataclass(frozen=True)
class _NamedFigure:
    pair: str  # empty for an exhibit's plot
    name: str
    figure: Any
    caption: str

    @property
    def stem(self) -> str:
        name = f"{self.pair}-{self.name}" if self.pair else self.name
        return re.sub(r"[^A-Za-z0-9_.=+-]+", "_", name).lstrip(".") or "figure"


def _of_campaign(folder: Path) -> Iterator[_NamedFigure]:
    context = Context(*load_campaign(folder), folder=folder)
    for pair, row in context.cells.items():
        for one in pair_figures(context, pair, row):
            yield _NamedFigure(pair, one.name, one.figure.to_dict(), one.caption)
    for name, figure, caption in response_figures(context.runs):
        yield _NamedFigure("", name, figure.to_dict(), caption)


def _of_exhibit(folder: Path) -> Iterator[_NamedFigure]:
    for plot in load_exhibit(folder).plots:
        yield _NamedFigure("", plot.id, plot.figure, plot.title)


def figures_command(
    name: Annotated[str, typer.Argument(metavar="CAMPAIGN", help="A folder, or a name that is in the results.")],
    form: Annotated[str, typer.Option("--format", help=f"Format of the files: {', '.join(FORMATS)}.")] = "pdf",
    width: Annotated[str, typer.Option(metavar="LENGTH", help="Width of a figure, in in, cm, mm or pt.")] = "3.3in",
    only: Annotated[
        list[str] | None, typer.Option(metavar="FIGURE", help="Only this figure, for instance cdf; repeatable.")
    ] = None,
    pair: Annotated[
        list[str] | None, typer.Option(metavar="PAIR", help="Only of this pair of traces; repeatable.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the files. Default: figures/ in the campaign's.")
    ] = None,
    results: ResultsOption = RESULTS_DIR,
) -> None:
    """Write the figures of a campaign's report, or of an exhibit, as files for a paper, one figure a file.

    They are legible in a grey print. The captions are printed. Tables: `railyard compare NAME --format latex`.
    """
    if form not in FORMATS:
        raise UserError(f"unknown format '{form}'; {near_miss(form, FORMATS)}")
    width_in = inches(width)
    folder = find_run_or_campaign(name, results)
    figures = list(_of_exhibit(folder) if (folder / FILE).is_file() else _of_campaign(folder))
    for asked, known in ((only or [], {one.name for one in figures}), (pair or [], {one.pair for one in figures})):
        for word in asked:
            if word not in known:
                raise UserError(f"{folder}: there is no '{word}' among its figures; {near_miss(word, known)}")
    into = out or folder / "figures"
    if out is None and not into.resolve().is_relative_to(folder.resolve()):
        raise UserError(f"{into}: this is a link out of the results' folder; name the folder to write to with --out.")
    for one in figures:
        if (only is None or one.name in only) and (pair is None or one.pair in pair):
            file = into / f"{one.stem}.{form}"
            write_figure(one.figure, file, width_in)
            typer.echo(f"{shown(file)}: {one.caption}")
