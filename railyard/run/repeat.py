"""How to do a recorded run again: the commands as they were, and what has changed since."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shlex
from pathlib import Path
from typing import Any

from railyard.base.errors import UserError
from railyard.base.paths import IN_CHECKOUT, ROOT, program
from railyard.base.provenance import git_state, sha256_of
from railyard.run.campaign import run_once
from railyard.run.runspec import RunSpec, mptcp_limits_command

AGAIN = "again"  # the folder into which the printed commands write
PARTIAL = ".partial-"  # the folder's name while the run was under way


def _shown(file: str) -> str:
    """A program of this work tree, relative to it: the commands are given there."""
    path = Path(file)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else file


def _moved(command: list[str], folder: Path, run_id: str) -> list[str]:
    """A recorded command with its outputs in AGAIN, and its job where it lies now."""
    words: list[str] = []
    for word in command:
        before, found, after = word.partition(f"{PARTIAL}{run_id}")
        if not found:
            words.append(_shown(word))
        elif after == "/job.json":
            words.append(str(folder / "job.json"))
        else:
            words.append(f"{AGAIN}{after}" if before.startswith("/") else word)
    return words


def commands(record: dict[str, Any], folder: Path) -> list[str]:
    """Lines for a shell that do the run again, into the folder `again`: first by this program, then, where a few words
    suffice, by the programs themselves. In a checkout the shell is in its folder."""
    recorded: dict[str, list[str]] = record.get("commands", {})
    lines = []
    if IN_CHECKOUT and record["git"].get("revision"):
        lines.append(f"git checkout {record['git']['revision']} && make build")
    lines.append(f"railyard repeat {shlex.quote(str(folder))} --out {AGAIN}")
    config = record["config"]
    conducted = config["arena"] == "docker" or config.get("link_events") or config.get("stack")
    if conducted and "sim" not in recorded:
        return lines  # no program by itself starts containers or relays, or changes links under way
    lines.append("# or:")
    moved = {name: _moved(command, folder, record["run_id"]) for name, command in recorded.items()}
    if "sim" in moved:
        return [*lines, f"mkdir -p {AGAIN}", shlex.join(moved["sim"])]
    if {"server", "mpshell"} <= set(moved):
        if record.get("user"):  # by hand the player writes where root does, under sudo too
            moved["mpshell"][1:1] = ["--user", "root"]
        settings = " ".join(shlex.quote(f"{name}={value}") for name, value in record["sysctls"].items())
        set_up = ["ip link set lo up"]
        set_up += [f"sysctl -qw {settings}"] if settings else []
        if record["config"]["scheme"] == "mptcp":
            limits = record["config"].get("mptcp_limits", {})
            set_up.append(shlex.join(mptcp_limits_command(len(record["config"]["paths"]), limits)))
        script = "; ".join(
            [
                *set_up,
                f"{shlex.join(moved['server'])} >{AGAIN}/listening & server=$!",
                f"until [ -s {AGAIN}/listening ]; do kill -0 $server || exit 2; sleep 0.1; done",
                f"{shlex.join(moved['mpshell'])}; kill $server; wait",
            ]
        )
        return [*lines, f"mkdir -p {AGAIN}/links {AGAIN}/qlog", f"unshare --net sh -c {shlex.quote(script)}"]
    return lines[:-1]


def repeat(record: dict[str, Any], out: Path, *, qlog: bool = False) -> None:
    """Does the run again, once, into a folder of its own; with `qlog`, with qlogs even where it had none. Raises
    UserError when the folder is there already."""
    spec = RunSpec.model_validate(record["config"])
    spec = spec.model_copy(update={"qlog": spec.qlog or qlog})
    try:
        out.mkdir(parents=True)
    except FileExistsError:
        raise UserError(f"{out}: it is there already; give another folder with --out.") from None
    except OSError as error:
        raise UserError(f"{out}: cannot be made: {error.strerror}.") from None
    partial = out / f"{PARTIAL}{spec.run_id}"  # commands() finds it in the words of the programs
    partial.mkdir()
    (partial / "spec.json").write_text(spec.model_dump_json(indent=1))
    asyncio.run(run_once(spec, partial))
    for file in list(partial.iterdir()):
        file.rename(out / file.name)
    partial.rmdir()
    again = json.loads((out / "run.json").read_text())
    again["tries"] = [{key: again[key] for key in ("started", "wall_s", "outcome", "fidelity")}]
    (out / "run.json").write_text(json.dumps(again, indent=1) + "\n")


def _sha256(file: str) -> str | None:
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return None


def changes(record: dict[str, Any]) -> list[str]:
    """What is not as it was when the run was done, one phrase each: then a repetition may differ."""
    found = []
    now, then = git_state(), record["git"]
    if then.get("dirty"):
        found.append("the work tree had changes that are in no revision")
    if then.get("revision") and now.get("revision") != then["revision"]:
        found.append(f"the revision is {str(now.get('revision'))[:12]} now, it was {then['revision'][:12]}")
    for name, digest in record["config"].get("programs_sha256", {}).items():
        try:
            same = sha256_of(program(name)) == digest
        except UserError:
            found.append(f"{name} is not built")
        else:
            if not same:
                found.append(f"{name} is another build")
    for path in record["config"]["paths"]:
        for direction in ("up", "down"):
            digest = _sha256(path[direction])
            if digest is None:
                found.append(f"the trace {path[direction]} is not here")
            elif digest != path[f"{direction}_sha256"]:
                found.append(f"the trace {path[direction]} has other contents")
    return found
