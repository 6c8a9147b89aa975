"""Long computations, one at a time in another thread. Results are remembered by a key with all dependencies."""

import asyncio
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

REMEMBERED = 24
PATIENCE_S = 0.4  # time that a page waits before it says that it is not ready


class UnfinishedError(Exception):
    """A page is not ready and must be requested again. The message says what is being done."""


def _failed(future: Future[Any] | asyncio.Future[Any]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is not None


class Work:
    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="railyard-work")
        self._known: dict[Hashable, Future[Any]] = {}  # the last requested ones at the end
        self._lock = threading.Lock()

    def begin(self, key: Hashable, make: Callable[[], Any]) -> Future[Any]:
        """The computation of a key: the known one or a new one. A failed one is returned once more, for callers that
        wait for it, and then tried again."""
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
        """The result of a computation. Raises UnfinishedError while it is under way."""
        future = self.begin(key, make)
        waited = asyncio.wrap_future(future)
        done, _ = await asyncio.wait({waited}, timeout=PATIENCE_S)
        if not done:
            waited.add_done_callback(_failed)  # the next request gets the error; without this asyncio would print it
            raise UnfinishedError(words)
        if _failed(future):
            with self._lock:
                self._known.pop(key, None)
        return waited.result()

    def end(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
