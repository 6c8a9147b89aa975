"""Traces that were generated, or recorded a moment ago, replayed by the name of their pair."""

import json
from pathlib import Path
from typing import Any

import pytest

from in_process import railyard
from railyard.base.jsonl import read_jsonl, summary_of
from railyard.experiment.model import load_experiment
from railyard.run.campaign import Campaign, run_campaign
from railyard.run.progress import Silent
from railyard.run.resolve import resolve
from railyard.traces.delay import rtt_over_time
from railyard.traces.index import read_index

EXPERIMENT = """\
name: replay
pairs: [{pair}]
schemes: [{scheme}]
start_offset_ms: {offset_ms}
player: {{duration_s: 1, bitrate_bps: 1000000, chunk_bytes: 65536}}
time_limit_s: 20
qlog: false
"""


def traces(*arguments: object) -> tuple[int, str]:
    """Exit code and output of `railyard traces`."""
    done = railyard("traces", *map(str, arguments))
    return done.returncode, done.stdout + done.stderr


def replay(tmp_path: Path, arena: str, **fields: Any) -> Path:
    """One run with a pair, a second of video; gives its folder."""
    file = tmp_path / "replay.yaml"
    file.write_text(f"arena: {arena}\n" + EXPERIMENT.format(**fields))
    campaign = Campaign(tmp_path / arena)
    campaign.runs.mkdir(parents=True, exist_ok=True)
    run_campaign(campaign, resolve(*load_experiment(file)), 1, Silent())
    return next(campaign.runs.iterdir())


@pytest.fixture(scope="module")
def delayed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with a generated pair and its delay traces."""
    library = tmp_path_factory.mktemp("delayed")
    options = ("--model", "subway", "--seed", 3, "--name", "delayed", "--duration", 10)
    assert traces("generate", *options, "--delay-traces", "--out", library)[0] == 0
    return library


def test_a_generated_pair_names_its_delay_traces(delayed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (pair,) = read_index(delayed / "index.yaml")
    files = {path.name: path.delay_traces for path in pair.paths}
    assert files == {name: {"delay_trace": delayed / f"delayed.{name}.delay"} for name in ("wifi", "lte")}
    monkeypatch.setenv("RAILYARD_TRACE_PATH", str(delayed))
    _, shown = traces("stats", "delayed")
    for name in ("wifi", "lte"):
        _, alone = traces("stats", delayed / f"delayed.{name}.delay")
        figures = alone.strip().partition(": ")[2]
        assert figures.startswith("RTT p25/p50/p75")
        assert f"{name} delay-trace (delayed.{name}.delay): {figures}" in shown
    assert traces("validate", delayed / "index.yaml")[0] == 0


def test_a_pair_that_another_librarys_pair_of_its_name_hides_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    libraries = [tmp_path / name for name in ("first", "same", "other")]
    for library, seed in zip(libraries, (1, 1, 2), strict=True):
        options = ("--model", "subway", "--seed", seed, "--name", "mine", "--duration", 10, "--out", library)
        assert traces("generate", *options)[0] == 0
    monkeypatch.setenv("RAILYARD_TRACE_PATH", ":".join(map(str, libraries)))
    warning = f"warning: mine: the one of {libraries[0] / 'index.yaml'} is used, which is searched first, and not the"
    listed, shown = traces("list")[1], traces("stats", "mine")[1]
    run = railyard("run", "--pair", "mine", "--seeds", "1", "--dry-run")
    for told in (listed, shown, run.stdout + run.stderr):
        [line] = [line for line in told.splitlines() if line.startswith("warning: mine: the one")]
        assert line == f"{warning} other one of {libraries[2] / 'index.yaml'}; rename that to use it."
    index = libraries[1] / "index.yaml"
    index.write_text(index.read_text().replace("name: wifi", "name: wlan"))
    assert f"{warning} other one of {index}; rename" in traces("list")[1]


def test_a_delay_trace_that_is_wrong_fails_the_validation_of_its_index(delayed: Path, tmp_path: Path) -> None:
    for file in delayed.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "delayed.lte.delay").write_text("0,10\n0,11\n")
    code, words = traces("validate", tmp_path / "index.yaml")
    assert (code, "delayed.lte.delay:2: " in words) == (2, True), words


@pytest.mark.parametrize("arena", ["sim", pytest.param("mpshell", marks=pytest.mark.privileged)])
def test_a_run_with_the_pair_has_its_delays(
    delayed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arena: str
) -> None:
    """It starts where the trace has a handoff's RTT of half a second, five times that of the index."""
    monkeypatch.setenv("RAILYARD_TRACE_PATH", str(delayed))
    at_ms = 7200
    folder = replay(tmp_path, arena, pair="delayed", scheme="'sp:wifi'", offset_ms=at_ms)
    rtt_ms = rtt_over_time(delayed / "delayed.wifi.delay")
    assert rtt_ms[at_ms] > 450
    summary = summary_of(read_jsonl(folder / "player.jsonl"))
    assert summary is not None
    assert summary["outcome"] == "complete"
    assert 1000 * summary["handshake_s"] >= rtt_ms[at_ms : at_ms + 600].min()
    for path in json.loads((folder / "mpshell.json").read_text())["paths"]:
        assert path["delay_ms"] is None
        assert path["up"]["settings"]["delay-trace"].endswith(f"delayed.{path['name']}.delay")
