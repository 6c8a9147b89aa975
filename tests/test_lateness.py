"""The bound on what lateness can have added, and the probe of the machine."""

import json
import os
import random
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import run_program
from railyard.base.paths import program
from railyard.run import fidelity, probe
from railyard.run.lateness import Chain, Lateness, added, on_endpoints
from railyard.run.probe import Timers


def longest(chain: Chain, slot: int, *, at_link: bool) -> float:
    """The bound by its definition: each event of the chain in any slot, on time or late."""
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
    assert on_endpoints([40.0, 40.0, 41.0, 900.0, 38.0]) == [0.0, 0.0, 1.0, 860.0, 0.0]
    assert on_endpoints([]) == []


def test_a_probe_measures_every_core_in_slots() -> None:
    found = probe.measure(0.3, keep_awake="off")
    assert found.cores == os.cpu_count()
    assert 0 <= found.timers.p50_us <= found.timers.p99_us <= found.timers.max_us
    assert 0 <= found.late_share <= 1
    assert found.seconds >= 0.3
    assert found.sentence


def test_a_probe_that_was_stopped_for_50_ms_says_so() -> None:
    """Again and again, so that it is stopped while it measures, even if this test stands still for a second of it."""
    command = [str(program("mpshell")), "--probe", "3", "--keep-awake", "off"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        while running.poll() is None:
            running.send_signal(signal.SIGSTOP)
            time.sleep(0.05)
            running.send_signal(signal.SIGCONT)
            time.sleep(0.05)
        assert running.stdout is not None
        text = running.stdout.read()
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
    done = run_program([str(program("mpshell")), "--probe", "1", "--", "true"])
    assert (done.returncode, done.stderr) == (2, "mpshell: --probe takes no --path and no COMMAND; run it alone\n")


def play(*rcts: float, first_frame_s: float | None = 0.2) -> list[dict[str, object]]:
    """A player's log: one chunk after the other, the first at 0.1 s."""
    events: list[dict[str, object]] = []
    now = 0.1
    for chunk, rct_s in enumerate(rcts):
        events.append({"t": now, "event": "request", "chunk": chunk})
        now += rct_s
        events.append({"t": now, "event": "chunk_done", "chunk": chunk, "rct_s": rct_s})
    return [*events, {"t": now, "event": "summary", "first_frame_s": first_frame_s}]


def stalled(at_s: float, us: float, *, links: bool = True) -> Lateness:
    """2 s in which links (else endpoints) were late once."""
    series = [us if k == round(at_s / 0.005) else 0.0 for k in range(400)]
    none = [0.0] * 400
    return Lateness(series if links else none, none, none if links else series, 15.0)


def verdict(lateness: Lateness, events: list[dict[str, object]]) -> fidelity.Fidelity:
    bounds = added(lateness, events, 0.0)
    return fidelity.judge({"paths": [], "sched_fifo": True}, lateness=lateness, added=bounds)


def test_a_stall_voids_what_it_can_have_changed_and_nothing_else() -> None:
    """5 ms are 1.3 % of a chunk of 400 ms, and 25 % of one of 20 ms."""
    assert not verdict(stalled(0.5, 5_000), play(0.4, 0.4, 0.4)).void
    found = verdict(stalled(0.5, 5_000), play(*[0.02] * 50))
    assert found.void is False, "of 50 chunks one was hit: neither the median nor the largest moves by more than 2 %"
    found = verdict(stalled(0.505, 5_000), play(0.4, 0.02, 0.01))
    assert found.reasons == ["lateness can have added 25.0 % to the median RCT (5.0 ms of 0.020 s)"]
    assert verdict(stalled(0.7, 12_000), play(0.4, 0.5, 0.4)).reasons == [
        "lateness can have added 2.4 % to the largest RCT (12.0 ms of 0.500 s)"
    ]
    assert verdict(stalled(0.1, 5_000, links=False), play(0.4)).reasons == [
        "lateness can have added 2.5 % to the first frame (5.0 ms of 0.200 s)"
    ]


def test_a_play_without_a_frame_reports_its_end() -> None:
    assert (
        verdict(stalled(0.5, 200_000), play(1.0, first_frame_s=None))
        .reasons[0]
        .startswith("lateness can have added 18.2 % to the time to its end")
    )
    assert not verdict(stalled(0.5, 10_000), play(1.0, first_frame_s=None)).void


def test_a_play_that_ended_before_any_answer_could_come_is_not_void() -> None:
    """2 ms after its start a relay was gone: no lateness of links or endpoints can have changed that."""
    events: list[dict[str, object]] = [{"t": 0.0, "event": "request", "chunk": 0}]
    end: dict[str, object] = {"t": 0.002, "event": "summary", "first_frame_s": None}
    late = stalled(0.0, 1_000)
    found = verdict(late, [*events, end])
    assert not found.void and found.as_json()["added"] == {"share": 0.0, "figures": {}, "chunk_s": {"0": 0.0}}
    assert verdict(replace(late, delay_ms=0.5), [*events, end]).void, "an answer could have come"
    assert verdict(late, [*events, end | {"first_frame_s": 0.001}]).void, "a frame came"
    assert verdict(late, [*events, end | {"t": 0.031}]).void, "an answer could have come"


def test_the_record_has_the_bound_of_each_chunk_and_figure() -> None:
    record = verdict(stalled(0.5, 5_000), play(0.3, 0.3)).as_json()["added"]
    assert record["chunk_s"] == {"0": 0.0, "1": 0.005}
    assert record["figures"]["first frame"] == {"value_s": 0.2, "added_s": 0.0}
    assert record["figures"]["median RCT"] == pytest.approx({"value_s": 0.3, "added_s": 0.005})
    assert record["share"] == pytest.approx(0.005 / 0.3, abs=1e-5)


def test_timers_that_are_late_count_for_endpoints_beyond_what_timers_cost() -> None:
    timers = Lateness([0.0] * 100, [40.0] * 50 + [3040.0] + [40.0] * 49, [0.0] * 100, 15.0)
    assert timers.chain.bound_us(0, 0.5) == pytest.approx(3000)


def test_a_record_of_before_is_judged_by_its_deliveries(tmp_path: Path) -> None:
    assert Lateness.read(tmp_path / "lateness.txt", 15.0) is None
    (tmp_path / "lateness.txt").write_text("# slot_us 5000\n10 20 30\n1 2 3\n")
    assert Lateness.read(tmp_path / "lateness.txt", 15.0) == Lateness([10, 1], [20, 2], [30, 3], 15.0)
