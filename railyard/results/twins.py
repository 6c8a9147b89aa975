"""The twins of a play on the wall clock: the same run in virtual time, with the player started at once and a few
milliseconds later.

On the wall clock no event happens at the same microsecond twice, and a packet that gets another delivery opportunity
changes all that follows. So a play agrees with its twins if its figures are within or near the range of theirs. The
twins are in `twins/N/runs` of the campaign's folder, where N is the delay of the player in ms. A twin never counts in a
figure. If every run of a scheme is void, tables show the twin's value with a mark.
"""

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
SHIFTS_MS = (0, 1, 2, 5, 10)  # starts of the twins' players
AGREES = "agrees"
NEAR = 0.05  # of the value: the distance from the twins' range at which a median still agrees
NEAR_STALL_S = 0.5  # the same for time stalled


def _twin(spec: RunSpec, shift_ms: int) -> RunSpec | None:
    """The run in virtual time: in the simulator or, if it needs a kernel, in the time-travel kernel. None: that is not
    at hand, or is needed for a shift other than 0."""
    same = {"qlog": False, "link_logs": False, "pcap": False}
    if TRANSPORT_OF_SCHEME[spec.scheme] == "quic" and not spec.flows:
        of_sim = {"arena": "sim", "programs_sha256": arena_of("sim").programs(), "player_start_ms": shift_ms}
        return spec.model_copy(update=same | of_sim)
    if shift_ms or vkernel.at_hand() is None or vkernel.stale() is not None:
        return None
    of_kernel = {"arena": "kernel", "programs_sha256": arena_of("kernel").programs(), "kernel": kernel_machine()}
    return spec.model_copy(update=same | of_kernel)


def make_twins(folder: Path, specs: Sequence[RunSpec]) -> int:
    """Runs the twins that are missing. Returns the number of all twins."""
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
    """The twins of each run, by the run's name, in the order of their shifts. Leaves out void and unreadable ones."""
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
    """The figures of a play that are outside of its twins' range: "stalled 5.1 s, there 1.2 to 1.9". Empty: it
    agrees."""
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
