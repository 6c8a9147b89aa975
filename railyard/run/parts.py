"""The parts that an exhibit or a suite varies: each changes fields of the experiment and is named in labels."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from railyard.base.yamlfile import FieldError
from railyard.experiment.model import Strict
from railyard.run.runspec import RunSpec

AT = "--"
"""Separates a scheme's label and the part's key: `xlink--ratio-4`."""
WHOLE = "all"
"""The key of the only part if nothing is varied. Labels do not have it."""


class Part(Strict):
    """One point of what is varied: its key, what it stands for, and the fields of the experiment that it changes."""

    key: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$")
    values: dict[str, float | str] = Field(default={})
    set: dict[str, Any] = Field(default={})


def refuse_twins(parts: Sequence[Part]) -> None:
    """Raises FieldError if two parts have the same key."""
    if len({part.key for part in parts}) != len(parts):
        raise FieldError("parts", "two parts have the same key; every part needs its own.")


def merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the members of `change`. Mappings are merged; lists and values are replaced."""
    result = dict(base)
    for key, value in change.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result


def label_of(scheme: str, key: str) -> str:
    return scheme if key == WHOLE else f"{scheme}{AT}{key}"


def labelled(specs: list[RunSpec], part: Part) -> list[RunSpec]:
    """The runs with the part in their labels, so that one campaign can have all parts."""
    return [spec.model_copy(update={"label": label_of(spec.label, part.key)}) for spec in specs]
