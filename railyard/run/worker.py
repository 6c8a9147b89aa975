"""One run on the wall clock: `python -m railyard.run.worker RUN_DIR`.

RUN_DIR holds `spec.json`. The worker starts the server outside of the shell, runs the player inside of mpshell, and
leaves beside `spec.json` all logs and `run.json`. Where that takes place is the site: in the mpshell arena the network
namespace of the worker itself (it is started under `unshare --net`), in the docker arena containers. Namespace,
containers and all that is in them are gone when the worker and its children are: nothing stays behind on the machine.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO, NoReturn, Protocol

from railyard.base import provenance
from railyard.base.errors import UserError
from railyard.base.jsonl import read_jsonl
from railyard.base.paths import program
from railyard.run import confine, containers, fidelity, lateness, realtime, runspec
from railyard.run.lateness import Lateness
from railyard.run.linkevents import Conductor, DoneEvent
from railyard.run.machine import Machine, Watch
from railyard.run.outcome import StartError, after_death, exit_state, joins, last_words, outcome_of, start_lag_s
from railyard.run.runspec import RunSpec

SCHEMA = 1
LISTEN_LIMIT_S = 15.0
STOP_LIMIT_S = 10.0
LINE_BYTES = 4096  # of a record that says `ready`, at most
PR_SET_CHILD_SUBREAPER = 36
SERVER_FOLDER, PLAYER_FOLDER = ".server", ".player"  # in the run's folder while it goes on


def _terminate(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + _signal)


@dataclass(frozen=True)
class Start:
    """How a program is started."""

    recorded: list[str]  # the command for the record: with its files where they will lie
    command: list[str]
    rights: list[str] = field(default_factory=list)  # arguments of setpriv
    folder: Path | None = None  # the current directory
    fds: tuple[int, ...] = ()  # descriptors that the program keeps
    real_time: bool = False  # below mpshell, which does this for the player itself


def _spawn(
    start: Start, log: Path, *, fds: Sequence[int] = (), is_relay: bool = False, **options: Any
) -> subprocess.Popen[bytes]:
    """A child that ends when the worker does, whatever ends the worker. Where it may not be real-time, a session of its
    own gives it a scheduling group of its own (autogroup)."""

    def prepare() -> None:
        if is_relay:
            _bound_files()
        if start.real_time:
            realtime.enter(inherited=is_relay)

    with log.open("wb") as stderr:
        return subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", *start.rights, "--", *start.command],
            stderr=stderr,
            stdin=subprocess.DEVNULL,
            cwd=start.folder,
            pass_fds=(*start.fds, *fds),
            start_new_session=True,
            preexec_fn=prepare,  # noqa: PLW1509  the thread of link events starts later
            **options,
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
            raise StartError(last_words(log))
        text += piece
    line: dict[str, Any] = json.loads(text.split(b"\n")[0])
    return line


def _start_relay(site: Site, run_dir: Path, commands: dict[str, list[str]]) -> subprocess.Popen[bytes] | None:
    """The server's relay of a stack, once it is ready; its records go to relay-server.jsonl."""
    starting = site.relay()
    if starting is None:
        return None
    commands["relay"] = starting.recorded
    records, log = run_dir / "relay-server.jsonl", run_dir / "relay-server.stderr"
    with records.open("wb") as out:
        relay = _spawn(starting, log, stdout=out, is_relay=True)
    deadline = time.monotonic() + LISTEN_LIMIT_S
    descriptor = os.pidfd_open(relay.pid)
    try:
        with records.open("rb") as told:
            while not any(map(_says_ready, _new_lines(told))):
                ended = select.select([descriptor], [], [], 0.01)[0]
                if ended or time.monotonic() > deadline:
                    _stop(relay)
                    how = "ended before it was ready" if ended else f"was not ready within {LISTEN_LIMIT_S:g} s"
                    name = site.spec.stack.server[0] if site.spec.stack else starting.recorded[0]
                    raise StartError(f"the server's relay {name} {how}: {last_words(log)}")
    finally:
        os.close(descriptor)
    return relay


def _new_lines(file: BinaryIO) -> Iterator[bytes]:
    """The whole lines that were added to a file since the last call; longer ones in pieces."""
    while line := file.readline(LINE_BYTES):
        if not line.endswith(b"\n") and len(line) < LINE_BYTES:  # not whole yet
            file.seek(-len(line), os.SEEK_CUR)
            return
        yield line


def _says_ready(line: bytes) -> bool:
    """A relay may print anything, and much of it."""
    if b'"ready"' not in line:
        return False
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and record.get("event") == "ready"


def _first_dead(server: subprocess.Popen[bytes], relay: subprocess.Popen[bytes] | None) -> str | None:
    """Who has ended already of the server's side."""
    if server.poll() is not None:
        return "server"
    return "relay" if relay is not None and relay.poll() is not None else None


def _bound_files() -> None:
    """A relay that floods its output ends, rather than filling the disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (runspec.RELAY_OUTPUT_BYTES, runspec.RELAY_OUTPUT_BYTES))


class Site(Protocol):
    """Where a run takes place."""

    spec: RunSpec
    # Whether player and server are children of the worker.
    own_children: bool

    @property
    def control_folder(self) -> Path:
        """Where mpshell's control socket is for the worker."""
        ...

    def prepare(self) -> None: ...

    def server(self) -> Start: ...

    def relay(self) -> Start | None:
        """The server's relay of a stack, none for other schemes."""
        ...

    def mpshell(self, control: str) -> Start:
        """Once the server listens; does what has to be done before mpshell starts. `control` is the socket that the
        worker will connect to, if links are to change."""
        ...

    def netstat(self) -> str:
        """The protocol counters of the server's namespace, while the server is there."""
        ...

    def gather(self) -> None:
        """Once server and player have ended: what they wrote joins the run's files."""
        ...

    def facts(self) -> dict[str, Any]:
        """What the run's record says of the place."""
        ...

    def clear(self) -> None:
        """Leaves nothing behind, however the run ended."""
        ...


def _set_up_namespace(spec: RunSpec) -> dict[str, str]:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True, capture_output=True)
    settings = runspec.sysctls(spec)
    for name, value in settings.items():
        try:
            provenance.write_sysctl(name, value)
        except OSError as error:
            raise StartError(f"this kernel does not take {name}={value}: {error.strerror}") from None
    if spec.uses_mptcp:
        limits = runspec.mptcp_limits_command(len(spec.paths), spec.mptcp_limits)
        subprocess.run(limits, check=True, capture_output=True)
    return {name: provenance.read_sysctl(name) or "" for name in settings}


def _make_certificate(folder: Path, owner: tuple[int, int] | None) -> None:
    """The certificate and the key of the server's relay, which runs as `owner`: user and group."""
    try:
        subprocess.run(runspec.certificate_command(folder), check=True, capture_output=True)
    except FileNotFoundError:
        raise StartError("openssl is not there to make the relay's certificate; install the package openssl") from None
    if owner is not None:
        for name in runspec.RELAY_SECRETS:
            os.chown(folder / name, *owner)


def _remove_secrets(folder: Path) -> None:
    for name in runspec.RELAY_SECRETS:
        (folder / name).unlink(missing_ok=True)


class Namespace:
    """The worker's own network namespace. Player and server run as an unprivileged user, where there is the right to
    change users."""

    own_children = True

    def __init__(self, spec: RunSpec, run_dir: Path) -> None:
        self.spec, self.run_dir = spec, run_dir
        self.settings: dict[str, str] = {}
        self.control_folder = run_dir
        # A stack that the unprivileged user cannot reach runs as who started the worker, and the player with it.
        self.user = confine.user() if spec.stack is None or confine.can_reach(spec.stack.files()) else None
        self.programs: dict[str, int] = {}  # descriptors of their folders

    def prepare(self) -> None:
        self.settings = _set_up_namespace(self.spec)
        if self.user is not None:
            for name in (SERVER_FOLDER, PLAYER_FOLDER):
                confine.make_folder(self.run_dir / name, self.user)
            relays = ("relay-run",) if self.spec.stack else ()
            for name in ("xlink-server", "xlink-player", *relays):
                self.programs[name] = os.open(program(name).parent, os.O_PATH)

    def _found(self, name: str) -> Path:
        """The program for those who may not enter the folders above it."""
        return Path(f"/proc/self/fd/{self.programs[name]}", name)

    def _server_folder(self) -> Path:
        return self.run_dir if self.user is None else self.run_dir / SERVER_FOLDER

    def relay(self) -> Start | None:
        stack = self.spec.stack
        if stack is None:
            return None
        recorded = runspec.relay_server_command(stack)
        folder = self._server_folder()
        if stack.certificate:
            _make_certificate(folder, (self.user.pw_uid, self.user.pw_gid) if self.user else None)
        right = "net_admin" if containers.relay_needs_net_admin(stack) else None
        rights = [] if self.user is None else confine.words(self.user, right)
        return Start(recorded, recorded, rights=rights, folder=folder, real_time=self.spec.real_time)

    def server(self) -> Start:
        recorded = runspec.server_command(self.spec, program("xlink-server"), self.run_dir)
        if self.user is None:
            return Start(recorded, recorded, real_time=self.spec.real_time)
        right = "net_admin" if containers.server_needs_net_admin(self.spec) else None
        command = runspec.server_command(self.spec, self._found("xlink-server"), Path())
        return Start(
            recorded,
            command,
            rights=confine.words(self.user, right),
            folder=self.run_dir / SERVER_FOLDER,
            fds=(self.programs["xlink-server"],),
            real_time=self.spec.real_time,
        )

    def mpshell(self, control: str) -> Start:
        events = control if self.spec.link_events else None
        settings = runspec.sysctls(self.spec)

        def command(inner: list[str], user: str | None) -> list[str]:
            shell = program("mpshell")
            return runspec.mpshell_command(self.spec, shell, self.run_dir, inner, events, settings=settings, user=user)

        player = runspec.player_command(self.spec, program("xlink-player"), self.run_dir)
        if stack := self.spec.stack:
            player = runspec.relay_command(self.spec, stack, program("relay-run"), self.run_dir, player)
        recorded = command(player, None)
        if self.user is None:
            return Start(recorded, recorded)
        inner = runspec.player_command(self.spec, self._found("xlink-player"), Path())
        if stack:
            inner = runspec.relay_command(self.spec, stack, self._found("relay-run"), Path(), inner)
        return Start(
            recorded,
            command(inner, self.user.pw_name),
            folder=self.run_dir / PLAYER_FOLDER,
            fds=tuple(self.programs.values()) if stack else (self.programs["xlink-player"],),
        )

    def netstat(self) -> str:
        return Path("/proc/net/netstat").read_text()

    def gather(self) -> None:
        _remove_secrets(self._server_folder())
        for name in (SERVER_FOLDER, PLAYER_FOLDER):
            confine.gather(self.run_dir / name, self.run_dir)

    def facts(self) -> dict[str, Any]:
        name = self.user.pw_name if self.user is not None else None
        return {"sysctls": self.settings, "versions": provenance.versions(), "user": name}

    def clear(self) -> None:
        self.gather()
        while self.programs:
            os.close(self.programs.popitem()[1])


class Containers:
    """Three containers, see containers.py; the worker's children are the clients of the engine."""

    own_children = False

    def __init__(self, spec: RunSpec, run_dir: Path) -> None:
        self.spec, self.run_dir = spec, run_dir
        self.owner = containers.owner_of(os.getpid())
        self.names = {part: f"railyard-{os.getpid()}-{part}" for part in ("server", "outside", "client")}
        self.outside: subprocess.Popen[bytes] | None = None
        self.settings: dict[str, str] = {}
        self.libraries: dict[str, str] = {}
        self.control_folder = run_dir / containers.JOIN_FOLDER

    def prepare(self) -> None:
        """Folders that the containers can write to: the server is not root, and root has no right over others'."""
        folders = [self.run_dir / name for name in (containers.SERVER_FOLDER, containers.JOIN_FOLDER)]
        for folder in (*folders, folders[0] / "qlog"):
            folder.mkdir()
        if os.geteuid() == 0:
            for folder in (folders[0], folders[0] / "qlog"):
                os.chown(folder, containers.server_user(self.spec), containers.SERVER_UID)
        else:
            for folder in (*folders, folders[0] / "qlog", self.run_dir, self.run_dir / "links", self.run_dir / "qlog"):
                folder.chmod(0o777)

    def server(self) -> Start:
        command = containers.server_command(self.spec, self.run_dir, self.names["server"], self.owner)
        return Start(command, command)

    def relay(self) -> Start | None:
        if self.spec.stack is None:
            return None
        if self.spec.stack.certificate:
            user = containers.server_user(self.spec), containers.SERVER_UID
            _make_certificate(self.run_dir / containers.SERVER_FOLDER, user if os.geteuid() == 0 else None)
        command = containers.relay_command(self.spec.stack, self.names["server"])
        return Start(command, command)

    def mpshell(self, control: str) -> Start:
        del control  # another path inside
        command = containers.outside_command(self.run_dir, self.names["outside"], self.owner, self.names["server"])
        self.outside = _spawn(Start(command, command), self.run_dir / "outside.stderr", stdout=subprocess.DEVNULL)
        command = containers.client_command(self.spec, self.run_dir, self.names["client"], self.owner)
        return Start(command, command)

    def netstat(self) -> str:
        names = list(runspec.sysctls(self.spec))
        files = [*(Path("/proc/sys", *name.split(".")) for name in names), containers.SHARE / "versions"]
        text = containers.read_files(self.names["server"], [*files, Path("/proc/net/netstat")]).splitlines()
        self.settings = dict(zip(names, (" ".join(line.split()) for line in text), strict=False))
        libraries = [line.partition("=") for line in text[len(names) :] if ":" not in line]
        self.libraries = {name: version for name, _, version in libraries}
        return "\n".join(line for line in text if line.startswith(("TcpExt:", "IpExt:", "MPTcpExt:")))

    def facts(self) -> dict[str, Any]:
        ours = {name: version for name, version in provenance.versions().items() if name in ("railyard", "python")}
        return {"sysctls": self.settings, "versions": ours | self.libraries, "containers": containers.facts()}

    def clear(self) -> None:
        containers.remove(list(self.names.values()))
        if self.outside is not None:
            _stop(self.outside)
        self._gather()

    def gather(self) -> None:
        """Later: the containers have not ended yet."""

    def _gather(self) -> None:
        """The server's files join the player's."""
        _remove_secrets(self.run_dir / containers.SERVER_FOLDER)
        confine.gather(self.run_dir / containers.SERVER_FOLDER, self.run_dir)
        shutil.rmtree(self.run_dir / containers.JOIN_FOLDER, ignore_errors=True)
        if (self.run_dir / "outside.stderr").is_file() and not (self.run_dir / "outside.stderr").stat().st_size:
            (self.run_dir / "outside.stderr").unlink()


def execute(spec: RunSpec, run_dir: Path) -> dict[str, Any]:
    """Carries the run out and returns its record. Raises StartError when a program refuses to start."""
    for folder in ("links", "qlog"):
        (run_dir / folder).mkdir(exist_ok=True)
    site: Site = Containers(spec, run_dir) if spec.arena == "docker" else Namespace(spec, run_dir)
    try:
        site.prepare()
        record = _execute_at(site, spec, run_dir)
    finally:
        site.clear()
    return record


def _watching(shell: Start, outside: Sequence[subprocess.Popen[bytes]]) -> Start:
    """mpshell records how long these wait for a core, too."""
    program, *rest = shell.command
    return replace(shell, command=[program, *(word for each in outside for word in ("--watch", str(each.pid))), *rest])


def _verdict(
    site: Site, run_dir: Path, emulator: dict[str, Any], events: Sequence[DoneEvent], machine: Machine, *, fifo: bool
) -> fidelity.Fidelity:
    """From what mpshell recorded, and what that means for what the player reports. `fifo`: of the server's side."""
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
    with _spawn(starting, run_dir / "server.stderr", stdout=subprocess.PIPE) as server:
        try:
            listening = _wait_listening(server, run_dir / "server.stderr")
            relay = _start_relay(site, run_dir, commands)
            inner = site.mpshell(conductor.control)
            commands["mpshell"] = inner.recorded
            if site.own_children:
                inner = _watching(inner, [server, relay] if relay else [server])
            with (run_dir / "player.stdout").open("wb") as stdout:
                fds = [conductor.folder_fd] if spec.link_events else []
                shell = _spawn(inner, run_dir / "mpshell.stderr", stdout=stdout, fds=fds)
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
            dead = _first_dead(server, relay)
            in_real_time = all(realtime.has_entered(each.pid) for each in (server, relay) if each and site.own_children)
            netstat = site.netstat()
        finally:
            if relay is not None:
                _stop(relay)
            _stop(server)
    machine = watch.stop(own_children=site.own_children)
    site.gather()
    if not (run_dir / "mpshell.json").is_file():
        raise StartError(last_words(run_dir / "mpshell.stderr"))
    emulator = json.loads((run_dir / "mpshell.json").read_text())
    if not (run_dir / "player.jsonl").is_file():
        raise StartError(last_words(run_dir / "mpshell.stderr"))
    if conductor.refusal is not None:
        raise StartError(f"mpshell refused a link event: {conductor.refusal}")
    outcome, message = after_death(run_dir, dead, outcome_of(run_dir, emulator["exit"], hung=hung))
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
        "start_lag_s": start_lag_s(run_dir, emulator),
        "fidelity": _verdict(site, run_dir, emulator, events, machine, fifo=in_real_time).as_json(),
        **({"link_events": [event.as_json() for event in events]} if events else {}),
        "exit": {name: exit_state(code) for name, code in ends.items()} | {"player": emulator["exit"]},
        "config": spec.model_dump(mode="json"),
        "commands": commands,
        "listening": listening,
        "mptcp": {
            "server": joins(netstat),
            "player": joins(inner_netstat.read_text() if inner_netstat.is_file() else ""),
        },
        **site.facts(),
        "git": provenance.git_state(),
        "kernel": provenance.kernel(),
        "cpu": provenance.cpu(),
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
    except (StartError, UserError) as error:
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
