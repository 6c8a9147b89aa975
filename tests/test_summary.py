"""The summary of `railyard run`: short, complete, and in agreement with the figures. And twins in virtual time."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from conftest import FakeRun, good
from in_process import railyard
from railyard.base.terminal import MOST_LINES, first_lines
from railyard.figures.rows import REBUFFER_RATE
from railyard.report import write_report
from railyard.report.sections import Context
from railyard.results import differences, findings
from railyard.results.aggregate import Cell, cells
from railyard.results.causes import causes
from railyard.results.records import Run, load_campaign
from railyard.results.summary import Outcome, fallback_words, summary_lines
from railyard.results.twins import all_agreements, differs, load_twins

Make = Callable[..., Path]
PAIRS = ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l")


def outcome_of(out: Path, twins: dict[str, list[Run]] | None = None) -> Outcome:
    record, runs = load_campaign(out)
    return Outcome(runs, record.get("not_run", []), findings.find(runs), twins, str(record["command"]))


def printed(outcome: Outcome, width: int) -> list[str]:
    return summary_lines(Console(width=width, highlight=False, force_terminal=True, color_system=None), outcome)


def lines_of(out: Path, width: int = 100, twins: dict[str, list[Run]] | None = None) -> list[str]:
    return printed(outcome_of(out, twins), width)


def played(
    labels: Sequence[str], pairs: Sequence[str] = PAIRS, stalled_s: Callable[[str], float] = len
) -> list[FakeRun]:
    return [
        FakeRun(pair=pair, label=label, scheme=label.partition(":")[0].partition(",")[0], seed=seed,
                start_offset_ms=60_000 * seed, rebuffer_time_s=stalled_s(label) * (1 + 0.1 * seed))
        for pair in pairs for label in labels for seed in (1, 2)
    ]  # fmt: skip


@pytest.mark.parametrize("many", [1, 20])
def test_a_summary_has_at_most_thirty_lines_with_the_page_among_them(make_campaign: Make, many: int) -> None:
    labels = ["sp", "vanilla-mp", *(f"xlink,t_th1_ms={number}" for number in range(many))]
    outcome = outcome_of(make_campaign(*played(labels)))
    for width in (60, 80, 200):
        lines = printed(outcome, width)
        assert len(lines) < MOST_LINES == 30
        assert all(len(line.rstrip()) <= width for line in lines)
        assert any(line.strip().startswith("sp ") for line in lines), "the table comes first"
        assert (f"… and {many + 2 - 16} more schemes, on the page." in lines) == (many > 14)


@pytest.mark.parametrize("lengths", [(29, 5), (30, 1), (31,), (10, 20), (10, 19, 1, 1), (60,)])
def test_what_is_cut_is_cut_to_the_line(lengths: tuple[int, ...]) -> None:
    parts = ["\n".join(f"line {k}" for k in range(length)) for length in lengths]
    lines = first_lines(Console(width=80), parts)
    assert len(lines) == min(sum(lengths), MOST_LINES)
    assert (lines[-1] == "… the rest is on the page.") == (sum(lengths) > MOST_LINES)


def test_a_run_of_many_plays_prints_less_than_a_screen_or_two(tmp_path: Path) -> None:
    """A line for each of the runs would be thirty-six more."""
    (tmp_path / "many.yaml").write_text(
        "name: many\narena: sim\npairs: [subway-1, subway-2, subway-3]\nschemes: [sp, vanilla-mp, xlink]\nseeds: 3\n"
        "start_offset_ms: spread\nplayer: {duration_s: 2, bitrate_bps: 500000, chunk_bytes: 65536}\ntime_limit_s: 10\n"
    )
    done = good(railyard("run", str(tmp_path / "many.yaml"), "--out", str(tmp_path / "out")))
    lines = done.stdout.splitlines()
    summary = lines[next(number for number, line in enumerate(lines) if line.startswith("The runs took")) + 1 :]
    assert len(summary) <= MOST_LINES and "report:" in summary[-1]
    assert len(lines) - len(summary) <= 20, "of 36 runs not each has its line"


def verdicts(make_campaign: Make, stalled_s: dict[str, float]) -> str:
    out = make_campaign(*played(list(stalled_s), stalled_s=stalled_s.__getitem__))
    return " ".join(" ".join(lines_of(out, 300)).split())


def test_the_sentences_follow_from_the_figures(make_campaign: Make) -> None:
    said = verdicts(make_campaign, {"sp": 5.0, "vanilla-mp": 3.0, "xlink": 0.5})
    assert "xlink stalls least." in said
    assert "Multipath is better than single path on the primary path: holds (xlink: rebuffer rate −" in said
    assert "Re-injection is better than none (vanilla-mp): holds (xlink: rebuffer rate −" in said


def test_the_sentences_say_what_does_not_hold(make_campaign: Make) -> None:
    said = verdicts(make_campaign, {"sp": 0.5, "vanilla-mp": 3.0, "xlink": 5.0})
    assert "sp stalls least." in said
    assert "Multipath is better than single path on the primary path: does not hold (xlink: rebuffer rate +" in said
    assert "Re-injection is better than none (vanilla-mp): does not hold (xlink: rebuffer rate +" in said


def test_the_sentences_say_what_is_not_decided_and_what_would_decide(make_campaign: Make) -> None:
    out = make_campaign(*played(["sp", "xlink"], pairs=PAIRS[:1]))
    said = " ".join(" ".join(lines_of(out)).split())
    assert (
        "is not decided: n too small (2 of 5 windows of trace; 3 more: seeds: 5 with start_offset_ms: spread)" in said
    )
    assert "holds" not in said


def test_a_page_begins_with_the_answer_of_the_campaign_that_it_names(make_campaign: Make, tmp_path: Path) -> None:
    yaml = (
        "name: {name}\narena: sim\ndescription: Of {name}.\npairs: [subway-1]\nschemes: [sp, xlink]\nseeds: {seeds}\n"
        "start_offset_ms: spread\nplayer: {{duration_s: 2, bitrate_bps: 500000, chunk_bytes: 65536}}\n"
        "time_limit_s: 10\n{further}\n"
    )
    results = tmp_path / "results"
    for name, seeds, further in (("many", 6, ""), ("few", 1, "answer_of: many")):
        (tmp_path / f"{name}.yaml").write_text(yaml.format(name=name, seeds=seeds, further=further))
        good(railyard("run", str(tmp_path / f"{name}.yaml"), "--out", str(results / name)))
    page = (results / "few" / "report.html").read_text()
    section = page.split('<section id="answer"')[1].split("</section>")[0]
    assert page.index('<section id="answer"') < page.index('<section id="abstract"')
    assert "Of many." in section and "12 of 12 runs count" not in section and "18 of 18 runs count" in section
    assert 'href="../many/report.html"' in section and section.count('<th scope="row">') == 3
    assert 'id="answer"' not in (results / "many" / "report.html").read_text()


# --- twins ------------------------------------------------------------------------------------------------------------


def with_twins(out: Path, *twins: FakeRun) -> dict[str, list[Run]]:
    """Puts them beside the campaign as its twins."""
    record: dict[str, Any] = json.loads((out / "campaign.json").read_text())
    record["experiment"]["twins"] = True
    (out / "campaign.json").write_text(json.dumps(record))
    for twin in twins:
        twin.write(out / "twins" / "0" / "runs")
    return load_twins(out)


def test_on_a_machine_that_is_late_every_cell_has_a_value_and_says_where_it_is_from(make_campaign: Make) -> None:
    late = [FakeRun(label=label, scheme=label, void=True, rct_s=[9.0] * 8) for label in ("sp", "xlink", "mptcp")]
    good = FakeRun(label="vanilla-mp", scheme="vanilla-mp")
    out = make_campaign(*late, good)
    twins = with_twins(out, *(replace(run, void=False, rct_s=[0.5] * 8) for run in late[:2]))
    lines = lines_of(out, 120, twins)
    cells = {
        line.split()[1 if "subway" in line else 0]: line
        for line in lines
        if re.match(r" (subway|   ).* (void|on time)", line)
    }
    assert cells["sp"].count("°") >= 3 and "0.500°" in cells["sp"] and "void" in cells["sp"]
    assert "0.500°" in cells["xlink"] and "9.000†" in cells["mptcp"], "without a twin: the void run's own"
    assert "°" not in cells["vanilla-mp"] and "on time" in cells["vanilla-mp"]
    said = " ".join(" ".join(lines).split())
    assert (
        "3 of 4 runs void, and in no figure: The emulator was late. `railyard run unit --seeds 2` repeats them" in said
    )
    assert "°: no run of this scheme counts here: the value is that of the same run in virtual time" in said
    page = write_report(*load_campaign(out), out).read_text()
    assert "<b>1 of 4 runs counts</b>, 3 void" in page
    assert page.count("0.500°") >= 4 and "9.000†" in page, "in the abstract, and in the pair's table"
    assert page.count('<th scope="col">Virtual time</th>') == 1, "run by run, beside the lateness"
    assert "Every run is void" not in page and ">void</td>" not in page


def test_a_cause_is_told_once_with_its_largest_figures(make_campaign: Make) -> None:
    told = [
        "The host woke timers late: p99 6.72 ms, at most 22.5 ms.",
        "The host woke timers late: p99 8.7 ms, at most 9.0 ms.",
    ]
    told += ["Other real-time processes or the kernel held the cores: timers woke late, p99 3.00 ms, at most 4.0 ms."]
    out = make_campaign(*(FakeRun(label=f"s{k}", void=True) for k in range(3)), FakeRun())
    for k, cause in enumerate(told):
        file = out / "runs" / f"subway-1--s{k}--s1" / "run.json"
        record = json.loads(file.read_text())
        record["fidelity"]["cause"] = cause
        file.write_text(json.dumps(record))
    once = "The host woke timers late: p99 8.7 ms, at most 22.5 ms."
    runs = load_campaign(out)[1]
    assert {cause: len(of) for cause, of in causes(runs).items()} == {once: 2, told[2]: 1}
    said = " ".join(" ".join(lines_of(out)).split())
    assert said.count("The host woke timers late") == 1 and once in said
    box = write_report(*load_campaign(out), out).read_text().split('<aside class="void"')[1].split("</aside>")[0]
    assert (
        box.count("The host woke timers late") == 1 and f"{once} subway-1, s0 (seed 1); subway-1, s1 (seed 1)." in box
    )


def test_a_stand_in_is_in_no_comparison(make_campaign: Make) -> None:
    out = make_campaign(FakeRun(label="sp", scheme="sp"), FakeRun(label="xlink", void=True))
    twins = with_twins(out, FakeRun(label="xlink", rebuffer_time_s=0.0))
    assert twins and findings.find(load_campaign(out)[1]) is None
    measured, stand_in = load_campaign(out)[1]
    cell = Cell("subway-1", "xlink", [measured], [], stand_ins=(stand_in,))
    assert (cell.shown.runs, replace(cell, runs=[]).shown.runs) == ([measured], [stand_in]), "for what has none itself"


def test_twins_of_runs_in_virtual_time_are_no_column(make_campaign: Make) -> None:
    out = make_campaign(FakeRun())
    with_twins(out)
    for file in (out / "runs").glob("*/run.json"):
        file.write_text(file.read_text().replace('"mpshell"', '"sim"'))
    record, runs = load_campaign(out)
    assert {run.config["arena"] for run in runs} == {"sim"}
    assert Context(record, runs, folder=out).twins is None


def test_a_play_agrees_with_its_twins_where_it_is_within_their_range(make_campaign: Make) -> None:
    runs = [
        FakeRun(seed=seed, rct_s=[rct] * 8, rebuffer_time_s=1.0) for seed, rct in enumerate((1.0, 1.2, 1.04, 1.3), 1)
    ]
    low, high, within, beyond = load_campaign(make_campaign(*runs))[1]
    assert differs(within, [low, high]) == ""
    known = {within.run_id: [low, high], beyond.run_id: [low, high]}
    assert all_agreements([within, beyond], known)[within.run_id] == "agrees"
    assert differs(beyond, [low, high]) == "RCT median 1.300 s, there 1.000 to 1.200"


def test_runs_of_mptcp_that_were_plain_tcp_are_counted_by_scheme_without_void_ones(make_campaign: Make) -> None:
    made = [FakeRun(label="mptcp", seed=1), FakeRun(label="mptcp", seed=2), FakeRun(label="mptcp", seed=3, void=True)]
    fell, kept, void = load_campaign(make_campaign(*made))[1]
    assert fallback_words([kept]) is None
    words = fallback_words([replace(fell, fell_back_to_tcp=True), kept, replace(void, fell_back_to_tcp=True)])
    assert words == "MPTCP fell back to plain TCP, which uses one path: mptcp in 1 of 2 runs."


def test_show_says_once_what_lateness_can_have_added_to_a_void_run(make_campaign: Make) -> None:
    out = make_campaign(FakeRun(void=True))
    [file] = (out / "runs").glob("*/run.json")
    record = json.loads(file.read_text())
    record["fidelity"] |= {"reasons": ["lateness can have added 9.1 % to the largest RCT"], "cause": "It was late."}
    record["fidelity"]["added"] = {"share": 0.091, "figures": {}, "chunk_s": {}}
    file.write_text(json.dumps(record))
    assert railyard("show", str(file.parent)).stdout.count("lateness can have added") == 1


def test_a_rebuffer_rate_with_a_play_that_failed_is_a_lower_bound_wherever_it_is_shown(make_campaign: Make) -> None:
    """The play that lost its connection counts with all of its time limit."""
    lost = FakeRun(
        pair="a", label="sp", scheme="sp", seed=9, outcome="connection_lost", message="it is gone", unfinished_s=[3.0]
    )
    out = make_campaign(*played(("sp", "xlink"), ("a",)), lost)
    [sp, xlink] = cells(load_campaign(out)[1])["a"]
    assert (REBUFFER_RATE.text(sp.runs)[:2], REBUFFER_RATE.text(xlink.runs)[:2]) == ("≥ ", "57")
    level = differences.level_of(sp.runs, REBUFFER_RATE)
    assert level is not None and level.at_least
    table = [line.split() for line in lines_of(out) if line.split()[:1] in (["a"], ["xlink"])]
    assert [row[2] for row in table if row[0] == "a"] == ["≥"] and "≥" not in next(r for r in table if r[0] == "xlink")
    said = railyard("show", str(out)).stdout
    assert f" {REBUFFER_RATE.text(sp.runs)} " in said and "or on plays that failed" in " ".join(said.split())
    [run] = out.glob("runs/a--sp--s9")
    assert ": connection lost: it is gone\n" in railyard("show", str(run)).stdout


def test_a_scheme_under_which_a_program_failed_has_no_figure_that_would_be_the_best(make_campaign: Make) -> None:
    """A player that stops at the first wrong byte has not stalled."""
    failed: dict[str, Any] = {"outcome": "error", "rct_s": [0.01], "rebuffer_time_s": 0.0}
    out = make_campaign(
        FakeRun(label="sp", scheme="sp"), FakeRun(label="bad", seed=1), FakeRun(label="bad", seed=2, **failed)
    )
    text = "\n".join(lines_of(out))
    assert re.search(r"^ +bad +– +– +– +–", text, re.MULTILINE), text
    assert re.search(r"^ subway-1 +sp +0\.5 +0\.500 ", text, re.MULTILINE), text
    table = railyard("show", str(out)).stdout
    assert re.search(r"^ bad +– .* 1 complete, 1 error", table, re.MULTILINE), table
    page = write_report(*load_campaign(out), out).read_text(encoding="utf-8")
    abstract = page[page.index('id="abstract"') : page.index('id="pair-1"')]
    assert "a program failed</td>" in abstract and "0.010" not in abstract and "0.010</b>" not in page
    assert (
        "no figure on that pair: subway-1--bad--s2: error: " in abstract and "did not play to the end" not in abstract
    )


def test_a_pair_on_which_a_program_failed_is_left_out_of_the_figures_over_all_pairs(make_campaign: Make) -> None:
    failed = FakeRun(pair="c", label="some", outcome="error", rct_s=[0.01], rebuffer_time_s=0.0)
    some = [FakeRun(pair=pair, label="some", rct_s=[0.5] * 4, rebuffer_time_s=1.0) for pair in ("a", "b")]
    all_of = [replace(failed, pair=pair, label="all") for pair in ("a", "b", "c")]
    out = make_campaign(*some, failed, *all_of)
    text = "\n".join(lines_of(out))
    assert re.search(r"^ some +10\.0 +0\.500 +0\.500 ", text, re.MULTILINE), text
    assert re.search(r"^ all +– +– +– ", text, re.MULTILINE), text
    page = write_report(*load_campaign(out), out).read_text(encoding="utf-8")
    abstract = page[page.index('id="abstract"') : page.index('id="pair-1"')]
    assert "a program failed</td>" in abstract and "0.010" not in abstract
