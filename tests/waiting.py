"""Waiting for what other processes do, with a limit."""

import time
from collections.abc import Callable, Collection
from pathlib import Path


def wait_until(condition: Callable[[], object], what: str, limit_s: float = 20) -> None:
    """Waits for a condition. `what`: the words of the failure if the limit passes first."""
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, f"{what} (waited {limit_s} s)"
        time.sleep(0.02)


def wait_until_gone(processes: Collection[int], limit_s: float = 60) -> None:
    wait_until(lambda: not any(map(is_running, processes)), f"some of {processes} run on", limit_s)


def is_running(process: int) -> bool:
    """A zombie is not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
