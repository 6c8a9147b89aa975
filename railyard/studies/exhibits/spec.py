"""`kind: exhibit`: an experiment file that rebuilds one figure or table of the paper.

It has an ordinary experiment and its variations: `parts` (each changes fields of the experiment) and `places` (places
in a trace that a rule finds). Sizes leave out parts or change fields. docs/reference/experiments.md shows an example.
"""

from typing import Any

from pydantic import Field, model_validator

from railyard.base.errors import UserError
from railyard.base.yamlfile import FieldError, YamlDocument, parse
from railyard.experiment.model import Experiment, PairChoice, Strict
from railyard.report.exhibit import Size
from railyard.run.parts import WHOLE, Part, labelled, merged, refuse_twins
from railyard.run.resolve import look_up, resolve
from railyard.run.runspec import RunSpec
from railyard.studies.claims import PaperClaims
from railyard.studies.exhibits.places import PlaceRule, find_places
from railyard.traces.library import list_pairs


class SizeChange(Strict):
    """What another size, or arena, changes: the parts that stay, recorded pairs or not, places a trace, fields."""

    parts: list[str] | None = None
    recorded: bool = True
    places: int | None = Field(default=None, ge=1)
    set: dict[str, Any] = Field(default={})


class ExhibitSpec(PaperClaims):
    kind: str = "exhibit"
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")
    description: str = ""
    # Empty if nothing is run.
    experiment: dict[str, Any] = Field(default={})
    places: PlaceRule | None = None
    parts: list[Part] = Field(default=[Part(key=WHOLE)], min_length=1)
    # Pairs that are added to those of the experiment if the trace library has them.
    recorded: list[str] = Field(default=[])
    # Fields of the experiment that an arena changes; a size goes before it.
    arenas: dict[str, SizeChange] = Field(default={})
    options: dict[str, Any] = Field(default={})
    sizes: dict[Size, SizeChange] = Field(default={})
    # The choice of the command line. Not in files.
    size: Size = "default"
    command: str = ""

    @model_validator(mode="after")
    def _parts_known(self) -> "ExhibitSpec":
        refuse_twins(self.parts)
        keys = [part.key for part in self.parts]
        for change in self.sizes.values():
            for key in change.parts or []:
                if key not in keys:
                    raise FieldError("sizes", f"there is no part '{key}' to keep; known are {', '.join(keys)}.")
        return self

    @property
    def change(self) -> SizeChange:
        return self.sizes.get(self.size, SizeChange())

    @property
    def chosen(self) -> list[Part]:
        """The parts of the chosen size."""
        keep = self.change.parts
        return [part for part in self.parts if keep is None or part.key in keep]

    def part(self, key: str) -> Part:
        return next(part for part in self.parts if part.key == key)

    def data(self, part: Part) -> dict[str, Any]:
        """The experiment of a part, as data of a file."""
        base = {"name": self.name, "qlog": False, "link_logs": False} | self.experiment
        in_arena = self.arenas.get(str(base.get("arena", "")), SizeChange())
        data = merged(merged(merged(base, in_arena.set), self.change.set), part.set)
        if self.recorded and self.change.recorded:
            known = {pair.name for pair in list_pairs()}
            data["pairs"] = [*data.get("pairs", []), *(name for name in self.recorded if name in known)]
        return data


def _inner(document: YamlDocument, data: dict[str, Any]) -> YamlDocument:
    """The experiment's document, so that a mistake in it is reported with its line in the exhibit's file."""
    lines = {place[1:]: line for place, line in document.lines.items() if place[:1] == ("experiment",) and place[1:]}
    return YamlDocument(document.path, data, lines)


def experiments(spec: ExhibitSpec, document: YamlDocument) -> list[tuple[Part, Experiment, YamlDocument]]:
    """The experiment of every part or, with places, of every part, pair and place."""
    parts: list[tuple[Part, Experiment, YamlDocument]] = []
    for part in spec.chosen:
        data = spec.data(part)
        if spec.places is None:
            inner = _inner(document, data)
            parts.append((part, parse(inner, Experiment), inner))
            continue
        for pair_data in data.get("pairs", []):
            for place in _places(spec, document, pair_data):
                there = {**data, "pairs": [pair_data], "start_offset_ms": place.start_offset_ms}
                name = pair_data if isinstance(pair_data, str) else pair_data["first_found"][0]
                key = "+".join([part.key, name, place.key] if len(spec.chosen) > 1 else [name, place.key])
                inner = _inner(document, there)
                values = {**part.values, "begin_ms": place.begin_ms, "end_ms": place.end_ms, "part": part.key}
                parts.append((Part(key=key, values=values, set=part.set), parse(inner, Experiment), inner))
    if not parts:
        raise document.error(("places",), "the rule finds no place in any of the pairs; loosen it.")
    return parts


def _places(spec: ExhibitSpec, document: YamlDocument, pair_data: Any) -> list[Any]:
    if spec.places is None:
        return []
    pair = look_up(PairChoice.model_validate(pair_data), document, ("experiment", "pairs"))
    return find_places(pair, spec.places, spec.change.places)


def all_runs(parts: list[tuple[Part, Experiment, YamlDocument]], *, dry_run: bool) -> list[RunSpec]:
    """All runs of all parts; `dry_run` as for resolve(). Raises UserError if two would have the same folder."""
    runs = [
        run for part, experiment, inner in parts for run in labelled(resolve(experiment, inner, dry_run=dry_run), part)
    ]
    seen: set[str] = set()
    for run in runs:
        if run.run_id in seen:
            raise UserError(
                f"two runs are both called {run.run_id}; give one scheme a 'label', or one part another key."
            )
        seen.add(run.run_id)
    return runs
