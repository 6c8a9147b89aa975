"""Values that the programs refuse, found before a run starts and named by file and line.

The models of YAML files know the form of a value. The programs know the rest, such as the limits within a grammar and
what goes with what, and say so of the jobs themselves.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from railyard.base.yamlfile import Location, YamlDocument
from railyard.experiment.arenas import load
from railyard.experiment.model import Experiment
from railyard.run.runspec import RunSpec

_SENTENCE = re.compile(
    r"((?P<list>paths|bottlenecks|link_events)\[(?P<index>[0-9]+)\]\.|(?P<player>player)(\.|: ))?"
    r"((?P<name>[a-z][a-z0-9_]*)(?P<takes> takes |: ))?(?P<words>.*)"
)
"""What the simulator says of a job: "paths[0].loss takes …", "player.fps takes …", "cc takes …" …"""


def refuse(experiment: Experiment, document: YamlDocument, specs: Sequence[RunSpec]) -> None:
    """Raises UserError with what the programs say of the first run that they would refuse. Runs of a pair and a label
    differ in their seeds and offsets alone."""
    kinds = list({(spec.pair, spec.label): spec for spec in specs}.values())
    for spec, sentence in zip(kinds, load("sim").refusals(kinds), strict=False):
        if sentence and (part := _SENTENCE.fullmatch(sentence)):
            location = document.known(_location(experiment, document, spec, part))
            takes = "this takes " if part["takes"] == " takes " else ""
            where = f"path {spec.paths[int(part['index'])].name}, {part['name']}: " if part["list"] == "paths" else ""
            raise document.error(location, f"{takes or where}{part['words']}; correct it.")


def _location(experiment: Experiment, document: YamlDocument, spec: RunSpec, part: re.Match[str]) -> Location:
    """The field that the sentence is about, or the nearest part around it that the file has."""
    name, index = part["name"] or "", int(part["index"] or 0)
    of_queue = [f"{name}_queue", "queue"] if part["words"].startswith("queue ") else []
    match part["list"] or part["player"]:
        case "paths":
            return _of_path(document, spec.paths[index].name, of_queue or [name])
        case "bottlenecks":
            within: Location = ("bottlenecks", spec.bottlenecks[index].name)
            names = [*of_queue, f"{name}_rate", "rate"] if part["takes"] == ": " else [name]
            return next(((*within, each) for each in names if (*within, each) in document.lines), within)
        case "link_events":
            return ("link_events", index, name)
        case "player":
            return ("player", name)
    return (name,) if name in type(experiment).model_fields else ("schemes", _entry(experiment, spec), name)


def _of_path(document: YamlDocument, path: str, names: list[str]) -> Location:
    """In `links`, of the path before that of all; else what the pair itself says."""
    groups: list[Location] = [("links", group) for group in (path, "cellular", "all")]
    places: list[Location] = [(*group, name) for group in groups for name in names]
    places += [("queue",)] if "queue" in names else []
    return next((place for place in [*places, *groups] if place in document.lines), ("pairs",))


def _entry(experiment: Experiment, spec: RunSpec) -> int:
    """The scheme's place in the list, by its label, which the name of a path may follow."""
    labels = [entry.base_label() for entry in experiment.schemes]
    return next((at for at, label in enumerate(labels) if f"{spec.label}:".startswith(f"{label}:")), 0)
