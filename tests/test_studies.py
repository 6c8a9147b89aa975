"""Studies: each is a folder, and pages show what is kept of its measurements between markers."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

from kernel_machine import children_of, name_of
from railyard.base.errors import UserError
from railyard.base.paths import ROOT, STUDIES_DIR
from railyard.studies import study
from railyard.studies.machine import output_of
from railyard.studies.study import FILE, MARKED, PAGES, SIZE, as_kept, find_study, studies
from test_one_file import follow, tree
from waiting import wait_until, wait_until_gone

__all__ = ["follow", "tree"]


def names_below(pid: int) -> set[str]:
    return {name_of(child) for child in children_of(pid)}


Follow = Callable[..., str]
PAGE = {page.name: page.read_text(encoding="utf-8") for page in sorted(PAGES.glob("*.md"))}


def test_every_study_has_its_sizes_and_a_page_that_names_its_command() -> None:
    docs = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md"))
    for one in studies():
        assert {"small", SIZE} <= one.declared.sizes.keys()
        for size in one.declared.sizes:
            one.settings(size, {})
        assert f"railyard study {one.name}" in docs, one.name


@pytest.mark.parametrize("name", sorted(PAGE))
def test_a_pages_tables_are_what_is_kept(name: str) -> None:
    assert as_kept(PAGE[name]) == PAGE[name], "run `make docs`"


def test_what_is_kept_is_on_a_page() -> None:
    """Or a part of what is. And was measured at the settings that the size has."""
    marked = {(found["name"], found["size"]) for text in PAGE.values() for found in MARKED.finditer(text)}
    kept = {(file.parent.name.replace("_", "-"), file.stem) for file in STUDIES_DIR.glob("*/*.json")}
    parts = set()
    for name, size in kept:
        one = find_study(name)
        settings = one.kept(size).settings
        assert settings == one.settings(size, {})
        parts |= {(name, part) for part in getattr(settings, "kept", [])}
    assert marked <= kept <= marked | parts


def test_what_is_kept_names_no_folder_of_a_machine() -> None:
    for file in STUDIES_DIR.glob("*/*.json"):
        found = re.search(r"(?<![\w.*<>])/(home|root|tmp|work|usr|opt)/[^\"]*", file.read_text(encoding="utf-8"))
        assert found is None, (file, found)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("bulk", "; run it as root, or with --size loopback."),
        ("mpshell-lateness", "; run it as root."),
        ("mtu", "; run it as root."),
    ],
)
def test_a_study_that_may_not_make_namespaces_says_what_it_needs(
    name: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("railyard.run.confine.effective_capabilities", lambda: 0)
    with pytest.raises(UserError) as refused:
        find_study(name).measure(SIZE, {})
    assert str(refused.value) == f"{name} makes network namespaces{remedy}"


def test_transfers_at_random_loss_say_that_the_kernel_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in a table in which all have failed."""
    monkeypatch.setattr("railyard.run.vkernel.at_hand", lambda: None)
    with pytest.raises(UserError, match="no kernel is at hand: `make kernel` builds one"):
        find_study("random-loss").measure("small", {"servers": {"tcp": "TCP"}})


def test_transfers_at_random_loss_name_an_unknown_stack_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("railyard.run.vkernel.at_hand", lambda: Path("kernel"))
    with pytest.raises(UserError, match=r"^there is no peer 'x': there are .*xlink[^.]*[.]$"):
        find_study("random-loss").measure("small", {"servers": {"x": "X"}})
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("name", "changes", "sentence"),
    [
        ("stacks", {"against": "vanilla"}, "no run of scheme 'vanilla'; did you mean 'vanilla-mp'"),
        ("paths", {"against": {"sp": ["x"]}}, "no run of scheme 'x'; known are "),
        ("paths", {"against": {"x": ["sp"]}}, "no run of scheme 'x'; known are "),
        ("generator", {"measured": {"x": {}}}, r"--set measured: 'x' is no model; known are .*hsr.*\.$"),
        ("generator", {"measured": {"hsr": {"x": {}}}}, "'x' is no path of hsr; known are both, "),
        ("generator", {"measured": {"hsr": {"lte": {"x": 1}}}}, "'x' is no statistic of hsr, lte; known are mean_mbps"),
        (
            "generator",
            {"measured": {"hsr": {"lte": {"cv": [2, 1]}}}},
            "--set measured.hsr.lte.cv: write the least value first",
        ),
        ("generator", {"duration_s": 4000}, "--set duration_s: "),
        ("fairness", {"arms": {"xlink": {"scheme": "xlink"}}}, "--set arms: 'vanilla-mp' is missing"),
        ("fairness", {"only": {"x": []}}, "--set only: 'x' is no part; known are short, split, viewers"),
        ("cost-bounds", {"rates": []}, "--set rates: "),
        ("bulk", {"ways": []}, "--set ways: "),
        ("cost-bounds", {"pairs": []}, "--set pairs: "),
        ("generator", {"measured": {}}, "--set measured: "),
        ("mptcp-modes", {"later_ms": []}, "--set later_ms: "),
        ("paths", {"against": {}}, "--set against: "),
        ("restoration", {"bins_ms": []}, "--set bins_ms: "),
        ("restoration", {"held_out": []}, "--set held_out: "),
        ("simulator-speed", {"paths": []}, "--set paths: "),
        ("stress", {"columns": []}, "there are no columns; name some"),
        ("stress", {"only": ["20"], "without": ["20"]}, "no scenario is left"),
        ("try-scheduler", {"experiments": []}, "--set experiments: "),
        ("try-scheduler", {"schemes": []}, "--set schemes: "),
        ("evaluation", {"experiments": []}, "there is nothing to play; name some of --set experiments="),
        ("cost-bounds", {"thresholds": [[10, 90]]}, "--set thresholds.0.: 0 ≤ Y ≤ X ≤ 100 must hold"),
        ("restoration", {"bins_ms": [0]}, "--set bins_ms.0.: "),
        ("restoration", {"seeds": []}, "--set seeds: "),
        ("mpshell-lateness", {"rates": [0]}, "--set rates.0.: "),
        ("mpshell-lateness", {"rates": []}, "--set rates: "),
        ("population", {"arms": []}, "--set arms: "),
        ("stacks", {"pairs": []}, "--set pairs: "),
        ("stacks", {"schemes": []}, "--set schemes: "),
        ("thresholds", {"pairs": []}, "--set pairs: "),
        ("validate", {"models": []}, "--set models: "),
        ("connections", {"against": "x"}, "there is no revision 'x' in "),
        (
            "recorded-pairs",
            {"collections": {"walking_": "no such"}},
            "no pair of the experiment begins with 'walking_'",
        ),
    ],
)
def test_a_setting_that_names_what_is_not_there_is_refused_before_runs(
    name: str, changes: dict[str, Any], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("railyard.studies.recorded.whole_campaign", None)
    with pytest.raises(UserError, match=sentence):
        find_study(name).measure("small", changes)


@pytest.mark.usefixtures("built")
def test_settings_of_paths_at_the_small_size(tmp_path: Path) -> None:
    one = find_study("paths")
    changes = {"against": {"cm": ["sp"]}, "out": tmp_path, "jobs": 1}
    measured = one.measure("small", changes)
    copy = study.Study(one.name, tmp_path, one.declared)
    shutil.copy2(one.folder / study.CODE, tmp_path)
    measured.write(copy.file("small"))
    assert list(copy.kept("small").parts()) == list(measured.parts())
    with pytest.raises(UserError, match="no run of scheme 'silence:30'; did you mean 'silence:300'"):
        one.measure("small", changes | {"against": {"cm": ["silence:30"]}})


@pytest.mark.usefixtures("built")
def test_what_the_simulator_refuses_is_in_its_own_words() -> None:
    with pytest.raises(UserError) as refused:
        find_study("simulator-speed").measure("small", {"paths": [0]})
    assert str(refused.value) == "xlink-sim ended with status 2: job.json: paths takes an array of 1 to 8 objects."


@pytest.mark.privileged
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_of_a_study_is_left_when_it_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    words = [sys.executable, "-m", "railyard", "study", "mpshell-lateness", "--size=small", "--set=seconds=120"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL) as running:
        wait_until(lambda: {"udp-flow", "mpshell"} <= names_below(running.pid), "both programs to run", 30)
        below = children_of(running.pid)
        running.send_signal(number)
        assert running.wait(60) == (-number if number == signal.SIGKILL else 130)
    wait_until_gone(below)
    assert number == signal.SIGKILL or not list(tmp_path.iterdir())


def test_a_program_that_fails_is_named_with_what_it_says() -> None:
    assert output_of("printf", "one") == "one"
    with pytest.raises(UserError, match=r"`ls /nowhere` ended with 2: .*No such file"):
        output_of("ls", "/nowhere")
    with pytest.raises(UserError, match="'no-such-program' is not there"):
        output_of("no-such-program")
    with pytest.raises(UserError, match=r"`sleep 60` did not end within 0\.01 s"):
        output_of("sleep", "60", limit_s=0.01)


BY_HAND: dict[str, list[list[str]]] = yaml.safe_load((ROOT / "tests" / "tables_by_hand.yaml").read_text())
TABLE = re.compile(r"(?:^\|.*\n?)+", re.MULTILINE)


@pytest.mark.parametrize("name", sorted(PAGE))
def test_a_table_that_no_study_writes_is_listed_with_its_reason(name: str) -> None:
    """A table of docs/results is between the markers of a study, or has its row in tables_by_hand.yaml."""
    heads = [table.partition("\n")[0] for table in TABLE.findall(MARKED.sub("", PAGE[name]))]
    listed = dict(BY_HAND.get(name, []))
    unlisted = [head for head in heads if not any(head.startswith(begin) for begin in listed)]
    gone = [begin for begin in listed if not any(head.startswith(begin) for head in heads)]
    assert (unlisted, gone) == ([], []) and all(listed.values())


def test_a_page_whose_tables_are_listed_is_there() -> None:
    assert BY_HAND.keys() <= PAGE.keys()


INTERVAL = re.compile(r"\[[-+−]?\d[\d.]*, [-+−]?\d[\d.]*\]")


def test_no_measured_table_is_in_the_reference() -> None:
    """Nor rows of several intervals."""
    for page in (ROOT / "docs" / "reference").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        assert not MARKED.search(text), page
        assert not [line for line in text.splitlines() if line.startswith("|") and len(INTERVAL.findall(line)) > 1]


@pytest.mark.usefixtures("built")
def test_early_data_at_the_small_size(tmp_path: Path) -> None:
    """0-RTT saves about the round trip of LTE, and a session without it nothing, as the page says. What is kept reads
    back as it was measured."""
    one = find_study("early-data")
    measured = one.measure("small", {})
    [(part, text)] = measured.parts()
    assert part == "saved" and text.startswith("| pair, LTE base RTT |")
    alone = next(line for line in text.splitlines() if "LTE alone" in line)
    resumed, early = (float(cell.split()[0]) for cell in alone.split("|")[4:6])
    assert resumed == 0 and 60 < early < 120
    copy = study.Study(one.name, tmp_path, one.declared)
    shutil.copy2(one.folder / study.CODE, tmp_path)
    measured.write(copy.file("small"))
    assert list(copy.kept("small").parts()) == [(part, text)]


# In the simulator, over pairs of this tree, in minutes. What fails is measured again by `railyard study NAME --save`.
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("cost-bounds", "default"),
        ("early-data", "default"),
        ("fairness", "default"),
        ("fairness", "conditions"),
        ("gate-power", "default"),
        ("interval-coverage", "rate"),
        ("paths", "default"),
    ],
)
def test_what_is_kept_is_what_its_command_gives(name: str, size: str) -> None:
    one = find_study(name)
    assert list(one.measure(size, {}).parts()) == list(one.kept(size).parts())


def test_a_share_of_nothing_is_not_known() -> None:
    """At a place in an outage of both paths nothing enters their downlinks."""
    code = find_study("mptcp-modes").code
    silent, busy = (
        code.Downlink(SimpleNamespace(arrival_ms=np.array(times), arrival_bytes=np.array([9] * len(times))))
        for times in ([], [500.0, 900.0])
    )
    assert code.wifi_percent(silent, silent, 0, 1) is None
    assert code.wifi_percent(busy, silent, 0, 1) == 100


CODE = """
from pydantic import Field

from railyard.experiment.model import Strict
from railyard.studies.study import Data, markdown


class Settings(Strict):
    fewest: int = Field(ge=1)


class Measured(Data):
    most: float


def measure(settings):
    return Measured(most=settings.fewest / 3 if settings.fewest < 9 else float("inf"))


def tables(measured):
    yield "most", markdown(["most"], [[f"{measured.most:.2f}"]], left=0)
"""
DECLARED = """
title: How many
sizes:
  small: {fewest: 1}
  default: {fewest: 0}
  endless: {fewest: 9}
  more: {fewst: 2}
"""
PLACE = "<!-- study: how-many default most -->\n\n{}\n\n<!-- end -->\n"


def test_new_parts_of_a_page_may_be_empty() -> None:
    begins = [f"<!-- study: evaluation {size} claims -->" for size in ("wide", "wide-heavy")]
    page = as_kept(f"{begins[0]}\n<!-- end -->\n\n{begins[1]}\n\n<!-- end -->\n")
    assert [page.count(begin) for begin in begins] == [1, 1] and page.count("\n\n<!-- end -->") == 2
    assert page.count("| claim | where | measured | verdict |") == 2 and as_kept(page) == page


@pytest.mark.long
def test_a_study_is_one_folder(tree: Path, follow: Follow) -> None:
    folder = tree / "studies" / "how_many"
    folder.mkdir()
    (folder / "study.py").write_text(CODE)
    (folder / FILE).write_text(DECLARED)
    assert "how-many: How many (sizes: small, default, endless, more)" in follow("railyard study")
    printed = follow("railyard study how-many --size small --set fewest=2")
    assert printed == "## most\n\n| most |\n| ---: |\n| 0.67 |\n\n"
    follow("railyard study how-many --size endless --save")
    assert "| inf |" in follow("railyard study how-many --size endless --kept")
    page = tree / "docs" / "results" / "transport.md"
    text = page.read_text() + "\n"
    page.write_text(text + PLACE.format("old"))
    for command, sentence in (
        ("how-many", "study.yaml: size default: fewest: Input should be greater than or equal to 1."),
        ("how-many --set fewest=few", "--set fewest: Input should be a valid integer"),
        ("how-many --set fewst=1", "how-many has no setting 'fewst'; did you mean 'fewest'"),
        ("how-many --set fewest", "--set 'fewest' is not KEY=VALUE"),
        ("how-many --size more", "study.yaml: size more: fewest: Field required."),
        ("how-many --size smal", "how-many has no size 'smal'; did you mean 'small'"),
        ("how-many --kept", "default.json: there is no such file; measure with `railyard study how-many --size"),
        ("how-many --save --set fewest=1", "leave out --set"),
        ("how-manny", "there is no study 'how-manny'"),
    ):
        assert sentence in " ".join(follow(f"railyard study {command}", 2).split())
    assert "transport.md: " in follow("python -m railyard.studies.study", 2)
    (folder / FILE).write_text(DECLARED.replace("fewest: 0", "fewest: 3"))
    assert "written: docs/results/transport.md" in follow("railyard study how-many --save")
    assert page.read_text() == text + PLACE.format("| most |\n| ---: |\n| 1.00 |")
    (folder / "default.json").write_text((folder / "default.json").read_text().replace("1.0", "2.0"))
    assert follow("python -m railyard.studies.study") == "written: docs/results/transport.md\n"
    assert page.read_text() == text + PLACE.format("| most |\n| ---: |\n| 2.00 |")


def test_a_place_on_a_page_for_what_no_study_has(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no study 'how-many'"):
        as_kept(PLACE.format("old"))


def test_a_kept_result_that_is_not_this_studys(tmp_path: Path) -> None:
    one = find_study("early-data")
    copy = study.Study(one.name, tmp_path, one.declared)
    shutil.copy2(one.folder / study.CODE, tmp_path)
    kept = {"railyard": "", "settings": {"pairs": ["subway-1"], "starts": 1}, "measured": {"rowz": []}}
    copy.file("small").write_text(json.dumps(kept))
    with pytest.raises(UserError, match=r"rows: Field required; measure again with `railyard study early-data"):
        copy.kept("small")


def test_columns_that_were_kept_stand_in_one_table() -> None:
    """The size `stacks` of the stress corpus runs nothing."""
    one = find_study("stress")
    sizes = one.declared.sizes["stacks"]["kept"]
    [(_, matrix), *_] = one.measure("stacks", {}).parts()
    head, *columns = [cell.strip(" `") for cell in matrix.splitlines()[0].strip("|").split("|")]
    # A stack may have a column for each of several options.
    assert head == "scenario" and list(dict.fromkeys(column.partition(",")[0] for column in columns)) == sizes


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("kept", [True, False])
def test_a_study_that_is_ended_says_that_runs_are_kept_where_they_are(kept: bool, tmp_path: Path) -> None:
    out = tmp_path / "kept"
    words = ["paths", f"--set=out={out}"] if kept else ["cost-bounds"]
    command = [sys.executable, "-m", "railyard", "study", *words]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as running:
        wait_until(lambda: any("folder.json" in files for *_, files in os.walk(tmp_path)), "a campaign to begin", 60)
        running.terminate()
        said = running.communicate(timeout=60)[1]
    assert (running.returncode, "Completed runs are kept" in said) == (130, kept), said


def test_ctrl_c_reaches_a_study_of_restored_traces_and_not_its_campaigns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\ncut -d' ' -f5 /proc/$$/stat > '{tmp_path}/group'\nexit 1\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(subprocess.CalledProcessError):
        find_study("restoration").code.campaign("unit", [], {}, tmp_path)
    assert int((tmp_path / "group").read_text()) != os.getpgrp()
