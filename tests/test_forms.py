"""Tables in the forms that other programs read."""

import csv
import io
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.table import Table
from rich.text import Text

from conftest import FakeRun, good, one_sentence
from in_process import railyard
from railyard.base.forms import Form, value_of, written
from railyard.base.paths import ROOT

Make = Callable[..., Path]


def a_table() -> Table:
    table = Table("scheme", "RCT s\np99", "share")
    table.columns[1].justify = "right"
    table.add_row("sp|best", Text("1.250"), "12.5 %")
    table.add_row("a_b & \\c", "–", "−3")
    return table


def printed(campaign: Path, command: str, form: str, *options: str) -> str:
    done = good(railyard(command, str(campaign), "--format", form, *options))
    return done.stdout


@pytest.fixture
def campaign(make_campaign: Make) -> Path:
    drawn = random.Random(1)
    return make_campaign(
        *(
            FakeRun(label=label, scheme=scheme, seed=seed, start_offset_ms=60_000 * seed, rct_s=[slow + drawn.random()])
            for label, scheme, slow in (("sp", "sp", 2.0), ("xlink", "xlink", 1.0))
            for seed in range(1, 13)
        )
    )


def test_numbers_are_numbers_and_nothing_is_null() -> None:
    assert [value_of(text) for text in ("3", "−3", "1.50", "12.5 %", "–", "", "n too small")] == [
        3, -3, 1.5, 0.125, None, None, "n too small",
    ]  # fmt: skip
    assert json.loads(written(a_table(), Form.JSON)) == [
        {"scheme": "sp|best", "RCT s p99": 1.25, "share": 0.125},
        {"scheme": "a_b & \\c", "RCT s p99": None, "share": -3},
    ]


def test_csv_is_read_back() -> None:
    rows = list(csv.DictReader(io.StringIO(written(a_table(), Form.CSV))))
    assert rows[0] == {"scheme": "sp|best", "RCT s p99": "1.25", "share": "0.125"} and rows[1]["RCT s p99"] == ""


def test_markdown_and_latex_escape_what_they_give_a_meaning() -> None:
    assert written(a_table(), Form.MARKDOWN).splitlines() == [
        "| scheme | RCT s p99 | share |",
        "| --- | --- | --- |",
        "| sp\\|best | 1.250 | 12.5 % |",
        "| a_b & \\c | – | −3 |",
    ]
    latex = written(a_table(), Form.LATEX)
    assert r"\begin{tabular}{lrl}" in latex and r"sp|best & 1.250 & 12.5 \% \\" in latex
    assert r"a\_b \& \textbackslash{}c & -- & $-$3 \\" in latex


def test_a_comparison_is_rows_of_numbers(campaign: Path) -> None:
    rows: list[dict[str, Any]] = json.loads(printed(campaign, "compare", "json", "--against", "sp"))
    median = next(row for row in rows if row["figure"] == "rct_median")
    assert median["scheme"] == "xlink" and median["against"] == "sp" and median["relative"]
    assert median["low"] < median["difference"] < median["high"] < 0
    assert median["scheme_value"] < median["against_value"]
    assert [row["difference"] for row in rows] == [
        pytest.approx(float(row["difference"])) if row["difference"] else None
        for row in csv.DictReader(io.StringIO(printed(campaign, "compare", "csv", "--against", "sp")))
    ]


@pytest.mark.parametrize("form", ["json", "csv", "markdown", "latex"])
def test_a_campaign_is_one_table_without_further_sentences(campaign: Path, form: str) -> None:
    text = printed(campaign, "show", form)
    lines = {"json": 2 * 12, "csv": 3, "markdown": 4, "latex": 8}
    assert len(text.splitlines()) >= lines[form]
    assert "Established" not in text and "xlink" in text


def test_forms_that_programs_read_are_utf8_in_every_locale(make_campaign: Make) -> None:
    campaign = make_campaign(FakeRun(label="→ 2×", scheme="sp", seed=1, rct_s=[1.0]))
    command = [sys.executable, "-m", "railyard", "show", str(campaign), "--format", "csv"]
    environment = os.environ | {"PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(command, capture_output=True, check=True, cwd=ROOT, env=environment)
    assert "→ 2×" in done.stdout.decode()


def test_an_unknown_form_is_a_mistake(campaign: Path) -> None:
    one_sentence(railyard("show", str(campaign), "--format", "yaml"), "yaml")
