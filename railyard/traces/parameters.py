"""Parameters of the mobility model, as in the YAML file beside a generated pair: docs/reference/traces.md."""

from typing import Annotated

from pydantic import Field, model_validator

from railyard.base.models import NotNegative, Positive, Share, StrictModel
from railyard.traces.names import DeviceName, OfAPair, QueueSpec, Technology
from railyard.traces.settings import LinkSettings

STEP_MS = 100
"""The model's step of time."""
MAX_DURATION_S = 3600


class Lengths(StrictModel):
    """A lognormal length of time by its median and 90th percentile, cut off at a maximum; seconds."""

    median_s: Positive
    p90_s: Positive
    max_s: Positive

    @model_validator(mode="after")
    def _ordered(self) -> "Lengths":
        if not self.median_s <= self.p90_s <= self.max_s:
            raise ValueError("median_s <= p90_s <= max_s must hold")
        return self


class Body(StrictModel):
    """Rate outside of dips."""

    median_mbps: Positive
    sigma: NotNegative
    """Standard deviation of ln(rate)."""
    time_constant_s: Positive
    """Time constant of the AR(1) process of ln(rate)."""
    cell_share: Share
    """Share of the variance of ln(rate) that belongs to the serving cell and is redrawn at each handoff."""
    line_share: Share
    """Share of the rest that belongs to the place on the line and moves all paths together."""
    peak_mbps: Positive
    """What the radio link can carry at most."""

    @model_validator(mode="after")
    def _ordered(self) -> "Body":
        if not self.median_mbps <= self.peak_mbps:
            raise ValueError("median_mbps <= peak_mbps must hold")
        return self


class DipLevel(StrictModel):
    """Rate inside of dips and tunnels: lognormal, below a ceiling."""

    median_mbps: Positive
    sigma: NotNegative
    time_constant_s: Positive
    ceiling_mbps: Positive

    @model_validator(mode="after")
    def _ordered(self) -> "DipLevel":
        if not self.median_mbps <= self.ceiling_mbps:
            raise ValueError("median_mbps <= ceiling_mbps must hold")
        return self


class Handoffs(StrictModel):
    """Cell changes of one path."""

    spacing_median_s: Positive
    spacing_sigma: NotNegative
    """Standard deviation of ln(spacing): about 0.2 is near-periodic, above 1 is irregular."""
    interruption: Lengths
    dip_probability: Share
    dip: Lengths


class Fades(StrictModel):
    """Short silences."""

    per_minute: NotNegative
    per_minute_in_dips: NotNegative
    length: Lengths
    spread: Positive | None = None
    """Standard deviation of ln(both rates) between one pair and the next. Without it all have the same."""


class Tunnels(StrictModel):
    """Stretches of the line without coverage, common to all paths."""

    spacing_mean_s: Positive
    spacing_min_s: NotNegative
    length: Lengths

    @model_validator(mode="after")
    def _ordered(self) -> "Tunnels":
        if not self.spacing_min_s < self.spacing_mean_s:
            raise ValueError("spacing_min_s < spacing_mean_s must hold")
        return self


class TunnelEffect(StrictModel):
    """What a tunnel does to one path."""

    silence_share: Share
    """Part of the tunnel, from its beginning, without any opportunity."""
    recovery_probability: Share
    recovery: Lengths
    """Time that the path stays in a dip after the tunnel, where it has to find its network again."""


class Uplink(StrictModel):
    """The uplink as a fraction of the downlink."""

    fraction: Annotated[float, Field(gt=0, le=1)]
    sigma: NotNegative
    time_constant_s: Positive


class Rtt(StrictModel):
    """RTT of one path over time, from which a delay trace is made.

    Its logarithm follows a Gaussian process through the given quantiles, linear in between; a share of the process is
    redrawn at each handoff, and the handoff itself holds the RTT at a peak for a while.
    """

    p1_ms: Positive
    p25_ms: Positive
    p50_ms: Positive
    p75_ms: Positive
    p99_ms: Positive
    max_ms: Positive
    time_constant_s: Positive
    cell_share: Share
    """Share of the variance that belongs to the serving cell."""
    handoff_peak_ms: Positive
    """Median of the peak at a handoff; lognormal."""
    handoff_peak_sigma: NotNegative
    handoff: Lengths
    """How long a handoff holds the peak."""

    @model_validator(mode="after")
    def _ordered(self) -> "Rtt":
        if not self.p1_ms < self.p25_ms < self.p50_ms < self.p75_ms < self.p99_ms <= self.max_ms:
            raise ValueError("p1_ms < p25_ms < p50_ms < p75_ms < p99_ms <= max_ms must hold")
        return self


class PathModel(StrictModel):
    """One path: its link, and the parameters of its process."""

    name: DeviceName
    technology: Technology
    base_rtt_ms: Positive
    base_rtt_basis: str | None = None
    """Where it comes from, and how sure it is."""
    queue: QueueSpec
    link: LinkSettings | None = None
    """Further settings of the link (links.md), such as the wake-up of its radio."""
    grant_ms: Annotated[int, Field(ge=1, le=STEP_MS)]
    """The interval at which the scheduler of the cell serves the path, ms; a divisor of 100."""
    body: Body
    dip_level: DipLevel
    handoffs: Handoffs
    fades: Fades
    tunnel_effect: TunnelEffect
    uplink: Uplink
    rtt: Rtt | None = None
    """Without it the path has its base RTT at all times, and no delay trace."""

    @model_validator(mode="after")
    def _grants_fit(self) -> "PathModel":
        if STEP_MS % self.grant_ms:
            raise ValueError("grant_ms must divide 100")
        return self


class MobilityModel(StrictModel):
    """A line and the paths of a train on it."""

    scenario: str
    tunnels: Tunnels
    paths: Annotated[tuple[PathModel, ...], OfAPair]
