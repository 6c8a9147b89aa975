"""Coroutines from ordinary code, with and without a loop that runs already."""

import asyncio
import signal
import threading
import time

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


def test_an_interrupt_of_a_cell_cancels_what_it_waits_for() -> None:
    ended: list[str] = []

    async def forever() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("cancelled")

    async def cell() -> None:
        # As Jupyter does it: a signal to the main thread, in which Python's own handler raises.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        timer = threading.Timer(0.3, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
        timer.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                complete(forever())
        finally:
            timer.join()
            signal.signal(signal.SIGINT, before)

    start = time.monotonic()
    asyncio.run(cell())
    assert ended == ["cancelled"]
    assert time.monotonic() - start < 30
