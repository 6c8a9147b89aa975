"""The page of one run: everything that happened in it, on one time axis."""

from railyard.report.replay.page import write_replay, write_replays

__all__ = ["write_replay", "write_replays"]
