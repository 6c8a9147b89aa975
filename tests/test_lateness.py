"""The bound on what lateness can have added, and the probe of the machine."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from railyard.base.paths import program
from railyard.run import probe
from railyard.run.lateness import Chain
from railyard.run.probe import Timers


def longest(chain: Chain, slot: int, *, at_link: bool) -> float:
    """The bound as its definition says it: each event of the chain in any slot, on time or late."""
    spacing = 0 if at_link else max(1, int(chain.delay_ms // chain.slot_ms))
    values = chain.links_us if at_link else chain.endpoints_us
    best = 0.0
    for k in range(slot, len(values)):
        for late in (0.0, values[k]):
            after = k + int(late / 1000 / chain.slot_ms) + spacing
            best = max(best, late + longest(chain, after, at_link=not at_link))
    return best


def test_the_bound_is_the_largest_sum_over_a_chain() -> None:
    draw = random.Random(5)
    for _ in range(60):
        links = [draw.choice([0.0, 0.0, 300.0, 4_000.0, 12_000.0]) for _ in range(7)]
        endpoints = [draw.choice([0.0, 200.0, 6_000.0]) for _ in range(7)]
        chain = Chain(links, endpoints, draw.choice([5.0, 10.0, 15.0]))
        expected = min(longest(chain, 0, at_link=True), 35_000.0)
        assert chain.bound_us(0, 0.035) == pytest.approx(expected), (links, endpoints, chain.delay_ms)


def test_lateness_counts_once_for_each_one_way_delay() -> None:
    """The example of the page: 0.1 ms at any time, 15 ms of delay."""
    late = Chain([100.0] * 60, [0.0] * 60, 15.0)
    assert late.bound_us(0, 0.3) == pytest.approx(100 * 0.3 / 0.015)
    assert late.bound_us(0.1, 0.13) == pytest.approx(200)
    assert late.bound_us(0.3, 0.4) == 0.0, "nothing was recorded there"


def test_a_stall_of_50_ms_counts_once_whatever_was_due_meanwhile() -> None:
    stalled = [0.0] * 20 + [50_000.0 - 5_000 * k for k in range(10)] + [0.0] * 20
    assert Chain(stalled, [0.0] * 50, 15.0).bound_us(0, 0.25) == pytest.approx(50_000)


def test_a_delay_below_a_slot_counts_lateness_as_often_as_a_chain_fits_into_it() -> None:
    assert Chain([10.0] * 20, [0.0] * 20, 1.0).bound_us(0, 0.1) == pytest.approx(1000)


def test_timers_cost_is_not_the_endpoints_lateness() -> None:
    assert probe.on_endpoints([40.0, 40.0, 41.0, 900.0, 38.0]) == [0.0, 0.0, 1.0, 860.0, 0.0]
    assert probe.on_endpoints([]) == []


def test_a_probe_measures_every_core_in_slots() -> None:
    found = probe.measure(0.3, keep_awake="off")
    assert found.cores == os.cpu_count()
    assert 0 <= found.p50_us <= found.p99_us <= found.max_us
    assert 0 <= found.late_share <= 1
    assert found.seconds >= 0.3
    assert found.sentence


def test_a_probe_that_was_stopped_for_50_ms_says_so() -> None:
    command = [str(program("mpshell")), "--probe", "0.6", "--keep-awake", "off"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        threads = Path(f"/proc/{running.pid}/task")
        deadline = time.monotonic() + 5
        while len(list(threads.iterdir())) <= len(os.sched_getaffinity(0)):
            assert time.monotonic() < deadline, "no timer threads came"
        time.sleep(0.2)
        running.send_signal(signal.SIGSTOP)
        time.sleep(0.05)
        running.send_signal(signal.SIGCONT)
        text, _ = running.communicate(timeout=20)
    found = json.loads(text)
    assert found["timers"]["lateness_us"]["max"] >= 40_000
    assert max(found["late_us"]) == found["timers"]["lateness_us"]["max"]


@pytest.mark.parametrize(
    ("timers", "steal", "words"),
    [
        (Timers(True, 30, 2300, 9800, 0.1), 0.0, "woke timers late: p99 2.30 ms, at most 9.8 ms."),
        (Timers(True, 30, 2300, 9800, 0.1), 0.18, "The host took 18 % of the cores (steal) and woke timers late: p99"),
        (Timers(True, 30, 2300, 9800, 0.9), 0.0, "Other real-time processes or the kernel held the cores: timers"),
        (Timers(False, 30, 2300, 9800, 0.1), 0.0, "Timers woke late (p99 2.30 ms, at most 9.8 ms); without the right"),
    ],
)
def test_a_probe_names_what_it_shows(timers: Timers, steal: float, words: str) -> None:
    assert words in probe.cause(timers, steal)


def test_waiting_for_a_quiet_machine_ends_with_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "QUIET_SHARE", -1.0)
    told: list[probe.Probe] = []
    assert not probe.wait_until_quiet(0, told.append, keep_awake="off")
    assert len(told) == 1
    monkeypatch.setattr(probe, "QUIET_SHARE", 1.0)
    told.clear()
    assert probe.wait_until_quiet(60, told.append, keep_awake="off")
    assert len(told) == probe.WINDOWS


def test_a_probe_runs_alone() -> None:
    done = subprocess.run(
        [str(program("mpshell")), "--probe", "1", "--", "true"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (2, "mpshell: --probe takes no --path and no COMMAND; run it alone\n")
