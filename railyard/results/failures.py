"""Failed plays of a scheme, and which of them no transport could have saved.

docs/reference/metrics.md says when a play fails and when it has an excuse.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from railyard.results.differences import layout_of
from railyard.results.oracle import OraclePath, paths_of_run
from railyard.results.records import Run
from railyard.stats.distributions import exact_share
from railyard.traces.trace import OPPORTUNITY_BITS

# A path that carries CARRIED_BPS for CARRIED_MS can carry a handshake and a first frame.
CARRIED_BPS = 100_000
CARRIED_MS = 3000
STEP_MS = 100  # between the starts of the examined windows


def _carries(path: OraclePath, begin_ms: int, end_ms: int) -> bool:
    """Whether both directions of a path carry the rate in the same window between two times since t0."""
    needed = -(-CARRIED_BPS * CARRIED_MS // 1000 // OPPORTUNITY_BITS)
    first = begin_ms + path.start_offset_ms
    for at in range(first, end_ms + path.start_offset_ms - CARRIED_MS + 1, STEP_MS):
        if all(way.count_until(at + CARRIED_MS) - way.count_until(at) >= needed for way in (path.up, path.down)):
            return True
    return False


def has_excuse(run: Run) -> bool | None:
    """Whether no path carried CARRIED_BPS for CARRIED_MS within the play's time limit. If a play measures one path and
    reconnects on that alone, only that path counts. None: the links are not known (the traces are gone, or events
    change rates)."""
    paths = paths_of_run(run.config)
    if paths is None or run.player_start_s is None:
        return None
    if run.config.get("parameters", {}).get("reconnect") == "same":
        named = zip(run.config["paths"], paths, strict=True)
        paths = [path for config, path in named if config["name"] == run.config["primary"]]
    begin_ms = round(run.player_start_s * 1000)
    return not any(_carries(path, begin_ms, begin_ms + round(run.limit_s * 1000)) for path in paths)


@dataclass(frozen=True)
class Failures:
    """Failed plays of one scheme."""

    plays: int
    windows: int
    """Stretches of trace that do not overlap: the number of independent plays."""
    failed: tuple[Run, ...]
    without_excuse: tuple[Run, ...]
    """Includes plays whose links are not known."""

    @property
    def share(self) -> tuple[float, float]:
        """Interval of the share of plays that fail: Clopper and Pearson's, with the number of windows in place of the
        number of plays (Korn and Graubard 1998)."""
        return exact_share(len(self.failed) * self.windows / self.plays, self.windows)

    def count(self, outcome: str) -> int:
        return sum(run.outcome == outcome for run in self.failed)


def failures(runs: Sequence[Run]) -> Failures:
    """The failures among the plays of one scheme."""
    failed = tuple(run for run in runs if run.failed)
    return Failures(len(runs), layout_of(runs).windows, failed, tuple(run for run in failed if not has_excuse(run)))
