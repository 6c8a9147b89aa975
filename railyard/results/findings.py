"""The results of a comparison, in sentences that are computed from its figures.

Only the differences of railyard/results/differences.py decide whether a scheme is better than another one: with their
intervals, corrected for their families. If an interval has both signs, it is "not decided". For each pair there are two
questions: is multipath better than each single path, and is re-injection better than plain multipath? The rebuffer rate
and the highest quantile of the RCT that the plays carry answer each. If there are too few plays for an interval, the
sentences have the figures of these plays and say that nothing is decided.

A scheme is named but not compared if a program failed under it or all its runs are void.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from railyard.base.lists import grouped
from railyard.base.words import counted, listed
from railyard.figures.figure import Figure, Point
from railyard.figures.rows import FIRST_FRAME, RCT_MAX, RCT_MEDIAN, RCT_P95, RCT_P99, REBUFFER_RATE
from railyard.results import differences, shortage
from railyard.results.aggregate import Cell, cells
from railyard.results.differences import ALL, Difference
from railyard.results.oracle import replayed_trace
from railyard.results.records import Run
from railyard.results.shortage import Shortage
from railyard.stats.bootstrap import FEWEST, Layout
from railyard.stats.intervals import TOO_SMALL, Interval, carries_ends
from railyard.stats.verdict import Answer, of_parts
from railyard.traces.trace import Trace

MULTIPATH = ("mptcp", "vanilla-mp", "vanilla-mp-2021", "xlink", "xlink-lean", "xlink+")
REINJECTION = ("xlink", "xlink-lean")  # compared with vanilla-mp, which lacks re-injection alone
STALL_FLOOR_S = 0.1  # smaller differences between first frames are not reported
TAILS = ((RCT_P99, "p99"), (RCT_P95, "p95"), (RCT_MAX, "longest RCT"))


@dataclass(frozen=True)
class Findings:
    headline: str
    of_pair: dict[str, list[str]]
    answers: list[str]
    """A summary over all pairs: which scheme stalls least, whether multipath and re-injection are better, failed
    plays."""
    places: list[str]
    """The rule that chose the starts: for one pair with the starts, for several without. Empty without a rule."""


def replayed_traces(run: Run) -> dict[str, tuple[Trace, Trace]]:
    """The run's traces as (uplink, downlink) by path. Empty if a file is not the one that was replayed."""
    traces: dict[str, tuple[Trace, Trace]] = {}
    for path in run.config["paths"]:
        up, down = (replayed_trace(path[way], path[f"{way}_sha256"]) for way in ("up", "down"))
        if up is None or down is None:
            return {}
        traces[path["name"]] = (up, down)
    return traces


def _scheme(cell: Cell) -> str:
    return str(cell.runs[0].config["scheme"])


def stalled(cell: Cell) -> Point:
    """Mean time stalled, in seconds a play. A failed play counts with its time limit − the time it played. With plays
    that did not complete the mean is a lower bound."""
    times = [run.rebuffer_counted_s for run in cell.runs]
    return Point(sum(times) / len(times), any(run.outcome != "complete" for run in cell.runs))


def _s(value: Point, digits: int = 1) -> str:
    return f"{value.text(f'.{digits}f')} s"


# --- what is established ----------------------------------------------------------------------------------------------


Compared = dict[tuple[str, str, str], dict[str, Difference]]
"""By pair, scheme and reference: the differences by the figure's name."""


def comparisons(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """The comparisons of a report, and each multipath scheme against each single path."""
    schemes = {run.label: str(run.config["scheme"]) for run in runs}
    both = [label for label, scheme in schemes.items() if scheme in MULTIPATH]
    elsewhere = [label for label in differences.single_paths(runs) if label != "sp"]
    return [*differences.usual(runs), *((label, single) for single in elsewhere for label in both)]


def compared(runs: Sequence[Run]) -> Compared:
    """All differences of a report, over all pairs together and over each."""
    by_row: Compared = {}
    played = differences.sound(runs)
    for one in differences.differences(played, comparisons(played), by_pair=True):
        by_row.setdefault((one.pair, one.label, one.against), {})[one.figure.name] = one
    return by_row


def over_all(by_comparison: Compared, names: Iterable[tuple[str, str]]) -> list[Difference]:
    """The differences of these schemes and references over all pairs together."""
    return [one for label, against in names for one in by_comparison.get((ALL, label, against), {}).values()]


def _judged(of_figures: dict[str, Difference]) -> list[Difference]:
    """The rebuffer rate, and the highest quantile of the RCT that both schemes carry."""
    highest_first = (of_figures.get(figure.name) for figure in (RCT_P99, RCT_P95, RCT_MEDIAN))
    tail = next((one for one in highest_first if one is not None and one.carried and one.has_levels), None)
    return [one for one in (of_figures.get(REBUFFER_RATE.name), tail) if one is not None]


def _better(judged: Sequence[Difference]) -> Answer:
    """Whether a scheme is better. False: a figure is higher, or it is established that none is lower by more than the
    margin. True: a figure is lower, and none higher. None: not decided."""
    verdicts = [one.verdict for one in judged]
    if any(verdict.startswith("higher") for verdict in verdicts):
        return False
    if any(verdict.startswith("lower") for verdict in verdicts):
        return True
    return False if verdicts and all(one.no_lower for one in judged) else None


def _here_alone(judged: Sequence[Difference]) -> bool:
    """Whether the answer over all pairs is established for these traces only, not for pairs like them."""
    answer, verdicts = _better(judged), [one.verdict for one in judged]
    if answer is None:
        return False
    if any(one.pair == ALL and one.change is one.here is not None for one in judged):
        return True  # there are fewer than five pairs
    if answer:
        return "lower" not in verdicts
    higher = [verdict for verdict in verdicts if verdict.startswith("higher")]
    return "higher" not in higher if higher else not all(one.no_lower_elsewhere for one in judged)


def _told(one: Difference) -> str:
    return f"{one.figure.title} {one.words_here} ({one.verdict})"


def _scheme_words(label: str, of_figures: dict[str, Difference]) -> str:
    """ "xlink: rebuffer rate −9.10 points [−13.2, −5.1] (lower), RCT p95 −40 % [−51, −22] (lower)"."""
    first = of_figures.get(FIRST_FRAME.name)
    starts = [first] if first is not None and first.verdict.split(" ")[0] in ("lower", "higher") else []
    return f"{label}: {', '.join(_told(one) for one in [*_judged(of_figures), *starts])}"


def _would_decide(of_schemes: Iterable[dict[str, Difference]]) -> str:
    """The number of plays that would decide what is open, in words. Of each scheme, the figure that needs the fewest
    counts; of the schemes, the one that needs the most."""
    least = []
    for judged in map(_judged, of_schemes):
        wanted = [one.needs_here for one in judged if _better(judged) is None]
        least += [min(known)] if (known := [one for one in wanted if one[0]]) else []
    if not least:
        return ""
    number, unit = max(least)
    return f" Some {number} {unit} would decide what is open with probability 80 %, if the figures are as here."


def _levels(one_side: Sequence[Difference]) -> str:
    """The reference's figures, from a comparison with it."""
    return ", ".join(f"{one.figure.title} {differences.level_in_unit(one.theirs, one.figure)}" for one in one_side)


def _claim(judged: dict[str, list[Difference]]) -> str:
    """The verdict on a claim about several schemes, for which traces it is established and, if they differ, with which
    schemes."""
    answers = {label: _better(ones) for label, ones in judged.items()}
    verdict = of_parts(list(answers.values()))
    where = " for these traces" if verdict != "not decided" and any(map(_here_alone, judged.values())) else ""
    if verdict != "partly":
        return f"{verdict}{where}"
    said = ((True, "with"), (False, "not with"), (None, "not decided with"))
    parts = [
        f"{start} {listed([label for label, answer in answers.items() if answer is which])}"
        for which, start in said
        if which in answers.values()
    ]
    return f"partly{where}, {', '.join(parts)}"


def _of_single(pair: str, single: str, primary: str, labels: Sequence[str], by_comparison: Compared) -> list[str]:
    """The answer to: is multipath better than this path alone?"""
    of_schemes = {
        label: by_comparison[pair, label, single] for label in labels if (pair, label, single) in by_comparison
    }
    judged = {label: _judged(of_figures) for label, of_figures in of_schemes.items()}
    judged = {label: ones for label, ones in judged.items() if ones}
    if not judged:
        return []
    verdict = _claim(judged)
    figures = ". ".join(_scheme_words(label, of_schemes[label]) for label in judged)
    levels = _levels(next(iter(judged.values())))
    open_ones = _would_decide(of_schemes.values())
    return [
        f"Multipath is better than single path on {primary} ({levels}): {verdict}. Difference to it: "
        f"{figures}.{open_ones}"
    ]


def _of_reinjection(pair: str, row: Sequence[Cell], by_comparison: Compared) -> list[str]:
    sentences = []
    for cell in row:
        of_figures = by_comparison.get((pair, cell.label, "vanilla-mp"))
        if cell.label not in REINJECTION or of_figures is None or not (judged := _judged(of_figures)):
            continue
        cost = differences.cost(cell.runs)
        for_bytes = f" It costs {cost} more bytes." if cost else ""
        verdict = _claim({cell.label: judged})
        sentences.append(
            f"Re-injection as in {cell.label} is better than none (vanilla-mp): {verdict}. Difference to it: "
            f"{_scheme_words(cell.label, of_figures)}.{for_bytes}{_would_decide([of_figures])}"
        )
    return sentences


# --- too few plays: their figures, and no verdict ---------------------------------------------------------------------


def _tail(row: Sequence[Cell]) -> tuple[Figure, str]:
    """The highest quantile that every sample carries."""
    sent = [cell.runs for cell in row if cell.chunks]
    carried = (tail for tail in TAILS[:-1] if sent and all(tail[0].shown(runs) is not None for runs in sent))
    return next(carried, TAILS[-1])


def _figures(cell: Cell, tail: tuple[Figure, str]) -> str:
    longest = cell.point(tail[0])
    return f"{_s(stalled(cell))} stalled, " + ("no request sent" if longest is None else f"{tail[1]} {_s(longest, 2)}")


def _figures_of(row: Sequence[Cell], layout: Layout) -> list[str]:
    """The sentences for too few plays: their figures, without a comparison."""
    tail = _tail(row)
    single = [cell for cell in row if _scheme(cell) == "sp"]
    named = [
        f"single path on {cell.runs[0].config['primary']} ({cell.label}): {_figures(cell, tail)}" for cell in single
    ]
    rest = [f"{cell.label}: {_figures(cell, tail)}" for cell in row if cell not in single]
    sentence = "; ".join([*named, *rest])
    return [
        f"{sentence[0].upper()}{sentence[1:]}." if named else f"{sentence}.",
        f"Which scheme is better is not decided: {shortage.of_windows(layout)}.",
    ]


def _of_starts(row: Sequence[Cell]) -> list[str]:
    """The range of first frames, if they differ: waiting for a first frame does not count as a stall."""
    known = [(cell.label, cell.point(FIRST_FRAME)) for cell in row]
    ordered = sorted(((label, one) for label, one in known if one is not None), key=lambda pair: pair[1].value)
    if not ordered or ordered[-1][1].value - ordered[0][1].value <= STALL_FLOOR_S:
        return []
    (first, soonest), (last, latest) = ordered[0], ordered[-1]
    return [f"First frame after {_s(soonest, 2)} ({first}) to {_s(latest, 2)} ({last}); waiting for it is not a stall."]


# --- where, how many, and which not -----------------------------------------------------------------------------------


def _place(runs: Sequence[Run]) -> str:
    """The starts that the rule worst_of_primary chose, and why. Empty if the traces are not on this machine."""
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
        f"Starts at {listed([f'{offset / 1000:.1f}' for offset in offsets])} s, where {primary}, the primary path, has "
        f"the least capacity over {duration_s:g} s (worst_of_primary{but}): "
        f"{listed([f'{rate:.2f}' for rate in rates])} Mbps; over its whole trace {trace.mean_mbps:.2f} Mbps. "
        f"So single path on {primary} is shown at its worst."
    )


def _placed(row: Sequence[Cell], rule: object) -> list[str]:
    """One sentence for each primary path of scheme sp and of the multipath schemes."""
    if rule != "worst_of_primary":
        return []
    runs = [run for cell in row if cell.label == "sp" or _scheme(cell) in MULTIPATH for run in cell.runs]
    by_primary = grouped((str(run.config["primary"]), run) for run in runs)
    return [sentence for of_primary in by_primary.values() if (sentence := _place(of_primary))]


def _places(rows: dict[str, list[Cell]], rule: object) -> list[str]:
    if rule == "worst_of_primary" and len(rows) > 1:
        worst = "where the primary path of its pair has the least capacity (worst_of_primary)"
        return [f"Each play starts {worst}, so single path on it is shown at its worst."]
    return [sentence for row in rows.values() for sentence in _placed(row, rule)]


def _failures(row: Sequence[Cell]) -> list[str]:
    """The number of failed plays of each scheme, which count in every figure. Empty if there are none."""
    failed = [sum(run.failed for run in cell.runs) for cell in row]
    if not any(failed):
        return []
    counts = zip(row, failed, strict=True)
    failures = ", ".join(f"{cell.label} {number} of {len(cell.runs)}" for cell, number in counts)
    return [f"Plays that failed, each with its time limit as a lower bound in every figure: {failures}."]


def _same_places(row: Sequence[Cell]) -> list[Cell]:
    """The cells that are compared, with the runs whose seeds all of them have. Empty if less than two can be
    compared."""
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


# --- the first sentence -----------------------------------------------------------------------------------------------


def _ranked(pooled: dict[str, list[Run]]) -> tuple[str, str]:
    """Which scheme stalls least, and the rates. The least one is established against each other scheme, or not decided.
    Each comparison is at 5 % / their number (Bonferroni), because the same figures choose the least one."""
    full_layout = differences.layout_of(next(iter(pooled.values())))
    layout = full_layout.within() if carries_ends(full_layout.within()) else full_layout
    levels = {label: REBUFFER_RATE.level(plays, layout) for label, plays in pooled.items()}
    order = sorted(levels, key=lambda label: level.value if (level := levels[label]) else math.inf)
    least = order[0]
    runs = [run for plays in pooled.values() for run in plays]
    open_ones = [
        label
        for label in order[1:]
        if not any(
            one.pair == ALL and one.is_higher(alpha=differences.ALPHA / (len(order) - 1))
            for one in differences.differences(runs, [(label, least)], [REBUFFER_RATE])
        )
    ]
    few = shortage.worst(differences.shortage_of(pooled[label], REBUFFER_RATE, levels[label]) for label in order)
    figures = f"{_rates(levels, order, 'pairs of traces like these' if layout.by_cluster else 'these traces', few)}."
    if not open_ones:
        return f"{least} stalls least.", figures
    if len(open_ones) == len(order) - 1:
        return "Which scheme stalls least is not decided.", figures
    others = f"{listed(open_ones)} stall{'s' if len(open_ones) == 1 else ''}"
    return f"{least} stalls least; that {others} more is not decided.", figures


def _rates(levels: dict[str, Interval | None], order: Sequence[str], of: str, few: Shortage | None) -> str:
    """The rates in words. If none has an interval, this is said once. `few`: why a rate has none."""
    if any(level.known for level in levels.values() if level is not None):
        figures = ", ".join(f"{label} {differences.level_words(levels[label], '.1f', 100)}" for label in order)
        why = f" ({few.words})" if few is not None and TOO_SMALL in figures else ""
        return f"Rebuffer rate in %, with its interval for {of}: {figures}{why}"
    known = [(label, level) for label in order if (level := levels[label]) is not None]
    if not known:
        return "No play showed a frame, so none has a rebuffer rate"
    figures = ", ".join(f"{label} {level.bound}{100 * level.value:.1f}" for label, level in known)
    return f"Rebuffer rate in %, without an interval, {few or TOO_SMALL}: {figures}"


def _headline(rows: dict[str, list[Cell]], tried: Sequence[str]) -> tuple[str, str]:
    """The first sentence, and its answer alone, over the schemes that are compared on every pair. `tried`: the schemes
    that had a run."""
    labels = dict.fromkeys(cell.label for row in rows.values() for cell in row)
    by_label = {label: [cell for row in rows.values() for cell in row if cell.label == label] for label in labels}
    common = {label: of_label for label, of_label in by_label.items() if len(of_label) == len(rows)}
    absent = [label for label in tried if label not in common]
    if len(common) < 2:
        return "", ""
    pooled = {label: [run for cell in of_label for run in cell.runs] for label, of_label in common.items()}
    first = next(iter(pooled.values()))
    plays = len(first)
    totals = {label: stalled(Cell("", label, runs, [])) for label, runs in pooled.items()}
    totals = {label: Point(one.value * plays, one.at_least) for label, one in totals.items()}
    duration_s = first[0].config.get("player", {}).get("duration_s")
    over = f"{counted(plays, 'play')}{f' of {duration_s:g} s' if duration_s else ''} for each scheme"
    left_out = f" Not compared on every pair: {', '.join(absent)}." if absent else ""
    if all(total.value <= STALL_FLOOR_S and not total.at_least for total in totals.values()):
        sentence = f"No scheme stalled, in {over}: at these places multipath has no stall to prevent.{left_out}"
        return sentence, sentence
    layout = differences.layout_of(first)
    if layout.windows >= FEWEST:
        answer, figures = _ranked(pooled)
        return f"{answer} {figures} Over {over}.{left_out}", f"{answer}{left_out}"
    ordered = sorted(totals, key=lambda label: totals[label].value)
    sentence = (
        f"Stalled in all, in {over}: {', '.join(f'{label} {_s(totals[label])}' for label in ordered)}. Which scheme "
        f"stalls least at other places is not decided: {shortage.of_windows(layout)}.{left_out}"
    )
    return sentence, sentence


def _answers(pair: str, row: Sequence[Cell], by_comparison: Compared) -> list[str]:
    """The answers to the two questions. `pair`: a pair, or ALL."""
    both = [cell.label for cell in row if _scheme(cell) in MULTIPATH]
    singles = differences.single_paths([run for cell in row for run in cell.runs])
    on_path = {cell.label: str(cell.runs[0].config["primary"]) for cell in row}
    primary = "the primary path" if pair == ALL else ""
    return [
        *(
            sentence
            for single in singles
            for sentence in _of_single(pair, single, primary or on_path[single], both, by_comparison)
        ),
        *_of_reinjection(pair, row, by_comparison),
    ]


def _of_pair(pair: str, row: Sequence[Cell], by_comparison: Compared) -> list[str]:
    layout = differences.layout_of(row[0].runs)
    if layout.windows < FEWEST:
        return [*_figures_of(row, layout), *_of_starts(row)]
    return _answers(pair, row, by_comparison)


def _pooled(rows: dict[str, list[Cell]]) -> list[Cell]:
    """Each scheme over all pairs together, without single path on paths other than the primary one. Empty if there are
    too few plays for any interval."""
    every = _every(rows)
    if differences.layout_of(max((cell.runs for cell in every), key=len)).windows < FEWEST:
        return []
    return [cell for cell in every if _scheme(cell) != "sp" or cell.label == "sp"]


def _every(rows: dict[str, list[Cell]]) -> list[Cell]:
    pooled = grouped((cell.label, run) for row in rows.values() for cell in row for run in cell.runs)
    return [Cell(ALL, label, runs, []) for label, runs in pooled.items()]


def _of_all(rows: dict[str, list[Cell]], by_comparison: Compared) -> list[str]:
    """The answers over all pairs together. Empty for one pair or too few plays."""
    row = _pooled(rows) if len(rows) > 1 else []
    return [*_answers(ALL, row, by_comparison), *_failures(_every(rows))] if row else []


# --- in brief ---------------------------------------------------------------------------------------------------------


def _brief(label: str, of_figures: dict[str, Difference]) -> str:
    parts = [f"{one.figure.title} {one.words_here}" for one in _judged(of_figures)]
    return f"{label}: {', '.join(parts)}"


def _multipath_in_brief(row: Sequence[Cell], by_comparison: Compared) -> list[str]:
    """Whether multipath is better than single path on the primary path, with the figures of xlink or, if that was not
    played, of another scheme."""
    labels = [cell.label for cell in row if _scheme(cell) in MULTIPATH]
    of_schemes = {label: by_comparison[ALL, label, "sp"] for label in labels if (ALL, label, "sp") in by_comparison}
    judged = {label: ones for label, of_figures in of_schemes.items() if (ones := _judged(of_figures))}
    if not judged:
        return []
    one = "xlink" if "xlink" in judged else next(iter(judged))
    open_ones = _would_decide(of_schemes.values()) if None in map(_better, judged.values()) else ""
    claim = f"{_claim(judged)} ({_brief(one, of_schemes[one])})"
    return [f"Multipath is better than single path on the primary path: {claim}.{open_ones}"]


def _reinjection_in_brief(row: Sequence[Cell], by_comparison: Compared) -> list[str]:
    cell = next(
        (cell for cell in row if cell.label in REINJECTION and (ALL, cell.label, "vanilla-mp") in by_comparison), None
    )
    of_figures = by_comparison[ALL, cell.label, "vanilla-mp"] if cell is not None else {}
    if cell is None or not _judged(of_figures):
        return []
    cost = differences.cost(cell.runs)
    verdict = _claim({cell.label: _judged(of_figures)})
    return [
        f"Re-injection is better than none (vanilla-mp): {verdict} ({_brief(cell.label, of_figures)}"
        f"{f'; for {cost} more bytes' if cost else ''}).{_would_decide([of_figures])}"
    ]


def _in_brief(rows: dict[str, list[Cell]], by_comparison: Compared) -> list[str]:
    row = _pooled(rows)
    return [*_multipath_in_brief(row, by_comparison), *_reinjection_in_brief(row, by_comparison)]


def find(
    runs: Sequence[Run],
    not_run: Sequence[dict[str, str]] = (),
    rule: object = None,
    by_comparison: Compared | None = None,
) -> Findings | None:
    """The findings, by pair. None: there is nothing to compare. `rule`: the experiment's start_offset_ms.
    `by_comparison`: the result of `compared` for these runs, if it is known already."""
    table = cells(runs, not_run)
    rows = {pair: kept for pair, row in table.items() if (kept := _same_places(row))}
    tried = dict.fromkeys(cell.label for row in table.values() for cell in row if cell.runs or cell.void_runs)
    headline, answer = _headline(rows, list(tried)) if rows else ("", "")
    if not headline:
        return None
    known = compared(runs) if by_comparison is None else by_comparison
    of_pair = {
        pair: [
            *_placed(row, rule),
            *_of_pair(pair, row, known),
            *_failures(row),
            *_not_compared(table[pair], row),
        ]
        for pair, row in rows.items()
    }
    if of_all := _of_all(rows, known):
        of_pair = {"Over all pairs": of_all} | of_pair
    for pair, every in table.items():
        if pair not in rows and any(cell.runs or cell.void_runs for cell in every):
            nothing = "Nothing is compared here: no two schemes have a valid run of the same seed."
            of_pair[pair] = [nothing, *_not_compared(every, every)]
    return Findings(headline, of_pair, [answer, *_in_brief(rows, known), *_failures(_every(rows))], _places(rows, rule))
