"""Starts and stops the processes that carry out runs. They end with this process, however it ends."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any


async def started(command: Sequence[str], log: Path, *, dies_by: str = "TERM", **options: Any) -> Process:
    """Starts a process with its standard error in a file. `dies_by`: the signal that it gets when this process ends."""
    words = ("setpriv", "--pdeathsig", dies_by, "--", *command)
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
