"""mpshell keeps the cores awake: its processes, sharing between instances, its output, and that nothing is left."""

import json
import os
import signal
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from conftest import good
from mpshell_program import MPSHELL, TIMEOUT_S, path_option, pytestmark, run, trace, under_way
from waiting import wait_until, wait_until_gone

__all__ = ["pytestmark", "trace"]

SPINNER = "mpshell-awake"
CORES = os.sched_getaffinity(0)


def spinners_of(shell: int) -> set[int]:
    """The spinners that are children of this mpshell."""
    found = set()
    for pid in Path(f"/proc/{shell}/task/{shell}/children").read_text().split():
        if Path(f"/proc/{pid}/comm").read_text().strip() == SPINNER:
            found.add(int(pid))
    return found


def cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def spins(pid: int) -> bool:
    """Whether it uses a core, and does not wait for its lock: then it would be sleeping."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "R"


def awake(trace: Path, *options: str) -> AbstractContextManager[subprocess.Popen[str]]:
    return under_way(*path_option("wifi", trace), *options, "--", "sh", "-c", "echo ready; exec sleep 60")


def kept(summary: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(summary.read_text())["keep_awake"]
    return told


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_every_core_has_an_idle_class_spinner_that_dies_with_mpshell(trace: Path, number: signal.Signals) -> None:
    with awake(trace, "--keep-awake", "on") as shell:
        spinners = spinners_of(shell.pid)
        assert {tuple(os.sched_getaffinity(pid)) for pid in spinners} == {(core,) for core in CORES}
        assert {os.sched_getscheduler(pid) for pid in spinners} == {os.SCHED_IDLE}
        assert {os.getsid(pid) for pid in spinners} == spinners, "each is in a session of its own"
        assert all(not list(Path(f"/proc/{pid}/fd").iterdir())[1:] for pid in spinners), "only the lock is open"
        shell.send_signal(number)
        shell.wait(TIMEOUT_S)
        wait_until_gone(spinners)


def test_a_run_tells_what_was_done_and_what_it_cost(trace: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.json"
    options: list[str | Path] = [*path_option("wifi", trace), "--keep-awake", "on", "--summary", summary]
    assert run(*options, "--", "sleep", "0.5").returncode == 0
    told = kept(summary)
    assert (told["asked"], told["done"], told["spinners"]) == ("on", True, len(CORES))
    assert told["latency_device"] is os.access("/dev/cpu_dma_latency", os.W_OK)
    assert told["spinner_cpu_s"] > 0
    assert told["probe"] is None, "nothing is asked when it is on"


def test_off_starts_nothing(trace: Path, tmp_path: Path) -> None:
    with awake(trace, "--keep-awake", "off") as shell:
        assert spinners_of(shell.pid) == set()
    summary = tmp_path / "summary.json"
    good(run(*path_option("wifi", trace), "--keep-awake", "off", "--summary", summary, "--", "true"))
    assert (kept(summary)["done"], kept(summary)["spinner_cpu_s"]) == (False, 0)


def test_auto_does_what_the_probe_says(trace: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.json"
    good(run(*path_option("wifi", trace), "--summary", summary, "--", "true"))
    told = kept(summary)
    assert told["asked"] == "auto"
    if told["probe"] is None:  # another mpshell of this machine kept them awake all the time
        assert told["done"]
        return
    without, with_ = told["probe"]["without_us"]["p95"], told["probe"]["with_us"]["p95"]
    assert told["done"] is (with_ < 0.7 * without and without - with_ >= 30)
    again = tmp_path / "again.json"
    good(run(*path_option("wifi", trace), "--summary", again, "--", "true"))
    assert kept(again)["probe"] is None or kept(again)["probe"]["age_s"] > 0, "a fresh probe is used again"


def test_two_shells_share_the_spinners_and_one_takes_over(trace: Path) -> None:
    with awake(trace, "--keep-awake", "on") as first, awake(trace, "--keep-awake", "on") as second:
        both = spinners_of(first.pid) | spinners_of(second.pid)
        assert len(both) == 2 * len(CORES)
        wait_until(lambda: sum(spins(pid) for pid in both) <= len(CORES), "one a core spins, the others wait")
        waiting = {pid for pid in spinners_of(second.pid) if not spins(pid)}
        first.kill()
        first.wait(TIMEOUT_S)
        before = {pid: cpu_ticks(pid) for pid in waiting}
        wait_until(lambda: all(spins(pid) for pid in before), "the first ones to spin again")


def test_shells_inside_of_shells_and_other_namespaces_share_them_too(trace: Path, tmp_path: Path) -> None:
    inner, outer = tmp_path / "inner.json", tmp_path / "outer.json"
    nested = [str(MPSHELL), *path_option("lte", trace), "--keep-awake", "on", "--summary", str(inner), "--", "true"]
    command: list[str | Path] = [*path_option("wifi", trace), "--keep-awake", "on", "--summary", outer, "--", *nested]
    assert run(*command).returncode == 0
    assert kept(inner)["done"]
    assert kept(outer)["done"]
    shell = [str(MPSHELL), *path_option("wifi", trace), "--keep-awake", "on", "--summary", str(inner), "--", "true"]
    subprocess.run(["unshare", "--net", "--", *shell], check=True, timeout=TIMEOUT_S)
    assert kept(inner)["spinners_shared"] == kept(outer)["spinners_shared"]


def test_the_summary_tells_what_others_took_of_the_processors(trace: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.json"
    burn = "i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done"
    good(run(*path_option("wifi", trace), "--keep-awake", "off", "--summary", summary, "--", "sh", "-c", burn))
    told = json.loads(summary.read_text())
    machine = told["machine"]
    assert machine["cores"] == os.cpu_count()
    assert told["command_cpu_s"] > 0
    assert machine["busy_s"] > 0
    # Others' time is what is left of the machine's when one's own is taken away; ticks are 10 ms.
    assert machine["others_s"] <= machine["busy_s"]
    assert abs(machine["others_s"] - max(0, machine["busy_s"] - told["command_cpu_s"] - told["cpu_s"])) < 0.001
    assert {"steal_s", "guest_s"} <= machine.keys()
