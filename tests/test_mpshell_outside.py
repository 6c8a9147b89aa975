"""mpshell over two network namespaces that it does not make: no CAP_SYS_ADMIN, as in containers."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import good, run_program
from railyard.base.paths import programs_dir
from waiting import wait_until

pytestmark = pytest.mark.privileged

LIMIT_S = 30
# A network namespace, and in it no capability but CAP_NET_ADMIN.
NAMESPACE = ["unshare", "--net", "--"]
ONLY_NET_ADMIN = ["setpriv", "--pdeathsig=TERM", "--bounding-set=-all,+net_admin", "--inh-caps=-all", "--"]
PATHS = ["--path", "wifi:up=12mbps,down=12mbps,delay=10", "--path", "lte:up=12mbps,down=12mbps,delay=30"]

# A UDP echo server beside the lender, in its namespace.
ECHO = """
import socket, subprocess, sys, threading
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", 7007))
def echo():
    while True:
        data, peer = s.recvfrom(2000)
        s.sendto(data, peer)
threading.Thread(target=echo, daemon=True).start()
sys.exit(subprocess.run(sys.argv[1:]).returncode)
"""
# Round-trip times over each path, in ms.
PING = """
import os, socket, time
for i in range(2):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((os.environ[f"MPSHELL_PATH_{i}_ADDR"], 0))
    s.settimeout(5)
    best = 1e9
    for _ in range(5):
        begin = time.monotonic()
        s.sendto(b"x", (os.environ["MPSHELL_GATEWAY"], 7007))
        s.recv(2000)
        best = min(best, time.monotonic() - begin)
    print(best * 1000)
print([line.split()[1] for line in open("/proc/self/status") if line.startswith("CapPrm")][0])
"""


def mpshell() -> str:
    return str(programs_dir() / "mpshell")


@contextmanager
def lender(socket_file: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [*ONLY_NET_ADMIN, mpshell(), "--lend-outside", str(socket_file)]
    with subprocess.Popen([*NAMESPACE, sys.executable, "-c", ECHO, *command], stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.terminate()


def run_inside(socket_file: Path, *options: str, command: list[str]) -> subprocess.CompletedProcess[str]:
    line = [*NAMESPACE, *ONLY_NET_ADMIN, mpshell(), "--outside", str(socket_file), *PATHS, *options, "--", *command]
    return run_program(line, timeout=LIMIT_S)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_wait_for_the_other_side(tmp_path: Path, number: signal.Signals) -> None:
    command = [mpshell(), "--outside", str(tmp_path / "nobody"), *PATHS, "--", "true"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        status = Path(f"/proc/{process.pid}/status")
        blocked = re.compile(r"^SigBlk:\s0*[1-9a-f]", re.MULTILINE)
        wait_until(lambda: blocked.search(status.read_text()), "mpshell does not wait")
        process.send_signal(number)
        assert "no mpshell --lend-outside answers there" in process.communicate(timeout=LIMIT_S)[1]
    assert process.returncode == 2


def test_two_namespaces_are_joined_with_net_admin_alone(tmp_path: Path) -> None:
    socket_file, summary = tmp_path / "outside", tmp_path / "summary.json"
    with lender(socket_file) as other:
        done = good(run_inside(socket_file, "--summary", str(summary), command=[sys.executable, "-c", PING]))
        wifi, lte, capabilities = done.stdout.split()
        assert other.wait(LIMIT_S) == 0, "the lender ends with the borrower"
    assert 20 <= float(wifi) < 60, "the delay of its own path, both ways"
    assert 60 <= float(lte) < 100
    assert int(capabilities, 16) == 0, "the command gets no right over the namespace"
    written = json.loads(summary.read_text())
    assert [path["up"]["departed_packets"] for path in written["paths"]] == [5, 5]
    assert all(not any(path["device_drops"].values()) for path in written["paths"])
    assert not socket_file.exists()


def test_what_the_command_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    socket_file = tmp_path / "outside"
    with lender(socket_file):
        done = run_inside(socket_file, command=["sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo $!; exit 3"])
    assert done.returncode == 3
    assert not Path(f"/proc/{int(done.stdout)}").exists()


def test_signals_reach_the_command(tmp_path: Path) -> None:
    socket_file = tmp_path / "outside"
    script = "trap 'echo got; exit 7' TERM; echo ready; while :; do sleep 0.05; done"
    line = [*NAMESPACE, *ONLY_NET_ADMIN, mpshell(), "--outside", str(socket_file), *PATHS, "--", "sh", "-c", script]
    with lender(socket_file), subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout is not None
        assert shell.stdout.readline() == "ready\n"
        os.kill(shell.pid, signal.SIGTERM)
        assert shell.stdout.read() == "got\n"
        assert shell.wait(LIMIT_S) == 7


def test_a_reply_of_another_program_is_refused(tmp_path: Path) -> None:
    socket_file = tmp_path / "outside"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(socket_file))
        listener.listen(1)
        line = [*NAMESPACE, *ONLY_NET_ADMIN, mpshell(), "--outside", str(socket_file), *PATHS, "--", "true"]
        with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as shell:
            peer, _ = listener.accept()
            with peer:
                assert len(peer.recv(4096)) == 24
                socket.send_fds(peer, [b"junk"], [listener.fileno()] * 40)
            assert shell.stderr is not None
            assert "did not answer" in shell.stderr.read()
            assert shell.wait(LIMIT_S) == 2


def test_a_request_of_another_program_is_refused(tmp_path: Path) -> None:
    socket_file = tmp_path / "outside"
    with lender(socket_file) as other, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
        while other.poll() is None and peer.connect_ex(str(socket_file)) != 0:
            pass
        peer.send(b"\xff" * 16)
        assert b"not one of this version" in peer.recv(65536)
        assert other.wait(LIMIT_S) == 2
