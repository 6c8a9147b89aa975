"""Compiles a scheduler in C into a simulator, plays it and checks it, for notebooks/lab-scheduler.py."""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from types import EllipsisType

from railyard import api
from railyard.base.errors import UserError
from railyard.base.paths import IN_CHECKOUT, ROOT, program
from railyard.experiment.model import experiment_of
from railyard.experiment.options import of_pairs
from railyard.lab import Check, check, is_open, judged, unanswered
from railyard.results.pending import Place, Plan, whole_campaign
from railyard.results.qlogdiff import decisions, events, server_qlogs
from railyard.run.arena import arena_of
from railyard.run.children import make_environment
from railyard.run.resolve import resolve

PROGRAM = "xlink-sim"
SOURCES = (
    "Makefile",
    "apps",
    "bench",
    "emulator",
    "lib",
    "peers",
    "player",
    "scripts",
    "server",
    "tests/fuzz/fuzz.mk",
    "transport",
)
OBJECTS = ("build/release", "build/generated")
NAME, MIN_RTT = "mine", "vanilla-mp"
FAR, NEAR = "lab-lte-geo", "lab-cap-30-lte"
"""Pairs: LTE of 60 ms beside a satellite of 600 ms; Wi-Fi of 30 ms beside LTE of 81 ms."""
SPARED, SAME = 0.75, 1.03
IN_TURN = 20
"""Packets in a row that alternate between the paths: round robins have 21 and more over FAR, random choices 11."""
SETTINGS = {"bitrate_bps": 4_000_000, "duration_s": 10, "chunk_bytes": 262_144}
BUILD_LIMIT_S = 600
HANG_S = 30.0
"""On the wall clock. A play takes less than a second."""


def build(code: str, tree: Path = ROOT / "build" / "lab") -> Path:
    """Builds the simulator with `code` as the scheduler `mine`. Raises UserError with the compiler's first error."""
    if not IN_CHECKOUT:
        raise UserError("a scheduler is compiled from the sources: use a checkout and its .venv.")
    program(PROGRAM)
    _copy_tree(tree)
    file = tree / "transport" / "scheduler" / f"{NAME}.c"
    if not file.is_file() or file.read_text(encoding="utf-8") != code:
        file.write_text(code, encoding="utf-8")
    environment = make_environment()
    command = ["make", "-C", str(tree), "--no-print-directory", "FAST_LINK=1", f"build/bin/{PROGRAM}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=BUILD_LIMIT_S, env=environment)
    if done.returncode != 0:
        output = done.stderr.splitlines() or ["no words"]
        errors = (line for line in output if f"{NAME}.c" in line and ("error" in line or "undefined" in line))
        raise UserError(f"the scheduler does not compile: {next(errors, output[0])}")
    return tree / "build" / "bin" / PROGRAM


def _copy_tree(tree: Path) -> None:
    """Makes `tree` a copy of the sources and objects, if it is none or the sources have changed since."""
    state, stamp = "\n".join(_sources()), tree / "sources"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == state:
        return
    shutil.rmtree(tree, ignore_errors=True)
    for name in (*SOURCES, *OBJECTS):
        _copy(ROOT / name, tree / name)
    stamp.write_text(state, encoding="utf-8")


def _sources() -> Iterator[str]:
    """Each source file with its time of change."""
    for name in SOURCES:
        for file in sorted([ROOT / name, *(ROOT / name).rglob("*.[ch]")]):
            if file.is_file():
                yield f"{file} {file.stat().st_mtime_ns}"


def _copy(source: Path, target: Path) -> None:
    """Copies a folder with file times, so that make compiles only new files."""
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def race(code: str, pairs: Sequence[str] = (FAR,), seeds: int = 2, out: Path | None = None) -> api.Campaign:
    """Plays min-RTT, and the scheduler in its place, over the same links. Raises UserError if the scheduler chose a
    path that is none, or a program crashed or hung: its missing requests would be missing in all figures."""
    simulator = build(code)
    document = of_pairs(pairs)
    others = {"cross": "500kbps", "cross_gaps": "random"}
    document.data.update(arena="sim", schemes=[MIN_RTT], seeds=seeds, player=SETTINGS, links={"all": others})
    checked = experiment_of(document)
    specs = resolve(checked, document)
    own = {"label": NAME, "wall_limit_s": HANG_S}
    mine = [spec.model_copy(update=own | {"parameters": spec.parameters | {"scheduler": NAME}}) for spec in specs]
    sim = arena_of("sim")
    plan = Plan(checked, [sim.with_program(spec, simulator) for spec in (*specs, *mine)], most_hung=1)
    with whole_campaign(plan, Place(out)) as campaign:
        for run in campaign.runs:
            if run.is_fault or f"scheduler {NAME}:" in run.record["message"]:
                raise UserError(f"no figures: {run.run_id} {run.outcome} ({run.record['message']}).")
        return api.Campaign(campaign.folder, campaign.record, campaign.runs)


def times(campaign: api.Campaign, scheme: str) -> list[float]:
    """The request completion times of a scheme, s."""
    return [chunk.rct_s for run in campaign.runs if run.label == scheme for chunk in run.chunks]


def _ratio(campaign: api.Campaign) -> float:
    """The median of `mine` over that of min-RTT."""
    return median(times(campaign, NAME)) / median(times(campaign, MIN_RTT))


def _in_turn(campaign: api.Campaign) -> int:
    """The most consecutive packets of `mine` of which each goes on another path than the one before."""
    most = count = 1
    for run in campaign.runs:
        if run.label == NAME:
            [log] = server_qlogs(campaign.folder / "runs" / run.run_id)
            for one, other in pairwise(decisions(events(log))):
                count = count + 1 if one.path != other.path else 1
                most = max(most, count)
    return most


def is_min_rtt(code: str) -> Check:
    """Whether every request takes exactly as long as under min-RTT."""
    campaign = race(code)
    same = times(campaign, NAME) == times(campaign, MIN_RTT)
    return judged(
        same, f"The median is {_ratio(campaign):.2f} times that of min-RTT.", "Every request, to the microsecond."
    )


def alternates(code: str, slower: str | EllipsisType | None) -> Check:
    """Checks a round robin, and the prediction of what it makes slower, beyond SAME: 'median', 'maximum' or 'both'."""
    if is_open(slower):
        return unanswered()
    campaign = race(code)
    changes = {
        "median": _ratio(campaign),
        "maximum": max(times(campaign, NAME)) / max(times(campaign, MIN_RTT)),
    }
    ratios_text = ", ".join(f"{name} {ratio:.2f} times" for name, ratio in changes.items())
    if (count := _in_turn(campaign)) < IN_TURN:
        return judged(False, f"This is no round robin: at most {count} packets in a row alternate between the paths.")
    slower_figures = [name for name, ratio in changes.items() if ratio > SAME]
    answer = "both" if len(slower_figures) == 2 else "".join(slower_figures)
    return check(slower, answer, f"Look at the play: {ratios_text} that of min-RTT.")


def waits(code: str) -> Check:
    """Whether the scheduler avoids the slow path if that pays."""
    ratio = _ratio(race(code))
    ratio_text = f"The median is {ratio:.2f} times that of min-RTT."
    return judged(ratio <= SPARED, f"{ratio_text} Get it to {SPARED:g} or less.", ratio_text)


def harms_nobody(code: str) -> Check:
    """Whether a scheduler that waits is as good as min-RTT if both paths are worth using."""
    if not (first := waits(code)).right:
        return Check(False, f"Not yet: the exercise before comes first. {first.words.removeprefix('Not yet. ')}")
    ratio = _ratio(race(code, (NEAR,)))
    ratio_text = f"Over {NEAR} the median is {ratio:.2f} times that of min-RTT."
    return judged(ratio <= SAME, f"{ratio_text} Wait only where waiting is shorter than the slow path.", ratio_text)
