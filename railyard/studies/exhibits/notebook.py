"""The contents of notebooks/study.py: an exhibit or a study, loaded or made.

It shows `exhibit.json` or a study's tables and computes nothing itself, so that notebook, report and command line
cannot disagree.
"""

import base64
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from railyard.base.errors import UserError
from railyard.base.page import cell, table_lines
from railyard.base.paper import picture
from railyard.base.paths import EXPERIMENTS_DIR, NOTEBOOKS_DIR, RESULTS_DIR
from railyard.base.words import counted
from railyard.base.yamlfile import load_yaml, near_miss
from railyard.report.exhibit import FILE, Claim, Exhibit, Plot, Table, load_exhibit
from railyard.report.pictures import WIDTH_IN
from railyard.studies.exhibits.registry import EXHIBITS
from railyard.studies.study import SIZE, Study, studies

SEEN = NOTEBOOKS_DIR / "exhibits.md"
"""A section for each exhibit."""
PLOTLY_TYPE = "application/vnd.plotly.v1+json"
RESULTS_VARIABLE = "RAILYARD_RESULTS"
"""The folder of results for notebooks. Not set: `results/` of the project."""
SIZE_VARIABLE = "RAILYARD_SIZE"
"""The size to run if there is no exhibit yet. Not set: small."""
ARENA_VARIABLE = "RAILYARD_ARENA"
"""The arena of such a run. Not set: the experiment's own. An exhibit that runs nothing has none."""


def get(name: str) -> Exhibit:
    """The exhibit from the results or, if it does not exist, made at the small size."""
    folder = Path(os.environ.get(RESULTS_VARIABLE, RESULTS_DIR)).resolve() / name
    if not (folder / FILE).is_file():
        command = [sys.executable, "-m", "railyard", "run", name]
        command += ["--size", os.environ.get(SIZE_VARIABLE, "small")]
        if ARENA_VARIABLE in os.environ and not _only_reads(name):
            command += ["--arena", os.environ[ARENA_VARIABLE]]
        environment = os.environ | {RESULTS_VARIABLE: str(folder.parent)}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode != 0:
            raise UserError(done.stderr.strip().removeprefix("railyard: ") or f"{name} ended with {done.returncode}")
    return load_exhibit(folder)


def _only_reads(name: str) -> bool:
    """Whether an exhibit only draws traces, so that it has no arena."""
    known = load_yaml(EXPERIMENTS_DIR / f"{name}.yaml").data
    return known["kind"] == "exhibit" and "experiment" not in known


@dataclass(frozen=True)
class Page:
    """The contents of a notebook. Each field is the last line of a cell; None shows nothing."""

    heading: Any
    tables: Any
    provenance: Any
    to_be_seen: Any = None
    against_the_paper: Any = None
    claims: Any = None
    plots: Sequence[Plot] = ()

    def show(self) -> None:
        """Draws every plot with its description."""
        for plot in self.plots:
            _display(_markdown(f"**{plot.title}.** {plot.alt}"))
            _display(_Plot(plot))


def open_page(name: str) -> Page:
    """The page of an exhibit or of a study. Raises UserError."""
    if name in EXHIBITS:
        return _of_exhibit(get(name))
    known = {study.name: study for study in studies()}
    if name not in known:
        raise UserError(f"there is no exhibit or study '{name}'; {near_miss(name, [*EXHIBITS, *known])}")
    return _of_study(known[name])


def _of_study(study: Study) -> Page:
    size = SIZE if study.file(SIZE).is_file() else "small"
    measured = study.kept(SIZE) if size == SIZE else study.measure(size, {})
    settings = "\n".join(f"- {name}: {value}" for name, value in measured.settings)
    made = "kept in studies/" if size == SIZE else "measured just now"
    return Page(
        heading=_markdown(f"# {study.declared.title}\n\n{settings}"),
        tables=_markdown("\n\n".join(text for _, text in measured.parts())),
        provenance=_markdown(f"Size {size}, {made}, by {measured.by}."),
    )


def _of_exhibit(exhibit: Exhibit) -> Page:
    modelled = " **Modelled, not measured.**" if exhibit.modelled else ""
    settings = "\n".join(f"- {name}: {value}" for name, value in exhibit.settings.items())
    sections = SEEN.read_text(encoding="utf-8").split("\n## ")
    seen = next((part for part in sections if part.startswith(f"{exhibit.name}\n")), "\n").partition("\n")[2]
    paper = ([cell(text) for text in (row.what, row.theirs, row.ours, row.source)] for row in exhibit.paper)
    return Page(
        heading=_markdown(
            f"# {exhibit.title}\n*{exhibit.paper_ref}*\n\n{exhibit.summary}{modelled}\n\n{settings}\n\n"
            f"Size {exhibit.size}, arena {exhibit.arena}. Made by `{exhibit.command}`."
        ),
        tables=_markdown("\n\n".join(map(_table, exhibit.tables))),
        provenance=_markdown(_origin(exhibit)),
        to_be_seen=_markdown(f"## What is to be seen\n{seen}"),
        against_the_paper=_markdown("\n".join(table_lines(["what", "paper", "here", "source"], *paper))),
        claims=_markdown("\n\n".join(map(_claim, exhibit.claims)) or NO_CLAIMS),
        plots=exhibit.plots,
    )


NO_CLAIMS = "The paper claims nothing here that could be checked."


def _table(table: Table) -> str:
    return f"**{table.title}**\n\n{table.markdown}\n\n{table.note}"


def _claim(claim: Claim) -> str:
    return (
        f"**{claim.id}: {claim.verdict}.** {claim.claim} Paper: {claim.theirs}. Here: {claim.ours}. "
        f"Because: {claim.because}." + (f" Rule: {claim.rule}." if claim.rule else "")
    )


def _origin(exhibit: Exhibit) -> str:
    origin, fidelity = exhibit.provenance, exhibit.fidelity
    judged = "exact (virtual time, or nothing was run)"
    if not fidelity.exact:
        worst = "–" if fidelity.worst_p99_us is None else f"{fidelity.worst_p99_us / 1000:.2f} ms"
        judged = f"{counted(fidelity.runs, 'run')}, {fidelity.void} of them void, worst p99 lateness {worst}"
    return (
        f"Intervals: {exhibit.confidence}. Fidelity: {judged}. Revision {origin.git.get('revision')}, "
        f"{len(origin.traces)} traces, seeds {origin.seeds}, made {origin.created}."
    )


@dataclass(frozen=True)
class _Plot:
    """A plot in several forms, of which a reader shows the richest one that it supports."""

    plot: Plot

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        forms = {
            PLOTLY_TYPE: self.plot.figure,
            "image/png": base64.b64encode(picture(self.plot.figure, "png", WIDTH_IN)).decode(),
            "text/plain": self.plot.alt,
        }
        return forms, {"image/png": {"alt": self.plot.alt}}


def _markdown(text: str) -> Any:
    from IPython.display import Markdown  # noqa: PLC0415  only notebooks need IPython

    return Markdown(text)


def _display(what: Any) -> None:
    from IPython.display import display  # noqa: PLC0415  only notebooks need IPython

    display(what)
