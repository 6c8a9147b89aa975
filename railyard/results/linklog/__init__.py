"""Link logs of mpshell, the simulator and Mahimahi's mm-link: docs/reference/results.md."""

from __future__ import annotations

from railyard.results.linklog.read import LinkLog, LinkLogError, read_link_log
from railyard.results.linklog.stats import LinkStats, link_stats

__all__ = ["LinkLog", "LinkLogError", "LinkStats", "link_stats", "read_link_log"]
