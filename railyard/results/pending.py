"""Completes a campaign: locks and sweeps its folder, writes its record, does the missing runs, and gathers them."""

import math
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from rich.console import Console

from railyard.base.counting import counting
from railyard.base.errors import UserError
from railyard.base.paths import RESULTS_DIR, program_if_built
from railyard.base.words import counted
from railyard.experiment.arenas import is_exact
from railyard.experiment.model import Experiment, Qlog
from railyard.results import qlogs, remembered
from railyard.results.aggregate import write_parquet
from railyard.results.estimate import estimate
from railyard.results.listing import size_words
from railyard.results.records import Run, load_campaign
from railyard.results.twins import make_twins
from railyard.run.arena import arena_of
from railyard.run.campaign import Campaign, identity_of, run_campaign
from railyard.run.folders import Identity, Tell, any_is_kept, find_existing, results_folder, resume_words, shown
from railyard.run.progress import Counted, Stopwatch, reporter
from railyard.run.quiet import Quiet
from railyard.run.repetition import default_budget_s
from railyard.run.resolve import qlog_of
from railyard.run.runspec import RunSpec


def stopped() -> None:
    """If runs are kept, says so, and how to resume."""
    if any_is_kept():
        print(f"railyard: stopped. Completed runs are kept; {resume_words()}.", file=sys.stderr)


def silent(_: str) -> None:
    """A `Tell` for a campaign that is part of something larger."""


@dataclass(frozen=True)
class Place:
    """The place of results: the user's folder `out`, or a new folder in `results` (None: results/)."""

    out: Path | None = None
    results: Path | None = None
    fresh: bool = False
    tell: Tell = silent


@dataclass(frozen=True)
class Plan:
    """The runs of a campaign and the contents of its record."""

    experiment: Experiment
    specs: list[RunSpec]
    name: str | None = None  # of the results; None: the experiment's
    facts: dict[str, Any] | None = None  # further facts on which the results depend
    not_run: Sequence[dict[str, str]] = ()
    further: dict[str, Any] | None = None  # more members of campaign.json
    most_hung: float = math.inf  # runs that may hang; after that the others are left out, like refused ones
    qlog_asked: bool | None = None  # whether the user chose which qlogs to keep; None: do not mention qlogs

    @property
    def identity(self) -> Identity:
        named = self.experiment.model_copy(update={"name": self.name or self.experiment.name})
        return identity_of(named, self.specs, self.facts)


@dataclass(frozen=True)
class Whole:
    """A complete campaign. Its runs are read on first use."""

    folder: Path
    shown: dict[str, str] = field(default_factory=dict)
    """The last output, by view. Empty if something has changed since."""

    @cached_property
    def _loaded(self) -> tuple[dict[str, Any], list[Run]]:
        return load_campaign(self.folder)

    @property
    def record(self) -> dict[str, Any]:
        return self._loaded[0]

    @property
    def runs(self) -> list[Run]:
        return self._loaded[1]


@contextmanager
def whole_campaign(
    plan: Plan, place: Place, *, jobs: int | None = None, console: Console | None = None, tables: bool = False
) -> Iterator[Whole]:
    """Finds or makes the folder, holds it locked, and completes the campaign. `tables`: gathers the runs into Parquet
    files. Without a console the runs are only counted, on standard error. Raises KeyboardInterrupt if the user stopped
    it."""
    with results_folder(plan.identity, place.tell, out=place.out, fresh=place.fresh, results=place.results) as folder:
        campaign = make_whole(plan, folder, jobs=jobs, console=console)
        if tables and not campaign.shown:
            write_parquet(campaign.runs, folder)
        yield campaign


def make_whole(plan: Plan, folder: Path, *, jobs: int | None = None, console: Console | None = None) -> Whole:
    """Completes a campaign in a folder that the caller holds locked: removes incomplete runs, writes `campaign.json`,
    takes runs from other folders that have them, does the others, and reads all of them."""
    specs, campaign = plan.specs, Campaign(folder)
    campaign.runs.mkdir(parents=True, exist_ok=True)
    campaign.sweep()
    pending = campaign.pending(specs)
    campaign.write_record(plan.experiment, specs, list(plan.not_run), plan.further, complete=not pending)
    done = len(specs) - len(pending)
    qlog = qlog_of(plan.experiment, len(specs))
    taken = campaign.borrow(pending, qlogs=qlog == "all")
    pending = campaign.pending(pending)
    if console is not None:
        if plan.qlog_asked is not None:
            console.print(qlogs.sentence(qlog, asked=plan.qlog_asked))
        _tell_what_is_there(console, done, len(specs), taken)
    if plan.experiment.twins and not specs[0].is_exact:
        _make_twins(console, folder, specs)
    if not pending and not taken and (shown := remembered.shown(folder)):
        return Whole(folder, shown)
    refused = _run(console, campaign, plan, pending, jobs, qlog)
    if refused:
        specs = _without(campaign, plan, refused)
    if qlog == "worst":
        said = qlogs.keep_worst(campaign, specs, jobs or arena_of(specs[0].arena).default_jobs())
        if console is not None and said:
            console.print(said)
    whole = Whole(folder)
    whole.runs  # noqa: B018  now, while they are locked
    return whole


def _make_twins(console: Console | None, folder: Path, specs: list[RunSpec]) -> None:
    watch = Stopwatch()
    count = make_twins(folder, specs)
    if console is not None:
        console.print(f"The same in virtual time first: {counted(count, 'run')} in {watch}.")


def _without(campaign: Campaign, plan: Plan, refused: dict[str, str]) -> list[RunSpec]:
    """Records the refused runs with the reasons and returns the other runs. Raises UserError if there are none."""
    left = [spec for spec in plan.specs if spec.run_id not in refused]
    if not left:
        raise UserError(next(iter(refused.values())))
    rows = [
        {"pair": spec.pair, "label": spec.label, "scheme": spec.scheme, "reason": refused[spec.run_id]}
        for spec in plan.specs
        if spec.run_id in refused
    ]
    campaign.write_record(plan.experiment, left, [*plan.not_run, *rows], plan.further)
    return left


def _tell_what_is_there(console: Console, done: int, total: int, taken: dict[str, int]) -> None:
    if done:
        rest = "is there already; --fresh does it again" if done == 1 else "are there already; --fresh does them again"
        console.print(f"{done} of {counted(total, 'run')} {rest}.")
    for name, count in taken.items():
        rest = "is the same" if count == 1 else "are the same"
        console.print(
            f"{count} of {counted(total, 'run')} {rest} in {name} (settings, traces, programs), and taken from "
            "there; --fresh does without."
        )


def planned(plan: Plan, place: Place, jobs: int | None) -> list[str]:
    """The output of `railyard run --dry-run`: runs, time, disk space. Writes nothing."""
    folder = place.out or find_existing(plan.identity, place.results)
    pending = plan.specs if folder is None or place.fresh else Campaign(folder).pending(plan.specs)
    total, done = len(plan.specs), len(plan.specs) - len(pending)
    arena = plan.specs[0].arena
    lines = [f"{counted(total, 'run')} in {arena}{f', {done} of them done already' if done else ''}."]
    if plan.specs[0].kernel is None and arena_of(arena).look() is not None and not place.fresh:
        there = Campaign(place.out or (place.results or RESULTS_DIR) / plan.identity.name)
        if count := sum(map(there.done_in_own_kernel, plan.specs)):
            lines.append(f"{count} of them are done in {shown(there.out)}, and count if the kernel comes out the same.")
    if pending:
        counts = [
            counted(len({getattr(spec, name) for spec in pending}), word)
            for name, word in (("pair", "pair"), ("label", "scheme"), ("seed", "seed"))
        ]
        side_by_side = jobs or arena_of(arena).default_jobs()
        results = place.out.resolve().parent if place.out else place.results
        estimated = estimate(pending, qlog_of(plan.experiment, total), side_by_side, results)
        target = (folder or place.results or Path.cwd()).resolve()
        free = shutil.disk_usage(next(one for one in (target, *target.parents) if one.is_dir())).free
        lines.append(f"To do: {counted(len(pending), 'run')} of {', '.join(counts)}, {side_by_side} at the same time.")
        lines.append(f"They take {estimated.words}, as {estimated.basis} say.")
        lines.append(f"{size_words(free)} of the disk is free{', too little' if estimated.disk_bytes > free else ''}.")
    return [*lines, "Nothing was run."]


def _run(
    console: Console | None,
    campaign: Campaign,
    plan: Plan,
    pending: list[RunSpec],
    jobs: int | None,
    qlog: Qlog,
) -> dict[str, str]:
    """Does the runs. Returns those that did not start, with the reason. If the user stops it, says so on the console
    and raises KeyboardInterrupt."""
    if not pending:
        return {}
    specs, budget_s = plan.specs, plan.experiment.repeat_budget_s
    arena = specs[0].arena
    side_by_side = jobs or arena_of(arena).default_jobs()
    if budget_s is None:
        budget_s = default_budget_s(pending, side_by_side)
    if console is None:
        with counting(campaign.out.name, len(pending)) as advance:
            told = Counted(advance)
            return run_campaign(campaign, pending, side_by_side, told, budget_s, most_hung=plan.most_hung).refused
    exact = is_exact(arena)
    allowed = "one for each core" if exact else "what fidelity allows on this machine; --jobs changes it"
    reason = "as asked" if jobs else allowed
    takes = estimate(pending, qlog, side_by_side, campaign.out.parent).words
    console.print(f"{counted(len(pending), 'run')} to do, {side_by_side} at the same time ({reason}): {takes}.")
    if not exact:
        console.print(f"Void runs are repeated at the end, for {budget_s:.0f} s in all; --repeat-budget changes it.")
    quiet = None
    if not exact and program_if_built("mpshell"):  # only the docker arena gets here without it
        quiet = Quiet(partial(console.print, style="yellow"), pending[0].keep_awake)
        quiet.look()
    watch = Stopwatch()
    try:
        with reporter(console, len(specs), len(specs) - len(pending), None if exact else campaign.runs) as progress:
            repetitions = run_campaign(campaign, pending, side_by_side, progress, budget_s, quiet, plan.most_hung)
    except KeyboardInterrupt:
        stopped()
        raise
    console.print(f"The runs took {watch}.")
    if repetitions.sentence():
        console.print(repetitions.sentence(), style="yellow")
    return repetitions.refused
