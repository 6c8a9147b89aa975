"""The cause of a void run's lateness, in one sentence, as far as the run's record shows it."""

from typing import Any

from railyard.run import probe
from railyard.run.lateness import Lateness
from railyard.run.machine import Machine
from railyard.run.probe import Timers

MIN_OTHERS = 0.10  # of all cores: below this, other processes are not named
MIN_SHARE = 0.001  # of the time: below this, a kind of lateness explains nothing


def _others(machine: Machine | None) -> str:
    cores = machine.others_cores if machine else None
    if machine is None or cores is None or cores < MIN_OTHERS * machine.cores:
        return ""
    return f" Other processes took {cores:.1f} of {machine.cores} cores."


def _of_endpoints(lateness: Lateness, blocked_s: float, machine: Machine | None, *, real_time: bool) -> str:
    waited_s = sum(lateness.waits_us) / 1e6 - blocked_s
    if blocked_s > waited_s:
        return f"Player, server or relays were stopped, or waited for a disk, for {blocked_s:.2f} s."
    cause = f"Player, server or relays waited {waited_s:.2f} s for a core"
    return f"{cause}.{_others(machine)}" if real_time else f"{cause}, without real-time priority.{_others(machine)}"


def _of_links(machine: Machine | None, *, real_time: bool) -> str:
    if not real_time:
        return f"mpshell may not run under SCHED_FIFO and was late.{_others(machine)}"
    return "Timers were on time and mpshell was not: the links have more packets than it can carry."


def cause(summary: dict[str, Any], lateness: Lateness | None, machine: Machine | None, *, endpoints_fifo: bool) -> str:
    """The cause: timers, endpoints or links, whichever was latest. `summary`: mpshell's. Other processes are named only
    if a program waited for a core that they may have used."""
    steal = machine.steal_share if machine else 0.0
    if lateness is None or not summary.get("timers"):
        if steal >= probe.MIN_STEAL:
            return f"The host took {steal * 100:.0f} % of the cores (steal)."
        return "Why is not known: nothing watched the timers."
    links, timers, waits = lateness.shares()
    if max(links, timers, waits) < MIN_SHARE:
        return "Neither timers nor endpoints were late."
    if timers >= max(links, waits) / 2:
        return probe.cause(Timers.of(summary["timers"]), steal)
    if waits >= links:
        return _of_endpoints(lateness, summary.get("blocked_s") or 0.0, machine, real_time=endpoints_fifo)
    return _of_links(machine, real_time=bool(summary["sched_fifo"]))
