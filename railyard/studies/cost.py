"""The cost of re-injection against the paper's bounds (XLINK, section 5.2.2), in the simulator.

    C_min ≥ β · P(Δt < T_th1)        C_max ≤ β · P(Δt < T_th2)

β: the re-injection cost with the gate always open. Δt: play-time left. The thresholds are percentiles
of Δt with the gate open and the paper's copy rule, the same for both rules. P is the share of the bytes copied with the
gate open whose Δt was below the threshold: then the bounds hold for any β that depends on Δt, as long as the gate does
not change Δt. Beside it P over time, the share of the players' reports, which assumes that β does not depend on Δt.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from railyard.base.yamlfile import YamlDocument, parse
from railyard.experiment.model import Experiment
from railyard.figures.rows import REINJECTION_COST
from railyard.results.differences import layout_of
from railyard.results.pending import Place, Plan, whole_campaign
from railyard.results.qlogdiff import events
from railyard.results.records import Run
from railyard.run.resolve import resolve
from railyard.stats.bootstrap import Layout, Reals, weights
from railyard.stats.intervals import Interval, interval
from railyard.studies.thresholds import samples_of, th

SCHEME = "xlink-lean"
RULES = ("always", "pays")
PAPERS_RULE = "always"
PLAY_S = 15

Setting = tuple[float, float]


@dataclass(frozen=True)
class Copy:
    length: int
    left_ms: float  # play-time left that the gate saw or would have seen


@dataclass(frozen=True)
class Play:
    """The plays at one place of a pair, at all bit rates together."""

    run: Run  # the first of them
    reinjected: float  # re-injected bytes
    others: float  # other stream bytes
    left_ms: list[float]  # play-time left every 100 ms, as the player reported it
    copies: list[Copy]  # in runs with a qlog


@dataclass(frozen=True)
class Population:
    """The plays of one copy rule with one pair of thresholds, or with the gate always open."""

    plays: list[Play]

    @property
    def layout(self) -> Layout:
        return layout_of([play.run for play in self.plays])

    @property
    def ordered(self) -> list[float]:
        return sorted(left for play in self.plays for left in play.left_ms)

    def cost(self, drawn: Reals) -> Reals:
        return _share(drawn, [play.reinjected for play in self.plays], [play.others for play in self.plays])

    def time_below(self, limit_ms: float, drawn: Reals) -> Reals:
        """The share of the reports below the limit."""
        below = [sum(left < limit_ms for left in play.left_ms) for play in self.plays]
        return _share(drawn, below, [len(play.left_ms) for play in self.plays])

    def copies_below(self, limit_ms: float, drawn: Reals) -> Reals:
        """The share of the copied bytes below the limit."""
        below = [sum(copy.length for copy in play.copies if copy.left_ms < limit_ms) for play in self.plays]
        return _share(drawn, below, [sum(copy.length for copy in play.copies) for play in self.plays])


def _share(drawn: Reals, top: Sequence[float], bottom: Sequence[float]) -> Reals:
    """sum(top) / sum(bottom) under each row of weights."""
    with np.errstate(divide="ignore", invalid="ignore"):
        shares: Reals = (drawn @ np.array(top, dtype=np.float64)) / (drawn @ np.array(bottom, dtype=np.float64))
    return shares


@dataclass(frozen=True)
class CostRow:
    """One setting (X, Y) under one copy rule. Shares, not percent."""

    setting: Setting
    rule: str
    beta: float
    least: float
    measured: Interval
    most: float
    over_least: Interval | None  # measured / least
    over_most: Interval | None  # measured / most
    over_least_by_time: Interval | None  # with P over the reports of runs with the gate open
    over_most_by_time: Interval | None  # with P over the reports of the gated runs


def _row(setting: Setting, rule: str, limits: tuple[float, float], free: Population, gated: Population) -> CostRow:
    low, high = limits
    layout = gated.layout
    drawn = weights(layout).astype(np.float64)
    beta, cost = free.cost(drawn), gated.cost(drawn)
    measured = interval(cost, layout)
    if measured is None:
        raise ValueError("no play sent any data")
    least, most = (beta * free.copies_below(limit, drawn) for limit in limits)
    bounds = (least, most, beta * free.time_below(low, drawn), beta * gated.time_below(high, drawn))
    with np.errstate(divide="ignore", invalid="ignore"):
        over = [interval(cost / bound, layout) for bound in bounds]
    return CostRow(setting, rule, float(beta[0]), float(least[0]), measured, float(most[0]), *over)


# --- runs -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Study:
    pairs: Sequence[str]
    starts: int  # for each pair
    rates: Sequence[int]  # bit rates of the video
    folder: Path  # where the campaigns go

    def population(self, label: str, scheme: dict[str, Any], *, qlog: bool = False) -> Population:
        """Plays every pair from every start at every bit rate."""
        plays: dict[tuple[str, int], list[Play]] = {}
        for rate in self.rates:
            player = {"bitrate_bps": rate, "duration_s": PLAY_S, "chunk_bytes": rate // 8, "verify": False}
            data: dict[str, Any] = {"name": "cost", "arena": "sim", "pairs": list(self.pairs), "seeds": self.starts}
            data |= {"schemes": [{"scheme": SCHEME, "label": label, **scheme}], "player": player, "time_limit_s": 60}
            data |= {"link_logs": False, "qlog": qlog}
            document = YamlDocument(Path("cost"), data, {})
            experiment = parse(document, Experiment)
            plan = Plan(experiment, resolve(experiment, document))
            with whole_campaign(plan, Place(out=self.folder / f"{label}-{rate}")) as campaign:
                for spec, run in zip(plan.specs, campaign.runs, strict=True):
                    place = campaign.folder / "runs" / spec.run_id
                    plays.setdefault((run.pair, run.seed), []).append(_play(run, place, qlog=qlog))
        return Population([_together(of_place) for of_place in plays.values()])

    def rows(self, settings: Sequence[Setting]) -> Iterator[CostRow]:
        open_gate = {"qoe_control": "off"}
        free = {rule: self.population(f"{rule}-open", {"copy_rule": rule} | open_gate, qlog=True) for rule in RULES}
        ordered = free[PAPERS_RULE].ordered
        for x, y in settings:
            low, high = round(th(ordered, x), 3), round(th(ordered, y), 3)
            for rule in RULES:
                scheme = {"copy_rule": rule, "t_th1_ms": low, "t_th2_ms": high}
                gated = self.population(f"{rule}-{x:g}-{y:g}", scheme)
                yield _row((x, y), rule, (low, high), free[rule], gated)


def _play(run: Run, place: Path, *, qlog: bool) -> Play:
    sums = REINJECTION_COST.sums([run])
    return Play(
        run, float(sums.top[0]), float(sums.bottom[0]), samples_of(run, place), list(_copies(place)) if qlog else []
    )


def _together(plays: Sequence[Play]) -> Play:
    return Play(
        plays[0].run,
        sum(play.reinjected for play in plays),
        sum(play.others for play in plays),
        [left for play in plays for left in play.left_ms],
        [copy for play in plays for copy in play.copies],
    )


def _copies(place: Path) -> Iterator[Copy]:
    """The copies in the server's qlog."""
    left = at = 0.0
    for record in events(next((place / "qlog").glob("*_server.sqlog"))):
        data = record["data"]
        if record["name"] == "xlink:qoe_received":
            left = 1000 * min(data["cached_frames"] / data["fps"], data["cached_bytes"] * 8 / data["bps"])
            at = record["time"]
        elif record["name"] == "xlink:reinjection":
            yield Copy(data["length"], max(0.0, left - (record["time"] - at)))
