"""xlink-get against xlink-server, over HTTP/3 and HTTP/0.9; and HTTP/0.9 requests by hand, by aioquic."""

import asyncio
import os
import re
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

from conftest import good, run_program
from quic_programs import Server, events, read_jsonl, synthetic
from railyard.base.paths import program
from small_disk import small_disk

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
    return run_program(command, timeout=60)


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


def free_ipv6_port() -> int:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as unused:
        unused.bind(("::1", 0))
        port: int = unused.getsockname()[1]
        return port


def test_paths_of_both_ip_versions_are_of_one_connection(tmp_path: Path) -> None:
    port = free_ipv6_port()
    options = ("--scheme", "vanilla-mp", "--dialect", "ietf", "--quic", f"[::1]:{port}")
    # No event: both paths carry data. The second one stands by until the first one is removed.
    # It is removed long after the second one can be validated, and long before all is there.
    events_of: dict[str, tuple[str, ...]] = {"shared": (), "promoted": ("--path-events", "0:standby:1,0.5:remove:0")}
    summaries = {}
    with Server(tmp_path, *options, address="127.0.0.1") as server:
        where = ("--connect", f"127.0.0.1:{server.port}", "--connect", f"[::1]:{port}", "--path", "127.0.0.1")
        for case, extra in events_of.items():
            log = tmp_path / f"{case}.jsonl"
            arguments: tuple[str | Path, ...] = (
                "--scheme",
                "vanilla-mp",
                *where,
                "--path",
                "::1",
                "--out",
                log,
                *extra,
            )
            good(get(server.port, *arguments, names=("synthetic/300000000",)))
            summaries[case] = events(read_jsonl(log), "summary")[0]["paths"]
        server.stop()
    for paths in summaries.values():
        assert [path["local"] for path in paths] == ["127.0.0.1:0", "[::1]:0"]
        # Min-RTT may give nearly all to one of two paths over loopback; what stays is the path's validation.
        assert all(path["bytes_received"] >= 1_200 for path in paths)
    # A path that stands by carries a load only once the other one is removed.
    assert summaries["promoted"][1]["bytes_received"] > 1_000_000
    shared, _ = events(server.records(), "connection_closed")
    assert shared["multipath"] is True


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


def test_one_line_says_what_was_fetched(tmp_path: Path, root: Path) -> None:
    with Server(tmp_path, "--root", str(root)) as server:
        done = get(server.port, names=("big", "small"))
        in_part = get(server.port, names=("small", "missing"))
        quiet = get(server.port, "--quiet", names=("big",))
    line = (
        r"xlink-get: 2 files, 3\.00 MB in \d+\.\d\d s, [\d.]+ [kMG]bit/s, over 1 path: 3\.\d\d MB by 127\.0\.0\.1\.\n"
    )
    assert re.fullmatch(line, done.stdout), done.stdout
    assert in_part.stdout.startswith("xlink-get: 1 of 2 files, 5 B in ")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")


def test_options_may_follow_urls_and_the_folder_is_made(tmp_path: Path, root: Path) -> None:
    with Server(tmp_path, "--root", str(root)) as server:
        url = f"https://127.0.0.1:{server.port}"
        words: list[str | Path] = [f"{url}/small", "--insecure", f"{url}/big", "--dir", tmp_path / "new"]
        done = run_program([program("xlink-get"), *words], timeout=60)
    assert done.returncode == 0, done.stderr
    assert sorted(file.name for file in (tmp_path / "new").iterdir()) == ["big", "small"]


def test_the_time_limit_holds_where_nobody_answers(tmp_path: Path) -> None:
    """The probe timeouts come after 1, 3 and 7 s."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        out = ("--out", tmp_path / "get.jsonl")
        done = get(port, "--time-limit", "4", "--split", "each", *out, names=("a", "b"))
    assert done.returncode == 1
    assert done.stderr.count("the time limit came first") == 2
    assert all(4 <= record["t"] < 7 for record in events(read_jsonl(tmp_path / "get.jsonl"), "response"))


MPSHELL = [
    *(word for name in "ab" for word in ("--path", f"{name}:up=20mbps,down=20mbps,delay=5")),
    *("--keep-awake", "off", "--", "sh", "-c"),
]


@pytest.mark.privileged
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mpshell makes network namespaces and TUN devices")
def test_in_mpshell_a_multipath_scheme_takes_all_paths_and_another_one_says_so(tmp_path: Path) -> None:
    def fetch(*options: str) -> subprocess.CompletedProcess[str]:
        words = f"{program('xlink-get')} https://$MPSHELL_GATEWAY:{server.port}/synthetic/{BIG_BYTES} --insecure "
        command: list[str | Path] = [program("mpshell"), *MPSHELL, words + " ".join(options)]
        return good(run_program(command, timeout=60))

    with Server(tmp_path, "--scheme", "vanilla-mp", address="0.0.0.0") as server:  # noqa: S104
        both = fetch("--scheme", "vanilla-mp", "--out", str(tmp_path / "get.jsonl"))
        one, named, quiet = fetch(), fetch("--path", "@1"), fetch("--quiet")
    [summary] = events(read_jsonl(tmp_path / "get.jsonl"), "summary")
    assert len(summary["paths"]) == 2
    assert all(path["bytes_received"] > BIG_BYTES / 10 for path in summary["paths"])
    assert " over 2 paths: " in both.stdout
    assert "uses" not in both.stderr
    assert "--scheme sp uses one of mpshell's 2 paths; vanilla-mp uses all." in one.stderr
    assert " over 1 path: " in one.stdout
    assert "uses" not in named.stderr + quiet.stderr


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


def test_two_urls_of_one_file_name_are_refused(tmp_path: Path) -> None:
    done = get(4433, "--dir", tmp_path / "new", names=("a/video?x", "c", "b/video"))
    assert done.returncode == 2
    assert "'https://127.0.0.1:4433/a/video?x' and 'https://127.0.0.1:4433/b/video'" in done.stderr
    assert "would both be the file 'video' in --dir" in done.stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a small disk")
def test_a_full_disk_is_told_once_and_ends_the_program(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "600k") as disk, Server(tmp_path) as server:
        names = ("synthetic/1000000", "synthetic/1000000000000")
        done = get(server.port, "--dir", disk, names=names)
    assert done.returncode == 1
    assert done.stderr.count(f"cannot write {disk}/") == done.stderr.count(": No space left on device.") == 1
    assert all(f"xlink-get: /{name}: it cannot be written.\n" in done.stderr for name in names)


@pytest.mark.parametrize(
    "url",
    [
        "https://@:4433",
        "https://host/x#part",
        "https://me@host/x",
        "https:///x",
        "http://host/x",
        "ftp://h/x",
        "https://h:99999/",
    ],
)
def test_a_url_of_another_form_is_one_sentence(url: str) -> None:
    done = run_program([program("xlink-get"), "--insecure", url])
    sentence = f"xlink-get: '{url}' is no URL of the form https://HOST[:PORT]/PATH.\n"
    assert (done.returncode, done.stderr) == (2, sentence)
