"""The stress corpus as a kept result: the columns of `railyard stress`, with one size for each campaign."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field

from railyard.base.errors import UserError
from railyard.base.lists import grouped
from railyard.base.page import markdown_of
from railyard.base.provenance import version_words
from railyard.experiment.model import Strict
from railyard.results.pending import Place
from railyard.stress import output
from railyard.stress.run import Matrix, Subject, replay, run_stress, subject
from railyard.stress.scenario import all_scenarios, find_scenario
from railyard.studies.study import Data, find_study, markdown, tell

Column = Annotated[str, Field(pattern=r"^(scheme|stack) \S+$")]
HEADS = ["scenario", "stack", "what fails", "command"]


class Settings(Strict):
    columns: list[Column]
    kept: list[str] = Field(default=[])  # sizes measured before, whose columns come first
    only: list[str] = Field(default=[])  # scenarios; empty: all
    without: list[str] = Field(default=[])
    jobs: int | None = Field(default=None, ge=1)
    out: Path | None = None


class Fail(Data):
    scenario: str
    what: str
    command: str


class SubjectResults(Data):
    """A column of the matrix."""

    name: str
    arena: str
    version: str
    by: str  # the version of Railyard that ran it
    score: str
    cells: dict[str, str]  # by scenario, as the matrix shows them
    fails: list[Fail]
    unknown: list[str]  # why scenarios do not apply


class Measured(Data):
    columns: list[SubjectResults]


def measure(settings: Settings) -> Measured:
    before = [
        SubjectResults.model_validate(one.model_dump())  # because a study that is loaded again has its own classes
        for size in settings.kept
        for one in find_study("stress").kept(size).data.columns
    ]
    subjects = [subject(kind, label) for kind, label in (column.split() for column in settings.columns)]
    left_out = [find_scenario(name) for name in settings.without]
    files = [find_scenario(name) for name in settings.only] or all_scenarios()
    if not subjects and not before:
        raise UserError("there are no columns; name some with --set columns=[...] or --set kept=[...].")
    if not subjects:
        return Measured(columns=before)
    files = [file for file in files if file not in left_out]
    if not files:
        raise UserError("no scenario is left; name fewer in --set without=[...].")
    matrix = run_stress(files, subjects, Place(settings.out, tell=tell), settings.jobs, tell)
    return Measured(columns=[*before, *(_of(matrix, one) for one in subjects)])


def _of(matrix: Matrix, of: Subject) -> SubjectResults:
    cells = {one.name: matrix.cells[one.name, of.label] for one in matrix.scenarios}
    alone = Matrix(matrix.scenarios, [of], {(name, of.label): cell for name, cell in cells.items()})
    return SubjectResults(
        name=of.label,
        arena=of.arena,
        version=of.version,
        by=version_words(),
        score=output.score_words(matrix, of),
        cells={name: output.marked(cell) for name, cell in cells.items()},
        fails=[
            Fail(scenario=scenario.name, what=output.why(cell), command=replay(scenario, of))
            for scenario, _, cell in alone.failures()
        ],
        unknown=list(output.unknown_words(alone)),
    )


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    columns = measured.columns
    scenarios = dict.fromkeys(name for of in columns for name in of.cells)
    rows = [[name, *(of.cells.get(name, "") for of in columns)] for name in scenarios]
    rows.append(["arena", *(of.arena for of in columns)])
    rows.append(["score", *(of.score for of in columns)])
    yield "matrix", markdown(["scenario", *(f"`{of.name}`" for of in columns)], rows, left=1 + len(columns))
    unknown = grouped((sentence.removesuffix(f" ({of.name})."), of.name) for of in columns for sentence in of.unknown)
    ran = grouped(((of.version, of.by), f"`{of.name}`") for of in columns)
    yield (
        "versions",
        markdown(
            ["columns", "version", "ran by"],
            [[", ".join(names), *version_and_runner] for version_and_runner, names in ran.items()],
            left=3,
        ),
    )
    if unknown:
        sentences = (f"- {reason} ({', '.join(names)})." for reason, names in unknown.items())
        yield "unknown", markdown_of(["\n".join(sentences)])
    fails = [[one.scenario, f"`{of.name}`", one.what, f"`{one.command}`"] for of in columns for one in of.fails]
    yield "fails", markdown(HEADS, sorted(fails), left=len(HEADS)) if fails else "No scenario fails."
