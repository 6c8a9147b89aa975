"""Helpers for tests of mpshell: real namespaces, real TUN devices, real sockets."""

import json
import os
import select
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from railyard.base.paths import programs_dir

MPSHELL = programs_dir() / "mpshell"
TIMEOUT_S = 30


pytestmark = pytest.mark.privileged

FLOOD_RECEIVER = """
import os, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((os.environ["MPSHELL_PATH_0_ADDR"], 0))
s.settimeout(5)
s.sendto(b"hello", (os.environ["MPSHELL_GATEWAY"], int(sys.argv[1])))
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    s.recv(2000)
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """12 Mbit/s: one opportunity every ms."""
    path = tmp_path / "12mbps.trace"
    path.write_text("".join(f"{ms}\n" for ms in range(1, 101)))
    return path


def path_option(name: str, trace: Path, delay: float = 5, more: str = "") -> list[str]:
    return ["--path", f"{name}:up={trace},down={trace},delay={delay}{more}"]


def run(*arguments: str | Path, timeout: float = TIMEOUT_S) -> subprocess.CompletedProcess[str]:
    """Runs mpshell to its end; its devices must be gone then."""
    command = [str(MPSHELL), *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as shell:
        try:
            out, err = shell.communicate(timeout=timeout)
        finally:
            shell.kill()
    assert not {name for name in devices() if name.startswith(f"mp{shell.pid % 100000}-")}
    return subprocess.CompletedProcess(command, shell.returncode, out, err)


def devices() -> set[str]:
    return {name for _, name in socket.if_nameindex()}


def processes_with(mark: str) -> list[int]:
    """IDs of processes whose command line has `mark`."""
    found = []
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit() and int(directory.name) != os.getpid():
            try:
                if mark.encode() in (directory / "cmdline").read_bytes():
                    found.append(int(directory.name))
            except OSError:
                continue
    return found


@contextmanager
def served(serve: Callable[[socket.socket, threading.Event], None]) -> Iterator[int]:
    """A UDP server outside of the shell, on all addresses; gives its port."""
    stop = threading.Event()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("0.0.0.0", 0))  # noqa: S104  the shell's gateways are among these addresses
        server.settimeout(0.1)
        thread = threading.Thread(target=serve, args=(server, stop))
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            stop.set()
            thread.join()


def echo(server: socket.socket, stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            data, client = server.recvfrom(2000)
        except TimeoutError:
            continue
        server.sendto(data, client)


@contextmanager
def under_way(*arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """An mpshell whose command has said `ready` and does not end by itself."""
    with subprocess.Popen([MPSHELL, *arguments], stdout=subprocess.PIPE, text=True) as shell:
        try:
            assert shell.stdout is not None
            assert select.select([shell.stdout], [], [], TIMEOUT_S)[0], "the command did not start"
            assert shell.stdout.readline() == "ready\n"
            yield shell
        finally:
            shell.kill()


def flood(server: socket.socket, stop: threading.Event) -> None:
    """Sends 1472-byte datagrams to each client that sends a hello, as fast as possible."""
    client: Any = None
    while not stop.is_set():
        if client is None:
            try:
                client = server.recvfrom(2000)[1]
            except TimeoutError:
                continue
        try:
            server.sendto(b"x" * 1472, client)
        except OSError:  # the shell has ended
            return


def summary_of(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded
