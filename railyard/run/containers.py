"""The containers of a run in the docker arena: their commands, and their removal.

A run is three containers. Their two network namespaces have no network; mpshell's TUN devices join them.

    server   its own network namespace; an ordinary user, no capability, no device (exception: server_user)
    outside  in the server's namespace: makes mpshell's outside devices there and lends them; CAP_NET_ADMIN
    client   its own network namespace: mpshell, and in it the player, which has no capability; CAP_NET_ADMIN

The relays of a stack run beside the server and beside the player, with the same rights as these.
"""

import csv
import io
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from railyard.base.errors import UserError
from railyard.base.paths import programs_dir
from railyard.experiment.stacks import StackRun
from railyard.run import runspec
from railyard.run.runspec import RunSpec

CLIENT_IMAGE, SERVER_IMAGE = "railyard/client", "railyard/server"
OWNER_LABEL = "railyard.owner"  # the process that owns a container: boot ID, process ID, its start time
SERVER_UID = 10001  # the user of the server's image
RESULTS, TRACES, JOIN, STACK = Path("/results"), Path("/traces"), Path("/join"), Path("/stack")  # inside
SHARE = Path("/usr/local/share/railyard")
SERVER_FOLDER, JOIN_FOLDER = ".server", ".join"  # in the run's folder while it goes on
ENGINE_LIMIT_S = 60.0
# mpshell sets these if it may write to /proc/sys. Router solicitations and link-local addresses would use up
# delivery opportunities; packets to the gateway of path 0 arrive over every path.
QUIET_IPV6 = {
    "net.ipv6.conf.all.disable_ipv6": "0",
    "net.ipv6.conf.default.disable_ipv6": "0",
    "net.ipv6.conf.default.accept_ra": "0",
    "net.ipv6.conf.default.router_solicitations": "0",
    "net.ipv6.conf.default.addr_gen_mode": "1",
}
NO_REVERSE_PATH_FILTER = {"net.ipv4.conf.all.rp_filter": "0", "net.ipv4.conf.default.rp_filter": "0"}


def sysctls(spec: RunSpec) -> dict[str, str]:
    """The sysctls of both network namespaces."""
    ipv6 = QUIET_IPV6 if Path("/proc/sys/net/ipv6").exists() else {}
    return runspec.sysctls(spec) | NO_REVERSE_PATH_FILTER | ipv6


def _mount(source: Path, target: Path, *, read_only: bool = False) -> list[str]:
    """A --mount option. Its value is a line of CSV, so names may have commas and colons."""
    line = io.StringIO()
    fields = ["type=bind", f"source={source}", f"target={target}", *(["readonly"] if read_only else [])]
    csv.writer(line, lineterminator="").writerow(fields)
    return ["--mount", line.getvalue()]


def _common(name: str, owner: str, network: str, memory: str, cpus: int) -> list[str]:
    """The options of all containers of a run: no capability, a read-only file system, and limits."""
    return [
        *("docker", "run", "--rm", "--pull", "never", "--name", name, "--label", f"{OWNER_LABEL}={owner}"),
        *("--network", network, "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only"),
        *("--tmpfs", "/tmp:rw,noexec,nosuid,nodev,size=16m"),  # noqa: S108
        *("--memory", memory, "--cpus", str(min(cpus, os.cpu_count() or 1)), "--pids-limit", "64"),
        # The programs themselves say when they are ready; a health check would start processes beside the emulator.
        *("--no-healthcheck", "--log-driver", "none"),
    ]


def _sysctl_options(spec: RunSpec) -> list[str]:
    return [word for name, value in sysctls(spec).items() for word in ("--sysctl", f"{name}={value}")]


# TUN devices, addresses, routes, queueing disciplines and MPTCP endpoints: CAP_NET_ADMIN, in its own namespace only.
_TUN = ["--cap-add", "NET_ADMIN", "--device", "/dev/net/tun"]
# SCHED_FIFO for mpshell. A limit on rtprio would suffice, but not every engine may raise limits.
_REAL_TIME = ["--cap-add", "SYS_NICE"]
# If the kernel schedules real-time tasks by group (cgroup v1), a container also needs a share of each second out of the
# engine's (dockerd --cpu-rt-runtime). Two runs side by side fit into the usual 950000 µs.
ENGINE_BUDGET = Path("/sys/fs/cgroup/cpu/docker/cpu.rt_runtime_us")
BUDGET_US = 450_000


def real_time_options() -> list[str]:
    """The options for SCHED_FIFO. The engine's group exists only while a container runs."""
    try:
        budget = int(ENGINE_BUDGET.read_text())
    except (OSError, ValueError):
        return _REAL_TIME
    return [*_REAL_TIME, "--cpu-rt-runtime", str(BUDGET_US)] if budget >= BUDGET_US else _REAL_TIME


def inside(spec: RunSpec) -> tuple[RunSpec, list[tuple[Path, Path]]]:
    """The run as the client's container sees it, and its files as pairs of host's and container's path."""
    files: list[tuple[Path, Path]] = []

    def put(host: Path, name: str) -> Path:
        files.append((host, TRACES / name))
        return TRACES / name

    return spec.with_files(put), files


def stack_inside(stack: StackRun) -> tuple[StackRun, list[tuple[Path, Path]]]:
    """The stack as the containers see it, and its files as pairs of host's and container's path: the folder of
    peer.yaml, and other files that the commands name. Programs of this project and those on PATH are taken from the
    image."""
    folder = stack.file.parent
    mounts = {folder: STACK / "peer"}

    def seen(word: str, *, is_program: bool) -> str:
        file = Path(word)
        if os.sep not in word or not file.is_file():
            return word
        if file.is_relative_to(folder):
            return str(mounts[folder] / file.relative_to(folder))
        if is_program and (file.parent == programs_dir() or shutil.which(file.name) == word):
            return file.name
        return str(mounts.setdefault(file, STACK / str(len(mounts)) / file.name))

    client, server = (
        tuple(seen(word, is_program=place == 0) for place, word in enumerate(command))
        for command in (stack.client, stack.server)
    )
    return stack.model_copy(update={"client": client, "server": server}), list(mounts.items())


def _stack_mounts(spec: RunSpec) -> list[str]:
    files = stack_inside(spec.stack)[1] if spec.stack else []
    return [word for host, target in files for word in _mount(host, target, read_only=True)]


def _is_restricted(controller: str) -> bool:
    """Whether ordinary users may not use a congestion controller. This is a setting of the machine, read-only in
    network namespaces. A kernel with another default may restrict cubic."""
    name = "reno" if controller == "newreno" else controller
    return name not in Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split()


def relay_needs_net_admin(stack: StackRun) -> bool:
    return stack.kernel_cc and _is_restricted(stack.options["cc"])


def server_needs_net_admin(spec: RunSpec) -> bool:
    return spec.transport != "quic" and _is_restricted(spec.congestion)


def _container_needs_net_admin(spec: RunSpec) -> bool:
    """Whether the server, or the relay in its container, needs the capability."""
    return server_needs_net_admin(spec) or (spec.stack is not None and relay_needs_net_admin(spec.stack))


def server_user(spec: RunSpec) -> int:
    """The server's user: an ordinary one, or root if the container needs CAP_NET_ADMIN, which other users cannot
    have."""
    return 0 if _container_needs_net_admin(spec) else os.geteuid() or SERVER_UID


def server_command(spec: RunSpec, run_dir: Path, name: str, owner: str) -> list[str]:
    return [
        *_common(name, owner, "none", "1g", 1),
        *("--user", f"{server_user(spec)}:{os.getegid() or SERVER_UID}"),
        *(["--cap-add", "NET_ADMIN"] if _container_needs_net_admin(spec) else []),
        *_sysctl_options(spec),
        *_mount(run_dir / SERVER_FOLDER, RESULTS),
        *_stack_mounts(spec),
        SERVER_IMAGE,
        *runspec.server_command(spec, Path("xlink-server"), RESULTS),
    ]


def relay_command(stack: StackRun, server: str) -> list[str]:
    """The command of a stack's relay in the server's container. It ends at the latest with the container."""
    return [
        *("docker", "exec", "--workdir", str(RESULTS), server),
        *runspec.relay_server_command(stack_inside(stack)[0]),
    ]


def outside_command(run_dir: Path, name: str, owner: str, server: str) -> list[str]:
    return [
        *_common(name, owner, f"container:{server}", "64m", 1),
        *_TUN,
        *_mount(run_dir / JOIN_FOLDER, JOIN),
        *(CLIENT_IMAGE, "mpshell", "--lend-outside", str(JOIN / "outside")),
    ]


def client_command(spec: RunSpec, run_dir: Path, name: str, owner: str) -> list[str]:
    seen, files = inside(spec)
    inner = runspec.player_command(seen, Path("xlink-player"), RESULTS)
    if spec.stack:
        inner = runspec.relay_command(seen, stack_inside(spec.stack)[0], Path("relay-run"), RESULTS, inner)
    control = str(JOIN / "control") if spec.link_events else None
    program, *rest = runspec.mpshell_command(seen, Path("mpshell"), RESULTS, inner, control)
    return [
        *_common(name, owner, "none", "1g", 2),
        *_TUN,
        *real_time_options(),
        *_sysctl_options(spec),
        *_mount(run_dir, RESULTS),
        *_mount(run_dir / JOIN_FOLDER, JOIN),
        *(word for host, target in files for word in _mount(host, target, read_only=True)),
        *_stack_mounts(spec),
        CLIENT_IMAGE,
        *(program, "--outside", str(JOIN / "outside"), *rest),
    ]


def ownership_command(run_dir: Path, name: str, owner: str) -> list[str]:
    """The command that gives the run's files, some of which are root's, to the owner of the run's folder, and lets no
    other user write there. It asks for the owner inside, where a rootless engine shows the caller as root."""
    script = f"chown -hR --reference={RESULTS} {RESULTS} && chmod -R go-w {RESULTS}"
    return [
        *_common(name, owner, "none", "64m", 1),
        *("--cap-add", "CHOWN", "--cap-add", "FOWNER"),
        *_mount(run_dir, RESULTS),
        *(CLIENT_IMAGE, "sh", "-c", script),
    ]


# ---- the engine


def _engine(*words: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(["docker", *words], capture_output=True, text=True, timeout=ENGINE_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise UserError(f"the Docker engine did not answer `docker {words[0]}` within {ENGINE_LIMIT_S:g} s.") from None


def why_not() -> str | None:
    """Why containers cannot run here. None: they can."""
    if shutil.which("docker") is None:
        return "the program 'docker' is not there; install the Debian package docker.io."
    # Without an engine, `docker info --format` of Debian 12 only reports an error in the template.
    done = _engine("version", "--format", "{{.Server.Version}}")
    if "permission denied" in done.stderr:
        return "this user may not use the Docker engine; run as root, or as a member of its socket's group (docker)."
    if done.returncode != 0 or not done.stdout.strip():
        reason = (done.stderr.strip().splitlines() or ["it said nothing"])[-1].partition(". ")[0]
        return f"no Docker engine answers: {reason}; start it (dockerd), or name its socket with DOCKER_HOST."
    return None


def check_engine() -> None:
    """Raises UserError with the requirement that is missing."""
    reason = why_not()
    if reason is not None:
        raise UserError(reason)
    if not Path("/dev/net/tun").exists():
        raise UserError("/dev/net/tun is not there; load the kernel's tun module (modprobe tun).")
    image_ids()


def image_ids() -> dict[str, str]:
    """The images' IDs, which are the programs' hashes in a run's identity."""
    ids: dict[str, str] = {}
    for image in (CLIENT_IMAGE, SERVER_IMAGE):
        done = _engine("image", "inspect", "--format", "{{.Id}}", image)
        if done.returncode != 0:
            raise UserError(f"the image {image} is not there; build it with `make docker`.")
        ids[image] = done.stdout.strip()
    return ids


def facts() -> dict[str, Any]:
    """The engine and the images, for the run's record."""
    return {
        "engine": _engine("info", "--format", "{{.ServerVersion}}").stdout.strip(),
        "images": image_ids(),
        "base": _label("base", CLIENT_IMAGE) or None,
    }


def _label(name: str, image: str) -> str:
    """A label that docker/build.sh gave an image. Empty if it has none."""
    form = f'{{{{index .Config.Labels "railyard.{name}"}}}}'
    return _engine("image", "inspect", "--format", form, image).stdout.strip()


def git_state() -> dict[str, Any]:
    """The revision of the programs in the images, and whether their sources differed from it, as
    provenance.git_state(). Unknown if the images have no label or two different ones."""
    labels = {_label("revision", image) for image in (CLIENT_IMAGE, SERVER_IMAGE)}
    revision, _, changed = labels.pop().partition(" ") if len(labels) == 1 else ("", "", "")
    return {"revision": revision, "dirty": bool(changed)} if revision else {"revision": None, "dirty": None}


def read_files(container: str, files: list[Path]) -> str:
    """The joined text of files of a running container. Empty if the container is gone."""
    return _engine("exec", container, "cat", *map(str, files)).stdout


def take_over(run_dir: Path, name: str, owner: str) -> None:
    """Gives the files of a run to the caller, who is not root."""
    _engine(*ownership_command(run_dir, name, owner)[1:])


def remove(names: list[str]) -> None:
    _engine("rm", "--force", "--volumes", *names)


# ---- containers that a killed campaign left


def _start_time(pid: int) -> str | None:
    """The start time of a process, field 22 of /proc/PID/stat. Together with it, a process ID is unique."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return None


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def owner_of(pid: int) -> str:
    return f"{_boot()}:{pid}:{_start_time(pid)}"


def is_alive(owner: str) -> bool:
    boot, _, rest = owner.partition(":")
    pid, _, start = rest.partition(":")
    return boot == _boot() and pid.isdecimal() and _start_time(int(pid)) == start


def sweep() -> list[str]:
    """Removes containers whose owner is gone, and returns their names."""
    form = '{{.Names}}\t{{.Label "' + OWNER_LABEL + '"}}'
    done = _engine("ps", "--all", "--filter", f"label={OWNER_LABEL}", "--format", form)
    rows = [line.partition("\t") for line in done.stdout.splitlines()]
    dead = [name for name, _, owner in rows if not is_alive(owner)]
    if dead:
        remove(dead)
    return dead
