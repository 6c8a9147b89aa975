"""Estimates a campaign before its first run: time and disk space.

On the wall clock a run takes as long as its video and its stalls, which are unknown and left out. In virtual time a run
costs something by itself, and each byte of its video that the links can carry within its time limit: as measured on
another machine, times the ratio of recorded runs in the folder of results to that if there are enough of them.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

from railyard.base.counting import duration_words
from railyard.base.jsonl import NOT_AS_WRITTEN, read_json
from railyard.base.paths import RESULTS_DIR
from railyard.experiment.model import Qlog
from railyard.results.campaigns import StoredCampaign, find_campaigns, moment
from railyard.results.listing import disk_bytes, size_words
from railyard.run.arena import arena_of
from railyard.run.repetition import planned_s
from railyard.run.runspec import RunSpec
from railyard.traces.trace import read_trace

MOST_RUNS = 40  # recorded runs that an estimate looks at
FEWEST_RUNS = 4


@dataclass(frozen=True)
class Rate:
    """The cost of a run and of each byte of its video."""

    run: float
    byte: float

    def of(self, videos: Sequence[float]) -> float:
        """The cost of runs of videos of so many bytes."""
        return self.run * len(videos) + self.byte * sum(videos)

    def scaled(self, videos: Sequence[float], costs: Sequence[float]) -> "Rate":
        """The rate by which recorded runs cost as much in all as they did."""
        usual = self.of(videos)
        if usual == 0:
            return Rate(0.0, sum(costs) / sum(videos))
        return Rate(sum(costs) / usual * self.run, sum(costs) / usual * self.byte)


@dataclass(frozen=True)
class Rates:
    seconds: Rate  # of one run alone, in virtual time
    link_logs: Rate  # bytes on disk: link logs, player, server, record
    qlogs: Rate  # bytes on disk


LINK_LOGS, QLOGS = Rate(50_000, 0.1), Rate(0, 0.6)  # without recorded runs
CAPTURES = 2.4  # bytes on disk of both ends, for each byte of video


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
    """The cost of runs, and its source in words."""
    own = arena_of(arena)
    usual = Rates(Rate(own.s_per_run, own.s_per_video_mb / 1e6), LINK_LOGS, QLOGS)
    recorded = list(islice(_recorded(results, arena), MOST_RUNS))
    if len(recorded) < FEWEST_RUNS:
        return usual, f"measurements on another machine (there are too few runs of {arena} here yet)"
    videos, took, qlogs, others = zip(*recorded, strict=True)
    with_qlogs = [video for video, size in zip(videos, qlogs, strict=True) if size]
    here = Rates(
        seconds=usual.seconds.scaled(videos, took),
        link_logs=usual.link_logs.scaled(videos, others),
        qlogs=usual.qlogs.scaled(with_qlogs, qlogs) if with_qlogs else usual.qlogs,
    )
    return here, f"{len(recorded)} recorded runs of {arena} in {results.name}/"


def _carried(specs: Sequence[RunSpec]) -> list[float]:
    """For each run the bytes of its video, or those that all of its links carry within its time limit."""

    @cache
    def bytes_a_s(trace: Path) -> float:
        return read_trace(trace).mean_mbps * 1e6 / 8

    return [
        min(float(spec.player.video_bytes), spec.time_limit_s * sum(bytes_a_s(path.down) for path in spec.paths))
        for spec in specs
    ]


def estimate(specs: Sequence[RunSpec], qlog: Qlog, jobs: int, results: Path | None = None) -> Estimate:
    """Estimates the cost of runs, all in one arena."""
    first = specs[0]
    cost, basis = rates(results or RESULTS_DIR, first.arena)
    videos = _carried(specs)
    worst = {(spec.pair, spec.label): size for spec, size in zip(specs, videos, strict=True)}
    kept = {"all": videos, "none": [], "worst": list(worst.values())}[qlog]
    if first.is_exact:
        again = kept if qlog == "worst" and first.is_same_with_qlogs else []
        seconds = cost.seconds.of([*videos, *again]) / max(1, min(jobs, os.cpu_count() or 1, len(specs)))
    else:
        seconds, basis = planned_s(specs, jobs), "the lengths of the videos without stalls and repeated void runs"
    captured = sum(size for spec, size in zip(specs, videos, strict=True) if spec.pcap)
    used = cost.link_logs.of(videos) + cost.qlogs.of(kept) + captured * CAPTURES
    return Estimate(seconds, used, basis)
