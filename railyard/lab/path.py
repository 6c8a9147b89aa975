"""The checks of notebooks/lab-path.py, which is about paths."""

from types import EllipsisType
from typing import Any

import numpy as np

from railyard import api
from railyard.figures.rows import RCT_MEDIAN
from railyard.lab import Check, check, is_open, judged, unanswered, whole
from railyard.traces import Trace, find_pair, read_trace

PAIR = "subway-1"
WINDOW_MS, SLOW_MBPS = 500, 1.0
CONTROLLED = "lab-equal-12"  # two paths of 12.03 Mbps, 20 ms
CHUNK_BYTES = 1 << 20
FULL = 1.04  # a queue is long enough if chunks take at most this multiple of the time with DEEP
DEEP = 100

Number = float | EllipsisType | None


def downlink(name: str, pair: str = PAIR) -> Trace:
    """The downlink trace of a path."""
    return next(read_trace(path.downlink) for path in find_pair(pair).paths if path.name == name)


def mean_rate(wifi_mbps: Number, lte_mbps: Number) -> Check:
    hint = "Count the opportunities; each one carries 1504 bytes. The period is the last timestamp."
    answers = (("wifi", wifi_mbps), ("lte", lte_mbps))
    return _both([check(answer, downlink(name).mean_mbps, f"{name}: {hint}", 0.01) for name, answer in answers])


def _both(checks: list[Check]) -> Check:
    """The first check that is not right, else the last one."""
    return next((one for one in checks if not one.right), checks[-1])


def longest_silence(wifi_ms: Number, lte_ms: Number) -> Check:
    hint = "Take the largest difference of two timestamps that follow each other."
    gaps = {name: int(np.diff(downlink(name).opportunities_ms).max()) for name in ("wifi", "lte")}
    answers = (("wifi", wifi_ms), ("lte", lte_ms))
    return _both([check(answer, gaps[name], f"{name}: {hint}") for name, answer in answers])


def both_slow(measured: Number, independent: Number, word: str | EllipsisType | None) -> Check:
    """Checks the share of windows in which both paths are below a rate, the product of both shares, and which is
    larger."""
    slow = [downlink(name).rate_mbps(WINDOW_MS) < SLOW_MBPS for name in ("wifi", "lte")]
    shorter = min(map(len, slow))
    one, other = (of_path[:shorter] for of_path in slow)
    together, product = float((one & other).mean()), float(one.mean() * other.mean())
    hint = (
        f"Compare the rates in windows of {WINDOW_MS} ms with {SLOW_MBPS:g} Mbps, window by window over the whole "
        "period; shares, not counts."
    )
    said = "more" if together > product else "less"
    return _both(
        [
            check(measured, together, hint, 0.02),
            check(independent, product, "Multiply the share of each path by itself alone.", 0.02),
            check(word, said, "Is it 'more' or 'less' often than if they were independent?"),
        ]
    )


def packets_in_flight(answer: Number) -> Check:
    path = find_pair(CONTROLLED).paths[0]
    packets = downlink(path.name, CONTROLLED).mean_mbps * 1e3 * path.base_rtt_ms / (1504 * 8)
    return check(
        answer, packets, "Rate times base RTT, in packets of 1504 bytes: mind bits, bytes and milliseconds.", 0.03
    )


def download(queue: str | None = None, chunk_bytes: int = CHUNK_BYTES) -> api.Campaign:
    """Plays a download over one path of constant rate, without pauses."""
    player = {"player.bitrate": "12mbps", "player.duration_s": 10, "player.chunk_bytes": chunk_bytes}
    settings: dict[str, Any] = player | ({} if queue is None else {"queue": queue})
    only = [{"scheme": "sp", "path": "primary"}]
    return api.play(pairs=[CONTROLLED], settings=settings | {"schemes": only}, seeds=1, arena="sim")


def chunk_time(predicted_s: Number) -> Check:
    """Compares a prediction with a play."""
    if is_open(predicted_s):
        return unanswered()
    hint = "What does the chunk take at the path's rate, and how long does the request take to come back?"
    return check(predicted_s, RCT_MEDIAN.value(download().runs), hint, 0.1)


def shortest_queue(answer: Number) -> Check:
    """Checks that a queue is long enough to keep the path full, and at most twice as long as necessary."""
    if is_open(answer):
        return unanswered()
    packets = whole(answer)
    if packets is None or packets < 2:
        return Check(False, f"Not yet. A queue has two packets or more, and this is {answer!r}.")
    queues = (f"droptail:packets={count}" for count in (DEEP, packets, max(1, packets // 2)))
    best_s, own_s, half_s = (RCT_MEDIAN.value(download(queue).runs) for queue in queues)
    if own_s > FULL * best_s:
        return judged(False, f"With {packets} packets a chunk takes {own_s:.3f} s, with {DEEP} packets {best_s:.3f} s.")
    times_text = f"With {packets} packets a chunk takes {own_s:.3f} s, with half of them {half_s:.3f} s."
    return judged(half_s > FULL * best_s, f"Half of it is enough, too. {times_text}", times_text)
