"""Where a run of real programs on the wall clock takes place: what the worker asks of an arena, and how it starts
programs."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from railyard.run import realtime, runspec
from railyard.run.outcome import StartError
from railyard.run.runspec import RunSpec

STOP_LIMIT_S = 10.0
SERVER_FOLDER, PLAYER_FOLDER = ".server", ".player"  # in the run's folder while it goes on


@dataclass(frozen=True)
class Start:
    """How a program is started."""

    recorded: list[str]  # the command for the record: with its files where they will lie
    command: list[str]
    rights: list[str] = field(default_factory=list)  # arguments of setpriv
    folder: Path | None = None  # the current directory
    fds: tuple[int, ...] = ()  # descriptors that the program keeps
    real_time: bool = False  # below mpshell, which does this for the player itself


def spawn(
    start: Start, log: Path, *, fds: Sequence[int] = (), is_relay: bool = False, **options: Any
) -> subprocess.Popen[bytes]:
    """A child that ends when the worker does, whatever ends the worker. Where it may not be real-time, a session of its
    own gives it a scheduling group of its own (autogroup)."""

    def prepare() -> None:
        if is_relay:
            # One that floods its output ends, rather than filling the disk.
            resource.setrlimit(resource.RLIMIT_FSIZE, (runspec.RELAY_OUTPUT_BYTES, runspec.RELAY_OUTPUT_BYTES))
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


def stop(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM, and SIGKILL if that does not end it."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


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


def make_certificate(folder: Path, owner: tuple[int, int] | None) -> None:
    """The certificate and the key of the server's relay, which runs as `owner`: user and group."""
    try:
        subprocess.run(runspec.certificate_command(folder), check=True, capture_output=True)
    except FileNotFoundError:
        raise StartError("openssl is not there to make the relay's certificate; install the package openssl") from None
    if owner is not None:
        for name in runspec.RELAY_SECRETS:
            os.chown(folder / name, *owner)


def remove_secrets(folder: Path) -> None:
    for name in runspec.RELAY_SECRETS:
        (folder / name).unlink(missing_ok=True)
