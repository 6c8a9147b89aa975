"""Shares of a bottleneck (RFC 9743 section 7, RFC 6356 section 2), in the simulator.

The protocol, written before the first look:

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
"""

from __future__ import annotations

import json
import random
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from railyard.base.errors import UserError
from railyard.base.paths import program
from railyard.experiment.model import Strict
from railyard.stats.intervals import Interval, bootstrap, mean
from railyard.studies.study import Data, markdown

SHARED_BPS, SPLIT_BPS, VIEWER_BPS = 20_000_000, 10_000_000, 4_000_000
PATHS = ("wifi", "lte")
SINGLE, UNCOUPLED = "single path", "vanilla-mp"
OTHERS = {"wifi": 3, "lte": 1}  # single-path flows on each path's bottleneck, in `split`
PLAYER = {"video_bytes": 1 << 31, "bitrate_bps": 1_000_000_000, "chunk_bytes": 262_144, "concurrency": 4}
LEAST, MOST = 0.9, 1.1


class Settings(Strict):
    arms: dict[str, dict[str, str]]
    seeds: int = Field(ge=1)
    length_s: float
    from_s: float
    viewers: list[int]


class Shared(Data):
    arm: str
    bps: list[float]  # by seed
    other_bps: list[float]


class Split(Data):
    arm: str
    bps: list[float]
    lte_share: list[float]
    other_bps: list[float]  # of the single-path flow on LTE


class Viewers(Data):
    arm: str
    count: int
    jain: list[float]


class Measured(Data):
    shared: list[Shared]
    split: list[Split]
    viewers: list[Viewers]


# --- runs -------------------------------------------------------------------------------------------------------------


def _bottleneck(name: str, bps: int) -> dict[str, Any]:
    packets = round(bps * 0.04 / 8 / 1504)
    return {
        "name": name,
        "rate": f"{bps}bps",
        "delay_ms": 5,
        "queue": f"droptail:packets={packets}",
        "cross": "500kbps",
        "cross_gaps": "random",
    }


def job(flows: Sequence[dict[str, str]], via: dict[str, str], bottlenecks: Sequence[tuple[str, int]], seed: int,
        length_s: float) -> dict[str, Any]:  # fmt: skip
    """A job whose players are these flows, each on links of its own."""
    draws = random.Random(seed)
    paths = [
        {"name": name, "technology": name, "rate": "100mbps", "delay_ms": 15, "queue": "droptail:packets=1000"}
        | {"via": via[name]}
        for name in PATHS
    ]
    starts = [round(draws.random(), 3) for _ in flows]
    players = [flow | {"own_links": True, "start_s": start} for flow, start in zip(flows, starts, strict=True)]
    return {
        "seed": seed,
        "time_limit_s": length_s,
        "scheme": "sp",
        "primary": "wifi",
        "link_logs": False,
        "null_crypto": True,
        "player": PLAYER,
        "paths": paths,
        "bottlenecks": [_bottleneck(*each) for each in bottlenecks],
        "players": players,
    }


def _bytes_between(file: Path, start_s: float, end_s: float) -> dict[str, float]:
    """What a player received from one time to another; its records count from its own start."""
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").replace("\x1e", "").splitlines()]
    seen = [(record["t"], record["received_bytes"]) for record in records if record["event"] == "buffer"]
    within = [pair for pair in seen if start_s <= pair[0] <= end_s]
    if len(within) < 2:
        raise UserError(f"{file.name}: the player said too little from {start_s:g} to {end_s:g} s")
    (first_s, first), (last_s, last) = within[0], within[-1]
    return {"bps": 8 * (last - first) / (last_s - first_s)}


class _Played:
    def __init__(self, bps: list[float], paths: list[dict[str, int]]) -> None:
        self.bps = bps  # of each flow
        self.paths = paths  # bytes that each flow received on each path, over the whole run


def play(what: dict[str, Any], from_s: float) -> _Played:
    with tempfile.TemporaryDirectory(prefix="railyard-") as temporary:
        name, out = Path(temporary) / "job.json", Path(temporary) / "out"
        name.write_text(json.dumps(what), encoding="utf-8")
        done = subprocess.run([program("xlink-sim"), str(name), "--out", str(out)], check=False, capture_output=True)
        if not (out / "mpshell.json").is_file():
            raise UserError(f"the simulator ended with {done.returncode}: {done.stderr.decode()[-200:]}")
        bps, length_s = [], float(what["time_limit_s"])
        for number, player in enumerate(what["players"], 1):
            file = out / ("player.jsonl" if number == 1 else f"player-{number}.jsonl")
            bps.append(_bytes_between(file, from_s - player["start_s"], length_s - player["start_s"])["bps"])
        paths: list[dict[str, int]] = [dict.fromkeys(PATHS, 0) for _ in what["players"]]
        for path in json.loads((out / "mpshell.json").read_text(encoding="utf-8"))["paths"]:
            paths[path.get("player", 1) - 1][path["name"]] = path["down"]["departed_bytes"]
    return _Played(bps, paths)


SP = {"scheme": "sp"}


def _shared(arm: str, flow: dict[str, str], settings: Settings) -> Shared:
    via = dict.fromkeys(PATHS, "core")
    found = [
        play(job([flow, SP], via, [("core", SHARED_BPS)], seed, settings.length_s), settings.from_s)
        for seed in range(1, settings.seeds + 1)
    ]
    return Shared(arm=arm, bps=[each.bps[0] for each in found], other_bps=[each.bps[1] for each in found])


def _split(arm: str, flow: dict[str, str], settings: Settings) -> Split:
    others = [SP | {"primary": path, "reconnect": "same"} for path in PATHS for _ in range(OTHERS[path])]
    via, bottlenecks = {"wifi": "west", "lte": "east"}, [("west", SPLIT_BPS), ("east", SPLIT_BPS)]
    found = [
        play(job([flow, *others], via, bottlenecks, seed, settings.length_s), settings.from_s)
        for seed in range(1, settings.seeds + 1)
    ]
    shares = [each.paths[0]["lte"] / sum(each.paths[0].values()) for each in found]
    return Split(
        arm=arm, bps=[each.bps[0] for each in found], lte_share=shares, other_bps=[each.bps[-1] for each in found]
    )


def _jain(values: Sequence[float]) -> float:
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def _viewers(arm: str, flow: dict[str, str], count: int, settings: Settings) -> Viewers:
    via, core = dict.fromkeys(PATHS, "core"), [("core", VIEWER_BPS * count)]
    found = [
        play(job([flow] * count, via, core, seed, settings.length_s), settings.from_s)
        for seed in range(1, settings.seeds + 1)
    ]
    return Viewers(arm=arm, count=count, jain=[_jain(each.bps) for each in found])


def measure(settings: Settings) -> Measured:
    multipath = {arm: flow for arm, flow in settings.arms.items() if arm != SINGLE}
    return Measured(
        shared=[_shared(arm, flow, settings) for arm, flow in settings.arms.items()],
        split=[_split(arm, flow, settings) for arm, flow in multipath.items()],
        viewers=[
            _viewers(arm, flow, count, settings) for arm, flow in settings.arms.items() for count in settings.viewers
        ],
    )


# --- tables -----------------------------------------------------------------------------------------------------------


def _mean(values: Sequence[float]) -> Interval:
    return bootstrap([[value] for value in values], mean) or Interval.alone(mean(values))


def _ratios(above: Sequence[float], below: Sequence[float]) -> list[float]:
    return [a / b for a, b in zip(above, below, strict=True)]


def _verdict(interval: Interval, *, least: float | None = None, most: float | None = None) -> str:
    """Whether the goal holds: `least` and `most` are its bounds."""
    if not interval.known:
        return "n too small"
    meets = (least is None or interval.low >= least) and (most is None or interval.high <= most)
    misses = (least is not None and interval.high < least) or (most is not None and interval.low > most)
    return "holds" if meets else "does not hold" if misses else "open"


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
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
    rows = []
    for arm, two in split.items():
        first = _mean(_ratios(two.bps, two.other_bps))
        second = _mean(_ratios(shared[arm].bps, shared[arm].other_bps))
        third = _mean([a - b for a, b in zip(two.lte_share, split[UNCOUPLED].lte_share, strict=True)])
        goals = (_verdict(first, least=LEAST), _verdict(second, most=MOST), _verdict(third, least=1e-9))
        rows.append([arm, first.text(".2f"), goals[0], second.text(".2f"), goals[1],
                     third.text("+.3f"), "reference" if arm == UNCOUPLED else goals[2]])  # fmt: skip
    heads = ["arm", "1: to a single path", "goal 1", "2: to the other", "goal 2", "3: more on LTE", "goal 3"]
    yield "goals", markdown(heads, rows)
    counts = sorted({each.count for each in measured.viewers})
    index = {(each.arm, each.count): _mean(each.jain).text(".3f") for each in measured.viewers}
    arms = dict.fromkeys(each.arm for each in measured.viewers)
    yield "viewers", markdown(["alike", *map(str, counts)], [[arm, *(index[arm, n] for n in counts)] for arm in arms])
