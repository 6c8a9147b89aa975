"""The server's connections: their largest number, the limit of idle time, and the retry if the system refuses
another."""

import asyncio
import resource
import socket
import sys
from collections.abc import Sequence
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream
from tornado.netutil import bind_sockets
from tornado.web import Application

from railyard.base.errors import UserError

LOOPBACK = "127.0.0.1"
MOST_BODY_BYTES = 64 << 10
MOST_CONNECTIONS = 128
IDLE_S = 60.0  # limit for a request to be complete, and between two requests
PAUSE_S = 1.0  # before the next try after the system refused a connection


def listening(port: int) -> list[socket.socket]:
    """Listening sockets on the loopback interface. Raises UserError."""
    try:
        return bind_sockets(port, LOOPBACK)
    except OSError as error:
        raise UserError(f"port {port}: {error.strerror or error}; choose another with --port, or 0 for any.") from None


def most_connections() -> int:
    """The largest number of connections: a quarter of the process's descriptors, as pages open files too."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if limit == resource.RLIM_INFINITY else max(1, min(MOST_CONNECTIONS, limit // 4))


class Server(HTTPServer):
    """A server with a limit of connections. At the limit a new connection ends the oldest, so that a client with many
    connections does not lock out others."""

    _most: int
    _streams: list[IOStream]
    _accepting: set[socket.socket]

    def accept_from(self, sockets: Sequence[socket.socket]) -> None:
        """Accepts connections until stop_accepting()."""
        self._most, self._streams, self._accepting = most_connections(), [], set(sockets)
        for one in sockets:
            asyncio.get_running_loop().add_reader(one, self._accept, one)

    def stop_accepting(self) -> None:
        for one in self._accepting:
            asyncio.get_running_loop().remove_reader(one)
            one.close()
        self._accepting.clear()

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # the client has closed it already
        except OSError as error:
            print(f"railyard: a connection cannot be taken: {error.strerror}; trying again.", file=sys.stderr)
            loop = asyncio.get_running_loop()
            loop.remove_reader(listener)  # otherwise this is called again at once
            loop.call_later(PAUSE_S, self._resume, listener)
            return
        self.handle_stream(IOStream(connection, max_buffer_size=self.max_buffer_size), address)

    def _resume(self, listener: socket.socket) -> None:
        if listener in self._accepting:
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        self._streams = [one for one in self._streams if not one.closed()]
        while len(self._streams) >= self._most:
            self._streams.pop(0).close()
        self._streams.append(stream)
        super().handle_stream(stream, address)


def server_of(pages: Application) -> Server:
    """The server of the pages. It answers after accept_from()."""
    return Server(
        pages,
        max_body_size=MOST_BODY_BYTES,
        max_buffer_size=4 * MOST_BODY_BYTES,
        idle_connection_timeout=IDLE_S,
        body_timeout=IDLE_S,
    )
