"""The common parts of all builders: a campaign's runs by part and scheme, provenance, and figures as plain data."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import plotly.graph_objects as go

from railyard.base import provenance
from railyard.base.errors import UserError
from railyard.base.style import LineStyle, layout
from railyard.base.units import size_in_words
from railyard.experiment.arenas import is_exact
from railyard.experiment.settings import SETTINGS
from railyard.report.exhibit import Column, Exhibit, Fidelity, Plot, Provenance, Table
from railyard.results.records import RESULT_OUTCOMES, Run, load_campaign
from railyard.results.tables import Value
from railyard.run.parts import AT, WHOLE, label_of
from railyard.stats.intervals import Interval, bars
from railyard.studies.exhibits.spec import ExhibitSpec

SOURCE = "Zheng et al., SIGCOMM 2021"
Row = TypeVar("Row")


@dataclass(frozen=True)
class Frame:
    """The runs of an exhibit's campaign. Void runs are only counted."""

    folder: Path
    spec: ExhibitSpec
    record: dict[str, Any]
    every: list[Run]
    runs: list[Run] = field(default_factory=list)

    @property
    def keys(self) -> list[str]:
        return list(self.record["parts"])

    @property
    def arena(self) -> str:
        return str(self.every[0].config["arena"])

    def values(self, key: str) -> dict[str, Any]:
        values: dict[str, Any] = self.record["parts"][key]
        return values

    def of(self, key: str, label: str) -> list[Run]:
        """The runs of a part under a scheme, by pair and seed."""
        return [run for run in self.runs if run.label == label_of(label, key)]

    def labels(self) -> list[str]:
        """The schemes, without the parts, in order of appearance."""
        return list(dict.fromkeys(run.label.partition(AT)[0] for run in self.every))

    def fidelity(self) -> Fidelity:
        if is_exact(self.arena):
            return Fidelity(exact=True, runs=len(self.every), void=len(self.every) - len(self.runs))
        worst = max((run.record["fidelity"]["lateness_p99_us"] for run in self.runs), default=None)
        return Fidelity(runs=len(self.every), void=len(self.every) - len(self.runs), worst_p99_us=worst)

    def provenance(self) -> Provenance:
        first = self.every[0]
        traces = {
            Path(path[way]).name: path[f"{way}_sha256"]
            for run in self.every
            for path in run.config["paths"]
            for way in ("up", "down")
        }
        return Provenance(
            git=first.record["git"],
            kernel=first.record["kernel"],
            programs_sha256=first.config["programs_sha256"],
            traces=dict(sorted(traces.items())),
            seeds=sorted({run.seed for run in self.every}),
            created=now(),
            wall_s=round(sum(run.record["wall_s"] for run in self.every), 1),
        )

    def exhibit(self, *, place: str, **shown: Any) -> Exhibit:
        """The exhibit of these runs. `place`: where the paper has it; `shown`: the other members."""
        return Exhibit(
            name=self.spec.name,
            paper_ref=f"{SOURCE}, {place}",
            command=self.spec.command,
            arena=self.arena,
            size=self.spec.size,
            fidelity=self.fidelity(),
            provenance=self.provenance(),
            **shown,
        )


def load_frame(folder: Path, spec: ExhibitSpec) -> Frame:
    record, runs = load_campaign(folder)
    good = [run for run in runs if not run.void]
    if not good:
        raise UserError(f"{folder}: every run is void, so there is nothing to show; run it again on a quieter machine.")
    if all(run.outcome not in RESULT_OUTCOMES for run in good):
        first = f"{good[0].run_id} {good[0].outcome}: {good[0].record['message']}"
        raise UserError(f"{folder}: a program failed in every run, so there is nothing to show; the first: {first}.")
    return Frame(folder, spec, record, runs, good)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def without_runs(traces: dict[str, str]) -> Provenance:
    """The provenance of an exhibit that runs nothing."""
    return Provenance(git=provenance.git_state(), kernel=provenance.kernel(), traces=traces, created=now())


def scheme_of(run: Run) -> str:
    return run.label.partition(AT)[0]


def part_of(run: Run) -> str:
    return run.label.partition(AT)[2] or WHOLE


def columns(*names: str | tuple[str, str]) -> list[Column]:
    """Columns, each given by a name or a name with its unit."""
    return [Column(name=one) if isinstance(one, str) else Column(name=one[0], unit=one[1]) for one in names]


def table(
    title: str, rows: Iterable[Row], values: Mapping[str | tuple[str, str], Callable[[Row], Value]], note: str = ""
) -> Table:
    """A table with a line for each of `rows`. `values`: each column by name, or name and unit, with its value."""
    lines = [[value(row) for value in values.values()] for row in rows]
    return Table(title=title, columns=columns(*values), rows=lines, note=note)


def required(interval: Interval | None) -> Interval:
    if interval is None:
        raise ValueError("an exhibit is built from at least one run of every scheme")
    return interval


def rcts(runs: Sequence[Run]) -> list[list[float]]:
    """Request completion times, a list for each run. A chunk that never completed counts with the time waited."""
    return [[chunk.rct_s for chunk in run.chunks] for run in runs]


def player_settings(run: Run) -> dict[str, str]:
    """The settings of the player that readers need, in words."""
    player = run.config["player"]
    return {
        "video": f"{player['bitrate_bps'] / 1e6:g} Mbps, {player['duration_s']:g} s",
        "request size": f"{size_in_words(player['chunk_bytes'])}, {player['concurrency']} at a time",
        "congestion control": f"{run.config['congestion']}, decoupled",
    }


def threshold_settings(runs: Sequence[Run]) -> dict[str, str]:
    """T_th1 and T_th2 of the schemes of XLINK, in words."""
    given = [run.config["parameters"] for run in runs if run.config["scheme"].startswith("xlink")]
    pairs = {tuple(one.get(name, SETTINGS[name].default) for name in ("t_th1_ms", "t_th2_ms")) for one in given}
    limits = "; ".join(f"T_th1 {low} ms, T_th2 {high} ms" for low, high in sorted(pairs))
    return {"thresholds": f"{limits}; the paper does not say which it has here"}


def plot(name: str, title: str, figure: go.Figure, alt: str) -> Plot:
    """A figure that is styled(), as plain data."""
    return Plot(id=name, title=title, figure=json.loads(figure.to_json()), alt=alt)


def add_curve(
    figure: go.Figure, name: str, style: LineStyle, xs: Sequence[Any], values: Sequence[Interval | None], hover: str
) -> None:
    """A line with marks and intervals."""
    figure.add_scatter(
        x=list(xs),
        y=[None if one is None else one.value for one in values],
        error_y=bars(values),
        mode="lines+markers",
        name=name,
        line={"color": style.colour, "dash": style.dash, "width": 2},
        marker={"symbol": style.symbol, "size": 9},
        hovertemplate=hover,
    )


def styled(figure: go.Figure, height: int, **more: Any) -> go.Figure:
    """The figure in the house's look, at a height in pixels, with `more` of the layout."""
    return figure.update_layout(**layout(height, **more))


def translucent(colour: str) -> str:
    """A hexadecimal colour with an opacity of 35 %, as plotly takes it."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.35)"
