"""The docker arena: the programs of the mpshell arena in containers, client side and server side apart."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from railyard.base import provenance
from railyard.run import captures, confine, containers, runspec
from railyard.run.runspec import RunSpec
from railyard.run.site import Start, make_certificate, remove_secrets, spawn, stop
from railyard.run.wallclock import WallClock


class Containers:
    """The three containers of a run (containers.py). The worker's children are clients of the engine."""

    own_children = False

    def __init__(self, spec: RunSpec, run_dir: Path) -> None:
        self.spec, self.run_dir = spec, run_dir
        self.owner = containers.owner_of(os.getpid())
        self.names = {part: f"railyard-{os.getpid()}-{part}" for part in ("server", "outside", "client", "owner")}
        self.outside: subprocess.Popen[bytes] | None = None
        self.settings: dict[str, str] = {}
        self.libraries: dict[str, str] = {}
        self.control_folder = run_dir / containers.JOIN_FOLDER

    def prepare(self) -> None:
        """Makes folders that the containers can write to: the server is not root, and root in a container has
        no rights over other users' files."""
        folders = [self.run_dir / name for name in (containers.SERVER_FOLDER, containers.JOIN_FOLDER)]
        further = [folders[0] / "qlog", *([self.run_dir / captures.FOLDER] if self.spec.pcap else [])]
        for folder in (*folders, *further):
            folder.mkdir()
        if os.geteuid() == 0:
            for folder in (folders[0], folders[0] / "qlog"):
                os.chown(folder, containers.server_user(self.spec), containers.SERVER_UID)
        else:
            for folder in (*folders, *further, self.run_dir, self.run_dir / "links", self.run_dir / "qlog"):
                folder.chmod(0o777)

    def server(self) -> Start:
        command = containers.server_command(self.spec, self.run_dir, self.names["server"], self.owner)
        return Start(command, command)

    def relay(self) -> Start | None:
        if self.spec.stack is None:
            return None
        if self.spec.stack.certificate:
            user = containers.server_user(self.spec), containers.SERVER_UID
            make_certificate(self.run_dir / containers.SERVER_FOLDER, user if os.geteuid() == 0 else None)
        command = containers.relay_command(self.spec.stack, self.names["server"])
        return Start(command, command)

    def mpshell(self, control: str) -> Start:
        del control  # the container has another path
        command = containers.outside_command(self.run_dir, self.names["outside"], self.owner, self.names["server"])
        self.outside = spawn(Start(command, command), self.run_dir / "outside.stderr", stdout=subprocess.DEVNULL)
        command = containers.client_command(self.spec, self.run_dir, self.names["client"], self.owner)
        return Start(command, command)

    def netstat(self) -> str:
        names = list(runspec.sysctls(self.spec))
        files = [*(Path("/proc/sys", *name.split(".")) for name in names), containers.SHARE / "versions"]
        text = containers.read_files(self.names["server"], [*files, Path("/proc/net/netstat")]).splitlines()
        self.settings = dict(zip(names, (" ".join(line.split()) for line in text), strict=False))
        libraries = [line.partition("=") for line in text[len(names) :] if ":" not in line]
        self.libraries = {name: version for name, _, version in libraries}
        return "\n".join(line for line in text if line.startswith(("TcpExt:", "IpExt:", "MPTcpExt:")))

    def facts(self) -> dict[str, Any]:
        ours = {name: version for name, version in provenance.versions().items() if name in ("railyard", "python")}
        of_images = {"git": containers.git_state(), "containers": containers.facts()}
        return {"sysctls": self.settings, "versions": ours | self.libraries} | of_images

    def clear(self) -> None:
        containers.remove(list(self.names.values()))
        if self.outside is not None:
            stop(self.outside)
        self._gather()

    def gather(self) -> None:
        """Takes over the files of the client's container, which has ended. The server's container has not."""
        if os.geteuid() != 0:
            containers.take_over(self.run_dir, self.names["owner"], self.owner)

    def _gather(self) -> None:
        """Moves the server's files to the player's."""
        remove_secrets(self.run_dir / containers.SERVER_FOLDER)
        confine.gather(self.run_dir / containers.SERVER_FOLDER, self.run_dir)
        shutil.rmtree(self.run_dir / containers.JOIN_FOLDER, ignore_errors=True)
        if (self.run_dir / "outside.stderr").is_file() and not (self.run_dir / "outside.stderr").stat().st_size:
            (self.run_dir / "outside.stderr").unlink()


class Docker(WallClock):
    name = "docker"
    about = "containers"

    def programs(self) -> dict[str, str]:
        return containers.image_ids()

    def own_programs(self, spec: RunSpec) -> dict[str, str]:
        return {}

    def check(self) -> None:
        self.look()
        containers.sweep()

    def look(self) -> None:
        containers.check_engine()

    def site(self, spec: RunSpec, run_dir: Path) -> Containers:
        return Containers(spec, run_dir)


ARENA = Docker()
