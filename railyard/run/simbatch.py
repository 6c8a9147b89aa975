"""Processes of `xlink-sim --batch`, each of which does one run after the other. A run that dies ends only its process.

This saves the start of a program for every run, and parsing the same traces again."""

import asyncio
import select
import subprocess
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from railyard.run.children import ends_with_us

Status = int | None
"""Exit status, or a signal as a negative number. None: the run did not end within its limit."""


def _command(program: Path) -> list[str]:
    """The command of a process that dies with the thread that started it."""
    return ends_with_us([str(program), "--batch"], "KILL")


class Batches:
    """The processes of a campaign, by program. A run takes an idle process or starts one."""

    def __init__(self) -> None:
        self._idle: dict[Path, list[Process]] = {}
        self._without: set[Path] = set()  # programs older than --batch

    async def run(self, program: Path, job: Path, out: Path, limit_s: float) -> tuple[bool, Status]:
        """Does a run. (False, None): the program, or a name in the job, does not allow --batch."""
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
                await stop(process)
        if answer:
            idle.append(process)
            return True, int(answer)
        if status is not None and status >= 0:
            self._without.add(program)
            return False, None
        return True, status

    async def close(self) -> None:
        for process in [each for idle in self._idle.values() for each in idle]:
            await stop(process)


async def _start(program: Path) -> Process:
    # In a session of its own: Ctrl-C reaches only this process, which then stops the others.
    return await asyncio.create_subprocess_exec(
        *_command(program), stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True
    )


async def _asked(process: Process, line: str) -> bytes:
    if process.stdin is None or process.stdout is None:
        raise ValueError("the process was started without pipes")
    with suppress(ConnectionError):
        process.stdin.write(f"{line}\n".encode())
        await process.stdin.drain()
    return await process.stdout.readline()


async def stop(process: Process) -> None:
    """Kills a process and its run."""
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()


_BATCHES: ContextVar[Batches | None] = ContextVar("batches", default=None)


def batches() -> Batches | None:
    """The processes of the campaign under way. None: there is none."""
    return _BATCHES.get()


@asynccontextmanager
async def batching() -> AsyncIterator[None]:
    """A context in which runs share processes."""
    own = Batches()
    token = _BATCHES.set(own)
    try:
        yield
    finally:
        _BATCHES.reset(token)
        await own.close()


class Batch:
    """One such process, for a caller that blocks. It starts when it is needed, and again after a run that did not
    end."""

    def __init__(self, program: Path) -> None:
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, job: Path, out: Path, limit_s: float) -> Status:
        """Does a run. The two paths must have neither tabs nor line breaks."""
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            with (out / "sim.stderr").open("ab") as stderr:  # for errors at its start; each run writes to its own file
                self._process = subprocess.Popen(
                    _command(self._program), stdin=PIPE, stdout=PIPE, stderr=stderr, bufsize=0
                )
        asked, answers = self._process.stdin, self._process.stdout
        if asked is None or answers is None:
            raise ValueError("the process was started without pipes")
        with suppress(BrokenPipeError):
            asked.write(f"{job}\t{out}\n".encode())
        waiting = select.poll()
        waiting.register(answers, select.POLLIN)
        status = None
        if waiting.poll(limit_s * 1000):
            if answer := answers.readline():
                return int(answer)
            status = self._process.wait()
        self.close()
        return status

    def close(self) -> None:
        """Kills the process, and a run under way with it."""
        process, self._process = self._process, None
        if process is not None:
            with process:
                process.kill()


@contextmanager
def batch(program: Path) -> Iterator[Batch]:
    own = Batch(program)
    try:
        yield own
    finally:
        own.close()
