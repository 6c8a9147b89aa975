"""Executors of plays: all cores of this machine, or the workers of a Dask scheduler. Both take batches and return
plays.

A batch is idempotent and has a key from its contents, so a worker that dies only costs the time of its batch. A viewer
whose play fails, or whose batch kills its workers, is set aside and does not end the campaign.
"""

import ctypes
import hashlib
import json
import logging
import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from railyard.base.errors import UserError
from railyard.base.provenance import code_sha256, sha256_of
from railyard.run import simbatch
from railyard.run.folders import resume_words
from railyard.studies.population.model import Population
from railyard.studies.population.parts import elsewhere, part_of
from railyard.studies.population.play import Arm, PlayError, Row, Task, play, task_of
from railyard.studies.population.scenes import Library
from railyard.studies.population.viewers import draw_viewer

NICE = 5
PR_SET_PDEATHSIG = 1
MOST_TRIES = 4
# Batches that are submitted at once: for each process on this machine, or to a whole cluster of any size.
LOCAL_WINDOW = 2
DASK_WINDOW = 1000
CONNECT_LIMIT_S = 15
POLL_S = 0.1  # between two looks for plays that have ended
LOOK_EVERY_S = 2.0  # between two looks for workers, while none ends
RESULT_LIMIT_S = 10  # until the next look for workers, while a result is fetched
CODE_SHA256 = code_sha256()  # as this process imported it, since a worker may have started before an update


@dataclass(frozen=True)
class Recipe:
    """All facts that decide plays, except for day and number of viewers. Viewers are drawn by workers."""

    population: Population
    traces: str
    """The campaign's folder of generated pairs."""
    recorded: bool
    arms: tuple[Arm, ...]
    program: str
    program_sha256: str
    others: tuple[str, ...] = ()
    """Folders of parts of other campaigns, whose plays can be used."""
    library_sha256: str | None = None
    """The hash of the pairs that are not generated. None: all workers are on this machine."""
    code_sha256: str = CODE_SHA256

    @cached_property
    def digest(self) -> str:
        settings = self.population.model_dump(mode="json", exclude={"arms", "sizes"})
        arms = [(arm.label, arm.text) for arm in self.arms]
        inputs = [self.program_sha256, self.library_sha256, self.code_sha256]
        facts = [settings, self.traces, self.recorded, arms, self.program, *inputs]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Batch:
    """Some viewers of one day. `wanted`: their numbers, each with the indexes of the arms to play."""

    recipe: Recipe
    day: int
    wanted: tuple[tuple[int, tuple[int, ...]], ...]

    @property
    def key(self) -> str:
        """The key of the batch, from its contents."""
        what = hashlib.sha256(json.dumps([self.recipe.digest, self.day, self.wanted]).encode())
        return f"railyard-plays-{what.hexdigest()[:32]}"

    def _task(self, number: int, places: Sequence[int]) -> Task:
        recipe = self.recipe
        viewer = draw_viewer(recipe.population, _library(recipe), self.day, number)
        arms = [recipe.arms[place] for place in places]
        return task_of(recipe.population, viewer, arms, recipe.program, recipe.program_sha256)

    def played(self) -> "Played":
        """Plays the batch. Viewers who cannot be played are in `failed`."""
        others, borrowed = elsewhere(self.recipe.others), 0

        def play_or_find(task: Task) -> list[Row]:
            nonlocal borrowed
            stored_rows = [others.find(identity) for identity in task.identities]
            missing = tuple(arm for arm, row in zip(task.arms, stored_rows, strict=True) if row is None)
            fresh = iter(play(replace(task, arms=missing), batch) if missing else [])
            borrowed += len(stored_rows) - len(missing)
            # An arm may have another label elsewhere. The label does not decide a play.
            named = [{"arm": arm.label, "parameters": arm.text} for arm in task.arms]
            return [next(fresh) if row is None else row | name for row, name in zip(stored_rows, named, strict=True)]

        with simbatch.batch(Path(self.recipe.program)) as batch:
            rows, failed = play_all([self._task(*one) for one in self.wanted], play_or_find)
        return Played(part=part_of(rows) if rows else b"", plays=len(rows), borrowed=borrowed, failed=failed)


_libraries: dict[str, Library] = {}


def _library(recipe: Recipe) -> Library:
    """The library for all batches of a recipe, which reads and makes each pair once."""
    if recipe.digest not in _libraries:
        _libraries.clear()
        library = Library(recipe.population, Path(recipe.traces), recorded=recipe.recorded)
        if recipe.library_sha256 not in (None, library.sha256):
            raise UserError(
                f"{_here()} has not the pairs that the campaign began with; "
                "give it the same traces/ and RAILYARD_TRACE_PATH, and start it again."
            )
        _libraries[recipe.digest] = library
    return _libraries[recipe.digest]


@dataclass(frozen=True)
class Failed:
    """A viewer that could not be played."""

    day: int
    viewer: int
    why: str


@dataclass(frozen=True)
class Played:
    """The result of a batch: a part with `plays` plays."""

    part: bytes = b""
    plays: int = 0
    borrowed: int = 0
    """The number of these plays that another campaign had."""
    failed: list[Failed] = field(default_factory=list)


def play_all(tasks: Iterable[Task], how: Callable[[Task], list[Row]]) -> tuple[list[Row], list[Failed]]:
    rows: list[Row] = []
    failed: list[Failed] = []
    for task in tasks:
        try:
            rows += how(task)
        except PlayError as error:
            failed.append(Failed(task.viewer.day, task.viewer.number, str(error)))
    return rows, failed


def _here() -> str:
    return f"the worker on {os.uname().nodename}"


def run_batch(batch: Batch) -> Played:
    program = Path(batch.recipe.program)
    if batch.recipe.code_sha256 != CODE_SHA256:
        raise UserError(
            f"{_here()} runs another revision of railyard than the campaign; update it, and start it again."
        )
    if not program.is_file() or sha256_of(program) != batch.recipe.program_sha256:
        raise UserError(
            f"{program}: on {_here()} not the program that the campaign began with; build the same one there."
        )
    return batch.played()


def _set_aside(batch: Batch, why: str) -> Played:
    return Played(failed=[Failed(batch.day, number, why) for number, _ in batch.wanted])


class Executor(Protocol):
    def results(self, batches: Iterable[Batch]) -> Iterator[Played]:
        """The results of the batches, in the order of their ends. Takes a batch when there is room for it."""
        ...


def _worker_begins(parent: int) -> None:
    """Prepares a worker: low priority, no handling of Ctrl-C, and it ends with the campaign, however that ends."""
    os.nice(NICE)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


class LocalExecutor:
    """A process for each core. If a worker is killed, the pool ends. Batches under way then are played again one by
    one, and set aside if they kill workers."""

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
        """Plays batches by one pool. `running`: the batches that were begun and are not done, by key."""
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
    """The workers of an existing scheduler. They need this project at the same place and access to the campaign's
    folder."""

    def __init__(self, address: str, tell: Callable[[str], None]) -> None:
        self.address, self.tell = address, tell

    def results(self, batches: Iterable[Batch]) -> Iterator[Played]:
        try:
            from distributed import Client, KilledWorker  # noqa: PLC0415  slow to import, and only needed here
            from distributed import as_completed as dask_completed  # noqa: PLC0415
        except ImportError:
            raise UserError("--set scheduler= needs Dask: pip install 'railyard[dask]'.") from None
        # A lost scheduler ends the command with a sentence instead of the client's log.
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)

        try:
            client: Any = Client(self.address, timeout=CONNECT_LIMIT_S, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise UserError(
                f"there is no Dask scheduler at {self.address} ({type(error).__name__}); start one with "
                "`dask scheduler` and give its address with --set scheduler=tcp://HOST:PORT."
            ) from None
        waiting, running = iter(batches), dict[str, Batch]()

        def begin(most: int) -> list[Any]:
            """Submits batches under their keys, so that the cluster does not do a batch twice."""
            begun = list(islice(waiting, most))
            running.update({batch.key: batch for batch in begun})
            return [client.submit(run_batch, batch, key=batch.key, retries=MOST_TRIES, pure=True) for batch in begun]

        try:
            completed = dask_completed(begin(DASK_WINDOW), loop=client.loop)
            for future, outcome in self._as_they_end(client, completed):
                batch = running.pop(future.key)
                if isinstance(outcome, KilledWorker):
                    yield _set_aside(batch, f"workers of {self.address} died too often on its batch: {outcome}")
                elif isinstance(outcome, BaseException):
                    raise outcome
                else:
                    yield outcome
                future.release()
                completed.update(begin(1))
        except CancelledError:
            raise UserError(
                f"the Dask scheduler at {self.address} has ended, or the connection to it; completed plays are kept: "
                f"start it again with its workers, and {resume_words()}."
            ) from None
        finally:
            client.close()

    def _as_they_end(self, client: Any, completed: Any) -> Iterator[tuple[Any, Any]]:
        """The futures in the order of their ends, with their results or exceptions."""
        workers = _Workers(client, self.address, self.tell)
        while not completed.is_empty():
            if not completed.has_ready():
                time.sleep(POLL_S)
                workers.look()
                continue
            future = next(completed)
            yield future, _outcome(future, workers)


@dataclass
class _Workers:
    client: Any
    address: str
    tell: Callable[[str], None]
    are_there: bool = True
    next_look: float = 0.0

    def look(self) -> None:
        """Says so if the scheduler has no worker, once until one comes."""
        if time.monotonic() < self.next_look:
            return
        self.next_look = time.monotonic() + LOOK_EVERY_S
        were_there = self.are_there
        with suppress(OSError):  # a lost scheduler cancels the futures
            self.are_there = bool(self.client.scheduler_info()["workers"])
        if were_there and not self.are_there:
            start = f"dask worker {self.address} --nthreads 1"
            self.tell(f"{self.address} has no worker; the plays wait until you start one: `{start}`")


def _outcome(future: Any, workers: _Workers) -> Any:
    """The result or the exception of a future that has ended. A worker that dies takes results with it, which others
    make again. Raises CancelledError if the scheduler is lost."""
    while True:
        try:
            return future.result(timeout=RESULT_LIMIT_S)
        except Exception as error:
            if future.status == "error":
                return future.exception()
            if isinstance(error, TimeoutError):
                workers.look()
            elif isinstance(error, OSError):
                raise CancelledError from error
            else:
                raise
