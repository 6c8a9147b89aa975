"""Who plays: all cores of this machine, or the workers of a Dask scheduler. Both take batches and give rows back.

A batch is idempotent and known by what is in it, so a worker that dies costs the time of its batch and nothing else.
A viewer whose play fails, or whose batch kills its workers, is set aside: it does not end the campaign.
"""

from __future__ import annotations

import ctypes
import hashlib
import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from railyard.base.errors import UserError
from railyard.base.provenance import sha256_of
from railyard.studies.population.play import PlayError, Row, Task, play

NICE = 5
PR_SET_PDEATHSIG = 1
MOST_TRIES = 4
# Batches that are submitted at once: for each process here; in all to a cluster, which may have any number of workers.
LOCAL_WINDOW = 2
DASK_WINDOW = 1000
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


@dataclass(frozen=True)
class Failed:
    """A viewer that could not be played."""

    day: int
    viewer: int
    why: str


@dataclass(frozen=True)
class Played:
    """What came of a batch."""

    rows: list[Row]
    failed: list[Failed] = field(default_factory=list)


def run_batch(batch: Batch) -> Played:
    for program, digest in {(task.program, task.program_sha256) for task in batch.tasks}:
        if not Path(program).is_file() or sha256_of(Path(program)) != digest:
            raise UserError(f"{program}: not the program that the campaign began with; build the same one here.")
    played = Played([])
    for task in batch.tasks:
        try:
            played.rows.extend(play(task))
        except PlayError as error:
            played.failed.append(Failed(task.viewer.day, task.viewer.number, str(error)))
    return played


def _set_aside(batch: Batch, why: str) -> Played:
    return Played([], [Failed(task.viewer.day, task.viewer.number, why) for task in batch.tasks])


class Executor(Protocol):
    def results(self, batches: Iterable[Batch]) -> Iterator[Played]:
        """What comes of each batch, in the order in which they are done. Takes a batch when there is room for it."""
        ...


def _worker_begins(parent: int) -> None:
    """A worker of the pool is polite, leaves Ctrl-C to the campaign, and ends with it, however that ends."""
    os.nice(NICE)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


class LocalExecutor:
    """A process a core. A worker that is killed takes the pool with it. What was being played then is played by itself,
    batch by batch, and set aside where it is what kills workers."""

    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = jobs or len(os.sched_getaffinity(0))

    def results(self, batches: Iterable[Batch]) -> Iterator[Played]:
        waiting, suspects, deaths = iter(batches), list[Batch](), Counter[str]()
        while True:
            alone = bool(suspects)
            running: dict[str, Batch] = {}
            try:
                yield from self._pool(iter([suspects.pop()]) if alone else waiting, running)
            except BrokenProcessPool:
                for key, batch in running.items():
                    deaths[key] += 1
                    if deaths[key] < MOST_TRIES:
                        suspects.append(batch)
                    else:
                        yield _set_aside(batch, f"workers died {MOST_TRIES} times on its batch (out of memory?)")
            else:
                if not alone:
                    return

    def _pool(self, batches: Iterator[Batch], running: dict[str, Batch]) -> Iterator[Played]:
        """By one pool. `running`: by their keys, the batches that were begun and are not done."""
        context = multiprocessing.get_context("fork")
        pool = ProcessPoolExecutor(self.jobs, context, initializer=_worker_begins, initargs=(os.getpid(),))
        futures: dict[Future[Played], str] = {}

        def begin(most: int) -> None:
            for batch in islice(batches, most):
                running[batch.key] = batch
                futures[pool.submit(run_batch, batch)] = batch.key

        try:
            begin(LOCAL_WINDOW * self.jobs)
            while futures:
                done, _ = wait(futures, return_when=FIRST_COMPLETED)
                for future in done:
                    played = future.result()
                    del running[futures.pop(future)]
                    yield played
                begin(len(done))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


class DaskExecutor:
    """The workers of an existing scheduler. They need this project at the same place, and see the campaign's folder."""

    def __init__(self, address: str) -> None:
        self.address = address

    def results(self, batches: Iterable[Batch]) -> Iterator[Played]:
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
        waiting, running = iter(batches), dict[str, Batch]()

        def begin(most: int) -> list[Any]:
            """Keys are those of the plays: what the cluster is doing already is not done twice."""
            begun = list(islice(waiting, most))
            running.update({batch.key: batch for batch in begun})
            return [client.submit(run_batch, batch, key=batch.key, retries=MOST_TRIES, pure=True) for batch in begun]

        try:
            completed = dask_completed(begin(DASK_WINDOW), loop=client.loop)
            for future in completed:
                batch = running.pop(future.key)
                if isinstance(failure := future.exception(), KilledWorker):
                    yield _set_aside(batch, f"workers of {self.address} died too often on its batch: {failure}")
                else:
                    yield future.result()
                future.release()
                completed.update(begin(1))
        finally:
            client.close()
