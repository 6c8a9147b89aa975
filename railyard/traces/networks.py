"""Networks under the names that others gave them, each with constant rates, a base RTT, a queue and its source."""

from collections.abc import Sequence
from dataclasses import dataclass

from railyard.base.yamlfile import near_miss
from railyard.traces.index import PairEntry, PathEntry
from railyard.traces.names import Technology
from railyard.traces.periods import CONSTANT_MS
from railyard.traces.trace import TraceError, format_trace

_OPPORTUNITY_BITS = 1504 * 8
_QUICLY = "h2o/quicly t/simulator-plot.rb at b11d3634"
_PICOQUIC = "private-octopus/picoquic picoquictest/satellite_test.c at 1562dd3b"


@dataclass(frozen=True)
class Network:
    """A network. Rates are in Mbps. The queue holds `queue_ms` at the direction's rate."""

    down_mbps: float
    up_mbps: float
    rtt_ms: float
    queue_ms: float
    source: str
    technology: Technology = "wifi"
    """The path's technology; `wifi` if the last hop is unknown."""

    def queue_packets(self, mbps: float) -> int:
        return max(1, round(mbps * 1e3 * self.queue_ms / _OPPORTUNITY_BITS))


def _quicly(mbps: float, rtt_ms: float, queue_ms: float, technology: Technology = "wifi") -> Network:
    """A network of quicly's simulator, which has one rate for both directions."""
    return Network(mbps, mbps, rtt_ms, queue_ms, _QUICLY, technology)


NETWORKS = {
    "dsl": _quicly(30, 30, 50),
    "home-wifi": _quicly(100, 25, 15),
    "public-wifi": _quicly(20, 40, 200),
    "corporate-wifi": _quicly(500, 10, 20),
    "lte": _quicly(30, 60, 120, "lte"),
    "5g": _quicly(100, 40, 80, "5g-nsa"),
    "leo": _quicly(50, 40, 80),
    "geo": _quicly(50, 600, 600),
    "congested": _quicly(1, 200, 400),
    "satellite-250": Network(250, 3, 600, 600, _PICOQUIC),
    "satellite-50": Network(50, 10, 600, 600, _PICOQUIC),
    "satellite-10": Network(10, 2, 600, 600, _PICOQUIC),
}


def _trace(mbps: float) -> bytes:
    """Evenly spaced opportunities in a period of CONSTANT_MS. Their number is exact to half an opportunity."""
    count = round(mbps * 1e3 * CONSTANT_MS / _OPPORTUNITY_BITS)
    return format_trace([-(-CONSTANT_MS * (k + 1) // count) for k in range(count)])


def network_pair(names: Sequence[str], name: str | None) -> tuple[dict[str, bytes], PairEntry]:
    """The traces of a pair of networks by file name, and its entry in an index. Raises TraceError."""
    for wrong in (each for each in names if each not in NETWORKS):
        raise TraceError(f"'{wrong}' is no network; {near_miss(wrong, NETWORKS)}")
    if len(names) < 2 or len(set(names)) < len(names):
        raise TraceError("a pair has two or more networks, each once; give --network NAME for each")
    pair = name or "-".join(names)
    files: dict[str, bytes] = {}
    entries = []
    for each in names:
        network = NETWORKS[each]
        files |= {f"{pair}.{each}.down": _trace(network.down_mbps), f"{pair}.{each}.up": _trace(network.up_mbps)}
        entries.append(
            PathEntry(
                name=each,
                technology=network.technology,
                uplink=f"{pair}.{each}.up",
                downlink=f"{pair}.{each}.down",
                base_rtt_ms=network.rtt_ms,
                queue=f"droptail:packets={network.queue_packets(network.down_mbps)}",
                kind="generated",
                link={"up_queue": f"droptail:packets={network.queue_packets(network.up_mbps)}"},
            )
        )
    source = "; ".join(dict.fromkeys(NETWORKS[each].source for each in names))
    entry = PairEntry(name=pair, scenario="constant", licence="CC0-1.0", source=source, paths=tuple(entries))
    return files, entry
