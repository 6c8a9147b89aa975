"""Repeats a recorded run: its commands, and the changes since it was done.

A record may come from somebody else. It decides the settings of the repetition, but not its programs: these are the
ones of this installation, or those that the user names.
"""

import shlex
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from railyard.base.errors import UserError
from railyard.base.files import check_space, space_checked
from railyard.base.loop import complete
from railyard.base.paths import IN_CHECKOUT, PEERS_DIR, ROOT, program
from railyard.base.provenance import git_state, sha256_once
from railyard.base.yamlfile import field_name
from railyard.experiment.arenas import ARENAS
from railyard.experiment.stacks import FILE_NAME, StackRun, known_stacks, resolve_stack
from railyard.run import record as run_record
from railyard.run.arena import arena_of
from railyard.run.progress import PARTIAL
from railyard.run.runspec import RunSpec

AGAIN = "again"  # the folder into which the printed commands write


class UnknownStackError(UserError):
    """A run's stack is none of this installation, and no file was named for it."""


def _shown(file: str) -> str:
    """The path of a program. In a checkout, where the commands are run, it is relative to the checkout."""
    path = Path(file)
    return str(path.relative_to(ROOT)) if IN_CHECKOUT and path.is_relative_to(ROOT) else file


def _moved(command: list[str], folder: Path, run_id: str) -> list[str]:
    """A recorded command with its outputs in AGAIN and the present place of its job."""
    moved: list[str] = []
    for word in command:
        before, separator, after = word.partition(f"{PARTIAL}{run_id}")
        if not separator:
            moved.append(_shown(word))
        elif after == "/job.json":
            moved.append(str(folder / "job.json"))
        else:
            moved.append(f"{AGAIN}{after}" if before.startswith("/") else word)
    return moved


def commands(record: dict[str, Any], folder: Path) -> list[str]:
    """Lines for a shell that repeat the run into the folder `again`: first with this program, then, if a few words
    suffice, with the programs themselves. In a checkout the shell must be in its folder."""
    recorded: dict[str, list[str]] = record.get("commands", {})
    lines = []
    if IN_CHECKOUT and record["git"].get("revision"):
        lines.append(f"git checkout {shlex.quote(record['git']['revision'])} && make build")
    lines.append(f"railyard repeat {shlex.quote(str(folder))} --out {AGAIN}")
    config = record["config"]
    if config["arena"] not in ARENAS:
        return lines
    moved = {name: _moved(command, folder, record["run_id"]) for name, command in recorded.items()}
    by_hand = arena_of(config["arena"]).by_hand(record, moved, AGAIN)
    return [*lines, "# or:", *by_hand] if by_hand else lines


def _own_stack(recorded: StackRun, file: Path | None) -> StackRun:
    """The stack with the recorded options: from `file`, else the one of that name in this installation."""
    own = PEERS_DIR / recorded.name / FILE_NAME
    if file is None and not own.is_file():
        raise UnknownStackError(
            f"the stack '{recorded.name}' of the run is none of this installation ({', '.join(known_stacks())}); "
            "name its peer.yaml with --stack FILE if you trust the programs in it."
        )
    return resolve_stack(str((file or own).resolve()), recorded.options, Path())


def spec_of(
    folder: Path, record: dict[str, Any], *, program_file: Path | None = None, stack: Path | None = None
) -> RunSpec:
    """The run's settings with the programs that repeat it: the given ones, else those of this installation. Raises
    UserError if the record has settings that no run has."""
    try:
        spec = RunSpec.model_validate(record["config"])
    except ValidationError as error:
        mistake = error.errors()[0]
        where = field_name(("config", *mistake["loc"]))
        raise UserError(f"{folder / 'run.json'}: {where}: {mistake['msg']}; no run has such a setting.") from None
    if stack is not None and spec.stack is None:
        raise UserError(f"--stack names the peer.yaml of a stack, and the run has none: its scheme is {spec.scheme}.")
    arena = arena_of(spec.arena)
    update: dict[str, Any] = {"program": None}
    if spec.stack is not None:
        update["stack"] = _own_stack(spec.stack, stack)
    if spec.kernel is not None and (machine := arena.machine()) is not None:
        same = {"memory_mb": spec.kernel.memory_mb, "clock_s": spec.kernel.clock_s}
        update["kernel"] = machine.model_copy(update=same)
    if program_file is not None:
        return arena.with_program(spec.model_copy(update=update), program_file)
    update["programs_sha256"] = spec.programs_sha256 | arena.own_programs(spec)
    return spec.model_copy(update=update)


def repeat(spec: RunSpec, out: Path) -> None:
    """Does the run once, into a new folder. Raises UserError if the folder exists."""
    try:
        out.mkdir(parents=True)
    except FileExistsError:
        raise UserError(f"{out}: it is there already; give another folder with --out.") from None
    except OSError as error:
        raise UserError(f"{out}: cannot be made: {error.strerror}.") from None
    partial = out / f"{PARTIAL}{spec.run_id}"  # commands() finds it in the words of the programs
    partial.mkdir()
    remedy = "Make room, or choose another folder: --out or the variable TMPDIR names one."
    with space_checked(partial, remedy):
        record = complete(arena_of(spec.arena).execute(spec, partial))
        if record["outcome"] != "complete":
            check_space(partial, remedy)
        run_record.write(partial, record)
    for file in list(partial.iterdir()):
        file.rename(out / file.name)
    partial.rmdir()


def _sha256(file: str) -> str | None:
    try:
        return sha256_once(Path(file))
    except (OSError, ValueError):
        return None


def _own_sha256(name: str) -> str | None:
    try:
        return sha256_once(program(name))
    except UserError:
        return None


def _changed_stack(then: StackRun, now: StackRun) -> list[str]:
    files = sorted(then.sha256.keys() | now.sha256.keys())
    different = [name for name in files if then.sha256.get(name) != now.sha256.get(name)]
    return [f"{name} of the stack {now.name} is another one" for name in different]


def changes(record: dict[str, Any], spec: RunSpec | None = None) -> list[str]:
    """The changes since the run was done, each in a phrase. With changes a repetition may differ. `spec`: the result of
    spec_of(), if a repetition is to follow."""
    lines = []
    now, then = git_state(), record["git"]
    if then.get("dirty"):
        lines.append("the work tree had changes that are in no revision")
    if then.get("revision") and now.get("revision") != then["revision"]:
        lines.append(f"the revision is {str(now.get('revision'))[:12]} now, it was {then['revision'][:12]}")
    config = record["config"]
    for name, digest in config.get("programs_sha256", {}).items():
        own = spec.programs_sha256[name] if spec else _own_sha256(name)
        if own != digest:
            lines.append(f"{name} is another build" if own else f"{name} is not built")
    if spec and spec.stack:
        lines += _changed_stack(StackRun.model_validate(config["stack"]), spec.stack)
    if spec and spec.kernel and spec.kernel.sha256 != config["kernel"]["sha256"]:
        lines.append("the kernel is another build")
    for path in record["config"]["paths"]:
        for direction in ("up", "down"):
            now_sha256 = _sha256(path[direction])
            if now_sha256 is None:
                lines.append(f"the trace {path[direction]} is not here")
            elif now_sha256 != path[f"{direction}_sha256"]:
                lines.append(f"the trace {path[direction]} has other contents")
    return lines
