"""The tables of the results store: every column with its type, its unit and its meaning.

These definitions make the Parquet files (`railyard.results.aggregate`), the views of `railyard query`, and
docs/reference/tables.md. A change of a file's columns is a new SCHEMA; `railyard.results.upgrade` reads the old ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

SCHEMA = 4
METADATA_KEY = "railyard_schema"

STRING, BOOL, DOUBLE = pa.string(), pa.bool_(), pa.float64()
INT, LONG = pa.int32(), pa.int64()
TIME = pa.timestamp("us", tz="UTC")
PATHS = pa.list_(pa.struct([("name", STRING), ("up_bytes", LONG), ("down_bytes", LONG), ("queue_drops", LONG)]))


@dataclass(frozen=True)
class Column:
    """One column. `since`: the schema that brought it; in files of an older one it is null."""

    name: str
    type: pa.DataType
    meaning: str
    since: int = 1


@dataclass(frozen=True)
class Table:
    """One table. `stored`: it is a Parquet file of each campaign; the others are made from these or from JSON."""

    name: str
    about: str
    columns: tuple[Column, ...]
    stored: bool = False

    def arrow_schema(self) -> pa.Schema:
        fields = [(column.name, column.type) for column in self.columns]
        return pa.schema(fields, metadata={METADATA_KEY: str(SCHEMA)})


CAMPAIGN = Column("campaign", STRING, "the campaign's folder, relative to the folder of results")

RUNS = Table(
    "runs",
    "One row for each run; void runs are in it, and marked.",
    (
        Column("run_id", STRING, "the run's name, unique within its campaign"),
        Column("experiment", STRING, "name of the experiment"),
        Column("arena", STRING, "`sim`, `mpshell` or `docker`"),
        Column("pair", STRING, "the trace pair"),
        Column(
            "scheme",
            STRING,
            "a scheme: `sp`, `cm`, `mptcp`, `vanilla-mp`, `xlink`, `xlink-lean`, `xlink+`, `tcp` or another",
        ),
        Column("label", STRING, "the scheme's name in tables: with its path or its parameters"),
        Column("primary", STRING, "name of the primary path"),
        Column("seed", LONG, "the run's seed"),
        Column("start_offset_ms", LONG, "where in the traces the run started, ms"),
        Column(
            "outcome", STRING, "`complete`, `time_limit`, `connection_lost`, `connect_failed`; else a program failed"
        ),
        Column("message", STRING, "a phrase about the outcome"),
        Column("void", BOOL, "emulator or endpoints were late: the run is no measurement, leave it out"),
        Column("tries", INT, "how often the run was done until it was on time"),
        Column("chunks_requested", INT, "requests made"),
        Column("chunks_completed", INT, "requests answered whole"),
        Column("received_bytes", LONG, "bytes of the video that arrived"),
        Column("handshake_s", DOUBLE, "from the player's start to the end of the handshake, s"),
        Column("first_frame_s", DOUBLE, "from the player's start to the last byte of the first frame, s"),
        Column("play_time_s", DOUBLE, "time in which the video advanced, s"),
        Column("rebuffer_time_s", DOUBLE, "time stalled after the first frame, s"),
        Column("rebuffer_count", INT, "number of stalls"),
        Column("stream_bytes_sent", LONG, "stream bytes that the server put on the wire; null in the kernel's schemes"),
        Column("reinjected_bytes", LONG, "of these, sent a second time on purpose"),
        Column("retransmitted_bytes", LONG, "of these, sent again after loss"),
        Column("redundancy", DOUBLE, "share of stream bytes sent twice, 0 to 1: docs/reference/metrics.md"),
        Column("efficiency", DOUBLE, "median over the run's chunks of oracle RCT / RCT, 0 to 1"),
        Column("migrations", INT, "connection migrations"),
        Column("lateness_p99_us", DOUBLE, "the worst p99 lateness of any link, µs"),
        Column("lateness_max_us", DOUBLE, "the worst lateness of any delivery, µs"),
        Column("wall_s", DOUBLE, "how long the run took on the wall clock, s"),
        Column("git_revision", STRING, "revision of the project"),
        Column("identity", STRING, "SHA-256 over settings, trace contents and programs"),
        Column("paths", PATHS, "bytes of each path; the table `paths` has them as rows"),
        Column("started", TIME, "when the run started, UTC", since=2),
        Column("git_dirty", BOOL, "the work tree differed from the revision", since=2),
        Column("congestion", STRING, "congestion controller", since=2),
        Column("bitrate_bps", LONG, "bit rate of the video", since=2),
        Column("duration_s", DOUBLE, "length of the video, s", since=2),
        Column("parameters", pa.map_(STRING, STRING), "the scheme's options: `parameters['t_th1_ms']`", since=2),
        Column("failed", BOOL, "the play failed: docs/reference/metrics.md says when", since=3),
        Column("first_frame_counted_s", DOUBLE, "as tables count it: the time limit where no frame was shown", since=3),
        Column("rebuffer_counted_s", DOUBLE, "as tables count it: of a play that failed all that it waited", since=3),
        Column("given_up_bytes", LONG, "of the stream bytes, sent again after a path was given up", since=3),
        Column("late_share", DOUBLE, "most that lateness can have added to a figure of the run, as a share", since=4),
        Column("first_frame_late_s", DOUBLE, "most that it can have added to `first_frame_s`, s", since=4),
    ),
    stored=True,
)

CHUNKS = Table(
    "chunks",
    "One row for each requested chunk.",
    (
        Column("run_id", STRING, "the run"),
        Column("pair", STRING, "the trace pair"),
        Column("label", STRING, "the scheme's name in tables"),
        Column("seed", LONG, "the run's seed"),
        Column("void", BOOL, "the run is void"),
        Column("chunk", INT, "0, 1, … in the order of the video"),
        Column("request_s", DOUBLE, "when it was requested, s since the player's start"),
        Column("rct_s", DOUBLE, "request completion time, s; of a chunk that never completed the time waited"),
        Column("completed", BOOL, "false: `rct_s` is a lower bound, `efficiency` an upper one"),
        Column("bytes", LONG, "size of the request"),
        Column("oracle_s", DOUBLE, "the earliest completion that the links allow, as an RCT, s; null without traces"),
        Column("efficiency", DOUBLE, "oracle_s / rct_s, 0 to 1"),
        Column("oracle_play_s", DOUBLE, "RCT in a play whose transport is the oracle: requests share the links, s"),
        Column("late_bound_s", DOUBLE, "most that lateness can have added to `rct_s`, s; 0: virtual time", since=4),
    ),
    stored=True,
)

LINKS = Table(
    "links",
    "One row for each link, a path and direction of a run, as the emulator counted. Bytes: IP packets + 4 bytes each.",
    (
        Column("run_id", STRING, "the run"),
        Column("path", STRING, "the path's name"),
        Column("direction", STRING, "`up` or `down`"),
        Column("technology", STRING, "`5g-sa`, `5g-nsa`, `wifi`, `lte`"),
        Column("trace_sha256", STRING, "SHA-256 of the trace that the link replayed"),
        Column("delay_ms", DOUBLE, "one-way delay, ms"),
        Column("queue", STRING, "queue discipline and its size"),
        Column("opportunities", LONG, "delivery opportunities while the run lasted"),
        Column("opportunities_used", LONG, "of these, carried something"),
        Column("missed", LONG, "of these, not served by the emulator's own fault"),
        Column("departed_bytes", LONG, "bytes that left the link; in schema 1 known as the runs' `paths`"),
        Column("departed_packets", LONG, "packets that left the link"),
        Column("queue_drops", LONG, "packets dropped by the queue"),
        Column("random_losses", LONG, "packets lost by the link's loss model"),
        Column("lateness_p50_us", DOUBLE, "median lateness of deliveries, µs"),
        Column("lateness_p99_us", DOUBLE, "their p99, µs"),
        Column("lateness_max_us", DOUBLE, "their maximum, µs"),
    ),
    stored=True,
)

PATHS_VIEW = Table(
    "paths",
    "One row for each path of a run: both of its links together.",
    (
        CAMPAIGN,
        Column("run_id", STRING, "the run"),
        Column("path", STRING, "the path's name"),
        Column("technology", STRING, "`5g-sa`, `5g-nsa`, `wifi`, `lte`; null in schema 1"),
        Column("is_primary", BOOL, "it is the run's primary path"),
        Column("up_bytes", LONG, "bytes that left the uplink"),
        Column("down_bytes", LONG, "bytes that left the downlink"),
        Column("down_share", DOUBLE, "of all bytes that left the run's downlinks, 0 to 1"),
        Column("queue_drops", LONG, "packets dropped by the queues of both links"),
    ),
)

FIRST_FRAMES = Table(
    "first_frames",
    "One row for each run that is not void and whose player showed its first frame, or failed.",
    (
        CAMPAIGN,
        Column("run_id", STRING, "the run"),
        Column("pair", STRING, "the trace pair"),
        Column("label", STRING, "the scheme's name in tables"),
        Column("seed", LONG, "the run's seed"),
        Column("handshake_s", DOUBLE, "to the end of the handshake, s"),
        Column("first_frame_s", DOUBLE, "to the last byte of the first frame, s; without one the time limit"),
        Column("shown", BOOL, "false: `first_frame_s` is a lower bound"),
    ),
)

CAMPAIGNS = Table(
    "campaigns",
    "One row for each campaign, whether it is complete or not.",
    (
        CAMPAIGN,
        Column("experiment", STRING, "name of the experiment"),
        Column("arena", STRING, "where it ran"),
        Column("state", STRING, "`complete`, `partial n/m`, `running n/m` or `unreadable`"),
        Column("runs_asked", INT, "runs that the experiment makes"),
        Column("runs_whole", INT, "of these, done"),
        Column("runs_void", INT, "of these, void"),
        Column("runs_failed", INT, "of these, ended by a program's fault"),
        Column("newest", BOOL, "the last of its name: what `results/NAME` stands for"),
        Column("started", TIME, "when it was last started, UTC"),
        Column("command", STRING, "the command that made it"),
        Column("git_revision", STRING, "revision of the project"),
        Column("git_dirty", BOOL, "the work tree differed from the revision"),
        Column("schema", INT, "version of its Parquet files; null where there are none yet"),
    ),
)

EXHIBITS = Table(
    "exhibits",
    "One row an exhibit: a figure or table of the paper, rebuilt.",
    (
        CAMPAIGN,
        Column("exhibit", STRING, "its name, such as `fig13`"),
        Column("title", STRING, "its title"),
        Column("paper_ref", STRING, "where the paper has it"),
        Column("summary", STRING, "what was asked and what came out"),
        Column("arena", STRING, "where it ran"),
        Column("size", STRING, "`small`, `default` or `full`"),
        Column("modelled", BOOL, "its figures come from a model, not from a measurement"),
        Column("command", STRING, "the command that makes it"),
        Column("created", STRING, "when, ISO 8601"),
    ),
)

CLAIMS = Table(
    "claims",
    "One row for each claim of the paper that an exhibit checks.",
    (
        CAMPAIGN,
        Column("exhibit", STRING, "the exhibit"),
        Column("id", STRING, "the claim's name"),
        Column("claim", STRING, "in words"),
        Column("theirs", STRING, "the paper's figure"),
        Column("ours", STRING, "the figure here"),
        Column("verdict", STRING, "`holds`, `partly`, `does not hold` or `not decided`"),
        Column("because", STRING, "why"),
        Column("rule", STRING, "what the figures must be for `holds` and for `partly`"),
    ),
)

PAPER = Table(
    "paper",
    "One row for each figure of the paper with the one found here beside it.",
    (
        CAMPAIGN,
        Column("exhibit", STRING, "the exhibit"),
        Column("what", STRING, "what is compared"),
        Column("theirs", STRING, "the paper's"),
        Column("ours", STRING, "the one found here"),
        Column("source", STRING, "where the paper has it"),
    ),
)

REALS, WHOLES = pa.list_(DOUBLE), pa.list_(LONG)
PLAYS = Table(
    "plays",
    "One row for each viewer of a population under one arm: docs/reference/population.md.",
    (
        CAMPAIGN,
        Column("identity", STRING, "SHA-256 over everything that decides the play's outcome"),
        Column("day", LONG, "the day, a mix of scenes of its own"),
        Column("viewer", LONG, "the viewer's number within the day; the same under every arm"),
        Column("arm", STRING, "the scheme with its parameters"),
        Column("scheme", STRING, "the scheme"),
        Column("scene", STRING, "where the viewer is: home, walking, subway, …"),
        Column("pair", STRING, "the trace pair"),
        Column("primary", STRING, "name of the primary path"),
        Column("start_offset_ms", LONG, "where in the traces the play started, ms"),
        Column("bitrate_bps", LONG, "bit rate of the video"),
        Column("duration_s", DOUBLE, "length of the video, s"),
        Column("first_frame_bytes", LONG, "size of the first frame"),
        Column("cross_isp_percent", DOUBLE, "what crossing operators adds to the secondary path's delay, %"),
        Column("watched_s", DOUBLE, "so much of the video is seen, then the viewer turns to another, s"),
        Column("path_mbps", REALS, "mean rate of each path that others leave, Mbps"),
        Column("base_rtt_ms", REALS, "base RTT of each path, ms"),
        Column("queues", pa.list_(STRING), "queue of each path"),
        Column("outcome", STRING, "as of a run"),
        Column("handshake_s", DOUBLE, "to the end of the handshake, s"),
        Column("first_frame_s", DOUBLE, "to the last byte of the first frame, s"),
        Column("waited_s", DOUBLE, "waited for a first frame that never came, s"),
        Column("first_frames_s", REALS, "of each video over the connection, from the moment it was turned to, s"),
        Column("play_time_s", DOUBLE, "time in which the video advanced, s"),
        Column("rebuffer_time_s", DOUBLE, "time stalled after the first frame, s"),
        Column("rebuffer_count", LONG, "number of stalls"),
        Column("stream_bytes_sent", LONG, "stream bytes that the server put on the wire"),
        Column("reinjected_bytes", LONG, "of these, sent a second time on purpose"),
        Column("retransmitted_bytes", LONG, "of these, sent again after loss"),
        Column("srtt_us", WHOLES, "smoothed RTT of each path at the end, µs"),
        Column("path_bytes", WHOLES, "bytes received on each path"),
        Column("rct_s", REALS, "request completion time of each request, s"),
        Column("completed", pa.list_(BOOL), "whether it completed; else its time is the time waited"),
        Column("play_time_left_ms", pa.list_(pa.float32()), "play-time left every 100 ms while playing, ms"),
    ),
)

STORED = (RUNS, CHUNKS, LINKS)
TABLES = (CAMPAIGNS, RUNS, CHUNKS, LINKS, PATHS_VIEW, FIRST_FRAMES, PLAYS, EXHIBITS, CLAIMS, PAPER)
