"""Figures of a report as files for a paper."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import plotly.graph_objects as go
import pytest

from conftest import FakeRun, good, one_sentence
from in_process import railyard
from railyard.base.errors import UserError
from railyard.base.paper import Paper, inches, write_figure
from railyard.report.sections import Context, pair_figures
from railyard.results.records import load_campaign

Make = Callable[..., Path]
LABELS = ("sp", "vanilla-mp", "xlink", "xlink+", "xlink,t_th1_ms=100")


@pytest.fixture
def campaign(make_campaign: Make) -> Path:
    return make_campaign(*(FakeRun(label=label, seed=seed) for label in LABELS for seed in (1, 2)))


def test_every_figure_of_a_pair_is_a_file_of_the_width_asked_for(campaign: Path) -> None:
    done = good(railyard("figures", str(campaign), "--format", "svg", "--width", "84mm"))
    context = Context(*load_campaign(campaign), folder=campaign)
    [(pair, row)] = context.cells.items()
    asked = {f"{pair}-{one.name}.svg" for one in pair_figures(context, pair, row)}
    assert {"subway-1-cdf.svg", "subway-1-bar-rebuffer_rate.svg", "subway-1-buffer.svg"} <= asked
    assert {file.name for file in (campaign / "figures").iterdir()} == asked
    for file in (campaign / "figures").iterdir():
        [width] = re.findall(r'<svg [^>]*width="([\d.]+)pt"', file.read_text())
        assert float(width) == pytest.approx(84 / 25.4 * 72, abs=0.01)
    assert "Distribution of the request completion time on subway-1" in done.stdout


def test_the_same_figure_gives_the_same_pdf_without_type_3_fonts(campaign: Path) -> None:
    files = []
    for name in ("a", "b"):
        assert railyard("figures", str(campaign), "--only", "cdf", "--out", str(campaign / name)).returncode == 0
        files.append((campaign / name / "subway-1-cdf.pdf").read_bytes())
    assert files[0] == files[1]
    assert files[0].startswith(b"%PDF") and b"/Type3" not in files[0]
    assert re.search(rb"/MediaBox \[ 0 0 237\.6 ", files[0])


def test_lines_of_schemes_stay_apart_in_a_grey_print(campaign: Path) -> None:
    context = Context(*load_campaign(campaign), folder=campaign)
    [(pair, row)] = context.cells.items()
    [cdf] = [one.figure for one in pair_figures(context, pair, row) if one.name == "cdf"]
    [axes] = Paper(cdf.to_dict(), 3.3).draw().axes
    looks = [(str(line._unscaled_dash_pattern), line.get_marker()) for line in axes.lines]  # type: ignore[attr-defined]
    assert len(looks) == len(LABELS) == len(set(looks))


def test_a_legend_has_the_marks_of_its_lines() -> None:
    """Lines with marks of their own get no others."""
    shown = {"a": "square", "b": "diamond-open"}
    figure = go.Figure([go.Scatter(x=[1, 2], y=[1, 2], name=name, mode="lines+markers", marker={"symbol": symbol})
                        for name, symbol in shown.items()])  # fmt: skip
    drawn = Paper(figure.to_dict(), 3.3).draw()
    handles = drawn.legends[0].get_lines()
    assert [line.get_marker() for line in handles] == ["s", "D"]
    assert handles[1].get_markerfacecolor() == "none"
    marks = {str(line.get_marker()) for line in drawn.axes[0].lines if line.get_marker() not in ("None", None)}
    assert marks == {"s", "D"}


def test_words_of_a_figure_are_shown_as_they_are(tmp_path: Path) -> None:
    figure = go.Figure(go.Bar(x=[1], y=["a_b $x$ <b>&amp;</b>"], orientation="h"))
    write_figure(figure.to_dict(), tmp_path / "bar.svg", 3.3)
    assert "a_b $x$ &amp;" in (tmp_path / "bar.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--width", "3.3"), "'3.3' is no width of a figure"),
        (("--width", "900in"), "'900in' is no width of a figure"),
        (("--format", "eps"), "unknown format 'eps'"),
        (("--only", "cdff"), "did you mean 'cdf'?"),
        (("--pair", "subway-2"), "did you mean 'subway-1'?"),
        (("--out", "/proc/here"), "cannot be written"),
    ],
)
def test_what_cannot_be_written_is_said(campaign: Path, arguments: tuple[str, ...], sentence: str) -> None:
    one_sentence(railyard("figures", str(campaign), *arguments), sentence)


def test_a_kind_of_plot_that_is_not_drawn_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'heatmap'"):
        write_figure(go.Figure(go.Heatmap(z=[[1]])).to_dict(), tmp_path / "heat.pdf", 3.3)


def test_widths_have_the_units_of_papers() -> None:
    assert [inches(text) for text in ("3.3in", "50.8mm", "5.08 cm", "144.54pt")] == pytest.approx([3.3, 2, 2, 2])


def test_without_latex_pgf_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="texlive-latex-base"):
        write_figure(go.Figure(go.Scatter(x=[1], y=[1])).to_dict(), tmp_path / "one.pgf", 3.3)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed: pgf cannot be tried")
def test_a_pgf_figure_is_accepted_by_latex(campaign: Path, tmp_path: Path) -> None:
    good(railyard("figures", str(campaign), "--format", "pgf", "--only", "cdf", "--only", "bar-rebuffer_rate"))
    names = [file.as_posix() for file in sorted((campaign / "figures").iterdir())]
    inputs = "".join(rf"\input{{{name}}}\par " for name in names)
    (tmp_path / "paper.tex").write_text(
        rf"\documentclass{{article}}\usepackage{{pgf}}\begin{{document}}{inputs}\end{{document}}"
    )
    made = subprocess.run(
        ["pdflatex", "-halt-on-error", "paper.tex"], cwd=tmp_path, capture_output=True, check=False, timeout=60
    )
    assert made.returncode == 0, made.stdout[-1500:]
