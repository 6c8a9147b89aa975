"""A play on the wall clock and its twin: the same run in virtual time, with the player started at once and a few
milliseconds later.

No event happens at exactly the same microsecond twice, and a packet that catches another delivery opportunity changes
what follows. So a play agrees with its twins when its figures lie within the range of theirs, or nearly so. The twins
are in `twins/N/runs` of the campaign's folder, N being the milliseconds. A twin never counts in a figure: where every
run of a scheme is void, tables show its value in place of the missing one, and mark it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from railyard.arenas.kernel import kernel_machine
from railyard.base.counting import counting
from railyard.base.errors import UserError
from railyard.experiment.model import TRANSPORT_OF_SCHEME
from railyard.figures.rows import RCT_MEDIAN
from railyard.results.records import Run, load_run
from railyard.run import vkernel
from railyard.run.arena import arena_of
from railyard.run.campaign import Campaign, run_campaign
from railyard.run.progress import Counted
from railyard.run.runspec import RunSpec

FOLDER = "twins"
SHIFTS_MS = (0, 1, 2, 5, 10)  # when the player of a twin starts
AGREES = "agrees"
NEAR = 0.05  # medians within so much of the twins' range agree
NEAR_STALL_S = 0.5  # and time stalled within so much


def _twin(spec: RunSpec, shift_ms: int) -> RunSpec | None:
    """The run in virtual time: in the simulator, or in a time-travel kernel that is at hand where it needs one."""
    same = {"qlog": False, "link_logs": False, "pcap": False}
    if TRANSPORT_OF_SCHEME[spec.scheme] == "quic" and not spec.flows:
        of_sim = {"arena": "sim", "programs_sha256": arena_of("sim").programs(), "player_start_ms": shift_ms}
        return spec.model_copy(update=same | of_sim)
    if shift_ms or vkernel.at_hand() is None or vkernel.stale() is not None:
        return None
    of_kernel = {"arena": "kernel", "programs_sha256": arena_of("kernel").programs(), "kernel": kernel_machine()}
    return spec.model_copy(update=same | of_kernel)


def make_twins(folder: Path, specs: Sequence[RunSpec]) -> int:
    """Runs the twins that are not there yet. Returns how many there are."""
    count = 0
    for shift_ms in SHIFTS_MS:
        campaign = Campaign(folder / FOLDER / str(shift_ms))
        twins = [twin for spec in specs if (twin := _twin(spec, shift_ms)) is not None]
        campaign.runs.mkdir(parents=True, exist_ok=True)
        campaign.sweep()
        for arena in dict.fromkeys(twin.arena for twin in twins):
            pending = campaign.pending([twin for twin in twins if twin.arena == arena])
            if pending:
                with counting("in virtual time", len(pending)) as advance:
                    run_campaign(campaign, pending, arena_of(arena).default_jobs(), Counted(advance), 0.0)
        count += len(twins)
    return count


def load_twins(folder: Path) -> dict[str, list[Run]]:
    """The twins of each run by its name, that of the first shift first; those that cannot be read are left out."""
    twins: dict[str, list[Run]] = {}
    for shift_ms in SHIFTS_MS:
        for record in sorted((folder / FOLDER / str(shift_ms) / "runs").glob("[!.]*/run.json")):
            try:
                run = load_run(record.parent)
            except (UserError, json.JSONDecodeError):
                continue
            if not run.void:
                twins.setdefault(run.run_id, []).append(run)
    return twins


@dataclass(frozen=True)
class _Judged:
    title: str
    of: Callable[[Run], float]
    form: str
    near: Callable[[float], float]


JUDGED = (
    _Judged(RCT_MEDIAN.title, RCT_MEDIAN.of, ".3f", lambda value: NEAR * value),
    _Judged("stalled", lambda run: run.rebuffer_counted_s, ".1f", lambda _: NEAR_STALL_S),
)


def differs(run: Run, twins: Sequence[Run]) -> str:
    """In what a play is outside of its twins' range: "stalled 5.1 s, there 1.2 to 1.9"; empty where it agrees."""
    reasons = []
    for one in JUDGED:
        value, there = one.of(run), [one.of(twin) for twin in twins]
        low, high = min(there), max(there)
        if not low - one.near(low) <= value <= high + one.near(high):
            ends = [format(end, one.form) for end in (low, high)]
            reasons.append(f"{one.title} {value:{one.form}} s, there {' to '.join(dict.fromkeys(ends))}")
    return "; ".join(reasons)


def all_agreements(runs: Sequence[Run], known: Mapping[str, Sequence[Run]]) -> dict[str, str]:
    """For each run that counts and has twins: "agrees", or how it differs."""
    there = [run for run in runs if not run.void and run.run_id in known]
    return {run.run_id: differs(run, known[run.run_id]) or AGREES for run in there}
