"""The docker arena with a real engine: `make test PART=docker` starts everything that is needed and runs these."""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from conftest import good, run_program
from railyard.base.paths import EXPERIMENTS_DIR, ROOT
from railyard.experiment.model import load_experiment
from railyard.run import containers
from railyard.stats.statistics import ks_distance
from waiting import wait_until

pytestmark = pytest.mark.docker

SCHEMES = ("sp", "cm", "mptcp", "vanilla-mp", "xlink")
SMOKE_IN_SIM = ("run", "smoke", "--arena", "sim")
# As in docs/howto/docker.md.
MPSHELL_RIGHTS = ("--cap-add=NET_ADMIN", "--cap-add=SYS_ADMIN", "--cap-add=SYS_NICE", "--device=/dev/net/tun")
# How far two samples of some dozens of chunks are apart by chance: docs/results/agreement.md compares two mpshell
# campaigns of the same runs. The limits are wider than that, and narrow enough for a missing delay, a second queue, or
# a path that is not used.
MEDIAN_LIMIT = 1.5
KS_LIMIT = 0.4


def docker(*words: str, timeout: float = 60) -> str:
    done = good(run_program(["docker", *words], timeout=timeout))
    return done.stdout.strip()


def ours() -> list[str]:
    """The names of all containers, running or not, that a run started."""
    return docker("ps", "--all", "--filter", f"label={containers.OWNER_LABEL}", "--format", "{{.Names}}").split()


def railyard(*arguments: str, timeout: float = 900) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "railyard", *arguments]
    return run_program(command, timeout=timeout)


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, subprocess.CompletedProcess[str]]]:
    """smoke.yaml in containers, run once for all the tests that look at its results."""
    out = tmp_path_factory.mktemp("smoke")
    yield out, railyard("run", "smoke", "--arena", "docker", "--out", str(out))


@pytest.mark.timeout(960)
def test_every_scheme_ends_with_a_result(smoke: tuple[Path, Any]) -> None:
    out, done = smoke
    assert done.returncode == 0, done.stderr
    rows = {row["label"]: row for row in pq.read_table(out / "runs.parquet").to_pylist()}
    assert set(rows) == {"sp:lte", *SCHEMES}
    assert {row["outcome"] for row in rows.values()} <= {"complete", "time_limit"}
    for label in ("vanilla-mp", "xlink", "mptcp"):
        assert all(path["down_bytes"] > 10_000 for path in rows[label]["paths"]), (label, "uses both paths")
    assert (out / "report.html").is_file()
    assert ours() == []


@pytest.mark.timeout(960)
def test_the_record_names_engine_images_and_settings(smoke: tuple[Path, Any]) -> None:
    for file in (smoke[0] / "runs").glob("*/run.json"):
        record = json.loads(file.read_text())
        assert record["containers"]["images"] == containers.image_ids()
        assert record["containers"]["base"]
        assert record["config"]["programs_sha256"] == containers.image_ids()
        assert record["versions"]["gnutls"].startswith("3.")
        assert record["exit"]["server"] == {"code": 0, "signal": None}
        assert record["exit"]["mpshell"] == {"code": 0, "signal": None}
        assert record["fidelity"]["deliveries"] > 0
        assert record["fidelity"]["endpoints_fifo"] is False, "the server is an ordinary process there"
        assert record["sysctls"]["net.ipv4.tcp_rmem"].endswith(str(record["config"]["buffers"]["receive_bytes"]))
        folder = file.parent
        assert {"player.jsonl", "server.jsonl", "mpshell.json"} <= {path.name for path in folder.iterdir()}
        assert not [path for path in folder.iterdir() if path.name.startswith(".")]
        if record["config"]["scheme"] == "mptcp":
            assert record["mptcp"]["server"]["MPJoinAckRx"] >= 1
            assert record["mptcp"]["player"]["MPJoinSynAckRx"] >= 1
        else:
            assert len(list((folder / "qlog").iterdir())) == 2


@contextmanager
def campaign(out: Path) -> Iterator[subprocess.Popen[str]]:
    """A campaign whose first player is running."""
    command = [sys.executable, "-m", "railyard", "run", "smoke", "--arena", "docker", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as running:
        try:
            wait_until(lambda: list(out.glob("runs/.partial-*/player.jsonl")), "the first player to start", 60)
            yield running
        finally:
            if running.poll() is None:
                running.terminate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_campaign_that_is_stopped_leaves_no_container(tmp_path: Path, number: signal.Signals) -> None:
    out, networks = tmp_path / "stopped", docker("network", "ls", "--quiet")
    with campaign(out) as running:
        names = ours()
        assert len(names) == 3
        for facts in json.loads(docker("inspect", *names)):
            host = facts["HostConfig"]
            assert not host["Privileged"]
            assert host["ReadonlyRootfs"]
            assert not host["PortBindings"]
            assert host["CapDrop"] == ["ALL"]
            assert {name.removeprefix("CAP_") for name in host["CapAdd"] or []} <= {"NET_ADMIN", "SYS_NICE"}
            assert "no-new-privileges" in host["SecurityOpt"]
            if facts["Name"].endswith("-server"):
                assert not facts["Config"]["User"].startswith("0")
                assert not host["CapAdd"]
        running.send_signal(number)
        _, words = running.communicate(timeout=60)
    if number != signal.SIGKILL:
        assert (running.returncode, words.count("\n")) == (130, 1), words
        assert not list(out.glob("runs/.partial-*"))
    wait_until(lambda: not ours(), "all containers to be gone", 30)
    assert docker("network", "ls", "--quiet") == networks
    assert not list(out.glob("runs/*/run.json"))


def test_the_player_has_no_capability_and_the_server_neither(tmp_path: Path) -> None:
    with campaign(tmp_path / "looked-at"):
        client, server = (next(name for name in ours() if name.endswith(part)) for part in ("-client", "-server"))
        script = "for p in /proc/[0-9]*; do grep -H -e ^Name -e ^CapPrm -e ^Uid $p/status; done"
        lines = docker("exec", client, "sh", "-c", script).splitlines()
        player = next(line.split(":")[0] for line in lines if line.endswith("xlink-player"))
        facts = {line.split(":")[1]: line.split()[1] for line in lines if line.startswith(f"{player}:")}
        assert int(facts["CapPrm"], 16) == 0
        status = docker("exec", server, "cat", "/proc/1/status")
        assert "Name:\txlink-server" in status
        assert "CapPrm:\t0000000000000000" in status
        assert f"Uid:\t{os.geteuid() or containers.SERVER_UID}\t" in status


def test_the_caller_owns_what_root_in_the_containers_wrote(tmp_path: Path) -> None:
    (tmp_path / "captures").mkdir(mode=0o777)
    (tmp_path / "player.keys").touch(0o600)
    (tmp_path / "link").symlink_to(tmp_path.parent)
    before = tmp_path.parent.stat()
    os.chown(tmp_path, 12345, 54321)
    tmp_path.chmod(0o777)
    containers.take_over(tmp_path, "railyard-test-owner", containers.owner_of(os.getpid()))
    files = [tmp_path, *tmp_path.iterdir()]
    assert {(facts.st_uid, facts.st_gid) for facts in map(Path.lstat, files)} == {(12345, 54321)}
    assert (tmp_path / "captures").stat().st_mode & 0o022 == 0
    assert (tmp_path / "player.keys").stat().st_mode & 0o777 == 0o600
    after = tmp_path.parent.stat()
    assert (after.st_uid, after.st_mode) == (before.st_uid, before.st_mode), "no link is followed"


def test_no_program_of_this_machine_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAILYARD_BIN", str(tmp_path))
    few = ("--schemes", "xlink", "--repeat-budget", "0")
    good(railyard("run", "smoke", "--arena", "docker", *few, "--out", str(tmp_path / "out")))
    assert len(list((tmp_path / "out" / "runs").iterdir())) == 1


def test_stacks_play_to_the_end_beside_server_and_player(tmp_path: Path) -> None:
    """The control, a program outside of its stack's folder (what `make peers` has built), and a wrong program."""
    built = {
        "quic-go": "relay",
        "noq": "release/noq-peer",
        "tquic": "release/tquic-relay",
        "quiche": "release/quiche-relay",
    }
    names = [name for name, file in built.items() if (ROOT / "build" / "peers" / name / file).is_file()]
    (tmp_path / "mine").mkdir()
    relay = tmp_path / "mine" / "relay.sh"
    relay.write_text('exec xlink-relay "$@"\n')
    peer = {
        "name": "mine",
        "about": "a script in the folder",
        "licence": "MIT",
        "client": ["sh", "./relay.sh", "client"],
    }
    (tmp_path / "mine" / "peer.yaml").write_text(json.dumps(peer | {"server": ["sh", "./relay.sh", "server"]}))
    (tmp_path / "wrong").mkdir()
    (tmp_path / "wrong" / "peer.yaml").write_text(
        json.dumps(peer | {"name": "wrong", "server": ["sh", "-c", "exit 3"]})
    )
    (tmp_path / "wrong" / "relay.sh").touch()
    stacks = ["libxlink", *names, "./mine/peer.yaml", "./wrong/peer.yaml"]
    experiment = {
        "name": "one",
        "arena": "docker",
        "pairs": ["subway-1"],
        "schemes": [{"stack": name} for name in stacks],
    }
    player = {"bitrate_bps": 2_000_000, "duration_s": 3, "chunk_bytes": 262144}
    (tmp_path / "one.yaml").write_text(json.dumps(experiment | {"player": player, "time_limit_s": 20}))
    done = good(railyard("run", str(tmp_path / "one.yaml"), "--out", str(tmp_path / "out")))
    runs = {folder.name.split("--")[1]: folder for folder in (tmp_path / "out" / "runs").iterdir()}
    assert set(runs) == {"libxlink", *names, "mine"}, done.stderr
    for name, folder in runs.items():
        assert json.loads((folder / "run.json").read_text())["outcome"] == "complete", name
        assert '"ready"' in (folder / "relay.jsonl").read_text()
        assert '"ready"' in (folder / "relay-server.jsonl").read_text()
        assert not list(folder.rglob("*.pem")), "the key of the run stays behind"
    [absent] = json.loads((tmp_path / "out" / "campaign.json").read_text())["not_run"]
    assert absent["label"] == "wrong"
    assert absent["reason"].endswith("sh ended before it was ready: it said nothing")
    assert ours() == []


def test_what_a_killed_campaign_left_goes_at_the_next_start() -> None:
    with subprocess.Popen(["true"]) as gone:
        dead = containers.owner_of(gone.pid)
    common = ["run", "--detach", "--rm", "--network", "none", "--name"]
    server = [containers.SERVER_IMAGE, "xlink-server", "--quic", "0.0.0.0:4433"]
    mine = containers.owner_of(os.getpid())
    docker(*common, "railyard-test-dead", "--label", f"{containers.OWNER_LABEL}={dead}", *server)
    docker(*common, "railyard-test-alive", "--label", f"{containers.OWNER_LABEL}={mine}", *server)
    try:
        assert containers.sweep() == ["railyard-test-dead"]
        wait_until(lambda: ours() == ["railyard-test-alive"], "the container to be gone", 10)
        assert containers.sweep() == []
    finally:
        containers.remove(["railyard-test-dead", "railyard-test-alive"])


def health(name: str) -> str:
    return docker("inspect", "--format", "{{.State.Health.Status}}", name)


def test_the_servers_health_check_tells_a_listening_server_from_another() -> None:
    common = [
        "run",
        "--detach",
        "--rm",
        "--network",
        "none",
        "--health-interval",
        "1s",
        "--health-retries",
        "1",
        "--name",
    ]
    names = ["railyard-test-well", "railyard-test-ill"]
    docker(*common, names[0], containers.SERVER_IMAGE)
    docker(*common, names[1], containers.SERVER_IMAGE, "sleep", "60")
    try:
        wait_until(lambda: health(names[0]) == "healthy", "the server to be healthy", 30)
        wait_until(lambda: health(names[1]) == "unhealthy", "the other to be unhealthy", 30)
    finally:
        containers.remove(names)


def compose_program() -> list[str] | None:
    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0:
        return ["docker", "compose"]
    return ["docker-compose"] if shutil.which("docker-compose") else None


def run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return run_program(command, env=environment, timeout=360)


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("file", "players"), [("compose.run.yaml", ("player",)), ("compose.campaign.yaml", SCHEMES)])
def test_the_compose_files_run(file: str, players: tuple[str, ...], tmp_path: Path) -> None:
    program = compose_program()
    if program is None:
        pytest.skip("neither `docker compose` nor docker-compose is there; install the Debian package docker-compose")
    for side in ("client", "server"):
        (tmp_path / side).mkdir()
    os.chown(tmp_path / "server", containers.SERVER_UID, containers.SERVER_UID)
    environment = os.environ | {"RESULTS": str(tmp_path), "VIDEO_BYTES": "500000"}
    if "cubic" not in Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split():
        environment["MPTCP_CC"] = "newreno"
    command = [*program, "--project-name", f"railyard-test-{os.getpid()}", "--file", str(ROOT / "docker" / file)]
    last = "client" if players == ("player",) else "client-xlink"
    try:
        done = run([*command, "up", "--detach"], environment)  # comes back when the last client is started
        assert done.returncode == 0, done.stdout + done.stderr
        client = run([*command, "ps", "--quiet", last], environment).stdout.strip()
        assert docker("wait", client) == "0", docker("logs", client)
    finally:
        run([*command, "down", "--volumes"], environment)
    for name in players:
        summary = json.loads((tmp_path / "client" / f"{name}.jsonl").read_text().splitlines()[-1])
        assert (summary["event"], summary["outcome"], summary["bytes"]) == ("summary", "complete", 500000), name
        emulator = json.loads((tmp_path / "client" / name / "mpshell.json").read_text())
        assert emulator["exit"]["code"] == 0


def completion_times(out: Path) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {}
    for row in pq.read_table(out / "chunks.parquet").to_pylist():
        if row["completed"]:
            times.setdefault(row["label"], []).append(row["rct_s"])
    return times


def test_the_image_of_the_command_plays_as_nobody_what_the_checkout_plays(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    rights = ["--network", "none", "--cap-drop", "ALL", "--user", "12345:12345"]
    docker("run", "--rm", *rights, "--volume", f"{shared}:/work", "railyard/tool", *SMOKE_IN_SIM, "--out", "image")
    assert railyard(*SMOKE_IN_SIM, "--out", str(tmp_path / "checkout")).returncode == 0

    def plays(folder: Path) -> dict[str, bytes]:
        return {file.parent.name: file.read_bytes() for file in folder.glob("runs/*/player.jsonl")}

    assert plays(shared / "image") == plays(tmp_path / "checkout") != {}


def test_the_image_of_the_command_plays_in_mpshell(tmp_path: Path) -> None:
    rights = ["--network", "none", *MPSHELL_RIGHTS, "--security-opt", "systempaths=unconfined"]
    run = ("railyard/tool", "run", "smoke", "--out", "image")
    docker("run", "--rm", *rights, "--volume", f"{tmp_path}:/work", *run, timeout=300)
    rows = pq.read_table(tmp_path / "image" / "runs.parquet").to_pylist()
    assert {row["label"] for row in rows} == {"sp:lte", *SCHEMES}
    assert {row["outcome"] for row in rows} <= {"complete", "time_limit"}


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_containers_and_mpshell_agree_within_noise(tmp_path: Path) -> None:
    times = {}
    for arena in ("docker", "mpshell"):
        good(railyard("run", "containers", "--arena", arena, "--out", str(tmp_path / arena)))
        times[arena] = completion_times(tmp_path / arena)
    labels = {entry.base_label() for entry in load_experiment(EXPERIMENTS_DIR / "containers.yaml")[0].schemes}
    assert set(times["docker"]) == set(times["mpshell"]) == labels
    for label in labels:
        inside, alone = times["docker"][label], times["mpshell"][label]
        ratio = statistics.median(inside) / statistics.median(alone)
        assert 1 / MEDIAN_LIMIT <= ratio <= MEDIAN_LIMIT, (label, ratio)
        assert ks_distance(inside, alone) <= KS_LIMIT, label
