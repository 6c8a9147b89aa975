"""Runs coroutines from ordinary code, and side by side."""

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def complete(work: Coroutine[Any, Any, Result]) -> Result:
    """Like asyncio.run, but works also if this thread's event loop runs already, as in a notebook: then in another
    thread. An interrupt cancels `work` and is raised when it has ended."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    return _in_a_thread(work)


async def side_by_side(items: Sequence[Item], work: Callable[[Item], Awaitable[None]], jobs: int) -> None:
    """Does `work` for each item, in order, `jobs` at a time. The first error ends all of them and is raised."""
    waiting = iter(items)

    async def worker() -> None:
        for item in waiting:
            await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(jobs, len(items))):
                group.create_task(worker())
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


def _in_a_thread(work: Coroutine[Any, Any, Result]) -> Result:
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = []
    is_interrupted = threading.Event()

    async def main() -> Result:
        running.append((asyncio.get_running_loop(), asyncio.current_task()))
        if is_interrupted.is_set():
            raise asyncio.CancelledError
        return await work

    try:
        with ThreadPoolExecutor(max_workers=1) as threads:
            try:
                # the executor joins only a thread whose start was not interrupted: start it before there is any work
                threads.submit(bool).result()
                result = threads.submit(asyncio.run, main())
                # a signal that comes just before a wait without a limit is heard after it
                while wait([result], timeout=1).not_done:
                    pass
                return result.result()
            except BaseException:
                is_interrupted.set()
                for loop, task in running:
                    with suppress(RuntimeError):  # it has ended, or just ends, by itself
                        loop.call_soon_threadsafe(task.cancel if task else loop.stop)
                raise
    finally:
        if inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
            work.close()  # after a second interrupt what has begun may still run
