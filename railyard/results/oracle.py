"""The oracle: the earliest time at which a chunk could have arrived, whatever the transport.

It knows both paths' traces in advance, has the links for itself, needs no acknowledgement and no congestion window:

    request   leaves the player at its request time on every uplink at once; the first copy to arrive counts. A copy is
              in the link's queue one delay later, and departs at the first delivery opportunity after that millisecond.
    data      leaves the server at that moment on every downlink, is in each queue one delay later, and each
              opportunity after that millisecond carries PAYLOAD_BYTES of the chunk, until all of it is through.

This leaves out that requests which are open at the same time share the links. `play_s` serves all requests of a play in
the order in which they were made. It takes the place of the player's transport: if it completes a request earlier, the
player makes the next one earlier.

These are the rules of the emulated link (emulator/link/link.h), and PAYLOAD_BYTES is the most that a compared
transport gets into an opportunity, so no run of any scheme can be earlier. All paths are used for every scheme, so
that the efficiency, oracle RCT / RCT, is comparable between schemes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from railyard.base.errors import UserError
from railyard.traces.settings import least_delay_ms
from railyard.traces.trace import Trace, read_trace, sha256_file

# An IPv4 packet of 1500 bytes in TCP with timestamps: 1500 − 20 − 20 − 12. libxlink's packets carry 1420 in 1484.
PAYLOAD_BYTES = 1448
# Times in the players' logs are rounded to microseconds. Only by this error can a run be "earlier" than the oracle.
TOLERANCE_S = 5e-6
# A request at most this long after a completion counts as caused by it.
AT_ONCE_S = 1e-3
_CACHED_TRACES = 64


@dataclass(frozen=True)
class OraclePath:
    """A path as the oracle sees it: both traces, the one-way delays, and the place of t0 in the traces.

    A delay that varies counts with its minimum. Losses, outages and queues are left out: none makes a packet earlier.
    """

    up: Trace
    down: Trace
    delay_us: int
    start_offset_ms: int
    down_delay_us: int | None = None
    """Delay of the downlink. None: that of the uplink."""

    @property
    def data_delay_us(self) -> int:
        return self.delay_us if self.down_delay_us is None else self.down_delay_us


def _first_after(trace: Trace, time_us: int, start_offset_ms: int) -> int:
    """The number of the first opportunity for a packet that is in the queue at that time since t0."""
    return trace.count_until(time_us // 1000 + start_offset_ms)


def _first_down(paths: Sequence[OraclePath], sent_us: int) -> list[int]:
    """The number of each path's first opportunity for data that the server sends then."""
    return [_first_after(path.down, sent_us + path.data_delay_us, path.start_offset_ms) for path in paths]


def request_arrival_us(paths: Sequence[OraclePath], request_us: int) -> int:
    """The earliest time at which the request can be at the server, µs since t0."""
    arrivals: list[int] = []
    for path in paths:
        number = _first_after(path.up, request_us + path.delay_us, path.start_offset_ms)
        arrivals.append((path.up.opportunity_ms(number) - path.start_offset_ms) * 1000)
    return min(arrivals)


def completion_us(paths: Sequence[OraclePath], request_us: int, size_bytes: int) -> int:
    """The earliest time at which the last byte of a chunk can be at the player, µs since t0, as is `request_us`."""
    sent_us = request_arrival_us(paths, request_us)
    needed = -(-max(1, size_bytes) // PAYLOAD_BYTES)
    first = _first_down(paths, sent_us)
    return _carried_ms(paths, first, needed, sent_us // 1000) * 1000


def bytes_by_path(paths: Sequence[OraclePath], request_us: int, size_bytes: int) -> list[int]:
    """The bytes of the chunk that the oracle sends over each path. In the last millisecond it uses the paths in their
    order."""
    sent_us, left = request_arrival_us(paths, request_us), max(1, size_bytes)
    done_ms = completion_us(paths, request_us, size_bytes) // 1000
    first = _first_down(paths, sent_us)
    totals = [0 for _ in paths]
    for end_ms in (done_ms - 1, done_ms):
        for k, path in enumerate(paths):
            count = path.down.count_until(end_ms + path.start_offset_ms) - first[k]
            taken = min(left, max(0, count) * PAYLOAD_BYTES)
            first[k] += max(0, count)
            totals[k] += taken
            left -= taken
    return totals


def _carried_ms(paths: Sequence[OraclePath], first: Sequence[int], needed: int, early: int) -> int:
    """The time, in ms since t0, by which the paths have `needed` opportunities, counted from `first`. Later than
    `early`."""
    # Milliseconds since t0: by `late` one path alone has enough opportunities, by `early` no path has any.
    late = min(
        path.down.opportunity_ms(number + needed - 1) - path.start_offset_ms
        for path, number in zip(paths, first, strict=True)
    )
    links = [(path.down, path.start_offset_ms, number) for path, number in zip(paths, first, strict=True)]
    while late - early > 1:
        middle, carried = (early + late) // 2, 0
        for trace, offset_ms, number in links:
            count = trace.count_until(middle + offset_ms)
            if count > number:
                carried += count - number
        early, late = (early, middle) if carried >= needed else (middle, late)
    return late


class InOrder:
    """Serves requests that share the links one after the other, in the order in which they are made.

    Every opportunity that an open request could use is used. The room that the end of a request leaves in its
    opportunity, and every path's opportunities in that millisecond, are free for the next request: so the times stay
    lower bounds.
    """

    def __init__(self, paths: Sequence[OraclePath]) -> None:
        self._paths = paths
        self._free = [0 for _ in paths]  # number of each path's first opportunity that no earlier request uses
        self._spare_bytes = 0
        self._done_us = 0

    def completion_us(self, request_us: int, size_bytes: int) -> int:
        """The time at which the last byte can be at the player, µs since t0. `request_us` must not decrease."""
        if request_us >= self._done_us:
            self._spare_bytes = 0
        alone_us = completion_us(self._paths, request_us, size_bytes) if self._spare_bytes else 0
        if 0 < size_bytes <= self._spare_bytes:
            self._spare_bytes -= size_bytes
        else:
            self._done_us = self._serve(request_us, max(1, size_bytes))
        self._done_us = max(alone_us, self._done_us)
        return self._done_us

    def _serve(self, request_us: int, size_bytes: int) -> int:
        sent_us = request_arrival_us(self._paths, request_us)
        first = list(map(max, _first_down(self._paths, sent_us), self._free))
        needed = -(-max(1, size_bytes - self._spare_bytes) // PAYLOAD_BYTES)
        late = _carried_ms(self._paths, first, needed, sent_us // 1000)
        ends, before = self._until(late, first), self._until(late - 1, first)
        surplus = sum(end - begin for end, begin in zip(ends, first, strict=True)) - needed
        self._free = [max(end - surplus, number) for end, number in zip(ends, before, strict=True)]
        self._spare_bytes += needed * PAYLOAD_BYTES - size_bytes
        return late * 1000

    def _until(self, time_ms: int, first: Sequence[int]) -> list[int]:
        """The number of each path's first opportunity after that time, at least `first`."""
        return [
            max(number, path.down.count_until(time_ms + path.start_offset_ms))
            for path, number in zip(self._paths, first, strict=True)
        ]


@dataclass(frozen=True)
class Asked:
    """A request of a play. Times in s since t0; `done_s` is None if it never completed."""

    request_s: float
    done_s: float | None
    size_bytes: int


def play_s(paths: Sequence[OraclePath], asked: Sequence[Asked]) -> list[float]:
    """The RCTs of the requests in a play whose transport is the oracle. `asked` is sorted by the time of the request.

    A request that was caused by the completion of another one is made when the oracle completes that one, at the latest
    at its own time. Other requests keep their times.
    """
    served, made_us, done_us, times_s = InOrder(paths), 0, list[int](), list[float]()
    for k, one in enumerate(asked):
        ends = [(done_s, i) for i, other in enumerate(asked[:k]) if (done_s := other.done_s) is not None]
        causes = [(done_s, i) for done_s, i in ends if -TOLERANCE_S <= one.request_s - done_s <= AT_ONCE_S]
        request_us = round(one.request_s * 1e6)
        if causes:
            request_us = min(request_us, done_us[max(causes)[1]])
        made_us = max(made_us, request_us)
        done_us.append(served.completion_us(made_us, one.size_bytes))
        times_s.append((done_us[-1] - made_us) / 1e6)
    return times_s


def rct_s(paths: Sequence[OraclePath], request_s: float, size_bytes: int) -> float:
    """The oracle's request completion time of a chunk that was requested at `request_s`, in s since t0 of the links."""
    request_us = round(request_s * 1e6)
    return (completion_us(paths, request_us, size_bytes) - request_us) / 1e6


@lru_cache(maxsize=_CACHED_TRACES)
def replayed_trace(path: str, sha256: str) -> Trace | None:
    """The trace that was replayed. None: the file is gone or has changed."""
    try:
        trace = read_trace(path) if Path(path).is_file() else None
    except UserError:
        return None
    return trace if trace is not None and trace.sha256 == sha256 else None


def _is_same(file: str, sha256: str) -> bool:
    try:
        return Path(file).is_file() and sha256_file(file) == sha256
    except UserError:
        return False


def _delay_us(path: dict[str, Any], way: str) -> int:
    files = {name: Path(file) for name, file in path.get("delay_traces", {}).items()}
    return round(least_delay_ms(path["delay_ms"], path.get("settings", {}), files, way) * 1000)


def paths_of_run(config: dict[str, Any]) -> list[OraclePath] | None:
    """The paths of a run from its record's configuration.

    None if its traces are not on this machine or have changed, or if events change delays or rates: the minimum would
    be a loose bound. None also with light traces, whose bursts need no opportunity, with Wi-Fi, which has none, and
    with satellites, whose delays vary.
    """
    if any(event.get("delay_ms") is not None or event.get("rate") for event in config.get("link_events", ())):
        return None
    paths: list[OraclePath] = []
    for path in config["paths"]:
        settings = path.get("settings", {})
        varies = any(settings.get(name, "off") != "off" for name in ("wifi", "leo", "up_leo", "down_leo"))
        if varies or any(name.endswith("light_trace") for name in path.get("delay_traces", {})):
            return None
        up, down = (replayed_trace(path[way], path[f"{way}_sha256"]) for way in ("up", "down"))
        hashes = path.get("delay_traces_sha256", {})
        changed = any(not _is_same(file, hashes[name]) for name, file in path.get("delay_traces", {}).items())
        if up is None or down is None or changed:
            return None
        delays = _delay_us(path, "up"), _delay_us(path, "down")
        paths.append(OraclePath(up, down, delays[0], int(config["start_offset_ms"]), delays[1]))
    return paths
