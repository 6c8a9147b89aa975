"""Costs and gains of the double threshold over a population: fig10 and table2."""

from collections.abc import Sequence
from pathlib import Path

from railyard.base.style import BLUE, ORANGE, LineStyle
from railyard.experiment.model import MeasuredScheme
from railyard.figures.rows import REINJECTION_COST
from railyard.report.exhibit import INTERVAL, Claim, Exhibit, PaperValue, Table
from railyard.results.tables import Value
from railyard.stats.intervals import Interval
from railyard.stats.verdict import Answer, Verdict, above, below, both, in_steps, of_parts
from railyard.studies.claims import PaperClaim
from railyard.studies.exhibits import verdicts
from railyard.studies.exhibits.frame import columns
from railyard.studies.exhibits.population_frame import (
    Curve,
    Data,
    Frame,
    cell,
    change,
    curves,
    frame_of,
    percent,
    span,
    text,
)
from railyard.studies.population.figures import Plays, improvement
from railyard.studies.thresholds import DANGER_MS

# The settings of Fig. 10 and table 2 with their arms. The arm xlink is (95, 80).
SETTINGS = {"off": "off", "95-80": "xlink", "90-80": "90-80", "90-60": "90-60", "60-50": "60-50", "60-1": "60-1"}
SETTINGS |= {"1-1": "1-1"}
PAPER_TABLE2 = {"95-80": 66.14, "90-80": 57.59, "90-60": 55.65, "60-50": 78.87, "60-1": 64.74, "1-1": 62.23}
PAPER_COST = {"95-80": "2.1 %", "1-1": "15 %"}
# The p of "the buffer level that p % of the samples exceed", as quantiles from below.
LEVELS = {"p50": 0.5, "p90": 0.1, "p95": 0.05, "p99": 0.01}
IN_DANGER = f"list_min(play_time_left_ms) < {DANGER_MS}"  # a condition on a play, in SQL
LEVEL_STYLES = {
    "p90": LineStyle(BLUE, "dot", "circle"),
    "p95": LineStyle(BLUE, "dash", "square"),
    "p99": LineStyle(BLUE, "solid", "star"),
}
FORMS = {
    "copies always": ("control off", "xlink"),
    "copies that pay": ("xlink-lean, control off", "xlink-lean"),
}


def _cost(frame: Frame, arm: str) -> Interval | None:
    return percent(frame.plays.level(REINJECTION_COST, arm))


def _thresholds(frame: Frame, arm: str) -> tuple[Value, Value]:
    for entry in frame.outcome.entries:
        if entry.base_label() == arm and isinstance(entry, MeasuredScheme):
            return round(entry.measured.t_th1_ms), round(entry.measured.t_th2_ms)
    return None, None


def _level(frame: Frame, arm: str, q: float, other: str = "sp") -> Interval | None:
    return frame.plays.compare_quantile("play_time_left", q, arm, other, lambda a, b: -improvement(a, b))


def bounds_of(setting: str, beta: float) -> tuple[float, float]:
    """Section 7.1: the cost of (X, Y) is at least β(1 − X) and at most β(1 − Y)."""
    x, y = (float(part) for part in setting.split("-"))
    return beta * (1 - x / 100), beta * (1 - y / 100)


def within_bounds(costs: dict[str, Interval | None], beta: float) -> tuple[Answer, Answer]:
    """Whether every setting keeps the lower bound, and the upper one. (1, 1) is left out: its two bounds are nearly the
    same number, and so is its cost."""
    apart = {name: cost for name, cost in costs.items() if name not in ("off", "1-1")}
    return (
        both(above(cost, bounds_of(name, beta)[0]) for name, cost in apart.items()),
        both(below(cost, bounds_of(name, beta)[1]) for name, cost in apart.items()),
    )


def _bounds_claim(frame: Frame, costs: dict[str, Interval | None], beta: Interval | None) -> Claim:
    kept: tuple[Answer, Answer] = (None, None) if beta is None else within_bounds(costs, beta.value)
    beyond = [
        f"{name} {text(cost, digits=2)}, not {low:.2f} to {high:.2f} %"
        for name, cost in costs.items()
        if beta is not None and cost is not None and name not in ("off", "1-1")
        for low, high in (bounds_of(name, beta.value),)
        if above(cost, low) is False or below(cost, high) is False
    ]
    nearest = (0.0,) if beta is None else bounds_of("95-80", beta.value)
    return verdicts.claim(
        frame.spec.row("cost-within-bounds"),
        ours=f"β is {text(beta, digits=2)}; beyond its bounds: {'; '.join(beyond) or 'no setting'}",
        **verdicts.outlook(of_parts(kept), costs["95-80"], frame.plays.viewers(), nearest),
        because="the bounds take β to be the same at every play-time left, and the gate not to change play-time left; "
        "docs/results/reinjection.md says when they hold",
    )


def _cost_table(frame: Frame) -> Table:
    beta = _cost(frame, "control off")
    rows: list[list[Value]] = []
    for setting, arm in SETTINGS.items():
        cost = _cost(frame, arm)
        bounds: list[Value] = [None, None]
        if setting != "off" and beta is not None:
            bounds = [round(bound, 2) for bound in bounds_of(setting, beta.value)]
        rows.append([setting, *_thresholds(frame, arm), cell(cost), span(cost, 2), *bounds, PAPER_COST.get(setting)])
    return Table(
        title="Cost against thresholds",
        columns=columns(
            *(("(X, Y)", ""), ("T_th1", "ms"), ("T_th2", "ms"), ("cost", "%"), (INTERVAL, "%")),
            *(("β(1 − X)", "%"), ("β(1 − Y)", "%"), ("the paper's cost", "")),
        ),
        rows=rows,
        note="Cost: re-injected bytes / other stream bytes. off: no re-injection. β: the cost with the control off, "
        f"{text(beta)}. docs/results/reinjection.md says why the bounds are not exact.",
    )


def _level_table(frame: Frame) -> Table:
    rows: list[list[Value]] = []
    for name, arm in [("sp", "sp"), *SETTINGS.items()]:
        row: list[Value] = [name]
        for q in LEVELS.values():
            row.append(cell(frame.plays.quantile("play_time_left", arm, q), 0))
            how = _level(frame, arm, q) if arm != "sp" else None
            row += [cell(how, 1), span(how)]
        rows.append(row)
    names = [("(X, Y)", "")]
    for level in LEVELS:
        names += [(level, "ms"), (f"{level} over sp", "%"), (INTERVAL, "%")]
    return Table(
        title="Play-time left",
        columns=columns(*names),
        rows=rows,
        note="pX: X % of the samples, one every 100 ms from the start of playing to the last byte, are greater.",
    )


def _forms_table(frame: Frame) -> Table:
    rows: list[list[Value]] = []
    for name, arms in FORMS.items():
        costs = [_cost(frame, arm) for arm in arms]
        rows.append([name, *(entry for cost in costs for entry in (cell(cost), span(cost, 2)))])
    return Table(
        title="Cost of both rules of copying",
        columns=columns(*(("rule", ""), ("control off", "%"), (INTERVAL, "%"), ("95-80", "%"), (INTERVAL, "%"))),
        rows=rows,
        note="xlink copies all that mode and gate let through (copy_rule: always), as the paper's text says; "
        "xlink-lean only what is expected earlier on the other path (pays).",
    )


def _below(plays: Plays, arm: str, other: str) -> Interval | None:
    """The play-time left that 99 % of an arm's samples exceed: the difference below another arm's, in %."""
    return plays.compare_quantile("play_time_left", LEVELS["p99"], arm, other, improvement)


def needs_copies(against_sp: Interval | None, against_gated: Interval | None) -> Verdict:
    """Without re-injection buffers are lower: than on single path, or at least than with (95, 80)."""
    return in_steps(above(against_sp), above(against_gated))


def diminishes(gain: Interval | None, further: Sequence[Interval | None], little_percent: float) -> Verdict:
    """(95, 80) gains over single path, and no dearer setting gains more than a little over (95, 80)."""
    if above(gain) is not True:
        return in_steps(above(gain), above(gain))
    little = both(below(more, little_percent) for more in further)
    return "partly" if any(above(more) for more in further) and little is not True else in_steps(little, little)


def _mechanism_claims(frame: Frame, costs: dict[str, Interval | None]) -> list[Claim]:
    """The claims of section 7.1 other than the two costs."""
    plays = frame.plays
    against_sp, against_gated = _below(plays, "off", "sp"), _below(plays, "off", "xlink")
    dearer = [name for name in SETTINGS if name not in ("off", "95-80")]
    further = [_level(frame, SETTINGS[name], LEVELS["p99"], "xlink") for name in dearer]
    gain = _level(frame, "xlink", LEVELS["p99"])
    best = max(
        (interval for interval in further if interval is not None),
        key=lambda interval: interval.value,
        default=None,
    )
    carry = plays.to_carry("play_time_left", LEVELS["p99"], "off", "xlink", "sp")
    saved = {pair: (costs[pair[0]], costs[pair[1]]) for pair in (("90-80", "90-60"), ("60-50", "60-1"))}
    rises = {pair: b.value - a.value for pair, (a, b) in saved.items() if a is not None and b is not None}
    said = ", ".join(f"{name} {text(costs[name], digits=2)}" for pair in saved for name in pair)
    diminishing, saves = frame.spec.row("diminishing-returns"), frame.spec.row("delivery-time-saves")
    word = diminishes(gain, further, diminishing.numbers["little"])
    return [
        verdicts.claim(
            frame.spec.row("reinjection-necessary"),
            ours="the level that 99 % of the samples exceed, against single path's: "
            f"{change(against_sp, 'lower', 'higher')}; against that of (95, 80): "
            f"{change(against_gated, 'lower', 'higher')}",
            **verdicts.outlook(needs_copies(against_sp, against_gated), against_sp, plays.viewers(), carry=carry),
            because="without re-injection this is min-RTT scheduling alone; who gains and who loses by it is in fig1c",
        ),
        verdicts.claim(
            diminishing,
            ours="the level that 99 % of the samples exceed, (95, 80) against single path: "
            f"{change(gain, 'higher', 'lower')}; the best dearer setting against (95, 80): "
            f"{change(best, 'higher', 'lower')}",
            **verdicts.outlook(word, gain, plays.viewers(), carry=carry),
            because="what empties a buffer is seen at a low buffer level, where the gate is open at every setting",
        ),
        verdicts.claim(
            saves,
            ours=said,
            verdict=of_parts([rise < saves.numbers["points"] for rise in rises.values()]),
            because="between the thresholds a copy is made only if the play-time left is below the slowest path's "
            "delivery time, which it seldom is while seconds are buffered",
        ),
    ]


def _cost_claim(frame: Frame, row: PaperClaim, form: Interval | None, own: Interval | None, because: str) -> Claim:
    """A claim about costs. `form`: the cost of the paper's form. `own`: that of copies that must pay."""
    boundary = (row.numbers["theirs"], row.numbers["factor"])
    word = verdicts.cost(form, own, *boundary)
    return verdicts.claim(
        row,
        ours=f"in the paper's form, which copies always, {text(form, digits=2)}; copies that pay {text(own, digits=2)}",
        **verdicts.outlook(word, form, frame.plays.viewers(), verdicts.nearer(form, *boundary)),
        because=because,
    )


def fig10(_folder: Path, data: Data) -> Exhibit:
    frame = frame_of(data)
    costs = {setting: _cost(frame, arm) for setting, arm in SETTINGS.items()}
    always, pays = (
        dict(zip(("off", "95-80"), (_cost(frame, arm) for arm in arms), strict=True)) for arms in FORMS.values()
    )
    level = {setting: _level(frame, arm, LEVELS["p99"]) for setting, arm in SETTINGS.items()}
    names = list(SETTINGS)
    plots = [
        curves(
            "fig10-cost", "Cost against thresholds", names,
            [Curve("cost", LineStyle(ORANGE, "dash", "square"), list(costs.values()))],
            ("(X, Y)", "re-injected / other stream bytes, %"),
            f"Cost rises from nothing (off) over {text(costs['95-80'])} at 95-80 to {text(costs['1-1'])} at 1-1.",
        ),
        curves(
            "fig10-level", "Play-time left over single path's", names,
            [
                Curve(name, style, [_level(frame, arm, LEVELS[name]) for arm in SETTINGS.values()])
                for name, style in LEVEL_STYLES.items()
            ],
            ("(X, Y)", "improvement over sp, %"),
            "At 95-80 the play-time left that 99 % of samples exceed, against single path's, is "
            f"{change(level['95-80'], 'higher', 'lower')}.",
        ),
    ]  # fmt: skip
    return frame.exhibit(
        title="Buffer level and cost against the thresholds",
        place="Fig. 10, section 7.1",
        summary="What do the thresholds cost, and what do they bring? (95, 80) costs "
        f"{text(costs['95-80'], digits=2)}, "
        f"the gate always open {text(always['off'], digits=2)}; against single path's, "
        f"the play-time left that 99 % of the samples exceed is {change(level['off'], 'higher', 'lower')} without "
        f"re-injection and {change(level['95-80'], 'higher', 'lower')} with (95, 80).",
        tables=[_cost_table(frame), _level_table(frame), _forms_table(frame)],
        plots=plots,
        paper=[
            PaperValue(
                what=f"cost of {what}",
                theirs=theirs,
                ours=f"copies always {text(form, digits=2)}; copies that pay {text(own, digits=2)}",
                source="section 7.1, Fig. 10",
            )
            for what, theirs, form, own in (
                ("(95, 80)", "2.1 %", always["95-80"], pays["95-80"]),
                ("(1, 1), control off", "15 %", always["off"], pays["off"]),
            )
        ],
        claims=[
            _cost_claim(
                frame,
                frame.spec.row("cost-95-80"),
                always["95-80"],
                pays["95-80"],
                "the cost is that of an open gate, times the share of the time in which it is open; "
                "xlink-lean makes only copies that pay, those expected earlier on the other path",
            ),
            _cost_claim(
                frame,
                frame.spec.row("cost-off-15"),
                always["off"],
                pays["off"],
                "the cost is the share of a request that is in flight when its last packet leaves, and so it "
                "depends on request size and queues: 1 MB here, as the slides say, and queues that nobody states",
            ),
            _bounds_claim(frame, costs, always["off"]),
            *_mechanism_claims(frame, costs),
        ],
    )


def _over_thresholds(gains: dict[str, Interval | None]) -> str:
    known = [gain.value for name, gain in gains.items() if gain is not None and name != "off"]
    return f"{min(known):.1f} to {max(known):.1f} %" if known else "not known"


def table2(_folder: Path, data: Data) -> Exhibit:
    frame = frame_of(data)
    danger = frame.spec.row("danger-95-80")
    sp, in_danger = percent(frame.plays.below("sp", DANGER_MS)), frame.plays.meeting(IN_DANGER, "sp")
    rows: list[list[Value]] = [["sp", cell(sp, 3), span(sp, 2), None, None, None]]
    reductions: dict[str, Interval | None] = {}
    for setting, arm in SETTINGS.items():
        share = percent(frame.plays.below(arm, DANGER_MS))
        reductions[setting] = frame.plays.below_improvement(DANGER_MS, arm, "sp")
        paper = PAPER_TABLE2.get(setting)
        rows.append(
            [setting, cell(share, 3), span(share, 2), cell(reductions[setting], 1), span(reductions[setting]), paper]
        )
    table = Table(
        title="Samples with less than 50 ms of play-time left",
        columns=columns(
            *(("(X, Y)", ""), ("share", "%"), (INTERVAL, "%"), ("reduction against sp", "%")),
            *((INTERVAL, "%"), ("the paper's reduction", "%")),
        ),
        rows=rows,
        note="Samples from the start of playing to the arrival of the last byte; stalls are in them.",
    )
    drawn = curves(
        "table2-danger", "Reduction of samples below 50 ms", list(SETTINGS),
        [Curve("here", LineStyle(BLUE, "solid", "star"), list(reductions.values())),
         Curve("paper", LineStyle(ORANGE, "dash", "square"),
               [None if name == "off" else Interval(*(PAPER_TABLE2[name],) * 3) for name in SETTINGS])],
        ("(X, Y)", "reduction against sp, %"),
        f"Samples below 50 ms are {change(reductions['95-80'], 'fewer', 'more')} at 95-80; the paper has 66.1 % fewer.",
    )  # fmt: skip
    return frame.exhibit(
        title="Danger of stalling against the thresholds",
        place="table 2, section 7.1",
        summary=f"How much more seldom is the buffer nearly empty than on single path? Samples below 50 ms are "
        f"{change(reductions['95-80'], 'fewer', 'more')} with (95, 80), "
        f"{change(reductions['1-1'], 'fewer', 'more')} with the gate open, "
        f"{change(reductions['off'], 'fewer', 'more')} without re-injection.",
        tables=[table],
        plots=[drawn],
        paper=[
            PaperValue(
                what=f"samples below 50 ms, ({name})",
                theirs=f"{value} % fewer",
                ours=change(reductions[name], "fewer", "more"),
                source="table 2",
            )
            for name, value in PAPER_TABLE2.items()
        ],
        claims=[
            verdicts.claim(
                danger,
                ours=change(reductions["95-80"], "fewer", "more"),
                **verdicts.outlook(
                    verdicts.agrees(reductions["95-80"], danger.numbers["theirs"]),
                    reductions["95-80"],
                    frame.plays.viewers(),
                    verdicts.least(reductions["95-80"], danger.numbers["theirs"]),
                    frame.plays.to_meet(IN_DANGER, "sp", "xlink"),
                ),
                because=f"{in_danger} of {frame.plays.viewers()} viewers on single path have such samples, so "
                f"the interval is wide; over all thresholds it is {_over_thresholds(reductions)}",
            )
        ],
    )
