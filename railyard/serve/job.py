"""The one simulator campaign that the form may start at a time: `railyard run` as a child, with a time limit."""

import asyncio
import os
import shlex
import signal
import sys
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from railyard.base.errors import UserError
from railyard.base.words import printable
from railyard.run.folders import Identity, find_existing

LIMIT_S = 120.0
GRACE_S = 10.0  # for a clean end that keeps completed runs
LINES = 12  # shown lines of its output


@dataclass
class Started:
    """A campaign that the form started."""

    arguments: tuple[str, ...]  # for `railyard`
    runs: int
    identity: Identity  # identity of its results
    begun: float = field(default_factory=time.monotonic)
    ended: float | None = None
    code: int | None = None
    stopped: bool = False
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=LINES))

    @property
    def command(self) -> str:
        """The command line of the campaign."""
        return shlex.join(("railyard", *self.arguments))

    @property
    def running(self) -> bool:
        return self.ended is None

    @property
    def seconds(self) -> float:
        return (self.ended or time.monotonic()) - self.begun


class Job:
    def __init__(self, results: Path, limit_s: float = LIMIT_S) -> None:
        self._results, self.limit_s = results, limit_s
        self.last: Started | None = None
        self._task: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None

    @property
    def is_running(self) -> bool:
        return self.last is not None and self.last.running

    def folder(self) -> Path | None:
        """The folder of the last campaign's results. None: it does not exist yet."""
        return None if self.last is None else find_existing(self.last.identity, self._results)

    async def start(self, arguments: Sequence[str], runs: int, identity: Identity) -> None:
        """Starts a campaign. Raises UserError if one is running."""
        if self.is_running:
            raise UserError("a campaign that was started here is still running; wait for it, or stop it.")
        self.last = started = Started(tuple(arguments), runs, identity)
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "railyard", *arguments),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env=os.environ | {"RAILYARD_RESULTS": str(self._results), "COLUMNS": "100"},
                start_new_session=True,
            )
        except OSError as error:
            started.ended, started.code = time.monotonic(), 1
            raise UserError(f"railyard could not be started: {error.strerror}.") from None
        self._process = process
        self._task = asyncio.create_task(self._follow(process, process.stdout, started))

    async def _follow(
        self, process: asyncio.subprocess.Process, output: asyncio.StreamReader | None, started: Started
    ) -> None:
        try:
            async with asyncio.timeout(self.limit_s):
                while output is not None and (part := await output.read(1 << 16)):
                    lines = printable(part.decode(errors="replace")).splitlines()
                    started.lines.extend(line.rstrip() for line in lines if line.strip())
        except TimeoutError:
            started.lines.append(f"Stopped after {self.limit_s:g} s, which is the limit. Completed runs are kept.")
            await self.stop()
        started.code = await process.wait()
        started.ended = time.monotonic()

    async def stop(self) -> None:
        """Ends the campaign, cleanly if it does so within GRACE_S."""
        process, started = self._process, self.last
        if process is None or started is None or process.returncode is not None:
            return
        started.stopped = True
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            async with asyncio.timeout(GRACE_S):
                await process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
