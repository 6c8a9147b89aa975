"""Carries an exhibit out: the runs of all its parts as one campaign, then `exhibit.json`."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from railyard.aggregate import write_parquet
from railyard.campaign import Campaign
from railyard.errors import UserError
from railyard.exhibits import registry
from railyard.exhibits.model import Exhibit
from railyard.exhibits.registry import RunRequest
from railyard.exhibits.spec import ExhibitSpec, all_runs, experiments, spec_of
from railyard.experiment import ARENAS
from railyard.paths import EXPERIMENTS_DIR, RESULTS_DIR
from railyard.pending import run_pending
from railyard.preflight import check_arena
from railyard.records import load_campaign
from railyard.resolve import not_run
from railyard.tables import aligned
from railyard.terminal import print_table
from railyard.yamlfile import YamlDocument, near_miss

VERDICT_STYLE = {"holds": "green", "partly": "yellow", "does not hold": "red"}


def requested(document: YamlDocument, request: RunRequest) -> ExhibitSpec:
    """The exhibit with what the command line asked for."""
    spec = spec_of(document)
    change: dict[str, Any] = {}
    if request.arena is not None:
        if request.arena not in ARENAS:
            raise UserError(f"unknown arena '{request.arena}'; {near_miss(request.arena, ARENAS)}")
        change["arena"] = request.arena
    if request.seeds is not None:
        change["seeds"] = request.seeds
    update: dict[str, Any] = {"size": request.size}
    if spec.experiment:  # the command line goes before what sizes and arenas change
        update["experiment"] = spec.experiment | change
        for name in ("sizes", "arenas"):
            changes = getattr(spec, name)
            update[name] = {key: each.model_copy(update={"set": each.set | change}) for key, each in changes.items()}
    return spec.model_copy(update=update | {"command": command_of(spec.name, document, request)})


def command_of(name: str, document: YamlDocument, request: RunRequest) -> str:
    """The command line that makes this exhibit."""
    known = document.path.resolve() == (EXPERIMENTS_DIR / f"{name}.yaml").resolve()
    words = ["railyard", "run", name if known else str(document.path)]
    options = {"--arena": request.arena, "--seeds": request.seeds, "--out": request.out}
    options["--size"] = request.size if request.size != "default" else None
    return shlex.join([*words, *(str(word) for pair in options.items() if pair[1] is not None for word in pair)])


def run(document: YamlDocument, request: RunRequest) -> None:
    spec = requested(document, request)
    out = (request.out or RESULTS_DIR / spec.name).resolve()
    made = _without_runs(spec, out) if not spec.experiment else _with_runs(spec, document, out, request)
    file = made.write(out)
    print_exhibit(request.console, made)
    request.console.print(f"exhibit: {file}", soft_wrap=True)


def _without_runs(spec: ExhibitSpec, out: Path) -> Exhibit:
    return registry.builder(spec.name)(out, spec)


def _with_runs(spec: ExhibitSpec, document: YamlDocument, out: Path, request: RunRequest) -> Exhibit:
    make = registry.builder(spec.name)
    parts = experiments(spec, document)
    specs = all_runs(parts)
    for arena in {run.arena for run in specs}:
        check_arena(arena)
    campaign = Campaign(out)
    with campaign.locked():
        campaign.sweep()
        if not request.resume:
            shutil.rmtree(campaign.runs, ignore_errors=True)
            campaign.runs.mkdir()
        absent = [row for _, experiment, inner in parts for row in not_run(experiment, inner)]
        campaign.write_record(parts[0][1], specs, absent)
        _write_spec(campaign.out, spec, parts)
        asked = request.repeat_budget_s
        budget_s = parts[0][1].repeat_budget_s if asked is None else asked
        run_pending(request.console, campaign, specs, request.jobs, budget_s)
        write_parquet(load_campaign(campaign.out)[1], campaign.out)
        return make(campaign.out, spec)


def _write_spec(out: Path, spec: ExhibitSpec, parts: list[Any]) -> None:
    """Adds to the campaign's record which exhibit it is, and which parts it came to."""
    file = out / "campaign.json"
    record = json.loads(file.read_text())
    record["exhibit"] = spec.model_dump(mode="json")
    record["parts"] = {part.key: part.values for part, _, _ in parts}
    partial = out / ".campaign.json.partial"
    partial.write_text(json.dumps(record, indent=1) + "\n")
    partial.rename(file)


def print_exhibit(console: Console, exhibit: Exhibit) -> None:
    """The exhibit in the terminal: its tables, then each claim with its verdict."""
    console.print(f"\n[bold]{exhibit.title}[/bold] ({exhibit.paper_ref})")
    console.print(exhibit.summary, markup=False)
    for table in exhibit.tables:
        heads = [f"{column.name}{f', {column.unit}' if column.unit else ''}" for column in table.columns]
        shown = Table(*heads, title=table.title, header_style="bold", title_justify="left")
        for row in aligned(table.rows):
            shown.add_row(*row)
        print_table(console, shown)
    for claim in exhibit.claims:
        word = f"[{VERDICT_STYLE[claim.verdict]}]{claim.verdict}[/]"
        console.print(f"{claim.id}: {word}. {claim.ours} (paper: {claim.theirs}); {claim.because}", soft_wrap=True)
        if claim.rule:
            console.print(f"  rule: {claim.rule}", style="dim", soft_wrap=True)
