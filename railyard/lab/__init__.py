"""Checks of answers in the lab notebooks. Right answers are computed, from traces or from plays."""

from dataclasses import dataclass
from numbers import Real
from types import EllipsisType

OPEN = "Not answered yet."


@dataclass(frozen=True)
class Check:
    """The result of a check, as a cell shows it."""

    right: bool
    words: str

    def __repr__(self) -> str:
        return self.words


def unanswered() -> Check:
    return Check(False, OPEN)


def whole(answer: object) -> int | None:
    """A number without a fraction, as any type of number. None: the answer is something else."""
    if isinstance(answer, bool) or not isinstance(answer, Real):
        return None
    number = float(answer)
    return int(number) if number.is_integer() else None


def is_open(answer: object) -> bool:
    """Whether the cell still has three dots in place of an answer."""
    return answer is ... or answer is None


def judged(right: bool, hint: str, praise: str = "") -> Check:
    return Check(right, f"Right. {praise}".strip() if right else f"Not yet. {hint}")


def check(answer: float | str | EllipsisType | None, right: float | str, hint: str, within: float = 0.0) -> Check:
    """Checks an answer. `within`: the tolerated error of a number, as a share of the right one."""
    if is_open(answer):
        return unanswered()
    if isinstance(right, str):
        return judged(str(answer).strip().lower() == right.lower(), hint)
    if isinstance(answer, bool) or not isinstance(answer, Real):
        return Check(False, f"Not yet. The answer is a number, and this is {answer!r}.")
    return judged(abs(float(answer) - right) <= within * abs(right), hint, f"It is {right:.3g}.")
