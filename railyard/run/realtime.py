"""SCHED_FIFO for programs under test, with a lower priority than mpshell, so that a busy machine does not delay
them."""

import os
import resource
from contextlib import suppress

# The same as mpshell --real-time sets for the player (emulator/mpshell/command.h).
PRIORITY = 30
LIMIT_S = 3  # of a core without sleeping: then a program gets SIGXCPU, and SIGKILL a second later
RLIMIT_RTTIME = 15  # µs; the module resource has no name for it (Linux: asm-generic/resource.h)


def enter(*, inherited: bool) -> None:
    """Makes this process real-time, if permitted. `inherited`: also its future threads and children, which do the work
    of a relay."""
    reset = 0 if inherited else os.SCHED_RESET_ON_FORK
    with suppress(OSError):
        resource.setrlimit(RLIMIT_RTTIME, (LIMIT_S * 1_000_000, (LIMIT_S + 1) * 1_000_000))
        os.sched_setscheduler(0, os.SCHED_FIFO | reset, os.sched_param(PRIORITY))


def has_entered(pid: int) -> bool:
    """Whether a process runs under SCHED_FIFO. False if it is gone."""
    with suppress(OSError):
        return os.sched_getscheduler(pid) & ~os.SCHED_RESET_ON_FORK == os.SCHED_FIFO
    return False
