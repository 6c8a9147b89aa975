"""Findings in sentences: each agrees with the figures, also if multipath loses. And columns."""

import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import FakeRun
from railyard.figures.figure import Figure
from railyard.figures.rows import RCT_P95, RCT_P99, REBUFFER_RATE
from railyard.report import write_report
from railyard.results import differences
from railyard.results.aggregate import cells
from railyard.results.findings import Findings, _rates, compared, find
from railyard.results.records import load_campaign
from railyard.results.tables import columns_of, same_in_words
from railyard.stats.intervals import TOO_SMALL, Interval

Make = Callable[..., Path]
SCHEMES = {"sp": "sp", "sp:lte": "sp", "cm": "cm", "vanilla-mp": "vanilla-mp", "xlink": "xlink"}


def played(label: str, stalled_s: float, tail_s: float, outcome: str = "complete", pair: str = "p1") -> FakeRun:
    """Eighty requests, of which the eight longest take tail_s."""
    primary = "lte" if label == "sp:lte" else "wifi"
    rct_s = [0.1] * 72 + [tail_s] * 8
    return FakeRun(
        pair=pair, label=label, scheme=SCHEMES[label], primary=primary, rct_s=rct_s, rebuffer_time_s=stalled_s,
        outcome=outcome,
    )  # fmt: skip


def found(make_campaign: Make, *runs: FakeRun) -> Findings:
    findings = find(load_campaign(make_campaign(*runs))[1])
    assert findings is not None
    return findings


def at_places(play: FakeRun, places: int = 12, spread: float = 0.1) -> list[FakeRun]:
    """The same play at many independent places, whose figures vary randomly."""
    plays = []
    for seed in range(1, places + 1):
        drawn = random.Random(f"{play.label} {seed}")
        luck = 1 + spread * drawn.uniform(-1, 1)
        plays.append(
            replace(
                play,
                seed=seed,
                start_offset_ms=60_000 * seed,
                rct_s=[rct * luck * drawn.uniform(0.95, 1.05) for rct in play.rct_s],
                rebuffer_time_s=play.rebuffer_time_s * luck,
            )
        )
    return plays


def sentences(make_campaign: Make, *plays: FakeRun, spread: float = 0.1) -> list[str]:
    runs = [run for play in plays for run in at_places(play, spread=spread)]
    return found(make_campaign, *runs).of_pair["p1"]


# --- too few plays: figures, and no verdict ---------------------------------------------------------------------------


def test_of_few_plays_the_figures_are_told_and_nothing_is_decided(make_campaign: Make) -> None:
    """A factor of eight between two plays is no evidence for other places."""
    runs = [played("sp", 8.0, 2.0, "time_limit"), played("vanilla-mp", 3.0, 1.0), played("xlink", 0.5, 0.4)]
    again = [
        played("sp", 1.0, 2.0, pair="p2"),
        played("vanilla-mp", 0.0, 1.0, pair="p2"),
        played("xlink", 0.0, 0.4, pair="p2"),
    ]
    findings = found(make_campaign, *runs, *again)
    assert findings.headline == (
        "Stalled in all, in 2 plays for each scheme: xlink 0.5 s, vanilla-mp 3.0 s, sp ≥ 9.0 s. Which scheme stalls "
        "least at other places is not decided: n too small (2 of 6 windows of trace; 4 more: seeds: 3 with "
        "start_offset_ms: spread)."
    )
    assert findings.of_pair["p1"] == [
        "Single path on wifi (sp): ≥ 8.0 s stalled, p95 2.00 s; vanilla-mp: 3.0 s stalled, p95 1.00 s; xlink: 0.5 s "
        "stalled, p95 0.40 s.",
        "Which scheme is better is not decided: n too small (1 of 5 windows of trace; 4 more: seeds: 5 with "
        "start_offset_ms: spread).",
    ]
    said = " ".join([findings.headline, *findings.of_pair["p1"]])
    assert not any(word in said for word in ("helps", "does harm", "shortens", "as well as")), "no rule of thumb"


def test_a_rate_without_an_interval_is_marked_as_a_bound() -> None:
    levels: dict[str, Interval | None]
    levels = {"sp": replace(Interval.alone(1.2), at_least=True), "xlink": Interval.alone(0.05)}
    assert _rates(levels, ["xlink", "sp"], "", None).endswith("n too small: xlink 5.0, sp ≥ 120.0")


def test_where_nothing_stalls_no_scheme_is_praised_for_it(make_campaign: Make) -> None:
    findings = found(make_campaign, played("sp", 0.0, 0.5), played("vanilla-mp", 0.0, 0.5), played("xlink", 0.0, 0.5))
    assert findings.headline.startswith("No scheme stalled, ")


def test_a_scheme_that_never_connected_is_told_and_not_dropped(make_campaign: Make) -> None:
    never = FakeRun(
        pair="p1", label="sp", scheme="sp", outcome="time_limit", rct_s=[], first_frame_s=None, rebuffer_time_s=20.0
    )
    findings = found(make_campaign, never, played("xlink", 1.0, 0.5))
    assert "sp ≥ 20.0 s" in findings.headline
    assert "(sp): ≥ 20.0 s stalled, no request sent; xlink: 1.0 s stalled" in findings.of_pair["p1"][0]
    assert findings.of_pair["p1"][-1] == (
        "Plays that failed, each with its time limit as a lower bound in every figure: sp 1 of 1, xlink 0 of 1."
    )


# --- enough plays: the one comparison code decides --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("vanilla", "xlink", "verdict"),
    [
        ((9.0, 3.0), (9.0, 3.0), "does not hold."),
        ((9.0, 3.0), (2.0, 1.0), "partly, with xlink, not with vanilla-mp."),
        ((2.0, 1.0), (1.0, 1.0), "holds."),
    ],
)
def test_multipath_is_better_only_with_the_schemes_of_which_that_is_established(
    make_campaign: Make, vanilla: tuple[float, float], xlink: tuple[float, float], verdict: str
) -> None:
    [against, _] = sentences(
        make_campaign, played("sp", 5.0, 2.0), played("vanilla-mp", *vanilla), played("xlink", *xlink)
    )
    assert re.match(
        r"Multipath is better than single path on wifi \(rebuffer rate 5\d\.\d % \[.*\], RCT p95 .* s \[.*\]\): "
        + re.escape(verdict),
        against,
    ), against


def test_a_difference_of_a_third_that_varies_as_much_is_not_decided_and_the_runs_that_would_do_are_told(
    make_campaign: Make,
) -> None:
    """The rule of 10 % called this a help."""
    runs = []
    for seed in range(1, 9):
        drawn = random.Random(seed)
        for label in ("sp", "xlink"):
            scale = (1.0 if label == "sp" else 0.75) * drawn.lognormvariate(0, 0.8)
            runs.append(replace(played(label, 3.0 * scale, scale), seed=seed, start_offset_ms=60_000 * seed))
    findings = found(make_campaign, *runs)
    [against] = findings.of_pair["p1"]
    assert "): not decided. Difference to it: xlink: rebuffer rate " in against
    assert re.search(r"Some \d+ runs instead of 8 would decide what is open with probability 80 %", against), against
    assert findings.headline.startswith("Which scheme stalls least is not decided. ")


def test_one_figure_decides_a_scheme_and_the_slowest_scheme_decides_the_claim(make_campaign: Make) -> None:
    runs = []
    for seed in range(201, 209):
        drawn = random.Random(seed)
        for label, factor in (("sp", 1.0), ("vanilla-mp", 0.8), ("xlink", 0.7)):
            stalled_s, tail_s = (factor * drawn.lognormvariate(0, spread) for spread in (0.6, 0.9))
            runs.append(replace(played(label, 3 * stalled_s, tail_s), seed=seed, start_offset_ms=60_000 * seed))
    loaded = load_campaign(make_campaign(*runs))[1]
    by_comparison, findings = compared(loaded), find(loaded)
    needs = [
        sorted(by_comparison["p1", label, "sp"][figure.name].needs_here[0] for figure in (REBUFFER_RATE, RCT_P95))
        for label in ("vanilla-mp", "xlink")
    ]
    assert all(0 < fewest < most for fewest, most in needs) and needs[0][0] != needs[1][0]
    assert findings is not None
    [against, *_] = findings.of_pair["p1"]
    assert f"Some {max(fewest for fewest, _ in needs)} runs instead of 8 would" in against


def test_schemes_that_play_the_same_are_not_called_better(make_campaign: Make) -> None:
    runs = [
        replace(run, label=label, scheme=label)
        for run in at_places(played("vanilla-mp", 2.0, 1.0))
        for label in ("vanilla-mp", "xlink")
    ]
    [sentence] = found(make_campaign, *runs).of_pair["p1"]
    assert sentence.startswith("Re-injection as in xlink is better than none (vanilla-mp): does not hold. ")
    assert "(alike)" in sentence and sentence.endswith(" It costs 5.0 % [5.0, 5.0] more bytes.")


@pytest.mark.parametrize(
    ("vanilla", "xlink", "words"),
    [
        ((4.0, 2.0), (1.0, 0.5), "holds."),
        ((4.0, 2.0), (4.0, 0.5), "holds."),
        ((1.0, 0.5), (4.0, 2.0), "does not hold."),
        ((4.0, 0.5), (1.0, 2.0), "does not hold."),
    ],
)
def test_reinjection_is_judged_by_stalls_and_tail(
    make_campaign: Make, vanilla: tuple[float, float], xlink: tuple[float, float], words: str
) -> None:
    [sentence] = sentences(make_campaign, played("vanilla-mp", *vanilla), played("xlink", *xlink))
    assert sentence.startswith(f"Re-injection as in xlink is better than none (vanilla-mp): {words}")


def test_multipath_is_compared_with_each_single_path(make_campaign: Make) -> None:
    [wifi, lte] = sentences(
        make_campaign, played("sp", 5.0, 2.0), played("sp:lte", 0.5, 0.3), played("xlink", 1.0, 0.9)
    )
    assert wifi.startswith("Multipath is better than single path on wifi (") and "): holds. " in wifi
    assert lte.startswith("Multipath is better than single path on lte (") and "): does not hold. " in lte


def test_who_stalls_least_is_established_against_all_others(make_campaign: Make) -> None:
    far = [played("sp", 8.0, 2.0), played("vanilla-mp", 4.0, 1.0), played("xlink", 0.5, 0.4)]
    headline = found(make_campaign, *(run for play in far for run in at_places(play))).headline
    assert headline.startswith("xlink stalls least. Rebuffer rate in %, with its interval for these traces: xlink 5.")


def test_a_scheme_that_may_stall_as_little_is_named_beside_the_least(make_campaign: Make) -> None:
    near = [played("sp", 8.0, 2.0), played("vanilla-mp", 1.02, 1.0), played("xlink", 1.0, 1.0)]
    headline = found(make_campaign, *(run for play in near for run in at_places(play, spread=0.4))).headline
    assert re.match(r"(xlink|vanilla-mp) stalls least; that (xlink|vanilla-mp) stalls more is not decided\. ", headline)


def test_the_sentences_and_the_table_of_differences_say_the_same(make_campaign: Make) -> None:
    plays = [played("sp", 5.0, 2.0), played("vanilla-mp", 4.0, 1.9), played("xlink", 1.0, 0.5)]
    out = make_campaign(*(run for play in plays for run in at_places(play)))
    _, runs = load_campaign(out)
    findings = find(runs)
    assert findings is not None
    told = " ".join(findings.of_pair["p1"])
    of_pair = differences.differences(runs, [("xlink", "sp"), ("vanilla-mp", "sp")], by_pair=True)
    rows = [one for one in of_pair if one.figure.name == "rebuffer_rate" and one.pair == "p1"]
    assert [one.label for one in rows] == ["xlink", "vanilla-mp"]
    assert all(f"{one.label}: rebuffer rate {one.words_here} ({one.verdict})" in told for one in rows)


@pytest.mark.parametrize(
    ("stalled_s", "words"),
    [
        ([1.0] * 6, "holds"),
        ([1.0, 1.0, 1.0, 1.0, 4.4, 5.6], "holds for these traces"),
        ([9.0] * 6, "does not hold"),
        ([9.0, 9.0, 9.0, 9.0, 5.6, 4.4], "does not hold for these traces"),
        ([1.0] * 4, "holds for these traces"),
        ([9.0] * 2, "does not hold for these traces"),
    ],
)
def test_a_claim_that_pairs_like_these_do_not_establish_says_so(
    make_campaign: Make, stalled_s: list[float], words: str
) -> None:
    """Pairs on which the other scheme stalls for 5 s. If they differ much, or are fewer than five, other pairs may give
    another verdict."""
    runs = [
        run
        for number, ours_s in enumerate(stalled_s)
        for label, time_s in (("sp", 5.0), ("vanilla-mp", 5.0), ("xlink", ours_s))
        for run in at_places(played(label, time_s, 1.0, pair=f"p{number}"), places=4)
    ]
    findings = found(make_campaign, *runs)
    assert f"Re-injection is better than none (vanilla-mp): {words} (xlink: " in " ".join(findings.answers)
    told = " ".join(findings.of_pair["Over all pairs"])
    assert f"Re-injection as in xlink is better than none (vanilla-mp): {words}. " in told


def test_a_scheme_under_which_every_play_failed_has_no_rebuffer_rate_and_is_compared_by_its_tail(
    make_campaign: Make,
) -> None:
    never = FakeRun(
        pair="p1", label="sp", scheme="sp", outcome="connect_failed", rct_s=[], unfinished_s=[60.0] * 8,
        first_frame_s=None, play_time_s=0.0, rebuffer_time_s=0.0,
    )  # fmt: skip
    runs = [replace(never, seed=seed, start_offset_ms=60_000 * seed) for seed in range(1, 13)]
    sentence, failed = found(make_campaign, *runs, *at_places(played("xlink", 1.0, 0.5))).of_pair["p1"]
    assert "(rebuffer rate –, " in sentence and "): holds. " in sentence and "rebuffer rate – (no value)" in sentence
    assert failed.endswith(": sp 12 of 12, xlink 0 of 12.")


@pytest.mark.parametrize("pairs", [("p1",), ("p1", "p2", "p3")])
def test_where_every_play_of_every_scheme_failed_the_brief_answer_says_so(
    make_campaign: Make, pairs: tuple[str, ...]
) -> None:
    never = FakeRun(
        outcome="connect_failed", rct_s=[], unfinished_s=[60.0] * 8, first_frame_s=None,
        play_time_s=0.0, rebuffer_time_s=0.0,
    )  # fmt: skip
    runs = [
        replace(never, pair=pair, label=label, scheme=label, seed=seed, start_offset_ms=60_000 * seed)
        for pair in pairs
        for label in ("sp", "xlink")
        for seed in range(1, 13)
    ]
    findings = found(make_campaign, *runs)
    plays = 12 * len(pairs)
    assert findings.answers[-1].endswith(f": sp {plays} of {plays}, xlink {plays} of {plays}.")
    assert findings.answers[-1] == findings.of_pair["p1" if len(pairs) == 1 else "Over all pairs"][-1]
    assert ". No play showed a frame, so none has a rebuffer rate. Over " in findings.headline


# --- what is left out -------------------------------------------------------------------------------------------------


def test_a_scheme_whose_every_run_is_void_is_named_and_not_compared(make_campaign: Make) -> None:
    void = FakeRun(pair="p1", label="xlink", void=True)
    told = found(make_campaign, played("sp", 5.0, 2.0), played("vanilla-mp", 1.0, 1.0), void).of_pair["p1"]
    assert told[-1] == "Without a valid run, and not compared: xlink."
    assert not any("xlink:" in sentence for sentence in told)


def test_a_scheme_whose_program_failed_is_named_and_not_compared(make_campaign: Make) -> None:
    crashed = played("xlink", 0.0, 0.1, "player_failed")
    findings = found(make_campaign, played("sp", 5.0, 2.0), played("vanilla-mp", 1.0, 1.0), crashed)
    assert ": vanilla-mp 1.0 s, sp 5.0 s. " in findings.headline
    assert findings.headline.endswith(" Not compared on every pair: xlink.")
    assert findings.of_pair["p1"][-1] == "A program failed, and not compared: xlink."


def test_the_headline_names_the_schemes_that_it_leaves_out(make_campaign: Make) -> None:
    void = FakeRun(pair="p2", label="xlink", void=True)
    runs = [played(label, 1.0, 1.0, pair=pair) for pair in ("p1", "p2") for label in ("sp", "vanilla-mp")]
    headline = found(make_campaign, *runs, played("xlink", 0.0, 0.1), void).headline
    assert headline.endswith(" Not compared on every pair: xlink.")


def test_the_headline_names_a_scheme_that_is_void_everywhere(make_campaign: Make) -> None:
    void = FakeRun(pair="p1", label="mptcp", scheme="mptcp", void=True)
    headline = found(make_campaign, played("sp", 2.0, 1.0), played("xlink", 0.0, 0.1), void).headline
    assert headline.endswith(" Not compared on every pair: mptcp.")


def test_a_pair_on_which_nothing_can_be_compared_is_named_too(make_campaign: Make) -> None:
    void = FakeRun(pair="p2", label="xlink", void=True)
    runs = [played("sp", 5.0, 2.0), played("xlink", 1.0, 1.0), played("sp", 1.0, 1.0, pair="p2"), void]
    told = found(make_campaign, *runs).of_pair["p2"]
    assert told[0].startswith("Nothing is compared here: ") and "Without a valid run" in told[1]


def test_only_seeds_are_compared_that_every_scheme_has(make_campaign: Make) -> None:
    def seeded(label: str, seed: int, stalled_s: float, *, void: bool = False) -> FakeRun:
        run = played(label, stalled_s, 0.5)
        run.seed, run.void = seed, void
        return run

    runs = [seeded("sp", 1, 1.0), seeded("sp", 2, 9.0), seeded("xlink", 1, 1.0), seeded("xlink", 2, 9.0, void=True)]
    findings = found(make_campaign, *runs)
    assert findings.headline.startswith("Stalled in all, in 1 play for each scheme: sp 1.0 s, xlink 1.0 s.")
    assert findings.of_pair["p1"][-1].startswith("Compared over the 1 of 2 seeds whose runs are valid")


def test_first_frames_that_differ_are_told_since_no_stall_counts_them(make_campaign: Make) -> None:
    late, soon = played("sp", 0.0, 0.5), played("xlink", 0.0, 0.5)
    late.first_frame_s = 7.5
    sentence = found(make_campaign, late, soon).of_pair["p1"][-1]
    assert sentence == "First frame after 0.40 s (xlink) to 7.50 s (sp); waiting for it is not a stall."


def test_there_is_no_sentence_where_there_is_nothing_to_compare(make_campaign: Make) -> None:
    assert find(load_campaign(make_campaign(FakeRun()))[1]) is None


@pytest.mark.parametrize(("figure", "least"), [(RCT_P95, 72), (RCT_P99, 368)])
def test_a_quantile_is_printed_only_where_its_order_statistics_lie_within_the_sample(
    make_campaign: Make, figure: Figure, least: int
) -> None:
    for count in (least - 1, least):
        values = [number / 100 for number in range(1, count + 1)]
        [cell] = cells(load_campaign(make_campaign(FakeRun(seed=count, rct_s=values)))[1])["subway-1"]
        cell = cell if len(cell.chunks) == count else type(cell)(cell.pair, cell.label, cell.runs[-1:], [])
        assert (figure.text(cell.runs) == TOO_SMALL) == (count < least)


def test_columns_that_are_equal_in_all_rows_are_told_once(make_campaign: Make) -> None:
    out = make_campaign(played("sp", 5.0, 2.0), played("xlink", 1.0, 0.5))
    row = cells(load_campaign(out)[1])["p1"]
    shown_columns, same = columns_of(row)
    assert [column.name for column in shown_columns] == ["RCT s p95", "RCT s max", "rebuffer rate"]
    assert "outcome complete" in same_in_words(same) and "chunks 80" in same_in_words(same)
    page = write_report(*load_campaign(out), out).read_text()
    assert "Equal in all rows: RCT s median 0.100" in page and "RCT s<br>p95</th>" in page and "p99</th>" not in page
    assert "RCT s p99 n too small (80 of 368 requests; 288 more: seeds: 5)" in page
    assert "Stalled in all" in page.split("<table")[0], "the answer stands above the first table"


def test_multipath_schemes_are_compared_with_each_single_path_and_migration_is_none_of_them(
    make_campaign: Make,
) -> None:
    plays = (played("sp", 5.0, 2.0), played("sp:lte", 6.0, 2.5), played("cm", 1.0, 0.5), played("xlink", 1.0, 0.5))
    on_wifi, on_lte = sentences(make_campaign, *plays)
    for path, sentence in (("wifi", on_wifi), ("lte", on_lte)):
        assert sentence.startswith(f"Multipath is better than single path on {path} (") and "holds." in sentence
        assert "Difference to it: xlink: " in sentence and "cm: " not in sentence


@pytest.mark.parametrize(
    ("places", "begin"),
    [
        (4, "Which scheme is better is not decided: n too small (4 of 5 windows of trace; 1 more"),
        (5, "Multipath is better than single path on wifi ("),
    ],
)
def test_five_places_are_judged_and_four_are_not(make_campaign: Make, places: int, begin: str) -> None:
    plays = (played("sp", 5.0, 2.0), played("xlink", 1.0, 0.5))
    told = found(make_campaign, *(run for play in plays for run in at_places(play, places))).of_pair["p1"]
    assert told[-1].startswith(begin)


def test_a_quantile_of_requests_has_no_column_where_nothing_was_requested(make_campaign: Make) -> None:
    never = [replace(played(label, 0.0, 0.0, "time_limit"), rct_s=[], first_frame_s=None) for label in ("sp", "xlink")]
    names = {column.name for of in columns_of(cells(load_campaign(make_campaign(*never))[1])["p1"]) for column in of}
    assert "RCT s p95" not in names and {"RCT s median", "first frame s"} <= names


def test_the_abstract_leaves_out_what_is_equal_in_all_rows_and_what_a_scheme_does_not_carry(
    make_campaign: Make,
) -> None:
    few = FakeRun(pair="p1", label="sp", scheme="sp", rct_s=[0.1] * 15 + [3.0], rebuffer_time_s=0.0)
    out = make_campaign(few, played("vanilla-mp", 0.0, 1.0), played("xlink", 0.0, 0.5))
    page = write_report(*load_campaign(out), out).read_text()
    table = page.split('<table class="abstract"')[1].split("</table>")[0]
    assert "rebuffer rate</th>" not in table and "Equal in all rows: p1: rebuffer rate 0.0 %" in page
    [single] = [row for row in table.split("<tr>") if 'scope="row">sp<' in row]
    cells = re.findall(r"<td[^>]*>(.*?)</td>", single)
    assert cells == ["<b>0.100</b>", "n too small", "3.000"], "sixteen requests carry no p95"
