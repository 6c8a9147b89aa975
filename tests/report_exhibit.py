"""An exhibit computed from the runs of a real campaign, for tests of what shows exhibits."""

import json
from pathlib import Path

import plotly.graph_objects as go

from railyard.report import figures
from railyard.report.exhibit import Claim, Column, Exhibit, Fidelity, PaperValue, Plot, Provenance, Table
from railyard.results.aggregate import Cell, cells
from railyard.results.records import load_campaign
from railyard.results.tables import Value
from railyard.stats.intervals import METHOD, Interval
from railyard.stats.pooled import bootstrap, quantile_of


def _p99(cell: Cell) -> Interval:
    found = bootstrap([[chunk.rct_s for chunk in run.chunks] for run in cell.runs], quantile_of(0.99))
    assert found is not None
    return found


def _bars(row: list[Cell]) -> go.Figure:
    tails = [_p99(cell) for cell in row]
    errors = {"array": [t.high - t.value for t in tails], "arrayminus": [t.value - t.low for t in tails]}
    bars = go.Bar(x=[cell.label for cell in row], y=[t.value for t in tails], error_y=errors | {"symmetric": False})
    long = "a title that a phone has no room for: the schemes, each with all of its runs over all of its pairs"
    layout = {
        "yaxis": {"title": {"text": "RCT p99, s"}},
        "title": {"text": "RCT p99"},
        "xaxis": {"title": {"text": long}},
    }
    note = {"text": long, "showarrow": False, "xref": "paper", "yref": "paper", "x": 0, "xanchor": "left", "y": 1}
    return go.Figure(bars, layout=layout | {"annotations": [note]})


def exhibit_of(campaign: Path, name: str) -> Exhibit:
    """The campaign's completion times as the exhibit of a given name."""
    record, runs = load_campaign(campaign)
    row = [cell for cell in next(iter(cells(runs).values())) if cell.runs]
    values = {cell.label: _p99(cell) for cell in row}
    better = values["xlink"].value < values["sp"].value
    rows: list[list[Value]] = [
        [chunk.index, cell.label, chunk.request_s, chunk.rct_s] for cell in row for chunk in cell.chunks
    ]
    return Exhibit(
        name=name,
        title="Completion times of a small campaign",
        paper_ref="Zheng et al., SIGCOMM 2021",
        summary=f"XLINK's p99 is {values['xlink'].text()} s, single path's {values['sp'].text()} s.",
        command=str(record["command"]),
        arena="sim",
        size="small",
        settings={"pair": row[0].pair, "video": f"{record['experiment']['player']['bitrate_bps']} bit/s"},
        tables=[
            Table(
                title="All requests",
                columns=[Column(name=name) for name in ("Chunk", "Scheme", "Asked at, s", "RCT, s")],
                rows=rows,
                note="Void runs are not in it.",
            )
        ],
        plots=[
            Plot(id=f"{name}-p99", title="RCT p99", figure=json.loads(_bars(row).to_json()), alt="A bar a scheme."),
            Plot(
                id=f"{name}-cdf",
                title="Distribution of the completion times",
                figure=json.loads(figures.rct_cdf(row).to_json()),
                alt="A curve a scheme.",
            ),
        ],
        paper=[PaperValue(what="p99 of XLINK", theirs="–", ours=f"{values['xlink'].value:.2f} s", source="Fig. 13")],
        claims=[
            Claim(
                id=f"{name}-tail",
                claim="XLINK's tail is shorter than single path's",
                theirs="19 to 50 % shorter",
                ours=f"{100 * (1 - values['xlink'].value / values['sp'].value):.0f} %",
                verdict="holds" if better else "does not hold",
                because="p99 of all requests, one against the other.",
            )
        ],
        confidence=METHOD,
        fidelity=Fidelity(exact=True),
        provenance=Provenance(
            git=record["git"],
            kernel=str(runs[0].record["kernel"]),
            seeds=[run.seed for run in row[0].runs],
            created="2026-01-02T03:04:05+00:00",
        ),
    )
