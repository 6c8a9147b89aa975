"""Does a campaign: all runs of an experiment, some side by side. A run's folder is complete or does not exist.

Layout of the campaign's directory, which `railyard.run.folders` finds or makes:
    campaign.json         the experiment, the command, its time and revision
    runs/<run>/           one completed run; `run.json` in it is its record
    runs/.partial-<run>/  a run under way; renamed when complete, otherwise removed at the next start
    runs/.partial-<run>-void/  a void try of a run that may be repeated
    aside/<run>/          a folder that was in the place of another run
"""

import asyncio
import hashlib
import math
import shlex
import shutil
import sys
import threading
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from railyard.base import provenance
from railyard.base.errors import UserError
from railyard.base.files import check_space
from railyard.base.jsonl import NOT_AS_WRITTEN, read_object
from railyard.base.loop import complete, side_by_side
from railyard.base.words import counted
from railyard.experiment.model import Experiment
from railyard.run import children, folders
from railyard.run import record as run_record
from railyard.run.arena import arena_of
from railyard.run.folders import Identity, resume_words
from railyard.run.outcome import RunRefusedError
from railyard.run.progress import PARTIAL, Silent
from railyard.run.quiet import Quiet
from railyard.run.repetition import Repetitions, Tries, default_budget_s, planned_s
from railyard.run.runspec import KernelMachine, RunSpec

CAMPAIGN_SCHEMA = 1


def identity_of(experiment: Experiment, specs: Sequence[RunSpec], further: dict[str, Any] | None = None) -> Identity:
    """The identity of a campaign's results. Its description, the places of its files, and settings that only help the
    emulator to be on time are no part of it."""
    no_part = {"name", "description", "arena", "keep_awake", "real_time", "repeat_budget_s", "twins", "answer_of"}
    settings = experiment.model_dump(mode="json", exclude=no_part)
    runs = "".join(f"{spec.run_id} {spec.identity()}\n" for spec in sorted(specs, key=lambda spec: spec.run_id))
    facts = {
        "settings": settings | (further or {}),
        "programs": {name: sha for spec in specs for name, sha in spec.programs_sha256.items()},
        "traces": {
            file.name: sha
            for spec in specs
            for path in spec.paths
            for file, sha in ((path.up, path.up_sha256), (path.down, path.down_sha256))
        },
        "runs": hashlib.sha256(runs.encode()).hexdigest(),
    }
    paths = {
        spec.pair: {
            path.name: path.model_dump(mode="json", exclude=path.not_in_identity(), exclude_defaults=True)
            for path in spec.paths
        }
        for spec in specs
    }
    return Identity(experiment.name, "-".join(sorted({spec.arena for spec in specs})), facts, paths)


@dataclass(frozen=True)
class Campaign:
    out: Path

    @property
    def runs(self) -> Path:
        return self.out / "runs"

    def record(self, run_id: str) -> dict[str, Any] | None:
        """The record of a completed run. None: there is none."""
        return read_object(self.runs / run_id / "run.json")

    def pending(self, specs: list[RunSpec]) -> list[RunSpec]:
        """The runs still to do: those that are missing, came from other settings, traces or programs, or are void. In
        virtual time void runs count as done: another try would be void again."""
        return [spec for spec in specs if not self._is_done(spec)]

    def _is_done(self, spec: RunSpec) -> bool:
        record = self.record(spec.run_id)
        if record is None or record.get("identity") != spec.identity():
            return False
        return spec.is_exact or not record["fidelity"]["void"]

    def done_in_own_kernel(self, spec: RunSpec) -> bool:
        """Whether a run without a kernel, because none is at hand, is done in the kernel that its record names."""
        try:
            kernel = KernelMachine.model_validate((self.record(spec.run_id) or {})["config"]["kernel"])
        except NOT_AS_WRITTEN:
            return False
        return self._is_done(spec.model_copy(update={"kernel": kernel}))

    def write_record(
        self,
        experiment: Experiment,
        specs: list[RunSpec],
        not_run: list[dict[str, str]],
        further: dict[str, Any] | None,
        *,
        complete: bool = False,
    ) -> None:
        """Writes `campaign.json`: the experiment, the command, and the runs and rows that follow. `further`: more
        members. `complete`: all runs are done. Then a record that differs only in command, time and revision stays."""
        record = {
            "schema": CAMPAIGN_SCHEMA,
            "experiment": experiment.model_dump(mode="json"),
            # The command that resumes the campaign: without --fresh, which would begin another one.
            "command": shlex.join(["railyard", *(word for word in sys.argv[1:] if word != "--fresh")]),
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "git": provenance.git_state(),
            "runs": [spec.run_id for spec in specs],
            "not_run": not_run,
        } | (further or {})
        before = read_object(self.out / "campaign.json") if complete else None
        if before is None or record != before | {name: record[name] for name in ("command", "started", "git")}:
            folders.write_json(self.out / "campaign.json", record)

    def sweep(self) -> None:
        """Removes the incomplete runs of a campaign that was killed."""
        for partial in self.runs.glob(f"{PARTIAL}*"):
            if partial.is_dir():
                shutil.rmtree(partial, ignore_errors=True)
            else:
                partial.unlink(missing_ok=True)

    def borrow(self, specs: list[RunSpec], *, qlogs: bool) -> dict[str, int]:
        """Takes completed runs with the same settings, traces and programs from other campaigns of the same experiment,
        unless this one is fresh. `qlogs`: only runs that have kept their qlogs. Returns the number of runs by the
        folder's name."""
        taken: dict[str, int] = {}
        facts = folders.read_facts(self.out)
        if facts.get("fresh", True):
            return taken
        others = [Campaign(folder) for folder in folders.siblings(self.out, facts["name"])]
        for spec in self.pending(specs) if others else []:
            for other in others:
                record = other.record(spec.run_id)
                if record is None or record.get("identity") != spec.identity() or record["fidelity"]["void"]:
                    continue
                if qlogs and spec.transport == "quic" and not any(other.runs.glob(f"{spec.run_id}/qlog/*")):
                    continue  # the qlogs were not kept there
                if not folders.is_readable(other.runs / spec.run_id):
                    continue
                partial = self.runs / f"{PARTIAL}{spec.run_id}"
                shutil.rmtree(partial, ignore_errors=True)
                shutil.copytree(other.runs / spec.run_id, partial, symlinks=True, copy_function=folders.link_file)
                self.install(partial, spec.run_id)
                taken[other.out.name] = taken.get(other.out.name, 0) + 1
                break
        return taken

    def forget_tables(self) -> None:
        """Removes the Parquet files, because the set of runs is about to change."""
        for table in self.out.glob("*.parquet"):
            table.unlink(missing_ok=True)

    def check_space(self) -> None:
        """Raises UserError if the disk is full: then a run's files may be cut, so it is no result."""
        check_space(self.out, f"Completed runs are kept: make room, and {resume_words()}.")

    def install(self, partial: Path, run_id: str) -> None:
        """Moves a completed run to its place by rename. Sets aside a folder that is there already."""
        final = self.runs / run_id
        if final.exists():
            folders.set_aside(final, self.out / "aside")
        partial.rename(final)


def _aside(campaign: Campaign, spec: RunSpec) -> Path:
    """The folder of a run's last try, until it is kept as the run or another try replaces it."""
    return campaign.runs / f"{PARTIAL}{spec.run_id}-void"


async def _try_once(campaign: Campaign, tries: Tries, reporter: Silent) -> None:
    """Does one more try of a run and leaves it in its `_aside` folder."""
    spec = tries.spec
    partial, aside = campaign.runs / f"{PARTIAL}{spec.run_id}", _aside(campaign, spec)
    try:
        reporter.started(spec, len(tries.made) + 1)
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        arena = arena_of(spec.arena)
        tried = await arena.execute(spec, partial)
        if not (arena.notices_full_disk and tried["outcome"] == "complete"):
            campaign.check_space()
        tries.add(tried)
        shutil.rmtree(aside, ignore_errors=True)
        partial.rename(aside)
    except (OSError, ValueError, UserError):
        campaign.check_space()  # a full disk is then the cause of the error
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _keep(campaign: Campaign, tries: Tries, budget_s: float, reporter: Silent) -> None:
    """Makes the last try the run. Its record lists all tries."""
    aside = _aside(campaign, tries.spec)
    kept = tries.whole_record(budget_s)
    try:
        run_record.write(aside, kept)
        campaign.install(aside, tries.spec.run_id)
    except OSError:
        campaign.check_space()
        raise
    reporter.finished(tries.spec, kept)


async def _round(
    campaign: Campaign,
    runs: list[Tries],
    jobs: int,
    reporter: Silent,
    repetitions: Repetitions,
    until: float,
    most_hung: float = math.inf,
) -> list[Tries]:
    """Tries each run once, `jobs` side by side. Returns the runs that are to be repeated or were not tried, because no
    try begins after `until`. The first error ends the round; completed runs stay for the next start. A run that the
    machine may refuse (RunSpec.may_be_refused) is reported instead. Once `most_hung` runs have hung, no other begins,
    and the remaining ones count as refused."""
    left: list[Tries] = []

    async def work(tries: Tries) -> None:
        if monotonic() >= until:
            left.append(tries)
            return
        if repetitions.hung >= most_hung:
            words = f"not run: {counted(repetitions.hung, 'run')} of the same program hung"
            repetitions.refused[tries.spec.run_id] = words
            return
        repetitions.count += bool(tries.made)
        try:
            await _try_once(campaign, tries, reporter)
        except RunRefusedError as error:
            if not tries.spec.may_be_refused:
                raise
            repetitions.refused[tries.spec.run_id] = str(error)
            reporter.refused(tries.spec, str(error))
            return
        repetitions.hung += tries.record["outcome"] == "hung"
        if not tries.void or tries.exhausted or repetitions.budget_s <= 0:
            _keep(campaign, tries, repetitions.budget_s, reporter)
            repetitions.void += [tries.spec.run_id] if tries.void else []
        else:
            reporter.repeated(tries.spec, len(tries.made), tries.record["fidelity"]["reasons"])
            left.append(tries)

    await side_by_side(runs, work, jobs)
    return left


async def run_all(
    campaign: Campaign,
    specs: list[RunSpec],
    jobs: int,
    reporter: Silent,
    budget_s: float,
    quiet: Quiet | None = None,
    most_hung: float = math.inf,
) -> Repetitions:
    """Does all runs, then repeats void ones in rounds while the time for repetitions lasts. A round begins when the
    machine is quiet, or when the time left is enough for one more try only."""
    repetitions = Repetitions(budget_s)
    left: list[Tries] = []
    try:
        left = await _round(campaign, [Tries(spec) for spec in specs], jobs, reporter, repetitions, math.inf, most_hung)
        begin = monotonic()
        while left and monotonic() < begin + budget_s:
            if quiet is not None:
                await quiet.moment(max(0.0, begin + budget_s - monotonic() - planned_s([left[0].spec], 1)))
            left = await _round(campaign, left, jobs, reporter, repetitions, begin + budget_s)
        repetitions.spent_s = monotonic() - begin
        repetitions.used_up = bool(left) and budget_s > 0
        for tries in left:
            _keep(campaign, tries, budget_s, reporter)
            repetitions.void.append(tries.spec.run_id)
    finally:
        for spec in specs:
            shutil.rmtree(_aside(campaign, spec), ignore_errors=True)
    return repetitions


def run_campaign(
    campaign: Campaign,
    specs: list[RunSpec],
    jobs: int,
    reporter: Silent,
    repeat_budget_s: float | None = None,
    quiet: Quiet | None = None,
    most_hung: float = math.inf,
) -> Repetitions:
    """Does the runs until `most_hung` have hung, and repeats void ones for up to `repeat_budget_s` (None:
    repetition.default_budget_s). SIGINT, SIGTERM and SIGHUP end it cleanly, with KeyboardInterrupt."""
    budget_s = default_budget_s(specs, jobs) if repeat_budget_s is None else repeat_budget_s
    campaign.forget_tables()

    async def all_together() -> Repetitions:
        async with AsyncExitStack() as stack:
            for name in {spec.arena for spec in specs}:
                await stack.enter_async_context(arena_of(name).together())
            return await run_all(campaign, specs, jobs, reporter, budget_s, quiet, most_hung)

    async def main() -> Repetitions:
        work = asyncio.create_task(all_together())
        loop = asyncio.get_running_loop()
        if threading.current_thread() is threading.main_thread():  # Python handles signals only there
            for number in children.ending_signals():
                loop.add_signal_handler(number, work.cancel)
        return await work

    try:
        with children.interrupted_by_signals():  # the loop would leave the signals without a handler
            return complete(main())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
