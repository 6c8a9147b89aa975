"""The runs whose qlogs a campaign keeps: by its size, or as asked for."""

import asyncio
import json
from pathlib import Path

import pytest

from conftest import good, one_sentence
from in_process import railyard
from railyard.base.errors import UserError
from railyard.cli import runs as cli
from railyard.experiment.model import load_experiment
from railyard.gate.compare import outputs_sha256
from railyard.results import qlogs
from railyard.results.records import load_run
from railyard.run import folders
from railyard.run import record as run_record
from railyard.run.arena import arena_of
from railyard.run.campaign import Campaign
from railyard.run.resolve import QLOGS_OF_ALL, qlog_of, resolve
from railyard.stats.statistics import nearest_rank

YAML = """\
name: unit
arena: sim
pairs: [subway-1]
schemes: [{scheme: sp, path: primary}, xlink]
seeds: 4
player: {duration_s: 2, bitrate_bps: 2000000, chunk_bytes: 65536}
time_limit_s: 10
"""


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "unit.yaml"
    file.write_text(YAML)
    for module in (folders, cli):
        monkeypatch.setattr(module, "RESULTS_DIR", tmp_path / "results")
    return file


def with_qlogs(folder: Path) -> set[str]:
    """Runs that have their qlogs, of both ends. A start that tried a second path has those of both tries."""

    def ends(run: Path) -> set[str]:
        return {file.stem.rpartition("_")[2] for file in run.glob("qlog/*.sqlog")}

    return {run.name for run in (folder / "runs").iterdir() if ends(run) == {"client", "server"}}


def test_a_small_campaign_in_virtual_time_keeps_all_and_a_large_one_the_worst(experiment: Path) -> None:
    sim, _ = load_experiment(experiment)
    assert sim.qlog is None
    assert (qlog_of(sim, QLOGS_OF_ALL), qlog_of(sim, QLOGS_OF_ALL + 1)) == ("all", "worst")
    wall = sim.model_copy(update={"arena": "mpshell"})
    assert qlog_of(wall, 10_000) == "all", "a run on the wall clock does not come twice"
    for word in ("all", "none", "worst"):
        assert qlog_of(sim.model_copy(update={"qlog": word}), 10_000) == word


@pytest.mark.parametrize(("word", "qlog"), [("true", "all"), ("false", "none"), ("worst", "worst")])
def test_an_experiment_may_say_whose_qlogs_it_keeps(experiment: Path, word: str, qlog: str) -> None:
    experiment.write_text(YAML + f"qlog: {word}\n")
    checked, document = load_experiment(experiment)
    assert checked.qlog == qlog
    assert {spec.qlog for spec in resolve(checked, document)} == {qlog == "all"}


def test_the_worst_runs_are_those_with_the_longest_tail_and_have_what_they_would_have_had(
    experiment: Path, tmp_path: Path
) -> None:
    everything, none, worst = (tmp_path / name for name in ("all", "none", "worst"))
    said = [
        good(railyard("run", str(experiment), "--qlog", out.name, "--out", str(out))).stdout
        for out in (everything, none, worst)
    ]
    assert "Qlogs of all runs are kept." in said[0] and "No qlogs are kept." in said[1]
    assert "worst p99 RCT of each scheme and pair" in said[2] and "2 runs done again for qlogs" in said[2]
    assert len(with_qlogs(everything)) == 8 and not with_qlogs(none)
    kept = with_qlogs(worst)
    for label in ("sp", "xlink"):
        runs = [load_run(run) for run in (none / "runs").glob(f"*--{label}--*")]
        tails = {run.run_id: nearest_rank([chunk.rct_s for chunk in run.chunks], 0.99) for run in runs}
        [run_id] = [name for name in kept if f"--{label}--" in name]
        assert tails[run_id] == max(tails.values()) > min(tails.values())
        assert outputs_sha256(worst / "runs" / run_id) == outputs_sha256(everything / "runs" / run_id)
    assert not list(worst.glob("runs/.*"))


def test_what_suits_the_size_is_said_and_the_worst_are_not_done_a_third_time(experiment: Path, tmp_path: Path) -> None:
    run = ("run", str(experiment), "--seeds", "13")
    said = good(railyard(*run)).stdout
    assert "Qlogs of the run with the worst p99 RCT of each scheme and pair are kept (--qlog all or none" in said
    assert len(with_qlogs(tmp_path / "results" / "unit")) == 2
    again = good(railyard(*run)).stdout
    assert "26 of 26 runs are there already" in again and "done again" not in again
    # Another choice is another folder: the runs with qlogs are done, those without are what they were.
    good(railyard(*run, "--qlog", "all"))
    assert len(with_qlogs(tmp_path / "results" / "unit")) == 26


def test_a_run_that_comes_out_otherwise_with_qlogs_is_told(experiment: Path, tmp_path: Path) -> None:
    checked, document = load_experiment(experiment)
    specs = resolve(checked.model_copy(update={"qlog": "worst"}), document)[:1]
    campaign = Campaign(tmp_path / "out")
    run = campaign.runs / specs[0].run_id
    run.mkdir(parents=True)
    run_record.write(run, asyncio.run(arena_of(specs[0].arena).execute(specs[0], run)))
    log = run / "server.jsonl"
    log.write_text(log.read_text() + "\n")
    with pytest.raises(UserError, match="with qlogs it came out otherwise"):
        qlogs.keep_worst(campaign, specs, 1)
    assert not list(run.glob("qlog/*")) and not list(campaign.runs.glob(".*"))


def test_on_the_wall_clock_the_qlogs_of_the_others_are_removed(experiment: Path, tmp_path: Path) -> None:
    checked, document = load_experiment(experiment)
    specs = resolve(checked.model_copy(update={"qlog": "all", "pcap": True}), document)
    campaign = Campaign(tmp_path / "out")
    for spec in specs:
        run = campaign.runs / spec.run_id
        run.mkdir(parents=True)
        run_record.write(run, asyncio.run(arena_of(spec.arena).execute(spec, run)))
    before = {file for file in campaign.runs.rglob("*") if file.is_file()}
    qlogs.keep_worst(campaign, [spec.model_copy(update={"arena": "mpshell"}) for spec in specs], 1)
    assert len(with_qlogs(campaign.out)) == 2
    gone = before - {file for file in campaign.runs.rglob("*") if file.is_file()}
    assert {file.suffix for file in gone} == {".sqlog", ".keys"} and len(gone) == 6 * 4


def test_a_run_without_qlogs_is_done_again_with_them_where_that_is_asked(experiment: Path, tmp_path: Path) -> None:
    out, again = tmp_path / "out", tmp_path / "again"
    good(railyard("run", str(experiment), "--qlog", "none", "--seeds", "1", "--out", str(out)))
    run = out / "runs" / "subway-1--xlink--s1"
    one_sentence(railyard("diff", str(run), str(run)), f"railyard repeat {run} --qlog --out DIR")
    good(railyard("repeat", str(run), "--yes", "--qlog", "--out", str(again)))
    assert len(list(again.glob("qlog/*.sqlog"))) == 2
    assert json.loads((again / "run.json").read_text())["config"]["qlog"] is True
    assert (again / "server.jsonl").read_bytes() == (run / "server.jsonl").read_bytes()


def test_an_unknown_choice_is_one_sentence(experiment: Path) -> None:
    one_sentence(railyard("run", str(experiment), "--qlog", "some"), "unknown --qlog 'some'")
