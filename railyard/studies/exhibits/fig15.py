"""Fig. 15: examples of traces, single and in pairs."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from railyard.base.errors import UserError
from railyard.base.strips import in_strips
from railyard.base.style import PATH_COLOURS
from railyard.report.exhibit import Exhibit, PaperValue, Plot, Table
from railyard.results.tables import Value
from railyard.studies.exhibits.frame import columns, plot, styled, translucent, without_runs
from railyard.studies.exhibits.places import spans
from railyard.studies.exhibits.spec import ExhibitSpec
from railyard.traces.index import Pair
from railyard.traces.library import at_hand, how_to_get
from railyard.traces.trace import FloatArray, Trace, read_trace

LOW_MBPS = 1.0


@dataclass(frozen=True)
class Shown:
    pair: Pair
    traces: dict[str, Trace]

    def rate(self, name: str, bin_ms: int, show_s: float) -> FloatArray:
        length = min(int(show_s * 1000), *(trace.period_ms for trace in self.traces.values()))
        return self.traces[name].rate_mbps(bin_ms, duration_ms=length)


def _pairs(spec: ExhibitSpec) -> list[Shown]:
    there = at_hand()
    pairs: list[Shown] = []
    for names in spec.options["pairs"]:
        pair = there.first_of(names)
        if pair is None:
            raise UserError(f"there is no trace pair '{names[-1]}'; {how_to_get(names[-1], there.pairs)}")
        pairs.append(Shown(pair, {path.name: read_trace(path.downlink) for path in pair.paths}))
    return pairs


def _figure(shown: Shown, bin_ms: int, show_s: float) -> go.Figure:
    names = list(shown.traces)
    titles = [f"({'abcd'[index]}) {name} alone" for index, name in enumerate(names)]
    titles.append(f"({'abcd'[len(names)]}) both, as a pair")
    rows = len(titles)
    figure = in_strips(titles, 0.09, "time, s")
    for index, name in enumerate(names):
        rate = shown.rate(name, bin_ms, show_s)
        times = [round(number * bin_ms / 1000, 3) for number in range(len(rate))]
        for row, fill in ((index + 1, "tozeroy"), (rows, None)):
            figure.add_scatter(
                x=times,
                y=[round(float(value), 2) for value in rate],
                name=name,
                legendgroup=name,
                showlegend=row == rows,
                mode="lines",
                line={
                    "color": PATH_COLOURS[index % 4],
                    "width": 1.5,
                    "shape": "hv",
                    "dash": "solid" if index == 0 or fill else "dot",
                },
                fill=fill,
                fillcolor=translucent(PATH_COLOURS[index % 4]) if fill else None,
                hovertemplate=f"{name} %{{x:.1f}} s: %{{y:.1f}} Mbps<extra></extra>",
                row=row,
                col=1,
            )
    styled(figure, 130 * rows + 110, margin={"l": 60, "r": 14, "t": 64, "b": 48})
    figure.update_yaxes(title_text="Mbps", rangemode="tozero")
    figure.update_layout(legend={"y": 1.06})
    return figure


def _longest(low: np.ndarray) -> int:
    """The longest run of true bins."""
    return max((end - begin for begin, end in spans(low)), default=0)


def _rows(shown: Shown, bin_ms: int, show_s: float) -> list[list[Value]]:
    rates = {name: shown.rate(name, bin_ms, show_s) for name in shown.traces}
    rows: list[list[Value]] = []
    for path in shown.pair.paths:
        rate = rates[path.name]
        low = rate < LOW_MBPS
        rows.append(
            [
                *(shown.pair.name, shown.pair.scenario, path.name, round(float(rate.mean()), 2)),
                *(round(float(rate.std() / rate.mean()), 2), round(100 * float(low.mean()), 1)),
                round(_longest(low) * bin_ms / 1000, 1),
            ]
        )
    both = np.logical_and.reduce([rate < LOW_MBPS for rate in rates.values()])
    rows.append(
        [
            *(shown.pair.name, shown.pair.scenario, "both at once", None, None, round(100 * float(both.mean()), 1)),
            round(_longest(both) * bin_ms / 1000, 1),
        ]
    )
    return rows


def build(_folder: Path, spec: ExhibitSpec) -> Exhibit:
    shown = _pairs(spec)
    bin_ms, show_s = int(spec.options["bin_ms"]), float(spec.options["show_s"])
    rows = [row for each in shown for row in _rows(each, bin_ms, show_s)]
    both = [f"{row[5]} % of the time in {row[0]}" for row in rows if row[2] == "both at once"]
    plots: list[Plot] = [
        plot(
            f"fig15-{each.pair.name.lower().replace('_', '-')}",
            f"{each.pair.name} ({each.pair.scenario})",
            _figure(each, bin_ms, show_s),
            f"Capacity over time of the paths of {each.pair.name}, each alone and both together.",
        )
        for each in shown
    ]
    return Exhibit(
        name=spec.name,
        title="Examples of traces",
        paper_ref="Zheng et al., SIGCOMM 2021, Fig. 15, appendix B",
        summary=f"Capacity in extreme mobility, alone and in pairs. Both paths are below 1 Mbps: {', '.join(both)}.",
        command=spec.command,
        arena="none",
        size=spec.size,
        settings={
            "bins": f"{bin_ms} ms, the first {show_s:g} s, downlink",
            **{each.pair.name: f"{each.pair.source} ({each.pair.licence})" for each in shown},
        },
        tables=[
            Table(
                title="What is drawn, in figures",
                columns=columns(
                    "pair",
                    "scenario",
                    "path",
                    ("mean", "Mbps"),
                    "coefficient of variation",
                    ("time below 1 Mbps", "%"),
                    ("longest below 1 Mbps", "s"),
                ),
                rows=rows,
            )
        ],
        plots=plots,
        paper=[
            PaperValue(
                what="traces",
                theirs="two examples of single-path traces and their pair, collected in extreme mobility",
                ours=", ".join(each.pair.name for each in shown),
                source="Fig. 15",
            )
        ],
        confidence="none: traces are drawn as they are",
        provenance=without_runs(
            {trace.path.name: trace.sha256 for each in shown for trace in each.traces.values()},
        ),
    )
