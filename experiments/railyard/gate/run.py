"""The gate from end to end: build both versions, run the suite on both, compare, and look where a regression begins."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from railyard.campaign import Campaign, run_campaign
from railyard.errors import UserError
from railyard.gate import build
from railyard.gate.compare import Row, compare, outputs_sha256
from railyard.gate.output import Verdict
from railyard.gate.suite import Suite
from railyard.progress import Silent
from railyard.qlogdiff import parting
from railyard.records import Run, load_run
from railyard.resolve import resolve
from railyard.runspec import RunSpec
from railyard.words import counted
from railyard.yamlfile import YamlDocument

PARTINGS = 6  # of so many failed rows the gate shows where the runs part

Tell = Callable[[str], None]


def _of_build(specs: list[RunSpec], version: build.Build) -> list[RunSpec]:
    change = {"program": version.program, "programs_sha256": {build.PROGRAM: version.program_sha256}}
    return [spec.model_copy(update=change) for spec in specs]


def _carry_out(specs: list[RunSpec], suite: Suite, version: build.Build, folder: Path, jobs: int) -> Path:
    """Runs what is not there yet, and returns the folder of the runs."""
    campaign = Campaign(folder)
    with campaign.locked():
        campaign.sweep()
        campaign.write_record(suite, specs, [])
        pending = campaign.pending(specs)
        if pending:
            try:
                run_campaign(campaign, pending, jobs, Silent())
            except UserError as error:
                raise UserError(f"{version.title}: {error}") from None
    return campaign.runs


def _loaded(specs: list[RunSpec], runs: Path) -> list[Run]:
    return [load_run(runs / spec.run_id) for spec in specs]


def _partings(
    rows: list[Row], specs: list[RunSpec], both: list[tuple[build.Build, Path]], suite: Suite
) -> dict[tuple[str, str], str]:
    """Where the worst seed of each failed row parts: the two runs once more, with qlog."""
    found: dict[tuple[str, str], str] = {}
    for row in [row for row in rows if row.failed][:PARTINGS]:
        spec = next(s for s in specs if (s.pair, s.label, s.seed) == (row.pair, row.label, row.worst_seed))
        again = spec.model_copy(update={"qlog": True})
        runs = [
            _carry_out(_of_build([again], version), suite, version, folder / "evidence" / spec.run_id, 1) / spec.run_id
            for version, folder in both
        ]
        try:
            found[row.pair, row.label] = str(parting(runs[0], runs[1]))
        except UserError:  # a program that died has no whole qlog
            continue
    return found


def run_gate(suite: Suite, document: YamlDocument, baseline: str, jobs: int, tell: Tell) -> Verdict:
    begin = time.monotonic()
    with build.locked():
        tell("building the working tree and the baseline")
        after = build.working_tree()
        before = build.baseline(baseline)
        specs = resolve(suite, document)
        both = [(version, build.GATE_DIR / "results" / f"{suite.name}-{version.key}") for version in (before, after)]
        loaded: list[list[Run]] = []
        for version, folder in both:
            tell(f"{counted(len(specs), 'run')} of {version.title}")
            loaded.append(_loaded(specs, _carry_out(_of_build(specs, version), suite, version, folder, jobs)))
        hashes = {
            spec.run_id: (
                outputs_sha256(both[0][1] / "runs" / spec.run_id),
                outputs_sha256(both[1][1] / "runs" / spec.run_id),
            )
            for spec in specs
        }
        rows = compare(loaded[0], loaded[1], hashes, suite.floors, suite.alpha)
        partings = _partings(rows, specs, both, suite)
    return Verdict(suite, before.title, after.title, rows, partings, time.monotonic() - begin)
