"""The rules by which figures are made, checked by hand: limits of fidelity, thresholds, intervals, agreement."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import FakeRun
from railyard.base.errors import UserError
from railyard.results.records import Run, load_run
from railyard.run.fidelity import judge
from railyard.run.linkevents import DoneEvent
from railyard.stats import pooled
from railyard.stats.statistics import nearest_rank
from railyard.studies.agreement import compare, compare_exact, within_bounds
from railyard.studies.study import find_study
from railyard.studies.thresholds import Distribution, samples_of, th

TENTHS = [i / 10 for i in range(1, 11)]


def test_a_quantile_is_the_smallest_value_that_its_share_does_not_exceed() -> None:
    found = [nearest_rank(TENTHS, q) for q in (0.0, 0.1, 0.11, 0.5, 0.51, 0.9, 0.91, 1.0)]
    assert found == [0.1, 0.1, 0.2, 0.5, 0.6, 0.9, 1.0, 1.0]
    assert nearest_rank([3.0, 1.0, 2.0], 0.5) == 2.0, "in whatever order"
    assert nearest_rank([float(i) for i in range(1, 101)], 0.07) == 7.0, "0.07 times 100 is a little more than 7"


# --- fidelity ---------------------------------------------------------------------------------------------------------


def link(**change: Any) -> dict[str, Any]:
    """A run with the changes in its second downlink, which has 5000 opportunities and 900 deliveries."""
    summary = FakeRun().emulator()
    late = change.pop("late", {})
    down = summary["paths"][1]["down"]
    summary["paths"][1]["down"] = down | {"lateness_us": down["lateness_us"] | late} | change
    return summary


@pytest.mark.parametrize(
    ("within", "beyond"),
    [
        (link(late={"p99": 1000}), link(late={"p99": 1001})),
        (link(late={"over_1ms": 9}), link(late={"over_1ms": 10})),  # 1 % of 900
        (link(missed=5), link(missed=6)),  # 0.1 % of 5000
        (link(missed=3, opportunities=100), link(missed=4, opportunities=100)),  # and three in any case
    ],
)
def test_a_run_is_void_beyond_each_limit_and_not_at_it(within: dict[str, Any], beyond: dict[str, Any]) -> None:
    assert not judge(within).void
    assert judge(beyond).void and len(judge(beyond).reasons) == 1


def test_a_link_that_delivered_nothing_was_not_late() -> None:
    idle = link(late={"p50": 7, "p99": 9000, "max": 9000, "count": 0})
    verdict = judge(idle)
    assert not verdict.void and (verdict.lateness_p99_us, verdict.lateness_max_us) == (150, 3000)


def test_the_verdict_has_the_worst_of_the_links_and_the_sums() -> None:
    verdict = judge(link(late={"p50": 80, "p99": 500, "max": 7000, "over_1ms": 2, "count": 800}, missed=2))
    assert (verdict.lateness_p50_us, verdict.lateness_p99_us, verdict.lateness_max_us) == (80, 500, 7000)
    assert (verdict.over_1ms, verdict.deliveries, verdict.missed) == (2, 3 * 900 + 800, 2)
    summary = link()
    summary["paths"][0]["device_drops"] = {"inside_rx": 1, "inside_tx": 0, "outside_rx": 0, "outside_tx": 3}
    assert judge(summary).device_drops == 4 and len(judge(summary).reasons) == 2


@pytest.mark.parametrize(
    ("t_s", "done_s", "void"),
    [
        (1.0, 1.0099, False),  # within 10 ms
        (1.0, 1.0101, True),
        (1.0, None, True),
        (19.98, None, True),
        (19.99, None, False),  # the run was over before it was too late
    ],
)
def test_link_events_are_on_time_or_the_run_is_void(t_s: float, done_s: float | None, void: bool) -> None:
    assert judge(link() | {"duration_s": 20.0}, [DoneEvent(t_s=t_s, command="down wifi", done_s=done_s)]).void is void


# --- thresholds -------------------------------------------------------------------------------------------------------


def test_th_is_what_x_per_cent_are_greater_than() -> None:
    ordered = [float(i) for i in range(1, 11)]
    assert [th(ordered, percent) for percent in (100, 95, 90, 80, 50, 1, 0)] == [1, 1, 1, 2, 5, 10, 10]


def player_log(folder: Path, events: list[dict[str, Any]]) -> None:
    (folder / "player.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))


@pytest.mark.parametrize(("outcome", "counted"), [("complete", [20.0, 30.0, 40.0]), ("time_limit", [20, 30, 40, 50])])
def test_samples_lie_between_the_start_of_playing_and_the_last_byte(
    tmp_path: Path, outcome: str, counted: list[float]
) -> None:
    levels = [(0.5, 10), (1.0, 20), (1.5, 30), (2.0, 40), (2.5, 50)]
    buffer = [{"t": t, "event": "buffer", "play_time_left_ms": left} for t, left in levels]
    play, last = {"t": 1.0, "event": "play"}, {"t": 2.0, "event": "chunk_done"}
    run = load_run(FakeRun(outcome=outcome).write(tmp_path / "runs"))
    player_log(tmp_path, [*buffer, play, {"t": 1.2, "event": "chunk_done"}, last])
    assert samples_of(run, tmp_path) == counted
    player_log(tmp_path, [*buffer, last])
    assert samples_of(run, tmp_path) == [], "it never played"
    player_log(tmp_path, [*buffer, play])
    assert samples_of(run, tmp_path) == [], "nothing ever came"


def test_the_cost_of_a_setting_lies_between_its_shares_of_the_redundancy(tmp_path: Path) -> None:
    sent = [(1_100_000, 100_000), (1_200_000, 200_000)]
    runs = [
        load_run(FakeRun(seed=seed, stream_bytes_sent=all_, reinjected_bytes=twice).write(tmp_path))
        for seed, (all_, twice) in enumerate(sent, start=1)
    ]
    found = Distribution([10.0, 40.0, 50.0, 60.0], runs)
    assert found.cost == pytest.approx(0.15)
    assert found.share_below(50.0) == 0.5, "less than it, not equal to it"
    off, row = find_study("thresholds").code.rows_of(found, [(75, 25)])
    assert (off.setting, off.t_th1_ms, off.cost_most) == (None, None, 0.0)
    assert (row.setting, row.t_th1_ms, row.t_th2_ms) == ((75, 25), 10.0, 50.0)
    assert (row.cost_least, row.cost_most) == pytest.approx((0.15 * 0.25, 0.15 * 0.75))
    assert Distribution([], []).cost == 0.0


# --- intervals --------------------------------------------------------------------------------------------------------


def test_an_interval_of_a_mean_is_as_wide_as_theory_has_it() -> None:
    """With n runs: 1.96 standard deviations / sqrt(n) to either side, up to the bootstrap's own error."""
    drawn = random.Random(5)
    groups = [[drawn.gauss(10, 2)] for _ in range(400)]
    found = pooled.bootstrap(groups, pooled.mean)
    assert found is not None
    spread = (sum((group[0] - found.value) ** 2 for group in groups) / 400) ** 0.5 / 20
    assert found.value - found.low == pytest.approx(1.96 * spread, rel=0.12)
    assert found.high - found.value == pytest.approx(1.96 * spread, rel=0.12)


def test_whole_runs_are_resampled() -> None:
    """Ten equal requests of a run are one observation, not ten."""
    drawn = random.Random(6)
    values = [drawn.gauss(10, 2) for _ in range(100)]
    one, ten = (pooled.bootstrap([[value] * many for value in values], pooled.mean) for many in (1, 10))
    assert one is not None and ten is not None
    assert (ten.low, ten.high) == pytest.approx((one.low, one.high))


def test_a_difference_of_quantiles_has_an_interval_where_the_quantiles_have_none() -> None:
    """The outage of one run makes the p99 of both sides, and both share it."""
    theirs = [[1.0 + 0.001 * (30 * run + k) for k in range(30)] for run in range(19)] + [[50.0] * 30]
    ours = [[value / 2 for value in run] for run in theirs]
    level = pooled.bootstrap(ours, pooled.quantile_of(0.99))
    found = pooled.paired(ours, theirs, pooled.quantile_of(0.99), pooled.improvement)
    assert level is not None and not level.known
    assert found is not None and (found.value, found.low, found.high) == pytest.approx((50.0, 50.0, 50.0))


def test_runs_without_a_value_are_left_out_with_their_partner() -> None:
    ours, theirs = [[1.0], [], [3.0]] * 5, [[2.0], [5.0], []] * 5
    found = pooled.paired(ours, theirs, pooled.mean, pooled.improvement)
    assert found is not None and (found.value, found.low, found.high) == (50.0, 50.0, 50.0)
    assert pooled.paired([[], [1.0]], [[1.0], []], pooled.mean, pooled.improvement) is None
    assert pooled.bootstrap([[], []], pooled.mean) is None
    assert pooled.improvement(3.0, 4.0) == 25.0 and pooled.improvement(3.0, 0.0) == 0.0


# --- agreement --------------------------------------------------------------------------------------------------------


def written(folder: Path, *runs: FakeRun) -> list[Run]:
    return [load_run(run.write(folder)) for run in runs]


def test_chunks_are_compared_with_themselves_where_both_completed(tmp_path: Path) -> None:
    wall = written(tmp_path / "wall", FakeRun(rct_s=[1.0] * 12, unfinished_s=[9.0]))
    sim = written(tmp_path / "sim", FakeRun(rct_s=[1.0 + i / 100 for i in range(12)] + [5.0]))
    [row] = compare(sim, wall)
    assert row.chunk_ratios == pytest.approx((1.01, 1.05, 1.10)), "the 2nd, 6th and 11th of 12"
    assert (row.chunks_virtual, row.chunks_mpshell) == (13, 13)


def test_virtual_time_is_compared_chunk_by_chunk_until_a_run_parts(tmp_path: Path) -> None:
    sim = written(tmp_path / "sim", FakeRun(rct_s=[1.0, 2.0, 3.0]), FakeRun(seed=2, rct_s=[1.0, 2.0]))
    near = [1.00002, 2.5, 3.0]
    kernel = written(tmp_path / "kernel", FakeRun(rct_s=near), FakeRun(seed=2, rct_s=[1.0, 2.00004]))
    [row] = compare_exact(sim, kernel)
    assert (row.runs, row.chunks, row.same, row.before) == (2, 5, 4, 3)
    assert (row.before_us, row.apart_ms) == pytest.approx((40.0, 500.0))
    assert row.parted_s == sim[0].chunks[1].request_s
    [same] = compare_exact(sim, sim)
    assert (same.parted_s, same.before, same.ks_distance) == (None, 5, 0.0)


def test_the_ratio_of_medians_has_an_interval_over_the_runs(tmp_path: Path) -> None:
    fast = written(tmp_path / "wall", *(FakeRun(seed=seed, rct_s=[1.0] * 3) for seed in range(1, 17)))
    wall = [replace(run, player_start_s=run.seed / 1000) for run in fast]
    kernel = written(tmp_path / "kernel", *(FakeRun(seed=seed, rct_s=[seed / 4] * 3) for seed in range(1, 17)))
    [row] = compare(kernel, wall, arena="kernel")
    assert row.ratio_interval is not None
    assert row.ratio_interval.value == row.ratio == 2.0
    assert row.start_lag_ms == pytest.approx(8.5), "the mean of 1 to 16"
    assert 0.5 < row.ratio_interval.low < 1.75 and 2.25 < row.ratio_interval.high < 3.75


def test_a_figure_of_the_wall_clock_is_within_the_range_of_sims_starts_and_its_bound(tmp_path: Path) -> None:
    """Chunks of 1 s; sim has 1.00 and 1.02 s, by the start of the player."""
    sims = [
        written(tmp_path / str(k), FakeRun(rct_s=[rct] * 3, first_frame_s=rct)) for k, rct in enumerate((1.0, 1.02))
    ]
    folder = FakeRun(rct_s=[1.025, 1.025, 1.05], first_frame_s=1.03).write(tmp_path / "wall")
    record = json.loads((folder / "run.json").read_text())
    figures = {"first frame": {"value_s": 1.03, "added_s": 0.002}}
    added: dict[str, Any] = {"share": 0.01, "figures": figures, "chunk_s": {"0": 0.005, "1": 0.001, "2": 0.01}}
    record["fidelity"]["added"] = added
    (folder / "run.json").write_text(json.dumps(record))
    [row] = within_bounds(sims, [load_run(folder)])
    assert (row.runs, row.chunks, row.chunks_within) == (1, 3, 1), "1.02 + 0.005 + 1 ms of resolution reaches 1.025"
    assert (row.first_frames, row.largest_bound_ms) == (0, 2.0)
    assert row.farthest_ms == pytest.approx(10.0)
    added["figures"]["first frame"]["added_s"] = 0.0091
    added["chunk_s"] = {"0": 0.005, "1": 0.005, "2": 0.01}
    (folder / "run.json").write_text(json.dumps(record))
    [row] = within_bounds(sims, [load_run(folder)])
    assert (row.first_frames, row.medians, row.chunks_within) == (1, 1, 2)


def test_arenas_agree_within_five_per_cent_of_the_median(tmp_path: Path) -> None:
    for name, median, agrees in (("a", 1.049, True), ("b", 1.051, False), ("c", 0.951, True), ("d", 0.949, False)):
        wall = written(tmp_path / name / "wall", FakeRun(rct_s=[0.1, 1.0, 9.0]))
        sim = written(tmp_path / name / "sim", FakeRun(rct_s=[0.1, median, 9.0]))
        assert compare(sim, wall)[0].agrees is agrees


def test_the_yardstick_is_virtual_time_with_a_later_player(tmp_path: Path) -> None:
    wall = written(tmp_path / "wall", FakeRun(rct_s=[1.0, 2.0]), FakeRun(seed=2, rct_s=[1.0, 2.0], void=True))
    sim = written(tmp_path / "sim", FakeRun(rct_s=[1.0, 2.0]))
    later = [written(tmp_path / str(i), FakeRun(rct_s=[rct, 2.0]), FakeRun(seed=2)) for i, rct in enumerate((0.5, 1.5))]
    [row] = compare(sim, wall, later)
    assert (row.shifted_medians_s, row.range_s) == ((0.5, 1.5), (0.5, 1.5))
    assert row.shifted_ks == (0.5, 0.5)


def test_the_study_has_a_table_for_each_two_arenas_that_ran(tmp_path: Path) -> None:
    code = find_study("agreement").code
    sim, kernel, wall = (written(tmp_path / name, FakeRun(rct_s=[1.0, 2.0, 3.0])) for name in code.ARENAS)
    kernel = written(tmp_path / "other", FakeRun(rct_s=[1.0, 2.5, 3.0]))
    parts = dict(code.tables(code.between({"sim": sim, "kernel": kernel}, [])))
    assert parts.keys() == {"exact", "exact-all"}
    assert parts["exact-all"] == "2 of 3 chunks are the same within 100 µs."
    everything = {"sim": sim, "kernel": kernel, "mpshell": wall}
    parts = dict(code.tables(code.between(everything, [sim])))
    assert parts.keys() > {"sim-mpshell", "kernel-mpshell", "bounded"}
    assert parts["sim-mpshell-all"] == "1 of 1 rows have medians within 5%."
    assert (
        parts["kernel-mpshell-all"] == "0 of 1 rows have medians within 5%." and "**1.250 [" in parts["kernel-mpshell"]
    )
    assert parts["bounded-all"].startswith("1 of 1 first frames, 1 of 1 medians and 3 of 3 chunks")


@pytest.mark.parametrize("arenas", [["sim"], ["sim", "sim"], ["sim", "docker"]])
def test_arenas_that_cannot_be_compared_are_refused(arenas: list[str]) -> None:
    with pytest.raises(UserError, match="--set arenas: two or three of sim, kernel, mpshell"):
        find_study("agreement").settings("default", {"arenas": arenas})
