"""Fig. 6: the player's buffer and re-injected bytes over time, for vanilla multipath and re-injection without and with
QoE control; and the claim on head-of-line blocking over all places that the rule finds."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import plotly.graph_objects as go

from railyard.base.strips import in_strips
from railyard.base.style import BLUE, PATH_COLOURS, PURPLE, STALL_COLOUR, VERMILION
from railyard.figures.rows import REINJECTION_COST
from railyard.report.exhibit import Exhibit, PaperValue, Table
from railyard.results.records import Run
from railyard.results.serverlog import server_paths
from railyard.stats import intervals, pooled
from railyard.stats.intervals import Interval
from railyard.stats.verdict import Answer, Verdict, above, of_parts
from railyard.studies.exhibits import verdicts
from railyard.studies.exhibits.frame import (
    Frame,
    load_frame,
    part_of,
    player_settings,
    plot,
    required,
    styled,
    table,
    threshold_settings,
    translucent,
)
from railyard.studies.exhibits.series import buffered_bytes, capacity, reinjected, thinned
from railyard.studies.exhibits.spec import ExhibitSpec

VANILLA, ALWAYS, GATED = "vanilla-mp", "without QoE control", "with QoE control"
COLOURS = {VANILLA: PURPLE, ALWAYS: VERMILION, GATED: BLUE}
TITLES = {
    VANILLA: "vanilla-mp",
    ALWAYS: "re-injection without QoE control",
    GATED: "re-injection with QoE control (xlink)",
}
BIN_MS = 100


@dataclass(frozen=True)
class Findings:
    places: int
    stalled_places: dict[str, int]
    starved_places: dict[str, int]  # of these, those in which the other path carries less than the video meanwhile
    stall_s: dict[str, Interval]
    copied_mb: dict[str, Interval]
    cost: dict[str, float]
    stall_saved: dict[str, Interval]  # against vanilla, %
    copies_saved: Interval  # by QoE control, %

    def halved(self, label: str) -> bool:
        """Whether the buffer falls to zero in fewer than half as many places as under vanilla."""
        return self.stalled_places[label] * 2 < self.stalled_places[VANILLA]


def _per_run(runs: list[Run], value: Callable[[Run], float]) -> list[list[float]]:
    return [[value(run)] for run in runs]


def starved(frame: Frame, run: Run) -> bool:
    """Whether the other paths together carry less than the video's bit rate during the outage, so that no copy
    helps."""
    values = frame.values(part_of(run))
    begin, end = float(values["begin_ms"]) / 1000, float(values["end_ms"]) / 1000
    failing = frame.spec.places.path if frame.spec.places else ""
    rates = [
        rate
        for path in run.config["paths"]
        if path["name"] != failing
        for t, rate in capacity(run, path["name"], BIN_MS, end)
        if begin <= t < end
    ]
    bins = max(1, round((end - begin) * 1000 / BIN_MS))
    return bool(sum(rates) / bins < run.config["player"]["bitrate_bps"] / 1e6)


def findings(frame: Frame) -> Findings:
    runs = {label: [run for key in frame.keys for run in frame.of(key, label)] for label in COLOURS}
    common = set.intersection(*({(part_of(r), r.pair, r.seed) for r in of} for of in runs.values()))
    runs = {label: [r for r in of if (part_of(r), r.pair, r.seed) in common] for label, of in runs.items()}
    stalls = {label: _per_run(of, lambda run: run.rebuffer_counted_s) for label, of in runs.items()}
    copies = {label: _per_run(of, lambda run: (run.reinjected_bytes or 0) / 1e6) for label, of in runs.items()}
    mean, better = pooled.mean, pooled.improvement
    return Findings(
        places=len(common),
        stalled_places={label: sum(run.rebuffer_counted_s > 0 for run in of) for label, of in runs.items()},
        starved_places={
            label: sum(run.rebuffer_counted_s > 0 and starved(frame, run) for run in of) for label, of in runs.items()
        },
        stall_s={label: required(pooled.bootstrap(of, mean)) for label, of in stalls.items()},
        copied_mb={label: required(pooled.bootstrap(of, mean)) for label, of in copies.items()},
        cost={label: REINJECTION_COST.value(of) for label, of in runs.items()},
        stall_saved={
            label: required(pooled.paired(stalls[label], stalls[VANILLA], mean, better)) for label in (ALWAYS, GATED)
        },
        copies_saved=required(pooled.paired(copies[GATED], copies[ALWAYS], mean, better)),
    )


def verdict(figures: Findings) -> tuple[Verdict, str]:
    """Its parts: the buffer falls to zero under vanilla, not with re-injection, and the control copies less."""
    parts: dict[str, Answer] = {
        "vanilla-mp's buffer falls to zero in most places": figures.stalled_places[VANILLA] * 2 > figures.places,
        "without control the buffer falls to zero in fewer than half as many places": figures.halved(ALWAYS),
        "with control the buffer falls to zero in fewer than half as many places": figures.halved(GATED),
        "re-injection without control stalls less": above(figures.stall_saved[ALWAYS]),
        "re-injection with control stalls less": above(figures.stall_saved[GATED]),
        "the control re-injects less": above(figures.copies_saved),
    }
    word = of_parts(list(parts.values()))
    if word == "holds":
        return word, "all parts hold, gains beyond their 95 % intervals: " + "; ".join(parts)
    failed = [part for part, true in parts.items() if true is False]
    unclear = [part for part, true in parts.items() if true is None]
    why = ". ".join(
        f"{said}: {'; '.join(which)}"
        for said, which in (("Not so here", failed), ("Not decided by so few places", unclear))
        if which
    )
    stalled, starving = figures.stalled_places[GATED], figures.starved_places[GATED]
    if starving:
        why += (
            f". In {starving} of the {stalled} places where it stalls with control the other path carries less than "
            "the video's bit rate during the outage: it is capacity that lacks there, and no copy helps"
        )
    return word, why


def chosen_key(frame: Frame) -> tuple[str, str]:
    """The place to draw: the first one, in the file's order, in which vanilla-mp stalls, else the first one."""
    runs = [run for key in frame.keys for run in frame.of(key, VANILLA)]
    run = next((run for run in runs if run.rebuffer_count > 0), runs[0])
    return part_of(run), run.pair


def _figure(frame: Frame, shown: dict[str, Run], show_s: float) -> go.Figure:
    titles = ["link capacity", *(TITLES[label] for label in shown)]
    axes = [[{}], *([{"secondary_y": True}] for _ in shown)]
    figure = in_strips(titles, 0.06, "time since the start of the run, s (stalls shaded)", specs=axes)
    first = next(iter(shown.values()))
    for index, path in enumerate(first.config["paths"]):
        rate = capacity(first, path["name"], BIN_MS, show_s)
        figure.add_scatter(
            x=[t for t, _ in rate],
            y=[round(value, 2) for _, value in rate],
            name=f"capacity of {path['name']}",
            mode="lines",
            line={"color": PATH_COLOURS[index], "width": 2, "shape": "hv", "dash": ("solid", "dot")[index % 2]},
            row=1,
            col=1,
        )
    figure.update_yaxes(title_text="Mbps", rangemode="tozero", row=1, col=1)
    series = {}
    for label, run in shown.items():
        folder = frame.folder / "runs" / run.run_id
        series[label] = (buffered_bytes(run, folder), reinjected(server_paths(folder)))
    top = max((value for level, _ in series.values() for _, value in level), default=1e6) / 1e6
    most = max((value for _, copies in series.values() for _, value in copies), default=1e5) / 1e6 or 0.1
    for row, label in enumerate(shown, start=2):
        _draw_play(figure, row, *series[label], show_s)
        figure.update_yaxes(title_text="buffer, MB", range=[0, top * 1.08], row=row, col=1, secondary_y=False)
        figure.update_yaxes(title_text="copied, MB", range=[0, most * 1.08], row=row, col=1, secondary_y=True)
    styled(figure, 150 + 150 * (1 + len(shown)), margin={"l": 60, "r": 60, "t": 64, "b": 48})
    for row, run in enumerate(shown.values(), start=2):
        start = run.player_start_s or 0.0
        for begin, end in run.stalls:
            x = {"x0": start + begin, "x1": min(show_s, start + end)}
            figure.add_vrect(**x, fillcolor=STALL_COLOUR, opacity=0.25, line_width=0, row=row, col=1)
        figure.update_yaxes(showgrid=False, tickmode="auto", nticks=4, row=row, col=1, secondary_y=True)
    figure.update_layout(legend={"y": 1.05})
    figure.update_xaxes(range=[0, show_s])
    return figure


def _draw_play(
    figure: go.Figure, row: int, level: list[tuple[float, float]], copies: list[tuple[float, float]], show_s: float
) -> None:
    """Draws the buffer and, on a second axis, the re-injected bytes so far."""
    steps = [*thinned(copies, 0.02, show_s), (show_s, copies[-1][1])]
    place = {"mode": "lines", "showlegend": row == 2, "row": row, "col": 1}
    figure.add_scatter(
        x=[round(t, 3) for t, _ in level if t <= show_s],
        y=[round(value / 1e6, 4) for t, value in level if t <= show_s],
        name="buffer, MB",
        legendgroup="buffer",
        fill="tozeroy",
        fillcolor=translucent(BLUE),
        line={"color": BLUE, "width": 1.5},
        **place,
    )
    figure.add_scatter(
        x=[round(t, 3) for t, _ in steps],
        y=[round(value / 1e6, 4) for _, value in steps],
        name="re-injected so far, MB",
        legendgroup="copies",
        line={"color": VERMILION, "width": 2, "dash": "dash", "shape": "hv"},
        secondary_y=True,
        **place,
    )


def _table(figures: Findings) -> Table:
    return table(
        f"Over all {figures.places} places that the rule finds",
        COLOURS,
        {
            "scheme": lambda label: label,
            "places with a stall": lambda label: figures.stalled_places[label],
            "of these, the other path below the video's rate": lambda label: figures.starved_places[label],
            ("stalled a play, mean and interval", "s"): lambda label: figures.stall_s[label].text(),
            ("re-injected a play, mean and interval", "MB"): lambda label: figures.copied_mb[label].text(),
            (REINJECTION_COST.title, "%"): lambda label: round(100 * figures.cost[label], 2),
        },
    )


def less(saved: Interval) -> str:
    return saved.words("less", "more", digits=0)


def build(folder: Path, spec: ExhibitSpec) -> Exhibit:
    frame = load_frame(folder, spec)
    figures = findings(frame)
    word, because = verdict(figures)
    key, pair = chosen_key(frame)
    shown = {
        label: next(run for run in frame.of(key, label) if run.pair == pair)
        for label in COLOURS
        if frame.of(key, label)
    }
    ours = (
        f"stalls in {figures.stalled_places[VANILLA]} of {figures.places} places under vanilla-mp, "
        f"{figures.stalled_places[ALWAYS]} without and {figures.stalled_places[GATED]} with control; stalled time "
        f"{less(figures.stall_saved[ALWAYS])} and {less(figures.stall_saved[GATED])}; the control re-injects "
        f"{less(figures.copies_saved)}"
    )
    drawn = next(iter(shown.values()))
    return frame.exhibit(
        title="Re-injection against head-of-line blocking, and what QoE control saves",
        place="Fig. 6, section 5.2.2",
        summary=f"When a path fails for a moment during start-up: {ours}.",
        settings={
            "drawn": f"{pair} from {drawn.config['start_offset_ms'] / 1000:g} s on, the first where vanilla-mp stalls",
            "places": spec.places.words() if spec.places else "",
            **player_settings(drawn),
            **threshold_settings(frame.every),
        },
        tables=[_table(figures)],
        plots=[
            plot(
                "fig6-buffer",
                "Buffer level and re-injected bytes",
                _figure(frame, shown, float(spec.options["show_s"])),
                f"Four strips over time: capacity, then buffer and re-injected bytes of each scheme; {ours}.",
            )
        ],
        paper=[
            PaperValue(
                what="buffer",
                theirs="vanilla-mp: zero several times within 6 s; both forms of re-injection keep it",
                ours="mean time stalled: "
                + ", ".join(f"{label} {cell.value:.2f} s" for label, cell in figures.stall_s.items()),
                source="Fig. 6b to 6d",
            ),
            PaperValue(
                what="re-injected bytes",
                theirs="only while the buffer is low with QoE control; no figure in the text, the axis goes to 2.5 MB",
                ours=", ".join(f"{label} {cell.value:.2f} MB" for label, cell in figures.copied_mb.items()),
                source="Fig. 6c, 6d",
            ),
        ],
        claims=[
            verdicts.claim(spec.row("hol-blocking"), ours=ours, verdict=word, because=because),
        ],
        confidence=f"{intervals.METHOD}; schemes are paired by place; the drawn place is an illustration",
    )
