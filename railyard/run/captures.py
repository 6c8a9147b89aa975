"""A run's packet captures: one pcapng file for each endpoint, with the keys that decrypt it.

The emulator leaves one pcap file for each path and end in the folder `captures`. They become `player.pcapng` and
`server.pcapng`: an interface for each path, all packets in the order of their times, and the TLS secrets of the
player's key log as a Decryption Secrets Block (draft-ietf-opsawg-pcapng), so that Wireshark and tshark need no key
file.
"""

import heapq
import os
import re
import shutil
import stat
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

FOLDER = "captures"  # with the emulator's files
SIDES = {"player": "inside", "server": "outside"}  # endpoint: the side of mpshell's devices
SUFFIX = ".pcapng"
KEYS = "player.keys"
MOST_KEYS_BYTES = 1 << 20  # enough for 5,000 connections

# The format of the emulator's files: emulator/link/capture.h.
_HEAD_BYTES, _RECORD, _NS_PER_S = 24, struct.Struct("=4I"), 1_000_000_000
_MOST_BYTES = 1 << 16  # of a packet

_SECTION, _INTERFACE, _PACKET, _SECRETS = 0x0A0D0D0A, 1, 6, 10
_BYTE_ORDER, _LENGTH_UNKNOWN, _RAW = 0x1A2B3C4D, -1, 101
_END, _NAME, _RESOLUTION = 0, 2, 9  # options
_TLS_KEY_LOG = 0x544C534B
_KEY_LOG_LINE = re.compile(rb"[A-Z0-9_]{1,64} [0-9a-fA-F]{64} [0-9a-fA-F]{64,128}\n")  # of TLS 1.3, NSS key log format

_Packet = tuple[int, int, int, bytes]
"""Time in ns, number of the interface, length on the wire, and the captured bytes."""


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("=I", len(body) + 12)
    return struct.pack("=I", kind) + length + body + length


def _option(code: int, value: bytes = b"") -> bytes:
    return struct.pack("=2H", code, len(value)) + _padded(value)


def _head(names: Sequence[str], secrets: bytes) -> bytes:
    """The blocks before the packets. The secrets are among them, because a reader decrypts while it reads."""
    blocks = [_block(_SECTION, struct.pack("=I2Hq", _BYTE_ORDER, 1, 0, _LENGTH_UNKNOWN))]
    if secrets:
        blocks.append(_block(_SECRETS, struct.pack("=2I", _TLS_KEY_LOG, len(secrets)) + _padded(secrets)))
    for name in names:
        options = _option(_NAME, name.encode()) + _option(_RESOLUTION, b"\x09") + _option(_END)
        blocks.append(_block(_INTERFACE, struct.pack("=2HI", _RAW, 0, 0) + options))
    return b"".join(blocks)


def _read(file: IO[bytes], interface: int) -> Iterator[_Packet]:
    """The records of an emulator's file, up to the first one that is incomplete."""
    file.seek(_HEAD_BYTES)
    while len(head := file.read(_RECORD.size)) == _RECORD.size:
        seconds, ns, kept, length = _RECORD.unpack(head)
        if kept > _MOST_BYTES or len(data := file.read(kept)) < kept:
            return
        yield seconds * _NS_PER_S + ns, interface, length, data


def _write(out: IO[bytes], names: Sequence[str], files: Sequence[IO[bytes]], secrets: bytes) -> None:
    out.write(_head(names, secrets))
    packets = [_read(file, interface) for interface, file in enumerate(files)]
    for ns, interface, length, data in heapq.merge(*packets, key=lambda packet: packet[:2]):
        head = struct.pack("=5I", interface, ns >> 32, ns & 0xFFFFFFFF, len(data), length)
        out.write(_block(_PACKET, head + _padded(data)))


def _secrets(keys: Path) -> bytes:
    """The secrets among the lines in the first MiB of a key log. A stack's relay can write anything there. If it is not
    a regular file with a single link, it is removed unread: it could lead to other files of this machine."""
    if not os.path.lexists(keys):
        return b""
    status = keys.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        shutil.rmtree(keys) if stat.S_ISDIR(status.st_mode) else keys.unlink()
        return b""
    with os.fdopen(os.open(keys, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        lines = file.read(MOST_KEYS_BYTES).splitlines(keepends=True)
    return b"".join(line for line in lines if _KEY_LOG_LINE.fullmatch(line))


def join(run_dir: Path, paths: Sequence[str]) -> None:
    """Makes the two captures from the emulator's files and removes these. Captures hold secrets, so only their owner
    may read them."""
    folder = run_dir / FOLDER
    if not folder.is_dir():
        return
    secrets = _secrets(run_dir / KEYS)
    for end, side in SIDES.items():
        named = [(name, file) for name in paths if (file := folder / f"{name}.{side}.pcap").is_file()]
        if not named:
            continue
        target = run_dir / f"{end}{SUFFIX}"
        target.unlink(missing_ok=True)
        target.touch(0o600)
        with ExitStack() as stack:
            opened = [stack.enter_context(file.open("rb")) for _, file in named]
            _write(stack.enter_context(target.open("wb")), [name for name, _ in named], opened, secrets)
    shutil.rmtree(folder)
