"""The gate: the statistics with constructed samples, the comparison of runs, and what a suite exercises."""

import dataclasses
import itertools
import json
import math
import random
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any
from xml.etree import ElementTree

import pytest

import in_process
from conftest import FakeRun, one_sentence
from railyard.base import forms
from railyard.base.errors import UserError
from railyard.base.paths import ROOT
from railyard.figures.rows import GATED, REBUFFER_RATE
from railyard.gate import history, output
from railyard.gate.compare import Comparison, Places, Row, compare, compared
from railyard.gate.exercise import KINDS, Exercise
from railyard.gate.output import Verdict
from railyard.gate.run import Looks, first_look, places_of
from railyard.gate.suite import SUITES_DIR, Floors, Suite, find_suite, load_suite, runs_of
from railyard.gate.testing import Railyard
from railyard.results.qlogdiff import Decision, decisions, parting, parting_from
from railyard.results.records import Run, load_run
from railyard.run.resolve import resolve
from railyard.stats.bootstrap import Layout
from railyard.stats.distributions import exact_share, less_certain
from railyard.stats.statistics import differences, holm, log_ratios, middle, pseudo_median, signed_rank_p

# --- statistics -------------------------------------------------------------------------------------------------------


def test_known_values_of_the_signed_rank_test() -> None:
    assert signed_rank_p([1, 2, 3, 4, 5]) == 1 / 32
    assert signed_rank_p([-1, -2, -3, -4, -5]) == 1
    assert signed_rank_p([-0.5, -0.25]) == 1
    assert signed_rank_p([0.5, 0.25]) == 1 / 4
    assert signed_rank_p([]) == signed_rank_p([0.0, 0.0]) == 1
    assert signed_rank_p([1, 2, 3, 4, 5, 6, 7, -8]) == 25 / 256  # the tables' P(W <= 8) for n = 8
    assert signed_rank_p([math.inf, 1, 2, 3, 4]) == 1 / 32, "what never happened any more is the largest difference"
    assert signed_rank_p([float(i) for i in range(1, 201)]) == pytest.approx(2.0**-200)


def test_holms_correction() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_two_infinities_are_no_difference_and_the_shift_is_robust() -> None:
    assert differences([math.inf, 1.0, math.inf], [math.inf, 3.0, 2.0]) == [0.0, 2.0, -math.inf]
    assert pseudo_median([1.0, 1.0, 1.0, 1.0, 100.0]) == 1.0
    assert pseudo_median([]) == 0.0
    assert pseudo_median([math.inf, -math.inf, 1.0]) == 1.0, "an infinity and its opposite have no mean"
    assert pseudo_median([1.0, 2.0]) == 1.5
    assert pseudo_median([1.0, 2.0, 4.0]) == 2.25, "of 1, 1.5, 2, 2.5, 3, 4"
    assert pseudo_median([math.inf, math.inf]) == math.inf


def test_plays_that_never_played_in_one_version_or_the_other_have_no_mean_and_no_ends() -> None:
    never, once = [math.inf, 0.1, 0.1, 0.1, 0.1, 0.1], [0.2, 0.1, 0.1, 0.1, 0.1, 0.1]
    assert Comparison(REBUFFER_RATE, once, once, 0.005).interval.known
    assert not Comparison(REBUFFER_RATE, never, once, 0.005).interval.known
    assert Comparison(REBUFFER_RATE, [0.1, math.inf], [math.inf, 0.1], 0.005, windows=[0, 0]).deltas == [0.0]
    assert Comparison(REBUFFER_RATE, [0.1, math.inf, 0.2], [math.inf, 0.1, 0.2], 0.005).change == 0
    assert middle([math.inf, -math.inf]) == 0.0 and middle([1.0, 3.0]) == 2.0


def test_times_are_compared_in_proportion() -> None:
    assert log_ratios([1.0, 0.5, 2.0], [2.0, 0.5, 1.0]) == pytest.approx([math.log(2), 0.0, -math.log(2)])
    assert log_ratios([0.0, 0.0, 2.0, math.inf], [0.0, 2.0, 0.0, math.inf]) == [0.0, math.inf, -math.inf, 0.0]


# --- from runs to a verdict -------------------------------------------------------------------------------------------

SEEDS = 12
Sides = tuple[list[Run], list[Run], dict[str, tuple[str, str]]]


def sides(
    folder: Path,
    change: Callable[[FakeRun, random.Random], None],
    labels: tuple[str, ...] = ("xlink",),
    step_ms: int = 60_000,
) -> Sides:
    """Runs of a baseline and of a version in which `change` was done to each run. They do not overlap."""
    both: list[list[Run]] = []
    for side in ("before", "after"):
        runs: list[Run] = []
        for label, seed in itertools.product(labels, range(1, SEEDS + 1)):
            drawn = random.Random(f"{label} {seed}")
            rct = [drawn.lognormvariate(-1, 0.6) for _ in range(20)]
            fake = FakeRun(
                label=label,
                scheme=label,
                seed=seed,
                start_offset_ms=step_ms * seed,
                rct_s=rct,
                first_frame_s=drawn.uniform(0.3, 0.6),
                rebuffer_time_s=0.5,
            )
            if side == "after":
                change(fake, drawn)
            runs.append(load_run(fake.write(folder / side)))
        both.append(runs)
    hashes = {b.run_id: ("1", "1" if b.chunks == a.chunks else "2") for b, a in zip(*both, strict=True)}
    return both[0], both[1], hashes


def verdicts(made: Sides) -> dict[str, str]:
    [row] = compare(*made, Floors(), 0.05)
    return {comparison.figure.name: comparison.verdict for comparison in row.comparisons}


def test_a_planted_regression_of_a_tenth_is_found(tmp_path: Path) -> None:
    def slower(run: FakeRun, drawn: random.Random) -> None:
        run.rct_s = [rct * 1.1 * drawn.uniform(0.97, 1.03) for rct in run.rct_s]

    made = sides(tmp_path, slower)
    assert verdicts(made) | {"rct_p99": ""} == {
        "rct_median": "worse",
        "rct_p99": "",
        "first_frame": "unchanged",
        "rebuffer_rate": "unchanged",
        "redundancy": "unchanged",
        **dict.fromkeys(("failed", "stalled", "tail"), "unchanged"),
    }
    [row] = compare(*made, Floors(), 0.05)
    assert row.failed and row.verdict == "worse"
    assert row.regressions[0].change == pytest.approx(0.1, abs=0.01)
    before, after, hashes = made
    [opposite] = compare(after, before, hashes, Floors(), 0.05)
    assert opposite.verdict == "better" and not opposite.failed


def test_noise_is_no_regression(tmp_path: Path) -> None:
    def noisier(run: FakeRun, drawn: random.Random) -> None:
        run.rct_s = [rct * drawn.lognormvariate(0, 0.1) for rct in run.rct_s]
        run.rebuffer_time_s *= drawn.uniform(0.5, 1.5)

    made = sides(tmp_path, noisier)
    assert set(verdicts(made).values()) <= {"noise", "unchanged"}
    assert compare(*made, Floors(), 0.05)[0].verdict == "no difference"


def test_a_shift_below_the_floor_is_no_regression_however_significant(tmp_path: Path) -> None:
    def slightly(run: FakeRun, drawn: random.Random) -> None:
        run.rct_s = [rct * 1.005 for rct in run.rct_s]

    made = sides(tmp_path, slightly)
    assert verdicts(made)["rct_median"] == verdicts(made)["rct_p99"] == "below floor"
    strict = compare(*made, Floors.model_validate({"rct_median": 0.001}), 0.05)[0]
    assert [comparison.figure.name for comparison in strict.regressions] == ["rct_median"]


def test_identical_is_identical(tmp_path: Path) -> None:
    made = sides(tmp_path, lambda run, drawn: None)
    [row] = compare(*made, Floors(), 0.05)
    assert (row.identical, row.verdict, row.failed) == (True, "identical", False)
    one_differs = made[2] | {made[0][0].run_id: ("1", "2")}
    assert compare(made[0], made[1], one_differs, Floors(), 0.05)[0].verdict == "unchanged", "other bytes, same figures"


def test_what_no_longer_happens_is_worse(tmp_path: Path) -> None:
    def never(run: FakeRun, drawn: random.Random) -> None:
        run.first_frame_s, run.play_time_s, run.outcome = None, 0.0, "time_limit"

    found = verdicts(sides(tmp_path, never))
    assert (found["first_frame"], found["rebuffer_rate"]) == ("worse", "worse")


def test_a_new_fault_fails_without_statistics(tmp_path: Path) -> None:
    def crash(run: FakeRun, drawn: random.Random) -> None:
        if run.seed == 7:
            run.outcome, run.message = "crashed", "died of SIGSEGV"

    made = sides(tmp_path, crash)
    [row] = compare(*made, Floors(), 0.05)
    assert row.failed and (row.verdict, row.worst.seed) == ("fault", 7)
    assert len(row.comparisons[0].before) == SEEDS - 1, "a run that a fault ended is no measurement"


def test_false_alarms_are_as_rare_as_promised() -> None:
    """300 suites of 40 comparisons without an effect of the version, with differences of any size."""
    drawn = random.Random(5)
    alarms = 0
    for _ in range(300):
        worse = [signed_rank_p([drawn.gauss(0, 1) for _ in range(SEEDS)]) for _ in range(40)]
        alarms += min(holm(worse)) < 0.05
    assert alarms <= 300 * 0.05 + 12, "three standard deviations above what is promised"


def test_comparisons_in_which_nothing_moved_do_not_weaken_the_others(tmp_path: Path) -> None:
    def slower_xlink(run: FakeRun, drawn: random.Random) -> None:
        if run.label == "xlink":
            run.rct_s = [rct * 1.1 for rct in run.rct_s]

    labels = ("xlink", *(f"other{number}" for number in range(8)))
    rows = compare(*sides(tmp_path, slower_xlink, labels), Floors(), 0.05)
    [failed] = [row for row in rows if row.failed]
    assert failed.label == "xlink"
    assert failed.comparisons[0].adjusted_worse == pytest.approx(2 * 2.0**-SEEDS), "two moved: median and p99"


def verdict_of(rows: list[Row], changed: Sequence[str] = ()) -> Verdict:
    suite, _ = load_suite(SUITES_DIR / "mobility.yaml")
    titles, partings = ("main (abc)", "the working tree"), {("subway-1", "xlink"): "first <decision>"}
    return Verdict(suite, *titles, rows, partings, 3.0, changed=changed)


def test_markdown_and_junit_name_the_regression_and_its_evidence(tmp_path: Path) -> None:
    def slower(run: FakeRun, drawn: random.Random) -> None:
        if run.label == "xlink":
            run.rct_s = [rct * 1.2 for rct in run.rct_s]

    verdict = verdict_of(compare(*sides(tmp_path, slower, ("sp", "xlink")), Floors(), 0.05))
    text = output.markdown(verdict)
    assert text.startswith("### Railyard gate: 2 regressions\n")
    table = [line for line in text.splitlines() if line.startswith("| ")]
    assert {line.count("|") for line in table} == {len(GATED) + 4}
    assert "Took 3 s. Resolution: 0 of 1 pairs (0%) are coarser than silences of 200 ms" in text
    assert (
        "+20.0 % [+20.0, +20.0]) **worse**" in text and "worse in 12 of 12 plays" in text and "first <decision>" in text
    )
    records = output.records(verdict)
    [slow] = [one for one in records if (one["scheme"], one["figure"]) == ("xlink", "rct_median")]
    assert slow["change"] == pytest.approx(0.2) and slow["figure_verdict"] == "worse" and slow["p"] < 0.05
    assert {one["figure_verdict"] for one in records if one["scheme"] == "sp"} == {"identical"}
    assert json.loads(forms.written(output.verdict_table(verdict), forms.Form.JSON, lambda: records)) == records
    root = ElementTree.fromstring(output.junit(verdict))  # noqa: S314  our own output
    [suite] = root.findall("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("18", "2", "0")
    failed = [case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None]
    assert failed == ["rct_median", "rct_p99"]


def test_an_exported_interval_is_around_its_figure_where_the_change_is_not_that_of_the_medians() -> None:
    """Each play but the middle one takes 1.3 times as long: the median rises by 0.075 s, that is by 10 %."""
    median = next(figure for figure in GATED if figure.name == "rct_median")
    before, after = [0.5] * 6 + [1.0] + [2.0] * 5, [0.65] * 6 + [1.0] + [2.6] * 5
    one = Comparison(median, before, after, 0.02)
    assert one.typical == pytest.approx((0.75, 0.825)) and one.change == pytest.approx(0.3)
    assert history._ends(one) == pytest.approx((0.825, 0.825))


def test_a_time_that_every_typical_play_got_back_from_infinity_is_exported_without_ends() -> None:
    median = next(figure for figure in GATED if figure.name == "rct_median")
    one = Comparison(median, [math.inf] * 12 + [1.0] * 8, [0.5] * 12 + [0.8] * 8, 0.02)
    assert one.change == -1 and history._ends(one) is None


def test_a_figure_that_no_play_reports_is_a_dash_and_no_zero(tmp_path: Path) -> None:
    def slower(run: FakeRun, drawn: random.Random) -> None:
        run.rct_s = [rct * 1.2 for rct in run.rct_s]

    verdict = verdict_of(compare(*sides(tmp_path, slower, ("tcp", "xlink")), Floors(), 0.05))
    at = [figure.name for figure in GATED].index("redundancy")
    rows = [line.split(" | ") for line in output.markdown(verdict).splitlines() if line.startswith("| subway-1 ")]
    assert [row[2 + at] for row in rows] == ["–", "5.00 %"]
    [unknown] = [one for one in output.records(verdict) if (one["scheme"], one["figure"]) == ("tcp", "redundancy")]
    assert {unknown[name] for name in ("before", "after", "change")} == {None}
    assert unknown["figure_verdict"] == "unknown"
    measures = history.bencher(verdict)
    assert ["redundancy" in measures[f"subway-1/{scheme}"] for scheme in ("tcp", "xlink")] == [False, True]
    [_, row] = verdict.rows
    for name, rise in (("rct_median", 1.2), ("rct_p99", 1.2)):
        [one] = [one for one in row.comparisons if one.figure.name == name]
        ends = [measures["subway-1/xlink"][name][f"{end}_value"] for end in ("lower", "upper")]
        assert ends == pytest.approx([rise * one.typical[0]] * 2), name


def test_plays_that_begin_to_stall_are_counted_exactly(tmp_path: Path) -> None:
    """Eight of twelve stall, none before: McNemar's exact p is 2⁻⁸."""

    def stalls(run: FakeRun, drawn: random.Random) -> None:
        run.rebuffer_time_s = 1.0 if run.seed <= 8 else 0.0

    before, after, hashes = sides(tmp_path, lambda run, drawn: setattr(run, "rebuffer_time_s", 0.0))
    _, worse, _ = sides(tmp_path / "worse", stalls)
    [row] = compare(after, worse, hashes, Floors(), 0.05)
    [stalled] = [one for one in row.comparisons if one.figure.name == "stalled"]
    assert (stalled.p_worse, stalled.verdict, stalled.typical) == (2.0**-8, "worse", (0.0, 8 / 12))
    low, high = 0.34888, 0.90075  # Clopper and Pearson, eight of twelve
    none = 1 - 0.025 ** (1 / 12)  # the upper end of none of twelve that got better
    found = (stalled.interval.value, stalled.interval.low, stalled.interval.high)
    assert found == pytest.approx((8 / 12, 8 / 12 - math.hypot(8 / 12 - low, none), high), abs=1e-5)
    assert len(before) == SEEDS


def test_the_interval_of_a_count_is_around_its_change_where_windows_have_several_plays() -> None:
    """In each of ten windows one play of four begins to stall: a quarter of the plays, and of each window."""
    stalled = next(figure for figure in GATED if figure.name == "stalled")
    windows = [window for window in range(10) for _ in range(4)]
    found = Comparison(stalled, [0.0] * 40, [1.0, 0.0, 0.0, 0.0] * 10, 0.05, windows)
    low, high = exact_share(2.5, 10)
    assert found.change == found.interval.value == 0.25
    assert found.interval.high == pytest.approx(high) and high < 0.7
    assert found.interval.low == pytest.approx(0.25 - math.hypot(0.25 - low, 1 - 0.025 ** (1 / 10)))


def test_the_interval_of_a_count_takes_what_got_worse_and_what_got_better_for_dependent() -> None:
    """Each of twelve plays changed, six to the worse: one share more is the other one less, so the ends add up."""
    stalled = next(figure for figure in GATED if figure.name == "stalled")
    found = Comparison(stalled, [0.0, 1.0] * 6, [1.0, 0.0] * 6, 0.05).interval
    low, high = exact_share(6, 12)
    assert (found.value, found.low, found.high) == pytest.approx((0, low - high, high - low))


def test_a_tail_of_few_long_requests_is_counted_although_the_typical_play_is_the_same(tmp_path: Path) -> None:
    def trails(run: FakeRun, drawn: random.Random) -> None:
        run.rct_s = [rct * drawn.uniform(0.99, 1.01) for rct in run.rct_s]
        if run.seed % 2:
            run.rct_s[3] = 7 * max(run.rct_s)

    [row] = compare(*sides(tmp_path, trails), Floors(), 0.05)
    [tail] = [one for one in row.comparisons if one.figure.name == "tail"]
    assert (tail.p_worse, tail.typical) == (2.0**-6, (0.0, 0.5))


def test_seeds_that_change_nothing_are_one_play(tmp_path: Path) -> None:
    """The same start and the same figures: twelve copies of one difference are one difference."""

    def same(factor: float) -> Callable[[FakeRun, random.Random], None]:
        def change(run: FakeRun, drawn: random.Random) -> None:
            run.rct_s, run.first_frame_s = [factor * 0.1 * k for k in range(1, 21)], 0.4
            run.start_offset_ms = 1500

        return change

    _, before, hashes = sides(tmp_path / "a", same(1.0))
    _, after, _ = sides(tmp_path / "b", same(1.5))
    [row] = compare(before, after, hashes, Floors(), 0.05)
    assert len(row.comparisons[0].deltas) == 1 and not row.failed


def test_the_first_look_is_spread_over_all_starts_and_only_rows_that_moved_are_looked_at_again(tmp_path: Path) -> None:
    suite, _ = load_suite(SUITES_DIR / "mobility.yaml")
    sixty = suite.model_copy(update={"seeds": list(range(1, 61)), "first_look": 20})
    first = first_look(sixty)
    assert len(first) == 20
    assert [sum(low < seed <= low + 20 for seed in first) for low in (0, 20, 40)] == [7, 7, 6]
    looks = Looks(Places({"subway-1": "subway"}))
    both: list[list[Run]] = [[], []]
    for label in ("sp", "xlink"):
        for side, runs in zip(("before", "after"), both, strict=True):
            moved = label == "xlink" and side == "after"
            runs.append(load_run(FakeRun(label=label, rct_s=[0.6 if moved else 0.5] * 4).write(tmp_path / side)))
    looks.add((tmp_path / "before", both[0]), (tmp_path / "after", both[1]), {"sp", "xlink"})
    assert looks.moved() == {("subway", "xlink")}


def test_after_plays_that_hung_those_count_that_both_versions_have_run(tmp_path: Path) -> None:
    before = plays(tmp_path / "before", 4)
    after = [load_run(FakeRun(seed=seed, outcome="hung").write(tmp_path / "after")) for seed in (1, 2)]
    new = load_run(FakeRun(seed=1, label="new").write(tmp_path / "after"))
    looks = Looks(Places())
    assert not looks.hung
    looks.add((tmp_path / "before", before), (tmp_path / "after", [*after, new]), {before[0].label})
    assert looks.hung and looks.before == before[:2] and looks.after == [*after, new]
    rows = compare(looks.before, looks.after, looks.hashes, Floors(), 0.05)
    assert [(row.verdict, len(row.faults)) for row in rows] == [("fault", 2), ("new, no baseline", 0)]
    verdict = dataclasses.replace(verdict_of(rows), left_out=2)
    assert "After plays that hung, 2 plays of the suite were not run" in output.markdown(verdict)


def test_plays_that_overlap_in_a_trace_are_one_observation(tmp_path: Path) -> None:
    """Twelve starts half a second apart: all plays are slower, in one stretch of trace. Sixty seconds apart: twelve."""

    def slower(run: FakeRun, drawn: random.Random) -> None:
        run.rct_s = [rct * drawn.uniform(1.1, 1.3) for rct in run.rct_s]

    [overlapping] = compare(*sides(tmp_path / "a", slower, step_ms=500), Floors(), 0.05)
    [median] = [one for one in overlapping.comparisons if one.figure.name == "rct_median"]
    assert (len(median.play_deltas), len(median.deltas)) == (SEEDS, 1)
    assert (median.p_worse, overlapping.verdict) == (0.5, "no difference")
    assert median.deltas[0] == pytest.approx(fmean(median.play_deltas))
    [apart] = compare(*sides(tmp_path / "b", slower), Floors(), 0.05)
    assert (apart.comparisons[0].p_worse, apart.verdict) == (2.0**-SEEDS, "worse")
    constant = Places(constant={"subway-1"})
    [lab] = compare(*sides(tmp_path / "c", slower, step_ms=500), Floors(), 0.05, constant)
    assert lab.comparisons[0].p_worse == 2.0**-SEEDS, "over links of a constant rate no stretch is shared"


def test_windows_that_touch_are_less_certain_than_windows_apart(tmp_path: Path) -> None:
    """Twelve starts five seconds apart, of plays of 12 s: three neighbours overlap."""

    def slower(run: FakeRun, drawn: random.Random) -> None:
        run.rct_s = [2.5 * drawn.uniform(1.1, 1.3)] * 4
        run.rebuffer_time_s = 0.0

    [row] = compare(*sides(tmp_path, slower, step_ms=5000), Floors(), 0.05)
    median = row.comparisons[0]
    assert len(median.deltas) == SEEDS // 3
    touching = 27 / 19  # 3 b² / (2 b² + 1)
    assert median.p_worse == pytest.approx(less_certain(2.0 ** -(SEEDS // 3), touching)) and median.p_worse > 0.0625
    assert median.fewest == 7, "instead of six"
    assert [play.likeness for play in row.comparisons] == [pytest.approx(touching)] * len(GATED)


def test_a_window_of_trace_keeps_its_share_of_false_alarms() -> None:
    """Differences that overlap like plays do: of eight neighbours each pair shares a part. By play the test of 5 %
    rejects far more often, and by windows of as many plays as overlap still too often: the last plays of a window see
    the begin of the next one."""
    drawn = random.Random(8)
    layout = Layout((tuple(range(128)),), (8,))
    windows = list(map(int, layout.window_of()))
    by_play = by_window = by_gate = rarely = covered = 0
    for _ in range(1500):
        noise = [drawn.gauss(0, 1) for _ in range(128 + 8)]
        deltas = [sum(noise[k : k + 8]) for k in range(128)]
        by_play += signed_rank_p(deltas) < 0.05
        one, plain = (
            compared(
                GATED[0], [1.0] * 128, [math.exp(delta / 10) for delta in deltas], windows, Floors(), 0.05, likeness
            )
            for likeness in (layout.likeness, 1.0)
        )
        by_window += plain.p_worse < 0.05
        by_gate += one.p_worse < 0.05
        rarely += one.p_worse < 0.01
        covered += one.interval.low <= 0 <= one.interval.high
    assert by_play > 1500 * 0.2 and by_window > 1500 * 0.07
    assert by_gate < 1500 * 0.065 and rarely < 1500 * 0.017
    assert covered > 1500 * 0.935


def test_pairs_of_one_scenario_are_one_row(tmp_path: Path) -> None:
    before: list[Run] = []
    after: list[Run] = []
    for pair in ("subway-1", "subway-2", "hsr-1"):
        for side, factor, runs in (("a", 1.0, before), ("b", 1.2, after)):
            for seed in (1, 2, 3):
                fake = FakeRun(pair=pair, seed=seed, start_offset_ms=60_000 * seed, rct_s=[factor * 0.1 * seed] * 9)
                runs.append(load_run(fake.write(tmp_path / side)))
    hashes = {run.run_id: ("1", "2") for run in before}
    rows = compare(before, after, hashes, Floors(), 0.05, Places({"subway-1": "subway", "subway-2": "subway"}))
    assert {row.place: len(row.after) for row in rows} == {"subway": 6, "hsr-1": 3}
    assert rows[0].comparisons[0].p_worse == 2.0**-6, "the starts are the same, the traces are not"


def test_rows_are_named_by_scenario_where_it_has_several_pairs() -> None:
    suite, document = load_suite(SUITES_DIR / "mobility.yaml")
    few = suite.model_copy(update={"pairs": suite.pairs[-2:] + suite.pairs[:1], "seeds": [1]})
    specs = resolve(few, document)
    assert places_of(specs).names == {"hsr-5": "high-speed rail", "hsr-6": "high-speed rail", "subway-1": "subway-1"}
    assert not places_of(specs).constant


# --- what a suite exercises -------------------------------------------------------------------------------------------


def plays(folder: Path, count: int, **fields: Any) -> list[Run]:
    return [load_run(FakeRun(seed=seed, **fields).write(folder)) for seed in range(1, count + 1)]


def test_a_kind_of_change_counts_as_exercised_where_five_plays_have_it(tmp_path: Path) -> None:
    five = Exercise.of(plays(tmp_path / "five", 5, reinjected_bytes=1))
    assert "re-injection 5" in five.sentence.partition(" Not exercised: ")[0]
    four = Exercise.of(plays(tmp_path / "four", 4, reinjected_bytes=1))
    assert "re-injection" in four.sentence.partition(" Not exercised: ")[2]
    none = Exercise.of(plays(tmp_path / "none", 5, reinjected_bytes=0, down_bytes=(990_000, 9_000)))
    assert none.plays["re-injection"] == none.plays["scheduling"] == 0 and none.plays["first frames"] == 5


def lab_paths() -> list[dict[str, Any]]:
    """Two paths of a constant rate that pass one bottleneck."""
    trace = str(ROOT / "traces" / "lab" / "12mbps.trace")
    path = {"technology": "wifi", "up": trace, "down": trace, "up_sha256": "a", "down_sha256": "a", "delay_ms": 10.0}
    return [path | {"name": name, "queue": "infinite", "settings": {"via": "core"}} for name in ("wifi", "lte")]


def test_a_long_download_over_a_constant_rate_is_a_steady_window_and_paths_via_one_bottleneck_share_it(
    tmp_path: Path,
) -> None:
    bulk = Exercise.of(plays(tmp_path / "bulk", 5, paths=lab_paths(), rct_s=[1.0] * 40, rebuffer_time_s=0.0))
    assert bulk.plays["windows in steady state"] == bulk.plays["flows in one queue"] == 5
    assert bulk.plays["windows at changing rates"] == 0
    short = Exercise.of(plays(tmp_path / "short", 5, paths=lab_paths(), rct_s=[1.0] * 20))
    idle = Exercise.of(plays(tmp_path / "idle", 5, paths=lab_paths(), rct_s=[1.0] * 40, rebuffer_time_s=30.0))
    moving = Exercise.of(plays(tmp_path / "moving", 5, rct_s=[1.0] * 40, rebuffer_time_s=0.0))
    assert {one.plays["windows in steady state"] for one in (short, idle, moving)} == {0}
    assert moving.plays["windows at changing rates"] == 5 and moving.plays["flows in one queue"] == 0


def test_the_verdict_names_what_the_change_touches_and_no_row_exercises(tmp_path: Path) -> None:
    def faster(run: FakeRun, drawn: random.Random) -> None:
        run.rct_s = [rct * 0.8 for rct in run.rct_s]

    rows = compare(*sides(tmp_path, faster), Floors(), 0.05)
    verdict = verdict_of(rows, changed=["transport/congestion/cubic.c", "README.md"])
    assert verdict.headline == "no regression in what these rows exercise, 1 row better"
    words = "transport/congestion changed, and no row exercises windows in steady state, flows in one queue"
    assert f"{words} (--suite congestion)." in output.markdown(verdict)
    other = verdict_of(rows, changed=["transport/reinjection/reinjection.c"])
    assert other.headline == "no regression, 1 row better" and "no row exercises" not in output.markdown(other)


def test_a_kind_of_change_names_a_folder_and_a_suite_that_are_there() -> None:
    for kind in KINDS:
        assert (ROOT / kind.room).is_dir() and find_suite(kind.suite).is_file()


# --- suites -----------------------------------------------------------------------------------------------------------


def test_a_suite_has_a_row_for_each_scheme_in_each_part() -> None:
    suite, document = load_suite(SUITES_DIR / "congestion.yaml")
    specs = runs_of(suite.model_copy(update={"schemes": suite.schemes[:1]}), document)
    queues = {spec.label: spec.bottlenecks[0].settings["queue"] for spec in specs}
    assert queues == {"sp--shallow": "droptail:packets=13", "sp--deep": "droptail:packets=106"}
    assert len(specs) == 2 * len(suite.seeds)
    assert places_of(specs).constant == {"lab-equal-12"}
    assert find_suite("default") == find_suite("mobility")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("seeds: 3", "3 seeds can show no significant difference; a suite needs 5 plays or more of each scheme."),
        ("schemes: [mptcp]", "'mptcp' needs a kernel"),
        ("arena: mpshell", "a suite runs in virtual time (kernel or sim), not in 'mpshell'"),
        ("floors: {rct_medan: 1}", "did you mean 'rct_median'?"),
        ("floors: {rct_p99: -1}", "floors.rct_p99"),
        ("alpha: 2", "alpha"),
        ("parts: [{key: a}, {key: a}]", "two parts have the same key; every part needs its own."),
    ],
)
def test_a_mistake_in_a_suite_is_one_sentence(tmp_path: Path, line: str, words: str) -> None:
    fields = {"name": "name: u", "pairs": "pairs: [subway-1]", "schemes": "schemes: [sp]", "seeds": "seeds: 9"}
    fields[line.partition(":")[0]] = line
    (tmp_path / "u.yaml").write_text("\n".join(fields.values()) + "\n")
    with pytest.raises(UserError, match=r"u.yaml:\d+: ") as caught:
        load_suite(tmp_path / "u.yaml")
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_fields_of_a_suite_are_documented() -> None:
    text = (ROOT / "docs" / "reference" / "gate.md").read_text()
    for name in (*Floors.model_fields, *(set(Suite.model_fields) - {"name", "description", "arena", "buffers"})):
        assert f"`{name}`" in text, name


# --- where two runs part ----------------------------------------------------------------------------------------------


def test_the_first_decision_that_differs_is_found(railyard: Railyard) -> None:
    a = railyard.run("vanilla-mp", "subway-1", duration_s=4)
    b = railyard.run("xlink", "subway-1", duration_s=4)
    assert parting(a.directory, railyard.run("vanilla-mp", "subway-1", duration_s=4).directory).kind == "identical"
    found = parting(a.directory, b.directory)
    assert found.kind == "decision" and found.number > 5
    assert isinstance(found.first, Decision) and isinstance(found.second, Decision)
    assert re.search(r"A at [\d.]+ s on path (wifi|lte): stream", str(found)), "paths have names"


def test_one_changed_decision_in_a_log_is_the_one_that_is_found(railyard: Railyard) -> None:
    a = railyard.run("xlink", "subway-1", duration_s=4)
    copy = a.directory.parent / "copy"
    shutil.copytree(a.directory, copy)
    [log] = copy.glob("qlog/*_server.sqlog")
    lines = log.read_text().splitlines(keepends=True)
    sent = [number for number, line in enumerate(lines) if '"frame_type":"stream"' in line and "packet_sent" in line]
    event = json.loads(lines[sent[40]].lstrip("\x1e"))
    wrong = 1 - event["data"]["path"]
    lines[sent[40]] = lines[sent[40]].replace(f'"path":{1 - wrong}', f'"path":{wrong}', 1)
    log.write_text("".join(lines))
    found = parting(a.directory, copy)
    assert isinstance(found.first, Decision) and isinstance(found.second, Decision)
    assert (found.kind, found.first.path, found.second.path) == ("decision", 1 - wrong, wrong)
    assert found.first.time_ms == found.second.time_ms == event["time"]
    log.write_text("".join(lines[: sent[20]]))
    cut = parting(a.directory, copy)
    assert cut.second is None and "has no further scheduling decision" in str(cut)
    log.write_text("".join(lines[:1]))
    with pytest.raises(UserError, match=f"^{log}: the qlog has no events; run it again.$"):
        parting(a.directory, copy)


def test_what_is_sent_at_the_moment_of_its_copy_is_no_copy_itself() -> None:
    def sent(path: int) -> dict[str, Any]:
        frame = {"frame_type": "stream", "stream_id": 4, "offset": 0, "length": 900}
        return {"time": 7.5, "name": "quic:packet_sent", "data": {"path": path, "frames": [frame]}}

    copied = {"stream_id": 4, "offset": 0, "why": "tail"}
    log = [sent(0), {"time": 7.5, "name": "xlink:reinjection", "data": copied}, sent(1), sent(0) | {"time": 9.0}]
    assert [one.why for one in decisions(log)] == ["new data", "re-injection, tail", "retransmission"]


def test_a_log_is_read_up_to_the_first_difference(railyard: Railyard) -> None:
    """Qlogs of an hour's play have gigabytes: none is held in memory, nor read beyond what decides."""
    a = railyard.run("vanilla-mp", "subway-1", duration_s=4).directory
    b = a.parent / "other"
    shutil.copytree(railyard.run("xlink", "subway-1", duration_s=4).directory, b)
    whole = parting(a, b)
    [log] = b.glob("qlog/*_server.sqlog")
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join([*lines[:-2], "{damaged\n", lines[-1]]))
    assert parting(a, b) == whole and whole.kind == "decision"
    with pytest.raises(UserError, match=r":\d+ is no event of a qlog"):
        parting(b, b)


def test_from_a_chunk_on_earlier_decisions_do_not_count(railyard: Railyard) -> None:
    """The copy differs in the first packets alone: in the chunk after them it is the same."""
    a = railyard.run("vanilla-mp", "subway-1", duration_s=4).directory
    copy = a.parent / "early"
    shutil.copytree(a, copy)
    [log] = copy.glob("qlog/*_server.sqlog")
    begin = '"frame_type":"stream","stream_id":0,"offset":'
    lines = log.read_text().splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if "packet_sent" in line and f"{begin}0," in line)
    lines[first] = lines[first].replace(f"{begin}0,", f"{begin}1,")
    log.write_text("".join(lines))
    assert parting(a, copy).kind == "decision"
    since = in_process.railyard("diff", str(a), str(copy), "--chunk", "1")
    assert since.returncode == 0 and "from chunk 1 on are the same" in since.stdout
    found = parting_from(a, railyard.run("xlink", "subway-1", duration_s=4).directory, 1, (4, 4))
    assert found.kind == "decision" and isinstance(found.first, Decision)
    assert "first scheduling decision from chunk 1 on that differs" in str(found)
    told = in_process.railyard("diff", str(a), str(copy), "--format", "json")
    assert told.returncode == 1
    rows = json.loads(told.stdout)
    assert [row["run"] for row in rows] == ["A", "B"] and rows[0]["differs"] == "decision"
    assert "bytes 0 to" in rows[0]["what"] and "bytes 1 to" in rows[1]["what"]
    one_sentence(in_process.railyard("diff", str(a), str(copy), "--chunk", "99"), "99")


def test_runs_without_a_qlog_have_no_diff(railyard: Railyard) -> None:
    run = railyard.run("sp", "subway-1", duration_s=2, qlog=False).directory
    with pytest.raises(UserError, match=f"there is no qlog of the server; `railyard repeat {run} --qlog --out DIR`"):
        parting(run, run)


@pytest.mark.parametrize(
    ("scheme", "sentence"),
    [("mptcp", "TCP and MPTCP write no qlogs."), ("stack", "a stack behind relays writes no qlogs.")],
)
@pytest.mark.parametrize("command", ["qlog RUN", "diff RUN RUN", "explain RUN"])
def test_no_repetition_is_advised_where_it_would_write_no_qlogs_either(
    make_campaign: Callable[..., Path], command: str, scheme: str, sentence: str
) -> None:
    [run] = (make_campaign(FakeRun(label=scheme, scheme=scheme)) / "runs").iterdir()
    told = in_process.railyard(*(str(run) if word == "RUN" else word for word in command.split()))
    one_sentence(told)
    assert sentence.rstrip(".") in told.stderr and "repeat" not in told.stderr
