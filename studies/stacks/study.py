"""The schemes of an experiment beside other stacks: over all pairs, and each pair.

Stacks that are not built here are left out, with the reason in a list. Intervals resample pairs of traces
(railyard/stats/bootstrap.py), except for the rebuffer rate (railyard/stats/rates.py).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from railyard.base.errors import UserError
from railyard.base.jsonl import read_jsonl
from railyard.base.lists import distinct, grouped
from railyard.base.yamlfile import YamlDocument, near_miss
from railyard.experiment.model import Experiment, Strict, find_experiment, load_experiment
from railyard.experiment.stacks import entry_from, resolve_stack
from railyard.figures.figure import Values
from railyard.figures.play import Play
from railyard.figures.rows import RCT_MAX, RCT_MEDIAN, RCT_P95, REBUFFER_RATE, first_frames, rcts
from railyard.results.differences import differences, layout_of
from railyard.results.pending import Place, Plan, whole_campaign
from railyard.results.records import Run
from railyard.run.arena import arena_of
from railyard.run.resolve import not_run, resolve
from railyard.stats import rates
from railyard.stats.bootstrap import Layout
from railyard.stats.intervals import Interval, interval
from railyard.stats.pooled import bootstrap, paired, quantile_of
from railyard.studies.claims import Compared
from railyard.studies.machine import reason
from railyard.studies.recorded import compared_of
from railyard.studies.study import Data, changed, markdown, tell

NOT_KNOWN = "–"
REFERENCE = "vanilla-mp"
HEADS = ["RCT p50 s", "p95", "p99", "first frame p50 s", "rebuffer %", "wire / delivered", "ends"]
CHANGES = (RCT_MEDIAN, RCT_P95, REBUFFER_RATE)


@dataclass(frozen=True)
class Played:
    """A scheme over some pairs."""

    label: str
    runs: list[Run]  # without void ones
    void: int

    @property
    def layout(self) -> Layout:
        return layout_of(self.runs)

    def quantile(self, values: Callable[[Play], Values], q: float) -> Interval | None:
        groups = [[value for value, _ in values(run)] for run in self.runs]
        return bootstrap(groups, quantile_of(q), self.layout) if self.runs else None

    @property
    def rebuffer(self) -> Interval | None:
        """The rebuffer rate in percent."""
        rate = REBUFFER_RATE.level(self.runs, self.layout) if self.runs else None
        return None if rate is None else rate.mapped(lambda share: 100 * share)

    @property
    def wire(self) -> Interval | None:
        """Bytes that left the downlinks / bytes of the video that the player received."""
        sent = [sum(path.down_bytes for path in run.paths) for run in self.runs]
        received = [run.received_bytes for run in self.runs]
        return interval(rates.Sums.of(sent, received).resampled(self.layout), self.layout) if self.runs else None

    @property
    def ends(self) -> str:
        counts = Counter(run.outcome.replace("_", " ") for run in self.runs) + Counter({"void": self.void})
        return ", ".join(f"{count} {outcome}" for outcome, count in counts.items())


def against(played: Played, reference: Played) -> Interval | None:
    """RCT p95 against the reference's, in percent, over the pairs of traces on which both have a run."""
    theirs = {(run.pair, run.seed): run for run in reference.runs}
    both = [(run, theirs[run.pair, run.seed]) for run in played.runs if (run.pair, run.seed) in theirs]
    if not both or played is reference:
        return None
    ours, others = ([[chunk.rct_s for chunk in pair[side].chunks] for pair in both] for side in (0, 1))
    layout = layout_of([run for run, _ in both], [run for _, run in both])
    return paired(ours, others, quantile_of(0.95), lambda a, b: 100 * (a / b - 1), layout)


def played_by(runs: Sequence[Run]) -> list[Played]:
    labels = dict.fromkeys(run.label for run in runs)
    return [
        Played(
            label,
            [run for run in runs if run.label == label and not run.void],
            sum(run.void for run in runs if run.label == label),
        )
        for label in labels
    ]


# --- what is measured -------------------------------------------------------------------------------------------------


class Settings(Strict):
    experiment: str  # a YAML file, or its name in experiments/
    pairs: list[str] | None = Field(default=None, min_length=1)  # instead of the experiment's
    schemes: list[str | dict[str, Any]] | None = Field(default=None, min_length=1)  # likewise
    against: str = REFERENCE
    seeds: int | None = Field(default=None, ge=1)
    out: Path | None = None  # folder of the results; None: results/NAME
    jobs: int | None = Field(default=None, ge=1)


class Row(Data):
    """A scheme over all pairs."""

    label: str
    against_percent: Interval | None
    rct_s: list[Interval | None]  # p50, p95, p99
    first_frame_s: Interval | None
    rebuffer_percent: Interval | None
    wire: Interval | None
    ends: str


class Rct(Data):
    """RCT of a scheme over one pair. None: no run counts."""

    median_s: float | None
    most_s: float | None


class Measured(Data):
    against: str = REFERENCE
    changes: list[Compared] = Field(default=[])  # of each scheme, in the order of CHANGES
    rows: list[Row]
    pairs: dict[str, dict[str, Rct]]  # of each pair, by scheme
    failed: list[str]
    missing: list[str]  # stacks that are not built, with the reason


def measure(settings: Settings) -> Measured:
    experiment, document, missing = _without_missing(settings)
    labels = distinct(spec.label for spec in resolve(experiment, document, dry_run=True))
    if settings.against not in labels:
        raise UserError(f"no run of scheme '{settings.against}'; {near_miss(settings.against, labels)}")
    arena_of(experiment.arena).check()
    plan = Plan(experiment, resolve(experiment, document), not_run=not_run(experiment, document))
    with whole_campaign(plan, Place(settings.out, tell=tell), jobs=settings.jobs) as campaign:
        runs = campaign.runs
        failed = _failed(runs, campaign.folder)
    every = played_by(runs)
    reference = next(one for one in every if one.label == settings.against)
    pairs = {pair: played_by([run for run in runs if run.pair == pair]) for pair in dict.fromkeys(r.pair for r in runs)}
    return Measured(
        against=reference.label,
        changes=_changes(runs, reference.label),
        rows=[_row(one, reference) for one in every],
        pairs={pair: {one.label: _of_pair(one) for one in of_pair} for pair, of_pair in pairs.items()},
        failed=failed,
        missing=missing,
    )


def _row(played: Played, reference: Played) -> Row:
    return Row(
        label=played.label,
        against_percent=against(played, reference),
        rct_s=[played.quantile(rcts, q) for q in (0.5, 0.95, 0.99)],
        first_frame_s=played.quantile(first_frames, 0.5),
        rebuffer_percent=played.rebuffer,
        wire=played.wire,
        ends=played.ends,
    )


def _changes(runs: Sequence[Run], reference: str) -> list[Compared]:
    played = [run for run in runs if not run.void]
    comparisons = [(label, reference) for label in distinct(run.label for run in played) if label != reference]
    return [compared_of(one, {}) for one in differences(played, comparisons, CHANGES)]


def _of_pair(played: Played) -> Rct:
    points = [figure.point(played.runs) for figure in (RCT_MEDIAN, RCT_MAX)]
    median, most = (None if point is None else point.value for point in points)
    return Rct(median_s=median, most_s=most)


def _failed(runs: Sequence[Run], folder: Path) -> list[str]:
    """The faults of runs, with the last words of the relays."""
    lines = []
    for run in runs:
        if run.void:
            lines.append(f"{run.run_id}: void: {run.void_words}")
        elif run.outcome != "complete":
            relay = read_jsonl(folder / "runs" / run.run_id / "relay.jsonl")
            said = [str(record["reason"]) for record in relay if record.get("event") == "closed"]
            message = "; ".join(
                [str(run.record.get("message") or run.outcome), *(f"its relay: {word}" for word in said)]
            )
            lines.append(f"{run.run_id}: {run.outcome.replace('_', ' ')}: {message}")
    return lines


def _without_missing(settings: Settings) -> tuple[Experiment, YamlDocument, list[str]]:
    """The experiment without the stacks that are not built here, and the reasons."""
    file = find_experiment(settings.experiment)
    data: dict[str, Any] = load_experiment(file)[1].data
    kept, missing = [], []
    for entry in settings.schemes or data["schemes"]:
        if isinstance(entry, dict) and "stack" in entry:
            try:
                resolve_stack(entry["stack"], entry_from(entry)["stack_options"], file.parent)
            except UserError as error:
                missing.append(f"{entry.get('label', entry['stack'])}: {reason(error)}")
                continue
        kept.append(entry)
    changes = {"schemes": kept, "pairs": settings.pairs, "seeds": settings.seeds}
    return *changed(settings.experiment, changes), missing


# --- what is printed --------------------------------------------------------------------------------------------------


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    heads = ["scheme", f"RCT p95 against {measured.against} %", *HEADS]
    yield "schemes", markdown(heads, [_cells(row) for row in measured.rows])
    labels = [row.label for row in measured.rows]
    matrix = [[pair, *(_words(by.get(label)) for label in labels)] for pair, by in measured.pairs.items()]
    yield "pairs", markdown(["pair", *labels], matrix)
    if measured.changes:
        by_label = grouped((one.a, one.words) for one in measured.changes)
        heads = [f"against {measured.against}", *(figure.title for figure in CHANGES)]
        yield "changes", markdown(heads, [[label, *words] for label, words in by_label.items()])
    for name, title, lines in (
        ("failed", "Runs that failed", measured.failed),
        ("missing", "Not built here", measured.missing),
    ):
        if lines:
            yield name, "\n".join([f"{title}:", "", *(f"- {line}" for line in lines)])


def compared(measured: Measured) -> Iterator[Compared]:
    for row in measured.rows:
        yield Compared(figure="rct_p95", a=row.label, b=measured.against, found=row.against_percent)


def _text(interval: Interval | None, form: str) -> str:
    return NOT_KNOWN if interval is None else interval.text(form)


def _cells(row: Row) -> list[str]:
    times = [_text(one, ".3f") for one in (*row.rct_s, row.first_frame_s)]
    rates = [_text(row.rebuffer_percent, ".1f"), _text(row.wire, ".3f")]
    return [row.label, _text(row.against_percent, "+.0f"), *times, *rates, row.ends]


def _words(of_pair: Rct | None) -> str:
    """Median and largest RCT."""
    if of_pair is None or of_pair.median_s is None:
        return "void"
    return f"{of_pair.median_s:.2f}" + ("" if of_pair.most_s is None else f" / {of_pair.most_s:.2f}")
