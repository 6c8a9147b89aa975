"""The server's preferred address (RFC 9000 section 9.6) over real sockets: one of each IP version in the parameter,
clients that move, and clients that stay because the address does not answer."""

import asyncio
import shlex
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
from aioquic.asyncio.client import connect
from aioquic.quic.configuration import QuicConfiguration

from conftest import good, run_program
from quic_programs import Server, events, read_jsonl, synthetic
from railyard.base.paths import program

VIDEO_BYTES = 2_000_000
PREFERRED = ("127.0.0.2:4434", "[::1]:4434")
HOSTS = {"127.0.0.1:4433": PREFERRED[0], "[::1]:4433": PREFERRED[1]}

# In a network namespace of its own, so that the ports are free and its routes are nobody else's.
SCRIPT = """
set -e
ip link set lo up
{before}
{server} > started &
server=$!
until [ -s started ]; do sleep 0.05; done
{after}
status=0
{get} || status=$?
cat /proc/net/dev > devices
kill -TERM $server
wait $server
exit $status
"""


# The server has these addresses when it starts. Then a device takes their traffic that nobody reads from: what is sent
# there is lost, without an error.
SILENT = ("192.0.2.2:4434", "[2001:db8::2]:4434")
SILENT_BEFORE = """
ip tuntap add mode tun name silent
ip address add 192.0.2.1/32 dev silent
ip address add 2001:db8::1/128 dev silent nodad
ip link set silent up
echo 1 >/proc/sys/net/ipv4/conf/silent/route_localnet # a source of 127.0.0.1 may leave by it
ip address add 192.0.2.2/32 dev lo
ip address add 2001:db8::2/128 dev lo nodad
"""
SILENT_AFTER = """
ip address del 192.0.2.2/32 dev lo
ip address del 2001:db8::2/128 dev lo
ip route add 192.0.2.2/32 dev silent
ip route add 2001:db8::2/128 dev silent
"""


def fetch(
    folder: Path, address: str, *get_options: str, is_silent: bool = False, dialect: str = "xlink"
) -> dict[str, Any]:
    """Fetches a video from that address. Returns the server's record of the connection's end."""
    preferred = [word for text in (SILENT if is_silent else PREFERRED) for word in ("--preferred-address", text)]
    out = folder / "server.jsonl"
    server = [program("xlink-server"), "--quic", address, "--out", out, "--dialect", dialect, *preferred]
    get = [program("xlink-get"), "--insecure", "--time-limit", "30", "--dir", folder, *get_options]
    get.append(f"https://{address}/synthetic/{VIDEO_BYTES}")
    script = SCRIPT.format(
        before=SILENT_BEFORE if is_silent else "",
        after=SILENT_AFTER if is_silent else "",
        server=shlex.join(map(str, server)),
        get=shlex.join(map(str, get)),
    )
    command = ["unshare", "--net", "--", "sh", "-c", script]
    good(run_program(command, cwd=folder, timeout=60))
    assert (folder / str(VIDEO_BYTES)).read_bytes() == synthetic(0, VIDEO_BYTES - 1)
    [closed] = events(read_jsonl(out), "connection_closed")
    return closed


def local_addresses(closed: dict[str, Any]) -> set[str]:
    """Local addresses of the server's paths that carried part of the video."""
    return {path["local"] for path in closed["paths"] if path["stream_bytes_sent"] > 0}


@pytest.mark.privileged
@pytest.mark.parametrize("address", HOSTS)
def test_a_client_moves_to_the_address_of_its_ip_version(tmp_path: Path, address: str) -> None:
    closed = fetch(tmp_path, address)
    assert closed["migrations"] == 1
    assert HOSTS[address] in local_addresses(closed)


@pytest.mark.privileged
@pytest.mark.parametrize("address", HOSTS)
def test_a_client_stays_where_the_address_does_not_answer(tmp_path: Path, address: str) -> None:
    closed = fetch(tmp_path, address, is_silent=True)
    [counts] = [line.split() for line in (tmp_path / "devices").read_text().splitlines() if "silent:" in line]
    assert int(counts[12]) > 0, "no datagram was sent to the address"
    assert closed["migrations"] == 0
    assert local_addresses(closed) == {address}


@pytest.mark.privileged
@pytest.mark.parametrize(("dialect", "local"), [("ietf", PREFERRED[0]), ("xlink", "127.0.0.1:4433")])
def test_of_several_paths_the_first_moves_where_it_has_an_id(tmp_path: Path, dialect: str, local: str) -> None:
    paths = ("--path", "127.0.0.1", "--path", "127.0.0.3", "--scheme", "vanilla-mp")
    closed = fetch(tmp_path, "127.0.0.1:4433", *paths, dialect=dialect)
    assert closed["multipath"]
    assert closed["paths"][0]["local"] == local


async def download(port: int) -> bytes:
    """aioquic, by HTTP/0.9."""
    configuration = QuicConfiguration(is_client=True, alpn_protocols=["hq-interop"], verify_mode=ssl.CERT_NONE)
    async with connect("127.0.0.1", port, configuration=configuration) as client:
        reader, writer = await client.create_stream()
        writer.write(f"GET /synthetic/{VIDEO_BYTES}\r\n".encode())
        writer.write_eof()
        return await asyncio.wait_for(reader.read(), 30)


def test_aioquic_moves_too(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unused:
        unused.bind(("127.0.0.2", 0))
        preferred = f"127.0.0.2:{unused.getsockname()[1]}"
    with Server(tmp_path, "--preferred-address", preferred) as server:
        assert asyncio.run(download(server.port)) == synthetic(0, VIDEO_BYTES - 1)
    [closed] = events(server.records(), "connection_closed")
    assert closed["migrations"] == 1
    assert preferred in local_addresses(closed)
