"""First-frame latency over a population, with and without first-frame acceleration: fig12."""

from __future__ import annotations

from pathlib import Path

from railyard.exhibits.intervals import Interval
from railyard.exhibits.model import Cell, Claim, Exhibit, PaperValue, Table, Verdict
from railyard.exhibits.population_frame import (
    PLUS_NOTE,
    Curve,
    Data,
    Frame,
    cell,
    change,
    columns,
    curves,
    exhibit,
    frame_of,
    span,
)
from railyard.population.figures import improvement

QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99)
EARLIER_WORDS = ("earlier", "later")
WITH, WITHOUT = "xlink", "xlink without first-frame acceleration"
ARMS = (WITH, WITHOUT, "vanilla-mp", "xlink+")


def _gain(frame: Frame, arm: str, q: float) -> Interval | None:
    return frame.plays.compare_quantile("first_frame", q, arm, "sp", improvement)


def verdict(accelerated: Interval | None, plain: Interval | None) -> Verdict:
    """Holds: better by 32 % with, and worse without. Partly: better with, beyond chance, whatever it is without."""
    if accelerated is None or plain is None or accelerated.low <= 0:
        return "does not hold"
    return "holds" if accelerated.value >= 32 and plain.value < 0 else "partly"


def _because(frame: Frame) -> str:
    rows = {(row["arm"], row["day"], row["viewer"]): row for row in frame.plays.rows}
    viewers = sorted({(row["day"], row["viewer"]) for row in frame.plays.rows})
    earlier = sum(
        (rows[WITH, *who]["first_frame_s"] or 1e9) < (rows[WITHOUT, *who]["first_frame_s"] or 1e9) for who in viewers
    )
    same = sum(rows[WITH, *who]["first_frame_s"] == rows["sp", *who]["first_frame_s"] for who in viewers)
    return (
        f"the marked frame comes earlier than without acceleration for {earlier} of {len(viewers)} viewers, and as on "
        f"single path for {same}: handshake and first windows are on the primary path alone, and the second path "
        "opens a round trip later, so it seldom carries a first frame that could wait for it"
    )


def fig12(_folder: Path, data: Data) -> Exhibit:
    frame = frame_of(data)
    rows: list[list[Cell]] = []
    for arm in ("sp", *ARMS):
        row: list[Cell] = [arm]
        for q in QUANTILES:
            how = _gain(frame, arm, q) if arm != "sp" else None
            row += [cell(frame.plays.quantile("first_frame", arm, q), 3), cell(how, 1), span(how)]
        rows.append(row)
    names = [("scheme", "")]
    for q in QUANTILES:
        names += [(f"p{100 * q:g}", "s"), (f"p{100 * q:g} over sp", "%"), ("95 % interval", "%")]
    accelerated, plain, plus = (_gain(frame, arm, 0.99) for arm in (WITH, WITHOUT, "xlink+"))
    with_words, without_words = (change(gain, "better", "worse") for gain in (accelerated, plain))
    table = Table(
        title="First-frame latency",
        columns=columns(*names),
        rows=rows,
        note="From the player's start, handshake included, to the last byte of the first frame. Positive: earlier than "
        f"on single path. Without acceleration: stream priority only. {PLUS_NOTE}",
    )
    drawn = curves(
        "fig12-improvement",
        "First-frame latency, improvement over single path",
        [f"p{100 * q:g}" for q in QUANTILES],
        [Curve(arm, frame.style(arm), [_gain(frame, arm, q) for q in QUANTILES]) for arm in ARMS],
        ("percentile", "improvement over sp, %"),
        f"Against single path's, the p99 of xlink's first frame is {change(accelerated, *EARLIER_WORDS)}, without "
        f"acceleration {change(plain, *EARLIER_WORDS)}.",
    )
    return exhibit(
        frame,
        "First-frame latency with and without acceleration",
        "Fig. 12, section 7.2",
        f"Does marking the first frame bring it earlier? Against single path's, the p99 is "
        f"{change(accelerated, *EARLIER_WORDS)} with acceleration and {change(plain, *EARLIER_WORDS)} without; "
        f"with xlink+, which races handshakes, {change(plus, *EARLIER_WORDS)}.",
        [table],
        [drawn],
        [
            PaperValue(what="p99, with acceleration", theirs="32 % better", ours=with_words, source="Fig. 12"),
            PaperValue(what="p99, without acceleration", theirs="14 % worse", ours=without_words, source="Fig. 12"),
        ],
        [
            Claim(
                id="first-frame-p99",
                claim="The first frame's p99 is 32 % better than single path's with acceleration, 14 % worse without.",
                theirs="32 % better; 14 % worse",
                ours=f"with: {with_words}; without: {without_words}",
                verdict=verdict(accelerated, plain),
                because=_because(frame),
                rule="holds if better by 32 % or more with acceleration, beyond the interval, and worse without; "
                "partly if only better with it, beyond the interval",
            )
        ],
    )
