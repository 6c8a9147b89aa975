"""`railyard gate --stack`: two builds of a stack, the comment, Bencher's metrics, the history and its steps."""

import json
import os
import re
import subprocess
import sys
from math import inf
from pathlib import Path
from statistics import median
from typing import Any
from xml.etree import ElementTree

import pytest

from conftest import good, one_sentence, run_program
from railyard.base.errors import UserError
from railyard.base.paths import ROOT
from railyard.experiment.model import SchemeEntry
from railyard.experiment.stacks import resolve_stack, write_build
from railyard.figures.rows import FIRST_FRAME, RCT_MEDIAN
from railyard.gate import history
from railyard.gate.compare import Places, Row, compare, compared, corrected
from railyard.gate.history_page import write_page
from railyard.gate.output import Verdict, junit
from railyard.gate.suite import Floors, find_suite, load_suite
from railyard.results.pending import Place
from railyard.results.records import load_run
from railyard.run import vkernel
from railyard.stats.steps import change_point, steps
from railyard.stress.comment import comment, further
from railyard.stress.gate import Change, StackBuild, StackVerdict, corpus_row, power_of
from railyard.stress.predicates import Judged
from railyard.stress.run import FAIL, PASS, SIM, Cell, Subject, run_stress
from railyard.stress.scenario import find_scenario, load_scenario

RELAY = ROOT / "build" / "bin" / "xlink-relay"
SUITE = """\
name: short
arena: kernel
pairs: [lab-equal-12]
schemes: [tcp]
seeds: 6
start_offset_ms: drawn
links: {wifi: {delay_ms: 15}, lte: {delay_ms: 30}}
player: {bitrate_bps: 4000000, duration_s: 1, chunk_bytes: 131072, verify: false}
time_limit_s: 10
"""
SCENARIO = """\
name: {name}
sources: [RFC 9002]
pairs: [lab-equal-12]
links: {{wifi: {{delay_ms: 15}}, lte: {{delay_ms: 30}}}}
load_bytes: 1000000
time_limit_s: 4
link_events:
  - {{t_s: 0.3, path: {path}, state: down}}
expect:
  progress_gap_ms: {{from_s: 0.3, max: 1085}}
"""


def single_path(folder: Path) -> Path:
    """A build of libxlink's relay in which multipath is off: a later option overrides an earlier one."""
    program = folder / "xlink-relay"
    program.write_text(f'#!/bin/sh\nexec {RELAY} "$@" --scheme sp\n')
    program.chmod(0o755)
    return program


def gate(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "railyard", "gate", *words]
    environment = os.environ | {"COLUMNS": "200"}
    return run_program(command, cwd=folder, env=environment, timeout=580)


# --- builds -----------------------------------------------------------------------------------------------------------


def test_a_program_takes_the_place_of_the_first_word_of_both_commands(tmp_path: Path) -> None:
    program = single_path(tmp_path)
    run = resolve_stack(str(write_build("libxlink", program, tmp_path / "out")), {"cc": "newreno"}, tmp_path)
    assert run.client[:2] == (str(program), "client") and run.server[:2] == (str(program), "server")
    assert run.options["cc"] == "newreno" and "xlink-relay" in run.sha256


def test_the_files_of_a_folder_take_the_place_of_those_with_their_names(tmp_path: Path) -> None:
    (tmp_path / "stack").mkdir()
    (tmp_path / "build").mkdir()
    for place in ("stack/relay.py", "stack/other.py", "build/relay.py"):
        (tmp_path / place).write_text(place)
    members = {"name": "mine", "about": "a test's", "licence": "MIT", "client": ["sh", "./relay.py", "./other.py"]}
    (tmp_path / "stack" / "peer.yaml").write_text(json.dumps(members | {"server": ["sh", "./relay.py"]}))
    file = write_build(str(tmp_path / "stack"), tmp_path / "build", tmp_path / "out")
    run = resolve_stack(str(file), {}, tmp_path)
    assert run.client[1:] == (str(tmp_path / "build/relay.py"), str(tmp_path / "stack/other.py"))
    assert run.server[1:] == (str(tmp_path / "build/relay.py"),)


def test_a_folder_without_a_program_of_the_stack_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none of the programs of 'libxlink' \(xlink-relay\)"):
        write_build("libxlink", tmp_path, tmp_path / "out")
    with pytest.raises(UserError, match="there is no such program or folder"):
        write_build("libxlink", tmp_path / "nothing", tmp_path / "out")


# --- the verdict ------------------------------------------------------------------------------------------------------


def changed(before: Cell, after: Cell) -> str:
    return Change(load_scenario(find_scenario("01"))[0], before, after).verdict


def gap(figure: float | None) -> Cell:
    passed = figure is not None and figure <= 1000
    return Cell(PASS if passed else FAIL, [Judged("progress_gap_ms", figure, 1000.0, "ms", passed, "gap")])


def test_a_scenario_that_crosses_its_threshold_by_little_is_no_regression() -> None:
    assert changed(gap(990), gap(1100)) == "worse" and changed(gap(990), gap(1010)) == "below floor"
    assert changed(gap(1100), gap(990)) == "better" and changed(gap(990), gap(None)) == "worse"
    assert changed(gap(400), gap(900)) == "same"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> StackVerdict:
    """Two schemes of the simulator in the place of two builds: the second one has no suspect paths."""
    folder = tmp_path_factory.mktemp("two")
    (folder / "first-dark.yaml").write_text(SCENARIO.format(name="first-dark", path="wifi") + "seeds: 6\n")
    suite = load_suite(find_suite("stacks"))[0]
    matrices, builds = [], []
    for letter, scheme in (("A", "vanilla-mp"), ("B", "vanilla-mp-2021")):
        entry = SchemeEntry(scheme=scheme, label="mine")
        subject = Subject(entry, "mine", SIM)
        matrices.append(
            run_stress([folder / "first-dark.yaml"], [subject], Place(folder / letter), 1, lambda _: None, 5)
        )
        builds.append(StackBuild(f"build {letter}", letter, entry, resolve_stack("libxlink", {}, folder)))
    old, new = ([load_run(one) for one in matrix.cells["first-dark", "mine"].folders] for matrix in matrices)
    assert len(old) == 5, "of six seeds five are run"
    places, hashes = Places({}, {"lab-equal-12"}), {run.run_id: ("a", "b") for run in old}
    both = matrices[0], matrices[1]
    rows = [*compare(old, new, hashes, suite.floors, suite.alpha, places), corpus_row(both, suite)]
    found = power_of(old, new, places, suite)
    return StackVerdict(suite, "A", "B", corrected(rows), {}, 1.0, "mine", (builds[0], builds[1]), both, found)


def test_the_comment_says_what_ran_with_which_power_the_verdict_and_the_worst_pair(two: StackVerdict) -> None:
    words = comment(two)
    assert words.startswith("### Railyard gate, mine: 1 scenario broken") and two.is_regression
    assert "**What ran**: 5 plays of suite stacks and 1 scenario of the stress corpus (5 runs) with each build" in words
    assert "build A; `xlink-relay` " in words
    assert "**Power**: of 100 simulations the gate finds a change that makes every request 1.2 times" in words
    assert re.search(r"\*\*Worst pair\*\*: lab-equal-12, seed \d: longest request [\d.]+ s → [\d.]+ s, × [\d.]+", words)
    assert "A passes 1 of 1, B passes 0 of 1" in words and "| first-dark | pass" in words and "**worse**" in words
    assert "ms without progress after 0.3 s, at most 1085 ms" in words


def test_a_broken_scenario_is_in_junit_and_in_the_history(two: StackVerdict) -> None:
    suite = ElementTree.fromstring(junit(two)).find("testsuite[@name='scenarios']")  # noqa: S314  our own
    assert suite is not None and (suite.get("tests"), suite.get("failures")) == ("1", "1")
    told = history.line_of(two, further(two))
    assert told["regression"] and told["scenarios"] == {"first-dark": [PASS, FAIL]}
    assert (
        told["figures"]["stress corpus/mine"]["rct_p99"]
        > told["figures"]["lab-equal-12/first-dark--mine"]["first_frame"]
        > 0
    )


def test_what_cannot_run_leaves_a_comment_that_says_so(tmp_path: Path) -> None:
    done = gate(tmp_path, "--stack", "libxlink", "--baseline", "nothing", "--candidate", str(RELAY))
    one_sentence(done, "there is no such program or folder")
    comment = (tmp_path / "railyard-gate.md").read_text()
    assert "libxlink: could not run" in comment and "there is no such program" in comment


def test_the_same_files_are_identical_without_a_run(tmp_path: Path) -> None:
    if reason := vkernel.why_not():
        pytest.skip(reason)
    good(gate(tmp_path, "--stack", "libxlink", "--baseline", str(RELAY), "--candidate", str(RELAY)))
    assert "libxlink: identical" in (tmp_path / "railyard-gate.md").read_text()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_build_without_multipath_is_a_regression_that_all_outputs_show(tmp_path: Path) -> None:
    if reason := vkernel.why_not():
        pytest.skip(reason)
    (tmp_path / "suite.yaml").write_text(SUITE)
    words = ["--stack", "libxlink", "--baseline", str(RELAY), "--candidate", str(single_path(tmp_path))]
    for name, path in (("first-dark", "wifi"), ("second-dark", "lte")):
        (tmp_path / f"{name}.yaml").write_text(SCENARIO.format(name=name, path=path))
    words += ["--suite", "suite.yaml", "--scenarios", "first-dark.yaml,second-dark.yaml", "--jobs", "1"]
    done = gate(tmp_path, *words, "--bencher", "metrics.json", "--history", "history.jsonl", "--junit", "junit.xml")
    assert done.returncode == 1, done.stderr
    comment = (tmp_path / "railyard-gate.md").read_text()
    assert "1 scenario broken" in comment and "A passes 2 of 2, B passes 1 of 2" in comment
    assert "ms without progress after 0.3 s" in comment and "| first-dark | pass" in comment
    assert "**Power**: of 100 simulations" in comment and "**Worst pair**: lab-equal-12, seed" in comment
    cases = ElementTree.parse(tmp_path / "junit.xml").find("testsuite[@name='scenarios']")  # noqa: S314  our own
    assert cases is not None and (cases.get("tests"), cases.get("failures")) == ("2", "1")
    assert "first-dark: pass in A, fail in B" in done.stdout
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["stress corpus/libxlink"]["tail"]["value"] == 0.5
    assert metrics["lab-equal-12/libxlink"]["rct_median"]["value"] > 0
    [line] = history.read(tmp_path / "history.jsonl")
    assert line["regression"] and line["scenarios"] == {
        "first-dark": [PASS, FAIL],
        "second-dark": [PASS, PASS],
    }
    again = gate(tmp_path, *words, "--history", "history.jsonl")
    assert again.returncode == 1 and len(history.read(tmp_path / "history.jsonl")) == 2
    assert "2 verdicts" in (tmp_path / "history.html").read_text()


# --- history and steps ------------------------------------------------------------------------------------------------


def line(number: int, rct_s: float) -> dict[str, Any]:
    return {
        "schema": 1,
        "time": f"2026-11-{number + 1:02}T00:00:00+00:00",
        "suite": "short",
        "candidate": f"revision {number}",
        "verdict": "no regression",
        "figures": {"subway/noq": {"rct_median": rct_s, "failed": 0.0}},
    }


def test_a_history_is_only_appended_to(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    history.append(file, line(0, 1.0))
    first = file.read_bytes()
    file.write_bytes(first + b'{"cut')  # by a full disk
    history.append(file, line(1, 1.1))
    assert file.read_bytes().startswith(first)
    with pytest.raises(UserError, match=r"history\.jsonl:2: this is no line of a gate's history"):
        history.read(file)


def test_the_page_names_the_step_and_the_candidate_from_which_on_it_holds(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    for number in range(20):
        history.append(file, line(number, (1.0 if number < 12 else 1.2) + 0.01 * (number % 3)))
    page = write_page(file).read_text()
    assert "1 step in 20 verdicts" in page and "+19.8 %" in page
    assert page.index("revision 12") < page.index("revision 19"), "the step's own row comes first"
    assert not any(word in page for word in ('src="http', 'href="http'))


def test_a_step_below_the_floor_is_none(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    for number in range(20):
        history.append(file, line(number, 1.0 if number < 12 else 1.01))
    assert [one.steps for one in history.series_of(history.read(file))] == [[], []]


def test_steps_are_found_where_they_were_planted_and_nowhere_else() -> None:
    noise = [0.01 * ((37 * k) % 11) for k in range(60)]
    level = [1.0] * 20 + [2.0] * 25 + [1.5] * 15
    found = steps([a + b for a, b in zip(level, noise, strict=True)])
    assert [step.index for step in found] == [20, 45]
    assert found[0].after == pytest.approx(median(level[20:45]) + 0.05, abs=0.02) and found[0].p < 0.001
    assert steps(noise) == [] and change_point([1.0] * 30) is None and change_point([1.0, 2.0]) is None


def test_metrics_of_the_candidate_have_the_bounds_of_their_change() -> None:
    before, after = [1.0 + 0.01 * k for k in range(12)], [1.2 + 0.012 * k for k in range(12)]
    one = compared(RCT_MEDIAN, before, after, range(12), Floors(), 0.05)
    row = Row(
        "subway", "noq", [], [], False, [one, compared(FIRST_FRAME, before, [inf] * 12, range(12), Floors(), 0.05)]
    )
    suite = load_suite(find_suite("stacks"))[0]
    found = history.bencher(Verdict(suite, "A", "B", [row], {}, 1.0))
    assert list(found) == ["subway/noq"] and list(found["subway/noq"]) == ["rct_median"], "what is infinite is left out"
    metric = found["subway/noq"]["rct_median"]
    assert metric["value"] == one.typical[1]
    assert metric["lower_value"] == pytest.approx(1.2 * median(before)) == metric["upper_value"]
