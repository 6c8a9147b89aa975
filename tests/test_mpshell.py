"""mpshell as a program: real namespaces, real TUN devices, real sockets."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from railyard.base.paths import programs_dir

MPSHELL = programs_dir() / "mpshell"
IPPROTO_MPTCP = 262
TIMEOUT_S = 30


def _why_not() -> str | None:
    if os.geteuid() != 0:
        return "needs root: mpshell makes network namespaces and TUN devices"
    if not Path("/dev/net/tun").exists():
        return "needs /dev/net/tun"
    if not MPSHELL.exists():
        return f"needs {MPSHELL}: run make build"
    return None


pytestmark = [
    pytest.mark.privileged,
    pytest.mark.skipif(_why_not() is not None, reason=_why_not() or ""),
]

# Programs that run inside of the shell. A reply is awaited with a limit, so that nothing can hang.
PING = """
import os, socket, sys, time
port, count, target = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
for i in range(len(os.environ["MPSHELL_PATHS"].split())):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((os.environ[f"MPSHELL_PATH_{i}_ADDR"], 0))
    s.settimeout(5)
    to = os.environ["MPSHELL_GATEWAY"] if target == "gateway" else target
    s.connect((to, port))
    best = 1e9
    for _ in range(count):
        start = time.monotonic()
        s.send(b"x" * 100)
        s.recv(2000)
        best = min(best, time.monotonic() - start)
    print(best * 1000)
"""
FLOOD_RECEIVER = """
import os, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((os.environ["MPSHELL_PATH_0_ADDR"], 0))
s.settimeout(5)
s.sendto(b"hello", (os.environ["MPSHELL_GATEWAY"], int(sys.argv[1])))
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    s.recv(2000)
"""
MPTCP_CLIENT = """
import os, socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
s.settimeout(20)
s.connect((os.environ["MPSHELL_GATEWAY"], int(sys.argv[1])))
n = 0
while data := s.recv(65536):
    n += len(data)
print(n)
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """12 Mbit/s: one opportunity every ms."""
    path = tmp_path / "12mbps.trace"
    path.write_text("".join(f"{ms}\n" for ms in range(1, 101)))
    return path


def path_option(name: str, trace: Path, delay: float = 5, more: str = "") -> list[str]:
    return ["--path", f"{name}:up={trace},down={trace},delay={delay}{more}"]


def run(*arguments: str | Path, timeout: float = TIMEOUT_S) -> subprocess.CompletedProcess[str]:
    """Runs mpshell to its end; its devices must be gone then."""
    command = [str(MPSHELL), *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as shell:
        try:
            out, err = shell.communicate(timeout=timeout)
        finally:
            shell.kill()
    assert not {name for name in devices() if name.startswith(f"mp{shell.pid % 100000}-")}
    return subprocess.CompletedProcess(command, shell.returncode, out, err)


def devices() -> set[str]:
    return {name for _, name in socket.if_nameindex()}


def processes_with(mark: str) -> list[int]:
    """Process IDs whose command line has mark."""
    found = []
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit() and int(directory.name) != os.getpid():
            try:
                if mark.encode() in (directory / "cmdline").read_bytes():
                    found.append(int(directory.name))
            except OSError:
                continue
    return found


def eventually(condition: Callable[[], bool], limit_s: float = 10) -> bool:
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


@contextmanager
def served(serve: Callable[[socket.socket, threading.Event], None]) -> Iterator[int]:
    """A UDP server outside of the shell, on all addresses; gives its port."""
    stop = threading.Event()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("0.0.0.0", 0))  # noqa: S104  the shell's gateways are among these addresses
        server.settimeout(0.1)
        thread = threading.Thread(target=serve, args=(server, stop))
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            stop.set()
            thread.join()


def echo(server: socket.socket, stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            data, client = server.recvfrom(2000)
        except TimeoutError:
            continue
        server.sendto(data, client)


def flood(server: socket.socket, stop: threading.Event) -> None:
    """Sends 1472-byte datagrams to whoever says hello, as fast as it can."""
    client: Any = None
    while not stop.is_set():
        if client is None:
            try:
                client = server.recvfrom(2000)[1]
            except TimeoutError:
                continue
        try:
            server.sendto(b"x" * 1472, client)
        except OSError:  # the shell has ended
            return


def summary_of(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded


# ---- exit status -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (["true"], 0),
        (["sh", "-c", "exit 7"], 7),
        (["sh", "-c", "kill -TERM $$"], 128 + signal.SIGTERM),
        (["sh", "-c", "kill -KILL $$"], 128 + signal.SIGKILL),
        (["no-such-command-anywhere"], 127),
        (["/etc/passwd"], 126),
    ],
)
def test_exit_status_is_the_commands(trace: Path, command: list[str], status: int) -> None:
    result = run(*path_option("wifi", trace), "--", *command)
    assert result.returncode == status
    if status in {126, 127}:
        assert result.stderr.startswith(f"mpshell: cannot run {command[0]}: ")
        assert result.stderr.count("\n") == 1
    else:
        assert result.stderr == ""


def test_standard_streams_and_open_descriptors_are_the_callers(trace: Path) -> None:
    result = subprocess.run(
        [MPSHELL, *path_option("wifi", trace), "--", "sh", "-c", "cat; echo err >&2"],
        input="in",
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    assert (result.stdout, result.stderr) == ("in", "err\n")
    reader, writer = os.pipe()
    command = [str(MPSHELL), *path_option("wifi", trace), "--"]
    command += [sys.executable, "-c", f"import os; os.write({writer}, b'passed')"]
    subprocess.run(command, pass_fds=[writer], timeout=TIMEOUT_S, check=True)
    os.close(writer)
    with os.fdopen(reader) as passed:
        assert passed.read() == "passed"


# ---- nothing is left ---------------------------------------------------------------------------------------------

# Two processes that would live on: one in a session of its own, and the command itself.
LINGER = "setsid sleep {mark} & echo ready; exec sleep {mark}"


READY_LATER = """
import os, time
fd = int(os.environ["MPSHELL_READY_FD"])
time.sleep(0.4)
os.write(fd, b"r")
assert os.read(fd, 1) == b"g"
print(time.monotonic_ns() // 1000)
"""


def test_links_start_when_the_command_is_ready(trace: Path, tmp_path: Path) -> None:
    path, summary = path_option("p0", trace), tmp_path / "s.json"
    began = time.monotonic_ns() // 1000
    done = run(*path, "--start-when-ready", "--summary", summary, "--", sys.executable, "-c", READY_LATER)
    assert done.returncode == 0, done.stderr
    t0 = summary_of(summary)["t0_monotonic_us"]
    assert began + 400_000 <= t0 <= int(done.stdout)


def test_links_start_without_a_command_that_never_gets_ready(trace: Path) -> None:
    closing = 'import os; os.close(int(os.environ["MPSHELL_READY_FD"])); os.execlp("sleep", "sleep", "0.1")'
    for command in (["true"], [sys.executable, "-c", closing]):
        done = run(*path_option("p0", trace), "--start-when-ready", "--", *command)
        assert done.returncode == 0, done.stderr


@contextmanager
def lingering(trace: Path, mark: str) -> Iterator[subprocess.Popen[str]]:
    """An mpshell whose command would not end by itself. SIGINT has its default action inside."""
    with subprocess.Popen(
        [MPSHELL, *path_option("wifi", trace), *path_option("lte", trace), "--", "sh", "-c", LINGER.format(mark=mark)],
        stdout=subprocess.PIPE,
        text=True,
    ) as shell:
        try:
            assert shell.stdout is not None
            assert select.select([shell.stdout], [], [], TIMEOUT_S)[0], "the command did not start"
            assert shell.stdout.readline() == "ready\n"
            yield shell
        finally:
            shell.kill()


def new_devices(before: set[str], shell: subprocess.Popen[str]) -> set[str]:
    return {name for name in devices() - before if name.startswith(f"mp{shell.pid % 100000}-")}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_is_left_after_a_signal(trace: Path, number: signal.Signals) -> None:
    mark = f"{70000 + int(number)}.{os.getpid()}"
    before = devices()
    with lingering(trace, mark) as shell:
        assert eventually(lambda: len(processes_with(f"sleep\0{mark}")) == 2)
        assert len(new_devices(before, shell)) == 2
        shell.send_signal(number)
        status = shell.wait(TIMEOUT_S)
        assert status == (-number if number == signal.SIGKILL else 128 + number)
        assert eventually(lambda: not processes_with(mark))
        assert eventually(lambda: not new_devices(before, shell))


def test_descendants_do_not_outlive_the_command(trace: Path) -> None:
    mark = f"80000.{os.getpid()}"
    assert run(*path_option("wifi", trace), "--", "sh", "-c", f"setsid sleep {mark} >/dev/null 2>&1 &").returncode == 0
    assert not processes_with(mark)


def test_a_terminal_interrupt_reaches_the_command_once(trace: Path) -> None:
    counter = """
import signal, sys, time
got = []
signal.signal(signal.SIGINT, lambda *_: got.append(1))
print("ready", flush=True)
end = time.monotonic() + 10
while not got and time.monotonic() < end:
    time.sleep(0.01)
time.sleep(0.3)
print(f"interrupts {len(got)}", flush=True)
"""
    command = [str(MPSHELL), *path_option("wifi", trace), "--", sys.executable, "-c", counter]
    child, terminal = pty.fork()
    if child == 0:
        os.execv(command[0], command)  # noqa: S606
    output = b""
    try:
        while (
            not output.endswith((b"interrupts 1\r\n", b"interrupts 2\r\n"))
            and select.select([terminal], [], [], TIMEOUT_S)[0]
        ):
            output += os.read(terminal, 4096)
            if output == b"ready\r\n":
                os.write(terminal, b"\x03")
    finally:
        os.close(terminal)
        _, status = os.waitpid(child, 0)
    assert b"interrupts 1\r\n" in output
    assert os.waitstatus_to_exitcode(status) in {0, 128 + signal.SIGHUP}  # the terminal may close first


def test_a_third_interrupt_ends_a_command_that_ignores_it(trace: Path) -> None:
    with subprocess.Popen(
        [
            MPSHELL,
            *path_option("wifi", trace),
            "--",
            "sh",
            "-c",
            "trap '' INT TERM; echo ready; while :; do sleep 1; done",
        ],
        stdout=subprocess.PIPE,
        text=True,
    ) as shell:
        assert shell.stdout is not None
        assert shell.stdout.readline() == "ready\n"
        for _ in range(3):
            assert shell.poll() is None
            shell.send_signal(signal.SIGTERM)
            time.sleep(0.1)  # the same signal sent twice at once is one signal
        assert shell.wait(TIMEOUT_S) == 128 + signal.SIGKILL


def test_a_command_may_delete_a_device(trace: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.json"
    script = f"ip link del lte && {sys.executable} -c 'import time; time.sleep(1)'"
    paths = [*path_option("wifi", trace), *path_option("lte", trace)]
    before = os.times()
    result = run(*paths, "--keep-awake", "off", "--summary", summary, "--", "sh", "-c", script)
    after = os.times()
    assert result.returncode == 0, result.stderr
    used = after.children_user + after.children_system - before.children_user - before.children_system
    assert used < 0.7 * summary_of(summary)["duration_s"], "mpshell spins on the deleted device"


def test_a_caller_that_ignores_sigchld_gets_the_status(trace: Path) -> None:
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = [sys.executable, "-c", ignoring, str(MPSHELL), *path_option("wifi", trace), "--", "sh", "-c", "exit 5"]
    assert subprocess.run(command, timeout=TIMEOUT_S, check=False).returncode == 5


def test_several_shells_at_once_have_addresses_of_their_own(trace: Path) -> None:
    command = [str(MPSHELL), *path_option("wifi", trace), *path_option("lte", trace), "--", "sh", "-c"]
    script = "echo $MPSHELL_PATH_0_ADDR $MPSHELL_PATH_1_ADDR; read line"
    shells = [
        subprocess.Popen([*command, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    addresses = []
    for shell in shells:
        assert shell.stdout is not None
        addresses += shell.stdout.readline().split()
    for shell in shells:
        shell.communicate("\n", timeout=TIMEOUT_S)
        assert shell.returncode == 0
    assert len(addresses) == 8
    assert len(set(addresses)) == 8


# ---- the network -------------------------------------------------------------------------------------------------


def test_every_path_reaches_a_server_outside_and_shows_its_delay(trace: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.json"
    paths = [*path_option("wifi", trace, 10), *path_option("lte", trace, 25.5), *path_option("sat", trace, 60)]
    with served(echo) as port:
        result = run(*paths, "--summary", summary, "--", sys.executable, "-c", PING, str(port), "10", "gateway")
    assert result.returncode == 0, result.stderr
    for line, delay in zip(result.stdout.split(), (10, 25.5, 60), strict=True):
        # Each direction adds its delay and waits for the next opportunity, one every ms.
        assert 2 * delay <= float(line) <= 2 * delay + 20
    loaded = summary_of(summary)
    for path, delay in zip(loaded["paths"], (10, 25.5, 60), strict=True):
        assert path["delay_ms"] == delay
        for direction in (path["up"], path["down"]):
            assert direction["departed_packets"] == 10
            assert direction["departed_bytes"] == 10 * (100 + 28 + 4)
            assert direction["lateness_us"]["count"] == 10
            assert direction["trace_sha256"] == hashlib.sha256(trace.read_bytes()).hexdigest()
            assert direction["trace"] == str(trace.resolve())
        assert set(path["device_drops"].values()) == {0}


ROUND_TRIP_6 = """
import os, socket, sys, time
for i in range(len(os.environ["MPSHELL_PATHS"].split())):
    s = socket.create_connection(
        (os.environ["MPSHELL_GATEWAY6"], int(sys.argv[1])), 10, (os.environ[f"MPSHELL_PATH_{i}_ADDR6"], 0)
    )
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    start = time.monotonic()
    s.sendall(b"x" * 20)
    s.recv(20)
    print((time.monotonic() - start) * 1000)
time.sleep(0.3)
"""


SEND_ON_ALL = """
import os, socket, time
senders = []
for k in range(len(os.environ["MPSHELL_PATHS"].split())):
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.bind((os.environ[f"MPSHELL_PATH_{k}_ADDR"], 0))
    senders.append((sender, (os.environ[f"MPSHELL_PATH_{k}_GATEWAY"], 9)))
for _ in range(40):
    for sender, to in senders:
        sender.sendto(b"x", to)
    time.sleep(0.02)
time.sleep(0.1)
"""


def test_links_that_are_due_together_take_turns(tmp_path: Path) -> None:
    """A fixed order makes the packets of the last path late by the writes of all others, each time."""
    every_20_ms = tmp_path / "every-20-ms"
    every_20_ms.write_text("20\n")
    names = [f"p{k}" for k in range(8)]
    paths = [word for name in names for word in path_option(name, every_20_ms)]
    result = run(*paths, "--log-dir", tmp_path / "logs", "--", sys.executable, "-c", SEND_ON_ALL)
    assert result.returncode == 0, result.stderr
    departed: dict[int, dict[str, int]] = {}  # by the time of the opportunity, when each path's packet left
    for name in names:
        for line in (tmp_path / "logs" / f"{name}.up.departures").read_text().splitlines():
            if not line.startswith("#"):
                scheduled, left, *_ = map(int, line.split())
                departed.setdefault(scheduled, {}).setdefault(name, left)
    together = [left for left in departed.values() if len(left) == len(names)]
    assert len(together) >= 20
    first = {min(left, key=left.__getitem__) for left in together}
    assert len(first) >= 4, f"{sorted(first)} alone are served first"
    assert any(left["p7"] < left["p0"] for left in together)


def test_ipv6_goes_over_the_path_of_its_source_address_and_is_quiet_otherwise(trace: Path, tmp_path: Path) -> None:
    if not socket.has_ipv6 or not Path("/proc/sys/net/ipv6").exists():
        pytest.skip("this kernel has no IPv6")
    summary = tmp_path / "summary.json"

    def answer() -> None:
        for _ in range(2):
            connection, _ = server.accept()
            with connection:
                connection.sendall(connection.recv(20))

    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as server:
        server.settimeout(20)
        server.bind(("::", 0))
        server.listen()
        thread = threading.Thread(target=answer)
        thread.start()
        paths = [*path_option("wifi", trace, 10), *path_option("lte", trace, 30), *path_option("idle", trace)]
        command = [sys.executable, "-c", ROUND_TRIP_6.replace("range(len(", "range(-1 + len("), str(port_of(server))]
        result = run(*paths, "--summary", summary, "--", *command)
        thread.join()
    assert result.returncode == 0, result.stderr
    wifi, lte = map(float, result.stdout.split())
    assert wifi >= 20
    assert lte >= 60
    loaded = summary_of(summary)["paths"]
    assert loaded[0]["inside_addr6"].startswith("fd6d:7073:6800:")
    assert loaded[0]["up"]["departed_packets"] >= 3
    assert loaded[1]["up"]["departed_packets"] >= 3
    assert loaded[2]["up"]["arrived_packets"] == loaded[2]["down"]["arrived_packets"] == 0


def port_of(server: socket.socket) -> int:
    port: int = server.getsockname()[1]
    return port


def test_a_configuration_file_makes_eight_paths_that_options_change(trace: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.json"
    config = tmp_path / "eight.yaml"
    config.write_text(
        f"summary: {summary}\nseed: 4\npaths:\n"
        + "".join(f"  - {{name: p{k}, up: {trace}, down: 12mbps, delay: {5 * k}}}\n" for k in range(8))
    )
    with served(echo) as port:
        ping = [sys.executable, "-c", PING, str(port), "3", "gateway"]
        result = run("--config", config, "--path", "p0:delay=50", "--", *ping)
    assert result.returncode == 0, result.stderr
    delays = [50, 5, 10, 15, 20, 25, 30, 35]
    for line, delay in zip(result.stdout.split(), delays, strict=True):
        assert 2 * delay <= float(line) <= 2 * delay + 20
    loaded = summary_of(summary)
    assert loaded["seed"] == 4
    assert [path["delay_ms"] for path in loaded["paths"]] == delays
    assert [path["down"]["trace"] for path in loaded["paths"]] == ["12mbps"] * 8


def test_environment_names_the_paths(trace: Path) -> None:
    result = run(*path_option("wifi", trace), *path_option("lte", trace), "--", "env")
    variables = dict(line.split("=", 1) for line in result.stdout.splitlines() if line.startswith("MPSHELL_"))
    assert variables["MPSHELL_PATHS"] == "wifi lte"
    assert variables["MPSHELL_PATH_1_NAME"] == "lte"
    assert variables["MPSHELL_GATEWAY"] == variables["MPSHELL_PATH_0_GATEWAY"]
    for i in (0, 1):
        gateway = variables[f"MPSHELL_PATH_{i}_GATEWAY"]
        assert variables[f"MPSHELL_PATH_{i}_ADDR"] == gateway.removesuffix(".1") + ".2"


def test_the_downlink_delivers_what_its_trace_has_and_exits_under_load(trace: Path, tmp_path: Path) -> None:
    paths = path_option("wifi", trace, 5, ",queue=droptail:packets=50")
    with served(flood) as port:
        command = [sys.executable, "-c", FLOOD_RECEIVER, str(port), "2"]
        result = run(*paths, "--log-dir", tmp_path / "logs", "--", *command)
    assert result.returncode == 0, result.stderr
    loaded = summary_of(tmp_path / "logs" / "mpshell.json")
    down = loaded["paths"][0]["down"]
    # One opportunity a ms over the whole run; the flood keeps the queue full while the receiver runs.
    assert down["opportunities"] == pytest.approx(loaded["duration_s"] * 1000, abs=2)
    assert down["departed_bytes"] <= 1504 * down["opportunities_used"]
    assert down["departed_bytes"] > 0.9 * 1504 * down["opportunities_used"]
    assert down["opportunities_used"] > 0.5 * down["opportunities"]
    assert down["queue_drops"] > 0
    lost = sum(down[key] for key in ("queue_drops", "random_losses", "oversize_drops", "memory_drops"))
    assert down["arrived_packets"] == down["departed_packets"] + lost + down["inside_packets"]
    check_log(tmp_path / "logs" / "wifi.down.log", down)


def check_log(path: Path, down: dict[str, Any]) -> None:
    """The log holds what the summary counts."""
    lines = path.read_text().splitlines()
    assert lines[0].startswith("# mahimahi mm-link (Downlink) [")
    assert lines[2] == "# queue: droptail [packets=50]"
    assert lines[4] == "# base timestamp: 0"
    events = [line.split() for line in lines[5:]]
    kinds = {kind: [event for event in events if event[1] == kind] for kind in "#+-d"}
    assert len(kinds["#"]) == down["opportunities"]
    assert [int(event[0]) for event in kinds["#"]] == list(range(1, down["opportunities"] + 1))
    assert len(kinds["-"]) == down["departed_packets"]
    assert sum(int(event[2]) for event in kinds["-"]) == down["departed_bytes"]
    assert sum(int(event[2]) for event in kinds["d"]) == down["queue_drops"]


def test_random_loss_is_the_same_for_the_same_seed(trace: Path, tmp_path: Path) -> None:
    send = """
import os, socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(200):
    s.sendto(b"x", (os.environ["MPSHELL_GATEWAY"], 9))
import time; time.sleep(0.3)
"""

    def losses(seed: int) -> int:
        summary = tmp_path / "summary.json"
        option = path_option("wifi", trace, 5, ",loss=0.3")
        assert run(*option, "--seed", str(seed), "--summary", summary, "--", sys.executable, "-c", send).returncode == 0
        up = summary_of(summary)["paths"][0]["up"]
        assert up["arrived_packets"] == 200
        assert int(up["departed_packets"]) + int(up["random_losses"]) == 200
        return int(up["random_losses"])

    assert losses(5) == losses(5)
    assert 30 <= losses(6) <= 90


def test_mptcp_uses_every_path(trace: Path, tmp_path: Path) -> None:
    size = 3_000_000
    try:
        server = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
    except OSError as problem:
        pytest.skip(f"this kernel has no MPTCP: {problem}")

    def send_all() -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"x" * size)

    with server:
        server.settimeout(20)
        server.bind(("0.0.0.0", 0))  # noqa: S104
        server.listen()
        thread = threading.Thread(target=send_all)
        thread.start()
        options = [*path_option("wifi", trace, 10), *path_option("lte", trace, 20), "--mptcp"]
        command = [sys.executable, "-c", MPTCP_CLIENT, str(server.getsockname()[1])]
        result = run(*options, "--summary", tmp_path / "summary.json", "--", *command)
        thread.join()
    assert result.stdout.strip() == str(size), result.stderr
    for path in summary_of(tmp_path / "summary.json")["paths"]:
        assert path["down"]["departed_bytes"] > 0.1 * size


def test_works_from_a_fresh_network_namespace_and_inside_another_mpshell(trace: Path) -> None:
    inner = [str(MPSHELL), *path_option("in-a", trace), *path_option("in-b", trace), "--"]
    echo_server = (
        "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('0.0.0.0', 7777));"
        "print('ready', flush=True)\nwhile True: d, a = s.recvfrom(2000); s.sendto(d, a)"
    )
    script = """
"$0" -c "$1" | { read ready; shift; "$@"; echo "status $?"; kill -TERM 0; }
"""
    client = [sys.executable, "-c", PING, "7777", "3", "gateway"]
    for outside in (["unshare", "--net"], [str(MPSHELL), *path_option("out", trace), "--"]):
        result = subprocess.run(
            [*outside, "setsid", "sh", "-c", script, sys.executable, echo_server, *inner, *client],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        lines = result.stdout.splitlines()
        assert lines[-1:] == ["status 0"], result.stderr
        assert len(lines) == 3
        assert all(10 <= float(line) < 60 for line in lines[:2])


# ---- bad input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "where"),
    [("1\n\n2\n", ":2: "), ("1\n2x\n", ":2: "), ("5\n4\n", ":2: "), ("0\n", ":1: "), ("", ":1: ")],
)
def test_a_malformed_trace_is_named_with_its_line(trace: Path, tmp_path: Path, content: str, where: str) -> None:
    bad = tmp_path / "bad.trace"
    bad.write_text(content)
    result = run("--path", f"wifi:up={trace},down={bad},delay=1", "--", "true")
    assert result.returncode == 2
    assert result.stderr.startswith(f"mpshell: {bad}{where}")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--path", "wifi:up=/no/such,down=/no/such,delay=1", "--", "true"], "/no/such: cannot read the trace"),
        (["--path", "wifi:up={trace},down={trace},delay=x", "--", "true"], "delay=x"),
        (["--path", "wifi:up={trace},down={trace},delay=1,queue=red", "--", "true"], 'unknown queue discipline "red"'),
        (["--path", "wifi:up={trace},down={trace},delay=1", "--bogus", "--", "true"], "unknown option '--bogus'"),
        (["--path", "wifi:up={trace},down={trace},delay=1"], "no command"),
        (["--", "true"], "no path"),
        (["--path", "wifi:up={trace},down={trace},delay=1", "--watch", "1", "--", "true"], "--watch needs --lateness"),
        (["--path", "wifi:up={trace},down={trace},delay=1", "--summary", "/no/such/dir/s", "--", "true"], "summary"),
        (["--path", "wifi:up={trace},down={trace},delay=1", "--log-dir", "/proc/x", "--", "true"], "log directory"),
    ],
)
def test_bad_input_ends_in_one_sentence(trace: Path, arguments: list[str], says: str) -> None:
    result = run(*[argument.replace("{trace}", str(trace)) for argument in arguments])
    assert result.returncode == 2
    assert result.stderr.startswith("mpshell: ")
    assert says in result.stderr
    assert result.stderr.count("\n") == 1


def test_without_permission_it_says_so(trace: Path) -> None:
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    if subprocess.run([*nobody, "test", "-x", str(MPSHELL)], check=False).returncode != 0:
        pytest.skip(f"an ordinary user cannot reach {MPSHELL}")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o755)
        copy = directory / "12mbps.trace"
        copy.write_bytes(trace.read_bytes())
        command = [*nobody, str(MPSHELL), *path_option("wifi", copy), "--", "true"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert result.returncode == 2
    assert result.stderr.startswith("mpshell: no permission for TUN")
    assert result.stderr.count("\n") == 1


def test_a_command_that_succeeded_ends_in_1_where_a_log_or_the_summary_is_incomplete(
    trace: Path, tmp_path: Path
) -> None:
    full = Path("/dev/full")
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "wifi.up.log").symlink_to(full)
    done = run(*path_option("wifi", trace), "--log-dir", str(logs), "--", "true")
    assert done.returncode == 1 and "a link log of path wifi is incomplete" in done.stderr
    assert run(*path_option("wifi", trace), "--log-dir", str(logs), "--", "sh", "-c", "exit 7").returncode == 7
    # What is no file is written to, and stays what it is.
    (tmp_path / "device").symlink_to(full)
    done = run(*path_option("wifi", trace), "--summary", str(tmp_path / "device"), "--", "true")
    assert done.returncode == 1 and "cannot write the summary" in done.stderr
    assert (tmp_path / "device").is_symlink()
