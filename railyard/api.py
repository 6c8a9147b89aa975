"""`import railyard as rr`: play experiments, load campaigns and compare schemes in Python.

campaign = rr.play(pairs=["subway-1"], settings={"player.bitrate": "8mbps"}, seeds=6)
campaign.chunks.to_pandas()
rr.compare(campaign, against="vanilla-mp")
"""

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, SupportsIndex

import plotly.graph_objects as go
import pyarrow as pa
from rich.table import Table

from railyard.base import forms
from railyard.base.errors import UserError
from railyard.base.paths import RESULTS_DIR
from railyard.base.yamlfile import YamlDocument, load_yaml, near_miss
from railyard.experiment.model import experiment_of, find_experiment
from railyard.experiment.options import of_pairs, with_options
from railyard.report import figures
from railyard.report.replay.figure import draw
from railyard.report.replay.series import read_replay
from railyard.results import differences
from railyard.results.aggregate import cells, tables_of
from railyard.results.campaigns import find_run_or_campaign
from railyard.results.differences import Difference
from railyard.results.explain import explanation
from railyard.results.explain.explanation import Explanation
from railyard.results.pending import Place, Plan, whole_campaign
from railyard.results.records import Run, load_campaign
from railyard.results.tables import figures_table
from railyard.results.two import two_campaigns
from railyard.run.arena import arena_of
from railyard.run.resolve import not_run, resolve
from railyard.studies import thresholds


def _html(table: Table) -> str:
    heads, rows = forms.content(table)
    head = "".join(f"<th>{html.escape(one)}</th>" for one in heads)
    lines = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows]
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


@dataclass(frozen=True)
class Campaign:
    """A campaign's results. A notebook shows the figures of each pair and scheme."""

    folder: Path
    record: dict[str, Any] = field(repr=False)
    runs: list[Run] = field(repr=False)

    @cached_property
    def tables(self) -> dict[str, pa.Table]:
        """The tables of docs/reference/tables.md that a campaign has as Parquet files."""
        return tables_of(self.runs)

    @property
    def chunks(self) -> pa.Table:
        """A row for each request. With pandas: `chunks.to_pandas()`."""
        return self.tables["chunks"]

    @property
    def schemes(self) -> list[str]:
        return list(dict.fromkeys(run.label for run in self.runs))

    def run(self, run_id: str | Run) -> Run:
        """A run by its name, or one of `runs`. Raises UserError if there is no such run."""
        known = {run.run_id: run for run in self.runs}
        run_id = run_id.run_id if isinstance(run_id, Run) else run_id
        if run_id not in known:
            raise UserError(f"{self.folder}: there is no run '{run_id}'; {near_miss(run_id, known)}")
        return known[run_id]

    def replay(self, run_id: str | Run) -> go.Figure:
        """A figure of everything that happened in one run, on one axis of time."""
        return draw(read_replay(self.folder / "runs" / self.run(run_id).run_id))

    def explain(self, run_id: str | Run, chunk: int | None = None) -> "Explained":
        """Explains the completion time of a chunk, by default the slowest. Raises UserError if the logs do not allow
        it."""
        return Explained(explanation.explain(self.folder / "runs" / self.run(run_id).run_id, chunk))

    def rct_cdf(self, pair: str | None = None) -> go.Figure:
        """The share of requests complete within t. `pair`: None for the first pair."""
        of_pair = cells(self.runs)
        if pair is not None and pair not in of_pair:
            raise UserError(f"{self.folder}: there is no pair '{pair}'; {near_miss(pair, of_pair)}")
        return figures.rct_cdf(figures.named_plainly(of_pair[pair or next(iter(of_pair))]))

    def _repr_html_(self) -> str:
        return _html(figures_table(self.runs))


@dataclass(frozen=True)
class Explained:
    """The explanation of a chunk's time (docs/howto/explain.md). A notebook shows sentences and the table of parts."""

    explanation: Explanation

    @property
    def sentences(self) -> list[str]:
        return list(explanation.sentences(self.explanation))

    @property
    def parts(self) -> pa.Table:
        """A row for each part of the time: step, bound, path, seconds."""
        return pa.Table.from_pylist(self.explanation.as_json()["parts"])

    def _repr_html_(self) -> str:
        paragraphs = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in self.sentences)
        return paragraphs + _html(explanation.parts_table(self.explanation, repeat_steps=True))


@dataclass(frozen=True)
class Comparison:
    """Differences of schemes at the same places, by the rules of docs/reference/statistics.md."""

    differences: list[Difference]

    @property
    def sentences(self) -> list[str]:
        """The established differences, in words."""
        return differences.sentences(self.differences)

    @property
    def table(self) -> pa.Table:
        """A row for each figure and comparison, as numbers."""
        return pa.Table.from_pylist([differences.record_of(one) for one in self.differences])

    def _repr_html_(self) -> str:
        table = Table("scheme", "against", "figure", "difference", "verdict")
        for one in self.differences:
            table.add_row(one.label, one.against, one.figure.title, one.words, one.verdict)
        return _html(table) + "".join(f"<p>{html.escape(sentence)}</p>" for sentence in self.sentences)


def load(name: str | Path, results: str | Path = RESULTS_DIR) -> Campaign:
    """A campaign by its folder, or by its name in the results. Raises UserError if there is none."""
    folder = find_run_or_campaign(str(name), Path(results))
    return Campaign(folder, *load_campaign(folder))


def _yaml(field: str, value: object) -> str:
    """A setting as YAML text. It may be a number of numpy or a path."""

    def plain(one: object) -> object:
        if isinstance(one, Path):
            return str(one)
        if hasattr(one, "tolist"):
            return one.tolist()
        raise UserError(f"settings: {field}: this takes text, numbers, lists or mappings, not {type(one).__name__}.")

    return json.dumps(value, default=plain)


def play(
    experiment: str | Path | None = None,
    *,
    pairs: str | Sequence[str] = (),
    schemes: str | Sequence[str] | None = None,
    settings: Mapping[str, object] | None = None,
    seeds: SupportsIndex | None = None,
    arena: str | None = None,
    out: str | Path | None = None,
) -> Campaign:
    """Plays an experiment, as `railyard run` does, or loads it if it is complete already.

    `experiment`: a YAML file, or the name of one in experiments/; without it `pairs` is needed. `pairs`, `schemes`: one
    name, or several. `settings`: fields of docs/reference/experiments.md by name, `{"player.bitrate": "8mbps"}`. Raises
    UserError if it cannot be played.
    """
    pairs = [pairs] if isinstance(pairs, str) else pairs
    schemes = schemes if schemes is None or isinstance(schemes, str) else ",".join(schemes)
    if experiment is None and not pairs:
        raise UserError("play() needs an experiment, or pairs.")
    if arena is not None:
        arena_of(arena)  # raises UserError for an unknown name
    asked = of_pairs(pairs) if experiment is None else load_yaml(find_experiment(str(experiment)))
    changes = (
        dict(settings or {}) | ({} if arena is None else {"arena": arena}) | ({} if seeds is None else {"seeds": seeds})
    )
    assignments = [f"{name}={_yaml(name, value)}" for name, value in changes.items()]
    document = with_options(asked, pairs, schemes, assignments)
    return _played(document, None if out is None else Path(out))


def _played(document: YamlDocument, out: Path | None) -> Campaign:
    checked = experiment_of(document)
    arena_of(checked.arena).check()
    jobs = arena_of("sim").default_jobs()
    checked = thresholds.resolved(checked, document, out or RESULTS_DIR, jobs, lambda _: None)
    plan = Plan(checked, resolve(checked, document), not_run=not_run(checked, document))
    with whole_campaign(plan, Place(out), tables=True) as campaign:
        return Campaign(campaign.folder, campaign.record, campaign.runs)


def compare(
    campaign: Campaign, other: Campaign | None = None, *, against: str | None = None, by_pair: bool = False
) -> Comparison:
    """Compares the schemes of a campaign with one of them, by default as a report does; or each scheme of a campaign
    with itself in another one. Raises UserError if there is nothing to compare."""
    if other is not None:
        if against is not None:
            raise UserError("of two campaigns each scheme is compared with itself; leave out 'against'.")
        both = two_campaigns((campaign.folder, other.folder), (campaign.folder.name, other.folder.name))
        return Comparison(differences.differences(both.runs, both.comparisons, by_pair=by_pair))
    runs = differences.sound(campaign.runs)
    if against is not None and against not in campaign.schemes:
        raise UserError(f"{campaign.folder}: no run of scheme '{against}'; {near_miss(against, campaign.schemes)}")
    chosen = (
        differences.usual(runs) if against is None else [(one, against) for one in campaign.schemes if one != against]
    )
    return Comparison(differences.differences(runs, chosen, by_pair=by_pair))
