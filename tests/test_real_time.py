"""Programs under test run under SCHED_FIFO below mpshell, what they start too where that is right, and not for ever."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from railyard.run import realtime
from test_link_events import INDEX
from test_mpshell import path_option, run, trace

__all__ = ["trace"]
pytestmark = pytest.mark.privileged

FIFO = os.SCHED_FIFO
# Priority and policy: fields 40 and 41 of /proc/PID/stat.
POLICIES = "cut -d' ' -f40,41 /proc/self/stat; sh -c \"cut -d' ' -f40,41 /proc/self/stat; true\"; true"
EXPERIMENT = """\
name: priorities
pairs: [flat]
schemes: [xlink, {stack: libxlink}]
start_offset_ms: 0
player: {duration_s: 3, bitrate_bps: 2000000, chunk_bytes: 131072, max_buffer_ms: 1000}
time_limit_s: 12
"""


def policies(trace: Path, *options: str | Path) -> list[tuple[int, int]]:
    """Policy and priority of the command's child, and of a child of that."""
    done = run(*path_option("wifi", trace), *options, "--", "sh", "-c", POLICIES)
    assert done.returncode == 0, done.stderr
    words = [int(word) for word in done.stdout.split()]
    return [(words[1], words[0]), (words[3], words[2])]


def test_the_command_and_its_children_are_real_time_where_asked(trace: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.json"
    assert policies(trace, "--real-time", "--summary", summary) == [(FIFO, realtime.PRIORITY)] * 2
    assert json.loads(summary.read_text())["command_fifo"] is True
    assert policies(trace, "--summary", summary) == [(os.SCHED_OTHER, 0)] * 2
    assert json.loads(summary.read_text())["command_fifo"] is False
    assert policies(trace, "--real-time", "--user", "nobody") == [(FIFO, realtime.PRIORITY)] * 2


def test_a_real_time_command_that_spins_is_ended(trace: Path) -> None:
    done = run(*path_option("wifi", trace), "--real-time", "--", sys.executable, "-c", "while True: pass")
    assert done.returncode == 128 + signal.SIGXCPU
    assert "nothing may use a core for 3 s without sleeping" in done.stderr


def test_the_limit_counts_only_time_without_sleeping(trace: Path) -> None:
    busy = "import time; end = time.process_time() + 3.5\nwhile time.process_time() < end: time.sleep(0.0001)"
    work = busy.replace("time.sleep", "[None for _ in range(200000)] and time.sleep")
    done = run(*path_option("wifi", trace), "--real-time", "--", sys.executable, "-c", work)
    assert done.returncode == 0, done.stderr


def below(pid: str) -> list[str]:
    """Its descendants."""
    found = []
    with suppress(OSError):
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in children.read_text().split():
                found += [child, *below(child)]
    return found


def of_run(folder: Path) -> dict[str, int]:
    """The scheduling policy of each program of the run, by its name."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if words[-2:-1] == [str(folder)] and "railyard.run.worker" in words:
                for pid in below(entry.name):
                    name = Path(f"/proc/{pid}/comm").read_text().strip()
                    found[name] = os.sched_getscheduler(int(pid))
    return {name: policy for name, policy in found.items() if name.startswith(("xlink", "relay"))}


def play(folder: Path, *options: str) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, Any]]]:
    """By run, the largest set of programs that were seen at once, and the record."""
    (folder / "index.yaml").write_text(INDEX)
    (folder / "t").write_text("1\n")
    (folder / "priorities.yaml").write_text(EXPERIMENT)
    out = folder / "out"
    words = ["run", str(folder / "priorities.yaml"), "--out", str(out), "--repeat-budget", "0", *options]
    there = os.environ | {"RAILYARD_TRACE_PATH": str(folder)}
    seen: dict[str, dict[str, int]] = {}
    with subprocess.Popen([sys.executable, "-m", "railyard", *words], stdout=subprocess.DEVNULL, env=there) as running:
        while running.poll() is None:
            for partial in out.glob("runs/.partial-*--s1"):
                found = of_run(partial)
                if len(found) >= len(seen.get(partial.name, {})):
                    seen[partial.name] = found
            time.sleep(0.02)
    assert running.returncode == 0
    records = {file.parent.name: json.loads(file.read_text()) for file in out.glob("runs/*/run.json")}
    return {name.removeprefix(".partial-"): found for name, found in seen.items()}, records


@pytest.mark.slow
def test_players_servers_and_relays_are_real_time_below_the_emulator(tmp_path: Path) -> None:
    seen, records = play(tmp_path)
    xlink, stack = (next(name for name in seen if label in name) for label in ("--xlink", "--libxlink"))
    assert seen[xlink]["xlink-player"] == FIFO
    assert seen[xlink]["xlink-server"] == FIFO | os.SCHED_RESET_ON_FORK
    assert seen[stack].items() >= {"relay-run": FIFO, "xlink-relay": FIFO, "xlink-player": FIFO}.items()
    assert {record["fidelity"]["endpoints_fifo"] for record in records.values()} == {True}


@pytest.mark.slow
def test_real_time_can_be_switched_off(tmp_path: Path) -> None:
    seen, records = play(tmp_path, "--no-real-time")
    assert {policy for found in seen.values() for policy in found.values()} == {os.SCHED_OTHER}
    assert {record["fidelity"]["endpoints_fifo"] for record in records.values()} == {False}
