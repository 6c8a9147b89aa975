"""xlink-server when more clients come than it has room for, on loopback: each address of 127.0.0.0/8 is a client."""

import json
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from conftest import one_sentence, run_program
from quic_programs import Child, Server, events, read_jsonl
from railyard.base.paths import program
from waiting import wait_until


@contextmanager
def http1_server(folder: Path, *arguments: str) -> Iterator[tuple[int, Path]]:
    log = folder / "server.jsonl"
    with Child([program("xlink-server"), "--http1", "127.0.0.1:0", "--out", log, *arguments]) as server:
        yield int(json.loads(server.first_line)["http1"].rsplit(":", 1)[1]), log


class Visitors:
    """HTTP/1.1 connections, each from the address that it is given."""

    def __init__(self, port: int, stack: ExitStack) -> None:
        self.port = port
        self.stack = stack

    def come(self, address: str = "127.0.0.1") -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=10, source_address=(address, 0))
        return self.stack.enter_context(connection)


def ask(connection: socket.socket, method: str = "HEAD", path: str = "/synthetic/10") -> bytes:
    """The answer as far as it has come with its head; nothing when the server has closed the connection."""
    answer = b""
    try:
        connection.sendall(f"{method} {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
        while b"\r\n\r\n" not in answer and (piece := connection.recv(65536)):
            answer += piece
    except (ConnectionResetError, BrokenPipeError):
        return b""
    return answer


def is_served(connection: socket.socket) -> bool:
    return ask(connection).startswith(b"HTTP/1.1 200 ")


def test_the_connection_that_is_idle_longest_makes_room(tmp_path: Path) -> None:
    limits = ("--max-connections", "3", "--max-connections-per-address", "0")
    with http1_server(tmp_path, *limits) as (port, log), ExitStack() as stack:
        visitors = Visitors(port, stack)
        first, second, third = visitors.come(), visitors.come(), visitors.come()
        assert is_served(first) and is_served(second) and is_served(third) and is_served(first)
        fourth = visitors.come()
        assert is_served(fourth)
        assert ask(second) == b""
        assert is_served(first) and is_served(third)
    reasons = [record["reason"] for record in events(read_jsonl(log), "connection_closed")]
    assert reasons.count("made room for another") == 1


def test_an_address_at_its_limit_replaces_its_own(tmp_path: Path) -> None:
    limits = ("--max-connections", "8", "--max-connections-per-address", "2")
    with http1_server(tmp_path, *limits) as (port, _), ExitStack() as stack:
        visitors = Visitors(port, stack)
        other = visitors.come("127.0.0.2")
        assert is_served(other)
        mine = [visitors.come() for _ in range(3)]
        assert is_served(mine[1]) and is_served(mine[2])
        assert ask(mine[0]) == b""
        assert is_served(other)


def test_a_head_that_comes_in_drops_does_not_keep_others_out(tmp_path: Path) -> None:
    limits = ("--max-connections", "4", "--max-connections-per-address", "0")
    with http1_server(tmp_path, *limits) as (port, _), ExitStack() as stack:
        visitors = Visitors(port, stack)
        slow = [visitors.come("127.0.0.2") for _ in range(4)]
        for connection in slow:
            connection.sendall(b"GET / HTTP/1.1\r\nX: ")
        assert all(is_served(visitors.come()) for _ in range(4))


def test_without_anybody_idle_the_answer_is_503(tmp_path: Path) -> None:
    limits = ("--max-connections", "2", "--max-connections-per-address", "0")
    with http1_server(tmp_path, *limits) as (port, log), ExitStack() as stack:
        visitors = Visitors(port, stack)
        busy = [visitors.come() for _ in range(2)]
        for connection in busy:
            assert ask(connection, "GET", "/synthetic/1000000000").startswith(b"HTTP/1.1 200 ")
        assert visitors.come().recv(4096).startswith(b"HTTP/1.1 503 ")
    assert read_jsonl(log)[-1]["refused"] == 1


def test_a_quic_client_without_room_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "load.jsonl"

    def outcomes() -> Counter[str]:
        records = events(read_jsonl(log), "connection") if log.exists() else []
        return Counter(record["outcome"] for record in records)

    with Server(tmp_path, "--max-connections", "2", address="0.0.0.0") as server:  # noqa: S104
        command: list[str | Path] = [program("xlink-load"), "--server", f"127.0.0.1:{server.port}", "--insecure"]
        command += ["--path", "127.0.1.1/24", "--connections", "4", "--requests", "0", "--out", log]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as load:
            wait_until(lambda: sum(outcomes().values()) == 2, "no two connections ended")
            load.terminate()
        server.stop()
    assert outcomes()["closed_by_peer"] == 2 and sum(outcomes().values()) == 4
    [summary] = events(server.records(), "summary")
    assert summary["connections"] == 2
    assert summary["refused"] >= 2  # a client may repeat its first packet before the answer comes


@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["one process", "workers"])
def test_the_log_of_events_has_a_limit_and_still_ends_with_the_summary(
    tmp_path: Path, workers: tuple[str, ...]
) -> None:
    limit = 8192  # the first two records take some 4 kB
    with http1_server(tmp_path, "--out-bytes", str(limit), *workers) as (port, log), ExitStack() as stack:
        visitors = Visitors(port, stack)
        for _ in range(100):
            connection = visitors.come()
            assert is_served(connection)
            connection.close()
    records = read_jsonl(log)
    *before, _ = (len(line) + 1 for line in log.read_text(encoding="utf-8").splitlines())
    full = events(records, "log_full")
    processes = 1 + len(workers)  # each may add the record that reaches the limit, and the one that reports it
    assert 1 <= len(full) <= processes and {one["bytes"] for one in full} == {limit}
    assert limit <= sum(before) <= limit + 2 * processes * max(before)
    assert records[-1]["event"] == "summary" and records[-1]["connections"] == 100


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--max-connections", "0"),
        ("--max-connections", "many"),
        ("--max-connections", "1048577"),
        ("--max-connections-per-address", "-1"),
        ("--max-connections-per-address", "1048577"),
    ],
)
def test_bad_limits_end_in_one_sentence(option: str, value: str) -> None:
    command: list[str | Path] = [program("xlink-server"), "--quic", "127.0.0.1:0", option, value]
    one_sentence(run_program(command, timeout=20), option, value, program="xlink-server")


@pytest.mark.slow
def test_a_client_that_dribbles_its_request_is_dropped(tmp_path: Path) -> None:
    begin = time.monotonic()
    with http1_server(tmp_path) as (port, log):
        with socket.create_connection(("127.0.0.1", port), timeout=0.2) as connection:
            connection.sendall(b"GET /synthetic/10 HTTP/1.1\r\n")
            dropped = False
            while not dropped and time.monotonic() - begin < 30:
                try:
                    connection.sendall(b"X: y\r\n")  # progress does not buy more time
                    dropped = connection.recv(100) == b""
                except TimeoutError:
                    pass
                except OSError:
                    dropped = True
        assert dropped
    assert [record["reason"] for record in events(read_jsonl(log), "connection_closed")] == ["timed out"]
