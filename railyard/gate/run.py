"""The gate from end to end: build both versions, run the suite on both, compare, and look where a regression begins."""

import json
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from railyard.arenas import sim
from railyard.arenas.kernel import Kernel
from railyard.base.errors import UserError
from railyard.base.words import counted
from railyard.base.yamlfile import YamlDocument
from railyard.gate import build, power
from railyard.gate.compare import Places, Row, compare, outputs_sha256, rows_not_run
from railyard.gate.exercise import is_constant
from railyard.gate.output import Verdict
from railyard.gate.suite import Suite, runs_of
from railyard.results.pending import Place, Plan, whole_campaign
from railyard.results.qlogdiff import parting
from railyard.results.records import Run
from railyard.run.arena import arena_of
from railyard.run.runspec import RunSpec
from railyard.traces.library import find_pair

PARTINGS = 6  # failed rows for which the gate shows where the runs part
MOST_HUNG = 1  # a run that hangs takes minutes, and one decides the verdict: no further run begins
REFUSAL_LIMIT_S = 10.0  # a program that refuses a row ends at once

Tell = Callable[[str], None]
RowName = tuple[str, str]  # place and label


def _of_build(specs: list[RunSpec], version: build.Build) -> list[RunSpec]:
    if version.kernel is not None:
        return [spec.model_copy(update={"kernel": version.kernel}) for spec in specs]
    change = {"program": version.program, "programs_sha256": version.programs_sha256}
    return [spec.model_copy(update=change) for spec in specs]


def _carry_out(
    specs: list[RunSpec], suite: Suite, version: build.Build, jobs: int, purpose: str = ""
) -> tuple[Path, list[Run]]:
    """Carries out the runs that are missing. Returns the folder of all runs, and the runs."""
    plan = Plan(suite, specs, name=f"{suite.name}-{version.key}{purpose}", most_hung=MOST_HUNG)
    try:
        with whole_campaign(plan, Place(results=build.GATE_DIR / "results"), jobs=jobs) as campaign:
            return campaign.folder / "runs", campaign.runs
    except UserError as error:
        raise UserError(f"{version.title}: {error}") from None


def _known_labels(specs: list[RunSpec], version: build.Build) -> set[str]:
    """The labels of the rows that a version can run. It refuses a scheme or a setting that it does not know with exit
    code 2, before it writes anything."""
    known: set[str] = set()
    for spec in {spec.label: spec for spec in reversed(specs)}.values():
        with tempfile.TemporaryDirectory(dir=build.GATE_DIR, prefix="known-") as folder:
            job, out = Path(folder) / "job.json", Path(folder) / "out"
            job.write_text(json.dumps(sim.job(spec)))
            command = [str(version.program), str(job), "--out", str(out)]
            try:
                done = subprocess.run(command, capture_output=True, check=False, timeout=REFUSAL_LIMIT_S)
            except subprocess.TimeoutExpired:  # it runs the row, slowly or without end
                known.add(spec.label)
                continue
            if done.returncode != 2 or (out / "player.jsonl").is_file():
                known.add(spec.label)
    return known


def _partings(rows: list[Row], specs: list[RunSpec], both: list[build.Build], suite: Suite) -> dict[RowName, str]:
    """The first decision in which the worst play of each failed row differs: both runs are repeated with qlog."""
    partings: dict[RowName, str] = {}
    for row in [row for row in rows if row.failed][:PARTINGS]:
        worst = row.worst
        if worst.outcome in ("crashed", "hung"):  # its qlog ends somewhere before
            continue
        spec = next(s for s in specs if (s.pair, s.label, s.seed) == (worst.pair, row.label, worst.seed))
        again = [spec.model_copy(update={"qlog": True})]
        runs = [
            _carry_out(_of_build(again, version), suite, version, 1, "-evidence")[0] / spec.run_id for version in both
        ]
        try:
            partings[row.place, row.label] = str(parting(runs[0], runs[1]))
        except UserError:
            continue
    return partings


def places_of(specs: list[RunSpec]) -> Places:
    """Puts pairs of one scenario into one row, because few traces have enough windows for a test by themselves."""
    scenarios = {name: find_pair(name).scenario for name in dict.fromkeys(spec.pair for spec in specs)}
    names = {name: name if Counter(scenarios.values())[one] == 1 else one for name, one in scenarios.items()}
    traces = {spec.pair: [path.down for path in spec.paths] for spec in specs}
    return Places(names, {pair for pair, of in traces.items() if is_constant(of)})


def first_look(suite: Suite) -> set[int]:
    """The seeds of the first look, spread evenly over all seeds: these may be places in the order of the trace."""
    count = len(suite.seeds)
    return {suite.seeds[count * number // suite.first_look] for number in range(min(count, suite.first_look))}


@dataclass
class Looks:
    """The runs of both versions so far, and the hashes of their outputs."""

    places: Places
    before: list[Run] = field(default_factory=list)
    after: list[Run] = field(default_factory=list)
    hashes: dict[str, tuple[str, str]] = field(default_factory=dict)

    def add(self, before: tuple[Path, list[Run]], after: tuple[Path, list[Run]], known: set[str]) -> None:
        """`known`: the labels that the baseline can run. Their plays count if both versions have run them."""
        there = {run.run_id for run in before[1]} & {run.run_id for run in after[1]}
        both = [run for run in before[1] if run.run_id in there]
        self.before += both
        self.after += [run for run in after[1] if run.run_id in there or run.label not in known]
        for run in both:
            self.hashes[run.run_id] = (outputs_sha256(before[0] / run.run_id), outputs_sha256(after[0] / run.run_id))

    @property
    def hung(self) -> bool:
        return any(run.outcome == "hung" for run in self.before + self.after)

    def moved(self) -> set[RowName]:
        """The rows in which an output differs. That does not depend on the direction of the difference, so running
        further seeds of these rows alone leaves the tests valid."""
        return {(self.places.of(run.pair), run.label) for run in self.before if len(set(self.hashes[run.run_id])) > 1}


def _versions(suite: Suite, baseline: str, kernel: Path | None, tell: Tell) -> tuple[build.Build, build.Build]:
    """The two versions: the baseline, then the one to judge."""
    if isinstance(arena_of(suite.arena), Kernel):
        return build.kernels(kernel)
    if kernel is not None:
        raise UserError(f"--baseline-kernel is for suites with 'arena: kernel'; {suite.name} runs in {suite.arena}.")
    build.revision_of(baseline)  # said before a minute of compiling
    tell("building the working tree and the baseline")
    after = build.working_tree()
    return build.baseline(baseline), after


def run_gate(
    suite: Suite, document: YamlDocument, baseline: str, jobs: int, tell: Tell, kernel: Path | None
) -> Verdict:
    """Runs the gate. `kernel`: the baseline of a suite in the kernel arena."""
    begin = time.monotonic()
    with build.locked():
        before, after = _versions(suite, baseline, kernel, tell)
        specs = runs_of(suite, document, after.programs_sha256)
        places, both = places_of(specs), [before, after]
        if before.code_sha256 == after.code_sha256:
            rows = rows_not_run(specs, places)
            return Verdict(suite, before.title, after.title, rows, {}, time.monotonic() - begin)
        known = _known_labels(specs, before)
        if not known:
            raise UserError(f"{before.title} can run no row of suite {suite.name}, so there is nothing to compare.")
        first = first_look(suite)
        looks = Looks(places)
        for purpose in ("", "-further"):
            if looks.hung:
                break
            moved = looks.moved()
            own = [
                spec
                for spec in specs
                if (spec.seed in first) == (not purpose)
                and (not purpose or (looks.places.of(spec.pair), spec.label) in moved)
            ]
            if own:
                tell(f"{counted(len(own), 'run')} of each version{' of rows that moved' if purpose else ''}")
                compared = [spec for spec in own if spec.label in known]
                old, new = (
                    _carry_out(_of_build(of, version), suite, version, jobs, purpose) if of else (Path(), [])
                    for of, version in ((compared, before), (own, after))
                )
                looks.add(old, new, known)
        if not looks.before and looks.hung:
            raise UserError(f"plays of suite {suite.name} hang in both versions, so there is nothing to compare.")
        rows = compare(looks.before, looks.after, looks.hashes, suite.floors, suite.alpha, looks.places)
        partings = _partings(rows, specs, both, suite)
        changed = build.changed_since(baseline) if before.kernel is None else []
    wall_s = time.monotonic() - begin
    left_out = len(specs) - len(looks.after) if looks.hung else 0
    return Verdict(suite, before.title, after.title, rows, partings, wall_s, changed=changed, left_out=left_out)


def run_power(
    suite: Suite, document: YamlDocument, jobs: int, tell: Tell, counts: list[int], trials: int
) -> list[power.AlarmRate]:
    """The gate's power on a suite: runs the plays of the working tree twice, then simulates regressions."""
    with build.locked():
        tell("building the working tree")
        version = build.working_tree()
        specs = _of_build(runs_of(suite, document, version.programs_sha256), version)
        tell(f"{counted(2 * len(specs), 'run')} of {version.title}")
        shifted = [spec.model_copy(update={"player_start_ms": power.SHIFT_MS}) for spec in specs]
        rows = power.rows_of(
            _carry_out(specs, suite, version, jobs, "-power")[1],
            _carry_out(shifted, suite, version, jobs, "-power-shifted")[1],
            places_of(specs),
        )
    most = max(len(row) for row in rows)
    grid = [(factor, share) for factor in power.FACTORS for share in power.SHARES]
    results: list[power.AlarmRate] = []
    for windows in dict.fromkeys(min(count, most) for count in (*counts, most)):
        tell(f"{counted(trials, 'simulation')} of {windows} windows a row, for {counted(len(grid) + 1, 'regression')}")
        results += power.simulate(rows, suite, windows, trials, grid)
    return results
