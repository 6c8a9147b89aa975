"""The lab notebooks: as students get them, and with the solutions."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lab_solutions import SOLUTIONS
from railyard.base.errors import UserError
from railyard.base.paths import ROOT, programs_dir
from railyard.lab import Check, check
from railyard.lab import scheduler as lab

NOTEBOOKS = ROOT / "notebooks"
CELL = re.compile(r"^# %%.*$", re.MULTILINE)
EXERCISE = re.compile(r"^# exercise (\d+)$", re.MULTILINE)
CHECK = re.compile(r"^lab\.\w+\(.*\)$", re.MULTILINE)

needs_sim = pytest.mark.skipif(not (programs_dir() / "xlink-sim").is_file(), reason="needs xlink-sim: `make build`")


def cells(name: str) -> list[str]:
    """The code of a notebook, cell by cell."""
    text = (NOTEBOOKS / f"{name}.py").read_text(encoding="utf-8")
    return [cell for cell in CELL.split(text)[1:] if not all(not line or line[0] == "#" for line in cell.splitlines())]


def answered(name: str, solutions: dict[int, str]) -> str:
    """A program of all cells, in which each check prints what it says. Code before it is replaced by the solution."""
    program: list[str] = []
    for cell in cells(name):
        number, call = EXERCISE.search(cell), CHECK.search(cell)
        if number is None:
            program.append(cell)
            continue
        assert call is not None, cell
        code = solutions.get(int(number[1]), cell[: call.start()])
        program.append(f"{code}\nprint('exercise', {number[1]}, repr({call[0]}))")
    return "\n".join(program)


def run(program: str, folder: Path) -> dict[int, str]:
    """What the checks said, by exercise."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=NOTEBOOKS,
        env=os.environ | {"RAILYARD_RESULTS": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return {int(number): words for number, words in re.findall(r"^exercise (\d+) (.*)$", done.stdout, re.MULTILINE)}


def is_solved(name: str, folder: Path) -> None:
    said = run(answered(name, SOLUTIONS[name]), folder)
    assert said.keys() == SOLUTIONS[name].keys()
    assert all(words.startswith("Right.") for words in said.values()), said


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
    said = run(answered(name, {}), tmp_path)
    assert said.keys() == SOLUTIONS[name].keys()
    assert all(words.startswith("Not ") for words in said.values()), said


@pytest.mark.parametrize("name", SOLUTIONS)
def test_no_notebook_has_a_solution_and_each_exercise_has_one(name: str) -> None:
    text = (NOTEBOOKS / f"{name}.py").read_text(encoding="utf-8")
    assert [int(number) for number in EXERCISE.findall(text)] == list(SOLUTIONS[name])
    for solution in SOLUTIONS[name].values():
        assert not solution.strip() or solution.strip() not in text


def test_an_answer_is_open_right_or_not_yet() -> None:
    assert check(..., 1.0, "hint") == Check(False, "Not answered yet.")
    assert check(1.04, 1.0, "hint", 0.05).right and not check(1.06, 1.0, "hint", 0.05).right
    assert check("More ", "more", "hint").right and check("less", "more", "hint").words == "Not yet. hint"
    assert check("1", 1.0, "hint").words == "Not yet. The answer is a number, and this is '1'."


@pytest.mark.long
@needs_sim
def test_a_scheduler_that_does_not_compile_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"does not compile: .*mine\.c:1:.*error") as caught:
        lab.build("int broken int;\n", tmp_path / "tree")
    assert "\n" not in str(caught.value)
