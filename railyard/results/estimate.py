"""Estimates a campaign before its first run: time and disk space.

On the wall clock a run takes as long as its video and its stalls, which are unknown and left out. In virtual time the
bytes of the video decide: at the rate of recorded runs in the folder of results or, if there are too few, at that
measured on another machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean

from railyard.base.counting import duration_words
from railyard.base.jsonl import NOT_AS_WRITTEN, read_json
from railyard.base.paths import RESULTS_DIR
from railyard.experiment.model import Qlog
from railyard.results.campaigns import StoredCampaign, find_campaigns, moment
from railyard.results.listing import disk_bytes, size_words
from railyard.run.arena import arena_of
from railyard.run.repetition import planned_s
from railyard.run.runspec import RunSpec

MOST_RUNS = 40  # recorded runs that an estimate looks at
FEWEST_RUNS = 4


@dataclass(frozen=True)
class Rates:
    """The cost of a run for each byte of its video."""

    seconds: float  # of one run alone, in virtual time
    link_logs: float  # bytes on disk: link logs, player, server, record
    qlogs: float  # bytes on disk


LINK_LOGS, QLOGS = 0.2, 0.6  # bytes on disk for each byte of video, without recorded runs
CAPTURES = 2.4  # the same, of both ends


@dataclass(frozen=True)
class Estimate:
    seconds: float
    disk_bytes: float
    basis: str

    @property
    def words(self) -> str:
        return f"about {duration_words(max(1, round(self.seconds)))}, {size_words(round(self.disk_bytes))} on disk"


def _newest_first(results: Path) -> list[StoredCampaign]:
    """The campaigns with folders of runs, newest first, at most one level below `results`: with `--out` that may be a
    folder with much else in it, for example a home folder."""
    campaigns = [one for one in find_campaigns(results, depth=1) if one.record and (one.folder / "runs").is_dir()]
    return sorted(campaigns, key=moment, reverse=True)


def _recorded(results: Path, arena: str) -> Iterator[tuple[float, float, float, float]]:
    """For each recorded run without captures: bytes of its video, seconds, bytes of qlogs, other bytes."""
    for campaign in _newest_first(results):
        if campaign.arena != arena:
            continue
        for folder in campaign.whole:
            try:
                record = read_json(folder / "run.json")
                player = record["config"]["player"]
                video = float(player["duration_s"]) * float(player["bitrate_bps"]) / 8
                took = float(record["wall_s"])
            except (OSError, *NOT_AS_WRITTEN):
                continue
            if record["outcome"] == "complete" and video > 0 and not record["config"].get("pcap"):
                qlogs = disk_bytes([folder / "qlog"])
                yield video, took, qlogs, disk_bytes([folder]) - qlogs


def rates(results: Path, arena: str) -> tuple[Rates, str]:
    """The cost of a byte of video, and its source in words."""
    usual = Rates(arena_of(arena).s_per_video_mb / 1e6, LINK_LOGS, QLOGS)
    recorded = list(islice(_recorded(results, arena), MOST_RUNS))
    if len(recorded) < FEWEST_RUNS:
        return usual, f"measurements on another machine (there are too few runs of {arena} here yet)"
    with_qlogs = [qlogs / video for video, _, qlogs, _ in recorded if qlogs]
    own = Rates(
        seconds=fmean(took / video for video, took, _, _ in recorded),
        link_logs=fmean(others / video for video, _, _, others in recorded),
        qlogs=fmean(with_qlogs) if with_qlogs else usual.qlogs,
    )
    return own, f"{len(recorded)} recorded runs of {arena} in {results.name}/"


def estimate(specs: Sequence[RunSpec], qlog: Qlog, jobs: int, results: Path | None = None) -> Estimate:
    """Estimates the cost of runs, all in one arena."""
    first = specs[0]
    of_byte, basis = rates(results or RESULTS_DIR, first.arena)
    video = [float(spec.player.video_bytes) for spec in specs]
    kept: float = {"all": sum(video), "none": 0.0, "worst": 0.0}[qlog]
    worst: dict[tuple[str, str], float] = {}
    if qlog == "worst":
        worst = {(spec.pair, spec.label): size for spec, size in zip(specs, video, strict=True)}
        kept = sum(worst.values())
    if first.is_exact:
        again = sum(worst.values()) if first.is_same_with_qlogs else 0.0
        seconds = of_byte.seconds * (sum(video) + again) / max(1, min(jobs, os.cpu_count() or 1, len(specs)))
    else:
        seconds, basis = planned_s(specs, jobs), "the lengths of the videos without stalls and repeated void runs"
    captured = sum(size for spec, size in zip(specs, video, strict=True) if spec.pcap)
    used = sum(video) * of_byte.link_logs + kept * of_byte.qlogs + captured * CAPTURES
    return Estimate(seconds, used, basis)
