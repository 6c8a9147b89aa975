"""What programs on sockets choose by chance: from the system, so that no two share a token, a connection ID or a key;
from --seed only where it is given, and then the log says so."""

import socket
import subprocess
from pathlib import Path

import pytest

from quic_programs import VIDEO_URL, Server, events, read_jsonl
from railyard.base.paths import program

SEEDED = "seeded: not for deployment"
CID = bytes([0, 0, 2, 3, 4, 5, 6, 7])  # as a server with workers makes them: rotation 0, server ID 0
TOKEN_BYTES = 16


def ask(port: int, datagram: bytes) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(10)
        client.sendto(datagram, ("127.0.0.1", port))
        return client.recv(2048)


def reset_token(server: Server) -> bytes:
    """The server's stateless reset token of one CID, from its answer to a packet of no connection."""
    return ask(server.port, bytes([0x40]) + CID + bytes(60))[-TOKEN_BYTES:]


def retry_cid(server: Server) -> bytes:
    """The connection ID that the server chooses in its Retry, which answers an Initial before anything is decrypted."""
    initial = bytes([0xC0, 0, 0, 0, 1, 8]) + CID + bytes([8]) + CID + bytes([0, 0x44, 0x80])
    retry = ask(server.port, initial.ljust(1200, b"\x00"))
    assert retry[0] >> 4 == 0xF
    at = 6 + retry[5]
    return retry[at + 1 : at + 1 + retry[at]]


def choices_of_a_server(folder: Path, *arguments: str) -> tuple[bytes, bytes]:
    folder.mkdir()
    with Server(folder, "--retry-above", "0", *arguments) as server:
        return reset_token(server), retry_cid(server)


@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["alone", "workers"])
def test_two_servers_share_no_token_and_no_connection_id(tmp_path: Path, workers: tuple[str, ...]) -> None:
    first, second = (choices_of_a_server(tmp_path / name, *workers) for name in ("a", "b"))
    assert first[0] != second[0]
    assert first[1] != second[1]
    assert len(first[0]) == TOKEN_BYTES and len(first[1]) >= 8
    log = read_jsonl(tmp_path / "a" / "server.jsonl")
    assert events(log, "warning") == []
    assert log[0]["seed"] is None


@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["alone", "workers"])
def test_servers_of_one_seed_share_their_secret_and_say_so(tmp_path: Path, workers: tuple[str, ...]) -> None:
    first, second = (choices_of_a_server(tmp_path / name, "--seed", "5", *workers) for name in ("a", "b"))
    assert first[0] == second[0]
    # A worker's connection IDs are its own all the same: it may follow one that died.
    assert (first[1] == second[1]) == (workers == ())
    log = read_jsonl(tmp_path / "a" / "server.jsonl")
    assert [record["message"] for record in events(log, "warning")] == [SEEDED]
    assert log[0]["seed"] == 5


def test_a_seeded_server_without_a_log_says_so_on_stderr() -> None:
    command: list[str | Path] = [program("xlink-server"), "--quic", "127.0.0.1:0", "--seed", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline()
        server.terminate()
        _, errors = server.communicate(timeout=20)
    assert errors == f"xlink-server: {SEEDED}.\n"


def first_packet(*command: str | Path) -> bytes:
    """The first destination connection ID that a client sends without an answer."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        silent.settimeout(20)
        to = f"127.0.0.1:{silent.getsockname()[1]}"
        with subprocess.Popen([*command, "--server", to], stdout=subprocess.DEVNULL) as client:
            packet = silent.recv(2048)
            client.terminate()
    assert packet[0] & 0xF0 == 0xC0
    return packet[6 : 6 + packet[5]]


@pytest.mark.parametrize("name", ["xlink-player", "xlink-load"])
def test_two_clients_share_no_connection_id_unless_of_one_seed(tmp_path: Path, name: str) -> None:
    log = tmp_path / "log.jsonl"
    command: list[str | Path] = [program(name), "--out", log, "--insecure"]
    if name == "xlink-player":
        command += ["--transport", "quic", "--scheme", "sp", "--url", VIDEO_URL, "--path", "a:127.0.0.1"]
        command += ["--bitrate", "1000000", "--chunk-bytes", "100000", "--time-limit", "20"]
    else:
        command += ["--path", "127.0.0.1", "--connections", "1", "--time-limit", "20"]
    drawn = {first_packet(*command) for _ in range(3)}
    assert len(drawn) == 3
    assert events(read_jsonl(log), "warning") == []
    seeded = {first_packet(*command, "--seed", "7") for _ in range(2)}
    assert len(seeded) == 1
    assert not seeded & drawn
    assert [record["message"] for record in events(read_jsonl(log), "warning")] == [SEEDED]
