"""The lab notebooks in Jupyter: as students get them, and with the solutions."""

import json
import re
from pathlib import Path

import jupytext
import numpy as np
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from lab_solutions import SOLUTIONS
from railyard.arenas import sim
from railyard.base.errors import UserError
from railyard.base.paths import ROOT
from railyard.lab import Check, check, path, tail, whole
from railyard.lab import scheduler as lab

NOTEBOOKS = ROOT / "notebooks"
EXERCISE = re.compile(r"^# exercise (\d+)$", re.MULTILINE)
CHECK = re.compile(r"^lab\.\w+\(.*\)$", re.MULTILINE)

needs_sim = pytest.mark.usefixtures("built")


def notebook(name: str) -> NotebookNode:
    read: NotebookNode = jupytext.read(NOTEBOOKS / f"{name}.py")
    return read


def exercises(lab_notebook: NotebookNode) -> dict[int, NotebookNode]:
    """The cells of exercises, by number."""
    numbered = ((EXERCISE.search(cell.source), cell) for cell in lab_notebook.cells if cell.cell_type == "code")
    return {int(number[1]): cell for number, cell in numbered if number is not None}


def said(name: str, solutions: dict[int, str], folder: Path) -> dict[int, str]:
    """The output of the checks in Jupyter, by exercise. Code before a check is replaced by the solution."""
    lab_notebook = notebook(name)
    cells = exercises(lab_notebook)
    for number, cell in cells.items():
        call = CHECK.search(cell.source)
        assert call is not None, cell.source
        code = solutions.get(number, cell.source[: call.start()])
        cell.source = f"{code}\n{call[0]}"
    client = NotebookClient(
        lab_notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(NOTEBOOKS)}}
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAILYARD_RESULTS", str(folder))
        client.execute()
    return {number: shown(cell) for number, cell in cells.items()}


def shown(cell: NotebookNode) -> str:
    """The text of the value that a cell ends with."""
    (value,) = (output for output in cell.outputs if output.output_type == "execute_result")
    return str(value.data["text/plain"])


def is_solved(name: str, folder: Path) -> None:
    words = said(name, SOLUTIONS[name], folder)
    assert words.keys() == SOLUTIONS[name].keys()
    assert all(word.startswith("Right.") for word in words.values()), words


@needs_sim
def test_the_lab_of_paths_is_solved(tmp_path: Path) -> None:
    is_solved("lab-path", tmp_path)


@pytest.mark.long
@needs_sim
def test_the_lab_of_tails_is_solved(tmp_path: Path) -> None:
    is_solved("lab-tail", tmp_path)


@pytest.mark.long
@needs_sim
def test_the_lab_of_schedulers_is_solved(tmp_path: Path) -> None:
    is_solved("lab-scheduler", tmp_path)


@pytest.mark.long
@needs_sim
@pytest.mark.parametrize("name", SOLUTIONS)
def test_a_lab_runs_to_its_end_without_an_answer(name: str, tmp_path: Path) -> None:
    words = said(name, {}, tmp_path)
    assert words.keys() == SOLUTIONS[name].keys()
    assert all(word.startswith("Not ") for word in words.values()), words


@pytest.mark.parametrize("name", SOLUTIONS)
def test_no_notebook_has_a_solution_and_each_exercise_has_one(name: str) -> None:
    assert list(exercises(notebook(name))) == list(SOLUTIONS[name])
    text = (NOTEBOOKS / f"{name}.py").read_text(encoding="utf-8")
    for solution in SOLUTIONS[name].values():
        assert not solution.strip() or solution.strip() not in text


def test_an_answer_is_open_right_or_not_yet() -> None:
    assert check(..., 1.0, "hint") == Check(False, "Not answered yet.")
    assert check(1.04, 1.0, "hint", 0.05).right and not check(1.06, 1.0, "hint", 0.05).right
    assert check("More ", "more", "hint").right and check("less", "more", "hint").words == "Not yet. hint"
    assert check("1", 1.0, "hint").words == "Not yet. The answer is a number, and this is '1'."


def test_a_whole_number_may_have_any_type() -> None:
    assert [whole(answer) for answer in (16, 16.0, np.int64(16), np.float64(16))] == [16] * 4
    assert [whole(answer) for answer in (16.5, float("inf"), float("nan"), True, "16", [16])] == [None] * 6


def test_a_quantile_is_right_by_any_way_and_wrong_if_ranks_are_rounded() -> None:
    assert tail.quantile(lambda values, q: float(np.quantile(values, q, method="inverted_cdf"))).right
    assert not tail.quantile(lambda values, q: sorted(values)[max(0, round(q * len(values)) - 1)]).right
    assert not tail.quantile(lambda values, q: sorted(values)[min(len(values) - 1, int(q * len(values)))]).right


@needs_sim
def test_a_queue_is_right_as_a_number_of_numpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAILYARD_RESULTS", str(tmp_path))
    assert path.shortest_queue(np.float64(16)).right
    assert path.shortest_queue(30).words.startswith("Not yet. Half of it is enough")
    assert path.shortest_queue(8).words.startswith("Not yet. With 8 packets a chunk takes")


def test_the_simulator_of_schedulers_is_built_of_the_present_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "root" / "lib" / "a.c"
    source.parent.mkdir(parents=True)
    monkeypatch.setattr(lab, "ROOT", tmp_path / "root")
    monkeypatch.setattr(lab, "SOURCES", ("lib",))
    monkeypatch.setattr(lab, "OBJECTS", ())
    tree = tmp_path / "tree"
    for text in ("old", "new"):
        source.write_text(text)
        (tree / "lib" / "of_a_copy_that_was_stopped.c").parent.mkdir(parents=True, exist_ok=True)
        lab._copy_tree(tree)
        assert (tree / "lib" / "a.c").read_text() == text
    kept = tree / "object.o"
    kept.touch()
    lab._copy_tree(tree)
    assert kept.is_file()


def scheduler(body: str) -> str:
    """A scheduler that decides by these lines of C."""
    return f"""
#include "scheduler/scheduler.h"

void other(void);

static void decide(void *state, const xl_scheduler_view *view, xl_scheduler_decision *out) {{
    (void)state;
    {body}
}}

const xl_scheduler_ops xl_scheduler_mine = {{.name = "mine", .decide = decide}};
"""


BY_RTT = "xl_scheduler_decide_by_rtt(view, out);"


@needs_sim
def test_a_scheduler_that_prefers_the_slow_path_is_no_round_robin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAILYARD_RESULTS", str(tmp_path))
    turn = "if (out->count > 1) { size_t first = out->order[0]; out->order[0] = out->order[1]; out->order[1] = first; }"
    assert lab.alternates(scheduler(f"{BY_RTT} {turn}"), "both").words.startswith(
        "Not yet. This is no round robin: at most 3 packets"
    )


# What crashes has fast requests before: their median would be below that of min-RTT.
@needs_sim
@pytest.mark.parametrize(
    ("body", "ended"),
    [
        ("(void)view; out->order[0] = 17; out->count = 1;", "connection_lost .*scheduler mine: .* is 17"),
        (f"if (view->now > 3000000) {{ *(volatile int *)0 = 1; }} {BY_RTT}", r"crashed \(xlink-sim died of SIGSEGV"),
    ],
)
def test_a_scheduler_that_chooses_no_path_of_the_view_or_crashes_has_no_figures(
    tmp_path: Path, body: str, ended: str
) -> None:
    with pytest.raises(UserError, match=f"^no figures: .*--mine--s1 {ended}"):
        lab.race(scheduler(body), ["subway-1"], seeds=1, out=tmp_path / "race")


@pytest.mark.long
@needs_sim
def test_a_scheduler_that_does_not_link_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"does not compile: .*mine\.c:.*undefined reference to .other"):
        lab.build(scheduler(f"other(); {BY_RTT}"), tmp_path / "tree")


@pytest.mark.long
@needs_sim
def test_a_scheduler_that_does_not_compile_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"does not compile: .*mine\.c:1:.*error") as caught:
        lab.build("int broken int;\n", tmp_path / "tree")
    assert "\n" not in str(caught.value)


@needs_sim
def test_a_scheduler_that_loops_has_hung_after_its_own_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = scheduler(f"while (*(volatile const uint64_t *)&view->now > 3000000) {{}} {BY_RTT}")
    assert lab.HANG_S <= 30
    monkeypatch.setattr(lab, "HANG_S", 5.0)
    with pytest.raises(UserError, match=r"^no figures: .*--mine--s1 hung"):
        lab.race(code, ["subway-1"], seeds=1, out=tmp_path / "race")
    record = json.loads((tmp_path / "race" / "runs" / "subway-1--mine--s1" / "run.json").read_text())
    assert record["wall_s"] < sim.WALL_LIMIT_S and "wall_limit_s" not in record["config"]
