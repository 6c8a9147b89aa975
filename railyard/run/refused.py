"""Finds values that the programs refuse before a run starts, and names their file and line.

The models of YAML files check the form of a value. The programs check the rest, such as limits within a grammar and
combinations of settings, when they get the jobs.
"""

import re
from collections.abc import Sequence

from railyard.base.yamlfile import Location, YamlDocument, load_yaml
from railyard.experiment.arenas import load
from railyard.experiment.model import Experiment
from railyard.run.runspec import RunSpec
from railyard.traces.index import INDEX_FILE
from railyard.traces.library import find_pair

PAIRS: Location = ("pairs",)

_SENTENCE = re.compile(
    r"((?P<list>paths|bottlenecks|link_events)\[(?P<index>[0-9]+)\]\.|(?P<player>player)(\.|: ))?"
    r"((?P<name>[a-z][a-z0-9_]*)(?P<takes> takes |: ))?(?P<words>.*)"
)
"""The simulator's sentence about a job: "paths[0].loss takes …", "player.fps takes …", "cc takes …" …"""


def refuse(experiment: Experiment, document: YamlDocument, specs: Sequence[RunSpec]) -> None:
    """Raises UserError with the programs' sentence about the first run that they refuse. One run of each pair and label
    is checked, because the others differ only in seed and offset."""
    kinds = list({(spec.pair, spec.label): spec for spec in specs}.values())
    for spec, sentence in zip(kinds, load("sim").refusals(kinds), strict=False):
        if sentence and (part := _SENTENCE.fullmatch(sentence)):
            location = document.known(_location(experiment, document, spec, part))
            source = document
            if part["list"] == "paths" and location == PAIRS:
                source, location = _of_pair(spec, int(part["index"]), _names(part)) or (document, location)
            takes = "this takes " if part["takes"] == " takes " else ""
            where = f"path {spec.paths[int(part['index'])].name}, {part['name']}: " if part["list"] == "paths" else ""
            raise source.error(location, f"{takes or where}{part['words']}; correct it.")


def _location(experiment: Experiment, document: YamlDocument, spec: RunSpec, part: re.Match[str]) -> Location:
    """The field that the sentence is about, or the nearest part around it that the file has."""
    name, index = part["name"] or "", int(part["index"] or 0)
    match part["list"] or part["player"]:
        case "paths":
            return _of_path(document, spec.paths[index].name, _names(part))
        case "bottlenecks":
            within: Location = ("bottlenecks", spec.bottlenecks[index].name)
            names = [*_names(part), f"{name}_rate", "rate"] if part["takes"] == ": " else [name]
            return next(((*within, each) for each in names if (*within, each) in document.lines), within)
        case "link_events":
            return ("link_events", index, name)
        case "player":
            return ("player", name)
    return (name,) if name in type(experiment).model_fields else ("schemes", _entry(experiment, spec), name)


def _names(part: re.Match[str]) -> list[str]:
    """The fields that a sentence may be about. It names a queue only by its direction."""
    name = part["name"] or ""
    return [f"{name}_queue", "queue"] if part["words"].startswith("queue ") else [name]


def _of_path(document: YamlDocument, path: str, names: list[str]) -> Location:
    """The field of a path: in `links` of the path, of cellular paths or of all, then `queue`; else `pairs`."""
    groups: list[Location] = [("links", group) for group in (path, "cellular", "all")]
    places: list[Location] = [(*group, name) for group in groups for name in names]
    places += [("queue",)] if "queue" in names else []
    return next((place for place in [*places, *groups] if place in document.lines), PAIRS)


def _of_pair(spec: RunSpec, index: int, names: list[str]) -> tuple[YamlDocument, Location] | None:
    """The field in the index of the library that the pair is from, or the nearest part around it; None: the library
    has no YAML index."""
    library = find_pair(spec.pair).library
    if library.name != INDEX_FILE:
        return None
    document = load_yaml(library)
    pairs = [pair["name"] for pair in document.data["pairs"]]
    number = pairs.index(spec.pair)
    paths = [path["name"] for path in document.data["pairs"][number]["paths"]]
    path: Location = ("pairs", number, "paths", paths.index(spec.paths[index].name))
    places = [*((*path, "link", name) for name in names), (*path, "queue" if "queue" in names else "link"), path]
    return next((document, place) for place in places if place in document.lines)


def _entry(experiment: Experiment, spec: RunSpec) -> int:
    """The index of the run's scheme in the list, by its label, which may end with the name of a path."""
    labels = [entry.base_label() for entry in experiment.schemes]
    return next((at for at, label in enumerate(labels) if f"{spec.label}:".startswith(f"{label}:")), 0)
