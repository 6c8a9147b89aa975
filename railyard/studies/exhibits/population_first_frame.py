"""First-frame latency over a population, with and without first-frame acceleration: fig12.

Two videos use one connection. The first one begins with the handshake, before the second path is open. The next one has
both paths open, with the windows that the first one left.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from railyard.base.style import BLUE, GREEN, ORANGE, LineStyle
from railyard.report.exhibit import INTERVAL, Claim, Exhibit, PaperValue, Plot, Table
from railyard.results.tables import Value
from railyard.stats.intervals import Interval
from railyard.stats.verdict import Answer, Verdict, above, in_steps
from railyard.studies.exhibits import verdicts
from railyard.studies.exhibits.frame import columns
from railyard.studies.exhibits.population_frame import (
    OURS_NOTE,
    Curve,
    Data,
    Frame,
    cell,
    change,
    curves,
    frame_of,
    span,
)
from railyard.studies.population.figures import improvement

QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99)
EARLIER_WORDS = ("earlier", "later")
# The paper's form of the algorithm, which always copies, and this testbed's, whose copies must pay.
WITH, WITHOUT = "xlink", "xlink without first-frame acceleration"
OWN_WITH, OWN_WITHOUT = "xlink-lean", "xlink-lean without first-frame acceleration"
ARMS = (WITH, WITHOUT, OWN_WITH, OWN_WITHOUT, "xlink+")
# A colour for each form of the algorithm, and a dash for "without".
STYLES = {
    WITH: LineStyle(BLUE, "solid", "circle"),
    WITHOUT: LineStyle(BLUE, "dash", "square"),
    OWN_WITH: LineStyle(ORANGE, "solid", "diamond"),
    OWN_WITHOUT: LineStyle(ORANGE, "dash", "cross"),
    "xlink+": LineStyle(GREEN, "dot", "star-diamond"),
}


@dataclass(frozen=True)
class Start:
    """A selection of first frames."""

    key: str
    what: Literal["first_frame", "later_first_frame"]
    title: str
    claim_id: str


FIRST = Start("first", "first_frame", "the first video of a connection", "first-frame-p99")
LATER = Start("next", "later_first_frame", "the next video over the same connection", "next-video-first-frame-p99")
STARTS = (FIRST, LATER)


def _gain(frame: Frame, start: Start, arm: str, q: float, over: str = "sp") -> Interval | None:
    return frame.plays.compare_quantile(start.what, q, arm, over, improvement)


def verdict(accelerated: Interval | None, plain: Interval | None, theirs: float) -> Verdict:
    """The verdict. Holds: better by `theirs` percent with acceleration, and worse without. Partly: better with it,
    beyond chance."""
    better = above(accelerated)
    if accelerated is None or plain is None or better is not True:
        return in_steps(better, better)
    return "holds" if accelerated.high >= theirs and plain.value < 0 else "partly"


def helps(gains: dict[float, Interval | None]) -> Verdict:
    """The verdict on acceleration against none. Holds: an established gain at the p99. Partly: only at another
    percentile."""
    return in_steps(above(gains.get(0.99)), _any(above(gain) for gain in gains.values()))


def _any(answers: Iterable[Answer]) -> Answer:
    given = list(answers)
    return True if True in given else None if None in given else False


def grows(gains: dict[float, Interval | None]) -> Verdict:
    """The verdict on the claim that the gain grows towards the tail. Holds: from each percentile to the next. Partly:
    only from the first to the last."""
    known = [gain.value for _, gain in sorted(gains.items()) if gain is not None and gain.known]
    if len(known) < 2:
        return "not decided"
    if known[-1] <= known[0]:
        return "does not hold"
    return "holds" if all(a <= b for a, b in pairwise(known)) else "partly"


def _because(frame: Frame, start: Start) -> str:
    total_s = f"coalesce(list_sum({frame.plays.values(start.what)}), 0)"
    conditions = ["accelerated < plain", "accelerated > plain", "plain > single", "plain < single", "true"]
    arms = {"accelerated": WITH, "plain": WITHOUT, "single": "sp"}
    earlier, later, slower, faster, viewers = frame.plays.viewers_who(conditions, total_s, arms)
    sentence = (
        f"with acceleration the frame comes earlier than without for {earlier} of {viewers} viewers, later for "
        f"{later}; without it, later than on single path for {slower}, earlier for {faster}"
    )
    if start is FIRST:
        sentence += (
            ": handshake and first windows are on the primary path, the second opens a round trip later, "
            "and so it seldom carries a first frame that could be waited for"
        )
    return sentence


def _table(frame: Frame, start: Start) -> Table:
    rows: list[list[Value]] = []
    for arm in ("sp", *ARMS):
        row: list[Value] = [arm]
        for q in QUANTILES:
            how = _gain(frame, start, arm, q) if arm != "sp" else None
            row += [cell(frame.plays.quantile(start.what, arm, q), 3), cell(how, 1), span(how)]
        rows.append(row)
    names = [("scheme", "")]
    for q in QUANTILES:
        names += [(f"p{100 * q:g}", "s"), (f"p{100 * q:g} over sp", "%"), (INTERVAL, "%")]
    since = "the player's start, handshake included," if start is FIRST else "the end of the video before"
    return Table(
        title=f"First-frame latency of {start.title}",
        columns=columns(*names),
        rows=rows,
        note=f"From {since} to the last byte of the first frame. Positive: earlier than on single path. Without "
        "acceleration: stream priority only. xlink is the paper's form; xlink-lean copies what pays, "
        f"docs/reference/wire.md. {OURS_NOTE}",
    )


def _plot(frame: Frame, start: Start) -> Plot:
    drawn = [Curve(arm, STYLES[arm], [_gain(frame, start, arm, q) for q in QUANTILES]) for arm in ARMS]
    accelerated, plain = (change(_gain(frame, start, arm, 0.99), *EARLIER_WORDS) for arm in (WITH, WITHOUT))
    return curves(
        f"fig12-{start.key}-video",
        f"First-frame latency of {start.title}, improvement over single path",
        [f"p{100 * q:g}" for q in QUANTILES],
        drawn,
        ("percentile", "improvement over sp, %"),
        f"At p99, with acceleration {accelerated} than on single path, without {plain}.",
    )


def _claim(frame: Frame, start: Start) -> Claim:
    row = frame.spec.row(start.claim_id)
    accelerated, plain = _gain(frame, start, WITH, 0.99), _gain(frame, start, WITHOUT, 0.99)
    own, own_plain = (change(_gain(frame, start, arm, 0.99), *EARLIER_WORDS) for arm in (OWN_WITH, OWN_WITHOUT))
    return verdicts.claim(
        row,
        ours=f"with {change(accelerated, *EARLIER_WORDS)}, without {change(plain, *EARLIER_WORDS)}; "
        f"where copies must pay, with {own}, without {own_plain}",
        **verdicts.outlook(
            verdict(accelerated, plain, row.numbers["better"]),
            accelerated,
            frame.plays.viewers(),
            carry=frame.plays.to_carry(start.what, 0.99, "sp", WITH, WITHOUT),
        ),
        because=_because(frame, start),
    )


def _outlook_of_help(frame: Frame, word: Verdict, between: dict[float, Interval | None]) -> dict[str, Any]:
    """The outlook. The claim is partly established as soon as one percentile is."""
    viewers, carry = frame.plays.viewers(), frame.plays.to_carry(LATER.what, 0.99, WITH, WITHOUT)
    every = [wants for wants in (verdicts.wants(gain, viewers) for gain in between.values()) if wants is not None]
    of_all = verdicts.outlook(word, between.get(0.99), viewers, carry=carry)
    return of_all | ({"wants": min(every, key=lambda wants: wants.units)} if every else {})


def _more_claims(frame: Frame) -> list[Claim]:
    between = {q: _gain(frame, LATER, WITH, q, WITHOUT) for q in QUANTILES}
    over_sp = {q: _gain(frame, LATER, WITH, q) for q in QUANTILES}
    return [
        verdicts.claim(
            frame.spec.row("acceleration-helps"),
            ours="; ".join(f"p{100 * q:g} {change(gain, *EARLIER_WORDS)}" for q, gain in between.items()),
            **_outlook_of_help(frame, helps(between), between),
            because="without it, packets of the frame that min-RTT gave to the slow path are waited for, or copied "
            "only when the whole request was sent",
        ),
        verdicts.claim(
            frame.spec.row("acceleration-gains-at-the-tail"),
            ours="; ".join(f"p{100 * q:g} {change(gain, *EARLIER_WORDS)}" for q, gain in over_sp.items()),
            verdict=grows(over_sp),
            because="where the primary path is at its worst, the paths differ most",
        ),
    ]


def fig12(_folder: Path, data: Data) -> Exhibit:
    frame = frame_of(data)
    said = []
    for start in STARTS:
        accelerated, plain, plus = (_gain(frame, start, arm, 0.99) for arm in (WITH, WITHOUT, "xlink+"))
        said.append(
            f"of {start.title} it is {change(accelerated, *EARLIER_WORDS)} with acceleration and "
            f"{change(plain, *EARLIER_WORDS)} without, {change(plus, *EARLIER_WORDS)} with xlink+"
        )
    return frame.exhibit(
        title="First-frame latency with and without acceleration",
        place="Fig. 12, section 7.2",
        summary=f"Does marking the first frame bring it earlier? Its p99 against single path's: {'; '.join(said)}.",
        tables=[_table(frame, start) for start in STARTS],
        plots=[_plot(frame, start) for start in STARTS],
        paper=[
            PaperValue(
                what=f"p99, {how} acceleration",
                theirs=theirs,
                ours="; ".join(
                    f"{start.title}: {change(_gain(frame, start, arm, 0.99), *EARLIER_WORDS)}" for start in STARTS
                ),
                source="Fig. 12, section 7.2",
            )
            for how, theirs, arm in (("with", "32 % better", WITH), ("without", "14 % worse", WITHOUT))
        ],
        claims=[*(_claim(frame, start) for start in STARTS), *_more_claims(frame)],
    )  # fmt: skip
