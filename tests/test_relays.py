"""The behaviour of all relays: a pair of relays on the loopback interface, between two plain sockets."""

import contextlib
import hashlib
import json
import os
import random
import resource
import select
import selectors
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from railyard.base.errors import UserError
from railyard.experiment.stacks import StackRun, resolve_stack
from railyard.run.runspec import CERTIFICATE_FILE, KEY_FILE, certificate_command

STACKS = ("libxlink", "tcp", "mptcp", "quic-go", "noq", "tquic", "quiche", "s2n-quic", "picoquic", "xquic")
ELSEWHERE = ("picoquic", "xquic")  # no registry brings these: PICOQUIC_DIR and XQUIC_DIR name builds of them
LIMIT_S = 60.0
BUFFERED = 40_000_000  # no stack and its relays hold more of one stream


def stack(name: str, options: dict[str, str] | None = None) -> StackRun:
    try:
        return resolve_stack(name, options or {}, Path())
    except UserError as error:
        if os.environ.get("RAILYARD_REQUIRE_PEERS") == "1" and name not in ELSEWHERE:
            raise
        pytest.skip(f"{name} is not built: {error}")


def free_port() -> int:
    """A port free for UDP and TCP, below the system's ephemeral ports, so that no other program gets it meanwhile."""
    for port in random.sample(range(20000, 32000), 100):
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
            socket.socket() as streams,
        ):
            datagrams.bind(("127.0.0.1", port))
            streams.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


class Relays:
    """Both relays, and the upstream server at the other end of the connection."""

    def __init__(self, run: StackRun, folder: Path, link: Callable[[int], int] | None = None) -> None:
        """link: from the port of the server's relay to the port that the client's relay gets."""
        self.multipath, self.socket_file = run.multipath, folder / "socket"
        self.upstream = socket.create_server(("127.0.0.1", 0))
        self.upstream.settimeout(LIMIT_S)
        subprocess.run(certificate_command(folder), check=True, capture_output=True)
        port = free_port()
        words = ["--listen", f"127.0.0.1:{port}", "--upstream", f"127.0.0.1:{self.upstream.getsockname()[1]}"]
        if run.certificate:
            words += ["--certificate", str(folder / CERTIFICATE_FILE), "--key", str(folder / KEY_FILE)]
        self.server = self._start([*run.server, *words])
        port = link(port) if link else port
        words = ["--socket", str(self.socket_file), "--server", f"127.0.0.1:{port}"]
        self.client = self._start([*run.client, *words, "--path", "a:127.0.0.1", "--path", "b:127.0.0.2"])

    def _start(self, command: list[str]) -> subprocess.Popen[str]:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "ready"
        return process

    def connect(self) -> socket.socket:
        local = socket.socket(socket.AF_UNIX)
        local.settimeout(LIMIT_S)
        local.connect(str(self.socket_file))
        return local

    def accept(self) -> socket.socket:
        far, _ = self.upstream.accept()
        far.settimeout(LIMIT_S)
        return far

    def stop(self) -> list[dict[str, Any]]:
        """Ends both with SIGTERM; the client's records."""
        outputs = []
        for process in (self.client, self.server):
            process.send_signal(signal.SIGTERM)
            outputs.append(process.communicate(timeout=LIMIT_S)[0])
            assert process.returncode == 0
        return [json.loads(line) for line in outputs[0].splitlines()]

    def end(self) -> None:
        for process in (self.client, self.server):
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()
        self.upstream.close()


@pytest.fixture(params=STACKS)
def relays(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Relays]:
    pair = Relays(stack(request.param), tmp_path)
    try:
        yield pair
    finally:
        pair.end()


def read_all(near: socket.socket) -> bytes:
    pieces = []
    while piece := near.recv(1 << 16):
        pieces.append(piece)
    return b"".join(pieces)


def in_background(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_the_end_of_one_direction_leaves_the_other_open(relays: Relays) -> None:
    sent, answer = random.Random(1).randbytes(3_000_000), random.Random(2).randbytes(5_000_000)
    digests: list[str] = []

    def serve() -> None:
        with relays.accept() as far:
            digests.append(hashlib.sha256(read_all(far)).hexdigest())  # until our end
            far.sendall(answer)

    server = in_background(serve)
    with relays.connect() as near:
        near.sendall(sent)
        near.shutdown(socket.SHUT_WR)
        assert read_all(near) == answer
    server.join(LIMIT_S)
    assert digests == [hashlib.sha256(sent).hexdigest()]


def test_streams_are_carried_side_by_side(relays: Relays) -> None:
    def serve() -> None:
        with relays.accept() as far:
            far.sendall(read_all(far)[::-1])

    def ask(seed: int) -> bool:
        data = random.Random(seed).randbytes(200_000)
        with relays.connect() as near:
            near.sendall(data)
            near.shutdown(socket.SHUT_WR)
            return read_all(near) == data[::-1]

    servers = [in_background(serve) for _ in range(20)]
    with ThreadPoolExecutor(20) as pool:
        assert all(pool.map(ask, range(20)))
    for server in servers:
        server.join(LIMIT_S)


def test_a_reader_that_stops_stops_its_writer_and_loses_nothing(relays: Relays) -> None:
    data = random.Random(3).randbytes(1 << 20)
    written, stalled, total = [0], threading.Event(), 2 * BUFFERED

    def serve() -> None:
        with relays.accept() as far:
            far.recv(2)
            far.settimeout(1.5)
            while written[0] < total:
                try:
                    written[0] += far.send(data[written[0] % len(data) :][: total - written[0]])
                except TimeoutError:
                    stalled.set()
                    far.settimeout(LIMIT_S)

    server = in_background(serve)
    with relays.connect() as near:
        near.sendall(b"go")
        assert stalled.wait(LIMIT_S), "the writer never had to wait"
        assert written[0] < BUFFERED
        checksum, received = hashlib.sha256(), 0
        while piece := near.recv(1 << 16):
            checksum.update(piece)
            received += len(piece)
    server.join(LIMIT_S)
    assert received == total
    expected = hashlib.sha256()
    for _ in range(total // len(data)):
        expected.update(data)
    expected.update(data[: total % len(data)])
    assert checksum.hexdigest() == expected.hexdigest()


def test_a_client_that_breaks_off_ends_the_upstream_connection(relays: Relays) -> None:
    near = relays.connect()
    near.sendall(b"go")
    with relays.accept() as far:
        assert far.recv(2) == b"go"
        far.sendall(bytes(100_000))
        near.close()
        with pytest.raises(ConnectionError):
            for _ in range(10_000):
                far.sendall(bytes(65_536))


def test_an_upstream_connection_that_breaks_off_ends_the_clients(relays: Relays) -> None:
    with relays.connect() as near:
        near.sendall(b"go")
        far = relays.accept()
        far.recv(2)
        far.sendall(bytes(1000))
        far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")  # a reset
        far.close()
        with contextlib.suppress(ConnectionError):
            assert len(read_all(near)) <= 1000
    with relays.connect() as near:  # and the relay goes on
        near.sendall(b"again")
        with relays.accept() as far:
            assert far.recv(5) == b"again"


# All but mptcp, which is tcp's program.
@pytest.mark.parametrize("relays", [name for name in STACKS if name != "mptcp"], indirect=True)
@pytest.mark.parametrize("side", ["client", "server"])
def test_a_relay_without_descriptors_refuses_a_connection_and_goes_on(relays: Relays, side: str) -> None:
    pid = getattr(relays, side).pid
    with relays.connect() as first:
        first.sendall(b"go")
        with relays.accept() as far:
            assert far.recv(2) == b"go"
            few = len(list(Path(f"/proc/{pid}/fd").iterdir()))
            _, most = resource.prlimit(pid, resource.RLIMIT_NOFILE)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (few, most))
            with relays.connect() as refused, contextlib.suppress(ConnectionError):
                refused.sendall(b"go")
                assert read_all(refused) == b""  # a relay that tries again and again leaves it waiting
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, most))
            far.sendall(b"still here")
            assert first.recv(100) == b"still here"
    with relays.connect() as near:
        near.sendall(b"again")
        with relays.accept() as far:
            assert far.recv(5) == b"again"


# MPTCP finds no second path on the loopback interface.
@pytest.mark.parametrize("relays", [name for name in STACKS if name not in ("tcp", "mptcp")], indirect=True)
def test_the_records_say_what_each_path_carried(relays: Relays) -> None:
    def serve() -> None:
        with relays.accept() as far:
            far.recv(2)
            far.sendall(bytes(20_000_000))

    server = in_background(serve)
    with relays.connect() as near:
        near.sendall(b"go")
        assert len(read_all(near)) == 20_000_000
    server.join(LIMIT_S)
    records = relays.stop()
    assert [record["event"] for record in records[-2:]] == ["path", "closed"]
    paths = {record["name"]: record for record in records if record["event"] == "path"}
    assert {name: record["state"] for name, record in paths.items()} == dict.fromkeys(
        ["a", "b"] if relays.multipath else ["a"], "active"
    )
    assert sum(record["bytes_received"] for record in paths.values()) > 20_000_000
    assert all(record["bytes_sent"] > 0 for record in paths.values())
    assert paths["a"]["srtt_us"]  # XQUIC does not report it for other paths


@pytest.mark.long
@pytest.mark.parametrize("relays", ["xquic", "picoquic"], indirect=True)
def test_a_handshake_survives_a_silence_of_eleven_seconds(relays: Relays) -> None:
    """The server has answered, and hears nothing: the link is dark. XQUIC by itself forgets the client after 10 s."""
    relays.server.send_signal(signal.SIGSTOP)
    with relays.connect() as near:
        near.sendall(b"go")
        select.select([], [], [], 0.5)  # the first datagram waits for the server
        relays.client.send_signal(signal.SIGSTOP)
        relays.server.send_signal(signal.SIGCONT)
        select.select([], [], [], 11)
        relays.client.send_signal(signal.SIGCONT)
        with relays.accept() as far:
            assert far.recv(2) == b"go"


Lose = Callable[[bytes, Any, bool], bool]  # a datagram, the client's address, whether it goes to the server


@contextlib.contextmanager
def carried(server_port: int, lose: Lose) -> Iterator[int]:
    """Forwards datagrams to a server and back, except for those to be lost. Yields its own port."""
    ends: dict[Any, socket.socket] = {}  # by the client's address: the socket that stands for it
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as front,
        contextlib.ExitStack() as stack,
        selectors.DefaultSelector() as ready,
    ):
        front.bind(("127.0.0.1", 0))
        wake, stop = socket.socketpair()
        stack.enter_context(wake)
        ready.register(wake, selectors.EVENT_READ)
        ready.register(front, selectors.EVENT_READ)

        def end_of(client: Any) -> socket.socket:
            if client not in ends:
                ends[client] = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                ends[client].connect(("127.0.0.1", server_port))
                ready.register(ends[client], selectors.EVENT_READ, client)
            return ends[client]

        def carry() -> None:
            while True:
                for key, _ in ready.select():
                    if key.fileobj is wake:
                        return
                    with contextlib.suppress(ConnectionRefusedError):  # at the end the server is gone first
                        if key.fileobj is not front:
                            data = ends[key.data].recv(1 << 16)
                            if not lose(data, key.data, False):
                                front.sendto(data, key.data)
                            continue
                        data, client = front.recvfrom(1 << 16)
                        if not lose(data, client, True):
                            end_of(client).send(data)

        carrier = in_background(carry)
        try:
            yield front.getsockname()[1]
        finally:
            stop.close()
            carrier.join(LIMIT_S)


def dark_primary_path(server_port: int) -> contextlib.AbstractContextManager[int]:
    """Loses what the client sends from 127.0.0.1."""
    return carried(server_port, lambda _, client, to_server: to_server and client[0] == "127.0.0.1")


class Unconfirmed:
    """Loses datagrams of the server with nothing but 1-RTT packets (RFC 9000, section 17.3), so that the client's
    handshake completes and is not confirmed, until they may come through."""

    def __init__(self) -> None:
        self.may_confirm = threading.Event()
        self.lost = threading.Semaphore(0)

    def __call__(self, datagram: bytes, client: Any, to_server: bool) -> bool:
        is_lost = not to_server and datagram[0] & 0x80 == 0 and not self.may_confirm.is_set()
        if is_lost:
            self.lost.release()
        return is_lost


@pytest.mark.parametrize("begin", ["confirmed", "complete"])
def test_picoquic_begins_when_its_handshake_is_confirmed_or_complete(tmp_path: Path, begin: str) -> None:
    run, lose = stack("picoquic", {"begin": begin}), Unconfirmed()
    with contextlib.ExitStack() as exits:
        pair = Relays(run, tmp_path, lambda port: exits.enter_context(carried(port, lose)))
        exits.callback(pair.end)
        near = exits.enter_context(pair.connect())
        near.sendall(b"go")
        if begin == "confirmed":
            for _ in range(3):  # the server repeats what the client does not acknowledge
                assert lose.lost.acquire(timeout=LIMIT_S)
            assert select.select([pair.upstream], [], [], 0)[0] == []
            lose.may_confirm.set()
        with pair.accept() as far:
            assert far.recv(2) == b"go"
            lose.may_confirm.set()
            far.sendall(bytes(100_000))
            far.shutdown(socket.SHUT_WR)
            assert len(read_all(near)) == 100_000


@pytest.mark.parametrize(
    ("scheme", "words"),
    [
        ("sp", ("--reconnect-ms", "100")),
        ("vanilla-mp", ("--reconnect-ms", "100")),
        ("vanilla-mp", ("--reconnect", "off", "--race-ms", "50")),
    ],
)
def test_the_control_tries_another_path_where_the_first_one_stays_silent(
    tmp_path: Path, scheme: str, words: tuple[str, ...]
) -> None:
    run = resolve_stack("libxlink", {"scheme": scheme}, Path())
    run = run.model_copy(update={"client": (*run.client, *words)})
    with contextlib.ExitStack() as stack:
        pair = Relays(run, tmp_path, lambda port: stack.enter_context(dark_primary_path(port)))
        stack.callback(pair.end)
        with pair.connect() as near:
            near.settimeout(10)
            near.sendall(b"go")
            with pair.accept() as far:
                assert far.recv(2) == b"go"
                far.sendall(bytes(100_000))
                far.shutdown(socket.SHUT_WR)
                assert len(read_all(near)) == 100_000
        paths = {record["name"]: record for record in pair.stop() if record["event"] == "path"}
        assert paths["b"]["bytes_received"] > 100_000
