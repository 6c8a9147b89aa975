"""Settings of a link beyond its traces, delay and queue: the keys of docs/reference/link.md, as YAML files write them.

Here only their form is checked, so that a mistake is told with its file and line; the link library reads the values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from railyard.base.yamlfile import FieldError, near_miss
from railyard.traces.names import QUEUE_PATTERN

Value = str | float | bool
MAX_MS = 3_600_000.0
_PROBABILITY = r"(?:0(?:\.\d+)?|1(?:\.0+)?|\.\d+)"
_GILBERT_ELLIOTT = re.compile(rf"ge(?::(?:p|r|good|bad)={_PROBABILITY}){{2,4}}")
_ONOFF = re.compile(r"exp:on=[\d.]+:off=[\d.]+|[\d.]+/[\d.]+(?:/[\d.]+/[\d.]+)*")
_RADIO = re.compile(r"(?:(?:promotion|tail|inactive|cycle)=[\d.]+(?::|$)){2,4}(?<!:)|off")
_DIRECTION = re.compile(r"^(?:up_|down_)?(?P<key>.*)$")


def _is_number(value: object, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def is_queue(value: object) -> bool:
    """Whether this is a queue as the link library takes it, in form."""
    return _matches(re.compile(QUEUE_PATTERN), value)


def _is_ms(value: object) -> bool:
    return _is_number(value, MAX_MS)


def _is_probability(value: object) -> bool:
    return _is_number(value, 1.0)


def is_loss(value: object) -> bool:
    """Whether this is a loss as the link library takes it, in form."""
    return _is_probability(value) or _matches(_GILBERT_ELLIOTT, value)


_RULES: dict[str, tuple[Callable[[object], bool], str]] = {
    "delay_ms": (_is_ms, "ms from 0 to 3600000"),
    "delay_trace": (lambda value: isinstance(value, str) and value != "", "the name of a delay trace"),
    "delay_trace_end": (lambda value: value in ("loop", "hold"), "loop or hold"),
    "jitter_ms": (_is_ms, "ms from 0 to 3600000"),
    "reorder": (_is_probability, "a probability, 0 to 1"),
    "reorder_delay_ms": (_is_ms, "ms from 0 to 3600000"),
    "loss": (is_loss, "a probability, 0 to 1, or ge:p=P:r=P[:good=P][:bad=P]"),
    "onoff": (lambda value: _matches(_ONOFF, value), "times ON/OFF[/ON/OFF…] in ms, or exp:on=MS:off=MS"),
    "radio": (
        lambda value: _matches(_RADIO, value),
        "promotion=MS:tail=MS, inactive=MS:cycle=MS, both, or off",
    ),
    "duplicate": (_is_probability, "a probability, 0 to 1"),
    "queue": (is_queue, "a queue of docs/reference/link.md, such as droptail:packets=N, codel or infinite"),
    "once": (lambda value: isinstance(value, bool), "true or false"),
}


def _check(settings: dict[str, Value]) -> dict[str, Value]:
    for name, value in settings.items():
        match = _DIRECTION.match(name)
        rule = _RULES.get(match["key"]) if match else None
        if rule is None:
            raise FieldError(name, f"unknown setting of a link; {near_miss(name, _RULES)}")
        if not rule[0](value):
            raise FieldError(name, f"it takes {rule[1]}, but it is {value!r}; correct the value.")
    return settings


LinkSettings = Annotated[dict[str, Any], AfterValidator(_check)]
"""Settings by name, checked in form; `up_` or `down_` before a name is for one direction."""


def layered(base: Mapping[str, Value], top: Mapping[str, Value]) -> dict[str, Value]:
    """The settings of both; what `top` sets for both directions replaces what `base` sets for one."""
    replaced = {f"{way}_{name}" for way in ("up", "down") for name in top}
    return {name: value for name, value in base.items() if name not in replaced} | dict(top)


def split_files(settings: Mapping[str, Value], folder: Path) -> tuple[dict[str, Value], dict[str, Path]]:
    """The settings that are no files, and those that are, which are named relative to a folder."""
    plain = {name: value for name, value in settings.items() if not name.endswith("delay_trace")}
    files = {name: (folder / str(settings[name])).resolve() for name in settings if name not in plain}
    return plain, files


def members(
    delay_ms: float, queue: str, settings: Mapping[str, Value], delay_traces: Mapping[str, Path]
) -> dict[str, Value]:
    """All settings of a path's link, delay and queue first, under the names of a job of xlink-sim."""
    traced = {way for way in ("up", "down") if {"delay_trace", f"{way}_delay_trace"} & set(delay_traces)}
    delay: dict[str, Value] = {"delay_ms": delay_ms}
    if traced:  # a delay trace takes the place of the delay
        delay = {f"{way}_delay_ms": delay_ms for way in ("up", "down") if way not in traced}
    return delay | {"queue": queue} | dict(settings) | {name: str(file) for name, file in delay_traces.items()}


def mpshell_keys(delay_ms: float, queue: str, settings: Mapping[str, Value], delay_traces: Mapping[str, Path]) -> str:
    """The same as keys of mpshell's option `--path`."""
    keys: list[str] = []
    for name, value in members(delay_ms, queue, settings, delay_traces).items():
        text = ("yes" if value else "no") if isinstance(value, bool) else value
        keys.append(f"{name.removesuffix('_ms').replace('_', '-')}={text if isinstance(text, str) else f'{text:g}'}")
    return ",".join(keys)


def least_delay_ms(delay_ms: float, settings: Mapping[str, Value], delay_traces: Mapping[str, Path], way: str) -> float:
    """The shortest delay that a packet can have in a direction (`up` or `down`), ms."""

    def setting(name: str, default: float) -> float:
        return float(settings.get(f"{way}_{name}", settings.get(name, default)))

    file = delay_traces.get(f"{way}_delay_trace", delay_traces.get("delay_trace"))
    least = setting("delay_ms", delay_ms)
    if file is not None:
        lines = file.read_text(encoding="ascii").splitlines()
        least = min(float(line.partition(",")[2]) for line in lines)
    return max(0.0, least - setting("jitter_ms", 0.0))
