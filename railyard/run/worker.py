"""One run on the wall clock: `python -m railyard.run.worker RUN_DIR`.

RUN_DIR holds `spec.json`. The worker starts the server outside of mpshell, runs the player inside of it, and leaves all
logs and `run.json` beside `spec.json`. The place of this is the arena's site (site.py). It ends with the worker and its
children, so nothing stays behind on the machine.
"""

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO, NoReturn

from railyard.base.errors import UserError
from railyard.base.jsonl import read_jsonl
from railyard.experiment import arenas
from railyard.run import fidelity, lateness, realtime, record, runspec
from railyard.run.lateness import Lateness
from railyard.run.linkevents import Conductor, DoneEvent
from railyard.run.machine import Machine, Watch
from railyard.run.outcome import StartError, exit_state, last_words, start_lag_s
from railyard.run.record import Ended
from railyard.run.runspec import RunSpec
from railyard.run.site import Site, Start, spawn, stop

LISTEN_LIMIT_S = 15.0
LINE_BYTES = 4096  # at most, of a relay's record `ready`
PR_SET_CHILD_SUBREAPER = 36


def _terminate(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + _signal)


def _wait_listening(server: subprocess.Popen[bytes], log: Path) -> dict[str, Any]:
    """Waits for the server's `listening` line and returns it. Raises StartError."""
    output = server.stdout
    if output is None:
        raise ValueError("the server was started without a pipe to read from")
    deadline = time.monotonic() + LISTEN_LIMIT_S
    text = b""
    while b"\n" not in text:
        ready, _, _ = select.select([output], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise StartError(f"xlink-server did not listen within {LISTEN_LIMIT_S:g} s")
        piece = os.read(output.fileno(), 4096)
        if not piece:
            server.wait()
            raise StartError(last_words(log))
        text += piece
    line: dict[str, Any] = json.loads(text.split(b"\n")[0])
    return line


def _start_relay(site: Site, run_dir: Path, commands: dict[str, list[str]]) -> subprocess.Popen[bytes] | None:
    """Starts the server's relay of a stack and waits until it is ready. Its records go to relay-server.jsonl."""
    starting = site.relay()
    if starting is None:
        return None
    commands["relay"] = starting.recorded
    records, log = run_dir / "relay-server.jsonl", run_dir / "relay-server.stderr"
    with records.open("wb") as out:
        relay = spawn(starting, log, stdout=out, is_relay=True)
    deadline = time.monotonic() + LISTEN_LIMIT_S
    descriptor = os.pidfd_open(relay.pid)
    try:
        with records.open("rb") as lines:
            while not any(map(_says_ready, _new_lines(lines))):
                ended = select.select([descriptor], [], [], 0.01)[0]
                if ended or time.monotonic() > deadline:
                    stop(relay)
                    how = "ended before it was ready" if ended else f"was not ready within {LISTEN_LIMIT_S:g} s"
                    name = site.spec.stack.server[0] if site.spec.stack else starting.recorded[0]
                    raise StartError(f"the server's relay {name} {how}: {last_words(log)}")
    finally:
        os.close(descriptor)
    return relay


def _new_lines(file: BinaryIO) -> Iterator[bytes]:
    """The complete lines that were added to a file since the last call, in pieces of at most LINE_BYTES."""
    while line := file.readline(LINE_BYTES):
        if not line.endswith(b"\n") and len(line) < LINE_BYTES:  # not complete yet
            file.seek(-len(line), os.SEEK_CUR)
            return
        yield line


def _says_ready(line: bytes) -> bool:
    """Whether a line is the record `ready`. A relay may print other lines, even many and long ones."""
    if b'"ready"' not in line:
        return False
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and record.get("event") == "ready"


def _first_dead(server: subprocess.Popen[bytes], relay: subprocess.Popen[bytes] | None) -> str | None:
    """The program of the server's side that has ended already. None: both run."""
    if server.poll() is not None:
        return "server"
    return "relay" if relay is not None and relay.poll() is not None else None


def execute(spec: RunSpec, run_dir: Path) -> dict[str, Any]:
    """Carries out the run and returns its record. Raises StartError if a program refuses to start."""
    for folder in ("links", "qlog"):
        (run_dir / folder).mkdir(exist_ok=True)
    site: Site = arenas.load(spec.arena).site(spec, run_dir)
    try:
        site.prepare()
        return _execute_at(site, spec, run_dir)
    finally:
        site.clear()


def _watching(shell: Start, outside: Sequence[subprocess.Popen[bytes]]) -> Start:
    """The start of mpshell with options to record how long processes outside of it wait for a core."""
    program, *rest = shell.command
    return replace(shell, command=[program, *(word for each in outside for word in ("--watch", str(each.pid))), *rest])


def _why_no_summary(run_dir: Path, code: int) -> str:
    """The last line of mpshell, and the signal that ended it. The engine's client adds 128 to a signal's number."""
    words, number = last_words(run_dir / "mpshell.stderr"), -code if code < 0 else code - 128
    return f"{signal.Signals(number).name} ended mpshell: {words}" if number in set(signal.Signals) else words


def _verdict(
    site: Site, run_dir: Path, emulator: dict[str, Any], events: Sequence[DoneEvent], machine: Machine, *, fifo: bool
) -> fidelity.Fidelity:
    """The verdict from mpshell's records and the player's figures. `fifo`: the server's side was real-time."""
    late = Lateness.read(run_dir / runspec.LATENESS_FILE, runspec.shortest_delay_ms(site.spec))
    start_s = start_lag_s(run_dir, emulator)
    played = read_jsonl(run_dir / "player.jsonl")
    bounds = lateness.added(late, played, start_s) if late is not None and start_s is not None else None
    return fidelity.judge(emulator, events, machine, endpoints_fifo=fifo, lateness=late, added=bounds)


def _execute_at(site: Site, spec: RunSpec, run_dir: Path) -> dict[str, Any]:
    conductor = Conductor(spec.link_events, site.control_folder)
    starting = site.server()
    commands = {"server": starting.recorded}
    started, begin = datetime.now(UTC), time.monotonic()
    watch = Watch()
    hung = False
    relay: subprocess.Popen[bytes] | None = None
    with spawn(starting, run_dir / "server.stderr", stdout=subprocess.PIPE) as server:
        try:
            listening = _wait_listening(server, run_dir / "server.stderr")
            relay = _start_relay(site, run_dir, commands)
            inner = site.mpshell(conductor.control)
            commands["mpshell"] = inner.recorded
            if site.own_children:
                inner = _watching(inner, [server, relay] if relay else [server])
            with (run_dir / "player.stdout").open("wb") as stdout:
                fds = [conductor.folder_fd] if spec.link_events else []
                shell = spawn(inner, run_dir / "mpshell.stderr", stdout=stdout, fds=fds)
            if spec.link_events:
                conductor.start()
            try:
                shell.wait(spec.time_limit_s + runspec.HANG_GRACE_S)
            except subprocess.TimeoutExpired:
                hung = True
            finally:
                stop(shell)
                events = conductor.finish()
            wall_s = time.monotonic() - begin
            dead = _first_dead(server, relay)
            outside = [each.pid for each in (server, relay) if each]
            in_real_time = site.own_children and all(map(realtime.has_entered, outside))
            netstat = site.netstat()
        finally:
            if relay is not None:
                stop(relay)
            stop(server)
    machine = watch.stop(own_children=site.own_children)
    site.gather()
    if not (run_dir / "mpshell.json").is_file():
        raise StartError(_why_no_summary(run_dir, shell.returncode))
    emulator = json.loads((run_dir / "mpshell.json").read_text())
    if not (run_dir / "player.jsonl").is_file():
        raise StartError(last_words(run_dir / "mpshell.stderr"))
    if conductor.refusal is not None:
        raise StartError(f"mpshell refused a link event: {conductor.refusal}")
    outcome, message = record.programs_ended(run_dir, emulator["exit"], dead, hung=hung)
    codes = {"mpshell": shell.returncode, "server": server.returncode}
    ended = Ended(
        started,
        wall_s,
        outcome,
        message,
        _verdict(site, run_dir, emulator, events, machine, fifo=in_real_time),
        exits={name: exit_state(code) for name, code in codes.items()} | {"player": emulator["exit"]},
        commands=commands,
        facts=record.program_facts(run_dir, emulator, events, listening, netstat) | site.facts(),
    )
    return ended.record(spec, run_dir)


def main() -> int:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _terminate)
    # Orphans of children are re-parented to this process, so that it can end them.
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    run_dir = Path(sys.argv[1]).resolve()
    spec = RunSpec.model_validate_json((run_dir / "spec.json").read_text())
    try:
        run_record = execute(spec, run_dir)
    except (StartError, UserError) as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        _end_orphans()
    record.write(run_dir, run_record)
    return 0


def _end_orphans() -> None:
    """Kills the orphans that were re-parented to this worker. After a clean run there are none."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(child), signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(-1, 0)


if __name__ == "__main__":
    sys.exit(main())
