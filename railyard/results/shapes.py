"""The types of the members of records of runs and campaigns. A folder of results may come from somebody else; code that
uses records after this check need not check types again. A member may be missing, as in records of earlier versions."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from railyard.base.errors import UserError
from railyard.base.jsonl import NOT_AS_WRITTEN, read_object

TEXT, FLAG, NUMBER = (str,), (bool,), (int, float)
MAYBE_TEXT, MAYBE_NUMBER, MAYBE_MAPPING = (*TEXT, type(None)), (*NUMBER, type(None)), (dict, type(None))
MAPPING = (dict,)
ANY = "*"
"""Stands for the members of a mapping that are not named."""

LATE: dict[str, Any] = dict.fromkeys(("p50", "p99", "max", "over_1ms", "count"), NUMBER)
LINK: dict[str, Any] = dict.fromkeys(("opportunities", "missed", "departed_bytes", "queue_drops"), NUMBER)
LINK |= {"lateness_us": LATE}
FIDELITY: dict[str, Any] = {"void": FLAG, "reasons": [TEXT], "cause": MAYBE_TEXT, "added": MAYBE_MAPPING}
FIDELITY |= {f"lateness_{name}_us": NUMBER for name in ("p50", "p99", "max")}
PATH: dict[str, Any] = {"name": TEXT, "technology": TEXT, "delay_ms": NUMBER, "loss": NUMBER, "queue": TEXT}
PATH |= dict.fromkeys(("up", "down", "up_sha256", "down_sha256"), TEXT)
PATH |= {name: {ANY: TEXT} for name in ("delay_traces", "delay_traces_sha256")}
CONFIG: dict[str, Any] = dict.fromkeys(("experiment", "arena", "pair", "label", "scheme", "primary"), TEXT)
CONFIG |= {"seed": (int,), "paths": [PATH], "player": {ANY: (*MAYBE_NUMBER, bool)}, "parameters": MAPPING}
CONFIG |= dict.fromkeys(("time_limit_s", "start_offset_ms"), MAYBE_NUMBER)
CONFIG |= {"programs_sha256": {ANY: TEXT}, "link_events": [MAPPING], "bottlenecks": [MAPPING]}
GIT: dict[str, Any] = {"revision": MAYBE_TEXT, "dirty": (*FLAG, type(None))}
RUN: dict[str, Any] = dict.fromkeys(("run_id", "identity", "started", "outcome", "message", "kernel"), TEXT)
RUN |= {"wall_s": NUMBER, "fidelity": FIDELITY, "config": CONFIG, "commands": {ANY: [TEXT]}, "git": GIT}
RUN |= {"mptcp": {ANY: {ANY: NUMBER}}, "sysctls": {ANY: MAYBE_TEXT}, "versions": {ANY: MAYBE_TEXT}, "tries": [MAPPING]}
RUN |= {"cpu": {"model": MAYBE_TEXT, "cores": MAYBE_NUMBER}}
EMULATOR: dict[str, Any] = {"t0_monotonic_us": MAYBE_NUMBER}
EMULATOR |= {"paths": [{"name": TEXT, "inside_addr": TEXT, "delay_ms": MAYBE_NUMBER, "up": LINK, "down": LINK}]}
CAMPAIGN: dict[str, Any] = {"command": MAYBE_TEXT, "git": GIT, "runs": [TEXT]}
CAMPAIGN |= {"not_run": [dict.fromkeys(("pair", "label", "scheme", "reason"), TEXT)]}
CAMPAIGN |= {"experiment": dict.fromkeys(("name", "description", "arena"), MAYBE_TEXT)}
EXHIBIT: dict[str, Any] = dict.fromkeys(("name", "arena", "command", "summary"), MAYBE_TEXT)
EXHIBIT |= {"provenance": {"created": MAYBE_TEXT, "git": GIT}, "paper": [MAPPING]}
EXHIBIT |= {"claims": [dict.fromkeys(("verdict", "claim", "theirs", "ours"), TEXT)]}
FACTS: dict[str, Any] = dict.fromkeys(("name", "arena", "created"), MAYBE_TEXT) | {"facts": MAPPING, "paths": MAPPING}
POPULATION: dict[str, Any] = {"population": {"name": MAYBE_TEXT}, "command": MAYBE_TEXT, "created": MAYBE_TEXT}
POPULATION |= {"git": GIT}
EVENTS: dict[str, dict[str, Any]] = {
    "start": {"monotonic_us": MAYBE_NUMBER},
    "request": dict.fromkeys(("chunk", "first", "last"), NUMBER),
    "chunk_done": {"chunk": NUMBER, "rct_s": NUMBER},
    "buffer": {"buffered_ms": NUMBER},
    "first_frame": {"latency_s": NUMBER},
    "connection_closed": {"paths": [MAPPING]},
    "summary": {
        **dict.fromkeys(("first_frame_s", "handshake_s", "play_time_s", "rebuffer_time_s"), MAYBE_NUMBER),
        **dict.fromkeys(("rebuffer_count", "bytes", "stream_bytes_sent", "migrations"), MAYBE_NUMBER),
        **{f"{name}_bytes": MAYBE_NUMBER for name in ("reinjected", "retransmitted", "given_up")},
    },
}


def _fits(value: Any, types: tuple[type, ...]) -> bool:
    kind = type(value)
    return kind in types and (kind not in NUMBER or -(2.0**63) <= value < 2.0**63)


def check(value: Any, shape: Any, place: str = "") -> None:
    """Checks a value. `shape`: a tuple of types, a mapping with the shapes of members, or a list with the shape of
    entries. Raises ValueError for another type and for a number of more than 63 bits."""
    if isinstance(shape, list) and isinstance(value, list):
        for number, inner in enumerate(value):
            check(inner, shape[0], f"{place}[{number}]")
    elif isinstance(shape, dict) and isinstance(value, dict):
        for name, inner in value.items():
            wanted = shape.get(name, shape.get(ANY))
            if wanted is not None and not (type(wanted) is tuple and _fits(inner, wanted)):
                check(inner, wanted, f"{place}.{name}" if place else name)
    elif not isinstance(shape, tuple) or type(value) not in shape:
        raise ValueError(f"{place or 'the record'} is of the type {type(value).__name__}")
    elif not _fits(value, shape):
        raise ValueError(f"{place} is no number, or of more than 63 bits")


_ANY_EVENT: dict[str, Any] = {"t": NUMBER, "event": TEXT}
_OF_KIND = {kind: _ANY_EVENT | members for kind, members in EVENTS.items()}


def check_event(event: dict[str, Any]) -> None:
    """Checks a record of a program's log. Raises ValueError."""
    kind = event.get("event")
    check(event, _OF_KIND.get(kind, _ANY_EVENT) if isinstance(kind, str) else _ANY_EVENT, "a log's record")


@contextmanager
def as_written(run: Path) -> Iterator[None]:
    """A context for reading a run's logs. Raises UserError if they are not those that a run leaves."""
    try:
        yield
    except (OSError, *NOT_AS_WRITTEN) as error:
        raise UserError(
            f"{run}: a log of this run cannot be read ({type(error).__name__}: {error}); run it again."
        ) from None


def read_record(file: Path, shape: dict[str, Any]) -> dict[str, Any] | None:
    """The record in a file. None: there is no such file, or the record does not have that shape."""
    record = read_object(file)
    try:
        check(record, shape)
    except ValueError:
        return None
    return record
