"""A fully resolved run: all settings that decide its outcome, and the commands that carry it out."""

import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from railyard.base.models import FrozenModel
from railyard.experiment import arenas
from railyard.experiment.model import (
    SYSCTL,
    TRANSPORT_OF_SCHEME,
    BufferLimits,
    FlowSettings,
    LinkEvent,
    MeasuredThresholds,
    PlayerSettings,
    SchemeEntry,
)
from railyard.experiment.settings import SETTINGS
from railyard.experiment.stacks import StackRun
from railyard.run import captures
from railyard.traces.delay import read_delay_trace
from railyard.traces.names import TECHNOLOGY_ORDER, DeviceName
from railyard.traces.settings import Value, as_keys, mpshell_keys

LATENESS_FILE = "lateness.txt"  # from mpshell --lateness
FLOWS_FILE = "flows.jsonl"  # from mpshell --flow-log
QUIC_PORT = 4433
HTTP_PORT = 8080
# The player ends by itself at its time limit. A run that lasts this much longer has hung.
HANG_GRACE_S = 20.0
SNAPLEN = 65_535  # whole packets: a part of one cannot be decrypted
# mpshell's options for limits of MPTCP's path manager, by their names in `ip mptcp limits`.
MPTCP_LIMITS = {"subflows": "--mptcp-subflows", "add_addr_accepted": "--mptcp-addresses"}


class RunPath(FrozenModel):
    """One path of the pair as this run uses it."""

    name: DeviceName
    technology: str
    up: Path
    down: Path
    up_sha256: str
    down_sha256: str
    delay_ms: float  # one way, each direction: half of the base RTT
    queue: str
    loss: float = 0.0
    # Further settings of the link (docs/reference/links.md). Those that name files are apart, with the files' hashes.
    settings: dict[str, Value] = Field(default={})
    delay_traces: dict[str, Path] = Field(default={})
    delay_traces_sha256: dict[str, str] = Field(default={})
    # Facts about the traces from the index. None: the index does not have them.
    kind: str | None = None
    resolution_ms: float | None = None

    def not_in_identity(self) -> set[str]:
        """The fields that are no part of the identity: places of files, facts about them, and settings that are not
        set."""
        unused = {"settings", "delay_traces_sha256"} if not self.settings and not self.delay_traces else set()
        return {"up", "down", "delay_traces", "kind", "resolution_ms"} | unused


class RunBottleneck(FrozenModel):
    """A link that several paths share: its settings under the names of a job, and those that name files."""

    name: DeviceName
    settings: dict[str, Value]
    files: dict[str, Path] = Field(default={})
    files_sha256: dict[str, str] = Field(default={})

    def members(self) -> dict[str, Value]:
        return self.settings | {name: str(file) for name, file in self.files.items()}


class RunFlow(FrozenModel):
    """Connections of the kernel's TCP beside the video's."""

    name: DeviceName
    settings: FlowSettings


class KernelMachine(FrozenModel):
    """The machine of a run in the kernel arena: all facts that decide bytes, except for the programs."""

    file: Path  # the kernel; the identity has its content, not its path
    sha256: str
    options_sha256: str
    libraries_sha256: str  # of the host's libraries that the programs load
    memory_mb: int = 768
    clock_s: int = 1_767_225_600  # at its start, as Unix time: 2026-01-01 00:00:00 UTC


class RunSpec(FrozenModel):
    experiment: str
    arena: str
    pair: str
    label: str
    scheme: str
    primary: str
    parameters: dict[str, str]
    congestion: str
    paths: tuple[RunPath, ...]
    seed: int
    start_offset_ms: int
    player: PlayerSettings
    time_limit_s: float
    buffers: BufferLimits
    qlog: bool
    link_logs: bool
    pcap: bool = False  # captures of the packets of both endpoints, with the TLS secrets
    programs_sha256: dict[str, str]
    # If the thresholds among the parameters were given in percent: the measurement from which they come.
    thresholds: MeasuredThresholds | None = None
    # Changes of links at set times after t0.
    link_events: tuple[LinkEvent, ...] = ()
    # Links that paths share, by the names in their setting `via`.
    bottlenecks: tuple[RunBottleneck, ...] = ()
    # TCP connections of the kernel as others' traffic.
    flows: tuple[RunFlow, ...] = ()
    # Sim only: the player's start, in ms since t0 of the links.
    player_start_ms: int = 0
    keep_awake: str = "auto"
    real_time: bool = True  # player, server and stacks run under SCHED_FIFO, below mpshell, if permitted
    # mptcp and tcp only: further sysctls.
    kernel_sysctls: dict[Annotated[str, Field(pattern=SYSCTL)], str] = Field(default={})
    # mptcp only: limits of the path manager other than the number of paths, by their names in `ip mptcp limits`.
    mptcp_limits: dict[str, int] = Field(default={})
    # Scheme 'stack' only.
    stack: StackRun | None = None
    # Kernel arena only.
    kernel: KernelMachine | None = None
    # A caveat about the pair for readers, for example that it was made of two single recordings.
    pair_caveat: str = ""
    # Sim only: an xlink-sim of another build. None: this installation's.
    program: Path | None = None
    # Sim only: the time on the wall clock after which the run has hung. None: by its time limit.
    wall_limit_s: float | None = Field(default=None, exclude=True)

    @model_serializer(mode="wrap")
    def _without_later_fields(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leaves out `flows` if there are none, so that records and identities stay those of earlier versions."""
        return {name: value for name, value in dump(self).items() if value or name != "flows"}

    @model_validator(mode="after")
    def _events_are_of_its_paths(self) -> Self:
        """Refuses link events on unknown paths: their names become words of a shell script in the kernel arena."""
        names = {path.name for path in self.paths} | {bottleneck.name for bottleneck in self.bottlenecks}
        if strange := [event.path for event in self.link_events if event.path not in names]:
            raise ValueError(f"a link event is of the path '{strange[0]}', which the run has not")
        return self

    def with_files(self, put: Callable[[Path, str], Path]) -> Self:
        """The run with each file of its links replaced by `put(file, unique name)`."""
        paths = [
            path.model_copy(
                update={
                    "up": put(path.up, f"{path.name}.up"),
                    "down": put(path.down, f"{path.name}.down"),
                    "delay_traces": {key: put(file, f"{path.name}.{key}") for key, file in path.delay_traces.items()},
                }
            )
            for path in self.paths
        ]
        bottlenecks = [
            each.model_copy(
                update={"files": {key: put(file, f"{each.name}.{key}") for key, file in each.files.items()}}
            )
            for each in self.bottlenecks
        ]
        return self.model_copy(update={"paths": tuple(paths), "bottlenecks": tuple(bottlenecks)})

    @property
    def is_exact(self) -> bool:
        return arenas.is_exact(self.arena)

    @property
    def may_be_refused(self) -> bool:
        """Whether it needs something that a machine may lack: a third party's stack, or a sysctl."""
        return self.stack is not None or bool(self.kernel_sysctls)

    @property
    def is_same_with_qlogs(self) -> bool:
        """Whether writing qlogs does not change the run."""
        return bool(arenas.load(self.arena).same_with_qlogs)

    @property
    def run_id(self) -> str:
        return re.sub(r"[^A-Za-z0-9_.=-]+", "_", f"{self.pair}--{self.label}--s{self.seed}")

    @property
    def transport(self) -> str:
        return TRANSPORT_OF_SCHEME[self.scheme]

    @property
    def uses_mptcp(self) -> bool:
        """Whether the kernel's MPTCP carries the video."""
        return self.transport == "mptcp" or (self.stack is not None and self.stack.mptcp)

    def identity(self) -> str:
        """SHA-256 over all facts that decide the outcome, such as the contents of traces and programs, but not their
        places."""
        # Later settings are left out if they are not set, so that identities stay those of earlier versions.
        later = ("player_start_ms", "pcap", "thresholds", "link_events", "bottlenecks", "kernel_sysctls")
        not_set = {name for name in (*later, "mptcp_limits", "stack", "kernel") if not getattr(self, name)}
        left_out: dict[str, Any] = dict.fromkeys(
            {"experiment", "program", "keep_awake", "real_time", "pair_caveat"} | not_set, True
        )
        of_paths = {number: path.not_in_identity() for number, path in enumerate(self.paths)}
        if self.bottlenecks:
            left_out["bottlenecks"] = {"__all__": {"files"}}
        if self.kernel is not None:
            left_out["kernel"] = {"file"}
        facts = self.model_dump_json(exclude={"paths": of_paths, **left_out})
        return hashlib.sha256(facts.encode()).hexdigest()


def primary_path(paths: tuple[RunPath, ...], order: Sequence[str] = TECHNOLOGY_ORDER) -> RunPath:
    """The first path in the wireless order. Of paths with the same technology, the one that the pair names first."""
    full_order = [*order, *(technology for technology in TECHNOLOGY_ORDER if technology not in order)]
    rank = {technology: place for place, technology in enumerate(full_order)}
    return min(paths, key=lambda path: rank.get(path.technology, len(rank)))


def scheme_parameters(entry: SchemeEntry) -> dict[str, str]:
    """The parameters that an experiment sets, as text by name."""
    return {
        name: f"{value:g}" if isinstance(value, float) else str(value)
        for name, value in entry.quic_parameters().items()
    }


# The simulator's defaults, so that a scheme sends the same packets in every arena: links with an MTU of 1500 bytes,
# which both ends know instead of searching for it, no ECN, no grease, and no bursts of more than ten packets.
AS_IN_THE_SIMULATOR = {"path_mtu_bytes": "1452", "ecn": "off", "grease": "off", "pacing_burst_ms": "0"}


def _defaults(spec: RunSpec) -> dict[str, str]:
    """The defaults of both ends. If a link has or gets an MTU of its own, the ends search for it."""
    settings = [path.settings for path in spec.paths] + [each.settings for each in spec.bottlenecks]
    has_mtu = any(name.endswith("mtu") for names in settings for name in names)
    has_mtu = has_mtu or any(event.mtu is not None for event in spec.link_events)
    return {name: value for name, value in AS_IN_THE_SIMULATOR.items() if name != "path_mtu_bytes" or not has_mtu}


def _options(spec: RunSpec, side: str) -> list[str]:
    """The parameters of the run that are options of this side."""
    parameters = _defaults(spec) | spec.parameters
    own = [setting for setting in SETTINGS.values() if side in setting.sides and setting.name in parameters]
    command = [word for setting in own for word in (setting.option, parameters[setting.name])]
    if side == "player" and "path_events" in spec.parameters:
        command += ["--path-events", spec.parameters["path_events"]]
    return command


def _log_options(spec: RunSpec, run_dir: Path, keys: str) -> list[str]:
    """The options for logs of the transport: qlogs, and the TLS secrets for qlogs and captures."""
    if spec.transport != "quic":
        return []
    qlogs = ["--qlog-dir", str(run_dir / "qlog")] if spec.qlog else []
    return qlogs + (["--keylog", str(run_dir / keys)] if spec.qlog or spec.pcap else [])


def server_command(spec: RunSpec, program: Path, run_dir: Path) -> list[str]:
    player = spec.player
    command = [str(program)]
    if spec.transport == "quic":
        command += ["--quic", f"0.0.0.0:{QUIC_PORT}", "--scheme", spec.scheme]
        command += _options(spec, "server")
        command += ["--send-buffer-bytes", str(spec.buffers.send_bytes), "--no-tickets"]
    else:
        command += ["--http1", f"0.0.0.0:{HTTP_PORT}"]
        if spec.transport == "mptcp":
            command += ["--mptcp"]
    # The server also sets it on kernel sockets, because a restricted controller cannot be a namespace's default.
    command += ["--cc", spec.congestion]
    command += ["--bitrate", str(player.bitrate_bps), "--fps", f"{player.fps:g}"]
    if player.first_frame_bytes is not None:
        command += ["--first-frame-bytes", str(player.first_frame_bytes)]
    command += ["--seed", str(spec.seed), "--out", str(run_dir / "server.jsonl")]
    return command + _log_options(spec, run_dir, "server.keys")


def player_command(spec: RunSpec, program: Path, run_dir: Path) -> list[str]:
    player = spec.player
    command = [str(program), "--transport", spec.transport]
    if spec.transport == "quic":
        command += ["--scheme", spec.scheme, "--insecure"]
        command += _options(spec, "player")
        command += ["--cc", spec.congestion]
    if spec.stack is None:  # with a stack, relay_command() sets it
        port = QUIC_PORT if spec.transport == "quic" else HTTP_PORT
        command += ["--server", f"@:{port}"]
    for index, path in enumerate(spec.paths):
        command += ["--path", f"{path.name}:@{index}:{path.technology}"]
    command += ["--primary", spec.primary]
    command += ["--url", f"/synthetic/{player.video_bytes}", "--chunk-bytes", str(player.chunk_bytes)]
    command += ["--concurrency", str(player.concurrency), "--bitrate", str(player.bitrate_bps)]
    command += ["--fps", f"{player.fps:g}"]
    if player.first_frame_bytes is not None:
        command += ["--first-frame-bytes", str(player.first_frame_bytes)]
    if player.startup_buffer_ms is not None:
        command += ["--startup-buffer-ms", str(player.startup_buffer_ms)]
    command += ["--rebuffer-target-ms", str(player.rebuffer_target_ms), "--max-buffer-ms", str(player.max_buffer_ms)]
    command += ["--time-limit", f"{spec.time_limit_s:g}", "--seed", str(spec.seed)]
    if player.verify:
        command += ["--verify"]
    command += ["--out", str(run_dir / "player.jsonl")]
    return command + _log_options(spec, run_dir, "player.keys")


def relay_command(spec: RunSpec, stack: StackRun, program: Path, run_dir: Path, player: list[str]) -> list[str]:
    """The command of the player over the client's relay. The primary path comes first."""
    command = [str(program), "--server", f"@:{QUIC_PORT}", "--out", str(run_dir / "relay.jsonl")]
    if spec.pcap:
        command += ["--keylog", str(run_dir / captures.KEYS)]
    for path in sorted(spec.paths, key=lambda path: path.name != spec.primary):
        command += ["--path", f"{path.name}:@{spec.paths.index(path)}"]
    return [*command, "--", *stack.client, "--", *player]


# Files of the server's relay in its current folder; they are deleted after the run.
CERTIFICATE_FILE, KEY_FILE = RELAY_SECRETS = "relay-certificate.pem", "relay-key.pem"
RELAY_OUTPUT_BYTES = 64 << 20  # a relay that writes more is ended


def certificate_command(folder: Path = Path()) -> list[str]:
    """The command that makes a self-signed P-256 certificate and its key, for a relay that cannot make its own."""
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", "/CN=localhost", "-days", "2"]
    return [*command, "-keyout", str(folder / KEY_FILE), "-out", str(folder / CERTIFICATE_FILE)]


def relay_server_command(stack: StackRun) -> list[str]:
    command = [*stack.server, "--listen", f"0.0.0.0:{QUIC_PORT}", "--upstream", f"127.0.0.1:{HTTP_PORT}"]
    return [*command, "--certificate", CERTIFICATE_FILE, "--key", KEY_FILE] if stack.certificate else command


def _link_options(spec: RunSpec, run_dir: Path) -> list[str]:
    """mpshell's options for paths, bottlenecks and the flows beside the video."""
    command: list[str] = []
    for path in spec.paths:
        effects = ({"loss": path.loss} if path.loss else {}) | path.settings
        keys = mpshell_keys(path.delay_ms, path.queue, effects, path.delay_traces)
        command += ["--path", f"{path.name}:up={path.up},down={path.down},{keys}"]
    for bottleneck in spec.bottlenecks:
        command += ["--bottleneck", f"{bottleneck.name}:{as_keys(bottleneck.members())}"]
    for flow in spec.flows:
        command += ["--flow", f"{flow.name}:{flow.settings.keys()}"]
    if spec.flows:
        command += ["--flow-log", str(run_dir / FLOWS_FILE)]
    return command


def mpshell_command(
    spec: RunSpec,
    program: Path,
    run_dir: Path,
    inner: list[str],
    control: str | None = None,
    *,
    settings: dict[str, str] | None = None,
    user: str | None = None,
) -> list[str]:
    """The command of mpshell. `settings`: sysctls that it sets in the inner network namespace. `user`: the player's
    user."""
    command = [str(program), *_link_options(spec, run_dir)]
    command += ["--seed", str(spec.seed), "--start-offset", str(spec.start_offset_ms), "--start-when-ready"]
    if spec.link_logs:
        command += ["--log-dir", str(run_dir / "links")]
    if spec.pcap:
        command += ["--pcap", str(run_dir / captures.FOLDER), "--pcap-snaplen", str(SNAPLEN)]
    if not spec.is_exact:
        command += ["--lateness", str(run_dir / LATENESS_FILE)]
    command += ["--summary", str(run_dir / "mpshell.json"), "--netstat", str(run_dir / "player.netstat")]
    if spec.keep_awake != "auto":
        command += ["--keep-awake", spec.keep_awake]
    if spec.real_time and not spec.is_exact:
        command += ["--real-time"]
    for name, value in (settings or {}).items():
        command += ["--sysctl", f"{name}={value}"]
    if user is not None:
        command += ["--user", user]
    if control is not None:
        command += ["--control", control]
    if spec.uses_mptcp:
        command += ["--mptcp"]
        for name, limit in spec.mptcp_limits.items():
            command += [MPTCP_LIMITS[name], str(limit)]
    return [*command, "--", *inner]


def _least_ms(setting: str, file: Path) -> float:
    """The least delay in a file of a link's setting, in ms. 0 for a light trace."""
    return float(read_delay_trace(file)[1].min()) if setting.endswith("delay_trace") else 0.0


def shortest_delay_ms(spec: RunSpec) -> float:
    """The least one-way delay of any link of the run at any time, in ms."""
    delays = [event.delay_ms for event in spec.link_events if event.delay_ms is not None]
    for path in spec.paths:
        files = {name: file for name, file in path.delay_traces.items() if not name.endswith("cross_profile")}
        of_path = [_least_ms(name, file) for name, file in files.items()] or [path.delay_ms]
        jitter = [float(value) for key, value in path.settings.items() if key.endswith("jitter_ms")]
        delays.append(min(of_path) - max(jitter, default=0.0))
    return max(0.0, min(delays))


def mptcp_limits_command(paths: int, limits: dict[str, int]) -> list[str]:
    """The command that gives the path manager of the server's namespace the limits that mpshell sets inside."""
    given = {name: min(paths, limits.get(name, paths)) for name in MPTCP_LIMITS}
    return ["ip", "mptcp", "limits", "set", *(word for name, value in given.items() for word in (name, str(value)))]


def sysctls(spec: RunSpec) -> dict[str, str]:
    """The sysctls of the server's and the player's namespace. Kernel sockets get the same limits as QUIC."""
    receive, send = spec.buffers.receive_bytes, spec.buffers.send_bytes
    return {
        "net.mptcp.enabled": "1" if spec.uses_mptcp else "0",
        "net.ipv4.tcp_rmem": f"4096 {min(131072, receive)} {receive}",
        "net.ipv4.tcp_wmem": f"4096 {min(65536, send)} {send}",
        "net.ipv4.tcp_no_metrics_save": "1",
        **spec.kernel_sysctls,
    }
