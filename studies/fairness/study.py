"""Shares of a bottleneck (RFC 9743 section 7, RFC 6356 section 2), in the simulator and beside kernel TCP.

The protocol of the sizes in the simulator, written before the first look:

    flows     download without pause: the video's rate is above every link's, so play-time left is 0 and re-injection is
              at its most. A run lasts length_s; what a player received from from_s on counts.
    paths     Wi-Fi and LTE, 100 Mbps and 15 ms each, behind them bottlenecks of 5 ms with a droptail queue of 40 ms;
              others' traffic of 0.5 Mbps with random gaps makes seeds differ. All base RTTs are 40 ms.
    shared    both paths via one bottleneck of 20 Mbps, beside one single-path Cubic flow. Ratio of the two throughputs.
              Theory: 2 for two uncoupled subflows, 1 for a coupled one (RFC 6356).
    split     Wi-Fi via a bottleneck of 10 Mbps with three single-path Cubic flows, LTE via another one with one.
    viewers   n alike on the shared bottleneck, 4 Mbps for each: Jain's index, (sum x)^2 / (n sum x^2).

Goals of RFC 6356, of the interval of the mean over seeds:

    1  split: throughput over that of the single-path flow on LTE, the better path: at least 0.9
    2  shared: ratio at most 1.1
    3  split: the share on LTE, less that of the first multipath arm with the same seed: above 0

A goal holds if all of the interval meets it, does not hold if none of it does, and is open otherwise. What re-injection
takes is the other flow's throughput under an arm over that under vanilla-mp with the same seed. The flows start within
the first second, at times drawn from the seed. Intervals are railyard.stats'.

The size `conditions`, written before the first look at its runs (one seed of 3 s of two arms was played to see that all
conditions run): `shared` alone, under other bottlenecks and base RTTs, all else equal. Goal 2 is judged under each of
them, without a correction for their number: nine times seven intervals.

    queues    droptail of 10 and 200 ms; CoDel, PIE and fq_codel by their defaults.
    RTTs      LTE's base RTT is 160 ms: `far LTE`, the other flow on Wi-Fi; `far other`, the other flow on LTE too.
    loss      every hundredth packet of the bottleneck is lost at random, in both directions.

Played once more when `xlink+` left others' packets out of its limit of queue, which had starved it at 200 ms: with
droptail of 400 ms as a tenth condition, so ten times seven intervals. Written before the first look at these runs, but
four seeds of 200 and 400 ms were looked at while the change was made. It starves where the whole interval of its ratio
is below 1, and that of `vanilla-mp` is not.

Played again with 32 seeds instead of 8, nothing else changed. With 8 seeds a later transport, which differs where
packets are lost, had turned six verdicts of goals, and moved what `xlink` leaves to the other flow from 0.95 [0.87,
1.02] to 0.83 [0.71, 0.95] of what `vanilla-mp` leaves: which packets are lost is chance, and eight draws of it are few.
Written before a look at runs with more than 8 seeds.

The protocol of the size `kernel`, written before the first look at its runs (a trial of one arm each, seed 99, 12 s at
6 Mbps, was looked at to see that all programs run): the programs run in a time-travel kernel, whose TCP is beside them.

    arms      those above; `tcp` and `mptcp` are the kernel's own, with Cubic. QUIC downloads as above; the kernel's
              transports ask for everything in one request, since each open request would be a further connection.
    paths     as above. A TCP flow has a link of its own of 100 Mbps and 15 ms: all base RTTs are 40 ms. Queues are
              droptail of 40 ms. Others' traffic with random gaps, a fortieth of the rate, makes seeds differ, and so do
              starts within the first second.
    shared    8 Mbps, both paths beside one kernel TCP flow (Cubic, Reno, BBR), 20 s. From 5 to 14 s counts: ratio of
              the two throughputs; the TCP flow's throughput over that beside `tcp` with the same controller and seed;
              queueing delay, the mean smoothed RTT that the flow's kernel reports, every 0.1 s, less 40 ms.
    blackout  the same runs: from 14 to 15 s the bottleneck is down. What both receive from 15 to 20 s, over what they
              receive from 5 to 14 s. There is no collapse where the whole interval is at least 0.8, and one where it
              is below.
    short     8 Mbps, 15 s; beside the connection are two clients that load 100 kB each by TCP Cubic, again and again
              with pauses of 0.3 s. Median time of a run's loads that begin from 3 to 13 s; one that has not ended
              counts as ended with the run. Over that beside `tcp` with the same seed.
    split     as above with 5 Mbps each and kernel TCP Cubic as the single-path flows, 15 s, from 5 s on.
    viewers   2 and 4 alike on the shared bottleneck, 3 Mbps for each, 15 s, from 5 s on: Jain's index.

Changed before any result was looked at, because the runs take too long: `single path` is not among the arms, and
`viewers` has four of them.

Goals 1 to 3 are judged beside Cubic. A run in which the emulator was late is void: it is counted and left out.
"""

import os
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from statistics import median
from typing import Annotated, Any, NamedTuple

from pydantic import Field, ValidationInfo, field_validator

from railyard.base.errors import UserError
from railyard.base.jsonl import read_json, read_jsonl
from railyard.experiment.model import FlowSettings, Strict
from railyard.results.flows import Connection
from railyard.stats.intervals import Interval
from railyard.stats.pooled import bootstrap, mean
from railyard.studies import crowd
from railyard.studies.crowd import Crowd, Viewer
from railyard.studies.study import Data, check_known, markdown, simulated, tell

SHARED_BPS, SPLIT_BPS, VIEWER_BPS = 20_000_000, 10_000_000, 4_000_000
PATHS = ("wifi", "lte")
SINGLE, UNCOUPLED = "single path", "vanilla-mp"
PARTS = ("short", "split", "viewers")
"""Of the runs beside kernel TCP, those that may have fewer arms."""
OTHERS = {"wifi": 3, "lte": 1}  # single-path flows on each path's bottleneck, in `split`
PLAYER = {"video_bytes": 1 << 31, "bitrate_bps": 1_000_000_000, "chunk_bytes": 262_144, "concurrency": 4}
LEAST, MOST = 0.9, 1.1

# Beside kernel TCP.
TCP = "tcp"
REINJECTING = ("xlink", "xlink+")
BOTH_BPS, EACH_BPS, VIEWER_TCP_BPS = 8_000_000, 5_000_000, 3_000_000
BASE_RTT_MS = 40.0
SHARED_S, DOWN_S, UP_S = 20.0, 14.0, 15.0
SHORT_BYTES, SHORT_PAUSE_MS, SHORT_CLIENTS = 100_000, 300.0, 2
SHORT_FROM_S, SHORT_TO_S = 3.0, 13.0
RECOVERED = 0.8


class Condition(Strict):
    """The bottleneck, the delay of LTE, and the path of the other flow."""

    queue: str = "droptail"
    queue_ms: float = Field(gt=0, default=40)
    """The limit of droptail. Other disciplines have their own."""
    lte_delay_ms: int = 15
    other: str = PATHS[0]
    """The path of the other flow."""
    loss: float = Field(ge=0, le=1, default=0)


class Settings(Strict):
    arms: dict[str, dict[str, str]]
    seeds: int = Field(ge=1)
    length_s: float = Field(gt=0)
    from_s: float = Field(ge=0)
    viewers: list[Annotated[int, Field(ge=1)]] = Field(default=[])
    # Then `shared` alone, under each of them.
    conditions: dict[str, Condition] = Field(default={})
    # Controllers of the kernel TCP flow: then the runs are in the kernel arena.
    beside: list[str] = Field(default=[])
    # Then the arms of a part, where it has not all.
    only: dict[str, list[str]] = Field(default={})

    @field_validator("arms")
    @classmethod
    def _has_the_uncoupled(cls, value: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
        if UNCOUPLED not in value:
            raise ValueError(f"'{UNCOUPLED}' is missing, which the other arms are compared with")
        return value

    @field_validator("only")
    @classmethod
    def _known(cls, value: dict[str, list[str]], info: ValidationInfo) -> dict[str, list[str]]:
        check_known("part", value, PARTS)
        for part, arms in value.items():
            check_known(f"arm of {part}", arms, info.data.get("arms", {}))
        return value


class Shared(Data):
    arm: str
    bps: list[float]  # by seed
    other_bps: list[float]


class UnderCondition(Data):
    condition: str
    shared: list[Shared]


class Split(Data):
    arm: str
    bps: list[float]
    lte_share: list[float]
    other_bps: list[float]  # of the single-path flow on LTE


class Viewers(Data):
    arm: str
    count: int
    jain: list[float]


class BesideTcp(Data):
    """On the shared bottleneck beside a kernel TCP flow. By seed; a void run has None."""

    arm: str
    cc: str
    bps: list[float | None]
    other_bps: list[float | None]
    queueing_ms: list[float | None]
    recovered: list[float | None]  # what both receive after the blackout, to that before


class Short(Data):
    arm: str
    took_s: list[float | None]  # the median of a run's loads


class Kernel(Data):
    beside: list[BesideTcp]
    short: list[Short]
    split: list[Split]
    viewers: list[Viewers]
    runs: int
    void: list[str]  # reasons


class Measured(Data):
    shared: list[Shared] = Field(default=[])
    split: list[Split] = Field(default=[])
    viewers: list[Viewers] = Field(default=[])
    conditions: list[UnderCondition] = Field(default=[])
    kernel: Kernel | None = None


# --- runs -------------------------------------------------------------------------------------------------------------


USUAL = Condition()


def _bottleneck(name: str, bps: int, condition: Condition) -> dict[str, Any]:
    packets = round(bps * condition.queue_ms / 8e3 / 1504)
    return {
        "name": name,
        "rate": f"{bps}bps",
        "delay_ms": 5,
        "queue": f"droptail:packets={packets}" if condition.queue == "droptail" else condition.queue,
        "cross": "500kbps",
        "cross_gaps": "random",
    } | ({"loss": condition.loss} if condition.loss else {})


def job(flows: Sequence[dict[str, str]], via: dict[str, str], bottlenecks: Sequence[tuple[str, int]], seed: int,
        length_s: float, condition: Condition = USUAL) -> dict[str, Any]:  # fmt: skip
    """A job whose players are these flows, each on its own links."""
    delays_ms = {PATHS[0]: 15, PATHS[1]: condition.lte_delay_ms}
    draws = random.Random(seed)
    paths = [
        {"name": name, "technology": name, "rate": "100mbps", "queue": "droptail:packets=1000"}
        | {"delay_ms": delays_ms[name], "via": via[name]}
        for name in PATHS
    ]
    starts = [round(draws.random(), 3) for _ in flows]
    players = [
        {"cc": "cubic"} | flow | {"own_links": True, "start_s": start}
        for flow, start in zip(flows, starts, strict=True)
    ]
    return {
        "seed": seed,
        "time_limit_s": length_s,
        "scheme": "sp",
        "primary": "wifi",
        "link_logs": False,
        "null_crypto": True,
        "player": PLAYER,
        "paths": paths,
        "bottlenecks": [_bottleneck(*each, condition) for each in bottlenecks],
        "players": players,
    }


def _bps_between(file: Path, start_s: float, end_s: float) -> float:
    """The rate at which a player received bytes between two times. Its records count from its own start."""
    seen = [(record["t"], record["received_bytes"]) for record in read_jsonl(file) if record["event"] == "buffer"]
    within = [pair for pair in seen if start_s <= pair[0] <= end_s]
    if len(within) < 2:
        raise UserError(f"{file.name}: the player said too little from {start_s:g} to {end_s:g} s")
    (first_s, first), (last_s, last) = within[0], within[-1]
    return float(8 * (last - first) / (last_s - first_s))


class _Played(NamedTuple):
    bps: list[float]  # by flow
    paths: list[dict[str, int]]  # bytes that each flow received on each path, over the whole run


def play(what: dict[str, Any], from_s: float) -> _Played:
    with simulated(what) as out:
        bps, length_s = [], float(what["time_limit_s"])
        for number, player in enumerate(what["players"], 1):
            file = out / ("player.jsonl" if number == 1 else f"player-{number}.jsonl")
            bps.append(_bps_between(file, from_s - player["start_s"], length_s - player["start_s"]))
        paths: list[dict[str, int]] = [dict.fromkeys(PATHS, 0) for _ in what["players"]]
        for path in read_json(out / "mpshell.json")["paths"]:
            paths[path.get("player", 1) - 1][path["name"]] = path["down"]["departed_bytes"]
    return _Played(bps, paths)


SP = {"scheme": "sp"}


def _shared(arm: str, flow: dict[str, str], settings: Settings, condition: Condition = USUAL) -> Shared:
    via, other = dict.fromkeys(PATHS, "core"), SP
    if condition.other != PATHS[0]:
        other = SP | {"primary": condition.other, "reconnect": "same"}
    plays = [
        play(job([flow, other], via, [("core", SHARED_BPS)], seed, settings.length_s, condition), settings.from_s)
        for seed in range(1, settings.seeds + 1)
    ]
    return Shared(arm=arm, bps=[each.bps[0] for each in plays], other_bps=[each.bps[1] for each in plays])


def _split(arm: str, flow: dict[str, str], settings: Settings) -> Split:
    others = [SP | {"primary": path, "reconnect": "same"} for path in PATHS for _ in range(OTHERS[path])]
    via, bottlenecks = {"wifi": "west", "lte": "east"}, [("west", SPLIT_BPS), ("east", SPLIT_BPS)]
    plays = [
        play(job([flow, *others], via, bottlenecks, seed, settings.length_s), settings.from_s)
        for seed in range(1, settings.seeds + 1)
    ]
    shares = [each.paths[0]["lte"] / sum(each.paths[0].values()) for each in plays]
    return Split(
        arm=arm, bps=[each.bps[0] for each in plays], lte_share=shares, other_bps=[each.bps[-1] for each in plays]
    )


def _jain(values: Sequence[float]) -> float:
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def _viewers(arm: str, flow: dict[str, str], count: int, settings: Settings) -> Viewers:
    via, core = dict.fromkeys(PATHS, "core"), [("core", VIEWER_BPS * count)]
    plays = [
        play(job([flow] * count, via, core, seed, settings.length_s), settings.from_s)
        for seed in range(1, settings.seeds + 1)
    ]
    return Viewers(arm=arm, count=count, jain=[_jain(each.bps) for each in plays])


def measure(settings: Settings) -> Measured:
    if settings.beside:
        return Measured(kernel=_beside_tcp(settings))
    if settings.conditions:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            plays = {
                name: [pool.submit(_shared, arm, flow, settings, condition) for arm, flow in settings.arms.items()]
                for name, condition in settings.conditions.items()
            }
            done = [
                UnderCondition(condition=name, shared=[each.result() for each in each_arm])
                for name, each_arm in plays.items()
            ]
        return Measured(conditions=done)
    multipath = {arm: flow for arm, flow in settings.arms.items() if arm != SINGLE}
    return Measured(
        shared=[_shared(arm, flow, settings) for arm, flow in settings.arms.items()],
        split=[_split(arm, flow, settings) for arm, flow in multipath.items()],
        viewers=[
            _viewers(arm, flow, count, settings) for arm, flow in settings.arms.items() for count in settings.viewers
        ],
    )


# --- runs beside kernel TCP -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """The key of a run: its name, its arm, further distinctions, and its seed."""

    of: str
    arm: str
    which: str
    seed: int


def _link(bps: int) -> str:
    packets = round(bps * 0.04 / 8 / 1504)
    return f"rate={bps}bps,delay=5,queue=droptail:packets={packets},cross={bps // 40}bps,cross-gaps=random"


def _tcp(cc: str, via: str, start_s: float, **more: Any) -> FlowSettings:
    return FlowSettings(cc=cc, via=[via], rate="100mbps", delay_ms=15, from_s=start_s, **more)


def _crowd(task: Task, settings: Settings) -> Crowd:
    draws = random.Random(task.seed)
    starts = [round(draws.random(), 3) for _ in range(16)]
    arm = settings.arms[task.arm]
    count = int(task.which) if task.of == "viewers" else 1
    via = {"wifi": "west", "lte": "east"} if task.of == "split" else dict.fromkeys(PATHS, "core")
    flows: dict[str, FlowSettings] = {}
    rate, events, length_s = BOTH_BPS, [], settings.length_s
    if task.of == "beside":
        flows["other"] = _tcp(task.which, "core", starts[-1])
        length_s, events = SHARED_S, [(DOWN_S, "down core"), (UP_S, "up core")]
    elif task.of == "short":
        short = {"count": SHORT_CLIENTS, "size_bytes": SHORT_BYTES, "pause_ms": SHORT_PAUSE_MS}
        flows["short"] = _tcp("cubic", "core", starts[-1], **short)
    elif task.of == "split":
        names = [path for path in PATHS for _ in range(OTHERS[path])]
        numbered = zip(range(len(names)), names, reversed(starts))  # noqa: B905  the shorter one ends it
        flows = {f"{path}-tcp-{number}": _tcp("cubic", via[path], start_s) for number, path, start_s in numbered}
        rate = EACH_BPS
    else:
        rate = VIEWER_TCP_BPS * count
    return Crowd(
        seed=task.seed,
        length_s=length_s,
        paths={path: f"rate=100mbps,delay=15,queue=droptail:packets=1000,via={via[path]}" for path in PATHS},
        bottlenecks={name: _link(rate) for name in dict.fromkeys(via.values())},
        viewers=[Viewer(arm["scheme"], arm.get("cc", "cubic"), starts[number]) for number in range(count)],
        flows=flows,
        events=events,
    )


def _tasks(settings: Settings) -> list[Task]:
    def of(name: str, *which: str) -> list[Task]:
        seeds = range(1, settings.seeds + 1)
        return [Task(name, arm, one, seed) for one in which for seed in seeds for arm in _arms(name, settings)]

    return [
        *of("beside", *settings.beside),
        *of("short", ""),
        *of("split", ""),
        *of("viewers", *map(str, settings.viewers)),
    ]


def _arms(of: str, settings: Settings) -> list[str]:
    return settings.only.get(of, list(settings.arms))


def _play_all(tasks: Sequence[Task], settings: Settings) -> dict[Task, crowd.Played]:
    """Plays the runs, one on each core at a time."""
    cores: SimpleQueue[int] = SimpleQueue()
    for core in os.sched_getaffinity(0):
        cores.put(core)

    def one(task: Task) -> crowd.Played:
        core = cores.get()
        try:
            return crowd.play(_crowd(task, settings), core)
        finally:
            cores.put(core)

    played = {}
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for number, (task, result) in enumerate(zip(tasks, pool.map(one, tasks), strict=True), 1):
            played[task] = result
            if number % 20 == 0 or number == len(tasks):
                tell(f"{number} of {len(tasks)} runs")
    return played


def _queueing_ms(flow: Connection, from_s: float, to_s: float) -> float:
    pairs = zip(flow.t_s, flow.srtt_ms, strict=True)
    return mean([rtt for t, rtt in pairs if rtt is not None and from_s <= t <= to_s]) - BASE_RTT_MS


def _took_s(clients: Sequence[Connection]) -> float:
    """The median time of the loads that begin in the counted time. A load that the end of the run cut counts with the
    time until then."""
    loads = [load for client in clients for load in client.transfers if SHORT_FROM_S <= load.began_s <= SHORT_TO_S]
    return median(load.took_s for load in loads)


def _beside_tcp(settings: Settings) -> Kernel:
    tasks = _tasks(settings)
    played = _play_all(tasks, settings)
    seeds = range(1, settings.seeds + 1)

    def figures(of: str, arm: str, which: str, figure: Callable[[crowd.Played], float]) -> list[float | None]:
        runs = [played[Task(of, arm, which, seed)] for seed in seeds]
        return [None if run.void else figure(run) for run in runs]

    def between(of: str, arm: str, which: str) -> BesideTcp:
        begin_s, end_s = settings.from_s, DOWN_S

        def both(run: crowd.Played, from_s: float, to_s: float) -> float:
            return run.viewers[0].goodput_bps(from_s, to_s) + run.flows["other"][0].goodput_bps(from_s, to_s)

        return BesideTcp(
            arm=arm,
            cc=which,
            bps=figures(of, arm, which, lambda run: run.viewers[0].goodput_bps(begin_s, end_s)),
            other_bps=figures(of, arm, which, lambda run: run.flows["other"][0].goodput_bps(begin_s, end_s)),
            queueing_ms=figures(of, arm, which, lambda run: _queueing_ms(run.flows["other"][0], begin_s, end_s)),
            recovered=figures(of, arm, which, lambda run: both(run, UP_S, SHARED_S) / both(run, begin_s, end_s)),
        )

    def split(arm: str) -> Split:
        runs = [run for seed in seeds if not (run := played[Task("split", arm, "", seed)]).void]
        window = settings.from_s, settings.length_s
        return Split(
            arm=arm,
            bps=[run.viewers[0].goodput_bps(*window) for run in runs],
            lte_share=[run.paths[0]["lte"] / sum(run.paths[0].values()) for run in runs],
            other_bps=[run.flows["lte-tcp-3"][0].goodput_bps(*window) for run in runs],
        )

    def alike(arm: str, count: int) -> Viewers:
        runs = [run for seed in seeds if not (run := played[Task("viewers", arm, str(count), seed)]).void]
        window = settings.from_s, settings.length_s
        jain = [_jain([viewer.goodput_bps(*window) for viewer in run.viewers]) for run in runs]
        return Viewers(arm=arm, count=count, jain=jain)

    return Kernel(
        beside=[between("beside", arm, cc) for cc in settings.beside for arm in settings.arms],
        short=[
            Short(arm=arm, took_s=figures("short", arm, "", lambda run: _took_s(run.flows["short"])))
            for arm in _arms("short", settings)
        ],
        split=[split(arm) for arm in _arms("split", settings)],
        viewers=[alike(arm, count) for arm in _arms("viewers", settings) for count in settings.viewers],
        runs=len(tasks),
        void=[f"{task.of} {task.arm} {task.which}: {run.void[0]}" for task, run in played.items() if run.void],
    )


# --- tables -----------------------------------------------------------------------------------------------------------


def _mean(values: Sequence[float]) -> Interval:
    return bootstrap([[value] for value in values], mean) or Interval.alone(mean(values))


def _ratios(above: Sequence[float], below: Sequence[float]) -> list[float]:
    return [a / b for a, b in zip(above, below, strict=True)]


def _verdict(interval: Interval, *, least: float | None = None, most: float | None = None) -> str:
    """Whether the goal holds, in words. `least` and `most` are its bounds."""
    if not interval.known:
        return "n too small"
    meets = (least is None or interval.low >= least) and (most is None or interval.high <= most)
    misses = (least is not None and interval.high < least) or (most is not None and interval.low > most)
    return "holds" if meets else "does not hold" if misses else "open"


def _goals(arms: Sequence[tuple[str, Interval, Interval, Interval | None]]) -> tuple[str, str]:
    """The arms with what each goal of RFC 6356 asks of them; the third of the uncoupled one is the reference."""
    rows = []
    for arm, first, second, third in arms:
        verdicts = (_verdict(first, least=LEAST), _verdict(second, most=MOST))
        more = "–" if third is None else third.text("+.3f")
        last = "reference" if arm == UNCOUPLED else "–" if third is None else _verdict(third, least=1e-9)
        rows.append([arm, first.text(".2f"), verdicts[0], second.text(".2f"), verdicts[1], more, last])
    heads = ["arm", "1: to a single path", "goal 1", "2: to the other", "goal 2", "3: more on LTE", "goal 3"]
    return "goals", markdown(heads, rows)


def _jain_table(measured: Sequence[Viewers]) -> tuple[str, str]:
    counts = sorted({each.count for each in measured})
    index = {(each.arm, each.count): _mean(each.jain).text(".3f") for each in measured}
    arms = dict.fromkeys(each.arm for each in measured)
    return "viewers", markdown(["alike", *map(str, counts)], [[arm, *(index[arm, n] for n in counts)] for arm in arms])


# Beside kernel TCP: a run that is void has None, and a pair of runs counts where neither is.


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _quotients(above: Sequence[float | None], below: Sequence[float | None]) -> Interval:
    pairs = zip(above, below, strict=True)
    return _mean([a / b for a, b in pairs if a is not None and b is not None])


CC_NAMES = {"cubic": "Cubic", "reno": "Reno", "bbr": "BBR"}


def _collapse(recovered: Interval) -> str:
    if not recovered.known:
        return "n too small"
    return "none" if recovered.low >= RECOVERED else "yes" if recovered.high < RECOVERED else "open"


def _kernel_tables(kernel: Kernel) -> Iterator[tuple[str, str]]:
    beside = {(each.arm, each.cc): each for each in kernel.beside}
    arms = list(dict.fromkeys(each.arm for each in kernel.beside))
    controllers = list(dict.fromkeys(each.cc for each in kernel.beside))
    names = [CC_NAMES.get(cc, cc) for cc in controllers]

    def table(of: Callable[[BesideTcp, BesideTcp], str]) -> str:
        rows = [[arm, *(of(beside[arm, cc], beside[TCP, cc]) for cc in controllers)] for arm in arms]
        return markdown(["beside one kernel TCP flow", *names], rows)

    yield "ratios", table(lambda each, _: _quotients(each.bps, each.other_bps).text(".2f"))
    yield "taken", table(lambda each, tcp: _quotients(each.other_bps, tcp.other_bps).text(".2f"))
    rows = [
        [
            arm,
            *(_quotients(beside[arm, cc].other_bps, beside[UNCOUPLED, cc].other_bps).text(".2f") for cc in controllers),
        ]
        for arm in REINJECTING
    ]
    yield "reinjected", markdown(["the TCP flow's, to that beside vanilla-mp", *names], rows)
    yield "queueing", table(lambda each, _: _mean(_known(each.queueing_ms)).text(".1f"))
    rows = []
    for arm in arms:
        after = [_mean(_known(beside[arm, cc].recovered)) for cc in controllers]
        rows.append([arm, *(cell for each in after for cell in (each.text(".2f"), _collapse(each)))])
    yield "blackout", markdown(["after a blackout", *(head for name in names for head in (name, "collapse"))], rows)
    short = {each.arm: each for each in kernel.short}
    rows = [
        [arm, _mean(_known(each.took_s)).text(".2f"), _quotients(each.took_s, short[TCP].took_s).text(".2f")]
        for arm, each in short.items()
    ]
    yield "short", markdown(["beside loads of 100 kB", "median load, s", "to that beside tcp"], rows)
    split = {each.arm: each for each in kernel.split}

    def more(each: Split) -> Interval | None:
        reference = split[UNCOUPLED].lte_share
        if len(each.lte_share) != len(reference):
            return None  # a void run has removed one of a pair
        return _mean([a - b for a, b in zip(each.lte_share, reference, strict=True)])

    cubic = {arm: beside[arm, "cubic"] for arm in split}
    yield _goals([
        (arm, _mean(_ratios(each.bps, each.other_bps)), _quotients(cubic[arm].bps, cubic[arm].other_bps), more(each))
        for arm, each in split.items()
    ])  # fmt: skip
    yield _jain_table(kernel.viewers)
    sentence = f"{kernel.runs} runs, of which {len(kernel.void)} are void"
    yield "runs", f"{sentence}: {'; '.join(kernel.void)}." if kernel.void else f"{sentence}."


def _condition_tables(conditions: Sequence[UnderCondition]) -> Iterator[tuple[str, str]]:
    names = [each.condition for each in conditions]
    by_arm = [{one.arm: one for one in each.shared} for each in conditions]

    def table(head: str, arms: Sequence[str], of: Callable[[Shared, Shared], str]) -> str:
        rows = [[arm, *(of(shared[arm], shared[UNCOUPLED]) for shared in by_arm)] for arm in arms]
        return markdown([head, *names], rows)

    def goal(each: Shared, _: Shared) -> str:
        ratio = _mean(_ratios(each.bps, each.other_bps))
        return f"{ratio.text('.2f')} {_verdict(ratio, most=MOST)}"

    yield "ratios", table("goal 2: ratio to the other", list(by_arm[0]), goal)
    yield (
        "taken",
        table(
            "the other's, to that beside vanilla-mp",
            [arm for arm in by_arm[0] if arm != UNCOUPLED],
            lambda each, uncoupled: _mean(_ratios(each.other_bps, uncoupled.other_bps)).text(".2f"),
        ),
    )
    yield (
        "used",
        table(
            "Mbps of both",
            list(by_arm[0]),
            lambda each, _: f"{mean([a + b for a, b in zip(each.bps, each.other_bps, strict=True)]) / 1e6:.1f}",
        ),
    )


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    if measured.kernel is not None:
        yield from _kernel_tables(measured.kernel)
        return
    if measured.conditions:
        yield from _condition_tables(measured.conditions)
        return
    shared = {each.arm: each for each in measured.shared}
    split = {each.arm: each for each in measured.split}
    uncoupled = shared[UNCOUPLED]
    rows = []
    for arm, each in shared.items():
        taken = _mean(_ratios(each.other_bps, uncoupled.other_bps))
        ratio = _mean(_ratios(each.bps, each.other_bps))
        mbps = (f"{mean(values) / 1e6:.2f}" for values in (each.bps, each.other_bps))
        rows.append([arm, *mbps, ratio.text(".2f"), taken.text(".2f")])
    heads = ["beside one Cubic flow", "Mbps", "the other's Mbps", "ratio", "the other's, to that beside vanilla-mp"]
    yield "shares", markdown(heads, rows)
    yield _goals([
        (
            arm,
            _mean(_ratios(two.bps, two.other_bps)),
            _mean(_ratios(shared[arm].bps, shared[arm].other_bps)),
            _mean([a - b for a, b in zip(two.lte_share, split[UNCOUPLED].lte_share, strict=True)]),
        )
        for arm, two in split.items()
    ])  # fmt: skip
    yield _jain_table(measured.viewers)
