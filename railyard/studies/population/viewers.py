"""Drawing viewers: all draws of one come from (seed, day, number), so a larger size contains the smaller one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from railyard.run.runspec import TECHNOLOGY_ORDER
from railyard.studies.population.model import Lognormal, Population, Scene
from railyard.studies.population.scenes import Library, ScenePath
from railyard.traces.draws import Draws
from railyard.traces.trace import OPPORTUNITY_BYTES

PILOT_DAY = 0
"""The day of those on whom thresholds are measured; they are in no comparison."""
LEAST_QUEUE_PACKETS = 20
GRACE_S = 30.0


@dataclass(frozen=True)
class Link:
    """One path of one viewer."""

    name: str
    technology: str
    up: str
    down: str
    up_sha256: str
    down_sha256: str
    delay_ms: float
    queue: str
    settings: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Viewer:
    day: int
    number: int
    scene: str
    pair: str
    paths: tuple[Link, ...]
    primary: str
    start_offset_ms: int
    bitrate_bps: int
    duration_s: float
    first_frame_bytes: int
    cross_isp_percent: float
    seed: int

    @property
    def key(self) -> str:
        return f"d{self.day}-v{self.number}"

    def time_limit_s(self, factor: float) -> float:
        return math.ceil(self.duration_s * factor + GRACE_S)


def lognormal(draws: Draws, law: Lognormal) -> float:
    return min(law.most, max(law.least, law.median * math.exp(law.sigma * draws.normal())))


def pick(draws: Draws, shares: Sequence[float]) -> int:
    """An index, with probabilities in proportion to the shares."""
    left = draws.uniform() * math.fsum(shares)
    for index, share in enumerate(shares):
        left -= share
        if left < 0:
            return index
    return len(shares) - 1


def day_shares(population: Population, day: int) -> list[float]:
    """The mix of scenes of a day. The pilot's is the mean one."""
    draws = Draws(population.seed, f"day/{day}")
    sigma = 0.0 if day == PILOT_DAY else population.day_sigma
    raw = [scene.share * math.exp(sigma * draws.normal()) for scene in population.scenes]
    return [share / math.fsum(raw) for share in raw]


def _cross_isp(population: Population, draws: Draws) -> float:
    """By how much the secondary path's delay grows, percent. The server is at the primary path's operator."""
    names, shares = list(population.cross_isp.operators), list(population.cross_isp.operators.values())
    server, own = names[pick(draws, shares)], names[pick(draws, shares)]
    return 0.0 if server == own else population.cross_isp.increase_percent[server][own]


def _link(scene: Scene, path: ScenePath, draws: Draws, more_delay: float) -> Link:
    """Both quantities are drawn whether they are used or not, so that one setting does not move the others."""
    law = scene.paths.get(path.name)
    rtt_draws, queue_draws = Draws(int(draws.uniform() * 2**48), "rtt"), Draws(int(draws.uniform() * 2**48), "queue")
    rtt_ms, queue = path.base_rtt_ms, path.queue
    if law is not None and law.base_rtt_ms is not None:
        rtt_ms = lognormal(rtt_draws, law.base_rtt_ms)
    if law is not None and law.queue_ms is not None:
        held_ms = lognormal(queue_draws, law.queue_ms)
        packets = round(path.mean_mbps * 1e3 / 8 * held_ms / OPPORTUNITY_BYTES)
        queue = f"droptail:packets={max(LEAST_QUEUE_PACKETS, packets)}"
    return Link(
        name=path.name,
        technology=path.technology,
        up=str(path.up),
        down=str(path.down),
        up_sha256=path.up_sha256,
        down_sha256=path.down_sha256,
        delay_ms=round(rtt_ms * (1 + more_delay / 100) / 2, 1),
        queue=queue,
        settings=tuple(sorted(path.settings.items())),
    )


def draw_viewer(population: Population, library: Library, day: int, number: int) -> Viewer:
    draws = Draws(population.seed, f"viewer/{day}/{number}")
    scene = population.scenes[pick(draws, day_shares(population, day))]
    pair = library.pair(scene, int(draws.uniform() * library.count(scene)))
    rank = {name: place for place, name in enumerate(TECHNOLOGY_ORDER)}
    primary = min(pair.paths, key=lambda path: rank.get(path.technology, len(rank))).name
    increase = _cross_isp(population, draws)
    links = tuple(_link(scene, path, draws, 0.0 if path.name == primary else increase) for path in pair.paths)
    video = population.video
    bitrate = video.bitrate_bps[pick(draws, [choice.share for choice in video.bitrate_bps])].value
    duration_s = round(lognormal(draws, video.duration_s), 1)
    first = round(lognormal(draws, video.first_frame_bytes))
    offset = int(draws.uniform() * pair.period_ms)
    return Viewer(
        day=day,
        number=number,
        scene=scene.name,
        pair=pair.name,
        paths=links,
        primary=primary,
        start_offset_ms=offset,
        bitrate_bps=bitrate,
        duration_s=duration_s,
        first_frame_bytes=min(first, int(duration_s * bitrate / 8)),
        cross_isp_percent=increase,
        seed=int(draws.uniform() * 2**31),
    )


def draw_viewers(population: Population, library: Library, days: Sequence[int], per_day: int) -> list[Viewer]:
    return [draw_viewer(population, library, day, number) for day in days for number in range(1, per_day + 1)]
