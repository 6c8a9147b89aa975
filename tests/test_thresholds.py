"""Thresholds in percent: measured with the control off, resolved into milliseconds, recorded with every run."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from railyard.base.errors import UserError
from railyard.base.jsonl import read_jsonl
from railyard.cli.main import app
from railyard.studies.study import find_study
from railyard.studies.thresholds import th

EXPERIMENT = """\
name: percent
arena: sim
pairs: [subway-1, hsr-1]
schemes:
  - {{scheme: xlink, thresholds: {thresholds}}}
  - {{scheme: xlink, thresholds: off}}
seeds: 2
player: {{bitrate_bps: 4000000, duration_s: 6, chunk_bytes: 262144, verify: false}}
time_limit_s: 30
link_logs: false
"""


def railyard(*arguments: object) -> None:
    """The command line, in this process."""
    assert not app(list(map(str, arguments)), standalone_mode=False), "the exit code"


def samples_by_hand(runs: Path) -> list[float]:
    """Play-time left of the runs in a folder, taken from the players' own logs."""
    found = []
    for folder in runs.iterdir():
        events = read_jsonl(folder / "player.jsonl")
        begin = next(event["t"] for event in events if event["event"] == "play")
        end = [event["t"] for event in events if event["event"] == "chunk_done"][-1]
        reports = [event for event in events if event["event"] == "buffer"]
        found += [event["play_time_left_ms"] for event in reports if begin <= event["t"] <= end]
    return sorted(found)


def test_thresholds_are_measured_on_other_pairs_where_these_are_named(tmp_path: Path) -> None:
    text = EXPERIMENT.format(thresholds="[95, 80]").replace("pairs: [subway-1, hsr-1]", "pairs: [subway-1]")
    of_pairs: dict[str, dict[str, Any]] = {}
    for name, line in (("own", ""), ("other", "threshold_pairs: [hsr-1]\n")):
        (tmp_path / f"{name}.yaml").write_text(text + line)
        railyard("run", tmp_path / f"{name}.yaml", "--out", tmp_path / name)
        records = [json.loads(file.read_text()) for file in (tmp_path / name / "runs").glob("*/run.json")]
        [of_pairs[name]] = {json.dumps(one["config"]["thresholds"]): one["config"]["thresholds"] for one in records
                            if one["config"].get("thresholds")}.values()  # fmt: skip
        assert {one["config"]["pair"] for one in records} == {"subway-1"}
    assert (of_pairs["own"]["pairs"], of_pairs["other"]["pairs"]) == (["subway-1"], ["hsr-1"])
    assert of_pairs["own"]["t_th2_ms"] != of_pairs["other"]["t_th2_ms"]


@given(
    st.lists(st.integers(0, 10_000), min_size=1, max_size=300, unique=True),
    st.floats(0, 100, allow_nan=False),
    st.floats(0, 100, allow_nan=False),
)
def test_x_per_cent_of_the_samples_are_greater_than_th_of_x(values: list[int], x: float, y: float) -> None:
    ordered = [float(value) for value in sorted(values)]
    greater = sum(value > th(ordered, x) for value in ordered)
    assert greater <= x / 100 * len(ordered) + 1e-6 or greater == len(ordered) - 1
    assert greater + 1 > x / 100 * len(ordered) - 1e-6
    assert (th(ordered, x) <= th(ordered, y)) == (x >= y) or th(ordered, x) == th(ordered, y)


def test_the_study_measures_with_the_control_off_and_says_what_it_found(tmp_path: Path) -> None:
    study = find_study("thresholds")
    found = study.measure("small", {"out": tmp_path / "a"}).data
    ordered = samples_by_hand(tmp_path / "a" / "runs")
    assert found.basis["samples"] == len(ordered) > 50
    assert found.basis["scheme"]["qoe_control"] == "off" and found.basis["seeds"] == [1, 2]
    assert found.basis["pairs"] == ["hsr-1", "subway-1"]
    rows = {row.setting: row for row in found.rows}
    assert rows[None].t_th1_ms is None
    assert (rows[60, 1].t_th1_ms, rows[60, 1].t_th2_ms) == (th(ordered, 60), th(ordered, 1))
    assert {(95, 80), (90, 80), (90, 60), (60, 50), (60, 1), (1, 1), None} == rows.keys(), "those of the paper"
    server = [read_jsonl(file)[-1] for file in (tmp_path / "a" / "runs").glob("*/server.jsonl")]
    twice = sum(row["reinjected_bytes"] for row in server)
    beta = twice / (sum(row["stream_bytes_sent"] for row in server) - twice)
    assert found.cost == pytest.approx(beta) and beta > 0.01
    again = study.measure("small", {"out": tmp_path / "b", "thresholds": [[95, 80]]})
    assert again.data.basis["sha256"] == found.basis["sha256"], "the same seeds give the same distribution"
    table = dict(again.parts())["thresholds"].splitlines()[2:]
    assert [row.split(" | ")[0] for row in table] == ["| off", "| 95-80"]


def run_experiment(folder: Path, thresholds: str) -> list[dict[str, Any]]:
    (folder / "percent.yaml").write_text(EXPERIMENT.format(thresholds=thresholds))
    railyard("run", folder / "percent.yaml", "--out", folder / "out")
    return [json.loads(file.read_text()) for file in sorted((folder / "out" / "runs").glob("*/run.json"))]


def test_an_experiment_resolves_percentiles_and_records_where_they_came_from(tmp_path: Path) -> None:
    records = run_experiment(tmp_path, "[60, 20]")
    measuring = [folder for folder in (tmp_path / "out" / "thresholds").iterdir() if not folder.is_symlink()]
    assert len(measuring) == 1
    ordered = samples_by_hand(measuring[0] / "runs")
    for record in records:
        config = record["config"]
        if config["label"] == "xlink,thresholds=off":
            assert config["parameters"] == {"reinjection": "none"} and config["thresholds"] is None
            continue
        assert config["label"] == "xlink,thresholds=60-20"
        measured = config["thresholds"]
        assert measured["samples"] == len(ordered) and measured["pairs"] == ["hsr-1", "subway-1"]
        assert measured["t_th1_ms"] == pytest.approx(th(ordered, 60), abs=0.001)
        assert measured["t_th2_ms"] == pytest.approx(th(ordered, 20), abs=0.001)
        assert float(config["parameters"]["t_th1_ms"]) == pytest.approx(measured["t_th1_ms"], rel=1e-5)
        assert 0 < float(config["parameters"]["t_th1_ms"]) < float(config["parameters"]["t_th2_ms"])
    off = [record for record in records if record["config"]["label"].endswith("off")]
    assert len(records) == 8 and len(off) == 4
    for record in off:
        server = read_jsonl(tmp_path / "out" / "runs" / record["run_id"] / "server.jsonl")[-1]
        assert server["reinjected_bytes"] == 0


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ("{scheme: xlink, thresholds: [80, 95]}", "schemes[0].thresholds: [X, Y] is [80, 95], but X must not be below"),
        ("{scheme: xlink, thresholds: [95, 80], t_th1_ms: 5}", "in percent and in milliseconds"),
        ("{scheme: xlink, thresholds: off, reinjection: stream}", "'off' means no re-injection"),
        ("{scheme: mptcp, thresholds: [95, 80]}", "'thresholds' is a parameter of QUIC"),
        ("{scheme: xlink, measured: {x: 1}}", "unknown field"),
        ("{scheme: xlink, copy_rule: never}", "copy_rule"),
    ],
)
def test_thresholds_that_make_no_sense_are_named(tmp_path: Path, entry: str, sentence: str) -> None:
    text = EXPERIMENT.format(thresholds="[95, 80]").replace("{scheme: xlink, thresholds: [95, 80]}", entry)
    (tmp_path / "wrong.yaml").write_text(text)
    with pytest.raises(UserError) as caught:
        railyard("run", tmp_path / "wrong.yaml", "--out", tmp_path / "out")
    assert str(caught.value).startswith(f"{tmp_path / 'wrong.yaml'}:") and sentence in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"scheme": "xlnk"}, "did you mean 'xlink'?"),
        ({"pairs": ["subway-9"]}, "there is no trace pair 'subway-9'"),
        ({"arena": "simm"}, "unknown arena 'simm'"),
        ({"player": {"duration": 6}}, "player.duration"),
        ({"thresholds": [[80, 95]]}, "0 ≤ Y ≤ X ≤ 100 must hold"),
        ({"thresholds": ["many"]}, "--set thresholds[0]: Input should be"),
    ],
)
def test_settings_that_cannot_work_end_in_one_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        find_study("thresholds").measure("default", changes)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)
