"""Carries out those runs of a campaign that are not there yet, and tells how it goes."""

from __future__ import annotations

import sys

from rich.console import Console

from railyard.campaign import Campaign, default_jobs, run_campaign
from railyard.progress import Stopwatch, reporter
from railyard.repetition import default_budget_s
from railyard.runspec import RunSpec
from railyard.words import counted

STOPPED = "railyard: stopped; the whole runs are kept, and the same command goes on from there."


def run_pending(
    console: Console, campaign: Campaign, specs: list[RunSpec], jobs: int | None, repeat_budget_s: float | None = None
) -> None:
    """Raises KeyboardInterrupt, the sentence said, where the user stopped it."""
    pending = campaign.pending(specs)
    done = len(specs) - len(pending)
    if done:
        words = "is there already; --fresh does it again" if done == 1 else "are there already; --fresh does them again"
        console.print(f"{done} of {counted(len(specs), 'run')} {words}.")
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
        with reporter(console, len(specs), done) as told:
            repetitions = run_campaign(campaign, pending, side_by_side, told, budget_s)
    except KeyboardInterrupt:
        print(STOPPED, file=sys.stderr)
        raise
    console.print(f"The runs took {watch}.")
    if repetitions.sentence():
        console.print(repetitions.sentence(), style="yellow", soft_wrap=True)
