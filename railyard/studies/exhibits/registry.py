"""The names of exhibits with their builders, and the kinds of experiment files.

A builder turns a results folder into an exhibit: `build(campaign_dir, spec) -> Exhibit`. A runner carries an experiment
file of its kind out: `run(document, request)`, and returns True if a program failed in a run. Both are named as
"module:function" and imported when needed, so that the command line starts fast. Adding an exhibit is one file, one
line here and one YAML file.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from railyard.base.errors import UserError
from railyard.base.yamlfile import YamlDocument, near_miss
from railyard.report.exhibit import Exhibit
from railyard.studies.request import RunRequest

Builder = Callable[[Path, Any], Exhibit]

EXHIBITS: dict[str, str] = {
    "fig1c": "railyard.studies.exhibits.population_days:fig1c",
    "table1": "railyard.studies.exhibits.population_days:table1",
    "fig10": "railyard.studies.exhibits.population_gate:fig10",
    "table2": "railyard.studies.exhibits.population_gate:table2",
    "fig11": "railyard.studies.exhibits.population_days:fig11",
    "table3": "railyard.studies.exhibits.population_days:table3",
    "fig12": "railyard.studies.exhibits.population_first_frame:fig12",
    "fig1": "railyard.studies.exhibits.fig1:build",
    "fig6": "railyard.studies.exhibits.fig6:build",
    "fig13": "railyard.studies.exhibits.fig13:build",
    "fig14": "railyard.studies.exhibits.fig14:build",
    "fig15": "railyard.studies.exhibits.fig15:build",
    "table4": "railyard.studies.exhibits.table4:build",
    "fig7": "railyard.studies.exhibits.fig7:build",
    "fig8": "railyard.studies.exhibits.fig8:build",
}
KINDS: dict[str, str] = {
    "exhibit": "railyard.studies.exhibits.run:run",
    "population": "railyard.studies.population.run:run_population_file",
    "population-exhibit": "railyard.studies.exhibits.population_run:run_exhibit_file",
}
PLAIN = "experiment"
"""The kind of a file without a kind: trace pairs × schemes × seeds, docs/reference/experiments.md."""


Runner = Callable[[YamlDocument, RunRequest], bool | None]


def _function(reference: str) -> Callable[..., Any]:
    module, _, name = reference.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def builder(name: str) -> Builder:
    """The builder of an exhibit. It refuses a file with a claim that the exhibit does not judge."""
    if name not in EXHIBITS:
        raise UserError(f"there is no exhibit '{name}'; {near_miss(name, EXHIBITS)}")
    build: Builder = _function(EXHIBITS[name])

    def checked(folder: Path, spec: Any) -> Exhibit:
        exhibit = build(folder, spec)
        judged = {claim.id for claim in exhibit.claims}
        for row in (spec[0] if isinstance(spec, tuple) else spec).claims:
            if row.id not in judged:
                known = ", ".join(sorted(judged)) or "none"
                raise UserError(f"{name}: it does not judge the claim '{row.id}' of its file; it judges {known}.")
        return exhibit

    return checked


def runner(document: YamlDocument) -> Runner | None:
    """The runner of an experiment file. None: the plain kind. Raises UserError for an unknown kind."""
    kind = document.data.get("kind", PLAIN)
    if kind == PLAIN:
        return None
    if kind not in KINDS:
        raise document.error(("kind",), f"unknown kind '{kind}'; {near_miss(str(kind), [PLAIN, *KINDS])}")
    return _function(KINDS[kind])
