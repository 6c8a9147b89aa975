"""Kernel MPTCP at the place of experiments/mptcp-modes.yaml, milliseconds later, and at places spread over the trace.
The runs are in the kernel arena, so that each repeats to the byte."""

import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Annotated

import numpy as np
from pydantic import Field

from railyard.experiment.model import Strict, find_experiment, load_experiment
from railyard.figures.rows import RCT_MEDIAN
from railyard.results.linklog.read import LinkLog, read_link_log
from railyard.results.pending import Place, Plan, whole_campaign
from railyard.run.arena import arena_of
from railyard.run.resolve import resolve
from railyard.stats.distributions import exact_share
from railyard.studies.study import Data, markdown
from railyard.traces.library import find_pair
from railyard.traces.trace import read_trace

EXPERIMENT = "mptcp-modes"
AT_PLACES_MS = (0, 20, 40)
FIRST_S, SETTLED_S = 1.5, 4.0
FAR = 1.1  # ratio of two medians from which runs are of different modes


@dataclass(frozen=True)
class Downlink:
    """The link log of one path's downlink."""

    log: LinkLog

    def bytes_between(self, begin_s: float, end_s: float) -> int:
        """The bytes that entered the queue."""
        t = self.log.arrival_ms / 1000
        return int(self.log.arrival_bytes[(t >= begin_s) & (t < end_s)].sum())

    def most_queued(self, end_s: float) -> int:
        """The most packets in the queue at one time, before `end_s`."""
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


class Played(Data):
    """One run."""

    later_ms: int
    ended_s: float
    rct_s: list[float]  # of each chunk
    rct_median_s: float
    most_queued: int  # packets in Wi-Fi's downlink queue, in the first FIRST_S
    wifi_dropped: int  # packets
    wifi_dropped_when: str
    lte_dropped: int
    wifi_first_percent: float | None  # of the bytes that entered either downlink, in the first FIRST_S
    wifi_settled_percent: float | None  # from SETTLED_S on

    @property
    def mode(self) -> tuple[int, float]:
        """The key of a run's mode. Runs with equal keys are of the same mode."""
        return self.wifi_dropped, round(self.rct_median_s, 1)


def wifi_percent(wifi: Downlink, lte: Downlink, begin_s: float, end_s: float) -> float | None:
    """Wi-Fi's share in percent. None: nothing entered either queue, as in an outage."""
    first, second = (link.bytes_between(begin_s, end_s) for link in (wifi, lte))
    return 100 * first / (first + second) if first + second else None


def play(folder: Path, at_ms: int, later_ms: int) -> Played:
    checked, document = load_experiment(find_experiment(EXPERIMENT))
    checked = checked.model_copy(update={"start_offset_ms": at_ms + later_ms})
    plan = Plan(checked, resolve(checked, document))
    with whole_campaign(plan, Place(out=folder / str(at_ms + later_ms))) as campaign:
        links = campaign.folder / "runs" / plan.specs[0].run_id / "links"
        wifi, lte = (Downlink(read_link_log(links / f"{name}.down.log")) for name in ("wifi", "lte"))
    run = campaign.runs[0]
    return Played(
        later_ms=later_ms,
        ended_s=run.ended_s,
        rct_s=[chunk.rct_s for chunk in run.chunks],
        rct_median_s=RCT_MEDIAN.value([run]),
        most_queued=wifi.most_queued(FIRST_S),
        wifi_dropped=wifi.dropped,
        wifi_dropped_when=wifi.dropped_when,
        lte_dropped=lte.dropped,
        wifi_first_percent=wifi_percent(wifi, lte, 0, FIRST_S),
        wifi_settled_percent=wifi_percent(wifi, lte, SETTLED_S, run.ended_s),
    )


class Settings(Strict):
    later_ms: list[Annotated[int, Field(ge=0)]] = Field(min_length=1)
    places: int = Field(ge=0)  # spread over the trace


class Measured(Data):
    later: list[Played]
    places: list[list[Played]]  # for each place, its runs at AT_PLACES_MS


def measure(settings: Settings) -> Measured:
    experiment = load_experiment(find_experiment(EXPERIMENT))[0]
    arena_of(experiment.arena).check()
    length_ms = min(read_trace(path.downlink).period_ms for path in find_pair("subway-1").paths)
    starts = [k * length_ms // settings.places for k in range(settings.places)]
    with tempfile.TemporaryDirectory(prefix="railyard-") as name:
        folder = Path(name)
        later = [play(folder, int(experiment.start_offset_ms), ms) for ms in settings.later_ms]
        places = [[play(folder, start, ms) for ms in AT_PLACES_MS] for start in starts]
    return Measured(later=later, places=places)


def _range(values: Sequence[float | None], form: str) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    low, high = (format(end, form) for end in (min(known), max(known)))
    return low if low == high else f"{low} to {high}"


def _modes(played: Sequence[Played]) -> str:
    """The modes in words, one line for neighbours of the same mode."""
    heads = ["later by ms", "runs", "median RCT s", "first three chunks s", "the others s"]
    heads += [f"most packets queued, Wi-Fi, first {FIRST_S:g} s", "packets dropped, Wi-Fi; LTE"]
    heads += [f"Wi-Fi's bytes, first {FIRST_S:g} s %", f"from {SETTLED_S:g} s on %"]
    rows = []
    for _, group in groupby(played, key=lambda one: one.mode):
        alike = list(group)
        first = alike[0]
        cells = [_range([one.later_ms for one in alike], "d"), str(len(alike))]
        cells += [_range([one.rct_median_s for one in alike], ".2f")]
        cells += [", ".join(_range([one.rct_s[k] for one in alike], ".2f") for k in range(3))]
        cells += [_range([rct for one in alike for rct in one.rct_s[3:]], ".2f")]
        cells += [_range([one.most_queued for one in alike], "d")]
        cells += [f"{first.wifi_dropped}{first.wifi_dropped_when}; {first.lte_dropped}"]
        cells += [_range([one.wifi_first_percent for one in alike], ".0f")]
        cells += [_range([one.wifi_settled_percent for one in alike], ".0f")]
        rows.append(cells)
    return markdown(heads, rows, left=len(heads))


def _places(places: Sequence[Sequence[Played]]) -> str:
    """The share of places, over the whole trace, where a few milliseconds decide the mode, in words."""
    medians = [[one.rct_median_s for one in alike] for alike in places]
    spread = [max(each) / min(each) for each in medians]
    far = sum(ratio > FAR for ratio in spread)
    some = sum(len({one.wifi_dropped + one.lte_dropped > 0 for one in alike}) > 1 for alike in places)
    low, high = (100 * end for end in exact_share(far, len(places)))
    return (
        f"{len(places)} places spread over the trace, each played {', '.join(map(str, AT_PLACES_MS))} ms later: the "
        f"median RCTs of a place differ by {100 * (FAR - 1):.0f} % or more at {far} ({100 * far / len(places):.0f} % "
        f"[{low:.0f}, {high:.0f}]), at the median by {100 * (median(spread) - 1):.0f} %, at most by "
        f"{100 * (max(spread) - 1):.0f} %. At {some} some of the three runs lost packets in a queue and some did not."
    )


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    yield "modes", _modes(measured.later)
    if measured.places:
        yield "places", textwrap.fill(_places(measured.places), 120)
