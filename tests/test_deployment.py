"""Several worker processes, reload, and what is left of a worker that died: real sockets on the loopback interface."""

import json
import os
import random
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from conftest import one_sentence, run_program
from quic_programs import Server, events, read_jsonl
from railyard.base.paths import program
from waiting import is_running, wait_until

WORKERS = 4
UDP_SEGMENT = 103  # linux/udp.h


def load_command(folder: Path, port: int, connections: int, *arguments: str) -> list[str | Path]:
    """Clients with two paths each: client i sends from 127.1.x.y and from 127.2.x.y."""
    command: list[str | Path] = [program("xlink-load"), "--server", f"127.0.0.1:{port}"]
    command += ["--path", "127.1.0.1/16", "--path", "127.2.0.1/16", "--connections", str(connections)]
    return [*command, "--insecure", "--time-limit", "110", "--out", folder / "load.jsonl", *arguments]


def start_load(folder: Path, port: int, connections: int, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(load_command(folder, port, connections, *arguments), stdout=subprocess.PIPE)


def finish(load: subprocess.Popen[bytes], limit_s: float = 120) -> int:
    try:
        load.communicate(timeout=limit_s)
    finally:
        load.kill()
    return load.returncode


def end_endless(load: subprocess.Popen[bytes]) -> int:
    """Ends a load with --requests 0: each connection finishes its current request."""
    assert load.poll() is None, "the load was over before it was told to end"
    load.terminate()
    return finish(load)


def busy_connections(server: Server) -> set[int]:
    """Those that have made a request; of a server with --workers, whose log is always up to date."""
    return {record["conn"] for record in events(server.records(), "request")}


def outcomes(folder: Path) -> dict[str, int]:
    counts: dict[str, int] = events(read_jsonl(folder / "load.jsonl"), "summary")[0]["outcomes"]
    return {name: count for name, count in counts.items() if count}


def workers_of(server: Server) -> dict[int, int]:
    """The newest process of each worker."""
    return {record["worker"]: record["pid"] for record in events(server.records(), "worker_started")}


def ip_of(address: str) -> str:
    return address.rsplit(":", 1)[0]


def check_one_worker_each(server: Server, connections: int) -> dict[str, Any]:
    """Both paths of each client, by their addresses, were seen by one connection of one worker; the summary."""
    worker_of_client: dict[str, int] = {}
    closed = events(server.records(), "connection_closed")
    assert len(closed) == connections
    for record in closed:
        assert record["multipath"]
        clients = {ip_of(path["remote"]).split(".", 2)[2] for path in record["paths"]}
        networks = sorted(ip_of(path["remote"]).rsplit(".", 2)[0] for path in record["paths"])
        assert networks == ["127.1", "127.2"]
        assert all(path["bytes_received"] > 0 for path in record["paths"])
        assert len(clients) == 1, "one client's paths in two connections"
        worker_of_client[clients.pop()] = record["worker"]
    assert len(worker_of_client) == connections
    assert set(worker_of_client.values()) == set(range(WORKERS))
    summary = server.records()[-1]
    assert summary["event"] == "summary"
    assert summary["connections"] == connections
    assert summary["misrouted"] == 0
    assert summary["forwarded"] == 0
    assert sum(worker["connections"] for worker in summary["workers"]) == connections
    return summary


def run_against_workers(folder: Path, connections: int, *server_arguments: str) -> dict[str, Any]:
    with Server(folder, "--workers", str(WORKERS), "--scheme", "vanilla-mp", *server_arguments) as server:
        load = start_load(folder, server.port, connections)
        assert finish(load) == 0
        assert outcomes(folder) == {"complete": connections}
    assert server.process.returncode == 0
    return check_one_worker_each(server, connections)


LB_CONFIG = """\
configs:
- rotation: 1
  server_id_bytes: 2
  nonce_bytes: 6
  key: 8f95f09245765f80256934e50c66207f
"""


def test_each_connection_stays_with_one_worker_whatever_address_it_sends_from(tmp_path: Path) -> None:
    run_against_workers(tmp_path, 200)


def test_the_kernel_finds_the_worker_beside_an_encrypted_server_id(tmp_path: Path) -> None:
    (tmp_path / "lb.yaml").write_text(LB_CONFIG)
    run_against_workers(tmp_path, 60, "--lb-config", str(tmp_path / "lb.yaml"), "--server-id", "a001")


def test_the_answer_to_a_retry_reaches_the_worker_that_sent_it(tmp_path: Path) -> None:
    summary = run_against_workers(tmp_path, 60, "--retry-above", "0")
    assert summary["retries"] >= 60


@pytest.mark.long
def test_a_thousand_connections_stay_with_their_workers(tmp_path: Path) -> None:
    run_against_workers(tmp_path, 1000)


def test_reload_under_load_loses_no_connection(tmp_path: Path) -> None:
    params = tmp_path / "params.yaml"
    params.write_text("t_th1_ms: 100\n")
    with Server(
        tmp_path, "--workers", str(WORKERS), "--scheme", "xlink", "--params", str(params), "--t-th2-ms", "2000"
    ) as server:
        load = start_load(tmp_path, server.port, 60, "--scheme", "xlink", "--requests", "0", "--pause-ms", "200")
        wait_until(lambda: len(busy_connections(server)) == 60, "the clients do not come")
        for i in range(5):
            params.write_text(f"t_th1_ms: {200 + i}\nreinjection: {('stream', 'frame', 'none')[i % 3]}\ncc: newreno\n")
            server.process.send_signal(signal.SIGHUP)

            def reloaded(threshold: float = 200.0 + i) -> bool:
                done = [r for r in events(server.records(), "reloaded") if r["t_th1_ms"] == threshold]
                return len(done) == WORKERS + 1  # the parent, too

            wait_until(reloaded, "not all processes have the new parameters")
        params.write_text("t_th1_ms: 7\nt_th2_ms: fast\n")
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: bool(events(server.records(), "reload_failed")), "a bad file went unnoticed")
        assert end_endless(load) == 0
        assert outcomes(tmp_path) == {"complete": 60}
    assert server.process.returncode == 0
    assert not [r for r in events(server.records(), "reloaded") if r["t_th1_ms"] == 7]
    sentences = server.error_output.strip().splitlines()
    assert len(sentences) == 1
    assert f"{params}, line 2" in sentences[0]
    # If the file has no value, the command line's is used again.
    assert events(server.records(), "reloaded")[-1]["t_th2_ms"] == 2000


def test_a_killed_worker_loses_only_its_own_connections_and_they_hear_of_it(tmp_path: Path) -> None:
    connections = 80
    with Server(tmp_path, "--workers", str(WORKERS), "--scheme", "vanilla-mp") as server:
        arguments = ("--requests", "0", "--pause-ms", "200", "--ping-ms", "300")
        load = start_load(tmp_path, server.port, connections, *arguments)
        wait_until(lambda: len(busy_connections(server)) == connections, "the clients do not come")
        of_victim = {r["conn"] for r in events(server.records(), "request") if r["worker"] == 1}
        victim = workers_of(server)[1]
        os.kill(victim, signal.SIGKILL)

        def lost() -> list[dict[str, Any]]:
            records = events(read_jsonl(tmp_path / "load.jsonl"), "connection")
            return [record for record in records if record["outcome"] != "complete"]

        wait_until(lambda: len(lost()) >= len(of_victim), "the lost connections hear nothing")
        end_endless(load)
        newest = workers_of(server)
        assert newest[1] != victim
    clients = outcomes(tmp_path)
    assert clients == {"complete": connections - len(of_victim), "stateless_reset": len(of_victim)}
    assert of_victim
    assert all(record["duration_s"] < 60 for record in lost())  # the idle timeout would be 120 s
    ended = next(r for r in events(server.records(), "worker_ended") if r["pid"] == victim)
    assert ended["signal"] == signal.SIGKILL
    assert server.process.returncode == 0
    assert not any(is_running(pid) for pid in newest.values()), "a worker outlived the server"


def test_workers_end_with_their_parent_however_it_ends(tmp_path: Path) -> None:
    with Server(tmp_path, "--workers", "3") as server:
        pids = workers_of(server).values()
        server.process.kill()
        server.process.wait()
        wait_until(lambda: not any(is_running(pid) for pid in pids), "workers without a parent")


def garbage(rng: random.Random) -> bytes:
    """Datagrams that look more or less like QUIC: any bytes, cut-off long headers, CIDs of all lengths."""
    kind = rng.randrange(4)
    if kind == 0:
        return rng.randbytes(rng.randrange(1, 100))
    if kind == 1:
        header = bytes([0xC0 | rng.randrange(64), 0, 0, 0, 1, rng.randrange(256)])
        return (header + rng.randbytes(1300))[: rng.randrange(1, 1300)]
    if kind == 2:
        cid = rng.randbytes(rng.randrange(8, 21))
        return bytes([0xC0, 0, 0, 0, 1, len(cid)]) + cid + bytes([8]) + rng.randbytes(1200)
    return bytes([0x40 | rng.randrange(64)]) + rng.randbytes(rng.randrange(20, 60))


def send_garbage(port: int, count: int, seed: int) -> None:
    rng = random.Random(seed)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(count):
            sender.sendto(garbage(rng), ("127.0.0.1", port))


def test_garbage_disturbs_no_worker(tmp_path: Path) -> None:
    with Server(tmp_path, "--workers", str(WORKERS), "--scheme", "vanilla-mp") as server:
        load = start_load(tmp_path, server.port, 20, "--requests", "3", "--pause-ms", "100")
        for seed in range(10):
            send_garbage(server.port, 500, seed)
        assert finish(load) == 0
    summary = server.records()[-1]
    assert summary["misrouted"] == 0
    assert summary["connections"] == 20
    assert not events(server.records(), "worker_ended")[WORKERS:], "a worker died"


def test_what_reaches_a_wrong_worker_is_passed_on_and_answered_by_the_right_one(tmp_path: Path) -> None:
    # One segmented send: the kernel looks at the first datagram only, though each has a CID of its own.
    datagrams, size = 20, 60
    rng = random.Random(1)
    with Server(tmp_path, "--workers", str(WORKERS)) as server:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.connect(("127.0.0.1", server.port))
            sender.settimeout(10)
            sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, size)
            # Rotation 0 and server ID 0: CIDs of this server, of any of its workers.
            heads = [bytes([0x40, rng.randrange(32), 0]) for _ in range(datagrams)]
            sender.send(b"".join(head + rng.randbytes(size - len(head)) for head in heads))
            resets = [sender.recv(2048) for _ in range(datagrams)]
        assert all(21 <= len(reset) < size for reset in resets)
    summary = server.records()[-1]
    assert summary["stateless_resets"] == datagrams
    assert summary["misrouted"] == summary["forwarded"] > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--workers", "0"], ["--workers", "from 1 to 64"]),
        (["--workers", "two"], ["--workers"]),
        (["--lb-config", "FILE"], ["--server-id"]),
        (["--lb-config", "FILE", "--server-id", "a0"], ["4 hexadecimal digits", "lb.yaml"]),
        (["--lb-config", "/no/such/file", "--server-id", "a0"], ["/no/such/file"]),
        (["--params", "/no/such/file"], ["/no/such/file"]),
        (["--params", "FILE"], ["lb.yaml, line 1", "'configs' is not a parameter"]),
        (["--workers", "2", "--quic", "[::1]:0"], ["a second --quic does not go with --workers"]),
    ],
)
def test_a_deployment_that_cannot_be_is_told_in_one_sentence(
    tmp_path: Path, arguments: list[str], words: list[str]
) -> None:
    config = tmp_path / "lb.yaml"
    config.write_text(LB_CONFIG)
    given: list[Any] = [config if argument == "FILE" else argument for argument in arguments]
    done = run_program([program("xlink-server"), "--quic", "127.0.0.1:0", *given], timeout=20)
    one_sentence(done, *words, program="xlink-server")


def test_workers_that_cannot_listen_are_told_in_one_sentence() -> None:
    done = run_program([program("xlink-server"), "--quic", "203.0.113.1:0", "--workers", "2"], timeout=20)
    one_sentence(done, "203.0.113.1", program="xlink-server")


def test_all_workers_serve_http_1(tmp_path: Path) -> None:
    with Server(tmp_path, "--workers", "2", "--http1", "127.0.0.1:0") as server:
        port = int(json.loads(server.first_line)["http1"].rsplit(":", 1)[1])
        for _ in range(5):
            with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
                client.sendall(b"GET /synthetic/1000 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                answer = b""
                while piece := client.recv(4096):
                    answer += piece
                assert answer.startswith(b"HTTP/1.1 200") and len(answer.split(b"\r\n\r\n", 1)[1]) == 1000
    assert server.records()[-1]["connections"] == 5
