"""Runs one cell of the matrix: a server, a relay beside it, and a client inside mpshell.

`python -m interop.cell SPEC.json` is started in network and mount namespaces of its own (`unshare --net --mount`); it
writes its result to the file that the specification names. Each endpoint sees a root folder made of the machine's own
folders and of /www, /downloads, /certs and /logs.
"""

import asyncio
import base64
import datetime
import hashlib
import ipaddress
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from interop import chromium_endpoint, peers, relay
from interop.cases import BY_NAME, PREFERRED_ADDRESS, Case
from railyard.base.paths import program

RELAY_PORT, SERVER_PORT = 4433, 443
SERVER_UP_S = 20.0
BIG_CERTIFICATE_NAMES = 120
UNSUPPORTED = 127
KERNEL_FOLDERS = ("dev", "proc", "sys")
COLOUR_TOLERANCE = 24  # of 255: the video is compressed
PAGE = """<!doctype html><pre id="body"></pre><script>
fetch(location.search.slice(1)).then(r => r.arrayBuffer()).then(b => {
  const c = Array.from(new Uint8Array(b), v => String.fromCharCode(v)).join('');
  document.getElementById('body').textContent = btoa(c);
});
</script>
"""


class CellError(Exception):
    """The cell failed, for this reason."""


def certificate(folder: Path, *, big: bool) -> str:
    """Writes cert.pem and priv.key; the SHA-256 of the public key in base64."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server4")])
    begin = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    names: list[x509.GeneralName] = [x509.DNSName(host) for host in ("server4", "server6")]
    names += [
        x509.DNSName(f"a-long-name-to-fill-the-certificate-{i}") for i in range(BIG_CERTIFICATE_NAMES if big else 0)
    ]
    names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(begin)
    builder = builder.not_valid_after(begin + datetime.timedelta(days=10))
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    (folder / "cert.pem").write_bytes(pem)
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (folder / "priv.key").write_bytes(key.private_bytes(encoding, form, serialization.NoEncryption()))
    der, spki = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    return base64.b64encode(hashlib.sha256(key.public_key().public_bytes(der, spki)).digest()).decode()


def mount(*words: str | Path) -> None:
    subprocess.run(["mount", *words], check=True)


def make_root(folder: Path, side: str, hosts: Path, image: Path | None) -> Path:
    """The root folder of an endpoint; /logs and /downloads are its own, the rest is the machine's or an image's."""
    root = folder / f"{side}-root"
    root.mkdir()
    mount("-t", "tmpfs", "none", root)
    for entry in sorted((image or Path("/")).iterdir()):
        here = root / entry.name
        if entry.is_symlink():
            here.symlink_to(entry.readlink())
        elif entry.is_dir():
            here.mkdir()
            mount("--rbind", Path("/") / entry.name if entry.name in KERNEL_FOLDERS else entry, here)
        elif image:
            here.touch()
            mount("--bind", entry, here)
    for name in ("www", "certs", "downloads", "logs"):
        source = folder / name if name != "logs" else folder / f"{side}-logs"
        source.mkdir(exist_ok=True)
        (root / name).mkdir(exist_ok=True)
        mount("--bind", source, root / name)
    mount("--bind", hosts, root / "etc" / "hosts")
    return root


def start(
    root: Path, command: peers.Command, log: Path, *, prefix: list[str | Path] | None = None
) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            [*(prefix or []), "chroot", root, *command.words],
            env=peers.environment_of(command),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def is_listening(port: int, family: int) -> bool:
    """On IPv4 also by a socket of IPv6, which takes both."""
    tables = [Path("/proc/net/udp6")] if family == 6 else [Path("/proc/net/udp"), Path("/proc/net/udp6")]
    found = [
        line.split()[1].endswith(f":{port:04X}") for table in tables for line in table.read_text().splitlines()[1:]
    ]
    return any(found)


async def wait_for_server(server: subprocess.Popen[bytes], family: int, log: Path) -> None:
    end = time.monotonic() + SERVER_UP_S
    while not is_listening(SERVER_PORT, family):
        status = server.poll()
        if status == UNSUPPORTED:
            raise CellError("unsupported")
        if status is not None or time.monotonic() > end:
            last = log.read_text(errors="replace").strip().splitlines()[-1:]
            raise CellError(f"the server does not listen: {' '.join(last)}")
        await asyncio.sleep(0.02)


def problem_with_files(folder: Path, names: list[str]) -> str | None:
    for name in names:
        got = folder / "downloads" / name
        if not got.exists():
            return f"{name} was not fetched"
        if got.read_bytes() != (folder / "www" / name).read_bytes():
            return f"{name} differs from the server's"
    return None


def problem_with_qlog(case: Case, folder: Path) -> str | None:
    """Our end's, whichever it is: the other one writes others, or none."""
    for qlog in (folder / "server-logs" / "qlog").glob("*_server.sqlog") if case.server_qlog_lacks else ():
        if re.search(case.server_qlog_lacks or "", qlog.read_text(encoding="utf-8")):
            return f"the server's qlog has {case.server_qlog_lacks}"
    if case.qlog_event is None:
        return None
    for side in ("server", "client"):
        for qlog in (folder / f"{side}-logs" / "qlog").glob(f"*_{side}.sqlog"):
            if case.qlog_event in qlog.read_text(encoding="utf-8"):
                return None
    return f"no {case.qlog_event} in our qlog"


def problem_with_play(case: Case, folder: Path) -> str | None:
    """It was played to its end over HTTP/3, and its pictures are those that were recorded."""
    if not case.is_page:
        return None
    file = folder / "downloads" / "played.json"
    if not file.exists():
        return "the video was not played"
    played = json.loads(file.read_text(encoding="utf-8"))
    red, green, blue, _ = played["ground"]
    is_ground = max(abs(red - 0x20), abs(green - 0x40), abs(blue - 0x80)) < COLOUR_TOLERANCE
    enough = played["pictures"] >= chromium_endpoint.SECONDS * chromium_endpoint.FPS // 4
    if not (played["ended"] and enough and is_ground):
        return f"it was not played as it was recorded: {played}"
    if {protocol for _, protocol in played["protocols"]} != {"h3"}:
        return f"not over HTTP/3: {played['protocols']}"
    return None


def problem_with_resumption(case: Case, folder: Path) -> str | None:
    log = folder / "client-logs" / "client.jsonl"  # of our client
    if not case.resumes or not log.exists():
        return None
    records = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    resumed = [record["resumed"] for record in records if record["event"] == "connection_closed"]
    return None if resumed == [False, True] else f"resumed: {resumed}"


def carried_by_both(seen: relay.Seen, share: float) -> bool:
    """Each of the two paths carried this share of the server's datagrams at least."""
    return len(seen.down) == 2 and min(seen.down.values()) >= share * sum(seen.down.values())


def problem_with_packets(case: Case, seen: relay.Seen) -> str | None:
    for needed in case.needs:
        if not any(needed in packet for packet in seen.packets):
            return f"no such packet was seen: {needed}"
    if case.connections is not None and 0 < len(seen.connections) != case.connections and seen.connections != {""}:
        return f"{len(seen.connections)} connections in place of {case.connections}"
    if case.share and not carried_by_both(seen, case.share):
        return f"datagrams over the paths: {sorted(seen.down.values())}"
    if case.relay is not None and case.relay.rebind_times and seen.rebindings == 0:
        return "it was over before the client's address changed"
    if case.most_amplification is not None and seen.amplification > case.most_amplification:
        return f"the server sent {seen.amplification:.2f} times what it had received"
    return None


def both_speak_http3(server: peers.Peer, client: peers.Peer) -> bool:
    return server.can_http3 and client.can_http3


def links(case: Case, client: peers.Peer) -> list[str]:
    first = case.failing_link if case.failing_link and client is peers.XLINK else case.link
    return [link for link in (first, case.second_link) if link]


def inside(case: Case, client: peers.Peer, hosts: Path, host: str, seed: int) -> list[str | Path]:
    """What starts the client within mpshell: it names the server, and the client's own addresses."""
    gateway = "$MPSHELL_GATEWAY6" if case.family == 6 else "$MPSHELL_GATEWAY"
    script = f'echo "{gateway} {host}" >>{shlex.quote(str(hosts))}; '
    if case.second_link:
        script += 'export LOCAL_ADDRESSES="$MPSHELL_PATH_0_ADDR $MPSHELL_PATH_1_ADDR"; '
    words: list[str | Path] = [program("mpshell")]
    for name, link in zip(("first", "second"), links(case, client), strict=False):
        words += ["--path", f"{name}:{link}"]
    return [*words, "--keep-awake", "off", "--seed", str(seed), "--", "sh", "-c", script + 'exec "$@"', "sh"]


def open_network(case: Case) -> None:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    if case.preferred:
        subprocess.run(["ip", "address", "add", f"{PREFERRED_ADDRESS}/32", "dev", "lo"], check=True)


async def relayed(case: Case, seed: int) -> relay.Seen:
    """What the relay will have seen; of a case without one nothing."""
    if case.relay is None:
        return relay.Seen()
    upstream = "::1" if case.family == 6 else "127.0.0.1"
    return (await relay.start(case.relay, RELAY_PORT, (upstream, SERVER_PORT), seed=seed)).seen


async def run(spec: dict[str, Any]) -> dict[str, Any]:
    case, folder = BY_NAME[spec["case"]], Path(spec["folder"])
    server_peer, client_peer = peers.by_name(spec["server"]), peers.by_name(spec["client"])
    open_network(case)
    for name in ("www", "certs", "downloads"):
        (folder / name).mkdir()
    spki = certificate(folder / "certs", big=case.big_certificate)
    (folder / "www" / "fetch.html").write_text(PAGE)
    names = [f"file{i}" for i in range(len(case.sizes))]
    for name, size in zip(names, case.sizes, strict=True):
        (folder / "www" / name).write_bytes(hashlib.shake_128(name.encode()).digest(size))
    http3 = case.http3 or not (server_peer.speaks_hq and client_peer.speaks_hq)
    host = f"server{case.family}"
    port = SERVER_PORT if case.relay is None else RELAY_PORT
    urls = tuple(f"https://{host}:{port}/{name}" for name in (["play.html"] if case.is_page else names))
    if case.is_page and not client_peer.plays:
        raise CellError("unsupported")
    if case.is_page:
        (folder / "www" / "play.html").write_text(chromium_endpoint.PAGE)
        chromium_endpoint.record_video(folder / "www" / "video.webm")
    in_image = bool(spec.get("image"))
    server_command = server_peer.server(peers.Request(case, (), http3, spki, in_image))
    client_command = client_peer.client(peers.Request(case, urls, http3, spki, in_image))
    if server_command is None or client_command is None or (http3 and not both_speak_http3(server_peer, client_peer)):
        raise CellError("unsupported")
    hosts = folder / "hosts"
    hosts.write_text("127.0.0.1 localhost\n")
    image = Path(spec["image"]) if spec.get("image") else None
    server_root = make_root(folder, "server", hosts, image if server_peer is peers.XLINK else None)
    client_root = make_root(folder, "client", hosts, image if client_peer is peers.XLINK else None)
    server = start(server_root, server_command, folder / "server.log")
    client = None
    try:
        await wait_for_server(server, case.family, folder / "server.log")
        seen = await relayed(case, spec["seed"])
        prefix = inside(case, client_peer, hosts, host, spec["seed"])
        began = time.monotonic()
        client = start(client_root, client_command, folder / "client.log", prefix=prefix)
        while client.poll() is None and time.monotonic() < began + case.timeout_s:
            await asyncio.sleep(0.02)
        seconds = time.monotonic() - began
    finally:
        if client is not None:
            stop(client)
        stop(server)
    if client.returncode == UNSUPPORTED:
        raise CellError("unsupported")
    problem = problem_with_files(folder, names) or problem_with_packets(case, seen)
    problem = problem or problem_with_qlog(case, folder) or problem_with_resumption(case, folder)
    problem = problem or problem_with_play(case, folder)
    if problem is None and client.returncode != 0:
        problem = f"the client ended with status {client.returncode}"
    if seconds >= case.timeout_s:
        problem = f"not over after {case.timeout_s} s: {problem}"
    verdict = "failed" if problem else "passed"
    return {"verdict": verdict, "reason": problem, "seconds": round(seconds, 3), "seen": seen.to_json()}


def main() -> None:
    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        result = asyncio.run(run(spec))
    except CellError as error:
        unsupported = str(error) == "unsupported"
        result = {"verdict": "unsupported" if unsupported else "failed", "reason": None if unsupported else str(error)}
    Path(spec["result"]).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
