"""Runs and judges the corpus: every scenario with every stack."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from railyard.base.errors import UserError
from railyard.base.provenance import version_words
from railyard.base.yamlfile import YamlDocument, near_miss
from railyard.experiment.arenas import is_exact
from railyard.experiment.model import TRANSPORT_OF_SCHEME, Experiment, SchemeEntry
from railyard.experiment.settings import QUIC_SCHEMES
from railyard.experiment.stacks import resolve_stack
from railyard.results.pending import Place, Plan, whole_campaign
from railyard.results.records import RESULT_OUTCOMES, Run
from railyard.run import vkernel
from railyard.run.arena import arena_of
from railyard.run.resolve import resolve
from railyard.run.runspec import RunSpec
from railyard.stress.predicates import Evidence, Judged, judge
from railyard.stress.scenario import Scenario, Window, load_scenario

NAME = "stress"
SIM, KERNEL = "sim", "kernel"
PASS, FAIL, UNKNOWN = "pass", "fail", "?"
LATEST_US = 1000.0
"""The most that the emulator may be late in virtual time. Expectations are in tens of milliseconds and percents."""
SCHEMES = ("cm", "vanilla-mp", "vanilla-mp,dialect=ietf", "xlink", "xlink-lean", "xlink+")
STACKS = ("mptcp", "libxlink", "picoquic", "xquic", "noq", "tquic", "quic-go", "quiche", "s2n-quic")

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Subject:
    """A column of the matrix: a scheme or a stack with its options, and its arena."""

    entry: SchemeEntry
    label: str  # as on the command line
    arena: str

    @property
    def option(self) -> str:
        """The option for the command line. A stack has the entry's name or file, which `label` may shorten."""
        named = [self.entry.stack or "", *(f"{key}={value}" for key, value in self.entry.stack_options.items())]
        shortened = self.entry.stack is not None and not self.label.startswith(named[0])
        return f"{'--stack' if self.entry.stack else '--scheme'} {','.join(named) if shortened else self.label}"

    @property
    def version(self) -> str:
        """The version of what ran, as text. A foreign stack reports its own."""
        if self.entry.stack is not None:
            version = resolve_stack(self.entry.stack, self.entry.stack_options, Path()).version
            return version or "it does not say"
        return version_words() if TRANSPORT_OF_SCHEME[self.entry.scheme] == "quic" else f"Linux {vkernel.release()}"

    @property
    def is_multipath(self) -> bool:
        if self.entry.stack is not None:
            return resolve_stack(self.entry.stack, self.entry.stack_options, Path()).multipath
        known = QUIC_SCHEMES.get(self.entry.scheme)
        return known.multipath if known else self.entry.scheme == "mptcp"

    def cannot(self, scenario: Scenario) -> str | None:
        """Why a scenario does not apply to it. None: it does."""
        multipath = self.is_multipath
        if "multipath" in scenario.needs and not multipath:
            return "it uses one path"
        if scenario.path_events is not None and (TRANSPORT_OF_SCHEME[self.entry.scheme] != "quic" or not multipath):
            return "there is no interface to change its paths"
        return None


def subject(kind: str, label: str, arena: str | None = None) -> Subject:
    """The subject of a label NAME or NAME,OPTION=VALUE,… `kind`: scheme or stack. Raises UserError."""
    name, *options = label.split(",")
    given: dict[str, Any] = {kind: name, "label": label}
    if kind == "scheme" and name in ("sp", "tcp"):
        given["path"] = "primary"
    for option in options:
        key, equals, value = option.partition("=")
        if not equals:
            raise UserError(f"--{kind} {label}: '{option}' is not OPTION=VALUE.")
        given[key] = value
    try:
        entry = SchemeEntry.model_validate(given)
    except ValidationError as error:
        raise UserError(f"--{kind} {label}: {error.errors()[0]['msg'].removeprefix('Value error, ')}") from None
    if entry.stack is not None:
        resolve_stack(entry.stack, entry.stack_options, Path())
    where = SIM if TRANSPORT_OF_SCHEME[entry.scheme] == "quic" else KERNEL
    if arena == SIM and where == KERNEL:
        raise UserError(f"--{kind} {label} runs in no simulator; leave --arena out.")
    return Subject(entry, label, arena or where)


def everything(tell: Tell) -> list[Subject]:
    """All schemes, and all stacks that are built."""
    subjects = [subject("scheme", label) for label in SCHEMES]
    if reason := arena_of(KERNEL).why_not():
        tell(f"stacks are left out: {reason}")
        return subjects
    subjects.append(subject("scheme", "mptcp"))
    for label in STACKS[1:]:
        try:
            subjects.append(subject("stack", label))
        except UserError as error:
            tell(f"{label} is left out: {error}")
    return subjects


@dataclass(frozen=True)
class Cell:
    """The result of one stack in one scenario: that of its worst run."""

    verdict: str
    judged: list[Judged] = field(default_factory=list)
    reason: str = ""  # of "?"
    gap_s: float | None = None  # the longest time without progress after the scenario's event
    runs: int = 0
    failed_runs: int = 0
    folder: Path | None = None  # folder of the run that is shown
    folders: tuple[Path, ...] = ()  # folders of all runs

    @property
    def failures(self) -> list[Judged]:
        return [one for one in self.judged if not one.passed]


@dataclass(frozen=True)
class Matrix:
    scenarios: list[Scenario]
    subjects: list[Subject]
    cells: Mapping[tuple[str, str], Cell]  # by name of the scenario and words of the subject

    def score(self, of: Subject) -> tuple[int, int]:
        """The number of scenarios that it passes, and the number of those that apply to it."""
        own = [self.cells[one.name, of.label] for one in self.scenarios]
        return sum(cell.verdict == PASS for cell in own), sum(cell.verdict != UNKNOWN for cell in own)

    def failures(self) -> list[tuple[Scenario, Subject, Cell]]:
        return [
            (scenario, of, cell)
            for scenario in self.scenarios
            for of in self.subjects
            if (cell := self.cells[scenario.name, of.label]).verdict == FAIL
        ]


def replay(scenario: Scenario, of: Subject) -> str:
    """The command that repeats one cell."""
    where = f" --arena {of.arena}" if of.arena == KERNEL and TRANSPORT_OF_SCHEME[of.entry.scheme] == "quic" else ""
    return f"railyard stress {scenario.name} {of.option}{where}"


# ---- runs


def _alone(spec: RunSpec, path: str) -> RunSpec:
    """The run with one of the paths alone."""
    paths = tuple(one for one in spec.paths if one.name == path)
    return spec.model_copy(
        update={
            "paths": paths,
            "primary": path,
            "label": f"{spec.label}--{path}-alone",
            "link_events": tuple(event for event in spec.link_events if event.path == path),
            "parameters": {key: value for key, value in spec.parameters.items() if key != "path_events"},
        }
    )


@dataclass(frozen=True)
class Planned:
    scenario: Scenario
    of: Subject
    specs: list[RunSpec]
    alone: list[RunSpec]  # one for each of `specs`, or empty


def plan(scenario: Scenario, document: YamlDocument, of: Subject, seeds: int | None = None) -> Planned:
    change: dict[str, Any] = {"arena": of.arena, "schemes": [of.entry], "seeds": scenario.seeds[:seeds]}
    here = scenario.model_copy(update=change)
    extra = {} if scenario.path_events is None else {"path_events": scenario.path_events}
    specs = [
        spec.model_copy(
            update={"label": f"{scenario.name}--{of.label}", "experiment": NAME, "parameters": spec.parameters | extra}
        )
        for spec in resolve(here, document)
    ]
    ratio, share = scenario.expect.goodput_ratio, scenario.expect.path_share
    names = [path.name for path in specs[0].paths]
    asked = [(("expect", "goodput_ratio", "of"), ratio.of)] if ratio else []
    asked += [(("expect", "path_share", "path"), share.path)] if share else []
    for place, name in asked:
        if name not in names:
            raise document.error(place, f"this pair has no path '{name}'; {near_miss(name, names)}")
    return Planned(scenario, of, specs, [_alone(spec, ratio.of) for spec in specs] if ratio else [])


def _experiment(arena: str, planned: Sequence[Planned]) -> Experiment:
    """The experiment for the campaign's record. Its runs are not a product of pairs and schemes."""
    entries = {one.of.label: one.of.entry for one in planned}
    pairs = dict.fromkeys(one.scenario.pairs[0].first_found[0] for one in planned)
    return Experiment.model_validate(
        {
            "name": NAME,
            "description": "The multipath stress corpus.",
            "arena": arena,
            "pairs": list(pairs),
            "schemes": list(entries.values()),
            "qlog": "none",
        }
    )


def counts(run: Run) -> bool:
    """Whether a run is judged. It is also if it is void only because the emulator was late in virtual time by at most
    LATEST_US. There, programs that poll for the time or for packets delay the emulator by microseconds
    (docs/howto/kernel.md)."""
    fidelity = run.record["fidelity"]
    exact = is_exact(run.config.get("arena")) and not any(
        reason.startswith("link event") for reason in fidelity["reasons"]
    )
    late = fidelity["lateness_max_us"] <= LATEST_US and not fidelity["missed"] and not fidelity["device_drops"]
    return not run.void or (exact and late)


def _cell(planned: Planned, runs: Path) -> Cell:
    scenario = planned.scenario
    cells: list[Cell] = []
    for number, spec in enumerate(planned.specs):
        folder = runs / spec.run_id
        if not (folder / "run.json").is_file():
            return Cell(UNKNOWN, reason="the run did not start")
        evidence = Evidence.of(folder)
        if not counts(evidence.run):
            return Cell(UNKNOWN, reason=f"void: {evidence.run.void_words}", folder=folder)
        if evidence.run.outcome not in RESULT_OUTCOMES:
            text = f"{evidence.run.outcome}: {evidence.run.record['message']}"
            cells.append(Cell(FAIL, [Judged("outcome", None, None, "", False, text)], folder=folder))
            continue
        alone = Evidence.of(runs / planned.alone[number].run_id) if planned.alone else None
        if alone and not counts(alone.run):
            return Cell(UNKNOWN, reason=f"void: {alone.run.void_words}", folder=folder)
        judged = judge(scenario.expect, evidence, alone)
        passed = all(one.passed for one in judged)
        longest = max(evidence.gaps_s(Window(from_s=scenario.event_s)), default=None)
        cells.append(Cell(PASS if passed else FAIL, judged, gap_s=longest, folder=folder))
    failed = [cell for cell in cells if cell.verdict == FAIL]
    shown = max(failed or cells, key=lambda cell: cell.gap_s or 0.0)
    return Cell(
        shown.verdict,
        shown.judged,
        gap_s=shown.gap_s,
        runs=len(cells),
        failed_runs=len(failed),
        folder=shown.folder,
        folders=tuple(cell.folder for cell in cells if cell.folder is not None),
    )


def run_stress(
    files: Iterable[Path],
    subjects: Sequence[Subject],
    place: Place,
    jobs: int | None,
    tell: Tell,
    seeds: int | None = None,
) -> Matrix:
    """Does the missing runs and judges all. `seeds`: the most seeds of each scenario. Raises UserError, and
    KeyboardInterrupt if the user stopped it."""
    loaded = [load_scenario(file) for file in files]
    cells: dict[tuple[str, str], Cell] = {}
    for arena in dict.fromkeys(of.arena for of in subjects):
        arena_of(arena).check()
        planned: list[Planned] = []
        for scenario, document in loaded:
            for of in subjects:
                if of.arena != arena:
                    continue
                if reason := of.cannot(scenario):
                    cells[scenario.name, of.label] = Cell(UNKNOWN, reason=reason)
                else:
                    planned.append(plan(scenario, document, of, seeds))
        if planned:
            cells |= _carry_out(arena, planned, place, jobs, tell)
    return Matrix([scenario for scenario, _ in loaded], list(subjects), cells)


def _carry_out(
    arena: str, planned: Sequence[Planned], place: Place, jobs: int | None, tell: Tell
) -> dict[tuple[str, str], Cell]:
    specs = {spec.run_id: spec for one in planned for spec in (*one.specs, *one.alone)}
    tell(f"{len(specs)} runs in {arena}")
    here = Place(place.out / arena if place.out else None, place.results, place.fresh, place.tell)
    asked = Plan(_experiment(arena, planned), list(specs.values()))
    with whole_campaign(asked, here, jobs=jobs) as done:
        return {(one.scenario.name, one.of.label): _cell(one, done.folder / "runs") for one in planned}
