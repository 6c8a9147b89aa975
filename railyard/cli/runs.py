"""`railyard run` and `diff`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.table import Table

from railyard.base.errors import UserError
from railyard.base.forms import Form, FormOption, write
from railyard.base.paths import EXPERIMENTS_DIR, RESULTS_DIR, changed_since_built
from railyard.base.terminal import new_console
from railyard.base.yamlfile import load_yaml, near_miss
from railyard.cli.options import names_in, names_of_pairs
from railyard.experiment.arenas import ARENAS
from railyard.experiment.model import MOST_SEEDS, QLOGS, experiment_of, find_experiment
from railyard.experiment.options import of_pairs, with_options
from railyard.report import write_page_of
from railyard.report.exhibit import SIZES, Size
from railyard.results import remembered
from railyard.results.campaigns import find_run
from railyard.results.explain.explanation import stream_of_chunk
from railyard.results.pending import Place, Plan, Whole, planned, whole_campaign
from railyard.results.qlogdiff import parting, parting_from
from railyard.results.summary import Outcome, answer_of, print_summary, tell_program_fault, write_answer
from railyard.run.arena import arena_of
from railyard.run.folders import OUT_HELP, shown
from railyard.run.resolve import not_run, qlog_of, resolve, warnings
from railyard.studies import thresholds
from railyard.studies.exhibits import registry
from railyard.studies.request import VIRTUAL, RunRequest, prepare, refuse
from railyard.traces.library import at_hand, told_of_hidden

console = new_console()
_tell = console.print


def _check_word(what: str, value: str | None, known: Sequence[str]) -> None:
    """Raises UserError if a value was given and is not one of the known words."""
    if value is not None and value not in known:
        raise UserError(f"unknown {what} '{value}'; {near_miss(value, known)}")


def run(
    experiment: Annotated[
        str | None,
        typer.Argument(
            help="A YAML file, or the name of one in experiments/. Without it: --pair.",
            autocompletion=names_in(EXPERIMENTS_DIR),
        ),
    ] = None,
    pair: Annotated[
        list[str] | None,
        typer.Option(help="A trace pair instead of the file's. May be repeated.", autocompletion=names_of_pairs),
    ] = None,
    schemes: Annotated[
        str | None, typer.Option(metavar="all|NAME,…", help="Schemes instead of the file's; all: those of the arena.")
    ] = None,
    changed: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="Set a field, as player.bitrate=8mbps. May be repeated."),
    ] = None,
    arena: Annotated[str | None, typer.Option(help=f"Arena to run in: {', '.join(ARENAS)}.")] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Number of parallel runs. Default: what fidelity allows; sim: one for each core."),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, max=MOST_SEEDS, help="Use seeds 1 to N instead of the experiment's.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help=OUT_HELP)] = None,
    size: Annotated[
        str | None,
        typer.Option(help=f"Only figures and tables of the paper: {', '.join(SIZES)}. Sets places and seeds."),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume/--fresh", help="Keep existing runs, or run everything again in another folder."),
    ] = True,
    keep_awake: Annotated[
        str | None, typer.Option(help="Whether mpshell keeps the cores awake: auto (if it helps), on, off.")
    ] = None,
    real_time: Annotated[
        bool | None,
        typer.Option(
            "--real-time/--no-real-time", help="Run player, server and stacks under SCHED_FIFO, below mpshell."
        ),
    ] = None,
    qlog: Annotated[
        str | None,
        typer.Option(help=f"Qlogs to keep: {', '.join(QLOGS)}. Default: by the number of runs."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say how many runs there are, how long they take, and how much disk.")
    ] = False,
    repeat_budget: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="SECONDS", help="Time for repetitions of void runs. Default: half of the planned time."
        ),
    ] = None,
) -> None:
    """Run an experiment: trace pairs × schemes × seeds, and compare; or rebuild a figure or table of the paper.

    Exit code 1 if a program failed in a run: it crashed or hung, or rejected what it received.
    """
    if experiment is None and not pair:
        raise UserError("name an experiment, or with --pair what to play; `railyard show` has the experiments.")
    asked = of_pairs(pair or []) if experiment is None else load_yaml(find_experiment(experiment))
    carry_out = registry.runner(asked)
    _check_word("size", size, SIZES)
    _check_word("--keep-awake", keep_awake, ("auto", "on", "off"))
    _check_word("--qlog", qlog, QLOGS)
    if carry_out is not None:
        request = RunRequest(
            *(console, arena, jobs, seeds, out, resume, cast("Size", size or "default"), repeat_budget, qlog, dry_run),
            keep_awake=keep_awake,
            real_time=real_time,
        )
        if pair or schemes or changed:
            raise UserError(f"--pair, --schemes and --set are for comparisons; {asked.path} is of another kind.")
        _end(is_faulty=carry_out(asked, request))
        return
    _check_word("arena", arena, ARENAS)
    if size is not None:
        raise UserError(f"--size is for figures and tables of the paper; {asked.path.name} has 'seeds': use --seeds.")
    document = with_options(asked, pair or [], schemes, changed or [])
    checked = experiment_of(document)
    changes: dict[str, Any] = {
        "arena": arena,
        "seeds": None if seeds is None else list(range(1, seeds + 1)),
        "keep_awake": keep_awake,
        "real_time": real_time,
        "qlog": qlog,
        "repeat_budget_s": repeat_budget,
    }
    checked = checked.model_copy(update={name: value for name, value in changes.items() if value is not None})
    if arena_of(checked.arena).exact:
        refuse({"--keep-awake": keep_awake, "--real-time": real_time, "--repeat-budget": repeat_budget}, VIRTUAL)
    prepare([arena_of(checked.arena)], _tell, dry_run=dry_run)
    if (outdated := changed_since_built(arena_of(checked.arena).program_names)) is not None:
        _tell(f"warning: {outdated}")
    if dry_run:
        checked = thresholds.left_open(checked, _tell)
    else:
        checked = thresholds.resolved(checked, document, out or RESULTS_DIR, arena_of("sim").default_jobs(), _tell)
    specs = resolve(checked, document, dry_run=dry_run)
    for warning in (*told_of_hidden(at_hand(), {spec.pair for spec in specs}), *warnings(specs)):
        _tell(f"warning: {warning}")
    checked = checked.model_copy(update={"qlog": qlog_of(checked, len(specs))})
    plan = Plan(checked, specs, not_run=not_run(checked, document), qlog_asked=qlog is not None)
    place = Place(out, fresh=not resume, tell=_tell)
    if dry_run:
        for sentence in planned(plan, place, jobs):
            _tell(sentence)
        return
    with whole_campaign(plan, place, jobs=jobs, console=console, tables=True) as campaign:
        is_faulty = _show(campaign, checked.description)
    _end(is_faulty=is_faulty)


def _end(*, is_faulty: bool | None) -> None:
    """Ends `railyard run` with exit code 1 if a program failed in a run."""
    if is_faulty:
        raise typer.Exit(1)


def _show(campaign: Whole, description: str) -> bool:
    """Prints the summary and keeps it beside the page. Returns whether a program failed, and says so last."""
    page = campaign.folder / "report.html"
    summary = campaign.shown.get(remembered.view(console))
    if summary is not None:
        console.file.write(summary)
        console.print(f"report: {shown(page)}")
        return False
    from railyard.report.sections import Context  # noqa: PLC0415  slow to load

    context = Context(campaign.record, campaign.runs, folder=campaign.folder)
    outcome = Outcome(
        campaign.runs, campaign.record["not_run"], context.findings, context.twins, campaign.record["command"]
    )
    with console.capture() as captured:
        print_summary(console, outcome)
    console.file.write(captured.get())
    write_answer(answer_of(outcome, description), campaign.folder)
    console.print(f"report: {shown(write_page_of(context, campaign.folder))}")
    if tell_program_fault(console, campaign.runs):
        return True
    remembered.remember(campaign.folder, console, captured.get())
    return False


def diff(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help="A run's folder, or its name in the results.")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="Another run.")],
    chunk: Annotated[
        int | None, typer.Option(min=0, help="Compare from the first packet of this chunk on, without times.")
    ] = None,
    form: FormOption = Form.TABLE,
) -> None:
    """Find the first scheduling decision in which two runs differ. Exit code 1 if there is one."""
    runs = find_run(str(run_a), RESULTS_DIR), find_run(str(run_b), RESULTS_DIR)
    if chunk is None:
        first_difference = parting(*runs)
    else:
        first_difference = parting_from(
            *runs, chunk, (stream_of_chunk(runs[0], chunk), stream_of_chunk(runs[1], chunk))
        )
    if form is Form.TABLE:
        console.print(str(first_difference))
    else:
        records = first_difference.records()
        table = Table(*records[0])
        for record in records:
            table.add_row(*("" if value is None else str(value) for value in record.values()))
        write(table, form, lambda: records)
    if first_difference.kind != "identical":
        raise typer.Exit(1)
