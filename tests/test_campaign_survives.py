"""Campaigns that are killed at any moment, disks that fill up, runs that break: nothing is lost and nothing doubled."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from conftest import good, one_sentence
from in_process import railyard
from railyard.gate.compare import outputs_sha256
from railyard.results.campaigns import StoredCampaign
from small_disk import small_disk

YAML = """\
name: unit
arena: sim
pairs: [subway-1]
schemes: [sp, vanilla-mp, xlink]
seeds: 6
player: {duration_s: 1, bitrate_bps: 1000000, chunk_bytes: 65536}
time_limit_s: 10
qlog: false
link_logs: false
"""
RUNS = 24  # sp runs on each path in turn
# One process that has everything imported forks a campaign for each line: a start of Python for each would take longer
# than all runs together. It answers with the campaign's process ID, and with its exit status when that has ended. A
# line begins with the number of runs after which the campaign is killed at the latest, however late the test looks.
FORKER = """
import os, signal, sys
from railyard.cli import main as cli, runs  # noqa: F401
from railyard.report import page, write_report
from railyard.run.campaign import Campaign
import plotly, pyarrow.parquet
install = Campaign.install
def install_at_most(*arguments):
    global left
    install(*arguments)
    left -= 1
    left or os.kill(os.getpid(), signal.SIGKILL)
Campaign.install = install_at_most
while line := sys.stdin.readline():
    child = os.fork()
    if child == 0:
        left, *words = line.split()
        left, sys.argv = int(left), ["railyard", *words]
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        cli.main()
    print(child, flush=True)
    sys.stdin.readline()  # not before it is asked for: until then the process ID stays the campaign's
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    file = tmp_path / "unit.yaml"
    file.write_text(YAML)
    return file


@contextmanager
def forker() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", FORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def start(process: subprocess.Popen[str], *arguments: str, most_runs: int = RUNS + 1) -> int:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(" ".join((str(most_runs), *arguments)) + "\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def status(process: subprocess.Popen[str]) -> int:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("status\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def whole_runs(out: Path) -> dict[str, int]:
    """Each completed run, and when its record was written."""
    return {file.parent.name: file.stat().st_mtime_ns for file in out.glob("runs/[!.]*/run.json")}


def wait_for_runs(out: Path, number: int, limit_s: float = 60) -> None:
    """Moments are counted in runs: how fast the machine is does not matter."""
    end = time.monotonic() + limit_s
    while len(whole_runs(out)) < number:
        assert time.monotonic() < end, f"{number} runs were not there within {limit_s} s"
        time.sleep(0.002)


def test_a_campaign_killed_at_any_moment_loses_nothing_and_doubles_nothing(experiment: Path, tmp_path: Path) -> None:
    """Killed again and again, at moments from before its first run to while it writes the report."""
    out, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    moments = random.Random(6)
    kills, states = 0, []
    with forker() as process:
        start(process, "run", str(experiment), "--out", str(undisturbed))
        assert status(process) == 0
        before: dict[str, int] = {}
        for _ in range(16):
            campaign = start(process, "run", str(experiment), "--out", str(out), most_runs=4)
            wait_for_runs(out, min(RUNS, len(before) + moments.randrange(4)))
            time.sleep(moments.uniform(0, 0.03 if len(before) < RUNS else 0.5))
            os.kill(campaign, signal.SIGKILL)
            ended = status(process)
            kills += ended == -signal.SIGKILL
            now = whole_runs(out)
            assert before.items() <= now.items(), "a whole run was lost, or done again"
            before = now
            states.append(StoredCampaign("killed", out).state if out.is_dir() else "nothing")
        start(process, "run", str(experiment), "--out", str(out))
        assert status(process) == 0
    assert kills >= 8 and len(set(states)) >= 3, (kills, states)
    assert before.items() <= whole_runs(out).items()
    assert StoredCampaign("killed", out).state == "complete"
    assert not list(out.glob("runs/.*")) and len(list((out / "runs").iterdir())) == RUNS
    ours, theirs = (
        {run.name: outputs_sha256(run) for run in (folder / "runs").iterdir()} for folder in (out, undisturbed)
    )
    assert ours == theirs
    for name in ("runs", "chunks", "links"):
        keys = ["run_id", *{"chunks": ["chunk"], "links": ["path", "direction"]}.get(name, [])]
        rows = [tuple(row.values()) for row in pq.read_table(out / f"{name}.parquet", columns=keys).to_pylist()]
        expected = pq.read_table(undisturbed / f"{name}.parquet", columns=keys).to_pylist()
        assert len(rows) == len(set(rows)), "a row is there twice"
        assert sorted(rows) == sorted(tuple(row.values()) for row in expected)


@pytest.mark.privileged
def test_a_full_disk_ends_a_campaign_in_one_sentence_and_room_lets_it_go_on(experiment: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "330k") as disk:
        full = railyard("run", str(experiment), "--out", str(disk / "out"))
        one_sentence(full, "the disk is full. Completed runs are kept: make room")
        kept = whole_runs(disk / "out")
        assert 0 < len(kept) < RUNS
        for run in kept:
            record = json.loads((disk / "out" / "runs" / run / "run.json").read_text())
            assert record["outcome"] == "complete", "what the full disk cut short is not kept"
        # Room for the runs, but not for the page.
        subprocess.run(["mount", "-o", "remount,size=1400k", str(disk)], check=True)
        one_sentence(railyard("run", str(experiment), "--out", str(disk / "out")), "No space left on device")
        plot = disk / "plot.html"
        plot.write_text("before")
        drawn = railyard("traces", "stats", "subway-1", "--plot", str(plot))
        assert (drawn.returncode, drawn.stderr.count("\n"), plot.read_text()) == (2, 1, "before"), drawn.stderr
        assert not list(disk.glob(".*")), "what could not be completed is not kept"
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        good(railyard("run", str(experiment), "--out", str(disk / "out")))
        after = whole_runs(disk / "out")
        assert kept.items() <= after.items() and len(after) == RUNS


def test_broken_runs_are_named_and_done_again(experiment: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert railyard("run", str(experiment), "--out", str(out), "--seeds", "1").returncode == 0
    sp, vanilla, xlink = (out / "runs" / f"subway-1--{name}--s1" for name in ("sp", "vanilla-mp", "xlink"))
    (sp / "run.json").write_text('{"schema": 1, "cut sh')
    (vanilla / "mpshell.json").unlink()
    shutil.rmtree(xlink)
    one_sentence(railyard("report", str(out)), "sp--s1/run.json:1: this run cannot be read")
    again = railyard("run", str(experiment), "--out", str(out), "--seeds", "1")
    one_sentence(again, "vanilla-mp--s1: this is not a completed run: No such file or directory")
    assert "1 of 4 runs" not in again.stdout and "2 of 4 runs are there already" in again.stdout
    shutil.rmtree(vanilla)
    assert railyard("run", str(experiment), "--out", str(out), "--seeds", "1").returncode == 0
    assert pq.read_table(out / "runs.parquet").num_rows == 4
    made = (out / "campaign.json").read_text()
    good(railyard("run", str(experiment), "--out", str(out), "--seeds", "1", "--jobs", "1"))
    assert (out / "campaign.json").read_text() == made, "a command that makes no run leaves the record as it is"
