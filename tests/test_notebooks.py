"""The notebooks, used as in notebooks/README.md: converted, executed, with pictures."""

import base64
import os
import re
import shlex
import struct
import sys
from pathlib import Path
from typing import Any

import nbformat
import plotly.graph_objects as go
import plotly.io
import pytest

from conftest import good, run_program
from railyard.base.errors import UserError
from railyard.base.paths import ROOT
from railyard.report.pictures import also_as_pictures
from railyard.studies.exhibits.notebook import PLOTLY_TYPE, open_page
from railyard.studies.study import SIZE, find_study

BIN = Path(sys.executable).parent
PNG = b"\x89PNG\r\n\x1a\n"

pytestmark = pytest.mark.usefixtures("built")


def documented(word: str, out: Path) -> str:
    """The README's only command line with that word, which writes to `out` instead."""
    lines = (ROOT / "notebooks" / "README.md").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("jupytext ") and word in line]
    command, changed = re.subn(r"\S+\.ipynb", shlex.quote(str(out)), line)
    assert changed == 1
    return command


def execute(command: str, out: Path) -> list[Any]:
    """The outputs of all cells."""
    environment = os.environ | {"RAILYARD_RESULTS": str(out.parent / "results"), "RAILYARD_ARENA": "sim"}
    environment["PATH"] = f"{BIN}:{environment['PATH']}"
    good(run_program(["bash", "-euo", "pipefail", "-c", command], cwd=ROOT, env=environment))
    cells = nbformat.read(out, as_version=4).cells  # type: ignore[no-untyped-call]
    return [output for cell in cells if cell.cell_type == "code" for output in cell.outputs]


def plots_of(outputs: list[Any]) -> list[Any]:
    return [output.data for output in outputs if PLOTLY_TYPE in output.get("data", {})]


def test_the_documented_command_opens_an_exhibit_whose_plots_are_pictures(tmp_path: Path) -> None:
    out = tmp_path / "page.ipynb"
    plots = plots_of(execute(documented("-p name fig8", out), out))
    assert plots
    for plot in plots:
        picture = base64.b64decode(plot["image/png"])
        width, height = struct.unpack(">II", picture[16:24])
        assert picture.startswith(PNG) and width >= 1000 and height >= plot[PLOTLY_TYPE]["layout"]["height"]
        assert len(picture) > 10_000, "something is drawn"


@pytest.mark.long
def test_the_same_command_opens_a_study(tmp_path: Path) -> None:
    out = tmp_path / "page.ipynb"
    outputs = execute(documented("-p name fig8", out).replace("fig8", "early-data"), out)
    shown = "".join(output.data.get("text/markdown", "") for output in outputs if "data" in output)
    for _, text in find_study("early-data").kept(SIZE).parts():
        assert text in shown


@pytest.mark.long
def test_the_tour_draws_and_prints(tmp_path: Path) -> None:
    out = tmp_path / "page.ipynb"
    outputs = execute(documented("tour.py", out), out)
    plots = plots_of(outputs)
    assert len(plots) == 3
    assert all(base64.b64decode(plot["image/png"]).startswith(PNG) for plot in plots)
    printed = "".join(output.get("text", "") for output in outputs)
    assert "vanilla-mp" in printed and "reinjection_cost" in printed


@pytest.mark.parametrize("plot", [go.Box(y=[1, 2, 3]), go.Scatter(y=[1, 2], line_color="hsl(0, 50%, 50%)")])
def test_a_plot_of_another_kind_is_interactive_only(plot: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plotly.io.renderers, "default", plotly.io.renderers.default)
    also_as_pictures()
    forms = go.Figure(plot)._repr_mimebundle_()
    assert PLOTLY_TYPE in forms and "image/png" not in forms
    assert forms["text/plain"].startswith("This plot is interactive only: ")


def test_a_name_that_is_neither_exhibit_nor_study_is_one_sentence() -> None:
    with pytest.raises(UserError, match="there is no exhibit or study 'early-dat'; did you mean 'early-data'"):
        open_page("early-dat")
