"""One run in a network namespace of its own: `python -m railyard.worker RUN_DIR`, started under `unshare --net`.

RUN_DIR holds `spec.json`. The worker sets the namespace up, starts the server outside of the shell, runs the player
inside of mpshell, and leaves beside `spec.json` all logs and `run.json`. The namespace and all that is in it are gone
when the worker and its children are: nothing stays behind on the machine.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from railyard import fidelity, provenance, runspec
from railyard.jsonl import read_jsonl, summary_of
from railyard.linkevents import Conductor
from railyard.paths import program
from railyard.runspec import RunSpec

SCHEMA = 1
LISTEN_LIMIT_S = 15.0
STOP_LIMIT_S = 10.0
PR_SET_CHILD_SUBREAPER = 36
INNER = Path(__file__).with_name("inner.sh")


class StartError(Exception):
    """A program refused to start; the message is its own sentence."""


def _terminate(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + _signal)


def _spawn(command: list[str], log: Path, **options: Any) -> subprocess.Popen[bytes]:
    """A child that ends when the worker does, whatever ends the worker."""
    with log.open("wb") as stderr:
        return subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", "--", *command], stderr=stderr, stdin=subprocess.DEVNULL, **options
        )


def _stop(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM, and SIGKILL if that does not end it."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _last_words(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def _wait_listening(server: subprocess.Popen[bytes], log: Path) -> dict[str, Any]:
    """The server's `listening` line. Waits for the line itself, never for a length of time."""
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
            raise StartError(_last_words(log))
        text += piece
    line: dict[str, Any] = json.loads(text.split(b"\n")[0])
    return line


def _exit_state(returncode: int | None) -> dict[str, Any]:
    if returncode is None:
        return {"code": None, "signal": None}
    if returncode < 0:
        return {"code": None, "signal": signal.Signals(-returncode).name}
    return {"code": returncode, "signal": None}


def _set_up_namespace(spec: RunSpec) -> dict[str, str]:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True, capture_output=True)
    settings = runspec.sysctls(spec)
    for name, value in settings.items():
        provenance.write_sysctl(name, value)
    if spec.transport == "mptcp":
        count = str(len(spec.paths))
        limits = ["ip", "mptcp", "limits", "set", "subflows", count, "add_addr_accepted", count]
        subprocess.run(limits, check=True, capture_output=True)
    return {name: provenance.read_sysctl(name) or "" for name in settings}


def _inner_command(spec: RunSpec, run_dir: Path) -> list[str]:
    settings = [f"{name}={value.replace(' ', ',')}" for name, value in runspec.sysctls(spec).items()]
    player = runspec.player_command(spec, program("xlink-player"), run_dir)
    return ["/bin/sh", str(INNER), str(run_dir / "player.netstat"), *settings, "--", *player]


def _joins(netstat: str) -> dict[str, int]:
    counters = provenance.mptcp_counters(netstat)
    return {name: value for name, value in counters.items() if name.startswith(("MPJoin", "MPCapable", "MPFallback"))}


def _outcome(run_dir: Path, shell: dict[str, Any], *, hung: bool) -> tuple[str, str]:
    """How the run ended, and a phrase about it. The ends that the player names are results; the others are faults."""
    summary = summary_of(read_jsonl(run_dir / "player.jsonl"))
    if hung:
        return "hung", "the player outlived its own time limit and was ended"
    if summary is not None:
        return str(summary["outcome"]), str(summary.get("message") or "")
    if shell["signal"]:
        return "crashed", f"the player died of {shell['signal']}"
    words = _last_words(run_dir / "mpshell.stderr")
    return "crashed", f"the player ended with code {shell['code']} and no summary: {words}"


def execute(spec: RunSpec, run_dir: Path) -> dict[str, Any]:
    """Carries the run out and returns its record. Raises StartError when a program refuses to start."""
    for folder in ("links", "qlog"):
        (run_dir / folder).mkdir(exist_ok=True)
    settings = _set_up_namespace(spec)
    inner = _inner_command(spec, run_dir)
    conductor = Conductor(spec.link_events, run_dir)
    control = conductor.control if spec.link_events else None
    commands = {
        "server": runspec.server_command(spec, program("xlink-server"), run_dir),
        "mpshell": runspec.mpshell_command(spec, program("mpshell"), run_dir, inner, control),
    }
    started, begin = datetime.now(UTC), time.monotonic()
    hung = False
    with _spawn(commands["server"], run_dir / "server.stderr", stdout=subprocess.PIPE) as server:
        try:
            listening = _wait_listening(server, run_dir / "server.stderr")
            with (run_dir / "player.stdout").open("wb") as stdout:
                fds = [conductor.folder_fd] if spec.link_events else []
                shell = _spawn(commands["mpshell"], run_dir / "mpshell.stderr", stdout=stdout, pass_fds=fds)
            if spec.link_events:
                conductor.start()
            try:
                shell.wait(spec.time_limit_s + runspec.HANG_GRACE_S)
            except subprocess.TimeoutExpired:
                hung = True
            finally:
                _stop(shell)
                events = conductor.finish()
            wall_s = time.monotonic() - begin
            server_died = server.poll() is not None
            netstat = Path("/proc/net/netstat").read_text()
        finally:
            _stop(server)
    if not (run_dir / "mpshell.json").is_file():
        raise StartError(_last_words(run_dir / "mpshell.stderr"))
    emulator = json.loads((run_dir / "mpshell.json").read_text())
    if not (run_dir / "player.jsonl").is_file():
        raise StartError(_last_words(run_dir / "mpshell.stderr"))
    if conductor.refusal is not None:
        raise StartError(f"mpshell refused a link event: {conductor.refusal}")
    outcome, message = _outcome(run_dir, emulator["exit"], hung=hung)
    if server_died:
        outcome, message = "server_died", f"the server ended during the run: {_last_words(run_dir / 'server.stderr')}"
    inner_netstat = run_dir / "player.netstat"
    ends = {"mpshell": shell.returncode, "server": server.returncode}
    return {
        "schema": SCHEMA,
        "run_id": spec.run_id,
        "identity": spec.identity(),
        "started": started.isoformat(timespec="seconds"),
        "wall_s": round(wall_s, 3),
        "outcome": outcome,
        "message": message,
        "fidelity": fidelity.judge(emulator, events).as_json(),
        **({"link_events": [event.as_json() for event in events]} if events else {}),
        "exit": {name: _exit_state(code) for name, code in ends.items()} | {"player": emulator["exit"]},
        "config": spec.model_dump(mode="json"),
        "commands": commands,
        "listening": listening,
        "mptcp": {
            "server": _joins(netstat),
            "player": _joins(inner_netstat.read_text() if inner_netstat.is_file() else ""),
        },
        "sysctls": settings,
        "git": provenance.git_state(),
        "kernel": provenance.kernel(),
        "cpu": provenance.cpu(),
        "versions": provenance.versions(),
    }


def main() -> int:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _terminate)
    # Whatever a dying child leaves becomes ours, so that it can be ended here.
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    run_dir = Path(sys.argv[1]).resolve()
    spec = RunSpec.model_validate_json((run_dir / "spec.json").read_text())
    try:
        record = execute(spec, run_dir)
    except StartError as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        _end_orphans()
    (run_dir / "run.json").write_text(json.dumps(record, indent=1) + "\n")
    (run_dir / "spec.json").unlink()
    return 0


def _end_orphans() -> None:
    """Kills what was re-parented to this worker. After a clean run there is nothing."""
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
