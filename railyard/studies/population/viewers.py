"""Draws viewers. All draws of a viewer come from (seed, day, number), so a larger size contains a smaller one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from railyard.studies.population.access import Change, Drawn, changes_of
from railyard.studies.population.model import Parameters, PathAccess, Place, Population, Scene, Video
from railyard.studies.population.scenes import Library, Link
from railyard.traces.draws import Draws
from railyard.traces.names import TECHNOLOGY_ORDER
from railyard.traces.trace import OPPORTUNITY_BYTES

PILOT_DAY = 0
"""The day of viewers on whom thresholds are measured. They are in no comparison."""
LEAST_QUEUE_PACKETS = 20
GRACE_S = 30.0
HORIZON_S = 15.0
"""The time for which rates and delays vary after the earliest end of the video."""


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
    watched_s: float
    """The length of video after which the viewer turns to another one."""
    access: tuple[tuple[PathAccess, Drawn, float | None], ...] = ()
    """Law and draws of each path, and the time at which it is left behind (None: never). Empty if paths have traces."""
    horizon_s: float = 0.0

    def changes(self) -> list[Change]:
        """The changes of the links in the order of time. About 350 changes take 90 kB, so they are made with a job and
        not kept."""
        changes = [change for law, drawn, leaves_s in self.access
                   for change in changes_of(law, drawn, self.horizon_s, leaves_s)]  # fmt: skip
        return sorted(changes, key=lambda change: change.at_ms)

    @property
    def key(self) -> str:
        return f"d{self.day}-v{self.number}"

    def time_limit_s(self, factor: float) -> float:
        return math.ceil(self.duration_s * factor + GRACE_S)

    def fetched_s(self, video: Video) -> float:
        """The length of video that is played: the part that is seen, and the most that the player requests until
        then."""
        ahead_s = video.max_buffer_ms / 1e3 + 2 * 8 * video.chunk_bytes / self.bitrate_bps
        return min(self.duration_s, self.watched_s + ahead_s)


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
    """The increase of the secondary path's delay, in percent. The server is at the primary path's operator."""
    names, shares = list(population.cross_isp.operators), list(population.cross_isp.operators.values())
    server, own = names[pick(draws, shares)], names[pick(draws, shares)]
    return 0.0 if server == own else population.cross_isp.increase_percent[server][own]


def _queue(mbps: float, held_ms: float) -> str:
    """A queue of `held_ms` at a path's rate."""
    packets = round(mbps * 1e3 / 8 * held_ms / OPPORTUNITY_BYTES)
    return f"droptail:packets={max(LEAST_QUEUE_PACKETS, packets)}"


def _link(scene: Scene, path: Link, draws: Draws, more_delay: float) -> Link:
    """The link with drawn values. Both are drawn even if they are not used, so that a setting does not change other
    draws."""
    law = scene.paths.get(path.name)
    rtt_draws, queue_draws = Draws(int(draws.uniform() * 2**48), "rtt"), Draws(int(draws.uniform() * 2**48), "queue")
    rtt_ms, queue = 2 * path.delay_ms, path.queue
    if law is not None and law.base_rtt_ms is not None:
        rtt_ms = law.base_rtt_ms.drawn(rtt_draws)
    if law is not None and law.queue_ms is not None:
        queue = _queue(path.mbps, law.queue_ms.drawn(queue_draws))
    delay_ms = round(rtt_ms * (1 + more_delay / 100) / 2, 1)
    return replace(path, delay_ms=delay_ms, queue=queue, mbps=round(path.mbps, 3))


@dataclass(frozen=True)
class _Medians:
    """The medians of a path at a place."""

    mbps: float
    spread: float
    rtt_ms: float
    queue_ms: float
    load: float


def _medians(parameters: Parameters, place: Place) -> dict[str, _Medians]:
    loads = parameters.wifi_load * place.wifi.load, parameters.lte_load * place.lte.load
    rates = parameters.wifi_mbps * place.wifi.rate, parameters.lte_mbps * place.lte.rate
    return {
        "wifi": _Medians(rates[0], parameters.wifi_spread, parameters.wifi_rtt_ms, parameters.wifi_queue_ms, loads[0]),
        "lte": _Medians(rates[1], parameters.lte_spread, parameters.lte_rtt_ms, parameters.lte_queue_ms, loads[1]),
    }


def _scores(draws: Draws, correlation: float) -> dict[str, float]:
    """Standard normal scores of the rates of both paths."""
    first, second = draws.normal(), draws.normal()
    return {"wifi": first, "lte": correlation * first + math.sqrt(1 - correlation * correlation) * second}


def _still_path(name: str, law: PathAccess, at: _Medians, score: float, draws: Draws) -> Drawn:
    """The drawn values of a path. Each has its own draws, so that one parameter does not change the others."""
    load, rtt, queue = (Draws(int(draws.uniform() * 2**48), what) for what in ("load", "rtt", "queue"))
    rate = min(law.most_mbps, max(law.least_mbps, at.mbps * math.exp(at.spread * score)))
    return Drawn(
        name=name,
        rate_mbps=rate,
        load=min(law.load.most, at.load * math.exp(law.load.sigma * load.normal())),
        base_rtt_ms=law.rtt.around(at.rtt_ms).drawn(rtt),
        queue_ms=law.queue.around(at.queue_ms).drawn(queue),
        seed=int(draws.uniform() * 2**48),
    )


def _still_link(law: PathAccess, drawn: Drawn) -> Link:
    up, down = (f"{max(1, round(1e3 * drawn.rate_mbps * share))}kbps" for share in (law.uplink, 1.0))
    return Link(
        name=drawn.name,
        technology=law.technology,
        up=up,
        down=down,
        up_sha256=up,
        down_sha256=down,
        delay_ms=round(drawn.base_rtt_ms / 2, 1),
        queue=_queue(drawn.rate_mbps, drawn.queue_ms),
        mbps=round(drawn.rate_mbps * (1 - drawn.load), 3),
    )


@dataclass(frozen=True)
class _Network:
    """The paths of a viewer."""

    pair: str
    primary: str
    links: tuple[Link, ...]
    start_offset_ms: int = 0
    drawn: tuple[tuple[PathAccess, Drawn], ...] = ()


def _still(population: Population, place: Place, name: str, increase: float, draws: Draws) -> _Network:
    """Both paths of a viewer who sits at a place. Wi-Fi is the primary one."""
    access, parameters = population.access, population.parameters
    if access is None or parameters is None:
        raise ValueError("a population with places has access and parameters")
    scores, medians = _scores(draws, place.correlation), _medians(parameters, place)
    paths = []
    for path in ("wifi", "lte"):
        law: PathAccess = getattr(access, path)
        drawn = _still_path(path, law, medians[path], scores[path], Draws(int(draws.uniform() * 2**48), path))
        more = 1.0 if path == "wifi" else 1 + increase / 100
        paths.append((law, replace(drawn, base_rtt_ms=drawn.base_rtt_ms * more)))
    links = tuple(_still_link(law, drawn) for law, drawn in paths)
    return _Network(name, "wifi", links, drawn=tuple(paths))


def _with_traces(population: Population, library: Library, scene: Scene, increase: float, draws: Draws) -> _Network:
    """The paths of a pair of traces, at a place in them."""
    pair = library.pair(scene, int(draws.uniform() * library.count(scene)))
    rank: dict[str, int] = {name: place for place, name in enumerate(TECHNOLOGY_ORDER)}
    primary = min(pair.paths, key=lambda path: rank.get(path.technology, len(rank))).name
    links = tuple(_link(scene, path, draws, 0.0 if path.name == primary else increase) for path in pair.paths)
    return _Network(pair.name, primary, links, int(draws.uniform() * pair.period_ms))


def _with_radio(population: Population, network: _Network, draws: Draws) -> tuple[Link, ...]:
    """The radio of a second path may sleep when the play begins; the primary path is in use, and awake.

    The population's law replaces the wake-up of a pair of traces.
    """
    radio = None if population.access is None else population.access.lte.radio
    if radio is None:
        return network.links
    settings = {"down_radio": radio.drx} | ({"up_radio": radio.promotion} if draws.uniform() < radio.asleep else {})
    links = []
    for link in network.links:
        own = {name: value for name, value in link.settings if not name.endswith("radio")}
        sleeps = link.name != network.primary and link.technology == "lte"
        links.append(replace(link, settings=tuple(sorted(((settings if sleeps else {}) | own).items()))))
    return tuple(links)


def _watched_s(video: Video, duration_s: float, draws: Draws) -> float:
    to_the_end, share = draws.uniform() < video.watching.to_the_end, draws.uniform() ** video.watching.early
    return duration_s if to_the_end else round(duration_s * share, 1)


def _leaves_s(population: Population, scene: Scene, watched_s: float, draws: Draws) -> float | None:
    """The time at which Wi-Fi is gone, if it is left behind while the viewer watches. None: it is not."""
    leaves, share = draws.uniform(), draws.uniform()
    if scene.place is None or population.parameters is None:
        return None
    likely = population.parameters.leaving * scene.place.leaving
    return round(1 + share * watched_s, 1) if leaves < likely else None


def draw_viewer(population: Population, library: Library, day: int, number: int) -> Viewer:
    """Draws a viewer. Each group of quantities has its own stream of draws, so that none depends on another."""

    def stream(what: str) -> Draws:
        return Draws(population.seed, f"viewer/{day}/{number}/{what}")

    scene = population.scenes[pick(stream("scene"), day_shares(population, day))]
    increase = _cross_isp(population, stream("operators"))
    if scene.place is not None:
        network = _still(population, scene.place, scene.name, increase, stream("place"))
    else:
        network = _with_traces(population, library, scene, increase, stream("pair"))
    video, draws = population.video, stream("video")
    bitrate = video.bitrate_bps[pick(draws, [choice.share for choice in video.bitrate_bps])].value
    duration_s = round(video.duration_s.drawn(draws), 1)
    first = round(video.first_frame_bytes.drawn(draws))
    watched_s = _watched_s(video, duration_s, stream("watching"))
    viewer = Viewer(
        day=day,
        number=number,
        scene=scene.name,
        pair=network.pair,
        paths=_with_radio(population, network, stream("radio")),
        primary=network.primary,
        start_offset_ms=network.start_offset_ms,
        bitrate_bps=bitrate,
        duration_s=duration_s,
        first_frame_bytes=min(first, int(duration_s * bitrate / 8)),
        cross_isp_percent=increase,
        seed=int(stream("seed").uniform() * 2**31),
        watched_s=watched_s,
    )
    leaves_s = _leaves_s(population, scene, watched_s, stream("leaving"))
    horizon_s = video.videos * viewer.fetched_s(video) + HORIZON_S
    access = [(law, drawn, leaves_s if drawn.name == network.primary else None) for law, drawn in network.drawn]
    return replace(viewer, access=tuple(access), horizon_s=horizon_s)
