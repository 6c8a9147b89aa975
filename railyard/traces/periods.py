"""Compares the lengths of a pair's traces with each other and with the runs that replay them."""

from collections.abc import Mapping

CONSTANT_MS = 1000
"""Traces up to this period are links of a constant rate, which may loop at any time."""
TOLERANCE_MS = 100
"""Periods that differ by at most this count as equal: a loop then shifts the paths by no more."""


def _looping(periods_ms: Mapping[str, int]) -> dict[str, int]:
    return {name: period for name, period in periods_ms.items() if period > CONSTANT_MS}


def unequal(periods_ms: Mapping[str, int]) -> str:
    """A sentence if the traces, by path and direction, have unequal periods. Empty if not."""
    periods = _looping(periods_ms)
    if len(periods) < 2 or max(periods.values()) - min(periods.values()) <= TOLERANCE_MS:
        return ""
    listed = ", ".join(f"{name} {period / 1000:g} s" for name, period in periods.items())
    return (
        f"Its traces have unequal periods ({listed}): once one of them loops, the paths are not beside each other as "
        f"recorded; cut all to {min(periods.values()) / 1000:g} s with `railyard traces convert --duration`."
    )


def too_short(periods_ms: Mapping[str, int], run_ms: float) -> str:
    """A sentence if a trace is no longer than the video of a run, which takes longer than its video. Empty if not."""
    short = {name: period for name, period in _looping(periods_ms).items() if period <= run_ms}
    if not short:
        return ""
    listed = ", ".join(f"{name} {period / 1000:g} s" for name, period in short.items())
    return (
        f"A run of {run_ms / 1000:g} s or more is longer than a trace ({listed}), which repeats within it; take a "
        "longer trace or a shorter video."
    )


def told_of_runs(periods_ms: Mapping[str, int], run_ms: float, end_ms: float) -> list[str]:
    """Sentences about runs that last `run_ms` and may reach `end_ms` of trace time."""
    periods = _looping(periods_ms)
    loops = bool(periods) and end_ms > min(periods.values())
    return [sentence for sentence in (too_short(periods, run_ms), unequal(periods) if loops else "") if sentence]
