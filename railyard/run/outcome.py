"""How a run ended, from its files: the parts of the record that all arenas of real programs share."""

import re
import signal
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from railyard.base import provenance
from railyard.base.errors import UserError
from railyard.base.jsonl import read_jsonl, summary_of


class RunRefusedError(UserError):
    """A run could not be done; others may."""


class StartError(Exception):
    """A program refused to start; the message is its own sentence."""


PYTHON_PLACE = re.compile(r'\s+File "(?P<file>[^"]+)", line (?P<line>\d+)')
RELAY_RUN = "relay-run: "


def last_words(log: Path) -> str:
    """The last line of a log. With a Python traceback, also the place in the program's own files. A sentence of
    relay-run is followed by the last line of the client's relay, which shares its standard error."""
    lines = [line.rstrip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("Run 'docker run --help'")]
    if not lines:
        return "it said nothing"
    by_relay = [line for line in lines[:-1] if not line.startswith("mpshell: ")]
    if lines[-1].startswith(RELAY_RUN) and by_relay:
        return f"{lines[-1].removesuffix('.')}: {_with_place(by_relay)}"
    return _with_place(lines)


def _with_place(lines: Sequence[str]) -> str:
    traceback = takewhile(lambda line: line[0].isspace(), reversed(lines[:-1]))
    for place in filter(None, map(PYTHON_PLACE.match, traceback)):
        if "/lib/python" not in place["file"]:
            return f"{place['file']}:{place['line']}: {lines[-1].strip()}"
    return lines[-1].strip()


def exit_state(returncode: int | None) -> dict[str, Any]:
    if returncode is None:
        return {"code": None, "signal": None}
    if returncode < 0:
        return {"code": None, "signal": signal.Signals(-returncode).name}
    return {"code": returncode, "signal": None}


HANDSHAKES = ("MPJoin", "MPCapable", "MPFallback")


def mptcp_counters(netstat: str) -> dict[str, int]:
    """The MPTCP counters of handshakes, and all others that are not 0."""
    counters = provenance.mptcp_counters(netstat)
    return {name: value for name, value in counters.items() if value or name.startswith(HANDSHAKES)}


def outcome_of(run_dir: Path, shell: dict[str, Any], *, hung: bool) -> tuple[str, str]:
    """The outcome of the run, and a phrase about it. Outcomes that the player reports are results; others are
    faults."""
    summary = summary_of(read_jsonl(run_dir / "player.jsonl"))
    if hung:
        return "hung", "the player outlived its own time limit and was ended"
    if summary is not None:
        return str(summary["outcome"]), str(summary.get("message") or "")
    if shell["signal"]:
        return "crashed", f"the player died of {shell['signal']}"
    last_lines = last_words(run_dir / "mpshell.stderr")
    return "crashed", f"the player ended with code {shell['code']} and no summary: {last_lines}"


def after_death(run_dir: Path, dead: str | None, end: tuple[str, str]) -> tuple[str, str]:
    """The outcome of a run if `dead` ended before it: the `server`, or its `relay`, which a player that has all of its
    video no longer needs."""
    if dead == "server":
        return "server_died", f"the server ended during the run: {last_words(run_dir / 'server.stderr')}"
    if dead == "relay" and end[0] != "complete":
        return "server_died", f"the server's relay ended during the run: {last_words(run_dir / 'relay-server.stderr')}"
    return end


def start_lag_s(run_dir: Path, emulator: dict[str, Any]) -> float | None:
    """The player's start in s since t0 of the links. None: a log does not have its time."""
    start = next((event for event in read_jsonl(run_dir / "player.jsonl") if event.get("event") == "start"), {})
    began, t0 = start.get("monotonic_us"), emulator.get("t0_monotonic_us")
    return None if began is None or t0 is None else (began - t0) / 1e6
