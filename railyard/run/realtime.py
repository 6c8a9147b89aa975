"""Programs under test run under SCHED_FIFO, below mpshell, so that a busy machine does not delay them."""

from __future__ import annotations

import os
import resource
from contextlib import suppress

# As mpshell --real-time does with the player (emulator/mpshell/command.h).
PRIORITY = 30
LIMIT_S = 3  # a program that uses a core for so long without sleeping gets SIGXCPU, and SIGKILL a second later
RLIMIT_RTTIME = 15  # µs; the module resource has no name for it (Linux: asm-generic/resource.h)


def enter(*, inherited: bool) -> None:
    """For this process, where it is permitted. `inherited`: for its threads and children too, as a relay needs it whose
    work is done by them."""
    reset = 0 if inherited else os.SCHED_RESET_ON_FORK
    with suppress(OSError):
        resource.setrlimit(RLIMIT_RTTIME, (LIMIT_S * 1_000_000, (LIMIT_S + 1) * 1_000_000))
        os.sched_setscheduler(0, os.SCHED_FIFO | reset, os.sched_param(PRIORITY))


def has_entered(pid: int) -> bool:
    """Whether that process runs so; false where it is gone."""
    with suppress(OSError):
        return os.sched_getscheduler(pid) & ~os.SCHED_RESET_ON_FORK == os.SCHED_FIFO
    return False
