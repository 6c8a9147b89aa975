"""A campaign over a population: viewers drawn, thresholds measured on the pilot, every arm played, parts gathered.

Layout of its folder, which `railyard.run.folders` finds or makes:
    folder.json       all facts that its results depend on
    population.json   the population, the command, the machine and the programs
    traces/           pairs generated for it
    parts/            plays, in complete files
    plays.parquet     the plays of the population in one file
"""

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

import numpy as np
import numpy.typing as npt

from railyard.arenas.sim import PROGRAM
from railyard.base import provenance
from railyard.base.errors import UserError
from railyard.base.paths import program
from railyard.base.yamlfile import near_miss
from railyard.experiment.model import MeasuredScheme, SchemeEntry
from railyard.report.exhibit import Size
from railyard.run.folders import Identity, read_facts, results_folder, write_json
from railyard.studies.population.executors import Batch, Executor, Failed, Recipe
from railyard.studies.population.model import Population, Scale
from railyard.studies.population.parts import PLAYS_FILE, SCHEMA_VERSION, Parts, elsewhere
from railyard.studies.population.play import Arm, arm_of
from railyard.studies.population.scenes import Library
from railyard.studies.population.viewers import PILOT_DAY
from railyard.studies.thresholds import in_milliseconds, measuring, with_measured

RECORD_SCHEMA = 1
RECORD_FILE = "population.json"
PLAYS_A_BATCH = 24
MOST_SET_ASIDE = (10, 0.01)  # a number and a share of viewers: if more than both fail, the campaign ends

Tell = Callable[[str], None]
Progress = Callable[[int, int], None]
"""Plays done, plays to do."""


@dataclass(frozen=True)
class Asked:
    """The options of a command."""

    size: Size = "default"
    arms: tuple[str, ...] | None = None  # labels; None: all arms
    recorded: bool = False
    fresh: bool = False
    viewers_per_day: int | None = None
    days: int | None = None


@dataclass(frozen=True)
class Viewers:
    """The first `per_day` viewers of some days."""

    days: tuple[int, ...]
    per_day: int

    @property
    def count(self) -> int:
        return len(self.days) * self.per_day


@dataclass(frozen=True)
class Outcome:
    """The result of a campaign."""

    folder: Path
    entries: list[SchemeEntry]
    record: dict[str, Any]
    plays: int
    """The number of plays in all arms, without the pilot."""
    pace: "Pace"


def scale_of(population: Population, asked: Asked) -> Scale:
    change = {"viewers_per_day": asked.viewers_per_day, "days": asked.days}
    if asked.size not in population.sizes:
        raise UserError(f"{population.name} has no size '{asked.size}'; {near_miss(asked.size, population.sizes)}")
    scale = population.sizes[asked.size]
    return scale.model_copy(update={name: value for name, value in change.items() if value is not None})


def _batches(recipe: Recipe, days: Sequence[int], done: npt.NDArray[np.bool_]) -> Iterator[Batch]:
    """Groups a few viewers, so that results are neither tiny nor late. `done`: the result of Parts.done()."""
    for place, day in enumerate(days):
        waiting: list[tuple[int, tuple[int, ...]]] = []
        for viewer in np.flatnonzero(~done[:, place].all(axis=0)):
            waiting.append((int(viewer) + 1, tuple(int(arm) for arm in np.flatnonzero(~done[:, place, viewer]))))
            if sum(len(arms) for _, arms in waiting) >= PLAYS_A_BATCH:
                yield Batch(recipe, day, tuple(waiting))
                waiting = []
        if waiting:
            yield Batch(recipe, day, tuple(waiting))


def _count_set_aside(failed: Sequence[Failed], viewers: int) -> None:
    most, share = MOST_SET_ASIDE
    if len(failed) == viewers or len(failed) > max(most, share * viewers):
        raise UserError(f"{len(failed)} of {viewers} viewers could not be played; the last one: {failed[-1].why}")


@dataclass
class Pace:
    """The pace of plays, without those that existed already."""

    plays: int = 0
    seconds: float = 0.0

    @property
    def play_s(self) -> float:
        return self.seconds / max(1, self.plays)


def play_missing(
    parts: Parts, recipe: Recipe, viewers: Viewers, executor: Executor, progress: Progress, pace: Pace
) -> list[Failed]:
    """Does the missing plays. Returns the viewers that were set aside."""
    texts = [arm.text for arm in recipe.arms]
    done = parts.done(texts, viewers.days, viewers.per_day)
    elsewhere(recipe.others)  # read once here, before workers that also need it start
    failed: list[Failed] = []
    count, total = int(done.sum()), done.size
    progress(count, total)
    begin, fresh = time.monotonic(), 0
    for played in executor.results(_batches(recipe, viewers.days, done)) if count < total else ():
        if played.plays:
            parts.add(played.part, played.plays)
        failed += played.failed
        if played.failed:
            _count_set_aside(failed, viewers.count)
        count += played.plays
        fresh += played.plays - played.borrowed
        progress(count, total)
    pace.plays += fresh
    pace.seconds += time.monotonic() - begin if fresh else 0.0
    parts.merge()
    return failed


@dataclass
class _Work:
    population: Population
    parts: Parts
    executor: Executor
    progress: Progress
    tell: Tell
    recipe: Recipe
    """Without arms."""
    pilot: Viewers
    pace: Pace

    def resolve(self, entries: Sequence[SchemeEntry]) -> list[SchemeEntry]:
        """`thresholds: [X, Y]` as milliseconds, measured on the pilot viewers with the control off."""
        ordered: dict[Arm, tuple[list[float], int]] = {}

        def of(entry: SchemeEntry) -> MeasuredScheme:
            arm = arm_of(measuring(entry))
            if arm not in ordered:
                self.tell(f"measuring play-time left with the control off on {self.pilot.count} pilot viewers")
                ordered[arm] = self._measure(arm)
            return self._measured(entry, *ordered[arm])

        return in_milliseconds(entries, of)

    def play(self, arms: Sequence[Arm], viewers: Viewers, population: Population | None = None) -> list[Failed]:
        recipe = replace(self.recipe, arms=tuple(arms), population=population or self.population)
        return play_missing(self.parts, recipe, viewers, self.executor, self.progress, self.pace)

    def _measure(self, arm: Arm) -> tuple[list[float], int]:
        video = self.population.video.with_videos(1)  # a server has one setting for all videos
        failed = self.play([arm], self.pilot, self.population.model_copy(update={"video": video}))
        samples = self.parts.play_time_left(arm.text, PILOT_DAY, self.pilot.per_day)
        if not samples:
            raise UserError("no pilot viewer got as far as playing, so there is no play-time left to measure.")
        return samples, self.pilot.count - len(failed)

    def _measured(self, entry: SchemeEntry, samples: list[float], runs: int) -> MeasuredScheme:
        facts = {
            "arena": "sim",
            "scheme": measuring(entry).model_dump(exclude_none=True),
            "pairs": self.parts.pairs(PILOT_DAY, self.pilot.per_day),
            "seeds": [self.population.seed],
            "runs": runs,
            "samples": len(samples),
            "sha256": hashlib.sha256(json.dumps(samples).encode()).hexdigest(),
        }
        return with_measured(entry, samples, facts)


@dataclass(frozen=True)
class Place:
    """The place of results: under a name, or in the user's folder."""

    name: str
    out: Path | None = None


def run_population(
    population: Population, place: Place, asked: Asked, executor: Executor, tell: Tell, progress: Progress
) -> Outcome:
    """Plays every arm for every viewer, except for existing plays."""
    binary = program(PROGRAM)
    scale = scale_of(population, asked)
    labels = asked.arms or tuple(arm.base_label() for arm in population.arms)
    arms = [population.arm(label) for label in labels]
    begin = time.monotonic()
    identity = _identity(population.model_copy(update={"arms": arms}), place.name, scale, asked, binary)
    with results_folder(identity, tell, out=place.out, fresh=asked.fresh) as out:
        parts = Parts(out / "parts")
        parts.sweep()
        others = () if read_facts(out).get("fresh") else tuple(map(str, _others(out)))
        digest = provenance.sha256_of(binary)
        library = Library(population, out / "traces", recorded=asked.recorded)
        recipe = Recipe(
            population, str(out / "traces"), asked.recorded, (), str(binary), digest, others, library.sha256
        )
        pilot = Viewers((PILOT_DAY,), scale.pilot_viewers)
        viewers = Viewers(tuple(range(1, scale.days + 1)), scale.viewers_per_day)
        pace = Pace()
        work = _Work(population, parts, executor, progress, tell, recipe, pilot, pace)
        entries = work.resolve(arms)
        tell(f"{viewers.count} viewers, {len(entries)} arms: {viewers.count * len(entries)} plays")
        played = [arm_of(entry) for entry in entries]
        failed = work.play(played, viewers)
        for one in failed:
            tell(f"viewer {one.viewer} of day {one.day} was set aside: {one.why}")
        without = sorted({(one.day, one.viewer) for one in failed})
        label_of = {arm.text: arm.label for arm in played}
        plays = parts.write_plays(out / PLAYS_FILE, label_of, viewers.days, viewers.per_day, without)
        if plays != (viewers.count - len(without)) * len(label_of):
            raise UserError(f"{parts.folder}: plays are missing; run the command again.")
        record = _record(population, entries, scale, asked, library.traces() | library.generated(), binary)
        record["set_aside"] = [asdict(one) for one in failed]
        record["wall_s"] = round(time.monotonic() - begin, 1)
        write_json(out / RECORD_FILE, record)
    return Outcome(out, entries, record, plays, pace)


def _others(out: Path) -> list[Path]:
    """The folders of parts of other populations beside this one, whose plays can be used: a play has an identity."""
    folders = (folder for folder in out.parent.glob("*/parts") if not folder.parent.is_symlink())
    return sorted(folder for folder in folders if folder.parent != out)


def _identity(population: Population, name: str, scale: Scale, asked: Asked, binary: Path) -> Identity:
    """The identity of the results. Generated pairs follow from the settings and are in the folder."""
    settings = population.model_dump(mode="json", exclude={"description", "sizes"}, exclude_none=True)
    facts = {
        "settings": settings | {"scale": scale.model_dump(mode="json"), "recorded": asked.recorded},
        "programs": {PROGRAM: provenance.sha256_of(binary)},
        "traces": Library(population, Path(), recorded=asked.recorded).traces(),
        "schema": SCHEMA_VERSION,
    }
    return Identity(name, "sim", facts)


def _record(
    population: Population,
    entries: Sequence[SchemeEntry],
    scale: Scale,
    asked: Asked,
    traces: dict[str, str],
    binary: Path,
) -> dict[str, Any]:
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
