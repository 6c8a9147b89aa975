"""One run in the sim arena: the job for xlink-sim, its process, and the run's record.

xlink-sim runs both endpoints and the links on a virtual clock, in one process that needs no privileges. It leaves the
same files as a wall-clock run, and docs/reference/sim.md describes its job. A run is exact, so there is no second try.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from railyard.base import provenance
from railyard.base.errors import UserError
from railyard.base.jsonl import read_jsonl, summary_of
from railyard.base.paths import program
from railyard.experiment.settings import SETTINGS
from railyard.run import fidelity
from railyard.run.runspec import RunSpec
from railyard.traces.settings import members

SCHEMA = 1
JOB_SCHEMA = 1
PROGRAM = "xlink-sim"
# Virtual time is faster than the wall's; a run that takes so much longer than its time limit will not end.
WALL_LIMIT_S = 60.0
WALL_SHARE = 4.0


def protection(spec: RunSpec) -> str:
    """How packets are protected: 'real', or 'null', a tag of the same size that costs nothing and changes no byte of
    the outputs. A run with qlogs also keeps its TLS secrets, and these are the secrets of its packets."""
    return "real" if spec.qlog else "null"


def job(spec: RunSpec) -> dict[str, Any]:
    """The job of a run (docs/reference/sim.md). Parameters that an experiment leaves out are left out."""
    player = spec.player.model_dump(exclude={"duration_s"}, exclude_none=True)
    document: dict[str, Any] = {
        "schema": JOB_SCHEMA,
        "seed": spec.seed,
        "start_offset_ms": spec.start_offset_ms,
        "time_limit_s": spec.time_limit_s,
        "scheme": spec.scheme,
        "primary": spec.primary,
        "cc": spec.congestion,
        "send_buffer_bytes": spec.buffers.send_bytes,
        "paths": [
            path.model_dump(mode="json", include={"name", "technology", "up", "down"})
            | members(path.delay_ms, path.queue, {"loss": path.loss} | path.settings, path.delay_traces)
            for path in spec.paths
        ],
        "player": player | {"video_bytes": spec.player.video_bytes},
        "qlog": spec.qlog,
        "keylog": spec.qlog,
        "link_logs": spec.link_logs,
        "null_crypto": protection(spec) == "null",
    }
    if spec.link_events:
        document["link_events"] = [event.model_dump(mode="json", exclude_none=True) for event in spec.link_events]
    if spec.player_start_ms:
        document["players"] = [{"start_s": spec.player_start_ms / 1000}]
    return document | job_parameters(spec.parameters)


def job_parameters(parameters: Mapping[str, str]) -> dict[str, str | int | float]:
    """The parameters of a scheme as members of a job."""
    return {name: SETTINGS[name].job_value(text) if name in SETTINGS else text for name, text in parameters.items()}


def _ended(status: int | None) -> dict[str, Any]:
    if status is None:
        return {"code": None, "signal": None}
    if status < 0:
        return {"code": None, "signal": signal.Signals(-status).name}
    return {"code": status, "signal": None}


def _last_words(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def _outcome(run_dir: Path, status: int | None) -> tuple[str, str]:
    """How the run ended, and a phrase about it; the same words as for a wall-clock run."""
    summary = summary_of(read_jsonl(run_dir / "player.jsonl"))
    words = _last_words(run_dir / "sim.stderr")
    if status is None:
        return "hung", "the run did not end on the wall clock and was stopped"
    if status < 0:
        return "crashed", f"{PROGRAM} died of {signal.Signals(-status).name}: {words}"
    if summary is None:
        return "crashed", f"{PROGRAM} ended with code {status} and the player wrote no summary: {words}"
    return str(summary["outcome"]), str(summary.get("message") or "")


def _nothing_sent(spec: RunSpec) -> dict[str, Any]:
    """The summary of links of which nothing is known, because the program died before it wrote its own."""
    late = {"p50": 0, "p99": 0, "max": 0, "over_1ms": 0, "count": 0}
    link = {"opportunities": 0, "missed": 0, "departed_bytes": 0, "queue_drops": 0, "lateness_us": late}
    paths = [{"name": path.name, "up": link, "down": link, "device_drops": {}} for path in spec.paths]
    return {"schema": SCHEMA, "arena": "sim", "sched_fifo": True, "paths": paths}


def _record(spec: RunSpec, run_dir: Path, command: list[str], status: int | None) -> dict[str, Any]:
    outcome, message = _outcome(run_dir, status)
    if not (run_dir / "mpshell.json").is_file():
        (run_dir / "mpshell.json").write_text(json.dumps(_nothing_sent(spec), indent=1) + "\n")
    links = json.loads((run_dir / "mpshell.json").read_text())
    return {
        "schema": SCHEMA,
        "run_id": spec.run_id,
        "identity": spec.identity(),
        "outcome": outcome,
        "message": message,
        "fidelity": fidelity.judge(links).as_json(),
        "packet_protection": protection(spec),
        "exit": {"sim": _ended(status)},
        "config": spec.model_dump(mode="json"),
        "commands": {"sim": command},
        "listening": {},
        "mptcp": {"server": {}, "player": {}},
        "sysctls": {},
        "git": provenance.git_state(),
        "kernel": provenance.kernel(),
        "cpu": provenance.cpu(),
        "versions": provenance.versions(),
    }


async def execute(spec: RunSpec, run_dir: Path) -> None:
    """Carries the run out and writes `run.json`. Raises UserError when the program refuses the job."""
    (run_dir / "job.json").write_text(json.dumps(job(spec), indent=1) + "\n")
    binary = spec_program(spec)
    command = [str(binary), str(run_dir / "job.json"), "--out", str(run_dir)]
    started, begin = datetime.now(UTC), time.monotonic()
    with (run_dir / "sim.stderr").open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(
            *("setpriv", "--pdeathsig", "KILL", "--", *command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=stderr,
        )
    status: int | None = None
    try:
        async with asyncio.timeout(WALL_LIMIT_S + WALL_SHARE * spec.time_limit_s):
            status = await process.wait()
    except TimeoutError:
        pass
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    wall_s = time.monotonic() - begin
    if status not in (None, 0) and not (run_dir / "player.jsonl").is_file() and (status or 0) > 0:
        words = _last_words(run_dir / "sim.stderr")
        raise UserError(f"the run {spec.run_id} could not start: {words} ({shlex.join(command[:1])})")
    times = {"started": started.isoformat(timespec="seconds"), "wall_s": round(wall_s, 3)}
    record = _record(spec, run_dir, command, status) | times
    (run_dir / "run.json").write_text(json.dumps(record, indent=1) + "\n")
    (run_dir / "spec.json").unlink(missing_ok=True)


def spec_program(spec: RunSpec) -> Path:
    """The program of a run: the project's own, or the one of another build that the run names."""
    return spec.program or program(PROGRAM)
