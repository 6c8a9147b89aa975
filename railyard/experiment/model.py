"""The models of experiments, the YAML files in `experiments/`.

An experiment is trace pairs × schemes × seeds over one set of player settings. The models check everything that can be
checked without looking at the trace library; `railyard.run.resolve` looks there and makes the list of runs.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    create_model,
    field_validator,
    model_serializer,
    model_validator,
)

from railyard.base.declared import LINK_SETTINGS
from railyard.base.models import StrictModel
from railyard.base.paths import EXPERIMENTS_DIR
from railyard.base.units import with_units
from railyard.base.yamlfile import FieldError, YamlDocument, find_yaml, load_yaml, near_miss, parse
from railyard.experiment import stacks
from railyard.experiment.arenas import ARENAS, no_arena
from railyard.experiment.settings import QUIC_SCHEMES, SETTINGS
from railyard.traces.names import TECHNOLOGY_ORDER, DeviceName, QueueSpec, Technology
from railyard.traces.settings import LEAST_MTU, MAX_MS, MOST_MTU, BottleneckSettings, LinkSettings

# Each scheme's transport, under the player's name for it, and a description for readers of reports.
TRANSPORT_OF_SCHEME = dict.fromkeys(QUIC_SCHEMES, "quic") | {
    "mptcp": "mptcp",
    "tcp": "tcp",
    stacks.STACK_SCHEME: "stream",
}
SCHEME_DESCRIPTION = {name: scheme.about for name, scheme in QUIC_SCHEMES.items()} | {
    "mptcp": "kernel MPTCP v1, default scheduler",
    "tcp": "single-path kernel TCP",
    stacks.STACK_SCHEME: "another stack, over relays",
}
# The simulator has no kernel, so it lacks the kernel's transports.
NEEDS_KERNEL = "needs a kernel"

# Fields of a scheme entry that are options of the programs, with the same names. The
# congestion controller is also a field of the experiment.
SCHEME_SETTINGS = {name: setting for name, setting in SETTINGS.items() if name not in ("scheme", "cc")}
QUIC_PARAMETERS = (*SCHEME_SETTINGS, "path_events")
MULTIPATH_ONLY = ("path_events", "path_management")
MIGRATION_ONLY = ("migrate_after", "migrate_back")
REINJECTION_ONLY = (
    "copy_rule", "max_reinjections", "t_th1_ms", "t_th2_ms", "rescue", "rescue_gain_ms", "rescue_permille"
)  # fmt: skip

if TYPE_CHECKING:
    Congestion = str
else:
    Congestion = SETTINGS["cc"].annotation
# Controllers that the kernel's TCP also has. It has no coupled ones, not even for MPTCP.
KERNEL_CONGESTION = ("cubic", "newreno", "bbr")

_PATH_EVENT = r"[0-9]+(\.[0-9]{1,3})?:(add|remove|standby|available):[^:,]+"
PATH_EVENTS = f"^{_PATH_EVENT}(,{_PATH_EVENT})*$"
# Settings of the kernel's transports, which override those of the experiment's `buffers`.
CONTROLLER_SYSCTL = "net.ipv4.tcp_congestion_control"
SYSCTL = r"^net\.(mptcp|ipv4)\.[a-z0-9_]+$"

MOST_SEEDS = 10_000
MOST_OFFSET_MS = int(LINK_SETTINGS["offset_ms"].most)
Percent = Annotated[float, Field(ge=0, le=100)]


Qlog = Literal["all", "none", "worst"]
QLOGS: tuple[Qlog, ...] = ("all", "none", "worst")


class Strict(StrictModel):
    @model_validator(mode="before")
    @classmethod
    def _units(cls, value: Any) -> Any:
        return with_units(value, cls.model_fields) if isinstance(value, dict) else value


class PairChoice(Strict):
    """A pair by name, or the first of several names that the trace library has."""

    first_found: list[str] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        return {"first_found": [value]} if isinstance(value, str) else value


class MeasuredThresholds(Strict):
    """What `thresholds: [X, Y]` came to, and the measurement that it rests on."""

    x: float
    y: float
    t_th1_ms: float
    t_th2_ms: float
    arena: str
    scheme: dict[str, Any]
    pairs: list[str]
    seeds: list[int]
    runs: int
    samples: int
    sha256: str  # of the samples in ascending order


class _SchemeEntry(Strict):
    """One scheme and its parameters; parameters left out take the programs' own defaults."""

    scheme: str
    label: str | None = Field(default=None, min_length=1, max_length=48)
    # sp and tcp only: 'each' path in turn, the 'primary' one, or a path's name. sp only: 'os', an application that
    # leaves a silent interface; 'best', all paths, of which reports take the better one.
    path: str = "each"
    # T_th1 and T_th2 as percentiles (X, Y) of play-time left, measured with the control off; or no re-injection at all.
    thresholds: tuple[Percent, Percent] | Literal["off"] | None = None
    # docs/reference/paths.md has its grammar. The player checks it too; here an experiment fails before its first run.
    path_events: Annotated[str, Field(pattern=PATH_EVENTS)] | None = None
    cc: Congestion | None = None
    # mptcp and tcp only: sysctls of both network namespaces, such as net.mptcp.scheduler.
    sysctls: dict[Annotated[str, Field(pattern=SYSCTL)], str] = Field(default={})
    # mptcp only: limits of the path manager at both ends (`ip mptcp limits`); by default the number of paths.
    mptcp_limits: dict[Literal["subflows", "add_addr_accepted"], Annotated[int, Field(ge=0, le=8)]] = Field(default={})
    # Another stack, by name or as ./FILE, and its options; then the scheme is 'stack'.
    stack: str | None = None
    stack_options: dict[str, str] = Field(default={})

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        if isinstance(value, dict) and "stack" in value and "stack_options" not in value:
            return stacks.entry_from(value)
        if isinstance(value, str):
            scheme, _, path = value.partition(":")
            return {"scheme": scheme, "path": path} if path else {"scheme": scheme}
        return value

    @field_validator("thresholds", *SCHEME_SETTINGS, mode="before", check_fields=False)
    @classmethod
    def _word(cls, value: Any, info: ValidationInfo) -> Any:
        """The text of a setting: YAML reads on and off as true and false, and digits as a number."""
        setting = SCHEME_SETTINGS.get(info.field_name or "")
        if isinstance(value, bool) and (setting is None or setting.kind in ("switch", "word", "text")):
            return "on" if value else "off"
        if isinstance(value, int | float) and setting is not None and setting.kind == "text":
            return f"{value:g}"
        return value

    @field_validator("sysctls", mode="before")
    @classmethod
    def _texts(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: str(int(item)) if isinstance(item, bool) else str(item) for name, item in value.items()}

    @field_validator("path_events", mode="before")
    @classmethod
    def _events(cls, value: Any) -> Any:
        return ",".join(map(str, value)) if isinstance(value, list) else value

    @field_validator("scheme")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in TRANSPORT_OF_SCHEME:
            raise ValueError(f"unknown scheme '{value}'; {near_miss(value, TRANSPORT_OF_SCHEME)}")
        return value

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.scheme == stacks.STACK_SCHEME) != (self.stack is not None):
            raise FieldError("scheme", "a stack is named by 'stack: NAME' in place of 'scheme'.")
        if self.path != "each" and self.scheme not in ("sp", "tcp"):
            raise FieldError("path", f"'path' is for sp and tcp; {self.scheme} uses all paths, so leave it out.")
        if TRANSPORT_OF_SCHEME[self.scheme] != "quic" and self.quic_parameters():
            name = next(iter(self.quic_parameters()))
            raise FieldError(
                name, f"'{name}' is a parameter of QUIC; {self.scheme} runs in the kernel, so leave it out."
            )
        if TRANSPORT_OF_SCHEME[self.scheme] != "quic" and self.cc not in (None, *KERNEL_CONGESTION):
            raise FieldError("cc", no_kernel_congestion(self.cc, self.scheme))
        if self.sysctls and self.scheme not in ("mptcp", "tcp"):
            raise FieldError("sysctls", f"'sysctls' is for mptcp and tcp; {self.scheme} does not use the kernel's TCP.")
        if CONTROLLER_SYSCTL in self.sysctls:
            raise FieldError(
                "sysctls",
                f"'{CONTROLLER_SYSCTL}' has no effect, because the programs choose the controller of each socket; give "
                f"'cc: {self.sysctls[CONTROLLER_SYSCTL]}' instead.",
            )
        if self.mptcp_limits and self.scheme != "mptcp":
            raise FieldError("mptcp_limits", f"'mptcp_limits' is for mptcp; {self.scheme} has no path manager.")
        given = self.quic_parameters()
        for name in MIGRATION_ONLY:
            if name in given and self.scheme != "cm":
                raise FieldError(name, f"'{name}' is for cm; {self.scheme} does not migrate, so leave it out.")
        for name in MULTIPATH_ONLY:
            if name in given and self.scheme in ("sp", "cm"):
                raise FieldError(name, f"'{name}' is for multipath; {self.scheme} uses one path, so leave it out.")
        if "t_th1_ms" in given or "t_th2_ms" in given:
            self._check_thresholds_in_ms(given)
        return self

    @model_validator(mode="after")
    def _copies_what_it_limits(self) -> Self:
        """Refuses settings of copies for a scheme that makes no copies."""
        given = self.quic_parameters()
        known = QUIC_SCHEMES.get(self.scheme)
        if known is None or "reinjection" in known.settings or "reinjection" in given:
            return self
        limits = ["thresholds"] if isinstance(self.thresholds, tuple) else []
        for name in (*limits, *(name for name in REINJECTION_ONLY if name in given)):
            raise FieldError(
                name,
                f"'{name}' is for re-injection, and {self.scheme} copies nothing; give 'reinjection' too, or leave it "
                "out.",
            )
        return self

    def _check_thresholds_in_ms(self, given: dict[str, Any]) -> None:
        """Checks thresholds in ms. One that is not given is the scheme's own, or the transport's default."""
        own = QUIC_SCHEMES[self.scheme].settings
        first, second = (
            float(given.get(name, own.get(name, SETTINGS[name].default or 0))) for name in ("t_th1_ms", "t_th2_ms")
        )
        if first > second:
            raise FieldError(
                "t_th1_ms" if "t_th1_ms" in given else "t_th2_ms",
                f"t_th1_ms, {first:g}, is above t_th2_ms, {second:g}; the first threshold is the lower one "
                "(paper section 5.2.2).",
            )

    @model_validator(mode="after")
    def _thresholds_fit(self) -> Self:
        if self.thresholds is None:
            return self
        if TRANSPORT_OF_SCHEME[self.scheme] != "quic":
            raise FieldError(
                "thresholds", f"'thresholds' is a parameter of QUIC; {self.scheme} runs in the kernel, so leave it out."
            )
        given = self.quic_parameters()
        if "t_th1_ms" in given or "t_th2_ms" in given:
            raise FieldError("thresholds", "thresholds are given in percent and in milliseconds; leave one out.")
        if self.thresholds == "off" and given.get("reinjection", "none") != "none":
            raise FieldError("thresholds", f"'off' means no re-injection, not '{given['reinjection']}'; leave one out.")
        if self.thresholds != "off" and self.thresholds[0] < self.thresholds[1]:
            raise FieldError(
                "thresholds",
                f"[X, Y] is [{self.thresholds[0]:g}, {self.thresholds[1]:g}], but X must not be below Y: th(X) is the "
                "lower threshold; swap them.",
            )
        return self

    def limits(self) -> dict[str, int]:
        return {str(name): value for name, value in self.mptcp_limits.items()}

    def quic_parameters(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in QUIC_PARAMETERS if getattr(self, name) is not None}

    def base_label(self) -> str:
        """The name in tables: the given label, else the scheme with the parameters that differ from the defaults."""
        if self.label:
            return self.label
        if self.stack is not None:
            name = (Path(self.stack).parent.name or Path(self.stack).stem) if "/" in self.stack else self.stack
            return name + "".join(f",{key}={value}" for key, value in self.stack_options.items())
        extra = self.quic_parameters() | ({"cc": self.cc} if self.cc else {})
        extra |= {name.removeprefix("net."): value for name, value in self.sysctls.items()}
        extra |= self.limits()
        if self.thresholds is not None:
            given = self.thresholds
            extra["thresholds"] = given if isinstance(given, str) else f"{given[0]:g}-{given[1]:g}"
        return self.scheme + "".join(
            f",{key}={value:g}" if isinstance(value, float) else f",{key}={value}" for key, value in extra.items()
        )


if TYPE_CHECKING:

    class SchemeEntry(_SchemeEntry):
        def __getattr__(self, name: str) -> Any: ...

else:
    SchemeEntry = create_model(
        "SchemeEntry",
        __base__=_SchemeEntry,
        __doc__=_SchemeEntry.__doc__,
        **{
            name: (setting.annotation | None, Field(default=None, description=setting.help))
            for name, setting in SCHEME_SETTINGS.items()
        },
    )


class MeasuredScheme(SchemeEntry):
    """A scheme whose thresholds were given in percent, with the milliseconds that these came to."""

    measured: MeasuredThresholds


def kernel_cc(cc: str) -> str:
    """The kernel's name of a congestion controller."""
    return "reno" if cc == "newreno" else cc


def no_kernel_congestion(cc: str | None, scheme: str) -> str:
    return f"the kernel has no '{cc}', and {scheme} runs there; it takes {', '.join(KERNEL_CONGESTION)}."


class PlayerSettings(Strict):
    """The constant-bit-rate player and its video; every scheme gets the same."""

    bitrate_bps: int = Field(default=4_000_000, ge=10_000, le=1_000_000_000)
    duration_s: float = Field(default=20, gt=0, le=3600)
    fps: float = Field(default=30, ge=1, le=240)
    chunk_bytes: int = Field(default=524_288, ge=1024, le=1 << 30)
    concurrency: int = Field(default=1, ge=1, le=64)
    first_frame_bytes: int | None = Field(default=None, ge=1)
    startup_buffer_ms: int | None = Field(default=None, ge=0, le=600_000)
    rebuffer_target_ms: int = Field(default=500, ge=1, le=600_000)
    max_buffer_ms: int = Field(default=10_000, ge=100, le=600_000)
    verify: bool = True

    @property
    def video_bytes(self) -> int:
        return int(self.duration_s * self.bitrate_bps / 8)


class BufferLimits(Strict):
    """Limits of the kernel's sockets; the defaults are libxlink's stream flow-control window and send buffer."""

    receive_bytes: int = Field(default=6 << 20, ge=65536, le=1 << 30)
    send_bytes: int = Field(default=4 << 20, ge=65536, le=1 << 30)


_CHANGES = ("state", "delay_ms", "loss", "rate", "mtu", "reorder", "duplicate", "cross", "nat", "interface")


def _no_bare_number(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError(f"this takes a rate with its unit, such as 1.5mbps (bps, kbps, mbps or gbps), not {value}.")
    return value


_UNIT = BeforeValidator(_no_bare_number)
Rate = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?(bps|kbps|mbps|gbps)$"), _UNIT]


def _is_positive(rate: str) -> bool:
    return any(digit in rate for digit in "123456789")


class LinkEvent(Strict):
    """A change of a path's link at a set time, as in a job of xlink-sim."""

    t_s: float = Field(ge=0)
    path: str
    direction: Literal["up", "down", "both"] = "both"
    state: Literal["up", "down"] | None = None
    delay_ms: float | None = Field(default=None, ge=0, le=MAX_MS)
    loss: float | str | None = None
    rate: Rate | None = None
    mtu: int | None = Field(default=None, ge=LEAST_MTU, le=MOST_MTU)
    reorder: float | None = Field(default=None, ge=0, le=1)
    reorder_delay_ms: float | None = Field(default=None, gt=0, le=MAX_MS)
    duplicate: float | None = Field(default=None, ge=0, le=1)
    cross: Annotated[str, _UNIT] | None = None
    nat: Literal["rebind"] | None = None
    interface: Literal["up", "down"] | None = None

    @model_serializer(mode="wrap")
    def _without_what_is_not_given(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leaves out later fields that are not set, so that records and identities stay those of earlier versions."""
        later = ("mtu", "reorder", "reorder_delay_ms", "duplicate", "cross", "nat", "interface")
        return {name: value for name, value in dump(self).items() if value is not None or name not in later}

    @model_validator(mode="after")
    def _changes_something(self) -> "LinkEvent":
        if self.loss is not None and not LINK_SETTINGS["loss"].takes(self.loss):
            raise FieldError("loss", "it takes a probability, 0 to 1, or ge:p=P:r=P[:good=P][:bad=P].")
        if self.rate is not None and not _is_positive(self.rate):
            raise FieldError("rate", f"'{self.rate}' is no rate; for an outage give 'state: down'.")
        if self.cross is not None and not LINK_SETTINGS["cross"].takes(self.cross):
            raise FieldError("cross", f"it takes a rate such as 2mbps, or 'off', but it is '{self.cross}'.")
        if bool(self.reorder) != (self.reorder_delay_ms is not None):
            raise FieldError("reorder", "a reorder above 0 and a reorder_delay_ms go together.")
        if self.interface is not None and (self.state is not None or self.direction != "both"):
            raise FieldError("interface", "an interface has both directions, and goes with no 'state'.")
        if not self.model_dump(exclude={"t_s", "path", "direction"}, exclude_none=True):
            raise ValueError(f"nothing changes; give {', '.join(_CHANGES[:-1])} or {_CHANGES[-1]}.")
        return self


def _digits(value: float) -> str:
    """The value with at most three decimals, which the programs take."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


class FlowSettings(Strict):
    """Connections of the kernel's TCP beside the video's: on a path of the pair, or behind a link of their own."""

    cc: Annotated[str, Field(pattern=r"^[a-z0-9_]{1,15}$")] = "cubic"
    path: DeviceName | None = None
    via: list[DeviceName] = Field(default=[])
    rate: Rate | None = None
    delay_ms: float | None = Field(default=None, ge=0, le=MAX_MS)
    direction: Literal["up", "down"] = "down"
    count: int = Field(default=1, ge=1, le=64)
    from_s: float = Field(default=0, ge=0, le=86_400)
    to_s: float | None = Field(default=None, gt=0, le=86_400)
    size_bytes: int | None = Field(default=None, ge=1, le=1 << 40)
    pause_ms: float | None = Field(default=None, ge=0, le=86_400_000)

    @field_validator("via", mode="before")
    @classmethod
    def _names(cls, value: Any) -> Any:
        return value.split(":") if isinstance(value, str) else value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.path is None) == (not self.via):
            raise ValueError("a flow needs 'path: NAME' or 'via: [NAMES]', one of the two.")
        for name in ("rate", "delay_ms"):
            if self.path is not None and getattr(self, name) is not None:
                raise FieldError(name, f"'{name}' is of a link of its own, which a flow with 'via' has; leave it out.")
        if self.rate is not None and not _is_positive(self.rate):
            raise FieldError("rate", f"'{self.rate}' is no rate; give one above 0.")
        if self.to_s is not None and float(_digits(self.to_s)) <= float(_digits(self.from_s)):
            raise FieldError("to_s", f"it ends at {self.to_s:g} s, and begins at {self.from_s:g} s; give a later time.")
        if self.pause_ms is not None and self.size_bytes is None:
            raise FieldError("pause_ms", "'pause_ms' needs 'size_bytes', which ends a connection.")
        return self

    def keys(self) -> str:
        """The settings as keys of mpshell's option `--flow`."""
        given: dict[str, Any] = {"cc": self.cc, "path": self.path, "via": ":".join(self.via) or None}
        given |= {"rate": self.rate, "delay": self.delay_ms, "direction": self.direction, "count": self.count}
        given |= {"from": self.from_s, "to": self.to_s, "size": self.size_bytes, "pause": self.pause_ms}
        texts = {name: _digits(value) if isinstance(value, float) else value for name, value in given.items()}
        return ",".join(f"{name}={value}" for name, value in texts.items() if value is not None)


class Experiment(Strict):
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")
    description: str = ""
    arena: Annotated[str, Field(json_schema_extra={"enum": list(ARENAS)})] = "mpshell"
    pairs: list[PairChoice] = Field(min_length=1)
    schemes: list[SchemeEntry] = Field(min_length=1)
    # Pairs on which `thresholds: [X, Y]` are measured. Empty: `pairs`, the ones that are compared.
    threshold_pairs: list[PairChoice] = Field(default=[])
    seeds: list[Annotated[int, Field(ge=0, lt=1 << 32)]] = Field(default=[1], min_length=1)
    # 'drawn': one draw per pair and seed, the same for all schemes. A number: that offset for every run.
    # 'spread': evenly over the shortest trace, a place a seed.
    # 'worst_of_primary': where the primary path's downlink has the least capacity over the length of the video.
    start_offset_ms: Literal["drawn", "spread", "worst_of_primary"] | Annotated[int, Field(ge=0, le=MOST_OFFSET_MS)] = (
        "drawn"
    )
    player: PlayerSettings = PlayerSettings()
    time_limit_s: float = Field(default=60, gt=0, le=7200)
    queue: QueueSpec | None = None
    # Settings of the links (docs/reference/links.md) by name of the path, 'cellular' (paths whose radio sleeps) or
    # 'all'; they go before those of the pair.
    links: dict[str, LinkSettings] = Field(default={})
    # Links that several paths share, by name: a path's setting `via` names them.
    bottlenecks: Annotated[dict[DeviceName, BottleneckSettings], Field(max_length=16)] = Field(default={})
    # Connections of the kernel's TCP as others' traffic, by name.
    flows: Annotated[dict[DeviceName, FlowSettings], Field(max_length=16)] = Field(default={})
    link_events: list[LinkEvent] = Field(default=[])
    # The first technology that a pair has is its primary path; those not named follow in the usual order.
    path_order: list[Technology] = Field(default=list(TECHNOLOGY_ORDER), min_length=1)
    congestion: Congestion = "cubic"
    buffers: BufferLimits = BufferLimits()
    # The runs that keep qlogs. None: by the number of runs (railyard.results.qlogs).
    qlog: Qlog | None = None
    link_logs: bool = True
    # Whether each run keeps captures of its endpoints' packets, with the TLS secrets.
    pcap: bool = False
    # Whether mpshell keeps the machine's cores awake. auto: if its probe shows that this helps.
    keep_awake: Literal["auto", "on", "off"] = "auto"
    # Whether player, server and stacks run under SCHED_FIFO, below mpshell, if permitted.
    real_time: bool = True
    # Whether each run on the wall clock has a twin in virtual time, with which its figures are compared.
    twins: bool = False
    # Another experiment. Its newest answer in the same results comes first on the page.
    answer_of: str | None = None
    # Seconds for repetitions of void runs at the end. None: half of the planned time, at least 30.
    repeat_budget_s: float | None = Field(default=None, ge=0, le=86_400)

    @model_serializer(mode="wrap")
    def _without_later_fields(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leaves out later fields that are not set, so that records and identities stay those of earlier versions."""
        return {name: value for name, value in dump(self).items() if value or name != "flows"}

    @field_validator("arena")
    @classmethod
    def _arena(cls, value: str) -> str:
        if value not in ARENAS:
            raise ValueError(no_arena(value))
        return value

    @field_validator("keep_awake", mode="before")
    @classmethod
    def _switch(cls, value: Any) -> Any:
        """YAML reads on and off as true and false."""
        return {True: "on", False: "off"}[value] if isinstance(value, bool) else value

    @field_validator("qlog", mode="before")
    @classmethod
    def _which(cls, value: Any) -> Any:
        return {True: "all", False: "none"}.get(value, value) if isinstance(value, bool) else value

    @field_validator("seeds", mode="before")
    @classmethod
    def _count(cls, value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            if not 1 <= value <= MOST_SEEDS:
                raise ValueError(f"a number of seeds is from 1 to {MOST_SEEDS}, but it is {value}.")
            return list(range(1, value + 1))
        if not isinstance(value, list):
            given = "nothing" if value is None else repr(value)
            raise ValueError(f"this takes how many seeds, or a list of them, not {given}.")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> "Experiment":
        if len(set(self.seeds)) != len(self.seeds):
            raise FieldError(
                "seeds", "the same seed is given twice in 'seeds'; every seed is one repetition, so list it once."
            )
        if any(pair in self.pairs[:at] for at, pair in enumerate(self.pairs)):
            raise FieldError("pairs", "the same pair is given twice; list it once.")
        times = [event.t_s for event in self.link_events]
        if times != sorted(times):
            raise FieldError("link_events", "an event comes before the one above it; put them in the order of t_s.")
        if times and times[-1] >= self.time_limit_s:
            raise FieldError(
                "link_events",
                f"t_s {times[-1]:g} is not before time_limit_s ({self.time_limit_s:g}), so that event never comes.",
            )
        for entry in self.schemes:
            kernel = TRANSPORT_OF_SCHEME[entry.scheme] != "quic" and entry.cc is None
            if kernel and self.congestion not in KERNEL_CONGESTION:
                raise FieldError("congestion", no_kernel_congestion(self.congestion, entry.scheme))
        labels = [entry.base_label() + ":" + entry.path for entry in self.schemes]
        for label in labels:
            if labels.count(label) > 1:
                raise FieldError(
                    "schemes", f"two schemes are both called '{label.removesuffix(':each')}'; give one a 'label'."
                )
        if self.time_limit_s < self.player.duration_s:
            raise FieldError(
                "time_limit_s",
                f"time_limit_s ({self.time_limit_s:g}) is less than the video's duration_s "
                f"({self.player.duration_s:g}), so no run could finish; raise it.",
            )
        return self


def find_experiment(name: str) -> Path:
    """A path as given, or `experiments/NAME.yaml`."""
    return find_yaml(name, EXPERIMENTS_DIR, "experiment")


def load_experiment(path: Path) -> tuple[Experiment, YamlDocument]:
    document = load_yaml(path)
    return experiment_of(document), document


OTHER_FILES = {"expect": "railyard stress", "floors": "railyard gate --suite", "first_look": "railyard gate --suite"}
"""Fields of files that are no experiments by themselves, and the commands that take such files."""


def experiment_of(document: YamlDocument) -> Experiment:
    for field, command in OTHER_FILES.items():
        if field in document.data:
            raise document.error((field,), f"an experiment has no such field: this file is for `{command} FILE`.")
    experiment = parse(document, Experiment)
    _check_answer_of(experiment, document)
    return experiment


def _check_answer_of(experiment: Experiment, document: YamlDocument) -> None:
    """Checks that `answer_of` names an experiment of the project, or one beside this one."""
    name = experiment.answer_of
    known = {file.stem for folder in (EXPERIMENTS_DIR, document.path.parent) for file in folder.glob("*.yaml")}
    if name is not None and name not in known:
        raise document.error(("answer_of",), f"there is no experiment '{name}'; {near_miss(name, known)}")
