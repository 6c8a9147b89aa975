#!/usr/bin/env python3
"""Counts the instructions of fixed jobs under callgrind, and compares this tree with other revisions of it.

The same program on the same job takes the same number of instructions, whatever else the machine does, to a few
thousandths where sockets are involved. Counts of two compilers or libraries do not compare, so `--against REV` builds
that revision here, by the same compiler. Exit code 1 if a job takes over 2 % more than in the last REV and no commit
since says why, in a line `Cost: REASON`. `--write` also counts a packet's instructions by part of the code, and keeps
all in docs/results/instructions.json and docs/results/speed.md. What that file has of a revision, by the same compiler,
is not counted again by `--write`.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from railyard.base.errors import UserError, reported_by
from railyard.base.paths import ROOT
from railyard.studies.machine import WAIT_S, build, count_of, counted, git, tree_of

LIMIT = 0.02
RESULTS = ROOT / "docs" / "results"
STORED = RESULTS / "instructions.json"
PAGE = RESULTS / "speed.md"
BULK_BYTES = 8_000_000
PORT = 24433
Count = Callable[[Path, Path], int]  # counts for a tree, in a folder


@dataclass(frozen=True)
class Job:
    name: str
    about: str
    count: Count
    programs: tuple[str, ...] = ("xlink-sim",)


def sim_command(tree: Path, folder: Path, paths: int, seconds: int, **members: Any) -> list[str | Path]:
    """The command of a simulation with paths of 20 Mbps and a video that takes 85 % of them."""
    trace = folder / "trace"
    trace.write_text("".join(f"{int(n * 0.6016) + 1}\n" for n in range(10_000)))
    links = [
        {"name": f"path-{i}", "up": "trace", "down": "trace", "delay_ms": 20 + 10 * i}
        | {"queue": "droptail:packets=100"}
        for i in range(paths)
    ]
    rate = paths * 17_000_000
    player = {"video_bytes": max(rate // 8 * seconds, 200_000), "bitrate_bps": rate, "chunk_bytes": paths << 19}
    job = {"scheme": "vanilla-mp", "time_limit_s": 60, "paths": links, "player": player, "link_logs": False}
    (folder / "job.json").write_text(json.dumps(job | members))
    return [tree / "build/bin/xlink-sim", folder / "job.json", "--out", folder / "out"]


def sim(paths: int, seconds: int, **members: Any) -> Count:
    return lambda tree, folder: count_of(
        counted(sim_command(tree, folder, paths, seconds, **members), folder, tree), folder
    )


def transfer(which: str, size: int) -> Count:
    """A count for one download over loopback. `which`: the end that is counted."""

    def count(tree: Path, folder: Path) -> int:
        programs = tree / "build/bin"
        address = f"127.0.0.1:{PORT}"
        serve: list[str | Path] = [programs / "xlink-server", "--quic", address, "--seed", "1"]
        fetch: list[str | Path] = [programs / "xlink-get", "--insecure", "--quiet", "--seed", "2"]
        fetch += ["--time-limit", str(WAIT_S), f"https://{address}/synthetic/{size}"]
        start = counted if which == "server" else plain
        server = start(serve, folder, tree)
        try:
            if server.stdout is None or "listening" not in server.stdout.readline():
                raise UserError(f"the server does not listen: {server.communicate()[1]}")
            client = (plain if which == "server" else counted)(fetch, folder, tree)
            if which == "client":
                return count_of(client, folder)
            _, said = client.communicate(timeout=WAIT_S)
            if client.returncode != 0:
                raise UserError(f"{fetch} ended with {client.returncode}: {said}")
            server.send_signal(signal.SIGTERM)
            return count_of(server, folder, (0, -signal.SIGTERM))
        finally:
            server.kill()
            server.wait()

    return count


def plain(command: list[str | Path], _: Path, tree: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        list(map(str, command)), cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def version(tree: Path, folder: Path) -> int:
    """Counts `railyard --version`, after a first run that compiles the modules."""
    command: list[str | Path] = [sys.executable, "-m", "railyard", "--version"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    subprocess.run(list(map(str, command)), cwd=tree, env=environment, capture_output=True, check=True)
    return count_of(counted(command, folder, tree), folder)


def one_of_the_gate(tree: Path, folder: Path) -> int:
    """Counts a run like those of `railyard gate`: a pair with outages, with link logs, without qlogs."""
    ends = [("wifi", 10), ("lte", 25)]
    links = [
        {"name": name, "technology": name, "delay_ms": delay_ms, "queue": "infinite"}
        | {way: str(ROOT / f"traces/hsr-1.{name}.{way}") for way in ("up", "down")}
        for name, delay_ms in ends
    ]
    player = {"video_bytes": 5_000_000, "bitrate_bps": 4_000_000, "chunk_bytes": 524_288, "verify": True}
    job = {"scheme": "xlink", "time_limit_s": 40, "paths": links, "player": player, "null_crypto": True}
    (folder / "job.json").write_text(json.dumps(job))
    command: list[str | Path] = [tree / "build/bin/xlink-sim", folder / "job.json", "--out", folder / "out"]
    return count_of(counted(command, folder, tree), folder)


JOBS = (
    Job("sim-two", "two paths, real crypto", sim(2, 3)),
    Job("sim-two-null", "two paths, null crypto", sim(2, 3, null_crypto=True)),
    Job("sim-two-qlog", "two paths, real crypto, qlogs", sim(2, 2, qlog=True)),
    Job("sim-one", "one path, real crypto", sim(1, 3)),
    Job("sim-one-null", "one path, null crypto", sim(1, 3, null_crypto=True)),
    Job("sim-start", "start, handshake and 0.1 s of one path", sim(1, 0, null_crypto=True)),
    Job("sim-gate", "a run as the gate makes them", one_of_the_gate),
    Job("bulk-server", "server, 8 MB over loopback", transfer("server", BULK_BYTES), ("xlink-server", "xlink-get")),
    Job("bulk-client", "client, 8 MB over loopback", transfer("client", BULK_BYTES), ("xlink-server", "xlink-get")),
    Job("cli", "railyard --version", version, ()),
)


def counts_of(tree: Path, names: list[str]) -> dict[str, int]:
    build(tree, (f"build/bin/{program}" for job in JOBS if job.name in names for program in job.programs))
    counts = {}
    for job in JOBS:
        if job.name in names and all((tree / "build/bin" / program).exists() for program in job.programs):
            with tempfile.TemporaryDirectory(prefix="railyard-bench-") as folder:
                counts[job.name] = job.count(tree, Path(folder))
    return counts


# A compiler's cache may have the paths of another tree.
OWN = re.compile(r"(?:^|/)((?:emulator|lib|player|server|transport)(?:/[^/]+)?)/[^/]+$")


def parts_of(profile: Path) -> dict[str, int]:
    """Instructions by folder of the source, or by library."""
    command = ["callgrind_annotate", "--threshold=100", "--auto=no", "--show-percs=no", str(profile)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    parts: dict[str, int] = {}
    for line in lines:
        # COUNT FILE:FUNCTION [OBJECT], where FILE is ??? without debugging information.
        if match := re.match(r"\s*([\d,]+)\s+(\S+?):\S.*?(?:\[(\S+)\])?$", line):
            count, file, library = int(match[1].replace(",", "")), match[2], match[3] or ""
            if inside := OWN.search(file):
                part = inside[1]
            elif "IPSec_MB" in library:
                part = "intel-ipsec-mb"
            elif re.search("gnutls|nettle|hogweed|gmp", library):
                part = "GnuTLS and Nettle"
            else:
                part = "C library" if file.startswith(("./", "../")) or "libc.so" in library else "other libraries"
            parts[part] = parts.get(part, 0) + count
    return parts


def parts_of_a_packet(tree: Path, **members: Any) -> dict[str, float]:
    """Instructions per packet over two paths, after start-up: the difference between 4 s and 2 s / that of packets."""
    counts: list[tuple[dict[str, int], int]] = []
    for seconds in (2, 4):
        with tempfile.TemporaryDirectory(prefix="railyard-bench-") as name:
            folder = Path(name)
            command = sim_command(tree, folder, 2, seconds, **members)
            count_of(counted(command, folder, tree, str(folder / "profile")), folder)
            links = json.loads((folder / "out" / "mpshell.json").read_text())["paths"]
            packets = sum(link[way]["arrived_packets"] for link in links for way in ("up", "down"))
            counts.append((parts_of(folder / "profile"), packets))
    (less, few), (more, many) = counts
    return {part: (more[part] - less.get(part, 0)) / (many - few) for part in more}


def grown(before: dict[str, int], after: dict[str, int]) -> list[str]:
    """The jobs that grew by more than LIMIT."""
    return [name for name, count in after.items() if name in before and count > before[name] * (1 + LIMIT)]


def reasons(messages: str) -> list[str]:
    """The reasons for costs in commit messages."""
    return re.findall(r"^Cost: (.+)$", messages, re.MULTILINE)


def table(after: dict[str, int], before: dict[str, dict[str, int]]) -> list[str]:
    """The table of counts. `before`: the counts of other revisions."""
    rows = [
        "| job | | " + "".join(f"{revision[:7]} | " for revision in before) + "now |" + " now / then |" * len(before)
    ]
    rows += ["| --- | --- |" + " ---: |" * (2 * len(before) + 1)]
    for job in JOBS:
        if job.name in after:
            now, then = after[job.name], [counts.get(job.name) for counts in before.values()]
            cells = [f"{count:,}" if count else "–" for count in [*then, now]]
            cells += [f"{now / count:.3f}" if count else "–" for count in then]
            rows.append(f"| `{job.name}` | {job.about} | " + " | ".join(cells) + " |")
    return rows


def parts_table(kinds: dict[str, dict[str, float]]) -> list[str]:
    """The table of parts by kind of run, with the parts in the order of the last kind."""
    rows = ["| part |" + "".join(f" {kind} |" for kind in kinds), "| --- |" + " ---: |" * len(kinds)]
    rows += ["| all |" + "".join(f" {sum(parts.values()):,.0f} |" for parts in kinds.values())]
    last = list(kinds.values())[-1]
    for part in sorted(last, key=lambda part: -last[part]):
        if last[part] >= 50:
            name = part if " " in part else f"`{part}`"
            rows.append(f"| {name} |" + "".join(f" {parts.get(part, 0):,.0f} |" for parts in kinds.values()))
    return rows


def compiler_name() -> str:
    return subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def kept() -> dict[str, dict[str, int]]:
    """The counts of the last --write with the same compiler, by revision."""
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    before: dict[str, dict[str, int]] = stored["before"] if stored.get("compiler") == compiler_name() else {}
    return before


def placed(page: str, name: str, rows: list[str]) -> str:
    """The page with this table between its marks."""
    begin, end = f"<!-- instructions: {name} -->\n\n", "\n\n<!-- end -->"
    head, has_begin, rest = page.partition(begin)
    old, has_end, rest = rest.partition(end)
    if not has_begin or not has_end or "<!--" in old:
        raise SystemExit(f"bench-instructions: {PAGE} has no place for a table behind {begin.strip()}")
    return head + begin + "\n".join(rows) + end + rest


def write(after: dict[str, int], before: dict[str, dict[str, int]]) -> None:
    """The two tables between their marks on the page."""
    compiler = compiler_name()
    STORED.write_text(json.dumps({"compiler": compiler, "instructions": after, "before": before}, indent=1) + "\n")
    kinds = {
        "null crypto": parts_of_a_packet(ROOT, null_crypto=True),
        "null crypto, qlogs": parts_of_a_packet(ROOT, null_crypto=True, qlog=True),
        "real crypto": parts_of_a_packet(ROOT),
        "real crypto, qlogs": parts_of_a_packet(ROOT, qlog=True),
    }
    tables = {"jobs": [f"Compiled by {compiler}.", "", *table(after, before)], "parts": parts_table(kinds)}
    page = PAGE.read_text()
    for name, rows in tables.items():
        page = placed(page, name, rows)
    PAGE.write_text(page)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", metavar="REV", action="append", default=[], help="compare with a build of it")
    parser.add_argument("--write", action="store_true", help="write docs/results/instructions.json and speed.md")
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=f"of {', '.join(job.name for job in JOBS)}")
    options = parser.parse_args()
    if unknown := set(options.jobs) - {job.name for job in JOBS}:
        raise SystemExit(f"bench-instructions: there is no job {', '.join(sorted(unknown))}; --help names all.")
    if options.write and (options.jobs or not options.against):
        parser.error("--write keeps a comparison of all jobs; it needs --against REV, and no JOB")
    names = options.jobs or [job.name for job in JOBS]
    revisions = [git("rev-parse", f"{revision}^{{commit}}") for revision in options.against]
    known = kept() if options.write else {}
    before = {revision: known.get(revision) or counts_of(tree_of(revision), names) for revision in revisions}
    after = counts_of(ROOT, names)
    print("\n".join(table(after, before)))
    if options.write:
        write(after, before)
    more = grown(before[revisions[-1]], after) if revisions else []
    if more:
        reasons_given = reasons(git("log", "--format=%B", f"{revisions[-1]}..HEAD"))
        print(f"\nover {LIMIT:.0%} more: {', '.join(more)}" + "".join(f"\nCost: {why}" for why in reasons_given))
        if not reasons_given:
            print("No commit says why; a line `Cost: REASON` in its message does.")
            sys.exit(1)


if __name__ == "__main__":
    with reported_by("bench-instructions"):
        main()
