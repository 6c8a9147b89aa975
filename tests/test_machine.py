"""Causes of lateness: the processors' time by user, and the sentence of a void run."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import good
from in_process import railyard
from railyard.run import confine
from railyard.run.causes import cause
from railyard.run.fidelity import judge
from railyard.run.lateness import Lateness
from railyard.run.machine import Machine, Watch, parse

BEFORE = "cpu  100 10 50 900 5 1 4 30 20 10\ncpu0 1 2\ncpu1 1 2\nintr 5\n"


def machine(steal_s: float = 0.0, others_s: float = 0.0, cores: int = 2, *, own_known: bool = True) -> Machine:
    """10 s of it, 3 s of them in the run's own processes."""
    own_s = 3.0
    return Machine(10.0, cores, own_s + others_s, steal_s, 0.0, own_s if own_known else None)


SLOTS = 400  # 2 s
TIMERS = {"p50": 30, "p99": 2300, "max": 9800, "over_1ms": 9, "count": 900}


def late(links: float = 0.0, timers: float = 0.0, waits: float = 0.0) -> Lateness:
    """A record in which every fourth slot is late by that, µs."""
    series = [[value if k % 4 == 0 else 0.0 for k in range(SLOTS)] for value in (links, timers, waits)]
    return Lateness(series[0], series[1], series[2], 15.0)


@pytest.mark.parametrize(
    ("lateness", "found", "fifo", "words"),
    [
        (late(links=2000, timers=2000), machine(others_s=9.0), True, "woke timers late: p99 2.30 ms, at most 9.8 ms."),
        (late(timers=2000), machine(steal_s=3.6), True, "The host took 18 % of the cores (steal) and woke timers late"),
        (
            late(waits=2000),
            machine(others_s=9.0),
            False,
            "Player, server or relays waited 0.20 s for a core, without real-time priority. "
            "Other processes took 0.9 of 2 cores.",
        ),
        (late(waits=2000), machine(own_known=False), True, "Player, server or relays waited 0.20 s for a core."),
        (late(links=2000), machine(others_s=9.0), True, "Timers were on time and mpshell was not: the links have more"),
        (late(), machine(others_s=9.0), True, "Neither timers nor endpoints were late."),
        (None, machine(steal_s=3.6), True, "The host took 18 % of the cores (steal)."),
        (None, machine(others_s=9.0), True, "Why is not known: nothing watched the timers."),
    ],
)
def test_a_void_run_names_what_its_record_shows(
    lateness: Lateness | None, found: Machine, fifo: bool, words: str
) -> None:
    """Other processes are named only if an endpoint waited for a core, as they delay neither timers nor links."""
    record = {"timers": {"sched_fifo": True, "late_s": 1.0, "run_delay_s": 0.1, "lateness_us": TIMERS}}
    told = cause(record | {"sched_fifo": True}, lateness, found, endpoints_fifo=fifo)
    assert words in told
    assert ("Other processes" in told) == ("Other processes" in words)


def test_endpoints_that_were_stopped_did_not_wait_for_a_core() -> None:
    timers = {"sched_fifo": True, "late_s": 1.0, "run_delay_s": 0.1, "lateness_us": TIMERS}
    record = {"timers": timers, "sched_fifo": True, "blocked_s": 0.15}
    told = cause(record, late(waits=2000), machine(others_s=9.0), endpoints_fifo=True)
    assert told == "Player, server or relays were stopped, or waited for a disk, for 0.15 s."


def summary(p99: float, *, kept_awake: bool) -> dict[str, Any]:
    link = {
        "lateness_us": {"p50": 20, "p99": p99, "max": p99, "over_1ms": 0, "count": 1000},
        "missed": 0,
        "opportunities": 1000,
    }
    path = {"name": "wifi", "up": link, "down": link, "device_drops": {"inside_tx": 0}}
    return {"paths": [path], "duration_s": 10, "sched_fifo": True, "keep_awake": {"done": kept_awake}}


def test_only_a_void_run_has_a_cause() -> None:
    void = judge(summary(4000, kept_awake=True), (), machine(steal_s=3.6))
    assert void.cause == "The host took 18 % of the cores (steal)."
    assert void.kept_awake
    assert void.machine is not None
    assert void.machine["others_s"] == 0
    on_time = judge(summary(90, kept_awake=False), (), machine(steal_s=3.6))
    assert (on_time.void, on_time.cause) == (False, None)
    old = summary(4000, kept_awake=False)
    del old["keep_awake"]
    assert (judge(old).kept_awake, judge(old).machine) == (None, None)


def test_the_kernels_counts_are_read_by_column() -> None:
    cores, counts = parse(BEFORE, 100)
    assert cores == 2
    assert (counts["user"], counts["steal"], counts["guest"]) == (1.0, 0.3, 0.2)
    assert parse("cpu  100 10 50 900\ncpu0 1\n", 100)[1]["steal"] == 0.0


def test_a_process_of_ones_own_is_not_among_the_others() -> None:
    watch = Watch()
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"], check=True)
    found = watch.stop(own_children=True)
    assert found.own_s is not None
    assert found.own_s >= 0.3
    assert found.others_s == max(0.0, found.busy_s - found.own_s)
    assert watch.stop(own_children=False).others_cores is None
    assert json.loads(json.dumps(found.as_json()))["cores"] == found.cores


def test_records_from_before_are_still_shown() -> None:
    old = Path(__file__).parent / "data" / "results-schema-1" / "runs" / "subway-1--xlink--s1"
    assert "fidelity:" in good(railyard("show", str(old))).stdout


def test_only_plain_files_of_the_unprivileged_user_join_the_results(tmp_path: Path) -> None:
    """A link could lead to any file of the machine, and root would change its owner."""
    folder, secret = tmp_path / ".player", tmp_path / "secret"
    (folder / "qlog").mkdir(parents=True)
    (tmp_path / "qlog").mkdir()
    secret.write_text("secret")
    before = secret.stat()
    (folder / "player.jsonl").write_text("{}")
    (folder / "qlog" / "a.sqlog").write_text("{}")
    (folder / "player.keys").symlink_to(secret)
    os.link(secret, folder / "player.netstat")
    confine.gather(folder, tmp_path)
    found = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    assert found == {"player.jsonl", "qlog/a.sqlog", "secret"}
    assert (secret.stat().st_uid, secret.read_text()) == (before.st_uid, "secret")
    assert not folder.exists()
