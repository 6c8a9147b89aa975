"""Fig. 13: extreme mobility. Request completion time, median and maximum, of every scheme over every pair."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import plotly.graph_objects as go

from railyard.base.strips import in_strips
from railyard.base.style import GRID, scheme_styles
from railyard.experiment.model import NEEDS_KERNEL
from railyard.figures.rows import RCT_MAX, RCT_MEDIAN, REINJECTION_COST
from railyard.report.exhibit import Exhibit, PaperValue, Table
from railyard.results.aggregate import Cell, cells
from railyard.results.tables import Value
from railyard.stats import intervals, pooled
from railyard.stats.intervals import Interval
from railyard.stats.verdict import Verdict, above, both, of_parts
from railyard.studies.exhibits import verdicts
from railyard.studies.exhibits.frame import (
    Frame,
    columns,
    load_frame,
    player_settings,
    plot,
    scheme_of,
    styled,
    threshold_settings,
)
from railyard.studies.exhibits.spec import ExhibitSpec

FIVE = ("sp", "cm", "mptcp", "vanilla-mp", "xlink")
APART = ("xlink-lean", "xlink+")
WITHOUT_COPIES = ("mptcp", "vanilla-mp")
METRICS = {"median": 0.5, "maximum": 1.0}


@dataclass(frozen=True)
class Figures:
    """RCT of a scheme over a pair, s. With chunks that never completed it is a lower bound."""

    median: float
    maximum: float
    at_least: bool

    def of(self, metric: str) -> float:
        return self.median if metric == "median" else self.maximum


Results = dict[str, dict[str, Figures]]
"""Figures by pair and scheme."""


def results_of(frame: Frame) -> Results:
    results: Results = {}
    for pair, row in cells(frame.every).items():
        results[pair] = {cell.label: figures for cell in row if (figures := _figures(cell)) is not None}
    return results


def _figures(cell: Cell) -> Figures | None:
    median, most = cell.point(RCT_MEDIAN), cell.point(RCT_MAX)
    if median is None or most is None or cell.faulty:
        return None
    return Figures(median.value, most.value, median.at_least or most.at_least)


def pairs_with(results: Results, *labels: str) -> list[str]:
    return [pair for pair, row in results.items() if all(label in row for label in labels)]


def geometric_mean(results: Results, label: str, metric: str, pairs: Sequence[str]) -> Interval | None:
    logs = [[math.log(results[pair][label].of(metric))] for pair in pairs]
    interval = pooled.bootstrap(logs, pooled.mean)
    return interval.mapped(math.exp) if interval else None


def saving(results: Results, label: str, other: str, metric: str) -> Interval | None:
    """The difference of `label` below `other`, %: geometric mean of the pairs' ratios, with pairs resampled."""
    pairs = pairs_with(results, label, other)
    ratios = [[math.log(results[pair][label].of(metric) / results[pair][other].of(metric))] for pair in pairs]
    interval = pooled.bootstrap(ratios, pooled.mean)
    if interval is None:
        return None
    return interval.turned().mapped(lambda log: 100 * (1 - math.exp(-log)))


def counts(results: Results, label: str, other: str, metric: str, same: float) -> tuple[int, int, int]:
    """The numbers of pairs in which `label` is better than `other` by more than the share `same`, in which it is worse,
    and in which both have a figure."""
    pairs = pairs_with(results, label, other)
    ratios = [results[pair][label].of(metric) / results[pair][other].of(metric) for pair in pairs]
    return sum(ratio < 1 - same for ratio in ratios), sum(ratio > 1 + same for ratio in ratios), len(pairs)


def best_in(results: Results, metric: str, among: Sequence[str], same: float) -> dict[str, int]:
    """The number of pairs in which each scheme has the smallest figure. Schemes within the share `same` of it are
    equal."""
    won = dict.fromkeys(among, 0)
    for pair in pairs_with(results, *among):
        least = min(results[pair][label].of(metric) for label in among)
        for label in among:
            won[label] += results[pair][label].of(metric) <= least * (1 + same)
    return won


def best_of_five(results: Results, among: Sequence[str], same: float) -> tuple[Verdict, str, str]:
    """xlink against each of the others, both metrics. Returns the verdict, our figures and why."""
    others = [label for label in among if label != "xlink"]
    beaten: list[str] = []
    level: list[str] = []
    worse: list[str] = []
    said: list[str] = []
    for other in others:
        changes: list[str] = []
        for metric in METRICS:
            change = saving(results, "xlink", other, metric)
            if change is None:
                continue
            changes.append(f"{metric} {change.words('lower', 'higher', digits=0)}")
            name = f"{other} ({metric})"
            {True: beaten, None: level, False: worse}[above(change)].append(name)
        if changes:
            said.append(f"against {other} {', '.join(changes)}")
    total = len(pairs_with(results, *among))
    lowest = [f"{metric} in {best_in(results, metric, among, same)['xlink']}" for metric in METRICS]
    ours = "; ".join([*said, f"the lowest {' and '.join(lowest)} of {total} pairs"])
    if beaten and not level and not worse:
        return "holds", ours, "lower than every other scheme's beyond the 95 % intervals, in median and maximum"
    alike = f"vanilla-mp ({next(iter(METRICS))})" in level + worse
    cause = (
        ": requests that meet no outage are scheduled alike by both, and copies act on those that do" if alike else ""
    )
    word: Verdict
    if not worse:
        word = "partly" if beaten else "not decided"
        return word, ours, f"within the 95 % interval of {', '.join(level)}{cause}"
    return (
        "partly" if beaten else "does not hold",
        ours,
        f"not lower than {', '.join(worse)}, beyond the interval{cause}",
    )


def cm_no_answer(results: Results, same: float) -> tuple[Verdict, str, str]:
    """CM is no answer: it brings the maximum below SP's in half of the pairs at most, and XLINK beats it."""
    better, worse, total = counts(results, "cm", "sp", "maximum", same)
    against = {metric: saving(results, "xlink", "cm", metric) for metric in METRICS}
    ours = f"maximum below sp's in {better} and above it in {worse} of {total} pairs; " + "; ".join(
        f"xlink's {metric} {change.words('lower', 'higher', digits=0)}" for metric, change in against.items() if change
    )
    seldom = 2 * better <= total
    beaten = both(above(change) for change in against.values())
    why = [
        f"migration helps in {better} of {total} pairs: it waits for silence, probes, and starts with a new window",
        "xlink beats it beyond the interval in both figures" if beaten else "xlink does not beat it in both figures",
    ]
    if not worse:
        why.append("that it is worse than sp at times, as the paper saw, is not seen in the maximum here")
    return of_parts([seldom if total else None, beaten]), ours, "; ".join(why)


def mixed_without_copies(results: Results, same: float, many: float) -> tuple[Verdict, str, str]:
    """Multipath that copies nothing against SP: better in some cases, worse in many. A case is the median or the
    maximum over a pair; `many`: a share of them."""
    parts: dict[str, bool] = {}
    said: list[str] = []
    for label in WITHOUT_COPIES:
        of_each = [counts(results, label, "sp", metric, same) for metric in METRICS]
        better, worse, total = (sum(numbers) for numbers in zip(*of_each, strict=True))
        if not total:
            continue
        said.append(f"{label} better in {better} and worse in {worse} of {total} medians and maxima")
        parts |= {f"{label} is better in some": better > 0, f"{label} is worse in many": worse >= many * total}
    failed = [part for part, true in parts.items() if not true]
    because = f"not so here: {'; '.join(failed)}" if failed else "so it is with each of them"
    return of_parts(list(parts.values())), "; ".join(said), because


def _panel(figure: go.Figure, results: Results, labels: Sequence[str], metric: str, row: int) -> None:
    styles = scheme_styles(list(labels))
    place = {pair: index for index, pair in enumerate(results)}
    for number, label in enumerate(labels):
        aside = (number - (len(labels) - 1) / 2) * 0.7 / len(labels)  # side by side
        pairs = pairs_with(results, label)
        open_marks = [results[pair][label].at_least for pair in pairs]
        symbol = styles[label].symbol
        figure.add_scatter(
            x=[round(place[pair] + aside, 3) for pair in pairs],
            customdata=pairs,
            y=[results[pair][label].of(metric) for pair in pairs],
            mode="markers",
            name=label if label not in APART else f"{label} (ours)",
            legendgroup=label,
            showlegend=row == 1,
            marker={
                "symbol": [f"{symbol}-open" if is_open else symbol for is_open in open_marks],
                "size": 12 if label in ("xlink", *APART) else 10,
                "color": styles[label].colour,
                "line": {"width": 1.5, "color": styles[label].colour},
            },
            hovertemplate=f"%{{customdata}}, {label}: {metric} %{{y:.3f}} s<extra></extra>",
            row=row,
            col=1,
        )


def _figure(results: Results, labels: Sequence[str]) -> go.Figure:
    titles = ["median of the request completion times", "maximum (open marks: a lower bound, chunks unfinished)"]
    figure = in_strips(titles, 0.08)
    for row, metric in enumerate(METRICS, start=1):
        _panel(figure, results, labels, metric, row)
    styled(figure, 620, margin={"l": 60, "r": 14, "t": 78, "b": 90})
    ticks = [step * 10.0**power for power in range(-2, 3) for step in (1, 2, 5)]
    figure.update_yaxes(
        type="log", title_text="s (log scale)", tickvals=ticks, ticktext=[f"{tick:g}" for tick in ticks]
    )
    edges = [index + 0.5 for index in range(len(results) - 1)]
    figure.update_xaxes(
        tickvals=list(range(len(results))),
        ticktext=list(results),
        tickangle=-40,
        range=[-0.6, len(results) - 0.4],
        showgrid=False,
    )
    for edge in edges:
        figure.add_vline(x=edge, line={"color": GRID, "width": 1})
    figure.update_layout(legend={"y": 1.06})
    return figure


def _pair_table(results: Results, labels: Sequence[str]) -> Table:
    rows: list[list[Value]] = []
    for pair, row in results.items():
        line: list[Value] = [pair]
        for label in labels:
            cell = row.get(label)
            for metric in METRICS:
                line.append(None if cell is None else round(cell.of(metric), 3))
        rows.append(line)
    heads = columns("pair", *((f"{label}, {metric}", "s") for label in labels for metric in METRICS))
    unfinished = [f"{pair} {label}" for pair, row in results.items() for label, cell in row.items() if cell.at_least]
    note = f"A lower bound, for chunks that never completed: {', '.join(unfinished)}." if unfinished else ""
    return Table(title="Every pair", columns=heads, rows=rows, note=note)


def costs_of(frame: Frame) -> dict[str, float]:
    """The re-injection cost of each scheme over all pairs, %, without schemes whose transport does not report it."""
    points = {
        label: REINJECTION_COST.point([run for run in frame.runs if scheme_of(run) == label])
        for label in frame.labels()
    }
    return {label: round(100 * point.value, 1) for label, point in points.items() if point is not None}


def _summary_table(
    results: Results, labels: Sequence[str], five: Sequence[str], same: float, costs: dict[str, float]
) -> Table:
    common = pairs_with(results, *labels)
    rows: list[list[Value]] = []
    for label in labels:
        line: list[Value] = [label if label not in APART else f"{label} (ours, none of the five)"]
        for metric in METRICS:
            mean = geometric_mean(results, label, metric, common)
            line.append(mean.text(".3f") if mean else None)
            line.append(best_in(results, metric, five, same)[label] if label in five else None)
        rows.append([*line, costs.get(label)])
    heads = columns("scheme")
    for metric in METRICS:
        heads += columns((f"{metric}, geometric mean and interval", "s"), f"lowest {metric}")
    heads += columns((REINJECTION_COST.title, "%"))
    note = (
        f"Over the {len(common)} pairs that all schemes have figures for; “lowest” counts pairs, the paper's five only."
    )
    return Table(title="All pairs together", columns=heads, rows=rows, note=note)


def build(folder: Path, spec: ExhibitSpec) -> Exhibit:
    frame = load_frame(folder, spec)
    results = results_of(frame)
    present = [label for label in (*FIVE, *APART) if any(label in row for row in results.values())]
    five = [label for label in present if label in FIVE]
    apart = [label for label in present if label in APART]
    missing = [label for label in FIVE if label not in present]
    best_row, cm_row = spec.row("xlink-best-of-five"), spec.row("cm-no-answer")
    best, best_ours, best_why = best_of_five(results, five, best_row.numbers["same"] / 100)
    if missing and best == "holds":
        best, best_why = "partly", f"{best_why}; {', '.join(missing)} {NEEDS_KERNEL} and is not among them"
    cm, cm_ours, cm_why = cm_no_answer(results, cm_row.numbers["same"] / 100)
    mixed_row = spec.row("multipath-alone-is-mixed")
    mixed, mixed_ours, mixed_why = mixed_without_copies(
        results, mixed_row.numbers["same"] / 100, mixed_row.numbers["many"] / 100
    )
    if "mptcp" in missing and mixed == "holds":
        mixed, mixed_why = "partly", f"{mixed_why}; mptcp {NEEDS_KERNEL} and is not among them"
    fidelity = frame.fidelity()
    exact = (
        "exact, virtual time" if fidelity.exact else f"worst p99 lateness {(fidelity.worst_p99_us or 0) / 1000:.2f} ms"
    )
    return frame.exhibit(
        title="Extreme mobility: subway and high-speed rail",
        place="Fig. 13, section 7.3",
        summary=(f"{len(results)} pairs of traces, {len(five)} schemes. xlink, mean over the pairs: {best_ours}."),
        settings={
            **player_settings(frame.every[0]),
            **threshold_settings(frame.every),
            "schemes": ", ".join(five) + (f"; {', '.join(apart)} apart" if apart else ""),
            "left out": f"{', '.join(missing)}: {NEEDS_KERNEL}" if missing else "none",
            "sp": "on the primary path, wifi; on rail pairs it is a second LTE carrier",
            "runs": f"{fidelity.runs}, of which void in all their tries: {fidelity.void}; {exact}",
        },
        tables=[
            _summary_table(results, present, five, best_row.numbers["same"] / 100, costs_of(frame)),
            _pair_table(results, present),
        ],
        plots=[
            plot(
                "fig13-rct",
                "Request completion time by pair",
                _figure(results, present),
                f"Median and maximum request completion time of each scheme over {len(results)} pairs: "
                f"xlink is {best_why}.",
            )
        ],
        paper=[
            PaperValue(
                what="XLINK among the five",
                theirs="much smaller RCT in median and maximum, consistently",
                ours=best_ours,
                source="Fig. 13, section 7.3",
            ),
            PaperValue(
                what="connection migration",
                theirs="better than SP at times, at times even worse",
                ours=cm_ours,
                source="Fig. 13, section 7.3",
            ),
            PaperValue(
                what="MPTCP and vanilla multipath QUIC",
                theirs="better than SP in some cases, worse in many by head-of-line blocking",
                ours=mixed_ours,
                source="Fig. 13, section 7.3",
            ),
        ],
        claims=[
            verdicts.claim(best_row, ours=best_ours, verdict=best, because=best_why),
            verdicts.claim(cm_row, ours=cm_ours, verdict=cm, because=cm_why),
            verdicts.claim(mixed_row, ours=mixed_ours, verdict=mixed, because=mixed_why),
        ],
        confidence=f"{intervals.METHOD.replace('over runs', 'over pairs')}; schemes are paired by pair of traces",
    )
