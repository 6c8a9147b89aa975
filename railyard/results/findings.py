"""What came out of a comparison, in sentences that are computed from its figures.

Per pair three questions: do both paths do better than the primary one alone, does re-injection do better than plain
multipath, and would the other path alone have done as well? Each is answered by the time stalled, and by the highest
quantile of the RCT that the smallest sample carries. Two figures are alike unless they differ by more than ALIKE of
the larger one and by more than the floor: one play a scheme tells no smaller difference. Where a figure is a lower
bound the answer may be open, and the sentence says so.

Schemes are compared over the same seeds: a seed whose run is void under one of them is left out for all. A scheme of
which a program failed, or every run is void, is named and not compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from railyard.base.errors import UserError
from railyard.base.intervals import LEVEL, TOO_SMALL
from railyard.base.words import counted
from railyard.results.aggregate import Cell, Quantile
from railyard.results.records import Run
from railyard.traces.trace import Trace, read_trace

MULTIPATH = ("mptcp", "vanilla-mp", "vanilla-mp-2021", "xlink", "xlink-lean", "xlink+")
ALIKE = 0.1
STALL_FLOOR_S = 0.1
RCT_FLOOR_S = 0.05
TAILS = ((0.99, "p99"), (0.95, "p95"), (1.0, "longest RCT"))
NEVER = Quantile(math.inf, True)


@dataclass(frozen=True)
class Findings:
    headline: str
    of_pair: dict[str, list[str]]


def carries(q: float, count: int) -> bool:
    """Whether so many values carry a nearest-rank quantile: qⁿ ≤ 2.5 %, the rule of docs/reference/statistics.md for
    values that are independent. With fewer the largest of them may be below the true quantile."""
    return q == 1.0 or max(q, 1 - q) ** count <= (1 - LEVEL) / 2


def shown_text(cell: Cell, q: float) -> str:
    """The quantile in seconds as a table has it."""
    if not cell.chunks:
        return "–"
    found = shown(cell, q)
    return TOO_SMALL if found is None else str(found)


def shown(cell: Cell, q: float) -> Quantile | None:
    """The quantile of the RCT, if the cell's chunks carry it."""
    return cell.rct(q) if carries(q, len(cell.chunks)) else None


def replayed_traces(run: Run) -> dict[str, tuple[Trace, Trace]]:
    """The run's traces as (uplink, downlink) by path; none where the files are not what was replayed."""
    traces: dict[str, tuple[Trace, Trace]] = {}
    for path in run.config["paths"]:
        try:
            up, down = read_trace(path["up"]), read_trace(path["down"])
        except UserError:
            return {}
        if (up.sha256, down.sha256) != (path["up_sha256"], path["down_sha256"]):
            return {}
        traces[path["name"]] = (up, down)
    return traces


def _scheme(cell: Cell) -> str:
    return str(cell.runs[0].config["scheme"])


def stalled(cell: Cell) -> Quantile:
    """Mean time a play that the picture stood still; of a play that failed, all of its time limit but what it played. A
    play that was cut might have stalled for longer."""
    times = [run.rebuffer_counted_s for run in cell.runs]
    return Quantile(sum(times) / len(times), any(run.outcome != "complete" for run in cell.runs))


def _s(value: Quantile, digits: int = 1) -> str:
    return f"{'≥ ' if value.at_least else ''}{value.value:.{digits}f} s"


def _and(labels: Sequence[str]) -> str:
    return " and ".join([", ".join(labels[:-1]), labels[-1]]) if len(labels) > 1 else "".join(labels)


def _alike(one: float, other: float, floor_s: float) -> bool:
    return abs(one - other) <= max(floor_s, ALIKE * max(one, other))


def _order(mine: Quantile, theirs: Quantile, floor_s: float) -> int | None:
    """-1 where mine is smaller, 1 where it is larger, 0 where they are alike, None where a lower bound leaves it
    open."""
    if _alike(mine.value, theirs.value, floor_s):
        return None if mine.at_least or theirs.at_least else 0
    smaller = min(mine, theirs, key=lambda one: one.value)
    return None if smaller.at_least else -1 if mine is smaller else 1


def _cut_alike(cell: Cell) -> bool:
    return all(run.outcome in ("complete", "time_limit") for run in cell.runs)


def _order_of_stalls(mine: Cell, theirs: Cell) -> int | None:
    """The same of the time stalled. Plays that the time limit cut were cut after the same time, so what they stalled
    until then compares; those whose connection was lost were not."""
    one, other = stalled(mine), stalled(theirs)
    if one.at_least and other.at_least and _cut_alike(mine) and _cut_alike(theirs):
        one, other = Quantile(one.value), Quantile(other.value)
    return _order(one, other, STALL_FLOOR_S)


@dataclass(frozen=True)
class _Measure:
    """How the cells of one pair are compared."""

    tail: float
    tail_name: str

    @classmethod
    def of(cls, row: Sequence[Cell]) -> _Measure:
        fewest = min((len(cell.chunks) for cell in row if cell.chunks), default=0)
        return cls(*next((q, name) for q, name in TAILS if carries(q, fewest)))

    def order(self, mine: Cell, theirs: Cell) -> int | None:
        """By the stalls; where they are alike, by the tail."""
        of_stalls, of_tails = self.orders(mine, theirs)
        return of_tails if of_stalls == 0 else of_stalls

    def orders(self, mine: Cell, theirs: Cell) -> tuple[int | None, int | None]:
        one, other = mine.rct(self.tail), theirs.rct(self.tail)
        of_tails = _order(one, other, RCT_FLOOR_S) if one is not None and other is not None else None
        return _order_of_stalls(mine, theirs), of_tails

    def words(self, cell: Cell) -> str:
        tail = cell.rct(self.tail)
        return f"{_s(stalled(cell))} stalled, " + (
            "no request sent" if tail is None else f"{self.tail_name} {_s(tail, 2)}"
        )


def _multipath(row: Sequence[Cell]) -> list[Cell]:
    return [cell for cell in row if _scheme(cell) in MULTIPATH]


def _primary(row: Sequence[Cell]) -> Cell | None:
    return next((cell for cell in row if cell.label == "sp"), None)


def _against_single(row: list[Cell], measure: _Measure) -> list[str]:
    single, both = _primary(row), _multipath(row)
    if single is None or not both:
        return []
    orders = {cell.label: measure.order(cell, single) for cell in both}
    better, worse, unclear = ([label for label, order in orders.items() if order == way] for way in (-1, 1, None))
    if len(better) == len(both):
        verdict = "multipath helps"
    elif len(unclear) == len(both):
        verdict = "whether multipath helps is open, because the time limit ended plays"
    else:
        none = "multipath is not seen to help" if unclear else "multipath does not help"
        verdict = f"multipath helps with {', '.join(better)} only" if better else none
        verdict += f", and does harm with {', '.join(worse)}" if worse else ""
        verdict += f"; with {', '.join(unclear)} this is open, because the time limit ended plays" if unclear else ""
    figures = "; ".join(f"{cell.label}: {measure.words(cell)}" for cell in both)
    primary = single.runs[0].config["primary"]
    return [f"Against single path on {primary} ({measure.words(single)}) {verdict}. {figures}."]


def _reinjection_verdict(of_stalls: int | None, of_tails: int | None, cost: str) -> str:
    if of_stalls is None and of_tails is None:
        return f"may help or not{cost}, because the time limit ended plays"
    if of_stalls is None or of_tails is None:
        known, what, rest = (of_stalls, "stalls", "tail") if of_tails is None else (of_tails, "tail", "stalls")
        verb = {-1: "shortens", 0: "does not change", 1: "lengthens"}[known or 0]
        return f"{verb} the {what}{cost}; its effect on the {rest} is open, because the time limit ended plays"
    words = {
        (0, 0): "makes no difference beyond 10 %",
        (-1, 1): "shortens the stalls and lengthens the tail",
        (1, -1): "shortens the tail and lengthens the stalls",
    }
    return words.get((of_stalls, of_tails), "helps" if min(of_stalls, of_tails) < 0 else "does harm") + cost


def _of_reinjection(row: list[Cell], measure: _Measure) -> list[str]:
    by_scheme = {_scheme(cell): cell for cell in row if cell.label == _scheme(cell)}
    xlink, plain = by_scheme.get("xlink"), by_scheme.get("vanilla-mp")
    if xlink is None or plain is None:
        return []
    cost = f", for {xlink.redundancy * 100:.1f} % more bytes" if xlink.redundancy is not None else ""
    verdict = _reinjection_verdict(*measure.orders(xlink, plain), cost)
    return [f"Re-injection {verdict}: xlink {measure.words(xlink)}; vanilla-mp, without it, {measure.words(plain)}."]


def _of_other_paths(row: list[Cell], measure: _Measure) -> list[str]:
    both = sorted(_multipath(row), key=lambda cell: (stalled(cell).value, (cell.rct(measure.tail) or NEVER).value))
    others = [cell for cell in row if _scheme(cell) == "sp" and cell.label != "sp"]
    return [_of_other_path(other, both, _primary(row), measure) for other in others if both]


def _of_other_path(other: Cell, both: list[Cell], primary: Cell | None, measure: _Measure) -> str:
    """Against the scheme that leaves the other path the least praise. `both`: the best scheme first."""
    figures = f"Single path on {other.runs[0].config['primary']} alone ({measure.words(other)})"
    orders = {cell.label: measure.order(other, cell) for cell in both}
    by_order = {order: label for label, order in reversed(orders.items())}  # of equals the first stays
    if 1 in by_order:
        sentence = f"{figures} does worse than {by_order[1]}"
        against = next(cell for cell in both if cell.label == by_order[1])
        if primary is not None and measure.order(primary, against) == 1:
            return f"{sentence}: neither path is enough by itself."
        return f"{sentence}."
    if None in by_order:
        return f"{figures} and {by_order[None]}: which one is better is open, because the time limit ended plays."
    if 0 in by_order:
        return f"{figures} does as well as {by_order[0]}: multipath helps only if the good path is not known."
    return f"{figures} does better than every multipath scheme: here the second path costs time."


def _of_starts(row: list[Cell]) -> list[str]:
    """Start-up is no stall, so first frames are told where they differ."""
    known = [(cell.label, cell.first_frame) for cell in row]
    ordered = sorted(((label, one) for label, one in known if one is not None), key=lambda pair: pair[1].value)
    if not ordered or _alike(ordered[0][1].value, ordered[-1][1].value, STALL_FLOOR_S):
        return []
    (first, soonest), (last, latest) = ordered[0], ordered[-1]
    return [f"First frame after {_s(soonest, 2)} ({first}) to {_s(latest, 2)} ({last}); waiting for it is not a stall."]


def _place(runs: Sequence[Run]) -> str:
    """Where runs that a rule placed start, and why there; empty where the traces are not on this machine."""
    config, traces = runs[0].config, replayed_traces(runs[0])
    if not traces:
        return ""
    duration_s, limit_s, primary = config["player"]["duration_s"], config["time_limit_s"], str(config["primary"])
    trace = traces[primary][1]
    length_ms = round(duration_s * 1000)
    offsets = list(dict.fromkeys(int(run.config["start_offset_ms"]) for run in runs))
    rates = [float(trace.rate_mbps(length_ms, duration_ms=length_ms, start_offset_ms=offset)[0]) for offset in offsets]
    shortest_s = min(one.period_ms for pair in traces.values() for one in pair) / 1000
    but = f", excluding the last {limit_s:g} s" if shortest_s > limit_s else ""
    return (
        f"Starts at {_and([f'{offset / 1000:.1f}' for offset in offsets])} s, where {primary}, the primary path, has "
        f"the least capacity over {duration_s:g} s (worst_of_primary{but}): "
        f"{_and([f'{rate:.2f}' for rate in rates])} Mbps; over its whole trace {trace.mean_mbps:.2f} Mbps. "
        f"So single path on {primary} is shown at its worst."
    )


def _placed(row: list[Cell], rule: object) -> list[str]:
    """One sentence for each primary path. A single path scheme runs on each path in turn; the others name the primary
    one."""
    if rule != "worst_of_primary":
        return []
    runs = [run for cell in row if cell.label == "sp" or _scheme(cell) in MULTIPATH for run in cell.runs]
    by_primary: dict[str, list[Run]] = {}
    for run in runs:
        by_primary.setdefault(str(run.config["primary"]), []).append(run)
    return [sentence for of_primary in by_primary.values() if (sentence := _place(of_primary))]


def _headline(rows: dict[str, list[Cell]], tried: Sequence[str]) -> str:
    """Over the schemes that are compared on every pair. `tried`: all that had a run."""
    labels = dict.fromkeys(cell.label for row in rows.values() for cell in row)
    by_label = {label: [cell for row in rows.values() for cell in row if cell.label == label] for label in labels}
    common = {label: cells for label, cells in by_label.items() if len(cells) == len(rows)}
    absent = [label for label in tried if label not in common]
    if len(common) < 2:
        return ""
    pooled = {
        label: Cell("", label, [run for cell in cells for run in cell.runs], []) for label, cells in common.items()
    }
    plays = len(next(iter(pooled.values())).runs)
    totals = {label: Quantile(stalled(cell).value * plays, stalled(cell).at_least) for label, cell in pooled.items()}
    duration_s = next(iter(pooled.values())).runs[0].config.get("player", {}).get("duration_s")
    over = f"{counted(plays, 'play')}{f' of {duration_s:g} s' if duration_s else ''} for each scheme"
    left_out = f" Not compared on every pair: {', '.join(absent)}." if absent else ""
    if all(total.value <= STALL_FLOOR_S and not total.at_least for total in totals.values()):
        return f"No scheme stalled, in {over}: at these places multipath has no stall to prevent.{left_out}"
    ordered = sorted(totals, key=lambda label: totals[label].value)
    orders = {label: _order_of_stalls(pooled[label], pooled[ordered[0]]) for label in ordered[1:]}
    least = [ordered[0], *(label for label, order in orders.items() if order == 0)]
    figures = f"Stalled in all: {', '.join(f'{label} {_s(totals[label])}' for label in ordered)}.{left_out}"
    if None in orders.values():
        return f"Which scheme stalled least is open, in {over}: the time limit ended plays. {figures}"
    if len(least) == len(ordered):
        return f"No scheme stalled for longer than another, in {over}. {figures}"
    until = ", up to the time limit" if totals[ordered[0]].at_least else ""
    return f"{' and '.join(least)} stalled least{until}, in {over}. {figures}"


def _compared(row: Sequence[Cell]) -> list[Cell]:
    """The cells that are compared, with the runs of the seeds that all of them have. No cell where there is none."""
    valid = [cell for cell in row if cell.runs and not cell.faulty]
    seeds = set.intersection(*({run.seed for run in cell.runs} for cell in valid)) if valid else set()
    kept = [replace(cell, runs=[run for run in cell.runs if run.seed in seeds]) for cell in valid]
    return kept if seeds and len(kept) > 1 and any(cell.chunks for cell in kept) else []


def _not_compared(all_cells: Sequence[Cell], row: Sequence[Cell]) -> list[str]:
    void = [cell.label for cell in all_cells if cell.void_runs and not cell.runs]
    faulty = [cell.label for cell in all_cells if cell.faulty]
    seeds = {run.seed for cell in all_cells for run in (*cell.runs, *cell.void_runs)}
    here = {run.seed for cell in row for run in cell.runs}
    return [
        *([f"Without a valid run, and not compared: {', '.join(void)}."] if void else []),
        *([f"A program failed, and not compared: {', '.join(faulty)}."] if faulty else []),
        *(
            [f"Compared over the {len(here)} of {len(seeds)} seeds whose runs are valid under each of these schemes."]
            if len(here) < len(seeds)
            else []
        ),
    ]


def find(cells: dict[str, list[Cell]], rule: object = None) -> Findings | None:
    """What came out, by pair; none where there is nothing to compare. `rule`: the experiment's start_offset_ms."""
    rows = {pair: kept for pair, row in cells.items() if (kept := _compared(row))}
    tried = dict.fromkeys(cell.label for row in cells.values() for cell in row if cell.runs or cell.void_runs)
    headline = _headline(rows, list(tried)) if rows else ""
    if not headline:
        return None
    of_pair = {}
    for pair, row in rows.items():
        measure = _Measure.of(row)
        of_pair[pair] = [
            *_placed(row, rule),
            *_against_single(row, measure),
            *_of_reinjection(row, measure),
            *_of_other_paths(row, measure),
            *_of_starts(row),
            *_not_compared(cells[pair], row),
        ]
    for pair, every in cells.items():
        if pair not in rows and any(cell.runs or cell.void_runs for cell in every):
            nothing = "Nothing is compared here: no two schemes have a valid run of the same seed."
            of_pair[pair] = [nothing, *_not_compared(every, every)]
    return Findings(headline, of_pair)
