"""An HTTP/3 server by aioquic that serves /synthetic/<bytes> with ranges: the peer of xlink-player in a test.

`python interop_server.py CERTIFICATE KEY [--retry] [--ignore-range] [--late-credit] [--late-answer]` prints
{"quic": "127.0.0.1:<port>"} and serves until SIGTERM; then it prints one JSON line about what its connections did.
--late-credit: one request at a time, and room for the next one 0.2 s after the last. --late-answer: after 3 s.
"""

import asyncio
import json
import re
import signal
import sys
from typing import Any

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import H3Event, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ProtocolNegotiated, QuicEvent

from quic_programs import synthetic

RANGE = re.compile(rb"bytes=(\d+)-(\d+)")
TARGET = re.compile(rb"/synthetic/(\d+)")
PEERS: set[tuple[str, int]] = set()
REQUESTS: list[str] = []


def answer(headers: dict[bytes, bytes]) -> tuple[list[tuple[bytes, bytes]], bytes]:
    target = TARGET.fullmatch(headers[b":path"])
    if headers[b":method"] != b"GET" or target is None:
        return [(b":status", b"404"), (b"content-length", b"0")], b""
    size = int(target[1])
    wanted = RANGE.fullmatch(headers.get(b"range", b""))
    if wanted is None or "--ignore-range" in sys.argv:
        return [(b":status", b"200"), (b"content-length", str(size).encode())], synthetic(0, size - 1)
    first, last = int(wanted[1]), min(int(wanted[2]), size - 1)
    fields = [(b":status", b"206"), (b"content-length", str(last - first + 1).encode())]
    fields.append((b"content-range", f"bytes {first}-{last}/{size}".encode()))
    return fields, synthetic(first, last)


class Protocol(QuicConnectionProtocol):
    http: H3Connection | None = None
    granted = 1  # requests, with --late-credit

    def __init__(self, quic: QuicConnection, *arguments: Any, **named: Any) -> None:
        super().__init__(quic, *arguments, **named)
        if "--late-credit" in sys.argv:
            limit, write = self._quic._local_max_streams_bidi, self._quic._write_connection_limits

            def write_what_is_granted(*arguments: Any, **named: Any) -> None:
                limit.value = self.granted  # aioquic itself raises it earlier
                write(*arguments, **named)

            limit.value = limit.sent = self.granted
            self._quic._write_connection_limits = write_what_is_granted  # type: ignore[method-assign]

    def grant_a_stream(self) -> None:
        self.granted += 1
        self.transmit()

    def datagram_received(self, data: bytes | str, addr: Any) -> None:
        PEERS.add((addr[0], addr[1]))
        super().datagram_received(data, addr)

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
        if self.http is not None:
            for http_event in self.http.handle_event(event):
                self.http_event_received(http_event)

    def http_event_received(self, event: H3Event) -> None:
        if not isinstance(event, HeadersReceived) or self.http is None:
            return
        headers = dict(event.headers)
        REQUESTS.append(headers[b":path"].decode())
        if "--late-answer" in sys.argv:
            asyncio.get_running_loop().call_later(3, self.send_answer, event.stream_id, headers)
        else:
            self.send_answer(event.stream_id, headers)
        if "--late-credit" in sys.argv:
            asyncio.get_running_loop().call_later(0.2, self.grant_a_stream)

    def send_answer(self, stream: int, headers: dict[bytes, bytes]) -> None:
        assert self.http is not None
        fields, body = answer(headers)
        self.http.send_headers(stream, fields, end_stream=not body)
        if body:
            self.http.send_data(stream, body, end_stream=True)
        self.transmit()


async def main(certificate: str, key: str, retry: bool) -> None:
    configuration = QuicConfiguration(is_client=False, alpn_protocols=["h3"], max_datagram_size=1452)
    configuration.load_cert_chain(certificate, key)
    server = await serve("127.0.0.1", 0, configuration=configuration, create_protocol=Protocol, retry=retry)
    assert server._transport is not None
    port = server._transport.get_extra_info("sockname")[1]
    print(json.dumps({"quic": f"127.0.0.1:{port}"}), flush=True)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    server.close()
    print(json.dumps({"peers": sorted(PEERS), "requests": len(REQUESTS)}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], "--retry" in sys.argv[3:]))
