"""Two TCP flows at a bottleneck, as options of mpshell, and what they carried."""

from pathlib import Path

from railyard.results.flows import read_flows

LINKS = ["--path", "a:rate=100mbps,delay=5", "--bottleneck", "core:rate=6mbps,delay=5,queue=droptail:packets=20"]
TWO = ["--flow", "two:via=core,count=2,delay=10", "--flow-log", "flows.jsonl", "--summary", "mpshell.json"]
CORE_BPS = 6_000_000 * 1448 / 1504  # what packets of 1500 bytes with timestamps can carry


def shares(folder: Path, from_s: float, to_s: float) -> list[float]:
    return [one.goodput_bps(from_s, to_s) for one in read_flows(folder)["two"]]
