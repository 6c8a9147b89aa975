"""`railyard gate --stack`: compares two builds of one stack by the plays of a suite and by the stress corpus."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from railyard.base.errors import UserError
from railyard.base.paths import IN_CHECKOUT, RESULTS_DIR
from railyard.base.words import counted
from railyard.base.yamlfile import YamlDocument
from railyard.experiment.model import SchemeEntry
from railyard.experiment.stacks import FILE_NAME, StackRun, resolve_stack, write_build
from railyard.gate import build, power
from railyard.gate.compare import Places, Row, compare, corrected, outputs_sha256, row_of
from railyard.gate.output import Verdict
from railyard.gate.run import Tell, places_of
from railyard.gate.suite import Suite, runs_of
from railyard.results.pending import Place, Plan, whole_campaign
from railyard.results.records import Run, load_run
from railyard.run.runspec import RunSpec
from railyard.stress.run import FAIL, KERNEL, PASS, UNKNOWN, Cell, Matrix, Subject, run_stress
from railyard.stress.scenario import Scenario, load_scenario

CORPUS = "stress corpus"  # the row with all runs of the corpus
SEEDS = 5  # of a scenario at most
MOVED = 0.05  # a figure that crosses its threshold by less than this share of it is no regression
TRIALS = 100
GRID = ((1.2, 0.5), (2.0, 0.3))  # regressions whose power is stated: (times as long, share of the windows)


@dataclass(frozen=True)
class StackBuild:
    """One of the two builds."""

    title: str
    key: str
    entry: SchemeEntry
    run: StackRun

    @property
    def programs_sha256(self) -> dict[str, str]:
        """The hashes of its files, without peer.yaml, whose words name folders."""
        return {name: value for name, value in self.run.sha256.items() if name != FILE_NAME}


@dataclass(frozen=True)
class Asked:
    """The comparison that the user asked for."""

    stack: str
    options: dict[str, str]
    baseline: Path
    candidate: Path
    suite: Suite
    document: YamlDocument
    scenarios: Sequence[Path]
    jobs: int | None = None


@dataclass(frozen=True)
class Change:
    """One scenario with both builds."""

    scenario: Scenario
    before: Cell
    after: Cell

    @property
    def verdict(self) -> str:
        if self.before.verdict == PASS and self.after.verdict == FAIL:
            return "worse" if self._by_far(self.before, self.after) else "below floor"
        if self.before.verdict == FAIL and self.after.verdict == PASS:
            return "better" if self._by_far(self.after, self.before) else "below floor"
        return "void" if UNKNOWN in (self.before.verdict, self.after.verdict) else "same"

    @staticmethod
    def _by_far(passed: Cell, failed: Cell) -> bool:
        """Whether a failed predicate has a figure that is far from that of the run that passed."""
        there = {one.name: one.figure for one in passed.judged}
        for one in failed.failures:
            figure = there.get(one.name)
            if one.figure is None or one.threshold is None or figure is None:
                return True
            if abs(one.figure - figure) > MOVED * one.threshold:
                return True
        return False

    @property
    def moved(self) -> bool:
        return self.verdict != "same"

    @property
    def reason(self) -> str:
        return "; ".join(one.sentence for one in (self.after if self.after.verdict == FAIL else self.before).failures)


@dataclass(frozen=True)
class StackVerdict(Verdict):
    """The verdict on two builds."""

    stack: str
    builds: tuple[StackBuild, StackBuild]
    matrices: tuple[Matrix, Matrix] | None  # None: both builds have the same files
    power: Sequence[power.AlarmRate]

    @cached_property
    def changes(self) -> list[Change]:
        if self.matrices is None:
            return []
        before, after = self.matrices
        key = before.subjects[0].label
        return [Change(one, before.cells[one.name, key], after.cells[one.name, key]) for one in before.scenarios]

    @property
    def broken(self) -> list[Change]:
        return [change for change in self.changes if change.verdict == "worse"]

    @property
    def is_regression(self) -> bool:
        return bool(self.failed or self.broken)

    @property
    def headline(self) -> str:
        if self.matrices is None:
            return "identical: both builds are the same files, so nothing was run"
        parts = [super().headline]
        mended = sum(change.verdict == "better" for change in self.changes)
        parts += [f"{counted(len(self.broken), 'scenario')} broken"] if self.broken else []
        parts += [f"{counted(mended, 'scenario')} mended"] if mended else []
        if self.broken and not self.failed:
            del parts[0]
        return ", ".join(parts)

    @property
    def further(self) -> list[tuple[str, str, bool]]:
        return [
            (
                change.scenario.name,
                f"{change.before.verdict} in A, {change.after.verdict} in B: {change.reason}" if change.moved else "",
                change.verdict == "worse",
            )
            for change in self.changes
        ]

    @property
    def scores(self) -> str:
        """The number of scenarios that each build passes, in words."""
        if self.matrices is None:
            return ""
        passed = [matrix.score(matrix.subjects[0]) for matrix in self.matrices]
        return ", ".join(f"{name} passes {n} of {m}" for name, (n, m) in zip("AB", passed, strict=True))


# ---- builds


def _folder() -> Path:
    return build.GATE_DIR if IN_CHECKOUT else RESULTS_DIR / "gate"


def _build(asked: Asked, place: Path, role: str) -> StackBuild:
    name = hashlib.sha256(str(place.absolute()).encode()).hexdigest()[:12]
    file = write_build(asked.stack, place, _folder() / "stacks" / name)
    run = resolve_stack(str(file), asked.options, Path())
    label = asked.stack if "/" not in asked.stack else run.name
    members: dict[str, Any] = {"stack": str(file), "label": label} | asked.options
    programs = sorted((name, value) for name, value in run.sha256.items() if name != FILE_NAME)
    key = hashlib.sha256(repr((programs, sorted(asked.options.items()))).encode()).hexdigest()[:12]
    title = f"the {role} {place} ({run.version or 'version unknown'}, {key})"
    return StackBuild(title, key, SchemeEntry.model_validate(members), run)


def two_builds(asked: Asked) -> tuple[StackBuild, StackBuild]:
    """The two builds, the baseline first. Raises UserError."""
    return _build(asked, asked.baseline, "baseline"), _build(asked, asked.candidate, "candidate")


# ---- runs


def _plays(asked: Asked, version: StackBuild, tell: Tell) -> tuple[list[RunSpec], Path, list[Run]]:
    suite = asked.suite.model_copy(update={"schemes": [version.entry]})
    specs = runs_of(suite, asked.document)
    tell(f"{counted(len(specs), 'play')} of {version.title}")
    plan = Plan(suite, specs, name=f"{suite.name}-{version.entry.label}-{version.key}")
    with whole_campaign(plan, Place(results=_folder() / "results"), jobs=asked.jobs) as campaign:
        return specs, campaign.folder / "runs", campaign.runs


def _corpus(asked: Asked, version: StackBuild, tell: Tell) -> Matrix:
    of = Subject(version.entry, str(version.entry.label), KERNEL)
    scenarios = [file.read_bytes() for file in asked.scenarios]
    # The runs' record has the build's folder.
    key = hashlib.sha256(repr([*scenarios, version.entry.stack]).encode()).hexdigest()[:8]
    place = Place(_folder() / "results" / f"stress-{of.label}-{version.key}-{key}", _folder() / "results")
    tell(f"{counted(len(asked.scenarios), 'scenario')} with {version.title}")
    return run_stress(asked.scenarios, [of], place, asked.jobs, tell, SEEDS)


def corpus_row(matrices: tuple[Matrix, Matrix], suite: Suite) -> Row:
    """All runs of the corpus as one row, in which each scenario is a place."""
    pairs: list[tuple[Run, Run]] = []
    same = True
    label = matrices[0].subjects[0].label
    for scenario in matrices[0].scenarios:
        cells = [matrix.cells[scenario.name, label] for matrix in matrices]
        for one, other in zip(cells[0].folders, cells[1].folders, strict=False):
            pairs.append((load_run(one), load_run(other)))
            same = same and outputs_sha256(one) == outputs_sha256(other)
    alone = Places({}, {run.pair for run, _ in pairs})
    return row_of((CORPUS, label), pairs, same, suite.floors, suite.alpha, alone)


def run_stack_gate(asked: Asked, tell: Tell) -> StackVerdict:
    """Runs the gate. Raises UserError if there is nothing to compare."""
    begin = time.monotonic()
    both = two_builds(asked)
    titles = both[0].title, both[1].title
    if both[0].key == both[1].key:
        wall = time.monotonic() - begin
        return StackVerdict(asked.suite, *titles, [], {}, wall, asked.stack, both, None, [])
    (specs, before, old), (_, after, new) = (_plays(asked, version, tell) for version in both)
    places = places_of(specs)
    hashes = {run.run_id: (outputs_sha256(before / run.run_id), outputs_sha256(after / run.run_id)) for run in old}
    rows = compare(old, new, hashes, asked.suite.floors, asked.suite.alpha, places)
    matrices = None
    if asked.scenarios:
        matrices = _corpus(asked, both[0], tell), _corpus(asked, both[1], tell)
        rows = corrected([*rows, corpus_row(matrices, asked.suite)])
    if not old and matrices is None:
        raise UserError("nothing was run, so there is nothing to compare.")
    power = power_of(old, new, places, asked.suite)
    wall = time.monotonic() - begin
    return StackVerdict(asked.suite, *titles, rows, {}, wall, asked.stack, both, matrices or _none(both), power)


def _none(both: tuple[StackBuild, StackBuild]) -> tuple[Matrix, Matrix]:
    """The matrices if no scenario was asked for."""
    one, other = (Matrix([], [Subject(version.entry, str(version.entry.label), KERNEL)], {}) for version in both)
    return one, other


def power_of(old: list[Run], new: list[Run], places: Places, suite: Suite) -> list[power.AlarmRate]:
    """The probabilities of regressions to be found. The noise is the differences of these plays with random signs."""
    rows = power.rows_of(old, new, places, [factor for factor, _ in GRID])
    most = max((len(row) for row in rows), default=0)
    return power.simulate(rows, suite, most, TRIALS, GRID) if most else []


def scenarios_of(files: Sequence[Path], of: StackBuild) -> list[Path]:
    """The scenarios that apply to the stack."""
    subject = Subject(of.entry, str(of.entry.label), KERNEL)
    return [file for file in files if subject.cannot(load_scenario(file)[0]) is None]
