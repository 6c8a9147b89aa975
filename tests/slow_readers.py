"""HTTP/3 clients that ask for much and read nothing: they give the server no credit to send bodies."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated, QuicEvent

CREDIT_BYTES = 400  # of each stream: room for the head of an answer and the first bytes of its body
ANSWERS_LIMIT_S = 20.0


class SlowReader(QuicConnectionProtocol):
    http: H3Connection | None = None

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.answers: list[dict[bytes, bytes]] = []
        self._quic._write_stream_limits = lambda *_, **__: None  # type: ignore[method-assign]

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
        for heard in self.http.handle_event(event) if self.http else []:
            if isinstance(heard, HeadersReceived):
                self.answers.append(dict(heard.headers))

    async def ask(self, paths: list[str]) -> None:
        """Sends a request for each path, and waits for the heads of the answers."""
        assert self.http is not None
        for path in paths:
            head = {":method": "GET", ":scheme": "https", ":authority": "test", ":path": path}
            fields = [(name.encode(), value.encode()) for name, value in head.items()]
            self.http.send_headers(self._quic.get_next_available_stream_id(), fields, end_stream=True)
        wanted = len(self.answers) + len(paths)
        self.transmit()
        async with asyncio.timeout(ANSWERS_LIMIT_S):
            while len(self.answers) < wanted:
                await asyncio.sleep(0.01)


@asynccontextmanager
async def slow_readers(port: int, count: int) -> AsyncIterator[list[SlowReader]]:
    """A context with `count` of them, connected to the server on 127.0.0.1."""
    configuration = QuicConfiguration(alpn_protocols=["h3"], verify_mode=ssl.CERT_NONE, max_stream_data=CREDIT_BYTES)
    async with AsyncExitStack() as stack:
        readers = []
        for _ in range(count):
            opened = connect("127.0.0.1", port, configuration=configuration, create_protocol=SlowReader)
            reader = await stack.enter_async_context(opened)
            assert isinstance(reader, SlowReader)
            readers.append(reader)
        yield readers
