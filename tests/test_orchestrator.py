"""From a YAML file to runs, and from runs to a whole campaign."""

import asyncio
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet as pq
import pytest

from conftest import FakeRun, good, run_program
from railyard.arenas import mpshell
from railyard.base.errors import UserError
from railyard.base.paths import EXPERIMENTS_DIR
from railyard.base.provenance import mptcp_counters
from railyard.experiment.model import Experiment, load_experiment
from railyard.results.oracle import TOLERANCE_S
from railyard.run import campaign as campaign_module
from railyard.run import confine
from railyard.run.campaign import Campaign, run_campaign
from railyard.run.children import interrupted_by_signals
from railyard.run.fidelity import MAX_TRIES
from railyard.run.probe import Probe, Timers
from railyard.run.progress import Silent
from railyard.run.quiet import Quiet
from railyard.run.repetition import BUDGET_FLOOR_S, BUDGET_SHARE, default_budget_s, planned_s
from railyard.run.resolve import resolve
from railyard.run.runspec import RunSpec, mpshell_command, player_command, server_command
from waiting import wait_until

YAML = """\
name: unit
pairs: [subway-1]
schemes:
  - sp
  - cm
  - {scheme: xlink, t_th1_ms: 200, t_th2_ms: 900, ack_path: fastest}
  - mptcp
seeds: 2
player: {duration_s: 4, bitrate_bps: 1000000}
time_limit_s: 10
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of stand-in programs, so that runs can be resolved if nothing is built."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("mpshell", "xlink-server", "xlink-player", "xlink-sim"):
        (folder / name).write_text("#!/bin/sh\nexit 2\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("RAILYARD_BIN", str(folder))
    return folder


@pytest.fixture
def specs(tmp_path: Path, programs: Path) -> list[RunSpec]:
    file = tmp_path / "unit.yaml"
    file.write_text(YAML)
    return resolve(*load_experiment(file))


def test_every_scheme_runs_from_the_same_offset_on_the_same_traces(specs: list[RunSpec]) -> None:
    for seed in (1, 2):
        offsets = {spec.start_offset_ms for spec in specs if spec.seed == seed}
        assert len(offsets) == 1
    assert len({spec.start_offset_ms for spec in specs}) == 2, "each seed draws its own offset"
    assert all(spec.paths == specs[0].paths for spec in specs)


def test_single_path_runs_on_the_primary_path_and_on_each_other_one(specs: list[RunSpec]) -> None:
    single = [(spec.label, spec.primary) for spec in specs if spec.scheme == "sp" and spec.seed == 1]
    assert single == [("sp", "wifi"), ("sp:lte", "lte")]


def test_run_names_differ_and_stay_the_same(specs: list[RunSpec], tmp_path: Path) -> None:
    assert len({spec.run_id for spec in specs}) == len(specs) == 10
    again = resolve(*load_experiment(tmp_path / "unit.yaml"))
    assert [spec.identity() for spec in again] == [spec.identity() for spec in specs]


def test_another_program_or_setting_is_another_run(specs: list[RunSpec], programs: Path, tmp_path: Path) -> None:
    (programs / "xlink-server").write_text("#!/bin/sh\nexit 3\n")
    rebuilt = resolve(*load_experiment(tmp_path / "unit.yaml"))
    assert rebuilt[0].run_id == specs[0].run_id
    assert rebuilt[0].identity() != specs[0].identity()
    slower = specs[0].model_copy(update={"time_limit_s": 11.0})
    assert slower.identity() != specs[0].identity()


def test_parameters_reach_the_programs(specs: list[RunSpec], tmp_path: Path) -> None:
    xlink = next(spec for spec in specs if spec.scheme == "xlink")
    server = " ".join(server_command(xlink, Path("xlink-server"), tmp_path))
    player = " ".join(player_command(xlink, Path("xlink-player"), tmp_path))
    assert "--scheme xlink" in server and "--t-th1-ms 200 --t-th2-ms 900 --ack-path fastest" in server
    assert "--scheme xlink" in player and "--ack-path fastest" in player and "--url /synthetic/500000" in player
    mptcp = next(spec for spec in specs if spec.scheme == "mptcp")
    assert "--mptcp" in server_command(mptcp, Path("s"), tmp_path)
    assert "--mptcp" in mpshell_command(mptcp, Path("m"), tmp_path, ["true"])
    shell = mpshell_command(xlink, Path("m"), tmp_path, ["true"])
    assert shell[shell.index("--start-offset") + 1] == str(xlink.start_offset_ms)


@pytest.mark.parametrize(
    ("name", "played"),
    [
        ("demo", {"sp", "cm", "vanilla-mp", "xlink", "xlink-lean", "xlink+"}),
        ("demo-live", {"sp", "mptcp", "vanilla-mp", "xlink"}),
        ("smoke", {"sp", "cm", "mptcp", "vanilla-mp", "xlink"}),
    ],
)
def test_the_projects_experiments_are_valid(name: str, played: set[str], programs: Path) -> None:
    experiment, document = load_experiment(EXPERIMENTS_DIR / f"{name}.yaml")
    schemes = {spec.scheme for spec in resolve(experiment, document)}
    assert schemes == played


def test_the_first_pair_that_is_found_is_taken(programs: Path, tmp_path: Path) -> None:
    file = tmp_path / "unit.yaml"
    file.write_text(YAML.replace("pairs: [subway-1]", "pairs:\n  - first_found: [nowhere, hsr-1, subway-1]"))
    assert {spec.pair for spec in resolve(*load_experiment(file))} == {"hsr-1"}


def test_kernel_counters_are_read_by_name() -> None:
    text = "TcpExt: A B\nTcpExt: 1 2\nMPTcpExt: MPCapableSYNRX MPJoinSynRx\nMPTcpExt: 1 3\n"
    assert mptcp_counters(text) == {"MPCapableSYNRX": 1, "MPJoinSynRx": 3}
    assert mptcp_counters("TcpExt: A\nTcpExt: 1\n") == {}


class Told(Silent):
    """A reporter that remembers."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []

    def started(self, spec: RunSpec, attempt: int) -> None:
        self.events.append(("started", spec.run_id))

    def finished(self, spec: RunSpec, record: dict[str, Any]) -> None:
        self.events.append(("finished", spec.run_id))

    def repeated(self, spec: RunSpec, attempt: int, reasons: list[str]) -> None:
        self.events.append(("repeated", spec.run_id))

    def refused(self, spec: RunSpec, sentence: str) -> None:
        self.events.append(("refused", spec.run_id))


@pytest.fixture
def folder(tmp_path: Path) -> Campaign:
    campaign = Campaign(tmp_path / "out")
    campaign.runs.mkdir(parents=True)
    return campaign


def worker_that_is_late(times: int) -> Callable[[RunSpec, Path], Any]:
    """A stand-in for a run whose emulator is late a given number of times, which cannot be forced in a real one."""
    left = {"late": times}

    async def work(spec: RunSpec, partial: Path) -> dict[str, Any]:
        late, left["late"] = left["late"] > 0, left["late"] - 1
        written = FakeRun(void=late, identity=spec.identity()).write(partial / "made")
        for file in written.iterdir():
            file.rename(partial / file.name)
        record: dict[str, Any] = json.loads((partial / "run.json").read_text())
        tries = [{key: record[key] for key in ("started", "wall_s", "outcome", "fidelity")}]
        return record | {"run_id": spec.run_id, "tries": tries}

    return work


@pytest.mark.parametrize(("late", "tries", "void"), [(0, 1, False), (1, 2, False), (9, MAX_TRIES, True)])
def test_a_void_run_is_repeated_and_its_tries_are_kept(
    folder: Campaign, specs: list[RunSpec], monkeypatch: pytest.MonkeyPatch, late: int, tries: int, void: bool
) -> None:
    monkeypatch.setattr(mpshell.ARENA, "execute", worker_that_is_late(late))
    told = Told()
    run_campaign(folder, specs[:1], 1, told)
    record = folder.record(specs[0].run_id)
    assert record is not None
    assert [attempt["fidelity"]["void"] for attempt in record["tries"]] == [True] * (tries - 1) + [void]
    assert record["fidelity"]["void"] is void
    assert [word for word, _ in told.events] == ["started", *["repeated", "started"] * (tries - 1), "finished"]


def test_void_runs_are_repeated_after_all_others(
    folder: Campaign, specs: list[RunSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mpshell.ARENA, "execute", worker_that_is_late(2))
    told = Told()
    repetitions = run_campaign(folder, specs[:4], 1, told)
    names = [spec.run_id for spec in specs[:4]]
    assert [run for word, run in told.events if word == "started"] == [*names, *names[:2]]
    assert (repetitions.count, repetitions.void, repetitions.used_up) == (2, [], False)
    assert sorted(run.name for run in folder.runs.iterdir()) == sorted(names)


def test_a_campaign_ends_when_its_time_for_repetitions_is_used_up(
    folder: Campaign, specs: list[RunSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mpshell.ARENA, "execute", worker_that_is_late(99))
    clock = iter(range(0, 1000, 10))  # every look at the clock finds 10 s gone
    monkeypatch.setattr(campaign_module, "monotonic", lambda: float(next(clock)))
    repetitions = run_campaign(folder, specs[:3], 1, Told(), 45.0)
    assert repetitions.used_up
    assert sorted(repetitions.void) == sorted(spec.run_id for spec in specs[:3])
    records = [folder.record(spec.run_id) or {} for spec in specs[:3]]
    assert all("45 s for repetitions were used up" in record["not_repeated"] for record in records)
    assert 0 < repetitions.count < 3 * (MAX_TRIES - 1)
    assert "used up" in repetitions.sentence()


def test_repetitions_wait_until_the_machine_is_quiet(
    folder: Campaign, specs: list[RunSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each round of them; what is waited leaves the time for one more try."""
    monkeypatch.setattr(mpshell.ARENA, "execute", worker_that_is_late(3))
    told, asked, said = Told(), list[float](), list[str]()

    def wait(budget_s: float, heard: Callable[[Probe], None], *, keep_awake: str) -> bool:
        asked.append(budget_s)
        told.events.append(("waited", keep_awake))
        heard(late_probe(2.0))
        heard(late_probe(0.0))
        return True

    run_campaign(folder, specs[:2], 1, told, 60.0, Quiet(said.append, wait=wait))
    words = [word for word, _ in told.events if word in ("started", "waited")]
    assert words == ["started", "started", "waited", "started", "started", "waited", "started"]
    assert all(0 < budget <= 60.0 - planned_s(specs[:1], 1) for budget in asked)
    assert "Waiting for a quiet moment, at most" in said[0] and said[1].startswith("Quiet after ")


def late_probe(late_ms: float) -> Probe:
    timers = Timers(True, 50.0, 1000 * late_ms, 2000 * late_ms, 0.0)
    return Probe(1.5, timers, late_ms / 15.0, 0.0, 2)


def test_a_machine_that_is_late_is_noticed_before_the_start() -> None:
    said: list[str] = []
    assert not Quiet(said.append, measure=lambda seconds, *, keep_awake: late_probe(3.0)).look()
    assert "woke timers late: p99 3.00 ms" in said[0] and "runs may be void" in said[0]
    assert Quiet(said.append, measure=lambda seconds, *, keep_awake: late_probe(0.0)).look() and len(said) == 1


def test_a_void_run_is_repeated_by_the_same_command_later(
    folder: Campaign, specs: list[RunSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mpshell.ARENA, "execute", worker_that_is_late(1))
    run_campaign(folder, specs[:2], 1, Told(), 0.0)
    assert folder.pending(specs[:2]) == specs[:1]
    run_campaign(folder, folder.pending(specs[:2]), 1, Told(), 0.0)
    assert folder.pending(specs[:2]) == []
    exact = specs[0].model_copy(update={"arena": "kernel"})
    record = FakeRun(void=True, identity=exact.identity()).write(folder.runs / "made")
    shutil.rmtree(folder.runs / exact.run_id)
    record.rename(folder.runs / exact.run_id)
    assert folder.pending([exact]) == [], "in virtual time it would be void again"


def test_without_time_for_repetitions_every_run_is_tried_once(
    folder: Campaign, specs: list[RunSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mpshell.ARENA, "execute", worker_that_is_late(1))
    told = Told()
    repetitions = run_campaign(folder, specs[:2], 1, told, 0.0)
    assert [word for word, _ in told.events] == ["started", "finished"] * 2
    assert (repetitions.count, repetitions.void) == (0, [specs[0].run_id])
    assert len((folder.record(specs[0].run_id) or {})["tries"]) == 1


def test_after_so_many_runs_that_hang_no_other_begins(
    folder: Campaign, specs: list[RunSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    work = worker_that_is_late(0)

    async def hangs(spec: RunSpec, partial: Path) -> dict[str, Any]:
        record: dict[str, Any] = await work(spec, partial)
        return record | {"outcome": "hung"}

    monkeypatch.setattr(mpshell.ARENA, "execute", hangs)
    repetitions = run_campaign(folder, specs[:4], 1, Told(), most_hung=2)
    assert repetitions.refused == dict.fromkeys(
        (spec.run_id for spec in specs[2:4]), "not run: 2 runs of the same program hung"
    )
    assert [folder.record(spec.run_id) is None for spec in specs[:4]] == [False, False, True, True]


def test_the_time_for_repetitions_follows_from_the_runs(specs: list[RunSpec]) -> None:
    assert default_budget_s(specs[:1], 1) == BUDGET_FLOOR_S
    many = specs[:1] * 100
    assert default_budget_s(many, 2) == pytest.approx(BUDGET_SHARE * planned_s(many, 1) / 2)


def test_a_campaign_goes_on_where_it_was_stopped(
    folder: Campaign, specs: list[RunSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mpshell.ARENA, "execute", worker_that_is_late(0))
    run_campaign(folder, specs[:3], 2, Told())
    (folder.runs / ".partial-x" / "links").mkdir(parents=True)
    folder.sweep()
    assert sorted(run.name for run in folder.runs.iterdir()) == sorted(spec.run_id for spec in specs[:3])
    assert folder.pending(specs) == specs[3:]
    changed = specs[0].model_copy(update={"time_limit_s": 99.0})
    assert folder.pending([changed, specs[1]]) == [changed], "a run of other settings is no result of these"
    run_campaign(folder, [changed], 1, Told())
    assert folder.pending([changed]) == []


def test_a_failed_run_leaves_no_folder_and_ends_the_campaign(
    folder: Campaign, specs: list[RunSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(spec: RunSpec, partial: Path) -> None:
        (partial / "half").write_text("")
        raise UserError("it did not start")

    monkeypatch.setattr(mpshell.ARENA, "execute", fails)
    with pytest.raises(UserError, match="it did not start"):
        run_campaign(folder, specs, 2, Told())
    assert list(folder.runs.iterdir()) == []


def test_an_interrupt_ends_the_campaign_and_keeps_whole_runs(
    folder: Campaign, specs: list[RunSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = worker_that_is_late(0)

    async def work(spec: RunSpec, partial: Path) -> dict[str, Any]:
        if spec is specs[0]:
            return cast(dict[str, Any], await quick(spec, partial))
        threading.Timer(0.0, os.kill, (os.getpid(), signal.SIGINT)).start()
        await asyncio.Event().wait()
        return {}

    monkeypatch.setattr(mpshell.ARENA, "execute", work)
    with pytest.raises(KeyboardInterrupt):
        run_campaign(folder, specs, 1, Told())
    assert [run.name for run in folder.runs.iterdir()] == [specs[0].run_id]


def test_signals_are_handled_after_a_campaign_as_before(
    folder: Campaign, specs: list[RunSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mpshell.ARENA, "execute", worker_that_is_late(0))
    with pytest.raises(KeyboardInterrupt), interrupted_by_signals():
        run_campaign(folder, specs[:1], 1, Told())
        assert signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
        signal.raise_signal(signal.SIGTERM)


# --- with the real programs -------------------------------------------------------------------------------------------


def railyard(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return run_program([sys.executable, "-m", "railyard", *arguments], **options)


HALF_OF_SMOKE = ("run", "smoke", "--set", "player.duration_s=3", "--repeat-budget", "0", "--jobs", "3")


@pytest.fixture(scope="session")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, subprocess.CompletedProcess[str]]]:
    """Half of smoke.yaml, run once for all the tests that look at its results. None of them rests on fidelity, so that
    a void run is not repeated, and runs are side by side."""
    out = tmp_path_factory.mktemp("smoke")
    yield out, railyard(*HALF_OF_SMOKE, "--out", str(out), timeout=240)


def runs_of(out: Path) -> dict[str, dict[str, Any]]:
    rows = pq.read_table(out / "runs.parquet").to_pylist()
    return {row["label"]: row for row in rows}


@pytest.mark.privileged
@pytest.mark.slow
def test_every_scheme_of_the_smoke_experiment_ends_with_a_result(smoke: tuple[Path, Any]) -> None:
    out, done = smoke
    assert done.returncode == 0, done.stderr
    rows = runs_of(out)
    assert set(rows) == {"sp", "sp:lte", "cm", "mptcp", "vanilla-mp", "xlink"}
    assert {row["outcome"] for row in rows.values()} <= {"complete", "time_limit"}
    for name in ("median", "stalled", "emulator", "xlink", "report:"):
        assert name in done.stdout
    assert "<h1>smoke</h1>" in (out / "report.html").read_text()
    assert not list((out / "runs").glob(".partial-*"))


@pytest.mark.privileged
@pytest.mark.slow
def test_multipath_schemes_use_both_paths_and_single_path_schemes_one(smoke: tuple[Path, Any]) -> None:
    shares = {}
    for label, row in runs_of(smoke[0]).items():
        total = sum(path["down_bytes"] for path in row["paths"])
        shares[label] = {path["name"]: path["down_bytes"] / total for path in row["paths"]}
    assert shares["sp"]["lte"] < 0.01
    assert shares["sp:lte"]["wifi"] < 0.01
    for label in ("vanilla-mp", "xlink", "mptcp"):
        assert min(shares[label].values()) > 0.01, (label, shares[label])


@pytest.mark.privileged
@pytest.mark.slow
def test_the_run_record_says_where_it_comes_from(smoke: tuple[Path, Any]) -> None:
    for file in (smoke[0] / "runs").glob("*/run.json"):
        record = json.loads(file.read_text())
        assert record["kernel"].startswith("Linux")
        assert record["sysctls"]["net.ipv4.tcp_rmem"].endswith(str(record["config"]["buffers"]["receive_bytes"]))
        assert record["exit"]["server"] == {"code": 0, "signal": None}
        assert len(record["config"]["paths"][0]["down_sha256"]) == 64
        assert record["fidelity"]["deliveries"] > 0
        if record["config"]["scheme"] == "mptcp":
            assert record["mptcp"]["server"]["MPJoinAckRx"] >= 1
            assert record["mptcp"]["player"]["MPJoinSynAckRx"] >= 1


@pytest.mark.privileged
@pytest.mark.slow
def test_no_run_on_the_wall_clock_is_earlier_than_the_oracle(smoke: tuple[Path, Any]) -> None:
    rows = pq.read_table(smoke[0] / "chunks.parquet").to_pylist()
    assert {row["label"] for row in rows} == {"sp", "sp:lte", "cm", "mptcp", "vanilla-mp", "xlink"}
    for row in rows:
        if row["completed"]:
            assert 0.03 < row["oracle_s"] <= row["rct_s"] + TOLERANCE_S, row


@pytest.mark.privileged
@pytest.mark.slow
def test_a_second_start_finds_everything_done(smoke: tuple[Path, Any]) -> None:
    """Except for void runs, which it repeats."""
    out, _ = smoke
    counting = [
        file for file in (out / "runs").glob("*/run.json") if not json.loads(file.read_text())["fidelity"]["void"]
    ]
    before = {file: file.stat().st_mtime_ns for file in counting}
    again = good(railyard(*HALF_OF_SMOKE, "--out", str(out), timeout=240))
    assert not before or f"{len(before)} of 6 runs " in again.stdout
    assert {file: file.stat().st_mtime_ns for file in before} == before


def processes_in(session_words: str) -> list[str]:
    """Command lines of living processes that mention the words there or in the name of their current directory."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            where = str((entry.parent / "cwd").readlink())
        except OSError:
            continue
        if (session_words in text or session_words in where) and str(os.getpid()) != entry.parent.name:
            found.append(text)
    return found


def status_of(name: str, folder: Path) -> dict[str, str]:
    """The lines of /proc/PID/status of the program that works in the folder."""
    for entry in Path("/proc").glob("[0-9]*/comm"):
        with suppress(OSError):
            if entry.read_text().strip() == name and (entry.parent / "cwd").readlink() == folder:
                lines = (entry.parent / "status").read_text().splitlines()
                return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}
    return {}


@pytest.mark.privileged
@pytest.mark.slow
def test_player_and_server_are_not_root(tmp_path: Path) -> None:
    out = tmp_path / "confined"
    command = [sys.executable, "-m", "railyard", "run", "smoke", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as running:
        try:
            wait_until(lambda: list(out.glob("runs/.partial-*/.player/player.jsonl")), "the first player to start", 60)
            run_dir = next(out.glob("runs/.partial-*/.player")).parent
            found = [status_of(name, run_dir / f".{name[6:]}") for name in ("xlink-player", "xlink-server")]
        finally:
            running.send_signal(signal.SIGTERM)
            running.communicate(timeout=60)
    for status in found:
        assert set(status["Uid"].split()) == {str(confine_user().pw_uid)}
        assert confine_user().pw_uid != 0
        assert {int(status[name], 16) for name in ("CapPrm", "CapEff", "CapInh", "CapBnd", "CapAmb")} == {0}
        assert status["NoNewPrivs"] == "1"
    assert not list(out.glob("runs/.partial-*"))


def confine_user() -> pwd.struct_passwd:
    who = confine.user()
    assert who is not None
    return who


@pytest.mark.privileged
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_campaign_that_is_stopped_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    out = tmp_path / "stopped"
    with subprocess.Popen(
        [sys.executable, "-m", "railyard", "run", "smoke", "--out", str(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        wait_until(lambda: list(out.glob("runs/.partial-*/.player/player.jsonl")), "the first player to start", 60)
        running.send_signal(number)
        _, words = running.communicate(timeout=60)
    if number != signal.SIGKILL:
        assert (running.returncode, words.count("\n")) == (130, 1)
        assert "Traceback" not in words
        assert not list(out.glob("runs/.partial-*"))
    wait_until(lambda: not processes_in(str(out)), "all children to be gone", 30)


@pytest.mark.privileged
@pytest.mark.slow
def test_a_signal_that_ends_mpshell_is_named(tmp_path: Path) -> None:
    out = tmp_path / "killed"
    command = [sys.executable, "-m", "railyard", "run", "smoke", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as running:
        wait_until(lambda: list(out.glob("runs/.partial-*/.player/player.jsonl")), "the first player to start", 60)
        mpshell = subprocess.check_output(["pgrep", "--oldest", "--full", f"mpshell --watch .*{out}"], text=True)
        os.kill(int(mpshell), signal.SIGKILL)
        _, words = running.communicate(timeout=60)
    assert (running.returncode, words.count("\n")) == (2, 1)
    assert "could not be done: SIGKILL ended mpshell: it said nothing" in words


def test_experiment_fields_are_documented() -> None:
    """docs/reference/experiments.md names every field that a YAML file may have."""
    text = (EXPERIMENTS_DIR.parent / "docs" / "reference" / "experiments.md").read_text()
    for name in Experiment.model_fields:
        assert f"`{name}`" in text, name
