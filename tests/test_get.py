"""xlink-get against xlink-server, over HTTP/3 and HTTP/0.9; and HTTP/0.9 requests by hand, by aioquic."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import QuicEvent, StopSendingReceived, StreamDataReceived, StreamReset

from quic_programs import Server, events, read_jsonl, synthetic
from railyard.base.paths import program

HQ_BAD_REQUEST, HQ_NOT_FOUND = 400, 404
BIG_BYTES = 3_000_000


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("root")
    (folder / "small").write_bytes(b"hello")
    (folder / "empty").write_bytes(b"")
    (folder / "big").write_bytes(synthetic(0, BIG_BYTES - 1))
    return folder


def get(port: int, *arguments: str | Path, names: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    urls = [f"https://127.0.0.1:{port}/{name}" for name in names]
    command: list[str | Path] = [program("xlink-get"), "--insecure", "--time-limit", "30", *arguments, *urls]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("alpn", ["h3", "hq-interop"])
@pytest.mark.parametrize(("split", "connections"), [("none", 1), ("first", 2), ("each", 3)])
def test_get_writes_what_the_server_has(tmp_path: Path, root: Path, alpn: str, split: str, connections: int) -> None:
    names = ("small", "big", "empty")
    with Server(tmp_path, "--root", str(root)) as server:
        where = ("--dir", tmp_path, "--out", tmp_path / "get.jsonl")
        done = get(server.port, "--alpn", alpn, "--split", split, *where, names=names)
    assert done.returncode == 0, done.stderr
    for name in names:
        assert (tmp_path / name).read_bytes() == (root / name).read_bytes()
    closed = events(read_jsonl(tmp_path / "get.jsonl"), "connection_closed")
    assert [record["alpn"] for record in closed] == [alpn] * connections
    assert [record["resumed"] for record in closed] == [number > 0 for number in range(connections)]
    assert [record["path"] for record in events(server.records(), "request")] == [f"/{name}" for name in names]


def test_a_client_moves_to_the_preferred_address(tmp_path: Path, root: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unused:
        unused.bind(("127.0.0.2", 0))
        preferred = f"127.0.0.2:{unused.getsockname()[1]}"
    with Server(tmp_path, "--root", str(root), "--preferred-address", preferred) as server:
        done = get(server.port, "--dir", tmp_path, names=("big", "small"))
        server.stop()
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "big").read_bytes() == (root / "big").read_bytes()
    assert events(server.records(), "summary")[0]["migrations"] == 1


@pytest.mark.parametrize(("alpn", "words"), [("h3", "status 404"), ("hq-interop", "error 0x194")])
def test_get_says_which_url_failed(tmp_path: Path, root: Path, alpn: str, words: str) -> None:
    with Server(tmp_path, "--root", str(root)) as server:
        done = get(server.port, "--alpn", alpn, "--dir", tmp_path, names=("small", "missing"))
    assert done.returncode == 1
    assert done.stderr.startswith("xlink-get: /missing: ")
    assert words in done.stderr
    assert (tmp_path / "small").read_bytes() == b"hello"
    assert not (tmp_path / "missing").exists()


def test_workers_resume_each_others_sessions_and_a_seed_those_before_a_restart(tmp_path: Path) -> None:
    names = tuple(f"synthetic/{size}" for size in range(1000, 1008))
    with Server(tmp_path, "--workers", "2") as server:
        done = get(server.port, "--split", "each", "--out", tmp_path / "get.jsonl", names=names)
    assert done.returncode == 0, done.stderr
    closed = events(read_jsonl(tmp_path / "get.jsonl"), "connection_closed")
    assert [record["resumed"] for record in closed] == [False] + [True] * (len(names) - 1)
    assert len({record["worker"] for record in events(server.records(), "connection_closed")}) == 2


class Raw(QuicConnectionProtocol):
    """A client that writes bytes to streams."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.bodies: dict[int, bytes] = {}
        self.resets: dict[int, int] = {}
        self.ended: dict[int, asyncio.Event] = {}

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, StreamDataReceived) and event.stream_id in self.ended:
            self.bodies[event.stream_id] += event.data
            if event.end_stream:
                self.ended[event.stream_id].set()
        elif isinstance(event, StreamReset | StopSendingReceived) and event.stream_id in self.ended:
            self.resets[event.stream_id] = event.error_code
            self.ended[event.stream_id].set()

    async def ask(self, line: bytes, pieces: int = 1) -> bytes | int:
        """The body, or the error code of a stream that was reset."""
        stream = self._quic.get_next_available_stream_id()
        self.bodies[stream], self.ended[stream] = b"", asyncio.Event()
        step = -(-len(line) // pieces)
        for at in range(0, max(len(line), 1), step or 1):
            self._quic.send_stream_data(stream, line[at : at + step], end_stream=at + step >= len(line))
            self.transmit()
            await asyncio.sleep(0)
        await asyncio.wait_for(self.ended[stream].wait(), 20)
        return self.resets.get(stream, self.bodies[stream])


async def ask_all(port: int, lines: list[tuple[bytes, int]]) -> list[bytes | int]:
    configuration = QuicConfiguration(is_client=True, alpn_protocols=["hq-interop"], verify_mode=ssl.CERT_NONE)
    async with connect("127.0.0.1", port, configuration=configuration, create_protocol=Raw) as client:
        assert isinstance(client, Raw)
        return [await client.ask(line, pieces) for line, pieces in lines]


def test_the_server_answers_good_lines_of_http_0_9_and_resets_others(tmp_path: Path, root: Path) -> None:
    good = [
        (b"GET /small\r\n", 1),
        (b"GET /small", 1),
        (b"GET /small\n", 11),
        (b"GET /big\r\n", 1),
        (b"GET /empty\r\n", 2),
    ]
    bad = [
        b"",
        b"GET",
        b"GET small\r\n",
        b"POST /small\r\n",
        b"GET /sm\r\nall\r\n",
        b"GET /\0small\r\n",
        b"GET /" + b"a" * 9000,
    ]
    with Server(tmp_path, "--root", str(root)) as server:
        lines = [*good, *((line, 1) for line in bad), (b"GET /missing\r\n", 1), (b"GET /../secret\r\n", 1)]
        answers = asyncio.run(ask_all(server.port, lines))
    assert answers[:5] == [b"hello", b"hello", b"hello", synthetic(0, BIG_BYTES - 1), b""]
    assert answers[5:-2] == [HQ_BAD_REQUEST] * len(bad)
    assert answers[-2:] == [HQ_NOT_FOUND] * 2
