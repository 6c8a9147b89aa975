"""Settings of a link beyond its traces, delay and queue: the keys of docs/reference/links.md, as YAML files write them.

Only their form is checked here, from the rows of `emulator/link/settings.c`, so that an error names file and line; the
link library reads the values.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from railyard.base.declared import LINK_SETTINGS
from railyard.base.units import with_units
from railyard.base.yamlfile import FieldError, near_miss
from railyard.traces.names import check_queue

Value = str | float | bool
MAX_MS = LINK_SETTINGS["delay_ms"].most
LEAST_MTU, MOST_MTU = (int(limit) for limit in (LINK_SETTINGS["mtu"].least, LINK_SETTINGS["mtu"].most))
_OF_THE_PATH = ("trace", "offset_ms")  # which a pair and its experiment give in their own ways
_ROWS = {name: row for name, row in LINK_SETTINGS.items() if name not in _OF_THE_PATH}
_NOT_OF_BOTTLENECKS = ("nat", "wifi", "paging_ms", "via", "once")
RATE = re.compile(r"[0-9]+(\.[0-9]+)?(bps|kbps|mbps|gbps)")
FILES = ("delay_trace", "light_trace", "size_latency", "cross_profile")
"""Settings that name files."""
_DIRECTION = re.compile(r"^(?:up_|down_)?(?P<name>.*)$")


def _one_text(value: Any) -> Any:
    """`via: [core, edge]` is "core:edge"."""
    return ":".join(map(str, value)) if isinstance(value, list) else value


def _check_bottleneck(settings: dict[str, Any]) -> dict[str, Value]:
    """Checks a bottleneck. Rates take the place of traces: one for both directions, or one for each."""
    names = ("rate", "up_rate", "down_rate")
    rates = {name: settings[name] for name in names if name in settings}
    for name, value in rates.items():
        if not isinstance(value, str) or not RATE.fullmatch(value):
            raise FieldError(name, f"it takes a rate such as 20mbps, but it is {value!r}; correct the value.")
    if "rate" not in rates and len(rates) < 2:
        raise FieldError("rate", "a bottleneck needs a rate.")
    others = {name: value for name, value in settings.items() if name not in names}
    for name in others:
        if _bare(name) in _NOT_OF_BOTTLENECKS:
            raise FieldError(name, f"a bottleneck has no '{_bare(name)}'; leave it out.")
    return rates | _check(with_units(others, _ROWS))


def _bare(name: str) -> str:
    """A setting's name without its direction."""
    match = _DIRECTION.match(name)
    return match["name"] if match else name


def _check(settings: dict[str, Any]) -> dict[str, Value]:
    settings = {name: _one_text(value) if _bare(name) == "via" else value for name, value in settings.items()}
    settings = with_units(settings)
    for name, value in settings.items():
        match = _DIRECTION.match(name)
        row = _ROWS.get(match["name"]) if match else None
        if row is None:
            raise FieldError(name, f"unknown setting of a link; {near_miss(name, _ROWS)}")
        if not row.takes(value):
            raise FieldError(name, f"it takes {row.wanted}, but it is {value!r}; correct the value.")
        if row.name == "queue":
            _check_queue(name, str(value))
    return settings


def _check_queue(name: str, value: str) -> None:
    try:
        check_queue(value)
    except ValueError as error:
        raise FieldError(name, str(error)) from None


LinkSettings = Annotated[dict[str, Any], AfterValidator(_check)]
"""Settings by name, whose form is checked. A name with `up_` or `down_` is for one direction."""
BottleneckSettings = Annotated[dict[str, Any], AfterValidator(_check_bottleneck)]
"""Settings of a bottleneck, which has rates in place of a pair's traces."""


def vias(settings: Mapping[str, Value]) -> list[str]:
    """The bottlenecks that a path's settings name, in either direction."""
    return [name for key, value in settings.items() if _bare(key) == "via" for name in str(value).split(":")]


def of_way(settings: Mapping[str, Any], way: str, name: str, default: Any) -> Any:
    """The value of a setting in a direction (`up` or `down`)."""
    return settings.get(f"{way}_{name}", settings.get(name, default))


def layered(base: Mapping[str, Value], top: Mapping[str, Value]) -> dict[str, Value]:
    """The settings of `base`, overridden by `top`. A value of `top` for both directions replaces those for one."""
    replaced = {f"{way}_{name}" for way in ("up", "down") for name in top}
    return {name: value for name, value in base.items() if name not in replaced} | dict(top)


def split_files(settings: Mapping[str, Value], folder: Path) -> tuple[dict[str, Value], dict[str, Path]]:
    """The settings without files, and those that name files, whose paths are relative to the folder."""
    plain = {name: value for name, value in settings.items() if not name.endswith(FILES)}
    files = {name: (folder / str(settings[name])).resolve() for name in settings if name not in plain}
    return plain, files


def members(
    delay_ms: float, queue: str, settings: Mapping[str, Value], delay_traces: Mapping[str, Path]
) -> dict[str, Value]:
    """All settings of a path's link under the names of a job of xlink-sim, delay and queue first."""
    traced = {way for way in ("up", "down") for name in ("delay_trace", "light_trace")
              if {name, f"{way}_{name}"} & set(delay_traces)}  # fmt: skip
    delay: dict[str, Value] = {"delay_ms": delay_ms}
    if traced:  # a delay trace or a light trace takes the place of the delay
        delay = {f"{way}_delay_ms": delay_ms for way in ("up", "down") if way not in traced}
    return delay | {"queue": queue} | dict(settings) | {name: str(file) for name, file in delay_traces.items()}


def members_of_record(path: Mapping[str, Any]) -> dict[str, Value]:
    """The settings of a path in a run's record. They override its delay, queue and loss."""
    files = {name: Path(file) for name, file in path.get("delay_traces", {}).items()}
    effects = {"loss": path.get("loss", 0.0)} | path.get("settings", {})
    return members(path["delay_ms"], path["queue"], effects, files)


def mpshell_keys(delay_ms: float, queue: str, settings: Mapping[str, Value], delay_traces: Mapping[str, Path]) -> str:
    """All settings of a path's link as keys of mpshell's option `--path`."""
    return as_keys(members(delay_ms, queue, settings, delay_traces))


def as_keys(settings: Mapping[str, Value]) -> str:
    """Settings as keys of mpshell's options."""
    keys: list[str] = []
    for name, value in settings.items():
        text = ("yes" if value else "no") if isinstance(value, bool) else value
        keys.append(f"{name.removesuffix('_ms').replace('_', '-')}={text if isinstance(text, str) else f'{text:g}'}")
    return ",".join(keys)


def least_delay_ms(delay_ms: float, settings: Mapping[str, Value], delay_traces: Mapping[str, Path], way: str) -> float:
    """The shortest delay that a packet can have in a direction (`up` or `down`), ms."""
    file = of_way(delay_traces, way, "delay_trace", None)
    least = float(of_way(settings, way, "delay_ms", delay_ms))
    if file is not None:
        least = min(float(line.partition(",")[2]) for line in file.read_text(encoding="ascii").splitlines())
    return max(0.0, least - float(of_way(settings, way, "jitter_ms", 0.0)))
