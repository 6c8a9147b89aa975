"""Short-header packets of a capture, decrypted, with the path that they are of: RFC 9001, RFC 10069 section 2.4.

Wireshark's dissector knows no path ID, which is in the nonce of every path but the first. The keys are those of the
SSLKEYLOGFILE. For one connection, QUIC version 1.
"""

import hmac
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from Crypto.Cipher import AES, ChaCha20, ChaCha20_Poly1305

MAX_PATH_ID = 16  # path IDs above are not looked for
SAMPLE_OFFSET, SAMPLE_BYTES, TAG_BYTES = 4, 16, 16
ACK, ACK_ECN, RESET_STREAM, CRYPTO, NEW_TOKEN, NEW_CONNECTION_ID = 0x02, 0x03, 0x04, 0x06, 0x07, 0x18
PATH_CHALLENGE, PATH_RESPONSE, CONNECTION_CLOSE, APPLICATION_CLOSE = 0x1A, 0x1B, 0x1C, 0x1D
DATAGRAM, DATAGRAM_WITH_LENGTH = 0x30, 0x31
PATH_ACK, PATH_ACK_ECN, PATH_ABANDON, PATH_STATUS_BACKUP = 0x3E, 0x3F, 0x3E75, 0x3E76
PATH_STATUS_AVAILABLE, PATH_NEW_CONNECTION_ID = 0x3E77, 0x3E78
STREAMS = range(0x08, 0x10)
# Frames that are nothing but integers: how many.
INTEGERS = {
    **{0x00: 0, 0x01: 0, 0x04: 3, 0x05: 2, 0x10: 1, 0x11: 2, 0x12: 1, 0x13: 1, 0x14: 1, 0x15: 2, 0x16: 1, 0x17: 1},
    **{0x19: 1, 0x1E: 0, 0x1F: 0, 0xAF: 4, PATH_ABANDON: 2, PATH_STATUS_BACKUP: 2, PATH_STATUS_AVAILABLE: 2},
    **{0x3E79: 2, 0x3E7A: 1, 0x3E7B: 1, 0x3E7C: 2},
}


class UndecipherableError(Exception):
    """The capture and the keys do not fit each other, or a packet is malformed."""


@dataclass(frozen=True)
class Frame:
    type: int
    values: tuple[
        int, ...
    ] = ()  # the integers with which it begins; of PATH_ACK, PATH_ABANDON, PATH_STATUS: the path ID
    data: bytes = b""  # of PATH_CHALLENGE and PATH_RESPONSE
    stream_bytes: int = 0


@dataclass(frozen=True)
class Packet:
    time: float
    from_client: bool
    ip_version: int
    path_id: int
    frames: tuple[Frame, ...]

    def has(self, *types: int) -> bool:
        return any(frame.type in types for frame in self.frames)

    @property
    def stream_bytes(self) -> int:
        return sum(frame.stream_bytes for frame in self.frames)


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def left(self) -> int:
        return len(self.data) - self.at

    def take(self, count: int) -> bytes:
        if count > self.left():
            raise UndecipherableError("a frame is longer than its packet")
        self.at += count
        return self.data[self.at - count : self.at]

    def integer(self) -> int:
        first = self.take(1)[0]
        rest = self.take((1 << (first >> 6)) - 1)
        return int.from_bytes(bytes([first & 0x3F]) + rest)


def _read_ack(reader: Reader, kind: int) -> Frame:
    path = (reader.integer(),) if kind in (PATH_ACK, PATH_ACK_ECN) else ()
    reader.integer()
    reader.integer()
    ranges = reader.integer()
    for _ in range(1 + 2 * ranges + (3 if kind in (ACK_ECN, PATH_ACK_ECN) else 0)):
        reader.integer()
    return Frame(kind, path)


def _read_stream(reader: Reader, kind: int) -> Frame:
    reader.integer()
    if kind & 4:
        reader.integer()
    length = reader.integer() if kind & 2 else reader.left()
    reader.take(length)
    return Frame(kind, stream_bytes=length)


def _read_connection_id(reader: Reader, kind: int) -> Frame:
    path = (reader.integer(),) if kind == PATH_NEW_CONNECTION_ID else ()
    reader.integer()
    reader.integer()
    reader.take(reader.take(1)[0] + 16)
    return Frame(kind, path)


def _read_with_length(reader: Reader, kind: int) -> Frame:
    for _ in range({CRYPTO: 1, CONNECTION_CLOSE: 2, APPLICATION_CLOSE: 1}.get(kind, 0)):
        reader.integer()
    reader.take(reader.left() if kind == DATAGRAM else reader.integer())
    return Frame(kind)


def read_frames(payload: bytes) -> Iterator[Frame]:
    """The frames of a packet, up to the first one of a type that is not known."""
    reader = Reader(payload)
    while reader.left() > 0:
        kind = reader.integer()
        if kind in STREAMS:
            yield _read_stream(reader, kind)
        elif kind in (ACK, ACK_ECN, PATH_ACK, PATH_ACK_ECN):
            yield _read_ack(reader, kind)
        elif kind in (NEW_CONNECTION_ID, PATH_NEW_CONNECTION_ID):
            yield _read_connection_id(reader, kind)
        elif kind in (PATH_CHALLENGE, PATH_RESPONSE):
            yield Frame(kind, data=reader.take(8))
        elif kind in (CRYPTO, NEW_TOKEN, CONNECTION_CLOSE, APPLICATION_CLOSE, DATAGRAM, DATAGRAM_WITH_LENGTH):
            yield _read_with_length(reader, kind)
        elif kind in INTEGERS:
            values = tuple(reader.integer() for _ in range(INTEGERS[kind]))
            if kind != 0:
                yield Frame(kind, values)
        else:
            return


def _expand(secret: bytes, label: str, length: int) -> bytes:
    """HKDF-Expand-Label of RFC 8446 section 7.1, for outputs of one hash."""
    name = b"tls13 " + label.encode()
    info = length.to_bytes(2) + bytes([len(name)]) + name + b"\0\1"
    return hmac.digest(secret, info, _hash_of(secret))[:length]


def _hash_of(secret: bytes) -> str:
    return "sha384" if len(secret) == 48 else "sha256"


@dataclass
class Keys:
    """One direction. The header protection key is that of the first key phase (RFC 9001 section 6)."""

    secret: bytes
    is_chacha: bool
    generation: int = 0
    header: bytes = b""
    key: bytes = b""
    iv: bytes = b""

    def __post_init__(self) -> None:
        size = 32 if self.is_chacha or _hash_of(self.secret) == "sha384" else 16
        self.key, self.iv = _expand(self.secret, "quic key", size), _expand(self.secret, "quic iv", 12)
        self.header = self.header or _expand(self.secret, "quic hp", size)

    def next(self) -> "Keys":
        secret = _expand(self.secret, "quic ku", len(self.secret))
        return Keys(secret, self.is_chacha, self.generation + 1, self.header)

    def mask(self, sample: bytes) -> bytes:
        if not self.is_chacha:
            return AES.new(self.header, AES.MODE_ECB).encrypt(sample)[:5]
        cipher = ChaCha20.new(key=self.header, nonce=sample[4:])
        cipher.seek(64 * int.from_bytes(sample[:4], "little"))
        return cipher.encrypt(bytes(5))

    def open(self, path_id: int, number: int, header: bytes, protected: bytes) -> bytes | None:
        """None: it is not of this path, or of other keys."""
        nonce = bytes(a ^ b for a, b in zip(self.iv, path_id.to_bytes(4) + number.to_bytes(8), strict=True))
        cipher = (
            ChaCha20_Poly1305.new(key=self.key, nonce=nonce)
            if self.is_chacha
            else AES.new(self.key, AES.MODE_GCM, nonce=nonce)
        )
        cipher.update(header)
        try:
            return cipher.decrypt_and_verify(protected[:-TAG_BYTES], protected[-TAG_BYTES:])
        except ValueError:
            return None


def _full_number(truncated: int, size: int, largest: int) -> int:
    """RFC 9000 appendix A.3."""
    window, expected = 1 << (8 * size), largest + 1
    candidate = (expected & ~(window - 1)) | truncated
    if candidate <= expected - window // 2:
        return candidate + window
    if candidate > expected + window // 2 and candidate >= window:
        return candidate - window
    return candidate


@dataclass
class Side:
    """What one endpoint sends."""

    keys: list[Keys]  # candidates; one is left after the first packet that was opened
    cid_bytes: int  # of the connection IDs that its packets carry, which the peer chose
    largest: dict[int, int] = field(default_factory=dict)  # packet number, by path
    path_of: dict[bytes, int] = field(default_factory=dict)  # by connection ID

    def open(self, datagram: bytes) -> tuple[int, bytes] | None:
        """Path ID and payload. None: no key opens it, as with a stateless reset."""
        at = 1 + self.cid_bytes
        if len(datagram) < at + SAMPLE_OFFSET + SAMPLE_BYTES:
            return None
        cid = datagram[1:at]
        candidates = [self.path_of[cid]] if cid in self.path_of else range(MAX_PATH_ID + 1)
        for keys in self.keys:
            mask = keys.mask(datagram[at + SAMPLE_OFFSET : at + SAMPLE_OFFSET + SAMPLE_BYTES])
            first = datagram[0] ^ (mask[0] & 0x1F)
            size = (first & 3) + 1
            number = bytes(a ^ b for a, b in zip(datagram[at : at + size], mask[1:], strict=False))
            header = bytes([first]) + cid + number
            is_same_phase = (first >> 2 & 1) == keys.generation & 1
            for generation in (keys,) if is_same_phase else (keys.next(),):
                for path_id in candidates:
                    full = _full_number(int.from_bytes(number), size, self.largest.get(path_id, -1))
                    payload = generation.open(path_id, full, header, datagram[at + size :])
                    if payload is not None:
                        self.largest[path_id] = max(full, self.largest.get(path_id, -1))
                        self.path_of[cid] = path_id
                        self.keys = [generation]
                        return path_id, payload
        return None


def _secret(keylog: Path, label: str) -> bytes:
    lines = [line.split() for line in keylog.read_text().splitlines()]
    secrets = {words[2] for words in lines if len(words) == 3 and words[0] == label}
    if len(secrets) != 1:
        raise UndecipherableError(f"{keylog} has {len(secrets)} lines of {label}, and one is wanted")
    return bytes.fromhex(secrets.pop())


def _tshark(capture: Path, *options: str, wanted: str, fields: tuple[str, ...]) -> list[list[str]]:
    """The fields of the packets wanted; those that answer by ICMP quote others, and are left out."""
    command = ["tshark", "-n", "-r", str(capture), *options, "-Y", f"{wanted} && !icmp && !icmpv6", "-T", "fields"]
    command += [word for name in fields for word in ("-e", name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [line.split("\t") for line in done.stdout.splitlines()]


def _datagrams(capture: Path, server_port: int) -> Iterator[tuple[float, bool, int, bytes]]:
    """Time, whether the client sent it, IP version, and the payload."""
    fields = ("frame.time_epoch", "udp.dstport", "ip.version", "udp.payload")
    options = ("--disable-protocol", "quic")
    for time, port, version, payload in _tshark(capture, *options, wanted=f"udp.port=={server_port}", fields=fields):
        if payload:
            yield float(time), int(port) == server_port, int(version), bytes.fromhex(payload.replace(":", ""))


def transport_parameters(capture: Path, keylog: Path, server_port: int = 443) -> dict[bool, set[int]]:
    """Their numbers, by whether the client sent them."""
    sent: dict[bool, set[int]] = {True: set(), False: set()}
    options = ("-o", f"tls.keylog_file:{keylog}", "-d", f"udp.port=={server_port},quic")
    name = "tls.quic.parameter.type"
    for port, numbers in _tshark(capture, *options, wanted=name, fields=("udp.dstport", name)):
        sent[int(port) == server_port] |= {int(number, 0) for number in numbers.split(",")}
    return sent


def _source_cid(datagram: bytes) -> bytes:
    """The source connection ID of a packet with a long header."""
    at = 6 + datagram[5]
    return datagram[at + 1 : at + 1 + datagram[at]]


def decrypt(capture: Path, keylog: Path, server_port: int = 443) -> list[Packet]:
    """The 1-RTT packets of the one connection of a capture, without those behind another packet in their datagram."""
    datagrams = list(_datagrams(capture, server_port))
    cid_bytes = {True: 0, False: 0}  # by who chose them; a Retry may have others than the packets after it
    for _, from_client, _, datagram in datagrams:
        if datagram[0] & 0x80:
            cid_bytes[from_client] = len(_source_cid(datagram))
    sides = {}
    for from_client, label in ((True, "CLIENT_TRAFFIC_SECRET_0"), (False, "SERVER_TRAFFIC_SECRET_0")):
        secret = _secret(keylog, label)
        candidates = [Keys(secret, is_chacha=False)] + [Keys(secret, is_chacha=True)] * (_hash_of(secret) == "sha256")
        sides[from_client] = Side(candidates, cid_bytes[not from_client])
    packets = []
    for time, from_client, version, datagram in datagrams:
        opened = None if datagram[0] & 0x80 else sides[from_client].open(datagram)
        if opened:
            packets.append(Packet(time, from_client, version, opened[0], tuple(read_frames(opened[1]))))
    return packets
