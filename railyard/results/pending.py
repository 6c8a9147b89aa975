"""Makes a campaign whole: carries out those runs that are not there yet, and tells how it goes."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console

from railyard.results import qlogs
from railyard.run.campaign import Campaign, default_jobs, run_campaign
from railyard.experiment.model import Experiment
from railyard.run.progress import Silent, Stopwatch, reporter
from railyard.run.repetition import default_budget_s
from railyard.run.resolve import qlog_of
from railyard.run.runspec import RunSpec
from railyard.base.words import counted

STOPPED = "railyard: stopped; the whole runs are kept, and the same command{} goes on from there."


def stopped() -> None:
    """Says that the user stopped it, and how to go on: `--fresh` would begin another folder."""
    print(STOPPED.format(" without --fresh" if "--fresh" in sys.argv else ""), file=sys.stderr)


def make_whole(
    campaign: Campaign,
    experiment: Experiment,
    specs: list[RunSpec],
    *,
    jobs: int | None = None,
    console: Console | None = None,
    not_run: list[dict[str, str]] | None = None,
    further: dict[str, Any] | None = None,
) -> None:
    """In a folder that the caller holds locked: removes what is half done, writes `campaign.json`, takes over runs that
    another folder has, and does the others. Without a console nothing is said. Raises KeyboardInterrupt where the user
    stopped it."""
    campaign.runs.mkdir(parents=True, exist_ok=True)
    campaign.sweep()
    campaign.write_record(experiment, specs, not_run or [], further)
    done = len(specs) - len(campaign.pending(specs))
    qlog = qlog_of(experiment, len(specs))
    taken = campaign.borrow(specs, qlogs=qlog == "all")
    if console is None:
        pending = campaign.pending(specs)
        if pending:
            jobs = jobs or default_jobs(specs[0].arena)
            run_campaign(campaign, pending, jobs, Silent(), experiment.repeat_budget_s)
        if qlog == "worst":
            qlogs.keep_worst(campaign, specs, jobs or default_jobs(specs[0].arena))
        return
    if done:
        words = "is there already; --fresh does it again" if done == 1 else "are there already; --fresh does them again"
        console.print(f"{done} of {counted(len(specs), 'run')} {words}.", soft_wrap=True)
    for name, count in taken.items():
        words = "is the same" if count == 1 else "are the same"
        console.print(
            f"{count} of {counted(len(specs), 'run')} {words} in {name} (settings, traces, programs), and taken from "
            "there; --fresh does without.",
            soft_wrap=True,
        )
    _run(console, campaign, specs, jobs, experiment.repeat_budget_s)
    if qlog == "worst":
        said = qlogs.keep_worst(campaign, specs, jobs or default_jobs(specs[0].arena))
        console.print(said, soft_wrap=True) if said else None


def _run(
    console: Console, campaign: Campaign, specs: list[RunSpec], jobs: int | None, repeat_budget_s: float | None
) -> None:
    """Raises KeyboardInterrupt, the sentence said, where the user stopped it."""
    pending = campaign.pending(specs)
    if not pending:
        return
    arena = specs[0].arena
    side_by_side = jobs or default_jobs(arena)
    allowed = "one a core" if arena == "sim" else "what fidelity allows on this machine; --jobs changes it"
    reason = "as asked" if jobs else allowed
    console.print(f"{counted(len(pending), 'run')} to do, {side_by_side} at a time ({reason}).", soft_wrap=True)
    budget_s = default_budget_s(pending, side_by_side) if repeat_budget_s is None else repeat_budget_s
    if arena != "sim":
        console.print(
            f"Void runs are repeated at the end, for {budget_s:.0f} s in all; --repeat-budget changes it.",
            soft_wrap=True,
        )
    watch = Stopwatch()
    try:
        with reporter(console, len(specs), len(specs) - len(pending)) as told:
            repetitions = run_campaign(campaign, pending, side_by_side, told, budget_s)
    except KeyboardInterrupt:
        stopped()
        raise
    console.print(f"The runs took {watch}.")
    if repetitions.sentence():
        console.print(repetitions.sentence(), style="yellow", soft_wrap=True)
