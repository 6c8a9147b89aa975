"""Reads the logs of Riiser et al. (Oslo, 3G) and van der Hooft et al. (Ghent, 4G): bytes and place, row by row.

Six columns, separated by spaces: ms since 1970, ms since the start of the experiment (or since boot), latitude,
longitude, bytes received since the row before, ms since the row before.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from railyard.base.words import counted
from railyard.traces.convert.capacity import Delivered, from_bins
from railyard.traces.convert.recipe import TraceRecipe
from railyard.traces.trace import TraceError, bytes_of

_ROW = re.compile(r"\s*(\d{10,14})\s+(\d{1,14})\s+(-?\d+(?:\.\d+)?)\s+(-?\d+(?:\.\d+)?)\s+(\d{1,14})\s+(\d{1,9})\s*")

GAP_MS = 10_000
"""A gap that is worth a warning: time between two rows − the duration in the second one."""
LEAST_GAP_MS = 500
"""The least such difference that is a gap in the recording: half of a usual row."""


def is_movement_log(lines: Sequence[bytes]) -> bool:
    """Whether the first rows of a file are rows of such a log."""
    return bool(lines) and all(_ROW.fullmatch(line.decode("latin-1")) for line in lines)


def read_movement(path: Path, _: TraceRecipe) -> Delivered:
    """Each row is a bin: its bytes arrived in the ms that it names. Rows of 0 ms belong to the one before them."""
    lines = bytes_of(path).decode("latin-1").splitlines()
    sizes: list[int] = []
    lengths_ms: list[int] = []
    before_ms, longest_ms, longest_at = None, 0, 0
    gaps_ms: list[int] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        match = _ROW.fullmatch(line)
        if match is None:
            raise TraceError(
                f"{path}:{number}: this is no row of ms since 1970, ms since the start, latitude, longitude, bytes and "
                "ms since the row before; correct or remove it"
            )
        since_ms, size, length_ms = int(match[2]), int(match[5]), int(match[6])
        gap_ms = 0 if before_ms is None else since_ms - before_ms - length_ms
        gaps_ms += [gap_ms] if gap_ms > LEAST_GAP_MS else []
        if gap_ms > longest_ms:
            longest_ms, longest_at = gap_ms, number
        before_ms = since_ms
        if length_ms == 0 and sizes:
            sizes[-1] += size
            continue
        sizes.append(size)
        lengths_ms.append(length_ms)
    if not sum(lengths_ms):
        raise TraceError(f"{path}: there is no row with a time in it")
    edges_us = np.concatenate(([0], np.cumsum(lengths_ms))) * 1000.0
    note = ""
    if longest_ms > GAP_MS:
        note = (
            f"warning: {longest_ms / 1e3:g} s before line {longest_at} have no row and are left out: convert the part "
            "before or after"
        )
    elif gaps_ms:
        note = (
            f"{counted(len(gaps_ms), 'gap')} between rows, {sum(gaps_ms) / 1e3:g} s in all, left out; the longest, of "
            f"{longest_ms / 1e3:g} s, is before line {longest_at}"
        )
    return replace(from_bins(edges_us, np.array(sizes, dtype=np.float64)), note=note)
