"""Judges expectations of a run by the client's progress and the link logs, which every stack has."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from railyard.base.jsonl import Event, read_jsonl
from railyard.results.linklog.read import read_link_log
from railyard.results.records import Run, load_run
from railyard.stress.scenario import Expect, Gap, Ratio, Share, Window

PLAYED_SLACK_S = 0.002  # `played_ms` is rounded: while a video plays, a smaller increase is no progress
MIN_GOODPUT_BPS = 1.0


@dataclass(frozen=True)
class Judged:
    """One predicate of one run."""

    name: str
    figure: float | None  # None: there was nothing to measure
    threshold: float | None
    unit: str
    passed: bool
    sentence: str


@dataclass(frozen=True)
class Evidence:
    """The logs of a run. Times are in s since t0 of the links."""

    run: Run
    folder: Path

    @classmethod
    def of(cls, folder: Path) -> "Evidence":
        return cls(load_run(folder), folder)

    @cached_property
    def start_s(self) -> float:
        return self.run.player_start_s or 0.0

    @cached_property
    def events(self) -> list[Event]:
        lines = read_jsonl(self.folder / "player.jsonl")
        return [event for event in lines if "event" in event and "t" in event]

    @cached_property
    def end_s(self) -> float:
        return self.start_s + self.run.ended_s

    @cached_property
    def completed_s(self) -> float | None:
        """The time at which the last byte arrived. None: it did not."""
        if self.run.outcome != "complete":
            return None
        return self.start_s + max(chunk.request_s + chunk.rct_s for chunk in self.run.chunks)

    @cached_property
    def position(self) -> list[tuple[float, float]]:
        """Bytes received in order, from the player's samples: (time, bytes)."""
        rate = self.run.config["player"]["bitrate_bps"] / 8
        points = [(self.start_s, 0.0)]
        for event in self.events:
            if event["event"] == "buffer":
                here = event["buffered_bytes"] + event["played_ms"] / 1000 * rate
                points.append((self.start_s + event["t"], max(here, points[-1][1])))
        if self.completed_s is not None:
            total_bytes = float(sum(chunk.bytes for chunk in self.run.chunks))
            points = [*((at, here) for at, here in points if at < self.completed_s), (self.completed_s, total_bytes)]
        return points

    def bytes_at(self, time_s: float) -> float:
        """Bytes received in order, by the last sample until then."""
        return max((here for at, here in self.position if at <= time_s), default=0.0)

    def window(self, asked: Window) -> tuple[float, float]:
        """Begin and end of a window, which ends with the load at the latest."""
        end = self.end_s if self.completed_s is None else self.completed_s
        return asked.from_s, end if asked.to_s is None else min(asked.to_s, end)

    def goodput_bps(self, asked: Window) -> float | None:
        begin, end = self.window(asked)
        return None if end <= begin else 8 * (self.bytes_at(end) - self.bytes_at(begin)) / (end - begin)

    def progress(self) -> Iterator[tuple[float, bool]]:
        """The times at which bytes are known to have arrived, with whether the client then waits for more. The first
        one is the start. Samples are 100 ms apart; the first and the last byte of a request have their own times."""
        rate = self.run.config["player"]["bitrate_bps"] / 8
        open_requests, best, playing = set[int](), 0.0, False
        connecting = True
        yield self.start_s, True
        for event in self.events:
            at, name = self.start_s + event["t"], event["event"]
            if name == "request":
                if not open_requests:  # the time before is no wait for this request
                    yield at, True
                open_requests.add(event["chunk"])
                connecting = False
            elif name == "buffer":
                playing = playing or event["played_ms"] > 0
                here = event["buffered_bytes"] + event["played_ms"] / 1000 * rate
                if here > best + (PLAYED_SLACK_S * rate if playing else 0.0):
                    best = here
                    yield at, bool(open_requests)
            elif name in ("handshake_done", "first_byte", "chunk_done"):
                if name == "chunk_done":
                    open_requests.discard(event["chunk"])
                yield at, connecting or bool(open_requests)

    def gaps_s(self, asked: Window) -> list[float]:
        """The durations without progress while the client waited for bytes, within the window, in s."""
        begin, end = asked.from_s, self.end_s if asked.to_s is None else asked.to_s
        gaps, last, waiting = [], begin, False
        for at, more in self.progress():
            if waiting and at > begin:
                gaps.append(max(0.0, min(at, end) - max(last, begin)))
            last, waiting = at, more
            if at >= end:
                return gaps
        if waiting:
            gaps.append(max(0.0, end - max(last, begin)))
        return gaps

    def down_bytes(self, path: str, asked: Window) -> int:
        log = read_link_log(self.folder / "links" / f"{path}.down.log")
        begin, end = self.window(asked)
        inside = (log.departure_ms >= 1000 * begin) & (log.departure_ms < 1000 * end)
        return int(log.departure_bytes[inside].sum())


def judge(expect: Expect, of: Evidence, alone: Evidence | None) -> list[Judged]:
    """The predicates of one run, judged. `alone`: the same stack over the path of `goodput_ratio` alone."""
    judged = [_outcome(expect.outcome, of)]
    if expect.complete is not None:
        judged.append(_complete(expect.complete, of))
    if expect.progress_gap_ms is not None:
        judged.append(_gap(expect.progress_gap_ms, of))
    if expect.goodput_ratio is not None:
        judged.append(_ratio(expect.goodput_ratio, of, alone))
    if expect.path_share is not None:
        judged.append(_share(expect.path_share, of))
    return judged


def _outcome(allowed: Sequence[str], of: Evidence) -> Judged:
    said = of.run.outcome
    return Judged("outcome", None, None, "", said in allowed, f"outcome {said}, expected {' or '.join(allowed)}")


def _complete(limit_s: float, of: Evidence) -> Judged:
    took = None if of.completed_s is None else of.completed_s - of.start_s
    text = "not complete" if took is None else f"complete after {took:.2f} s"
    passed = took is not None and took <= limit_s
    return Judged("complete", took, limit_s, "s", passed, f"{text}, at most {limit_s:g} s")


def _gap(asked: Gap, of: Evidence) -> Judged:
    longest = 1000 * max(of.gaps_s(asked), default=0.0)
    text = f"{longest:.0f} ms without progress after {asked.from_s:g} s, at most {asked.max:g} ms"
    return Judged("progress_gap_ms", longest, asked.max, "ms", longest <= asked.max, text)


def _ratio(asked: Ratio, of: Evidence, alone: Evidence | None) -> Judged:
    here, there = of.goodput_bps(asked), alone.goodput_bps(asked) if alone else None
    if here is None or there is None or there < MIN_GOODPUT_BPS:
        text = f"no goodput to compare with that of {asked.of} alone"
        return Judged("goodput_ratio", None, asked.min, "", False, text)
    ratio = here / there
    text = f"{ratio:.2f} of the goodput of {asked.of} alone ({here / 1e6:.2f} of {there / 1e6:.2f} Mbps)"
    return Judged("goodput_ratio", ratio, asked.min, "", ratio >= asked.min, f"{text}, at least {asked.min:g}")


def _share(asked: Share, of: Evidence) -> Judged:
    by_path = {path.name: of.down_bytes(path.name, asked) for path in of.run.paths}
    total_bytes = sum(by_path.values())
    share = by_path[asked.path] / total_bytes if total_bytes else None
    limit = asked.max if asked.max is not None else asked.min
    assert limit is not None  # noqa: S101  the model has one of them
    if share is None:
        return Judged("path_share", None, limit, "", False, "no downlink delivered anything")
    passed = share <= limit if asked.max is not None else share >= limit
    side = "most" if asked.max is not None else "least"
    text = f"{asked.path} has {share:.1%} of the bytes delivered, at {side} {limit:.1%}"
    return Judged("path_share", share, limit, "", passed, text)
