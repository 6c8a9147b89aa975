"""Checks before a campaign on the wall clock whether this machine is quiet, and waits for that before void runs are
repeated."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from railyard.run import probe
from railyard.run.probe import Probe

LOOK_S = 1.5


class _StoppedError(Exception):
    """The campaign was stopped."""


@dataclass(frozen=True)
class Quiet:
    """Probes the machine. `tell` gets sentences for the user."""

    tell: Callable[[str], None]
    keep_awake: str = "auto"
    measure: Callable[..., Probe] = probe.measure
    wait: Callable[..., bool] = probe.wait_until_quiet

    def look(self) -> bool:
        """Measures once before the start. Says so if the machine is late. Returns whether it is quiet."""
        probe = self.measure(LOOK_S, keep_awake=self.keep_awake)
        if not probe.is_quiet:
            self.tell(f"{probe.sentence} On such a machine runs may be void; each is repeated once it is quieter.")
        return probe.is_quiet

    async def moment(self, budget_s: float) -> bool:
        """Waits for a quiet moment, at most for the budget. Returns whether there was one. If it is cancelled, the
        waiting thread ends with its next measurement."""
        begin, stop = monotonic(), threading.Event()
        late: list[Probe] = []

        def heard(probe: Probe) -> None:
            if stop.is_set():
                raise _StoppedError
            if not probe.is_quiet and not late:
                self.tell(f"{probe.sentence} Waiting for a quiet moment, at most {budget_s:.0f} s.")
            late.extend([] if probe.is_quiet else [probe])

        try:
            is_quiet = await asyncio.to_thread(self.wait, budget_s, heard, keep_awake=self.keep_awake)
        finally:
            stop.set()
        if late:
            how = "Quiet" if is_quiet else "Still late"
            self.tell(f"{how} after {monotonic() - begin:.0f} s; void runs are repeated now.")
        return is_quiet
