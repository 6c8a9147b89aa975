"""scripts/evaluate-recorded.py: what it prints of any campaign, also of one whose plays failed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from railyard.base.paths import ROOT

INDEX = """\
schema: 1
pairs:
- name: dark
  scenario: metro
  licence: CC0-1.0
  source: test
  paths:
  - {name: wifi, technology: wifi, uplink: dark.down, downlink: dark.down, base_rtt_ms: 30, queue: infinite}
  - {name: lte, technology: lte, uplink: dark.down, downlink: dark.down, base_rtt_ms: 70, queue: infinite}
"""
EXPERIMENT = """\
name: own
arena: sim
pairs: [dark, subway-1]
schemes: [sp, xlink]
seeds: 1
player: {duration_s: 4, chunk_bytes: 262144}
time_limit_s: 12
qlog: false
link_logs: false
"""


def evaluate(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "evaluate-recorded.py"), *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)


def test_plays_that_failed_are_lower_bounds_in_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dark.down").write_text("60000\n")
    (tmp_path / "index.yaml").write_text(INDEX)
    (tmp_path / "own.yaml").write_text(EXPERIMENT)
    monkeypatch.setenv("RAILYARD_TRACE_PATH", str(tmp_path))
    done = evaluate("--experiment", str(tmp_path / "own.yaml"), "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    rows = {line.split(" | ")[0].strip("| "): line for line in done.stdout.splitlines() if line.startswith("|")}
    assert rows["dark"].count("≥ 12.00") == 3, "sp, sp:best and xlink"
    assert "≥" not in rows["subway-1"]
    assert "goal of xlink+" not in done.stdout, "it was not played"
    assert "\n2 plays a scheme" in done.stdout and "nan" not in done.stdout
    assert any(line.startswith("| xlink | 2 | 1 | 50.0 ") for line in done.stdout.splitlines())


def test_the_clairvoyant_scheduler_is_a_reference_and_none_of_the_schemes(tmp_path: Path) -> None:
    schemes = "[sp, vanilla-mp, xlink+, {scheme: xlink+, label: clairvoyant, scheduler: clairvoyant}]"
    text = EXPERIMENT.replace("[sp, xlink]", schemes).replace("dark, subway-1", "subway-1, subway-2")
    text = text.replace("seeds: 1", "seeds: 2")
    (tmp_path / "own.yaml").write_text(text)
    done = evaluate("--experiment", str(tmp_path / "own.yaml"), "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    tables = [part.strip().splitlines() for part in done.stdout.split("\n\n") if part.strip().startswith("|")]
    heads = [table[0] for table in tables]
    schemes_of, pairs_of = tables[0], next(table for table in tables if table[0].startswith("| pair | oracle | sp"))
    assert schemes_of[-1].startswith("| clairvoyant |") and "clairvoyant" not in pairs_of[0]
    bounds = next(table for table in tables if table[0] == "| | RCT median | RCT p99 |")
    rows = [row.split(" | ")[0].strip("| ") for row in bounds[2:]]
    assert rows == [
        "oracle",
        "oracle's play",
        "clairvoyant",
        "xlink+",
        "best other (vanilla-mp, vanilla-mp)",
        "sp:best",
    ]
    medians = [float(row.split(" | ")[1].split(" ")[0]) for row in bounds[2:]]
    assert medians[0] <= medians[2] and medians[1] <= medians[2]
    assert "| goal of xlink+ | xlink+ | clairvoyant |" in heads
    shares = next(table for table in tables if table[0].endswith("| excess ms | a % | b % | c % |"))
    for row in shares[2:4]:
        assert sum(int(cell) for cell in row.strip("| ").split(" | ")[-3:]) in (99, 100, 101), row


def test_an_experiment_that_is_not_there_is_told_in_one_sentence() -> None:
    done = evaluate("--experiment", "nothing")
    assert done.returncode == 2
    assert done.stderr.startswith("railyard: there is no experiment 'nothing' in ") and done.stderr.count("\n") == 1
