"""Factors: a list in place of one value of a scheme's parameter. The scheme is played once with each value."""

from itertools import product
from typing import Any

from railyard.base.yamlfile import Location, YamlDocument
from railyard.experiment.model import SCHEME_SETTINGS

FACTORS = (*SCHEME_SETTINGS, "cc")
MOST_ENTRIES = 200


def _values(name: str, value: Any) -> list[Any] | None:
    """The values of a factor. None: it is one value. `thresholds: [95, 80]` is one value, a list of such pairs is a
    factor."""
    if name == "thresholds":
        return value if isinstance(value, list) and any(isinstance(one, list) for one in value) else None
    return value if name in FACTORS and isinstance(value, list) else None


def _entries(entry: Any) -> list[Any]:
    """A scheme's entries, one for each combination of the values of its factors."""
    if not isinstance(entry, dict):
        return [entry]
    factors = {name: values for name, value in entry.items() if (values := _values(name, value)) is not None}
    entries = []
    for chosen in product(*factors.values()):
        change = dict(zip(factors, chosen, strict=True))
        one = entry | change
        if factors and entry.get("label"):
            one["label"] = ",".join(
                [str(entry["label"]), *(f"{name}={_word(value)}" for name, value in change.items())]
            )
        entries.append(one)
    return entries


def _word(value: Any) -> str:
    return "-".join(map(str, value)) if isinstance(value, list) else str(value)


def with_factors(document: YamlDocument) -> YamlDocument:
    """The file with an entry for each combination of factors. Errors still name its line. Raises UserError."""
    schemes = document.data.get("schemes")
    if not isinstance(schemes, list):
        return document
    expanded: list[Any] = []
    origins: list[int] = []
    for number, entry in enumerate(schemes):
        for name, value in entry.items() if isinstance(entry, dict) else ():
            values = _values(str(name), value)
            if values is not None and len({repr(one) for one in values}) < max(1, len(values)):
                raise document.error(("schemes", number, str(name)), "a factor has each value once, and at least one.")
        made = _entries(entry)
        expanded += made
        origins += [number] * len(made)
        if len(expanded) > MOST_ENTRIES:
            raise document.error(("schemes", number), f"its factors make more than {MOST_ENTRIES} schemes; take fewer.")
    if len(expanded) == len(schemes):
        return document
    lines = {where: line for where, line in document.lines.items() if where[:1] != ("schemes",) or len(where) == 1}
    for number, origin in enumerate(origins):
        own: dict[Location, int] = {
            ("schemes", number, *where[2:]): line
            for where, line in document.lines.items()
            if where[:2] == ("schemes", origin)
        }
        lines |= own
    return YamlDocument(document.path, document.data | {"schemes": expanded}, lines)
