"""The docker arena without an engine: command lines, compose files, Dockerfile."""

import csv
import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import good, run_program
from railyard.base import provenance
from railyard.base.errors import UserError
from railyard.base.paths import ROOT
from railyard.experiment.model import load_experiment
from railyard.experiment.stacks import resolve_stack
from railyard.run import containers
from railyard.run.resolve import resolve
from railyard.run.runspec import RunSpec

DOCKER = ROOT / "docker"
YAML = """\
name: unit
arena: docker
pairs: [subway-1]
schemes: [vanilla-mp, mptcp]
player: {duration_s: 4, bitrate_bps: 1000000}
time_limit_s: 10
"""
REAL_IMAGE_IDS = containers.image_ids
IMAGES = {"railyard/client": "sha256:aa", "railyard/server": "sha256:bb"}


@pytest.fixture(scope="module")
def resolved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, RunSpec], dict[str, str], Path]]:
    """The runs of the experiment, what the engine says that its images are, and the experiment's file."""
    file = tmp_path_factory.mktemp("containers") / "unit.yaml"
    file.write_text(YAML)
    images = dict(IMAGES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(containers, "image_ids", lambda: dict(images))
        yield by_label(file), images, file


def by_label(file: Path) -> dict[str, RunSpec]:
    return {spec.label: spec for spec in resolve(*load_experiment(file))}


@pytest.fixture
def specs(resolved: tuple[dict[str, RunSpec], dict[str, str], Path]) -> dict[str, RunSpec]:
    return resolved[0]


def options(command: list[str], name: str) -> list[str]:
    return [command[i + 1] for i, word in enumerate(command) if word == name]


def all_commands(spec: RunSpec, run_dir: Path) -> dict[str, list[str]]:
    return {
        "server": containers.server_command(spec, run_dir, "s", "me"),
        "outside": containers.outside_command(run_dir, "o", "me", "s"),
        "client": containers.client_command(spec, run_dir, "c", "me"),
    }


def test_no_container_has_more_than_it_needs(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    commands = all_commands(specs["vanilla-mp"], tmp_path)
    for part, command in commands.items():
        assert "--privileged" not in command
        assert not {"-p", "--publish", "--publish-all", "--pid", "--ipc", "--volume", "-v"} & set(command), part
        assert options(command, "--cap-drop") == ["ALL"]
        assert options(command, "--security-opt") == ["no-new-privileges"]
        assert "--read-only" in command
        assert options(command, "--memory")
        assert options(command, "--pids-limit")
    assert options(commands["server"], "--cap-add") == []
    assert options(commands["server"], "--device") == []
    assert options(commands["outside"], "--cap-add") == ["NET_ADMIN"]
    assert options(commands["client"], "--cap-add") == ["NET_ADMIN", "SYS_NICE"]
    assert options(commands["client"], "--device") == ["/dev/net/tun"]
    networks = {part: options(command, "--network") for part, command in commands.items()}
    assert networks == {"server": ["none"], "outside": ["container:s"], "client": ["none"]}


def test_the_server_is_root_only_where_the_kernel_restricts_its_congestion_controller(
    specs: dict[str, RunSpec], tmp_path: Path
) -> None:
    allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split()[0]
    free = specs["mptcp"].model_copy(update={"congestion": allowed})
    bound = specs["mptcp"].model_copy(update={"congestion": "no-such-controller"})
    quic = specs["vanilla-mp"].model_copy(update={"congestion": "no-such-controller"})
    relay = resolve_stack("tcp", {"cc": "cubic"}, tmp_path).model_copy(update={"options": {"cc": "no-such-controller"}})
    behind = free.model_copy(update={"stack": relay})
    own = free.model_copy(update={"stack": relay.model_copy(update={"kernel_cc": False})})
    for spec, root in ((free, False), (quic, False), (bound, True), (behind, True), (own, False)):
        command = containers.server_command(spec, tmp_path, "s", "me")
        assert options(command, "--cap-add") == (["NET_ADMIN"] if root else [])
        assert options(command, "--user")[0].startswith("0:") == root


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_the_files_of_a_run_go_to_the_owner_of_its_folder_as_the_container_sees_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rootless engine shows the caller as root, and the caller's own number there is somebody else."""
    monkeypatch.setattr(containers, "RESULTS", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    (tmp_path / "link").symlink_to("/etc")
    (tmp_path / "server").mkdir(mode=0o777)
    os.chown(tmp_path / "server", 12345, 12345)
    *_, script = containers.ownership_command(tmp_path, "o", "me")
    subprocess.run(["sh", "-c", script], check=True)
    assert {path.lstat().st_uid for path in (tmp_path, *tmp_path.iterdir())} == {0}
    assert (tmp_path / "server").stat().st_mode & 0o022 == 0


def test_traces_are_mounted_read_only_and_found_inside(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    spec = specs["vanilla-mp"]
    command = containers.client_command(spec, tmp_path, "c", "me")
    mounts = [next(csv.reader([value])) for value in options(command, "--mount")]
    traces = {fields[1]: fields for fields in mounts if fields[2].startswith("target=/traces/")}
    assert len(traces) == 4
    assert all("readonly" in fields for fields in traces.values())
    assert traces[f"source={spec.paths[0].up}"][2] == "target=/traces/wifi.up"
    assert any(
        value.startswith("wifi:up=/traces/wifi.up,down=/traces/wifi.down,") for value in options(command, "--path")
    )
    inside = command[command.index("railyard/client") :]
    assert str(tmp_path) not in " ".join(inside), "nothing inside depends on where the host keeps it"
    assert inside[:4] == ["railyard/client", "mpshell", "--outside", "/join/outside"]


def test_a_folder_may_have_commas_in_its_name(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    folder = tmp_path / "a,b:c"
    mounts = options(containers.server_command(specs["mptcp"], folder, "s", "me"), "--mount")
    assert next(csv.reader([mounts[0]])) == ["type=bind", f"source={folder}/.server", "target=/results"]


def test_both_namespaces_get_the_settings_that_mpshell_cannot_make(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    commands = all_commands(specs["mptcp"], tmp_path)
    assert options(commands["server"], "--sysctl") == options(commands["client"], "--sysctl")
    settings = dict(value.split("=", 1) for value in options(commands["client"], "--sysctl"))
    assert settings["net.mptcp.enabled"] == "1"
    assert settings["net.ipv4.conf.all.rp_filter"] == "0"
    if Path("/proc/sys/net/ipv6").exists():
        assert settings["net.ipv6.conf.default.router_solicitations"] == "0"
    assert options(commands["outside"], "--sysctl") == [], "it shares the server's namespace"


def test_other_images_are_other_runs(resolved: tuple[dict[str, RunSpec], dict[str, str], Path]) -> None:
    specs, images, file = resolved
    try:
        images["railyard/server"] = "sha256:cc"
        assert by_label(file)["mptcp"].identity() != specs["mptcp"].identity()
    finally:
        images.update(IMAGES)
    same = specs["mptcp"].model_copy(update={"programs_sha256": dict(images)})
    assert same.identity() == specs["mptcp"].identity()


def test_containers_of_a_living_process_are_told_from_those_of_a_dead_one() -> None:
    mine = containers.owner_of(os.getpid())
    boot, pid, start = mine.split(":")
    assert containers.is_alive(mine)
    assert not containers.is_alive(f"{boot}:{pid}:{int(start) - 1}"), "another process had the same number"
    assert not containers.is_alive(f"another-boot:{pid}:{start}")
    done = subprocess.Popen(["true"])
    owner = containers.owner_of(done.pid)
    done.wait()
    assert not containers.is_alive(owner)
    assert not containers.is_alive("nonsense")


def test_a_missing_engine_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"'docker' is not there; install the Debian package docker\.io"):
        containers.check_engine()
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\necho 'Cannot connect to the Docker daemon' >&2\nexit 1\n")
    docker.chmod(0o755)
    with pytest.raises(UserError, match=r"no Docker engine answers: Cannot connect.*DOCKER_HOST"):
        containers.check_engine()
    docker.write_text("#!/bin/sh\necho 'permission denied while trying to connect: dial unix' >&2\nexit 1\n")
    with pytest.raises(UserError, match=r"this user may not use the Docker engine; run as root, or as a member"):
        containers.check_engine()
    docker.write_text('#!/bin/sh\n[ "$1" = version ] && echo 20.10\n[ "$1" = version ]\n')
    with pytest.raises(UserError, match=r"image railyard/client is not there; build it with `make docker`"):
        REAL_IMAGE_IDS()


@pytest.mark.skipif(shutil.which("docker") is None, reason="needs the program docker")
def test_an_engine_that_is_not_there_is_told_and_not_the_client_s_template(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message does not depend on the client. That of Debian 12 reports a nil pointer in its template."""
    clients = [file for folder in os.environ["PATH"].split(":") if (file := Path(folder) / "docker").is_file()]
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    for client in clients:
        monkeypatch.setenv("PATH", str(client.parent))
        with pytest.raises(UserError, match=r"^no Docker engine answers: Cannot connect to the Docker daemon"):
            containers.check_engine()


COMPOSE = ("compose.run.yaml", "compose.campaign.yaml")


def test_the_revision_of_a_run_is_that_of_the_images_which_the_build_gave_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A client that keeps the label of a build, and tells it of every image but `railyard/server` in `other`."""
    docker = tmp_path / "docker"
    docker.write_text(
        f"""#!/bin/sh
for word; do
    case $word in railyard.revision=*) echo "${{word#*=}}" >{tmp_path}/label ;; esac
done
case "$*" in
    *railyard.revision*railyard/server) cat {tmp_path}/other 2>/dev/null || cat {tmp_path}/label ;;
    *railyard.revision*) cat {tmp_path}/label ;;
esac
"""
    )
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert containers.git_state() == {"revision": None, "dirty": None}, "images of before"
    good(run_program([DOCKER / "build.sh", "railyard/base", "client"]))
    assert containers.git_state() == provenance.git_state()
    (tmp_path / "label").write_text("0123 with changes\n")
    assert containers.git_state() == {"revision": "0123", "dirty": True}
    (tmp_path / "other").write_text("4567\n")
    assert containers.git_state() == {"revision": None, "dirty": None}


def services(name: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load((DOCKER / name).read_text())["services"]
    return found


@pytest.mark.parametrize("name", COMPOSE)
def test_compose_files_ask_for_no_more_than_the_arena(name: str) -> None:
    for service, settings in services(name).items():
        part = service.split("-")[0]
        assert "privileged" not in settings
        assert "ports" not in settings
        assert settings["cap_drop"] == ["ALL"]
        assert settings["security_opt"] == ["no-new-privileges:true"]
        assert settings["read_only"] is True
        wanted = {"server": [], "outside": ["NET_ADMIN"], "client": ["NET_ADMIN", "SYS_NICE"]}[part]
        assert settings.get("cap_add", []) == wanted
        network = "service:" + service.replace("outside", "server") if part == "outside" else "none"
        assert settings["network_mode"] == network
        if part != "outside":
            settings_of_arena = containers.QUIET_IPV6 | containers.NO_REVERSE_PATH_FILTER
            assert settings_of_arena.items() <= settings["sysctls"].items()


def test_the_compose_campaign_runs_the_five_schemes_one_after_the_other() -> None:
    found = services("compose.campaign.yaml")
    order = ["sp", "cm", "mptcp", "vanilla-mp", "xlink"]
    assert [name.removeprefix("client-") for name in found if name.startswith("client-")] == order
    for before, after in itertools.pairwise(order):
        condition = {f"client-{before}": {"condition": "service_completed_successfully"}}
        assert found[f"server-{after}"]["depends_on"] == condition
    commands = {re.sub(r"--scheme \S+|/results/\S+|/join/\S+", "", found[f"client-{s}"]["command"]) for s in order}
    assert len(commands) == 2, "QUIC and MPTCP; all else is the same for every scheme"


def test_the_base_image_is_an_argument_that_can_be_pinned_by_digest() -> None:
    lines = (DOCKER / "Dockerfile").read_text().splitlines()
    sources = [line.split()[1] for line in lines if line.startswith("FROM ")]
    assert lines.index("ARG BASE=railyard/base:bookworm") < next(i for i, x in enumerate(lines) if x.startswith("FROM"))
    assert set(sources) == {"${BASE}", "runtime"}
    assert [line for line in lines if line.startswith("USER ")] == ["USER railyard"]
    uid = re.search(r"--uid (\d+)", "\n".join(lines))
    assert uid is not None
    assert int(uid[1]) == containers.SERVER_UID


def test_everything_that_the_images_copy_is_in_the_build_context() -> None:
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    kept = [line[1:] for line in ignore if line.startswith("!")]
    for name in ("Makefile", "transport", "emulator", "lib", "player", "server", "apps"):
        assert name in kept
        assert (ROOT / name).exists()


def sources_of_a_first_build(root: Path) -> set[str]:
    """The files that make compiles if nothing is built yet."""
    command = ["make", "--dry-run", "OUT=none", "BIN=none/bin", "build"]
    done = good(run_program(command, cwd=root))
    sources = set(re.findall(r'echo "CC   (\S+)"', done.stdout))
    assert "emulator/mpshell/main.c" in sources
    return sources


def test_make_finds_all_that_it_builds_from_among_what_the_image_copies(tmp_path: Path) -> None:
    lines = (DOCKER / "Dockerfile").read_text().splitlines()
    copied = [line.split()[1:] for line in lines if line.startswith("COPY ") and "--from=" not in line]
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for source, target in copied:
        if source.startswith(("docker/", "build/")):  # `make docker IMAGE=tool` collects wheels there
            assert not source.startswith("build/") or source in kept
            continue
        assert source in kept, "it is not in the build context"
        place = tmp_path / target / Path(source).name if target.endswith("/") else tmp_path / target
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, place)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / source, place)
    assert sources_of_a_first_build(tmp_path) == sources_of_a_first_build(ROOT)
