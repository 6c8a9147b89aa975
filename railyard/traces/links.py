"""Base RTT, queue and wake-up of a path by scenario and access technology, which a capacity trace does not have.

docs/reference/traces.md has the sources of the figures and the rule for the size of queues.
"""

from dataclasses import dataclass

from railyard.traces.names import Technology
from railyard.traces.settings import Value


@dataclass(frozen=True)
class LinkDefaults:
    """The properties that a path gets besides its traces."""

    base_rtt_ms: float
    """The base RTT of a connected radio, without its wake-up."""
    queue_packets: int
    """About one bandwidth-delay product at the 95th percentile of the 1 s rate."""
    basis: str
    """The source of the base RTT, and how certain it is."""
    radio: str | None = None
    """The wake-up, as the uplink's setting `radio`, because the phone sends first. None: the radio does not sleep."""

    @property
    def queue(self) -> str:
        """The queue as an option of mpshell."""
        return f"droptail:packets={self.queue_packets}"

    @property
    def settings(self) -> dict[str, Value]:
        """The settings of the path's link besides delay and queue."""
        return {} if self.radio is None else {"up_radio": self.radio}


_TRAIN_LTE = "first round trips after the handshake on the moving train, 60 and 98 ms, n = 2"
_TRAIN_SECOND = "first round trips after the handshake on the moving train, 97 and 124 ms, n = 2"
_PHONE_WIFI = "median smoothed RTT of Wi-Fi in XLINK's deployment, 30.5 ms; with its own queueing, so high"
_PHONE_LTE = "median smoothed RTT of LTE in XLINK's deployment, 73.2 ms; with its own queueing, so high"
_PHONE_SA = "medians of a phone on 5G SA in two cities, 51.3 and 47.6 ms"
_PHONE_NSA = "medians of a phone on 5G NSA in two cities, 51.8 and 44.4 ms"
_RELAYED = "a Wi-Fi hop of 30 ms relayed over LTE, 74 ms; an assumption"
_US_CELLULAR = "ping medians of two US 4G/5G operators while driving, 56.5 and 83.5 ms"
_STARLINK = "ping median of Starlink while driving, 44.2 ms; the terminal is reached by Wi-Fi"

# Promotion: median of SYN round trip minus next round trip, after 10 to 20 s of silence (`railyard traces rtt`). Tail:
# the shortest of these silences was 9.7 s.
_RADIO_TRAIN_LTE = "promotion=160:tail=10000"
_RADIO_TRAIN_SECOND = "promotion=272:tail=10000"
_RADIO = "promotion=260:tail=11576"
"""LTE, Huang et al., MobiSys 2012: of all cellular paths without a measurement of their own."""

_BY_SCENARIO: dict[tuple[str, Technology], LinkDefaults] = {
    ("high-speed rail", "wifi"): LinkDefaults(90, 100, _TRAIN_SECOND, _RADIO_TRAIN_SECOND),  # a second LTE carrier
    ("high-speed rail", "lte"): LinkDefaults(60, 150, _TRAIN_LTE, _RADIO_TRAIN_LTE),
    ("subway", "wifi"): LinkDefaults(104, 100, _RELAYED),
    ("subway", "lte"): LinkDefaults(74, 150, _PHONE_LTE, _RADIO),
    ("walking", "wifi"): LinkDefaults(30, 200, _PHONE_WIFI),
    ("walking", "lte"): LinkDefaults(74, 400, _PHONE_LTE, _RADIO),
    ("driving", "5g-nsa"): LinkDefaults(70, 150, _US_CELLULAR, _RADIO),
    ("driving, 5G NSA + LTE", "5g-nsa"): LinkDefaults(52, 400, _PHONE_NSA, _RADIO),
    ("driving, 5G NSA + LTE", "lte"): LinkDefaults(74, 200, _PHONE_LTE, _RADIO),
    ("driving, 5G SA + LTE", "5g-sa"): LinkDefaults(51, 350, _PHONE_SA, _RADIO),
    ("driving, 5G SA + LTE", "lte"): LinkDefaults(74, 200, _PHONE_LTE, _RADIO),
    ("driving, LEO + cellular", "5g-nsa"): LinkDefaults(70, 500, _US_CELLULAR, _RADIO),
    ("driving, LEO + cellular", "wifi"): LinkDefaults(44, 400, _STARLINK),
}
_BY_TECHNOLOGY: dict[Technology, LinkDefaults] = {
    "5g-sa": LinkDefaults(51, 350, _PHONE_SA, _RADIO),
    "5g-nsa": LinkDefaults(52, 300, _PHONE_NSA, _RADIO),
    "wifi": LinkDefaults(30, 200, _PHONE_WIFI),
    "lte": LinkDefaults(74, 200, _PHONE_LTE, _RADIO),
}


def link_defaults(scenario: str, technology: Technology) -> LinkDefaults:
    """The figures for a scenario, or those of the technology if the scenario is not in the table."""
    return _BY_SCENARIO.get((scenario, technology), _BY_TECHNOLOGY[technology])
