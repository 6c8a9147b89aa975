"""Folders of results: one for each distinct (name, arena, settings, traces, programs), and a link with the name.

    results/demo-sim-3f9a01c2    a folder; its `folder.json` has all facts that its results depend on
    results/demo                 a link to the folder of the last command for this name

The hash of these facts is the folder's identity. The same command finds its folder again; any other command makes a new
one. A folder is never replaced; only the link moves to another folder.
"""

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from railyard.base.errors import UserError
from railyard.base.files import write_whole
from railyard.base.jsonl import NOT_AS_WRITTEN, read_json, read_object
from railyard.base.paths import RESULTS_DIR

SCHEMA = 1
FILE = "folder.json"
LOCK = ".lock"
NEW = ".new-"  # a folder that is being made
REMOVED = ".removed-"  # a folder that is being removed
HASH_LETTERS = 8
# Files of which a folder of results has at least one; those of earlier versions have no `folder.json`.
MARKS = (FILE, "campaign.json", "exhibit.json", "population.json", "runs.parquet")

OUT_HELP = "Folder of the results. Default: a new folder in results/, with the link results/NAME."

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Identity:
    """The identity of results. `facts`: JSON with everything that decides them. `paths`: the paths of each pair, in
    words for readers: `facts` covers them by a hash of all runs."""

    name: str
    arena: str
    facts: dict[str, Any]
    paths: dict[str, Any] = field(default_factory=dict)

    @property
    def sha256(self) -> str:
        text = json.dumps([self.name, self.arena, self.facts], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def stem(self) -> str:
        return f"{self.name}-{self.arena}-{self.sha256[:HASH_LETTERS]}"


def read_facts(folder: Path) -> dict[str, Any]:
    """`folder.json`. Empty if there is none or it cannot be read."""
    return read_object(folder / FILE) or {}


def shown(path: Path) -> str:
    """A path for output, relative to the current folder if it is below that."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


written: set[Path] = set()
"""The folders that this process has written results to."""


def any_is_kept() -> bool:
    """Whether one of `written` is there. A temporary folder ends with its study."""
    return any(folder.is_dir() for folder in written)


def resume_words() -> str:
    """How to resume: without what would begin another folder, `--fresh` or a study's `--set fresh=true`."""
    fresh = re.search(r" (--fresh|--set[ =]fresh=\S*)(?= )", f" {' '.join(sys.argv[1:])} ")
    return f"run the same command{f' without {fresh[1]}' if fresh else ''} to resume"


ANOTHER = "choose another directory with --out, or with --set out=DIR for a study"


def _cannot_write(folder: Path, error: OSError) -> UserError:
    return UserError(f"{folder}: cannot write results there: {error.strerror}; {ANOTHER}.")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lets one command at a time write into a folder. The lock ends with the process."""
    try:  # in a folder from elsewhere, the lock may be a link to any file
        lock = os.fdopen(os.open(folder / LOCK, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666), "w")
    except OSError as error:
        raise _cannot_write(folder, error) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise _taken(folder) from None
        if not _is_lock(lock, folder):
            raise _taken(folder)
        written.add(folder)
        try:
            yield
        finally:
            (folder / LOCK).unlink(missing_ok=True)


def _is_lock(lock: TextIO, folder: Path) -> bool:
    """Whether the file is still the lock: its last holder may have removed it after this process opened it."""
    try:
        return os.path.samestat(os.fstat(lock.fileno()), (folder / LOCK).stat())
    except FileNotFoundError:
        return False


def _taken(folder: Path) -> UserError:
    return UserError(f"{folder}: another campaign is writing there; wait for it, or choose another with --out.")


def write_json(file: Path, content: dict[str, Any]) -> None:
    """Writes a file completely or not at all."""
    write_whole(file, json.dumps(content, indent=1) + "\n")


def _write_facts(folder: Path, identity: Identity, *, fresh: bool) -> None:
    created = datetime.now(UTC).isoformat(timespec="seconds")
    about = {"schema": SCHEMA, "name": identity.name, "arena": identity.arena, "identity": identity.sha256}
    paths = {"paths": identity.paths} if identity.paths else {}
    write_json(folder / FILE, about | {"created": created, "fresh": fresh, "facts": identity.facts} | paths)


def _numbered(results: Path, stem: str) -> Iterator[Path]:
    """stem, stem-2, stem-3, and so on."""
    yield results / stem
    number = 1
    while True:
        number += 1
        yield results / f"{stem}-{number}"


def find_existing(identity: Identity, results: Path | None = None) -> Path | None:
    """The folder of these results that was made last. None: there is none."""
    existing = None
    for folder in _numbered(results or RESULTS_DIR, identity.stem):
        if not folder.is_dir():
            return existing
        if read_facts(folder).get("identity") == identity.sha256:
            existing = folder
    return None


def _make(results: Path, identity: Identity, *, fresh: bool) -> Path:
    """Makes a new folder, which has its `folder.json` from the first moment on."""
    partial = Path(tempfile.mkdtemp(prefix=NEW, dir=results))
    partial.chmod(0o777 & ~_umask())
    _write_facts(partial, identity, fresh=fresh)
    for folder in _numbered(results, identity.stem):
        try:
            partial.rename(folder)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                shutil.rmtree(partial, ignore_errors=True)
                raise
            if not fresh and read_facts(folder).get("identity") == identity.sha256:
                shutil.rmtree(partial)  # another command made it meanwhile
                return folder
        else:
            return folder
    raise AssertionError("numbers do not end")


def _umask() -> int:
    value = os.umask(0)
    os.umask(value)
    return value


def point(results: Path, name: str, folder: Path) -> None:
    """Makes the name a link to the folder, atomically."""
    partial = results / f"{NEW}{name}-{os.getpid()}"
    partial.unlink(missing_ok=True)
    partial.symlink_to(folder.relative_to(results), target_is_directory=True)
    partial.replace(results / name)


def _set_aside(results: Path, name: str, tell: Tell) -> None:
    """Renames a folder that has the name itself, which comes from an earlier version."""
    old = results / name
    if old.is_symlink() or not old.exists():
        return
    if not old.is_dir():
        raise UserError(f"{old}: it is no folder, and that name is to be a link to the results; move it away.")
    with locked(old):
        new = next(folder for folder in _numbered(results, f"{name}-earlier") if not folder.exists())
        old.rename(new)
        (new / LOCK).unlink(missing_ok=True)
    tell(
        f"{shown(old)} is {shown(new)} from now on: names of results are links, and every campaign has its own folder."
    )


def differences(here: Any, there: Any, path: str = "") -> list[str]:
    """The names of the settings in which two facts differ."""
    if isinstance(here, dict) and isinstance(there, dict):
        names = [*here, *(name for name in there if name not in here)]
        parts = [differences(here.get(name), there.get(name), f"{path}.{name}" if path else name) for name in names]
        return [name for part in parts for name in part]
    return [] if here == there else [path]


@contextmanager
def _given(out: Path, identity: Identity, *, fresh: bool) -> Iterator[Path]:
    """The folder that the user named, locked. It must be without results or have these, and not lie within others."""
    facts = read_facts(out)
    around = next((one for one in out.parents if any((one / mark).is_file() for mark in (FILE, "campaign.json"))), None)
    if not facts and around is not None:
        raise UserError(f"{out}: it is within the results {around}; choose another directory with --out.")
    if not facts and any((out / mark).is_file() for mark in MARKS):
        raise UserError(f"{out}: it holds other results, and none are replaced; {ANOTHER}.")
    if facts and facts.get("identity") != identity.sha256:
        about = ", ".join(_short(differences(identity.facts, facts.get("facts", {}))))
        theirs = f"{facts.get('name')} in {facts.get('arena')}{f' that differ in {about}' if about else ''}"
        raise UserError(f"{out}: it holds results of {theirs}, and none are replaced; {ANOTHER}.")
    if facts and fresh:
        raise UserError(f"{out}: it holds these results, and none are replaced; --fresh needs another --out, or none.")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_write(out, error) from None
    with locked(out):
        if not facts:
            _write_facts(out, identity, fresh=fresh)
        yield out


def _short(names: list[str]) -> list[str]:
    """The first names, without `settings.`: `settings.player.fps` is `player.fps`."""
    plain = [name.removeprefix("settings.") for name in names if name != "runs"]
    return [*plain[:4], *(["more"] if len(plain) > 4 else [])]


@contextmanager
def results_folder(
    identity: Identity, tell: Tell, *, out: Path | None = None, fresh: bool = False, results: Path | None = None
) -> Iterator[Path]:
    """The folder of these results, locked: an existing one or a new one. The link with the name then leads to it.

    `out`: the user's folder instead, without a link. `fresh`: a new folder even if there is one.
    """
    if out is not None:
        with _given(out.resolve(), identity, fresh=fresh) as folder:
            yield folder
        return
    results = (results or RESULTS_DIR).resolve()
    try:
        results.mkdir(parents=True, exist_ok=True)
        there = None if fresh else find_existing(identity, results)
        folder = there or _make(results, identity, fresh=fresh)
    except OSError as error:
        raise _cannot_write(results, error) from None
    with locked(folder):
        _set_aside(results, identity.name, tell)
        point(results, identity.name, folder)
        link = f"{shown(results / identity.name)} links to it"
        tell(f"Results {'are' if there else 'go to'} {'in ' if there else ''}{shown(folder)}; {link}.")
        yield folder


def name_of(folder: Path) -> str | None:
    """The name of a folder's results. Folders of earlier versions have it in `campaign.json`. None: unknown."""
    if facts := read_facts(folder):
        return str(facts.get("name"))
    try:
        return str(read_json(folder / "campaign.json")["experiment"]["name"])
    except (OSError, *NOT_AS_WRITTEN):
        return None


def siblings(folder: Path, name: str) -> list[Path]:
    """The other folders of results of that name beside this one, newest first, without fresh ones."""
    folders = [
        other
        for other in folder.parent.iterdir()
        if other != folder and not other.name.startswith(".") and other.is_dir() and not other.is_symlink()
    ]
    folders = [other for other in folders if name_of(other) == name and not read_facts(other).get("fresh")]
    return sorted(folders, key=lambda one: one.stat().st_mtime, reverse=True)


def link_file(source: Path | str, target: Path | str) -> str:
    """Makes a hard link to a file or, if that is not possible, a copy, completely or not at all."""
    try:
        os.link(source, target)
    except OSError:
        partial = Path(target).with_name(f".{Path(target).name}.partial")
        shutil.copy2(source, partial)
        partial.rename(target)
    return str(target)


def is_readable(folder: Path) -> bool:
    """Whether this user may read all files of a folder. Key files are readable by their owner only."""
    return all(os.access(file, os.R_OK) for file in (folder, *folder.rglob("*")))


def set_aside(file: Path, folder: Path) -> None:
    """Moves a file or folder that is in the way of a result into `folder`, under a free name."""
    folder.mkdir(parents=True, exist_ok=True)
    file.rename(next(place for place in _numbered(folder, file.name) if not place.exists()))


def remove_folder(folder: Path, results: Path) -> None:
    """Removes a folder of results. If this is interrupted, `clean --leftovers` finds the rest by its name."""
    removed = results / f"{REMOVED}{os.getpid()}-{folder.name}"
    if not all(os.access(place, os.W_OK) for place in (folder, folder.parent, results)):
        raise UserError(f"{folder}: it cannot be removed: this user may not write there, or nobody may.")
    with locked(folder):
        folder.rename(removed)
    with suppress(FileNotFoundError):
        shutil.rmtree(removed)
