"""The models of `railyard traces generate --model`, fitted to measured statistics: docs/reference/traces.md."""

from __future__ import annotations

from railyard.traces.links import link_defaults
from railyard.traces.parameters import (
    Body,
    DipLevel,
    Fades,
    Handoffs,
    Lengths,
    MobilityModel,
    PathModel,
    Rtt,
    TunnelEffect,
    Tunnels,
    Uplink,
)
from railyard.traces.presets_street import DRIVING_NSA, DRIVING_SA, WALKING

_HSR_WIFI, _HSR_LTE = link_defaults("high-speed rail", "wifi"), link_defaults("high-speed rail", "lte")
_SUBWAY_WIFI, _SUBWAY_LTE = link_defaults("subway", "wifi"), link_defaults("subway", "lte")

HSR = MobilityModel(
    scenario="high-speed rail",
    tunnels=Tunnels(spacing_mean_s=54, spacing_min_s=15, length=Lengths(median_s=2.2, p90_s=5.9, max_s=12)),
    paths=(
        PathModel(
            name="wifi",
            technology="wifi",
            base_rtt_ms=_HSR_WIFI.base_rtt_ms,
            base_rtt_basis=_HSR_WIFI.basis,
            queue=_HSR_WIFI.queue,
            link=_HSR_WIFI.settings,
            grant_ms=4,
            body=Body(median_mbps=5.35, sigma=0.76, time_constant_s=5.8, cell_share=0.22, line_share=0.3, peak_mbps=38),
            dip_level=DipLevel(median_mbps=0.68, sigma=0.95, time_constant_s=0.58, ceiling_mbps=2.9),
            handoffs=Handoffs(
                spacing_median_s=2.6,
                spacing_sigma=0.9,
                interruption=Lengths(median_s=0.08, p90_s=0.3, max_s=1),
                dip_probability=0.5,
                dip=Lengths(median_s=1.2, p90_s=7.9, max_s=11),
            ),
            fades=Fades(
                per_minute=10, per_minute_in_dips=85, length=Lengths(median_s=0.2, p90_s=0.45, max_s=1.5), spread=0.7
            ),
            tunnel_effect=TunnelEffect(
                silence_share=0.22, recovery_probability=0.3, recovery=Lengths(median_s=1, p90_s=3, max_s=6)
            ),
            uplink=Uplink(fraction=0.15, sigma=0.3, time_constant_s=3),
            rtt=Rtt(
                p1_ms=55,
                p25_ms=76,
                p50_ms=90,
                p75_ms=108,
                p99_ms=140,
                max_ms=3000,
                time_constant_s=2,
                cell_share=0.5,
                handoff_peak_ms=1000,
                handoff_peak_sigma=0.4,
                handoff=Lengths(median_s=0.1, p90_s=0.3, max_s=1),
            ),
        ),
        PathModel(
            name="lte",
            technology="lte",
            base_rtt_ms=_HSR_LTE.base_rtt_ms,
            base_rtt_basis=_HSR_LTE.basis,
            queue=_HSR_LTE.queue,
            link=_HSR_LTE.settings,
            grant_ms=2,
            body=Body(median_mbps=12.4, sigma=0.85, time_constant_s=2.4, cell_share=0.22, line_share=0.3, peak_mbps=33),
            dip_level=DipLevel(median_mbps=0.6, sigma=0.71, time_constant_s=3.3, ceiling_mbps=4.2),
            handoffs=Handoffs(
                spacing_median_s=13,
                spacing_sigma=0.2,
                interruption=Lengths(median_s=0.13, p90_s=0.5, max_s=1.5),
                dip_probability=0.86,
                dip=Lengths(median_s=2.8, p90_s=11, max_s=26),
            ),
            fades=Fades(per_minute=0.2, per_minute_in_dips=3, length=Lengths(median_s=0.2, p90_s=0.5, max_s=2)),
            tunnel_effect=TunnelEffect(
                silence_share=0.7, recovery_probability=0, recovery=Lengths(median_s=1, p90_s=2, max_s=4)
            ),
            uplink=Uplink(fraction=0.15, sigma=0.3, time_constant_s=3),
            rtt=Rtt(
                p1_ms=42,
                p25_ms=54,
                p50_ms=60,
                p75_ms=71,
                p99_ms=190,
                max_ms=3000,
                time_constant_s=2,
                cell_share=0.5,
                handoff_peak_ms=1000,
                handoff_peak_sigma=0.4,
                handoff=Lengths(median_s=0.4, p90_s=1, max_s=2),
            ),
        ),
    ),
)

SUBWAY = MobilityModel(
    scenario="subway",
    tunnels=Tunnels(spacing_mean_s=60, spacing_min_s=20, length=Lengths(median_s=2.6, p90_s=3.1, max_s=4.8)),
    paths=(
        PathModel(
            name="wifi",
            technology="wifi",
            base_rtt_ms=_SUBWAY_WIFI.base_rtt_ms,
            base_rtt_basis=_SUBWAY_WIFI.basis,
            queue=_SUBWAY_WIFI.queue,
            grant_ms=5,
            body=Body(median_mbps=5.2, sigma=0.64, time_constant_s=43, cell_share=0.24, line_share=0.1, peak_mbps=14),
            dip_level=DipLevel(median_mbps=0.48, sigma=0.94, time_constant_s=1, ceiling_mbps=0.9),
            handoffs=Handoffs(
                spacing_median_s=6,
                spacing_sigma=1.48,
                interruption=Lengths(median_s=0.2, p90_s=0.5, max_s=1),
                dip_probability=0.25,
                dip=Lengths(median_s=1.5, p90_s=7.2, max_s=11),
            ),
            fades=Fades(per_minute=9, per_minute_in_dips=41, length=Lengths(median_s=0.3, p90_s=0.8, max_s=2)),
            tunnel_effect=TunnelEffect(
                silence_share=0.8, recovery_probability=0.5, recovery=Lengths(median_s=2, p90_s=8, max_s=23)
            ),
            uplink=Uplink(fraction=0.15, sigma=0.3, time_constant_s=3),
            rtt=Rtt(
                p1_ms=50,
                p25_ms=82,
                p50_ms=104,
                p75_ms=140,
                p99_ms=500,
                max_ms=2000,
                time_constant_s=2,
                cell_share=0.4,
                handoff_peak_ms=400,
                handoff_peak_sigma=0.5,
                handoff=Lengths(median_s=0.2, p90_s=0.6, max_s=1.5),
            ),
        ),
        PathModel(
            name="lte",
            technology="lte",
            base_rtt_ms=_SUBWAY_LTE.base_rtt_ms,
            base_rtt_basis=_SUBWAY_LTE.basis,
            queue=_SUBWAY_LTE.queue,
            link=_SUBWAY_LTE.settings,
            grant_ms=2,
            body=Body(median_mbps=8.4, sigma=0.83, time_constant_s=10, cell_share=0.32, line_share=0.1, peak_mbps=27),
            dip_level=DipLevel(median_mbps=0.3, sigma=0.95, time_constant_s=1, ceiling_mbps=0.9),
            handoffs=Handoffs(
                spacing_median_s=6,
                spacing_sigma=1.48,
                interruption=Lengths(median_s=0.2, p90_s=0.4, max_s=1),
                dip_probability=0.084,
                dip=Lengths(median_s=2.6, p90_s=3.8, max_s=4.8),
            ),
            fades=Fades(per_minute=2.9, per_minute_in_dips=20, length=Lengths(median_s=0.2, p90_s=0.5, max_s=1)),
            tunnel_effect=TunnelEffect(
                silence_share=0.34, recovery_probability=0, recovery=Lengths(median_s=1, p90_s=2, max_s=4)
            ),
            uplink=Uplink(fraction=0.15, sigma=0.3, time_constant_s=3),
            rtt=Rtt(
                p1_ms=35,
                p25_ms=58,
                p50_ms=74,
                p75_ms=96,
                p99_ms=400,
                max_ms=2000,
                time_constant_s=2,
                cell_share=0.4,
                handoff_peak_ms=300,
                handoff_peak_sigma=0.5,
                handoff=Lengths(median_s=0.2, p90_s=0.5, max_s=1.5),
            ),
        ),
    ),
)

MODELS: dict[str, MobilityModel] = {
    "subway": SUBWAY,
    "hsr": HSR,
    "walking": WALKING,
    "driving-nsa": DRIVING_NSA,
    "driving-sa": DRIVING_SA,
}
