"""Coroutines from ordinary code, with and without a loop that runs already."""

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from railyard.base.loop import complete


async def slept(result: int) -> int:
    await asyncio.sleep(0.01)
    return result


async def refused() -> None:
    await asyncio.sleep(0)
    raise ValueError("no")


def test_a_coroutine_ends_with_its_result_where_no_loop_runs() -> None:
    assert complete(slept(7)) == 7


def test_a_coroutine_ends_with_its_result_or_error_inside_a_running_loop() -> None:
    async def cell() -> int:
        with pytest.raises(ValueError, match="no"):
            complete(refused())
        return complete(slept(7))

    assert asyncio.run(cell()) == 7


def interrupted(work: Coroutine[Any, Any, None]) -> None:
    """Completes the work in a cell that is interrupted as Jupyter does it: a signal to the main thread, in which
    Python's own handler raises."""

    async def cell() -> None:
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                complete(work)
        finally:
            signal.signal(signal.SIGINT, before)

    asyncio.run(cell())


def interrupt() -> None:
    main_thread = threading.main_thread().ident
    assert main_thread is not None
    signal.pthread_kill(main_thread, signal.SIGINT)


def test_an_interrupt_of_a_cell_cancels_what_it_waits_for() -> None:
    ended: list[str] = []

    async def forever() -> None:
        interrupt()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    interrupted(forever())
    assert ended == ["cancelled"]


def test_a_second_interrupt_does_not_cut_what_the_work_does_at_its_end() -> None:
    ended: list[bool] = []
    has_ended = threading.Event()

    async def forever() -> None:
        interrupt()
        try:
            await asyncio.Event().wait()
        finally:
            interrupt()
            try:
                await asyncio.sleep(0.2)  # in which the caller could cut it
                ended.append(threading.current_thread() is not threading.main_thread())
            finally:
                has_ended.set()

    interrupted(forever())
    assert has_ended.wait(20) and ended == [True]


def test_an_interrupt_of_a_cell_whose_work_has_not_begun_yet_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    may_begin = threading.Event()

    class Late(ThreadPoolExecutor):
        """Interrupts the caller, and begins the work only when the caller ends."""

        def submit(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
            if work is bool:  # which only starts the thread
                return super().submit(work)
            super().submit(may_begin.wait)
            super().submit(work, *arguments, **named)
            signal.raise_signal(signal.SIGINT)
            raise AssertionError

        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            may_begin.set()
            super().shutdown(wait, cancel_futures=cancel_futures)

    monkeypatch.setattr("railyard.base.loop.ThreadPoolExecutor", Late)
    begun: list[str] = []

    async def work() -> None:
        begun.append("begun")

    interrupted(work())
    assert begun == []


def test_an_interrupt_while_the_thread_starts_leaves_nothing_running(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()
    ended: list[str] = []
    start = threading.Thread.start

    def interrupted_start(thread: threading.Thread) -> None:
        start(thread)
        begun.wait(0.2)
        signal.raise_signal(signal.SIGINT)

    async def forever() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.2)  # in which a caller that does not wait would go on
            ended.append("cancelled")

    monkeypatch.setattr(threading.Thread, "start", interrupted_start)
    interrupted(forever())
    assert bool(ended) == begun.is_set()
