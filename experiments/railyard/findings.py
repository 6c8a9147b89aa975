"""What came out of a comparison, in sentences that are computed from its figures.

Per pair three questions: do both paths do better than the primary one alone, does re-injection do better than plain
multipath, and would the other path alone have done as well? Each is answered by the time stalled, and by the highest
quantile of the RCT that the smallest sample carries. Two figures are alike unless they differ by more than ALIKE of
the larger one and by more than the floor: one play a scheme tells no smaller difference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from railyard.aggregate import Cell, Quantile
from railyard.errors import UserError
from railyard.records import Run
from railyard.traces.trace import Trace, read_trace

MULTIPATH = ("mptcp", "vanilla-mp", "xlink", "xlink+")
ALIKE = 0.1
STALL_FLOOR_S = 0.1
RCT_FLOOR_S = 0.05
TAILS = ((0.99, "p99"), (0.95, "p95"), (1.0, "longest RCT"))


@dataclass(frozen=True)
class Findings:
    headline: str
    of_pair: dict[str, list[str]]


def carries(q: float, count: int) -> bool:
    """Whether a nearest-rank quantile of so many values is another one than the largest of them."""
    return q == 1.0 or math.ceil(q * count) < count


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
    """Mean time a play that the picture stood still; all of it where no frame was ever shown. A play that was cut might
    have stalled for longer."""
    times = [run.ended_s if run.first_frame_s is None else run.rebuffer_time_s for run in cell.runs]
    return Quantile(sum(times) / len(times), any(run.outcome != "complete" for run in cell.runs))


def _s(value: Quantile, digits: int = 1) -> str:
    return f"{'≥ ' if value.at_least else ''}{value.value:.{digits}f} s"


def _order(mine: Quantile, theirs: Quantile, floor_s: float) -> int:
    """-1 where mine is smaller, 1 where it is larger, 0 where they are alike or a lower bound leaves it open."""
    difference = mine.value - theirs.value
    if abs(difference) <= max(floor_s, ALIKE * max(mine.value, theirs.value)):
        return 0
    smaller = mine if difference < 0 else theirs
    return 0 if smaller.at_least else -1 if difference < 0 else 1


def _order_of_stalls(mine: Cell, theirs: Cell) -> int:
    """The same of the time stalled. Plays that were cut were cut after the same time, so what they stalled until then
    compares."""
    one, other = stalled(mine), stalled(theirs)
    if one.at_least and other.at_least:
        one, other = Quantile(one.value), Quantile(other.value)
    return _order(one, other, STALL_FLOOR_S)


@dataclass(frozen=True)
class _Measure:
    """How the cells of one pair are compared."""

    tail: float
    tail_name: str

    @classmethod
    def of(cls, row: Sequence[Cell]) -> _Measure:
        fewest = min(len(cell.chunks) for cell in row)
        return cls(*next((q, name) for q, name in TAILS if carries(q, fewest)))

    def rct(self, cell: Cell) -> Quantile:
        return cell.rct(self.tail) or Quantile(math.inf, True)

    def order(self, mine: Cell, theirs: Cell) -> int:
        """By the stalls; where they are alike, by the tail."""
        return self.orders(mine, theirs)[0] or self.orders(mine, theirs)[1]

    def orders(self, mine: Cell, theirs: Cell) -> tuple[int, int]:
        return (
            _order_of_stalls(mine, theirs),
            _order(self.rct(mine), self.rct(theirs), RCT_FLOOR_S),
        )

    def words(self, cell: Cell) -> str:
        return f"{_s(stalled(cell))} stalled, {self.tail_name} {_s(self.rct(cell), 2)}"


def _against_single(row: list[Cell], measure: _Measure) -> list[str]:
    single = next((cell for cell in row if cell.label == "sp"), None)
    both = [cell for cell in row if _scheme(cell) in MULTIPATH]
    if single is None or not both:
        return []
    orders = {cell.label: measure.order(cell, single) for cell in both}
    better, worse = ([label for label, order in orders.items() if order == way] for way in (-1, 1))
    verdict = "multipath helps"
    if len(better) < len(both):
        verdict = f"multipath helps with {', '.join(better)} only" if better else "multipath does not help"
        verdict += f", and does harm with {', '.join(worse)}" if worse else ""
    figures = "; ".join(f"{cell.label}: {measure.words(cell)}" for cell in both)
    primary = single.runs[0].config["primary"]
    return [f"Against single path on {primary} ({measure.words(single)}) {verdict}. {figures}."]


def _of_reinjection(row: list[Cell], measure: _Measure) -> list[str]:
    by_scheme = {_scheme(cell): cell for cell in row if cell.label == _scheme(cell)}
    xlink, plain = by_scheme.get("xlink"), by_scheme.get("vanilla-mp")
    if xlink is None or plain is None:
        return []
    orders = measure.orders(xlink, plain)
    words = {
        (0, 0): "makes no difference beyond 10 %",
        (-1, 1): "shortens the stalls and lengthens the tail",
        (1, -1): "shortens the tail and lengthens the stalls",
    }.get(orders, "helps" if min(orders) < 0 else "does harm")
    cost = f", for {xlink.redundancy * 100:.1f} % more bytes" if xlink.redundancy is not None else ""
    return [
        f"Re-injection {words}{cost}: xlink {measure.words(xlink)}; vanilla-mp, without it, {measure.words(plain)}."
    ]


def _of_other_paths(row: list[Cell], measure: _Measure) -> list[str]:
    both = [cell for cell in row if _scheme(cell) in MULTIPATH]
    others = [cell for cell in row if _scheme(cell) == "sp" and cell.label != "sp"]
    if not both:
        return []
    best = min(both, key=lambda cell: (stalled(cell).value, measure.rct(cell).value))
    sentences = []
    for other in others:
        figures = f"Single path on {other.runs[0].config['primary']} alone ({measure.words(other)})"
        order = measure.order(other, best)
        sentences.append(
            {
                -1: f"{figures} does better than every multipath scheme: here a second path is a cost.",
                0: f"{figures} does as well as {best.label}: multipath pays only where nobody knows the good path.",
                1: f"{figures} does worse than {best.label}: neither path is enough by itself.",
            }[order]
        )
    return sentences


def place(run: Run, rule: object) -> str:
    """Where a run that a rule placed starts, and why there; empty where the traces are not on this machine."""
    traces = replayed_traces(run) if rule == "worst_of_primary" else {}
    if not traces:
        return ""
    config = run.config
    duration_s, offset_ms = config["player"]["duration_s"], config["start_offset_ms"]
    primary = str(config["primary"])
    trace = traces[primary][1]
    length_ms = round(duration_s * 1000)
    here = float(trace.rate_mbps(length_ms, duration_ms=length_ms, start_offset_ms=offset_ms)[0])
    return (
        f"Starts at {offset_ms / 1000:.1f} s, where {primary}, the primary path, has the least capacity over "
        f"{duration_s:g} s (worst_of_primary): {here:.2f} Mbps; over its whole trace {trace.mean_mbps:.2f} Mbps."
    )


def _placed(row: list[Cell], rule: object) -> list[str]:
    """One sentence for each place. A single path scheme runs on each path in turn; the others name the primary one."""
    sentences: list[str] = []
    for cell in row:
        if cell.label == "sp" or _scheme(cell) in MULTIPATH:
            sentences += [place(run, rule) for run in cell.runs]
    return [sentence for sentence in dict.fromkeys(sentences) if sentence]


def _headline(rows: dict[str, list[Cell]]) -> str:
    labels = [cell.label for cell in next(iter(rows.values()))]
    common = [label for label in labels if all(label in [cell.label for cell in row] for row in rows.values())]
    totals = {}
    for label in common:
        cells = [cell for row in rows.values() for cell in row if cell.label == label]
        each = [(stalled(cell), len(cell.runs)) for cell in cells]
        totals[label] = Quantile(sum(one.value * runs for one, runs in each), any(one.at_least for one, _ in each))
    if len(totals) < 2:
        return ""
    plays = {sum(len(cell.runs) for row in rows.values() for cell in row if cell.label == label) for label in common}
    count = f"{min(plays)}" if len(plays) == 1 else f"{min(plays)} to {max(plays)}"
    duration_s = next(iter(rows.values()))[0].runs[0].config.get("player", {}).get("duration_s")
    length = f" of {duration_s:g} s" if duration_s else ""
    over = f"{count} {'play' if count == '1' else 'plays'}{length} a scheme"
    if max(total.value for total in totals.values()) <= STALL_FLOOR_S:
        return f"No scheme stalled, in {over}: at these places multipath has no stall to prevent."
    ordered = sorted(totals, key=lambda label: totals[label].value)
    first = totals[ordered[0]].value
    least = [label for label in ordered if _order(Quantile(totals[label].value), Quantile(first), STALL_FLOOR_S) == 0]
    figures = ", ".join(f"{label} {_s(totals[label])}" for label in ordered)
    if len(least) == len(ordered):
        return f"No scheme stalled for longer than another, in {over}. Stalled in all: {figures}."
    return f"{' and '.join(least)} stalled least, in {over}. Stalled in all: {figures}."


def find(cells: dict[str, list[Cell]], rule: object = None) -> Findings | None:
    """What came out, by pair; none where there is nothing to compare. `rule`: the experiment's start_offset_ms."""
    rows = {pair: [cell for cell in row if cell.runs and cell.chunks] for pair, row in cells.items()}
    rows = {pair: row for pair, row in rows.items() if len(row) > 1}
    headline = _headline(rows) if rows else ""
    if not headline:
        return None
    of_pair = {}
    for pair, row in rows.items():
        measure = _Measure.of(row)
        absent = [cell.label for cell in cells[pair] if cell.void_runs and not cell.runs]
        of_pair[pair] = [
            *_placed(row, rule),
            *_against_single(row, measure),
            *_of_reinjection(row, measure),
            *_of_other_paths(row, measure),
            *([f"Without a valid run, and not compared: {', '.join(absent)}."] if absent else []),
        ]
    return Findings(headline, of_pair)
