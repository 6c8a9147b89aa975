"""A chunk's completion time in words, a table and a waterfall; and as JSON."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from railyard.base.errors import UserError
from railyard.base.terminal import new_table
from railyard.base.words import counted
from railyard.experiment.arenas import is_exact
from railyard.results import oracle
from railyard.results.explain.flight import OUTAGE_MS, Flight, read_flight
from railyard.results.explain.split import Part, Split, split, stream_of
from railyard.results.records import Chunk, Run, load_run
from railyard.run.repeat import repeat, spec_of

SHADES = " ▁▂▃▄▅▆▇█"
WATERFALL_COLUMNS = 56
# The sentence for each bound. {ms}, {path} and {outage_ms} are filled in.
SENTENCES = {
    "base delay": "{ms} ms is the one-way delay of {path}.",
    "wake-up or jitter": "{ms} ms is delay of {path} beyond its base: the radio's wake-up, jitter, or a delay trace.",
    "outage": "For {ms} ms {path} offered nothing (gaps of {outage_ms:.0f} ms or more).",
    "queue": "{ms} ms in the queue of {path}, behind packets that were there before.",
    "link busy": "For {ms} ms packets waited because the server had sent more than {path} could carry.",
    "window full, link idle": "For {ms} ms the congestion window of {path} was full although its link was idle.",
    "scheduler uses another path": "For {ms} ms {path} had an open window and an idle link; the scheduler used another "
    "path only.",
    "scheduler waits": "For {ms} ms the scheduler left the open window of {path} unused.",
    "path not usable": "For {ms} ms {path} was not usable: not yet validated, suspect, standby or closed.",
    "pacing": "For {ms} ms the server paced, or had nothing to send ({path}).",
    "earlier requests": "For {ms} ms the server sent data of earlier requests.",
    "no path yet": "For {ms} ms the server had no path.",
    "client waits": "The client sent the request {ms} ms after the player asked.",
    "not in the logs": "For {ms} ms the logs do not tell: no packet of the request arrived.",
    "until the loss is detected": "The last bytes were lost on {path}; the sender knew it {ms} ms after it sent them.",
    "until it is sent again": "After the loss was known, {ms} ms passed until the bytes were sent again, on {path}.",
    "until a copy is sent": "The bytes were late on {path}; after {ms} ms a copy was sent, which arrived first.",
    "until a probe or another path repeats it": "The bytes were late on {path}; after {ms} ms they were sent again.",
    "on the link": "{ms} ms on the link of {path}.",
}


@dataclass(frozen=True)
class Explanation:
    run: Run
    chunk: Chunk
    split: Split
    oracle_bytes: tuple[tuple[str, int], ...]  # for each path; empty if the oracle does not know the links

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.split.parts

    def as_json(self) -> dict[str, Any]:
        shares = [asdict(share) for share in self.split.shares]
        return {
            "run": self.run.run_id,
            "chunk": self.chunk.index,
            "rct_s": self.chunk.rct_s,
            "completed": self.chunk.completed,
            "oracle_s": self.chunk.oracle_s,
            "oracle_bytes": dict(self.oracle_bytes),
            "missing_bytes": self.split.missing_bytes,
            "last_path": self.split.last.path if self.split.last else None,
            "parts": [asdict(part) for part in self.parts],
            "paths": shares,
            "gate": list(self.split.gate),
        }


def chosen(run: Run, number: int | None) -> Chunk:
    """The requested chunk with that number. None: the chunk that took longest. Raises UserError."""
    asked = [chunk for chunk in run.chunks if chunk.requested]
    if not asked:
        raise UserError(f"{run.run_id}: the player requested nothing (outcome: {run.outcome}), so there is no chunk.")
    if number is None:
        return max(asked, key=lambda chunk: chunk.rct_s)
    for chunk in asked:
        if chunk.index == number:
            return chunk
    raise UserError(f"{run.run_id}: no chunk {number} was requested; it has {asked[0].index} to {asked[-1].index}.")


def with_qlogs(folder: Path, run: Run, scratch: Path) -> Path:
    """The run's folder. If the run has no qlogs and is in virtual time: a repetition with qlogs, in `scratch`."""
    if any((folder / "qlog").glob("*.sqlog")):
        return folder
    if run.config.get("scheme") in ("mptcp", "tcp"):
        raise UserError(f"{folder}: TCP and MPTCP write no qlogs, so their chunks cannot be explained.")
    if run.config.get("stack") is not None or not is_exact(run.config.get("arena")):
        return folder
    out = scratch / "again"
    repeat(spec_of(folder, run.record).model_copy(update={"qlog": True}), out)
    again = load_run(out)
    if [chunk.rct_s for chunk in again.chunks] != [chunk.rct_s for chunk in run.chunks]:
        revision = str(run.record["git"].get("revision") or "")[:12]
        raise UserError(
            f"{folder}: the run has no qlogs, and with this build it comes out otherwise; "
            f"check out its revision ({revision or 'unknown'}) and build, or run it again."
        )
    return out


def explain(folder: Path, number: int | None = None) -> Explanation:
    """Explains the completion time of a chunk. Raises UserError if the logs do not allow it."""
    run = load_run(folder)
    chunk = chosen(run, number)
    with tempfile.TemporaryDirectory(prefix="railyard-explain-") as scratch:
        flight = read_flight(with_qlogs(folder, run, Path(scratch)), run.config)
    return explanation_of(run, flight, chunk)


def stream_of_chunk(folder: Path, number: int) -> int:
    """The stream that carried a chunk of a run that has qlogs of both ends. Raises UserError."""
    run = load_run(folder)
    chunk = chosen(run, number)
    return _stream(run, read_flight(folder, run.config), chunk)


def _stream(run: Run, flight: Flight, chunk: Chunk) -> int:
    request_s = (run.player_start_s or 0.0) + chunk.request_s
    first = chunk.index * int(run.config["player"]["chunk_bytes"])
    stream = stream_of(flight, first, first + chunk.bytes - 1, request_s)
    if stream is None:
        raise UserError(f"{run.run_id}: the client's qlog has no request of chunk {chunk.index}.")
    return stream


def explain_all(folder: Path, run: Run) -> dict[int, Explanation]:
    """The explanations of all requested chunks, by number. The run must have qlogs of both ends. Raises UserError."""
    flight = read_flight(folder, run.config)
    return {chunk.index: explanation_of(run, flight, chunk) for chunk in run.chunks if chunk.requested}


def explanation_of(run: Run, flight: Flight, chunk: Chunk) -> Explanation:
    request_s = (run.player_start_s or 0.0) + chunk.request_s
    stream = _stream(run, flight, chunk)
    return Explanation(run, chunk, split(flight, stream, request_s), _oracle_bytes(run, request_s, chunk))


def _oracle_bytes(run: Run, request_s: float, chunk: Chunk) -> tuple[tuple[str, int], ...]:
    paths = oracle.paths_of_run(run.config)
    if paths is None:
        return ()
    totals = oracle.bytes_by_path(paths, round(request_s * 1e6), chunk.bytes)
    return tuple(zip((str(path["name"]) for path in run.config["paths"]), totals, strict=True))


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f}".removesuffix(".0")


def sentences(explanation: Explanation) -> Iterator[str]:
    """The explanation in sentences: the time, the path of the last bytes, the largest parts, and the oracle's plan."""
    chunk, parts = explanation.chunk, explanation.split
    allowed = "" if chunk.oracle_s is None else f"; the links allow {chunk.oracle_s:.3f} s"
    if parts.done_s is None:
        yield (
            f"Chunk {chunk.index} did not complete in {chunk.rct_s:.3f} s{allowed}: "
            f"{counted(parts.missing_bytes, 'byte')} of what the server sent of it never arrived."
            if parts.missing_bytes
            else f"Chunk {chunk.index} did not complete in {chunk.rct_s:.3f} s{allowed}."
        )
        return
    yield f"Chunk {chunk.index} took {chunk.rct_s:.3f} s{allowed}."
    if parts.last is not None:
        yield f"Its last bytes came over {parts.last.path}{_lag(parts)}."
    largest = sorted(parts.parts, key=lambda part: -part.seconds)[:2]
    for order, part in zip(("The largest part: ", "The next one: "), largest, strict=False):
        names = {"ms": _ms(part.seconds), "path": part.path or "the path", "outage_ms": OUTAGE_MS}
        text = SENTENCES[part.bound].format(**names)
        yield order + text[0].lower() + text[1:]
    if explanation.oracle_bytes and chunk.oracle_s is not None:
        total = sum(size for _, size in explanation.oracle_bytes)
        planned = ", ".join(f"{size / total * 100:.0f} % over {path}" for path, size in explanation.oracle_bytes)
        yield f"With the links known in advance: {planned}, complete after {chunk.oracle_s:.3f} s."


def _lag(parts: Split) -> str:
    last = parts.last
    others = [share for share in parts.shares if last and share.path != last.path and share.last_s is not None]
    if last is None or last.received_s is None or not others:
        return ""
    other = max(others, key=lambda share: share.last_s or 0.0)
    return f", {_ms(last.received_s - (other.last_s or 0.0))} ms after the last ones over {other.path}"


def parts_table(explanation: Explanation, *, repeat_steps: bool = False) -> Table:
    table = new_table("step", "ms", "share", "bounded by", "path", right=("ms", "share"))
    step = ""
    for part in explanation.parts:
        share = f"{part.seconds / explanation.chunk.rct_s:.0%}" if explanation.chunk.rct_s else ""
        table.add_row(
            part.step if repeat_steps or part.step != step else "", _ms(part.seconds), share, part.bound, part.path
        )
        step = part.step
    return table


def shares_table(explanation: Explanation) -> Table:
    counts = ("bytes", "duplicate", "re-injected", "packets lost", "first after ms", "last after ms", "oracle's bytes")
    table = new_table("path", *counts, right=counts)
    of_oracle = dict(explanation.oracle_bytes)
    for share in explanation.split.shares:
        times = [
            "–" if t_s is None else _ms(t_s - explanation.split.request_s) for t_s in (share.first_s, share.last_s)
        ]
        sums = (share.new_bytes, share.duplicate_bytes, share.copied_bytes, share.lost_packets)
        table.add_row(share.path, *(str(count) for count in sums), *times, str(of_oracle.get(share.path, "–")))
    return table


def waterfall(explanation: Explanation) -> list[str]:
    """A bar chart of the arrival of the chunk's new bytes over time, a line for each path."""
    parts = explanation.split
    if parts.done_s is None or parts.done_s <= parts.request_s:
        return []
    width_s = (parts.done_s - parts.request_s) / WATERFALL_COLUMNS
    rows = {
        share.path: _sums([(t_s - parts.request_s, size) for t_s, size in share.arrivals], width_s)
        for share in parts.shares
    }
    most = max((max(sums) for sums in rows.values()), default=0) or 1
    name = max((len(path) for path in rows), default=0)
    lines = [
        f"{path:<{name}} │{''.join(SHADES[-(-size * (len(SHADES) - 1) // most)] for size in sums)}│"
        for path, sums in rows.items()
    ]
    end = f"{(parts.done_s - parts.request_s):.3f} s"
    return [*lines, f"{'':<{name}} 0{end:>{WATERFALL_COLUMNS + 1}}"]


def _sums(arrivals: Sequence[tuple[float, int]], width_s: float) -> list[int]:
    sums = [0] * WATERFALL_COLUMNS
    for t_s, size in arrivals:
        sums[min(WATERFALL_COLUMNS - 1, max(0, int(t_s / width_s)))] += size
    return sums
