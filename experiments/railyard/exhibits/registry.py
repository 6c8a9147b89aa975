"""What there is by name: exhibits with their builders, and kinds of experiment files.

A builder turns a results folder into an exhibit: `build(campaign_dir, spec) -> Exhibit`. A runner carries an experiment
file of its kind out: `run(document, request) -> None`. Both are named as "module:function" and imported when needed, so
that the command line starts fast. Adding an exhibit is one file, one line here and one YAML file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console

from railyard.errors import UserError
from railyard.exhibits.model import Exhibit, Size
from railyard.yamlfile import YamlDocument, near_miss

Builder = Callable[[Path, Any], Exhibit]

EXHIBITS: dict[str, str] = {
    "fig1c": "railyard.exhibits.population_days:fig1c",
    "table1": "railyard.exhibits.population_days:table1",
    "fig10": "railyard.exhibits.population_gate:fig10",
    "table2": "railyard.exhibits.population_gate:table2",
    "fig11": "railyard.exhibits.population_days:fig11",
    "table3": "railyard.exhibits.population_days:table3",
    "fig12": "railyard.exhibits.population_first_frame:fig12",
    "fig1": "railyard.exhibits.fig1:build",
    "fig6": "railyard.exhibits.fig6:build",
    "fig13": "railyard.exhibits.fig13:build",
    "fig14": "railyard.exhibits.fig14:build",
    "fig15": "railyard.exhibits.fig15:build",
    "table4": "railyard.exhibits.table4:build",
    "fig7": "railyard.exhibits.fig7:build",
    "fig8": "railyard.exhibits.fig8:build",
}
KINDS: dict[str, str] = {
    "exhibit": "railyard.exhibits.run:run",
    "population": "railyard.population.cli:run_population_file",
    "population-exhibit": "railyard.population.cli:run_exhibit_file",
}
PLAIN = "experiment"
"""The kind of a file that names none: trace pairs × schemes × seeds, docs/reference/experiments.md."""


@dataclass(frozen=True)
class RunRequest:
    """What the command line asked for, beside the experiment file; None is the file's own."""

    console: Console
    arena: str | None = None
    jobs: int | None = None
    seeds: int | None = None
    out: Path | None = None
    resume: bool = True
    size: Size = "default"
    repeat_budget_s: float | None = None
    qlog: str | None = None


Runner = Callable[[YamlDocument, RunRequest], None]


def _function(reference: str) -> Callable[..., Any]:
    module, _, name = reference.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


def builder(name: str) -> Builder:
    if name not in EXHIBITS:
        raise UserError(f"there is no exhibit '{name}'; {near_miss(name, EXHIBITS)}")
    return _function(EXHIBITS[name])


def runner(document: YamlDocument) -> Runner | None:
    """Who carries out an experiment file: None for the plain kind. Raises UserError for a kind that is not known."""
    kind = document.data.get("kind", PLAIN)
    if kind == PLAIN:
        return None
    if kind not in KINDS:
        raise document.error(("kind",), f"unknown kind '{kind}'; {near_miss(str(kind), [PLAIN, *KINDS])}")
    return _function(KINDS[kind])
