"""Programs under test run under SCHED_FIFO below mpshell, with a time limit, and their children only if they need
it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from conftest import good
from flat_pair import INDEX
from mpshell_program import path_option, run, trace
from railyard.run import realtime

__all__ = ["trace"]
pytestmark = pytest.mark.privileged

FIFO = os.SCHED_FIFO
# Priority and policy: fields 40 and 41 of /proc/PID/stat.
POLICIES = "cut -d' ' -f40,41 /proc/self/stat; sh -c \"cut -d' ' -f40,41 /proc/self/stat; true\"; true"
EXPERIMENT = """\
name: priorities
pairs: [flat]
schemes: SCHEMES
start_offset_ms: 0
player: {duration_s: DURATION, bitrate_bps: 2000000, chunk_bytes: 131072, max_buffer_ms: 1000}
time_limit_s: 12
"""


def policies(trace: Path, *options: str | Path) -> list[tuple[int, int]]:
    """Policy and priority of the command's child, and of a child of that."""
    done = good(run(*path_option("wifi", trace), *options, "--", "sh", "-c", POLICIES))
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
    good(run(*path_option("wifi", trace), "--real-time", "--", sys.executable, "-c", work))


# A process that waits for its rivals on one core, is a real-time one then, and says that it is ready, all in 60 ms.
CONTENDED = """
import os, signal, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
rivals = []
for _ in range(6):
    rivals.append(os.fork())
    while rivals[-1] == 0: pass
player = os.fork()
if player == 0:
    end = time.monotonic() + 0.06
    while time.monotonic() < end: pass
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(30))
    for rival in rivals: os.kill(rival, signal.SIGKILL)
    while any(os.path.exists(f"/proc/{rival}") for rival in rivals): time.sleep(0.001)
    ready = int(os.environ["MPSHELL_READY_FD"])
    os.write(ready, b"r")
    os.read(ready, 1)
    time.sleep(0.3)
    os._exit(0)
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(30))
for child in [*rivals, player]: os.waitpid(child, 0)
"""


def test_what_the_command_waited_before_the_links_started_is_no_lateness(trace: Path, tmp_path: Path) -> None:
    file = tmp_path / "lateness.txt"
    for _ in range(6):  # a look at the processes every 100 ms may come in between
        options: list[str | Path] = ["--start-when-ready", "--lateness", file]
        good(run(*path_option("wifi", trace), *options, "--", sys.executable, "-c", CONTENDED))
        rows = [line.split() for line in file.read_text().splitlines() if not line.startswith("#")]
        assert max(int(row[2]) for row in rows) < 25_000, "it waited some 50 ms for its rivals"
        assert 0.3 <= 0.005 * len(rows) < 5


def below(pid: str) -> list[str]:
    """Its descendants."""
    found = []
    with suppress(OSError):
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in children.read_text().split():
                found += [child, *below(child)]
    return found


def of_run(folder: Path) -> tuple[dict[str, int], dict[str, int]]:
    """The scheduling policy of each program of the run by its name, and the process IDs of mpshell and the server."""
    found, pids = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if words[-2:-1] == [str(folder)] and "railyard.run.worker" in words:
                for pid in below(entry.name):
                    name = Path(f"/proc/{pid}/comm").read_text().strip()
                    found[name] = os.sched_getscheduler(int(pid))
                    if name in ("mpshell", "xlink-server"):
                        pids[name] = int(pid)
    return {name: policy for name, policy in found.items() if name.startswith(("xlink", "relay"))}, pids


def nothing(_: dict[str, int]) -> None:
    """Disturbs no run."""


Seen = dict[str, dict[str, int]]
Records = dict[str, dict[str, Any]]


def play(
    folder: Path,
    *options: str,
    schemes: str = "[xlink, {stack: libxlink}]",
    duration_s: int = 3,
    disturb: Callable[[dict[str, int]], None] = nothing,
) -> tuple[Seen, Records]:
    """The largest set of programs that were seen at once in each run, and the record."""
    (folder / "index.yaml").write_text(INDEX)
    (folder / "t").write_text("1\n")
    (folder / "priorities.yaml").write_text(EXPERIMENT.replace("SCHEMES", schemes).replace("DURATION", f"{duration_s}"))
    out = folder / "out"
    words = ["run", str(folder / "priorities.yaml"), "--out", str(out), "--repeat-budget", "0", *options]
    there = os.environ | {"RAILYARD_TRACE_PATH": str(folder)}
    seen: Seen = {}
    with subprocess.Popen([sys.executable, "-m", "railyard", *words], stdout=subprocess.DEVNULL, env=there) as running:
        while running.poll() is None:
            for partial in out.glob("runs/.partial-*--s1"):
                found, pids = of_run(partial)
                if "xlink-player" in found and "mpshell" in pids:
                    disturb(pids)
                if len(found) >= len(seen.get(partial.name, {})):
                    seen[partial.name] = found
            time.sleep(0.02)
    assert running.returncode == 0
    records = {file.parent.name: json.loads(file.read_text()) for file in out.glob("runs/*/run.json")}
    return {name.removeprefix(".partial-"): found for name, found in seen.items()}, records


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Seen, Records]:
    return play(tmp_path_factory.mktemp("undisturbed"), "--jobs", "2")


@pytest.mark.slow
def test_players_servers_and_relays_are_real_time_below_the_emulator(undisturbed: tuple[Seen, Records]) -> None:
    seen, records = undisturbed
    xlink, stack = (next(name for name in seen if label in name) for label in ("--xlink", "--libxlink"))
    assert seen[xlink]["xlink-player"] == FIFO
    assert seen[xlink]["xlink-server"] == FIFO | os.SCHED_RESET_ON_FORK
    assert seen[stack].items() >= {"relay-run": FIFO, "xlink-relay": FIFO, "xlink-player": FIFO}.items()
    assert {record["fidelity"]["endpoints_fifo"] for record in records.values()} == {True}


@pytest.mark.slow
def test_real_time_can_be_switched_off(tmp_path: Path) -> None:
    seen, records = play(tmp_path, "--no-real-time", "--jobs", "2")
    assert {policy for found in seen.values() for policy in found.values()} == {os.SCHED_OTHER}
    assert {record["fidelity"]["endpoints_fifo"] for record in records.values()} == {False}


def stop_for_50_ms(name: str) -> Callable[[dict[str, int]], None]:
    def stop(pids: dict[str, int]) -> None:
        with suppress(ProcessLookupError):
            os.kill(pids[name], signal.SIGSTOP)
            time.sleep(0.05)
            os.kill(pids[name], signal.SIGCONT)
        time.sleep(0.1)

    return stop


# All hogs work at the same time; otherwise an endpoint would move to a core whose hog sleeps.
HOG = (
    "import os, sys, time; os.sched_setaffinity(0, {int(sys.argv[1])}); "
    "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(40)); print(flush=True)\n"
    "for _ in range(600):\n"
    " time.sleep(0.1 - time.monotonic() % 0.1)\n"
    " end = time.monotonic() + 0.04\n"
    " while time.monotonic() < end: pass"
)


@contextmanager
def hogs() -> Iterator[None]:
    """Occupy the cores for 40 ms of each 100, below mpshell and above the endpoints, from before the play on."""
    with ExitStack() as stack:
        for core in sorted(os.sched_getaffinity(0)):
            command = [sys.executable, "-c", HOG, str(core)]
            hog = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
            stack.callback(hog.kill)
            assert hog.stdout is not None
            assert hog.stdout.readline() == b"\n"
        yield


def only(records: Records) -> dict[str, Any]:
    (record,) = records.values()
    fidelity: dict[str, Any] = record["fidelity"]
    return fidelity


@pytest.mark.slow
def test_a_run_whose_links_are_made_late_is_caught(tmp_path: Path) -> None:
    found = only(play(tmp_path, schemes="[xlink]", disturb=stop_for_50_ms("mpshell"))[1])
    assert found["void"]
    assert any("lateness can have added" in reason for reason in found["reasons"])
    assert found["added"]["share"] > 0.1


@pytest.mark.slow
def test_a_run_whose_server_is_stopped_is_caught(tmp_path: Path) -> None:
    found = only(play(tmp_path, schemes="[xlink]", disturb=stop_for_50_ms("xlink-server"))[1])
    assert found["void"]
    assert any("lateness can have added" in reason for reason in found["reasons"])
    assert found["added"]["share"] > 0.1
    assert "were stopped" in found["cause"]


@pytest.mark.slow
def test_a_run_whose_endpoints_are_made_late_is_caught_though_its_links_are_on_time(tmp_path: Path) -> None:
    with hogs():
        found = only(play(tmp_path, schemes="[xlink]", duration_s=4)[1])
    assert found["void"]
    assert any("lateness can have added" in reason for reason in found["reasons"])
    assert "for a core" in found["cause"]


@pytest.mark.slow
def test_each_chunk_of_a_run_has_its_bound(undisturbed: tuple[Seen, Records]) -> None:
    for record in undisturbed[1].values():
        added = record["fidelity"]["added"]
        assert len(added["chunk_s"]) == 6
        assert {"first frame", "median RCT", "largest RCT"} == set(added["figures"])
        assert all(0 <= each["added_s"] <= each["value_s"] for each in added["figures"].values())
