"""Judges whether the emulator was on time. A wall-clock run whose links were late measured the machine and is void."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from railyard.base.words import counted
from railyard.run.causes import cause
from railyard.run.lateness import MAX_ADDED, Added, Lateness
from railyard.run.linkevents import DoneEvent
from railyard.run.machine import Machine

# All limits. A run that exceeds one on any link or device is void: it is repeated and counts in no figure. The first
# limit is lateness.MAX_ADDED, the share of a figure that lateness can have added. If a run has no record of lateness
# over time, these two limits on deliveries hold instead:
MAX_P99_LATENESS_US = 1000  # per link: p99 of actual departure − scheduled departure
MAX_SHARE_OVER_1MS = 0.01  # per link: deliveries more than 1 ms late / deliveries
MAX_SHARE_MISSED = 0.001  # per link: opportunities missed by the emulator's own fault / opportunities
MISSED_FLOOR = 3  # … and more than this number: one of a slow link's few opportunities already exceeds the share
MAX_DEVICE_DROPS = 0  # per device: packets lost outside of the emulated queue
MAX_EVENT_LATENESS_US = 10_000  # per link event: time at which it took effect − its time
# In the kernel arena time waits for the emulator, but the emulator's own system calls take time.
MAX_EXACT_LATENESS_US = 50  # per link: the largest lateness
MAX_TRIES = 5  # the first try and at most four repetitions, at the end of the campaign


@dataclass(frozen=True)
class Fidelity:
    """The verdict on one try, and the worst figures of its links."""

    void: bool
    reasons: list[str]
    lateness_p50_us: float
    lateness_p99_us: float
    lateness_max_us: float
    over_1ms: int
    deliveries: int
    missed: int
    device_drops: int
    sched_fifo: bool
    # The processors' work during the run. None in records of earlier versions.
    machine: dict[str, Any] | None = None
    endpoints_fifo: bool | None = None  # player, server and relays ran under SCHED_FIFO
    # lateness.Added: the most that lateness can have added to the run's figures.
    added: dict[str, Any] | None = None
    kept_awake: bool | None = None
    cause: str | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def _late_events(events: Sequence[DoneEvent], duration_s: float) -> list[str]:
    """The link events that were late or not done, in words. Events after the end of the run do not count."""
    reasons = []
    for event in events:
        what = f"link event '{event.command}' at {event.t_s:g} s"
        if event.late_us > MAX_EVENT_LATENESS_US:
            reasons.append(f"{what}: {event.late_us / 1000:.1f} ms late")
        elif event.done_s is None and event.t_s + MAX_EVENT_LATENESS_US / 1e6 < duration_s:
            reasons.append(f"{what}: not done")
    return reasons


def judge(
    summary: dict[str, Any],
    events: Sequence[DoneEvent] = (),
    machine: Machine | None = None,
    *,
    exact: bool = False,
    endpoints_fifo: bool = False,
    lateness: Lateness | None = None,
    added: Added | None = None,
) -> Fidelity:
    """The verdict on mpshell's summary and on the link events of a run. `machine`: the processors' work during the run.
    `endpoints_fifo`: whether the programs outside of mpshell were real-time. `lateness` and `added`: mpshell's record
    of lateness over time, and the bounds that follow. `exact`: mpshell ran in virtual time, where it may miss nothing
    and be late by MAX_EXACT_LATENESS_US at most."""
    kept_awake = summary.get("keep_awake", {}).get("done")
    reasons = _late_events(events, summary.get("duration_s", 0.0))
    p50, p99, worst = [0.0], [0.0], [0.0]
    over = count = missed = drops = 0
    of_flows = [flow["link"] for flow in summary.get("flows", ()) if "link" in flow]
    for path in (*summary["paths"], *summary.get("bottlenecks", ()), *of_flows):
        for direction in ("up", "down"):
            link, name = path[direction], f"{path['name']} {direction}"
            late = link["lateness_us"]
            if late["count"]:
                p50.append(late["p50"])
                p99.append(late["p99"])
                worst.append(late["max"])
            over += late["over_1ms"]
            count += late["count"]
            missed += link["missed"]
            if exact and late["count"] and late["max"] > MAX_EXACT_LATENESS_US:
                reasons.append(f"{name}: lateness {late['max']:.0f} us in virtual time")
            if exact and link["missed"]:
                reasons.append(f"{name}: {link['missed']} opportunities missed in virtual time")
            if added is None and late["count"] and late["p99"] > MAX_P99_LATENESS_US:
                reasons.append(f"{name}: p99 lateness {late['p99'] / 1000:.2f} ms")
            if added is None and late["over_1ms"] > MAX_SHARE_OVER_1MS * late["count"]:
                reasons.append(f"{name}: {late['over_1ms']} of {late['count']} deliveries over 1 ms late")
            if link["missed"] > max(MISSED_FLOOR, MAX_SHARE_MISSED * link["opportunities"]):
                reasons.append(f"{name}: {link['missed']} of {link['opportunities']} opportunities missed")
        for device, dropped in path.get("device_drops", {}).items():
            drops += dropped
            if dropped > MAX_DEVICE_DROPS:
                reasons.append(
                    f"{path['name']} {device.replace('_', ' ')}: {counted(dropped, 'packet')} dropped by the device"
                )
    reasons += [str(figure) for figure in (added.figures if added else ()) if figure.share > MAX_ADDED]
    in_real_time = endpoints_fifo and bool(summary.get("command_fifo"))
    return Fidelity(
        void=bool(reasons),
        reasons=reasons,
        lateness_p50_us=max(p50),
        lateness_p99_us=max(p99),
        lateness_max_us=max(worst),
        over_1ms=over,
        deliveries=count,
        missed=missed,
        device_drops=drops,
        sched_fifo=bool(summary["sched_fifo"]),
        machine=machine.as_json() if machine is not None else None,
        endpoints_fifo=None if exact else in_real_time,
        added=added.as_json() if added is not None else None,
        kept_awake=kept_awake,
        cause=cause(summary, lateness, machine, endpoints_fifo=in_real_time) if reasons and machine else None,
    )
