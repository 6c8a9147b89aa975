"""The tables of the results store: every column with its type, its unit and its meaning.

These definitions make the Parquet files (`railyard.results.aggregate`), the views of `railyard query`, and
docs/reference/tables.md. A change of a file's columns needs a new SCHEMA; `railyard.results.upgrade` reads the old
ones.
"""

from dataclasses import dataclass

import pyarrow as pa

from railyard.experiment.arenas import ARENAS

SCHEMA = 5
METADATA_KEY = "railyard_schema"

STRING, BOOL, DOUBLE = pa.string(), pa.bool_(), pa.float64()
INT, LONG = pa.int32(), pa.int64()
TIME = pa.timestamp("us", tz="UTC")
PATHS = pa.list_(pa.struct([("name", STRING), ("up_bytes", LONG), ("down_bytes", LONG), ("queue_drops", LONG)]))


@dataclass(frozen=True)
class Field:
    """One column. `since`: the schema that introduced it. It is null in files of older schemas."""

    name: str
    type: pa.DataType
    meaning: str
    since: int = 1


@dataclass(frozen=True)
class StoredTable:
    """One table. `stored`: each campaign has it as a Parquet file. The others are made from these or from JSON."""

    name: str
    about: str
    columns: tuple[Field, ...]
    stored: bool = False

    def arrow_schema(self) -> pa.Schema:
        fields = [(column.name, column.type) for column in self.columns]
        return pa.schema(fields, metadata={METADATA_KEY: str(SCHEMA)})


CAMPAIGN = Field("campaign", STRING, "the campaign's folder, relative to the folder of results")

RUNS = StoredTable(
    "runs",
    "One row for each run; void runs are in it, and marked.",
    (
        Field("run_id", STRING, "the run's name, unique within its campaign"),
        Field("experiment", STRING, "name of the experiment"),
        Field("arena", STRING, f"one of {', '.join(f'`{name}`' for name in ARENAS)}"),
        Field("pair", STRING, "the trace pair"),
        Field(
            "scheme",
            STRING,
            "a scheme: `sp`, `cm`, `mptcp`, `vanilla-mp`, `xlink`, `xlink-lean`, `xlink+`, `tcp` or another",
        ),
        Field("label", STRING, "the scheme's name in tables: with its path or its parameters"),
        Field("primary", STRING, "name of the primary path"),
        Field("seed", LONG, "the run's seed"),
        Field("start_offset_ms", LONG, "where in the traces the run started, ms"),
        Field(
            "outcome", STRING, "`complete`, `time_limit`, `connection_lost`, `connect_failed`; else a program failed"
        ),
        Field("message", STRING, "a phrase about the outcome"),
        Field("void", BOOL, "emulator or endpoints were late: the run is no measurement, leave it out"),
        Field("tries", INT, "how often the run was done until it was on time"),
        Field("chunks_requested", INT, "requests made"),
        Field("chunks_completed", INT, "requests answered whole"),
        Field("received_bytes", LONG, "bytes of the video that arrived"),
        Field("handshake_s", DOUBLE, "from the player's start to the end of the handshake, s"),
        Field("first_frame_s", DOUBLE, "from the player's start to the last byte of the first frame, s"),
        Field("play_time_s", DOUBLE, "time in which the video advanced, s"),
        Field("rebuffer_time_s", DOUBLE, "time stalled after the first frame, s"),
        Field("rebuffer_count", INT, "number of stalls"),
        Field("stream_bytes_sent", LONG, "stream bytes that the server put on the wire; null in the kernel's schemes"),
        Field("reinjected_bytes", LONG, "of these, sent a second time on purpose"),
        Field("retransmitted_bytes", LONG, "of these, sent again after loss"),
        Field("redundancy", DOUBLE, "share of stream bytes sent twice, 0 to 1: docs/reference/metrics.md"),
        Field("efficiency", DOUBLE, "median over the run's chunks of oracle RCT / RCT, 0 to 1"),
        Field("migrations", INT, "connection migrations"),
        Field("lateness_p99_us", DOUBLE, "the worst p99 lateness of any link, µs"),
        Field("lateness_max_us", DOUBLE, "the worst lateness of any delivery, µs"),
        Field("wall_s", DOUBLE, "how long the run took on the wall clock, s"),
        Field("git_revision", STRING, "revision of the project"),
        Field("identity", STRING, "SHA-256 over settings, trace contents and programs"),
        Field("paths", PATHS, "bytes of each path; the table `paths` has them as rows"),
        Field("started", TIME, "when the run started, UTC", since=2),
        Field("git_dirty", BOOL, "the work tree differed from the revision", since=2),
        Field("congestion", STRING, "congestion controller", since=2),
        Field("bitrate_bps", LONG, "bit rate of the video", since=2),
        Field("duration_s", DOUBLE, "length of the video, s", since=2),
        Field("parameters", pa.map_(STRING, STRING), "the scheme's options: `parameters['t_th1_ms']`", since=2),
        Field("failed", BOOL, "the play failed: docs/reference/metrics.md says when", since=3),
        Field("first_frame_counted_s", DOUBLE, "as tables count it: the time limit where no frame was shown", since=3),
        Field("rebuffer_counted_s", DOUBLE, "as tables count it: of a play that failed all that it waited", since=3),
        Field("given_up_bytes", LONG, "of the stream bytes, sent again after a path was given up", since=3),
        Field("late_share", DOUBLE, "most that lateness can have added to a figure of the run, as a share", since=4),
        Field("first_frame_late_s", DOUBLE, "most that it can have added to `first_frame_s`, s", since=4),
        Field("ended_s", DOUBLE, "the end of the player's log, since its start, s", since=5),
    ),
    stored=True,
)

CHUNKS = StoredTable(
    "chunks",
    "One row for each chunk that counts: all that were requested, and in a play that failed or was cut by its time "
    "limit those that were due and never requested.",
    (
        Field("run_id", STRING, "the run"),
        Field("pair", STRING, "the trace pair"),
        Field("label", STRING, "the scheme's name in tables"),
        Field("seed", LONG, "the run's seed"),
        Field("void", BOOL, "the run is void"),
        Field("chunk", INT, "0, 1, … in the order of the video"),
        Field(
            "request_s",
            DOUBLE,
            "when it was requested, s since the player's start; the end of the play if it never was",
        ),
        Field(
            "rct_s", DOUBLE, "request completion time, s; of a chunk that never completed the time waited, or the limit"
        ),
        Field("completed", BOOL, "false: `rct_s` is a lower bound, `efficiency` an upper one"),
        Field("bytes", LONG, "size of the request"),
        Field("oracle_s", DOUBLE, "the earliest completion that the links allow, as an RCT, s; null without traces"),
        Field("efficiency", DOUBLE, "oracle_s / rct_s, 0 to 1"),
        Field("oracle_play_s", DOUBLE, "RCT in a play whose transport is the oracle: requests share the links, s"),
        Field("late_bound_s", DOUBLE, "most that lateness can have added to `rct_s`, s; 0: virtual time", since=4),
    ),
    stored=True,
)

LINKS = StoredTable(
    "links",
    "One row for each link, a path and direction of a run, as the emulator counted. Bytes: IP packets + 4 bytes each.",
    (
        Field("run_id", STRING, "the run"),
        Field("path", STRING, "the path's name"),
        Field("direction", STRING, "`up` or `down`"),
        Field("technology", STRING, "`5g-sa`, `5g-nsa`, `wifi`, `lte`"),
        Field("trace_sha256", STRING, "SHA-256 of the trace that the link replayed"),
        Field("delay_ms", DOUBLE, "one-way delay, ms; null with a delay trace or a light trace"),
        Field("queue", STRING, "queue discipline and its size"),
        Field("opportunities", LONG, "delivery opportunities while the run lasted"),
        Field("opportunities_used", LONG, "of these, carried something"),
        Field("missed", LONG, "of these, not served by the emulator's own fault"),
        Field("departed_bytes", LONG, "bytes that left the link; in schema 1 known as the runs' `paths`"),
        Field("departed_packets", LONG, "packets that left the link"),
        Field("queue_drops", LONG, "packets dropped by the queue"),
        Field("random_losses", LONG, "packets lost by the link's loss model"),
        Field("lateness_p50_us", DOUBLE, "median lateness of deliveries, µs"),
        Field("lateness_p99_us", DOUBLE, "their p99, µs"),
        Field("lateness_max_us", DOUBLE, "their maximum, µs"),
    ),
    stored=True,
)

PATHS_VIEW = StoredTable(
    "paths",
    "One row for each path of a run: both of its links together.",
    (
        CAMPAIGN,
        Field("run_id", STRING, "the run"),
        Field("path", STRING, "the path's name"),
        Field("technology", STRING, "`5g-sa`, `5g-nsa`, `wifi`, `lte`; null in schema 1"),
        Field("is_primary", BOOL, "it is the run's primary path"),
        Field("up_bytes", LONG, "bytes that left the uplink"),
        Field("down_bytes", LONG, "bytes that left the downlink"),
        Field("down_share", DOUBLE, "of all bytes that left the run's downlinks, 0 to 1"),
        Field("queue_drops", LONG, "packets dropped by the queues of both links"),
    ),
)

FIRST_FRAMES = StoredTable(
    "first_frames",
    "One row for each run that is not void and whose player showed its first frame, or failed.",
    (
        CAMPAIGN,
        Field("run_id", STRING, "the run"),
        Field("pair", STRING, "the trace pair"),
        Field("label", STRING, "the scheme's name in tables"),
        Field("seed", LONG, "the run's seed"),
        Field("handshake_s", DOUBLE, "to the end of the handshake, s"),
        Field("first_frame_s", DOUBLE, "to the last byte of the first frame, s; without one the time limit"),
        Field("shown", BOOL, "false: `first_frame_s` is a lower bound"),
    ),
)

CAMPAIGNS = StoredTable(
    "campaigns",
    "One row for each campaign, whether it is complete or not.",
    (
        CAMPAIGN,
        Field("experiment", STRING, "name of the experiment"),
        Field("arena", STRING, "where it ran"),
        Field("state", STRING, "`complete`, `partial n/m`, `running n/m` or `unreadable`"),
        Field("runs_asked", INT, "runs that the experiment makes; null of a population"),
        Field("runs_whole", INT, "of these, done"),
        Field("runs_void", INT, "of these, void"),
        Field("runs_failed", INT, "of these, ended by a program's fault"),
        Field("newest", BOOL, "the last of its name: what `results/NAME` stands for"),
        Field("started", TIME, "when it was last started, UTC"),
        Field("command", STRING, "the command that made it"),
        Field("git_revision", STRING, "revision of the project"),
        Field("git_dirty", BOOL, "the work tree differed from the revision"),
        Field("schema", INT, "version of its Parquet files; null where there are none yet"),
    ),
)

EXHIBITS = StoredTable(
    "exhibits",
    "One row an exhibit: a figure or table of the paper, rebuilt.",
    (
        CAMPAIGN,
        Field("exhibit", STRING, "its name, such as `fig13`"),
        Field("title", STRING, "its title"),
        Field("paper_ref", STRING, "where the paper has it"),
        Field("summary", STRING, "what was asked and what came out"),
        Field("arena", STRING, "where it ran"),
        Field("size", STRING, "`small`, `brief`, `default` or `full`"),
        Field("modelled", BOOL, "its figures come from a model, not from a measurement"),
        Field("command", STRING, "the command that makes it"),
        Field("created", STRING, "when, ISO 8601"),
    ),
)

CLAIMS = StoredTable(
    "claims",
    "One row for each claim of the paper that an exhibit checks.",
    (
        CAMPAIGN,
        Field("exhibit", STRING, "the exhibit"),
        Field("id", STRING, "the claim's name"),
        Field("claim", STRING, "in words"),
        Field("theirs", STRING, "the paper's figure"),
        Field("ours", STRING, "the figure here"),
        Field("verdict", STRING, "`holds`, `partly`, `does not hold` or `not decided`"),
        Field("because", STRING, "why"),
        Field("rule", STRING, "what the figures must be for `holds` and for `partly`"),
    ),
)

PAPER = StoredTable(
    "paper",
    "One row for each figure of the paper with the one found here beside it.",
    (
        CAMPAIGN,
        Field("exhibit", STRING, "the exhibit"),
        Field("what", STRING, "what is compared"),
        Field("theirs", STRING, "the paper's"),
        Field("ours", STRING, "the one found here"),
        Field("source", STRING, "where the paper has it"),
    ),
)

REALS, WHOLES = pa.list_(DOUBLE), pa.list_(LONG)
PLAYS = StoredTable(
    "plays",
    "One row for each viewer of a population under one arm: docs/reference/population.md.",
    (
        CAMPAIGN,
        Field("identity", STRING, "SHA-256 over everything that decides the play's outcome"),
        Field("day", LONG, "the day, a mix of scenes of its own"),
        Field("viewer", LONG, "the viewer's number within the day; the same under every arm"),
        Field("arm", STRING, "the scheme with its parameters"),
        Field("scheme", STRING, "the scheme"),
        Field(
            "parameters",
            STRING,
            "all that decides what the arm does, as a job of the simulator has it (since schema 4)",
        ),
        Field("scene", STRING, "where the viewer is: home, walking, subway, …"),
        Field("pair", STRING, "the trace pair"),
        Field("primary", STRING, "name of the primary path"),
        Field("start_offset_ms", LONG, "where in the traces the play started, ms"),
        Field("bitrate_bps", LONG, "bit rate of the video"),
        Field("duration_s", DOUBLE, "length of the video, s"),
        Field("first_frame_bytes", LONG, "size of the first frame"),
        Field("cross_isp_percent", DOUBLE, "what crossing operators adds to the secondary path's delay, %"),
        Field("watched_s", DOUBLE, "play time of the video after which the viewer turns to another one, s"),
        Field("path_mbps", REALS, "mean rate of each path that others leave, Mbps"),
        Field("base_rtt_ms", REALS, "base RTT of each path, ms"),
        Field("queues", pa.list_(STRING), "queue of each path"),
        Field("outcome", STRING, "as of a run"),
        Field("handshake_s", DOUBLE, "to the end of the handshake, s"),
        Field("first_frame_s", DOUBLE, "to the last byte of the first frame, s"),
        Field("waited_s", DOUBLE, "waited for a first frame that never came, s"),
        Field("first_frames_s", REALS, "of each video over the connection, from the moment it was turned to, s"),
        Field("play_time_s", DOUBLE, "time in which the video advanced, s"),
        Field("rebuffer_time_s", DOUBLE, "time stalled after the first frame, s"),
        Field("rebuffer_count", LONG, "number of stalls"),
        Field("stream_bytes_sent", LONG, "stream bytes that the server put on the wire"),
        Field("reinjected_bytes", LONG, "of these, sent a second time on purpose"),
        Field("retransmitted_bytes", LONG, "of these, sent again after loss"),
        Field("srtt_us", WHOLES, "smoothed RTT of each path at the end, µs"),
        Field("path_bytes", WHOLES, "bytes received on each path"),
        Field("rct_s", REALS, "request completion time of each request, s"),
        Field("completed", pa.list_(BOOL), "whether it completed; else its time is the time waited"),
        Field("play_time_left_ms", pa.list_(pa.float32()), "play-time left every 100 ms while playing, ms"),
    ),
)

STORED = (RUNS, CHUNKS, LINKS)
TABLES = (CAMPAIGNS, RUNS, CHUNKS, LINKS, PATHS_VIEW, FIRST_FRAMES, PLAYS, EXHIBITS, CLAIMS, PAPER)
