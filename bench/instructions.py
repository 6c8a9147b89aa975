#!/usr/bin/env python3
"""Counts the instructions of fixed jobs under callgrind, and compares this tree with other revisions of it.

The same program on the same job takes the same number of instructions, whatever else the machine does, to a few
thousandths where sockets are involved. Counts of two compilers or libraries do not compare, so `--against REV` builds
that revision here, by the same compiler. Exit code 1 if a job takes over 2 % more than in the last REV and no commit
since says why, in a line `Cost: REASON`. `--write` also counts a packet's instructions by part of the code, and keeps
all in docs/results/instructions.json and docs/results/speed.md. What that file has of a revision, by the same compiler,
is not counted again by `--write`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from railyard.base.paths import ROOT

LIMIT = 0.02
RESULTS = ROOT / "docs" / "results"
STORED = RESULTS / "instructions.json"
PAGE = RESULTS / "speed.md"
# callgrind counts every byte of a `rep movsb`; plain vector copies are counted as what they are.
VALGRIND_ENV = {"GLIBC_TUNABLES": "glibc.cpu.x86_rep_movsb_threshold=1000000000"}
PYTHON_ENV = {"PYTHONHASHSEED": "0"}
WAIT_S = 900
BULK_BYTES = 8_000_000
PORT = 24433
Count = Callable[[Path, Path], int]  # of a tree, in a folder


@dataclass(frozen=True)
class Job:
    name: str
    about: str
    count: Count
    programs: tuple[str, ...] = ("xlink-sim",)


def counted(command: list[str | Path], folder: Path, tree: Path, profile: str = "/dev/null") -> subprocess.Popen[str]:
    """The program under callgrind, started."""
    callgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", f"--log-file={folder / 'count'}"]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("RAILYARD", "COV", "PYTHON"))
    }
    return subprocess.Popen(
        [*callgrind, *map(str, command)],
        env=environment | VALGRIND_ENV | PYTHON_ENV,
        cwd=tree,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def count_of(process: subprocess.Popen[str], folder: Path, codes: tuple[int, ...] = (0,)) -> int:
    """Waits for its end."""
    try:
        _, said = process.communicate(timeout=WAIT_S)
    finally:
        process.kill()
    log = (folder / "count").read_text()
    match = re.search(r"refs:\s+([\d,]+)", log)
    if process.returncode not in codes or match is None:
        raise SystemExit(f"bench-instructions: {process.args!r} ended with {process.returncode}: {said or log}")
    return int(match[1].replace(",", ""))


def sim_command(tree: Path, folder: Path, paths: int, seconds: int, **members: Any) -> list[str | Path]:
    """Paths of 20 Mbps and a video that takes 85 % of them."""
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
    """One download over loopback; `which` of the two ends is counted."""

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
                raise SystemExit(f"bench-instructions: the server does not listen: {server.communicate()[1]}")
            client = (plain if which == "server" else counted)(fetch, folder, tree)
            if which == "client":
                return count_of(client, folder)
            _, said = client.communicate(timeout=WAIT_S)
            if client.returncode != 0:
                raise SystemExit(f"bench-instructions: {fetch} ended with {client.returncode}: {said}")
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
    """Once before, so that the modules are compiled."""
    command: list[str | Path] = [sys.executable, "-m", "railyard", "--version"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    subprocess.run(list(map(str, command)), cwd=tree, env=environment, capture_output=True, check=True)
    return count_of(counted(command, folder, tree), folder)


def one_of_the_gate(tree: Path, folder: Path) -> int:
    """A run as `railyard gate` makes them: a pair with outages, with link logs, without qlogs."""
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


def tree_of(revision: str) -> Path:
    tree = ROOT / "build" / "bench" / revision
    if not tree.exists():
        tree.mkdir(parents=True)
        packed = subprocess.run(["git", "archive", revision], cwd=ROOT, stdout=subprocess.PIPE, check=True)
        subprocess.run(["tar", "-x", "-C", str(tree)], input=packed.stdout, check=True)
    return tree


def make(tree: Path, names: list[str]) -> None:
    """Compiles the programs of these jobs. A revision may not have all programs yet."""
    jobs = f"-j{len(os.sched_getaffinity(0))}"
    targets = sorted({f"build/bin/{program}" for job in JOBS if job.name in names for program in job.programs})
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "VARIANT")}
    done = subprocess.run(
        ["make", "-s", "-k", jobs, *targets], cwd=tree, capture_output=True, text=True, check=False, env=environment
    )
    errors = [line for line in done.stderr.splitlines() if "Error" in line]
    if done.returncode != 0 and (errors or tree == ROOT):
        raise SystemExit(f"bench-instructions: {tree} could not be built: {done.stderr.strip()[-2000:]}")


def counts_of(tree: Path, names: list[str]) -> dict[str, int]:
    make(tree, names)
    counts = {}
    for job in JOBS:
        if job.name in names and all((tree / "build/bin" / program).exists() for program in job.programs):
            with tempfile.TemporaryDirectory(prefix="railyard-bench-") as folder:
                counts[job.name] = job.count(tree, Path(folder))
    return counts


# A compiler's cache may say that another tree's folder was compiled.
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
            elif re.search("gnutls|nettle|hogweed|gmp", library):
                part = "GnuTLS and Nettle"
            else:
                part = "C library" if file.startswith(("./", "../")) or "libc.so" in library else "other libraries"
            parts[part] = parts.get(part, 0) + count
    return parts


def parts_of_a_packet(tree: Path, **members: Any) -> dict[str, float]:
    """Over two paths, once all has started: what 4 s take more than 2 s, by the packets more that reach a link."""
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
    """The jobs that take over LIMIT more."""
    return [name for name, count in after.items() if name in before and count > before[name] * (1 + LIMIT)]


def reasons(messages: str) -> list[str]:
    """What commits say of their cost."""
    return re.findall(r"^Cost: (.+)$", messages, re.MULTILINE)


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def table(after: dict[str, int], before: dict[str, dict[str, int]]) -> list[str]:
    """`before`: the counts of other revisions."""
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
    """By kind of run; the parts in the order of the last one."""
    rows = ["| part |" + "".join(f" {kind} |" for kind in kinds), "| --- |" + " ---: |" * len(kinds)]
    rows += ["| all |" + "".join(f" {sum(parts.values()):,.0f} |" for parts in kinds.values())]
    last = list(kinds.values())[-1]
    for part in sorted(last, key=lambda part: -last[part]):
        if last[part] >= 50:
            name = part if " " in part else f"`{part}`"
            rows.append(f"| {name} |" + "".join(f" {parts.get(part, 0):,.0f} |" for parts in kinds.values()))
    return rows


ABOUT = """# Speed

```
.venv/bin/python bench/instructions.py --write {options}
```

## Ten jobs
Instructions of fixed jobs, counted by callgrind: start, handshake and work together. One compiler built all revisions:
{compiler}. A ratio below 1 is fewer instructions. A dash: the older revision does not have
the program.

{table}

Jobs of the simulator take the same count each time. Those over loopback depend on when packets arrive: their counts
differ by up to 0.4 % from run to run. Instructions are not time: neither waiting for memory nor the kernel counts.
[How CI compares](../../CONTRIBUTING.md) a pull request with its merge base: it fails above 2 %.

## Simulated time
`bench/sim.py` measures the speed and prints these tables. One core of a virtual AMD EPYC machine with other
load, which varies the result by 15 to 25 % from run to run; two paths of 20 Mbps, scheme xlink-lean, a video of 34 Mbps
(85 % of both links) that plays without a stall:

| | simulated s / s | ns / packet | peak MB |
| --- | ---: | ---: | ---: |
| real crypto | 136 | 1780 | 14 |
| `null_crypto` | 257 | 950 | 14 |
| with link logs | 129 | 1880 | 15 |
| with qlog | 78 | 3120 | 15 |
| video of 8 Mbps | 510 | 1990 | 15 |
| video of 2.5 Mbps | 1190 | 2710 | 14 |

The first four of the revision before, in turns with this one, are 128, 219, 118 and 64 simulated s / s. With qlog, much
of the time is the kernel's: two qlogs have some 600 bytes of a packet.

The cost of paths is proportional to the packets that they carry (250 simulated s / s on one path of 20 Mbps). Start and
handshake take 8 ms. Neither long traces nor many players make a second dearer, beyond loading the trace once (70 MB,
and 1,600 million instructions as `callgrind` counts them, most of them SHA-256, for which the processor has its own):

| 5 s more of a video of 2.5 Mbps over two paths | millions of instructions |
| --- | ---: |
| traces of 60 s | 28.20 |
| traces of 3600 s | 28.19 |
| one player | 28.20 |
| each of 64 players, with links of their own | 28.60 |

## Bulk over loopback
`bench/bulk.py --against 2b8d9f7c` downloads 200 MB by one path, in turns of two revisions on a busy machine. Medians
and extremes of five turns each:

| | server, CPU s/GB | client, CPU s/GB | datagrams a call |
| --- | ---: | ---: | ---: |
| 2b8d9f7 | 4.48 (3.76 to 4.56) | 2.67 (2.48 to 3.24) | 10.0 |
| now | 3.41 (2.75 to 4.25) | 2.70 (2.09 to 2.85) | 44.7 |
| now / then, of neighbouring turns | 0.80 (0.73 to 0.95) | 0.84 (0.78 to 1.15) | |

The difference is a pacing burst of 1 ms of the rate (`--pacing-burst-ms`), at most 65,000 bytes, instead of ten
packets, and one ChaCha20 block for the random bits of 64 packets instead of one for each. Below 96 Mbit/s a
burst stays ten packets. An earlier comparison of whole transfers by processor time alone, without pairs, had decided
nothing (2.84 and 3.05 CPU s/GB); `perf` counts a third fewer cycles in the kernel, 2.15 instead of 3.26 for a byte.

Experiments and the simulator keep ten packets in every arena. What 1 ms would do there, over 16 pairs of `traces/` in
`vanilla-mp` and `xlink` with 10 ms and 25 ms of delay and queues of 300 packets: 11 of 32 plays move; 1.22 % of the
packets are lost instead of 1.26 %.

## Two fast paths
`xlink-sim`, where processors do not count: two paths of 500 Mbps with 10 ms each way and queues of one bandwidth-delay
product, 200 MB in one request, `vanilla-mp`. 5 MB are under way when both queues are full, more than a send buffer of
4 MiB, and than the 3 to 6 MiB that a stream's window leaves when it is announced at its half. Windows now double when
their half is read within two RTTs, up to 24 MiB, and a stream's send buffer follows twice the congestion windows, up to
8 MiB:

| | before (17f5cdf6) | now |
| --- | ---: | ---: |
| 200 MB, s | 2.374 | 1.973 |
| the same, `xlink` | 2.301 | 1.998 |
| Mbit/s of both links from 0.5 s to 1.8 s | 792 | 1,000 |
| the same with 2 × 200 Mbps and 100 MB, s | 2.406 | 2.386 |
| 2 × 100 Mbps, 2 × 20 Mbps, and the gate's default suite | | the same bytes |

What is left is slow start: the second path begins when the first one's window is full. A send buffer of 16 MiB took
1.936 s. Over mpshell, as below, the server's processor time was 1.12 (0.58 to 1.22) of that before: nine pairs, which
do not decide whether it costs more than one of 8 MiB.

Over mpshell on two busy cores (load 8; nine pairs of `bench/stacks.py`'s case, in turns with the revision before)
medians were 421 and 529 Mbit/s, and the pairs' ratio 1.01 (0.84 to 1.51); the server's processor time took 0.98 (0.63
to 1.50), the client's 0.98 (0.68 to 1.39). There the cores are the limit: relays, mpshell, source and sink take 13 s of
processor time for 1 GB, so that two idle cores would carry some 1,200 Mbit/s.

## Memory of a connection
Bytes that a server holds for an idle connection. Allocated bytes are what `build/release/server/http3_bounds_test`
prints: one path, a response of 100 kB, then silence for 6 s. Resident bytes are those of `xlink-server` with 4,000
connections of `xlink-load`, one begun each 5 ms, 28 s after the first, after a response of 100 kB each:

| | 2b8d9f7 | ed7a830 | now |
| --- | ---: | ---: | ---: |
| allocated | 181,874 | 105,410 | 25,536 |
| resident, one path, `sp` | – | 98,735 | 28,751 |
| resident, two paths, `xlink` | – | 98,714 | 32,332 |

100,000 connections fit in 4 GiB: 11 processes of `xlink-load`, each with 9,700 connections of one request and a PING
each 12 s, had 103,264 connections held at once, 7 minutes after the first, in 2.66 GB (26 kB each; records of sent
frames took 0.9 kB less then). 0.2 % had ended by timeout: the machine's two cores had other work.

Gone since are the paths that were not open (12 kB); send buffers in which all is acknowledged, and small receive
buffers in which all is read (5 kB); and what nghttp3 holds of a session (60 kB of addresses, 22 kB of memory). It takes
the memory of 64 streams at once, of which the kernel gets back what is not touched, and after 5 s of silence nothing of
it is left but the first bytes of the peer's critical streams, from which it is made anew.
The connection itself still takes 8 kB, its first path 1.8 kB, six streams of HTTP/3 3.7 kB, three sets of keys in
GnuTLS 4.8 kB and sent packets 1.4 kB.

## Campaigns
Processor time on two cores beside other work, once each, of commands rather than instructions; "before" is revision
`c1449a5`. The short runs are 2 s of video without qlogs: four pairs, 75 starts, `sp` on either path, `vanilla-mp` and
`xlink`.

| | before | now |
| --- | ---: | ---: |
| 1,200 short runs | 39.6 s | 25.6 s |
| the same command again, with nothing to do | 11.7 s | 2.2 s |
| one start of `xlink-sim` and 20 kB over two paths | 12.5 ms | 7.0 ms |
| the same over traces of an hour of 20 Mbps | 172 ms | 16 ms |
| `railyard gate`, default suite, the same program | 28.1 s | 2.8 s |
| `railyard gate`, default suite, another program with the same outputs (five times) | 28.1 s | 14 to 19 s |
| a viewer of a population in the process that hands them out | 6.9 ms, 94 kB | 4.1 ms, 2 kB |

A campaign's runs are copies of one process, `xlink-sim --batch`: libraries are linked and traces are parsed once.
Outputs are the same bytes.

## Where a simulated packet's instructions are
Two paths of 20 Mbps, `vanilla-mp`, after the start, by folder of the source; an inlined function counts where it was
written. Every packet that reaches a link counts as one, in both directions, data or acknowledgement. AES-GCM itself,
once to seal and once to open, is some 3,900 of GnuTLS's part in this mix of sizes. Qlogs are of both ends.

{parts}

## Flame graphs
`bench/flame.py` draws both with `perf` and inferno: [a simulated download](flame-sim.svg) by two paths with null
crypto, and [a server](flame-server.svg) that sends 1 GB over loopback, its system calls included. Opened by
themselves in a browser, they name the function under the pointer.

![Where the simulator's time goes](flame-sim.svg)

![Where the server's time goes](flame-server.svg)

## What did not pay
- Link-time optimisation of the other programs: it took 20 s of processor time for each link of `xlink-sim`, which
  alone has it, for a sixth fewer instructions. Trees that tests build do without (`FAST_LINK=1`).
- Segmented sends of 64 datagrams instead of 32, beside bursts of 1 ms: 4.36 and 4.29 CPU s/GB of the server, medians of
  four turns each.
- To seal from the send ring into the datagram, by `gnutls_aead_cipher_encryptv`: 4,788 instructions for 1,380 bytes. To
  copy them and seal in place takes 4,251.
- To ask epoll once a round: in bulk, the driver's own epoll is asked in 127 of 14,181 rounds of the server.
- To make a send buffer as large as announced with each write: 7,645 instructions a packet (null crypto). With a
  stream's first bytes alone, as it is now, 7,554.
- `-flto-partition=one`, alone and with `-fipa-pta`, to link `xlink-sim`: 8,835 and 8,842 of 8,860 instructions a
  packet.
- Other calls for header protection: both ends' masks take 306 of GnuTLS's 6,617 instructions a packet. Beside AES-GCM
  itself the rest is what GnuTLS does around each call that seals or opens.
- To leave a decrypted payload in the buffer that it was decrypted into: the copy back takes some 150 instructions a
  packet of the 6,900 that real protection adds. Fuzzers and tests change and protect packets in place.
- To stop, in the simulator's tree of timers, at the first match whose winner stays: it seldom does, and the question
  took a quarter more than the matches.
- Another library than GnuTLS: to seal and open 1,200 bytes took it 778 ns, OpenSSL's EVP interface 1,154 ns.
  BoringSSL's assembly took 538 ns, but is no Debian package. On another machine, to seal them alone: GnuTLS 3,444
  instructions and 410 to 530 ns, Nettle's GCM 4,767 and 850 ns.
- GnuTLS's interface of ciphers instead of that of AEADs: 6,718 instructions to seal and open 1,200 bytes instead of
  7,059, and no less time (650 to 928 and 621 to 726 ns in five turns).
- Nettle's AES for header masks: 63 instructions each instead of 187, 250 a packet or 1.7 %. Where a
  processor has no AES instructions, GnuTLS has code in constant time for it, and Nettle looks up tables.

## Against picoquic and XQUIC
That comparison needs their builds: `PICOQUIC_DIR=… XQUIC_DIR=… make peers`, then `.venv/bin/python
bench/stacks.py`. [Bulk transfers](stacks.md#bulk) has the figures of the last such run.
"""


def compiler_name() -> str:
    return subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def kept() -> dict[str, dict[str, int]]:
    """By revision, what the last --write counted with the same compiler."""
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    before: dict[str, dict[str, int]] = stored["before"] if stored.get("compiler") == compiler_name() else {}
    return before


def write(after: dict[str, int], before: dict[str, dict[str, int]], against: list[str]) -> None:
    compiler = compiler_name()
    STORED.write_text(json.dumps({"compiler": compiler, "instructions": after, "before": before}, indent=1) + "\n")
    kinds = {
        "null crypto": parts_of_a_packet(ROOT, null_crypto=True),
        "null crypto, qlogs": parts_of_a_packet(ROOT, null_crypto=True, qlog=True),
        "real crypto": parts_of_a_packet(ROOT),
        "real crypto, qlogs": parts_of_a_packet(ROOT, qlog=True),
    }
    options = " ".join(f"--against {revision}" for revision in against)
    lines = "\n".join(table(after, before))
    PAGE.write_text(ABOUT.format(options=options, compiler=compiler, table=lines, parts="\n".join(parts_table(kinds))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", metavar="REV", action="append", default=[], help="compare with a build of it")
    parser.add_argument("--write", action="store_true", help="write docs/results/instructions.json and speed.md")
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=f"of {', '.join(job.name for job in JOBS)}")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        raise SystemExit("bench-instructions: valgrind is not there; install the Debian package valgrind.")
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
        write(after, before, options.against)
    more = grown(before[revisions[-1]], after) if revisions else []
    if more:
        reasons_given = reasons(git("log", "--format=%B", f"{revisions[-1]}..HEAD"))
        print(f"\nover {LIMIT:.0%} more: {', '.join(more)}" + "".join(f"\nCost: {why}" for why in reasons_given))
        if not reasons_given:
            print("No commit says why; a line `Cost: REASON` in its message does.")
            sys.exit(1)


if __name__ == "__main__":
    main()
