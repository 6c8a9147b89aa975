"""Traces: reading and measuring them, the library of pairs, and the generator of new ones."""

from railyard.traces.index import Pair, PairPath
from railyard.traces.library import find_pair, list_pairs
from railyard.traces.stats import PairStats, TraceStats, pair_stats, trace_stats
from railyard.traces.trace import Trace, TraceError, read_trace, sha256_file

__all__ = [
    "Pair",
    "PairPath",
    "PairStats",
    "Trace",
    "TraceError",
    "TraceStats",
    "find_pair",
    "list_pairs",
    "pair_stats",
    "read_trace",
    "sha256_file",
    "trace_stats",
]
