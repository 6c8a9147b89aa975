"""Reads network profiles of iBox (Ashok et al., HotNets 2020): a bottleneck's rate − the cross traffic on it."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from railyard.traces.convert.capacity import Delivered, from_bins
from railyard.traces.convert.recipe import TraceRecipe
from railyard.traces.trace import TraceError, bytes_of

MARK = b'"cross_traffic_pattern"'
_MAX_KBPS = 1e9
_MAX_BINS = 86_400


def read_ibox(path: Path, _: TraceRecipe) -> Delivered:
    """The learned direction, which has cross traffic: the bottleneck's remaining bytes in bins of 1 s."""
    try:
        config = json.loads(bytes_of(path))["config"]
        learned = next(config[way] for way in ("uplink", "downlink") if config[way]["cross_traffic_pattern"])
        rate = _number(learned["bottleneck_bandwidth"])
        cross = [_number(one) for one in learned["cross_traffic_pattern"]]
        delay_ms, packets = _number(learned["propagation_delay"]), _number(learned["buffer_size_packets"])
    except (KeyError, TypeError, ValueError, StopIteration, RecursionError):
        raise TraceError(f"{path}: this is no network profile of iBox with cross traffic; take another file") from None
    if rate > _MAX_KBPS or len(cross) > _MAX_BINS:
        raise TraceError(
            f"{path}: a rate of {rate:g} kbps over {len(cross)} s is no profile of iBox; take another file"
        )
    left = np.maximum(rate - np.array(cross), 0) * 1000 / 8
    edges = np.arange(len(cross) + 1, dtype=np.float64) * 1e6
    note = (
        f"propagation delay {delay_ms:g} ms, buffer of {packets:g} packets: set base RTT and queue of the path by them"
    )
    return replace(from_bins(edges, left), note=note)


def _number(value: Any) -> float:
    number = float(value)
    if not 0 <= number < math.inf:
        raise ValueError
    return number
