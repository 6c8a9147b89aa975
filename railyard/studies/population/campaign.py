"""A campaign over a population: viewers drawn, thresholds measured on the pilot, every arm played, parts gathered.

Layout of its folder, which `railyard.run.folders` finds or makes:
    folder.json       what its results depend on
    population.json   the population as it was asked for, the command, where and with what
    traces/           pairs generated for it
    parts/            plays; each file whole or not there
    plays.parquet     the plays that were asked for, in one file
"""

from __future__ import annotations

import hashlib
import json
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from railyard.arenas.sim import PROGRAM
from railyard.base import provenance
from railyard.base.errors import UserError
from railyard.base.paths import program
from railyard.base.yamlfile import near_miss
from railyard.experiment.model import MeasuredScheme, MeasuredThresholds, SchemeEntry
from railyard.report.exhibit import Size
from railyard.run.folders import Identity, read_facts, results_folder, write_json
from railyard.studies.population.executors import Batch, Executor, Failed
from railyard.studies.population.model import Population, Scale
from railyard.studies.population.parts import PLAYS_FILE, Parts, write_plays
from railyard.studies.population.play import Arm, Row, Task, arm_of, tasks_of
from railyard.studies.population.scenes import Library
from railyard.studies.population.viewers import PILOT_DAY, Viewer, draw_viewers
from railyard.studies.thresholds import measuring, th

RECORD_SCHEMA = 1
RECORD_FILE = "population.json"
PLAYS_A_BATCH = 24
MOST_SET_ASIDE = (10, 0.01)  # viewers, and a share of them: a campaign in which more than both fail ends

Tell = Callable[[str], None]
Progress = Callable[[int, int], None]
"""Plays done, plays to do."""


@dataclass(frozen=True)
class Asked:
    """What a command asked for."""

    size: Size = "default"
    arms: tuple[str, ...] | None = None  # labels; None: all of the population's
    recorded: bool = False
    fresh: bool = False
    viewers_per_day: int | None = None
    days: int | None = None


@dataclass(frozen=True)
class Outcome:
    """What a campaign came to."""

    folder: Path
    rows: list[Row]  # of all arms, without the pilot
    entries: list[SchemeEntry]
    record: dict[str, Any]


def scale_of(population: Population, asked: Asked) -> Scale:
    change = {"viewers_per_day": asked.viewers_per_day, "days": asked.days}
    if asked.size not in population.sizes:
        raise UserError(f"{population.name} has no size '{asked.size}'; {near_miss(asked.size, population.sizes)}")
    scale = population.sizes[asked.size]
    return scale.model_copy(update={name: value for name, value in change.items() if value is not None})


def _missing(tasks: Sequence[Task], known: set[str]) -> list[Task]:
    """The plays that are not there yet."""
    missing: list[Task] = []
    for task in tasks:
        arms = tuple(arm for arm, name in zip(task.arms, task.identities, strict=True) if name not in known)
        if arms:
            missing.append(task if arms == task.arms else replace(task, arms=arms))
    return missing


def _batches(tasks: Sequence[Task]) -> Iterator[Batch]:
    """A few viewers together, so that results are neither tiny nor long in coming."""
    waiting: list[Task] = []
    for task in tasks:
        waiting.append(task)
        if sum(len(each.arms) for each in waiting) >= PLAYS_A_BATCH:
            yield Batch(tuple(waiting))
            waiting = []
    if waiting:
        yield Batch(tuple(waiting))


def _count_set_aside(failed: Sequence[Failed], viewers: int) -> None:
    most, share = MOST_SET_ASIDE
    if len(failed) == viewers or len(failed) > max(most, share * viewers):
        raise UserError(f"{len(failed)} of {viewers} viewers could not be played; the last one: {failed[-1].why}")


def play_tasks(
    parts: Parts, tasks: Sequence[Task], executor: Executor, progress: Progress
) -> tuple[list[Row], list[Failed]]:
    """Plays what is missing. The rows of all tasks but those of viewers that were set aside, and these."""
    wanted = [name for task in tasks for name in task.identities]
    parts.borrow(set(wanted))
    missing = _missing(tasks, parts.known())
    failed: list[Failed] = []
    total = sum(len(task.arms) for task in tasks)
    done = total - sum(len(task.arms) for task in missing)
    progress(done, total)
    for played in executor.results(_batches(missing)) if missing else ():
        if played.rows:
            parts.add(played.rows)
        failed += played.failed
        if played.failed:
            _count_set_aside(failed, len(tasks))
        done += len(played.rows)
        progress(done, total)
    parts.merge()
    without = {(one.day, one.viewer) for one in failed}
    kept = [task for task in tasks if (task.viewer.day, task.viewer.number) not in without]
    # A scheme may stand in parts under an older label: the label is no part of what decides a play.
    label = {name: arm.label for task in kept for arm, name in zip(task.arms, task.identities, strict=True)}
    found = parts.rows(label)
    if len(found) != len(label):
        raise UserError(f"{parts.folder}: {len(label) - len(found)} plays are missing; run the command again.")
    return [row | {"arm": label[row["identity"]]} for row in found], failed


def _pilot_arm(entry: SchemeEntry) -> Arm:
    return arm_of(measuring(entry))


@dataclass
class _Work:
    population: Population
    parts: Parts
    executor: Executor
    progress: Progress
    tell: Tell
    binary: Path
    pilot: list[Viewer]

    def resolve(self, entries: Sequence[SchemeEntry]) -> list[SchemeEntry]:
        """`thresholds: [X, Y]` as milliseconds, measured on the pilot viewers with the control off."""
        ordered: dict[Arm, tuple[list[float], int]] = {}
        result: list[SchemeEntry] = []
        for entry in entries:
            if entry.thresholds is None:
                result.append(entry)
            elif entry.thresholds == "off":
                change = {"label": entry.base_label(), "thresholds": None, "reinjection": "none"}
                result.append(entry.model_copy(update=change))
            else:
                arm = _pilot_arm(entry)
                if arm not in ordered:
                    self.tell(f"measuring play-time left with the control off on {len(self.pilot)} pilot viewers")
                    ordered[arm] = self._measure(arm)
                result.append(self._measured(entry, *ordered[arm]))
        return result

    def _measure(self, arm: Arm) -> tuple[list[float], int]:
        video = self.population.video.with_videos(1)  # one server has one setting, however many videos follow
        population = self.population.model_copy(update={"video": video})
        tasks = tasks_of(population, self.pilot, [arm], self.binary)
        rows, _ = play_tasks(self.parts, tasks, self.executor, self.progress)
        samples = sorted(sample for row in rows for sample in row["play_time_left_ms"])
        if not samples:
            raise UserError("no pilot viewer got as far as playing, so there is no play-time left to measure.")
        return samples, len(rows)

    def _measured(self, entry: SchemeEntry, samples: list[float], runs: int) -> MeasuredScheme:
        x, y = entry.thresholds if isinstance(entry.thresholds, tuple) else (0.0, 0.0)
        found = MeasuredThresholds(
            x=x,
            y=y,
            t_th1_ms=round(th(samples, x), 3),
            t_th2_ms=round(th(samples, y), 3),
            arena="sim",
            scheme=measuring(entry).model_dump(exclude_none=True),
            pairs=sorted({viewer.pair for viewer in self.pilot}),
            seeds=[self.population.seed],
            runs=runs,
            samples=len(samples),
            sha256=hashlib.sha256(json.dumps(samples).encode()).hexdigest(),
        )
        given = {name: getattr(entry, name) for name in SchemeEntry.model_fields} | {"label": entry.base_label()}
        given |= {"t_th1_ms": found.t_th1_ms, "t_th2_ms": found.t_th2_ms}
        return MeasuredScheme.model_construct(**given, measured=found)


@dataclass(frozen=True)
class Place:
    """Where results go: under a name, or into the user's own folder."""

    name: str
    out: Path | None = None


def run_population(
    population: Population, place: Place, asked: Asked, executor: Executor, tell: Tell, progress: Progress
) -> Outcome:
    """Plays every arm for every viewer, as far as that is not there yet."""
    binary = program(PROGRAM)
    scale = scale_of(population, asked)
    labels = asked.arms or tuple(arm.base_label() for arm in population.arms)
    arms = [population.arm(label) for label in labels]
    begin = time.monotonic()
    identity = _identity(population.model_copy(update={"arms": arms}), place.name, scale, asked, binary)
    with results_folder(identity, tell, out=place.out, fresh=asked.fresh) as out:
        parts = Parts(out / "parts", [] if read_facts(out).get("fresh") else _others(out))
        parts.sweep()
        library = Library(population, out / "traces", recorded=asked.recorded)
        pilot = draw_viewers(population, library, [PILOT_DAY], scale.pilot_viewers)
        viewers = draw_viewers(population, library, range(1, scale.days + 1), scale.viewers_per_day)
        work = _Work(population, parts, executor, progress, tell, binary, pilot)
        entries = work.resolve(arms)
        tell(f"{len(viewers)} viewers, {len(entries)} arms: {len(viewers) * len(entries)} plays")
        tasks = tasks_of(population, viewers, [arm_of(entry) for entry in entries], binary)
        rows, failed = play_tasks(parts, tasks, executor, progress)
        for one in failed:
            tell(f"viewer {one.viewer} of day {one.day} was set aside: {one.why}")
        record = _record(population, entries, scale, asked, viewers, binary)
        record["set_aside"] = [asdict(one) for one in failed]
        record["wall_s"] = round(time.monotonic() - begin, 1)
        write_plays(rows, out / PLAYS_FILE)
        write_json(out / RECORD_FILE, record)
    return Outcome(out, rows, entries, record)


def _others(out: Path) -> list[Path]:
    """The parts of other populations beside this one: plays are known by what decides them, whoever asked for them."""
    return sorted(folder for folder in out.parent.glob("*/parts") if not folder.parent.is_symlink())


def _identity(population: Population, name: str, scale: Scale, asked: Asked, binary: Path) -> Identity:
    """What the results depend on. Generated pairs follow from the settings, and are kept in the folder."""
    settings = population.model_dump(mode="json", exclude={"description", "sizes"}, exclude_none=True)
    facts = {
        "settings": settings | {"scale": scale.model_dump(mode="json"), "recorded": asked.recorded},
        "programs": {PROGRAM: provenance.sha256_of(binary)},
        "traces": Library(population, Path(), recorded=asked.recorded).traces(),
    }
    return Identity(name, "sim", facts)


def _record(
    population: Population,
    entries: Sequence[SchemeEntry],
    scale: Scale,
    asked: Asked,
    viewers: Sequence[Viewer],
    binary: Path,
) -> dict[str, Any]:
    traces = {Path(file).name: sha for viewer in viewers for path in viewer.paths
              for file, sha in ((path.up, path.up_sha256), (path.down, path.down_sha256))}  # fmt: skip
    return {
        "schema": RECORD_SCHEMA,
        "population": population.model_dump(mode="json", exclude={"arms"}, exclude_none=True),
        "size": asked.size,
        "days": scale.days,
        "viewers_per_day": scale.viewers_per_day,
        "pilot_viewers": scale.pilot_viewers,
        "recorded": asked.recorded,
        "arms": [entry.model_dump(mode="json", exclude_none=True) for entry in entries],
        "command": shlex.join(["railyard", *sys.argv[1:]]),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "git": provenance.git_state(),
        "kernel": provenance.kernel(),
        "programs_sha256": {PROGRAM: provenance.sha256_of(binary)},
        "traces": dict(sorted(traces.items())),
    }
