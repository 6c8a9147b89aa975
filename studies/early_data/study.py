"""Measures how much first-frame latency resumption and 0-RTT save, in the simulator.

Each start is an offset into the traces. A job is played three times from it: without a session, with one, and with one
and 0-RTT.
"""

import random
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import Field

from railyard.base.errors import UserError
from railyard.base.jsonl import read_jsonl, summary_of
from railyard.experiment.model import Strict
from railyard.studies.study import Data, markdown, simulated
from railyard.traces import Pair, find_pair
from railyard.traces.settings import members

SCHEMES = {"sp": "LTE alone", "xlink": "both, by xlink"}
SESSIONS = ("none", "resumed", "early_data")
STEP_MS = 1700  # from start to start
PLAYER = {"video_bytes": 1_000_000, "bitrate_bps": 2_500_000, "chunk_bytes": 262_144}
RESAMPLES = 4000


def job(pair: Pair, scheme: str, session: str, start: int) -> dict[str, Any]:
    paths = [path for path in pair.paths if scheme != "sp" or path.technology == "lte"]
    return {
        "seed": 1 + start,
        "time_limit_s": 60,
        "scheme": scheme,
        "session": session,
        "start_offset_ms": start * STEP_MS,
        "link_logs": False,
        "player": PLAYER,
        "paths": [
            {"name": p.name, "technology": p.technology, "up": str(p.uplink), "down": str(p.downlink)}
            | members(p.delay_ms, p.queue, p.settings, p.delay_traces)
            for p in paths
        ],
    }


def first_frame_s(what: dict[str, Any]) -> float:
    """The first-frame latency of a job, in seconds."""
    with simulated(what) as out:
        summary = summary_of(read_jsonl(out / "player.jsonl")) or {}
    transport = summary["transport"]
    kept = (transport.get("resumed", False), transport.get("early_data", False))
    tried_again = transport["attempts"] > 1  # over another path, without 0-RTT, because the first one was silent
    if kept != (what["session"] != "none", what["session"] == "early_data" and not tried_again):
        raise UserError(f"the session was not used as the job says: {what['session']}")
    return float(summary["first_frame_s"])


def interval(values: Sequence[float]) -> tuple[float, float]:
    """95 % bootstrap interval of the mean."""
    generator = random.Random(1)
    means = sorted(statistics.fmean(generator.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return means[RESAMPLES // 40], means[-RESAMPLES // 40 - 1]


def saved(before: Sequence[float], after: Sequence[float]) -> str:
    gains = [1000 * (b - a) for b, a in zip(before, after, strict=True)]
    low, high = interval(gains)
    share = statistics.fmean(gains) / (1000 * statistics.fmean(before))
    return f"{statistics.fmean(gains):.0f} ms [{low:.0f}, {high:.0f}], {100 * share:.1f} %"


class Settings(Strict):
    pairs: list[str] = Field(min_length=1)
    starts: int = Field(ge=1)  # offsets into the traces


class Row(Data):
    """One scheme over one pair; first-frame latencies in seconds, by session, in the order of the starts."""

    pair: str
    lte_rtt_ms: float
    scheme: str
    first_frames_s: dict[str, list[float]]


class Measured(Data):
    rows: list[Row]


def measure(settings: Settings) -> Measured:
    return Measured(rows=[_row(find_pair(name), scheme, settings) for name in settings.pairs for scheme in SCHEMES])


def _row(pair: Pair, scheme: str, settings: Settings) -> Row:
    rtt = next(path.base_rtt_ms for path in pair.paths if path.technology == "lte")
    took = {
        session: [first_frame_s(job(pair, scheme, session, start)) for start in range(settings.starts)]
        for session in SESSIONS
    }
    return Row(pair=pair.name, lte_rtt_ms=rtt, scheme=scheme, first_frames_s=took)


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    heads = ["pair, LTE base RTT", "paths", "full handshake, median", "resumption saves", "0-RTT saves"]
    yield "saved", markdown(heads, [_cells(row) for row in measured.rows], left=len(heads))


def _cells(row: Row) -> list[str]:
    full, resumed, early = (row.first_frames_s[session] for session in SESSIONS)
    median = f"{1000 * statistics.median(full):.0f} ms"
    named = f"{row.pair}, {row.lte_rtt_ms:g} ms"
    return [named, SCHEMES[row.scheme], median, saved(full, resumed), saved(full, early)]
