"""Measures whether this machine is on time now, with `mpshell --probe`: a timer thread of high priority on each core.

An ordinary process cannot delay these threads. If they wake late, the host of a virtual machine has halted or preempted
a core, or the kernel has held it; see `cause`.
"""

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from railyard.base.errors import UserError
from railyard.base.paths import program
from railyard.run.lateness import Chain, on_endpoints

QUIET_SHARE = 0.015  # of the time: three quarters of lateness.MAX_ADDED
USUAL_DELAY_MS = 15.0  # one way: the delay for which late_share is computed
WINDOW_S = 1.5  # length of a measurement of wait_until_quiet(),
WINDOWS = 2  # … which waits for this number of quiet ones in a row
PAUSE_S = 1.0  # between two windows while the machine is late
MIN_STEAL = 0.05  # of all cores: below this, steal is not named
SLACK_S = 20.0  # for mpshell beside the measured time


@dataclass(frozen=True)
class Timers:
    """The lateness of timer threads, one for each core."""

    sched_fifo: bool  # False: other processes may have delayed them
    p50_us: float
    p99_us: float
    max_us: float
    run_delay_share: float  # share of their lateness in which the core was occupied after the timer had fired

    @classmethod
    def of(cls, record: dict[str, Any]) -> "Timers":
        """Reads mpshell's record."""
        late = record["lateness_us"]
        share = min(1.0, record["run_delay_s"] / record["late_s"]) if record["late_s"] > 0 else 0.0
        return cls(record["sched_fifo"], late["p50"], late["p99"], late["max"], share)


@dataclass(frozen=True)
class Probe:
    """The result of a measurement."""

    seconds: float
    timers: Timers
    late_share: float  # the most that this lateness adds to a result, with a delay of USUAL_DELAY_MS
    steal_share: float  # taken by the host, of all cores
    cores: int

    @property
    def is_quiet(self) -> bool:
        return self.late_share <= QUIET_SHARE

    @property
    def sentence(self) -> str:
        """Whether the machine is on time, and if not, why."""
        if self.is_quiet:
            return f"Timers are on time: {_lateness(self.timers)}."
        return cause(self.timers, self.steal_share)


def _lateness(timers: Timers) -> str:
    return f"p99 {timers.p99_us / 1000:.2f} ms, at most {timers.max_us / 1000:.1f} ms"


def is_virtual(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether this is a virtual machine, by the processor's flags."""
    return any("hypervisor" in line.split() for line in cpuinfo.read_text().splitlines() if line.startswith("flags"))


def cause(timers: Timers, steal_share: float) -> str:
    """Why timers woke late, in one sentence."""
    late = _lateness(timers)
    if not timers.sched_fifo:
        return f"Timers woke late ({late}); without the right to SCHED_FIFO it is not known why."
    if timers.run_delay_share >= 0.5:
        return f"Other real-time processes or the kernel held the cores: timers woke late, {late}."
    if steal_share >= MIN_STEAL:
        return f"The host took {steal_share * 100:.0f} % of the cores (steal) and woke timers late: {late}."
    who = "host" if is_virtual() else "machine"
    return f"The {who} woke timers late: {late}."


def measure(seconds: float, *, keep_awake: str = "auto") -> Probe:
    """Measures for `seconds`, with the cores kept awake as for a run. Raises UserError if mpshell is missing or
    fails."""
    command = [str(program("mpshell")), "--probe", f"{seconds:g}", "--keep-awake", keep_awake]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + SLACK_S, check=False)
    if done.returncode != 0:
        raise UserError(f"this machine cannot be probed: {done.stderr.strip() or f'exit status {done.returncode}'}")
    printed = json.loads(done.stdout)
    late_us, machine = printed["late_us"], printed["machine"]
    chain = Chain(late_us, on_endpoints(late_us), USUAL_DELAY_MS, printed["slot_ms"])
    duration_s = printed["duration_s"]
    return Probe(
        duration_s,
        Timers.of(printed["timers"]),
        chain.bound_us(0, duration_s) / (1e6 * duration_s),
        machine["steal_s"] / (duration_s * machine["cores"]),
        machine["cores"],
    )


def wait_until_quiet(
    budget_s: float, tell: Callable[[Probe], None] = lambda _: None, *, keep_awake: str = "auto"
) -> bool:
    """Waits until the machine has been on time for 3 s, at most for the budget. Returns whether it is. `tell` gets each
    measurement. This blocks: under asyncio use asyncio.to_thread()."""
    deadline = time.monotonic() + budget_s
    quiet = 0
    while True:
        probe = measure(WINDOW_S, keep_awake=keep_awake)
        tell(probe)
        quiet = quiet + 1 if probe.is_quiet else 0
        if quiet >= WINDOWS:
            return True
        if time.monotonic() + WINDOW_S > deadline:
            return False
        if not probe.is_quiet:
            time.sleep(min(PAUSE_S, max(0.0, deadline - time.monotonic())))
