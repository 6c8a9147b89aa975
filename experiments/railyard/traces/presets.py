"""The models that `railyard traces generate --model` knows, fitted to measured statistics (docs/traces.md)."""

from __future__ import annotations

from railyard.traces.links import link_defaults
from railyard.traces.model import (
    Body,
    DipLevel,
    Fades,
    Handoffs,
    Lengths,
    MobilityModel,
    PathModel,
    TunnelEffect,
    Tunnels,
    Uplink,
)

_HSR_WIFI, _HSR_LTE = link_defaults("high-speed rail", "wifi"), link_defaults("high-speed rail", "lte")
_SUBWAY_WIFI, _SUBWAY_LTE = link_defaults("subway", "wifi"), link_defaults("subway", "lte")

HSR = MobilityModel(
    scenario="high-speed rail",
    tunnels=Tunnels(spacing_mean_s=60, spacing_min_s=15, length=Lengths(median_s=2.5, p90_s=6, max_s=12)),
    paths=(
        PathModel(
            name="wifi",
            technology="wifi",
            base_rtt_ms=_HSR_WIFI.base_rtt_ms,
            queue=_HSR_WIFI.queue,
            grant_ms=4,
            body=Body(median_mbps=5.2, sigma=0.8, time_constant_s=4.5, cell_share=0.3, line_share=0.3, peak_mbps=25),
            dip_level=DipLevel(median_mbps=0.55, sigma=1.0, time_constant_s=0.8, ceiling_mbps=3),
            handoffs=Handoffs(
                spacing_median_s=3.6,
                spacing_sigma=0.9,
                interruption=Lengths(median_s=0.15, p90_s=0.4, max_s=1),
                dip_probability=0.6,
                dip=Lengths(median_s=1.2, p90_s=8, max_s=16),
            ),
            fades=Fades(per_minute=14, per_minute_in_dips=120, length=Lengths(median_s=0.2, p90_s=0.3, max_s=0.6)),
            tunnel_effect=TunnelEffect(
                silence_share=0.3, recovery_probability=0.3, recovery=Lengths(median_s=1, p90_s=3, max_s=6)
            ),
            uplink=Uplink(fraction=0.15, sigma=0.3, time_constant_s=3),
        ),
        PathModel(
            name="lte",
            technology="lte",
            base_rtt_ms=_HSR_LTE.base_rtt_ms,
            queue=_HSR_LTE.queue,
            grant_ms=2,
            body=Body(median_mbps=12.5, sigma=0.85, time_constant_s=2.5, cell_share=0.3, line_share=0.3, peak_mbps=32),
            dip_level=DipLevel(median_mbps=0.58, sigma=1.0, time_constant_s=3, ceiling_mbps=4),
            handoffs=Handoffs(
                spacing_median_s=13,
                spacing_sigma=0.2,
                interruption=Lengths(median_s=0.15, p90_s=0.5, max_s=1.5),
                dip_probability=1,
                dip=Lengths(median_s=2, p90_s=14, max_s=24),
            ),
            fades=Fades(per_minute=0.5, per_minute_in_dips=6, length=Lengths(median_s=0.2, p90_s=0.5, max_s=2)),
            tunnel_effect=TunnelEffect(
                silence_share=0.5, recovery_probability=0, recovery=Lengths(median_s=1, p90_s=2, max_s=4)
            ),
            uplink=Uplink(fraction=0.15, sigma=0.3, time_constant_s=3),
        ),
    ),
)

SUBWAY = MobilityModel(
    scenario="subway",
    tunnels=Tunnels(spacing_mean_s=60, spacing_min_s=20, length=Lengths(median_s=2.6, p90_s=3.8, max_s=4.8)),
    paths=(
        PathModel(
            name="wifi",
            technology="wifi",
            base_rtt_ms=_SUBWAY_WIFI.base_rtt_ms,
            queue=_SUBWAY_WIFI.queue,
            grant_ms=5,
            body=Body(median_mbps=5.2, sigma=0.65, time_constant_s=60, cell_share=0.2, line_share=0.1, peak_mbps=14),
            dip_level=DipLevel(median_mbps=0.5, sigma=0.9, time_constant_s=1, ceiling_mbps=0.9),
            handoffs=Handoffs(
                spacing_median_s=6,
                spacing_sigma=1.48,
                interruption=Lengths(median_s=0.2, p90_s=0.5, max_s=1),
                dip_probability=0.25,
                dip=Lengths(median_s=1.6, p90_s=8, max_s=11),
            ),
            fades=Fades(per_minute=9, per_minute_in_dips=40, length=Lengths(median_s=0.3, p90_s=0.8, max_s=2)),
            tunnel_effect=TunnelEffect(
                silence_share=0.8, recovery_probability=0.5, recovery=Lengths(median_s=2, p90_s=8, max_s=20)
            ),
            uplink=Uplink(fraction=0.15, sigma=0.3, time_constant_s=3),
        ),
        PathModel(
            name="lte",
            technology="lte",
            base_rtt_ms=_SUBWAY_LTE.base_rtt_ms,
            queue=_SUBWAY_LTE.queue,
            grant_ms=2,
            body=Body(median_mbps=8.9, sigma=0.92, time_constant_s=10, cell_share=0.3, line_share=0.1, peak_mbps=25),
            dip_level=DipLevel(median_mbps=0.3, sigma=0.9, time_constant_s=1, ceiling_mbps=0.9),
            handoffs=Handoffs(
                spacing_median_s=6,
                spacing_sigma=1.48,
                interruption=Lengths(median_s=0.2, p90_s=0.4, max_s=1),
                dip_probability=0.1,
                dip=Lengths(median_s=2.6, p90_s=3.8, max_s=4.8),
            ),
            fades=Fades(per_minute=3.6, per_minute_in_dips=20, length=Lengths(median_s=0.2, p90_s=0.5, max_s=1)),
            tunnel_effect=TunnelEffect(
                silence_share=0.5, recovery_probability=0, recovery=Lengths(median_s=1, p90_s=2, max_s=4)
            ),
            uplink=Uplink(fraction=0.15, sigma=0.3, time_constant_s=3),
        ),
    ),
)

MODELS: dict[str, MobilityModel] = {"subway": SUBWAY, "hsr": HSR}
