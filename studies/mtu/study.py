"""The sizes of UDP payload that a server finds while a client downloads through a router, whose link to the client has
the MTU. As root: server, router and client have namespaces of their own. An MTU beyond Ethernet's is that of the
loopback interface of one namespace."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from pydantic import Field

from railyard.base.errors import UserError
from railyard.base.paths import check_tools, program
from railyard.experiment.model import Strict
from railyard.run.children import ends_with_us
from railyard.studies.machine import check_namespaces, output_of
from railyard.studies.study import Data, markdown

ETHERNET, LOOPBACK = 1500, 65_536
BYTES = 10_000_000
FIRST_BYTES, UDP_HEADS = 1200, 28  # the size before any is found; of IPv4 and UDP
ROUTED = (("server", "10.99.1.1", "10.99.1.2"), ("client", "10.99.2.1", "10.99.2.2"))


class Settings(Strict):
    mtus: list[Annotated[int, Field(ge=FIRST_BYTES + UDP_HEADS, le=LOOPBACK)]] = Field(min_length=1)


class Measured(Data):
    found: dict[int, list[int]]  # sizes of UDP payload in order, by MTU, bytes


def measure(settings: Settings) -> Measured:
    check_namespaces("mtu")
    check_tools({"ip": "iproute2", "sysctl": "procps"})
    return Measured(found={mtu: sizes(mtu) for mtu in settings.mtus})


def ip(*words: str | Path) -> None:
    output_of("ip", *words)


@contextmanager
def namespaces(mtu: int) -> Iterator[tuple[str, str]]:
    """Those of a server and of a client, with a router's between them."""
    tag = f"mtu{os.getpid()}"
    names = router, *ends = [f"{tag}-{name}" for name in ("router", "server", "client")]
    try:
        for name in names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        for name, (side, own, gateway) in zip(ends, ROUTED, strict=True):
            ip(*f"link add {side} netns {router} type veth peer name wire netns {name}".split())
            for where, device, address in ((name, "wire", own), (router, side, gateway)):
                ip("-n", where, "address", "add", f"{address}/24", "dev", device)
                ip("-n", where, "link", "set", device, "mtu", str(ETHERNET if side == "server" else mtu), "up")
            ip("-n", name, "route", "add", "default", "via", gateway)
        ip("netns", "exec", router, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        yield ends[0], ends[1]
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def sizes(mtu: int) -> list[int]:
    with namespaces(min(mtu, ETHERNET)) as (server, client), tempfile.TemporaryDirectory(prefix="railyard-") as name:
        if mtu <= ETHERNET:
            return found(server, client, ROUTED[0][1], Path(name))
        ip("-n", server, "link", "set", "lo", "mtu", str(mtu))
        return found(server, server, "127.0.0.1", Path(name))


def found(server_in: str, client_in: str, address: str, qlogs: Path) -> list[int]:
    serve = ["ip", "netns", "exec", server_in, str(program("xlink-server"))]
    serve += ["--quic", "0.0.0.0:4433", "--qlog-dir", str(qlogs)]
    with subprocess.Popen(ends_with_us(serve), stdout=subprocess.PIPE, text=True) as server:
        try:
            if server.stdout is None or "listening" not in server.stdout.readline():
                raise UserError("the server does not listen.")
            url = f"https://{address}:4433/synthetic/{BYTES}"
            ip("netns", "exec", client_in, program("xlink-get"), "--insecure", url)
        finally:
            server.terminate()
            server.wait(timeout=20)
    events = [json.loads(line) for line in next(qlogs.iterdir()).read_text().split("\x1e")[1:]]
    return [event["data"]["new"] for event in events if event.get("name") == "quic:mtu_updated"]


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    rows = [
        [str(mtu), str(sizes[-1] if sizes else FIRST_BYTES), " → ".join(map(str, sizes)) or "none"]
        for mtu, sizes in measured.found.items()
    ]
    yield "found", markdown(["MTU of the link", "UDP payload", "as it was found"], rows)
