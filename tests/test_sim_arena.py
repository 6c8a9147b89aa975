"""The sim arena seen from the orchestrator: the same experiment file, the same results, in virtual time."""

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Done, FakeRun, good, one_sentence
from in_process import railyard
from railyard.arenas.sim import ARENA, job
from railyard.base.errors import UserError
from railyard.base.paths import program
from railyard.experiment.model import load_experiment
from railyard.gate.compare import outputs_sha256
from railyard.results.oracle import TOLERANCE_S
from railyard.results.records import load_run
from railyard.run import record as run_record
from railyard.run.arena import arena_of
from railyard.run.resolve import not_run, resolve
from railyard.run.runspec import RunSpec, player_command, server_command
from railyard.stats.statistics import ks_distance
from railyard.studies.agreement import compare

YAML = """\
name: unit
arena: sim
pairs: [subway-1, hsr-1]
schemes:
  - sp
  - cm
  - {scheme: xlink, label: xlink, t_th1_ms: 200, t_th2_ms: 900, ack_path: fastest, scheduler: ecf, cc: newreno}
  - mptcp
  - tcp
seeds: 2
player: {duration_s: 3, bitrate_bps: 2000000, chunk_bytes: 131072, first_frame_bytes: 20000}
time_limit_s: 20
"""


@pytest.fixture(scope="session")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """The experiment above, run once."""
    folder = tmp_path_factory.mktemp("sim")
    (folder / "unit.yaml").write_text(YAML)
    return folder / "out", railyard("run", str(folder / "unit.yaml"), "--out", str(folder / "out"))


@pytest.fixture
def specs(tmp_path: Path) -> list[RunSpec]:
    (tmp_path / "unit.yaml").write_text(YAML)
    return resolve(*load_experiment(tmp_path / "unit.yaml"))


def test_only_single_path_connects_again_on_its_own_path_alone(specs: list[RunSpec]) -> None:
    reconnect = {spec.label: spec.parameters.get("reconnect") for spec in specs}
    assert reconnect == {"sp": "same", "sp:lte": "same", "cm": None, "xlink": None}


def test_a_campaign_in_virtual_time_leaves_what_any_campaign_leaves(campaign: tuple[Path, Any]) -> None:
    out, done = campaign
    assert done.returncode == 0, done.stderr
    rows = pq.read_table(out / "runs.parquet").to_pylist()
    assert {row["label"] for row in rows} == {"sp", "sp:lte", "cm", "xlink"}
    assert len(rows) == 2 * 2 * 4
    assert {(row["arena"], row["outcome"], row["void"], row["tries"]) for row in rows} == {
        ("sim", "complete", False, 1)
    }
    assert all(0 < row["efficiency"] <= 1 for row in rows)
    names = {"run.json", "job.json", "player.jsonl", "server.jsonl", "mpshell.json", "links", "qlog"}
    for run in (out / "runs").iterdir():
        assert names <= {entry.name for entry in run.iterdir()}
        record = json.loads((run / "run.json").read_text())
        assert record["fidelity"]["lateness_max_us"] == 0
        assert list(record["config"]["programs_sha256"]) == ["xlink-sim"]
    page = (out / "report.html").read_text()
    assert "in the sim arena" in page and "Efficiency: Oracle RCT / RCT of a chunk" in page


def test_the_kernels_transports_are_named_and_nowhere_else(campaign: tuple[Path, Any]) -> None:
    out, done = campaign
    rows = [line.split() for line in done.stdout.splitlines() if re.match(r" .* (mptcp|tcp|tcp:lte) .*–", line)]
    assert [row[-7:][0] for row in rows] == ["mptcp", "tcp", "tcp:lte"] * 2, rows
    assert "\nmptcp, tcp, tcp:lte: needs a kernel; run the same experiment with --arena kernel" in done.stdout
    for name in ("runs", "chunks"):
        labels = set(pq.read_table(out / f"{name}.parquet").column("label").to_pylist())
        assert not labels & {"mptcp", "tcp", "tcp:lte"}
    assert (out / "report.html").read_text().count("needs a kernel") >= 6
    again = railyard("report", str(out))
    assert again.returncode == 0 and (out / "report.html").read_text().count("needs a kernel") >= 6


def test_a_second_campaign_is_the_same_to_the_byte(campaign: tuple[Path, Any], tmp_path: Path) -> None:
    out, _ = campaign
    assert railyard("run", str(out.parent / "unit.yaml"), "--out", str(tmp_path), "--jobs", "1").returncode == 0
    first = {run.name: outputs_sha256(run) for run in (out / "runs").iterdir()}
    assert first == {run.name: outputs_sha256(run) for run in (tmp_path / "runs").iterdir()}
    assert len(set(first.values())) > len(first) / 2, "and the hash tells runs apart"


def test_finished_runs_are_not_done_again(campaign: tuple[Path, Any]) -> None:
    out, _ = campaign
    before = {file: file.stat().st_mtime_ns for file in out.glob("runs/*/run.json")}
    again = good(railyard("run", str(out.parent / "unit.yaml"), "--out", str(out)))
    assert "16 of 16 runs are there already" in again.stdout
    assert {file: file.stat().st_mtime_ns for file in before} == before


def test_the_job_says_what_the_command_lines_say(specs: list[RunSpec], tmp_path: Path) -> None:
    spec = next(spec for spec in specs if spec.scheme == "xlink")
    written = job(spec)
    server, player = server_command(spec, Path("s"), tmp_path), player_command(spec, Path("p"), tmp_path)

    def option(command: list[str], name: str) -> str:
        return command[command.index(name) + 1]

    assert [float(option(server, "--t-th1-ms")), float(option(server, "--t-th2-ms"))] == [200, 900]
    assert (written["t_th1_ms"], written["t_th2_ms"], written["ack_path"]) == (200, 900, option(player, "--ack-path"))
    assert written["cc"] == option(server, "--cc") == option(player, "--cc") == "newreno"
    assert written["scheduler"] == option(server, "--scheduler") == option(player, "--scheduler") == "ecf"
    assert str(written["send_buffer_bytes"]) == option(server, "--send-buffer-bytes")
    assert option(player, "--url") == f"/synthetic/{written['player']['video_bytes']}"
    for member, name in (
        ("bitrate_bps", "--bitrate"),
        ("chunk_bytes", "--chunk-bytes"),
        ("first_frame_bytes", "--first-frame-bytes"),
        ("rebuffer_target_ms", "--rebuffer-target-ms"),
        ("max_buffer_ms", "--max-buffer-ms"),
        ("concurrency", "--concurrency"),
    ):
        assert str(written["player"][member]) == option(player, name)
    assert "duration_s" not in written["player"], "the wall-clock player plays the video to its end, too"
    assert (written["seed"], written["primary"]) == (spec.seed, option(player, "--primary"))
    assert written["start_offset_ms"] == spec.start_offset_ms


@pytest.mark.parametrize("scheme", ["sp", "cm", "xlink"])
def test_a_run_without_captures_has_null_crypto_and_comes_out_the_same(
    specs: list[RunSpec], tmp_path: Path, scheme: str
) -> None:
    spec = next(spec for spec in specs if spec.scheme == scheme and spec.pair == "hsr-1")
    logs = {}
    for name, pcap in (("real", True), ("null", False)):
        folder = tmp_path / name
        folder.mkdir()
        record = asyncio.run(ARENA.execute(spec.model_copy(update={"qlog": True, "pcap": pcap}), folder))
        assert json.loads((folder / "job.json").read_text())["null_crypto"] is not pcap
        assert record["packet_protection"] == name
        compared = (".jsonl", ".log", ".sqlog")
        found = [file for file in folder.rglob("*") if file.suffix in compared or file.name == "mpshell.json"]
        logs[name] = {file.relative_to(folder): file.read_bytes() for file in found}
    assert len(logs["null"]) >= 9 and logs["null"] == logs["real"]


def test_a_player_that_starts_late_is_another_run_and_still_no_earlier_than_the_oracle(
    specs: list[RunSpec], tmp_path: Path
) -> None:
    on_time = next(spec for spec in specs if spec.scheme == "xlink")
    late = on_time.model_copy(update={"player_start_ms": 250})
    assert "players" not in job(on_time) and job(late)["players"] == [{"start_s": 0.25}]
    assert late.identity() != on_time.identity()
    run_record.write(tmp_path, asyncio.run(ARENA.execute(late, tmp_path)))
    run = load_run(tmp_path)
    assert run.player_start_s == 0.25
    assert all(chunk.oracle_s is not None and chunk.oracle_s <= chunk.rct_s + TOLERANCE_S for chunk in run.chunks)


def test_both_arenas_start_at_the_same_place_in_the_traces(specs: list[RunSpec], tmp_path: Path) -> None:
    (tmp_path / "wall.yaml").write_text(YAML.replace("arena: sim", "arena: mpshell"))
    experiment, document = load_experiment(tmp_path / "wall.yaml")
    wall = {spec.run_id: spec for spec in resolve(experiment, document)}
    assert {spec.run_id for spec in specs} < set(wall)
    for spec in specs:
        there = wall[spec.run_id]
        same = ("start_offset_ms", "paths", "player", "parameters", "congestion", "primary", "seed", "buffers")
        assert [getattr(spec, name) for name in same] == [getattr(there, name) for name in same]
        assert spec.identity() != there.identity()
    assert not_run(experiment, document) == [], "in mpshell every scheme runs"


def test_only_kernel_transports_in_sim_is_a_mistake(tmp_path: Path) -> None:
    file = tmp_path / "unit.yaml"
    file.write_text("name: u\narena: sim\npairs: [subway-1]\nschemes: [mptcp]\n")
    with pytest.raises(UserError, match=r"unit.yaml:4: schemes: none of these schemes can run in the sim arena"):
        resolve(*load_experiment(file))


def test_one_run_is_shown_with_its_oracle(campaign: tuple[Path, Any]) -> None:
    done = good(railyard("show", str(next(iter((campaign[0] / "runs").iterdir())))))
    assert "fidelity: exact, in virtual time" in done.stdout and "oracle s" in done.stdout


@given(
    st.lists(st.floats(0.01, 100), min_size=1, max_size=20),
    st.lists(st.floats(0.01, 100), min_size=1, max_size=20),
)
def test_the_distance_of_distributions_is_the_largest_gap(a: list[float], b: list[float]) -> None:
    gaps = [abs(sum(value <= x for value in a) / len(a) - sum(value <= x for value in b) / len(b)) for x in (*a, *b)]
    assert ks_distance(a, b) == pytest.approx(max(gaps))
    assert ks_distance(a, b) == ks_distance(b, a) <= 1
    assert ks_distance(a, a) == 0


def test_arenas_are_compared_over_the_runs_that_both_have(tmp_path: Path) -> None:
    measured = [FakeRun(seed=1, rct_s=[1.0, 2.0, 3.0]), FakeRun(seed=2, rct_s=[9.0], void=True)]
    simulated = [FakeRun(seed=1, rct_s=[1.1, 2.2, 3.3]), FakeRun(seed=2, rct_s=[8.0])]
    wall = [load_run(run.write(tmp_path / "mpshell")) for run in measured]
    sim = [load_run(run.write(tmp_path / "sim")) for run in simulated]
    [row] = compare(sim, wall)
    assert (row.runs, row.void_runs, row.chunks_virtual, row.chunks_mpshell) == (1, 1, 3, 3)
    assert row.ratio == pytest.approx(1.1) and not row.agrees
    assert row.ks_distance == pytest.approx(1 / 3)
    assert row.chunk_ratios == pytest.approx((1.1, 1.1, 1.1))


def test_virtual_time_uses_every_core() -> None:
    assert arena_of("sim").default_jobs() == len(os.sched_getaffinity(0)) >= arena_of("mpshell").default_jobs()


@pytest.mark.parametrize("dies", ["exit 2", "kill -SEGV $$"])
def test_a_program_that_fails_is_named(campaign: tuple[Path, Any], tmp_path: Path, dies: str) -> None:
    program = tmp_path / "xlink-sim"
    program.write_text(f"#!/bin/sh\necho 'xlink-sim: the job is wrong.' >&2\n{dies}\n")
    program.chmod(0o755)
    yaml, out = campaign[0].parent / "unit.yaml", tmp_path / "out"
    done = railyard("run", str(yaml), "--seeds", "1", "--out", str(out), RAILYARD_BIN=str(tmp_path))
    if dies == "exit 2":
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert "could not start: xlink-sim: the job is wrong." in done.stderr
        assert list((out / "runs").iterdir()) == []
    else:
        assert done.returncode == 1, done.stderr
        last = done.stdout.splitlines()[-1]
        assert last.startswith("A program failed in 8 of 8 runs; the first is ") and "died of SIGSEGV" in last


def test_outputs_cut_by_a_disk_that_has_room_again_are_no_fault_of_railyard(
    campaign: tuple[Path, Any], tmp_path: Path
) -> None:
    program = tmp_path / "xlink-sim"
    program.write_text('#!/bin/sh\n: > "$3/player.jsonl"\n: > "$3/mpshell.json"\nexit 1\n')
    program.chmod(0o755)
    yaml, out = campaign[0].parent / "unit.yaml", tmp_path / "out"
    done = railyard("run", str(yaml), "--seeds", "1", "--out", str(out), RAILYARD_BIN=str(tmp_path))
    one_sentence(done, "has incomplete outputs; was the disk full? xlink-sim ended with code 1: it said nothing.")
    assert list((out / "runs").iterdir()) == []


def test_a_crash_in_one_run_ends_a_campaign_with_exit_code_1_and_a_play_that_fails_does_not(tmp_path: Path) -> None:
    """The real program, with a signal in one run. No play at this bit rate completes in its time."""
    script, yaml = tmp_path / "xlink-sim", tmp_path / "crash.yaml"
    yaml.write_text(
        "name: crash\narena: sim\npairs: [subway-1]\nschemes: [sp, vanilla-mp]\nseeds: 2\nqlog: none\n"
        "player: {duration_s: 2, bitrate_bps: 80000000}\ntime_limit_s: 3\n"
    )
    real, crash = program("xlink-sim"), "*vanilla-mp--s2/job.json"
    script.write_text(
        "#!/bin/bash\n"
        f'if [ "$1" != --batch ]; then [[ $1 = {crash} ]] && kill -SEGV $$; exec {real} "$@"; fi\n'
        f"while IFS=$'\\t' read -r job out; do [[ $job = {crash} ]] && kill -SEGV $$\n"
        f'{real} "$job" --out "$out"; echo $?; done\n'
    )
    script.chmod(0o755)
    out = str(tmp_path / "failed")
    good(railyard("run", str(yaml), "--out", out))
    assert good(railyard("show", out)).stdout.count("│ time limit │") == 6
    for _ in range(2):  # the second time nothing is run
        done = railyard("run", str(yaml), "--out", str(tmp_path / "crashed"), RAILYARD_BIN=str(tmp_path))
        assert (done.returncode, done.stderr) == (1, "")
        last = done.stdout.splitlines()[-1]
        assert (
            "failed in 1 of 6 runs; the first is subway-1--vanilla-mp--s2: crashed: xlink-sim died of SIGSEGV" in last
        )


def test_without_the_program_there_is_one_sentence(campaign: tuple[Path, Any], tmp_path: Path) -> None:
    yaml = campaign[0].parent / "unit.yaml"
    one_sentence(railyard("run", str(yaml), "--out", str(tmp_path / "out"), RAILYARD_BIN=str(tmp_path)), "make build")
