"""A campaign as one file: its folder without keys, the traces that it replayed, and the SHA-256 of each.

`railyard repeat ARCHIVE` plays every run again with the programs of the installation at hand and compares the outputs
byte by byte. An archive may be hostile: only its traces are written, in folders named by their hashes, and no program
that it names is run.
"""

import hashlib
import json
import re
import stat
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from railyard.base.counting import counting
from railyard.base.errors import UserError
from railyard.base.files import check_space, replacing, space_checked, writing
from railyard.base.jsonl import parse, read_json
from railyard.base.lists import distinct
from railyard.base.loop import complete, side_by_side
from railyard.base.provenance import sha256_of, version_words
from railyard.base.zipped import ZIP_FAULTS
from railyard.experiment.arenas import is_exact
from railyard.experiment.stacks import find_stack
from railyard.results import shapes
from railyard.run import captures
from railyard.run.arena import arena_of
from railyard.run.record import ABOUT
from railyard.run.repeat import UnknownStackError, changes, spec_of
from railyard.run.runspec import RunSpec
from railyard.traces.library import at_hand

SCHEMA = 1
MANIFEST, README = "archive.json", "README.md"
CAMPAIGN, TRACES = "campaign/", "traces/"
MOST_FILES, MOST_BYTES = 200_000, 64 << 30
MOST_TRACE_BYTES, MOST_RECORD_BYTES = 2 << 30, 64 << 20
_TRACE = re.compile(rf"{TRACES}([0-9a-f]{{64}})/([A-Za-z0-9][A-Za-z0-9_.+-]{{0,127}})")
_OUTPUT = re.compile(rf"{CAMPAIGN}runs/([^/]+)/(.+)", re.DOTALL)
_OLDEST = (1980, 1, 1, 0, 0, 0)  # the earliest time in a ZIP file, the same in every archive
_BLOCK = 1 << 20
SPACE = "Make room, or let the variable TMPDIR name another folder."

Files = dict[str, str]
"""SHA-256 by name."""


def is_key(name: str) -> bool:
    """Whether a file holds secrets of TLS: key logs, tickets, private keys, captures with keys in them."""
    return name.endswith((".keys", ".tickets", ".pem", ".key", captures.SUFFIX))


# --- writing ----------------------------------------------------------------------------------------------------------


def _kept(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder)
        if file.is_file() and not file.is_symlink() and not any(part.startswith(".") for part in name.parts):
            yield file


def _records(folder: Path) -> list[dict[str, Any]]:
    records = []
    for file in sorted(folder.glob("runs/[!.]*/run.json")):
        try:
            records.append(read_json(file))
            shapes.check(records[-1], shapes.RUN)
        except (OSError, ValueError) as error:
            raise UserError(f"{file}: the run's record cannot be read: {error}.") from None
    return records


def _trace(sha256: str, file: Path | str) -> str:
    """A trace's name in the archive. It ends with the trace's own name, because a link log records that name."""
    return f"{TRACES}{sha256}/{Path(file).name}"


def _traces(config: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The hash and the file of each trace that a run replayed."""
    for path in config["paths"]:
        yield from ((path[f"{way}_sha256"], path[way]) for way in ("up", "down"))
        yield from ((path["delay_traces_sha256"][name], file) for name, file in path.get("delay_traces", {}).items())
    for bottleneck in config.get("bottlenecks", ()):
        yield from ((bottleneck["files_sha256"][name], file) for name, file in bottleneck.get("files", {}).items())


def _about(folder: Path, records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Settings, commands and environment, from the campaign's own records."""
    try:
        campaign = read_json(folder / "campaign.json")
        shapes.check(campaign, shapes.CAMPAIGN)
        about = {key: campaign.get(key) for key in ("command", "git", "started")}
        about["experiment"] = campaign["experiment"]
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(f"{folder}: no readable campaign.json; an archive is made of a campaign's folder.") from None
    library = at_hand().pairs
    names = dict.fromkeys(str(record["config"]["pair"]) for record in records)
    pairs = {name: library[name] for name in names if name in library}
    return about | {
        "made_by": version_words(),
        "commands": {record["run_id"]: record.get("commands", {}) for record in records},
        "programs_sha256": distinct(record["config"]["programs_sha256"] for record in records),
        "environment": distinct(
            {key: record.get(key) for key in ("git", "kernel", "cpu", "versions", "sysctls")} for record in records
        ),
        "pairs": {name: {"licence": pair.licence, "source": pair.source} for name, pair in pairs.items()},
    }


READ_ME = """# Results of the campaign {name}

Written by `railyard archive`. `archive.json` has settings, commands, environment, and the SHA-256 of every file.
TLS key logs, and captures with keys in them, are left out. Check it with an installation of Railyard:

    railyard repeat FILE

This plays every run in virtual time again and says whether the outputs are the same bytes.
`campaign/` is the folder of the campaign: `campaign/report.html` is the page, `campaign/*.parquet` has the tables.
"""


@dataclass(frozen=True)
class Written:
    """The contents of a written archive, and what was left out."""

    files: int
    bytes: int
    keys: int
    traces_missing: list[str]
    licences: dict[str, str]
    too_large: bool
    """Whether `railyard repeat` refuses it."""


def write_archive(folder: Path, out: Path, *, with_traces: bool = True) -> Written:
    """Writes the archive completely or not at all. The same folder gives the same bytes. Raises UserError."""
    if out.suffix.lower() not in (".zip", ""):
        raise UserError(f"{out}: an archive is a ZIP file; give a name with .zip.")
    if out.exists() and not (out.is_file() and (out.stat().st_size == 0 or zipfile.is_zipfile(out))):
        raise UserError(f"{out}: it is there already and is no archive, so it is not replaced; give another name.")
    records = _records(folder)
    about = _about(folder, records)
    members = [(f"{CAMPAIGN}{file.relative_to(folder).as_posix()}", file) for file in _kept(folder)]
    kept = [(name, file) for name, file in members if not is_key(name)]
    keys = len(members) - len(kept)
    missing: list[str] = []
    replayed = dict.fromkeys(trace for record in records for trace in _traces(record["config"]))
    for sha256, source in sorted(replayed) if with_traces else ():
        file = Path(source)
        name = _trace(sha256, file)
        if _TRACE.fullmatch(name) and file.is_file() and sha256_of(file) == sha256:
            kept.append((name, file))
        else:
            missing.append(str(file))
    with writing(out), replacing(out) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
        files = {name: _add(archive, name, file) for name, file in kept}
        text = READ_ME.format(name=about["experiment"].get("name"))
        archive.writestr(zipfile.ZipInfo(README, _OLDEST), text)
        manifest = {"schema": SCHEMA} | about | {"files": files}
        archive.writestr(zipfile.ZipInfo(MANIFEST, _OLDEST), json.dumps(manifest, indent=1) + "\n")
    licences = {name: str(pair["licence"]) for name, pair in about["pairs"].items()} if with_traces else {}
    too_large = _too_large(len(files) + 2, sum(one["bytes"] for one in files.values()))
    return Written(len(kept), out.stat().st_size, keys, missing, licences, too_large)


def _too_large(files: int, size: int) -> bool:
    return files > MOST_FILES or size > MOST_BYTES


def _add(archive: zipfile.ZipFile, name: str, file: Path) -> dict[str, Any]:
    digest, size = hashlib.sha256(), 0
    member = zipfile.ZipInfo(name, _OLDEST)
    member.compress_type = zipfile.ZIP_DEFLATED
    member.external_attr = 0o644 << 16
    with file.open("rb") as source, archive.open(member, "w", force_zip64=True) as sink:
        while block := source.read(_BLOCK):
            digest.update(block)
            size += sink.write(block)
    return {"sha256": digest.hexdigest(), "bytes": size}


# --- checking ---------------------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """The result of a check of an archive. `different`: for each run, the names of the outputs that differ."""

    same: list[str] = field(default_factory=list)
    files: int = 0
    different: dict[str, list[str]] = field(default_factory=dict)
    not_repeated: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Again:
    """A run of an archive that is to be repeated."""

    spec: RunSpec
    outputs: Files


@dataclass(frozen=True)
class Archive:
    """A sound archive: names are plain, sizes are bounded, and files have the hashes of the manifest."""

    runs: list[Again]
    not_repeated: dict[str, str]  # the reason, by run
    changes: list[str]  # differences between this machine and the one that wrote it


@contextmanager
def opened(file: Path, *, program_file: Path | None = None, stack: Path | None = None) -> Iterator[Archive]:
    """Checks an archive and unpacks its traces into a temporary folder. Raises UserError if it is not sound."""
    try:
        with zipfile.ZipFile(file) as archive, tempfile.TemporaryDirectory(prefix="railyard-archive-") as folder:
            files = _checked(archive, file)
            traces = _unpacked(archive, files, Path(folder), file)
            yield _read(archive, file, files, traces, (program_file, stack))
    except ZIP_FAULTS as error:
        raise UserError(f"{file}: this is no sound archive: {str(error).rstrip('.')}.") from None
    except (NotImplementedError, RuntimeError) as error:  # encrypted, or compressed by another method
        raise UserError(f"{file}: this archive cannot be read: {error}.") from None
    except OSError as error:
        raise UserError(f"{error.filename or file}: {error.strerror or error}.") from None


def _is_plain(info: zipfile.ZipInfo) -> bool:
    """Whether a member is a regular file that would be unpacked below the folder."""
    path = PurePosixPath(info.filename)
    kind = stat.S_IFMT(info.external_attr >> 16)
    is_below = not path.is_absolute() and ".." not in path.parts and "\\" not in info.filename and path.parts
    return bool(is_below) and "\0" not in info.filename and kind in (0, stat.S_IFREG) and not info.is_dir()


def _checked(archive: zipfile.ZipFile, file: Path) -> Files:
    """The hashes of all members except the manifest and the README. Raises UserError if the manifest has others."""
    members = archive.infolist()
    if _too_large(len(members), sum(one.file_size for one in members)):
        raise UserError(f"{file}: it has more than {MOST_FILES} files or {MOST_BYTES >> 30} GiB; this is not read.")
    count = Counter(one.filename for one in members)
    for one in members:
        if not _is_plain(one) or count[one.filename] > 1:
            raise UserError(f"{file}: '{one.filename}' is no name of a file in an archive of Railyard; it is not read.")
    listed = _json(archive, MANIFEST, file).get("files")
    if not isinstance(listed, dict):
        raise UserError(f"{file}: {MANIFEST} does not name its files; `railyard archive` writes such a file.")
    checked: Files = {}
    with counting("checking hashes", len(members)) as advance:
        for one in members:
            with archive.open(one) as source:
                sha256 = hashlib.file_digest(source, "sha256").hexdigest()  # type: ignore[arg-type]
            if one.filename not in (MANIFEST, README):
                checked[one.filename] = sha256
            advance()
    claimed = {name: one.get("sha256") if isinstance(one, dict) else None for name, one in listed.items()}
    for name in sorted(claimed.keys() | checked.keys()):
        if claimed.get(name) != checked.get(name):
            raise UserError(f"{file}: '{name}' is not the file of which {MANIFEST} has the SHA-256.")
    return checked


def _json(archive: zipfile.ZipFile, name: str, file: Path) -> dict[str, Any]:
    try:
        info = archive.getinfo(name)
    except KeyError:
        raise UserError(f"{file}: it has no {name}; `railyard archive` writes such a file.") from None
    if info.file_size > MOST_RECORD_BYTES:
        raise UserError(f"{file}: {name} has more than {MOST_RECORD_BYTES >> 20} MiB; it is not read.")
    try:
        content = parse(archive.read(info).decode("utf-8"))
    except ValueError:
        raise UserError(f"{file}: {name} is not JSON.") from None
    if not isinstance(content, dict):
        raise UserError(f"{file}: {name} is no JSON object.")
    return content


def _unpacked(archive: zipfile.ZipFile, files: Files, folder: Path, file: Path) -> dict[str, Path]:
    """Unpacks the traces and returns their files by their names in the archive, in which they are named by hash."""
    unpacked: dict[str, Path] = {}
    total = 0
    for name in (name for name in files if name.startswith(TRACES)):
        parts = _TRACE.fullmatch(name)
        total += archive.getinfo(name).file_size
        if parts is None or files[name] != parts[1] or total > MOST_TRACE_BYTES:
            raise UserError(f"{file}: '{name}' is no trace under its SHA-256, or the traces are too large.")
        unpacked[name] = folder / parts[1] / parts[2]
        unpacked[name].parent.mkdir(exist_ok=True)
        unpacked[name].write_bytes(archive.read(name))
    return unpacked


def _own_traces(pair: str) -> dict[str, Path]:
    """The traces of a pair in this machine's library, by the names that they would have in an archive."""
    known = at_hand().pairs.get(pair)
    paths = known.paths if known is not None else ()
    files = [file for path in paths for file in (path.uplink, path.downlink, *path.delay_traces.values())]
    return {_trace(sha256_of(file), file): file for file in files if file.is_file()}


def _located(config: dict[str, Any], known: dict[str, Path]) -> dict[str, Any]:
    """Replaces the trace files of the machine that wrote the settings by those of the archive or of this machine.
    Raises KeyError for a trace that neither has."""

    def named(member: dict[str, Any], files: str) -> dict[str, str]:
        hashes = member.get(f"{files}_sha256", {})
        return {name: str(known[_trace(hashes[name], file)]) for name, file in member.get(files, {}).items()}

    paths = []
    for path in config["paths"]:
        here = {way: str(known[_trace(path[f"{way}_sha256"], path[way])]) for way in ("up", "down")}
        paths.append(path | here | {"delay_traces": named(path, "delay_traces")})
    bottlenecks = [each | {"files": named(each, "files")} for each in config.get("bottlenecks", ())]
    return config | {"paths": paths} | ({"bottlenecks": bottlenecks} if bottlenecks else {})


def _outputs(files: Files) -> dict[str, Files]:
    """The outputs of every run, by the run's name."""
    outputs: dict[str, Files] = {}
    for name, sha256 in files.items():
        match = _OUTPUT.fullmatch(name)
        if match and match[2] not in ABOUT and not is_key(match[2]):
            outputs.setdefault(match[1], {})[match[2]] = sha256
    return outputs


def _for_this(record: dict[str, Any], stack: Path | None, name: str | None) -> Path | None:
    """The file of --stack is for the runs of the stack that it describes."""
    recorded = record["config"].get("stack")
    return stack if isinstance(recorded, dict) and recorded.get("name") == name else None


def _read(
    archive: zipfile.ZipFile,
    file: Path,
    files: Files,
    traces: dict[str, Path],
    programs: tuple[Path | None, Path | None],
) -> Archive:
    runs: list[Again] = []
    left: dict[str, str] = {}
    notes: dict[str, None] = {}
    own_traces, outputs = cache(_own_traces), _outputs(files)
    stack_name = find_stack(str(programs[1].resolve()), Path())[1].name if programs[1] else None
    for name in sorted(files):
        match = _OUTPUT.fullmatch(name)
        if match is None or match[2] != "run.json":
            continue
        record = _json(archive, name, file)
        try:
            record["config"] = _located(record["config"], own_traces(str(record["config"]["pair"])) | traces)
            record["git"] = dict(record["git"])
            exact = is_exact(record["config"]["arena"])
        except (KeyError, TypeError, ValueError, AttributeError):
            left[match[1]] = "its traces are neither in the archive nor on this machine, or its record is not whole"
            continue
        if not exact:
            left[match[1]] = "it ran on the wall clock, where no run comes twice"
            continue
        try:
            stack = _for_this(record, programs[1], stack_name)
            spec = spec_of(file / match[1], record, program_file=programs[0], stack=stack)
        except UnknownStackError as error:
            left[match[1]] = str(error).removesuffix(".")
            continue
        notes |= dict.fromkeys(changes(record, spec))
        own_outputs = outputs.get(match[1], {})
        with_qlog = spec.qlog or any(one.startswith("qlog/") for one in own_outputs)
        runs.append(Again(spec.model_copy(update={"qlog": with_qlog}), own_outputs))
    if not runs and not left:
        raise UserError(f"{file}: it has no runs.")
    if stack_name is not None and not any(run.spec.stack and run.spec.stack.name == stack_name for run in runs):
        raise UserError(f"{file}: none of its runs has the stack '{stack_name}' that --stack names.")
    return Archive(runs, left, list(notes))


def repeat_all(archive: Archive, jobs: int) -> Outcome:
    """Plays every run again, in a temporary folder, and compares its outputs with the hashes of the archive."""
    outcome = Outcome(not_repeated=dict(archive.not_repeated))

    async def all_of_them() -> None:
        async def work(one: Again) -> None:
            with tempfile.TemporaryDirectory(prefix="railyard-repeat-") as folder:
                with space_checked(Path(folder), SPACE):
                    await arena_of(one.spec.arena).execute(one.spec, Path(folder))
                if not _compare(one, Path(folder), outcome):
                    check_space(Path(folder), SPACE)
            advance()

        with counting("repeated", len(archive.runs)) as advance:
            await side_by_side(archive.runs, work, jobs)

    complete(all_of_them())
    return outcome


def _compare(one: Again, folder: Path, outcome: Outcome) -> bool:
    """Enters a repeated run into the outcome. Returns whether its outputs are the same."""
    names = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*") if file.is_file()}
    now = {name: file for name, file in names.items() if name not in ABOUT and not is_key(name)}
    hashes = {name: sha256_of(file) for name, file in now.items()}
    differing = sorted(name for name in one.outputs.keys() | hashes.keys() if one.outputs.get(name) != hashes.get(name))
    if differing:
        outcome.different[one.spec.run_id] = differing
    else:
        outcome.same.append(one.spec.run_id)
        outcome.files += len(hashes)
    return not differing
