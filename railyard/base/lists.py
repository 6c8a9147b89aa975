"""Groups values and removes repeated ones, in order of appearance."""

from collections.abc import Hashable, Iterable
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """The values of each key."""
    groups: dict[Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def distinct(values: Iterable[Value]) -> list[Value]:
    """Each value once. They need not be hashable."""
    kept: list[Value] = []
    for value in values:
        if value not in kept:
            kept.append(value)
    return kept
