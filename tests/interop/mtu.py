"""The table of path MTUs: what a server finds, and how long 10 MB take, over a router whose link has that MTU.

    python -m interop.mtu [--mtu BYTES ...]

As root. Server, router and client have namespaces of their own. The row of 9000 bytes is the loopback interface of one
namespace, set to that MTU.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from railyard.base.paths import program

MTUS = (1280, 1350, 1400, 1492, 1500)
LOOPBACK_MTU = 9000
BYTES = 10_000_000
ROUTED = (("server", "10.99.1.1", "10.99.1.2"), ("client", "10.99.2.1", "10.99.2.2"))


def run(*words: str | Path) -> None:
    subprocess.run(words, check=True, capture_output=True)


class Namespaces:
    """Namespaces of a server, a router and a client; the client's link has the MTU."""

    def __init__(self, mtu: int) -> None:
        self.tag = f"mtu{os.getpid()}"
        self.names = [f"{self.tag}-{name}" for name in ("router", "server", "client")]
        router = self.names[0]
        for name in self.names:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        for side, own, gateway in ROUTED:
            name, link = f"{self.tag}-{side}", 1500 if side == "server" else mtu
            run(*f"ip link add {side} netns {router} type veth peer name wire netns {name}".split())
            for where, device, address in ((name, "wire", own), (router, side, gateway)):
                run("ip", "-n", where, "address", "add", f"{address}/24", "dev", device)
                run("ip", "-n", where, "link", "set", device, "mtu", str(link), "up")
            run("ip", "-n", name, "route", "add", "default", "via", gateway)
        run("ip", "netns", "exec", router, "sysctl", "-qw", "net.ipv4.ip_forward=1")

    def close(self) -> None:
        for name in self.names:
            run("ip", "netns", "delete", name)


def measure(server_in: str, client_in: str, address: str, folder: Path) -> tuple[list[int], float]:
    """The sizes of UDP payload that the server found, and the seconds that the transfer took."""
    (folder / "qlog").mkdir()
    serve: list[str | Path] = ["ip", "netns", "exec", server_in, program("xlink-server")]
    serve += ["--quic", "0.0.0.0:4433", "--qlog-dir", folder / "qlog"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
        try:
            if server.stdout is None or "listening" not in server.stdout.readline():
                raise RuntimeError("the server does not listen")
            began = time.monotonic()
            url = f"https://{address}:4433/synthetic/{BYTES}"
            run("ip", "netns", "exec", client_in, program("xlink-get"), "--insecure", url)
            seconds = time.monotonic() - began
        finally:
            server.terminate()
            server.wait(timeout=20)
    events = [json.loads(line) for line in next((folder / "qlog").iterdir()).read_text().split("\x1e")[1:]]
    return [event["data"]["new"] for event in events if event.get("name") == "quic:mtu_updated"], seconds


def row(mtu: int) -> str:
    spaces = Namespaces(mtu)
    try:
        with tempfile.TemporaryDirectory() as name:
            _, server, client = spaces.names
            if mtu == LOOPBACK_MTU:
                run("ip", "-n", server, "link", "set", "lo", "mtu", str(mtu))
                found, seconds = measure(server, server, "127.0.0.1", Path(name))
            else:
                found, seconds = measure(server, client, ROUTED[0][1], Path(name))
    finally:
        spaces.close()
    return f"| {mtu} | {found[-1] if found else 1200} | {' → '.join(map(str, found)) or 'none'} | {seconds:.2f} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mtu", action="append", type=int, metavar="BYTES")
    arguments = parser.parse_args()
    print("| MTU of the link | UDP payload | as it was found | seconds for 10 MB |\n| ---: | ---: | --- | ---: |")
    for mtu in arguments.mtu or (*MTUS, LOOPBACK_MTU):
        print(row(mtu), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
