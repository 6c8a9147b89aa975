"""Compiles a scheduler in C into a simulator, plays it and checks it, for notebooks/lab-scheduler.py."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from types import EllipsisType

from railyard import api
from railyard.base.errors import UserError
from railyard.base.paths import IN_CHECKOUT, ROOT
from railyard.experiment.model import experiment_of
from railyard.experiment.options import of_pairs
from railyard.lab import Check, check, is_open, judged, unanswered
from railyard.results.pending import Place, Plan, whole_campaign
from railyard.run.arena import arena_of
from railyard.run.resolve import resolve

PROGRAM = "build/bin/xlink-sim"
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
SETTINGS = {"bitrate_bps": 4_000_000, "duration_s": 10, "chunk_bytes": 262_144}
BUILD_LIMIT_S = 600


def build(code: str, tree: Path = ROOT / "build" / "lab") -> Path:
    """Builds the simulator with `code` as the scheduler `mine`. Raises UserError with the compiler's first error."""
    if not IN_CHECKOUT:
        raise UserError("a scheduler is compiled from the sources: use a checkout and its .venv.")
    if not (tree / "Makefile").is_file():
        for name in (*SOURCES, *OBJECTS):
            _copy(ROOT / name, tree / name)
    file = tree / "transport" / "scheduler" / f"{NAME}.c"
    if not file.is_file() or file.read_text(encoding="utf-8") != code:
        file.write_text(code, encoding="utf-8")
    left_out = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "VARIANT")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    command = ["make", "-C", str(tree), "--no-print-directory", "FAST_LINK=1", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=BUILD_LIMIT_S, env=environment)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if f"{NAME}.c" in line and "error" in line]
        raise UserError(f"the scheduler does not compile: {(lines or done.stderr.splitlines() or ['no words'])[0]}")
    return tree / PROGRAM


def _copy(source: Path, target: Path) -> None:
    """Copies a folder with file times, so that make compiles only new files."""
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def race(code: str, pairs: Sequence[str] = (FAR,), seeds: int = 2, out: Path | None = None) -> api.Campaign:
    """Plays min-RTT, and the scheduler in its place, over the same links. Raises UserError if a program crashed or
    hung, because its missing requests would be missing in all figures."""
    program = build(code)
    document = of_pairs(pairs)
    others = {"cross": "500kbps", "cross_gaps": "random"}
    document.data.update(arena="sim", schemes=[MIN_RTT], seeds=seeds, player=SETTINGS, links={"all": others})
    checked = experiment_of(document)
    specs = resolve(checked, document)
    changes = [{"label": NAME, "parameters": spec.parameters | {"scheduler": NAME}} for spec in specs]
    mine = [spec.model_copy(update=change) for spec, change in zip(specs, changes, strict=True)]
    sim = arena_of("sim")
    plan = Plan(checked, [sim.with_program(spec, program) for spec in (*specs, *mine)], most_hung=1)
    with whole_campaign(plan, Place(out)) as campaign:
        for run in campaign.runs:
            if run.is_fault:
                raise UserError(f"no figures: {run.run_id} {run.outcome} ({run.record['message']}).")
        return api.Campaign(campaign.folder, campaign.record, campaign.runs)


def times(campaign: api.Campaign, scheme: str) -> list[float]:
    """The request completion times of a scheme, s."""
    return [chunk.rct_s for run in campaign.runs if run.label == scheme for chunk in run.chunks]


def _ratio(campaign: api.Campaign) -> float:
    """The median of `mine` over that of min-RTT."""
    return median(times(campaign, NAME)) / median(times(campaign, MIN_RTT))


def is_min_rtt(code: str) -> Check:
    """Whether every request takes exactly as long as under min-RTT."""
    campaign = race(code)
    same = times(campaign, NAME) == times(campaign, MIN_RTT)
    return judged(
        same, f"The median is {_ratio(campaign):.2f} times that of min-RTT.", "Every request, to the microsecond."
    )


def alternates(code: str, slower: str | EllipsisType | None) -> Check:
    """Checks a round robin, and the prediction of what it makes slower: 'median', 'maximum' or 'both'."""
    if is_open(slower):
        return unanswered()
    campaign = race(code)
    changes = {
        "median": _ratio(campaign),
        "maximum": max(times(campaign, NAME)) / max(times(campaign, MIN_RTT)),
    }
    ratios_text = ", ".join(f"{name} {ratio:.2f} times" for name, ratio in changes.items())
    if changes["maximum"] < 1.2:
        return judged(False, f"This is no round robin: {ratios_text} that of min-RTT.")
    slower_figures = [name for name, ratio in changes.items() if ratio > 1]
    answer = slower_figures[0] if len(slower_figures) == 1 else "both"
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
