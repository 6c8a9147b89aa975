"""Who plays: all cores of this machine, or the workers of a Dask scheduler. Both take batches and give rows back.

A batch is idempotent and known by what is in it, so a worker that dies costs the time of its batch and nothing else.
"""

from __future__ import annotations

import ctypes
import hashlib
import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from railyard.base.errors import UserError
from railyard.base.provenance import sha256_of
from railyard.studies.population.play import Row, Task, play

NICE = 5
PR_SET_PDEATHSIG = 1
MOST_TRIES = 4
CONNECT_LIMIT_S = 15


@dataclass(frozen=True)
class Batch:
    tasks: tuple[Task, ...]

    @property
    def key(self) -> str:
        """By viewers and arms: the identities of all plays in it."""
        digest = hashlib.sha256("".join(name for task in self.tasks for name in task.identities).encode())
        return f"railyard-plays-{digest.hexdigest()[:32]}"

    @property
    def plays(self) -> int:
        return sum(len(task.arms) for task in self.tasks)


def run_batch(batch: Batch) -> list[Row]:
    for program, digest in {(task.program, task.program_sha256) for task in batch.tasks}:
        if not Path(program).is_file() or sha256_of(Path(program)) != digest:
            raise UserError(f"{program}: not the program that the campaign began with; build the same one here.")
    return [row for task in batch.tasks for row in play(task)]


class Executor(Protocol):
    def results(self, batches: Sequence[Batch]) -> Iterator[list[Row]]:
        """The rows of each batch, in the order in which they are done."""
        ...


def _worker_begins(parent: int) -> None:
    """A worker of the pool is polite, leaves Ctrl-C to the campaign, and ends with it, however that ends."""
    os.nice(NICE)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


class LocalExecutor:
    """A process a core. A worker that is killed takes the pool with it; what was not done yet is done by a new one."""

    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = jobs or len(os.sched_getaffinity(0))

    def results(self, batches: Sequence[Batch]) -> Iterator[list[Row]]:
        left = {batch.key: batch for batch in batches}
        tries = 0
        while left:
            begun = len(left)
            try:
                for key, rows in self._once(list(left.values())):
                    del left[key]
                    yield rows
            except BrokenProcessPool:
                tries = 1 if len(left) < begun else tries + 1
                if tries >= MOST_TRIES:
                    raise UserError(
                        f"workers died {tries} times without a result (out of memory?); what is whole is kept, "
                        "and the same command goes on from there."
                    ) from None

    def _once(self, batches: Sequence[Batch]) -> Iterator[tuple[str, list[Row]]]:
        context = multiprocessing.get_context("fork")
        pool = ProcessPoolExecutor(self.jobs, context, initializer=_worker_begins, initargs=(os.getpid(),))
        try:
            running: dict[Future[list[Row]], str] = {pool.submit(run_batch, batch): batch.key for batch in batches}
            for future in as_completed(running):
                yield running[future], future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


class DaskExecutor:
    """The workers of an existing scheduler. They need this project at the same place, and see the campaign's folder."""

    def __init__(self, address: str) -> None:
        self.address = address

    def results(self, batches: Sequence[Batch]) -> Iterator[list[Row]]:
        try:
            from distributed import Client, KilledWorker  # noqa: PLC0415  slow to import, and only needed here
            from distributed import as_completed as dask_completed  # noqa: PLC0415
        except ImportError:
            raise UserError("--executor dask needs Dask: pip install 'railyard[dask]'.") from None

        try:
            client: Any = Client(self.address, timeout=CONNECT_LIMIT_S, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise UserError(
                f"there is no Dask scheduler at {self.address} ({type(error).__name__}); start one with "
                "`dask scheduler` and give its address with --set scheduler=tcp://HOST:PORT."
            ) from None
        try:
            # Keys are those of the plays: what the cluster is doing already is not done twice.
            futures = [
                client.submit(run_batch, batch, key=batch.key, retries=MOST_TRIES, pure=True) for batch in batches
            ]
            for future, rows in dask_completed(futures, loop=client.loop, with_results=True):
                future.release()
                yield rows
        except KilledWorker as error:
            raise UserError(f"workers of {self.address} died too often on one batch: {error}") from None
        finally:
            client.close()
