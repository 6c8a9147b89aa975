"""Carries out an exhibit: the runs of all its parts as one campaign, then `exhibit.json`."""

import hashlib
import json
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from railyard.base.paths import EXPERIMENTS_DIR
from railyard.base.terminal import MOST_LINES, first_lines, fitted, print_lines
from railyard.base.yamlfile import YamlDocument, parse
from railyard.experiment.arenas import is_exact
from railyard.report.exhibit import Exhibit
from railyard.results.pending import Place, Plan, planned, whole_campaign
from railyard.results.summary import tell_program_fault
from railyard.results.tables import aligned
from railyard.run import vkernel
from railyard.run.arena import arena_of
from railyard.run.folders import Identity, results_folder, shown
from railyard.run.resolve import not_run
from railyard.studies.exhibits import registry
from railyard.studies.exhibits.spec import ExhibitSpec, all_runs, experiments
from railyard.studies.request import RunRequest, prepare, refuse

VERDICT_STYLE = {"holds": "green", "partly": "yellow", "does not hold": "red", "not decided": "cyan"}


def requested(document: YamlDocument, request: RunRequest) -> ExhibitSpec:
    """The exhibit with the options of the command line."""
    spec = parse(document, ExhibitSpec)
    change: dict[str, Any] = {}
    if request.arena is not None:
        arena_of(request.arena)  # raises UserError for an unknown name
        change["arena"] = request.arena
    elif _wants_kernel(spec) and vkernel.why_not() is None:
        change["arena"] = "kernel"
    if request.seeds is not None:
        change["seeds"] = request.seeds
    for field in ("qlog", "keep_awake", "real_time"):
        if getattr(request, field) is not None:
            change[field] = getattr(request, field)
    update: dict[str, Any] = {"size": request.size}
    if spec.experiment:  # the command line overrides changes of sizes and arenas
        update["experiment"] = spec.experiment | change
        for name in ("sizes", "arenas"):
            changes = getattr(spec, name)
            update[name] = {key: each.model_copy(update={"set": each.set | change}) for key, each in changes.items()}
    return spec.model_copy(update=update | {"command": command_of(spec.name, document, request)})


def _wants_kernel(spec: ExhibitSpec) -> bool:
    """Whether a scheme needs a kernel. If a time-travel kernel is at hand, its runs are exact and never void."""
    entries = spec.experiment.get("schemes", [])
    names = [entry.get("scheme") if isinstance(entry, dict) else entry for entry in entries]
    return "arena" in spec.experiment and not is_exact(spec.experiment["arena"]) and "mptcp" in names


def command_of(name: str, document: YamlDocument, request: RunRequest) -> str:
    """The command line that makes this exhibit."""
    known = document.path.resolve() == (EXPERIMENTS_DIR / f"{name}.yaml").resolve()
    command = ["railyard", "run", name if known else str(document.path)]
    options = {"--arena": request.arena, "--seeds": request.seeds, "--out": request.out, "--qlog": request.qlog}
    options["--keep-awake"] = request.keep_awake
    options["--size"] = request.size if request.size != "default" else None
    real_time = {None: [], True: ["--real-time"], False: ["--no-real-time"]}[request.real_time]
    given = [str(word) for pair in options.items() if pair[1] is not None for word in pair]
    return shlex.join([*command, *given, *real_time])


def run(document: YamlDocument, request: RunRequest) -> bool:
    """Runs an exhibit. Returns whether a program failed in a run."""
    spec = requested(document, request)
    make = registry.builder(spec.name)
    if spec.experiment:
        return _with_runs(spec, document, request, make)
    refuse(
        {"--arena": request.arena, "--jobs": request.jobs, "--seeds": request.seeds, "--qlog": request.qlog},
        f"{spec.name} runs nothing: it reads traces",
    )
    request.refuse_wall_clock()
    if request.dry_run:
        request.console.print(f"{spec.name} runs nothing: it reads traces, in a few seconds.")
        return False
    with TemporaryDirectory(prefix="railyard-exhibit-") as nowhere:
        made = make(Path(nowhere), spec)
    with results_folder(_identity(made), request.console.print, out=request.out, fresh=not request.resume) as folder:
        write(made, folder, request)
    return False


def _identity(made: Exhibit) -> Identity:
    """The identity of an exhibit that runs nothing: its content, and the traces that it read."""
    said = made.model_dump(mode="json", exclude={"provenance", "command", "name"})
    sha256 = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
    settings = {"size": made.size, "settings": made.settings, "content": sha256}
    return Identity(made.name, made.arena, {"settings": settings, "traces": made.provenance.traces})


def _with_runs(spec: ExhibitSpec, document: YamlDocument, request: RunRequest, make: registry.Builder) -> bool:
    parts = experiments(spec, document)
    arenas = [arena_of(arena) for arena in {experiment.arena for _, experiment, _ in parts}]
    if all(arena.exact for arena in arenas):
        request.refuse_wall_clock()
    prepare(arenas, request.console.print, dry_run=request.dry_run)
    specs = all_runs(parts, dry_run=request.dry_run)
    exhibit = spec.model_dump(mode="json", exclude={"name", "description", "command", "claims"})
    described = spec.model_dump(mode="json", exclude={"claims"})
    asked = request.repeat_budget_s
    first = parts[0][1].model_copy(update={} if asked is None else {"repeat_budget_s": asked})
    plan = Plan(
        first,
        specs,
        name=spec.name,
        facts={"exhibit": exhibit},
        not_run=[row for _, experiment, inner in parts for row in not_run(experiment, inner)],
        # The exhibit and its parts.
        further={
            "exhibit": described,
            "parts": {part.key: part.values for part, _, _ in parts},
        },
        qlog_asked=request.qlog is not None,
    )
    place = Place(request.out, fresh=not request.resume, tell=request.console.print)
    if request.dry_run:
        for sentence in planned(plan, place, request.jobs):
            request.console.print(sentence)
        return False
    with whole_campaign(plan, place, jobs=request.jobs, console=request.console, tables=True) as campaign:
        write(make(campaign.folder, spec), campaign.folder, request)
        return tell_program_fault(request.console, campaign.runs)


def write(made: Exhibit, folder: Path, request: RunRequest) -> None:
    file = made.write(folder)
    print_exhibit(request.console, made)
    request.console.print(f"exhibit: {shown(file)}")


def print_exhibit(console: Console, exhibit: Exhibit) -> None:
    """Prints the exhibit, as far as there is room: each claim with its verdict, then its tables."""
    parts: list[RenderableType] = [Text.assemble("\n", (exhibit.title, "bold"), f" ({exhibit.paper_ref})")]
    parts.append(Text(exhibit.summary))
    for claim in exhibit.claims:
        parts.append(
            Text.assemble(
                f"{claim.id}: ",
                (claim.verdict, VERDICT_STYLE[claim.verdict]),
                f". {claim.ours} (paper: {claim.theirs}); {claim.because}",
            )
        )
        remarks = (("to decide it", claim.needs), ("rule", claim.rule))
        parts += [Text(f"  {what}: {remark}", style="dim") for what, remark in remarks if remark]
    for table in exhibit.tables:
        heads = [f"{column.name}{f', {column.unit}' if column.unit else ''}" for column in table.columns]
        shown = Table(*heads, title=table.title, header_style="bold", title_justify="left")
        for row in aligned(table.rows):
            shown.add_row(*(Text(text) for text in row))
        parts += fitted(console, shown)
    print_lines(console, first_lines(console, parts, MOST_LINES - 1))
