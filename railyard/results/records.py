"""Reads the files of a run: its figures, its chunks, and the series that the report draws."""

import json
import math
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from railyard.base.errors import UserError
from railyard.base.jsonl import NOT_AS_WRITTEN, Event, read_json, read_jsonl, summary_of
from railyard.experiment.arenas import is_exact
from railyard.figures.rows import REDUNDANCY
from railyard.results import oracle, shapes

# Outcomes that are a measurement of the scheme. Any other outcome is a fault of a program.
RESULT_OUTCOMES = ("complete", "time_limit", "connection_lost", "connect_failed")
# Outcomes of a failed play. A play that showed no frame by its time limit failed too.
FAILED_OUTCOMES = ("connection_lost", "connect_failed")
MOST_CHUNKS = 1_000_000  # of one video


@dataclass(frozen=True)
class Chunk:
    """One chunk. A chunk that never completed is censored: `rct_s` is a lower bound. It is the time waited or, if the
    chunk was never requested or the play failed, the play's time limit."""

    index: int
    request_s: float
    rct_s: float
    completed: bool
    bytes: int
    requested: bool = True
    # The RCT of the earliest completion that the links allow. None: the oracle does not know the links.
    oracle_s: float | None = None
    # The most that lateness can have added to `rct_s`. None: not recorded.
    late_bound_s: float | None = None
    # The RCT in a play that has the oracle as its transport: its requests share the links, in order.
    oracle_play_s: float | None = None

    @property
    def on_time(self) -> "Chunk":
        """The chunk without the most that lateness can have added."""
        return replace(self, rct_s=self.rct_s - (self.late_bound_s or 0.0))

    @property
    def efficiency(self) -> float | None:
        """Oracle RCT / RCT. An upper bound for a censored chunk, which would have taken longer than it had waited."""
        if self.oracle_s is None:
            return None
        return min(1.0, self.oracle_s / self.rct_s) if self.rct_s > 0 else 1.0


@dataclass(frozen=True)
class PathBytes:
    """Bytes of IP packets (+ 4 for each packet) that left the emulated links of one path."""

    name: str
    up_bytes: int
    down_bytes: int
    queue_drops: int
    up: dict[str, Any] = field(repr=False, compare=False)  # the emulator's counters of the link
    down: dict[str, Any] = field(repr=False, compare=False)


@dataclass(frozen=True)
class Run:
    run_id: str
    record: dict[str, Any] = field(repr=False)
    started: datetime
    chunks: list[Chunk] = field(repr=False)
    paths: list[PathBytes]
    first_frame_s: float | None
    handshake_s: float | None
    play_time_s: float
    rebuffer_time_s: float
    rebuffer_count: int
    received_bytes: int
    stream_bytes_sent: int | None
    reinjected_bytes: int | None
    retransmitted_bytes: int | None
    migrations: int | None
    buffer_s: list[tuple[float, float]] = field(repr=False)  # (time, level) since the player's start, seconds
    stalls: list[tuple[float, float]] = field(repr=False)  # (begin, end) of each interruption of playing
    given_up_bytes: int = 0  # of the server's bytes: in flight on a path when it was given up, and sent again
    player_start_s: float | None = None  # on the clock of the links
    ended_s: float = 0.0  # the end of the player's log, since its start
    fell_back_to_tcp: bool = False  # from the kernel's MPTCP to plain TCP over one path

    @cached_property
    def config(self) -> dict[str, Any]:
        config: dict[str, Any] = self.record["config"]
        return config

    @cached_property
    def pair(self) -> str:
        return str(self.config["pair"])

    @cached_property
    def label(self) -> str:
        return str(self.config["label"])

    @cached_property
    def seed(self) -> int:
        return int(self.config["seed"])

    @cached_property
    def outcome(self) -> str:
        return str(self.record["outcome"])

    @property
    def failed(self) -> bool:
        """Whether the play failed: no connection, a connection that was lost for good, or no frame by the time
        limit."""
        return is_failed(self.outcome, self.first_frame_s)

    @property
    def is_fault(self) -> bool:
        """Whether a program failed. The run then does not measure the scheme."""
        return self.outcome not in RESULT_OUTCOMES

    @property
    def limit_s(self) -> float:
        """The time with which a failed play counts."""
        return float(self.config.get("time_limit_s") or self.ended_s)

    @property
    def first_frame_counted(self) -> tuple[float, bool]:
        """First-frame latency in seconds, and whether it is exact. Without a frame it is the time limit."""
        return (self.limit_s, False) if self.first_frame_s is None else (self.first_frame_s, True)

    @property
    def first_frame_counted_s(self) -> float:
        return self.first_frame_counted[0]

    @property
    def rebuffer_counted_s(self) -> float:
        """Time stalled, in seconds. A failed play counts with its time limit − the time it played."""
        return max(self.rebuffer_time_s, self.limit_s - self.play_time_s) if self.failed else self.rebuffer_time_s

    @cached_property
    def void(self) -> bool:
        return bool(self.record["fidelity"]["void"])

    @cached_property
    def added(self) -> dict[str, Any] | None:
        """The most that lateness can have added to the run's figures (railyard.run.lateness.Added). None: not
        recorded."""
        added: dict[str, Any] | None = self.record["fidelity"].get("added")
        return added

    @property
    def late_share(self) -> float | None:
        """The most that lateness can have added to a figure of this run, as a share. None: not recorded."""
        return 0.0 if self.is_exact else None if self.added is None else float(self.added["share"])

    @property
    def first_frame_late_s(self) -> float | None:
        """The most that lateness can have added to the first-frame latency. None: not recorded."""
        figure = self.added["figures"].get("first frame") if self.added else None
        return 0.0 if self.is_exact else None if figure is None else float(figure["added_s"])

    @property
    def is_exact(self) -> bool:
        """Whether it ran in virtual time and is not void."""
        return is_exact(self.config.get("arena")) and not self.void

    @property
    def void_words(self) -> str:
        """Why a run is void: what was late, the cause, and why there was no further try."""
        fidelity = self.record["fidelity"]
        parts = ("; ".join(fidelity["reasons"][:2]), fidelity.get("cause"), self.record.get("not_repeated"))
        return ". ".join(str(part).removesuffix(".") for part in parts if part)

    @property
    def redundancy(self) -> float | None:
        point = REDUNDANCY.point([self])
        return None if point is None else point.value


def is_failed(outcome: str, first_frame_s: float | None) -> bool:
    return outcome in FAILED_OUTCOMES or (outcome in RESULT_OUTCOMES and first_frame_s is None)


def chunks_that_count(chunks: list[Chunk], config: dict[str, Any], end_s: float, plays_s: float | None) -> list[Chunk]:
    """The chunks of a play that was cut or failed. Chunks that were due but never requested are added; they count with
    the time limit. `plays_s`: the length of video that would have played without a stall, which decides the chunks that
    were due. None: the play failed; all chunks were due, and those that did not complete count with the time limit."""
    limit_s, player = config.get("time_limit_s"), config.get("player") or {}
    if not limit_s or not {"bitrate_bps", "duration_s", "chunk_bytes"} <= player.keys():
        return chunks
    video, size = int(player["duration_s"] * player["bitrate_bps"] / 8), int(player["chunk_bytes"])
    due = video if plays_s is None else min(video, plays_s * player["bitrate_bps"] / 8)
    if video > size * MOST_CHUNKS:
        raise ValueError(f"a video of more than {MOST_CHUNKS} chunks")
    known = {chunk.index: chunk for chunk in chunks}
    all_chunks: list[Chunk] = []
    for index in range(math.ceil(video / size)):
        asked = known.get(index)
        if asked is None and index * size < due:
            rest = min(size, video - index * size)
            all_chunks.append(Chunk(index, end_s, float(limit_s), False, rest, requested=False))
        elif asked is not None:
            failed = plays_s is None and not asked.completed
            all_chunks.append(replace(asked, rct_s=float(limit_s)) if failed else asked)
    return all_chunks


def _chunks(events: list[Event], end_s: float) -> list[Chunk]:
    requested: dict[int, Event] = {}
    done: dict[int, Event] = {}
    for event in events:
        if event["event"] == "request":
            requested[event["chunk"]] = event
        elif event["event"] == "chunk_done":
            done[event["chunk"]] = event
    chunks: list[Chunk] = []
    for index, request in sorted(requested.items()):
        size = request["last"] - request["first"] + 1
        if index in done:
            chunks.append(Chunk(index, request["t"], done[index]["rct_s"], True, size))
        else:
            chunks.append(Chunk(index, request["t"], max(0.0, end_s - request["t"]), False, size))
    return chunks


def _with_bounds(chunks: list[Chunk], record: dict[str, Any]) -> list[Chunk]:
    """The chunks with the most that lateness can have added to them."""
    if is_exact(record["config"].get("arena")):
        return [replace(chunk, late_bound_s=0.0) for chunk in chunks]
    known = (record["fidelity"].get("added") or {}).get("chunk_s", {})
    return [replace(chunk, late_bound_s=known.get(str(chunk.index))) for chunk in chunks]


def _with_oracle(chunks: list[Chunk], config: dict[str, Any], player_start_s: float | None) -> list[Chunk]:
    """The chunks with the oracle's times. `player_start_s`: the player's start on the clock of the links."""
    paths = oracle.paths_of_run(config)
    if paths is None or player_start_s is None:
        return chunks
    alone = [oracle.rct_s(paths, player_start_s + chunk.request_s, chunk.bytes) for chunk in chunks]
    order = sorted((k for k in range(len(chunks)) if chunks[k].requested), key=lambda k: (chunks[k].request_s, k))
    shared = oracle.play_s(paths, [_asked(chunks[k], player_start_s) for k in order])
    of_play = dict(zip(order, shared, strict=True))
    return [
        replace(chunk, oracle_s=of_chunk, oracle_play_s=of_play.get(k, of_chunk))
        for k, (chunk, of_chunk) in enumerate(zip(chunks, alone, strict=True))
    ]


def _asked(chunk: Chunk, player_start_s: float) -> oracle.Asked:
    request_s = player_start_s + chunk.request_s
    return oracle.Asked(request_s, request_s + chunk.rct_s if chunk.completed else None, chunk.bytes)


def _player_start_s(events: list[Event], emulator: dict[str, Any]) -> float | None:
    """The player's start, in s since t0 of the links. None: a log does not have its time."""
    began = next((event.get("monotonic_us") for event in events if event["event"] == "start"), None)
    t0 = emulator.get("t0_monotonic_us")
    return None if began is None or t0 is None else (began - t0) / 1e6


def _stalls(events: list[Event], end_s: float) -> list[tuple[float, float]]:
    stalls: list[tuple[float, float]] = []
    begin: float | None = None
    for event in events:
        if event["event"] == "stall_start":
            begin = event["t"]
        elif event["event"] == "stall_end" and begin is not None:
            stalls.append((begin, event["t"]))
            begin = None
    if begin is not None:
        stalls.append((begin, end_s))
    return stalls


def _first_frame(events: list[Event], summary: Event) -> float | None:
    value = summary.get("first_frame_s")
    if value is None:
        value = next((event["latency_s"] for event in events if event["event"] == "first_frame"), None)
    return None if value is None else float(value)


def time_of(text: str) -> datetime:
    """Parses a time of a record, in UTC if it names no zone. Raises ValueError or TypeError."""
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _read_json(file: Path) -> Any:
    try:
        return read_json(file)
    except json.JSONDecodeError as error:
        raise UserError(
            f"{file}:{error.lineno}: this run cannot be read, it is no JSON ({error.msg}); "
            "remove the run's folder and run it again."
        ) from None


def load_run(folder: Path) -> Run:
    """Reads a completed run. Raises UserError if its files are not those that a run leaves."""
    try:
        return _load(folder, _read_json(folder / "run.json"))
    except OSError as error:
        raise UserError(f"{folder}: this is not a completed run: {error.strerror}: {error.filename}.") from None
    except NOT_AS_WRITTEN as error:
        raise UserError(
            f"{folder}: this run cannot be read ({type(error).__name__}: {error}); remove it and run it again."
        ) from None


def _load(folder: Path, record: dict[str, Any]) -> Run:
    shapes.check(record, shapes.RUN)
    log = folder / "player.jsonl"
    if not log.is_file() and record.get("outcome") in ("complete", "time_limit"):
        raise UserError(f"{log}: it is missing, though the run played; remove the run's folder and run it again.")
    lines, server_lines = read_jsonl(log), read_jsonl(folder / "server.jsonl")
    emulator = _read_json(folder / "mpshell.json")
    shapes.check(emulator, shapes.EMULATOR)
    for event in (*lines, *server_lines):
        shapes.check_event(event)
    events = [event for event in lines if "event" in event and "t" in event]
    if lines and summary_of(lines) is None and record.get("outcome") in RESULT_OUTCOMES:
        raise UserError(
            f"{log}:{len(lines) + 1}: the log is cut off or damaged here: it has no summary, though the run has an "
            "outcome; remove the run's folder and run it again."
        )
    summary, server = summary_of(lines) or {}, summary_of(server_lines) or {}
    end_s = events[-1]["t"] if events else 0.0
    start_s = _player_start_s(events, emulator)
    scheme = record["config"]["scheme"]
    if scheme == "tcp" or (scheme == "mptcp" and server.get("reinjected_bytes") is None):
        server = {}
    paths = [
        PathBytes(
            name=path["name"],
            up_bytes=path["up"]["departed_bytes"],
            down_bytes=path["down"]["departed_bytes"],
            queue_drops=path["up"]["queue_drops"] + path["down"]["queue_drops"],
            up=path["up"],
            down=path["down"],
        )
        for path in emulator["paths"]
    ]
    chunks, first_frame_s = _chunks(events, end_s), _first_frame(events, summary)
    if is_failed(str(record["outcome"]), first_frame_s):
        chunks = chunks_that_count(chunks, record["config"], end_s, None)
    elif record["outcome"] == "time_limit" and first_frame_s is not None:
        chunks = chunks_that_count(chunks, record["config"], end_s, end_s - first_frame_s)
    return Run(
        run_id=record["run_id"],
        record=record,
        started=time_of(record["started"]),
        chunks=_with_bounds(_with_oracle(chunks, record["config"], start_s), record),
        paths=paths,
        first_frame_s=first_frame_s,
        handshake_s=summary.get("handshake_s"),
        play_time_s=float(summary.get("play_time_s") or 0.0),
        rebuffer_time_s=float(summary.get("rebuffer_time_s") or 0.0),
        rebuffer_count=int(summary.get("rebuffer_count") or 0),
        received_bytes=int(summary.get("bytes") or 0),
        stream_bytes_sent=server.get("stream_bytes_sent"),
        reinjected_bytes=server.get("reinjected_bytes"),
        retransmitted_bytes=server.get("retransmitted_bytes"),
        migrations=server.get("migrations"),
        buffer_s=[(event["t"], event["buffered_ms"] / 1000) for event in events if event["event"] == "buffer"],
        stalls=_stalls(events, end_s),
        given_up_bytes=int(server.get("given_up_bytes") or 0),
        player_start_s=start_s,
        ended_s=end_s,
        fell_back_to_tcp=(summary.get("transport") or {}).get("fell_back_to_tcp") is True,
    )


def are_runs(names: Any) -> bool:
    """Whether `names` is a list of names of folders within `runs`."""
    return isinstance(names, list) and all(isinstance(name, str) and _is_within(Path(name)) for name in names)


def _is_within(name: Path) -> bool:
    return not name.is_absolute() and ".." not in name.parts


def load_campaign(out: Path) -> tuple[dict[str, Any], list[Run]]:
    """The campaign's own record and its completed runs, in the order of the experiment."""
    try:
        campaign = read_json(out / "campaign.json")
    except FileNotFoundError:
        if (out / "exhibit.json").is_file():
            raise UserError(
                f"{out}: this exhibit is over a population and has no campaign; `railyard show {out}` shows it, and "
                f"`railyard report --all {out.parent}` writes a page with it."
            ) from None
        raise UserError(
            f"{out}: there is no campaign in this directory; `railyard run EXPERIMENT` makes one."
        ) from None
    except json.JSONDecodeError as error:
        raise UserError(
            f"{out / 'campaign.json'}:{error.lineno}: this is not the JSON of a campaign ({error.msg}); "
            f"the `railyard run` that made it, with --out {out}, writes it again and keeps the runs."
        ) from None
    except (OSError, ValueError) as error:
        raise UserError(f"{out / 'campaign.json'}: cannot be read: {error}.") from None
    try:
        shapes.check(campaign, shapes.CAMPAIGN)
        if not {"runs", "command"} <= campaign.keys() or not are_runs(campaign["runs"]):
            raise ValueError("it names no runs")
    except ValueError as error:
        raise UserError(
            f"{out / 'campaign.json'}: this is no campaign's record ({error}); "
            f"`railyard run` with --out {out} writes it again."
        ) from None
    runs = [
        load_run(out / "runs" / run_id) for run_id in campaign["runs"] if (out / "runs" / run_id / "run.json").is_file()
    ]
    if not runs:
        raise UserError(f"{out}: the campaign has no completed run yet; start it again with `{campaign['command']}`.")
    return campaign, runs
