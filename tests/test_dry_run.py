"""`railyard run --dry-run`: what a campaign takes, and nothing is run for it."""

import json
import re
from pathlib import Path

import pytest

from conftest import good
from in_process import railyard
from railyard.experiment.model import load_experiment
from railyard.results.estimate import FEWEST_RUNS, estimate, rates
from railyard.run import vkernel
from railyard.run.resolve import resolve
from railyard.run.runspec import KernelMachine

YAML = """\
name: unit
arena: {arena}
pairs: [subway-1]
schemes: [sp, xlink{more}]
seeds: {seeds}
player: {{duration_s: 2, bitrate_bps: 2000000, chunk_bytes: 65536}}
time_limit_s: 10
"""


def experiment(folder: Path, arena: str = "sim", seeds: int = 2, more: str = "") -> Path:
    file = folder / "unit.yaml"
    file.write_text(YAML.format(arena=arena, seeds=seeds, more=more))
    return file


def test_it_says_runs_time_and_disk_space_and_writes_nothing(tmp_path: Path) -> None:
    file = experiment(tmp_path)
    done = good(railyard("run", str(file), "--dry-run", "--jobs", "2"))
    assert done.stdout.startswith("6 runs in sim.\nTo do: 6 runs of 1 pair, 3 schemes, 2 seeds, 2 at the same time.\n")
    assert re.search(r"They take about [0-9.]+ s, [0-9.]+ [kM]B on disk, as ", done.stdout)
    assert re.search(r"[0-9.]+ [GTM]B of the disk is free\.\nNothing was run\.$", done.stdout.strip())
    assert list(tmp_path.iterdir()) == [file]


def test_it_counts_what_is_done_already(tmp_path: Path) -> None:
    file, out = experiment(tmp_path), tmp_path / "out"
    assert railyard("run", str(file), "--out", str(out)).returncode == 0
    assert railyard("run", str(file), "--out", str(out), "--dry-run").stdout == (
        "6 runs in sim, 6 of them done already.\nNothing was run.\n"
    )
    fresh = railyard("run", str(file), "--out", str(tmp_path / "another"), "--dry-run")
    assert "To do: 6 runs" in fresh.stdout and not (tmp_path / "another").exists()


def test_play_time_left_is_not_measured(tmp_path: Path) -> None:
    file = experiment(tmp_path, more=", {scheme: xlink, thresholds: [95, 80]}")
    done = railyard("run", str(file), "--dry-run")
    assert done.stdout.startswith("Runs that measure play-time left come first, and are not counted here")
    assert "8 runs in sim." in done.stdout and list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("outdated", [False, True])
def test_a_kernel_is_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outdated: bool) -> None:
    monkeypatch.setattr(vkernel, "build", lambda: pytest.fail("it builds a kernel"))
    monkeypatch.delenv("RAILYARD_KERNEL", raising=False)
    if outdated:
        (tmp_path / "linux").touch()
    said = "has another record of its origin, so" if outdated else "The first run in the kernel arena builds its kernel"
    for words in ([str(experiment(tmp_path, arena="kernel"))], ["fig13", "--arena", "kernel"]):
        done = good(railyard("run", *words, "--dry-run", RAILYARD_KERNEL_CACHE=str(tmp_path)))
        assert said in done.stdout and re.search(r"^[0-9]+ runs in kernel\.$", done.stdout, re.MULTILINE)
    wrong = experiment(tmp_path, arena="kernel", more=", {stack: unknown}")
    assert railyard("run", str(wrong), "--dry-run", RAILYARD_KERNEL_CACHE=str(tmp_path)).returncode == 2


def test_without_a_kernel_it_names_the_runs_that_count_if_the_same_one_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAILYARD_KERNEL", raising=False)
    monkeypatch.setenv("RAILYARD_KERNEL_CACHE", str(tmp_path))
    file, out = experiment(tmp_path, arena="kernel"), tmp_path / "out"
    machine = KernelMachine(file=Path("linux"), sha256="1", options_sha256="2", libraries_sha256="3")
    for number, spec in enumerate(resolve(*load_experiment(file), dry_run=True)):
        own = spec.model_copy(update={"kernel": machine} | ({"seed": 9} if number == 0 else {}))
        (out / "runs" / spec.run_id).mkdir(parents=True)
        record = {"identity": own.identity(), "config": own.model_dump(mode="json")}
        (out / "runs" / spec.run_id / "run.json").write_text(json.dumps(record))
    words = ("run", str(file), "--out", str(out), "--dry-run")
    said = good(railyard(*words, RAILYARD_KERNEL_CACHE=str(tmp_path))).stdout
    assert f"6 runs in kernel.\n5 of them are done in {out}, and count if the kernel comes out the same.\n" in said
    assert "To do: 6 runs" in said and "of them are done" not in railyard(*words[:2], words[4]).stdout


def test_on_the_wall_clock_the_lengths_of_the_videos_tell(tmp_path: Path) -> None:
    checked, document = load_experiment(experiment(tmp_path, arena="mpshell"))
    specs = resolve(checked, document)
    one, two = (estimate(specs, "all", jobs, tmp_path).seconds for jobs in (1, 2))
    assert one == pytest.approx(6 * (2 + 1.5)) and two == pytest.approx(one / 2)
    assert "without stalls" in estimate(specs, "all", 1, tmp_path).basis


def test_qlogs_take_space_and_of_the_worst_less(tmp_path: Path) -> None:
    checked, document = load_experiment(experiment(tmp_path, seeds=9))
    specs = resolve(checked, document)
    none, worst, every = (estimate(specs, qlog, 1, tmp_path).disk_bytes for qlog in ("none", "worst", "all"))
    assert none < worst < every and (every - none) == pytest.approx(9 * (worst - none))


def test_a_video_that_the_links_cannot_carry_costs_what_they_carry(tmp_path: Path) -> None:
    checked, document = load_experiment(experiment(tmp_path, seeds=1))
    [spec, *_] = resolve(checked, document)
    one, huge = (
        estimate([spec.model_copy(update={"player": spec.player.model_copy(update={"bitrate_bps": rate})})], "all", 1)
        for rate in (200_000_000, 1_000_000_000)
    )
    assert one == huge and one.seconds < 5, "10 s of 20 Mbps are 25 MB, and 2 s of video 50 and 250 MB"


def test_small_runs_tell_what_a_run_costs_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that takes twice as long as the other one, and twice the space."""
    usual = rates(tmp_path, "sim")[0]
    videos = [250_000.0] * 8 + [500_000.0] * 8
    small = [
        (video, 2 * usual.seconds.of([video]), 2 * usual.qlogs.of([video]), 2 * usual.link_logs.of([video]))
        for video in videos
    ]
    monkeypatch.setattr("railyard.results.estimate._recorded", lambda *_: iter(small))
    own = rates(tmp_path, "sim")[0]
    for one, other in ((own.seconds, usual.seconds), (own.link_logs, usual.link_logs), (own.qlogs, usual.qlogs)):
        assert one.of([250e6]) == pytest.approx(2 * other.of([250e6]))
    assert own.seconds.of([250e6]) < 250e6 / 250e3 * own.seconds.of([250e3]) / 5
    wall = rates(tmp_path, "mpshell")[0]  # has no figure of its own: a run takes as long as its video
    assert wall.seconds.run == 0 and wall.seconds.of([250_000.0]) > 0


def test_recorded_runs_take_the_place_of_what_another_machine_took(tmp_path: Path) -> None:
    file, results = experiment(tmp_path), tmp_path / "results"
    usual, basis = rates(results, "sim")
    assert "another machine" in basis
    assert railyard("run", str(file), "--out", str(results / "unit")).returncode == 0
    undated = results / "another"
    (undated / "runs").mkdir(parents=True)
    (undated / "campaign.json").write_text('{"schema": 1, "experiment": {"name": "another", "arena": "sim"}}')
    own, basis = rates(results, "sim")
    assert basis.startswith("6 recorded runs") and FEWEST_RUNS <= 6
    assert own != usual and 0.05 < own.qlogs.byte < 5 and 0.01 < own.link_logs.byte < 5
    assert rates(tmp_path, "sim") == (usual, rates(undated, "sim")[1]), "it looks at no more than the folders in it"
