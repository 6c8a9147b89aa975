"""One run in the kernel arena: a time-travel kernel boots, pinned to a core, in which the unmodified mpshell, server
and player run in virtual time. It leaves the same files as a wall-clock run. docs/explanation/virtual-time.md has the
limits of this, docs/howto/kernel.md its use.

Inside, only a folder in the run's folder can be written. Programs and traces are found through links in it, so that
logs and command lines have no names of folders of this machine, which would be other bytes elsewhere. Its contents
after the run are not trusted: only regular files join the run's (confine.py).
"""

import hashlib
import json
import os
import pwd
import shlex
import shutil
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from railyard.base.errors import UserError
from railyard.base.paths import PROGRAM_NAMES, check_tools, program
from railyard.experiment.model import kernel_cc
from railyard.experiment.stacks import StackRun
from railyard.run import captures, children, confine, fidelity, record, runspec, vkernel
from railyard.run.arena import Arena
from railyard.run.cores import one_core
from railyard.run.linkevents import DoneEvent, commands
from railyard.run.outcome import RunRefusedError, exit_state, last_words
from railyard.run.record import Ended
from railyard.run.runspec import KernelMachine, RunSpec

TOOLS = {"setpriv": "util-linux", "ip": "iproute2", "timeout": "coreutils"}
FOLDER = ".machine"  # the machine's folder in the run's while it goes on
LINKS = Path(".inside")  # in the machine's folder: links to programs and traces
# Limits on the host's time: WALL_LIMIT_S + WALL_SHARE × the run's time limit in all, STALL_LIMIT_S without progress.
WALL_LIMIT_S, WALL_SHARE = 120.0, 20.0
STALL_LIMIT_S = 60
STOP_LIMIT_S = 5.0
RELAY_READY_S, RELAY_STOP_S = 15, 2  # in virtual time
HUNG = 124  # exit code of timeout(1)
CONTROL = "/run/control"
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/", "LANG": "C.UTF-8"}


# ---- inside the machine


def inside(spec: RunSpec, folder: Path) -> RunSpec:
    """The run as the machine sees it. Makes the links to its files in the machine's folder."""
    links = folder / LINKS
    links.mkdir()

    def put(file: Path, name: str) -> Path:
        (links / name).symlink_to(file.resolve())
        return LINKS / name

    for name in PROGRAM_NAMES:
        put(program(name), name)
    for name in ("mpshell-ctl", *(("relay-run",) if spec.stack else ())):
        put(program(name), name)
    # Neither has an effect in virtual time, but the settings would change bytes of the summary.
    return spec.with_files(put).model_copy(update={"keep_awake": "auto", "real_time": False})


def _event_lines(spec: RunSpec) -> list[str]:
    """Lines that send the link events at their times, once the links run."""
    ctl = shlex.join([str(LINKS / "mpshell-ctl"), CONTROL])
    lines = ["(", f"until [ -S {CONTROL} ]; do sleep 0.001; done", f"{ctl} stats >/dev/null"]
    before = 0.0
    for event in spec.link_events:
        lines.append(f"sleep {event.t_s - before:.6f}")
        lines += [f"{ctl} {command} >>events.jsonl" for command in commands(event)]
        before = event.t_s
    return [*lines, ") &"]


def _relay_lines(stack: StackRun) -> tuple[list[str], list[str]]:
    """Lines that start the server's relay of a stack and wait until it is ready, and the relay's command. Its files
    have the same names as on the host."""
    command = runspec.relay_server_command(stack)
    lines = [f"{shlex.join(runspec.certificate_command())} 2>/dev/null || exit 2"] if stack.certificate else []
    limit = f"ulimit -f {runspec.RELAY_OUTPUT_BYTES >> 9}"  # in blocks of 512 bytes
    lines += [
        f"( {limit}; exec {shlex.join(command)} ) >relay-server.jsonl 2>relay-server.stderr &",
        "relay=$! tries=0 nap=1",  # in hundredths of a second; each look takes two processes
        "until grep -qs '\"ready\"' relay-server.jsonl; do",
        f'how="was not ready within {RELAY_READY_S} s"',
        'kill -0 $relay 2>/dev/null || { how="ended before it was ready"; tries=-1; }',
        f"[ $tries -ge 0 ] && [ $tries -lt {RELAY_READY_S * 100} ] || {{",
        "words=$(tail -n1 relay-server.stderr)",
        f'echo "the server\'s relay {shlex.quote(command[0])} $how: ${{words:-it said nothing}}" >&2; exit 2; }}',
        "[ $tries -lt 100 ] || nap=25",
        "tries=$((tries + nap))",
        "sleep 0.$((nap / 10))$((nap % 10))",
        "done",
    ]
    return lines, command


def _relay_end_lines() -> list[str]:
    """Lines that record whether the server's relay has ended already, and end it by SIGTERM, or else by SIGKILL."""
    return [
        "[ -f dead ] || kill -0 $relay 2>/dev/null || echo relay >dead",
        "kill $relay 2>/dev/null",
        "tries=0",
        f"while kill -0 $relay 2>/dev/null && [ $tries -lt {RELAY_STOP_S * 100} ]; do",
        "tries=$((tries + 1))",
        "sleep 0.01",
        "done",
        "kill -9 $relay 2>/dev/null",
        f"rm -f {shlex.join(runspec.RELAY_SECRETS)}",
    ]


def script(spec: RunSpec, settings: dict[str, str]) -> tuple[str, dict[str, list[str]]]:
    """The run as a shell script, and the commands in it by name. `spec` is as the machine sees it."""
    server = runspec.server_command(spec, LINKS / "xlink-server", Path())
    player = runspec.player_command(spec, LINKS / "xlink-player", Path())
    relay_lines, relay = _relay_lines(spec.stack) if spec.stack else ([], [])
    if spec.stack:
        player = runspec.relay_command(spec, spec.stack, LINKS / "relay-run", Path(), player)
    control = CONTROL if spec.link_events else None
    shell = runspec.mpshell_command(spec, LINKS / "mpshell", Path(), player, control, settings=settings)
    lines = [
        f"{{ echo {shlex.quote(value)} >/proc/sys/{name.replace('.', '/')}; }} 2>/dev/null || "
        f"{{ echo {shlex.quote(f'this kernel does not take {name}={value}')} >&2; exit 2; }}"
        for name, value in settings.items()
    ]
    if spec.uses_mptcp:
        lines.append(f"{shlex.join(runspec.mptcp_limits_command(len(spec.paths), spec.mptcp_limits))} || exit 2")
    limit_s = spec.time_limit_s + runspec.HANG_GRACE_S
    lines += [
        "mkfifo /run/listening",
        f"{shlex.join(server)} >/run/listening 2>server.stderr &",
        "server=$!",
        "exec 3</run/listening",  # kept open, because the server may write to it later
        "read -r line <&3 || { cat server.stderr >&2; exit 2; }",
        'echo "$line" >listening.json',
        *relay_lines,
        *(_event_lines(spec) if spec.link_events else []),
        f"timeout --foreground --kill-after=10 {limit_s:g} {shlex.join(shell)} >player.stdout 2>mpshell.stderr",
        "echo $? >mpshell.status",
        "kill -0 $server 2>/dev/null || echo server >dead",
        "cat /proc/net/netstat >server.netstat",
        *(_relay_end_lines() if relay else []),
        "kill $server 2>/dev/null",
        "wait $server",
        "echo $? >server.status",
        "exit 0",
    ]
    return "\n".join(lines) + "\n", {"server": server, "mpshell": shell} | ({"relay": relay} if relay else {})


# ---- the machine


def _command(spec: RunSpec, machine: KernelMachine, run_dir: Path, folder: Path, core: int | None) -> list[str]:
    limit_s = WALL_LIMIT_S + WALL_SHARE * spec.time_limit_s
    return [
        *(str(program("vkernel")), "--kernel", str(machine.file), "--seed", str(spec.seed), "--folder", str(folder)),
        *("--memory", str(machine.memory_mb), "--clock", str(machine.clock_s), "--log", str(run_dir / "kernel.log")),
        *("--stall-limit", str(STALL_LIMIT_S), "--limit", f"{limit_s:.0f}"),
        *(["--core", str(core)] if core is not None else []),
        *("--", "/bin/sh", "job.sh"),
    ]


def _environment() -> dict[str, str]:
    """The machine's environment, with the same values on every host except for TMPDIR, where the host keeps its
    memory."""
    own = {"TMPDIR": os.environ["TMPDIR"]} if "TMPDIR" in os.environ else {}
    return ENVIRONMENT | own


async def _boot(command: list[str], run_dir: Path) -> tuple[int, str]:
    """Runs the machine to its end and returns vkernel's exit code and last words. Whatever happens, the machine
    ends."""
    stderr_file = run_dir / "vkernel.stderr"
    process = await children.started(command, stderr_file, env=_environment(), start_new_session=True)
    try:
        code = await process.wait()
    finally:
        await children.stop(process, STOP_LIMIT_S)
    last_lines = last_words(stderr_file)
    stderr_file.unlink()
    return code, last_lines


def _taken(run_dir: Path, name: str) -> str:
    """Reads and removes a file that the machine made for this process only. Empty if there is none."""
    file = run_dir / name
    text = file.read_text(errors="replace").strip() if file.is_file() else ""
    file.unlink(missing_ok=True)
    return text


def _events(spec: RunSpec, answers: str) -> list[DoneEvent]:
    planned = [DoneEvent(event.t_s, command) for event in spec.link_events for command in commands(event)]
    said = [json.loads(line) for line in answers.splitlines()]
    return [
        DoneEvent(event.t_s, event.command, answer["t_s"]) if answer.get("ok") else event
        for event, answer in zip(planned, [*said, *[{}] * len(planned)], strict=False)
    ]


def _code(text: str) -> dict[str, Any]:
    code = int(text) if text.isdecimal() else None
    return exit_state(-(code - 128) if code is not None and code > 128 else code)


def _ended(spec: RunSpec, run_dir: Path, stopped: str | None, members: dict[str, Any]) -> Ended:
    """The facts about the run. `stopped`: what ended the machine early. `members`: facts that are not from files."""
    started = all((run_dir / name).is_file() for name in ("mpshell.json", "player.jsonl"))
    if not started and stopped is None:
        raise RunRefusedError(f"the run {spec.run_id} could not start: {last_words(run_dir / 'mpshell.stderr')}")
    if not (run_dir / "mpshell.json").is_file():
        summary = record.silent_links(spec, {"exit": {"code": None, "signal": "SIGKILL"}})
        (run_dir / "mpshell.json").write_text(json.dumps(summary, indent=1) + "\n")
    emulator = json.loads((run_dir / "mpshell.json").read_text())
    shell, server = _taken(run_dir, "mpshell.status"), _taken(run_dir, "server.status")
    dead = _taken(run_dir, "dead") or None
    outcome, message = record.programs_ended(run_dir, emulator["exit"], dead, hung=shell == str(HUNG), stopped=stopped)
    events = _events(spec, _taken(run_dir, "events.jsonl"))
    listening = json.loads(_taken(run_dir, "listening.json") or "{}")
    netstat = _taken(run_dir, "server.netstat")
    return Ended(
        outcome=outcome,
        message=message,
        fidelity=fidelity.judge(emulator, events, exact=True),
        exits={"mpshell": _code(shell), "server": _code(server), "player": emulator["exit"]},
        facts=record.program_facts(run_dir, emulator, events, listening, netstat) | members.pop("facts"),
        **members,
    )


def _owner(spec: RunSpec, folder: Path) -> pwd.struct_passwd | None:
    """The owner of the machine's folder in place of root, so that vkernel becomes that user. None: the owner stays this
    process's user, because no other one can reach all files of the run."""
    files = [link.resolve() for link in (folder / LINKS).iterdir()] + (spec.stack.files() if spec.stack else [])
    return confine.user() if confine.can_reach(files) else None


def _prepare(spec: RunSpec, run_dir: Path) -> tuple[dict[str, str], dict[str, list[str]], str | None]:
    """Makes the machine's folder. The last value is the name of its owner."""
    folder = run_dir / FOLDER
    names = ("links", "qlog", *((captures.FOLDER,) if spec.pcap else ()))
    for each in (folder, *(place / name for place in (run_dir, folder) for name in names)):
        each.mkdir()
    settings = runspec.sysctls(spec)
    text, inner = script(inside(spec, folder), settings)
    (folder / "job.sh").write_text(text)
    user = _owner(spec, folder)
    if user is None:
        return settings, inner, None
    for each in (folder, *(folder / name for name in names)):
        os.chown(each, user.pw_uid, user.pw_gid)
    return settings, inner, user.pw_name


class Kernel(Arena):
    name = "kernel"
    about = "a kernel in virtual time"
    exact = True
    s_per_run = 0.5
    s_per_video_mb = 0.5
    program_names = (*PROGRAM_NAMES, "vkernel-init", "vkernel-seed.so")

    def machine(self) -> KernelMachine:
        return kernel_machine()

    def check(self) -> None:
        """Builds a kernel first if there is none or it is out of date."""
        if (sentence := self.look()) is not None:
            print(sentence, file=sys.stderr)
            vkernel.build()

    def look(self) -> str | None:
        check_tools(TOOLS)
        minutes = f"{vkernel.MINUTES} minutes of processor time"
        if vkernel.at_hand() is None:
            vkernel.check_recipe()
            return f"The first run in the kernel arena builds its kernel: about {minutes}."
        if (changed := vkernel.stale()) is not None:
            other = f"The kernel in {vkernel.cache_folder()} has another {changed}"
            return f"{other}, so the right one is taken or built: up to {minutes}."
        return None

    def why_not(self) -> str | None:
        return vkernel.why_not()

    def refuses_flow(self, cc: str) -> str | None:
        kernel = vkernel.at_hand()
        if kernel is None or kernel_cc(cc) in (has := vkernel.controllers(kernel)):
            return None
        return f"the kernel of this arena has no congestion controller '{cc}', but {', '.join(has)}"

    async def execute(self, spec: RunSpec, run_dir: Path) -> dict[str, Any]:
        if spec.kernel is None:
            raise UserError(f"{spec.run_id}: run.json: config.kernel: a run of the kernel arena names its kernel.")
        settings, inner, user = _prepare(spec, run_dir)
        async with one_core() as core:
            started, begin = datetime.now(UTC), time.monotonic()
            absolute_dir = run_dir.resolve()
            code, last_lines = await _boot(
                _command(spec, spec.kernel, absolute_dir, absolute_dir / FOLDER, core), run_dir
            )
            wall_s = time.monotonic() - begin
        shutil.rmtree(run_dir / FOLDER / LINKS, ignore_errors=True)
        confine.gather(run_dir / FOLDER, run_dir)
        last_lines = last_lines.removeprefix("vkernel: ")
        stopped = code != 0 and last_lines.startswith(("time stood still", "after ", "the kernel panicked"))
        if code != 0 and not stopped:
            raise RunRefusedError(f"the run {spec.run_id} could not be done: {last_lines}")
        kernel_record = {
            "started": started,
            "wall_s": wall_s,
            "commands": {"kernel": _command(spec, spec.kernel, run_dir, run_dir, None)} | inner,
            "facts": {"sysctls": settings, "user": user},
        }
        try:
            ended = _ended(spec, run_dir, last_lines if stopped else None, kernel_record)
        except (ValueError, LookupError, TypeError, AttributeError, FileNotFoundError) as error:
            message = f"the run {spec.run_id} left files that are no records of one: {error!r:.200}"
            raise RunRefusedError(message) from None
        if code == 0 and last_lines.startswith("the machine's memory"):
            ended = replace(ended, message="; ".join(filter(None, (ended.message, last_lines))))
        for name in ("mpshell.stderr", "server.stderr", "player.stdout"):  # the same files as of a wall-clock run
            (run_dir / name).touch()
        return ended.record(spec, run_dir)


def kernel_machine(kernel: Path | None = None) -> KernelMachine:
    """The machine that runs boot, by content. `kernel`: another kernel than at_hand()'s."""
    kernel = kernel.resolve() if kernel else vkernel.at_hand()
    if kernel is None:
        raise UserError(f"{vkernel.why_not()}.")
    vkernel.check(kernel)
    options = hashlib.sha256(vkernel.options_of(kernel).encode()).hexdigest()
    return KernelMachine(
        file=kernel,
        sha256=vkernel.sha256(kernel),
        options_sha256=options,
        libraries_sha256=vkernel.libraries_sha256(),
    )


ARENA = Kernel()
