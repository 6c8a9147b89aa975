"""Values with a unit, such as 8mbps, 500ms and 512KiB, for fields whose name ends with their unit."""

import re
from collections.abc import Container
from decimal import Decimal
from typing import Any

from railyard.base.yamlfile import FieldError

_SECONDS = {"us": "0.000001", "ms": "0.001", "s": "1", "min": "60", "h": "3600"}
# By the end of a field's name: the factors of the units that a value may have.
UNITS: dict[str, dict[str, Decimal]] = {
    "_bps": {
        name: Decimal(10) ** power
        for names, power in (("bps", 0), ("kbps Kbps", 3), ("mbps Mbps", 6), ("gbps Gbps", 9))
        for name in names.split()
    },
    "_ms": {unit: Decimal(worth) * 1000 for unit, worth in _SECONDS.items()},
    "_s": {unit: Decimal(worth) for unit, worth in _SECONDS.items()},
    "_bytes": {"B": Decimal(1)}
    | {f"{letter}B": Decimal(1000) ** power for letter, power in (("k", 1), ("M", 2), ("G", 3))}
    | {f"{letter}iB": Decimal(1024) ** power for letter, power in (("K", 1), ("M", 2), ("G", 3))},
}
_SIZES = {"KiB": 1024, "MB": 10**6, "kB": 1000, "B": 1}
_VALUE = re.compile(r"(?P<number>[0-9]{1,15}(?:\.[0-9]{1,9})?) ?(?P<unit>[A-Za-z]+)")


def suffix_of(field: str) -> str | None:
    """The unit at the end of a field's name: `_bps` of `bitrate_bps`."""
    return next((suffix for suffix in UNITS if field.endswith(suffix) and field != suffix), None)


def bare(field: str) -> str:
    """The name without its unit: `bitrate`."""
    return field.removesuffix(suffix_of(field) or "")


def value_in(field: str, value: Any, written: str | None = None) -> Any:
    """The number, in the field's unit, of a text with a unit. Other values are unchanged. `written`: the name in the
    file. Raises FieldError for a unit of another quantity."""
    suffix, match = suffix_of(field), _VALUE.fullmatch(value) if isinstance(value, str) else None
    if suffix is None or match is None:
        return value
    units = UNITS[suffix]
    if match["unit"] not in units:
        plain = "a number" if written in (None, field) else f"a number as {field}"
        message = f"'{value}' has none of its units, {', '.join(units)}; give one of them, or {plain}."
        raise FieldError(written or field, message)
    number = Decimal(match["number"]) * units[match["unit"]]
    return int(number) if number == int(number) else float(number)


def with_units(data: dict[Any, Any], fields: Container[str] = ()) -> dict[Any, Any]:
    """A mapping with values with units replaced by numbers. A name without its unit stands for the field with it, if
    the value has a unit: `bitrate: 8mbps` is `bitrate_bps: 8000000`. Raises FieldError if it has none."""
    converted: dict[Any, Any] = {}
    for name, value in data.items():
        full_name = name
        suffix = next((suffix for suffix in UNITS if f"{name}{suffix}" in fields), "") if name not in fields else ""
        if suffix and isinstance(value, str) and _VALUE.fullmatch(value):
            full_name = name + suffix
        elif suffix and isinstance(value, str | int | float) and not isinstance(value, bool):
            what = "is no number with a unit" if isinstance(value, str) else "has no unit"
            units = ", ".join(UNITS[suffix])
            raise FieldError(str(name), f"{value!r} {what}; give one of {units}, or name the field {name}{suffix}.")
        if full_name in converted or (full_name != name and full_name in data):
            raise FieldError(str(name), f"'{full_name}' is given as well; leave one of them out.")
        converted[full_name] = value_in(full_name, value, name) if isinstance(full_name, str) else value
    return converted


def size_in_words(count: int) -> str:
    """A number of bytes as a whole number: "512 KiB", "1 MB", "1500 B"."""
    return next(f"{count // worth} {unit}" for unit, worth in _SIZES.items() if count % worth == 0)
