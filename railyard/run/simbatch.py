"""Processes of `xlink-sim --batch`: each does one run after the other, each in a copy of itself.

That saves the start of a program for every run, and parsing the same traces again."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

Status = int | None
"""Exit status; a signal as a negative number; None: the run did not end within its limit."""


class Batches:
    """Those of a campaign, by program. A run takes one that is idle, or starts one."""

    def __init__(self) -> None:
        self._idle: dict[Path, list[Process]] = {}
        self._without: set[Path] = set()  # programs of before --batch

    async def run(self, program: Path, job: Path, out: Path, limit_s: float) -> tuple[bool, Status]:
        """False: this program cannot do it so."""
        line = f"{job}\t{out}"
        if program in self._without or line.count("\t") > 1 or "\n" in line:
            return False, None
        idle = self._idle.setdefault(program, [])
        process = idle.pop() if idle else await _start(program)
        status, answer = None, b""
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(limit_s):
                    answer = await _asked(process, line)
                    if not answer:  # it has ended: older than --batch, or killed
                        status = await process.wait()
        finally:
            if not answer:
                await _stop(process)
        if answer:
            idle.append(process)
            return True, int(answer)
        if status is not None and status >= 0:
            self._without.add(program)
            return False, None
        return True, status

    async def close(self) -> None:
        for process in [each for idle in self._idle.values() for each in idle]:
            await _stop(process)


async def _start(program: Path) -> Process:
    command = ("setpriv", "--pdeathsig", "KILL", "--", str(program), "--batch")
    return await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)


async def _asked(process: Process, line: str) -> bytes:
    if process.stdin is None or process.stdout is None:
        raise ValueError("the process was started without pipes")
    with suppress(ConnectionError):
        process.stdin.write(f"{line}\n".encode())
        await process.stdin.drain()
    return await process.stdout.readline()


async def _stop(process: Process) -> None:
    """And its run, which dies with it."""
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()


_BATCHES: ContextVar[Batches | None] = ContextVar("batches", default=None)


def batches() -> Batches | None:
    """Those of the campaign under way."""
    return _BATCHES.get()


@asynccontextmanager
async def batching() -> AsyncIterator[None]:
    """Runs within it share their processes."""
    own = Batches()
    token = _BATCHES.set(own)
    try:
        yield
    finally:
        _BATCHES.reset(token)
        await own.close()
