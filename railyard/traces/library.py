"""The trace library: the project's own pairs, then those of the directories of RAILYARD_TRACE_PATH."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from railyard.base.errors import UserError
from railyard.base.paths import TRACES_DIR
from railyard.base.words import listed
from railyard.traces.index import INDEX_FILE, Pair, read_index
from railyard.traces.recorded import CSV_FILE, read_recorded
from railyard.traces.trace import TraceError

SEARCH_PATH_VARIABLE = "RAILYARD_TRACE_PATH"
PROJECT_LIBRARY = TRACES_DIR
SLIP = 0.8
"""Names as alike as this differ by a slip of the keyboard; those that are less alike are other recordings."""
CONTROLLED = "lab"
"""The project library's folder with links of constant rates, for experiments that vary one thing: a library, too."""


def _entries_of_variable() -> list[Path]:
    return [Path(entry).absolute() for entry in os.environ.get(SEARCH_PATH_VARIABLE, "").split(":") if entry]


def search_path() -> list[Path]:
    """The directories that are searched, in order: the project's libraries, then the variable's, colon separated."""
    return [PROJECT_LIBRARY, PROJECT_LIBRARY / CONTROLLED, *_entries_of_variable()]


def _useless_entries() -> str:
    """A sentence about the variable's entries that are no library; empty where all are."""
    found: list[str] = []
    for directory in _entries_of_variable():
        if not directory.is_dir():
            found.append(f"{directory} {'is a file' if directory.exists() else 'is not there'}")
        elif not any(file.is_file() for file in (directory / INDEX_FILE, *_recordings(directory))):
            found.append(f"{directory} has no {INDEX_FILE}")
    return f" Of {SEARCH_PATH_VARIABLE}, {listed(found)}." if found else ""


def _recordings(directory: Path) -> list[Path]:
    return [folder / CSV_FILE for folder in (directory / "recorded", directory)]


def read_library(directory: Path) -> list[Pair] | None:
    """The pairs of one directory; None where it is no library. Raises UserError for an index that is wrong."""
    if (directory / INDEX_FILE).is_file():
        return read_index(directory / INDEX_FILE)
    for file in _recordings(directory):
        if file.is_file():
            return read_recorded(file)
    return None


@dataclass(frozen=True)
class AtHand:
    """What the search path has."""

    pairs: dict[str, Pair]
    """By name; of several with one name the first."""
    faults: list[UserError]
    """What is wrong with each library that cannot be read, whose pairs are not known."""

    def first_of(self, names: Sequence[str]) -> Pair | None:
        """The first of these pairs that there is. Raises UserError where it might be in a library that cannot be
        read."""
        for name in names:
            if name in self.pairs:
                return self.pairs[name]
            if self.faults:
                raise TraceError(f"the trace pair '{name}' may be in a library that cannot be read: {self.faults[0]}")
        return None


def at_hand() -> AtHand:
    """All pairs of the search path. Directories that are no library are skipped."""
    pairs: dict[str, Pair] = {}
    faults: list[UserError] = []
    for directory in search_path():
        try:
            for pair in read_library(directory) or []:
                pairs.setdefault(pair.name, pair)
        except UserError as fault:
            faults.append(fault)
    return AtHand(pairs, faults)


def list_pairs() -> list[Pair]:
    """All pairs of the search path, for what takes all that there are. Raises UserError for a library that cannot be
    read."""
    there = at_hand()
    if there.faults:
        raise there.faults[0]
    return list(there.pairs.values())


def how_to_get(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about a pair that is not at hand: where it can be had, or the name that was meant."""
    from railyard.traces.fetch import MANIFEST, read_manifest  # noqa: PLC0415  slow to load

    manifest, _ = read_manifest(MANIFEST)
    for source in manifest.sources:
        if name in {pair.name for pair in source.pairs}:
            return (
                f"get it with `railyard traces fetch {source.name} --accept-licence --out DIR`, and add DIR to "
                f"{SEARCH_PATH_VARIABLE}."
            )
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=SLIP)
    if close:
        return f"did you mean '{close[0]}'?{_useless_entries()}"
    return (
        f"if it is a recording, add the folder of its library to {SEARCH_PATH_VARIABLE}; `railyard traces fetch` lists "
        f"the recordings that can be downloaded, `railyard traces list` the pairs that are at hand.{_useless_entries()}"
    )


def not_found(names: Sequence[str], there: AtHand) -> str:
    """The sentence about pairs of which the search path has none."""
    none = " and none ".join(f"'{name}'" for name in names)
    return f"there is no trace pair {none} on the search path; {how_to_get(names[-1], there.pairs)}"


def find_pair(name: str) -> Pair:
    """The first pair of that name on the search path. Raises UserError."""
    there = at_hand()
    if pair := there.first_of([name]):
        return pair
    raise TraceError(not_found([name], there))
