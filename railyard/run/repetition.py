"""The repetition of void runs, at the end of a campaign and while its time for repetitions lasts.

The cause of lateness has often passed by then, and a machine that is always late does not keep the campaign from its
other runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from railyard.base.words import counted
from railyard.run.fidelity import MAX_TRIES
from railyard.run.runspec import RunSpec

BUDGET_SHARE = 0.5  # default: of the planned time of the runs,
BUDGET_FLOOR_S = 30.0  # … but at least this, so that a single short run can be repeated
SET_UP_S = 1.5  # of a run: namespaces, server, collection


def planned_s(specs: Sequence[RunSpec], jobs: int) -> float:
    """The time of the runs, in s, if all play to the end without a stall."""
    return sum(min(spec.time_limit_s, spec.player.duration_s) + SET_UP_S for spec in specs) / max(1, jobs)


def default_budget_s(specs: Sequence[RunSpec], jobs: int) -> float:
    return max(BUDGET_FLOOR_S, BUDGET_SHARE * planned_s(specs, jobs))


@dataclass
class Tries:
    """The tries of one run so far."""

    spec: RunSpec
    made: list[dict[str, Any]] = field(default_factory=list)
    record: dict[str, Any] = field(default_factory=dict)  # of the last try

    def add(self, record: dict[str, Any]) -> None:
        self.record = record
        self.made += record["tries"]

    @property
    def void(self) -> bool:
        return bool(self.record["fidelity"]["void"])

    @property
    def exhausted(self) -> bool:
        return len(self.made) >= (1 if self.spec.is_exact else MAX_TRIES)

    def whole_record(self, budget_s: float) -> dict[str, Any]:
        """The last try's record with all tries and, if the run is void, the reason why there was no further try."""
        ended = {"tries": self.made}
        if not self.void:
            return self.record | ended
        tries = counted(len(self.made), "try").replace("trys", "tries")
        limit = (
            f"the {budget_s:.0f} s for repetitions were used up" if budget_s > 0 else "repetitions were not asked for"
        )
        limit = "no run has more" if self.exhausted else limit
        limit = "in virtual time another try would be the same" if self.spec.is_exact else limit
        return self.record | ended | {"not_repeated": f"void in {tries}; {limit}"}


@dataclass
class Repetitions:
    """The repetitions of a campaign, and runs that were refused or hung."""

    budget_s: float
    count: int = 0
    spent_s: float = 0.0
    void: list[str] = field(default_factory=list)  # runs that stayed void
    used_up: bool = False  # not all void runs could be repeated
    refused: dict[str, str] = field(default_factory=dict)  # runs that did not start, and why
    hung: int = 0  # runs that did not end by themselves

    def sentence(self) -> str:
        """The repetitions in words. Empty if there were none and no run is void."""
        if not self.count:
            return f"{counted(len(self.void), 'run')} stayed void." if self.void else ""
        spent = f"{counted(self.count, 'repetition')} of void runs took {self.spent_s:.0f} s"
        if self.used_up:
            spent += f"; the time for them, {self.budget_s:.0f} s, is used up (--repeat-budget gives more)"
        return f"{spent}; {counted(len(self.void), 'run')} stayed void."
