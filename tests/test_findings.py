"""What came out, in sentences: each says what the figures say, also where multipath loses. And columns."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import FakeRun
from railyard.report import write_report
from railyard.results.aggregate import cells
from railyard.results.findings import Findings, carries, find, shown
from railyard.results.records import load_campaign
from railyard.results.tables import columns_of, same_in_words

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
    findings = find(cells(load_campaign(make_campaign(*runs))[1]))
    assert findings is not None
    return findings


def test_who_stalled_least_comes_first_and_a_play_that_was_cut_counts_at_least_so_much(make_campaign: Make) -> None:
    runs = [played("sp", 8.0, 2.0, "time_limit"), played("vanilla-mp", 3.0, 1.0), played("xlink", 0.5, 0.4)]
    again = [
        played("sp", 1.0, 2.0, pair="p2"),
        played("vanilla-mp", 0.0, 1.0, pair="p2"),
        played("xlink", 0.0, 0.4, pair="p2"),
    ]
    headline = found(make_campaign, *runs, *again).headline
    assert headline.startswith("xlink stalled least, in 2 plays for each scheme. ")
    assert headline.endswith("xlink 0.5 s, vanilla-mp 3.0 s, sp ≥ 9.0 s.")


def test_a_scheme_that_stalls_alike_is_named_beside_the_least(make_campaign: Make) -> None:
    runs = [played("sp", 5.0, 2.0), played("vanilla-mp", 1.05, 1.0), played("xlink", 1.0, 1.0)]
    assert found(make_campaign, *runs).headline.startswith("xlink and vanilla-mp stalled least, ")


def test_where_nothing_stalls_no_scheme_is_praised_for_it(make_campaign: Make) -> None:
    findings = found(make_campaign, played("sp", 0.0, 0.5), played("vanilla-mp", 0.0, 0.5), played("xlink", 0.0, 0.5))
    assert findings.headline.startswith("No scheme stalled, ")
    [against, reinjection] = findings.of_pair["p1"]
    assert "multipath does not help" in against and "makes no difference beyond 10 %" in reinjection


@pytest.mark.parametrize(
    ("vanilla", "xlink", "words"),
    [
        ((9.0, 3.0), (9.0, 3.0), "multipath does not help, and does harm with vanilla-mp, xlink."),
        ((9.0, 3.0), (2.0, 3.0), "multipath helps with xlink only, and does harm with vanilla-mp."),
        ((2.0, 1.0), (1.0, 1.0), "multipath helps."),
        ((5.0, 2.0), (5.0, 1.0), "multipath helps with xlink only."),
    ],
)
def test_multipath_is_said_to_help_only_with_the_schemes_that_do_better(
    make_campaign: Make, vanilla: tuple[float, float], xlink: tuple[float, float], words: str
) -> None:
    runs = [played("sp", 5.0, 2.0), played("vanilla-mp", *vanilla), played("xlink", *xlink)]
    [against, _] = found(make_campaign, *runs).of_pair["p1"]
    assert against.startswith(f"Against single path on wifi (5.0 s stalled, p95 2.00 s) {words}")


@pytest.mark.parametrize(
    ("vanilla", "xlink", "words"),
    [
        ((4.0, 2.0), (1.0, 0.5), "helps, for 5.0 % more bytes"),
        ((4.0, 2.0), (4.0, 0.5), "helps"),
        ((1.0, 0.5), (4.0, 2.0), "does harm, for 5.0 % more bytes"),
        ((4.0, 0.5), (1.0, 2.0), "shortens the stalls and lengthens the tail"),
        ((1.0, 2.0), (4.0, 0.5), "shortens the tail and lengthens the stalls"),
        ((1.0, 0.50), (1.05, 0.54), "makes no difference beyond 10 %"),
    ],
)
def test_reinjection_is_judged_by_stalls_and_tail(
    make_campaign: Make, vanilla: tuple[float, float], xlink: tuple[float, float], words: str
) -> None:
    [sentence] = found(make_campaign, played("vanilla-mp", *vanilla), played("xlink", *xlink)).of_pair["p1"]
    assert sentence.startswith(f"Re-injection {words}")


@pytest.mark.parametrize(
    ("lte", "words"),
    [
        ((0.0, 0.2), "does better than every multipath scheme"),
        ((1.0, 0.5), "does as well as xlink: multipath helps only if the good path is not known."),
        ((6.0, 3.0), "does worse than xlink: neither path is enough by itself."),
    ],
)
def test_the_other_path_alone_is_compared_with_the_best_of_multipath(
    make_campaign: Make, lte: tuple[float, float], words: str
) -> None:
    runs = [played("sp", 5.0, 2.0), played("sp:lte", *lte), played("vanilla-mp", 2.0, 1.0), played("xlink", 1.0, 0.5)]
    sentence = found(make_campaign, *runs).of_pair["p1"][-1]
    assert sentence.startswith("Single path on lte alone (") and words in sentence


def test_of_two_tails_that_are_both_lower_bounds_nobody_knows_which_is_longer(make_campaign: Make) -> None:
    def cut(label: str, waited_s: float, stalled_s: float) -> FakeRun:
        run = played(label, stalled_s, 0.1, "time_limit")
        run.unfinished_s = [waited_s] * 8
        return run

    alike, longer = cut("vanilla-mp", 9.0, 5.1), cut("xlink", 1.0, 9.0)
    against, reinjection = found(make_campaign, cut("sp", 3.0, 5.0), alike, longer).of_pair["p1"]
    assert "multipath is not seen to help, and does harm with xlink; with vanilla-mp this is open" in against
    words = "Re-injection lengthens the stalls, for 5.0 % more bytes; its effect on the tail is open, because the time"
    assert reinjection.startswith(words), "both plays were cut after the same time"


def test_a_scheme_whose_every_run_is_void_is_named_and_not_compared(make_campaign: Make) -> None:
    void = FakeRun(pair="p1", label="xlink", void=True)
    sentences = found(make_campaign, played("sp", 5.0, 2.0), played("vanilla-mp", 1.0, 1.0), void).of_pair["p1"]
    assert sentences[-1] == "Without a valid run, and not compared: xlink."
    assert not any("Re-injection" in sentence for sentence in sentences)


def test_a_play_that_was_cut_is_not_said_to_have_stalled_less_than_one_that_played_to_the_end(
    make_campaign: Make,
) -> None:
    runs = [played("sp", 1.0, 2.0, "time_limit"), played("vanilla-mp", 3.0, 1.0), played("xlink", 3.0, 1.0)]
    findings = found(make_campaign, *runs)
    assert findings.headline.startswith(
        "Which scheme stalled least is open, in 1 play for each scheme: the time limit ended plays. "
    )
    assert "whether multipath helps is open, because the time limit ended plays." in findings.of_pair["p1"][0]


def test_the_least_of_plays_that_were_all_cut_is_the_least_up_to_the_limit(make_campaign: Make) -> None:
    runs = [played("sp", 9.0, 2.0, "time_limit"), played("xlink", 4.0, 1.0, "time_limit")]
    assert found(make_campaign, *runs).headline.startswith("xlink stalled least, up to the time limit, in 1 play")


def test_a_connection_that_was_lost_early_is_not_praised_for_few_stalls(make_campaign: Make) -> None:
    runs = [played("sp", 9.0, 2.0, "time_limit"), played("xlink", 0.0, 0.1, "connection_lost")]
    assert found(make_campaign, *runs).headline.startswith("Which scheme stalled least is open")


def test_a_scheme_that_never_connected_is_compared_and_not_dropped(make_campaign: Make) -> None:
    never = FakeRun(
        pair="p1", label="sp", scheme="sp", outcome="time_limit", rct_s=[], first_frame_s=None, rebuffer_time_s=20.0
    )
    findings = found(make_campaign, never, played("xlink", 1.0, 0.5))
    assert findings.headline.startswith("xlink stalled least, ") and "sp ≥ 20.0 s" in findings.headline
    assert "(≥ 20.0 s stalled, no request sent) multipath helps." in findings.of_pair["p1"][0]


def test_a_scheme_whose_program_failed_is_named_and_not_compared(make_campaign: Make) -> None:
    crashed = played("xlink", 0.0, 0.1, "player_failed")
    findings = found(make_campaign, played("sp", 5.0, 2.0), played("vanilla-mp", 1.0, 1.0), crashed)
    assert findings.headline.startswith("vanilla-mp stalled least, ")
    assert findings.headline.endswith(" Stalled in all: vanilla-mp 1.0 s, sp 5.0 s. Not compared on every pair: xlink.")
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
    sentences = found(make_campaign, *runs).of_pair["p2"]
    assert sentences[0].startswith("Nothing is compared here: ") and "Without a valid run" in sentences[1]


def test_only_seeds_are_compared_that_every_scheme_has(make_campaign: Make) -> None:
    def seeded(label: str, seed: int, stalled_s: float, *, void: bool = False) -> FakeRun:
        run = played(label, stalled_s, 0.5)
        run.seed, run.void = seed, void
        return run

    runs = [seeded("sp", 1, 1.0), seeded("sp", 2, 9.0), seeded("xlink", 1, 1.0), seeded("xlink", 2, 9.0, void=True)]
    findings = found(make_campaign, *runs)
    assert findings.headline.startswith("No scheme stalled for longer than another, in 1 play for each scheme.")
    assert findings.of_pair["p1"][-1].startswith("Compared over the 1 of 2 seeds whose runs are valid")


@pytest.mark.parametrize(
    ("single", "rest"),
    [
        (played("sp", 5.0, 2.0), ": neither path is enough by itself."),
        (played("sp", 0.0, 0.2), "."),
        (FakeRun(pair="p1", label="sp", void=True), "."),
    ],
)
def test_neither_path_is_enough_is_said_only_where_both_were_measured_and_are_worse(
    make_campaign: Make, single: FakeRun, rest: str
) -> None:
    runs = [single, played("sp:lte", 6.0, 3.0), played("vanilla-mp", 4.0, 2.0), played("xlink", 2.0, 1.0)]
    [sentence] = [one for one in found(make_campaign, *runs).of_pair["p1"] if one.startswith("Single path on lte")]
    assert sentence.endswith(f"does worse than xlink{rest}")


def test_a_path_that_is_no_better_than_one_of_the_multipath_schemes_is_not_better_than_every(
    make_campaign: Make,
) -> None:
    runs = [played("sp:lte", 1.0, 0.5), played("vanilla-mp", 1.05, 0.2), played("xlink", 1.0, 3.0)]
    sentence = found(make_campaign, *runs).of_pair["p1"][-1]
    assert sentence.endswith("does worse than vanilla-mp.")


def test_first_frames_that_differ_are_told_since_no_stall_counts_them(make_campaign: Make) -> None:
    late, soon = played("sp", 0.0, 0.5), played("xlink", 0.0, 0.5)
    late.first_frame_s = 7.5
    sentence = found(make_campaign, late, soon).of_pair["p1"][-1]
    assert sentence == "First frame after 0.40 s (xlink) to 7.50 s (sp); waiting for it is not a stall."


def test_there_is_no_sentence_where_there_is_nothing_to_compare(make_campaign: Make) -> None:
    assert find(cells(load_campaign(make_campaign(FakeRun()))[1])) is None


@pytest.mark.parametrize(("q", "least"), [(0.95, 72), (0.99, 368)])
def test_a_quantile_is_printed_only_where_its_order_statistics_lie_within_the_sample(
    make_campaign: Make, q: float, least: int
) -> None:
    assert (carries(q, least - 1), carries(q, least)) == (False, True)
    for count in (least - 1, least):
        values = [number / 100 for number in range(1, count + 1)]
        [cell] = cells(load_campaign(make_campaign(FakeRun(seed=count, rct_s=values)))[1])["subway-1"]
        cell = cell if len(cell.chunks) == count else type(cell)(cell.pair, cell.label, cell.runs[-1:], [])
        assert (shown(cell, q) is not None) == (count == least)


def test_columns_that_are_equal_in_all_rows_are_told_once(make_campaign: Make) -> None:
    out = make_campaign(played("sp", 5.0, 2.0), played("xlink", 1.0, 0.5))
    row = cells(load_campaign(out)[1])["p1"]
    shown_columns, same = columns_of(row)
    assert [column.name for column in shown_columns] == ["RCT s p95", "RCT s max", "rebuffer rate"]
    assert "outcome complete" in same_in_words(same) and "chunks 80" in same_in_words(same)
    page = write_report(*load_campaign(out), out).read_text()
    assert "Equal in all rows: RCT s median 0.100" in page and "RCT s<br>p95</th>" in page and "p99</th>" not in page
    assert "RCT s p99 n too small" in page
    assert "xlink stalled least" in page.split("<table")[0], "the answer stands above the first table"


def test_the_abstract_leaves_out_what_is_equal_in_all_rows_and_what_a_scheme_does_not_carry(
    make_campaign: Make,
) -> None:
    few = FakeRun(pair="p1", label="sp", scheme="sp", rct_s=[0.1] * 15 + [3.0], rebuffer_time_s=0.0)
    out = make_campaign(few, played("vanilla-mp", 0.0, 1.0), played("xlink", 0.0, 0.5))
    page = write_report(*load_campaign(out), out).read_text()
    table = page.split('<table class="abstract"')[1].split("</table>")[0]
    assert "rebuffer</th>" not in table and "Equal in all rows: p1: rebuffer 0.0 %" in page
    [single] = [row for row in table.split("<tr>") if 'scope="row">sp<' in row]
    cells = re.findall(r"<td[^>]*>(.*?)</td>", single)
    assert cells == ["<b>0.100</b>", "", "n too small", "3.000"], "sixteen requests carry no p95"
