"""The multipath stress corpus: each predicate, the command and its outputs, and mechanisms that are taken out."""

import json
import re
import shutil
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from conftest import FakeRun
from in_process import railyard
from kernel_machine import needs_kernel
from railyard.base.errors import UserError
from railyard.base.paths import ROOT
from railyard.base.provenance import version_words
from railyard.results.pending import Place
from railyard.results.records import load_run
from railyard.stress.output import as_json, junit, markdown
from railyard.stress.page import render
from railyard.stress.predicates import Evidence, Judged, judge
from railyard.stress.run import FAIL, PASS, UNKNOWN, Cell, Matrix, counts, run_stress, subject
from railyard.stress.scenario import Expect, Scenario, Window, all_scenarios, find_scenario, load_scenario
from railyard.studies.study import CODE, Study, find_study

HEAD = """\
name: two
sources: [RFC 9002]
pairs: [lab-equal-12]
links: {wifi: {delay_ms: 15}, lte: {delay_ms: 30}}
load_bytes: 4000000
time_limit_s: 20
"""
DARK = "link_events:\n  - {t_s: 1, path: wifi, state: down}\n"


def matrix_of(folder: Path, text: str, *schemes: str) -> Matrix:
    file = folder / "scenario.yaml"
    file.write_text(text)
    subjects = [subject("scheme", label) for label in schemes]
    return run_stress([file], subjects, Place(folder / "out"), 2, lambda _: None)


@dataclass(frozen=True)
class Runs:
    """A scheme with a load over two paths, one of which goes dark, and over the other path alone."""

    load: Evidence
    alone: Evidence

    def judged(self, alone: bool = True, **expect: object) -> Judged:
        """The last predicate."""
        return judge(Expect.model_validate(expect), self.load, self.alone if alone else None)[-1]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    folder = tmp_path_factory.mktemp("stress")
    expect = "expect:\n  goodput_ratio: {of: lte, min: 0.9}\n"
    cell = matrix_of(folder, HEAD + DARK + expect, "vanilla-mp").cells["two", "vanilla-mp"]
    assert cell.folder is not None
    alone = cell.folder.with_name(cell.folder.name.replace("--s1", "--lte-alone--s1"))
    return Runs(Evidence.of(cell.folder), Evidence.of(alone))


# --- predicates -------------------------------------------------------------------------------------------------------


def test_outcome_is_one_of_those_that_are_expected(runs: Runs) -> None:
    assert runs.judged().passed
    assert not runs.judged(outcome="time_limit").passed
    assert runs.judged(outcome=["time_limit", "complete"]).passed


def test_complete_is_the_time_of_the_last_byte(runs: Runs) -> None:
    took = runs.judged(complete=20).figure
    assert took is not None and 4_000_000 * 8 / 24e6 < took < 4
    assert not runs.judged(complete=took - 0.01).passed


def test_the_gap_is_the_longest_time_in_which_nothing_came_while_something_was_waited_for(runs: Runs) -> None:
    gap = runs.judged(progress_gap_ms={"from_s": 1, "max": 1025})
    assert gap.passed and gap.figure is not None and 150 <= gap.figure <= 1025
    assert not runs.judged(progress_gap_ms={"from_s": 1, "max": gap.figure - 1}).passed
    before = runs.judged(progress_gap_ms={"from_s": 0.5, "to_s": 1, "max": 1025})
    assert before.figure is not None and before.figure < gap.figure


def test_a_load_that_stops_for_good_has_a_gap_to_its_time_limit(tmp_path: Path) -> None:
    cell = matrix_of(tmp_path, HEAD + DARK + "expect:\n  progress_gap_ms: {from_s: 1, max: 1025}\n", "sp").cells
    gap = cell["two", "sp"].judged[-1]
    assert gap.figure is not None and not gap.passed and gap.figure > 15_000


def test_waiting_for_no_request_is_no_gap(tmp_path: Path) -> None:
    text = HEAD.replace(
        "load_bytes: 4000000", "player: {bitrate_bps: 209715, duration_s: 15, chunk_bytes: 131072, max_buffer_ms: 5000}"
    )
    text += "expect:\n  progress_gap_ms: {max: 400}\n"
    assert matrix_of(tmp_path, text, "vanilla-mp").cells["two", "vanilla-mp"].verdict == PASS


def test_gaps_and_goodput_are_those_of_the_window(tmp_path: Path) -> None:
    """A play of 1000 bytes/s, half a second after the links. Nothing is waited for from 0.8 to 2.0 s; of 2 ms of video
    or less, more is no progress."""
    folder = FakeRun(outcome="time_limit").write(tmp_path)
    record, emulator = (json.loads((folder / name).read_text()) for name in ("run.json", "mpshell.json"))
    record["config"]["player"] = {"bitrate_bps": 8000}
    (folder / "run.json").write_text(json.dumps(record))
    (folder / "mpshell.json").write_text(json.dumps(emulator | {"t0_monotonic_us": 1_000_000}))
    done = {"bytes": 1000, "rct_s": 0.6, "request_t": 0.2}
    events: list[tuple[float, str, dict[str, Any]]] = [
        (0.0, "start", {"monotonic_us": 1_500_000}),
        (0.1, "handshake_done", {}),
        (0.2, "request", {"chunk": 0, "first": 0, "last": 999}),
        (0.3, "first_byte", {"chunk": 0}),
        (0.4, "buffer", {"buffered_ms": 0, "buffered_bytes": 100, "played_ms": 0}),
        (0.5, "buffer", {"buffered_ms": 0, "buffered_bytes": 100, "played_ms": 0}),
        (0.8, "chunk_done", {"chunk": 0} | done),
        (2.0, "request", {"chunk": 1, "first": 1000, "last": 1999}),
        (2.1, "request", {"chunk": 2, "first": 2000, "last": 2999}),
        (3.0, "chunk_done", {"chunk": 1} | done | {"rct_s": 1.0, "request_t": 2.0}),
        (3.2, "buffer", {"buffered_ms": 0, "buffered_bytes": 0, "played_ms": 102}),
        (3.4, "buffer", {"buffered_ms": 0, "buffered_bytes": 0, "played_ms": 103}),
        (4.0, "summary", {"outcome": "time_limit", "chunks": 2}),
    ]
    lines = (json.dumps({"t": at, "event": name} | more) + "\n" for at, name, more in events)
    (folder / "player.jsonl").write_text("".join(lines))
    of = Evidence.of(folder)
    for from_s, to_s, gaps in (
        (0, None, [0.1, 0.1, 0.1, 0.1, 0.4, 1.0, 0.4, 0.6]),
        (3, 4, [0.5, 0.4, 0.1]),
        (2.7, 3.2, [0.5]),
        (1.4, 2.4, []),
        (4, None, [0.5]),
        (9, None, [0.0]),
    ):
        assert of.gaps_s(Window(from_s=from_s, to_s=to_s)) == pytest.approx(gaps), (from_s, to_s)
    without = judge(Expect.model_validate({"progress_gap_ms": {"from_s": 1.4, "to_s": 2.4, "max": 1}}), of, None)[-1]
    assert without.figure == 0 and without.passed
    assert [of.bytes_at(at) for at in (0.5, 0.9, 3.8, 3.9)] == [0, 100, 102, 103]
    assert of.goodput_bps(Window(from_s=0.9, to_s=3.9)) == pytest.approx(8 * 3 / 3)
    assert of.goodput_bps(Window(from_s=2.9)) == pytest.approx(8 * 3 / 1.6)
    assert of.goodput_bps(Window(from_s=4.5)) is None


def test_goodput_is_compared_with_that_of_one_path_alone(runs: Runs) -> None:
    assert sorted(path.name for path in runs.alone.run.paths) == ["lte"]
    ratio = runs.judged(goodput_ratio={"of": "lte", "min": 0.9})
    took = [of.completed_s for of in (runs.load, runs.alone)]
    assert took[0] and took[1] and ratio.figure == pytest.approx(took[1] / took[0], rel=1e-6)
    assert not runs.judged(goodput_ratio={"of": "lte", "min": 2}).passed
    assert not runs.judged(alone=False, goodput_ratio={"of": "lte", "min": 0.9}).passed


def test_the_share_is_of_the_bytes_that_the_downlinks_delivered(runs: Runs) -> None:
    both = [runs.load.down_bytes(name, Window()) for name in ("wifi", "lte")]
    share = runs.judged(path_share={"path": "wifi", "max": 1})
    assert share.figure == pytest.approx(both[0] / sum(both))
    after = runs.judged(path_share={"path": "wifi", "from_s": 1.1, "max": 0})
    assert after.passed and after.figure == 0
    assert not runs.judged(path_share={"path": "wifi", "from_s": 1.1, "min": 0.01}).passed
    nothing = runs.judged(path_share={"path": "wifi", "from_s": 100, "max": 1})
    assert nothing.figure is None and not nothing.passed


# --- mechanisms -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "passes", "without"),
    [
        ("01-primary-dark", "vanilla-mp", "vanilla-mp-2021"),  # suspect paths
        ("03-zombie", "xlink-lean", "xlink-lean,reinjection=none"),  # re-injection
        ("16-handshake-dark", "vanilla-mp", "vanilla-mp,reconnect=off"),  # a handshake on the next path
        ("22-second-path-dark", "vanilla-mp", "vanilla-mp-2021"),  # suspect paths
        ("24-fade", "xlink-lean", "xlink-lean,reinjection=none"),  # re-injection
    ],
)
def test_a_scenario_fails_without_the_mechanism_that_it_tests(
    name: str, passes: str, without: str, tmp_path: Path
) -> None:
    subjects = [subject("scheme", passes), subject("scheme", without)]
    matrix = run_stress([find_scenario(name)], subjects, Place(tmp_path), 2, lambda _: None)
    assert [matrix.cells[name, label].verdict for label in (passes, without)] == [PASS, FAIL]


def test_the_place_of_each_mechanism_is_in_its_file_once() -> None:
    for one in import_module("stress-without").MECHANISMS:
        assert one.without or (ROOT / one.file).read_text(encoding="utf-8").count(one.old) == 1, one.words


@pytest.mark.parametrize(
    ("passes", "having", "lacking", "is_recorded"),
    [("", PASS, FAIL, True), ("", PASS, PASS, False), ("21", PASS, PASS, True), ("21", PASS, FAIL, False)],
)
def test_a_verdict_that_is_recorded_is_no_error(passes: str, having: str, lacking: str, is_recorded: bool) -> None:
    one = import_module("stress-without").Mechanism("x", "21", "a", "b", passes=passes)
    cells = [{"scenario": "21-flapping", "verdict": verdict} for verdict in (having, lacking)]
    assert one.is_recorded(*cells) == is_recorded
    assert not one.is_recorded({"scenario": "21-flapping", "verdict": FAIL}, cells[1])


# --- scenarios --------------------------------------------------------------------------------------------------------


def test_every_scenario_of_the_corpus_is_well_formed_and_has_its_sources() -> None:
    scenarios = [load_scenario(file)[0] for file in all_scenarios()]
    assert len(scenarios) >= 26
    assert all(scenario.sources and scenario.description for scenario in scenarios)
    assert [scenario.name for scenario in scenarios] == [file.stem for file in all_scenarios()]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("expect: {path_share: {path: wifi}}", "give one of them"),
        ("expect: {progress_gap_ms: {from_s: 3, to_s: 2, max: 5}}", "must be after from_s"),
        ("expect: {goodput: 1}", "unknown field"),
        ("player: {duration_s: 1}\nexpect: {}", "leave out load_bytes or player"),
        ("link_logs: false\nexpect: {}", "judged by its link logs"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_file(line: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(HEAD + line + "\n")
    with pytest.raises(UserError, match=sentence) as refused:
        load_scenario(file)
    assert str(refused.value).startswith(str(file))


@pytest.mark.parametrize("expected", ["goodput_ratio: {of: lt, min: 1}", "path_share: {path: lt, max: 1}"])
def test_a_path_that_is_not_there_is_refused(expected: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="this pair has no path 'lt'; did you mean 'lte'"):
        matrix_of(tmp_path, f"{HEAD}expect:\n  {expected}\n", "vanilla-mp")


@pytest.mark.parametrize("words", ["vanilla", "vanilla-mp,dialect", "vanilla-mp,dialect=no"])
def test_an_unknown_scheme_or_option_is_refused(words: str) -> None:
    with pytest.raises(UserError, match="--scheme"):
        subject("scheme", words)


def test_a_stack_that_is_called_as_a_scheme_uses_all_paths() -> None:
    assert (subject("stack", "tcp").entry.path, subject("scheme", "tcp").entry.path) == ("each", "primary")


# --- outputs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arena", "changes", "is_judged"),
    [
        ("kernel", {}, True),
        ("kernel", {"lateness_max_us": 2000.0}, False),
        ("kernel", {"missed": 1}, False),
        ("kernel", {"device_drops": 1}, False),
        ("kernel", {"reasons": ["link event 'down wifi' at 3 s: not done"]}, False),
        ("mpshell", {}, False),
        ("mpshell", {"void": False, "reasons": []}, True),
    ],
)
def test_a_run_that_is_void_by_microseconds_of_virtual_time_is_judged(
    tmp_path: Path, arena: str, changes: dict[str, Any], is_judged: bool
) -> None:
    run = load_run(FakeRun().write(tmp_path))
    late = {"void": True, "reasons": ["lte down: lateness 87 us in virtual time"], "lateness_max_us": 87.0}
    fidelity = run.record["fidelity"] | {"missed": 0, "device_drops": 0} | late | changes
    record = run.record | {"fidelity": fidelity, "config": run.config | {"arena": arena}}
    assert counts(replace(run, record=record)) is is_judged


def small_matrix() -> Matrix:
    scenario = Scenario.model_validate(
        {"name": "two", "sources": ["RFC 9002"], "pairs": ["lab-equal-12"], "expect": {}, "load_bytes": 100_000}
    )
    subjects = [subject("scheme", label) for label in ("cm", "vanilla-mp", "xlink")]
    late = Judged("progress_gap_ms", 1200.0, 1025.0, "ms", False, "1200 ms without progress")
    cells = [
        Cell(UNKNOWN, reason="it uses one path"),
        Cell(PASS, runs=1, gap_s=0.5),
        Cell(FAIL, [late], runs=3, failed_runs=2),
    ]
    return Matrix([scenario], subjects, {("two", of.label): cell for of, cell in zip(subjects, cells, strict=True)})


def test_the_score_counts_what_says_something_of_the_stack() -> None:
    matrix = small_matrix()
    assert [matrix.score(of) for of in matrix.subjects] == [(0, 0), (1, 1), (0, 1)]


def test_each_output_has_verdict_figure_threshold_and_command() -> None:
    matrix = small_matrix()
    command = "railyard stress two --scheme xlink"
    page = markdown(matrix)
    assert "1 of 2 pass" in page and "2 of 3 runs; 1200 ms without progress" in page and command in page
    assert "?: it uses one path (cm)." in page and "pass 0.50" in page
    suites = ElementTree.fromstring(junit(matrix))  # noqa: S314  our own
    assert [suite.get("name") for suite in suites] == ["cm", "vanilla-mp", "xlink"]
    assert [(suite.get("failures"), suite.get("skipped")) for suite in suites] == [("0", "1"), ("0", "0"), ("1", "0")]
    cells = json.loads(json.dumps(as_json(matrix)))["cells"]
    assert [cell["verdict"] for cell in cells] == [UNKNOWN, PASS, FAIL]
    assert cells[2]["predicates"][0]["threshold"] == 1025.0 and cells[2]["command"] == command


def test_the_page_has_figure_threshold_command_and_the_page_of_each_run_that_fails(tmp_path: Path) -> None:
    text = HEAD + DARK + "expect:\n  progress_gap_ms: {from_s: 1, max: 1025}\n"
    matrix = matrix_of(tmp_path, text, "vanilla-mp", "vanilla-mp-2021")
    page = render(matrix, tmp_path / "pages" / "stress.html")
    assert "1 of 2 pass" in page and "railyard stress two --scheme vanilla-mp-2021" in page
    assert re.search(r"progress_gap_ms: figure [0-9.e+]+ ms, threshold 1025 ms", page)
    [link] = re.findall(r'<a href="(\.\./[^"]+/replay\.html)">', page)
    replay = (tmp_path / "pages" / link).resolve()
    assert "vanilla-mp-2021" in replay.read_text() and "Bytes received in order" in page
    assert not re.search(r'(src|href)="https?:', page)


def test_the_command_fails_where_a_scenario_does(tmp_path: Path) -> None:
    (tmp_path / "two.yaml").write_text(HEAD + "expect: {complete: 0.1}\n")
    outputs = ("--out", str(tmp_path / "out"), "--markdown", str(tmp_path / "page.md"))
    done = railyard("stress", str(tmp_path / "two.yaml"), "--scheme", "sp,path=wifi", *outputs)
    assert done.returncode == 1, done.stderr
    assert "0 of 1 pass" in done.stdout and "at most 0.1 s" in (tmp_path / "page.md").read_text()


def test_the_study_keeps_the_matrix_with_what_fails_and_its_command(tmp_path: Path) -> None:
    one = find_study("stress")
    changes = {"columns": ["scheme cm", "scheme xlink+"], "only": ["08"], "jobs": 2, "out": str(tmp_path / "out")}
    measured = one.measure("small", changes)
    copy = Study(one.name, tmp_path, one.declared)
    shutil.copy2(one.folder / CODE, tmp_path)
    measured.write(copy.file("small"))
    parts = dict(copy.kept("small").parts())
    head, _, row, arena, score = parts["matrix"].splitlines()
    assert head == "| scenario | `cm` | `xlink+` |" and "**fail" in row and "pass" in row
    assert (arena, score) == ("| arena | sim | sim |", "| score | 0/1 | 1/1 |")
    assert "at least 0.9 | `railyard stress 08-worse-path-first --scheme cm` |" in parts["fails"]
    assert version_words() in parts["versions"]


@needs_kernel
def test_the_column_of_mptcp_names_the_kernel_that_ran() -> None:
    assert re.fullmatch(r"Linux \d+\.\d+\.\d+\S*", subject("scheme", "mptcp").version)
