"""The work of the machine's processors during a run: for the run, for other processes, for a virtual machine's host."""

import os
import resource
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_BUSY = ("user", "nice", "system", "irq", "softirq")  # guest time is in user time, too
_COLUMNS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")


@dataclass(frozen=True)
class Machine:
    """Seconds of processor time over all cores."""

    wall_s: float
    cores: int
    busy_s: float  # in processes and in the kernel of this machine
    steal_s: float  # taken by the host
    guest_s: float  # of busy_s: in virtual machines on this one
    own_s: float | None  # of busy_s: in the run's processes; None: they are not this process's children

    @property
    def others_s(self) -> float | None:
        return None if self.own_s is None else max(0.0, self.busy_s - self.own_s)

    @property
    def steal_share(self) -> float:
        return self.steal_s / (self.wall_s * self.cores) if self.wall_s > 0 else 0.0

    @property
    def others_cores(self) -> float | None:
        """The mean number of cores that other processes kept busy. None: unknown."""
        return None if self.others_s is None or self.wall_s <= 0 else self.others_s / self.wall_s

    def as_json(self) -> dict[str, Any]:
        rounded = {name: round(value, 3) if isinstance(value, float) else value for name, value in asdict(self).items()}
        return rounded | {"others_s": None if self.others_s is None else round(self.others_s, 3)}


def parse(text: str, ticks: int) -> tuple[int, dict[str, float]]:
    """The number of cores, and seconds by column, from the text of /proc/stat (proc(5)). Old kernels have fewer
    columns."""
    lines = [line.split() for line in text.splitlines() if line.startswith("cpu")]
    counts = dict.fromkeys(_COLUMNS, 0.0)
    counts |= {name: int(word) / ticks for name, word in zip(_COLUMNS, lines[0][1:], strict=False)}
    return len(lines) - 1, counts


def _own_s() -> float:
    """Processor time of this process and of its children that have ended and been waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


class Watch:
    """Counts processor time from its creation on."""

    def __init__(self) -> None:
        self._begin, self._before, self._own_before = time.monotonic(), self._read(), _own_s()

    def _read(self) -> tuple[int, dict[str, float]]:
        return parse(Path("/proc/stat").read_text(), os.sysconf("SC_CLK_TCK"))

    def stop(self, *, own_children: bool) -> Machine:
        """The processor time since the start. `own_children`: the run's processes were children of this one and have
        ended."""
        cores, now = self._read()
        spent = {name: value - self._before[1][name] for name, value in now.items()}
        return Machine(
            wall_s=time.monotonic() - self._begin,
            cores=cores,
            busy_s=sum(spent[name] for name in _BUSY),
            steal_s=spent["steal"],
            guest_s=spent["guest"] + spent["guest_nice"],
            own_s=_own_s() - self._own_before if own_children else None,
        )
