"""The record of a run, `run.json`, which has the same form in every arena."""

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
"""Files of a run's folder that are about how, when and where it was done. They are no outputs."""


@dataclass(frozen=True)
class Ended:
    """The facts about a run that its arena reports."""

    started: datetime
    wall_s: float
    outcome: str
    message: str
    fidelity: Fidelity
    exits: dict[str, Any]  # exit state of each program, by its name
    commands: dict[str, list[str]]
    facts: dict[str, Any] = field(default_factory=dict)  # further members, and those with other values

    def record(self, spec: RunSpec, run_dir: Path) -> dict[str, Any]:
        """The run's record, with this one try. Also joins the packet captures to one file for each endpoint."""
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
    """Writes the record. A folder with a record is a complete run."""
    (run_dir / "run.json").write_text(json.dumps(record, indent=1) + "\n")


def programs_ended(
    run_dir: Path, shell: dict[str, Any], dead: str | None, *, hung: bool, stopped: str | None = None
) -> tuple[str, str]:
    """The outcome of a run of real programs, and a phrase about it. `shell`: the player's exit state from mpshell.
    `dead`: the program of the server's side that ended before the player. `stopped`: what ended all of them early."""
    if stopped is not None:
        end = "crashed" if "panicked" in stopped else "hung", stopped
    else:
        end = outcome_of(run_dir, shell, hung=hung)
    return after_death(run_dir, dead, end)


def program_facts(
    run_dir: Path, emulator: dict[str, Any], events: Sequence[DoneEvent], listening: dict[str, Any], netstat: str
) -> dict[str, Any]:
    """Members of the record that only real programs have. `netstat`: counters of the server's namespace."""
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
    """A substitute for the emulator's summary, if it ended before it wrote one. All counts are 0."""
    late = {"p50": 0, "p99": 0, "max": 0, "over_1ms": 0, "count": 0}
    link = {"opportunities": 0, "missed": 0, "departed_bytes": 0, "queue_drops": 0, "lateness_us": late}
    paths = [{"name": path.name, "up": link, "down": link, "device_drops": {}} for path in spec.paths]
    return {"schema": SCHEMA, "sched_fifo": True, "paths": paths, **further}
