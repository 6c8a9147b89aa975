"""Runs the evaluation over recorded pairs and makes the tables of docs/results/evaluation.md.

The scheduler `clairvoyant` is a reference and no scheme: it has its own tables, between the oracle and xlink+.
`sp:best` is the better single path of each pair, chosen for each figure separately (docs/reference/statistics.md).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from railyard.base.page import Block, Table
from railyard.base.paths import RESULTS_DIR
from railyard.base.style import scheme_styles
from railyard.figures import rows
from railyard.figures.figure import Figure, Quantile
from railyard.results import bounds, differences, shortage
from railyard.results.differences import ALL, BEST, Difference
from railyard.results.failures import failures
from railyard.results.pending import Place, Plan, whole_campaign
from railyard.results.records import Run
from railyard.results.shortage import Shortage
from railyard.run.resolve import resolve
from railyard.stats import intervals, quantiles
from railyard.stats.bootstrap import FEWEST, Layout, Reals
from railyard.stats.intervals import Interval
from railyard.stats.statistics import nearest_rank
from railyard.studies import thresholds
from railyard.studies.claims import Compared, Comparisons
from railyard.studies.study import changed

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

SINGLE = "sp"
OURS = "xlink+"
CLAIRVOYANT = "clairvoyant"  # knows the links' future: a reference that is not compared as a scheme
EITHER_SIDE = 0.02  # a difference to sp:best that still counts as no worse

MEDIAN, P95, P99 = rows.RCT_MEDIAN, rows.RCT_P95, rows.RCT_P99
FRAME_P99 = Figure("first_frame_p99", "first frame p99", "s", Quantile(rows.first_frames, 0.99))
COLUMNS = (MEDIAN, P95, rows.REBUFFER_RATE, rows.REDUNDANCY, rows.FIRST_FRAME, P99)
HEADLINES = (MEDIAN, P95, rows.REBUFFER_RATE, rows.FIRST_FRAME, P99)
REFERENCES = (
    "sp",
    BEST,
    "vanilla-mp",
    "vanilla-mp raced",
    "redundant",
    "redundant raced",
    "xlink",
    "xlink raced",
    "xlink-lean",
    "xlink-lean raced",
    "xlink-lean passing",
)
BY_PAIR = ("sp", BEST, "vanilla-mp", "redundant raced", "xlink", "xlink-lean raced", "xlink+")
"""Columns of a table by pair, if a campaign has all of them."""
CHOSEN_ON = ("subway_nyc_a", "hsr_0544", "hsr_1271", "hsr_1984", "walk_sbu_7_5", "drive_me_0528", "leo_me_08")
"""The half of the pairs on which constants of xlink+ were chosen: docs/explanation/xlink-plus.md."""
SUBSETS: dict[str, Callable[[str], bool]] = {
    "all pairs": lambda _: True,
    "constants chosen on": lambda pair: pair in CHOSEN_ON,
    "checked on": lambda pair: pair not in CHOSEN_ON,
    "without hsr": lambda pair: not pair.startswith("hsr_"),
}
COLLECTIONS: dict[str, Callable[[str], bool]] = {
    "walks": lambda pair: pair.startswith("walk_"),
    "Maine": lambda pair: pair.startswith("maine_"),
    "5G": lambda pair: "_5g_" in pair,
}
"""Further subsets, if a campaign has enough pairs of one for an interval."""
RESTORED = "_restored"
"""The suffix of names of pairs with restored silences."""
CLAIMS = (
    ("xlink", "sp"),
    ("xlink", BEST),
    ("xlink", "vanilla-mp"),
    ("xlink", "redundant"),
    ("xlink+", "sp"),
    ("xlink+", BEST),
    ("xlink+", "vanilla-mp"),
    ("xlink+", "redundant"),
    ("xlink+", "xlink"),
    ("xlink+", "xlink-lean raced"),
)


Shortages = list[tuple[str, Shortage | None]]
"""Shortages with the titles of their figures. A title may occur several times."""

_KEPT: dict[int, Sequence[Run]] = {}
"""The lists of runs with cached values, by their id(). This keeps them alive, so no other list gets the same id()."""
_BEST: dict[tuple[int, str], list[Run]] = {}
_LEVELS: dict[tuple[int, str, str, str], Interval | None] = {}


def runs_of(runs: Sequence[Run], label: str, figure: Figure, pair: str = ALL) -> list[Run]:
    """The runs of a scheme or of sp:best, on one pair or on all."""
    if label == BEST and (id(runs), figure.name) not in _BEST:
        _KEPT[id(runs)] = runs
        _BEST[id(runs), figure.name] = differences.better_path(runs, figure)
    of_scheme = _BEST[id(runs), figure.name] if label == BEST else [run for run in runs if run.label == label]
    return [run for run in of_scheme if pair in (ALL, run.pair)]


def level(figure: Figure, runs: Sequence[Run], label: str, pair: str = ALL) -> Interval | None:
    """The interval of a scheme's figure on one pair or on all. Cached by id(runs)."""
    key = (id(runs), figure.name, label, pair)
    if key not in _LEVELS:
        _KEPT[id(runs)] = runs
        own = runs_of(runs, label, figure, pair)
        _LEVELS[key] = figure.level(own, differences.layout_of(own).within())
    return _LEVELS[key]


def value(figure: Figure, runs: Sequence[Run], label: str, pair: str = ALL) -> float:
    interval = level(figure, runs, label, pair)
    return interval.value if interval else float("nan")


def value_words(figure: Figure, runs: Sequence[Run], label: str, pair: str) -> str:
    """The value on a pair, with ≥ if it includes requests that never completed."""
    interval = level(figure, runs, label, pair)
    return "–" if interval is None else f"{interval.bound}{interval.value:.2f}"


def labels_of(runs: Sequence[Run]) -> list[str]:
    """sp on the primary path, sp:best, and all schemes except for other single paths and the clairvoyant one."""
    labels = [label for label in dict.fromkeys(run.label for run in runs) if label != CLAIRVOYANT]
    single = differences.single_paths(runs)
    best = [BEST] if len(single) > 1 else []
    return [*(label for label in labels if label == SINGLE), *best, *(name for name in labels if name not in single)]


def cell(figure: Figure, runs: Sequence[Run], short: Shortages) -> str:
    """The cell of a table. If it is "n too small", adds the reason to `short`."""
    interval = figure.level(runs, differences.layout_of(runs))
    short.append((figure.title, differences.shortage_of(runs, figure, interval)))
    return level_cell(figure, interval)


def level_cell(figure: Figure, interval: Interval | None) -> str:
    if figure.is_relative:
        return differences.level_words(interval)
    return differences.level_words(interval, ".2f", 100.0)


def efficiency(runs: Sequence[Run]) -> str:
    """The efficiency in percent, with ≤ if it includes requests that never completed."""
    point = rows.EFFICIENCY.point(runs)
    return "–" if point is None else replace(point, value=100 * point.value).text(".0f")


def oracle_median(runs: Sequence[Run]) -> float:
    return nearest_rank(sorted(c.oracle_s for run in runs for c in run.chunks if c.oracle_s is not None), 0.5)


def shortages(few_units: Shortages) -> list[Block]:
    """The note below a table: why figures are "n too small", each for the scheme that lacks the most."""
    few = shortage.note(shortage.gather(few_units))
    return [few] if few else []


def schemes(runs: Sequence[Run]) -> Iterator[Block]:
    """A table with a row for each scheme, over all pairs."""
    known = [CLAIRVOYANT] if any(run.label == CLAIRVOYANT for run in runs) else []
    short: Shortages = []
    lines = []
    for label in [*labels_of(runs), *known]:
        cells = [cell(figure, runs_of(runs, label, figure), short) for figure in COLUMNS]
        own = runs_of(runs, label, MEDIAN)
        lines.append([label, *cells, efficiency(own), f"{sum(run.failed for run in own)}"])
    heads = ["scheme", *(figure.title for figure in COLUMNS), "eff. %", "failed"]
    yield Table(heads=heads, align="l" + "l" * len(COLUMNS) + "rr", rows=lines)
    yield from shortages(short)


def failed(runs: Sequence[Run]) -> Iterator[Block]:
    """A table with a row for each scheme, and the plays that failed without an excuse. A sentence if none failed."""
    if not any(run.failed for run in runs):
        yield "No play failed."
        return
    heads = ["scheme", "plays", "failed", "share, %", "no connection", "connection lost", "without excuse"]
    lines: list[list[str]] = []
    unexcused: list[Run] = []
    for label in dict.fromkeys(run.label for run in runs):
        of_scheme = failures([run for run in runs if run.label == label])
        low, high = of_scheme.share
        share = f"{100 * len(of_scheme.failed) / of_scheme.plays:.1f} [{100 * low:.1f}, {100 * high:.1f}]"
        reasons = (of_scheme.count("connect_failed"), of_scheme.count("connection_lost"), len(of_scheme.without_excuse))
        lines.append([label, f"{of_scheme.plays}", f"{len(of_scheme.failed)}", share, *map(str, reasons)])
        unexcused += of_scheme.without_excuse
    yield Table(heads=heads, align="lrrlrrr", rows=lines)
    if unexcused:
        yield "\n".join(
            f"- {run.run_id}: {run.outcome}, start offset {run.config['start_offset_ms'] / 1000:g} s"
            for run in unexcused
        )


def tail_pair(runs: Sequence[Run], figure: Figure) -> str:
    """The pair with the most values at or beyond a quantile of all pairs."""
    limit = figure.point(runs)
    beyond = dict.fromkeys(pairs_of(runs), 0)
    for run in runs:
        beyond[run.pair] += sum(limit is not None and rct_s >= limit.value for rct_s, _ in rows.rcts(run))
    return max(beyond, key=beyond.__getitem__)


def samples(runs: Sequence[Run]) -> Iterator[Block]:
    """The effective samples of the p99s, and how many pairs like these would carry them, also without the pair that
    makes most of the tail of xlink+."""
    needed = math.ceil(math.log(0.025) / math.log(0.99))  # in independent values: docs/reference/statistics.md
    named = tail_pair(runs_of(runs, OURS, P99), P99)
    heads = ["pairs", "scheme", "p99 of", "value", "values", "independent values", "pairs that would carry it"]
    cells: list[list[str]] = []
    for where, some in (("all", runs), (f"without {named}", [run for run in runs if run.pair != named])):
        pairs = len(pairs_of(some))
        for label in (OURS, BEST):
            for title, figure, sample in (
                ("RCT", P99, rows.rcts),
                ("first frame", FRAME_P99, rows.first_frames),
            ):
                own = differences.better_path(some, figure) if label == BEST else runs_of(some, label, figure)
                drawn = Quantile(sample, 0.99).sample(own, differences.layout_of(own))
                point = figure.point(own)
                at = point.value if point else math.nan
                count = quantiles.carrying_count(drawn, at)
                enough = "these" if count >= needed else f"{math.ceil(pairs * needed / count)}" if count > 0 else "–"
                cells.append([where, label, title, f"{at:.2f}", f"{drawn.count}", f"{count:.0f}", enough])
    yield "What the p99s rest on:"
    yield Table(heads=heads, align="lllrrrr", rows=cells)


def by_pair(runs: Sequence[Run]) -> Iterator[Block]:
    """A table with a row for each pair: median / p95 of the RCT."""
    labels = labels_of(runs)
    labels = list(BY_PAIR) if set(BY_PAIR) <= set(labels) else labels
    lines = []
    for pair in pairs_of(runs):
        cells = [" / ".join(value_words(figure, runs, label, pair) for figure in (MEDIAN, P95)) for label in labels]
        ours = [run for run in runs if (run.pair, run.label) == (pair, OURS if OURS in labels else labels[-1])]
        lines.append([pair, f"{oracle_median(ours):.2f}", *cells])
    yield "Pair by pair, median / p95 of the RCT, s:"
    yield Table(heads=["pair", "oracle", *labels], align="lr" + "r" * len(labels), rows=lines)


def against_best(runs: Sequence[Run]) -> Iterator[Block]:
    """Every scheme against the better single path of each pair."""
    labels = [label for label in labels_of(runs) if label not in (SINGLE, BEST)]
    pairs = pairs_of(runs)
    comparisons = differences.differences(runs, [(label, BEST) for label in labels], (MEDIAN, P95))
    above = f"more than {100 * EITHER_SIDE:g} % above it"
    heads = ["scheme", "median worse on", "RCT median", "verdict", "p95 worse on", "RCT p95", "verdict"]
    lines: list[list[str]] = []
    for label in labels:
        cells: list[str] = []
        for figure in (MEDIAN, P95):
            worse = sum(
                value(figure, runs, label, pair) > (1 + EITHER_SIDE) * value(figure, runs, BEST, pair) for pair in pairs
            )
            one = next(one for one in comparisons if (one.label, one.figure.name) == (label, figure.name))
            cells += [f"{worse} of {len(pairs)}", one.words, one.verdict]
        lines.append([label, *cells])
    yield f"Against the better single path; worse on: pairs whose figure is {above}:"
    yield Table(heads=heads, align="lrllrll", rows=lines)
    yield from shortages([*differences.shortages(runs, comparisons).items()])


def pairs_of(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(run.pair for run in runs))


def best_other(runs: Sequence[Run], figure: Figure, pair: str) -> str:
    """The scheme with the lowest figure, except for xlink+ and lower bounds."""
    others = [label for label in labels_of(runs) if label not in (OURS, SINGLE, BEST)]
    return min(others, key=lambda label: value(figure, runs, label, pair))


# --- the headlines ----------------------------------------------------------------------------------------------------


def subsets_of(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """The runs of each subset of the pairs, by title. Leaves out empty subsets and those that are all pairs."""
    every = SUBSETS | COLLECTIONS
    subsets = {title: [run for run in runs if holds(run.pair)] for title, holds in every.items()}
    counts = {title: len(pairs_of(some)) for title, some in subsets.items()}
    kept = [title for title in every if counts[title] >= (FEWEST if title in COLLECTIONS else 1)]
    return {title: subsets[title] for title in kept if title == "all pairs" or len(subsets[title]) < len(runs)}


def compared_of(one: Difference, where: dict[str, str]) -> Compared:
    return Compared(
        figure=one.figure.name,
        a=one.label,
        b=one.against,
        where=where,
        found=None if one.change is None else one.change.interval.mapped(lambda share: 100 * share),
        unit="%" if one.figure.is_relative else "points",
        digits=differences.digits_of(one.figure),
        established=one.verdict,
    )


def headlines(runs: Sequence[Run]) -> Iterator[Block | Comparisons]:
    """xlink+ against each reference: over all pairs with the verdict, and over each subset. A table for each figure."""
    known = {run.label for run in runs} | ({BEST} if len(differences.single_paths(runs)) > 1 else set())
    references = [label for label in REFERENCES if label in known] or [
        label for label in labels_of(runs) if label != OURS
    ]
    subsets = subsets_of(runs)
    of_subset = {
        title: differences.differences(some, [(OURS, against) for against in references], HEADLINES)
        for title, some in subsets.items()
    }
    cells = {
        title: {(one.against, one.figure.name): compared_of(one, {"pairs": title}) for one in of_title}
        for title, of_title in of_subset.items()
    }
    heads = [f"{title} ({len(pairs_of(some))})" for title, some in subsets.items()]
    for figure in HEADLINES:
        yield Comparisons(
            heads=[f"{figure.title}: {OURS} against", heads[0], "verdict", *heads[1:]],
            rows={
                against: [of_title.get((against, figure.name)) for of_title in cells.values()] for against in references
            },
            verdicts=False,
        )
    yield from shortages(
        [
            short
            for title, of_title in of_subset.items()
            for short in differences.shortages(subsets[title], of_title).items()
        ]
    )


def thresholds_of(runs: Sequence[Run]) -> Iterator[str]:
    """A sentence for each scheme on the values of `thresholds: [X, Y]` and the pairs on which they were measured."""
    for label in dict.fromkeys(run.label for run in runs):
        measured = next((run.config.get("thresholds") for run in runs if run.label == label), None)
        if measured:
            pairs = measured["pairs"]
            where = "the compared plays" if set(pairs) & set(pairs_of(runs)) else f"{len(pairs)} other pairs"
            both = (
                f"th({measured[of]:g}) = {measured[th]:.0f} ms" for of, th in (("x", "t_th1_ms"), ("y", "t_th2_ms"))
            )
            yield f"Thresholds of `{label}`: {', '.join(both)}, measured on {where}."


# --- where claims hold ----------------------------------------------------------------------------------------------


def turned(runs: Sequence[Run], compared: Iterable[Difference]) -> Iterator[str]:
    """The established differences that have the other sign over a subset of the pairs."""
    for one in compared:
        if one.change is None or not one.verdict.startswith(("lower", "higher")):
            continue
        for title, some in subsets_of(runs).items():
            pairs = {run.pair for run in some}
            sides = (runs_of(runs, label, one.figure) for label in (one.label, one.against))
            ours, theirs = (one.figure.point([run for run in side if run.pair in pairs]) for side in sides)
            if ours and theirs and (ours.value - theirs.value) * one.change.interval.value < 0:
                yield f"{one.figure.title}, {one.label} against {one.against}, {title}"


def where_claims_hold(columns: Mapping[str, Sequence[Run]], kind: str) -> Iterator[Block | Comparisons]:
    """Differences over all pairs in columns, those whose sign turns over a subset, and thresholds. `kind`: the heading
    of columns."""
    known = {label for runs in columns.values() for label in labels_of(runs)}
    claims = [both for both in CLAIMS if known.issuperset(both)]
    by_head = {
        head: {
            (one.label, one.against, one.figure.name): one for one in differences.differences(runs, claims, HEADLINES)
        }
        for head, runs in columns.items()
    }
    for figure in HEADLINES:
        lines: dict[str, list[Compared | None]] = {}
        for label, against in claims:
            cells = [(head, of_column.get((label, against, figure.name))) for head, of_column in by_head.items()]
            lines[f"{label} against {against}"] = [
                None if one is None else compared_of(one, {kind: head}) for head, one in cells
            ]
        yield Comparisons(heads=[figure.title, *columns], rows=lines, verdicts=True)
    yield from shortages(
        [pair for head, of in by_head.items() for pair in differences.shortages(columns[head], [*of.values()]).items()]
    )
    turning = [
        f"- {head}: {sentence}" for head, of in by_head.items() for sentence in turned(columns[head], of.values())
    ]
    yield "Established differences whose sign turns over a subset of the pairs:"
    yield "\n".join(turning or ["- none"])
    measured = [f"- {head}: {sentence}" for head, runs in columns.items() for sentence in thresholds_of(runs)]
    if measured:
        yield "\n".join(measured)


def levels(columns: Mapping[str, Sequence[Run]]) -> Iterator[Block]:
    shown = (MEDIAN, P95, P99, rows.REBUFFER_RATE, rows.REDUNDANCY)
    short: Shortages = []
    cells = [
        [head, label, *(cell(figure, runs_of(runs, label, figure), short) for figure in shown)]
        for head, runs in columns.items()
        for label in labels_of(runs)
    ]
    heads = ["", "scheme", *(figure.title for figure in shown)]
    yield Table(heads=heads, align="l" * len(heads), rows=cells)
    yield from shortages(short)


def with_light(by_buffer: Mapping[int, Sequence[Run]], light: Sequence[Run]) -> dict[str, Sequence[Run]]:
    """The columns of the buffers; the last one is the light setting, whose buffer is 10 s, with the same schemes."""
    labels = {run.label for runs in by_buffer.values() for run in runs}
    columns: dict[str, Sequence[Run]] = {f"{ms / 1000:g} s": runs for ms, runs in by_buffer.items()}
    return columns | {"10 s": [run for run in light if run.label in labels]}


def forms(runs: Sequence[Run]) -> dict[str, Sequence[Run]]:
    """The columns of traces as they were recorded, and of the same ones with restored silences."""
    restored = [run for run in runs if run.pair.endswith(RESTORED)]
    plain = [run for run in runs if f"{run.pair}{RESTORED}" in {other.pair for other in restored}]
    return {"as recorded": plain, "restored": restored} if restored else {}


# --- between the oracle and xlink+ ------------------------------------------------------------------------------------


BOUNDS = {
    "oracle": bounds.figures("oracle", bounds.of_oracle),
    "oracle's play": bounds.figures("oracle's play", bounds.of_play),
}


def bound_rows(runs: Sequence[Run], pair: str) -> dict[str, tuple[Figure, Figure, str, str]]:
    """The figures median and p95 of each row with their scheme, by the row's title."""
    lines = {name: (*of, OURS, OURS) for name, of in BOUNDS.items()}
    lines |= {label: (MEDIAN, P95, label, label) for label in (CLAIRVOYANT, OURS)}
    others = best_other(runs, MEDIAN, pair), best_other(runs, P95, pair)
    return lines | {"best other": (MEDIAN, P95, *others), BEST: (MEDIAN, P95, BEST, BEST)}


def share_cells(shares: bounds.Shares, layout: Layout | None) -> list[str]:
    """The excess in ms, then each part in percent of it; without a layout, without intervals."""

    def cell_of(samples: Reals) -> str:
        level = intervals.interval(samples, layout) if layout else None
        return level.text(".0f") if level and level.known else f"{samples[0]:.0f}"

    parts = (cell_of(100 * part / shares.excess) for part in shares.parts)
    return [cell_of(1000 * shares.excess), *parts]


def bound_cell(figure: Figure, runs: Sequence[Run]) -> str:
    """The figure with its interval for these traces, if the sample carries one."""
    interval = figure.level(runs, differences.layout_of(runs).within())
    if interval is None:
        return "–"
    return interval.text(".2f") if interval.carried and interval.known else f"{interval.value:.2f}"


def between(runs: Sequence[Run]) -> Iterator[Block]:
    """Between the oracle and xlink+: over all pairs, and the parts of the time above the oracle."""
    cells = []
    for title, (median, p95, of_median, of_p95) in bound_rows(runs, ALL).items():
        named = f" ({of_median}, {of_p95})" if title == "best other" else ""
        levels = (bound_cell(f, runs_of(runs, label, f)) for f, label in ((median, of_median), (p95, of_p95)))
        cells.append([f"{title}{named}", *levels])
    yield f"Between the oracle and {OURS}:"
    yield Table(heads=["", MEDIAN.title, P95.title], align="lll", rows=cells)
    ours, clairvoyant = differences.common(runs, OURS, CLAIRVOYANT)
    cells = []
    for label, own in ((CLAIRVOYANT, clairvoyant), (OURS, ours)):
        first = bounds.above_play_s(own, lambda chunk: chunk.index == 0)
        others = bounds.above_play_s(own, lambda chunk: chunk.index > 0)
        cells.append([label, f"{1000 * first:.0f}", f"{1000 * others:.0f}"])
    heads = ["ms above the oracle's play, mean", "first request of a play", "others"]
    yield Table(heads=heads, align="lrr", rows=cells)
    yield from against_clairvoyant(runs)


def bounds_by_pair(runs: Sequence[Run]) -> Iterator[Block]:
    """Between the oracle and xlink+, pair by pair, and both xlink+ and the clairvoyant scheduler against sp:best on the
    pairs where xlink+ is above it."""
    titles = list(bound_rows(runs, ALL))
    ours, clairvoyant = differences.common(runs, OURS, CLAIRVOYANT)
    cells = []
    for pair in pairs_of(runs):
        figures = [
            f"{value_words(median, runs, of_median, pair)} / {value_words(p95, runs, of_p95, pair)}"
            for median, p95, of_median, of_p95 in bound_rows(runs, pair).values()
        ]
        both = [run for run in ours if run.pair == pair], [run for run in clairvoyant if run.pair == pair]
        cells.append([pair, *figures, *share_cells(bounds.shares_of(*both, differences.layout_of(*both)), None)])
    layout = differences.layout_of(ours, clairvoyant)
    cells.append(["all", *("" for _ in titles), *share_cells(bounds.shares_of(ours, clairvoyant, layout), layout)])
    heads = ["pair", *titles, "excess ms", "a %", "b %", "c %"]
    yield f"Between the oracle and {OURS}, pair by pair:"
    yield Table(heads=heads, align="l" + "r" * (len(heads) - 1), rows=cells)
    comparisons = differences.differences(runs, [(OURS, BEST), (CLAIRVOYANT, BEST)], (MEDIAN,), by_pair=True)
    cells = []
    for pair in pairs_of(runs):
        if value(MEDIAN, runs, OURS, pair) > (1 + EITHER_SIDE) * value(MEDIAN, runs, BEST, pair):
            by_label = {one.label: one.words_here for one in comparisons if one.pair == pair}
            cells.append([pair, by_label[OURS], by_label[CLAIRVOYANT]])
    yield Table(heads=[f"RCT median against {BEST}", OURS, CLAIRVOYANT], align="lll", rows=cells)


def against_clairvoyant(runs: Sequence[Run]) -> Iterator[Block]:
    """xlink+ against the clairvoyant scheduler, over all pairs."""
    figures = [figure for figure in COLUMNS if figure.name != "redundancy"]
    comparisons = differences.differences(runs, [(OURS, CLAIRVOYANT)], figures)
    cells = [[one.figure.title, one.words, one.verdict] for one in comparisons]
    yield Table(heads=[f"{OURS} against {CLAIRVOYANT}", "difference", "verdict"], align="lll", rows=cells)


def drawn(runs: Sequence[Run]) -> "Drawing":
    """A plot with a column for each pair and a mark for each scheme: RCT / that of sp:best, median above, p95 below."""
    from matplotlib.figure import Figure as Drawing  # noqa: PLC0415  it takes long to load

    labels = [label for label in labels_of(runs) if label not in (SINGLE, BEST)]
    pairs = pairs_of(runs)
    styles, marks = scheme_styles(labels), "osD^v<>PX*hd"
    drawing = Drawing(figsize=(9, 6.2), layout="constrained")
    for row, (figure, axes) in enumerate(zip((MEDIAN, P95), drawing.subplots(2, 1, sharex=True), strict=True)):
        base = {pair: value(figure, runs, BEST, pair) for pair in pairs}
        for k, label in enumerate(labels):
            ratios = [value(figure, runs, label, pair) / base[pair] for pair in pairs]
            places = [n + 0.7 * ((k + 0.5) / len(labels) - 0.5) for n in range(len(pairs))]
            style = styles[label]
            axes.plot(places, ratios, marks[k % len(marks)], color=style.colour, markersize=5, label=label)
        axes.axhline(1, color="black", linewidth=1)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}" if row == 0 else "")
        axes.set_ylabel(f"{figure.title} / sp:best's")
        if row == 0:
            axes.set_title("Above 1: worse than the better single path of the pair")
            axes.legend(ncols=5, loc="lower center", bbox_to_anchor=(0.5, 1.08))
    axes.set_xticks(range(len(pairs)), pairs, rotation=35, ha="right")
    return drawing


def campaign(
    name: str,
    out: Path | None,
    jobs: int,
    tell: Callable[[str], None],
    changes: Mapping[str, Any],
    called: str,
) -> list[Run]:
    """Carries out a campaign unless it exists, and returns its runs. `changes`: fields in place of the experiment's.
    `called`: what its name then has after that of the experiment."""
    experiment, document = changed(name, dict(changes))
    title = f"{experiment.name}-{called}" if called else experiment.name
    experiment = thresholds.resolved(experiment, document, out or RESULTS_DIR, jobs, tell)
    specs = resolve(experiment, document)
    tell(f"{title}: {len(specs)} runs")
    place = Place(out / title if out else None, tell=tell)
    with whole_campaign(Plan(experiment, specs, name=title), place, jobs=jobs) as whole:
        return whole.runs


def evaluate(runs: Sequence[Run]) -> Iterator[Block | Comparisons]:
    """Levels of one setting, and the differences between schemes."""
    counted = labels_of(runs)
    plays = len(runs_of(runs, OURS if OURS in counted else counted[0], MEDIAN))
    yield f"{plays} plays a scheme. Intervals: docs/reference/statistics.md."
    if sentences := [*thresholds_of(runs)]:
        yield "\n".join(sentences)
    yield from schemes(runs)
    if OURS in counted:
        yield from headlines(runs)
    yield from failed(runs)


def in_detail(runs: Sequence[Run]) -> dict[str, list[Block | Comparisons]]:
    """More tables of one setting, by name."""
    if len(differences.single_paths(runs)) < 2:
        return {}
    has_ours = any(chunk.completed for run in runs if run.label == OURS for chunk in run.chunks)
    has_both = has_ours and any(run.label == CLAIRVOYANT for run in runs)
    return {
        "best": [*against_best(runs)],
        "oracle": [*between(runs)] if has_both else [],
        "p99s": [*samples(runs)] if has_ours else [],
        "pairs": [*by_pair(runs), *(bounds_by_pair(runs) if has_both else [])],
    }
