"""The common parts of exhibits over a population: plays, settings and provenance, cells with intervals, plots."""

import math
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from railyard.base.style import LineStyle, scheme_styles
from railyard.experiment.model import MeasuredScheme
from railyard.report.exhibit import Exhibit, Fidelity, Plot, Provenance
from railyard.results.tables import Value
from railyard.stats.intervals import Interval
from railyard.stats.wording import percentage, range_words
from railyard.studies.exhibits.frame import SOURCE, add_curve, plot, styled
from railyard.studies.population.campaign import Outcome
from railyard.studies.population.figures import METHOD, Plays
from railyard.studies.population.model import PopulationExhibit
from railyard.studies.population.parts import PLAYS_FILE

OURS = ("xlink-lean", "xlink+")
OURS_NOTE = "xlink-lean and xlink+ are this testbed's own (docs/explanation/xlink-plus.md), no part of the paper."
Data = tuple[PopulationExhibit, Outcome]


@dataclass(frozen=True)
class Frame:
    spec: PopulationExhibit
    outcome: Outcome
    plays: Plays

    @property
    def days(self) -> list[int]:
        return self.plays.days

    @property
    def all_and_days(self) -> list[Plays]:
        """The plays of all days together, then those of each day."""
        return [self.plays, *(self.plays.day(day) for day in self.days)]

    def style(self, arm: str) -> LineStyle:
        return scheme_styles([entry.base_label() for entry in self.outcome.entries])[arm]

    def exhibit(self, *, place: str, **shown: Any) -> Exhibit:
        """The exhibit of these plays. `place`: where the paper has it; `shown`: the other members."""
        record = self.outcome.record
        return Exhibit(
            name=self.spec.name,
            paper_ref=f"{SOURCE}, {place}",
            command=shlex.join(["railyard", *sys.argv[1:]]),
            arena="sim",
            size=record["size"],
            settings=settings(self),
            confidence=METHOD,
            fidelity=Fidelity(exact=True, runs=self.outcome.plays),
            provenance=Provenance(
                git=record["git"],
                kernel=record["kernel"],
                programs_sha256=record["programs_sha256"],
                traces=record["traces"],
                seeds=[record["population"]["seed"]],
                created=record["created"],
                wall_s=record["wall_s"],
            ),
            **shown,
        )


def frame_of(data: Data) -> Frame:
    spec, outcome = data
    return Frame(spec, outcome, Plays.of_file(outcome.folder / PLAYS_FILE))


def cell(interval: Interval | None, digits: int = 2) -> Value:
    return None if interval is None else round(interval.value, digits) + 0.0


def span(interval: Interval | None, digits: int = 1) -> Value:
    return None if interval is None else interval.ends(lambda end: f"{end:z.{digits}f}", " to ")


def percent(share: Interval | None) -> Interval | None:
    return None if share is None else share.mapped(lambda value: 100 * value)


def text(interval: Interval | None, unit: str = " %", digits: int = 1) -> str:
    if interval is None:
        return "no value"
    return f"{percentage(interval.value, digits)}{unit} [{interval.ends(lambda end: percentage(end, digits))}]"


def change(interval: Interval | None, more: str, less: str) -> str:
    """A difference in percent in words. Positive is `more`."""
    return "not comparable (single path has none)" if interval is None else interval.words(more, less)


def between(values: Sequence[Interval | None], more: str, less: str) -> str:
    """The least and the greatest difference of the days, in words. Positive is `more`."""
    known = [value.value for value in values if value is not None]
    return f"{range_words(known, more, less)} by day" if known else "no value on any day"


def settings(frame: Frame) -> dict[str, str]:
    record = frame.outcome.record
    population = record["population"]
    total = sum(scene["share"] for scene in population["scenes"])
    mix = ", ".join(f"{scene['name']} {100 * scene['share'] / total:.3g} %" for scene in population["scenes"])
    texts = {
        "viewers": f"{frame.plays.viewers()}, {record['viewers_per_day']} on each of {record['days']} days; the same "
        "viewers under every scheme",
        "scenes": mix,
        "request size": f"{population['video']['chunk_bytes'] / 1e6:g} MB, one at a time",
        "congestion control": "cubic, decoupled",
        "population": "experiments/population.yaml, docs/reference/population.md",
    }
    for entry in frame.outcome.entries:
        if isinstance(entry, MeasuredScheme):
            limits = f"T_th1 {entry.measured.t_th1_ms:.0f} ms, T_th2 {entry.measured.t_th2_ms:.0f} ms"
            texts[f"thresholds of {entry.base_label()}"] = f"{limits}, measured on {entry.measured.runs} pilot viewers"
    return texts


@dataclass(frozen=True)
class Curve:
    name: str
    style: LineStyle
    values: Sequence[Interval | None]


def curves(name: str, title: str, xs: Sequence[Any], drawn: Sequence[Curve], titles: tuple[str, str], alt: str) -> Plot:
    """Curves with intervals over days, percentiles or settings."""
    figure = go.Figure()
    for curve in drawn:
        hover = "%{x}: %{y:.4g}<extra>" + curve.name + "</extra>"
        add_curve(figure, curve.name, curve.style, xs, curve.values, hover)
    styled(figure, 360, margin={"l": 60, "r": 14, "t": 60, "b": 48})
    figure.update_xaxes(title_text=titles[0], type="category")
    known = [one for curve in drawn for one in curve.values if one is not None]
    is_above_zero = all((one.low if math.isfinite(one.low) else one.value) >= 0 for one in known)
    figure.update_yaxes(title_text=titles[1], rangemode="nonnegative" if is_above_zero else "normal")
    return plot(name, title, figure, alt)
