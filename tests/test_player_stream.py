"""xlink-player over a Unix socket, behind which a relay carries its bytes."""

import hashlib
import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import one_sentence
from test_player_tcp import MB, Server, play


@contextmanager
def relay(file: Path, server: tuple[str, int], cut_after: int | None = None) -> Iterator[None]:
    """Copies each connection's bytes to a TCP connection of its own, and closes all after `cut_after` bytes."""
    stop_read, stop_write = socket.socketpair()

    def run() -> None:
        total = 0
        with selectors.DefaultSelector() as selector:
            selector.register(listener, selectors.EVENT_READ)
            selector.register(stop_read, selectors.EVENT_READ)
            pairs: dict[socket.socket, socket.socket] = {}
            while True:
                for key, _ in selector.select():
                    if key.fileobj is stop_read:
                        for open_end in pairs:
                            open_end.close()
                        return
                    if key.fileobj is listener:
                        near, far = listener.accept()[0], socket.create_connection(server)
                        pairs |= {near: far, far: near}
                        selector.register(near, selectors.EVENT_READ)
                        selector.register(far, selectors.EVENT_READ)
                        continue
                    end = key.fileobj
                    assert isinstance(end, socket.socket)
                    if end not in pairs:
                        continue
                    data = end.recv(65536)
                    total += len(data)
                    if not data or (cut_after is not None and total > cut_after):
                        for one in (end, pairs[end]):
                            selector.unregister(one)
                            one.close()
                        del pairs[pairs.pop(end)]
                    else:
                        pairs[end].sendall(data)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(file))
        listener.listen()
        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            stop_write.send(b"x")
            thread.join()
            stop_read.close()
            stop_write.close()


def test_plays_a_video_through_a_relay(tmp_path: Path) -> None:
    saved = tmp_path / "video"
    with Server(tmp_path) as server, relay(tmp_path / "relay", server.host_port):
        options = ("--concurrency", "3", "--verify", "--save", str(saved))
        done, log = play(tmp_path, f"unix:{tmp_path / 'relay'}", *options, transport="stream")
        server_log = server.finish()
    assert done.returncode == 0, done.stderr
    summary = log[-1]
    assert summary["outcome"] == "complete"
    assert summary["bytes"] == saved.stat().st_size == 10 * MB
    # The transport behind the socket is unknown and reported as such.
    assert summary["paths"] is None
    assert summary["handshake_s"] is None
    assert summary["transport"] == {"connections": 3}
    assert log[0]["server"] == "localhost"
    assert sum(line["event"] == "request" for line in server_log) == 10
    with Server(tmp_path) as server:
        again = tmp_path / "again"
        done, _ = play(tmp_path, server.address, "--save", str(again))
    assert done.returncode == 0, done.stderr
    assert hashlib.sha256(saved.read_bytes()).digest() == hashlib.sha256(again.read_bytes()).digest()


def test_a_relay_that_gives_up_ends_the_play_with_a_sentence(tmp_path: Path) -> None:
    with Server(tmp_path) as server, relay(tmp_path / "relay", server.host_port, cut_after=3 * MB):
        done, log = play(tmp_path, f"unix:{tmp_path / 'relay'}", transport="stream")
    one_sentence(done, "the connection to localhost was lost", program="xlink-player", code=1)
    assert log[-1]["outcome"] == "connection_lost"


@pytest.mark.parametrize(
    ("transport", "server", "phrase"),
    [
        ("stream", "127.0.0.1:80", "takes unix:FILE with --transport stream"),
        ("stream", "unix:", "takes unix:FILE with --transport stream"),
        ("tcp", "unix:/run/relay", "takes ADDR:PORT with --transport tcp"),
        ("stream", "unix:/nowhere/relay", "No such file or directory"),
        ("stream", "unix:/" + "x" * 108, "the socket's name is longer than 107 bytes"),
    ],
)
def test_a_socket_that_is_not_there_gets_one_sentence(tmp_path: Path, transport: str, server: str, phrase: str) -> None:
    done, _ = play(tmp_path, server, transport=transport)
    one_sentence(done, phrase, program="xlink-player", code=1 if done.returncode == 1 else 2)
