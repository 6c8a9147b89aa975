"""Lets one run at a time use a core, across all processes. An abstract Unix socket stands for each core; the process
that listens there holds the core. The name ends with the process, so nothing has to be removed."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


def _name(core: int) -> str:
    return f"\0railyard-core-{core}"


def _take(core: int) -> socket.socket | None:
    mine = socket.socket(socket.AF_UNIX)
    try:
        mine.bind(_name(core))
    except OSError:
        mine.close()
        return None
    mine.listen()
    return mine


async def _wait_for(core: int) -> None:
    """Waits until the holder of a core releases it, which resets the connection."""
    with suppress(OSError):
        reader, writer = await asyncio.open_unix_connection(_name(core))
        try:
            await reader.read()
        finally:
            writer.close()


async def _wait_for_any(cores: list[int]) -> None:
    waiting = [asyncio.create_task(_wait_for(core)) for core in cores]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


@asynccontextmanager
async def one_core() -> AsyncIterator[int]:
    """Waits for a core that no other run uses, and holds it as long as the context lasts."""
    cores = sorted(os.sched_getaffinity(0))
    while True:
        for core in cores:
            mine = _take(core)
            if mine is not None:
                with mine:
                    yield core
                return
        await _wait_for_any(cores)
