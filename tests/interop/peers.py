"""The endpoints of the matrix: ours, and the stacks that package registries have. Each runs in a root folder of its own
with quic-interop-runner's folders: /www, /downloads, /certs, /logs; a server listens on port 443."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

import aioquic

from interop.cases import PREFERRED_ADDRESS, PREFERRED_PORT, Case
from railyard.base.paths import ROOT, programs_dir

HERE = Path(__file__).resolve().parent
PEERS_DIR = ROOT / "build" / "peers"
NOQ = PEERS_DIR / "noq" / "release" / "noq-peer"
CERTIFICATE, KEY = "/certs/cert.pem", "/certs/priv.key"
CHACHA20 = "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+CHACHA20-POLY1305:-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1"


P256 = "--groups=-GROUP-ALL:+GROUP-SECP256R1"


@dataclass(frozen=True)
class Command:
    words: Sequence[str]
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    case: Case
    urls: tuple[str, ...]
    http3: bool
    spki: str  # SHA-256 of the server's public key, base64
    in_image: bool = False  # our endpoint is that of its image


@dataclass(frozen=True)
class Peer:
    name: str
    version: Callable[[], str]
    missing: Callable[[], str | None]  # why it cannot run here; None: it can
    server: Callable[[Request], Command | None] = lambda _: None  # None: it has no such role, or not this test case
    client: Callable[[Request], Command | None] = lambda _: None
    speaks_hq: bool = True
    plays: bool = False  # its client is a browser
    can_http3: bool = True


def _needs_program(name: str, remedy: str) -> Callable[[], str | None]:
    return lambda: None if shutil.which(name) else f"{name} is not installed: {remedy}"


def _needs_built(name: str) -> Callable[[], str | None]:
    file = PEERS_DIR / name
    return lambda: None if file.exists() else f"build/peers/{name} was not built: make peers"


def _output(*words: str) -> Callable[[], str]:
    def version() -> str:
        if shutil.which(words[0]) is None:
            return ""
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip().split("\n")[0]

    return version


# ---- ours ----


def _xlink(role: str, server_options: str = "") -> Callable[[Request], Command]:
    def command(request: Request) -> Command:
        environment = {
            "ROLE": role,
            "TESTCASE": request.case.testcase,
            "REQUESTS": " ".join(request.urls),
            "XLINK_BIN": f"{programs_dir()}/",
            "XLINK_OPTIONS": request.case.options,
            "XLINK_SERVER_OPTIONS": server_options,
            "PREFERRED_ADDRESS": f"{PREFERRED_ADDRESS}:{PREFERRED_PORT}",
            "XLINK_ALPN": "h3" if request.http3 else "hq-interop",
        }
        if request.in_image:
            return Command(["/run_endpoint.sh"], {**environment, "XLINK_BIN": ""})
        return Command([str(ROOT / "docker" / "interop" / "run_endpoint.sh")], environment)

    return command


XLINK = Peer("xlink", lambda: "this tree", lambda: None, _xlink("server"), _xlink("client"))
# With RFC 9438's rule, by which every loss counts, in place of the programs' default.
XLINK_CUBIC = replace(XLINK, name="xlink-cubic", server=_xlink("server", "--cc cubic"))


# ---- aioquic ----


def _aioquic(role: str) -> Callable[[Request], Command]:
    def command(request: Request) -> Command:
        environment = {"ROLE": role, "TESTCASE": request.case.testcase, "HTTP3": "1" if request.http3 else ""}
        return Command([sys.executable, str(HERE / "aioquic_endpoint.py"), *request.urls], environment)

    return command


def _aioquic_version() -> str:
    return str(aioquic.__version__)


# ---- quic-go: the programs of its own interop folder ----


def _quic_go(role: str) -> Callable[[Request], Command | None]:
    # Its programs take the test case by name, and speak HTTP/0.9 in all of them but one.
    known = {"handshake", "transfer", "retry", "chacha20", "resumption", "zerortt", "http3", "multiconnect"}
    also = {"keyupdate"} if role == "client" else set()

    def command(request: Request) -> Command | None:
        names = {"longrtt": "handshake", "ipv6": "transfer", "ecn": "transfer"}
        if role == "server":
            names |= {"keyupdate": "transfer", "connectionmigration": "transfer"}
        testcase = names.get(request.case.testcase, request.case.testcase)
        if testcase not in known | also:
            return None
        arguments = request.urls if role == "client" else ()
        return Command([str(PEERS_DIR / "quic-go" / role), *arguments], {"TESTCASE": testcase})

    return command


# ---- ngtcp2: Debian's programs, which speak HTTP/3 ----


def _ngtcp2_server(request: Request) -> Command | None:
    if request.case.testcase in ("v2", "multipath"):
        return None  # of its time: the draft of v2
    more = ["--validate-addr"] if request.case.testcase == "retry" else []
    more += [f"--ciphers={CHACHA20}"] if request.case.testcase == "chacha20" else []
    more += [P256] if request.case.testcase == "p256" else []
    preferred = f"--preferred-ipv4-addr={PREFERRED_ADDRESS}:{PREFERRED_PORT}"
    more += [preferred] if request.case.testcase == "preferredaddress" else []
    return Command(["gtlsserver", "--quiet", "--htdocs=/www", *more, "*", "443", KEY, CERTIFICATE])


def _ngtcp2_client(request: Request) -> Command | None:
    where = urlsplit(request.urls[0])
    base = ["gtlsclient", "--quiet", "--exit-on-all-streams-close", "--download=/downloads"]
    host = [str(where.hostname), str(where.port)]
    match request.case.testcase:
        case "v2" | "multipath":
            return None
        case "connectionmigration":
            base += ["--change-local-addr=500ms"]
        case "chacha20":
            base.append(f"--ciphers={CHACHA20}")
        case "keyupdate":
            base.append("--key-update=300ms")
        case "p256":
            base.append(P256)
        case "multiconnect":
            base.append("--handshake-timeout=30s")  # the loss of 30 % takes some handshakes over its default of 10 s
            script = 'n=$1; shift; for url; do eval "$n \\"$url\\"" || exit 1; done'
            return Command(["sh", "-c", script, "sh", " ".join([*base, *host]), *request.urls])
        case "resumption" | "zerortt":
            base += ["--session-file=/logs/session", "--tp-file=/logs/params", "--token-file=/logs/token"]
            base += ["--disable-early-data"] if request.case.testcase == "resumption" else []
            one, rest = request.urls[0], request.urls[1:]
            script = f"{' '.join([*base, *host])} {one} && {' '.join([*base, *host, *rest])}"
            return Command(["sh", "-c", script])
    return Command([*base, *host, *request.urls])


# ---- Caddy ----

CADDYFILE = """{
  admin off
  auto_https off
  servers {
    protocols h1 h2 h3
  }
}
https:// {
  tls /certs/cert.pem /certs/priv.key
  root * /www
  file_server
}
"""


def _caddy(request: Request) -> Command | None:
    if request.case.testcase in (
        "p256",
        "retry",
        "chacha20",
        "v2",
        "zerortt",
        "ecn",
        "multipath",
        "connectionmigration",
        "preferredaddress",
    ):
        return None  # it has no option for them
    if request.case.testcase == "connectionmigration" or (request.case.relay and request.case.relay.rebind_times):
        return None  # its quic-go of 2022 does not follow a client's new address
    script = f"cat > /logs/Caddyfile <<'EOF'\n{CADDYFILE}EOF\nexec caddy run --config /logs/Caddyfile"
    return Command(["sh", "-c", script], {"HOME": "/logs"})


# ---- Chromium ----


def _chromium(request: Request) -> Command | None:
    origin = urlsplit(request.urls[0]).netloc
    environment = {"ORIGIN": origin, "SPKI": request.spki, "PAGE": f"https://{origin}/fetch.html?"}
    environment |= {"HOME": "/logs", "TMPDIR": "/logs"}  # /tmp may be read-only
    if request.case.is_page:
        return Command([sys.executable, str(HERE / "chromium_endpoint.py"), request.urls[0]], environment)
    if request.case.name not in ("handshake", "http3", "longrtt", "retry", "transferloss", "transfercorruption"):
        return None  # it fetches one page; the other cases ask for more than that
    script = """
for url; do
  name=${url##*/}
  chromium --headless --no-sandbox --disable-gpu --user-data-dir=/logs/chromium --disable-background-networking \\
    --origin-to-force-quic-on="$ORIGIN" --ignore-certificate-errors-spki-list="$SPKI" --enable-quic \\
    --log-net-log="/logs/net-$name.json" --virtual-time-budget=60000 \\
    --dump-dom "$PAGE$name" >"/logs/$name.dom" || exit 1
  sed -n 's/.*<pre id="body">\\(.*\\)<\\/pre>.*/\\1/p' "/logs/$name.dom" | base64 -d >"/downloads/$name"
done
"""
    return Command(["sh", "-c", script, "sh", *request.urls], environment)


# ---- quinn, quiche, s2n-quic: programs of ours in tests/interop/peers/rust ----


def _rust(name: str, role: str) -> Callable[[Request], Command]:
    def command(request: Request) -> Command:
        environment = {"TESTCASE": request.case.testcase, "HTTP3": "1" if request.http3 else ""}
        arguments = request.urls if role == "client" else ()
        return Command([str(PEERS_DIR / f"interop-{name}"), role, *arguments], environment)

    return command


def _rust_peer(name: str, *, can_http3: bool = True) -> Peer:
    program = f"interop-{name}"
    version = _output(str(PEERS_DIR / program), "version")
    return Peer(name, version, _needs_built(program), _rust(name, "server"), _rust(name, "client"), can_http3=can_http3)


# ---- noq: the program of peers/noq, which fetches and serves one file over HTTP/3 ----


def _noq_knows(case: Case) -> bool:
    if len(case.sizes) > 1 or (case.second_link and not case.share):
        return False
    return case.testcase in ("handshake", "transfer", "longrtt", "ipv6", "ecn", "multipath")


def _noq_server(request: Request) -> Command | None:
    if not _noq_knows(request.case):
        return None
    return Command([str(NOQ), "serve", "[::]:443", "/www/file0", CERTIFICATE, KEY])


def _noq_client(request: Request) -> Command | None:
    if not _noq_knows(request.case):
        return None
    where = urlsplit(request.urls[0])
    family = request.case.family
    server = f"$(getent ahostsv{family} {where.hostname} | head -n 1 | cut -d ' ' -f 1)"
    server = f"[{server}]" if family == 6 else server
    script = f"""
set -- {"${LOCAL_ADDRESSES:-}" if request.case.share else ""}
exec {NOQ} get "{server}:{where.port}" {where.path} --out /downloads/file0 ${{2:+--local "$2"}}
"""
    return Command(["sh", "-c", script])


# ---- picoquic: its picoquicdemo, which the variable PICOQUICDEMO names ----


def _picoquicdemo() -> str:
    return os.environ.get("PICOQUICDEMO", "")


def _picoquic_missing() -> str | None:
    if not _picoquicdemo():
        return "PICOQUICDEMO names no picoquicdemo, picoquic's own program"
    return None if Path(_picoquicdemo()).exists() else f"PICOQUICDEMO names {_picoquicdemo()}, which does not exist"


PICOQUIC_OPTIONS = {  # of both sides, by test case
    **dict.fromkeys(("handshake", "transfer", "http3", "longrtt", "ipv6", "retry", "multiconnect"), ""),
    **dict.fromkeys(
        ("p256", "keyupdate", "ecn", "connectionmigration", "preferredaddress", "resumption", "zerortt"), ""
    ),
    **{"chacha20": "-C 20", "multipath": "-M"},
}


def _picoquic_server(request: Request) -> Command | None:
    more = PICOQUIC_OPTIONS.get(request.case.testcase)
    if more is None or request.case.testcase in ("p256", "preferredaddress"):
        return None  # it has all groups; its option -4 announces port 0
    more += " -r" if request.case.testcase == "retry" else ""
    script = f"cd /logs; exec {_picoquicdemo()} -p 443 -c {CERTIFICATE} -k {KEY} -w /www -q /logs {more}"
    return Command(["sh", "-c", script])


def _picoquic_client(request: Request) -> Command | None:
    more = PICOQUIC_OPTIONS.get(request.case.testcase)
    if more is None:
        return None
    more += {"keyupdate": " -u 100", "connectionmigration": " -f 3"}.get(request.case.testcase, "")
    where, family = urlsplit(request.urls[0]), request.case.family
    paths = [urlsplit(url).path for url in request.urls]
    count = {"multiconnect": len(paths), "resumption": 2, "zerortt": 2}.get(request.case.testcase, 1)
    each = [*([path] for path in paths[: count - 1]), paths[count - 1 :]]  # files of each connection
    # No stream waits for another.
    scenarios = [";".join(f"{4 * i}:-:{path}" for i, path in enumerate(files)) for files in each]
    script = f"""
cd /logs
server=$(getent ahostsv{family} {where.hostname} | head -n 1 | cut -d ' ' -f 1)
second=$(echo "${{LOCAL_ADDRESSES:-}}" | cut -s -d ' ' -f 2)
for files; do
  {_picoquicdemo()} {more} -a {"h3" if request.http3 else "hq-interop"} -n {where.hostname} -o /downloads -q /logs \\
    ${{second:+-A $second/0}} "$server" {where.port} "$files" || exit 1
done
"""
    return Command(["sh", "-c", script, "sh", *scenarios])


FOREIGN = (
    Peer("aioquic", _aioquic_version, lambda: None, _aioquic("server"), _aioquic("client")),
    Peer(
        "quic-go",
        _output(str(PEERS_DIR / "quic-go" / "relay"), "version"),
        _needs_built("quic-go/client"),
        _quic_go("server"),
        _quic_go("client"),
    ),
    Peer(
        "ngtcp2",
        _output("dpkg-query", "-W", "-f", "${Version}", "ngtcp2-client"),
        _needs_program("gtlsclient", "apt-get install ngtcp2-client ngtcp2-server"),
        _ngtcp2_server,
        _ngtcp2_client,
        speaks_hq=False,
    ),
    Peer(
        "caddy",
        _output("caddy", "version"),
        _needs_program("caddy", "apt-get install caddy"),
        _caddy,
        speaks_hq=False,
    ),
    Peer(
        "chromium",
        _output("chromium", "--version"),
        _needs_program("chromium", "apt-get install chromium"),
        client=_chromium,
        speaks_hq=False,
        plays=True,
    ),
    _rust_peer("quinn"),
    _rust_peer("quiche"),
    _rust_peer("s2n-quic", can_http3=False),
    Peer(
        "noq",
        _output(str(NOQ), "version"),
        _needs_built("noq/release/noq-peer"),
        _noq_server,
        _noq_client,
        speaks_hq=False,
    ),
    Peer(
        "picoquic",
        _output(str(PEERS_DIR / "picoquic" / "relay"), "version"),
        _picoquic_missing,
        _picoquic_server,
        _picoquic_client,
    ),
)


# ---- the kernel's TCP, for the loss table: the same server and file over HTTP/1.1 ----


def _tcp_server(_: Request) -> Command:
    script = f"""
sysctl -qw net.ipv4.tcp_congestion_control=cubic
exec {programs_dir()}/xlink-server --http1 0.0.0.0:443 --quic 0.0.0.0:443 --root /www --out /logs/server.jsonl
"""
    return Command(["sh", "-c", script])


def _tcp_client(request: Request) -> Command:
    size = request.case.sizes[0]
    script = f"""
exec {programs_dir()}/xlink-player --transport tcp --server @:443 --path a:@0 --url /file0 --size {size} \
  --chunk-bytes {size} --bitrate 800000000 --time-limit 600 --save /downloads/file0 --out /logs/client.jsonl
"""
    return Command(["sh", "-c", script])


TCP = Peer("tcp", lambda: "the kernel's", lambda: None, _tcp_server, _tcp_client)
OTHERS = (XLINK, XLINK_CUBIC, TCP)  # that are no columns of the matrix


def by_name(name: str) -> Peer:
    for peer in (*OTHERS, *FOREIGN):
        if peer.name == name:
            return peer
    names = ", ".join(peer.name for peer in (*OTHERS, *FOREIGN))
    raise ValueError(f"there is no peer '{name}': there are {names}")


def environment_of(command: Command) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {
        **kept,
        "PYTHONPATH": str(HERE.parent),
        "SSLKEYLOGFILE": "/logs/keys.log",
        "QLOGDIR": "/logs/qlog",
        **command.environment,
    }
