"""Decides which runs of a campaign keep qlogs: all, none, or for each scheme and pair the run with the worst tail.

The worst runs are known only at the end. In sim a run is the same with and without qlogs: all are run without, and the
worst ones again with qlogs. On the wall clock no run can be repeated, and in the kernel arena writing qlogs changes the
times of a run: all are run with qlogs, and those of the other runs are removed.
"""

import math
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from railyard.base.counting import counting
from railyard.base.errors import UserError
from railyard.base.loop import complete, side_by_side
from railyard.base.words import counted
from railyard.experiment.model import Qlog
from railyard.figures.rows import RCT_MAX, RCT_P99
from railyard.results.records import Run, load_run
from railyard.run.arena import arena_of
from railyard.run.campaign import Campaign
from railyard.run.progress import PARTIAL
from railyard.run.record import ABOUT
from railyard.run.runspec import RunSpec


def sentence(qlog: Qlog, *, asked: bool) -> str:
    """The sentence about qlogs at the start of a campaign."""
    what = {
        "all": "Qlogs of all runs are kept",
        "none": "No qlogs are kept",
        "worst": "Qlogs of the run with the worst p99 RCT of each scheme and pair are kept",
    }[qlog]
    others = [word for word in ("all", "worst", "none") if word != qlog]
    return f"{what}{'' if asked else f' (--qlog {others[0]} or {others[1]} changes it)'}."


def _tail(run: Run) -> tuple[float, float]:
    """The p99, then the longest RCT. A run that requested nothing is worse than any other."""
    p99, most = RCT_P99.point([run]), RCT_MAX.point([run])
    return (math.inf, math.inf) if p99 is None or most is None else (p99.value, most.value)


def worst(campaign: Campaign, specs: Sequence[RunSpec]) -> list[RunSpec]:
    """The run with the worst p99 RCT of each pair and scheme over QUIC, void runs excluded."""
    worst_runs: dict[tuple[str, str], tuple[tuple[float, float], RunSpec]] = {}
    for spec in specs:
        if spec.transport != "quic":
            continue
        run = load_run(campaign.runs / spec.run_id)
        place = (spec.pair, spec.label)
        if not run.void and (place not in worst_runs or _tail(run) > worst_runs[place][0]):
            worst_runs[place] = (_tail(run), spec)
    return [spec for _, spec in worst_runs.values()]


def _files(run: Path) -> Iterator[Path]:
    """The qlogs of a run, and the TLS keys that go with them."""
    yield from run.glob("qlog/*")
    yield from run.glob("*.keys")


def _outputs(run: Path) -> dict[str, bytes]:
    logs = set(_files(run))
    files = (file for file in run.rglob("*") if file.is_file() and file not in logs and file.name not in ABOUT)
    return {str(file.relative_to(run)): file.read_bytes() for file in files}


async def _with_qlogs(campaign: Campaign, spec: RunSpec) -> None:
    """Repeats a run in virtual time and adds its qlogs to the run's folder. All other outputs must be the same."""
    run, partial = campaign.runs / spec.run_id, campaign.runs / f"{PARTIAL}{spec.run_id}-qlog"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        await arena_of(spec.arena).execute(spec.model_copy(update={"qlog": True}), partial)
        campaign.check_space()
        if _outputs(partial) != _outputs(run):
            raise UserError(
                f"{run}: done again with qlogs it came out otherwise, so the run is not exact; its qlogs are not kept."
            )
        for file in partial.glob("*.keys"):
            file.replace(run / file.name)
        shutil.rmtree(run / "qlog", ignore_errors=True)  # empty: the run wrote none
        (partial / "qlog").rename(run / "qlog")
    finally:
        shutil.rmtree(partial, ignore_errors=True)


async def _all_with_qlogs(campaign: Campaign, specs: Sequence[RunSpec], jobs: int) -> None:
    async def work(spec: RunSpec) -> None:
        await _with_qlogs(campaign, spec)
        advance()

    with counting("once more, with qlogs", len(specs)) as advance:
        await side_by_side(specs, work, jobs)


def keep_worst(campaign: Campaign, specs: Sequence[RunSpec], jobs: int) -> str:
    """Leaves qlogs of the worst runs alone, at the end of a campaign. Returns a sentence if runs were repeated."""
    kept = worst(campaign, specs)
    if specs[0].is_same_with_qlogs:
        missing = [spec for spec in kept if not any((campaign.runs / spec.run_id).glob("qlog/*"))]
        complete(_all_with_qlogs(campaign, missing, jobs))
        return f"{counted(len(missing), 'run')} done again for qlogs, with the same outcome." if missing else ""
    names = {spec.run_id for spec in kept}
    others = [file for spec in specs if spec.run_id not in names for file in _files(campaign.runs / spec.run_id)]
    for file in others:
        file.unlink()
    return ""
