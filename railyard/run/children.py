"""Starts and stops processes of runs and builds. They end with this process."""

import asyncio
import os
import signal
import subprocess
import threading
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

MAKE_VARIABLES = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "VARIANT", "FAST_LINK")


def make_environment() -> dict[str, str]:
    """The environment for an ordinary build, without what a `make` that runs this process has set."""
    return {name: value for name, value in os.environ.items() if name not in MAKE_VARIABLES}


def ends_with_us(command: Sequence[str], by: str = "TERM") -> list[str]:
    """The command of a process that gets a signal when the thread that starts it ends."""
    return ["setpriv", "--pdeathsig", by, "--", *command]


async def started(command: Sequence[str], log: Path, *, dies_by: str = "TERM", **options: Any) -> Process:
    """Starts a process with its standard error in a file. `dies_by`: the signal that it gets when this process ends."""
    words = ends_with_us(command, dies_by)
    with log.open("wb") as stderr:
        return await asyncio.create_subprocess_exec(*words, stdin=DEVNULL, stdout=DEVNULL, stderr=stderr, **options)


async def stop(process: Process, limit_s: float) -> None:
    """Sends SIGTERM, and SIGKILL to its process group if it has not ended in time."""
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), limit_s)
    except TimeoutError:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def ending_signals() -> list[signal.Signals]:
    """The signals that end a command: not SIGHUP if it is ignored, as under nohup."""
    hup = [] if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else [signal.SIGHUP]
    return [signal.SIGINT, signal.SIGTERM, *hup]


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt, in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _interrupt) for number in ending_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def built(command: Sequence[str], limit_s: float | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
    """Carries out a build. A signal that ends this process, or the limit, also ends what the build has started. Raises
    KeyboardInterrupt, or subprocess.TimeoutExpired."""
    words = ends_with_us(command)
    with (
        interrupted_by_signals(),
        subprocess.Popen(words, stdin=subprocess.DEVNULL, process_group=0, text=True, **options) as process,
    ):
        try:
            output, _ = process.communicate(timeout=limit_s)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            raise
    return subprocess.CompletedProcess(words, process.returncode, output)
