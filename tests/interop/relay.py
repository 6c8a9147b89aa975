"""A UDP relay between client and server: it loses and corrupts datagrams, rebinds the client, and notes what it sees.

It works on what is visible without keys: the long header's version, type and connection IDs (RFC 8999, RFC 9000
section 17.2, RFC 9369 section 3.2).
"""

from __future__ import annotations

import asyncio
import random
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

V1, V2 = 1, 0x6B3343CF
TYPES = {V1: ("initial", "0rtt", "handshake", "retry"), V2: ("retry", "initial", "0rtt", "handshake")}
BUFFER_BYTES = 4 << 20
CORRUPTED_BYTES = 3  # of a datagram that is corrupted

Address = tuple[Any, ...]


@dataclass(frozen=True)
class Plan:
    """What the relay does to the datagrams; all zero: it only hands them on."""

    loss: float = 0.0  # in each direction
    corruption: float = 0.0
    drop_client: tuple[int, ...] = ()  # numbers of the client's datagrams, from 1, that are lost
    rebind_after_s: float = 0.0  # after the first datagram, and again after as long: the client has another port …
    rebind_times: int = 0
    rebind_address: bool = False  # … and another address


@dataclass
class Seen:
    """What went by."""

    client_datagrams: int = 0
    server_datagrams: int = 0
    connections: set[str] = field(default_factory=set)  # source connection IDs in the client's Initial packets
    packets: set[str] = field(default_factory=set)  # "client 1 initial": sender, version, type of long headers
    rebindings: int = 0
    amplification: float = 0.0  # bytes to the client / bytes from it, at most, while it had sent drop_client only

    def to_json(self) -> dict[str, Any]:
        return {**self.__dict__, "connections": len(self.connections), "packets": sorted(self.packets)}


def note_packets(seen: Seen, sender: str, data: bytes) -> None:
    """Of a datagram the first packet: those after it are of the same flight."""
    if len(data) < 7 or not data[0] & 0x80:
        return
    version = int.from_bytes(data[1:5], "big")
    if version == 0:
        seen.packets.add(f"{sender} version negotiation")
        return
    kind = TYPES.get(version, ("other",) * 4)[data[0] >> 4 & 3]
    seen.packets.add(f"{sender} v{2 if version == V2 else version} {kind}")
    scid_at = 6 + data[5]
    if sender == "client" and kind == "initial" and scid_at < len(data):
        seen.connections.add(data[scid_at + 1 : scid_at + 1 + data[scid_at]].hex())
    note_coalesced_0rtt(seen, sender, data, kind)


def note_coalesced_0rtt(seen: Seen, sender: str, data: bytes, kind: str) -> None:
    """A client may put its 0-RTT packet into the datagram of its Initial."""
    if sender != "client" or kind != "initial":
        return
    version = data[1:5]
    first = 0xC0 | TYPES[V2 if int.from_bytes(version, "big") == V2 else V1].index("0rtt") << 4
    at = data.find(version, 6)
    while at > 0:
        if data[at - 1] & 0xF0 == first:
            seen.packets.add("client coalesced 0rtt")
        at = data.find(version, at + 1)


class Relay(asyncio.DatagramProtocol):
    def __init__(self, plan: Plan, server: tuple[str, int], seed: int) -> None:
        self.plan, self.server = plan, server
        self.random = random.Random(seed)
        self.seen = Seen()
        self.upstream: dict[Address, socket.socket] = {}  # of each client, towards the server
        self.number = 0
        self.bytes_up = self.bytes_down = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)

    def _impaired(self, data: bytes) -> bytes | None:
        """None: it is lost."""
        if self.random.random() < self.plan.loss:
            return None
        if self.random.random() >= self.plan.corruption:
            return data
        broken = bytearray(data)
        for _ in range(CORRUPTED_BYTES):
            broken[self.random.randrange(len(broken))] ^= 1 << self.random.randrange(8)
        return bytes(broken)

    def datagram_received(self, data: bytes, addr: Address) -> None:
        self.number += 1
        self.seen.client_datagrams += 1
        note_packets(self.seen, "client", data)
        passed = None if self.number in self.plan.drop_client else self._impaired(data)
        if passed is None:
            return
        self.bytes_up += len(passed)
        if addr not in self.upstream:
            self._bind(addr)
            if self.plan.rebind_times and self.seen.rebindings == 0:
                self.rebinding = asyncio.get_running_loop().create_task(self._rebind(addr))
        with suppress(OSError):  # the server is not there yet, or no longer
            self.upstream[addr].send(passed)

    def _bind(self, client: Address) -> None:
        is_v6 = ":" in self.server[0]
        host = "::1" if is_v6 else f"127.0.0.{2 + (self.seen.rebindings if self.plan.rebind_address else 0)}"
        fresh = socket.socket(socket.AF_INET6 if is_v6 else socket.AF_INET, socket.SOCK_DGRAM)
        fresh.setblocking(False)
        fresh.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        fresh.bind((host, 0))
        fresh.connect(self.server)
        loop = asyncio.get_running_loop()
        old, self.upstream[client] = self.upstream.get(client), fresh
        if old is not None:
            loop.remove_reader(old)
            old.close()
        loop.add_reader(fresh, self._read, fresh, client)

    def _read(self, upstream: socket.socket, client: Address) -> None:
        with suppress(OSError):
            self.from_server(upstream.recv(65535), client)

    async def _rebind(self, client: Address) -> None:
        for _ in range(self.plan.rebind_times):
            await asyncio.sleep(self.plan.rebind_after_s)
            self.seen.rebindings += 1
            self._bind(client)

    def from_server(self, data: bytes, client: Address) -> None:
        self.seen.server_datagrams += 1
        note_packets(self.seen, "server", data)
        if self.plan.drop_client and self.number <= max(self.plan.drop_client):
            self.bytes_down += len(data)
            self.seen.amplification = max(self.seen.amplification, self.bytes_down / max(self.bytes_up, 1))
        passed = self._impaired(data)
        if passed is not None:
            self.transport.sendto(passed, client)


async def start(plan: Plan, port: int, server: tuple[str, int], *, seed: int = 1) -> Relay:
    """A relay on all addresses of this port, of the server's family."""
    is_v6 = ":" in server[0]
    sock = socket.socket(socket.AF_INET6 if is_v6 else socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    sock.bind(("::" if is_v6 else "0.0.0.0", port))  # noqa: S104  # in a namespace of its own
    loop = asyncio.get_running_loop()
    _, relay = await loop.create_datagram_endpoint(lambda: Relay(plan, server, seed), sock=sock)
    return relay
