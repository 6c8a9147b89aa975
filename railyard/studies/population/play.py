"""One viewer under some arms: pair, place, delays, queues, video and seed are the same, the scheme differs.

Each arm is played by its own process, a copy of one that has read the traces. One process could play all arms of a
viewer in 0.6 of the time, but a player's index among others changes its port and seed, and so its outcome by a few
bytes. A play must not depend on others. Packet protection is replaced by a tag of the same size (`null_crypto`), which
changes neither sizes nor times.
"""

import hashlib
import json
import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from railyard.arenas.sim import PROGRAM, job_parameters
from railyard.base.errors import UserError
from railyard.base.jsonl import Event, read_jsonl, summary_of
from railyard.experiment.model import SchemeEntry
from railyard.run.outcome import last_words
from railyard.run.runspec import scheme_parameters
from railyard.run.simbatch import Batch
from railyard.studies.population.model import Population, Video
from railyard.studies.population.scenes import Link
from railyard.studies.population.viewers import Viewer
from railyard.traces.settings import members

IDENTITY_SCHEMA = 2
WALL_LIMIT_S = 600.0

Row = dict[str, Any]


OF_THE_VIEWER = (
    *("day", "scene", "pair", "primary", "start_offset_ms", "bitrate_bps", "duration_s", "first_frame_bytes"),
    *("cross_isp_percent", "watched_s"),
)


class PlayError(UserError):
    """A play failed: the program crashed or did not end."""


@dataclass(frozen=True)
class Arm:
    """One scheme with all its parameters, as members of a job."""

    label: str
    scheme: str
    parameters: tuple[tuple[str, str | float | int], ...] = ()

    def members(self) -> dict[str, Any]:
        return {"scheme": self.scheme, **dict(self.parameters)}

    @property
    def text(self) -> str:
        """All parameters of the arm as text, without its label."""
        return json.dumps(self.members(), sort_keys=True)


def arm_of(entry: SchemeEntry) -> Arm:
    """The arm of a scheme whose thresholds, if it has any, are in milliseconds."""
    parameters = job_parameters(scheme_parameters(entry))
    if entry.cc is not None:
        parameters["cc"] = entry.cc
    return Arm(entry.base_label(), entry.scheme, tuple(sorted(parameters.items())))


@dataclass(frozen=True)
class Task:
    """A viewer, the missing arms, and all other facts that decide the outcome."""

    viewer: Viewer
    arms: tuple[Arm, ...]
    video: Video
    time_limit_s: float
    program: str
    program_sha256: str

    def facts(self) -> dict[str, Any]:
        """The facts that all arms share, with the contents of files but not their places."""
        paths = [_path(path, path.up_sha256, path.down_sha256) for path in self.viewer.paths]
        job = job_of(self)
        return {"schema": IDENTITY_SCHEMA, "program": self.program_sha256, "job": job | {"paths": paths}}

    @cached_property
    def identities(self) -> list[str]:
        common = json.dumps(self.facts(), sort_keys=True)
        return [hashlib.sha256((common + arm.text).encode()).hexdigest()[:32] for arm in self.arms]


def task_of(population: Population, viewer: Viewer, arms: Sequence[Arm], program: str, program_sha256: str) -> Task:
    limit_s = population.video.videos * viewer.time_limit_s(population.time_limit_factor)
    return Task(viewer, tuple(arms), population.video, limit_s, program, program_sha256)


def _path(path: Link, up: str, down: str) -> dict[str, Any]:
    """A path of a job. For an identity, `up` and `down` are hashes instead of files."""
    link: dict[str, Any] = {"name": path.name, "technology": path.technology, "up": up, "down": down}
    return link | members(path.delay_ms, path.queue, dict(path.settings), {})


def job_of(task: Task) -> dict[str, Any]:
    """The common members of the jobs (docs/reference/sim.md) of all arms, to which Arm.members() are added."""
    viewer, video = task.viewer, task.video
    several = {"videos": video.videos} if video.videos > 1 else {}
    changes = viewer.changes()
    changing = {"link_events": [change.as_event() for change in changes]} if changes else {}
    video_bytes = int(viewer.fetched_s(video) * viewer.bitrate_bps / 8)
    return {
        "schema": 1,
        "seed": viewer.seed,
        "start_offset_ms": viewer.start_offset_ms,
        "time_limit_s": task.time_limit_s,
        "primary": viewer.primary,
        "paths": [_path(path, path.up, path.down) for path in viewer.paths],
        "player": {
            "video_bytes": video_bytes,
            "bitrate_bps": viewer.bitrate_bps,
            "chunk_bytes": video.chunk_bytes,
            "fps": video.fps,
            "first_frame_bytes": min(viewer.first_frame_bytes, video_bytes),
            "rebuffer_target_ms": video.rebuffer_target_ms,
            "max_buffer_ms": video.max_buffer_ms,
            **several,
        },
        "link_logs": False,
        "null_crypto": True,
        **changing,
    }


def play(task: Task, batch: Batch) -> list[Row]:
    """Plays a task: a row for each arm. `batch`: a process of the task's program. Raises PlayError if the program
    refuses the job or crashes."""
    rows: list[Row] = []
    common = job_of(task)
    for arm, identity in zip(task.arms, task.identities, strict=True):
        with tempfile.TemporaryDirectory(prefix="railyard-play-") as folder:
            out = Path(folder)
            _run(task, batch, common | arm.members(), out)
            events, server = (read_jsonl(out / name) for name in ("player.jsonl", "server.jsonl"))
            rows.append(_row(task, arm, identity, events, _sent(server)))
    return rows


def _run(task: Task, batch: Batch, members: dict[str, Any], out: Path) -> None:
    job, stderr = out / "job.json", out / "sim.stderr"
    job.write_text(json.dumps(members))
    stderr.touch()
    status = batch.run(job, out, WALL_LIMIT_S)
    if status is None:
        raise PlayError(f"{PROGRAM} did not end on the viewer {task.viewer.key} within {WALL_LIMIT_S:g} s.")
    if status not in (0, 1, 2) or not (out / "server.jsonl").is_file():
        raise PlayError(f"{PROGRAM} ended with {status} on the viewer {task.viewer.key}: {last_words(stderr)}")


def _sent(server: Sequence[Event]) -> dict[str, int]:
    """The server's counts of sent bytes, over all connections of the player."""
    names = ("stream_bytes_sent", "reinjected_bytes", "retransmitted_bytes")
    closed = [e for e in server if e.get("event") == "connection_closed"]
    return {name: sum(int(event[name]) for event in closed) for name in names}


@dataclass(frozen=True)
class Seen:
    """The part of a video that the viewer sees. The play itself goes on, so that requests that the viewer's turning
    away would have cut have their full RCT."""

    until_s: float  # when the viewer turns away; inf: at the end or never
    played_s: float
    stalled_s: float
    stalls: int


def videos_of(events: Sequence[Event]) -> list[list[Event]]:
    """The events of each video over a connection."""
    starts = [0, *(number for number, event in enumerate(events) if event["event"] == "video"), len(events)]
    return [list(events[begin:end]) for begin, end in pairwise(starts)]


def seen(events: Sequence[Event], end_s: float, watched_s: float) -> Seen:
    """The part that a viewer saw, from the events of a video that ends at end_s."""
    begins = [float(e["t"]) for e in events if e["event"] in ("play", "stall_end")]
    breaks = [float(e["t"]) for e in events if e["event"] == "stall_start"]
    played, stalled, stalls = 0.0, 0.0, 0
    for begin, end in zip(begins, [*breaks, end_s], strict=False):
        if played + end - begin >= watched_s:
            return Seen(begin + watched_s - played, watched_s, stalled, stalls)
        played += end - begin
        if breaks[stalls:]:
            stalled += ([*begins[1:], end_s][stalls]) - breaks[stalls]
            stalls += 1
    return Seen(math.inf, played, stalled, stalls)


def _requests(events: Sequence[Event], end_s: float, videos: Sequence[Seen]) -> tuple[list[float], list[bool]]:
    """The RCT of each request that was made while the video was seen, and whether it completed. If not, the RCT is the
    time waited."""
    asked = {
        e["chunk"]: e["t"]
        for own, video in zip(videos_of(events), videos, strict=True)
        for e in own
        if e["event"] == "request" and e["t"] <= video.until_s
    }
    done = {e["chunk"]: e["rct_s"] for e in events if e["event"] == "chunk_done"}
    chunks = sorted(asked)
    return [done.get(chunk, max(0.0, end_s - asked[chunk])) for chunk in chunks], [chunk in done for chunk in chunks]


def first_frames(events: Sequence[Event]) -> list[float]:
    """For each video, the time from the viewer's turning to it to its first frame. Without one, the time waited."""
    begins = [0.0, *(e["t"] for e in events if e["event"] == "video")]
    latencies = [float(e["latency_s"]) for e in events if e["event"] == "first_frame"]
    return [*latencies, *(float(events[-1]["t"]) - begin for begin in begins[len(latencies) :])]


def _play_time_left(events: Sequence[Event], *, complete: bool, until_s: float) -> list[float]:
    """What the player reported from the start of playing to the arrival of the last byte of the first
    video (docs/reference/experiments.md), or until the viewer turned away."""
    second = next((number for number, e in enumerate(events) if e["event"] == "video"), None)
    events, complete = (events[:second], True) if second is not None else (events, complete)
    begin = next((e["t"] for e in events if e["event"] == "play"), None)
    arrived = [e["t"] for e in events if e["event"] == "chunk_done"]
    if begin is None or not arrived:
        return []
    end = min(until_s, arrived[-1] if complete else math.inf)
    return [e["play_time_left_ms"] for e in events if e["event"] == "buffer" and begin <= e["t"] <= end]


def _row(task: Task, arm: Arm, identity: str, events: list[Event], sent: dict[str, int]) -> Row:
    summary = summary_of(events)
    if summary is None:
        raise PlayError(f"{PROGRAM} left no summary of the viewer {task.viewer.key} under {arm.label}.")
    viewer = task.viewer
    own = videos_of(events)
    ends = [float(later[0]["t"]) for later in own[1:]] + [float(events[-1]["t"])]
    videos = [seen(each, end, viewer.watched_s) for each, end in zip(own, ends, strict=True)]
    rct_s, completed = _requests(events, events[-1]["t"], videos)
    first = summary.get("first_frame_s")
    return {
        "identity": identity,
        "viewer": viewer.number,
        "arm": arm.label,
        "scheme": arm.scheme,
        "parameters": arm.text,
        **{name: getattr(viewer, name) for name in OF_THE_VIEWER},
        "path_mbps": [path.mbps for path in viewer.paths],
        "base_rtt_ms": [2 * path.delay_ms for path in viewer.paths],
        "queues": [path.queue for path in viewer.paths],
        "outcome": str(summary["outcome"]),
        "handshake_s": summary.get("handshake_s"),
        "first_frame_s": first,
        # A first frame that never came: how long was waited for it.
        "waited_s": float(events[-1]["t"]) if first is None else None,
        "first_frames_s": first_frames(events),
        "play_time_s": math.fsum(each.played_s for each in videos),
        "rebuffer_time_s": math.fsum(each.stalled_s for each in videos),
        "rebuffer_count": sum(each.stalls for each in videos),
        **sent,
        "srtt_us": [int(path.get("srtt_us") or 0) for path in summary.get("paths", [])],
        "path_bytes": [int(path.get("bytes_received") or 0) for path in summary.get("paths", [])],
        "rct_s": rct_s,
        "completed": completed,
        "play_time_left_ms": _play_time_left(
            events, complete=summary["outcome"] == "complete", until_s=videos[0].until_s
        ),
    }
