"""The site of a run of real programs on the wall clock: what a worker needs from an arena, and how it starts
programs."""

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
    """The start of a program."""

    recorded: list[str]  # the command for the record, with the final places of its files
    command: list[str]
    rights: list[str] = field(default_factory=list)  # arguments of setpriv
    folder: Path | None = None  # the current directory
    fds: tuple[int, ...] = ()  # descriptors that the program keeps
    real_time: bool = False  # with lower priority than mpshell, which sets the player's itself


def spawn(
    start: Start, log: Path, *, fds: Sequence[int] = (), is_relay: bool = False, **options: Any
) -> subprocess.Popen[bytes]:
    """Starts a child that ends when the worker does, however the worker ends. If it may not be real-time, its own
    session gives it its own scheduling group (autogroup)."""

    def prepare() -> None:
        if is_relay:
            # A relay that floods its output is ended before it fills the disk.
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
    """Sends SIGTERM, and SIGKILL if that does not end the process."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Site(Protocol):
    """The place of a run."""

    spec: RunSpec
    # Whether player and server are children of the worker.
    own_children: bool

    @property
    def control_folder(self) -> Path:
        """The folder with mpshell's control socket, as the worker sees it."""
        ...

    def prepare(self) -> None: ...

    def server(self) -> Start: ...

    def relay(self) -> Start | None:
        """The server's relay of a stack. None for other schemes."""
        ...

    def mpshell(self, control: str) -> Start:
        """Prepares for mpshell, once the server listens, and returns its start. `control`: the socket to which the
        worker connects if links are to change."""
        ...

    def netstat(self) -> str:
        """The protocol counters of the server's namespace, while the server runs."""
        ...

    def gather(self) -> None:
        """Adds the files of server and player to those of the run, once both have ended."""
        ...

    def facts(self) -> dict[str, Any]:
        """The facts about the place for the run's record."""
        ...

    def clear(self) -> None:
        """Removes everything that the site has made, however the run ended."""
        ...


def make_certificate(folder: Path, owner: tuple[int, int] | None) -> None:
    """Makes the certificate and the key of the server's relay, which runs as `owner` (user and group)."""
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
