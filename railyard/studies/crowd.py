"""Several viewers and TCP flows behind shared bottlenecks, in a time-travel kernel.

A run of an experiment has one player. Here a run has several, each with its own paths, in one mpshell."""

import json
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from railyard.base.errors import UserError
from railyard.base.jsonl import read_jsonl
from railyard.base.paths import program
from railyard.experiment.model import TRANSPORT_OF_SCHEME, FlowSettings
from railyard.experiment.settings import SETTINGS
from railyard.results.flows import Connection, read_flows
from railyard.run import fidelity, runspec, vkernel
from railyard.run.children import ends_with_us
from railyard.run.runspec import AS_IN_THE_SIMULATOR, HTTP_PORT, QUIC_PORT

PROGRAMS = ("xlink-server", "xlink-player", "mpshell", "mpshell-ctl")
SOCKETS = {"net.ipv4.tcp_rmem": "4096 131072 6291456", "net.ipv4.tcp_wmem": "4096 65536 4194304",
           "net.ipv4.tcp_no_metrics_save": "1"}  # fmt: skip
WHOLE = 1 << 30  # bytes of a download without pause
LIMIT_S = 3600


@dataclass(frozen=True)
class Viewer:
    """A download without pause."""

    scheme: str
    cc: str = "cubic"
    start_s: float = 0.0

    @property
    def transport(self) -> str:
        return TRANSPORT_OF_SCHEME[self.scheme]


@dataclass(frozen=True)
class Crowd:
    """One run. All viewers and the server have the same scheme."""

    seed: int
    length_s: float
    paths: Mapping[str, str]  # of each viewer: settings of mpshell's --path by name, the primary path first
    bottlenecks: Mapping[str, str]  # settings of --bottleneck by name
    viewers: Sequence[Viewer]
    flows: Mapping[str, FlowSettings] = field(default_factory=dict)
    events: Sequence[tuple[float, str]] = ()  # commands of mpshell's control socket, by their times


@dataclass(frozen=True)
class Played:
    """The result of a run. Times are in s since t0 of the links."""

    viewers: list[Connection]
    paths: list[dict[str, int]]  # bytes that each viewer received on each path, over the whole run
    flows: dict[str, list[Connection]]
    void: list[str]  # why the run does not count; empty if it does


def _options(side: str) -> list[str]:
    rows = ((SETTINGS[name], value) for name, value in AS_IN_THE_SIMULATOR.items())
    return [word for row, value in rows if side in row.sides for word in (row.option, value)]


def _server(crowd: Crowd) -> list[str]:
    viewer = crowd.viewers[0]
    command = ["./xlink-server", "--seed", str(crowd.seed), "--cc", viewer.cc, "--out", "server.jsonl"]
    if viewer.transport == "quic":
        return [*command, "--quic", f"0.0.0.0:{QUIC_PORT}", "--scheme", viewer.scheme, "--no-tickets",
                *_options("server")]  # fmt: skip
    return [*command, "--http1", f"0.0.0.0:{HTTP_PORT}", *(["--mptcp"] if viewer.transport == "mptcp" else [])]


def _player(crowd: Crowd, number: int) -> list[str]:
    viewer, names = crowd.viewers[number], list(crowd.paths)
    command = ["./xlink-player", "--transport", viewer.transport]
    if viewer.transport == "quic":
        command += ["--server", f"@:{QUIC_PORT}", "--scheme", viewer.scheme, "--cc", viewer.cc, "--insecure"]
        command += [*_options("player"), "--chunk-bytes", "262144", "--concurrency", "4"]
    else:  # each request that is open has a connection of its own, so there is one for all
        command += ["--server", f"@:{HTTP_PORT}", "--chunk-bytes", str(WHOLE)]
    for place, name in enumerate(names):
        command += ["--path", f"{name}:@{number * len(names) + place}:{name}"]
    limit_s = crowd.length_s - viewer.start_s
    return [*command, "--primary", names[0], "--url", f"/synthetic/{WHOLE}", "--bitrate", "1000000000",
            "--time-limit", f"{limit_s:.3f}", "--seed", str(crowd.seed * 100 + number),
            "--out", f"player-{number}.jsonl"]  # fmt: skip


def _mpshell(crowd: Crowd) -> list[str]:
    command = ["./mpshell", "--seed", str(crowd.seed), "--control", "/run/control", "--summary", "mpshell.json"]
    for number in range(len(crowd.viewers)):
        for name, settings in crowd.paths.items():
            command += ["--path", f"{name}-{number}:{settings}"]
    for name, settings in crowd.bottlenecks.items():
        command += ["--bottleneck", f"{name}:{settings}"]
    for name, flow in crowd.flows.items():
        command += ["--flow", f"{name}:{flow.keys()}"]
    if crowd.flows:
        command += ["--flow-log", "flows.jsonl"]
    mptcp = crowd.viewers[0].transport == "mptcp"
    for name, value in SOCKETS.items() | {"net.mptcp.enabled": str(int(mptcp))}.items():
        command += ["--sysctl", f"{name}={value}"]
    if mptcp:  # a viewer's connection has as many subflows as it has paths
        command += ["--mptcp", "--mptcp-subflows", str(len(crowd.paths) - 1)]
    return [*command, "--", "/bin/sh", "inside.sh"]


def _inside(crowd: Crowd) -> str:
    lines = [f"( sleep {viewer.start_s:.3f}; exec {shlex.join(_player(crowd, number))} ) &"
             for number, viewer in enumerate(crowd.viewers)]  # fmt: skip
    before = 0.0
    if crowd.events:
        lines.append("(")
        for at_s, event in crowd.events:
            lines += [
                f"sleep {at_s - before:.3f}",
                f"./mpshell-ctl /run/control {event} >/dev/null || echo {event} >bad",
            ]
            before = at_s
        lines.append(") &")
    return "\n".join([*lines, "wait", ""])


def _outside(crowd: Crowd) -> str:
    mptcp = crowd.viewers[0].transport == "mptcp"
    settings = SOCKETS | {"net.mptcp.enabled": str(int(mptcp))}
    lines = [f"echo {shlex.quote(value)} >/proc/sys/{name.replace('.', '/')}" for name, value in settings.items()]
    if mptcp:
        lines.append(shlex.join(runspec.mptcp_limits_command(len(crowd.paths), {})))
    return "\n".join([
        "set -e", *lines, "mkfifo /run/listening",
        f"{shlex.join(_server(crowd))} >/run/listening &",
        "server=$!", "exec 3</run/listening", "read -r line <&3",
        shlex.join(_mpshell(crowd)),
        "kill $server", "",
    ])  # fmt: skip


def _viewer(folder: Path, number: int, t0_us: int) -> Connection:
    events = read_jsonl(folder / f"player-{number}.jsonl")
    later_s = (events[0]["monotonic_us"] - t0_us) / 1e6
    buffers = [event for event in events if event["event"] == "buffer"]
    return Connection([event["t"] + later_s for event in buffers], [event["received_bytes"] for event in buffers])


def _read(crowd: Crowd, folder: Path) -> Played:
    summary: dict[str, Any] = json.loads((folder / "mpshell.json").read_text(encoding="utf-8"))
    if (folder / "bad").is_file():
        raise UserError(f"mpshell refused '{(folder / 'bad').read_text().strip()}'")
    bytes_of = {path["name"]: path["down"]["departed_bytes"] for path in summary["paths"]}
    return Played(
        viewers=[_viewer(folder, number, summary["t0_monotonic_us"]) for number in range(len(crowd.viewers))],
        paths=[{name: bytes_of[f"{name}-{number}"] for name in crowd.paths} for number in range(len(crowd.viewers))],
        flows=read_flows(folder),
        void=fidelity.judge(summary, exact=True).reasons,
    )


def play(crowd: Crowd, core: int | None = None) -> Played:
    """Plays a run. Raises UserError if a program does not run to its end."""
    kernel = vkernel.at_hand()
    if kernel is None:
        raise UserError(f"{vkernel.why_not()}.")
    with tempfile.TemporaryDirectory(prefix="railyard-") as temporary:
        folder = Path(temporary)
        for name in PROGRAMS:
            (folder / name).symlink_to(program(name))
        (folder / "job.sh").write_text(_outside(crowd), encoding="utf-8")
        (folder / "inside.sh").write_text(_inside(crowd), encoding="utf-8")
        command = [str(program("vkernel")), "--kernel", str(kernel)]
        command += ["--seed", str(crowd.seed), "--folder", temporary, "--limit", str(LIMIT_S)]
        command += ["--core", str(core)] if core is not None else []
        command += ["--", "/bin/sh", "job.sh"]
        done = subprocess.run(ends_with_us(command), check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise UserError(f"a run in the kernel ended with {done.returncode}: {done.stderr.strip()[-300:]}")
        return _read(crowd, folder)
