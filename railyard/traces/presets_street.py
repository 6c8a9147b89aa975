"""Models of a walk with Wi-Fi and LTE, and of a drive with 5G and LTE: docs/reference/traces.md has their sources."""

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

_WALK_WIFI, _WALK_LTE = link_defaults("walking", "wifi"), link_defaults("walking", "lte")
_NSA = link_defaults("driving, 5G NSA + LTE", "5g-nsa")
_SA = link_defaults("driving, 5G SA + LTE", "5g-sa")
_DRIVE_LTE = link_defaults("driving, 5G NSA + LTE", "lte")

WALKING = MobilityModel(
    scenario="walking",
    # Where a walk goes below ground or into a lift, both radios fade.
    tunnels=Tunnels(spacing_mean_s=110, spacing_min_s=30, length=Lengths(median_s=5.5, p90_s=9, max_s=11)),
    paths=(
        PathModel(
            name="wifi",
            technology="wifi",
            base_rtt_ms=_WALK_WIFI.base_rtt_ms,
            base_rtt_basis=_WALK_WIFI.basis,
            queue=_WALK_WIFI.queue,
            grant_ms=1,
            body=Body(median_mbps=32, sigma=0.75, time_constant_s=8, cell_share=0.3, line_share=0, peak_mbps=70),
            dip_level=DipLevel(median_mbps=0.55, sigma=1.4, time_constant_s=2.5, ceiling_mbps=6),
            handoffs=Handoffs(
                spacing_median_s=22,
                spacing_sigma=0.7,
                interruption=Lengths(median_s=0.2, p90_s=0.8, max_s=2),
                dip_probability=0.75,
                dip=Lengths(median_s=6.5, p90_s=11, max_s=13),
            ),
            fades=Fades(per_minute=0.4, per_minute_in_dips=13, length=Lengths(median_s=1.6, p90_s=4.5, max_s=5.4)),
            tunnel_effect=TunnelEffect(
                silence_share=0.7, recovery_probability=0.5, recovery=Lengths(median_s=1.5, p90_s=4, max_s=8)
            ),
            uplink=Uplink(fraction=0.4, sigma=0.3, time_constant_s=3),
            rtt=Rtt(
                p1_ms=8, p25_ms=22, p50_ms=30, p75_ms=45, p99_ms=250, max_ms=1000, time_constant_s=2, cell_share=0.2,
                handoff_peak_ms=200, handoff_peak_sigma=0.5, handoff=Lengths(median_s=0.3, p90_s=1, max_s=2),
            ),
        ),
        PathModel(
            name="lte",
            technology="lte",
            base_rtt_ms=_WALK_LTE.base_rtt_ms,
            base_rtt_basis=_WALK_LTE.basis,
            queue=_WALK_LTE.queue,
            link=_WALK_LTE.settings,
            grant_ms=1,
            body=Body(median_mbps=27, sigma=0.6, time_constant_s=8, cell_share=0.3, line_share=0, peak_mbps=75),
            dip_level=DipLevel(median_mbps=0.8, sigma=0.8, time_constant_s=1.5, ceiling_mbps=5),
            handoffs=Handoffs(
                spacing_median_s=35,
                spacing_sigma=0.6,
                interruption=Lengths(median_s=0.1, p90_s=0.3, max_s=0.8),
                dip_probability=0.15,
                dip=Lengths(median_s=2, p90_s=6, max_s=10),
            ),
            fades=Fades(per_minute=0.2, per_minute_in_dips=5, length=Lengths(median_s=0.5, p90_s=2, max_s=5)),
            tunnel_effect=TunnelEffect(
                silence_share=0.5, recovery_probability=0.3, recovery=Lengths(median_s=1, p90_s=2, max_s=4)
            ),
            uplink=Uplink(fraction=0.2, sigma=0.3, time_constant_s=3),
            rtt=Rtt(
                p1_ms=35, p25_ms=58, p50_ms=74, p75_ms=96, p99_ms=300, max_ms=1500, time_constant_s=2, cell_share=0.3,
                handoff_peak_ms=250, handoff_peak_sigma=0.5, handoff=Lengths(median_s=0.2, p90_s=0.5, max_s=1.5),
            ),
        ),
    ),
)  # fmt: skip

_DRIVE_TUNNELS = Tunnels(spacing_mean_s=120, spacing_min_s=30, length=Lengths(median_s=1.5, p90_s=4, max_s=8))

_DRIVE_5G = PathModel(
    name="5g",
    technology="5g-nsa",
    base_rtt_ms=_NSA.base_rtt_ms,
    base_rtt_basis=_NSA.basis,
    queue=_NSA.queue,
    link=_NSA.settings,
    grant_ms=1,
    body=Body(median_mbps=50, sigma=0.6, time_constant_s=16, cell_share=0.3, line_share=0.7, peak_mbps=120),
    # Outside of 5G coverage the LTE anchor carries the path.
    dip_level=DipLevel(median_mbps=9, sigma=0.6, time_constant_s=2, ceiling_mbps=20),
    handoffs=Handoffs(
        spacing_median_s=9,
        spacing_sigma=0.9,
        interruption=Lengths(median_s=0.15, p90_s=0.4, max_s=1),
        dip_probability=0.3,
        dip=Lengths(median_s=3, p90_s=8, max_s=15),
    ),
    fades=Fades(per_minute=0.3, per_minute_in_dips=1, length=Lengths(median_s=0.4, p90_s=1, max_s=1.5)),
    tunnel_effect=TunnelEffect(
        silence_share=0.7, recovery_probability=0.6, recovery=Lengths(median_s=2, p90_s=5, max_s=10)
    ),
    uplink=Uplink(fraction=0.12, sigma=0.3, time_constant_s=3),
    rtt=Rtt(
        p1_ms=25, p25_ms=40, p50_ms=52, p75_ms=71, p99_ms=400, max_ms=1500, time_constant_s=2, cell_share=0.4,
        handoff_peak_ms=250, handoff_peak_sigma=0.5, handoff=Lengths(median_s=0.2, p90_s=0.6, max_s=1.5),
    ),
)  # fmt: skip

_DRIVE_LTE_PATH = PathModel(
    name="lte",
    technology="lte",
    base_rtt_ms=_DRIVE_LTE.base_rtt_ms,
    base_rtt_basis=_DRIVE_LTE.basis,
    queue=_DRIVE_LTE.queue,
    link=_DRIVE_LTE.settings,
    grant_ms=2,
    body=Body(median_mbps=11.8, sigma=0.6, time_constant_s=7, cell_share=0.2, line_share=0.7, peak_mbps=45),
    dip_level=DipLevel(median_mbps=0.9, sigma=0.9, time_constant_s=1, ceiling_mbps=4),
    handoffs=Handoffs(
        spacing_median_s=12,
        spacing_sigma=0.7,
        interruption=Lengths(median_s=0.3, p90_s=0.8, max_s=1.5),
        dip_probability=0.4,
        dip=Lengths(median_s=1.7, p90_s=2.7, max_s=4),
    ),
    fades=Fades(per_minute=4, per_minute_in_dips=8, length=Lengths(median_s=0.6, p90_s=1.5, max_s=2.5)),
    tunnel_effect=TunnelEffect(
        silence_share=0.7, recovery_probability=0, recovery=Lengths(median_s=1, p90_s=2, max_s=4)
    ),
    uplink=Uplink(fraction=0.2, sigma=0.3, time_constant_s=3),
    rtt=Rtt(
        p1_ms=35, p25_ms=58, p50_ms=74, p75_ms=96, p99_ms=400, max_ms=1500, time_constant_s=2, cell_share=0.4,
        handoff_peak_ms=250, handoff_peak_sigma=0.5, handoff=Lengths(median_s=0.2, p90_s=0.5, max_s=1.5),
    ),
)  # fmt: skip

DRIVING_NSA = MobilityModel(
    scenario="driving, 5G NSA + LTE", tunnels=_DRIVE_TUNNELS, paths=(_DRIVE_5G, _DRIVE_LTE_PATH)
)

# Stand-alone 5G has no anchor: fewer and shorter handoffs, and no LTE rate to fall back to where coverage ends.
_DRIVE_SA_PATH = _DRIVE_5G.model_copy(
    update={
        "technology": "5g-sa",
        "base_rtt_ms": _SA.base_rtt_ms,
        "base_rtt_basis": _SA.basis,
        "queue": _SA.queue,
        "link": _SA.settings,
        "handoffs": _DRIVE_5G.handoffs.model_copy(
            update={
                "spacing_median_s": 18.0,
                "interruption": Lengths(median_s=0.1, p90_s=0.3, max_s=0.8),
                "dip": Lengths(median_s=1.5, p90_s=4, max_s=8),
            }
        ),
        "dip_level": DipLevel(median_mbps=3, sigma=0.9, time_constant_s=2, ceiling_mbps=15),
        "rtt": Rtt(
            p1_ms=25, p25_ms=40, p50_ms=51, p75_ms=70, p99_ms=300, max_ms=1500, time_constant_s=2, cell_share=0.4,
            handoff_peak_ms=250, handoff_peak_sigma=0.5, handoff=Lengths(median_s=0.1, p90_s=0.4, max_s=1),
        ),
    }
)  # fmt: skip

DRIVING_SA = MobilityModel(
    scenario="driving, 5G SA + LTE", tunnels=_DRIVE_TUNNELS, paths=(_DRIVE_SA_PATH, _DRIVE_LTE_PATH)
)
