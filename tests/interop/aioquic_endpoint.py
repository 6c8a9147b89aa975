"""aioquic as an endpoint of quic-interop-runner: ROLE and TESTCASE in the environment, of a client the URLs."""

import asyncio
import os
import ssl
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aioquic import tls
from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, H3Event, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, ProtocolNegotiated, QuicEvent, StreamDataReceived, StreamReset
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.tls import CipherSuite, SessionTicket

WWW, DOWNLOADS = Path("/www"), Path("/downloads")
UNSUPPORTED = 127
KNOWN = ("handshake", "transfer", "longrtt", "ipv6", "http3", "multiconnect", "retry", "chacha20", "resumption")
ALSO = ("zerortt", "keyupdate", "v2")
OF_SERVERS = ("connectionmigration",)  # the client has no call to move
OF_CLIENTS = ("p256",)  # the server sends no HelloRetryRequest


class Server(QuicConnectionProtocol):
    http: H3Connection | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lines: dict[int, bytes] = {}

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ProtocolNegotiated) and event.alpn_protocol == "h3":
            self.http = H3Connection(self._quic)
        if self.http is not None:
            for http_event in self.http.handle_event(event):
                self.http_event_received(self.http, http_event)
        elif isinstance(event, StreamDataReceived):
            line = self.lines[event.stream_id] = self.lines.get(event.stream_id, b"") + event.data
            if event.end_stream:
                self._quic.send_stream_data(event.stream_id, self.body(line.split()[1]) or b"", end_stream=True)
        self.transmit()

    def http_event_received(self, http: H3Connection, event: H3Event) -> None:
        if not isinstance(event, HeadersReceived):
            return
        body = self.body(dict(event.headers)[b":path"])
        status = b"404" if body is None else b"200"
        http.send_headers(event.stream_id, [(b":status", status)])
        http.send_data(event.stream_id, body or b"", end_stream=True)

    def body(self, path: bytes) -> bytes | None:
        file = WWW / Path(path.decode()).name
        return file.read_bytes() if file.is_file() else None


class Client(QuicConnectionProtocol):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.http = H3Connection(self._quic) if os.environ.get("HTTP3") else None
        self.files: dict[int, Path] = {}
        self.bodies: dict[int, bytearray] = {}
        self.failed = False
        self.waiters: dict[int, asyncio.Event] = {}

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ConnectionTerminated):
            self.failed |= any(not waiter.is_set() for waiter in self.waiters.values())
            for waiter in self.waiters.values():
                waiter.set()
        elif isinstance(event, StreamReset) and event.stream_id in self.waiters:
            self.failed = True
            self.waiters[event.stream_id].set()
        elif self.http is not None:
            for http_event in self.http.handle_event(event):
                if isinstance(http_event, DataReceived):
                    self.take(http_event.stream_id, http_event.data, http_event.stream_ended)
        elif isinstance(event, StreamDataReceived):
            self.take(event.stream_id, event.data, event.end_stream)

    def take(self, stream: int, data: bytes, ended: bool) -> None:
        self.bodies[stream] += data
        if os.environ["TESTCASE"] == "keyupdate" and len(self.bodies[stream]) > 500_000 and not self.updated:
            self.updated = True
            self._quic.request_key_update()
        if ended:
            self.files[stream].write_bytes(self.bodies[stream])
            self.waiters[stream].set()

    updated = False

    def ask(self, url: str) -> None:
        where = urlsplit(url)
        stream = self._quic.get_next_available_stream_id()
        self.files[stream] = DOWNLOADS / Path(where.path).name
        self.bodies[stream], self.waiters[stream] = bytearray(), asyncio.Event()
        if self.http is None:
            self._quic.send_stream_data(stream, f"GET {where.path}\r\n".encode(), end_stream=True)
            return
        headers = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", where.netloc.encode())]
        self.http.send_headers(stream, [*headers, (b":path", where.path.encode())], end_stream=True)


def configuration(*, is_client: bool) -> QuicConfiguration:
    alpn = ["h3", "hq-interop"] if not is_client else ["h3" if os.environ.get("HTTP3") else "hq-interop"]
    result = QuicConfiguration(is_client=is_client, alpn_protocols=alpn, verify_mode=ssl.CERT_NONE)
    result.max_data = result.max_stream_data = 8 << 20
    testcase = os.environ["TESTCASE"]
    if testcase == "chacha20":
        result.cipher_suites = [CipherSuite.CHACHA20_POLY1305_SHA256]
    if testcase == "v2":
        versions: list[int] = [QuicProtocolVersion.VERSION_2, QuicProtocolVersion.VERSION_1]
        result.supported_versions = versions
        result.original_version = QuicProtocolVersion.VERSION_1 if is_client else None
    if not is_client:
        result.load_cert_chain("/certs/cert.pem", "/certs/priv.key")
    return result


def share_p256_alone(buf: Any, hello: tls.ClientHello, push: Any = tls.push_client_hello) -> None:
    """It knows X25519, too, but not what to do with a HelloRetryRequest."""
    hello.key_share = [share for share in hello.key_share or [] if share[0] == tls.Group.SECP256R1]
    push(buf, hello)


async def run_server() -> int:
    tickets: dict[bytes, SessionTicket] = {}
    await serve(
        "::",
        443,
        configuration=configuration(is_client=False),
        create_protocol=Server,
        retry=os.environ["TESTCASE"] == "retry",
        session_ticket_fetcher=lambda label: tickets.pop(label, None),
        session_ticket_handler=lambda ticket: tickets.__setitem__(ticket.ticket, ticket),
    )
    await asyncio.Event().wait()
    return 0


async def fetch(urls: list[str], tickets: list[SessionTicket]) -> bool:
    where = urlsplit(urls[0])
    assert where.hostname is not None and where.port is not None
    setup = configuration(is_client=True)
    early = os.environ["TESTCASE"] == "zerortt" and bool(tickets)
    if tickets:
        setup.session_ticket = tickets[-1]
    async with connect(
        where.hostname,
        where.port,
        configuration=setup,
        create_protocol=Client,
        session_ticket_handler=tickets.append,
        wait_connected=not early,
    ) as client:
        assert isinstance(client, Client)
        for url in urls:
            client.ask(url)
        client.transmit()
        for waiter in list(client.waiters.values()):
            await asyncio.wait_for(waiter.wait(), 140)
        resumed = client._quic.tls.session_resumed
    wanted = os.environ["TESTCASE"] in ("resumption", "zerortt") and setup.session_ticket is not None
    return not client.failed and (resumed or not wanted)


async def run_client(urls: list[str]) -> int:
    testcase = os.environ["TESTCASE"]
    tickets: list[SessionTicket] = []
    parts = [urls]
    if testcase == "multiconnect":
        parts = [[url] for url in urls]
    elif testcase in ("resumption", "zerortt"):
        parts = [urls[:1], urls[1:]]
    for part in parts:
        if not await fetch(part, tickets):
            return 1
    return 0


def main() -> int:
    is_server = os.environ.get("ROLE") == "server"
    testcase = os.environ.get("TESTCASE")
    if testcase not in KNOWN + ALSO + (OF_SERVERS if is_server else OF_CLIENTS):
        return UNSUPPORTED
    if testcase == "p256":
        tls.push_client_hello = share_p256_alone
    if is_server:
        return asyncio.run(run_server())
    return asyncio.run(run_client(sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(main())
