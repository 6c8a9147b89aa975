"""A UDP relay between client and server: it loses and corrupts datagrams, rebinds the client, and notes what it sees.

It works on what is visible without keys: the long header's version, type and connection IDs (RFC 8999, RFC 9000
section 17.2, RFC 9369 section 3.2), and the ECN field, which it hands on.
"""

import asyncio
import random
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

V1, V2 = 1, 0x6B3343CF
TYPES = {V1: ("initial", "0rtt", "handshake", "retry"), V2: ("retry", "initial", "0rtt", "handshake")}
BUFFER_BYTES = 4 << 20
CORRUPTED_BYTES = 3  # of a datagram that is corrupted
DATAGRAM_BYTES = 65535
ECN_NAMES = ("", "ect1", "ect0", "ce")  # RFC 3168 section 5

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
    packets: set[str] = field(default_factory=set)  # "client v1 initial", "server ect0", "client moved"
    paths: dict[Address, set[bytes]] = field(default_factory=dict)  # of each client address the first bytes of its CIDs
    down: dict[Address, int] = field(default_factory=dict)  # datagrams of the server to each client address
    rebindings: int = 0
    amplification: float = 0.0  # bytes to the client / bytes from it, at most, while it had sent drop_client only

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "connections": len(self.connections),
            "packets": sorted(self.packets),
            "paths": len(self.paths),
        }
        told["down"] = sorted(self.down.values())
        return {**self.__dict__, **told}


def note_packets(seen: Seen, sender: str, data: bytes) -> None:
    """Notes the first packet of a datagram: those after it are of the same flight."""
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


def note_path(seen: Seen, data: bytes, client: Address) -> None:
    """Notes short headers. A client that moves takes another connection ID of the server (section 9.5)."""
    if len(data) < 21 or data[0] & 0x80:
        return
    start = data[1:5]
    used = {cid for address, cids in seen.paths.items() if address != client for cid in cids}
    if used and client not in seen.paths and start not in used:
        seen.packets.add("client moved")
    seen.paths.setdefault(client, set()).add(start)


def note_ecn(seen: Seen, sender: str, ecn: int) -> None:
    if ecn:
        seen.packets.add(f"{sender} {ECN_NAMES[ecn]}")


def open_socket(family: int, address: tuple[str, int]) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    if family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, 1)
    else:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
    sock.bind(address)
    return sock


def receive(sock: socket.socket) -> tuple[bytes, int, Address]:
    """A datagram, its ECN field, and where it came from."""
    data, ancillary, _, address = sock.recvmsg(DATAGRAM_BYTES, socket.CMSG_SPACE(4))
    ecn = next((value[0] & 3 for _, _, value in ancillary), 0)
    return data, ecn, address


def send(sock: socket.socket, data: bytes, ecn: int, address: Address | None = None) -> None:
    kind = (socket.IPPROTO_IPV6, socket.IPV6_TCLASS) if sock.family == socket.AF_INET6 else (0, socket.IP_TOS)
    marks = [(*kind, ecn.to_bytes(4, sys.byteorder))] if ecn else []
    with suppress(OSError):  # the other side is not there yet, or no longer
        sock.sendmsg([data], marks, 0, *([address] if address else []))


class Relay:
    def __init__(self, plan: Plan, sock: socket.socket, server: tuple[str, int], seed: int) -> None:
        self.plan, self.sock, self.server = plan, sock, server
        self.random = random.Random(seed)
        self.seen = Seen()
        self.upstream: dict[Address, socket.socket] = {}  # of each client, towards the server
        self.number = 0
        self.bytes_up = self.bytes_down = 0

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

    def read_client(self) -> None:
        with suppress(OSError):
            self.from_client(*receive(self.sock))

    def from_client(self, data: bytes, ecn: int, addr: Address) -> None:
        self.number += 1
        self.seen.client_datagrams += 1
        note_packets(self.seen, "client", data)
        note_path(self.seen, data, addr)
        note_ecn(self.seen, "client", ecn)
        passed = None if self.number in self.plan.drop_client else self._impaired(data)
        if passed is None:
            return
        self.bytes_up += len(passed)
        if addr not in self.upstream:
            self._bind(addr)
            if self.plan.rebind_times and self.seen.rebindings == 0:
                self.rebinding = asyncio.get_running_loop().create_task(self._rebind(addr))
        send(self.upstream[addr], passed, ecn)

    def _bind(self, client: Address) -> None:
        is_v6 = ":" in self.server[0]
        host = "::1" if is_v6 else f"127.0.0.{2 + (self.seen.rebindings if self.plan.rebind_address else 0)}"
        fresh = open_socket(socket.AF_INET6 if is_v6 else socket.AF_INET, (host, 0))
        fresh.connect(self.server)
        loop = asyncio.get_running_loop()
        old, self.upstream[client] = self.upstream.get(client), fresh
        if old is not None:
            loop.remove_reader(old)
            old.close()
        loop.add_reader(fresh, self._read, fresh, client)

    def _read(self, upstream: socket.socket, client: Address) -> None:
        with suppress(OSError):
            data, ecn, _ = receive(upstream)
            self.from_server(data, ecn, client)

    async def _rebind(self, client: Address) -> None:
        for _ in range(self.plan.rebind_times):
            await asyncio.sleep(self.plan.rebind_after_s)
            self.seen.rebindings += 1
            self._bind(client)

    def from_server(self, data: bytes, ecn: int, client: Address) -> None:
        self.seen.server_datagrams += 1
        self.seen.down[client] = self.seen.down.get(client, 0) + 1
        note_ecn(self.seen, "server", ecn)
        note_packets(self.seen, "server", data)
        if self.plan.drop_client and self.number <= max(self.plan.drop_client):
            self.bytes_down += len(data)
            self.seen.amplification = max(self.seen.amplification, self.bytes_down / max(self.bytes_up, 1))
        passed = self._impaired(data)
        if passed is not None:
            send(self.sock, passed, ecn, client)


async def start(plan: Plan, port: int, server: tuple[str, int], *, seed: int = 1) -> Relay:
    """A relay on all addresses of this port, of the server's family."""
    is_v6 = ":" in server[0]
    everywhere = "::" if is_v6 else "0.0.0.0"  # noqa: S104  # in a namespace of its own
    sock = open_socket(socket.AF_INET6 if is_v6 else socket.AF_INET, (everywhere, port))
    relay = Relay(plan, sock, server, seed)
    asyncio.get_running_loop().add_reader(sock, relay.read_client)
    return relay
