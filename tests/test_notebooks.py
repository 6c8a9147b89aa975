"""The notebooks as notebooks/README.md says to use them: converted, executed, with pictures."""

from __future__ import annotations

import base64
import os
import shlex
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from railyard.base.errors import UserError
from railyard.base.paths import ROOT, programs_dir
from railyard.report.chromium import find_chromium
from railyard.report.pictures import pictures
from railyard.studies.exhibits.notebook import PLOTLY_TYPE

BIN = Path(sys.executable).parent
PNG = b"\x89PNG\r\n\x1a\n"

pytestmark = pytest.mark.skipif(not (programs_dir() / "xlink-sim").is_file(), reason="needs xlink-sim: `make build`")


def documented(word: str) -> list[str]:
    """The words of the README's only command line with that word."""
    lines = (ROOT / "notebooks" / "README.md").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("jupytext ") and word in line.split()]
    return shlex.split(line, comments=True)


def execute(out: Path) -> list[Any]:
    """The documented command, which writes to `out`; returns the outputs of all cells."""
    command = documented("--execute")
    command[command.index("-o") + 1] = str(out)
    command[0] = str(BIN / command[0])
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"RAILYARD_RESULTS": str(out.parent / "results"), "RAILYARD_ARENA": "sim"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    cells = nbformat.read(out, as_version=4).cells  # type: ignore[no-untyped-call]
    return [output for cell in cells if cell.cell_type == "code" for output in cell.outputs]


@pytest.mark.skipif(find_chromium() is None, reason="needs Chromium: `scripts/setup.sh browser`")
def test_the_documented_command_executes_a_notebook_whose_plots_are_pictures(tmp_path: Path) -> None:
    plots = [output.data for output in execute(tmp_path / "page.ipynb") if PLOTLY_TYPE in output.get("data", {})]
    assert plots
    for plot in plots:
        picture = base64.b64decode(plot["image/png"])
        width, height = struct.unpack(">II", picture[16:24])
        assert picture.startswith(PNG) and width >= 1000 and height >= plot[PLOTLY_TYPE]["layout"]["height"]
        assert len(picture) > 10_000, "something is drawn"


@pytest.mark.parametrize(
    ("program", "sentence"),
    [("/no/chromium", "CHROMIUM is '/no/chromium', and there is no such program"), ("true", "the browser ended")],
)
def test_a_browser_that_is_missing_or_ends_at_once_is_one_sentence(
    program: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHROMIUM", program)
    with pytest.raises(UserError, match=sentence):
        pictures([])
