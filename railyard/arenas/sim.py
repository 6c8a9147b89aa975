"""The sim arena: the job for xlink-sim, its process, and the run's record.

xlink-sim runs both endpoints and the links on a virtual clock, in one process that needs no privileges. It leaves the
same files as a wall-clock run, and docs/reference/sim.md describes its job. A run is exact, so there is no second try.
"""

import asyncio
import json
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from railyard.base.errors import UserError
from railyard.base.jsonl import read_jsonl, summary_of
from railyard.base.paths import program, program_if_built
from railyard.base.provenance import sha256_of
from railyard.experiment.model import NEEDS_KERNEL, TRANSPORT_OF_SCHEME
from railyard.experiment.settings import SETTINGS
from railyard.run import children, fidelity, record, simbatch
from railyard.run.arena import Arena
from railyard.run.outcome import exit_state, last_words
from railyard.run.runspec import RunSpec
from railyard.traces.settings import members

JOB_SCHEMA = 1
PROGRAM = "xlink-sim"
# Virtual time is faster than the wall clock; a run that takes this much longer than its time limit has hung.
WALL_LIMIT_S = 60.0
WALL_SHARE = 4.0


def protection(spec: RunSpec) -> str:
    """The protection of packets: 'real', or 'null', a tag of the same size that takes no time and changes no byte of
    the outputs. Captures need real protection, so that the TLS secrets decrypt them."""
    return "real" if spec.pcap else "null"


def job(spec: RunSpec) -> dict[str, Any]:
    """The job of a run (docs/reference/sim.md). It has no parameters that the experiment does not set."""
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
        "keylog": spec.pcap,
        "link_logs": spec.link_logs,
        "null_crypto": protection(spec) == "null",
    }
    if spec.pcap:
        document["captures"] = True
    if spec.bottlenecks:
        document["bottlenecks"] = [{"name": each.name} | each.members() for each in spec.bottlenecks]
    if spec.link_events:
        document["link_events"] = [event.model_dump(mode="json", exclude_none=True) for event in spec.link_events]
    if spec.player_start_ms:
        document["players"] = [{"start_s": spec.player_start_ms / 1000}]
    return document | job_parameters(spec.parameters)


def job_parameters(parameters: Mapping[str, str]) -> dict[str, str | int | float]:
    """The parameters of a scheme as members of a job."""
    return {name: SETTINGS[name].job_value(text) if name in SETTINGS else text for name, text in parameters.items()}


def _outcome(run_dir: Path, status: int | None) -> tuple[str, str]:
    """The outcome of the run, and a phrase about it, in the same words as for a wall-clock run."""
    summary = summary_of(read_jsonl(run_dir / "player.jsonl"))
    if status is None:
        return "hung", "the run did not end on the wall clock and was stopped"
    if status < 0:
        died = f"{PROGRAM} died of {signal.Signals(-status).name}"
        return "crashed", f"{died}: {last_words(run_dir / 'sim.stderr')}"
    if summary is None:
        ended = f"{PROGRAM} ended with code {status} and the player wrote no summary"
        return "crashed", f"{ended}: {last_words(run_dir / 'sim.stderr')}"
    return str(summary["outcome"]), str(summary.get("message") or "")


def _emulator_summary(spec: RunSpec, run_dir: Path, status: int | None) -> dict[str, Any]:
    """mpshell.json of the run. Raises UserError if it is cut: where many runs share a disk that was full, there may be
    room again by now."""
    try:
        summary: dict[str, Any] = json.loads((run_dir / "mpshell.json").read_text(encoding="utf-8"))
    except ValueError:
        why = f"{PROGRAM} ended with code {status}: {last_words(run_dir / 'sim.stderr').rstrip('.')}"
        raise UserError(f"the run {spec.run_id} has incomplete outputs; was the disk full? {why}.") from None
    return summary


class Sim(Arena):
    name = "sim"
    about = "virtual time"
    exact = True
    notices_full_disk = True
    same_with_qlogs = True
    counts_lateness = False
    starts_late = True
    has_foresight = True
    s_per_run = 0.03
    s_per_video_mb = 0.015
    program_names = (PROGRAM,)

    def refuses(self, scheme: str) -> str | None:
        """Why a scheme cannot run: the simulator has no kernel and no relays. None: it can."""
        return None if TRANSPORT_OF_SCHEME[scheme] == "quic" else NEEDS_KERNEL

    def check(self) -> None:
        """Does nothing: the simulator has no requirements."""

    def refusals(self, specs: Sequence[RunSpec]) -> list[str]:
        """The program's sentence about each job that it refuses, without running it, else an empty one. If it does not
        have a run's endpoints, only links and player are checked. Empty if no program with that option is built."""
        binary = program_if_built(PROGRAM)
        if binary is None:
            return []
        lines = "".join(json.dumps(job(self._with_own_ends(spec))) + "\n" for spec in specs)
        done = subprocess.run([str(binary), "--check"], input=lines, capture_output=True, text=True, check=False)
        return [line.removeprefix("job: ") for line in done.stdout.splitlines()] if done.returncode == 0 else []

    def _with_own_ends(self, spec: RunSpec) -> RunSpec:
        ends = {"scheme": "sp", "parameters": {}, "congestion": "cubic"}
        return spec.model_copy(update=ends) if self.refuses(spec.scheme) else spec

    async def execute(self, spec: RunSpec, run_dir: Path) -> dict[str, Any]:
        (run_dir / "job.json").write_text(json.dumps(job(spec), indent=1) + "\n")
        command = _command(spec, run_dir)
        started, begin = datetime.now(UTC), time.monotonic()
        limit_s = spec.wall_limit_s or WALL_LIMIT_S + WALL_SHARE * spec.time_limit_s
        done, status = False, None
        if own := simbatch.batches():
            (run_dir / "sim.stderr").touch()
            done, status = await own.run(Path(command[0]), run_dir / "job.json", run_dir, limit_s)
        if not done:
            status = await _carry_out(command, run_dir, limit_s)
        wall_s = time.monotonic() - begin
        if status is not None and status > 0 and not (run_dir / "player.jsonl").is_file():
            last_lines = last_words(run_dir / "sim.stderr")
            raise UserError(f"the run {spec.run_id} could not start: {last_lines} ({shlex.join(command[:1])})")
        outcome, message = _outcome(run_dir, status)
        if not (run_dir / "mpshell.json").is_file():
            summary = record.silent_links(spec, {"arena": "sim"})
            (run_dir / "mpshell.json").write_text(json.dumps(summary, indent=1) + "\n")
        verdict = fidelity.judge(_emulator_summary(spec, run_dir, status))
        exits, commands = {"sim": exit_state(status)}, {"sim": command}
        facts = {"packet_protection": protection(spec)}
        ended = record.Ended(started, wall_s, outcome, message, verdict, exits, commands, facts)
        return ended.record(spec, run_dir)

    def together(self) -> AbstractAsyncContextManager[None]:
        return simbatch.batching()

    def with_program(self, spec: RunSpec, file: Path) -> RunSpec:
        return spec.model_copy(
            update={
                "program": file.resolve(),
                "programs_sha256": spec.programs_sha256 | {PROGRAM: sha256_of(file)},
            }
        )

    def planned(self, spec: RunSpec, out: Path) -> list[str]:
        return [shlex.join(_command(spec, out))]

    def by_hand(self, record: dict[str, Any], commands: dict[str, list[str]], out: str) -> list[str]:
        del record
        return [f"mkdir -p {out}", shlex.join(commands["sim"])] if "sim" in commands else []


def _command(spec: RunSpec, run_dir: Path) -> list[str]:
    """The command, with this installation's program or the one that the run names."""
    binary = spec.program or program(PROGRAM)
    return [str(binary), str(run_dir / "job.json"), "--out", str(run_dir)]


async def _carry_out(command: list[str], run_dir: Path, limit_s: float) -> int | None:
    """Runs the program and returns its exit status. None: it did not end within its limit."""
    process = await children.started(command, run_dir / "sim.stderr", dies_by="KILL", start_new_session=True)
    try:
        async with asyncio.timeout(limit_s):
            return await process.wait()
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            await simbatch.stop(process)


ARENA = Sim()
