"""The trace library: the project's own pairs, then those in the directories of RAILYARD_TRACE_PATH."""

import difflib
import filecmp
import os
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from railyard.base.errors import UserError
from railyard.base.paths import TRACES_DIR
from railyard.base.words import listed
from railyard.traces.index import INDEX_FILE, Pair, PairPath, read_index
from railyard.traces.recorded import CSV_FILE, read_recorded
from railyard.traces.trace import TraceError

SEARCH_PATH_VARIABLE = "RAILYARD_TRACE_PATH"
PROJECT_LIBRARY = TRACES_DIR
SLIP = 0.8
"""The similarity from which a name counts as a typing error; less similar names are other recordings."""
CONTROLLED = "lab"
"""A library in the project library's folder, with links of constant rates, for experiments that vary one property."""


def _entries_of_variable() -> list[Path]:
    return [Path(entry).absolute() for entry in os.environ.get(SEARCH_PATH_VARIABLE, "").split(":") if entry]


def search_path() -> list[Path]:
    """The directories to search, in order: the project's libraries, then those of the variable, separated by colons."""
    return [PROJECT_LIBRARY, PROJECT_LIBRARY / CONTROLLED, *_entries_of_variable()]


def _useless_entries() -> str:
    """A sentence about the variable's entries that are no libraries. Empty if there are none."""
    found: list[str] = []
    for directory in _entries_of_variable():
        if not directory.is_dir():
            found.append(f"{directory} {'is a file' if directory.exists() else 'is not there'}")
        elif not any(file.is_file() for file in (directory / INDEX_FILE, *_recordings(directory))):
            found.append(f"{directory} has no {INDEX_FILE}")
    return f" Of {SEARCH_PATH_VARIABLE}, {listed(found)}." if found else ""


def _recordings(directory: Path) -> list[Path]:
    return [folder / CSV_FILE for folder in (directory / "recorded", directory)]


def index_of(directory: Path) -> Path:
    """The index of a library: that of a collection of recordings only if there is no index.yaml."""
    files = (directory / INDEX_FILE, *_recordings(directory))
    return next((file for file in files if file.is_file()), files[0])


def read_library(directory: Path) -> list[Pair] | None:
    """The pairs of a directory. None: it is no library. Raises UserError if its index is wrong."""
    if (directory / INDEX_FILE).is_file():
        return read_index(directory / INDEX_FILE)
    for file in _recordings(directory):
        if file.is_file():
            return read_recorded(file)
    return None


@dataclass(frozen=True)
class AtHand:
    """The pairs on the search path."""

    pairs: dict[str, Pair]
    """The first pair of each name."""
    faults: list[UserError]
    """The error of each library that cannot be read. Its pairs are unknown."""
    hidden: list[Pair] = field(default_factory=list)
    """The other pairs of these names."""

    def first_of(self, names: Sequence[str]) -> Pair | None:
        """The first of these pairs that exists. None: none of them does. Raises UserError if it may be in a library
        that cannot be read."""
        for name in names:
            if name in self.pairs:
                return self.pairs[name]
            if self.faults:
                raise TraceError(f"the trace pair '{name}' may be in a library that cannot be read: {self.faults[0]}")
        return None


def at_hand() -> AtHand:
    """All pairs on the search path. Skips directories that are no libraries."""
    pairs: dict[str, Pair] = {}
    faults: list[UserError] = []
    hidden: list[Pair] = []
    for directory in search_path():
        try:
            hidden += [pair for pair in read_library(directory) or [] if pairs.setdefault(pair.name, pair) is not pair]
        except UserError as fault:
            faults.append(fault)
    return AtHand(pairs, faults, hidden)


def _link(path: PairPath) -> tuple[tuple[object, ...], dict[str, Path]]:
    """The facts about a path's link, and the files that it reads."""
    facts = (path.name, path.technology, path.base_rtt_ms, path.queue, path.settings)
    return facts, {"uplink": path.uplink, "downlink": path.downlink} | path.delay_traces


def _is_the_same(one: Pair, other: Pair) -> bool:
    """Whether two pairs have the same links."""
    if len(one.paths) != len(other.paths):
        return False
    for (facts, files), (others, of_other) in zip(map(_link, one.paths), map(_link, other.paths), strict=True):
        if facts != others or files.keys() != of_other.keys():
            return False
        with suppress(OSError):
            if all(filecmp.cmp(files[name], of_other[name], shallow=False) for name in files):
                continue
        return False
    return True


def told_of_hidden(there: AtHand, names: Collection[str]) -> list[str]:
    """A sentence for each pair of these names that is not used, because a library before its own has another one."""
    return [
        f"{pair.name}: the one of {there.pairs[pair.name].library} is used, which is searched first, and not the other "
        f"one of {pair.library}; rename that to use it."
        for pair in there.hidden
        if pair.name in names and not _is_the_same(pair, there.pairs[pair.name])
    ]


def list_pairs() -> list[Pair]:
    """All pairs on the search path, for commands on all pairs. Raises UserError if a library cannot be read."""
    there = at_hand()
    if there.faults:
        raise there.faults[0]
    return list(there.pairs.values())


def how_to_get(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about a missing pair: how to get it, or the name that was probably meant."""
    from railyard.traces.fetch import MANIFEST, read_manifest  # noqa: PLC0415  slow to load

    for source in read_manifest(MANIFEST).sources:
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
    """The sentence for names of which none is on the search path."""
    none = " and none ".join(f"'{name}'" for name in names)
    return f"there is no trace pair {none} on the search path; {how_to_get(names[-1], there.pairs)}"


def find_pair(name: str) -> Pair:
    """The first pair of that name on the search path. Raises UserError."""
    there = at_hand()
    if pair := there.first_of([name]):
        return pair
    raise TraceError(not_found([name], there))
