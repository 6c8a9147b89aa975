"""Multipath by RFC 10069 with an independent stack: noq (peers/noq), on the loopback interface."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from conftest import good, run_program
from quic_programs import VIDEO_BYTES, VIDEO_URL, Child, Server, player_summary, run_player, synthetic
from railyard.base.paths import ROOT
from test_interop import self_signed

SHA_256 = hashlib.sha256(synthetic(0, VIDEO_BYTES - 1)).hexdigest()
ANY = "0.0.0.0"  # noqa: S104
SECOND = "127.0.0.2"  # another address of the loopback interface: another path


PROGRAM = ROOT / "build" / "peers" / "noq" / "release" / "noq-peer"


@pytest.fixture(scope="module")
def peer() -> Path:
    """The program of peers/noq, as `make peers` builds it."""
    if not PROGRAM.is_file() and os.environ.get("RAILYARD_REQUIRE_PEERS") != "1":
        pytest.skip(f"{PROGRAM} is not there; `make peers` builds it")
    return PROGRAM


def get(peer: Path, server: Server, *options: str) -> dict[str, Any]:
    command: list[str | Path] = [peer, "get", f"127.0.0.1:{server.port}", VIDEO_URL, *options]
    done = good(run_program(command, timeout=120))
    result: dict[str, Any] = json.loads(done.stdout)
    assert (result["bytes"], result["sha256"]) == (VIDEO_BYTES, SHA_256)
    assert result["multipath"]
    return result


def closed_connection(server: Server) -> dict[str, Any]:
    [record] = [r for r in server.records() if r["event"] == "connection_closed"]
    return record


@pytest.mark.parametrize("dialect", ["ietf", "xlink"])
def test_a_noq_client_fetches_over_two_paths(peer: Path, tmp_path: Path, dialect: str) -> None:
    """Also if the server prefers the other dialect, which noq does not offer."""
    with Server(tmp_path, "--scheme", "xlink", "--dialect", dialect, address=ANY) as server:
        result = get(peer, server, "--local", SECOND)
    assert [p["id"] for p in result["paths"]] == ["0", "1"]
    assert all(p["received_bytes"] > 5000 for p in result["paths"])
    assert [p["state"] for p in closed_connection(server)["paths"]] == ["active", "active"]


def test_a_noq_client_uses_eight_paths(peer: Path, tmp_path: Path) -> None:
    locals_ = [word for i in range(2, 9) for word in ("--local", f"127.0.0.{i}")]
    with Server(tmp_path, "--scheme", "vanilla-mp", "--dialect", "ietf", address=ANY) as server:
        result = get(peer, server, *locals_)
    assert len(result["paths"]) == 8
    assert all(p["received_bytes"] > 1200 for p in result["paths"])


def test_a_noq_client_abandons_a_path_in_the_middle(peer: Path, tmp_path: Path) -> None:
    with Server(tmp_path, "--scheme", "xlink", "--dialect", "ietf", address=ANY) as server:
        result = get(peer, server, "--local", SECOND, "--abandon", SECOND)
    if not result["abandoned"]:
        pytest.fail("the path was not abandoned before the end")
    assert [p["state"] for p in closed_connection(server)["paths"]] == ["active", "closed"]


def test_a_path_that_noq_calls_backup_carries_no_data(peer: Path, tmp_path: Path) -> None:
    with Server(tmp_path, "--scheme", "xlink", "--dialect", "ietf", address=ANY) as server:
        result = get(peer, server, "--local", SECOND, "--backup", SECOND)
    assert result["paths"][1]["received_bytes"] < 200_000


def test_the_player_plays_from_a_noq_server_over_two_paths(peer: Path, tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    (tmp_path / "cert.pem").write_bytes(self_signed("noq", key))
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (tmp_path / "key.pem").write_bytes(key.private_bytes(encoding, form, serialization.NoEncryption()))
    (tmp_path / "file").write_bytes(synthetic(0, VIDEO_BYTES - 1))
    words: list[str | Path] = ["serve", "127.0.0.1:0", tmp_path / "file", tmp_path / "cert.pem", tmp_path / "key.pem"]
    with Child([peer, *words]) as noq:
        port = int(json.loads(noq.first_line)["quic"].rsplit(":", 1)[1])
        paths = ["--path", "a:127.0.0.1:wifi", "--path", f"b:{SECOND}:lte"]
        good(run_player(tmp_path, port, "--scheme", "vanilla-mp", "--insecure", "--qlog-dir", str(tmp_path), *paths))
        summary = player_summary(tmp_path)
    assert summary["transport"]["multipath"]
    assert all(path["bytes_received"] > 5000 for path in summary["paths"])
    assert hashlib.sha256((tmp_path / "video").read_bytes()).hexdigest() == SHA_256
    [qlog] = tmp_path.glob("*.sqlog")
    assert '"path_ack"' in qlog.read_text(encoding="utf-8")
