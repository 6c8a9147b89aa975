"""mpshell's tools and faults: control socket, captures, exact times, live view, offloads, kills at any moment."""

import itertools
import json
import os
import pty
import random
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import dpkt
import pytest

from conftest import good, run_program
from mpshell_program import (
    FLOOD_RECEIVER,
    MPSHELL,
    TIMEOUT_S,
    devices,
    echo,
    flood,
    path_option,
    processes_with,
    pytestmark,
    run,
    served,
    summary_of,
    trace,
)
from railyard.run.fidelity import judge
from waiting import wait_until

__all__ = ["pytestmark", "trace"]
LINKTYPE_RAW = 101
CONTROL_CLIENT = MPSHELL.parent / "mpshell-ctl"
FLOW = MPSHELL.parent / "udp-flow"
SEND = "{flow} send --to $MPSHELL_GATEWAY:{port} --bind $MPSHELL_PATH_0_ADDR:0 --rate {rate} --duration {seconds}"
ECHO_TIMES = """
import os, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((os.environ["MPSHELL_PATH_0_ADDR"], 0))
s.settimeout(0.5)
s.connect((os.environ["MPSHELL_GATEWAY"], int(sys.argv[1])))
for line in sys.stdin:
    start = time.monotonic()
    s.send(b"x")
    try:
        s.recv(100)
        print((time.monotonic() - start) * 1000, flush=True)
    except TimeoutError:
        print("lost", flush=True)
"""


def sink(seconds: float = 30) -> tuple[subprocess.Popen[str], int]:
    process = subprocess.Popen(
        [FLOW, "sink", "--bind", "0.0.0.0:0", "--duration", str(seconds)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())["port"]


def sunk(process: subprocess.Popen[str]) -> dict[str, Any]:
    process.terminate()
    loaded: dict[str, Any] = json.loads(process.communicate(timeout=TIMEOUT_S)[0])
    return loaded


# ---- control socket ----------------------------------------------------------------------------------------------


@contextmanager
def controlled(trace: Path, tmp_path: Path, port: int) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """An mpshell whose command measures a round trip for every line that it reads."""
    place = tmp_path / "control"
    command: list[str | Path] = [
        MPSHELL,
        *path_option("wifi", trace),
        "--control",
        place,
        "--summary",
        tmp_path / "summary.json",
    ]
    with subprocess.Popen(
        [*command, "--", sys.executable, "-c", ECHO_TIMES, str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as shell:
        try:
            wait_until(place.exists, "the control socket")
            yield shell, place
        finally:
            shell.kill()


def round_trip(shell: subprocess.Popen[str]) -> float | None:
    assert shell.stdin is not None
    assert shell.stdout is not None
    shell.stdin.write("now\n")
    shell.stdin.flush()
    line = shell.stdout.readline().strip()
    return None if line == "lost" else float(line)


def tell(place: Path, *command: str) -> tuple[int, dict[str, Any]]:
    result = run_program([CONTROL_CLIENT, place, *command], timeout=10)
    loaded: dict[str, Any] = json.loads(result.stdout)
    return result.returncode, loaded


def test_an_experiment_scripts_events_through_the_control_socket(trace: Path, tmp_path: Path) -> None:
    with served(echo) as port, controlled(trace, tmp_path, port) as (shell, place):
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        assert 10 <= (round_trip(shell) or 0) < 60
        assert tell(place, "delay", "wifi:down", "60")[0] == 0
        assert (round_trip(shell) or 0) >= 65
        assert tell(place, "down", "wifi")[0] == 0
        assert round_trip(shell) is None
        assert tell(place, "up", "wifi")[0] == 0
        assert (round_trip(shell) or 0) >= 65
        assert tell(place, "loss", "wifi:up", "1")[0] == 0
        assert round_trip(shell) is None
        assert tell(place, "loss", "wifi:up", "0")[0] == 0
        assert tell(place, "rate", "wifi", "0.2mbps")[0] == 0  # an opportunity every 60 ms
        assert round_trip(shell) is not None
        status, answer = tell(place, "stats")
        assert status == 0
        assert answer["paths"][0]["up"]["random_losses"] == 1
        assert answer["paths"][0]["up"]["off_losses"] == 1
        assert answer["paths"][0]["down"]["departed_packets"] == 4
        shell.communicate(timeout=TIMEOUT_S)
        assert shell.returncode == 0
        assert not place.exists()
    events = summary_of(tmp_path / "summary.json")["events"]
    assert [event["command"] for event in events] == [
        "delay wifi:down 60",
        "down wifi",
        "up wifi",
        "loss wifi:up 1",
        "loss wifi:up 0",
        "rate wifi 0.2mbps",
    ]
    assert all(early["t_s"] < late["t_s"] for early, late in itertools.pairwise(events))


def test_bad_commands_are_refused_and_do_no_harm(trace: Path, tmp_path: Path) -> None:
    bad = [
        "fly",
        "",
        "down",
        "down sea",
        "delay wifi",
        "delay wifi -1",
        "delay wifi 1 2",
        "loss wifi 2",
        "up wifi:left",
    ]
    bad += ["trace wifi /dev/zero", "trace wifi /no/such", f"trace wifi {__file__}", "rate wifi 0mbps", "stats wifi"]
    bad += ["cross wifi much", "cross wifi 1mbps", "cross wifi:up 1mbps"]  # its queue has no limit
    rng = random.Random(5)
    with served(echo) as port, controlled(trace, tmp_path, port) as (shell, place):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(place))
            answers = client.makefile("r")
            for command in bad:
                client.sendall(command.encode() + b"\n")
                answer = json.loads(answers.readline())
                assert answer["ok"] is False, command
                assert answer["error"]
            client.sendall(b"\xff\xfe \0 down wifi\n" + b"\xff\n")
            assert json.loads(answers.readline())["ok"] is False
            assert json.loads(answers.readline())["ok"] is False
            client.sendall(b"x" * 3000)
            assert "longer" in json.loads(answers.readline())["error"]
        crowd = []
        for _ in range(40):  # more than there is room for; they send junk and go or stay
            one = socket.socket(socket.AF_UNIX)
            one.settimeout(5)
            crowd.append(one)
            try:
                one.connect(str(place))
                one.sendall(rng.randbytes(rng.randrange(1, 900)))
            except OSError:  # turned away
                continue
        for one in crowd:
            one.close()
        wait_until(lambda: refused_or(place, "stats") == 0, "mpshell to answer again")
        deaf = socket.socket(socket.AF_UNIX)
        deaf.connect(str(place))
        deaf.settimeout(1)
        with pytest.raises(OSError):  # it never reads: it is cut off
            for _ in range(100_000):
                deaf.sendall(b"stats\n" * 50)
        deaf.close()
        assert 10 <= (round_trip(shell) or 0) < 60
        shell.communicate(timeout=TIMEOUT_S)
        assert shell.returncode == 0


def refused_or(place: Path, command: str) -> int:
    return subprocess.run([CONTROL_CLIENT, place, command], capture_output=True, timeout=10, check=False).returncode


def test_a_socket_that_a_killed_mpshell_left_is_replaced_and_a_living_one_is_not(trace: Path, tmp_path: Path) -> None:
    with served(echo) as port:
        with controlled(trace, tmp_path, port) as (shell, place):
            other = run(*path_option("wifi", trace), "--control", place, "--", "true")
            assert other.returncode == 2
            assert "another program listens there" in other.stderr
            shell.kill()
            shell.wait(TIMEOUT_S)
        assert place.exists()
        assert run(*path_option("wifi", trace), "--control", place, "--", "true").returncode == 0
        assert not place.exists()
        place.write_text("precious")
        assert run(*path_option("wifi", trace), "--control", place, "--", "true").returncode == 2
        assert place.read_text() == "precious"


# ---- records -----------------------------------------------------------------------------------------------------


def test_captures_and_exact_times_agree_with_the_log(trace: Path, tmp_path: Path) -> None:
    receiver, port = sink()
    send = SEND.format(flow=FLOW, port=port, rate="15e6", seconds=0.5) + " --segment"
    option = path_option("wifi", trace, 5, ",queue=droptail:packets=20")
    result = run(*option, "--log-dir", tmp_path, "--pcap", tmp_path / "pcap", "--", "sh", "-c", f"{send}; sleep 0.1")
    delivered = sunk(receiver)["datagrams"]
    assert result.returncode == 0, result.stderr
    up = summary_of(tmp_path / "mpshell.json")["paths"][0]["up"]
    assert up["queue_drops"] > 0
    assert up["departed_packets"] == delivered
    lines = [line.split() for line in (tmp_path / "wifi.up.log").read_text().splitlines()]
    logged = [(int(words[0]), int(words[2])) for words in lines if words[1:2] == ["-"] and words[0] != "#"]
    exact = [
        tuple(map(int, line.split()))
        for line in (tmp_path / "wifi.up.departures").read_text().splitlines()
        if not line.startswith("#")
    ]
    assert [(departed // 1000, size) for _, departed, _, size in exact] == logged
    assert all(arrived < scheduled <= departed for scheduled, departed, arrived, _ in exact)
    assert all(scheduled % 1000 == 0 for scheduled, _, _, _ in exact)
    entered, left = (packets_of(tmp_path / "pcap" / f"wifi.{side}.pcap") for side in ("inside", "outside"))
    assert len(entered) == up["arrived_packets"]
    assert len(left) == delivered
    assert set(left) <= set(entered)
    late = [left[number] - entered[number] for number in left]
    assert min(late) > 0.005
    assert sorted(left) == [number for number in entered if number in left]


def packets_of(file: Path) -> dict[int, float]:
    """Times of the datagrams by their number. Every checksum must be right."""
    found: dict[int, float] = {}
    with file.open("rb") as opened:
        reader = dpkt.pcap.Reader(opened)
        assert reader.datalink() == LINKTYPE_RAW
        for at, data in reader:
            packet = dpkt.ip.IP(data)
            assert len(data) == packet.len == 1500
            pseudo = packet.src + packet.dst + b"\0\x11" + len(packet.data).to_bytes(2, "big")
            assert dpkt.in_cksum(pseudo + bytes(packet.data)) == 0
            assert dpkt.in_cksum(data[:20]) == 0
            found[int.from_bytes(packet.data.data[:8], sys.byteorder)] = float(at)
    return found


def test_a_capture_keeps_as_much_of_a_packet_as_asked(trace: Path, tmp_path: Path) -> None:
    send = SEND.format(flow=FLOW, port=9, rate="10e6", seconds=0.1)
    arguments: list[str | Path] = ["--pcap", tmp_path, "--pcap-snaplen", "60", "--", "sh", "-c", f"{send}; sleep 0.1"]
    assert run(*path_option("wifi", trace), *arguments).returncode == 0
    with (tmp_path / "wifi.inside.pcap").open("rb") as opened:
        sizes = {(len(data), dpkt.ip.IP(data).len) for _, data in dpkt.pcap.Reader(opened) if data[9] == 17}
    assert sizes == {(60, 1500)}


def test_live_draws_on_a_terminal_and_writes_lines_elsewhere(trace: Path) -> None:
    options = [str(MPSHELL), *path_option("wifi", trace), "--live", "--", "sleep", "1.3"]
    plain = good(run_program(options, timeout=TIMEOUT_S))
    assert plain.stdout == ""
    awake, *lines = plain.stderr.splitlines()
    assert awake.startswith("mpshell: ")
    assert "the cores awake; " in awake
    assert [line.startswith("mpshell 1.0 s  wifi") for line in lines] == [True]
    assert "\033" not in plain.stderr
    child, terminal = pty.fork()
    if child == 0:
        os.execv(options[0], options)  # noqa: S606
    output = b""
    while select.select([terminal], [], [], TIMEOUT_S)[0]:
        try:
            output += os.read(terminal, 4096)
        except OSError:
            break
    os.close(terminal)
    os.waitpid(child, 0)
    assert output.count(b"\033[2A") >= 3  # drawn again in place


# ---- offloads ----------------------------------------------------------------------------------------------------

RECEIVE = """
import hashlib, os, socket, sys
s = socket.create_connection((os.environ["MPSHELL_GATEWAY" + sys.argv[2]], int(sys.argv[1])), 20)
sent = bytes(range(256)) * 8000
s.sendall(sent)
s.shutdown(socket.SHUT_WR)
got = hashlib.sha256()
while data := s.recv(65536):
    got.update(data)
print(got.hexdigest() == hashlib.sha256(sent).hexdigest())
"""


@pytest.mark.parametrize(("family", "suffix"), [(socket.AF_INET, ""), (socket.AF_INET6, "6")])
@pytest.mark.parametrize("more", [[], ["--no-offload"]])
def test_tcp_arrives_whole_in_packets_of_the_wire(
    trace: Path, tmp_path: Path, family: socket.AddressFamily, suffix: str, more: list[str]
) -> None:
    if family == socket.AF_INET6 and not Path("/proc/sys/net/ipv6").exists():
        pytest.skip("this kernel has no IPv6")

    def echo_all() -> None:
        connection, _ = server.accept()
        with connection:
            while data := connection.recv(1 << 20):
                connection.sendall(data)

    with socket.socket(family, socket.SOCK_STREAM) as server:
        server.settimeout(20)
        server.bind(("", 0))
        server.listen()
        thread = threading.Thread(target=echo_all)
        thread.start()
        options = ["--path", "wifi:up=200mbps,down=200mbps,delay=2", "--summary", str(tmp_path / "s.json"), *more]
        result = run(*options, "--", sys.executable, "-c", RECEIVE, str(server.getsockname()[1]), suffix)
        thread.join()
    assert result.stdout.strip() == "True", result.stderr
    path = summary_of(tmp_path / "s.json")["paths"][0]
    for way in ("up", "down"):
        assert path[way]["oversize_drops"] == path[way]["queue_drops"] == path[way]["write_errors"] == 0
        assert path[way]["departed_packets"] > 256 * 8000 / 1448  # none was longer than a packet
    assert set(path["device_drops"].values()) == {0}


@pytest.mark.parametrize("more", [[], ["--no-offload"]])
def test_super_packets_of_datagrams_take_an_opportunity_each(tmp_path: Path, more: list[str]) -> None:
    receiver, port = sink()
    send = SEND.format(flow=FLOW, port=port, rate="200e6", seconds=0.3) + " --segment"
    arguments: list[str | Path] = ["--path", "wifi:up=100mbps,down=1mbps,delay=1,queue=droptail:packets=500", *more]
    arguments += ["--summary", tmp_path / "s.json"]
    result = run(*arguments, "--", "sh", "-c", f"{send}; sleep 0.2")
    received = sunk(receiver)
    up = summary_of(tmp_path / "s.json")["paths"][0]["up"]
    sent = json.loads(result.stdout)
    assert up["arrived_packets"] == sent["sent"] - sent["errors"]
    assert up["queue_drops"] > 0
    assert up["departed_packets"] == up["opportunities_used"] == received["datagrams"]
    assert received["bytes"] == received["datagrams"] * 1472


# ---- faults ------------------------------------------------------------------------------------------------------


def test_exits_under_full_downlink_load_every_time(tmp_path: Path) -> None:
    option = ["--path", "wifi:up=50mbps,down=400mbps,delay=1,queue=droptail:packets=100"]
    for _ in range(20):
        with served(flood) as port:
            command = [sys.executable, "-S", "-c", FLOOD_RECEIVER, str(port), "0.05"]
            with subprocess.Popen([MPSHELL, *option, "--summary", tmp_path / "s.json", "--", *command]) as shell:
                assert shell.wait(10) == 0
            assert not devices_of(shell)
            assert summary_of(tmp_path / "s.json")["paths"][0]["down"]["arrived_packets"] > 0


def devices_of(*shells: subprocess.Popen[Any]) -> set[str]:
    prefixes = tuple(f"mp{shell.pid % 100000}-" for shell in shells)
    return {name for name in devices() if name.startswith(prefixes)}


def test_killed_at_any_moment_it_leaves_nothing_for_the_next_start(trace: Path, tmp_path: Path) -> None:
    killed = []
    place = tmp_path / "control"
    mark = f"9{os.getpid()}.5"
    command: list[str | Path] = [MPSHELL, *path_option("a", trace), *path_option("b", trace), "--control", place]
    command += ["--log-dir", tmp_path, "--", "sleep", mark]
    for moment_ms in (0, 3, 8, 15, 25, 40, 60, 90, 130, 200):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as shell:
            time.sleep(moment_ms / 1000)
            shell.send_signal(signal.SIGKILL)
            killed.append(shell)
    wait_until(lambda: not devices_of(*killed), "all devices to be gone")
    wait_until(lambda: not processes_with(f"sleep\0{mark}"), "all processes to be gone")
    good(run(*path_option("a", trace), "--control", place, "--", "true"))
    assert not place.exists()


NAT = """
set -e
ip link set lo up; ip addr add 10.99.0.1/32 dev lo
echo 1 >/proc/sys/net/ipv4/ip_forward
{flow} echo --bind 10.99.0.1:7000 --duration 20 >/dev/null & echo=$!
outer="--path out:up=12mbps,down=12mbps,delay=20"
inner="--path in:up=12mbps,down=12mbps,delay=10"
{mpshell} $outer --nat -- sleep 9 & killed=$!
until iptables -t nat -S | grep -q mpshell; do sleep 0.05; done
kill -KILL $killed
wait $killed || true
iptables -t nat -S | grep -c mpshell
{mpshell} $outer --nat -- {mpshell} $inner --nat -- {flow} ping --to 10.99.0.1:7000 --count 2
{{ iptables -t nat -S; iptables -S; ip6tables -t nat -S; }} | grep mpshell || echo clean
kill $echo
"""


def test_nat_reaches_beyond_nested_shells_and_cleans_up_after_a_killed_one() -> None:
    if shutil.which("iptables") is None:
        pytest.skip("needs iptables")
    script = NAT.format(flow=FLOW, mpshell=MPSHELL)
    result = run_program(["unshare", "--net", "sh", "-c", script], timeout=TIMEOUT_S)
    if "iptables" in result.stderr:
        pytest.skip(f"iptables does not work here: {result.stderr}")
    lines = result.stdout.splitlines()
    assert len(lines) == 4, result.stderr
    assert lines[0] == "1"
    for line in lines[1:3]:
        assert 60e6 <= int(line.split()[1]) < 1e9  # ns: both shells, both ways; a busy machine takes longer
    assert lines[3] == "clean"


HOG = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(90))
print("ready", flush=True)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    busy = time.monotonic() + 0.008
    while time.monotonic() < busy:
        pass
    time.sleep(0.008)
"""
STARVE = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(90))
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    pass
"""
BUSY = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
print("ready", flush=True)
while True:
    pass
"""


@contextmanager
def hogged(program: str, cores: list[int]) -> Iterator[None]:
    """A program that keeps its core busy, on each of the cores."""
    with ExitStack() as stack:
        for core in cores:
            command = [sys.executable, "-c", program, str(core), "3"]
            hog = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            stack.callback(hog.kill)
            if hog.stdout is None or hog.stdout.readline() != "ready\n":
                pytest.skip("real-time priority is not permitted here")
        yield


def pinned(core: int, trace: Path, tmp_path: Path, command: str) -> None:
    """mpshell on one core; the command is not bound to it."""
    shell: list[str | Path] = ["taskset", "-c", str(core), MPSHELL, *path_option("wifi", trace)]
    shell += ["--log-dir", tmp_path, "--summary", tmp_path / "s.json"]
    everywhere = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    inner = ["taskset", "-c", everywhere, "sh", "-c", command]
    subprocess.run([*shell, "--", *inner], check=True, capture_output=True, timeout=TIMEOUT_S)


def lateness_in_departures(file: Path) -> list[int]:
    """Departed - scheduled of every packet, us."""
    rows = [line.split() for line in file.read_text().splitlines() if not line.startswith("#")]
    return [max(0, int(row[1]) - int(row[0])) for row in rows]


def assert_the_verdict_is_what_was_measured(tmp_path: Path) -> bool:
    """The verdict agrees with the lateness of every single packet. Returns whether the run is void."""
    summary = summary_of(tmp_path / "s.json")
    void = False
    for way in ("up", "down"):
        link = summary["paths"][0][way]
        late = sorted(lateness_in_departures(tmp_path / f"wifi.{way}.departures"))
        over = sum(us > 1000 for us in late)
        assert (link["lateness_us"]["count"], link["lateness_us"]["over_1ms"]) == (len(late), over)
        assert link["lateness_us"]["max"] == max(late, default=0)
        void |= over > 0.01 * len(late) or link["missed"] > max(3, 0.001 * link["opportunities"])
    void |= any(summary["paths"][0]["device_drops"].values())
    assert judge(summary).void == void, (judge(summary), summary)
    return void


def test_a_run_that_did_not_get_its_processor_is_void(trace: Path, tmp_path: Path) -> None:
    core = min(os.sched_getaffinity(0))
    with hogged(HOG, [core]):
        pinned(core, trace, tmp_path, SEND.format(flow=FLOW, port=9, rate="11e6", seconds=0.6))
    assert assert_the_verdict_is_what_was_measured(tmp_path)
    reasons = judge(summary_of(tmp_path / "s.json")).reasons
    assert any("late" in reason or "missed" in reason for reason in reasons)


def test_a_run_that_was_starved_for_a_moment_is_void(trace: Path, tmp_path: Path) -> None:
    """Only the hog runs on mpshell's core for 0.2 s during the flow."""
    core, *others = sorted(os.sched_getaffinity(0))
    if not others:
        pytest.skip("needs a second core, for the sender")
    send = SEND.format(flow=FLOW, port=9, rate="11e6", seconds=0.6)
    starve = f"{sys.executable} -c '{STARVE}' {core} 0.2"
    script = f"taskset -c {others[0]} {send} & sleep 0.1; {starve}; starved=$?; wait; exit $starved"
    pinned(core, trace, tmp_path, script)
    assert assert_the_verdict_is_what_was_measured(tmp_path)


@pytest.mark.parametrize("load", [BUSY, HOG], ids=["ordinary", "real-time"])
def test_the_verdict_says_what_load_on_the_other_cores_did(trace: Path, tmp_path: Path, load: str) -> None:
    core, *others = sorted(os.sched_getaffinity(0))
    if not others:
        pytest.skip("needs a second core, to keep it busy")
    with hogged(load, others):
        pinned(core, trace, tmp_path, SEND.format(flow=FLOW, port=9, rate="11e6", seconds=0.6))
    assert_the_verdict_is_what_was_measured(tmp_path)
