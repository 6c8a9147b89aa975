"""The tutorials, and a guide: their commands as they stand, each from an empty folder with results of its own."""

import os
import re
from pathlib import Path

import pytest

from conftest import run_program
from railyard.base.paths import ROOT
from test_docs import ALL_BLOCKS

pytestmark = pytest.mark.usefixtures("built")


def follow(page: str, folder: Path) -> list[str]:
    """Follows a tutorial and returns the output of its commands."""
    tutorial = [block for block in ALL_BLOCKS if block.page.name == page and block.test]
    path = f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"
    environment = os.environ | {"RAILYARD_RESULTS": str(folder / "results"), "PATH": path}
    outputs = []
    for block in tutorial:
        if block.test.startswith("file "):
            (folder / block.test.split()[1]).write_text(block.text)
            continue
        wanted = int(block.test.removeprefix("run exits ")) if block.test != "run" else 0
        done = run_program(["sh", "-ec", block.text], cwd=folder, env=environment, timeout=120)
        assert done.returncode == wanted, f"{block}\n{done.stderr}"
        outputs.append(done.stdout)
    return outputs


def test_the_first_tutorial_runs(tmp_path: Path) -> None:
    run, show, query = follow("first-run.md", tmp_path)
    assert "report: results/first-sim-" in run and "xlink" in run
    assert "To do it again" in show and "5 rows" in query
    assert (tmp_path / "results" / "first" / "report.html").is_file()


@pytest.mark.long
def test_the_tutorial_of_a_paper_runs(tmp_path: Path) -> None:
    _, figures, _, archive, repeated = follow("paper.md", tmp_path)
    assert "figures/subway-1-cdf.pdf: Distribution of" in figures
    for name in ("differences.tex", "figures.tex"):
        assert r"\toprule" in (tmp_path / name).read_text() and r"\bottomrule" in (tmp_path / name).read_text()
    assert "subway-1.zip: " in archive and "licence" in archive
    assert "same bytes: 24 of 24 runs" in repeated


def test_the_tutorial_of_a_trace_runs(tmp_path: Path) -> None:
    _, stats, played = follow("my-trace.md", tmp_path)
    assert re.search(r"longest silence, s +│ +2\.00 │ +0\.0", stats), "the page says so"
    of_path, of_both = (re.search(rf" {scheme} +[\d.]+ +[\d.]+ +([\d.]+)", played) for scheme in ("sp", "vanilla-mp"))
    assert of_path and of_both, played
    assert float(of_path[1]) == pytest.approx(3.3, abs=0.1) and float(of_both[1]) < 1


def test_the_guide_to_a_slow_chunk_runs(tmp_path: Path) -> None:
    _, query, explained, differ, page = follow("explain.md", tmp_path)
    assert "3 rows" in query and explained.count("the links allow") == 2
    assert "first scheduling decision from chunk 2 on that differs" in differ
    assert page.strip().endswith("replay.html")


@pytest.mark.long
def test_the_lab_class_runs(tmp_path: Path) -> None:
    _, first, few, many, archived = follow("lab.md", tmp_path)
    assert first.count("the links allow") == 3
    assert "n too small" in few and "not decided" not in few.split("n too small:")[0]
    assert (tmp_path / "differences.html").is_file() and "[" in many
    assert "same bytes: 36 of 36 runs" in archived
