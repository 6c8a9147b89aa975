"""Thresholds of the double-threshold control as percentiles of play-time left (XLINK, sections 5.2.2 and 7.1).

The distribution is measured with the control off, i.e. the gate always open. th(X) is the play-time left that X % of
the samples exceed. The setting (X, Y) means T_th1 = th(X), T_th2 = th(Y).
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from railyard.base.errors import UserError
from railyard.base.jsonl import read_jsonl
from railyard.base.yamlfile import YamlDocument
from railyard.experiment.model import (
    Experiment,
    MeasuredScheme,
    MeasuredThresholds,
    SchemeEntry,
)
from railyard.figures.rows import REINJECTION_COST
from railyard.results.pending import Place, Plan, Whole, whole_campaign
from railyard.results.records import RESULT_OUTCOMES, Run
from railyard.run.resolve import resolve
from railyard.run.runspec import RunSpec
from railyard.stats.statistics import nearest_rank


def _ordered(value: tuple[float, float]) -> tuple[float, float]:
    x, y = value
    if not 0 <= y <= x <= 100:
        raise ValueError(f"0 ≤ Y ≤ X ≤ 100 must hold, since th(X) is the lower threshold, not [{x:g}, {y:g}]")
    return value


Percentiles = Annotated[tuple[float, float], AfterValidator(_ordered)]
"""X and Y of a setting, percent."""
DANGER_MS = 50.0  # table 2 of the paper: less play-time left than this may end in a stall


@dataclass(frozen=True)
class Distribution:
    """Play-time left in ms, sampled every 100 ms of every run, after start-up and until the last byte had arrived."""

    samples: list[float]
    runs: list[Run]

    @property
    def ordered(self) -> list[float]:
        return sorted(self.samples)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(json.dumps(self.ordered).encode()).hexdigest()

    @property
    def cost(self) -> float:
        """β over all measuring runs: the cost of re-injection with the gate always open."""
        return REINJECTION_COST.value(self.runs)

    def th(self, percent: float) -> float:
        return th(self.ordered, percent)

    def share_below(self, limit_ms: float) -> float:
        return sum(sample < limit_ms for sample in self.samples) / len(self.samples)


def th(ordered: Sequence[float], percent: float) -> float:
    """The value that `percent` % of the samples exceed, by nearest rank. `ordered`: the samples, ascending."""
    return nearest_rank(ordered, 1 - percent / 100)


def samples_of(run: Run, folder: Path) -> list[float]:
    """The player's reports between the start of playing and the arrival of the last byte. After that the buffer only
    drains, and thresholds have no effect."""
    events = read_jsonl(folder / "player.jsonl")
    play = next((event["t"] for event in events if event.get("event") == "play"), None)
    arrived = [event["t"] for event in events if event.get("event") == "chunk_done"]
    if play is None or not arrived:
        return []
    end = arrived[-1] if run.outcome == "complete" else math.inf
    return [
        event["play_time_left_ms"] for event in events if event.get("event") == "buffer" and play <= event["t"] <= end
    ]


def measuring(entry: SchemeEntry) -> SchemeEntry:
    """The scheme with the control off: the gate always open, all else as it is."""
    plain = {name: getattr(entry, name) for name in SchemeEntry.model_fields}
    plain |= {"thresholds": None, "t_th1_ms": None, "t_th2_ms": None, "label": "control-off", "qoe_control": "off"}
    return SchemeEntry.model_construct(**plain)


def with_measured(entry: SchemeEntry, ordered: Sequence[float], facts: Mapping[str, Any]) -> MeasuredScheme:
    """The scheme with its thresholds [X, Y] as ms. `ordered`: play-time left, ascending; `facts`: the
    origin of the samples."""
    x, y = entry.thresholds if isinstance(entry.thresholds, tuple) else (0.0, 0.0)
    t_th1_ms, t_th2_ms = round(th(ordered, x), 3), round(th(ordered, y), 3)
    record = MeasuredThresholds(x=x, y=y, t_th1_ms=t_th1_ms, t_th2_ms=t_th2_ms, **facts)
    given = {name: getattr(entry, name) for name in SchemeEntry.model_fields} | {"label": entry.base_label()}
    given |= {"t_th1_ms": t_th1_ms, "t_th2_ms": t_th2_ms}
    return MeasuredScheme.model_construct(**given, measured=record)


def in_milliseconds(
    entries: Iterable[SchemeEntry], measured: Callable[[SchemeEntry], MeasuredScheme]
) -> list[SchemeEntry]:
    """The schemes with `thresholds: [X, Y]` as `measured` has them; `off` means no re-injection."""

    def of(entry: SchemeEntry) -> SchemeEntry:
        if entry.thresholds is None or isinstance(entry, MeasuredScheme):
            return entry
        if entry.thresholds != "off":
            return measured(entry)
        return entry.model_copy(update={"label": entry.base_label(), "thresholds": None, "reinjection": "none"})

    return [of(entry) for entry in entries]


def _measuring_runs(
    experiment: Experiment, document: YamlDocument, entry: SchemeEntry, arena: str
) -> tuple[Experiment, list[RunSpec]]:
    """The experiment's pairs for measuring, and its seeds, under that scheme with the control off."""
    pairs = experiment.threshold_pairs or experiment.pairs
    change = {
        "arena": arena,
        "pairs": pairs,
        "schemes": [measuring(entry)],
        "qlog": "none",
        "link_logs": False,
        "pcap": False,
    }
    checked = experiment.model_copy(update=change)
    return checked, resolve(checked, document)


def _measured(plan: Plan, whole: Whole) -> Distribution:
    """The distribution over the runs of a measuring campaign."""
    samples: list[float] = []
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


def measured(
    experiment: Experiment,
    document: YamlDocument,
    entry: SchemeEntry,
    arena: str,
    place: Place,
    jobs: int | None,
    name: str | None = None,
) -> Distribution:
    """Runs the scheme with the control off. `name`: of the results. None: the experiment's."""
    checked, specs = _measuring_runs(experiment, document, entry, arena)
    plan = Plan(checked, specs, name=name)
    with whole_campaign(plan, place, jobs=jobs) as campaign:
        return _measured(plan, campaign)


def record_of(distribution: Distribution, experiment: Experiment, entry: SchemeEntry, arena: str) -> dict[str, Any]:
    """The origin of the distribution, for records."""
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

    def of(entry: SchemeEntry) -> MeasuredScheme:
        tell(f"measuring play-time left with the control off, for {entry.base_label()}")
        distribution = measured(experiment, document, entry, "sim", Place(results=folder / "thresholds"), jobs)
        return with_measured(entry, distribution.ordered, record_of(distribution, experiment, entry, "sim"))

    return experiment.model_copy(update={"schemes": in_milliseconds(experiment.schemes, of)})


def left_open(experiment: Experiment, tell: Callable[[str], None]) -> Experiment:
    """The experiment without thresholds in ms, to count its runs without measuring."""
    entries = [
        entry.model_copy(update={"label": entry.base_label(), "thresholds": None}) if entry.thresholds else entry
        for entry in experiment.schemes
    ]
    if entries != experiment.schemes:
        tell("Runs that measure play-time left come first, and are not counted here; nor are runs already done.")
    return experiment.model_copy(update={"schemes": entries})
