"""quic-interop-runner with our endpoint image and our cases of multipath; and the checks of the cases on recordings.

QUIC_INTEROP_RUNNER names a checkout of the runner, with its requirements in its .venv or in the environment of
QUIC_INTEROP_PYTHON.
"""

import json
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from conftest import good, run_program
from quic_programs import Child
from railyard.base.paths import ROOT, program

RUNNER = Path(os.environ.get("QUIC_INTEROP_RUNNER") or "no-runner").resolve()
PYTHON = Path(os.environ.get("QUIC_INTEROP_PYTHON") or RUNNER / ".venv" / "bin" / "python")
SIMULATOR = "martenseemann/quic-network-simulator"
CASES = ("multipath", "multipathabandon", "multipathstandby")
CLIENT = ("193.167.0.100", "fd00:cafe:cafe:0::100")
SERVER = ("193.167.100.100", "fd00:cafe:cafe:100::100")
FILE_BYTES = 4_000_000  # 3.2 s
RATE = "10mbit"
# Each case as docker/interop/run_endpoint.sh runs it, but sooner; and with what the decryption has to cope with.
RECORDINGS = {
    "transfer": ("--path", CLIENT[0]),
    "multipath": ("--path", CLIENT[0], "--path", CLIENT[1], "--ciphers", "chacha20", "--packets-per-key", "1000"),
    "multipathabandon": ("--path", CLIENT[0], "--path", CLIENT[1], "--path-events", "0.5:remove:0"),
    "multipathstandby": ("--path", CLIENT[1], "--path", CLIENT[0], "--path-events", "0:standby:1,1.5:remove:0"),
}


def missing_for_checks() -> str | None:
    if not (RUNNER / "testcases_quic.py").is_file():
        return "QUIC_INTEROP_RUNNER names no checkout of quic-interop-runner: docs/reference/interop.md"
    if not PYTHON.exists():
        return f"{PYTHON} is not there: the runner's requirements have to be in an environment"
    programs = [name for name in ("tshark", "editcap", "dumpcap") if shutil.which(name) is None]
    return f"{', '.join(programs)} of Wireshark not installed" if programs else None


def missing_for_runner() -> str | None:
    for words, name in (
        (("docker", "compose", "version"), "Compose, as a plugin of the docker client,"),
        (("docker", "image", "inspect", "railyard/interop"), "the image of `make docker IMAGE=interop`"),
        (("docker", "image", "inspect", SIMULATOR), f"the image {SIMULATOR}"),
    ):
        if subprocess.run(words, capture_output=True, check=False).returncode != 0:
            return f"{name} is not there"
    return None


needs_runner = pytest.mark.skipif(missing_for_checks() is not None, reason=missing_for_checks() or "")


# ---- the checks, on recordings ----


@contextmanager
def namespace() -> Iterator[list[str]]:
    """A network namespace with the addresses of the runner's networks on its loopback device, which is slow."""
    with Child(["unshare", "--net", "sh", "-c", "echo made; exec sleep 600"]) as holder:
        inside = ["nsenter", f"--net=/proc/{holder.process.pid}/ns/net"]
        commands = ["ip link set lo mtu 1500 gso_max_segs 1 up"]
        commands += [f"ip address add {address} dev lo" for address in (*CLIENT, *SERVER)]
        commands += [f"tc qdisc add dev lo root tbf rate {RATE} burst 10k limit 100k"]
        for command in commands:
            subprocess.run([*inside, *command.split()], check=True)
        yield inside


def record(folder: Path, options: tuple[str, ...]) -> None:
    """A captured transfer of one file, which runner_check.py must accept."""
    for name in ("sim", "www"):
        (folder / name).mkdir(parents=True)
    (folder / "www" / "file").write_bytes(random.Random(1).randbytes(FILE_BYTES))
    capture = folder / "sim" / "trace_node_left.pcap"
    scheme = ["--scheme", "vanilla-mp" if options.count("--path") > 1 else "sp"]
    with namespace() as inside:
        # dumpcap reports its start on standard error.
        shell = f"exec dumpcap -q -i lo -f 'udp port 443' -w {capture} 2>&1"
        listen = [word for address in (SERVER[0], f"[{SERVER[1]}]") for word in ("--quic", f"{address}:443")]
        server: list[str | Path] = [
            *inside,
            program("xlink-server"),
            *listen,
            *scheme,
            "--dialect",
            "ietf",
            "--root",
            folder / "www",
        ]
        with Child([*inside, "sh", "-c", shell]) as dumpcap:
            assert "Capturing on" in dumpcap.first_line
            with Child(server):
                connect = [word for word in listen if word != "--quic"]
                client: list[str | Path] = [
                    *inside,
                    program("xlink-get"),
                    "--insecure",
                    "--alpn",
                    "hq-interop",
                    *scheme,
                ]
                client += [word for address in connect for word in ("--connect", address)]
                client += ["--keylog", folder / "keys.log", "--dir", folder / "downloads", *options]
                good(run_program([*client, "https://server46:443/file"], timeout=60))
    shutil.copy(capture, folder / "sim" / "trace_node_right.pcap")


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folders = {name: tmp_path_factory.mktemp(name) for name in RECORDINGS}
    for name, folder in folders.items():
        record(folder, RECORDINGS[name])
    return folders


@needs_runner
@pytest.mark.privileged
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("case", "recording", "verdict", "problem"),
    [
        ("multipath", "multipath", "SUCCEEDED", ""),
        ("multipathabandon", "multipathabandon", "SUCCEEDED", ""),
        ("multipathstandby", "multipathstandby", "SUCCEEDED", ""),
        ("multipath", "transfer", "FAILED", "The client did not send initial_max_path_id"),
        ("multipathabandon", "multipath", "FAILED", "The client sent no PATH_ABANDON of path 0."),
        ("multipathstandby", "multipathabandon", "FAILED", "The client sent no PATH_STATUS_BACKUP of path 1."),
    ],
)
def test_a_case_accepts_what_it_is_about_and_nothing_less(
    recordings: dict[str, Path], case: str, recording: str, verdict: str, problem: str
) -> None:
    script = ROOT / "tests" / "interop" / "runner_check.py"
    command: list[str | Path] = [PYTHON, script, RUNNER, case, recordings[recording]]
    done = run_program(command, timeout=200)
    assert done.stdout.strip() == verdict, done.stderr
    assert problem in done.stderr


# ---- the runner ----


def compose_file(folder: Path) -> Path:
    """The runner's, without what older engines and users with few rights cannot do."""
    services = yaml.safe_load((RUNNER / "docker-compose.yml").read_text())
    for service in services["services"].values():
        service.pop("ulimits", None)  # of locked memory: it is above the limit of some machines
        for network in service["networks"].values():
            network.pop("interface_name", None)  # engines before 28.1 name them in the order of the networks
    (folder / "docker-compose.yml").write_text(yaml.safe_dump(services))
    return folder / "docker-compose.yml"


@needs_runner
@pytest.mark.docker
@pytest.mark.timeout(900)
def test_the_runner_passes_our_image_in_its_cases_and_in_ours(tmp_path: Path) -> None:
    reason = missing_for_runner()
    if reason is not None:
        pytest.skip(reason)
    names = ("handshake", "transfer", *CASES)
    environment = {
        **os.environ,
        "QUIC_INTEROP_RUNNER": str(RUNNER),
        "COMPOSE_FILE": str(compose_file(tmp_path)),
        "COMPOSE_PROJECT_NAME": "railyard-interop",
    }
    logs, result = tmp_path / "logs", tmp_path / "result.json"
    script = ROOT / "docker" / "interop" / "run_cases.py"
    command: list[str | Path] = [PYTHON, script, "-s", "xlink", "-c", "xlink", "-t", ",".join(names)]
    command += ["-l", logs, "-j", result]
    try:
        done = run_program(command, env=environment, timeout=800)
    finally:
        subprocess.run(["docker", "compose", "down"], env=environment, cwd=RUNNER, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    [results] = json.loads(result.read_text())["results"]
    assert {row["name"]: row["result"] for row in results} == dict.fromkeys(names, "succeeded")
