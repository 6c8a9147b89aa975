"""Shows plays under way in the terminal: links, buffer and stalls, from the files that the programs write."""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from rich.console import Group, RenderableType
from rich.text import Text

from railyard.run.runspec import RunSpec

BIN_S = 0.5  # width of a bar in a link's picture
BINS = 40
BARS = " ▁▂▃▄▅▆▇█"
BUFFER_CELLS = 20
BUFFER_S = 5.0  # at which the buffer's bar is full
LOGS = (".player/player.jsonl", "player.jsonl")  # the player's log, if it runs as another user and as this one


class _Tail:
    """Reads the complete lines that were added to a file since the last call."""

    def __init__(self, *places: Path) -> None:
        self._places = places
        self._file: BinaryIO | None = None
        self._rest = b""

    def lines(self) -> Iterator[bytes]:
        if self._file is None:
            place = next((place for place in self._places if place.is_file()), None)
            if place is None:
                return
            self._file = place.open("rb")
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        yield from lines

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


@dataclass
class LinkNow:
    """One downlink: offered and delivered rate in each bin, in Mbps."""

    offered: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    delivered: dict[int, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, line: bytes) -> None:
        """Adds a line of the link log: `MS # BYTES` is an opportunity, `MS - BYTES DELAY` a delivery."""
        fields = line.split()
        if len(fields) < 3 or not fields[0].isdigit():
            return
        place = int(int(fields[0]) / 1000 / BIN_S)
        if fields[1] == b"#":
            self.offered[place] += int(fields[2]) * 8 / BIN_S / 1e6
        elif fields[1] == b"-":
            self.delivered[place] += int(fields[2]) * 8 / BIN_S / 1e6

    def picture(self, now: int) -> str:
        """The delivered rate of the last BINS bins as bars. A full bar is the highest rate of any bin."""
        first = max(0, now - BINS)
        most = max([*self.offered.values(), *self.delivered.values(), 1e-9])
        return "".join(_bar(self.delivered[place] / most) for place in range(first, now))


def _bar(share: float) -> str:
    return BARS[0 if share <= 0 else min(len(BARS) - 1, 1 + int(share * (len(BARS) - 1)))]


class PlayNow:
    """One play under way."""

    def __init__(self, spec: RunSpec, folder: Path) -> None:
        self.spec = spec
        self.t_s = self.buffer_s = self.stalled_s = 0.0
        self.stalls = 0
        self.first_frame_s: float | None = None
        self._stalled_since: float | None = None
        self._log = _Tail(*(folder / name for name in LOGS))
        self.links = {path.name: LinkNow() for path in spec.paths}
        self._link_logs = {name: _Tail(folder / "links" / f"{name}.down.log") for name in self.links}

    def look(self) -> None:
        """Reads new lines of the logs."""
        for line in self._log.lines():
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict) and "t" in event:
                self._take(event)
        for name, log in self._link_logs.items():
            for line in log.lines():
                self.links[name].add(line)

    def _take(self, event: dict[str, Any]) -> None:
        self.t_s = float(event["t"])
        kind = event.get("event")
        if kind == "buffer":
            self.buffer_s = float(event["buffered_ms"]) / 1000
        elif kind == "first_frame":
            self.first_frame_s = float(event["latency_s"])
        elif kind == "stall_start":
            self._stalled_since, self.stalls = self.t_s, self.stalls + 1
        elif kind == "stall_end" and self._stalled_since is not None:
            self.stalled_s += self.t_s - self._stalled_since
            self._stalled_since = None

    @property
    def stalled_now_s(self) -> float:
        """Time stalled so far, including a stall under way."""
        return self.stalled_s + (0.0 if self._stalled_since is None else self.t_s - self._stalled_since)

    @property
    def state(self) -> str:
        if self.first_frame_s is None:
            return "waiting for the first frame"
        times = f" in {self.stalls}" if self.stalls > 1 else ""
        return f"first frame {self.first_frame_s:.2f} s, stalled {self.stalled_now_s:.1f} s{times}"

    def lines(self) -> list[Text]:
        full = min(BUFFER_CELLS, round(self.buffer_s / BUFFER_S * BUFFER_CELLS))
        style = "red" if self._stalled_since is not None else "green"
        head = Text(f"{self.spec.pair} {self.spec.label}", style="bold")
        head.append(f"  {self.t_s:4.1f} s  buffer ", style="not bold")
        head.append("█" * full + "░" * (BUFFER_CELLS - full), style=style)
        head.append(f" {self.buffer_s:3.1f} s  {self.state}", style="not bold")
        width = max(map(len, self.links))
        now = int(self.t_s / BIN_S)
        rows = [head]
        for name, link in self.links.items():
            at = max(0, now - 1)
            rate = f"{link.delivered[at]:5.2f} of {link.offered[at]:5.2f} Mbps"
            rows.append(Text.assemble(f"  {name:{width}} ", (f"{link.picture(now):{BINS}}", "cyan"), f" {rate}"))
        return rows

    def close(self) -> None:
        for tail in (self._log, *self._link_logs.values()):
            tail.close()


class Picture:
    """The plays under way, and the time stalled of each that has ended."""

    def __init__(self, runs: Path, prefix: str) -> None:
        self._runs, self._prefix = runs, prefix
        self._now: dict[str, PlayNow] = {}
        self._ended: dict[str, dict[str, str]] = {}  # by pair and scheme

    def begin(self, spec: RunSpec) -> None:
        self._now[spec.run_id] = PlayNow(spec, self._runs / f"{self._prefix}{spec.run_id}")

    def end(self, spec: RunSpec, *, void: bool) -> None:
        play = self._now.pop(spec.run_id, None)
        if play is not None:
            play.look()
            ending = "void" if void else f"{play.stalled_now_s:.1f} s"
            self._ended.setdefault(spec.pair, {})[spec.label] = ending
            play.close()

    def __rich__(self) -> RenderableType:
        rows: list[Text] = []
        for play in self._now.values():
            play.look()
            rows += play.lines()
        for pair, endings in self._ended.items():
            stalls = ", ".join(f"{label} {stalled}" for label, stalled in endings.items())
            rows.append(Text(f"stalled on {pair}: {stalls}", style="dim"))
        return Group(*rows)
