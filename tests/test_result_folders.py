"""Folders of results: one for each distinct campaign, a link to the newest, and nothing replaced or lost."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from conftest import good, one_sentence, run_program
from in_process import railyard
from railyard.arenas import mpshell
from railyard.base.errors import UserError
from railyard.base.paths import ROOT, program
from railyard.cli import runs as cli
from railyard.gate.compare import outputs_sha256
from railyard.report.exhibit import newest_exhibits
from railyard.results.campaigns import find_campaigns, find_run_or_campaign
from railyard.run import fidelity, folders
from railyard.run.campaign import Campaign
from railyard.run.folders import Identity, results_folder
from railyard.run.runspec import RunSpec
from report_exhibit import exhibit_of
from small_disk import small_disk

YAML = """\
name: unit
arena: sim
pairs: [subway-1]
schemes: [xlink]
seeds: 2
player: {duration_s: 1, bitrate_bps: 1000000, chunk_bytes: 65536}
time_limit_s: 10
link_logs: false
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    file = tmp_path / "unit.yaml"
    file.write_text(YAML)
    return file


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "results"
    monkeypatch.setattr(folders, "RESULTS_DIR", folder)
    monkeypatch.setattr(cli, "RESULTS_DIR", folder)
    return folder


def whole(results: Path) -> dict[str, str]:
    """Every file of every run in every folder of results, by what is in it."""
    runs = [file.parent for file in results.glob("*/runs/[!.]*/run.json") if not file.parents[2].is_symlink()]
    return {str(run.relative_to(results)): outputs_sha256(run) + (run / "run.json").read_text() for run in runs}


def folders_of(results: Path) -> list[str]:
    return sorted(entry.name for entry in results.iterdir() if not entry.is_symlink())


def named(results: Path, name: str = "unit") -> str:
    assert (results / name).is_symlink()
    return str((results / name).readlink())


def wall_clock_run(spec: RunSpec, partial: Path) -> dict[str, Any]:
    """Makes the files of a run in mpshell that a campaign reads. Returns its record."""
    late = {"p50": 10, "p99": 100, "max": 200, "over_1ms": 0, "count": 9}
    link = {"opportunities": 9, "missed": 0, "departed_bytes": 9, "queue_drops": 0, "lateness_us": late}
    paths = [{"name": path.name, "up": link, "down": link, "device_drops": {}} for path in spec.paths]
    emulator = {"schema": 1, "sched_fifo": True, "t0_monotonic_us": 0, "paths": paths}
    (partial / "mpshell.json").write_text(json.dumps(emulator))
    request = {"t": 0.1, "event": "request", "chunk": 0, "first": 0, "last": 9}
    events = [{"t": 0.0, "event": "start", "monotonic_us": 5}, request]
    events += [{"t": 0.3, "event": "chunk_done", "chunk": 0, "bytes": 10, "rct_s": 0.2}]
    events += [{"t": 0.3, "event": "summary", "outcome": "complete", "play_time_s": 1.0, "bytes": 10}]
    (partial / "player.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    (partial / "server.jsonl").write_text("")
    verdict = fidelity.judge(emulator).as_json()
    record = {"schema": 1, "run_id": spec.run_id, "identity": spec.identity(), "outcome": "complete", "message": ""}
    record |= {"started": datetime.now(UTC).isoformat(), "wall_s": 1.0, "fidelity": verdict, "exit": {}}
    record |= {"config": spec.model_dump(mode="json"), "commands": {}, "sysctls": {}, "kernel": "Linux"}
    record |= {"mptcp": {"server": {}, "player": {}}, "cpu": {"model": "", "cores": 2}, "versions": {}}
    record |= {"tries": [{key: record[key] for key in ("started", "wall_s", "outcome", "fidelity")}]}
    return record | {"git": {"revision": None, "dirty": None}}


def test_another_arena_through_the_name_leaves_the_first_ones_runs_whole(
    experiment: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def execute(spec: RunSpec, partial: Path) -> dict[str, Any]:
        return wall_clock_run(spec, partial)

    monkeypatch.setattr(mpshell.ARENA, "execute", execute)
    monkeypatch.setattr(mpshell.ARENA, "check", lambda: None)
    good(railyard("run", str(experiment), "--arena", "mpshell"))
    before, wall = whole(results), named(results)
    assert len(before) == 2 and wall.startswith("unit-mpshell-")
    done = good(railyard("run", str(experiment), "--arena", "sim"))
    assert before.items() <= whole(results).items() and len(whole(results)) == 4
    assert named(results) != wall and named(results) in done.stdout
    # And back: the name stands for it again, and nothing is run a second time.
    again = good(railyard("run", str(experiment), "--arena", "mpshell"))
    assert named(results) == wall and "2 of 2 runs are there already" in again.stdout
    assert len(folders_of(results)) == 2


def test_the_name_given_with_out_cannot_replace_what_it_stands_for(experiment: Path, results: Path) -> None:
    good(railyard("run", str(experiment)))
    before = whole(results)
    experiment.write_text(YAML.replace("1000000", "1500000"))
    said = one_sentence(railyard("run", str(experiment), "--out", str(results / "unit")))
    assert "it holds results of unit in sim that differ in player.bitrate_bps, and none are replaced" in said
    assert said.rstrip().endswith("with --out, or with --set out=DIR for a study."), "a study has no option --out"
    assert whole(results) == before and len(folders_of(results)) == 1


def test_an_edited_file_of_the_same_name_leaves_the_earlier_results_whole(experiment: Path, results: Path) -> None:
    good(railyard("run", str(experiment)))
    before, first = whole(results), named(results)
    experiment.write_text(YAML.replace("65536", "131072"))
    good(railyard("run", str(experiment)))
    assert before.items() <= whole(results).items() and len(whole(results)) == 4
    assert sorted([first, named(results)]) == folders_of(results) and first != named(results)
    listed = good(railyard("show", "--results", str(results))).stdout
    assert "player.chunk_bytes 65536" in listed and "player.chunk_bytes 131072" in listed
    assert f"{named(results)} *" in listed and f"{first} *" not in listed


@pytest.mark.parametrize(("old", "new"), [("xlink", "vanilla-mp"), ("subway-1", "hsr-1"), ("link_logs: false", "")])
def test_whatever_decides_the_results_has_a_folder_of_its_own(
    experiment: Path, results: Path, old: str, new: str
) -> None:
    good(railyard("run", str(experiment)))
    before = whole(results)
    experiment.write_text(YAML.replace(old, new))
    good(railyard("run", str(experiment)))
    assert before.items() <= whole(results).items() and len(folders_of(results)) == 2


def test_another_build_of_the_programs_has_a_folder_of_its_own(
    experiment: Path, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good(railyard("run", str(experiment)))
    before = whole(results)
    built = program("xlink-sim")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "xlink-sim").write_bytes(built.read_bytes() + b"\0")
    (tmp_path / "bin" / "xlink-sim").chmod(0o755)
    monkeypatch.setenv("RAILYARD_BIN", str(tmp_path / "bin"))
    good(railyard("run", str(experiment)))
    assert before.items() <= whole(results).items() and len(folders_of(results)) == 2


def test_what_differs_in_the_index_of_a_pair_is_told(
    experiment: Path, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, delays = tmp_path / "index.yaml", tmp_path / "lte.delay"
    link = "uplink: t, downlink: t, queue: 'droptail:packets=90', base_rtt_ms"
    paths = f"[{{name: wifi, technology: wifi, {link}: 30}}, {{name: lte, technology: lte, {link}: 70, link: LINK}}]"
    pair = f"{{name: own, scenario: s, licence: CC0-1.0, source: s, paths: {paths}}}"
    index.write_text(f"schema: 1\npairs: [{pair}]\n".replace("LINK", "{delay_trace: lte.delay}"))
    (tmp_path / "t").write_text("1\n")
    monkeypatch.setenv("RAILYARD_TRACE_PATH", str(tmp_path))
    experiment.write_text(YAML.replace("subway-1", "own"))
    told = []
    for rtt_ms, delay in ((30, 20), (50, 20), (50, 25)):
        index.write_text(index.read_text().replace("base_rtt_ms: 30", f"base_rtt_ms: {rtt_ms}"))
        delays.write_text(f"0,{delay}\n1000,{delay}\n")
        good(railyard("run", str(experiment)))
        told.append((results / "unit").resolve().name)
    first, second, third = told
    apart = [railyard("compare", *two, "--results", str(results)).stdout for two in ((first, second), (second, third))]
    assert "What differs" in apart[0] and "own.wifi.delay_ms 15.0, 25.0." in apart[0]
    assert "own.lte.delay_traces_sha256.delay_trace #" in apart[1] and "delay_ms" not in apart[1]
    shown = railyard("show", "--results", str(results), "--format", "json").stdout
    assert "own.wifi.delay_ms 25.0" in shown
    facts = json.loads((results / first / "folder.json").read_text())
    assert {} not in facts["paths"]["own"]["lte"].values(), "null and {} would differ"
    del facts["paths"]  # as in a folder of before
    (results / first / "folder.json").write_text(json.dumps(facts))
    shown = railyard("show", "--results", str(results), "--format", "json").stdout
    assert shown.count("own.lte.delay_traces_sha256.delay_trace #") == 2 and "delay_ms" not in shown
    assert hashlib.sha256(delays.read_bytes()).hexdigest() in (results / "unit" / "report.html").read_text()


def test_a_setting_of_the_experiment_is_told_once_and_not_of_each_pair(experiment: Path, results: Path) -> None:
    good(railyard("run", str(experiment)))
    first = named(results)
    good(railyard("run", str(experiment), "--set", "links={wifi: {loss: 0.01}}"))
    told = railyard("compare", first, named(results), "--results", str(results)).stdout
    assert "links.wifi.loss null, 0.01." in told and "subway-1.wifi" not in told


def test_words_about_an_experiment_do_not_make_it_another(experiment: Path, results: Path) -> None:
    good(railyard("run", str(experiment)))
    experiment.write_text(YAML + "description: the same, in other words\n")
    assert "2 of 2 runs are there already" in good(railyard("run", str(experiment))).stdout
    assert len(folders_of(results)) == 1


def test_runs_that_are_the_same_are_taken_over_and_afresh_they_are_not(experiment: Path, results: Path) -> None:
    good(railyard("run", str(experiment)))
    first = results / named(results)
    more = good(railyard("run", str(experiment), "--seeds", "3"))
    assert "2 of 3 runs are the same in" in more.stdout and "1 run to do" in more.stdout
    one, other = (folder / "runs/subway-1--xlink--s1/run.json" for folder in (first, results / "unit"))
    assert one.samefile(other), "the same run takes room once"
    fresh = good(railyard("run", str(experiment), "--fresh"))
    assert "2 runs to do" in fresh.stdout and named(results) == f"{first.name}-2"
    assert not one.samefile(results / "unit/runs/subway-1--xlink--s1/run.json")
    shutil.rmtree(results / "unit/runs/subway-1--xlink--s1")
    again = good(railyard("run", str(experiment)))
    assert "1 of 2 runs" in again.stdout and "1 run to do" in again.stdout, "a fresh campaign takes none over"
    assert named(results) == f"{first.name}-2" and "--fresh" not in (results / "unit/campaign.json").read_text()


def test_a_folder_that_has_the_name_itself_is_left_whole_under_another(experiment: Path, results: Path) -> None:
    good(railyard("run", str(experiment)))
    shutil.copytree(results / named(results), results / "old")
    (results / "old" / folders.FILE).unlink()
    folders.remove_folder(results / named(results), results)
    (results / "unit").unlink()
    (results / "old").rename(results / "unit")  # as earlier versions left it
    before = {run.removeprefix("unit/"): text for run, text in whole(results).items()}
    done = good(railyard("run", str(experiment)))
    assert "unit is" in done.stdout and "unit-earlier from now on" in done.stdout
    assert "2 of 2 runs are the same in unit-earlier" in done.stdout
    after = whole(results)
    assert {f"unit-earlier/{run}": text for run, text in before.items()}.items() <= after.items()
    assert named(results).startswith("unit-sim-") and len(after) == 4


def test_a_folder_of_ones_own_is_used_again_for_the_same_results_only(experiment: Path, tmp_path: Path) -> None:
    out = tmp_path / "own"
    run = ("run", str(experiment), "--out", str(out))
    good(railyard(*run))
    assert "2 of 2 runs are there already" in good(railyard(*run)).stdout
    before = {file: file.stat().st_mtime_ns for file in out.glob("runs/*/*")}
    assert "differ in seeds" in one_sentence(railyard(*run, "--seeds", "1"))
    assert "--fresh needs another --out" in one_sentence(railyard(*run, "--fresh"))
    (out / folders.FILE).unlink()  # an earlier version's
    assert "it holds other results" in one_sentence(railyard(*run))
    assert {file: file.stat().st_mtime_ns for file in out.glob("runs/*/*")} == before


def unit(**settings: int) -> Identity:
    return Identity("unit", "sim", {"settings": settings})


@pytest.mark.parametrize("within", ["other", "runs/other", "runs/subway-1--xlink--s1/other"])
def test_a_folder_of_ones_own_is_not_within_other_results(experiment: Path, tmp_path: Path, within: str) -> None:
    outer = tmp_path / "outer"
    good(railyard("run", str(experiment), "--out", str(outer)))
    before = sorted(outer.rglob("*"))
    said = one_sentence(railyard("run", str(experiment), "--seeds", "1", "--out", str(outer / within)))
    assert f"outer/{within}: it is within the results {outer}; choose another directory with --out." in said
    assert sorted(outer.rglob("*")) == before


def test_two_commands_at_once_never_share_a_folder(tmp_path: Path) -> None:
    said: list[str] = []
    with results_folder(unit(a=1), said.append, results=tmp_path) as one:
        with (
            pytest.raises(UserError, match="another campaign is writing there"),
            results_folder(unit(a=1), said.append, results=tmp_path),
        ):
            pass
        with results_folder(unit(a=2), said.append, results=tmp_path) as two:
            assert one != two and (tmp_path / "unit").resolve() == two
        with results_folder(unit(a=1), said.append, fresh=True, results=tmp_path) as three:
            assert three.name == f"{one.name}-2"
    assert len(folders_of(tmp_path)) == 3 and len(said) == 3


def test_many_commands_at_once_make_one_folder(tmp_path: Path) -> None:
    """Processes that start together: each has the folder alone, or reports that another process has it."""
    source = """
import sys
from pathlib import Path
from railyard.base.errors import UserError
from railyard.run.folders import Identity, results_folder
sys.stdin.readline()
for number in range(30):
    try:
        with results_folder(Identity("unit", "sim", {"n": number}), lambda _: None, results=Path(sys.argv[1])):
            pass
    except UserError as error:
        assert "another campaign" in str(error), error
"""
    command = [sys.executable, "-c", source, str(tmp_path)]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, text=True) for _ in range(4)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    assert len(folders_of(tmp_path)) == 30, "a folder was made twice, or left half made"
    assert (tmp_path / "unit").resolve().parent == tmp_path


def test_a_name_is_moved_from_one_moment_to_the_next(tmp_path: Path) -> None:
    with results_folder(unit(a=1), lambda _: None, results=tmp_path):
        pass
    first = named(tmp_path)
    with results_folder(unit(a=2), lambda _: None, results=tmp_path):
        assert named(tmp_path) != first
    with results_folder(unit(a=1), lambda _: None, results=tmp_path):
        assert named(tmp_path) == first


def test_a_name_and_a_run_of_it_are_those_of_the_newest_folder(
    experiment: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for chunk_bytes in ("65536", "131072"):
        experiment.write_text(YAML.replace("65536", chunk_bytes))
        good(railyard("run", str(experiment)))
    newest = (results / "unit").resolve()
    run = "subway-1--xlink--s1"
    for name in (run, f"unit/{run}"):
        assert find_run_or_campaign(name, results) == newest / "runs" / run
    assert find_run_or_campaign("unit", results) == newest
    for module in ("railyard.cli.report", "railyard.cli.runs"):
        monkeypatch.setattr(f"{module}.RESULTS_DIR", results)
    good(railyard("report", run))
    good(railyard("report", "unit"))
    assert (newest / "runs" / run / "replay.html").is_file()
    assert "identical" in good(railyard("diff", run, f"unit/{run}")).stdout
    older = next(name for name in folders_of(results) if name != newest.name)
    assert find_run_or_campaign(f"{older}/{run}", results) == results / older / "runs" / run
    beside = experiment.parent / "here" / "unit"
    beside.mkdir(parents=True)
    monkeypatch.chdir(beside.parent)
    assert find_run_or_campaign("unit", results) == newest, "not the folder here, which has no results"


def test_a_name_that_is_no_run_is_told_what_it_is(
    experiment: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("unit", "other"):
        experiment.write_text(YAML.replace("name: unit", f"name: {name}"))
        good(railyard("run", str(experiment)))
    for module in ("railyard.cli.report", "railyard.cli.runs"):
        monkeypatch.setattr(f"{module}.RESULTS_DIR", results)
    run = "subway-1--xlink--s1"
    cases = [
        (run, f"'{run}' is in more than one campaign; say which: "),
        ("unit", "'unit' is a campaign; name one of its runs, unit/RUN"),
        ("nothing", "there is no run or campaign 'nothing'"),
        ("gone.zip", "gone.zip: there is no such file"),
        ("out/gone.sqlog", "out/gone.sqlog: there is no such file"),
        ("unti", "did you mean 'unit'?"),
        ("other/subway-1--xlink--s9", "has no run 'subway-1--xlink--s9'; did you mean 'other/subway-1--xlink--s"),
    ]
    for name, sentence in cases:
        one_sentence(railyard("diff", name, f"unit/{run}"), sentence)
    (results / "unit" / "campaign.json").write_text("{}")
    one_sentence(railyard("report", "unit"), "no campaign's record")


def test_of_an_exhibit_with_several_folders_the_newest_is_shown(experiment: Path, results: Path) -> None:
    experiment.write_text(YAML.replace("[xlink]", "[sp, xlink]"))
    good(railyard("run", str(experiment)))
    made = exhibit_of(results / "unit", "fig13")
    for name, created in (("fig13-sim-a", "2026-01-02"), ("fig13-sim-b", "2026-01-03"), ("fig13-sim-c", "2026-01-01")):
        provenance = made.provenance.model_copy(update={"created": f"{created}T00:00:00+00:00"})
        made.model_copy(update={"provenance": provenance}).write(results / name)
    [(_, folder)], left_out = newest_exhibits(results)
    assert folder.name == "fig13-sim-b" and len(left_out) == 2


def test_an_exhibit_that_ran_in_two_arenas_is_shown_from_both(experiment: Path, results: Path) -> None:
    experiment.write_text(YAML.replace("[xlink]", "[sp, xlink]"))
    good(railyard("run", str(experiment)))
    made = exhibit_of(results / "unit", "fig13")
    for arena in ("mpshell", "kernel"):
        made.model_copy(update={"arena": arena}).write(results / f"fig13-{arena}")
    good(railyard("report", "--all", str(results)))
    page = (results / "report.html").read_text()
    for arena in ("mpshell", "kernel"):
        assert f'id="exhibit-fig13-{arena}"' in page
        assert f"Fig. 13 ({arena})" in page
    assert re.search(r"\b1 of the paper's 1\d figures and tables", page)
    assert "claims that were checked, each once in every arena" in " ".join(page.split())
    anchors = re.findall(r'<tr role="row" id="(claim-[^"]+)"', page)
    assert len(anchors) == len(set(anchors)) == 2 * len(made.claims) > 0
    firsts = [anchor.removesuffix("-kernel").removesuffix("-mpshell") for anchor in anchors]
    assert firsts[::2] == firsts[1::2]  # the verdicts of both arenas on a claim are next to each other


Made = Callable[[str, int], Path]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Makes a folder of results of a name, started a number of days ago."""

    def make(name: str, days: int) -> Path:
        identity = Identity(name, "sim", {"settings": {"days": days}})
        with results_folder(identity, lambda _: None, results=tmp_path / "results") as folder:
            started = (datetime.now(UTC) - timedelta(days=days)).isoformat()
            record = {"schema": 1, "experiment": {"name": name, "arena": "sim"}, "started": started, "runs": []}
            (folder / "campaign.json").write_text(json.dumps(record))
            (folder / "report.html").write_text("x" * 5000)
            return folder

    return make


def test_clean_removes_what_is_named_and_the_name_moves_on(made: Made, tmp_path: Path) -> None:
    results = tmp_path / "results"
    old, middle, new = made("demo", 30), made("demo", 10), made("demo", 0)
    other = made("smoke", 20)
    done = good(railyard("clean", "demo", "--yes", "--results", str(results)))
    assert new.name in done.stdout and not new.exists(), "a name stands for its folder"
    assert "Removed 1 folder; " in done.stdout
    assert (results / "demo").resolve() == middle
    good(railyard("clean", str(middle), "--yes", "--results", str(results)))
    assert (results / "demo").resolve() == old
    good(railyard("clean", "demo-sim-*", "--yes", "--results", str(results)))
    assert sorted(entry.name for entry in results.iterdir()) == sorted([other.name, "smoke"])


def test_clean_keeps_the_newest_and_the_young(made: Made, tmp_path: Path) -> None:
    results = tmp_path / "results"
    demos = [made("demo", days) for days in (40, 30, 20, 10)]
    smokes = [made("smoke", days) for days in (35, 5)]
    good(railyard("clean", "--older-than", "25d", "--keep", "1", "--yes", "--results", str(results)))
    assert [demo.exists() for demo in demos] == [False, False, True, True]
    assert [smoke.exists() for smoke in smokes] == [False, True]
    good(railyard("clean", "demo-*", "--keep", "1", "--yes", "--results", str(results)))
    assert [demo.exists() for demo in demos] == [False, False, False, True] and smokes[1].exists()


def test_clean_asks_and_without_a_terminal_removes_nothing(made: Made, tmp_path: Path) -> None:
    folder = made("demo", 1)
    said = one_sentence(railyard("clean", "demo", "--results", str(tmp_path / "results")))
    assert "without a terminal to ask on" in said and "--yes" in said
    assert folder.is_dir()
    assert "say what to remove" in one_sentence(railyard("clean", "--results", str(tmp_path / "results")))
    assert "as 30d" in one_sentence(railyard("clean", "--older-than", "soon", "--results", str(tmp_path)))


def test_clean_removes_folders_of_results_and_nothing_else(made: Made, tmp_path: Path) -> None:
    results, folder = tmp_path / "results", made("demo", 1)
    outside = tmp_path / "outside"
    shutil.copytree(folder, outside)
    (results / "away").symlink_to(outside)
    (results / "mine").mkdir()
    (results / "mine" / "notes.txt").write_text("mine")
    for name in ("away", "mine", "../outside", str(outside), "/", ".", str(results), "demo/runs", "no-such", ""):
        said = one_sentence(railyard("clean", name, "--yes", "--results", str(results)))
        assert "is no folder of results" in said and "Nothing is removed" in said
    (folder / "link").symlink_to(outside)
    good(railyard("clean", "*", "--yes", "--results", str(results)))
    assert not folder.exists() and (outside / "campaign.json").is_file(), "links are not followed"
    assert (results / "mine" / "notes.txt").is_file()


def test_clean_does_not_remove_the_folder_that_it_looks_into(made: Made) -> None:
    folder = made("demo", 1)
    said = one_sentence(railyard("clean", folder.name, "--yes", "--results", str(folder)))
    assert f"{folder}: this is the folder of a campaign" in said and f"--results {folder.parent}." in said
    assert folder.is_dir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a disk that is read only")
def test_clean_says_what_it_may_not_remove(made: Made, tmp_path: Path) -> None:
    with small_disk(tmp_path / "results", "1m") as disk:
        folder = made("demo", 1)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        said = one_sentence(railyard("clean", "demo", "--yes", "--results", str(disk)))
    assert f"{folder}: it cannot be removed" in said and "--out" not in said


def test_a_folder_that_is_closed_to_the_user_does_not_hide_the_others(made: Made, tmp_path: Path) -> None:
    made("demo", 1)
    closed = made("closed", 1)
    closed.chmod(0)
    as_others = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    command = [*as_others, sys.executable, "-m", "railyard", "show", "--results", str(tmp_path / "results")]
    done = run_program(command, cwd=ROOT)
    closed.chmod(0o700)
    assert (done.returncode, done.stderr) == (0, "") and "demo-sim-" in done.stdout and closed.name not in done.stdout


def test_clean_leaves_links_to_places_outside_that_are_not_there(made: Made, tmp_path: Path) -> None:
    results, folder = tmp_path / "results", made("demo", 1)
    kept = {"disk": tmp_path / "not-mounted" / "demo", "beside": Path("../not-mounted")}
    for name, target in kept.items():
        (results / name).symlink_to(target)
    good(railyard("clean", folder.name, "--yes", "--results", str(results)))
    assert {entry.name: entry.readlink() for entry in results.iterdir()} == kept


def test_the_lock_of_a_folder_is_no_link_to_another_file(made: Made, tmp_path: Path) -> None:
    folder, other = made("demo", 1), tmp_path / "other"
    other.write_text("theirs")
    (folder / folders.LOCK).symlink_to(other)
    said = one_sentence(railyard("clean", "demo", "--yes", "--results", str(tmp_path / "results")))
    assert "cannot write results there" in said
    assert other.read_text() == "theirs" and folder.is_dir()


def test_clean_leaves_a_campaign_alone_that_is_running(made: Made, tmp_path: Path) -> None:
    folder = made("demo", 1)
    with folders.locked(folder):
        said = one_sentence(railyard("clean", "demo", "--yes", "--results", str(tmp_path / "results")))
    assert "a campaign is running there" in said and folder.is_dir()


def test_clean_removes_leftovers_only_where_asked(made: Made, tmp_path: Path) -> None:
    results, folder = tmp_path / "results", made("demo", 1)
    left = [folder / "runs" / ".partial-x", results / f"{folders.NEW}abc", results / f"{folders.REMOVED}1-demo"]
    for path in [*left, folder / "runs" / "whole"]:
        path.mkdir(parents=True)
        (path / "run.json").write_text("{}")
    good(railyard("clean", "--leftovers", "--yes", "--results", str(results)))
    assert not any(path.exists() for path in left)
    assert (folder / "runs" / "whole" / "run.json").is_file() and (results / "demo").resolve() == folder


def test_list_says_how_many_runs_failed_and_what_is_on_disk(experiment: Path, results: Path) -> None:
    good(railyard("run", str(experiment)))
    file = results / "unit/runs/subway-1--xlink--s2/run.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"outcome": "crashed"}))
    good(railyard("run", str(experiment), "--seeds", "1"))
    by_name = {campaign.name: campaign for campaign in find_campaigns(results)}
    assert sorted(campaign.runs_failed for campaign in by_name.values()) == [0, 1]
    listed = good(railyard("show", "--results", str(results))).stdout
    assert "seeds 1 to 2" in listed and "seeds [1]" in listed and "2 folders" in listed


def test_a_run_in_whose_place_something_else_is_sets_that_aside(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path)
    for number in range(3):
        (tmp_path / f"new-{number}").mkdir()
        (tmp_path / f"new-{number}" / "log").write_text(str(number))
        campaign.runs.mkdir(exist_ok=True)
        campaign.install(tmp_path / f"new-{number}", "run")
    assert (campaign.runs / "run" / "log").read_text() == "2"
    assert sorted(file.read_text() for file in (tmp_path / "aside").glob("*/log")) == ["0", "1"]


@pytest.mark.parametrize(
    ("words", "left_out"),
    [
        (["run", "demo"], ""),
        (["run", "demo", "--fresh"], " without --fresh"),
        (["study", "population", "--set", "fresh=true"], " without --set fresh=true"),
        (["study", "population", "--set=fresh=true"], " without --set=fresh=true"),
    ],
)
def test_the_command_that_resumes_begins_no_other_folder(
    words: list[str], left_out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["railyard", *words])
    assert folders.resume_words() == f"run the same command{left_out} to resume"
