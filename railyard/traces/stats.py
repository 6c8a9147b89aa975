"""Statistics of traces and pairs of traces, by which generated pairs are compared with recorded ones."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from railyard.traces.trace import FloatArray, IntArray, Trace

DIP_MBPS = 1.0
GAP_MS = 200
SECOND_MS = 1000
FINE_MS = 100
PIECE = 1_000_000  # opportunities


@dataclass(frozen=True)
class Dips:
    """Runs of consecutive 1 s bins below 1 Mbps. NaN: there is nothing to measure."""

    count: int
    length_p50_s: float
    length_p90_s: float
    length_max_s: float
    spacing_median_s: float
    """Median time from the start of a dip to the start of the next."""


@dataclass(frozen=True)
class TraceStats:
    """Statistics of one loop of one trace; rates count 1504 bytes an opportunity."""

    opportunities: int
    duration_s: float
    mean_mbps: float
    cv: float
    """Coefficient of variation of the rate in 1 s bins."""
    ln_mu: float
    ln_sigma: float
    """Mean and standard deviation of ln(Mbps) over the 1 s bins that are not empty."""
    autocorrelation_s: float
    """Lag at which the autocorrelation of the 1 s rate falls to 1/e, interpolated. NaN: it never does."""
    below_1mbps: float
    """Share of the 1 s bins below 1 Mbps."""
    dips: Dips
    empty_100ms: float
    """Share of the 100 ms bins without any opportunity."""
    gaps_per_minute: float
    """Silences of 200 ms or more between neighbouring opportunities, per minute."""
    silent_share: float
    """Share of the time that these silences take."""
    longest_gap_s: float


@dataclass(frozen=True)
class PairStats:
    """Statistics of two traces that are replayed together, in 1 s bins over the length of the shorter one."""

    duration_s: float
    rate_correlation: float
    both_in_dip: float
    """Share of time in which both are below 1 Mbps."""
    both_in_dip_if_independent: float
    """Product of the two shares of time below 1 Mbps."""


@dataclass(frozen=True)
class RttStats:
    """Quantiles of an RTT that was sampled at equal distances in time, ms."""

    p25_ms: float
    p50_ms: float
    p75_ms: float
    p95_ms: float
    max_ms: float


def rtt_stats(rtt_ms: FloatArray) -> RttStats:
    """Quantiles of an RTT over time."""
    return RttStats(*(float(value) for value in np.percentile(rtt_ms, [25, 50, 75, 95, 100])))


def _runs(flags: npt.NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    """Starts and lengths of the runs of true values."""
    padded = np.concatenate(([0], flags.astype(np.int64), [0]))
    change = np.diff(padded)
    starts = np.flatnonzero(change == 1)
    return starts.astype(np.int64), np.flatnonzero(change == -1) - starts


def dip_runs(rate_mbps: FloatArray) -> tuple[IntArray, IntArray]:
    """Starts and lengths, in bins, of the runs below 1 Mbps."""
    return _runs(rate_mbps < DIP_MBPS)


def find_dips(rate_mbps: FloatArray) -> Dips:
    """Dips below 1 Mbps of a rate in 1 s bins."""
    starts, lengths = dip_runs(rate_mbps)
    if len(starts) == 0:
        return Dips(0, math.nan, math.nan, math.nan, math.nan)
    p50, p90 = np.percentile(lengths, [50, 90])
    spacing = float(np.median(np.diff(starts))) if len(starts) > 1 else math.nan
    return Dips(len(starts), float(p50), float(p90), float(lengths.max()), spacing)


def autocorrelation_time_s(rate_mbps: FloatArray) -> float:
    """First lag, in bins, at which the (biased) autocorrelation falls to 1/e, linearly interpolated."""
    deviation = rate_mbps - rate_mbps.mean()
    energy = float(deviation @ deviation)
    if energy == 0.0:
        return math.nan
    before = 1.0
    for lag in range(1, len(deviation)):
        now = float(deviation[:-lag] @ deviation[lag:]) / energy
        if now <= 1 / math.e:
            return lag - 1 + (before - 1 / math.e) / (before - now)
        before = now
    return math.nan


def _silences(times_ms: IntArray) -> tuple[IntArray, int]:
    """The gaps of GAP_MS or more between neighbouring opportunities, and the longest gap, ms."""
    silences, longest_ms, before = [], 0, 0
    for begin in range(0, len(times_ms), PIECE):  # differences of all at once would need the trace's memory again
        piece = times_ms[begin : begin + PIECE]
        gaps = np.diff(piece, prepend=before)
        silences.append(gaps[gaps >= GAP_MS])
        longest_ms, before = max(longest_ms, int(gaps.max())), int(piece[-1])
    return np.concatenate(silences), longest_ms


def trace_stats(trace: Trace) -> TraceStats:
    """All figures of one trace."""
    rate = trace.rate_mbps(SECOND_MS)
    logs = np.log(rate[rate > 0])
    silences, longest_gap_ms = _silences(trace.opportunities_ms)
    mean = float(rate.mean())
    return TraceStats(
        opportunities=len(trace.opportunities_ms),
        duration_s=trace.period_ms / 1e3,
        mean_mbps=trace.mean_mbps,
        cv=float(rate.std()) / mean if mean > 0 else math.nan,
        ln_mu=float(logs.mean()) if len(logs) else math.nan,
        ln_sigma=float(logs.std()) if len(logs) else math.nan,
        autocorrelation_s=autocorrelation_time_s(rate),
        below_1mbps=float((rate < DIP_MBPS).mean()),
        dips=find_dips(rate),
        empty_100ms=float((trace.counts(FINE_MS) == 0).mean()),
        gaps_per_minute=len(silences) * 60e3 / trace.period_ms,
        silent_share=int(silences.sum()) / trace.period_ms,
        longest_gap_s=longest_gap_ms / 1e3,
    )


def pair_stats(first: Trace, second: Trace) -> PairStats:
    """All figures of two traces."""
    duration_ms = min(first.period_ms, second.period_ms)
    begin_ms = duration_ms if first.period_ms == second.period_ms else 0  # any loop but the first, as in trace_stats()
    one, other = (
        trace.rate_mbps(SECOND_MS, duration_ms=duration_ms, start_offset_ms=begin_ms) for trace in (first, second)
    )
    varies = one.std() > 0 and other.std() > 0
    one_dips, other_dips = one < DIP_MBPS, other < DIP_MBPS
    return PairStats(
        duration_s=duration_ms / 1e3,
        rate_correlation=float(np.corrcoef(one, other)[0, 1]) if varies else math.nan,
        both_in_dip=float((one_dips & other_dips).mean()),
        both_in_dip_if_independent=float(one_dips.mean() * other_dips.mean()),
    )
