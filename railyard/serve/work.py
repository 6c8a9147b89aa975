"""Long computations: one at a time in a thread of their own, each remembered under what it depends on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

REMEMBERED = 24
PATIENCE_S = 0.4  # how long a page waits before it says that it is not ready


class UnfinishedError(Exception):
    """The page is asked for again until it is ready; the words say what is being done."""


def _failed(future: Future[Any] | asyncio.Future[Any]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is not None


class Work:
    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="railyard-work")
        self._known: dict[Hashable, Future[Any]] = {}  # those asked for last at the end
        self._lock = threading.Lock()

    def begin(self, key: Hashable, make: Callable[[], Any]) -> Future[Any]:
        """The computation of that key: the one that is known, or a new one. One that failed is given once more, to who
        waits for it, and then tried again."""
        with self._lock:
            future = self._known.pop(key, None) or self._pool.submit(make)
            if not _failed(future):
                self._known[key] = future
            self._forget()
        return future

    def _forget(self) -> None:
        for key in list(self._known):
            if len(self._known) <= REMEMBERED:
                return
            if self._known[key].done():
                del self._known[key]

    async def made(self, key: Hashable, make: Callable[[], Any], words: str) -> Any:
        """What it came to. Raises UnfinishedError while it is under way."""
        future = self.begin(key, make)
        waited = asyncio.wrap_future(future)
        done, _ = await asyncio.wait({waited}, timeout=PATIENCE_S)
        if not done:
            waited.add_done_callback(_failed)  # who asks next is told; asyncio would print it
            raise UnfinishedError(words)
        if _failed(future):
            with self._lock:
                self._known.pop(key, None)
        return waited.result()

    def end(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
