"""The test cases: quic-interop-runner's, scaled down to seconds, and what proves that each happened."""

from dataclasses import dataclass

from interop.relay import Plan

LINK = "up=10mbps,down=10mbps,delay=15,queue=droptail:packets=25"
MB = 1_000_000
NOTHING = Plan()
PREFERRED_ADDRESS, PREFERRED_PORT = "192.0.2.1", 4443  # of RFC 5737


@dataclass(frozen=True)
class Case:
    name: str
    about: str
    testcase: str  # TESTCASE of the endpoints
    sizes: tuple[int, ...]  # of the files
    link: str = LINK  # of mpshell
    second_link: str | None = None  # a second path
    failing_link: str | None = None  # the first path, if the client is ours: it moves when its path is silent
    relay: Plan | None = NOTHING  # None: there is no relay, and the client comes to the server itself
    needs: tuple[str, ...] = ()  # what the relay must have seen
    connections: int | None = 1  # how many; None: at least two
    family: int = 4
    http3: bool = False  # over HTTP/3 where a peer speaks both
    big_certificate: bool = False
    most_amplification: float | None = None
    qlog_event: str | None = None  # what the qlog of our end must hold: a part of its text
    server_qlog_lacks: str | None = None  # of our server: a regular expression
    is_page: bool = False  # of a page with a video, which a browser plays
    preferred: bool = False  # the server has PREFERRED_ADDRESS, too
    share: float = 0.0  # of the server's datagrams, that each of two paths has to carry at least
    options: str = ""  # of our end
    resumes: bool = False  # the second connection; a foreign client has to look by itself
    chance: bool = False  # whether it passes depends on chance: it is tried several times
    timeout_s: int = 60


SECOND_LINK = LINK.replace("delay=15", "delay=25")
DARK_AFTER = ",onoff=1300/3600000"


def dark(which: str, link: str, second_link: str, options: str = "") -> Case:
    managed = ", with path management" if options else ""
    return Case(
        f"dark-{which}{'-managed' if options else ''}",
        f"RFC 10069: the {which} of two paths loses everything from 1.3 s on{managed}",
        *("multipath", (5 * MB,)),
        link=link,
        second_link=second_link,
        share=0.05,
        options=options,
        chance=True,
        timeout_s=25,  # without a stall it takes 4 s; an idle connection ends after 30 s
    )


DARK = tuple(
    dark(*which, options)
    for options in ("", "--path-management on,abandon=1")
    for which in (("first", LINK + DARK_AFTER, SECOND_LINK), ("second", LINK, SECOND_LINK + DARK_AFTER))
)
CASES = (
    Case("handshake", "one small file", "handshake", (1024,)),
    Case("transfer", "three files at once in one connection", "transfer", (2 * MB, MB, MB // 2)),
    Case("http3", "the same over HTTP/3", "http3", (MB // 2, MB // 4, 10_000), http3=True),
    Case("multiplexing", "200 files of 32 bytes in one connection", "transfer", (32,) * 200),
    Case("longrtt", "a round trip of 1.5 s", "longrtt", (1024,), link=LINK.replace("delay=15", "delay=750")),
    Case("ipv6", "over IPv6", "ipv6", (MB // 2,), family=6),
    Case("retry", "the server asks for Retry", "retry", (1024,), needs=("server v1 retry",), connections=None),
    Case("chacha20", "ChaCha20-Poly1305 is all that is offered", "chacha20", (MB,)),
    Case(
        *("p256", "the client shares a key of P-256, or the server has no other group", "p256", (1024,)),
        server_qlog_lacks='packet_received.*"initial".*"crypto","offset":[1-9]',  # after a HelloRetryRequest
    ),
    Case(
        "resumption",
        "the second connection resumes the first one's session",
        "resumption",
        (1024, 1024),
        connections=2,
        resumes=True,
    ),
    Case(
        "zerortt",
        "the second one sends its requests in 0-RTT",
        "zerortt",
        (32,) * 10,
        needs=("0rtt",),
        connections=2,
        resumes=True,
    ),
    Case("keyupdate", "the client updates the keys", "keyupdate", (3 * MB,), qlog_event="key_updated"),
    Case("v2", "the handshake changes to QUIC v2", "v2", (1024,), needs=("client v2", "server v2")),
    Case(
        *(
            "amplificationlimit",
            "a big certificate; the client's second to fourth datagrams are lost",
            "transfer",
            (1024,),
        ),
        relay=Plan(drop_client=(2, 3, 4)),
        big_certificate=True,
        most_amplification=3.0,
    ),
    Case("blackhole", "the link is down for 2 s", "transfer", (3 * MB,), link=LINK + ",onoff=1500/2000/3600000/1"),
    Case(
        "handshakeloss",
        "10 handshakes at 30 % loss",
        "multiconnect",
        (1024,) * 10,
        relay=Plan(loss=0.3),
        connections=None,
        chance=True,
        timeout_s=150,
    ),
    Case(
        "handshakecorruption",
        "10 handshakes, 30 % of the datagrams corrupted",
        "multiconnect",
        (1024,) * 10,
        relay=Plan(corruption=0.3),
        connections=None,
        chance=True,
        timeout_s=150,
    ),
    Case("transferloss", "2 MB at 2 % loss", "transfer", (2 * MB,), relay=Plan(loss=0.02), chance=True),
    Case(
        "transfercorruption",
        "2 MB, 2 % of the datagrams corrupted",
        "transfer",
        (2 * MB,),
        relay=Plan(corruption=0.02),
        connections=None,
        chance=True,
    ),
    Case(
        "rebind-port",
        "the client's port changes three times",
        "transfer",
        (3 * MB,),
        relay=Plan(rebind_after_s=0.7, rebind_times=3),
        chance=True,
    ),
    Case(
        *("rebind-addr", "the client's address changes three times", "transfer", (3 * MB,)),
        relay=Plan(rebind_after_s=0.7, rebind_times=3, rebind_address=True),
        chance=True,
    ),
    Case(
        *("connectionmigration", "the client moves to another port or address", "connectionmigration", (3 * MB,)),
        second_link=LINK,
        failing_link=LINK + ",onoff=1000/3600000",
        needs=("client moved",),
        chance=True,
    ),
    Case(
        *("preferredaddress", "the client moves to the server's preferred address", "preferredaddress", (3 * MB,)),
        relay=None,
        preferred=True,
        qlog_event="multipath:migrated",
    ),
    Case(
        *("ecn", "both sides send ECT(0), and take the other's counts for valid", "ecn", (MB,)),
        needs=("client ect0", "server ect0"),
        qlog_event='"new":"capable"',
    ),
    Case(
        *("multipath", "RFC 10069: one file over two paths", "multipath", (5 * MB,)),
        second_link=SECOND_LINK,
        share=0.25,
    ),
    *DARK,
    Case("play", "a browser plays the video of a page", "http3", (), http3=True, is_page=True),
)
# Not of the matrix: 10 MB over a link that loses packets in both directions (interop.loss).
LOSS_RATES = (1, 3, 5)
LOSS = tuple(
    Case(
        *(f"loss{percent}", f"10 MB at {percent} % loss, 100 ms", "http3", (10 * MB,)),
        link=f"up=40mbps,down=40mbps,delay=50,loss={percent / 100},queue=droptail:packets=330",
        relay=None,
        http3=True,
        timeout_s=600,
    )
    for percent in LOSS_RATES
)
# Nor is this: a client that gives up after 10 s has no time for the rest of the handshake.
DARK_HANDSHAKE = Case(
    *("darkhandshake", "the link is down for 12 s during the handshake", "handshake", (1024,)),
    link=LINK + ",onoff=45/12000/3600000/1",
    big_certificate=True,
)
BY_NAME = {case.name: case for case in (*CASES, *LOSS, DARK_HANDSHAKE)}
# Enough for every change: both HTTPs, Retry, loss, and a change of address.
SMALL = ("handshake", "http3", "retry", "resumption", "rebind-addr")
