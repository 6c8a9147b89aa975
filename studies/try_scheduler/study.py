"""Measures how a change of the transport, or of a scheme's settings, moves each figure over many pairs of traces.

The working tree, or the build of another checkout (`tried`), is tried, with further settings of the scheme (`changes`).
It is compared with `against`: a git revision, or the checkout of another build. Without `against` that is HEAD or, with
`changes`, the tried build itself under the scheme's own settings.

A change is chosen by the pairs of `train`; those of `check` test it once on others. Brackets are 95 %
intervals for pairs like these (docs/reference/statistics.md). Median is the geometric mean over pairs of the ratio of
medians; excess is the mean time above the oracle.
"""

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from railyard.base.errors import UserError
from railyard.base.paths import ROOT
from railyard.base.provenance import sha256_of
from railyard.base.words import counted
from railyard.experiment.model import Strict
from railyard.figures import rows
from railyard.figures.figure import Figure, Plays, Point, Pool, Ratio
from railyard.figures.play import Play
from railyard.gate import build
from railyard.results import differences, shortage
from railyard.results.differences import Difference
from railyard.results.pending import Place, Plan, whole_campaign
from railyard.results.records import Run
from railyard.run.resolve import resolve
from railyard.stats import intervals, rates
from railyard.stats.bootstrap import Layout
from railyard.stats.changes import Bounds
from railyard.stats.statistics import nearest_rank
from railyard.studies.study import Data, changed, markdown, tell
from railyard.traces.generate import GeneratedPair, write_pair
from railyard.traces.index import write_entry
from railyard.traces.library import SEARCH_PATH_VARIABLE, search_path
from railyard.traces.presets import mobility_models
from railyard.traces.singles import PairMetadata, Single, make_pair

EXPERIMENTS = {"light": "evaluation", "heavy": "evaluation-heavy"}
FOLDER = ROOT / "build" / "trials"
LENGTH_S = 120  # of a generated pair
TRIED, BASE = "tried", "baseline"


class Settings(Strict):
    # Pairs: one of the trace library (hsr_0544), generated ones by a model and its seeds (subway:101-104), or a pair of
    # two single recordings (bus_a+walk_b_wifi): trace files, or their names in RAILYARD_TRACE_PATH.
    train: list[str] = Field(default=[])  # by which the change is chosen
    check: list[str] = Field(default=[])  # on which it must hold
    against: str | None = None  # a git revision, or a checkout that is built
    tried: str | None = None  # a checkout that is built, instead of the working tree
    changes: dict[str, Any] = Field(default={})  # of the scheme's settings, such as {rescue: off}
    schemes: list[str | dict[str, Any]] = Field(min_length=1)
    experiments: list[str] = Field(min_length=1)  # player and time limit of plays: light, heavy, or another experiment
    starts: int = Field(ge=1)  # places in each trace
    out: Path = FOLDER  # for plays and pairs


class Row(Data):
    """One scheme in one setting, over some pairs."""

    place: str
    pairs: int
    label: str
    cells: list[str]  # in the order of FIGURES
    failed: str
    established: list[str]
    short: str


class Measured(Data):
    titles: dict[str, str]  # of both builds
    changes: dict[str, Any]
    starts: int
    rows: list[Row]


# --- figures ----------------------------------------------------------------------------------------------------------


class _Medians(Pool):
    """The geometric mean of the pairs' medians. Each pair counts as one, however many plays it has."""

    def point(self, plays: Plays) -> Point | None:
        return rows.RCT_MEDIAN.point(plays)

    def bounds(self, plays: Plays, layout: Layout) -> Bounds:
        sums = rates.Sums(np.zeros(len(plays)), np.zeros(len(plays)))
        for cluster in layout.clusters:
            median = nearest_rank([rct for k in cluster for rct, _ in rows.rcts(plays[k])], 0.5)
            sums.top[list(cluster)] = math.log(median) / len(cluster)
            sums.bottom[list(cluster)] = 1 / len(cluster)
        means = np.exp(sums.resampled(layout))
        return means, means

    @property
    def rule(self) -> str:
        return "bootstrap"

    def level(self, plays: Plays, layout: Layout) -> intervals.Interval | None:
        return intervals.interval(self.bounds(plays, layout)[0], layout)


def _above_oracle(play: Play) -> list[float]:
    """Seconds above the oracle. A request that did not complete counts with the time it waited."""
    return [chunk.rct_s - chunk.oracle_s for chunk in play.chunks if chunk.oracle_s is not None]


_EXCESS = Ratio(lambda play: math.fsum(_above_oracle(play)), lambda play: len(_above_oracle(play)))
FIGURES = (
    Figure("median", "median", "s", _Medians()),
    replace(rows.RCT_P95, title="p95"),
    replace(rows.RCT_P99, title="p99"),
    Figure("excess", "excess", "s", _EXCESS),
    replace(rows.FIRST_FRAME, title="first frame"),
    replace(rows.REBUFFER_RATE, title="rebuffering"),
    rows.REDUNDANCY,
)


# --- pairs ------------------------------------------------------------------------------------------------------------


def _single(name: str) -> Path:
    """The trace of a single recording: a file, or its name in the directories of RAILYARD_TRACE_PATH."""
    folders = [folder for root in search_path() for folder in (root / "recorded", root)]
    places = [Path(name), *(folder / file for folder in folders for file in (name, f"{name}.down"))]
    trace = next((place for place in places if place.is_file()), None)
    if trace is None:
        raise UserError(f"there is no trace '{name}', nor {name}.down in {SEARCH_PATH_VARIABLE}; name a file.")
    return trace


def _of_singles(token: str, library: Path) -> str:
    first, _, second = token.partition("+")
    files = _single(first), _single(second)
    name = f"{files[0].stem}-with-{files[1].stem}"
    written, entry = make_pair((Single(files[0]), Single(files[1])), PairMetadata(name))
    write_entry(library, written, entry)
    return name


def _generated(token: str, library: Path) -> list[str]:
    model, _, seeds = token.partition(":")
    first, _, last = seeds.partition("-")
    if model not in mobility_models() or not first.isdigit() or not (last or first).isdigit():
        raise UserError(
            f"'{token}' is no MODEL:SEED or MODEL:FIRST-LAST; the models are {', '.join(mobility_models())}."
        )
    names = [f"{model}-s{seed}" for seed in range(int(first), int(last or first) + 1)]
    for name in names:
        pair = GeneratedPair(
            name=name, seed=int(name.rpartition("-s")[2]), duration_s=LENGTH_S, model=mobility_models()[model]
        )
        if not (library / f"{name}.yaml").is_file():
            write_pair(pair, library)
    return names


def pairs_of(listed: list[str], library: Path) -> list[str]:
    """The names of the pairs. Makes missing ones in the library."""
    names: list[str] = []
    for token in listed:
        if "+" in token:
            names.append(_of_singles(token, library))
        elif ":" in token:
            names += _generated(token, library)
        else:
            names.append(token)
    return list(dict.fromkeys(names))


# --- runs -------------------------------------------------------------------------------------------------------------


def _build_of(named: str | None) -> build.Build:
    """The working tree, a checkout that is built, or a git revision."""
    if named is None or not Path(named).is_dir():
        with build.locked():
            return build.working_tree() if named is None else build.baseline(named)
    program = Path(named) / "build" / "bin" / build.PROGRAM
    if not program.is_file():
        raise UserError(f"{program} is not there; build it with `make -C {named} build`.")
    digest = sha256_of(program)
    return build.Build(f"{named} ({digest[:12]})", digest[:12], program.resolve(), digest)


@dataclass(frozen=True)
class Side:
    """One of the two sides that are compared."""

    name: str
    build: build.Build
    settings: dict[str, Any]

    def played(self, name: str, pairs: list[str], schemes: list[dict[str, Any]], asked: Settings) -> list[Run]:
        """Its plays, under the side's own labels, so that both sides are compared as two schemes of one campaign."""
        changes = {"pairs": pairs, "schemes": [entry | self.settings for entry in schemes], "seeds": asked.starts}
        logs = {"qlog": "none", "link_logs": False}
        experiment, document = changed(EXPERIMENTS.get(name, name), changes | logs)
        version = {"program": self.build.program, "programs_sha256": {build.PROGRAM: self.build.program_sha256}}
        specs = [spec.model_copy(update=version) for spec in resolve(experiment, document)]
        plan = Plan(experiment, specs, name=f"{experiment.name}-{self.build.key}", most_hung=1)
        with whole_campaign(plan, Place(results=asked.out)) as campaign:
            self._refuse_faults(campaign.runs)
            return [self._named(run) for run in campaign.runs]

    def _refuse_faults(self, runs: Sequence[Run]) -> None:
        """Raises UserError if a program failed: its requests are not missing by chance, so figures would be wrong."""
        if faulty := [run for run in runs if run.is_fault]:
            first = faulty[0]
            raise UserError(
                f"{len(faulty)} of {counted(len(runs), 'play')} of the side '{self.name}' ended by a program's fault, "
                f"the first {first.run_id}, {first.outcome}: {first.record['message']}."
            )

    def _named(self, run: Run) -> Run:
        record = run.record | {"config": run.config | {"label": f"{run.label} {self.name}"}}
        return replace(run, run_id=f"{run.run_id} {self.name}", record=record)


# --- what is printed --------------------------------------------------------------------------------------------------


def cell(one: Difference) -> str:
    """The change with its interval. For a rate, also the new value."""
    if one.change is None or not one.carried:
        return "–" if one.change is None else intervals.TOO_SMALL
    form, after = "+.1f", ""
    if not one.figure.is_relative:
        form, after = "+.2f", f", to {100 * one.ours.value:.2f}" if one.ours else ""
    return one.change.interval.mapped(lambda value: 100 * value).text(form).replace("-", "−") + after


def compared(plays: Sequence[Run], label: str) -> list[Difference]:
    return differences.differences(plays, [(f"{label} {TRIED}", f"{label} {BASE}")], FIGURES)


def _row(place: str, label: str, plays: Sequence[Run]) -> Row:
    comparisons = compared(plays, label)
    failed = [sum(run.failed for run in plays if run.label == f"{label} {side}") for side in (BASE, TRIED)]
    return Row(
        place=place,
        pairs=len({run.pair for run in plays}),
        label=label,
        cells=[cell(one) for one in comparisons],
        failed=f"{failed[0]} / {failed[1]}",
        established=[f"{one.figure.title} {one.verdict}" for one in comparisons if one.verdict in ("lower", "higher")],
        short=shortage.note(differences.shortages(plays, comparisons)).replace("seeds: ", "starts="),
    )


def _scheme(entry: str | dict[str, Any]) -> dict[str, Any]:
    named = entry if isinstance(entry, dict) else {"scheme": entry}
    return {"label": named.get("scheme")} | named


def _sides(asked: Settings) -> tuple[Side, Side]:
    tried = _build_of(asked.tried)
    base = tried if asked.changes and asked.against is None else _build_of(asked.against or "HEAD")
    return Side(BASE, base, {}), Side(TRIED, tried, asked.changes)


def measure(asked: Settings) -> Measured:
    library = asked.out / "pairs"
    os.environ[SEARCH_PATH_VARIABLE] = f"{os.environ.get(SEARCH_PATH_VARIABLE, '')}:{library}"
    sets = {name: pairs_of(listed, library) for name, listed in (("train", asked.train), ("check", asked.check))}
    if not any(sets.values()):
        raise UserError("there are no pairs to compare on; name some with --set train=[...] or --set check=[...].")
    base, tried = _sides(asked)
    schemes = [_scheme(entry) for entry in asked.schemes]
    rows: list[Row] = []
    for name, pairs in sets.items():
        for experiment in asked.experiments if pairs else ():
            tell(f"{name}, {experiment}: {counted(len(pairs), 'pair')}")
            plays = [run for side in (base, tried) for run in side.played(experiment, pairs, schemes, asked)]
            sound = differences.sound(plays)
            rows += [_row(f"{name}, {experiment}", entry["label"], sound) for entry in schemes]
    titles = {side.name: side.build.title for side in (base, tried)}
    return Measured(titles=titles, changes=asked.changes, starts=asked.starts, rows=rows)


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    added = f" with {measured.changes}" if measured.changes else ""
    yield (
        "sides",
        f"{measured.titles[TRIED]}{added} against {measured.titles[BASE]}; starts a pair: {measured.starts}.\n"
        "Changes in %; of rebuffering and redundancy in percentage points, with the rate in %.",
    )
    heads = ["pairs", "scheme", *(figure.title for figure in FIGURES), "failed", "number"]
    rows = [[row.place, row.label, *row.cells, row.failed, str(row.pairs)] for row in measured.rows]
    yield "changes", markdown(heads, rows, left=2 + len(FIGURES))
    title = "Established for pairs like these, with Holm's correction over the figures of a row:"
    yield "established", "\n".join([title, "", *map(_sentence, measured.rows)])


def _sentence(row: Row) -> str:
    return f"- {row.place}, {row.label}: {'; '.join(row.established) or 'nothing'}. {row.short}".rstrip()
