#!/usr/bin/env python3
"""Draws flame graphs of processor time: docs/results/flame-sim.svg and flame-server.svg.

The first is of a simulated download over two paths with null crypto, the second of a server that sends over loopback,
including its system calls. `perf` samples the processor's clock and unwinds with debug information, as frame pointers
are omitted and functions are inlined. inferno (`cargo install inferno`) folds the stacks and draws.
"""

import argparse
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from instructions import PORT, RESULTS, sim_command

from railyard.base.paths import ROOT, programs_dir

HZ = 997  # not a multiple of another clock
STACK_BYTES = 16_384
SIM_S = 600
SERVER_BYTES = 1_000_000_000
# inferno's script has its own licence, and the picture is shown without it. Elements that need it are removed too.
SCRIPT = re.compile(rb'<script.*?</script>| onload="[^"]*"|<text id="(?:unzoom|search)".*?</text>', re.DOTALL)
TOOLS = {
    "perf": "it is in Debian's linux-perf",
    "inferno-collapse-perf": "`cargo install inferno` brings it",
    "inferno-flamegraph": "`cargo install inferno` brings it",
}


def perf(data: Path, command: list[str | Path]) -> list[str]:
    sampled = ["perf", "record", "--quiet", "--event", "cpu-clock", "--freq", str(HZ), "--output", str(data)]
    return [*sampled, "--call-graph", f"dwarf,{STACK_BYTES}", "--", *map(str, command)]


def simulator(data: Path, folder: Path) -> None:
    subprocess.run(
        perf(data, sim_command(ROOT, folder, 2, SIM_S, null_crypto=True, time_limit_s=2 * SIM_S)),
        check=True,
        capture_output=True,
    )


def server(data: Path, folder: Path) -> None:
    """Samples a server, without its client."""
    address = f"127.0.0.1:{PORT}"
    serve = perf(data, [programs_dir() / "xlink-server", "--quic", address, "--seed", "1"])
    process = subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        if process.stdout is None or "listening" not in process.stdout.readline():
            raise SystemExit(f"flame: the server does not listen: {process.communicate()[1]}")
        fetch: list[str | Path] = [programs_dir() / "xlink-get", "--insecure", "--quiet", "--seed", "2"]
        subprocess.run([*fetch, f"https://{address}/synthetic/{SERVER_BYTES}"], check=True)
    finally:
        # perf ends the server and writes its samples.
        process.terminate()
        process.communicate()


def draw(data: Path, folder: Path, title: str, out: Path) -> int:
    """Draws a flame graph and returns the number of samples in it."""
    script = subprocess.run(["perf", "script", "--input", str(data)], check=True, capture_output=True)
    folded = subprocess.run(["inferno-collapse-perf"], input=script.stdout, check=True, capture_output=True).stdout
    if not folded:
        raise SystemExit(f"flame: {data} has no sample")
    picture = ["inferno-flamegraph", "--deterministic", "--title", title, "--countname", "ns", "--minwidth", "0.3"]
    drawn = subprocess.run(picture, input=folded, check=True, capture_output=True).stdout
    out.write_bytes(SCRIPT.sub(b"", drawn))
    return script.stdout.count(b"cpu-clock")


PICTURES = {
    "sim": (simulator, "xlink-sim: two paths of 20 Mbps, vanilla-mp, null crypto"),
    "server": (server, "xlink-server: one path over loopback"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="DIR", help="folder of the pictures")
    options = parser.parse_args()
    for tool, remedy in TOOLS.items():
        if shutil.which(tool) is None:
            raise SystemExit(f"flame: {tool} is not installed; {remedy}")
    for name, (sample, title) in PICTURES.items():
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "perf.data"
            sample(data, Path(folder))
            out = options.out / f"flame-{name}.svg"
            print(f"{out}: {draw(data, Path(folder), title, out)} samples")


if __name__ == "__main__":
    main()
