"""Thresholds of the double-threshold control as percentiles of play-time left (XLINK, sections 5.2.2 and 7.1).

The distribution is measured where the control is off: the gate always open. th(X) is the play-time left that X % of the
samples are greater than; the setting (X, Y) stands for T_th1 = th(X), T_th2 = th(Y).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from railyard.base.errors import UserError
from railyard.base.jsonl import read_jsonl
from railyard.base.terminal import print_table
from railyard.base.yamlfile import YamlDocument, near_miss, parse
from railyard.experiment.model import (
    Experiment,
    MeasuredScheme,
    MeasuredThresholds,
    PlayerSettings,
    SchemeEntry,
    find_experiment,
    load_experiment,
)
from railyard.figures.rows import REINJECTION_COST
from railyard.results.pending import Place, Plan, Whole, whole_campaign
from railyard.results.records import RESULT_OUTCOMES, Run
from railyard.run.resolve import resolve
from railyard.run.runspec import RunSpec
from railyard.stats.statistics import nearest_rank

SCHEMA = 2
# The settings of the paper's figure 10 and table 2, from the cheapest to the gate that is nearly always open.
PAPER_SETTINGS = ((95, 80), (90, 80), (90, 60), (60, 50), (60, 1), (1, 1))
DANGER_MS = 50.0  # table 2: less play-time left than this may end in a stall


@dataclass(frozen=True)
class Sample:
    pair: str
    seed: int
    t: float  # seconds since the player's start
    play_time_left_ms: float


@dataclass(frozen=True)
class Distribution:
    """Play-time left, sampled every 100 ms of every run, after start-up and until the last byte had arrived."""

    samples: list[Sample]
    runs: list[Run]

    @property
    def ordered(self) -> list[float]:
        return sorted(sample.play_time_left_ms for sample in self.samples)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(json.dumps(self.ordered).encode()).hexdigest()

    @property
    def cost(self) -> float:
        """Of the measuring runs together: β, what re-injection costs while nothing closes the gate."""
        return REINJECTION_COST.value(self.runs)

    def th(self, percent: float) -> float:
        return th(self.ordered, percent)

    def share_below(self, limit_ms: float) -> float:
        return sum(sample.play_time_left_ms < limit_ms for sample in self.samples) / len(self.samples)


def th(ordered: Sequence[float], percent: float) -> float:
    """The value that `percent` % of the samples, given in ascending order, are greater than (nearest rank)."""
    return nearest_rank(ordered, 1 - percent / 100)


def samples_of(run: Run, folder: Path) -> list[Sample]:
    """What the player reported between the start of playing and the arrival of the last byte: from then on the buffer
    only drains, and no thresholds decide anything any more."""
    events = read_jsonl(folder / "player.jsonl")
    play = next((event["t"] for event in events if event.get("event") == "play"), None)
    arrived = [event["t"] for event in events if event.get("event") == "chunk_done"]
    if play is None or not arrived:
        return []
    end = arrived[-1] if run.outcome == "complete" else math.inf
    return [
        Sample(run.pair, run.seed, event["t"], event["play_time_left_ms"])
        for event in events
        if event.get("event") == "buffer" and play <= event["t"] <= end
    ]


def measuring(entry: SchemeEntry) -> SchemeEntry:
    """The scheme with the control off: the gate always open, all else as it is."""
    plain = {name: getattr(entry, name) for name in SchemeEntry.model_fields}
    plain |= {"thresholds": None, "t_th1_ms": None, "t_th2_ms": None, "label": "control-off", "qoe_control": "off"}
    return SchemeEntry.model_construct(**plain)


def _measuring_runs(
    experiment: Experiment, document: YamlDocument, entry: SchemeEntry, arena: str
) -> tuple[Experiment, list[RunSpec]]:
    """The experiment's pairs for measuring, and its seeds, under that scheme with the control off."""
    pairs = experiment.threshold_pairs or experiment.pairs
    change = {"arena": arena, "pairs": pairs, "schemes": [measuring(entry)], "qlog": "none", "link_logs": False}
    checked = experiment.model_copy(update=change)
    return checked, resolve(checked, document)


def _measured(plan: Plan, whole: Whole) -> Distribution:
    """What the runs of a measuring campaign came to."""
    samples: list[Sample] = []
    runs: list[Run] = []
    for spec, run in zip(plan.specs, whole.runs, strict=True):
        place = whole.folder / "runs" / spec.run_id
        if run.outcome not in RESULT_OUTCOMES:
            raise UserError(f"{place}: the measuring run ended as '{run.outcome}'; look there.")
        if not run.void:
            runs.append(run)
            samples += samples_of(run, place)
    if not samples:
        raise UserError(
            f"{whole.folder}: no measuring run got as far as playing, so there is no play-time left to measure."
        )
    return Distribution(samples, runs)


def measure_named(
    experiment: Experiment,
    document: YamlDocument,
    entry: SchemeEntry,
    jobs: int | None,
    arena: str,
    out: Path | None,
    tell: Callable[[str], None],
) -> tuple[Distribution, Path]:
    """Measures into results of their own, `thresholds-NAME`, and returns their folder, too."""
    checked, specs = _measuring_runs(experiment, document, entry, arena)
    plan = Plan(checked, specs, name=f"thresholds-{checked.name}")
    with whole_campaign(plan, Place(out, tell=tell), jobs=jobs) as whole:
        return _measured(plan, whole), whole.folder


def record_of(distribution: Distribution, experiment: Experiment, entry: SchemeEntry, arena: str) -> dict[str, Any]:
    """What the distribution rests on."""
    return {
        "arena": arena,
        "scheme": measuring(entry).model_dump(exclude_none=True),
        "pairs": sorted({run.pair for run in distribution.runs}),
        "seeds": list(experiment.seeds),
        "runs": len(distribution.runs),
        "samples": len(distribution.samples),
        "sha256": distribution.sha256,
    }


def resolved(
    experiment: Experiment, document: YamlDocument, folder: Path, jobs: int, tell: Callable[[str], None]
) -> Experiment:
    """The experiment with every `thresholds: [X, Y]` replaced by milliseconds, measured in sim; `off` means no
    re-injection.

    One distribution for all pairs for measuring and all seeds of the experiment, as one server has one setting for all
    of its clients. Measuring runs lie below `folder`/thresholds, one campaign for each scheme that differs in more than
    its thresholds.
    """
    entries: list[SchemeEntry] = []
    for entry in experiment.schemes:
        if entry.thresholds is None or isinstance(entry, MeasuredScheme):
            entries.append(entry)
            continue
        if entry.thresholds == "off":
            change = {"label": entry.base_label(), "thresholds": None, "reinjection": "none"}
            entries.append(entry.model_copy(update=change))
            continue
        tell(f"measuring play-time left with the control off, for {entry.base_label()}")
        checked, specs = _measuring_runs(experiment, document, entry, "sim")
        plan = Plan(checked, specs)
        with whole_campaign(plan, Place(results=folder / "thresholds"), jobs=jobs) as whole:
            found = _measured(plan, whole)
        x, y = entry.thresholds
        measured = MeasuredThresholds(
            x=x,
            y=y,
            t_th1_ms=round(found.th(x), 3),
            t_th2_ms=round(found.th(y), 3),
            **record_of(found, experiment, entry, "sim"),
        )
        given = {name: getattr(entry, name) for name in SchemeEntry.model_fields} | {"label": entry.base_label()}
        given |= {"t_th1_ms": measured.t_th1_ms, "t_th2_ms": measured.t_th2_ms}
        entries.append(MeasuredScheme.model_construct(**given, measured=measured))
    return experiment.model_copy(update={"schemes": entries})


@dataclass(frozen=True)
class ThresholdRow:
    """One setting of a table of thresholds; (X, Y) none: re-injection off."""

    setting: tuple[float, float] | None
    t_th1_ms: float | None
    t_th2_ms: float | None
    cost_least: float
    cost_most: float

    @property
    def name(self) -> str:
        return "off" if self.setting is None else f"{self.setting[0]:g}-{self.setting[1]:g}"


def rows_of(distribution: Distribution, settings: Sequence[tuple[float, float]]) -> list[ThresholdRow]:
    """The thresholds of each setting, and what the paper says the cost is at least and at most: β(1 − X), β(1 − Y)."""
    beta = distribution.cost
    rows = [ThresholdRow(None, None, None, 0.0, 0.0)]
    for x, y in settings:
        low, high = distribution.th(x), distribution.th(y)
        rows.append(ThresholdRow((x, y), low, high, beta * (1 - x / 100), beta * (1 - y / 100)))
    return rows


def parse_setting(text: str) -> tuple[float, float]:
    """'95,80' as (95, 80)."""
    try:
        x, y = (float(part) for part in text.split(","))
    except ValueError:
        raise UserError(f"--setting takes two percentages as X,Y, for instance 95,80, not '{text}'.") from None
    if not 0 <= y <= x <= 100:
        raise UserError(f"--setting {text}: 0 ≤ Y ≤ X ≤ 100 must hold, since th(X) is the lower threshold.")
    return x, y


def what_to_measure(
    name: str | None, pairs: Sequence[str], scheme: str | None, player: dict[str, Any], seeds: int | None
) -> tuple[Experiment, YamlDocument, SchemeEntry]:
    """The experiment, from a file or made of options, and the scheme of it whose control is to be off."""
    if (name is None) == (not pairs):
        raise UserError("name either an experiment or, with --pair, the trace pairs to measure on.")
    if name is None:
        length = player.get("duration_s", PlayerSettings().duration_s)
        data: dict[str, Any] = {"name": "options", "pairs": list(pairs), "schemes": [scheme or "xlink"]}
        data |= {"player": player, "time_limit_s": max(60.0, 3 * length)}
        document = YamlDocument(Path("railyard thresholds"), data, {})
        checked = parse(document, Experiment)
    else:
        checked, document = load_experiment(find_experiment(name))
        settings = PlayerSettings.model_validate(checked.player.model_dump() | player)
        checked = checked.model_copy(update={"player": settings})
    if seeds is not None:
        checked = checked.model_copy(update={"seeds": list(range(1, seeds + 1))})
    return checked, document, _entry(checked, scheme if name is not None else None)


def _entry(experiment: Experiment, label: str | None) -> SchemeEntry:
    labels = {entry.base_label(): entry for entry in experiment.schemes}
    if label is not None and label not in labels:
        raise UserError(f"the experiment has no scheme '{label}'; {near_miss(label, labels)}")
    if label is not None:
        return labels[label]
    gated = [entry for entry in experiment.schemes if entry.scheme.startswith("xlink")]
    wanted = [entry for entry in gated if entry.thresholds not in (None, "off")] or gated
    if not wanted:
        raise UserError(f"the experiment {experiment.name} has no scheme xlink to measure; name one with --scheme.")
    return wanted[0]


def print_rows(console: Console, found: Distribution, rows: Sequence[ThresholdRow]) -> None:
    ordered = found.ordered
    console.print(
        f"{len(ordered)} samples of play-time left in {len(found.runs)} runs with the control off: "
        f"median {th(ordered, 50):.0f} ms, {found.share_below(DANGER_MS) * 100:.1f} % below {DANGER_MS:g} ms; "
        f"{REINJECTION_COST.title} β = {found.cost * 100:.2f} %",
        soft_wrap=True,
    )
    table = Table("(X, Y)", "T_th1 ms", "T_th2 ms", "cost at least β(1−X) %", "at most β(1−Y) %", header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        limits = ["no re-injection", ""] if row.t_th1_ms is None else [f"{row.t_th1_ms:.1f}", f"{row.t_th2_ms:.1f}"]
        table.add_row(row.name, *limits, f"{row.cost_least * 100:.2f}", f"{row.cost_most * 100:.2f}")
    print_table(console, table)


def write(folder: Path, distribution: Distribution, rows: Sequence[ThresholdRow], basis: dict[str, Any]) -> Path:
    """`thresholds.json` and `samples.parquet`; returns the first."""
    document = {
        "schema": SCHEMA,
        "measured": basis,
        "reinjection_cost_control_off": distribution.cost,
        "share_below_50_ms": distribution.share_below(DANGER_MS),
        "thresholds": [
            {"setting": row.name, "t_th1_ms": row.t_th1_ms, "t_th2_ms": row.t_th2_ms}
            | {"cost_least": row.cost_least, "cost_most": row.cost_most}
            for row in rows
        ],
    }
    file = folder / "thresholds.json"
    file.write_text(json.dumps(document, indent=1) + "\n")
    names = ("pair", "seed", "t", "play_time_left_ms")
    columns = {name: [getattr(sample, name) for sample in distribution.samples] for name in names}
    pq.write_table(pa.table(columns), folder / "samples.parquet")
    return file
