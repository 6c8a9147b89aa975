"""Experiments from the command line: --set changes fields of a file, and --pair takes the place of a file."""

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from railyard.base.errors import UserError
from railyard.base.units import bare
from railyard.base.yamlfile import Location, YamlDocument, document_of
from railyard.experiment.factors import with_factors
from railyard.experiment.model import TRANSPORT_OF_SCHEME
from railyard.experiment.stacks import STACK_SCHEME

ALL = "all"


def of_pairs(pairs: Sequence[str]) -> YamlDocument:
    """The experiment of `railyard run --pair`: the usual schemes in virtual time."""
    name = pairs[0] if len(pairs) == 1 else f"{pairs[0]}-and-{len(pairs) - 1}-more"
    data = {"name": name, "arena": "sim", "pairs": list(pairs), "schemes": ["sp", "vanilla-mp", "xlink"]}
    return YamlDocument(Path("railyard run --pair"), data, {})


def with_options(
    document: YamlDocument, pairs: Sequence[str], schemes: str | None, settings: Sequence[str]
) -> YamlDocument:
    """The file with other pairs and schemes and with `FIELD=VALUE` set, in this order; then with a scheme for each
    combination of its factors."""
    if not pairs and schemes is None and not settings:
        return with_factors(document)
    data = deepcopy(document.data)
    if pairs:
        data["pairs"] = list(pairs)
    if schemes is not None:
        names = [name for name in TRANSPORT_OF_SCHEME if name != STACK_SCHEME]
        data["schemes"] = names if schemes == ALL else [name.strip() for name in schemes.split(",")]
    for setting in settings:
        _set(data, setting)
    path = document.path.with_name(f"{document.path.name} with --set") if settings else document.path
    return with_factors(YamlDocument(path, data, document.lines | _set_lines(document, settings)))


def _set_lines(document: YamlDocument, settings: Sequence[str]) -> dict[Location, int]:
    """The lines for fields that are set and not in the file: that of the nearest part around each."""
    if not document.lines:
        return {}
    fields = [setting.partition("=")[0].split(".") for setting in settings]
    places = [tuple(int(part) if part.isdigit() else part for part in field) for field in fields]
    return {place[:end]: document.line(place[:end]) for place in places for end in range(1, len(place) + 1)}


def _set(data: dict[str, Any], setting: str) -> None:
    """Sets FIELD=VALUE, where FIELD is a name or names with dots between them, and VALUE is YAML."""
    field, equals, text = setting.partition("=")
    *parents, last = field.split(".")
    if not equals or not all(part for part in (*parents, last)):
        raise UserError(f"--set takes FIELD=VALUE, for instance player.bitrate=8mbps, not '{setting}'.")
    value = document_of(Path(f"--set {field}"), f"value: {text}\n").data.get("value")
    place: Any = data
    for part in parents:
        place = _within(place, part, setting)
    if isinstance(place, dict):
        for other in [name for name in place if bare(str(name)) == bare(last)]:
            del place[other]  # the same field, with or without its unit
        place[last] = value
        return
    place[_index(place, last, setting)] = value


def _within(place: Any, part: str, setting: str) -> Any:
    if isinstance(place, dict):
        inner = place.setdefault(part, {})
        if inner is None:
            inner = place[part] = {}
    else:
        inner = place[_index(place, part, setting)]
    if not isinstance(inner, dict | list):
        raise UserError(f"--set {setting}: '{part}' is the value {inner!r}, which has no fields.")
    return inner


def _index(place: list[Any], part: str, setting: str) -> int:
    if not part.isdecimal() or int(part) >= len(place):
        raise UserError(f"--set {setting}: '{part}' is no place in a list of {len(place)}; count from 0.")
    return int(part)
