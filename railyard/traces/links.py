"""Base RTT and queue of a path by scenario and access technology: what a capacity trace does not say.

Where the figures come from, and how the queues are sized, is told in docs/reference/traces.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from railyard.traces.names import Technology


@dataclass(frozen=True)
class LinkDefaults:
    """What a path is given besides its traces."""

    base_rtt_ms: float
    queue_packets: int
    """About one bandwidth-delay product at the 95th percentile of the 1 s rate."""
    basis: str
    """Where the base RTT comes from."""

    @property
    def queue(self) -> str:
        """The queue as mpshell takes it."""
        return f"droptail:packets={self.queue_packets}"


_TRAIN = "lower quartile of the RTT measured on high-speed trains, the figure with the least queueing of its own in it"
_PHONE_WIFI = "median smoothed RTT of the Wi-Fi path in XLINK's deployment, 30.5 ms"
_PHONE_LTE = "median smoothed RTT of the LTE path in XLINK's deployment, 73.2 ms (2.4 times Wi-Fi)"
_PHONE_5G_SA = "LTE's median divided by 5.5, the ratio in XLINK's deployment"
_RELAYED = "a Wi-Fi hop of 30 ms relayed over LTE, 74 ms"
_US_CELLULAR = "Speedtest median of a US 4G/5G operator, 63 ms"
_STARLINK = "Speedtest medians of Starlink in the US, 38 to 60 ms; the terminal is reached by Wi-Fi"

_BY_SCENARIO: dict[tuple[str, Technology], LinkDefaults] = {
    ("high-speed rail", "wifi"): LinkDefaults(193, 200, _TRAIN),
    ("high-speed rail", "lte"): LinkDefaults(110, 300, _TRAIN),
    ("subway", "wifi"): LinkDefaults(104, 100, _RELAYED),
    ("subway", "lte"): LinkDefaults(74, 150, _PHONE_LTE),
    ("walking", "wifi"): LinkDefaults(30, 200, _PHONE_WIFI),
    ("walking", "lte"): LinkDefaults(74, 400, _PHONE_LTE),
    ("driving", "5g-nsa"): LinkDefaults(62, 150, _US_CELLULAR),
    ("driving, 5G NSA + LTE", "5g-nsa"): LinkDefaults(62, 450, _US_CELLULAR),
    ("driving, 5G NSA + LTE", "lte"): LinkDefaults(74, 200, _PHONE_LTE),
    ("driving, 5G SA + LTE", "5g-sa"): LinkDefaults(14, 150, _PHONE_5G_SA),
    ("driving, 5G SA + LTE", "lte"): LinkDefaults(74, 200, _PHONE_LTE),
    ("driving, LEO + cellular", "5g-nsa"): LinkDefaults(62, 450, _US_CELLULAR),
    ("driving, LEO + cellular", "wifi"): LinkDefaults(50, 400, _STARLINK),
}
_BY_TECHNOLOGY: dict[Technology, LinkDefaults] = {
    "5g-sa": LinkDefaults(14, 150, _PHONE_5G_SA),
    "5g-nsa": LinkDefaults(62, 300, _US_CELLULAR),
    "wifi": LinkDefaults(30, 200, _PHONE_WIFI),
    "lte": LinkDefaults(74, 200, _PHONE_LTE),
}


def link_defaults(scenario: str, technology: Technology) -> LinkDefaults:
    """The figures for a scenario, or those of the technology where the scenario is not in the table."""
    return _BY_SCENARIO.get((scenario, technology), _BY_TECHNOLOGY[technology])
