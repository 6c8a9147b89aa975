"""The command line: `railyard run`, `report`, `show`, `list`, `traces`."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from railyard import __version__, provenance
from railyard.aggregate import write_parquet
from railyard.campaign import Campaign, default_jobs, run_campaign
from railyard.errors import UserError
from railyard.experiment import ARENAS, Experiment, find_experiment, load_experiment
from railyard.paths import EXPERIMENTS_DIR, RESULTS_DIR
from railyard.preflight import check_machine
from railyard.progress import Stopwatch, reporter
from railyard.records import load_campaign
from railyard.report import write_report
from railyard.resolve import resolve
from railyard.runspec import RunSpec
from railyard.show import print_run
from railyard.tables import print_comparison
from railyard.traces.cli import app as traces_app
from railyard.yamlfile import near_miss

CAMPAIGN_SCHEMA = 1
INTERRUPTED = 130  # 128 + SIGINT, as shells have it

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="Compare multipath transport schemes over paired mobility traces.",
)
app.add_typer(traces_app, name="traces")
LOG_WIDTH = 132  # where output goes into a file or a log, tables need not be squeezed into 80 columns
console = Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=LOG_WIDTH)


def _shown(path: Path) -> str:
    """A path as short as it is clear from here."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


@app.command()
def run(
    experiment: Annotated[str, typer.Argument(help="A YAML file, or the name of one in experiments/.")],
    arena: Annotated[str | None, typer.Option(help=f"Where to run: {', '.join(ARENAS)}.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Runs side by side. Default: what fidelity allows.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Use seeds 1 to N instead of the experiment's.")] = None,
    out: Annotated[Path | None, typer.Option(help="Directory of the results. Default: results/NAME.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume/--fresh", help="Keep whole runs that are there, or do all again.")
    ] = True,
) -> None:
    """Run an experiment: trace pairs × schemes × seeds; then compare, and write the report."""
    if arena is not None and arena not in ARENAS:
        raise UserError(f"unknown arena '{arena}'; {near_miss(arena, ARENAS)}")
    checked, document = load_experiment(find_experiment(experiment))
    changes: dict[str, Any] = {}
    if arena is not None:
        changes["arena"] = arena
    if seeds is not None:
        changes["seeds"] = list(range(1, seeds + 1))
    checked = checked.model_copy(update=changes)
    specs = resolve(checked, document)
    check_machine()
    campaign = Campaign((out or RESULTS_DIR / checked.name).resolve())
    with campaign.locked():
        campaign.sweep()
        if not resume:
            shutil.rmtree(campaign.runs, ignore_errors=True)
            campaign.runs.mkdir()
        _write_campaign_record(campaign, checked, specs)
        _run_pending(campaign, specs, jobs)
        _finish(campaign)


def _write_campaign_record(campaign: Campaign, experiment: Experiment, specs: list[RunSpec]) -> None:
    command = shlex.join(["railyard", *sys.argv[1:]])
    record = {
        "schema": CAMPAIGN_SCHEMA,
        "experiment": experiment.model_dump(mode="json"),
        "command": command,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "git": provenance.git_state(),
        "runs": [spec.run_id for spec in specs],
    }
    partial = campaign.out / ".campaign.json.partial"
    partial.write_text(json.dumps(record, indent=1) + "\n")
    partial.rename(campaign.out / "campaign.json")


def _run_pending(campaign: Campaign, specs: list[RunSpec], jobs: int | None) -> None:
    pending = campaign.pending(specs)
    done = len(specs) - len(pending)
    if done:
        console.print(f"{done} of {len(specs)} runs are there already; --fresh does them again.")
    if not pending:
        return
    side_by_side = jobs or default_jobs()
    reason = "as asked" if jobs else "what fidelity allows on this machine; --jobs changes it"
    console.print(f"{len(pending)} runs to do, {side_by_side} at a time ({reason}).", soft_wrap=True)
    watch = Stopwatch()
    try:
        with reporter(console, len(specs), done) as told:
            run_campaign(campaign, pending, side_by_side, told)
    except KeyboardInterrupt:
        print("railyard: stopped; the whole runs are kept, and the same command goes on from there.", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    console.print(f"runs took {watch}")


def _finish(campaign: Campaign) -> None:
    record, runs = load_campaign(campaign.out)
    write_parquet(runs, campaign.out)
    page = write_report(record, runs, campaign.out)
    console.print()
    print_comparison(console, runs)
    console.print(f"report: {_shown(page)}", soft_wrap=True)


@app.command()
def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A campaign's directory, results/NAME.")],
) -> None:
    """Write report.html, runs.parquet and chunks.parquet of a campaign again from its runs."""
    record, runs = load_campaign(directory)
    write_parquet(runs, directory)
    console.print(_shown(write_report(record, runs, directory)), soft_wrap=True)


@app.command()
def show(
    directory: Annotated[Path, typer.Argument(metavar="RUN", help="A run's directory, results/NAME/runs/RUN.")],
) -> None:
    """Show one run: how it ended, its chunks, stalls, paths and fidelity."""
    print_run(console, directory)


@app.command("list")
def list_experiments() -> None:
    """List the experiments in experiments/."""
    table = Table("experiment", "pairs", "schemes", "seeds", "description", header_style="bold")
    for file in sorted(EXPERIMENTS_DIR.glob("*.yaml")):
        checked, _ = load_experiment(file)
        pairs = "\n".join(" or ".join(choice.first_found) for choice in checked.pairs)
        schemes = " ".join(entry.base_label() for entry in checked.schemes)
        table.add_row(file.stem, pairs, schemes, str(len(checked.seeds)), checked.description)
    console.print(table)


@app.command()
def version() -> None:
    """Print the version."""
    console.print(__version__)


def main() -> None:
    """Entry point: what a user can mend ends in one sentence and exit code 2."""
    try:
        sys.exit(app(standalone_mode=False))
    except UserError as error:
        _fail(str(error))
    except typer.TyperException as error:
        _fail(error.format_message() or "a command is missing; `railyard --help` names them.")
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        sys.exit(141)


def _fail(sentence: str) -> None:
    print(f"railyard: {sentence}", file=sys.stderr)
    sys.exit(2)
