"""mpshell's links as programs inside see them: real namespaces, real TUN devices, real sockets."""

import hashlib
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from conftest import good, run_program
from mpshell_program import (
    FLOOD_RECEIVER,
    MPSHELL,
    TIMEOUT_S,
    echo,
    flood,
    path_option,
    pytestmark,
    run,
    served,
    summary_of,
    trace,
)

__all__ = ["pytestmark", "trace"]

IPPROTO_MPTCP = 262
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
MPTCP_CLIENT = """
import os, socket, sys
s = socket.socket(socket.AF_INET6 if sys.argv[2] else socket.AF_INET, socket.SOCK_STREAM, 262)
s.settimeout(20)
s.connect((os.environ["MPSHELL_GATEWAY" + sys.argv[2]], int(sys.argv[1])))
n = 0
while data := s.recv(65536):
    n += len(data)
print(n)
"""


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
    """With a fixed order, the packets of the last path would always be late by the writes of all others."""
    every_20_ms = tmp_path / "every-20-ms"
    every_20_ms.write_text("20\n")
    names = [f"p{k}" for k in range(8)]
    paths = [word for name in names for word in path_option(name, every_20_ms)]
    good(run(*paths, "--log-dir", tmp_path / "logs", "--", sys.executable, "-c", SEND_ON_ALL))
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
    """The log and the summary have the same counts."""
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


@pytest.mark.parametrize("version", ["", "6"])
def test_mptcp_uses_every_path(trace: Path, tmp_path: Path, version: str) -> None:
    size = 3_000_000
    family, everywhere = (socket.AF_INET6, "::") if version else (socket.AF_INET, "0.0.0.0")  # noqa: S104
    try:
        server = socket.socket(family, socket.SOCK_STREAM, IPPROTO_MPTCP)
    except OSError as problem:
        pytest.skip(f"this kernel has no MPTCP: {problem}")

    def send_all() -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"x" * size)

    with server:
        server.settimeout(20)
        server.bind((everywhere, 0))
        server.listen()
        thread = threading.Thread(target=send_all)
        thread.start()
        options = [*path_option("wifi", trace, 10), *path_option("lte", trace, 20), "--mptcp"]
        command = [sys.executable, "-c", MPTCP_CLIENT, str(server.getsockname()[1]), version]
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
        result = run_program(
            [*outside, "setsid", "sh", "-c", script, sys.executable, echo_server, *inner, *client], timeout=TIMEOUT_S
        )
        lines = result.stdout.splitlines()
        assert lines[-1:] == ["status 0"], result.stderr
        assert len(lines) == 3
        assert all(10 <= float(line) < 60 for line in lines[:2])
