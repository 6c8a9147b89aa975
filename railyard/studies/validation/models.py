"""Models of the paths that live downloads took, and the emulated downloads over them, as runs of the kernel arena."""

import hashlib
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np

from railyard.arenas.kernel import kernel_machine
from railyard.base.files import write_whole
from railyard.base.lists import grouped
from railyard.experiment.model import BufferLimits, Experiment, PlayerSettings
from railyard.results.pending import Plan, make_whole
from railyard.results.records import Run
from railyard.run.arena import arena_of
from railyard.run.runspec import RunPath, RunSpec
from railyard.studies.validation.downloads import (
    CARRIERS,
    PACKET_BYTES,
    Download,
    Fitted,
    Packet,
    fit,
    odd,
    read_transfers,
)
from railyard.traces.convert.capacity import from_packets, opportunities
from railyard.traces.convert.recipe import Microstructure, TraceRecipe
from railyard.traces.convert.run import convert_trace
from railyard.traces.generate import GeneratedPair, pair_files, read_parameters
from railyard.traces.index import Pair, PairPath
from railyard.traces.library import list_pairs
from railyard.traces.presets import mobility_models
from railyard.traces.settings import Value
from railyard.traces.trace import format_trace, read_trace, sha256_file

ARENA = "kernel"
NAME = "validate"
SCENARIO = "high-speed rail"
TIME_LIMIT_S = 60.0
TAIL_MS = 11_576  # Huang et al., MobiSys 2012
CONGESTION = "newreno"
REFERENCE = "connected"
PREDICATES = "radio"  # the model of the published findings
SYN_MS = {"U": 110.0, "M": 193.0}
CONNECTED_MS = {"U": 60.0, "M": 90.0}
WAKE_UP_MS = {"U": 119.0, "M": 272.0}
BIN_MS = 1_000  # of the recorded pairs
CONSTANT_MS = 10_000  # period of a trace of a constant rate
MIN_RATE_BPS, MAX_RATE_BPS = 100e3, 100e6
# Epoch and carrier of the long transfers that donate silences. None is from the session of a recorded pair.
DONORS = (("1529470329", "U"), ("1529470664", "U"), ("1529470787", "M"), ("1529470329", "M"))
QUEUE = "droptail:packets=300"  # with constant rates; pairs have their own


@dataclass(frozen=True)
class Draw:
    """The random numbers of an emulated download, which are the same for every model."""

    pair: float  # 0 to 1: choice of the pair
    place: float  # 0 to 1: place in its traces
    other: float  # 0 to 1: choice of an odd download


def draw(seed: int, download: int, repeat: int) -> Draw:
    generator = random.Random(f"validate {seed} {download} {repeat}")
    return Draw(generator.random(), generator.random(), generator.random())


RttOf = Literal["connected", "syn"]
"""The generator's RTT process: the present one, or with the quantiles of SYN round trips that it had before."""
SYN_QUANTILES = {
    "U": {"p1_ms": 45, "p25_ms": 110, "p50_ms": 192, "p75_ms": 347, "p99_ms": 1400},
    "M": {"p1_ms": 90, "p25_ms": 193, "p50_ms": 363, "p75_ms": 422, "p99_ms": 1400},
}


@dataclass(frozen=True)
class Light:
    """Light rows (docs/reference/links.md) from odd downloads over one carrier: delay, and offsets of the first
    arrivals, ms."""

    rows: tuple[tuple[int, tuple[int, ...]], ...]
    gap_ms: float


@dataclass(frozen=True)
class Link:
    """One path of an emulated download."""

    rtt_ms: float
    wake_up_ms: float = 0.0
    rate_bps: float | None = None  # None: the pair's traces
    delay_trace: RttOf | None = None  # drawn by the generator, in place of the RTT
    light: Light | None = None  # instead of the RTT


Links = Mapping[str, Link | None]
"""The link of each carrier; None: RTT, queue and radio are those of the library's pair."""
Choose = Callable[[Download, Draw], Links]


@dataclass(frozen=True)
class Model:
    name: str
    capacity: str  # "constant", "generated", "recorded" or "restored"
    choose: Choose
    draws: bool = True  # whether runs depend on the draw


# ---- the links of models


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 3)


def _same(links: Links) -> Choose:
    return lambda _download, _draw: links


def _links(rtt_ms: Mapping[str, float], wake_up_ms: Mapping[str, float] | None = None) -> dict[str, Link]:
    return {carrier: Link(rtt_ms[carrier], wake_up_ms[carrier] if wake_up_ms else 0.0) for carrier in CARRIERS}


def fitted_link(fitted_values: Fitted) -> Link:
    return Link(_ms(fitted_values.rtt_s), _ms(fitted_values.wake_up_s))


def _rate(bps: float) -> float:
    return min(MAX_RATE_BPS, max(MIN_RATE_BPS, bps))


def light_of(downloads: Sequence[Download], carrier: str, fitted_values: Fitted) -> Light:
    """Light rows with a row for each odd download that has a next RTT and first arrivals over the carrier."""
    flows = [flow for one in odd(downloads) if (flow := one.subflow(carrier)) is not None]
    rows = tuple(
        (round(500 * flow.next_rtt_s), tuple(round(1000 * offset_s) for offset_s in flow.first_offsets_s))
        for flow in flows
        if flow.next_rtt_s is not None and flow.first_offsets_s
    )
    return Light(rows, gap_ms=round(500 * fitted_values.rtt_s))


def own_link(download: Download, carrier: str, fitted_values: Fitted) -> Link:
    """A link with round trip, wake-up and rate from a download's beginning, else fitted values."""
    flow, fallback = download.subflow(carrier), fitted_link(fitted_values)
    if flow is None:
        return replace(fallback, rate_bps=_rate(fitted_values.rate_bps))
    return Link(
        fallback.rtt_ms if flow.next_rtt_s is None else _ms(flow.next_rtt_s),
        fallback.wake_up_ms if flow.wake_up_s is None else _ms(flow.wake_up_s),
        _rate(fitted_values.rate_bps if flow.first_rate_bps is None else flow.first_rate_bps),
    )


def _own(fits: Mapping[str, Fitted], *, wake_up: bool, rate: bool) -> Choose:
    def choose(download: Download, _draw: Draw) -> Links:
        links = {carrier: own_link(download, carrier, fits[carrier]) for carrier in CARRIERS}
        return {
            carrier: Link(link.rtt_ms, link.wake_up_ms if wake_up else 0.0, link.rate_bps if rate else None)
            for carrier, link in links.items()
        }

    return choose


def _drawn(fitted: Sequence[Download], fits: Mapping[str, Fitted]) -> Choose:
    """Links with the round trips and wake-ups of the same odd download on both paths."""

    def choose(_download: Download, drawn: Draw) -> Links:
        other = fitted[int(drawn.other * len(fitted))]
        links = {carrier: own_link(other, carrier, fits[carrier]) for carrier in CARRIERS}
        return {carrier: replace(link, rate_bps=None) for carrier, link in links.items()}

    return choose


def models(downloads: Sequence[Download]) -> tuple[list[Model], list[Model]]:
    """The models of the protocol, and its conditional predictions that need an emulator."""
    fits = {carrier: fit(downloads, carrier) for carrier in CARRIERS}
    fitted = {carrier: fitted_link(estimates) for carrier, estimates in fits.items()}
    constant = {
        carrier: Link(fitted[carrier].rtt_ms, rate_bps=_rate(estimates.rate_bps)) for carrier, estimates in fits.items()
    }
    drawn_rtt = {carrier: Link(CONNECTED_MS[carrier], delay_trace="connected") for carrier in CARRIERS}
    drawn_syn = {carrier: Link(SYN_MS[carrier], delay_trace="syn") for carrier in CARRIERS}
    radio = _links(CONNECTED_MS, WAKE_UP_MS)
    light = {
        carrier: replace(link, light=light_of(downloads, carrier, fits[carrier])) for carrier, link in fitted.items()
    }
    known = [one for one in odd(downloads) if all(one.subflow(carrier) for carrier in CARRIERS)]
    unconditional = [
        Model("constant", "constant", _same(constant), draws=False),
        Model("syn", "generated", _same(_links(SYN_MS))),
        Model(REFERENCE, "generated", _same(_links(CONNECTED_MS))),
        Model("syn-trace", "generated", _same(drawn_syn)),
        Model("delay-trace", "generated", _same(drawn_rtt)),
        Model(PREDICATES, "generated", _same(radio)),
        Model("fitted", "generated", _same(fitted)),
        Model("light", "generated", _same(light)),
        Model("drawn", "generated", _drawn(known, fits)),
        Model("library", "generated", _same(dict.fromkeys(CARRIERS))),
        Model("bins", "recorded", _same(radio)),
        Model("restored", "restored", _same(radio)),
    ]
    conditional = [
        Model("own-rtt", "generated", _own(fits, wake_up=False, rate=False)),
        Model("own-rtt-wake-up", "generated", _own(fits, wake_up=True, rate=False)),
        Model("first-arrivals", "constant", _own(fits, wake_up=True, rate=True), draws=False),
    ]
    return unconditional, conditional


# ---- traces


def rail_pairs() -> dict[str, list[Pair]]:
    """The generated and recorded pairs of the scenario. Recorded ones exist if RAILYARD_TRACE_PATH has them."""
    pairs = [pair for pair in list_pairs() if pair.scenario == SCENARIO and len(pair.paths) == 2]
    generated = [pair for pair in pairs if pair.source.startswith("generated")]
    return {"generated": generated, "recorded": [pair for pair in pairs if pair not in generated]}


def carriers_of(pair: Pair) -> dict[str, PairPath]:
    """The path of each carrier: U has the smaller base RTT."""
    first, second = sorted(pair.paths, key=lambda path: path.base_rtt_ms)
    return {"U": first, "M": second}


@dataclass(frozen=True)
class Workshop:
    """Makes the files that a model needs beside those of the library, each once."""

    folder: Path

    def _written(self, name: str, data: Callable[[], bytes]) -> Path:
        file = self.folder / name
        if not file.is_file():
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(file, data())
        return file

    def constant(self, rate_bps: float) -> Path:
        """A trace whose opportunities are evenly spaced, to the ms."""
        count = max(1, round(rate_bps * CONSTANT_MS / 1000 / (1504 * 8)))
        times = [max(1, round((number + 1) * CONSTANT_MS / count)) for number in range(count)]
        return self._written(f"{round(rate_bps / 1000)}kbps.trace", lambda: format_trace(times))

    def delay_trace(self, pair: Pair, path: PairPath, of: RttOf) -> Path:
        """That which the generator draws with the pair's parameters and today's model of the RTT: not all pairs come
        with one."""
        second = carriers_of(pair)["M"].name
        parameters, digest = _with_rtt(pair.library.parent / f"{pair.name}.yaml", second, of)
        name = f"{pair.name}.{path.name}.delay"
        return self._written(f"{digest}.{name}", lambda: pair_files(parameters)[name])

    def light_traces(self, light: Light) -> dict[str, Path]:
        """Light traces of both directions. One row a second; the last row ends the period with the delay of the first.
        The uplink has only the delay."""
        last = (light.rows[0][0], ())
        times = list(enumerate((*light.rows, last)))
        down = "".join(f"{1000 * n} {' '.join(map(str, (delay, *offsets)))}\n" for n, (delay, offsets) in times)
        up = "".join(f"{1000 * n} {delay} 0\n" for n, (delay, _) in times)
        digest = hashlib.sha256(down.encode()).hexdigest()[:8]
        return {
            f"{way}_light_trace": self._written(f"{digest}.{way}.light", text.encode)
            for way, text in (("up", up), ("down", down))
        }

    def donor(self, carrier: str, epoch: str, packets: Sequence[Packet]) -> Path:
        """A long transfer as a trace with a line a packet."""
        since_us = np.array([packet.time_s - packets[0].time_s for packet in packets]) * 1e6
        sizes = np.array([packet.length + PACKET_BYTES for packet in packets])
        delivered = from_packets(since_us, sizes, float(since_us[-1]) + 1)
        return self._written(f"donor.{epoch}.{carrier}.down", lambda: format_trace(opportunities(delivered)))

    def restored(self, trace: Path, donors: Sequence[Path], seed: int) -> Path:
        """A recording in bins of 1 s with the silences of the donors."""
        names = tuple(str(donor) for donor in donors)
        recipe = TraceRecipe.model_validate(
            {
                "file": trace.name,
                "from": "mahimahi",
                "bin_ms": BIN_MS,
                "microstructure": Microstructure(donors=names, seed=seed),
            }
        )
        made_of = [_sha256(trace), *(_sha256(donor) for donor in donors), str(seed)]
        digest = hashlib.sha256(" ".join(made_of).encode()).hexdigest()[:8]
        return self._written(f"{digest}.{trace.name}", lambda: convert_trace(trace, recipe).data)


def with_restored(
    pairs: Mapping[str, Sequence[Pair]], live: Path, workshop: Workshop, seed: int
) -> dict[str, list[Pair]]:
    """And the recorded pairs with silences: those of the long transfers of the same carrier beside the live downloads.
    Without a transfer of each carrier there are none."""
    transfers = read_transfers(live, DONORS)
    donors: dict[str, list[Path]] = {carrier: [] for carrier in CARRIERS}
    for epoch, carrier in DONORS:
        if packets := transfers.get((epoch, carrier)):
            donors[carrier].append(workshop.donor(carrier, epoch, packets))
    restored = []
    for pair in pairs["recorded"] if all(donors.values()) else ():
        carrier_of = {path.name: carrier for carrier, path in carriers_of(pair).items()}
        paths = []
        for path in pair.paths:
            down = workshop.restored(path.downlink, donors[carrier_of[path.name]], seed)
            up = down if path.uplink == path.downlink else path.uplink
            paths.append(replace(path, downlink=down, uplink=up, kind="restored"))
        restored.append(replace(pair, paths=tuple(paths)))
    return {**{kind: list(of_kind) for kind, of_kind in pairs.items()}, "restored": restored}


@cache
def _with_rtt(file: Path, second: str, of: RttOf) -> tuple[GeneratedPair, str]:
    """The parameters of a pair, to be drawn with delay traces, and a digest of them. `second`: the path of M."""
    parameters = read_parameters(file)
    rtts = {one.technology: one.rtt for one in mobility_models()["hsr"].paths}
    paths = []
    for one in parameters.model.paths:
        quantiles = SYN_QUANTILES["M" if one.name == second else "U"] if of == "syn" else {}
        rtt = rtts[one.technology]
        paths.append(one.model_copy(update={"rtt": rtt and rtt.model_copy(update=quantiles)}))
    model = parameters.model.model_copy(update={"paths": tuple(paths)})
    pair = parameters.model_copy(update={"delay_traces": True, "model": model})
    return pair, hashlib.sha256(pair.as_yaml().encode()).hexdigest()[:8]


_sha256 = cache(sha256_file)


@cache
def _period_ms(file: Path) -> int:
    return read_trace(file).period_ms


def _run_path(link: Link | None, pair: Pair, path: PairPath, workshop: Workshop) -> RunPath:
    if link is None:
        return _linked(path, path.delay_ms, path.settings, path.delay_traces)
    up, down = path.uplink, path.downlink
    if link.rate_bps is not None:
        up = down = workshop.constant(link.rate_bps)
    delays = {"delay_trace": workshop.delay_trace(pair, path, link.delay_trace)} if link.delay_trace else {}
    settings: dict[str, Value] = {}
    if link.wake_up_ms:
        settings["up_radio"] = f"promotion={link.wake_up_ms:g}:tail={TAIL_MS}"
    if link.light is not None:
        delays |= workshop.light_traces(link.light)
        settings["light_gap_ms"] = link.light.gap_ms
    here = replace(path, uplink=up, downlink=down, queue=path.queue if link.rate_bps is None else QUEUE)
    return _linked(here, link.rtt_ms / 2, settings, delays)


def _linked(
    path: PairPath, delay_ms: float, settings: Mapping[str, Value], delay_traces: Mapping[str, Path]
) -> RunPath:
    return RunPath(
        name=path.name,
        technology=path.technology,
        up=path.uplink,
        down=path.downlink,
        up_sha256=_sha256(path.uplink),
        down_sha256=_sha256(path.downlink),
        delay_ms=delay_ms,
        queue=path.queue,
        settings=dict(settings),
        delay_traces=dict(delay_traces),
        delay_traces_sha256={key: _sha256(file) for key, file in delay_traces.items()},
    )


# ---- runs


@dataclass(frozen=True)
class Emulated:
    """One emulated download."""

    model: str
    scheme: str  # "mptcp", "tcp-U" or "tcp-M"
    download: int
    repeat: int
    spec: RunSpec


Durations = Mapping[tuple[str, str, int], Sequence[float]]
"""Seconds by model, scheme and number of the live download. Infinite: the download did not finish."""


def experiment(seed: int) -> Experiment:
    """The experiment for the campaign's record. Its runs are not a product of pairs and schemes."""
    return Experiment.model_validate(
        {
            "name": NAME,
            "description": f"Emulated downloads beside live ones, seed {seed}.",
            "arena": ARENA,
            "pairs": [pair.name for pair in rail_pairs()["generated"]],
            "schemes": ["mptcp", "tcp"],
            "congestion": CONGESTION,
            "time_limit_s": TIME_LIMIT_S,
            "qlog": "none",
            "link_logs": False,
        }
    )


@dataclass(frozen=True)
class Stage:
    """The settings that all runs share."""

    pairs: Mapping[str, Sequence[Pair]]
    workshop: Workshop
    seed: int
    programs: Mapping[str, str]

    def runs(self, model: Model, download: Download, repeat: int, schemes: Sequence[str]) -> list[Emulated]:
        drawn = draw(self.seed, download.number, repeat)
        pairs = self.pairs["generated" if model.capacity == "constant" else model.capacity]
        pair = pairs[int(drawn.pair * len(pairs))]
        of_carrier = carriers_of(pair)
        links = model.choose(download, drawn)
        paths = {carrier: _run_path(links[carrier], pair, of_carrier[carrier], self.workshop) for carrier in CARRIERS}
        room_ms = min(_period_ms(file) for path in of_carrier.values() for file in (path.uplink, path.downlink))
        room_ms = max(room_ms - round(1000 * TIME_LIMIT_S), room_ms // 2)
        offset_ms = int(drawn.place * room_ms) if model.capacity != "constant" else 0
        size = download.size_bytes
        player = PlayerSettings(bitrate_bps=8 * size, duration_s=1, chunk_bytes=size)  # one request of the whole file
        runs = []
        for scheme in schemes:
            primary = scheme.removeprefix("tcp-") if scheme.startswith("tcp-") else download.primary or "U"
            spec = RunSpec(
                experiment=NAME,
                arena=ARENA,
                pair=pair.name,
                label=f"{model.name}.{scheme}",
                scheme=scheme.partition("-")[0],
                primary=paths[primary].name,
                parameters={},
                congestion=CONGESTION,
                paths=tuple(paths.values()),
                seed=100 * download.number + repeat,
                start_offset_ms=offset_ms,
                player=player,
                time_limit_s=TIME_LIMIT_S,
                buffers=BufferLimits(),
                qlog=False,
                link_logs=False,
                programs_sha256=dict(self.programs),
                kernel=kernel_machine(),
            )
            runs.append(Emulated(model.name, scheme, download.number, repeat, spec))
        return runs


def stage(live: Path, seed: int, folder: Path) -> Stage:
    """`live`: the downloads; `folder`: for traces that the models need."""
    workshop = Workshop(folder)
    return Stage(with_restored(rail_pairs(), live, workshop, seed), workshop, seed, arena_of(ARENA).programs())


def plan(
    here: Stage, unconditional: Sequence[Model], conditional: Sequence[Model], judges: Sequence[Download], repeats: int
) -> list[Emulated]:
    """All runs, one repetition after the other. Models without traces at hand have no runs."""
    emulated: list[Emulated] = []
    for repeat in range(repeats):
        for model in (*unconditional, *conditional):
            at_hand = here.pairs.get("generated" if model.capacity == "constant" else model.capacity)
            if not at_hand or (repeat and not model.draws):
                continue
            schemes = ("mptcp", "tcp-U", "tcp-M") if model.name == PREDICATES else ("mptcp",)
            for download in judges:
                emulated += here.runs(model, download, repeat, schemes)
    return emulated


def _duration_s(run: Run) -> float:
    """The time from the player's start to the last byte."""
    chunk = run.chunks[0] if run.chunks else None
    return chunk.request_s + chunk.rct_s if chunk is not None and chunk.completed else math.inf


def carry_out(emulated: Sequence[Emulated], seed: int, folder: Path, jobs: int | None) -> Durations:
    """Does the runs that the folder does not have yet."""
    campaign = make_whole(Plan(experiment(seed), [one.spec for one in emulated]), folder, jobs=jobs)
    took = {run.run_id: _duration_s(run) for run in campaign.runs if not run.void}
    done = (one for one in emulated if one.spec.run_id in took)
    return grouped(((one.model, one.scheme, one.download), took[one.spec.run_id]) for one in done)
