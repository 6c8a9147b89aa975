"""Long computations: one at a time in a thread of their own, each remembered under what it depends on."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

REMEMBERED = 24
PATIENCE_S = 0.4  # how long a page waits before it says that it is not ready


class UnfinishedError(Exception):
    """The page is asked for again until it is ready; the words say what is being done."""


class Work:
    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="railyard-work")
        self._known: OrderedDict[Hashable, Future[Any]] = OrderedDict()

    def begin(self, key: Hashable, make: Callable[[], Any]) -> Future[Any]:
        """The computation of that key: the one that is known, or a new one. One that failed is tried again."""
        future = self._known.get(key)
        if future is None or (future.done() and future.exception() is not None):
            future = self._known[key] = self._pool.submit(make)
        self._known.move_to_end(key)
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
            raise UnfinishedError(words)
        return waited.result()

    def end(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
