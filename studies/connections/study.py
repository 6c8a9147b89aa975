"""The cost of a server's endpoint by the number of its connections: endpoint-bench, the least of several runs.

`against` names a revision; its library runs the same load in turn.
"""

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from railyard.base.paths import ROOT, program
from railyard.base.provenance import GCM_HEADER
from railyard.experiment.model import Strict
from railyard.studies.machine import Machine, build, machine, output_of, tree_of
from railyard.studies.study import Data, markdown

LIBRARY = "build/release/libxlink.a"
NOW = "now"


class Settings(Strict):
    connections: list[int] = Field(min_length=1)
    requests: int = Field(ge=1)  # of 10 kB, by all connections in turn
    tries: int = Field(ge=1)
    against: str | None = None  # a revision


class Phase(Data):
    cpu_s: float
    packets: int
    rounds: int


class Run(Data):
    connections: int
    connect: Phase
    requests: Phase
    end: Phase


class Measured(Data):
    runs: list[dict[str, list[Run]]]  # of each number of connections, by library
    machine: Machine


def measure(settings: Settings) -> Measured:
    load, binaries = os.getloadavg()[0], {NOW: program("endpoint-bench")}
    if settings.against:
        binaries[settings.against] = _built_against(tree_of(settings.against))
    runs = []
    for connections in settings.connections:
        of_number: dict[str, list[Run]] = {name: [] for name in binaries}
        for _ in range(settings.tries):
            for name, binary in binaries.items():
                out = output_of(str(binary), str(connections), str(settings.requests))
                of_number[name].append(Run.model_validate_json(out))
        runs.append(of_number)
    return Measured(runs=runs, machine=machine(load))


def _built_against(tree: Path) -> Path:
    """The present load with the library of another revision, of which it uses only the public interface."""
    build(tree, [LIBRARY])
    binary = tree / "build" / "endpoint-bench"
    # As make links the present one: without -fno-lto its objects would be optimised as one.
    command = ["gcc", "-std=c17", "-O2", "-fno-omit-frame-pointer", "-D_GNU_SOURCE", "-fno-lto"]
    command += [f"-I{tree}/transport/include", f"-I{ROOT}/lib", f"{ROOT}/apps/load/bench/main.c", f"{tree}/{LIBRARY}"]
    gcm = ["-lIPSec_MB"] if GCM_HEADER.is_file() else []
    libraries = shlex.split(output_of("pkg-config", "--cflags", "--libs", "gnutls"))
    output_of(*command, *libraries, "-Wl,--as-needed", *gcm, "-lm", "-o", str(binary))
    return binary


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    others = [f"{name} | ratio" for name in measured.runs[0] if name != NOW]
    heads = ["connections", "packets a round", "CPU s / million packets", *others, "µs / connection's end", *others]
    rows = []
    for of_number in measured.runs:
        [first, *_] = of_number[NOW]
        packets = first.requests.packets / first.requests.rounds
        loads = [f"{first.connections:,}", f"{packets:.1f}"]
        seconds = {name: _least(runs, "requests") / runs[0].requests.packets for name, runs in of_number.items()}
        ends = {name: _least(runs, "end") / runs[0].connections for name, runs in of_number.items()}
        rows.append([*loads, *_cells(seconds, ".2f"), *_cells(ends, ".0f")])
    yield "cost", markdown(" | ".join(heads).split(" | "), rows, left=0)


def _least(runs: list[Run], phase: str) -> float:
    return float(min(getattr(run, phase).cpu_s for run in runs))


def _cells(costs: dict[str, float], form: str) -> Iterator[str]:
    """The cost in millionths; then those of the other library, and the ratio to them."""
    for name, cost in costs.items():
        yield format(cost * 1e6, form)
        if name != NOW:
            yield f"{costs[NOW] / cost:.2g}"
