"""Statistics of traces that the generator draws, beside measured ones: docs/results/traces.md."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field

from railyard.experiment.model import Strict
from railyard.studies.study import Data, check_known, markdown
from railyard.traces.model import PathOpportunities, generate_opportunities
from railyard.traces.parameters import MAX_DURATION_S
from railyard.traces.presets import mobility_models
from railyard.traces.stats import GAP_MS, dip_runs, pair_stats, trace_stats
from railyard.traces.trace import FloatArray, IntArray, Trace

PIECE_MS = 100_000
"""The length of most recordings of packets."""
BOTH = "both"
"""Where a path is named: statistics of the two paths together."""
# By statistic: the title, the factor of what is printed, and the decimals.
PATH_ROWS = {
    "mean_mbps": ("mean, Mbps", 1, 1),
    "cv": ("CV", 1, 2),
    "ln_mu": ("mu", 1, 2),
    "ln_sigma": ("sigma", 1, 2),
    "autocorrelation_s": ("autocorrelation 1/e, s", 1, 1),
    "below_1mbps": ("time below 1 Mbps, %", 100, 1),
    "dip_p50_s": ("dips p50, s", 1, 1),
    "dip_p90_s": ("dips p90, s", 1, 1),
    "dip_max_s": ("dips max, s", 1, 1),
    "dip_spacing_s": ("dip spacing, s", 1, 1),
    "empty_100ms": ("empty 100 ms bins, %", 100, 1),
    "gaps_per_minute": ("silences a minute", 1, 1),
    "gaps_per_minute_of_100_s": ("the same in 95 % of 100 s", 1, 1),
    "silent_share": ("silent share, %", 100, 1),
    "rtt_p25_ms": ("RTT p25, ms", 1, 1),
    "rtt_p50_ms": ("RTT p50, ms", 1, 1),
    "rtt_p75_ms": ("RTT p75, ms", 1, 1),
    "rtt_p99_ms": ("RTT p99, ms", 1, 0),
    "rtt_max_ms": ("RTT max, ms", 1, 0),
}
PAIR_ROWS = {
    "rate_correlation": ("rate correlation", 1, 2),
    "both_in_dip": ("both below 1 Mbps, %", 100, 1),
    "both_in_dip_if_independent": ("the same if they were independent, %", 100, 1),
}


def _ordered(value: list[float]) -> list[float]:
    if value[0] > value[-1]:
        raise ValueError("write the least value first, then the largest")
    return value


Statistic = Annotated[
    list[float],
    Field(min_length=1, max_length=2),
    AfterValidator(_ordered),
    BeforeValidator(lambda value: value if isinstance(value, list) else [value]),
]
"""A value, or the least and the largest one."""
Statistics = dict[str, Statistic]
ByPath = dict[str, dict[str, Statistics]]  # by model and path, or BOTH
Drawn = Sequence[dict[str, PathOpportunities]]  # the paths of each seed


def _known(value: ByPath) -> ByPath:
    """Raises ValueError at the first model, path or statistic that is not there."""
    models = mobility_models()
    check_known("model", value, models)
    for name, by_path in value.items():
        check_known(f"path of {name}", by_path, [BOTH, *(path.name for path in models[name].paths)])
        for path, of_path in by_path.items():
            check_known(f"statistic of {name}, {path}", of_path, PAIR_ROWS if path == BOTH else PATH_ROWS)
    return value


class Settings(Strict):
    first_seed: int
    seeds: int = Field(ge=1)
    duration_s: int = Field(ge=100, le=MAX_DURATION_S)
    measured: Annotated[ByPath, AfterValidator(_known)] = Field(min_length=1)


class Measured(Data):
    drawn: ByPath
    measured: ByPath


def measure(settings: Settings) -> Measured:
    seeds = range(settings.first_seed, settings.first_seed + settings.seeds)
    drawn = {}
    for name, model in mobility_models().items():
        of_seeds = [generate_opportunities(model, seed, settings.duration_s) for seed in seeds]
        drawn[name] = statistics([{path.name: path for path in paths} for paths in of_seeds])
    return Measured(drawn=drawn, measured=settings.measured)


def trace_of(path: PathOpportunities) -> Trace:
    return Trace(Path("drawn"), path.down, "")


def statistics(paths: Drawn) -> dict[str, Statistics]:
    """Means over the seeds. Dips, RTTs and pieces of 100 s are those of all seeds together."""
    by_path = {name: of_path([of_seed[name] for of_seed in paths]) for name in paths[0]}
    together = [vars(pair_stats(*map(trace_of, of_seed.values()))) for of_seed in paths]
    return by_path | {BOTH: _means(together, PAIR_ROWS)}


def of_path(paths: Sequence[PathOpportunities]) -> Statistics:
    traces = [trace_of(path) for path in paths]
    found = _means([vars(trace_stats(trace)) for trace in traces], PATH_ROWS)
    dips = [dip_runs(trace.rate_mbps(1000)) for trace in traces]
    lengths, spacings = [length for _, length in dips], [np.diff(starts) for starts, _ in dips]
    found |= _quantiles(lengths, {"dip_p50_s": 50, "dip_p90_s": 90, "dip_max_s": 100})
    found |= _quantiles(spacings, {"dip_spacing_s": 50})
    low, high = np.percentile([count for path in paths for count in gaps_of_pieces(path)], [2.5, 97.5])
    found["gaps_per_minute_of_100_s"] = [float(low), float(high)]
    rtts = [np.array([]) if path.rtt_ms is None else path.rtt_ms for path in paths]
    of_rtt = {"rtt_p25_ms": 25, "rtt_p50_ms": 50, "rtt_p75_ms": 75, "rtt_p99_ms": 99, "rtt_max_ms": 100}
    return found | _quantiles(rtts, of_rtt)


def gaps_of_pieces(path: PathOpportunities) -> Iterator[float]:
    """Silences a minute in each whole piece of 100 s."""
    ends = path.down[np.diff(path.down, prepend=0) >= GAP_MS]
    for start in range(0, int(path.down[-1]) - PIECE_MS + 1, PIECE_MS):
        yield float(((ends >= start) & (ends < start + PIECE_MS)).sum() * 60_000 / PIECE_MS)


def _means(of_seeds: Sequence[Mapping[str, float]], names: Iterable[str]) -> Statistics:
    return {name: [float(np.mean([one[name] for one in of_seeds]))] for name in names if name in of_seeds[0]}


def _quantiles(samples: Sequence[FloatArray | IntArray], names: Mapping[str, float]) -> Statistics:
    values = np.concatenate(samples)
    return {name: [float(np.percentile(values, q))] for name, q in names.items() if len(values)}


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    places = [(model, path) for model, paths in measured.measured.items() for path in paths if path != BOTH]
    heads = ["", *(f"{model}, {path}" for model, path in places)]
    yield "paths", markdown(heads, _rows(measured, places, PATH_ROWS))
    places = [(model, BOTH) for model in measured.measured]
    yield "pairs", markdown(["", *measured.measured], _rows(measured, places, PAIR_ROWS))


def _rows(
    measured: Measured, places: Sequence[tuple[str, str]], titles: Mapping[str, tuple[str, int, int]]
) -> Iterator[list[str]]:
    for name, (title, factor, decimals) in titles.items():
        cells = []
        for model, path in places:
            ours = measured.drawn[model][path].get(name)
            theirs = measured.measured[model].get(path, {}).get(name)
            known = f" ({words(theirs, factor, decimals)})" if theirs else ""
            cells.append(words(ours, factor, decimals) + known if ours else "")
        yield [title, *cells]


def words(values: Sequence[float], factor: int, decimals: int) -> str:
    return " to ".join(f"{factor * value:.{decimals}f}" for value in values)
