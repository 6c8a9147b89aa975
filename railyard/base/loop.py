"""Coroutines from ordinary code."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

Result = TypeVar("Result")


def complete(work: Coroutine[Any, Any, Result]) -> Result:
    """As asyncio.run, and also where this thread's event loop runs already, as in a cell of a notebook: there in a
    thread. An interrupt cancels `work`, and is raised when it has ended."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    return _in_a_thread(work)


def _in_a_thread(work: Coroutine[Any, Any, Result]) -> Result:
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = []

    async def main() -> Result:
        running.append((asyncio.get_running_loop(), asyncio.current_task()))
        return await work

    with ThreadPoolExecutor(max_workers=1) as threads:
        done = threads.submit(asyncio.run, main())
        try:
            return done.result()
        except KeyboardInterrupt:
            for loop, task in running:
                with suppress(RuntimeError):  # it ended by itself just now
                    loop.call_soon_threadsafe(task.cancel if task else loop.stop)
            raise
