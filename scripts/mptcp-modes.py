"""Runs experiments/mptcp-modes.yaml at its place and milliseconds later, then at places spread over the trace, and
prints the tables of docs/results/mptcp-modes.md. The runs are in the kernel arena, so that each repeats to the byte.

    .venv/bin/python scripts/mptcp-modes.py [--places N]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import median

import numpy as np

from railyard.base.errors import reported_by
from railyard.experiment.model import find_experiment, load_experiment
from railyard.results.linklog.read import LinkLog, read_link_log
from railyard.results.pending import Place, Plan, whole_campaign
from railyard.results.records import Run
from railyard.run.resolve import resolve
from railyard.stats.distributions import exact_share
from railyard.traces.library import find_pair
from railyard.traces.trace import read_trace

EXPERIMENT = "mptcp-modes"
LATER_MS = range(0, 61, 5)
AT_PLACES_MS = (0, 20, 40)
FIRST_S, SETTLED_S = 1.5, 4.0
FAR = 1.1  # of two medians: the runs went differently


@dataclass(frozen=True)
class Downlink:
    """What the log of one path's downlink says."""

    log: LinkLog

    def bytes_between(self, begin_s: float, end_s: float) -> int:
        """That entered the queue."""
        t = self.log.arrival_ms / 1000
        return int(self.log.arrival_bytes[(t >= begin_s) & (t < end_s)].sum())

    def most_queued(self, end_s: float) -> int:
        """Packets in the queue at one time, before then."""
        dropped = np.repeat(self.log.drop_ms, self.log.drop_packets.astype(int))
        left = np.concatenate([self.log.departure_ms, dropped])
        arrivals, left = (t[t < 1000 * end_s] for t in (self.log.arrival_ms, left))
        times = np.concatenate([arrivals, left])
        steps = np.concatenate([np.ones(len(arrivals)), -np.ones(len(left))])
        order = np.lexsort((steps, times))
        return int(np.cumsum(steps[order]).max(initial=0))

    @property
    def dropped(self) -> int:
        return int(self.log.drop_packets.sum())

    @property
    def dropped_when(self) -> str:
        t = self.log.drop_ms / 1000
        return f", {t.min():.1f} to {t.max():.1f} s" if len(t) else ""


@dataclass(frozen=True)
class Played:
    later_ms: int
    run: Run
    wifi: Downlink
    lte: Downlink

    @property
    def rct(self) -> list[float]:
        return [chunk.rct_s for chunk in self.run.chunks]

    def wifi_percent(self, begin_s: float, end_s: float) -> float:
        """Of the bytes that entered either downlink."""
        wifi, lte = (link.bytes_between(begin_s, end_s) for link in (self.wifi, self.lte))
        return 100 * wifi / (wifi + lte)

    @property
    def mode(self) -> tuple[int, float]:
        """Runs alike in this go the same way."""
        return self.wifi.dropped, round(median(self.rct), 1)


def play(folder: Path, at_ms: int, later_ms: int) -> Played:
    checked, document = load_experiment(find_experiment(EXPERIMENT))
    checked = checked.model_copy(update={"start_offset_ms": at_ms + later_ms})
    plan = Plan(checked, resolve(checked, document))
    with whole_campaign(plan, Place(out=folder / str(at_ms + later_ms))) as whole:
        links = whole.folder / "runs" / plan.specs[0].run_id / "links"
        wifi, lte = (Downlink(read_link_log(links / f"{name}.down.log")) for name in ("wifi", "lte"))
    return Played(later_ms, whole.runs[0], wifi, lte)


def _range(values: Sequence[float], form: str) -> str:
    low, high = (format(end, form) for end in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def print_modes(played: Sequence[Played]) -> None:
    """One line for neighbours that went the same way."""
    columns = ["later by ms", "runs", "median RCT s", "first three chunks s", "the others s"]
    columns += [f"most packets queued, Wi-Fi, first {FIRST_S:g} s", "packets dropped, Wi-Fi; LTE"]
    columns += [f"Wi-Fi's bytes, first {FIRST_S:g} s %", f"from {SETTLED_S:g} s on %"]
    print(f"| {' | '.join(columns)} |\n| {' | '.join(['---'] * len(columns))} |")
    for _, group in groupby(played, key=lambda one: one.mode):
        alike = list(group)
        first, end = alike[0], max(one.run.ended_s for one in alike)
        cells = [_range([one.later_ms for one in alike], "d"), str(len(alike))]
        cells += [_range([median(one.rct) for one in alike], ".2f")]
        cells += [", ".join(_range([one.rct[k] for one in alike], ".2f") for k in range(3))]
        cells += [_range([rct for one in alike for rct in one.rct[3:]], ".2f")]
        cells += [_range([one.wifi.most_queued(FIRST_S) for one in alike], "d")]
        cells += [f"{first.wifi.dropped}{first.wifi.dropped_when}; {first.lte.dropped}"]
        cells += [_range([one.wifi_percent(0, FIRST_S) for one in alike], ".0f")]
        cells += [_range([one.wifi_percent(SETTLED_S, end) for one in alike], ".0f")]
        print(f"| {' | '.join(cells)} |", flush=True)


def print_places(folder: Path, places: int) -> None:
    """How often a few milliseconds decide, over the whole trace."""
    length_ms = min(read_trace(path.downlink).period_ms for path in find_pair("subway-1").paths)
    far = early = 0
    spread: list[float] = []
    for k in range(places):
        at = k * length_ms // places
        alike = [play(folder, at, later) for later in AT_PLACES_MS]
        medians = [median(one.rct) for one in alike]
        spread.append(max(medians) / min(medians))
        far += spread[-1] > FAR
        early += len({one.wifi.dropped + one.lte.dropped > 0 for one in alike}) > 1
    later = ", ".join(f"{ms}" for ms in AT_PLACES_MS)
    low, high = (100 * end for end in exact_share(far, places))
    print(
        f"\n{places} places spread over the trace, each played {later} ms later: the median RCTs of a place differ by "
        f"{100 * (FAR - 1):.0f} % or more at {far} ({100 * far / places:.0f} % [{low:.0f}, {high:.0f}]), at the median "
        f"by {100 * (median(spread) - 1):.0f} %, at most by {100 * (max(spread) - 1):.0f} %. At {early} some of the "
        "three runs lost packets in a queue and some did not."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--places", type=int, default=20)
    places = parser.parse_args().places
    with tempfile.TemporaryDirectory(prefix="railyard-") as name:
        folder = Path(name)
        at_ms = load_experiment(find_experiment(EXPERIMENT))[0].start_offset_ms
        print_modes([play(folder, int(at_ms), later) for later in LATER_MS])
        print_places(folder, places)


if __name__ == "__main__":
    with reported_by("mptcp-modes"):
        main()
