"""The programs speak HTTP/3 with an independent implementation: aioquic, on the loopback interface."""

import asyncio
import datetime
import hashlib
import ipaddress
import json
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, QuicEvent, StreamReset
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.tls import Epoch
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from conftest import good, run_program
from interop.relay import Plan, Seen
from interop.relay import start as start_relay
from quic_programs import (
    VIDEO_BYTES,
    VIDEO_URL,
    Child,
    Server,
    events,
    player_summary,
    read_jsonl,
    run_player,
    synthetic,
)
from railyard.base.paths import program

UNKNOWN_VERSION = 0x1A2A3A4A  # reserved to exercise version negotiation (RFC 9000 section 15)
SHA_256 = hashlib.sha256(synthetic(0, VIDEO_BYTES - 1)).hexdigest()


# ---- xlink-player and xlink-get against an aioquic server ----


def self_signed(name: str, key: ec.EllipticCurvePrivateKey) -> bytes:
    """A certificate for 127.0.0.1 that is its own authority, PEM."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    begin = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(begin).not_valid_after(begin.replace(year=2060))
    builder = builder.add_extension(address, critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The aioquic server's certificate and key, as PEM files."""
    folder = tmp_path_factory.mktemp("certificate")
    key = ec.generate_private_key(ec.SECP256R1())
    (folder / "cert.pem").write_bytes(self_signed("interop", key))
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (folder / "key.pem").write_bytes(key.private_bytes(encoding, form, serialization.NoEncryption()))
    return folder / "cert.pem", folder / "key.pem"


class AioquicServer(Child):
    def __init__(self, certificate: tuple[Path, Path], *arguments: str) -> None:
        script = Path(__file__).with_name("interop_server.py")
        super().__init__([sys.executable, script, *certificate, *arguments])
        self.port = int(json.loads(self.first_line)["quic"].rsplit(":", 1)[1])

    def report(self) -> dict[str, Any]:
        """Stops the server. Returns the events of its connections."""
        self.stop()
        assert self.process.stdout is not None
        result: dict[str, Any] = json.loads(self.process.stdout.read())
        return result


def saved_sha256(folder: Path) -> str:
    return hashlib.sha256((folder / "video").read_bytes()).hexdigest()


def test_player_fetches_10_mb_intact_from_aioquic(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    with AioquicServer(certificate) as server:
        done = run_player(tmp_path, server.port, "--scheme", "sp", "--insecure", "--path", "a:127.0.0.1:wifi")
        report = server.report()
    assert done.returncode == 0, done.stderr
    assert saved_sha256(tmp_path) == SHA_256
    assert player_summary(tmp_path)["outcome"] == "complete"
    assert report["requests"] == 10
    assert len(report["peers"]) == 1


@pytest.mark.parametrize("scheme", ["xlink", "vanilla-mp"])
def test_player_falls_back_to_one_path_when_the_server_knows_no_multipath(
    tmp_path: Path, certificate: tuple[Path, Path], scheme: str
) -> None:
    paths = ["--path", "a:127.0.0.1:wifi", "--path", "b:127.0.0.2:lte"]
    with AioquicServer(certificate) as server:
        done = run_player(tmp_path, server.port, "--scheme", scheme, "--insecure", *paths)
        report = server.report()
    assert done.returncode == 0, done.stderr
    assert saved_sha256(tmp_path) == SHA_256
    summary = player_summary(tmp_path)
    assert summary["transport"]["multipath"] is False
    assert summary["paths"][0]["bytes_received"] > VIDEO_BYTES
    assert summary["paths"][1]["bytes_received"] == 0
    assert [address for address, _ in report["peers"]] == ["127.0.0.1"]


def test_player_takes_its_range_out_of_a_whole_response(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    """A server may ignore Range and answer 200 (RFC 9110 section 14.2)."""
    with AioquicServer(certificate, "--ignore-range") as server:
        done = run_player(tmp_path, server.port, "--scheme", "sp", "--insecure", "--path", "a:127.0.0.1:wifi")
    assert done.returncode == 0, done.stderr
    assert saved_sha256(tmp_path) == SHA_256
    assert player_summary(tmp_path)["outcome"] == "complete"


async def get_through_a_nat_that_forgets(server_port: int, folder: Path) -> tuple[int, Seen]:
    """Half a second after the first datagram, the client has another port, and datagrams to the old one are lost."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    nat = await start_relay(Plan(rebind_after_s=0.5, rebind_times=1), port, ("127.0.0.1", server_port))
    url = f"https://127.0.0.1:{port}/synthetic/100000"
    command: list[str | Path] = [program("xlink-get"), "--insecure", "--dir", folder, "--time-limit", "20", url]
    client = await asyncio.create_subprocess_exec(*command)
    status = await client.wait()
    asyncio.get_running_loop().remove_reader(nat.sock)
    nat.sock.close()
    return status, nat.seen


def test_get_waits_for_a_late_answer_behind_a_nat_that_forgets_it(
    tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    """The client has nothing to send meanwhile: it asks the server, who so learns the new port."""
    with AioquicServer(certificate, "--late-answer") as server:
        status, seen = asyncio.run(get_through_a_nat_that_forgets(server.port, tmp_path))
    assert (status, seen.rebindings) == (0, 1)
    assert (tmp_path / "100000").read_bytes() == synthetic(0, 99_999)


def test_player_verifies_the_servers_certificate(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    path = ("--path", "a:127.0.0.1:wifi")
    with AioquicServer(certificate) as server:
        done = run_player(tmp_path, server.port, "--scheme", "sp", "--ca", str(certificate[0]), *path)
    assert done.returncode == 0, done.stderr
    assert saved_sha256(tmp_path) == SHA_256


def test_player_refuses_a_certificate_of_another_authority(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    authority = tmp_path / "other.pem"
    authority.write_bytes(self_signed("other", ec.generate_private_key(ec.SECP256R1())))
    path = ("--path", "a:127.0.0.1:wifi")
    with AioquicServer(certificate) as server:
        done = run_player(tmp_path, server.port, "--scheme", "sp", "--ca", str(authority), *path)
        report = server.report()
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "the server's certificate is of no trusted CA" in done.stderr
    assert player_summary(tmp_path)["outcome"] == "connect_failed"
    assert report["requests"] == 0


def load(folder: Path, port: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    where = ["--server", f"127.0.0.1:{port}", "--path", "127.0.0.1", "--scheme", "sp", "--url", VIDEO_URL]
    command: list[str | Path] = [program("xlink-load"), *where, "--connections", "2", "--time-limit", "20", *arguments]
    command += ["--out", folder / "load.jsonl"]
    return run_program(command, timeout=60)


def test_load_verifies_the_servers_certificate_unless_told_not_to(
    tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    other = tmp_path / "other.pem"
    other.write_bytes(self_signed("other", ec.generate_private_key(ec.SECP256R1())))
    with AioquicServer(certificate) as server:
        for arguments in [("--insecure",), ("--ca", str(certificate[0]))]:
            good(load(tmp_path, server.port, *arguments))
        done = load(tmp_path, server.port, "--ca", str(other))
        assert done.returncode == 1
        ended = events(read_jsonl(tmp_path / "load.jsonl"), "connection")
        assert [record["outcome"] for record in ended] == ["failed", "failed"]


def test_load_waits_for_room_for_its_requests(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    """The server allows one request, and the next one 0.2 s later."""
    with AioquicServer(certificate, "--late-credit") as server:
        done = load(tmp_path, server.port, "--insecure", "--url", "/synthetic/1000", "--requests", "4")
        report = server.report()
    assert done.returncode == 0, done.stderr
    assert report["requests"] == 2 * 4


def test_player_answers_retry(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    with AioquicServer(certificate, "--retry") as server:
        done = run_player(tmp_path, server.port, "--scheme", "sp", "--insecure", "--path", "a:127.0.0.1:wifi")
    assert done.returncode == 0, done.stderr
    assert saved_sha256(tmp_path) == SHA_256


# ---- an aioquic client against xlink-server ----


@dataclass
class Exchange:
    headers: dict[bytes, bytes] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    done: asyncio.Event = field(default_factory=asyncio.Event)
    reset: bool = False


class Client(QuicConnectionProtocol):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.http = H3Connection(self._quic)
        self.exchanges: dict[int, Exchange] = {}
        self.key_update_every: int | None = None
        self.received = 0
        self.key_phases: list[int] = []
        self.terminated: ConnectionTerminated | None = None

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ConnectionTerminated):
            self.terminated = event
            for exchange in self.exchanges.values():
                exchange.done.set()
        if isinstance(event, StreamReset) and event.stream_id in self.exchanges:
            self.exchanges[event.stream_id].reset = True
            self.exchanges[event.stream_id].done.set()
        for http_event in self.http.handle_event(event):
            if isinstance(http_event, HeadersReceived):
                self.exchanges[http_event.stream_id].headers.update(http_event.headers)
            elif isinstance(http_event, DataReceived):
                self.exchanges[http_event.stream_id].body += http_event.data
                self.count(len(http_event.data))
            if isinstance(http_event, HeadersReceived | DataReceived) and http_event.stream_ended:
                self.exchanges[http_event.stream_id].done.set()

    def count(self, size: int) -> None:
        before, self.received = self.received, self.received + size
        step = self.key_update_every
        if step is not None and before // step != self.received // step:
            self._quic.request_key_update()
        phase = self._quic._cryptos[Epoch.ONE_RTT].key_phase
        if not self.key_phases or self.key_phases[-1] != phase:
            self.key_phases.append(phase)

    async def get(self, path: str, *, method: bytes = b"GET", **fields: str) -> Exchange:
        stream = self._quic.get_next_available_stream_id()
        exchange = self.exchanges[stream] = Exchange()
        headers = [
            (b":method", method),
            (b":scheme", b"https"),
            (b":authority", b"127.0.0.1"),
            (b":path", path.encode()),
        ]
        headers += [(name.encode(), value.encode()) for name, value in fields.items()]
        self.http.send_headers(stream, headers, end_stream=True)
        self.transmit()
        await asyncio.wait_for(exchange.done.wait(), 60)
        assert self.terminated is None, self.terminated
        return exchange


def client_configuration(**fields: Any) -> QuicConfiguration:
    return QuicConfiguration(is_client=True, alpn_protocols=["h3"], verify_mode=ssl.CERT_NONE, **fields)


@asynccontextmanager
async def connected(port: int, configuration: QuicConfiguration | None = None) -> AsyncIterator[Client]:
    configuration = configuration or client_configuration()
    async with connect("127.0.0.1", port, configuration=configuration, create_protocol=Client) as client:
        assert isinstance(client, Client)
        yield client


async def fetch(port: int, configuration: QuicConfiguration, key_update_every: int | None = None) -> Client:
    """Fetches the video in ranges of 2 MB; their bodies lie in the client's exchanges."""
    async with connected(port, configuration) as client:
        client.key_update_every = key_update_every
        for first in range(0, VIDEO_BYTES, 2_000_000):
            exchange = await client.get(VIDEO_URL, range=f"bytes={first}-{first + 1_999_999}")
            assert exchange.headers[b":status"] == b"206", client.terminated
            assert exchange.headers[b"content-range"] == f"bytes {first}-{first + 1_999_999}/{VIDEO_BYTES}".encode()
            assert len(exchange.body) == 2_000_000
    return client


def fetched_sha256(client: Client) -> str:
    return hashlib.sha256(b"".join(bytes(client.exchanges[id_].body) for id_ in sorted(client.exchanges))).hexdigest()


def test_aioquic_fetches_10_mb_intact_from_the_server(tmp_path: Path) -> None:
    with Server(tmp_path, "--scheme", "xlink") as server:
        client = asyncio.run(fetch(server.port, client_configuration()))
    assert server.process.returncode == 0, server.error_output
    assert fetched_sha256(client) == SHA_256
    closed = events(server.records(), "connection_closed")
    assert len(closed) == 1
    assert closed[0]["multipath"] is False  # aioquic did not ask for it
    assert closed[0]["reinjected_bytes"] == 0
    assert len(events(server.records(), "request")) == 5
    assert server.records()[-1]["stream_bytes_sent"] >= VIDEO_BYTES


async def certificate_of(port: int) -> x509.Certificate | None:
    async with connected(port) as client:
        certificate: x509.Certificate | None = client._quic.tls._peer_certificate
        return certificate


def test_the_server_makes_itself_a_certificate_of_p256(tmp_path: Path) -> None:
    """Browsers and picoquic refuse Ed25519."""
    with Server(tmp_path) as server:
        certificate = asyncio.run(certificate_of(server.port))
    assert certificate is not None
    key = certificate.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1)


def test_aioquic_proves_its_address_where_the_server_asks_for_it(tmp_path: Path) -> None:
    with Server(tmp_path, "--retry-above", "0") as server:
        client = asyncio.run(fetch(server.port, client_configuration()))
    assert fetched_sha256(client) == SHA_256
    assert server.records()[-1]["retries"] == 1
    assert len(events(server.records(), "connection_closed")) == 1


def test_the_server_follows_key_updates_of_aioquic(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        client = asyncio.run(fetch(server.port, client_configuration(), key_update_every=3_000_000))
    assert fetched_sha256(client) == SHA_256
    assert len(client.key_phases) >= 3, "the keys were updated at least twice"


def test_aioquic_finds_version_1_when_it_begins_with_version_2(tmp_path: Path) -> None:
    configuration = client_configuration(
        supported_versions=[QuicProtocolVersion.VERSION_2, QuicProtocolVersion.VERSION_1]
    )
    with Server(tmp_path) as server:
        client = asyncio.run(fetch(server.port, configuration))
    assert fetched_sha256(client) == SHA_256
    assert client._quic._version_negotiated_incompatible


def version_negotiation_answer(port: int, datagram: bytes) -> bytes | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(("127.0.0.1", port))
        sock.settimeout(1.0)
        sock.send(datagram)
        try:
            return sock.recv(2048)
        except TimeoutError:
            return None


def test_an_unknown_version_is_answered_by_the_known_ones(tmp_path: Path) -> None:
    long_header = b"\xc0" + UNKNOWN_VERSION.to_bytes(4, "big") + b"\x08DESTCID1" + b"\x04SRC1"
    with Server(tmp_path) as server:
        answer = version_negotiation_answer(server.port, long_header.ljust(1200, b"\0"))
        small = version_negotiation_answer(server.port, long_header.ljust(1199, b"\0"))
    assert answer is not None
    assert answer[0] & 0x80
    assert answer[1:5] == bytes(4)
    assert answer[5:19] == b"\x04SRC1\x08DESTCID1", "the client's CIDs, swapped (RFC 8999 section 6)"
    versions = [int.from_bytes(answer[i : i + 4], "big") for i in range(19, len(answer), 4)]
    assert QuicProtocolVersion.VERSION_1 in versions
    assert UNKNOWN_VERSION not in versions
    assert small is None, "too small a datagram gets no answer (RFC 9000 section 14.1)"


async def ask(port: int) -> dict[str, Exchange]:
    async with connected(port) as client:
        return {
            "whole": await client.get("/synthetic/1000"),
            "missing": await client.get("/no/such/video"),
            "past the end": await client.get("/synthetic/1000", range="bytes=1000-1001"),
            "post": await client.get("/synthetic/1000", method=b"POST"),
            "suffix": await client.get("/synthetic/1000", range="bytes=-10"),
        }


def test_the_server_answers_as_http_asks_for(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        answers = asyncio.run(ask(server.port))
    status = {name: int(exchange.headers[b":status"]) for name, exchange in answers.items()}
    expected = {"whole": 200, "missing": 404, "past the end": 416, "post": 405, "suffix": 206}
    assert status == expected
    assert bytes(answers["whole"].body) == synthetic(0, 999)
    assert answers["whole"].headers[b"accept-ranges"] == b"bytes"
    assert answers["past the end"].headers[b"content-range"] == b"bytes */1000"
    assert bytes(answers["suffix"].body) == synthetic(990, 999)


async def break_http(port: int) -> ConnectionTerminated | None:
    async with connected(port) as client:
        stream = client._quic.get_next_available_stream_id()
        client.exchanges[stream] = Exchange()
        client._quic.send_stream_data(stream, b"\x00\x01x", end_stream=True)  # DATA before HEADERS
        client.transmit()
        await asyncio.wait_for(client.exchanges[stream].done.wait(), 20)
        return client.terminated


def test_the_server_closes_with_the_right_error_code(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        terminated = asyncio.run(break_http(server.port))
    assert server.process.returncode == 0
    assert terminated is not None
    assert terminated.error_code == 0x0105  # H3_FRAME_UNEXPECTED


def test_a_server_that_is_stopped_closes_its_connections(tmp_path: Path) -> None:
    async def hold() -> ConnectionTerminated | None:
        async with connected(server.port) as client:
            await client.get("/synthetic/1000")
            await asyncio.to_thread(server.stop)
            await asyncio.wait_for(client.wait_closed(), 20)
            return client.terminated

    with Server(tmp_path) as server:
        terminated = asyncio.run(hold())
    assert terminated is not None
    assert terminated.error_code == 0x0100  # H3_NO_ERROR
    assert read_jsonl(server.out)[-1]["event"] == "summary"
