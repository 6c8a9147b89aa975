"""`run.json`: what a run's record says, the same in every arena."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from railyard.base import provenance
from railyard.run import captures
from railyard.run.fidelity import Fidelity
from railyard.run.linkevents import DoneEvent
from railyard.run.outcome import after_death, mptcp_counters, outcome_of, start_lag_s
from railyard.run.runspec import RunSpec

SCHEMA = 1
ABOUT = ("run.json", "job.json", "kernel.log", "replay.html")
"""Files of a run's folder that say how it was done, when and where, and not how it came out."""


@dataclass(frozen=True)
class Ended:
    """What an arena has to say of a run that it has carried out."""

    started: datetime
    wall_s: float
    outcome: str
    message: str
    fidelity: Fidelity
    exits: dict[str, Any]  # how each program ended, by its name
    commands: dict[str, list[str]]
    facts: dict[str, Any] = field(default_factory=dict)  # further members, and those that are not as by default

    def record(self, spec: RunSpec, run_dir: Path) -> dict[str, Any]:
        """The run's record, of a single try. Its packet captures become one file for each endpoint."""
        captures.join(run_dir, [path.name for path in spec.paths])
        known = {
            "schema": SCHEMA,
            "run_id": spec.run_id,
            "identity": spec.identity(),
            "started": self.started.isoformat(timespec="seconds"),
            "wall_s": round(self.wall_s, 3),
            "outcome": self.outcome,
            "message": self.message,
            "fidelity": self.fidelity.as_json(),
            "exit": self.exits,
            "config": spec.model_dump(mode="json"),
            "commands": self.commands,
            "listening": {},
            "mptcp": {"server": {}, "player": {}},
            "sysctls": {},
            "git": provenance.git_state(),
            "kernel": provenance.kernel(),
            "cpu": provenance.cpu(),
            "versions": provenance.versions(),
            **self.facts,
        }
        return known | {"tries": [{key: known[key] for key in ("started", "wall_s", "outcome", "fidelity")}]}


def write(run_dir: Path, record: Mapping[str, Any]) -> None:
    """A folder with a record is a complete run."""
    (run_dir / "run.json").write_text(json.dumps(record, indent=1) + "\n")


def programs_ended(
    run_dir: Path, shell: dict[str, Any], dead: str | None, *, hung: bool, stopped: str | None = None
) -> tuple[str, str]:
    """How a run of real programs ended, and a phrase about it. `shell`: mpshell's exit of the player; `dead`: who of
    the server's side had ended before it; `stopped`: what ended all of them before their time."""
    if stopped is not None:
        end = "crashed" if "panicked" in stopped else "hung", stopped
    else:
        end = outcome_of(run_dir, shell, hung=hung)
    return after_death(run_dir, dead, end)


def program_facts(
    run_dir: Path, emulator: dict[str, Any], events: Sequence[DoneEvent], listening: dict[str, Any], netstat: str
) -> dict[str, Any]:
    """What real programs tell, and a simulation does not. `netstat`: counters of the server's namespace."""
    inner = run_dir / "player.netstat"
    return {
        "start_lag_s": start_lag_s(run_dir, emulator),
        **({"link_events": [event.as_json() for event in events]} if events else {}),
        "listening": listening,
        "mptcp": {
            "server": mptcp_counters(netstat),
            "player": mptcp_counters(inner.read_text() if inner.is_file() else ""),
        },
    }


def silent_links(spec: RunSpec, further: Mapping[str, Any]) -> dict[str, Any]:
    """The emulator's summary where it ended before it wrote one: nothing is known of its links."""
    late = {"p50": 0, "p99": 0, "max": 0, "over_1ms": 0, "count": 0}
    link = {"opportunities": 0, "missed": 0, "departed_bytes": 0, "queue_drops": 0, "lateness_us": late}
    paths = [{"name": path.name, "up": link, "down": link, "device_drops": {}} for path in spec.paths]
    return {"schema": SCHEMA, "sched_fifo": True, "paths": paths, **further}
