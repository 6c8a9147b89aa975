"""xlink-balancer in front of several servers: real sockets on the loopback interface."""

import contextlib
import json
import random
import resource
import select
import signal
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from conftest import one_sentence, run_program
from quic_programs import Child, Server, events, read_jsonl
from railyard.base.paths import program
from test_deployment import (
    LB_CONFIG,
    busy_connections,
    end_endless,
    finish,
    garbage,
    outcomes,
    start_load,
)
from waiting import wait_until


class Balancer(Child):
    def __init__(self, folder: Path, config: Path, *arguments: str, port: int = 0) -> None:
        self.out = folder / "balancer.jsonl"
        command: list[str | Path] = [program("xlink-balancer"), "--listen", f"127.0.0.1:{port}"]
        super().__init__([*command, "--lb-config", config, "--out", self.out, *arguments])
        self.port = int(json.loads(self.first_line)["quic"].rsplit(":", 1)[1])

    def reload(self) -> None:
        before = self.reloads()
        self.process.send_signal(signal.SIGHUP)
        wait_until(lambda: self.reloads() > before, "the configuration was not read again")

    def reloads(self) -> int:
        return self.out.read_text().count('"event":"reload')

    def summary(self) -> dict[str, Any]:
        last: dict[str, Any] = read_jsonl(self.out)[-1]
        assert last["event"] == "summary"
        return last


def server_line(i: int, port: int, *, drain: bool = False) -> str:
    return f'  a{i + 1:03x}: {{address: "127.0.0.1:{port}", drain: {str(drain).lower()}}}\n'


class Site:
    """Servers with the IDs a001, a002, … and the configuration file that they share with their balancer."""

    def __init__(self, folder: Path, key: bool, head: str) -> None:
        self.folder = folder
        self.config = folder / "lb.yaml"
        self.servers: list[Server] = []
        self.base = head + (LB_CONFIG if key else LB_CONFIG.split("  key:")[0])
        self.config.write_text(self.base)

    def add_server(self, *arguments: str) -> None:
        server_id = f"a{len(self.servers) + 1:03x}"
        home = self.folder / server_id
        home.mkdir()
        given = ("--lb-config", str(self.config), "--server-id", server_id, "--scheme", "vanilla-mp", *arguments)
        self.servers.append(Server(home, *given))

    def publish(self, words: Sequence[str]) -> None:
        """Writes the list of servers; a word for each: "", "drain", or "gone"."""
        lines = [
            server_line(i, server.port, drain=word == "drain")
            for i, (server, word) in enumerate(zip(self.servers, words, strict=True))
            if word != "gone"
        ]
        self.config.write_text(self.base + "servers:\n" + "".join(lines))

    def busy(self) -> int:
        return sum(len(busy_connections(server)) for server in self.servers)

    def requests(self) -> list[int]:
        """Answered by each server so far; of a server with --workers, whose log is always up to date."""
        return [len(events(server.records(), "request")) for server in self.servers]

    def connections(self) -> list[int]:
        """Accepted by each server, each with both of its paths."""
        counts = []
        for server in self.servers:
            closed = events(server.records(), "connection_closed")
            assert all(len(record["paths"]) == 2 for record in closed)
            assert all(path["bytes_received"] > 0 for record in closed for path in record["paths"])
            assert server.records()[-1]["misrouted"] == 0
            counts.append(len(closed))
        return counts


@contextlib.contextmanager
def site(folder: Path, servers: int, *arguments: str, key: bool = True, head: str = "") -> Iterator[Site]:
    place = Site(folder, key, head)
    with contextlib.ExitStack() as stack:
        for _ in range(servers):
            place.add_server(*arguments)
            stack.enter_context(place.servers[-1])
        place.publish([""] * servers)
        yield place


@pytest.mark.parametrize("key", [True, False], ids=["encrypted", "plaintext"])
def test_both_paths_of_a_connection_reach_the_server_that_its_cid_names(tmp_path: Path, key: bool) -> None:
    with site(tmp_path, 2, "--workers", "2", key=key) as place:
        with Balancer(tmp_path, place.config) as balancer:
            assert finish(start_load(tmp_path, balancer.port, 60)) == 0
        assert outcomes(tmp_path) == {"complete": 60}
    counts = place.connections()
    assert sum(counts) == 60
    assert min(counts) > 10
    summary = balancer.summary()
    assert summary["routed_by_cid"] > summary["routed_by_hash"] > 0
    assert summary["dropped_malformed"] == 0  # half of the packets have no QUIC bit (RFC 9287)
    assert balancer.process.returncode == 0


def test_a_balancer_that_starts_again_loses_no_connection(tmp_path: Path) -> None:
    with site(tmp_path, 2, "--workers", "1") as place:
        with Balancer(tmp_path, place.config) as first:
            load = start_load(tmp_path, first.port, 20, "--requests", "0", "--pause-ms", "200", "--ping-ms", "100")
            wait_until(lambda: place.busy() == 20, "the clients do not come")
            first.process.kill()
        with Balancer(tmp_path, place.config, port=first.port) as second:
            before = sum(place.requests())
            wait_until(lambda: sum(place.requests()) >= before + 40, "the connections do not go on")
            assert end_endless(load) == 0
        assert outcomes(tmp_path) == {"complete": 20}
    assert sum(place.connections()) == 20
    assert second.summary()["routed_by_hash"] == 0  # it knows nothing of the handshakes, and needs to know nothing


def test_servers_come_and_go_without_harm_to_the_others(tmp_path: Path) -> None:
    with site(tmp_path, 3, "--workers", "1") as place:
        place.publish(["", "", "gone"])
        with Balancer(tmp_path, place.config) as balancer:
            load = start_load(tmp_path, balancer.port, 30, "--requests", "0", "--pause-ms", "200")
            wait_until(lambda: place.busy() == 30, "the clients do not come")
            place.publish(["drain", "", ""])
            balancer.reload()
            (tmp_path / "late").mkdir()
            late = start_load(tmp_path / "late", balancer.port, 30, "--seed", "1000")
            assert finish(late) == 0
            assert end_endless(load) == 0
            place.config.write_text(LB_CONFIG + "servers:\n  a001: {address: nowhere}\n")
            balancer.reload()
            assert finish(start_load(tmp_path, balancer.port, 5, "--seed", "2000")) == 0
        assert "lb.yaml, line 7: address takes ADDR:PORT with an IP address" in balancer.error_output
    first, second, third = place.connections()
    assert first + second + third == 65
    assert 0 < first <= 30 - 5  # of the first thirty only
    assert third > 5


def test_servers_are_silent_about_the_connections_of_one_that_was_taken_away(tmp_path: Path) -> None:
    """They share the secret, so one could make the other's reset tokens: for anybody who saw a connection ID."""
    secret = "secret: " + "5e" * 32 + "\n"
    with site(tmp_path, 2, "--workers", "1", head=secret) as place:
        with Balancer(tmp_path, place.config) as balancer:
            load = start_load(tmp_path, balancer.port, 20, "--requests", "0", "--pause-ms", "200", "--ping-ms", "50")
            wait_until(lambda: place.busy() == 20, "the clients do not come")
            assert len(busy_connections(place.servers[1])) > 0
            place.publish(["", "gone"])
            balancer.reload()
            before = place.requests()[0]
            still = len(busy_connections(place.servers[0]))
            wait_until(lambda: place.requests()[0] >= before + 5 * still, "the others do not go on")
            load.kill()
            finish(load)
        assert "stateless_reset" not in (tmp_path / "load.jsonl").read_text()
    stray = balancer.summary()["routed_by_hash"]
    assert stray > 80  # more than the handshakes': the lost clients went on asking, and were heard by the other server
    assert [server.records()[-1]["stateless_resets"] for server in place.servers] == [0, 0]


def placement(folder: Path, config: Path, servers: Sequence[socket.socket], cids: Sequence[bytes]) -> list[int]:
    """Which server each of these destination CIDs of a client's first datagram is sent to."""
    chosen = []
    with (
        Balancer(folder, config, "--probe-interval-ms", "0") as balancer,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
    ):
        for cid in cids:
            first = bytes([0xC0, 0, 0, 0, 1, len(cid)]) + cid
            client.sendto(first.ljust(1200, b"\0"), ("127.0.0.1", balancer.port))
            (receiver,), _, _ = select.select(servers, [], [], 20)
            assert receiver.recv(2000).startswith(first)
            chosen.append(servers.index(receiver))
    return chosen


def test_where_a_clients_first_datagrams_go_follows_from_the_secret_and_else_cannot_be_foretold(tmp_path: Path) -> None:
    config = tmp_path / "lb.yaml"
    cids = [bytes([0xE0]) + random.Random(i).randbytes(7) for i in range(64)]  # rotation 0b111: of no server
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(2)]
        lines = "servers:\n"
        for i, server in enumerate(servers):
            server.bind(("127.0.0.1", 0))
            lines += server_line(i, server.getsockname()[1])
        config.write_text("secret: " + "5e" * 32 + "\n" + LB_CONFIG + lines)
        shared = placement(tmp_path, config, servers, cids)
        assert set(shared) == {0, 1}
        assert placement(tmp_path, config, servers, cids) == shared
        config.write_text(LB_CONFIG + lines)
        drawn = placement(tmp_path, config, servers, cids)
        assert placement(tmp_path, config, servers, cids) != drawn


def test_garbage_and_forged_clients_neither_grow_the_table_nor_push_out_connections(tmp_path: Path) -> None:
    with (
        site(tmp_path, 2, "--workers", "1") as place,
        Balancer(tmp_path, place.config, "--max-flows", "80") as balancer,
    ):
        load = start_load(tmp_path, balancer.port, 10, "--requests", "0", "--pause-ms", "100")
        wait_until(lambda: place.busy() == 10 and sum(place.requests()) >= 40, "the clients do not come")
        rng = random.Random(5)
        for _ in range(300):  # each from an address of its own
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                first = bytes([0xC0, 0, 0, 0, 1, 8]) + rng.randbytes(8) + bytes([8]) + rng.randbytes(1200)
                for datagram in [first, *(garbage(rng) for _ in range(5))]:
                    sender.sendto(datagram, ("127.0.0.1", balancer.port))
        descriptors = len(list(Path(f"/proc/{balancer.process.pid}/fd").iterdir()))
        assert descriptors < 80 + 20
        before = sum(place.requests())  # a path that began late is established, too, once it was used
        wait_until(lambda: sum(place.requests()) >= before + 100, "the clients do not go on")
        assert end_endless(load) == 0
    assert outcomes(tmp_path) == {"complete": 10}
    summary = balancer.summary()
    assert summary["dropped_malformed"] > 0
    assert summary["dropped_small"] > 0
    flows = summary["flows"]
    assert flows["now"] <= 80
    assert flows["evicted"] > 100
    assert flows["established"] >= 20


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        (LB_CONFIG, [], ["no server under servers"]),
        (LB_CONFIG + "servers:\n  a1: {address: 127.0.0.1:1}\n", [], ["line 7", "4 hexadecimal digits"]),
        ("[config]\nrotation = 1\n", [], ["lb.yaml, line 1", "YAML now", "write [config] as 'configs:"]),
        (None, [], ["lb.yaml", "No such file"]),
        (LB_CONFIG, ["--bogus"], ["unknown option '--bogus'"]),
        (LB_CONFIG, ["--idle-timeout", "86401"], ["--idle-timeout takes a whole number from 1 to 86400, not '86401'"]),
        (LB_CONFIG, ["--max-flows", "0"], ["--max-flows", "from 1"]),
        (LB_CONFIG, ["--listen", "here"], ["--listen takes ADDR:PORT"]),
        (LB_CONFIG + "servers:\n" + server_line(0, 1), ["--listen", "203.0.113.1:1"], ["cannot listen"]),
        (LB_CONFIG, ["--out", "/no/such/dir/x"], ["cannot write /no/such/dir/x"]),
    ],
)
def test_a_balancer_that_cannot_start_says_why(
    tmp_path: Path, text: str | None, arguments: list[str], words: list[str]
) -> None:
    config = tmp_path / "lb.yaml"
    if text is not None:
        config.write_text(text)
    command: list[str | Path] = [
        program("xlink-balancer"),
        "--listen",
        "127.0.0.1:0",
        "--lb-config",
        config,
        *arguments,
    ]
    one_sentence(run_program(command, timeout=20), *words, program="xlink-balancer")


def connect_all(folder: Path, balancer: Balancer, name: str) -> dict[str, int]:
    """20 new clients, one after the other, and how they ended."""
    home = folder / name
    home.mkdir()
    finish(start_load(home, balancer.port, 20, "--interval-us", "20000", "--time-limit", "15"))
    return outcomes(home)


def states(balancer: Balancer) -> list[tuple[str, str]]:
    """The balancer's events: event and server ID."""
    records = read_jsonl(balancer.out)
    return [(record["event"], record["server"]) for record in records if record["event"].startswith("server_")]


def test_new_clients_do_not_go_to_a_server_that_was_killed(tmp_path: Path) -> None:
    with site(tmp_path, 2) as place, Balancer(tmp_path, place.config, "--probe-interval-ms", "2000") as balancer:
        assert connect_all(tmp_path, balancer, "both") == {"complete": 20}
        place.servers[1].process.kill()
        assert connect_all(tmp_path, balancer, "one") == {"complete": 20}
        assert states(balancer) == [("server_down", "a002")]


def test_new_clients_do_not_go_to_a_server_that_is_silent_until_it_speaks_again(tmp_path: Path) -> None:
    with site(tmp_path, 2) as place, Balancer(tmp_path, place.config, "--probe-interval-ms", "200") as balancer:
        place.servers[0].process.send_signal(signal.SIGSTOP)
        wait_until(lambda: ("server_down", "a001") in states(balancer), "the silence is not noticed")
        assert connect_all(tmp_path, balancer, "one") == {"complete": 20}
        place.servers[0].process.send_signal(signal.SIGCONT)
        wait_until(lambda: ("server_up", "a001") in states(balancer), "its return is not noticed")
        assert connect_all(tmp_path, balancer, "both") == {"complete": 20}
    assert min(place.connections()) > 0


def test_a_server_that_is_down_stays_down_when_the_file_is_read_again(tmp_path: Path) -> None:
    with site(tmp_path, 2) as place, Balancer(tmp_path, place.config, "--probe-interval-ms", "20000") as balancer:
        place.servers[0].process.kill()
        place.servers[0].process.wait()
        assert connect_all(tmp_path, balancer, "before") == {"complete": 20}
        assert states(balancer) == [("server_down", "a001")]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:  # no ICMP error reports that it is gone
            silent.bind(("127.0.0.1", place.servers[0].port))
            balancer.reload()
            assert connect_all(tmp_path, balancer, "after") == {"complete": 20}


def sockets(process: Child) -> int:
    return len(list(Path(f"/proc/{process.process.pid}/fd").iterdir()))


def test_with_all_servers_down_all_get_new_clients(tmp_path: Path) -> None:
    with (
        site(tmp_path, 2) as place,
        Balancer(tmp_path, place.config, "--probe-interval-ms", "200") as balancer,
        contextlib.ExitStack() as stack,
    ):
        for server in place.servers:
            server.process.send_signal(signal.SIGSTOP)
            stack.callback(server.process.send_signal, signal.SIGCONT)
        wait_until(lambda: len(states(balancer)) == 2, "the silence is not noticed")
        before = sockets(balancer)
        load = start_load(tmp_path, balancer.port, 20, "--time-limit", "20")
        wait_until(lambda: sockets(balancer) >= before + 20, "nothing is forwarded")
        stack.close()
        assert finish(load) == 0
        assert outcomes(tmp_path) == {"complete": 20}


def test_forged_clients_leave_room_for_others_where_descriptors_are_few(tmp_path: Path) -> None:
    with (
        site(tmp_path, 1) as place,
        Balancer(tmp_path, place.config) as balancer,
        contextlib.ExitStack() as stack,
    ):
        resource.prlimit(balancer.process.pid, resource.RLIMIT_NOFILE, (64, 64))
        place.servers[0].process.send_signal(signal.SIGSTOP)  # it answers none of them
        for number in range(100):
            forged = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            first = bytes([0xC0, 0, 0, 0, 1, 8]) + number.to_bytes(8, "big")
            forged.sendto(first.ljust(1200, b"\0"), ("127.0.0.1", balancer.port))
        wait_until(lambda: sockets(balancer) == 64, "descriptors are left")
        balancer.reload()
        assert events(read_jsonl(balancer.out), "reload_failed") == []
        wait_until(lambda: states(balancer) == [("server_down", "a001")], "the server is not asked")
        place.servers[0].process.send_signal(signal.SIGCONT)
        assert finish(start_load(tmp_path, balancer.port, 2, "--time-limit", "10")) == 0
