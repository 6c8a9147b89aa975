"""Fig. 1a, 1b: vanilla multipath over Wi-Fi and LTE: capacity, congestion window and packets in flight over time."""

from dataclasses import dataclass
from pathlib import Path

import plotly.graph_objects as go

from railyard.base.strips import in_strips
from railyard.base.style import BLUE, INK, PATH_COLOURS, STALL_COLOUR
from railyard.report.exhibit import Exhibit, PaperValue, Table
from railyard.results.records import Run
from railyard.results.serverlog import ServerPath, server_paths
from railyard.results.tables import Value
from railyard.stats.verdict import Verdict
from railyard.studies.exhibits import verdicts
from railyard.studies.exhibits.frame import Frame, columns, load_frame, player_settings, plot, styled, translucent
from railyard.studies.exhibits.series import at, capacity, greatest, thinned
from railyard.studies.exhibits.spec import ExhibitSpec

KB = 1000  # the paper's unit
DATAGRAM_KB = 1.5  # less than one datagram in flight counts as one
BIN_MS = 50
STEP_S = 0.01


@dataclass(frozen=True)
class Outage:
    """The failing path between begin and end of its outage."""

    path: str
    begin_s: float
    end_s: float
    window_before: float
    window_at_end: float
    in_flight_before: float
    in_flight_most: float
    capacity_before: float
    capacity_during: float

    @property
    def window_kept(self) -> float:
        return self.window_at_end / self.window_before

    @property
    def in_flight_grew(self) -> float:
        return self.in_flight_most / self.in_flight_before


def _mean_between(points: list[tuple[float, float]], begin: float, end: float) -> float:
    inside = [value for t, value in points if begin <= t < end]
    return sum(inside) / len(inside) if inside else 0.0


def _outage(frame: Frame, run: Run, name: str, series: ServerPath, show_s: float) -> Outage:
    values = frame.values(frame.keys[0])
    begin, end = float(values["begin_ms"]) / 1000, float(values["end_ms"]) / 1000
    rate = capacity(run, name, BIN_MS, show_s)
    return Outage(
        path=name,
        begin_s=begin,
        end_s=end,
        window_before=(at(series.window, begin) or 0.0) / KB,
        window_at_end=(at(series.window, end) or 0.0) / KB,
        in_flight_before=max(DATAGRAM_KB, (at(series.in_flight, begin) or 0.0) / KB),
        in_flight_most=(greatest(series.in_flight, begin, end) or 0.0) / KB,
        capacity_before=_mean_between(rate, 0, begin),
        capacity_during=_mean_between(rate, begin, end),
    )


def _figure(run: Run, paths: dict[str, ServerPath], outage: Outage, show_s: float) -> go.Figure:
    names = list(paths)
    titles = [f"{name}: {what}" for name in names for what in ("link capacity", "window and bytes in flight")]
    figure = in_strips(titles, 0.07, "time since the start of the run, s")
    for index, name in enumerate(names):
        rate = capacity(run, name, BIN_MS, show_s)
        row = 2 * index + 1
        figure.add_scatter(
            x=[t for t, _ in rate],
            y=[round(value, 2) for _, value in rate],
            name="capacity",
            showlegend=False,
            mode="lines",
            line={"color": PATH_COLOURS[index], "width": 1.5, "shape": "hv"},
            fill="tozeroy",
            fillcolor=translucent(PATH_COLOURS[index]),
            hovertemplate="%{x:.2f} s: %{y:.1f} Mbps<extra></extra>",
            row=row,
            col=1,
        )
        figure.update_yaxes(title_text="Mbps", rangemode="tozero", row=row, col=1)
        lines = (
            ("congestion window", paths[name].window, {"color": INK, "dash": "dash", "width": 1.5}),
            ("in flight", paths[name].in_flight, {"color": BLUE, "dash": "solid", "width": 2}),
        )
        for word, points, line in lines:
            shown = thinned(points, STEP_S, show_s)
            shown += [(show_s, shown[-1][1])] if shown else []
            figure.add_scatter(
                x=[round(t, 4) for t, _ in shown],
                y=[round(value / KB, 1) for _, value in shown],
                name=word,
                legendgroup=word,
                showlegend=index == 0,
                mode="lines",
                line=line | {"shape": "hv"},
                hovertemplate=f"%{{x:.2f}} s: {word} %{{y:.0f}} KB<extra></extra>",
                row=row + 1,
                col=1,
            )
        figure.update_yaxes(title_text="KB", rangemode="tozero", row=row + 1, col=1)
    styled(figure, 170 + 300 * len(names), margin={"l": 60, "r": 14, "t": 64, "b": 48})
    mark = names.index(outage.path) * 2
    for row in (mark + 1, mark + 2):
        figure.add_vrect(
            x0=outage.begin_s, x1=outage.end_s, fillcolor=STALL_COLOUR, opacity=0.18, line_width=0, row=row, col=1
        )
    figure.update_layout(legend={"y": 1.04})
    figure.update_xaxes(range=[0, show_s])
    return figure


def verdict(outage: Outage, follows_percent: float) -> tuple[Verdict, str]:
    """The verdict. A window that falls below `follows_percent` during the outage has followed the link."""
    kept, grew = 100 * outage.window_kept >= follows_percent, outage.in_flight_grew > 1
    sentence = (
        f"during the outage capacity is {100 * outage.capacity_during / outage.capacity_before:.0f} % of what it was, "
        f"the window at its end {100 * outage.window_kept:.0f} %, packets in flight at most "
        f"{100 * outage.in_flight_grew:.0f} %"
    )
    if kept and grew:
        return "holds", sentence
    return ("partly" if kept or grew else "does not hold"), sentence


def build(folder: Path, spec: ExhibitSpec) -> Exhibit:
    frame = load_frame(folder, spec)
    run = frame.runs[0]
    show_s = float(spec.options["show_s"])
    known = server_paths(folder / "runs" / run.run_id)
    paths = {path["name"]: known.get(path["name"], ServerPath()) for path in run.config["paths"]}
    failing = spec.places.path if spec.places else next(iter(paths))
    outage = _outage(frame, run, failing, paths[failing], show_s)
    row = spec.row("window-does-not-follow")
    word, because = verdict(outage, row.numbers["follows"])
    ours = (
        f"window {outage.window_before:.0f} KB before, {outage.window_at_end:.0f} KB at the end of the outage; "
        f"in flight {outage.in_flight_before:.0f} KB before, up to {outage.in_flight_most:.0f} KB during it"
    )
    rows: list[list[Value]] = [
        ["capacity, Mbps", round(outage.capacity_before, 1), round(outage.capacity_during, 1)],
        ["congestion window, KB", round(outage.window_before), round(outage.window_at_end)],
        ["in flight, KB", round(outage.in_flight_before), round(outage.in_flight_most)],
    ]
    span = f"{outage.begin_s:.1f} to {outage.end_s:.1f} s"
    return frame.exhibit(
        title="Vanilla multipath while a path fails",
        place="Fig. 1a and 1b, section 3.1",
        summary=(
            f"The {failing} link fails from {span}. Min-RTT scheduling and decoupled Cubic do not see it: {because}. "
            "What it sends there meanwhile waits, and all later data waits for it."
        ),
        settings={
            "pair": f"{run.pair}, from {run.config['start_offset_ms'] / 1000:g} s of the traces on",
            "place": spec.places.words() if spec.places else "start of the trace",
            "scheme": "vanilla-mp: min-RTT scheduler, decoupled Cubic, no re-injection",
            **player_settings(run),
        },
        tables=[
            Table(
                title=f"The {failing} path, outage from {span}",
                columns=columns("what", "before", "during"),
                rows=rows,
                note="Capacity: means. Window: at begin and end. In flight: at begin, and the most during.",
            )
        ],
        plots=[
            plot(
                "fig1-in-flight",
                "Capacity, window and bytes in flight",
                _figure(run, paths, outage, show_s),
                f"Over time: the capacity of {failing} falls to nearly nothing from {span}, and window and "
                "bytes in flight stay high.",
            )
        ],
        paper=[
            PaperValue(
                what="a path's outage",
                theirs="almost no throughput from 1.7 to 2.2 s; in flight rises at 1.8 s, the window cannot follow",
                ours=f"almost no throughput from {span}; {ours}",
                source="Fig. 1a, section 3.1",
            )
        ],
        claims=[
            verdicts.claim(row, ours=ours, verdict=word, because=because),
        ],
        confidence="one run at one place, found by the rule above: an illustration, not an average",
    )
