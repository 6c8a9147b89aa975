"""Multipath against single path by day over a population: fig1c and table1 (vanilla-MP), fig11 and table3 (XLINK)."""

import math
from collections.abc import Sequence
from pathlib import Path

from railyard.base.errors import UserError
from railyard.base.words import counted
from railyard.figures.rows import REBUFFER_RATE
from railyard.report.exhibit import INTERVAL, Claim, Exhibit, PaperValue, Plot, Table
from railyard.results.tables import Value
from railyard.stats.intervals import Interval
from railyard.stats.verdict import Verdict
from railyard.studies.claims import PaperClaim
from railyard.studies.exhibits import verdicts
from railyard.studies.exhibits.frame import columns
from railyard.studies.exhibits.population_frame import (
    OURS,
    OURS_NOTE,
    Curve,
    Data,
    Frame,
    between,
    cell,
    change,
    curves,
    frame_of,
    percent,
    span,
    text,
)
from railyard.studies.population.figures import RCT_QUANTILES, STALLED, Compare, Plays, improvement, increase
from railyard.studies.population.model import ON_A_FIGURE, is_on_a_figure
from railyard.studies.population.table import literal

ALL = "all"
# The words for a positive and a negative difference to single path.
FASTER_WORDS, SLOWER_WORDS, LOWER_WORDS = ("better", "worse"), ("slower", "faster"), ("lower", "higher")
# Conditions on a play, in SQL.
AT_HOME, MOVING = "scene = 'home'", "scene NOT IN ('home', 'office', 'public')"
SLOWEST_S = "coalesce(list_max(rct_s), 0)"
RTT_RATIO = "base_rtt_ms[2] / base_rtt_ms[1]"  # of the other path / of the primary one, which pairs name first
SLOWER = 1.05  # ratio from which a viewer's slowest request counts as slower or faster
RTT_CLASSES = ((0.0, 2.0), (2.0, 4.0), (4.0, float("inf")))


def _rct_tables(frame: Frame, ours: str, quantiles: Sequence[float], *, gain: bool) -> list[Table]:
    """Tables of a quantile of both arms' RCT by day, with the gain (`gain`) or loss. One table of all quantiles would
    be wider than the page."""
    note = f"Positive: {ours} is {'faster' if gain else 'slower'} than single path."
    tables = []
    for q in quantiles:
        names = [("day", ""), ("viewers", ""), ("sp", "s"), (ours, "s")]
        names += [("improvement" if gain else "change", "%"), (INTERVAL, "%")]
        rows: list[list[Value]] = []
        for name, plays in [*((str(day), frame.plays.day(day)) for day in frame.days), (ALL, frame.plays)]:
            how = plays.compare_quantile("rct", q, ours, "sp", improvement if gain else increase)
            both = [cell(plays.quantile("rct", arm, q), 3) for arm in ("sp", ours)]
            rows.append([name, plays.viewers(), *both, cell(how, 1), span(how)])
        title = f"RCT p{100 * q:g} of sp and {ours} by day"
        tables.append(Table(title=title, columns=columns(*names), rows=rows, note=note))
    return tables


def _rct_plot(frame: Frame, arms: Sequence[str], quantiles: Sequence[float]) -> list[Plot]:
    plots = []
    for q in quantiles:
        drawn = [
            Curve(arm, frame.style(arm), [frame.plays.day(day).quantile("rct", arm, q) for day in frame.days])
            for arm in arms
        ]
        overall = ", ".join(f"{arm} {text(frame.plays.quantile('rct', arm, q), ' s', 2)}" for arm in arms)
        alt = f"The p{100 * q:g} of RCT by day for {', '.join(arms)}; over all days {overall}."
        name, title = f"{frame.spec.name}-rct-p{100 * q:g}".replace(".", "-"), f"RCT p{100 * q:g} by day"
        plots.append(curves(name, title, frame.days, drawn, ("day", "RCT, s"), alt))
    return plots


def _slower_and_faster(plays: Plays, ours: str, worst: int | None = None) -> tuple[int, int]:
    """The numbers of viewers whose slowest request is slower, and faster, under ours. `worst`: only among this number
    of viewers with the longest slowest requests on single path."""
    conditions = [f"ours > {SLOWER}::DOUBLE * sp", f"{SLOWER}::DOUBLE * ours < sp"]
    some = None if worst is None else ("sp", worst)
    slower, faster = plays.viewers_who(conditions, SLOWEST_S, {"sp": "sp", "ours": ours}, some)
    return slower, faster


def _groups(plays: Plays) -> list[tuple[str, Plays]]:
    """The plays by scene, the most frequent one first, and by the ratio of base RTTs."""
    scenes = plays.ask("SELECT scene FROM own GROUP BY scene ORDER BY count(*) DESC, scene")
    groups = [(f"scene {scene}", plays.where(f"scene = {literal(scene)}")) for (scene,) in scenes]
    for low, high in RTT_CLASSES:
        word = f"below {high:g}" if low == 0 else f"{low:g} to {high:g}" if high < 1e9 else f"{low:g} and more"
        most = "" if math.isinf(high) else f" AND {RTT_RATIO} < {high}"
        groups.append((f"base RTT ratio {word}", plays.where(f"{RTT_RATIO} >= {low}{most}")))
    return [(name, part) for name, part in groups if part.viewers()]


def _group_table(frame: Frame, ours: str) -> Table:
    rows: list[list[Value]] = []
    for name, part in [*_groups(frame.plays), ("all", frame.plays)]:
        changes = [part.compare_quantile("rct", q, ours, "sp", increase) for q in (0.5, 0.9, 0.99)]
        slower, faster = _slower_and_faster(part, ours)
        same = part.viewers() - slower - faster
        shares = [round(100 * count / part.viewers(), 1) for count in (slower, faster, same)]
        cells = [entry for how in changes for entry in (cell(how, 1), span(how))]
        rows.append([name, part.viewers(), *cells, *shares])
    names = [("viewers", ""), ("number", "")]
    for entry in [(f"change p{q}", "%") for q in (50, 90, 99)]:
        names += [entry, (INTERVAL, "%")]
    names += [("slower", "% of viewers"), ("faster", "% of viewers"), ("the same", "% of viewers")]
    return Table(
        title=f"Where {ours} is slower than single path, and where not",
        columns=columns(*names),
        rows=rows,
        note="Positive: slower. The last three: viewers by their slowest request, the same within 5 %.",
    )


def _why_worse(frame: Frame, ours: str) -> str:
    plays = frame.plays
    slower, faster = _slower_and_faster(plays, ours)
    still = plays.where(AT_HOME)
    viewers = counted(plays.viewers(), "viewer")
    parts = [f"the slowest request is slower for {slower} and faster for {faster} of {viewers}"]
    if still.viewers():
        home = {q: still.compare_quantile("rct", q, ours, "sp", increase) for q in (0.5, 0.99)}
        parts.append(
            f"at home the median is {change(home[0.5], *SLOWER_WORDS)} and the p99 {change(home[0.99], *SLOWER_WORDS)}"
        )
    worst = max(1, plays.viewers() // 50)
    (moving,) = plays.viewers_who([MOVING], SLOWEST_S, {"sp": "sp"}, ("sp", worst))
    _, gains = _slower_and_faster(plays, ours, worst)
    parts.append(
        f"the p99 is made by few: {counted(worst, 'viewer')} with the slowest requests on single path, {moving} of "
        f"them in motion, and {gains} faster with the second path"
    )
    parts.append("what the second path's rate has to do with it is in docs/results/population.md")
    return "; ".join(parts)


def _against_sp(
    frame: Frame, arm: str, quantiles: Sequence[float], how: Compare
) -> tuple[dict[float, Interval | None], dict[float, list[Interval | None]]]:
    """Differences of RCT by quantile: over all days, and of each day."""
    all_and_days = frame.all_and_days
    of_quantiles = {q: [plays.compare_quantile("rct", q, arm, "sp", how) for plays in all_and_days] for q in quantiles}
    return {q: of[0] for q, of in of_quantiles.items()}, {q: of[1:] for q, of in of_quantiles.items()}


def fig1c(_folder: Path, data: Data) -> Exhibit:
    frame = frame_of(data)
    quantiles = (0.5, 0.9, 0.99)
    overall, by_day = _against_sp(frame, "vanilla-mp", quantiles, increase)
    chunk = int(frame.outcome.record["population"]["video"]["chunk_bytes"])
    whole_requests = frame.plays.of_size(chunk)
    theirs = {
        0.5: "up to 16 % worse; better on some days",
        0.9: "better or worse by day",
        0.99: "worse on every day, by up to 28 %",
    }
    return frame.exhibit(
        title="Vanilla multipath QUIC against single path, by day",
        place="Fig. 1c, section 3.3",
        summary=f"Is multipath without re-injection worse than a single path for ordinary viewers? Its median RCT is "
        f"{change(overall[0.5], *SLOWER_WORDS)}, its p99 {change(overall[0.99], *SLOWER_WORDS)}.",
        tables=[*_rct_tables(frame, "vanilla-mp", quantiles, gain=False), _group_table(frame, "vanilla-mp")],
        plots=_rct_plot(frame, ("sp", "vanilla-mp"), quantiles),
        paper=[
            PaperValue(
                what=f"RCT p{100 * q:g}, change against single path",
                theirs=theirs[q],
                ours=f"{change(overall[q], *SLOWER_WORDS)}; {between(by_day[q], *SLOWER_WORDS)}",
                source="section 3.3" + (" (the legend of Fig. 1c says 95th)" if q == 0.9 else ""),
            )
            for q in quantiles
        ]
        + [
            PaperValue(
                what=f"RCT of {chunk / 1e6:g} MB, sp and multipath, of whole requests; the slides: in one sample",
                theirs="p50 0.294 and 0.339 s, p90 0.563 and 0.671 s, p95 0.825 and 0.902 s, p99 2.028 and 2.010 s",
                ours=", ".join(
                    f"p{100 * q:g} " + " and ".join(
                        text(whole_requests.quantile("rct", arm, q), " s", 3) for arm in ("sp", "vanilla-mp")
                    )
                    for q in (0.5, 0.9, 0.95, 0.99)
                ),
                source="slides of the authors, 2021-10",
            )
        ],
        claims=claims_of(frame),
    )  # fmt: skip


def _rebuffer_table(frame: Frame, ours: Sequence[str], theirs: Sequence[float]) -> Table:
    names = [("day", ""), ("viewers", ""), ("sp", "% of play time")]
    for arm in ours:
        names += [(arm, "% of play time"), ("reduction", "%"), (INTERVAL, "%")]
    rows: list[list[Value]] = []
    for name, plays in [*((str(day), frame.plays.day(day)) for day in frame.days), (ALL, frame.plays)]:
        row: list[Value] = [name, plays.viewers(), round(100 * plays.value(REBUFFER_RATE, "sp"), 4)]
        for arm in ours:
            how = plays.rebuffer_improvement(arm, "sp")
            row += [round(100 * plays.value(REBUFFER_RATE, arm), 4), cell(how, 1), span(how)]
        number = int(name) - 1 if name != ALL else -1
        rows.append([*row, theirs[number] if 0 <= number < len(theirs) else None])
    return Table(
        title="Rebuffer rate by day",
        columns=columns(*names, ("the paper's reduction", "%")),
        rows=rows,
        note="Sum of rebuffer times / sum of play times; negative is worse. No value: nobody stalled on single path "
        "that day. Few viewers stall at all, so intervals of single days are wide. "
        "The paper's days are other days." + (f" {OURS_NOTE}" if "xlink+" in ours else ""),
    )


def _rebuffer_plot(frame: Frame, arms: Sequence[str]) -> Plot:
    drawn = [
        Curve(arm, frame.style(arm), [percent(frame.plays.day(day).level(REBUFFER_RATE, arm)) for day in frame.days])
        for arm in arms
    ]
    overall = ", ".join(f"{arm} {100 * frame.plays.value(REBUFFER_RATE, arm):.2f} %" for arm in arms)
    return curves(
        f"{frame.spec.name}-rebuffer",
        "Rebuffer rate by day",
        frame.days,
        drawn,
        ("day", "rebuffer time / play time, %"),
        f"The rebuffer rate by day; over all days {overall}.",
    )


def _stalled(frame: Frame, ours: str) -> str:
    """The number of viewers behind the comparison of rebuffer rates, in words."""
    conditions = ["sp > 0", "ours < sp", "ours > sp", f"sp > 0 AND {MOVING}"]
    arms = {"sp": "sp", "ours": ours}
    stalled, less, more, moving = frame.plays.viewers_who(conditions, "rebuffer_time_s", arms)
    return (
        f"{stalled} of {frame.plays.viewers()} viewers stall on single path, {moving} of them in motion; "
        f"with {ours} {less} stall less and {more} more"
    )


def table1(_folder: Path, data: Data) -> Exhibit:
    theirs = (-34.6, -54.6, -47.7, -48.3, -96.5, -77.8, -41.5)
    frame = frame_of(data)
    overall, *days = (plays.rebuffer_improvement("vanilla-mp", "sp") for plays in frame.all_and_days)
    worse = sum(day is not None and day.value < 0 for day in days)
    return frame.exhibit(
        title="Rebuffer rate of vanilla multipath QUIC against single path",
        place="table 1, section 3.3",
        summary=f"Does multipath without re-injection stall more than a single path? Its rebuffer rate is "
        f"{change(overall, *LOWER_WORDS)}; it stalls more on {worse} of {len(days)} days.",
        tables=[_rebuffer_table(frame, ["vanilla-mp"], theirs)],
        plots=[_rebuffer_plot(frame, ("sp", "vanilla-mp"))],
        paper=[
            PaperValue(
                what="rebuffer rate, vanilla-mp against sp",
                theirs="34.6 to 96.5 % higher by day",
                ours=f"{change(overall, *LOWER_WORDS)}; {between(days, *LOWER_WORDS)}",
                source="table 1",
            )
        ],
        claims=claims_of(frame),
    )


def _why_within(frame: Frame, days: Sequence[Interval | None], q: float, ours: str, least: float) -> str:
    known = [day for day in days if day is not None]
    good = sum(day.value >= least for day in known)
    parts = [
        f"it is at least {least:g} % on {good} of {len(known)} days, of "
        f"{frame.outcome.record['viewers_per_day']} viewers each"
    ]
    home = frame.plays.where(AT_HOME)
    if home.viewers() and q == 0.5:
        share = 100 * home.viewers() / frame.plays.viewers()
        gain = home.compare_quantile("rct", q, ours, "sp", improvement)
        parts.append(
            f"{share:.0f} % of the viewers are at home, where it is {change(gain, *FASTER_WORDS)}: seconds are "
            "buffered there, so the gate is closed, and what min-RTT gave to the slow path is waited for"
        )
    return "; ".join(parts)


def _why(frame: Frame, row: PaperClaim, ours: str, days: Sequence[Interval | None]) -> str:
    if row.figure == REBUFFER_RATE.name:
        return _stalled(frame, ours)
    if row.rule == "worse":
        return _why_worse(frame, ours)
    return _why_within(frame, days, RCT_QUANTILES[str(row.figure)], ours, row.numbers["least"])


def _claim(frame: Frame, row: PaperClaim) -> Claim:
    """A claim on one figure of an arm against single path's: over all viewers, and by day."""
    worse, ours = row.rule == "worse", str(row.a)
    if row.figure == REBUFFER_RATE.name:
        overall, *days = (plays.rebuffer_improvement(ours, "sp") for plays in frame.all_and_days)
        direction, carry = LOWER_WORDS, frame.plays.to_meet(STALLED, ours, "sp")
        judged, judged_days = (
            (overall and overall.turned(), [day and day.turned() for day in days]) if worse else (overall, days)
        )
    else:
        q, how = RCT_QUANTILES[str(row.figure)], increase if worse else improvement
        overall, *days = (plays.compare_quantile("rct", q, ours, "sp", how) for plays in frame.all_and_days)
        direction, carry = SLOWER_WORDS if worse else FASTER_WORDS, frame.plays.to_carry("rct", q, ours, "sp")
        judged, judged_days = overall, days
    if worse:
        word: Verdict = verdicts.worse(judged, judged_days)
        boundaries: tuple[float, ...] = (0.0,)
    else:
        least = row.numbers["least"]
        word, boundaries = verdicts.within(judged, least, row.numbers["most"]), verdicts.least(judged, least)
    return verdicts.claim(
        row,
        ours=f"{change(overall, *direction)} ({between(days, *direction)})",
        **verdicts.outlook(word, overall, frame.plays.viewers(), boundaries, carry),
        because=_why(frame, row, ours, days),
    )


def claims_of(frame: Frame) -> list[Claim]:
    """The rows of the exhibit's file, judged."""
    for row in frame.spec.claims:
        if not is_on_a_figure(row):
            raise UserError(f"{frame.spec.name}: claim '{row.id}': {ON_A_FIGURE}")
    return [_claim(frame, row) for row in frame.spec.claims]


def fig11(_folder: Path, data: Data) -> Exhibit:
    frame = frame_of(data)
    quantiles = (0.5, 0.95, 0.99)
    overall, by_day = _against_sp(frame, "xlink", quantiles, improvement)
    theirs = {0.5: "2.3 to 8.9 % better (one day 0.7 % worse)", 0.95: "9.4 to 34 % better", 0.99: "19 to 50 % better"}
    ours = [table for arm in OURS for table in _rct_tables(frame, arm, quantiles, gain=True)]
    ours = [table.model_copy(update={"note": f"{table.note} {OURS_NOTE}"}) for table in ours]
    return frame.exhibit(
        title="XLINK against single path, by day",
        place="Fig. 11, section 7.2",
        summary=f"Is XLINK faster for ordinary viewers? Its median RCT is {change(overall[0.5], *FASTER_WORDS)}, its "
        f"p95 {change(overall[0.95], *FASTER_WORDS)}, its p99 {change(overall[0.99], *FASTER_WORDS)}.",
        tables=[*_rct_tables(frame, "xlink", quantiles, gain=True), *ours],
        plots=_rct_plot(frame, ("sp", "xlink", *OURS), quantiles),
        paper=[
            PaperValue(
                what=f"RCT p{100 * q:g}, against single path",
                theirs=theirs[q],
                ours=f"{change(overall[q], *FASTER_WORDS)}; {between(by_day[q], *FASTER_WORDS)}",
                source="Fig. 11",
            )
            for q in quantiles
        ],
        claims=claims_of(frame),
    )


def table3(_folder: Path, data: Data) -> Exhibit:
    theirs = (27.0, 48.41, 55.16, 66.36, 67.67, 23.81, 53.99)
    frame = frame_of(data)
    overall, *days = (plays.rebuffer_improvement("xlink", "sp") for plays in frame.all_and_days)
    return frame.exhibit(
        title="Rebuffer rate of XLINK against single path",
        place="table 3, section 7.2",
        summary=f"Does XLINK stall less than a single path? Its rebuffer rate is {change(overall, *LOWER_WORDS)}.",
        tables=[_rebuffer_table(frame, ["xlink", *OURS], theirs)],
        plots=[_rebuffer_plot(frame, ("sp", "xlink", *OURS))],
        paper=[
            PaperValue(
                what="rebuffer rate, xlink against sp",
                theirs="23.81 to 67.67 % lower by day",
                ours=f"{change(overall, *LOWER_WORDS)}; {between(days, *LOWER_WORDS)}",
                source="table 3",
            )
        ],
        claims=claims_of(frame),
    )
