"""Energy of a transfer: published radio power models applied to each path's bytes. Modelled, not measured.

While a radio is active it takes base + a_u * uplink + a_d * downlink, in mW, with the rates in Mbps (Huang et al.,
MobiSys 2012, section 5); after the last packet it stays in its tail for a while. Over a transfer the rates integrate to
bits, so the energy is base * time + a_u * uplink Mbit + a_d * downlink Mbit + tail power * tail time, in mJ. Power of
several radios adds.
"""

from dataclasses import dataclass

from pydantic import Field

from railyard.experiment.model import Strict


class Radio(Strict):
    base_mw: float = Field(ge=0)
    uplink_mw_per_mbps: float = Field(ge=0)
    downlink_mw_per_mbps: float = Field(ge=0)
    tail_mw: float = Field(ge=0)
    tail_s: float = Field(ge=0)

    def scaled(self, factor: float) -> "Radio":
        """The radio with all powers multiplied by a factor. The tail's length stays."""
        powers = {name: value * factor for name, value in self.model_dump(exclude={"tail_s"}).items()}
        return self.model_copy(update=powers)

    def energy_j(self, active_s: float, up_mbit: float, down_mbit: float, *, tail: bool) -> float:
        active = self.base_mw * active_s + self.uplink_mw_per_mbps * up_mbit + self.downlink_mw_per_mbps * down_mbit
        return (active + (self.tail_mw * self.tail_s if tail else 0.0)) / 1000


@dataclass(frozen=True)
class Carried:
    """The bytes that one path carried, counted by its link."""

    radio: str
    up_bytes: int
    down_bytes: int

    @property
    def used(self) -> bool:
        return self.up_bytes + self.down_bytes > 0


@dataclass(frozen=True)
class Transfer:
    payload_bytes: int
    active_s: float
    paths: tuple[Carried, ...]

    @property
    def mbps(self) -> float:
        return self.payload_bytes * 8 / 1e6 / self.active_s

    def nj_per_bit(self, radios: dict[str, Radio], *, tail: bool = True) -> float:
        """Energy per payload bit, nJ. A radio that carried nothing is off."""
        joule = sum(
            radios[path.radio].energy_j(self.active_s, path.up_bytes * 8e-6, path.down_bytes * 8e-6, tail=tail)
            for path in self.paths
            if path.used
        )
        return joule / (self.payload_bytes * 8) * 1e9
