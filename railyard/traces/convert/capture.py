"""Reads a packet capture (pcap or pcapng): the packets that arrived at a host, or left it."""

import io
import ipaddress
import struct
from collections.abc import Callable
from pathlib import Path

import dpkt
import numpy as np

from railyard.traces.convert.capacity import TUN_BYTES, Delivered, from_epoch
from railyard.traces.convert.recipe import TraceRecipe
from railyard.traces.trace import TraceError

_VLAN_TYPES = (0x8100, 0x88A8)
_IP_TYPES = (0x0800, 0x86DD)
_ETHERNET_TYPE_AT = 12


MOST_AT_ONCE = 1 << 26


class _Capture(io.BufferedReader):
    """A file whose records may claim any length. Limits each read to MOST_AT_ONCE, because a read takes memory
    for the length that is asked for."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(MOST_AT_ONCE if size is None or size < 0 else min(size, MOST_AT_ONCE))


def _ethernet(frame: bytes) -> bytes:
    at = _ETHERNET_TYPE_AT
    while len(frame) >= at + 2:
        kind = int.from_bytes(frame[at : at + 2], "big")
        if kind in _VLAN_TYPES:
            at += 4
            continue
        return frame[at + 2 :] if kind in _IP_TYPES else b""
    return b""


_NETWORK_LAYER: dict[int, Callable[[bytes], bytes]] = {
    dpkt.pcap.DLT_EN10MB: _ethernet,
    dpkt.pcap.DLT_NULL: lambda frame: frame[4:],
    dpkt.pcap.DLT_LOOP: lambda frame: frame[4:],
    dpkt.pcap.DLT_LINUX_SLL: lambda frame: frame[16:],
    276: lambda frame: frame[20:],  # LINUX_SLL2
    12: lambda frame: frame,  # raw IP, as several systems number it
    14: lambda frame: frame,
    101: lambda frame: frame,
    228: lambda frame: frame,
    229: lambda frame: frame,
}


def _ip(packet: bytes) -> tuple[bytes, bytes, int] | None:
    """Source, destination and length of an IP packet. The length is that of the header, as captures may cut packets."""
    version = packet[0] >> 4 if packet else 0
    if version == 4 and len(packet) >= 20:
        return packet[12:16], packet[16:20], int(struct.unpack_from("!H", packet, 2)[0])
    if version == 6 and len(packet) >= 40:
        return packet[8:24], packet[24:40], int(struct.unpack_from("!H", packet, 4)[0]) + 40
    return None


def read_capture(path: Path, recipe: TraceRecipe) -> Delivered:
    """Packets to (downlink) or from (uplink) the host's address; time 0 is the first IP packet of the capture."""
    if recipe.address is None:
        raise TraceError(f"{path}: a capture needs the address of the measured host, to tell downlink from uplink")
    try:
        host = ipaddress.ip_address(recipe.address).packed
    except ValueError:
        raise TraceError(f"{path}: {recipe.address!r} is not an IP address; write 192.0.2.1 or 2001:db8::1") from None
    first_s, last_s = None, 0.0
    times: list[float] = []
    sizes: list[int] = []
    try:
        with _Capture(path.open("rb", buffering=0)) as stream:
            reader = dpkt.pcap.UniversalReader(stream)
            network_layer = _NETWORK_LAYER.get(reader.datalink())
            if network_layer is None:
                raise TraceError(f"{path}: link type {reader.datalink()} is not known; capture on an IP interface")
            for at_s, frame in reader:
                packet = _ip(network_layer(frame))
                if packet is None:
                    continue
                source, destination, length = packet
                first_s = float(at_s) if first_s is None else first_s
                last_s = max(last_s, float(at_s))
                if (destination if recipe.direction == "down" else source) == host:
                    times.append(float(at_s))
                    sizes.append(length + TUN_BYTES)
    except OSError as error:
        raise TraceError.unreadable(path, error) from error
    except (ValueError, dpkt.Error, struct.error) as error:
        raise TraceError(f"{path}: this is not a whole pcap or pcapng file: {error or 'it ends early'}") from None
    if first_s is None or not times:
        word = "to" if recipe.direction == "down" else "from"
        raise TraceError(f"{path}: there is no IP packet {word} {recipe.address} in it; check address and direction")
    start_s = first_s if recipe.t0_epoch_s is None else recipe.t0_epoch_s
    return from_epoch(path, np.array(times), np.array(sizes), start_s, last_s)
