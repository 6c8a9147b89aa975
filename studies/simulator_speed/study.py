"""The speed of xlink-sim: simulated time / processor time of the process, the least of several runs; peak memory; and
instructions under callgrind, which do not depend on other load: of more play, and of a packet in each model of a link.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from railyard.base.errors import UserError
from railyard.base.paths import program
from railyard.experiment.model import Strict
from railyard.studies.machine import Machine, count_of, counted, machine
from railyard.studies.study import Data, markdown, tell

OPPORTUNITY_BITS = 1504 * 8
MBPS = 20  # of each path
SLOW_BPS = 2_500_000
Job = dict[str, Any]
VIDEOS: dict[str, Job] = {
    "real crypto": {},
    "`null_crypto`": {"null_crypto": True},
    "with link logs": {"link_logs": True},
    "with qlog": {"qlog": True},
    "video of 8 Mbps": {"bitrate_bps": 8_000_000},
    "video of 2.5 Mbps": {"bitrate_bps": SLOW_BPS},
}
# The keys of link-bench by model. `{name}` is the file of that name.
LINKS = {
    "plain": "",
    "`jitter`": "jitter=5",
    "`delay-trace`": "delay-trace={delay}",
    "`light-trace`": "light-trace={light} light-gap=5",
    "`light-trace`, `size-latency`": "light-trace={light} light-gap=5 size-latency={sizes}",
    "`reorder`": "reorder=0.1 reorder-delay=10",
    "`loss`, independent": "loss=0.01",
    "`loss`, Gilbert-Elliott": "loss=ge:p=0.01:r=0.3",
    "`onoff`": "onoff=exp:on=2000:off=100",
    "`radio`": "radio=sa-tmobile-2021",
    "`radio` and `paging`": "radio=sa-tmobile-2021 paging=1280",
    "`grants`": "grants=sr=10:grant=8:idle=1",
    "`leo`": "leo=starlink:burst=60:loss=0.5",
    "`duplicate`": "duplicate=0.01",
    "`mtu`": "mtu=1500",
    "`nat`": "nat=timeout=30000",
    "`wifi=good`": "wifi=good",
    "`wifi=congested`": "wifi=congested",
    "`cross`, 2 Mbps beside": "queue=droptail:packets=100 cross=2mbps",
    "`cross-profile`, random gaps": "queue=droptail:packets=100 cross-profile={cross} cross-gaps=random",
    "`queue=droptail`": "queue=droptail:packets=100",
    "`queue=codel`": "queue=codel",
    "`queue=pie`": "queue=pie",
    "`queue=fq_codel`": "queue=fq_codel",
}
FILES = {
    "delay": "0,20\n500,25\n1000,20\n",
    "light": "0 20 0 0 3 3 9\n1000 30 0 5\n2000 20 0\n",
    "sizes": "".join(f"{bytes_} {-(1500 - bytes_) / 200:g}\n" for bytes_ in range(100, 1600, 100)),
    "cross": "0,1\n500,3\n1000,0\n",
}
HEADS = {
    "videos": "two paths of 20 Mbps",
    "paths": "paths of 20 Mbps",
    "players": "players of 2.5 Mbps, own links",
    "traces": "length of the traces",
}
COLUMNS = ("simulated s / s", "ns / packet", "peak MB", "stalls")
# A small process starts the program, as Linux counts the memory of the starting process as the program's own.
STARTER = """
import json, os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(pid, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024]))
"""


class Settings(Strict):
    tries: int = Field(ge=1)
    play_s: int = Field(ge=1)  # of the video over two paths
    paths: list[int] = Field(min_length=1)
    players: list[int] = Field(min_length=1)
    traces_s: list[int] = Field(min_length=1)  # lengths of the traces
    packets: int = Field(ge=0)  # further packets that are counted, by model; 0: no callgrind


class Plays(Data):
    """Plays of the same job."""

    simulated_s: float
    packets: int  # that left a link, both directions
    stalls: int
    cpu_s: list[float]
    peak_mb: list[float]


class Measured(Data):
    plays: dict[str, dict[str, Plays]]  # of each part
    millions_of_instructions: dict[str, float]  # of 5 s more of play
    instructions_a_packet: dict[str, float]  # by model of the link
    machine: Machine


# --- jobs -------------------------------------------------------------------------------------------------------------


def _job(folder: Path, play_s: int, *, paths: int = 2, trace_s: int = 60, **more: Any) -> Job:
    """A job with a video that takes most of the rate of its paths, 20 Mbps each, and plays without a stall."""
    trace = folder / f"{trace_s}s.trace"  # the program does not know that a long trace repeats a short one
    if not trace.exists():
        gap_ms = OPPORTUNITY_BITS / (MBPS * 1000)
        trace.write_text("".join(f"{int(n * gap_ms) + 1}\n" for n in range(int(trace_s * 1000 / gap_ms))))
    ways = {"up": str(trace), "down": str(trace), "queue": "droptail:packets=100"}
    links = [{"name": f"path-{i}", "delay_ms": 20 + 10 * (i % 3), **ways} for i in range(paths)]
    bitrate = int(more.pop("bitrate_bps", paths * MBPS * (0.85e6 if paths <= 2 else 0.6e6)))
    player = {"video_bytes": bitrate // 8 * play_s, "bitrate_bps": bitrate, "chunk_bytes": paths << 19}
    player |= {"concurrency": 2, "startup_buffer_ms": 2000}
    job = {"scheme": "xlink-lean", "time_limit_s": play_s + 60, "paths": links, "player": player, "link_logs": False}
    return job | more


def _players(count: int) -> Job:
    players = [{"start_s": i / 10, "own_links": True} for i in range(count)]
    return {"players": players, "bitrate_bps": SLOW_BPS}


def _command(folder: Path, job: Job) -> list[str | Path]:
    (folder / "job.json").write_text(json.dumps(job))
    return [program("xlink-sim"), folder / "job.json", "--out", folder / "out"]


# --- what is measured -------------------------------------------------------------------------------------------------


def measure(settings: Settings) -> Measured:
    load, short_s = os.getloadavg()[0], max(1, settings.play_s // 5)
    with tempfile.TemporaryDirectory(prefix="railyard-") as name:
        folder = Path(name)
        parts = {
            "videos": {name: _job(folder, settings.play_s, **more) for name, more in VIDEOS.items()},
            "paths": {str(n): _job(folder, short_s, paths=n) for n in settings.paths},
            "players": {str(n): _job(folder, short_s, **_players(n)) for n in settings.players},
            "traces": {
                f"{s} s": _job(folder, settings.play_s, trace_s=s, bitrate_bps=SLOW_BPS) for s in settings.traces_s
            },
        }
        return Measured(
            millions_of_instructions=_growth(folder, settings) if settings.packets else {},
            instructions_a_packet=_of_links(folder, settings.packets) if settings.packets else {},
            plays={
                part: {name: _plays(folder, job, settings.tries) for name, job in jobs.items()}
                for part, jobs in parts.items()
            },
            machine=machine(load),
        )


def _plays(folder: Path, job: Job, tries: int) -> Plays:
    starter = [sys.executable, "-I", "-S", "-c", STARTER, *map(str, _command(folder, job))]
    runs = []
    for _ in range(tries):
        done = subprocess.run(starter, capture_output=True, text=True, check=True)
        status, *run = json.loads(done.stdout)
        if status != 0:
            said = done.stderr.strip().removeprefix("xlink-sim: ").replace(f"{folder}/", "")
            raise UserError(f"xlink-sim ended with status {status}: {said or 'it said nothing.'}")
        runs.append(run)
    emulator = json.loads((folder / "out" / "mpshell.json").read_text())
    summary = json.loads((folder / "out" / "player.jsonl").read_text().splitlines()[-1])
    return Plays(
        simulated_s=emulator["duration_s"],
        packets=sum(path[way]["departed_packets"] for path in emulator["paths"] for way in ("up", "down")),
        stalls=summary["rebuffer_count"],
        cpu_s=[cpu_s for cpu_s, _ in runs],
        peak_mb=[peak_mb for _, peak_mb in runs],
    )


def _instructions(folder: Path, command: Sequence[str | Path]) -> int:
    return count_of(counted(command, folder), folder)


def _growth(folder: Path, settings: Settings) -> dict[str, float]:
    """Millions of instructions of 5 s more of play: start-up and handshake are not in them."""
    most_players = settings.players[-1]
    kinds: dict[str, tuple[int, Job]] = {
        f"traces of {s} s": (1, {"trace_s": s}) for s in (settings.traces_s[0], settings.traces_s[-1])
    }
    kinds |= {"one player": (1, _players(1)), f"each of {most_players} players": (most_players, _players(most_players))}
    return {name: _of_5_s(folder, {"bitrate_bps": SLOW_BPS} | job) / many / 1e6 for name, (many, job) in kinds.items()}


def _of_5_s(folder: Path, more: Job) -> int:
    shorter, longer = (_instructions(folder, _command(folder, _job(folder, seconds, **more))) for seconds in (5, 10))
    return longer - shorter


def _of_links(folder: Path, packets: int) -> dict[str, float]:
    """Instructions of `packets` further packets / packets, by model."""
    files = {file: folder / file for file in FILES}
    for file, text in FILES.items():
        files[file].write_text(text)
    costs = {}
    for model, keys in LINKS.items():
        tell(f"link: {model}")
        words = keys.format(**files).split()
        few, many = (
            _instructions(folder, [program("link-bench"), str(count), *words]) for count in (packets, 2 * packets)
        )
        costs[model] = (many - few) / packets
    return costs


# --- what is printed --------------------------------------------------------------------------------------------------


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    for part, plays in measured.plays.items():
        yield part, markdown([HEADS[part], *COLUMNS], [[name, *_cells(one)] for name, one in plays.items()])
    if growth := measured.millions_of_instructions:
        rows = [[name, f"{millions:.2f}"] for name, millions in growth.items()]
        yield "growth", markdown(["5 s more of play", "millions of instructions"], rows)
    if links := measured.instructions_a_packet:
        plain = next(iter(links.values()))
        rows = [[model, f"{cost:.0f}", f"{cost / plain:.2f}"] for model, cost in links.items()]
        yield "links", markdown(["model", "instructions a packet", "/ plain"], rows)


def _cells(one: Plays) -> list[str]:
    cpu_s = min(one.cpu_s)
    figures = one.simulated_s / cpu_s, cpu_s / one.packets * 1e9, max(one.peak_mb)
    return [*(f"{figure:.0f}" for figure in figures), str(one.stalls)]
