"""The figures of the comparison, as tables of the page and as JSON."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from pydantic_core import to_jsonable_python

from railyard.base.errors import UserError
from railyard.base.page import Block, Table
from railyard.run.folders import write_json
from railyard.stats.intervals import Interval
from railyard.stats.statistics import nearest_rank
from railyard.studies.validation import distances
from railyard.studies.validation.distances import QUANTILES, Indices, Verdict
from railyard.studies.validation.downloads import CARRIERS, Download, Fitted, even, fit, odd
from railyard.studies.validation.models import PREDICATES, REFERENCE, Durations

SCHEMA = 1
RESULT = "validate.json"
ODD = "odd"
ODD_MEDIAN = "odd median"
PREDICTIONS = {"own-rtt": "own RTT", "own-rtt-wake-up": "own RTT, wake-up", "first-arrivals": "first arrivals"}


@dataclass(frozen=True)
class Row:
    """One model over one set of downloads."""

    model: str
    size_bytes: int | None  # None: all, each divided by the odd median of its size
    downloads: int
    emulated: int
    unfinished: int
    ks: Interval
    ratios: tuple[Interval, ...]  # at QUANTILES
    log_error: Interval
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Prediction:
    name: str
    downloads: int
    bias: Interval  # of ln
    miss: Interval  # of ln
    within: Interval
    to_odd_median: Interval | None  # difference of the misses


@dataclass(frozen=True)
class Finding:
    """MPTCP against TCP on one path."""

    against: str  # "poorer", "better", "better of each run"
    size_bytes: int | None
    downloads: int
    faster: Interval  # share of the runs in which MPTCP's duration is shorter


@dataclass(frozen=True)
class Analysis:
    seed: int
    downloads: int
    finished: int
    judges: int
    fits: dict[str, Fitted]
    rows: list[Row]
    predictions: list[Prediction]
    findings: list[Finding]
    left_out: list[str]


# ---- figures


def _odd_medians(downloads: Sequence[Download]) -> dict[int, float]:
    sizes = {one.size_bytes for one in downloads}
    of_size = {size: [one.duration_s for one in odd(downloads) if one.size_bytes == size] for size in sizes}
    known = {size: [time for time in times if time is not None] for size, times in of_size.items()}
    if missing := [size for size, times in known.items() if not times]:
        raise UserError(f"no odd download of {missing[0]} bytes finished, so there is no median to divide by.")
    return {size: median(times) for size, times in known.items()}


def _row(
    name: str,
    size_bytes: int | None,
    live: distances.Groups,
    emulated: distances.Groups,
    samples: Sequence[Indices],
    verdict: Verdict | None = None,
) -> Row:
    values = [value for group in emulated for value in group]

    def figure(statistic: distances.Statistic) -> Interval:
        return distances.interval(statistic, len(live), samples)

    return Row(
        name,
        size_bytes,
        downloads=len(live),
        emulated=len(values),
        unfinished=sum(not math.isfinite(value) for value in values),
        ks=figure(distances.ks_of(live, emulated)),
        ratios=tuple(figure(distances.ratio_of(live, emulated, q)) for q in QUANTILES),
        log_error=figure(distances.log_error_of(live, emulated)),
        verdict=verdict,
    )


def _odd_groups(downloads: Sequence[Download], count: int, medians: Mapping[int, float] | None) -> list[list[float]]:
    """The odd downloads in as many groups, in order, so that neighbours in time are in the same sample."""
    values = [
        one.duration_s / (medians[one.size_bytes] if medians else 1.0)
        for one in odd(downloads)
        if one.duration_s is not None
    ]
    groups: list[list[float]] = [[] for _ in range(count)]
    for number, value in enumerate(values):
        groups[number * count // len(values)].append(value)
    return groups


def _rows(
    downloads: Sequence[Download],
    judges: Sequence[Download],
    names: Sequence[str],
    took: Durations,
    seed: int,
    compared: int,
) -> list[Row]:
    medians = _odd_medians(downloads)
    rows: list[Row] = []
    for size in (None, *sorted(medians)):
        here = [one for one in judges if size in (None, one.size_bytes)]
        if not here:
            continue
        samples = distances.resamples(len(here), seed)
        scales = [medians[one.size_bytes] if size is None else 1.0 for one in here]
        live = [[(one.duration_s or math.inf) / scale] for one, scale in zip(here, scales, strict=True)]
        groups = {
            name: [
                [value / scale for value in took[name, "mptcp", one.number]]
                for one, scale in zip(here, scales, strict=True)
            ]
            for name in names
        }
        of_size = [one for one in downloads if size in (None, one.size_bytes)]
        rows.append(_row(ODD, size, live, _odd_groups(of_size, len(here), medians if size is None else None), samples))
        for name in names:
            verdict = None
            if size is None and name != REFERENCE and REFERENCE in names:
                verdict = distances.verdict(live, groups[name], groups[REFERENCE], samples, compared)
            rows.append(_row(name, size, live, groups[name], samples, verdict))
    return rows


def _predictions(
    downloads: Sequence[Download], judges: Sequence[Download], names: Sequence[str], took: Durations, seed: int
) -> list[Prediction]:
    medians = _odd_medians(downloads)
    live = [one.duration_s or math.inf for one in judges]
    samples = distances.resamples(len(judges), seed)
    predicted = {ODD_MEDIAN: [medians[one.size_bytes] for one in judges]}
    for name in names:
        predicted[PREDICTIONS[name]] = [nearest_rank(took[name, "mptcp", one.number], 0.5) for one in judges]

    def figure(statistic: distances.Statistic) -> Interval:
        return distances.interval(statistic, len(judges), samples)

    base = distances.miss_of(live, predicted[ODD_MEDIAN])
    return [
        Prediction(
            name,
            len(judges),
            figure(distances.bias_of(live, values)),
            figure(distances.miss_of(live, values)),
            figure(distances.within_of(live, values)),
            None if name == ODD_MEDIAN else figure(distances.less(distances.miss_of(live, values), base)),
        )
        for name, values in predicted.items()
    ]


def _better(
    here: Sequence[tuple[str, int]], tcp: Mapping[str, Sequence[Sequence[float]]]
) -> dict[tuple[str, int], str]:
    """The path with the lower median duration of TCP, by pair and size. `here`: those of each run, in order."""
    times: dict[tuple[str, int], dict[str, list[float]]] = {}
    for carrier in CARRIERS:
        flat = [value for group in tcp[carrier] for value in group]
        for place, value in zip(here, flat, strict=True):
            times.setdefault(place, {}).setdefault(carrier, []).append(value)
    return {
        place: min(CARRIERS, key=lambda carrier: nearest_rank(of_place[carrier], 0.5))
        for place, of_place in times.items()
    }


def _findings(
    judges: Sequence[Download], took: Durations, pair_of: Mapping[tuple[int, int], str], seed: int
) -> list[Finding]:
    """`pair_of`: the pair of each run of the model, by download and repetition."""
    keys = [(PREDICATES, scheme) for scheme in ("mptcp", "tcp-U", "tcp-M")]
    counts = {one.number: min(len(took.get((*key, one.number), ())) for key in keys) for one in judges}
    judges = [one for one in judges if counts[one.number]]
    if not judges:
        return []
    mptcp = [list(took[PREDICATES, "mptcp", one.number])[: counts[one.number]] for one in judges]
    tcp = {
        carrier: [list(took[PREDICATES, f"tcp-{carrier}", one.number])[: counts[one.number]] for one in judges]
        for carrier in CARRIERS
    }
    places = [[(pair_of[one.number, repeat], one.size_bytes) for repeat in range(counts[one.number])] for one in judges]
    better = _better([place for group in places for place in group], tcp)

    def against(choose: Callable[[int, int], float]) -> list[list[bool]]:
        return [
            [ours < choose(index, repeat) for repeat, ours in enumerate(group)] for index, group in enumerate(mptcp)
        ]

    def on(index: int, repeat: int, *, poorer: bool) -> float:
        carrier = better[places[index][repeat]]
        return tcp[next(other for other in CARRIERS if (other != carrier) == poorer)][index][repeat]

    hits = {
        "poorer": against(lambda index, repeat: on(index, repeat, poorer=True)),
        "better": against(lambda index, repeat: on(index, repeat, poorer=False)),
        "better of each run": against(lambda index, repeat: min(tcp[carrier][index][repeat] for carrier in CARRIERS)),
    }
    findings: list[Finding] = []
    for size in (None, *sorted({one.size_bytes for one in judges})):
        chosen = [index for index, one in enumerate(judges) if size in (None, one.size_bytes)]
        samples = distances.resamples(len(chosen), seed)
        for name, groups in hits.items():
            statistic = distances.share_of([groups[index] for index in chosen])
            findings.append(Finding(name, size, len(chosen), distances.interval(statistic, len(chosen), samples)))
    return findings


def analyse(
    downloads: Sequence[Download],
    models: Sequence[str],
    conditional: Sequence[str],
    took: Durations,
    pair_of: Mapping[tuple[int, int], str],
    seed: int,
    compared: int | None = None,
) -> Analysis:
    """All figures. Models without runs are left out, and so are live downloads that a model has no valid run of.
    `compared`: how many models the protocol compares with the reference, if it is more than have run."""
    run = [name for name in models if any(key[:2] == (name, "mptcp") for key in took)]
    asked = [name for name in conditional if any(key[:2] == (name, "mptcp") for key in took)]
    judges = [one for one in even(downloads) if all(took.get((name, "mptcp", one.number)) for name in (*run, *asked))]
    if not judges:
        raise UserError("no even download has emulated ones beside it; there is nothing to compare.")
    return Analysis(
        seed,
        downloads=len(downloads),
        finished=sum(one.duration_s is not None for one in downloads),
        judges=len(judges),
        fits={carrier: fit(downloads, carrier) for carrier in CARRIERS},
        rows=_rows(downloads, judges, run, took, seed, max(compared or 0, len(run) - 1)),
        predictions=_predictions(downloads, judges, asked, took, seed),
        findings=_findings(judges, took, pair_of, seed),
        left_out=[name for name in models if name not in run],
    )


# ---- words


def _factor(interval: Interval) -> str:
    """The factor that belongs to an interval of ln."""
    return interval.mapped(lambda value: math.exp(value) if value < 700 else math.inf).text(".2f")


def _signed(interval: Interval) -> str:
    return interval.text("+.2f")


def _percent(interval: Interval) -> str:
    return f"{100 * interval.value:.0f} % [{100 * interval.low:.0f}, {100 * interval.high:.0f}]"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    return Table(heads=[*headings], align="l" + "r" * (len(headings) - 1), rows=[[*row] for row in rows])


def _size(size_bytes: int | None) -> str:
    return "all" if size_bytes is None else f"{size_bytes // 1000} kB"


def blocks(analysis: Analysis, about: str) -> Iterator[Block]:
    """The tables of the page. `about`: a sentence on the runs."""
    yield (
        f"{analysis.finished} of {analysis.downloads} live downloads finished; {analysis.judges} even ones judge. "
        f"Seed {analysis.seed}. {about}"
    )
    yield "Fitted to the odd downloads:"
    yield _table(
        ("carrier", "subflows", "next RTT, ms", "wake-up, ms", "rate of first arrivals, Mbps"),
        (
            (
                carrier,
                f"{one.subflows}",
                f"{1e3 * one.rtt_s:.1f}",
                f"{1e3 * one.wake_up_s:.0f}",
                f"{one.rate_bps / 1e6:.1f}",
            )
            for carrier, one in analysis.fits.items()
        ),
    )
    yield "All sizes pooled:"
    ratios = [f"ratio p{100 * q:.0f}" for q in QUANTILES]
    yield _table(
        ("model", "runs", "KS", *ratios, "error", "to `connected`: KS", "ln(error)", "verdict"),
        (_pooled_cells(row) for row in analysis.rows if row.size_bytes is None),
    )
    yield "\n".join(f"- {sentence}" for sentence in _verdicts(analysis))
    yield "Each size:"
    yield _table(
        ("model", "size", "live", "runs", "KS", *ratios[:3]),
        (
            (
                f"`{row.model}`",
                _size(row.size_bytes),
                f"{row.downloads}",
                _runs(row),
                row.ks.text(".2f"),
                *(ratio.text(".2f") for ratio in row.ratios[:3]),
            )
            for row in analysis.rows
            if row.size_bytes is not None
        ),
    )
    yield "Conditional predictions:"
    yield _table(
        ("prediction", "bias", "error", "within 25 %", "ln(error) to `odd median`"),
        (
            (
                f"`{one.name}`",
                _factor(one.bias),
                _factor(one.miss),
                _percent(one.within),
                "" if one.to_odd_median is None else _signed(one.to_odd_median),
            )
            for one in analysis.predictions
        ),
    )
    if sentences := _predicted(analysis.predictions):
        yield "\n".join(f"- {sentence}" for sentence in sentences)
    if analysis.findings:
        yield f"Kernel MPTCP against kernel TCP, model `{PREDICATES}`, share of the runs in which MPTCP is faster:"
        yield _table(
            ("against TCP on", "size", "live", "MPTCP is faster"),
            (
                (
                    f"the {one.against} path" if " " not in one.against else "the better path of each run",
                    _size(one.size_bytes),
                    f"{one.downloads}",
                    _percent(one.faster),
                )
                for one in analysis.findings
            ),
        )
    if analysis.left_out:
        names = ", ".join(f"`{name}`" for name in analysis.left_out)
        yield f"Left out, because their traces were not at hand: {names}."


def _runs(row: Row) -> str:
    return f"{row.emulated}" + (f" ({row.unfinished} unfinished)" if row.unfinished else "")


def _pooled_cells(row: Row) -> tuple[str, ...]:
    verdict = row.verdict
    compared = (_signed(verdict.ks), _signed(verdict.log_error), verdict.word) if verdict else ("", "", "")
    return (
        f"`{row.model}`",
        _runs(row),
        row.ks.text(".2f"),
        *(ratio.text(".2f") for ratio in row.ratios),
        _factor(row.log_error),
        *compared,
    )


def _predicted(predictions: Sequence[Prediction]) -> list[str]:
    """Which predictions are nearer than the odd median, in words."""
    others = [one for one in predictions if one.to_odd_median is not None]
    if not others:
        return []
    nearer = [f"`{one.name}`" for one in others if one.to_odd_median and one.to_odd_median.high < 0]
    farther = [f"`{one.name}`" for one in others if one.to_odd_median and one.to_odd_median.low > 0]
    return [
        f"Nearer than `{ODD_MEDIAN}`: {', '.join(nearer) or 'none'}. Farther: {', '.join(farther) or 'none'}. "
        "No verdict on the others."
    ]


def _names(rows: Sequence[Row]) -> str:
    return ", ".join(f"`{row.model}`" for row in rows) or "none"


def _verdicts(analysis: Analysis) -> list[str]:
    """The verdicts on the models, in words."""
    judged = {
        word: [row for row in analysis.rows if row.verdict is not None and row.verdict.word == word]
        for word in ("better", "worse", "mixed", "no verdict")
    }
    said = [f"Better than `{REFERENCE}`: {_names(judged['better'])}. Worse: {_names(judged['worse'])}."]
    said += [f"Better by one measure and worse by the other: {_names(judged['mixed'])}."] * bool(judged["mixed"])
    said += [f"No verdict: {_names(judged['no verdict'])}."] * bool(judged["no verdict"])
    pooled = [row for row in analysis.rows if row.size_bytes is None and row.model != ODD]
    slow = [row for row in pooled if row.ratios[1].low > 1]
    fast = [row for row in pooled if row.ratios[1].high < 1]
    said.append(f"Too slow at the median (the interval is above 1): {_names(slow)}. Too fast: {_names(fast)}.")
    return said


# ---- files


def write(folder: Path, analysis: Analysis, took: Durations) -> Path:
    durations = [
        {"model": model, "scheme": scheme, "download": number, "s": times}
        for (model, scheme, number), times in took.items()
    ]
    found = {"schema": SCHEMA, **asdict(analysis), "durations": durations}
    write_json(folder / RESULT, to_jsonable_python(found, inf_nan_mode="null"))  # JSON has no infinities
    return folder / RESULT
