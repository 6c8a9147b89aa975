"""The mpshell arena: any unmodified program on the wall clock, in a network namespace with a TUN device for each
path."""

import errno
import os
import shlex
import socket
import subprocess
from pathlib import Path
from typing import Any

from railyard.base import provenance
from railyard.base.errors import UserError
from railyard.base.paths import check_tools, program
from railyard.experiment.model import kernel_cc
from railyard.run import confine, containers, runspec
from railyard.run.confine import may_make_namespaces
from railyard.run.outcome import StartError
from railyard.run.runspec import RunSpec
from railyard.run.site import PLAYER_FOLDER, SERVER_FOLDER, Start, make_certificate, remove_secrets
from railyard.run.wallclock import WallClock

TUN = Path("/dev/net/tun")
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
TOOLS = {"ip": "iproute2", "unshare": "util-linux", "setpriv": "util-linux"}


def _set_up_namespace(spec: RunSpec) -> dict[str, str]:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True, capture_output=True)
    settings = runspec.sysctls(spec)
    for name, value in settings.items():
        try:
            Path("/proc/sys", *name.split(".")).write_text(value)
        except OSError as error:
            raise StartError(f"this kernel does not take {name}={value}: {error.strerror}") from None
    if spec.uses_mptcp:
        limits = runspec.mptcp_limits_command(len(spec.paths), spec.mptcp_limits)
        subprocess.run(limits, check=True, capture_output=True)
    return {name: provenance.read_sysctl(name) or "" for name in settings}


def _takes(cc: str) -> bool:
    """Whether the kernel's TCP has the controller, built in or as a module."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tried:
        try:
            tried.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, kernel_cc(cc).encode())
        except OSError as error:
            return error.errno != errno.ENOENT
    return True


class Namespace:
    """The worker's own network namespace. Player and server run as an unprivileged user, if this process may change
    users."""

    own_children = True

    def __init__(self, spec: RunSpec, run_dir: Path) -> None:
        self.spec, self.run_dir = spec, run_dir
        self.settings: dict[str, str] = {}
        self.control_folder = run_dir
        # A stack that the unprivileged user cannot reach runs as this process's user, and the player with it.
        self.user = confine.user() if spec.stack is None or confine.can_reach(spec.stack.files()) else None
        self.programs: dict[str, int] = {}  # name: descriptor of its folder

    def prepare(self) -> None:
        self.settings = _set_up_namespace(self.spec)
        if self.user is not None:
            for name in (SERVER_FOLDER, PLAYER_FOLDER):
                confine.make_folder(self.run_dir / name, self.user)
            relays = ("relay-run",) if self.spec.stack else ()
            for name in ("xlink-server", "xlink-player", *relays):
                self.programs[name] = os.open(program(name).parent, os.O_PATH)

    def _reachable(self, name: str) -> Path:
        """The path of a program for users who may not enter the folders above it."""
        return Path(f"/proc/self/fd/{self.programs[name]}", name)

    def _server_folder(self) -> Path:
        return self.run_dir if self.user is None else self.run_dir / SERVER_FOLDER

    def relay(self) -> Start | None:
        stack = self.spec.stack
        if stack is None:
            return None
        recorded = runspec.relay_server_command(stack)
        folder = self._server_folder()
        if stack.certificate:
            make_certificate(folder, (self.user.pw_uid, self.user.pw_gid) if self.user else None)
        right = "net_admin" if containers.relay_needs_net_admin(stack) else None
        rights = [] if self.user is None else confine.arguments(self.user, right)
        return Start(recorded, recorded, rights=rights, folder=folder, real_time=self.spec.real_time)

    def server(self) -> Start:
        recorded = runspec.server_command(self.spec, program("xlink-server"), self.run_dir)
        if self.user is None:
            return Start(recorded, recorded, real_time=self.spec.real_time)
        right = "net_admin" if containers.server_needs_net_admin(self.spec) else None
        command = runspec.server_command(self.spec, self._reachable("xlink-server"), Path())
        return Start(
            recorded,
            command,
            rights=confine.arguments(self.user, right),
            folder=self.run_dir / SERVER_FOLDER,
            fds=(self.programs["xlink-server"],),
            real_time=self.spec.real_time,
        )

    def mpshell(self, control: str) -> Start:
        events = control if self.spec.link_events else None
        settings = runspec.sysctls(self.spec)

        def command(inner: list[str], user: str | None) -> list[str]:
            shell = program("mpshell")
            return runspec.mpshell_command(self.spec, shell, self.run_dir, inner, events, settings=settings, user=user)

        player = runspec.player_command(self.spec, program("xlink-player"), self.run_dir)
        if stack := self.spec.stack:
            player = runspec.relay_command(self.spec, stack, program("relay-run"), self.run_dir, player)
        recorded = command(player, None)
        if self.user is None:
            return Start(recorded, recorded)
        inner = runspec.player_command(self.spec, self._reachable("xlink-player"), Path())
        if stack:
            inner = runspec.relay_command(self.spec, stack, self._reachable("relay-run"), Path(), inner)
        return Start(
            recorded,
            command(inner, self.user.pw_name),
            folder=self.run_dir / PLAYER_FOLDER,
            fds=tuple(self.programs.values()) if stack else (self.programs["xlink-player"],),
        )

    def netstat(self) -> str:
        return Path("/proc/net/netstat").read_text()

    def gather(self) -> None:
        remove_secrets(self._server_folder())
        for name in (SERVER_FOLDER, PLAYER_FOLDER):
            confine.gather(self.run_dir / name, self.run_dir)

    def facts(self) -> dict[str, Any]:
        name = self.user.pw_name if self.user is not None else None
        return {"sysctls": self.settings, "user": name}

    def clear(self) -> None:
        self.gather()
        while self.programs:
            os.close(self.programs.popitem()[1])


class Mpshell(WallClock):
    name = "mpshell"
    about = "real time"
    started_by = ("unshare", "--net", "--")

    def check(self) -> None:
        confine.check_programs([program(name) for name in self.program_names])
        check_tools(TOOLS)
        if not may_make_namespaces():
            raise UserError(
                "no permission to make network namespaces and TUN devices (CAP_NET_ADMIN, CAP_SYS_ADMIN); run as root, "
                "or in virtual time, which needs no right: --arena sim or --arena kernel."
            )
        if not TUN.exists():
            raise UserError(f"{TUN} is not there; load the kernel's tun module (modprobe tun).")
        if not os.access(TUN, os.R_OK | os.W_OK):
            raise UserError(f"{TUN} may not be opened; run as root, or give the container that device.")

    def refuses_flow(self, cc: str) -> str | None:
        if _takes(cc):
            return None
        has = AVAILABLE.read_text().split() if AVAILABLE.is_file() else []
        return f"this machine's TCP has no congestion controller '{cc}', but {', '.join(has) or 'none'}"

    def site(self, spec: RunSpec, run_dir: Path) -> Namespace:
        return Namespace(spec, run_dir)

    def by_hand(self, record: dict[str, Any], commands: dict[str, list[str]], out: str) -> list[str]:
        config = record["config"]
        if config.get("link_events") or config.get("stack") or not {"server", "mpshell"} <= set(commands):
            return []  # relays and link events need more than the programs alone
        if record.get("user"):  # by hand the player writes to root's folder, also under sudo
            commands["mpshell"][1:1] = ["--user", "root"]
        settings = " ".join(shlex.quote(f"{name}={value}") for name, value in record["sysctls"].items())
        set_up = ["ip link set lo up"]
        set_up += [f"sysctl -qw {settings}"] if settings else []
        if config["scheme"] == "mptcp":
            limits = runspec.mptcp_limits_command(len(config["paths"]), config.get("mptcp_limits", {}))
            set_up.append(shlex.join(limits))
        script = "; ".join(
            [
                *set_up,
                f"{shlex.join(commands['server'])} >{out}/listening & server=$!",
                f"until [ -s {out}/listening ]; do kill -0 $server || exit 2; sleep 0.1; done",
                f"{shlex.join(commands['mpshell'])}; kill $server; wait",
            ]
        )
        return [f"mkdir -p {out}/links {out}/qlog", f"unshare --net sh -c {shlex.quote(script)}"]


ARENA = Mpshell()
