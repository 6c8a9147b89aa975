"""What the pytest fixture hands to a test: single runs in virtual time, and their figures."""

from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from railyard.arenas import sim
from railyard.base.errors import UserError
from railyard.base.loop import complete
from railyard.base.yamlfile import YamlDocument, near_miss, parse
from railyard.experiment.model import Experiment, PlayerSettings, SchemeEntry
from railyard.figures.figure import Quantile
from railyard.figures.rows import REBUFFER_RATE, REDUNDANCY, rcts
from railyard.results.records import RESULT_OUTCOMES, Chunk, Run, load_run
from railyard.run import record
from railyard.run.resolve import resolve
from railyard.studies.thresholds import resolved

DEFAULT_TIME_LIMIT_S = 60.0
_LIMIT_PER_VIDEO = 3.0
_RUN_SETTINGS = (
    "time_limit_s",
    "start_offset_ms",
    "link_events",
    "queue",
    "congestion",
    "buffers",
    "qlog",
    "link_logs",
)


class RunFailedError(Exception):
    """A program's fault ended the run, so it has no figures to assert on."""


@dataclass(frozen=True)
class Result:
    """One run. Times are in seconds. The RCT of a chunk that never completed is the time that it had waited."""

    run: Run
    directory: Path

    @property
    def outcome(self) -> str:
        """'complete', 'time_limit', 'connection_lost' or 'connect_failed'."""
        return self.run.outcome

    @property
    def chunks(self) -> list[Chunk]:
        return self.run.chunks

    @property
    def rct(self) -> list[float]:
        """Request completion time of every requested chunk, in order of the requests."""
        return [chunk.rct_s for chunk in self.run.chunks]

    def rct_quantile(self, q: float) -> float:
        """Nearest-rank quantile of the RCT; infinite if nothing was requested."""
        point = Quantile(rcts, q).point([self.run])
        return float("inf") if point is None else point.value

    @property
    def rct_median(self) -> float:
        return self.rct_quantile(0.5)

    @property
    def rct_p99(self) -> float:
        return self.rct_quantile(0.99)

    @property
    def first_frame(self) -> float | None:
        """From the player's start to the last byte of the first video frame; None if it never arrived."""
        return self.run.first_frame_s

    @property
    def rebuffer_rate(self) -> float:
        """Time stalled / time played; infinite if nothing ever played."""
        return REBUFFER_RATE.of(self.run)

    @property
    def redundancy(self) -> float:
        """Bytes sent twice / other stream bytes sent; 0 if unknown."""
        return REDUNDANCY.of(self.run)

    @property
    def efficiency(self) -> list[float]:
        """Oracle RCT / RCT of every chunk. 1 is the best that the links allow."""
        return [chunk.efficiency for chunk in self.run.chunks if chunk.efficiency is not None]

    @property
    def down_bytes(self) -> dict[str, int]:
        """Bytes that left each path's downlink."""
        return {path.name: path.down_bytes for path in self.run.paths}


class Railyard:
    """Runs single jobs, each in a folder of its own below a directory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count(1)

    def run(self, scheme: str, pair: str, seed: int = 1, **settings: Any) -> Result:
        """One run in virtual time.

        Settings are the fields of docs/reference/experiments.md, by name: of the scheme (`t_th1_ms`, `path`, …), of the
        player (`bitrate_bps`, `duration_s`, …), of the experiment (`time_limit_s`, `start_offset_ms`, `queue`, …).
        """
        data = _document(scheme, pair, seed, settings)
        document = YamlDocument(Path("railyard.run"), data, {})
        experiment = resolved(parse(document, Experiment), document, self._folder, 1, lambda _: None)
        spec = resolve(experiment, document)[0]
        run_dir = self._folder / f"{next(self._numbers)}-{spec.run_id}"
        run_dir.mkdir(parents=True)
        record.write(run_dir, complete(sim.ARENA.execute(spec, run_dir)))
        run = load_run(run_dir)
        if run.outcome not in RESULT_OUTCOMES:
            raise RunFailedError(f"{run.outcome}: {run.record['message']}; see {run_dir}")
        return Result(run, run_dir)


def _document(scheme: str, pair: str, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
    """The experiment of one run, as if it had been written as YAML."""
    entry: dict[str, Any] = {"scheme": scheme, "path": "primary"} if scheme == "sp" else {"scheme": scheme}
    if scheme.startswith("sp:"):
        entry = {"scheme": "sp", "path": scheme.partition(":")[2]}
    player: dict[str, Any] = {}
    data: dict[str, Any] = {"name": "railyard.run", "arena": "sim", "pairs": [pair], "seeds": [seed]}
    for name, value in settings.items():
        if name in PlayerSettings.model_fields:
            player[name] = value
        elif name in SchemeEntry.model_fields:
            entry[name] = value
        elif name in _RUN_SETTINGS:
            data[name] = value
        else:
            known = [*PlayerSettings.model_fields, *SchemeEntry.model_fields, *_RUN_SETTINGS]
            raise UserError(f"railyard.run: there is no setting '{name}'; {near_miss(name, known)}")
    length = player.get("duration_s", PlayerSettings().duration_s)
    limit = max(DEFAULT_TIME_LIMIT_S, _LIMIT_PER_VIDEO * length) if isinstance(length, int | float) else None
    return {"time_limit_s": limit, **data, "schemes": [entry], "player": player}
