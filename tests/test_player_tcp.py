"""xlink-player and xlink-server over kernel TCP and MPTCP on loopback."""

import hashlib
import http.client
import http.server
import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from conftest import Done, good, one_sentence, run_program
from quic_programs import Child, synthetic
from waiting import wait_until

# RAILYARD_BIN=build/asan/bin runs all of this under the sanitizers.
BIN = Path(__file__).parents[1] / os.environ.get("RAILYARD_BIN", "build/bin")
MB = 1_000_000
BYTES = "application/octet-stream"


class Server(Child):
    """xlink-server with HTTP/1.1 alone."""

    def __init__(self, folder: Path, *options: str, listen: str = "127.0.0.1:0") -> None:
        self.log = folder / "server.jsonl"
        super().__init__([BIN / "xlink-server", "--http1", listen, "--out", self.log, *options])
        listening = json.loads(self.first_line)
        assert set(listening) == {"event", "http1"} and listening["event"] == "listening"
        self.address: str = listening["http1"]

    @property
    def host_port(self) -> tuple[str, int]:
        host, port = self.address.rsplit(":", 1)
        return host, int(port)

    def finish(self) -> list[dict[str, Any]]:
        """Ends the server like an operator. Returns its records."""
        self.stop()
        assert self.process.returncode == 0
        return records(self.log)


def records(path: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0]["event"] == "start"
    assert lines[0]["monotonic_us"] > 0
    assert all(isinstance(line["t"], int | float) and isinstance(line["event"], str) for line in lines)
    return lines


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path) as running:
        yield running


def player_command(tmp_path: Path, address: str, *options: str, transport: str = "tcp") -> list[str]:
    defaults = {
        "--transport": transport,
        "--server": address,
        "--path": "lo:127.0.0.1:wifi",
        "--url": f"/synthetic/{10 * MB}",
        "--chunk-bytes": str(MB),
        "--bitrate": str(200 * MB),
        "--time-limit": "60",
        "--out": str(tmp_path / "player.jsonl"),
    }
    given = {option for option in options if option.startswith("--")}
    command = [str(BIN / "xlink-player")]
    for option, value in defaults.items():
        if option not in given:
            command += [option, value]
    return [*command, *options]


def play(
    tmp_path: Path, address: str, *options: str, transport: str = "tcp"
) -> tuple[subprocess.CompletedProcess[str], list[dict[str, Any]]]:
    command = player_command(tmp_path, address, *options, transport=transport)
    done = run_program(command, timeout=60)
    log = tmp_path / "player.jsonl"
    return done, records(log) if log.exists() else []


def fetch(
    server: Server, method: str, target: str, headers: dict[str, str] | None = None
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection(*server.host_port, timeout=10)
    try:
        connection.request(method, target, headers=headers or {})
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def raw_exchange(server: Server, data: bytes) -> bytes:
    """Sends bytes as they are and reads until the server closes."""
    with socket.create_connection(server.host_port, timeout=10) as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := sock.recv(65536):
            answer += piece
        return answer


@pytest.mark.parametrize("concurrency", ["1", "4"])
def test_ten_megabytes_arrive_intact(tmp_path: Path, server: Server, concurrency: str) -> None:
    saved = tmp_path / "video.bin"
    done, log = play(tmp_path, server.address, "--verify", "--save", str(saved), "--concurrency", concurrency)
    assert (done.returncode, done.stderr) == (0, "")
    _, body = fetch(server, "GET", f"/synthetic/{10 * MB}")
    assert len(body) == 10 * MB
    assert hashlib.sha256(saved.read_bytes()).digest() == hashlib.sha256(body).digest()
    assert log[-1]["outcome"] == "complete"
    assert log[-1]["bytes"] == 10 * MB
    assert log[-1]["transport"]["connections"] == int(concurrency)


def test_the_log_tells_the_whole_story(tmp_path: Path, server: Server) -> None:
    done, log = play(tmp_path, server.address, "--bitrate", "160000000", "--max-buffer-ms", "200",
                     "--rebuffer-target-ms", "50")  # fmt: skip
    assert done.returncode == 0
    by_event: dict[str, list[dict[str, Any]]] = {}
    for record in log:
        by_event.setdefault(record["event"], []).append(record)
    assert [record["event"] for record in log[-2:]] == ["end", "summary"]
    assert log == sorted(log, key=lambda record: record["t"])
    assert log[0]["argv"][1:3] == ["--transport", "tcp"]
    assert [r["chunk"] for r in by_event["request"]] == list(range(10))
    assert [(r["first"], r["last"]) for r in by_event["request"]] == [(i * MB, (i + 1) * MB - 1) for i in range(10)]
    assert len(by_event["first_byte"]) == 10
    for request, chunk in zip(by_event["request"], by_event["chunk_done"], strict=True):
        assert chunk["bytes"] == MB
        assert chunk["request_t"] == pytest.approx(request["t"], abs=2e-6)
        assert chunk["rct_s"] == pytest.approx(chunk["t"] - chunk["request_t"], abs=2e-6)
    for name in ("handshake_done", "first_frame", "play"):
        assert len(by_event[name]) == 1
    for i, record in enumerate(by_event["buffer"]):
        assert record["t"] == pytest.approx(0.1 * i, abs=1e-6)
        # A full buffer stops requests: 200 ms and the chunk that was on its way.
        assert 0 <= record["buffered_ms"] <= 200 + 50
        assert set(record) >= {"buffered_bytes", "played_ms", "received_bytes"}
    summary = log[-1]
    assert summary["chunks"] == 10
    assert summary["play_time_s"] == pytest.approx(0.5, abs=1e-6)
    assert summary["rct_s"]["max"] == max(chunk["rct_s"] for chunk in by_event["chunk_done"])
    assert summary["first_frame_s"] == by_event["first_frame"][0]["latency_s"]
    assert summary["rebuffer_count"] == len(by_event.get("stall_start", []))
    (path,) = summary["paths"]
    assert path["name"] == "lo"
    assert path["bytes_received"] >= 10 * MB
    assert path["bytes_sent"] > 0
    assert path["srtt_us"] > 0


def test_the_server_records_requests_and_totals(tmp_path: Path, server: Server) -> None:
    done, _ = play(tmp_path, server.address)
    good(done)
    log = server.finish()
    requests = [record for record in log if record["event"] == "request"]
    assert [(r["stream"], r["first"], r["last"], r["status"]) for r in requests] == [
        (i, i * MB, (i + 1) * MB - 1, 206) for i in range(10)
    ]
    assert all(r["path"] == f"/synthetic/{10 * MB}" for r in requests)
    assert [r["bytes"] for r in log if r["event"] == "response_done"] == [MB] * 10
    assert sum(r["event"] == "connection_closed" for r in log) == 1
    summary = log[-1]
    assert summary["event"] == "summary"
    assert summary["connections"] == 1
    assert summary["stream_bytes_sent"] >= 10 * MB
    # The kernel does not report bytes that it sends again on another path.
    assert summary["redundancy"] is None
    assert summary["paths"][0]["bytes_sent"] >= 10 * MB


def mptcp_works() -> bool:
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not mptcp_works(), reason="this kernel opens no MPTCP socket (sysctl net.mptcp.enabled)")
def test_mptcp_counts_its_subflows_and_the_listener_takes_tcp_too(tmp_path: Path) -> None:
    with Server(tmp_path, "--mptcp") as server:
        done, log = play(tmp_path, server.address, "--verify", transport="mptcp")
        assert (done.returncode, done.stderr) == (0, "")
        transport = log[-1]["transport"]
        assert transport["fell_back_to_tcp"] is False
        assert transport["subflow_count"] >= 1
        assert sum(flow["bytes_received"] for flow in transport["subflows"]) >= 10 * MB
        done, _ = play(tmp_path, server.address, "--verify")
        assert done.returncode == 0


@pytest.mark.skipif(not mptcp_works(), reason="this kernel opens no MPTCP socket (sysctl net.mptcp.enabled)")
def test_mptcp_says_when_the_server_has_only_tcp(tmp_path: Path, server: Server) -> None:
    done, log = play(tmp_path, server.address, "--verify", transport="mptcp")
    assert done.returncode == 0
    assert log[-1]["transport"]["fell_back_to_tcp"] is True


def test_ipv6_addresses_stand_in_brackets(tmp_path: Path) -> None:
    with Server(tmp_path, listen="[::1]:0") as server:
        assert server.address.startswith("[::1]:")
        done, log = play(tmp_path, server.address, "--verify", "--path", "six:[::1]:lte")
        assert (done.returncode, done.stderr) == (0, "")
        assert log[0]["paths"] == [{"name": "six", "local": "[::1]:0", "technology": "lte"}]
        done, _ = play(tmp_path, server.address, "--path", "four:127.0.0.1")
        one_sentence(done, "address family", program="xlink-player")


def test_a_server_that_is_not_there_is_one_sentence_and_exit_2(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        done, log = play(tmp_path, address)
    one_sentence(done, address, "refused", program="xlink-player")
    assert log[-1]["outcome"] == "connect_failed"
    assert log[-1]["first_frame_s"] is None


def test_a_connection_that_dies_under_way_is_exit_1(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        command = player_command(
            tmp_path, server.address, "--bitrate", "8000000", "--max-buffer-ms", "1000", "--chunk-bytes", "5000000"
        )
        # The relay passes some of the first response on, then dies.
        with socket.create_server(("127.0.0.1", 0)) as relay:
            command[command.index("--server") + 1] = f"127.0.0.1:{relay.getsockname()[1]}"
            with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as player:
                relay.settimeout(10)
                client, _ = relay.accept()
                with client, socket.create_connection(server.host_port, timeout=10) as upstream:
                    upstream.sendall(client.recv(65536))
                    passed = 0
                    while passed < 200_000:
                        piece = upstream.recv(65536)
                        client.sendall(piece)
                        passed += len(piece)
                _, stderr = player.communicate(timeout=20)
    one_sentence(Done(player.returncode, "", stderr), program="xlink-player", code=1)
    assert records(tmp_path / "player.jsonl")[-1]["outcome"] == "connection_lost"


class Silent(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass


class IgnoresRange(Silent):
    """A server may ignore Range and answer 200 (RFC 9110 section 14.2)."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(MB))
        self.end_headers()
        with suppress(ConnectionError):
            self.wfile.write(synthetic(0, MB - 1))


class SaysItIsComing(Silent):
    """Responses of ranges, each behind three interim ones, in one piece or byte by byte. A client must parse these in
    front of a final response (RFC 9110 section 15.2)."""

    def do_GET(self) -> None:
        first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\nLink: </b>\r\n\r\n"
        size = last - first + 1
        head = f"HTTP/1.1 206 P\r\nContent-Length: {size}\r\nContent-Range: bytes {first}-{last}/20000\r\n\r\n"
        text = interim + b"HTTP/1.1 199\r\n\r\n" + head.encode()
        pieces = [text[i : i + 1] for i in range(len(text))] if first else [text]
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in [*pieces, synthetic(first, last)]:
            self.wfile.write(piece)


@pytest.mark.parametrize(("handler", "size", "chunk"), [(IgnoresRange, MB, 300_000), (SaysItIsComing, 20_000, 10_000)])
def test_the_player_takes_its_range_out_of_a_whole_response_and_passes_over_interim_ones(
    tmp_path: Path, handler: type[Silent], size: int, chunk: int
) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = ("--url", f"/synthetic/{size}", "--chunk-bytes", str(chunk), "--verify")
        done, log = play(tmp_path, f"127.0.0.1:{server.server_port}", *options)
        server.shutdown()
    assert (done.returncode, done.stderr) == (0, "")
    assert (log[-1]["outcome"], log[-1]["bytes"]) == ("complete", size)


def serve_once(listener: socket.socket, answer: bytes) -> None:
    listener.settimeout(10)
    client, _ = listener.accept()
    with client:
        client.recv(65536)
        client.sendall(answer)
        client.shutdown(socket.SHUT_WR)
        client.settimeout(10)
        while client.recv(65536):
            pass


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "status 404"),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "status 101"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n", "not the range"),
        (b"HTTP/1.1 206 P\r\nContent-Length: 1000\r\nContent-Range: bytes 1-1000/9999\r\n\r\n", "not the range"),
        (b"HTTP/1.1 206 P\r\nTransfer-Encoding: chunked\r\n\r\n", "not an HTTP/1.1 response"),
        (b"\0" * 20000, "not an HTTP/1.1 response"),
        (
            b"HTTP/1.1 206 P\r\nContent-Length: 1000\r\nContent-Range: bytes 0-999/10000000\r\n\r\n" + b"x" * 1000,
            "byte 0 of the video is wrong",
        ),
        (
            b"HTTP/1.1 206 P\r\nContent-Length: 1000\r\nContent-Range: bytes 0-999/10000000\r\n\r\n" + b"x" * 9,
            "lost",
        ),
    ],
)
def test_a_hostile_server_ends_the_play_with_one_sentence(tmp_path: Path, answer: bytes, phrase: str) -> None:
    options = ["--chunk-bytes", "1000"] if phrase == "lost" else ["--chunk-bytes", "1000", "--verify"]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        command = player_command(tmp_path, f"127.0.0.1:{listener.getsockname()[1]}", *options)
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as player:
            serve_once(listener, answer)
            _, stderr = player.communicate(timeout=20)
    one_sentence(Done(player.returncode, "", stderr), phrase, program="xlink-player", code=1)


def test_the_time_limit_ends_a_play_that_gets_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        done, log = play(tmp_path, f"127.0.0.1:{listener.getsockname()[1]}", "--time-limit", "0.5")
    assert done.returncode == 0
    assert log[-1]["outcome"] == "time_limit"
    assert log[-2]["event"] == "end"
    assert log[-2]["t"] == pytest.approx(0.5, abs=1e-6)


def test_an_interrupted_player_leaves_a_whole_log(tmp_path: Path, server: Server) -> None:
    log = tmp_path / "player.jsonl"
    saved = tmp_path / "video.bin"
    command = player_command(tmp_path, server.address, "--bitrate", "1000000", "--save", str(saved))
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as player:
        wait_until(lambda: saved.exists() and saved.stat().st_size, "the player received nothing")
        player.send_signal(signal.SIGINT)
        _, stderr = player.communicate(timeout=10)
    one_sentence(Done(player.returncode, "", stderr), program="xlink-player", code=1)
    assert records(log)[-1]["outcome"] == "interrupted"


@pytest.mark.parametrize(
    ("options", "phrase"),
    [
        (["--transport", "carrier-pigeon"], "takes quic, mptcp, stream, tcp, not"),
        (["--scheme", "xlink"], "means nothing to tcp; leave it out"),
        (["--transport", "quic", "--scheme", "nonsense"], "xlink, xlink-lean or xlink+, not 'nonsense'"),
        (["--transport", "quic"], "needs --scheme"),
        (["--server", "localhost:80"], "IP address"),
        (["--server", "127.0.0.1"], "IP address"),
        (["--server", "@:4433"], "MPSHELL_GATEWAY"),
        (["--path", "wifi"], "NAME:LOCALADDR"),
        (["--path", "wifi:300.1.1.1"], "not an IP address"),
        (["--path", "wi fi:127.0.0.1"], "letters, digits"),
        (["--path", "wifi:127.0.0.1:6g"], "takes one of 5g-sa, 5g-nsa, wifi, lte as technology"),
        (["--path", "wifi:@0"], "MPSHELL_PATH_0_ADDR"),
        (["--path", "a:127.0.0.1", "--path", "a:127.0.0.2"], "two paths"),
        (["--path", "a:192.0.2.77"], "192.0.2.77"),
        (["--primary", "other"], "no path is named 'other', the primary one; known are lo"),
        (["--url", "synthetic/5"], "begins with '/'"),
        (["--url", "/synthetic/0"], "whole number"),
        (["--url", "/video.mp4"], "--size"),
        (["--url", "/video.mp4", "--size", "5", "--verify"], "--verify"),
        (["--chunk-bytes", "0"], "--chunk-bytes"),
        (["--chunk-bytes", "1e6"], "--chunk-bytes"),
        (["--url", "/synthetic/2000000000", "--chunk-bytes", "1"], "too small"),
        (["--concurrency", "65"], "--concurrency"),
        (["--bitrate", "-1"], "--bitrate"),
        (["--bitrate", "100"], "less than a byte a frame"),
        (["--fps", "0"], "--fps"),
        (["--rebuffer-target-ms", "20000"], "maximum buffer"),
        (["--time-limit", "soon"], "--time-limit"),
        (["--time-limit", "0"], "--time-limit"),
        (["--out", "/nonexistent/x.jsonl"], "/nonexistent/x.jsonl"),
        (["--save", "/nonexistent/x"], "/nonexistent/x"),
        (["--frobnicate"], "unknown option '--frobnicate'"),
        (["extra"], "'extra'"),
        (["--seed"], "needs a value"),
    ],
)
def test_bad_player_options_are_one_sentence_and_exit_2(tmp_path: Path, options: list[str], phrase: str) -> None:
    command = player_command(tmp_path, "127.0.0.1:9", *options)
    env = {name: value for name, value in os.environ.items() if not name.startswith("MPSHELL_")}
    done = run_program(command, timeout=20, env=env)
    one_sentence(done, phrase, program="xlink-player")


def test_at_signs_stand_for_what_mpshell_sets(tmp_path: Path, server: Server) -> None:
    host, port = server.host_port
    command = player_command(tmp_path, f"@:{port}", "--path", "a:127.0.0.2:lte", "--path", "b:@1:wifi")
    env = {**os.environ, "MPSHELL_GATEWAY": host, "MPSHELL_PATH_1_ADDR": "127.0.0.3"}
    done = run_program(command, timeout=60, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    log = records(tmp_path / "player.jsonl")
    # Wi-Fi goes before LTE: the connection is bound to path b.
    assert [path["name"] for path in log[0]["paths"]] == ["b", "a"]
    assert log[-1]["transport"]["flows"][0]["local"].startswith("127.0.0.3:")
    assert log[-1]["paths"][0]["bytes_received"] >= 10 * MB
    assert log[-1]["paths"][1]["bytes_received"] == 0


@pytest.mark.parametrize(
    ("options", "phrase"),
    [
        ([], "nothing to listen on"),
        (["--http1", "127.0.0.1"], "ADDR:PORT"),
        (["--http1", "192.0.2.77:0"], "192.0.2.77"),
        (["--http1", "127.0.0.1:0", "--scheme", "nonsense"], "xlink, xlink-lean or xlink+, not 'nonsense'"),
        (["--http1", "127.0.0.1:0", "--root", "/nonexistent"], "/nonexistent"),
        (["--http1", "127.0.0.1:0", "--frame-index", "/nonexistent"], "/nonexistent"),
        (["--http1", "127.0.0.1:0", "--out", "/nonexistent/x"], "/nonexistent/x"),
        (["--http1", "127.0.0.1:0", "--cert", "x.pem"], "--cert and --key"),
        (["--http1", "127.0.0.1:0", "--t-th1-ms", "3000"], "t_th1_ms must not be greater than t_th2_ms"),
        (["--http1", "127.0.0.1:0", "--cc", "vegas"], "--cc takes cubic, "),
        (["--quic", "127.0.0.1:0", "--scheduler", "best"], "--scheduler takes minrtt, "),
        (["--quic", "127.0.0.1:0", "--mptcp"], "--mptcp needs --http1"),
    ],
)
def test_bad_server_options_are_one_sentence_and_exit_2(options: list[str], phrase: str) -> None:
    command = [str(BIN / "xlink-server"), *options]
    done = run_program(command, timeout=20)
    assert done.stdout == ""
    one_sentence(done, phrase, program="xlink-server")


def test_a_wrong_frame_index_is_named_with_its_line(tmp_path: Path) -> None:
    index = tmp_path / "index.json"
    index.write_text('{\n"/a": [\n}')
    command = [str(BIN / "xlink-server"), "--http1", "127.0.0.1:0", "--frame-index", str(index)]
    done = run_program(command, timeout=20)
    one_sentence(done, f"{index}", "line 3", program="xlink-server")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"packets": [\n{"pos": "N/A", "size": "5"}]}', "packet 1 has pos N/A"),
        ("packet,video,0,0,41000,419,K__", "columns have no names"),
        (None, "No such file"),
    ],
)
def test_output_of_ffprobe_that_tells_no_first_frame_is_named(tmp_path: Path, text: str | None, sentence: str) -> None:
    probed = tmp_path / "probed.json"
    if text is not None:
        probed.write_text(text)
    command = [str(BIN / "xlink-server"), "--http1", "127.0.0.1:0", "--ffprobe", f"/video.mp4={probed}"]
    done = run_program(command, timeout=20)
    one_sentence(done, f"{probed}", sentence, program="xlink-server")


def test_files_and_their_ranges_are_served_from_the_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    content = bytes(range(256)) * 1000
    (root / "video.mp4").write_bytes(content)
    (tmp_path / "secret").write_text("secret")
    with Server(tmp_path, "--root", str(root)) as server:
        response, body = fetch(server, "GET", "/video.mp4")
        assert (response.status, body) == (200, content)
        assert response.headers["Accept-Ranges"] == "bytes"
        assert response.headers["Content-Type"] == "video/mp4"
        types = {"page.HTML": "text/html; charset=utf-8", "list.m3u8": "application/vnd.apple.mpegurl", "x.y": BYTES}
        for name, media_type in types.items():
            (root / name).write_text("x")
            assert fetch(server, "GET", f"/{name}")[0].headers["Content-Type"] == media_type
        response, body = fetch(server, "GET", "/video.mp4", {"Range": "bytes=1000-1999"})
        assert (response.status, body) == (206, content[1000:2000])
        assert response.headers["Content-Range"] == "bytes 1000-1999/256000"
        response, body = fetch(server, "GET", "/video.mp4", {"Range": "bytes=-5"})
        assert (response.status, body) == (206, content[-5:])
        response, body = fetch(server, "GET", "/video.mp4", {"Range": "bytes=256000-"})
        assert (response.status, body) == (416, b"")
        assert response.headers["Content-Range"] == "bytes */256000"
        response, body = fetch(server, "HEAD", "/video.mp4")
        assert (response.status, body, response.headers["Content-Length"]) == (200, b"", "256000")
        for target in ("/missing", "/../secret", "/%2e%2e/secret", "/"):
            assert fetch(server, "GET", target)[0].status == 404
        assert fetch(server, "POST", "/video.mp4")[0].status == 405
        saved = tmp_path / "saved"
        done, _ = play(
            tmp_path, server.address, "--url", "/video.mp4", "--size", "256000", "--chunk-bytes", "99999",
            "--save", str(saved),
        )  # fmt: skip
        assert done.returncode == 0
        assert saved.read_bytes() == content


def test_pipelined_requests_are_answered_in_order(server: Server) -> None:
    requests = (
        b"".join(b"GET /synthetic/%d HTTP/1.1\r\nHost: a\r\n\r\n" % (n + 1) for n in range(100))
        + b"GET /synthetic/7 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    )
    answer = raw_exchange(server, requests)
    lengths = [int(line.split()[1]) for line in answer.split(b"\r\n") if line.startswith(b"Content-Length")]
    assert lengths == [*range(1, 101), 7]


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"GET /" + b"a" * 3000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 5000, 431),
        (b"GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", 413),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501),
    ],
)
def test_malformed_requests_are_answered_and_hurt_nobody(server: Server, data: bytes, status: int) -> None:
    assert raw_exchange(server, data).startswith(b"HTTP/1.1 %d " % status)
    assert fetch(server, "GET", "/synthetic/10")[0].status == 200


def test_more_connections_than_allowed_do_not_stop_the_others(server: Server) -> None:
    clients = [socket.create_connection(server.host_port, timeout=10) for _ in range(300)]
    try:
        clients[-1].sendall(b"GET /synthetic/10 HTTP/1.1\r\nHost: a\r\n\r\n")
        assert clients[-1].recv(100).startswith(b"HTTP/1.1 200 ")
        assert clients[0].recv(100) == b""
    finally:
        for client in clients:
            client.close()
