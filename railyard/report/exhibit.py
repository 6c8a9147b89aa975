"""`exhibit.json`: one figure or table of the paper as it came out here, ready to be shown.

An exhibit is plain data: tables, plotly figures, the paper's values beside ours, and claims with verdicts that code
computed from the figures. Report, notebooks and documentation need nothing else to draw it.
"""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from railyard.base import page
from railyard.base.errors import UserError
from railyard.base.files import read_regular, write_whole
from railyard.base.models import StrictModel
from railyard.results.tables import Value, aligned
from railyard.stats.verdict import Verdict

SCHEMA = 1
FILE = "exhibit.json"
# All figures and tables of the evaluation, in the order in which the paper shows them.
ORDER = (
    *("fig1", "fig1c", "table1", "fig6", "fig7", "fig8", "fig10", "table2", "fig11", "table3", "fig12"),
    *("fig13", "fig14", "fig15", "table4"),
)

INTERVAL = "95 % interval"
"""The name of a column with the interval of the figure in the column before."""

Size = Literal["small", "brief", "default", "full"]
SIZES: tuple[Size, ...] = ("small", "brief", "default", "full")
"""`brief` is what decides most claims in the least time; of a population it is what a report's time allows."""


class Column(StrictModel):
    name: str
    unit: str = ""


class Table(StrictModel):
    title: str
    columns: list[Column] = Field(min_length=1)
    rows: list[list[Value]]
    note: str = ""

    @field_validator("rows")
    @classmethod
    def _finite(cls, rows: list[list[Value]]) -> list[list[Value]]:
        for row in rows:
            for cell in row:
                if isinstance(cell, float) and not math.isfinite(cell):
                    raise ValueError(f"{cell} cannot be shown; a missing value is None.")
        return rows

    @model_validator(mode="after")
    def _rectangular(self) -> "Table":
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row of {self.title!r} has {len(row)} cells for {len(self.columns)} columns.")
        return self

    @property
    def markdown(self) -> str:
        """The heads and rows, with each interval in the cell of its figure."""
        shown = [(place, column) for place, column in enumerate(self.columns) if column.name != INTERVAL]
        heads = [page.cell(f"{column.name}{f' ({column.unit})' if column.unit else ''}") for _, column in shown]
        align = ["l" if any(isinstance(row[place], str) for row in self.rows) else "r" for place, _ in shown]
        return page.Table(heads=heads, align="".join(align), rows=[*self._merged()]).markdown

    def _merged(self) -> Iterator[list[str]]:
        for values, row in zip(self.rows, aligned(self.rows), strict=True):
            cells: list[str] = []
            for column, value, said in zip(self.columns, values, row, strict=True):
                if column.name != INTERVAL:
                    cells.append(page.cell(said))
                elif value is not None:
                    cells[-1] += f" [{said}]"
            yield cells


class Plot(StrictModel):
    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    title: str
    figure: dict[str, Any]
    """A plotly figure: data and layout."""
    alt: str
    """One sentence that a screen reader can say instead."""


class PaperValue(StrictModel):
    what: str
    theirs: str
    ours: str
    source: str


class Wants(StrictModel):
    """How many independent units, such as viewers, decide a claim with probability 80 % if the figure is as it is
    here. Not `sure`: fewer units do not carry an interval, and this number may not decide the claim."""

    units: int
    sure: bool


class Claim(StrictModel):
    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    claim: str
    theirs: str
    ours: str
    verdict: Verdict
    because: str
    rule: str = ""
    """What the figures must be for "holds" and for "partly". Where intervals lie on both sides it is not decided."""
    needs: str = ""
    """How many runs would decide a claim that is not decided."""
    wants: Wants | None = None
    """The same as a number, also where it is decided: from it sizes are planned."""


class Fidelity(StrictModel):
    """Exact (virtual time, or no run at all), or how true the emulator was on the wall clock."""

    exact: bool = False
    runs: int = 0
    void: int = 0
    worst_p99_us: float | None = None


class Provenance(StrictModel):
    git: dict[str, Any]
    kernel: str
    programs_sha256: dict[str, str] = Field(default={})
    traces: dict[str, str] = Field(default={})
    """SHA-256 by name of the trace file."""
    seeds: list[int] = Field(default=[])
    created: str
    """ISO 8601, UTC."""
    wall_s: float = 0.0
    """Time that the runs took, summed up; side by side they took less."""


class Exhibit(StrictModel):
    schema_: Literal[1] = Field(default=1, alias="schema")
    name: str
    title: str
    paper_ref: str
    summary: str
    command: str
    arena: str
    size: Size
    modelled: bool = False
    settings: dict[str, str] = Field(default={})
    tables: list[Table] = Field(default=[])
    plots: list[Plot] = Field(default=[])
    paper: list[PaperValue] = Field(default=[])
    claims: list[Claim] = Field(default=[])
    confidence: str = ""
    fidelity: Fidelity = Fidelity(exact=True)
    provenance: Provenance

    model_config = ConfigDict(populate_by_name=True)

    def write(self, folder: Path) -> Path:
        """Writes `folder/exhibit.json` completely or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.model_dump(mode="json", by_alias=True), indent=1, allow_nan=False)
        return write_whole(folder / FILE, f"{text}\n")


def load_exhibit(folder: Path) -> Exhibit:
    """The exhibit of a results folder. Raises UserError if there is none or it cannot be read."""
    file = folder / FILE
    try:
        return Exhibit.model_validate_json(read_regular(file))
    except FileNotFoundError:
        raise UserError(f"{file}: there is no such exhibit; `railyard run {folder.name}` makes it.") from None
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UserError(f"{file}: cannot be read: it is not UTF-8 text.") from None
    except ValidationError as error:
        mistake = error.errors()[0]
        where = ".".join(map(str, mistake["loc"]))
        raise UserError(
            f"{file}: this is no exhibit of schema {SCHEMA} ({where}: {mistake['msg']}); "
            f"make it again with `railyard run {folder.name}`."
        ) from None


def newest_exhibits(results: Path) -> tuple[list[tuple[Exhibit, Path]], list[str]]:
    """The newest exhibit of each name and arena below a results directory, with its folder, in the order of the paper,
    then others. And a sentence for each folder that is left out."""
    newest: dict[tuple[str, str], tuple[Exhibit, Path]] = {}
    left_out: list[str] = []
    seen: set[Path] = set()
    # Links first: a reader knows a folder by its link's name.
    for file in sorted(results.glob(f"*/{FILE}"), key=lambda file: (not file.parent.is_symlink(), file)):
        if file.parent.resolve() in seen:
            continue
        seen.add(file.parent.resolve())
        try:
            loaded = (load_exhibit(file.parent), file.parent)
        except UserError as error:
            left_out.append(str(error))
            continue
        which = (loaded[0].name, loaded[0].arena)
        other = newest.setdefault(which, loaded)
        if other is not loaded:
            older, newer = sorted((other, loaded), key=lambda one: one[0].provenance.created)
            newest[which] = newer
            left_out.append(f"{older[1].name}: {newer[1].name} is newer, and the same exhibit.")
    place = {name: number for number, name in enumerate(ORDER)}
    ordered = sorted(newest.values(), key=lambda one: (place.get(one[0].name, len(place)), one[1].name))
    return ordered, left_out
