"""The arenas: each is a module in railyard/arenas/, found by its file and loaded by its name.

An experiment knows only their names. `railyard.run.arena` has their properties and how they carry out a run.
"""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from railyard.base.errors import UserError
from railyard.base.paths import PACKAGE
from railyard.base.yamlfile import near_miss

ARENAS = tuple(sorted(module.name for module in iter_modules([str(PACKAGE / "arenas")])))


def no_arena(name: str) -> str:
    return f"unknown arena '{name}'; {near_miss(name, ARENAS)}"


@cache
def load(name: str) -> Any:
    """The arena of a module: its `ARENA`. Raises UserError if there is no such arena."""
    if name not in ARENAS:
        raise UserError(no_arena(name))
    return import_module(f"railyard.arenas.{name}").ARENA


def is_exact(name: object) -> bool:
    """Whether the same run gives the same bytes there, because time is virtual. False for unknown names, as in records
    of other versions."""
    return name in ARENAS and bool(load(str(name)).exact)


def counts_lateness(name: object) -> bool:
    """Whether its emulator can be late and reports how much. True for unknown names."""
    return name not in ARENAS or bool(load(str(name)).counts_lateness)
