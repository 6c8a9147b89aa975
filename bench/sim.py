#!/usr/bin/env python3
"""Measures xlink-sim: the speed of virtual time on one core, its cost, and the growth of that.

Prints tables in Markdown and writes the figures to build/bench/sim.json. Time is processor time of the process, the
best of three; everything runs one after another.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from instructions import count_of, counted, keep

from railyard.base.paths import ROOT, program

TRIES = 3
OPPORTUNITY_BITS = 1504 * 8
Job = dict[str, Any]


@dataclass(frozen=True)
class Figure:
    name: str
    simulated_s: float
    cpu_s: float
    speed: float  # simulated seconds per second of processor time
    packets: int  # that left a link, both directions
    ns_per_packet: float
    peak_mb: float
    stalls: int


def make_trace(folder: Path, mbps: float, seconds: int) -> str:
    """A trace of a constant rate. The program does not know that a long trace repeats a short one."""
    file = folder / f"{mbps:g}mbps-{seconds}s.trace"
    if not file.exists():
        gap_ms = OPPORTUNITY_BITS / (mbps * 1000)
        file.write_text("".join(f"{int(n * gap_ms) + 1}\n" for n in range(int(seconds * 1000 / gap_ms))))
    return str(file)


def make_job(
    folder: Path, *, paths: int = 2, mbps: float = 20, play_s: int = 100, trace_s: int = 60, **more: Any
) -> Job:
    """A job with `paths` paths of 20 Mbps and a video that takes most of their rate and plays without a stall."""
    trace = make_trace(folder, mbps, trace_s)
    queue = "droptail:packets=100"
    links = [
        {"name": f"path-{i}", "up": trace, "down": trace, "delay_ms": 20 + 10 * (i % 3), "queue": queue}
        for i in range(paths)
    ]
    bitrate = int(more.pop("bitrate_bps", paths * mbps * (0.85e6 if paths <= 2 else 0.6e6)))
    player = {"video_bytes": bitrate // 8 * play_s, "bitrate_bps": bitrate, "chunk_bytes": paths << 19}
    player |= {"concurrency": 2, "startup_buffer_ms": 2000}
    job: Job = {
        "scheme": "xlink-lean",
        "time_limit_s": play_s + 60,
        "paths": links,
        "player": player,
        "link_logs": False,
    }
    return job | more


# A small process starts the program, as Linux counts the memory of the starting process as the program's own.
STARTER = """
import json, os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(pid, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024]))
"""


def run_once(folder: Path, job: Job) -> tuple[float, float]:
    """Processor time in seconds and peak memory in MB."""
    (folder / "job.json").write_text(json.dumps(job))
    command = [sys.executable, "-I", "-S", "-c", STARTER, str(program("xlink-sim"))]
    command += [str(folder / "job.json"), "--out", str(folder / "out")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    status, cpu_s, peak_mb = json.loads(done.stdout)
    if status != 0:
        raise SystemExit(f"xlink-sim ended with status {status}")
    return float(cpu_s), float(peak_mb)


def packets_of(out: Path) -> int:
    emulator = json.loads((out / "mpshell.json").read_text())
    return sum(path[way]["departed_packets"] for path in emulator["paths"] for way in ("up", "down"))


def measure(folder: Path, name: str, job: Job) -> Figure:
    runs = [run_once(folder, job) for _ in range(TRIES)]
    cpu, memory = min(run[0] for run in runs), max(run[1] for run in runs)
    out = folder / "out"
    simulated = json.loads((out / "mpshell.json").read_text())["duration_s"]
    summary = json.loads((out / "player.jsonl").read_text().splitlines()[-1])
    packets = packets_of(out)
    shutil.rmtree(out)
    return Figure(
        name, simulated, cpu, simulated / cpu, packets, cpu / packets * 1e9, memory, summary["rebuffer_count"]
    )


def instructions(folder: Path, job: Job) -> int | None:
    """Counts the instructions of a complete run by callgrind. None if valgrind is not installed."""
    if shutil.which("valgrind") is None:
        return None
    (folder / "job.json").write_text(json.dumps(job))
    command: list[str | Path] = [program("xlink-sim"), folder / "job.json", "--out", folder / "out"]
    return count_of(counted(command, folder, ROOT), folder)


def between(folder: Path, job: Job, shorter_s: int = 5, longer_s: int = 10) -> tuple[float, float] | None:
    """Instructions, and instructions per packet, of a longer play − those of a shorter one, to exclude start-up and
    handshake."""
    counts: list[tuple[int, int]] = []
    for seconds in (shorter_s, longer_s):
        job["player"]["video_bytes"] = job["player"]["bitrate_bps"] // 8 * seconds
        count = instructions(folder, job)
        if count is None:
            return None
        counts.append((count, packets_of(folder / "out")))
    more = counts[1][0] - counts[0][0]
    return more, more / (counts[1][1] - counts[0][1])


def growth(folder: Path) -> dict[str, float]:
    """Millions of instructions of 5 s more of play: over short traces and over those of an hour, and of a player alone
    and among 64."""
    players = {n: [{"start_s": i / 10, "own_links": True} for i in range(n)] for n in (1, 64)}
    kinds: list[Job] = [{"trace_s": 60}, {"trace_s": 3600}, {"players": players[1]}, {"players": players[64]}]
    short, hour, alone, among = (between(folder, make_job(folder, bitrate_bps=2_500_000, **more)) for more in kinds)
    if short is None or hour is None or alone is None or among is None:
        return {}
    return {
        "traces of 60 s": short[0] / 1e6,
        "traces of 3600 s": hour[0] / 1e6,
        "one player": alone[0] / 1e6,
        "each of 64 players": among[0] / 64 / 1e6,
    }


def table(title: str, figures: list[Figure]) -> None:
    print(f"\n| {title} | simulated s / s | ns / packet | peak MB | stalls |\n| --- | ---: | ---: | ---: | ---: |")
    for f in figures:
        print(f"| {f.name} | {f.speed:.0f} | {f.ns_per_packet:.0f} | {f.peak_mb:.0f} | {f.stalls} |", flush=True)


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="railyard-bench-"))
    kinds: dict[str, Job] = {"real crypto": {}, "null_crypto": {"null_crypto": True}, "link logs": {"link_logs": True}}
    kinds |= {
        "qlog": {"qlog": True},
        "8 Mbps video": {"bitrate_bps": 8_000_000},
        "2.5 Mbps video": {"bitrate_bps": 2_500_000},
    }
    try:
        groups = {
            "two paths of 20 Mbps": [measure(folder, n, make_job(folder, **more)) for n, more in kinds.items()],
            "paths of 20 Mbps": [measure(folder, str(n), make_job(folder, paths=n, play_s=20)) for n in (1, 2, 4, 8)],
            "players of 2.5 Mbps, own links": [
                measure(
                    folder,
                    str(n),
                    make_job(folder, bitrate_bps=2_500_000, play_s=20)
                    | {"players": [{"start_s": i / 10, "own_links": True} for i in range(n)]},
                )
                for n in (1, 4, 16, 64)
            ],
            "length of the traces": [
                measure(folder, f"{s} s", make_job(folder, trace_s=s, bitrate_bps=2_500_000)) for s in (60, 600, 3600)
            ],
        }
        for title, figures in groups.items():
            table(title, figures)
        costs = {name: between(folder, make_job(folder, **kinds[name])) for name in list(kinds)[:2]}
        counts = {name: None if cost is None else cost[1] for name, cost in costs.items()}
        for name, count in counts.items():
            print(
                f"\nInstructions per packet, {name}: " + ("valgrind is not there" if count is None else f"{count:.0f}")
            )
        grown = growth(folder)
        print("\n| 5 s more of play | millions of instructions |\n| --- | ---: |")
        for name, millions in grown.items():
            print(f"| {name} | {millions:.2f} |")
    finally:
        shutil.rmtree(folder)
    document = {"schema": 1, "instructions_per_packet": counts, "millions_for_5_s_more": grown}
    document |= {title: [asdict(figure) for figure in figures] for title, figures in groups.items()}
    keep("sim", document)


if __name__ == "__main__":
    main()
