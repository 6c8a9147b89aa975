"""The words of "n too small": the count, the missing number, and a setting that gives it when followed."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import FakeRun
from in_process import railyard
from railyard.figures.figure import Quantile
from railyard.figures.rows import GATED, rcts
from railyard.gate.compare import Comparison
from railyard.gate.output import Verdict
from railyard.gate.suite import find_suite, load_suite
from railyard.report import write_report
from railyard.results import differences, shortage
from railyard.results.records import Run, load_campaign
from railyard.stats.bootstrap import Layout
from railyard.stats.intervals import Interval, carries_ends
from railyard.stats.quantiles import Sample, carries, quantile
from railyard.stats.rates import Sums

Make = Callable[..., Path]


@pytest.mark.parametrize("q", [0.5, 0.95, 0.99])
@pytest.mark.parametrize("requests", [1, 5, 43, 71, 367])
def test_so_many_seeds_as_are_named_carry_the_quantile(q: float, requests: int) -> None:
    found = shortage.of_values(q, requests, "requests", seeds=1)
    is_carried = Quantile(rcts, q).carries
    assert (found is None) == is_carried(requests)
    if found is not None:
        seeds = int(found.setting.removeprefix("seeds: "))
        assert is_carried(requests * seeds) and not is_carried(requests * (seeds - 1))
        assert f"({requests} of {found.needed} requests; {found.needed - requests} more: seeds: {seeds})" in str(found)


@pytest.mark.parametrize("pairs", [1, 2, 3, 4])
def test_so_many_places_as_are_named_give_an_interval(pairs: int) -> None:
    def layout(seeds: int) -> Layout:
        return Layout(tuple(tuple(range(k * seeds, (k + 1) * seeds)) for k in range(pairs)), (1,) * pairs, fixed=True)

    found = shortage.of_windows(layout(1))
    assert found is not None and found.setting.endswith(" with start_offset_ms: spread")
    seeds = int(found.setting.split()[1])
    assert carries_ends(layout(seeds)) and not carries_ends(layout(seeds - 1))


def test_a_rate_of_few_stalls_names_the_seeds_that_would_bring_five() -> None:
    layout = Layout((tuple(range(10)),), (1,))
    sums = Sums.of([1.0] * 2 + [0.0] * 8, [10.0] * 10)
    found = shortage.of_rate(sums, layout, Interval.alone(0.02))
    assert str(found) == (
        "n too small (2 of 5 stretches of trace that stall; 3 more: seeds: 25 with start_offset_ms: spread)"
    )
    assert shortage.of_rate(sums, layout, Interval(0.02, 0.01, 0.03)) is None


@pytest.mark.parametrize(("q", "plays", "needed"), [(0.5, 10, 13), (0.95, 40, 129)])
def test_values_that_are_alike_within_a_play_are_short_of_plays(q: float, plays: int, needed: int) -> None:
    """Ten requests of a play take the same time, so a p95 depends on few plays: of 40 on two. More plays bring more of
    them, and so need a smaller margin for few."""

    def sample(plays: int) -> Sample:
        return Sample.of([[float(play)] * 10 for play in range(plays)], Layout.of_independent(plays))

    interval = quantile(sample(plays), q)
    assert interval is not None
    found = shortage.of_sample(sample(plays), q, interval, "requests", seeds=plays)
    assert found is not None and (found.count, found.needed) == (plays, needed)
    assert carries(sample(needed), q) and not carries(sample(plays), q)
    share = replace(interval, value=1 - interval.value)  # as efficiency has it, of which higher is better
    assert shortage.of_sample(sample(plays), q, share, "requests", seeds=plays) == found


def test_where_plays_overlap_more_of_them_are_not_asked_for() -> None:
    two = Layout((tuple(range(6)), tuple(range(6, 12))), (6, 6))
    assert str(shortage.of_windows(two)) == "n too small (2 of 6 windows of trace; 4 more: 6 pairs instead of 2)"


@pytest.mark.parametrize(
    ("starts_s", "remedy"),
    [
        ([0, 6, 12, 18], "more pairs, or a shorter player.duration_s"),
        ([0, 6.667, 20], "more pairs, or a shorter player.duration_s"),  # one of four is missing, the rest is rounded
        ([0, 6, 7.7, 18, 19], "start_offset_ms: spread, or more pairs, or a shorter player.duration_s"),
        ([41, 44.2], "seeds: 5 with start_offset_ms: spread, or more pairs, or a shorter player.duration_s"),
        ([30, 30, 30], "seeds: 5 with start_offset_ms: spread, or more pairs, or a shorter player.duration_s"),
        ([41], "seeds: 5 with start_offset_ms: spread"),
    ],
)
def test_plays_that_overlap_because_their_starts_are_drawn_are_to_be_spread(
    make_campaign: Make, starts_s: list[float], remedy: str
) -> None:
    made = [
        FakeRun(seed=seed, start_offset_ms=round(1000 * start), rct_s=[5.0] * 4) for seed, start in enumerate(starts_s)
    ]
    layout = differences.layout_of(load_campaign(make_campaign(*made))[1])
    found = shortage.of_windows(layout)
    assert found is not None and found.setting == remedy


def plays(make_campaign: Make, places: int) -> tuple[Path, list[Run]]:
    made = [
        FakeRun(label=label, scheme=label, seed=seed, start_offset_ms=60_000 * seed, rct_s=[scale * 0.1 * seed] * 12)
        for label, scale in (("sp", 2.0), ("xlink", 1.0))
        for seed in range(1, places + 1)
    ]
    out = make_campaign(*made)
    return out, load_campaign(out)[1]


def test_each_place_that_says_n_too_small_says_what_is_short(make_campaign: Make) -> None:
    """Report, table and `compare`, of plays that are too few for anything."""
    out, runs = plays(make_campaign, 2)
    page = write_report(*load_campaign(out), out).read_text()
    compared = railyard("compare", str(out)).stdout
    table = railyard("show", str(out)).stdout
    for said in (page, compared, table):
        assert "windows of trace; 3 more: seeds: 5 with start_offset_ms: spread" in " ".join(said.split())
        assert "requests; 48 more: seeds: 6" in " ".join(said.split()), "of the p95: 24 of 72"
    assert differences.too_small(runs).startswith("n too small (2 of 5 windows of trace; 3 more: seeds: 5 with ")


def test_sentences_of_a_note_have_a_space_between_them(make_campaign: Make) -> None:
    """The median has an interval, the p95 none."""
    made = [
        FakeRun(seed=seed, start_offset_ms=60_000 * seed, rct_s=[0.1 * (seed + chunk) for chunk in range(12)])
        for seed in range(6)
    ]
    out = make_campaign(*made)
    page = write_report(*load_campaign(out), out).read_text()
    assert "maxima are of these plays. n too small: RCT p95 (6 of 8 windows of trace; " in page


@pytest.mark.parametrize("stalled_s", [0.0, 2.0])
def test_show_says_once_that_plays_are_too_few_to_decide_elsewhere(make_campaign: Make, stalled_s: float) -> None:
    made = [FakeRun(rebuffer_time_s=stalled_s), FakeRun(rebuffer_time_s=stalled_s / 2, label="sp", scheme="sp")]
    shown = " ".join(railyard("show", str(make_campaign(*made))).stdout.split())
    assert shown.count("at other places is not decided") == 1, shown


def test_the_gate_says_how_many_plays_an_interval_needs() -> None:
    """With five plays the rarest result of the signed-rank test has p = 6 %."""
    suite, _ = load_suite(find_suite("default"))
    few = Comparison(GATED[0], [1.0] * 5, [1.1, 1.2, 1.1, 1.3, 1.2], 0.02)
    enough = replace(few, before=[1.0] * 6, after=[*few.after, 1.1])

    def legend(comparison: Comparison) -> str:
        class Row:
            comparisons = (comparison,)
            after = comparison.after

        return Verdict(suite, "A", "B", [Row()], {}, 0.0).legend  # type: ignore[list-item]

    assert legend(few).endswith("n too small: RCT median (5 of 6 plays; 1 more: seeds: 6).")
    assert "n too small" not in legend(enough) and enough.interval.known
