"""`railyard study try-scheduler`: what a change moves over many pairs, some of which it makes itself."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from in_process import railyard
from railyard.base.paths import ROOT
from railyard.results.differences import sound
from railyard.results.records import load_campaign

COLUMNS = (
    *("pairs", "scheme", "median", "p95", "p99", "excess", "first frame", "rebuffering", "redundancy"),
    *("failed", "number"),
)
PAIRS = "[subway:101-105]"
INDEX = """file,scenario,technology,direction,source,licence,pair_with,pair_kind
bus.down,bus,LTE,down,A,CC0,,single
walk.down,walking,Wi-Fi,down,B,CC0,,single
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all: what one trial played, the next one takes over."""
    return tmp_path_factory.mktemp("trials")


def tried(out: Path, status: int = 0, traces: Path | None = None, **settings: Any) -> tuple[dict[str, str], str]:
    """The first row of the table by its columns, and all that was printed."""
    asked = {"out": out, "tried": ROOT, "experiments": "[light]", "starts": 1} | settings
    sets = (word for name, value in asked.items() for word in ("--set", f"{name}={value}"))
    done = railyard("study", "try-scheduler", *sets, RAILYARD_TRACE_PATH=str(traces or ""))
    assert done.returncode == status, done.stderr
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("|")]
    return (dict(zip(COLUMNS, rows[2], strict=False)) if len(rows) > 2 else {}), done.stdout + done.stderr


def test_a_build_against_itself_changes_nothing(out: Path) -> None:
    row, said = tried(out, train=PAIRS, against=ROOT)
    assert (row["pairs"], row["number"], row["scheme"]) == ("train, light", "5", "xlink+")
    assert [row[name] for name in ("median", "excess")] == ["+0.0 [+0.0, +0.0]"] * 2
    assert "- train, light, xlink+: nothing." in said


def test_settings_change_what_they_are_about_and_both_sets_are_told(out: Path) -> None:
    more = "{scheduler: redundant}"
    sets: dict[str, Any] = {"train": PAIRS, "check": "[hsr-1, walking-1]"}
    row, said = tried(out, **sets, schemes="[vanilla-mp]", changes=more)
    assert "with {'scheduler': 'redundant'} against" in said
    before_and_after = re.match(r"\+(\d+\.\d+) \[\+.*\], to (\d+\.\d+)$", row["redundancy"])
    assert before_and_after and 20 < float(before_and_after[1]) <= float(before_and_after[2])
    assert re.search(r"- train, light, vanilla-mp: .*redundancy higher", said)
    checked = next(line for line in said.splitlines() if line.startswith("| check, light | vanilla-mp |"))
    assert "n too small" in checked, "two pairs have no interval"
    short = next(line for line in said.splitlines() if line.startswith("- check, light, vanilla-mp: "))
    assert re.search(r"n too small: .*\(\d+ of \d+ [a-z ]+; \d+ more: ", short)


def test_the_median_is_the_geometric_mean_of_the_pairs_ratios(out: Path) -> None:
    row, _ = tried(out, train=PAIRS, changes="{scheduler: roundrobin}")
    settings = {file: json.loads((file / "campaign.json").read_text()) for file in out.glob("evaluation-*-sim-*")}
    by_scheduler = {
        record["experiment"]["schemes"][0].get("scheduler"): sound(load_campaign(file)[1])
        for file, record in settings.items()
        if len(record["experiment"]["pairs"]) == 5 and record["experiment"]["schemes"][0]["scheme"] == "xlink+"
    }
    label = by_scheduler[None][0].label
    ratios = 1.0
    for before, after in zip(by_scheduler[None], by_scheduler["roundrobin"], strict=True):
        assert (before.pair, before.label) == (after.pair, label)
        values = [sorted(chunk.rct_s for chunk in run.chunks) for run in (before, after)]
        ratios *= values[1][(len(values[1]) - 1) // 2] / values[0][(len(values[0]) - 1) // 2]
    assert row["median"].startswith(f"{100 * (ratios ** (1 / 5) - 1):+.1f} [")


def test_single_recordings_become_a_pair(out: Path, tmp_path: Path) -> None:
    (tmp_path / "INDEX.csv").write_text(INDEX)
    (tmp_path / "bus.down").write_text("".join(f"{ms}\n" for ms in range(0, 60001, 4)))
    (tmp_path / "walk.down").write_text("".join(f"{ms}\n" for ms in range(0, 70001, 3)))
    row, _ = tried(out, traces=tmp_path, train="[walk+bus]", against=ROOT)
    assert row["number"] == "1"
    assert "walk-with-bus" in (out / "pairs" / "index.yaml").read_text()


def test_a_change_that_crashes_has_no_figures(out: Path, tmp_path: Path) -> None:
    program = tmp_path / "build" / "bin" / "xlink-sim"
    program.parent.mkdir(parents=True)
    crashes = f"""#!/bin/sh
[ "$1" = --batch ] || exec {ROOT}/build/bin/xlink-sim "$@"
read line
out=${{line#*\t}}
: > "$out/player.jsonl"
kill -SEGV $$
"""
    program.write_text(crashes)
    program.chmod(0o755)
    _, said = tried(out, status=2, train="[subway-1, hsr-1]", tried=tmp_path, against=ROOT)
    words = "2 of 2 plays of the side 'tried' ended by a program's fault, the first subway-1--xlink_--s1, crashed: "
    assert words + "xlink-sim died of SIGSEGV" in " ".join(said.split()), said


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"train": "[]"}, "there are no pairs to compare on"),
        ({"train": "[underground:1-3]"}, "'underground:1-3' is no MODEL:SEED or MODEL:FIRST-LAST; the models are"),
        ({"train": "[none+nor]"}, "there is no trace 'none', nor none.down in RAILYARD_TRACE_PATH; name a file."),
        ({"changes": "{rescue"}, "--set 'changes={rescue' is not KEY=VALUE with a value of YAML"),
        ({"changes": "rescue"}, "--set changes: Input should be a valid dictionary"),
        ({"train": "[subway-1]", "changes": "{rescue: perhaps}"}, "rescue"),
    ],
)
def test_what_cannot_be_tried_is_one_sentence(out: Path, settings: dict[str, Any], said: str) -> None:
    _, printed = tried(out, status=2, **settings)
    assert said in " ".join(printed.split()) and "Traceback" not in printed
