"""File descriptors, of which a process has a limited number: what clients can make xlink-server hold of them."""

import asyncio
import json
import socket
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from quic_programs import Child
from railyard.base.paths import program
from slow_readers import slow_readers

FEW = 96  # descriptors that the server may have
OF_ITSELF = 24  # those it needs without any client: sockets, logs, the root
KEPT_OPEN = 64  # of files that are being read
FILES = 100
FILE_BYTES = 100_000


class FileServer(Child):
    def __init__(self, folder: Path, descriptors: int, *arguments: str | Path) -> None:
        root = folder / "root"
        root.mkdir()
        for number in range(FILES):
            (root / f"{number}.bin").write_bytes(bytes([number]) * FILE_BYTES)
        command: list[str | Path] = ["prlimit", f"--nofile={descriptors}:{descriptors}", program("xlink-server")]
        command += ["--quic", "127.0.0.1:0", "--http1", "127.0.0.1:0", "--root", root, *arguments]
        super().__init__(command)
        ports = json.loads(self.first_line)
        self.quic, self.http1 = (int(ports[name].rsplit(":", 1)[1]) for name in ("quic", "http1"))

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))


def fetch(port: int, path: str) -> bytes:
    """The complete HTTP/1.1 answer. Empty if the server does not answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        try:
            while piece := connection.recv(65536):
                answer += piece
        except (TimeoutError, ConnectionResetError):
            pass
        return answer


def test_responses_that_nobody_reads_hold_no_descriptors(tmp_path: Path) -> None:
    async def attack(server: FileServer) -> tuple[Counter[bytes], int, bytes]:
        async with slow_readers(server.quic, 14) as readers:
            for reader in readers:
                await reader.ask([f"/{number}.bin" for number in range(FILES)])
            async with slow_readers(server.quic, 1) as (honest,):
                await honest.ask(["/1.bin"])
                statuses = Counter(answer[b":status"] for reader in [*readers, honest] for answer in reader.answers)
            return statuses, server.descriptors(), await asyncio.to_thread(fetch, server.http1, "/7.bin")

    with FileServer(tmp_path, FEW) as server:
        statuses, held, answer = asyncio.run(attack(server))
        assert statuses == {b"200": 1401}
        assert held <= OF_ITSELF + KEPT_OPEN
        assert answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(bytes([7]) * FILE_BYTES)


def test_a_qlog_holds_no_descriptor(tmp_path: Path) -> None:
    async def attack(server: FileServer) -> int:
        async with slow_readers(server.quic, 40) as readers:
            await readers[-1].ask(["/1.bin"])
            return server.descriptors()

    qlogs = tmp_path / "qlogs"
    with FileServer(tmp_path, FEW, "--qlog-dir", qlogs) as server:
        assert asyncio.run(attack(server)) <= OF_ITSELF
    written = [file.read_text(encoding="utf-8") for file in qlogs.iterdir()]
    assert len(written) == 40
    for text in written:
        records = [json.loads(line) for line in text.split("\x1e")[1:]]
        assert "connection_closed" in records[-1]["name"] or len(records) > 10


def test_without_a_descriptor_left_the_longest_idle_makes_room(tmp_path: Path) -> None:
    with FileServer(tmp_path, 40) as server, ExitStack() as stack:
        for _ in range(60):
            idle = stack.enter_context(socket.create_connection(("127.0.0.1", server.http1), timeout=10))
        assert fetch(server.http1, "/3.bin").endswith(bytes([3]) * FILE_BYTES)
        idle.sendall(b"HEAD /3.bin HTTP/1.1\r\nHost: test\r\n\r\n")
        assert idle.recv(4096).startswith(b"HTTP/1.1 200 ")


def test_without_a_descriptor_left_and_nobody_idle_the_answer_is_503(tmp_path: Path) -> None:
    with FileServer(tmp_path, 40) as server, ExitStack() as stack:
        busy = 0
        for _ in range(60):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.http1), timeout=10))
            connection.sendall(b"GET /synthetic/1000000000 HTTP/1.1\r\nHost: test\r\n\r\n")
            answer = connection.recv(4096)
            busy += answer.startswith(b"HTTP/1.1 200 ")
            assert answer.startswith(b"HTTP/1.1 200 ") or b"\r\nRetry-After: " in answer
        assert 0 < busy < 40
        assert fetch(server.http1, "/3.bin").startswith(b"HTTP/1.1 503 ")


def test_files_that_are_kept_open_make_room_for_connections(tmp_path: Path) -> None:
    async def fill(server: FileServer) -> None:
        async with slow_readers(server.quic, 1) as (reader,):
            await reader.ask([f"/{number}.bin" for number in range(FILES)])
            assert server.descriptors() == 48
            await asyncio.to_thread(visit, server)

    def visit(server: FileServer) -> None:
        with ExitStack() as stack:
            visitors = [
                stack.enter_context(socket.create_connection(("127.0.0.1", server.http1), timeout=10))
                for _ in range(20)
            ]
            for visitor in [*visitors, *visitors]:
                visitor.sendall(b"HEAD /3.bin HTTP/1.1\r\nHost: test\r\n\r\n")
                assert visitor.recv(4096).startswith(b"HTTP/1.1 200 ")

    with FileServer(tmp_path, 48) as server:
        asyncio.run(fill(server))
