"""Judges the claims of studies, which are rows of `claims:` in study.yaml. The rows of exhibits are claims of the
paper, which `railyard/studies/exhibits/verdicts.py` judges.

A study reports comparisons: a figure of a scheme, alone or against another scheme, and its place. A claim's rule is
applied to the comparison that its row names.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from pydantic import ConfigDict, Field, model_validator

from railyard.base.errors import UserError
from railyard.base.models import StrictModel
from railyard.base.page import Block, Table
from railyard.base.yamlfile import FieldError, near_miss
from railyard.experiment.model import Strict
from railyard.figures.figure import NONE
from railyard.figures.rows import BY_NAME
from railyard.stats.intervals import Interval
from railyard.stats.verdict import Answer, Verdict, above, below, in_steps
from railyard.stats.wording import signed

NUMBER = r"-?[0-9]+(\.[0-9]+)?"
# By rule: the words of `established` that make a claim true, and those that make it false.
WORDS: dict[str, tuple[set[str], set[str]]] = {
    "lower": ({"lower"}, {"higher", "alike"}),
    "higher": ({"higher"}, {"lower", "alike"}),
    "alike": ({"alike"}, {"lower", "higher"}),
    "no worse": ({"lower", "alike", "no worse"}, {"higher"}),
}


class Claim(Strict):
    """`figure` of `a` is `rule` (than that of `b`), `where` it was measured."""

    figure: str
    a: str
    b: str | None = None
    rule: str = Field(pattern=rf"^(lower|higher|alike|no worse|(below|above) {NUMBER})$")
    where: dict[str, str] = Field(default={})

    @property
    def words(self) -> str:
        title = BY_NAME[self.figure].title if self.figure in BY_NAME else self.figure.replace("_", " ")
        if self.b is None:
            return f"{title} of {self.a}: {self.rule}"
        return f"{title} of {self.a} against {self.b}: {self.rule}"


# The named rules of claims of the paper, and the numbers that each takes.
NUMBERS: dict[str, tuple[str, ...]] = {
    "worse": (),
    "within": ("least", "most"),
    "agrees": ("theirs",),
    "cost": ("theirs", "factor"),
}


class PaperClaim(Strict):
    """What the paper says, and when it holds here."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    claim: str
    theirs: str
    # In words, or the name of a rule with `numbers`.
    rule: str
    # What the words name as {name}, such as {least:g}: the boundaries that are asked are those that are printed.
    numbers: dict[str, float] = Field(default={})
    # A claim on one figure over a population has the figure's name, and the arm whose figure is compared with that of
    # `b`.
    figure: str | None = None
    a: str | None = None
    b: str | None = None

    @model_validator(mode="after")
    def _has_what_its_rule_takes(self) -> Self:
        for name in NUMBERS.get(self.rule, ()):
            if name not in self.numbers:
                wanted = ", ".join(NUMBERS[self.rule])
                raise FieldError("rule", f"claim '{self.id}': the rule '{self.rule}' takes `numbers: {{{wanted}}}`.")
        return self


class PaperClaims(Strict):
    """The part of an exhibit's file that has its claims."""

    claims: list[PaperClaim] = Field(default=[])

    def row(self, name: str) -> PaperClaim:
        for claim in self.claims:
            if claim.id == name:
                return claim
        raise UserError(f"the exhibit's file has no claim '{name}' (claims:); {near_miss(name, self._ids)}")

    @property
    def _ids(self) -> list[str]:
        return [claim.id for claim in self.claims]

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        for name in self._ids:
            if self._ids.count(name) > 1:
                raise FieldError("claims", f"there are two claims '{name}'; give one another id.")
        return self


class Compared(StrictModel):
    """A figure of `a`, or its difference to that of `b`, in `unit`."""

    model_config = ConfigDict(ser_json_inf_nan="strings")

    figure: str
    a: str
    b: str | None = None
    where: dict[str, str] = Field(default={})
    found: Interval | None
    unit: str = "%"
    digits: int = 0
    established: str | None = None
    """What a family of comparisons establishes of this one, corrected for their number, in the words of `railyard
    compare`. None: the interval decides alone."""

    @property
    def words(self) -> str:
        """−30 % [−45, −12]; a figure alone has no sign, and one that is counted has no interval."""
        if self.found is None:
            return NONE

        def number(value: float) -> str:
            return format(value, f".{self.digits}f") if self.b is None else signed(value, self.digits)

        known = f"{self.found.bound}{number(self.found.value)} {self.unit}".rstrip()
        value = NONE if self.found.is_unknown else known
        is_counted = self.found.low == self.found.high
        return value if self.b is None and is_counted else f"{value} [{self.found.ends(number)}]"


class Comparisons(StrictModel):
    """A table of comparisons."""

    heads: list[str]
    rows: dict[str, list[Compared | None]]
    verdicts: bool
    """Whether each cell says its verdict. If not, the first one's has a column of its own."""

    @property
    def markdown(self) -> str:
        rows = [[head, *self._cells(of_row)] for head, of_row in self.rows.items()]
        return Table(heads=self.heads, align="l" * len(self.heads), rows=rows).markdown

    def _cells(self, row: Sequence[Compared | None]) -> list[str]:
        if self.verdicts:
            return [NONE if one is None else f"{one.words} {one.established}" for one in row]
        cells = [NONE if one is None else one.words for one in row]
        return [cells[0], NONE if row[0] is None else f"{row[0].established}", *cells[1:]]

    def compared(self) -> Iterator[Compared]:
        yield from (one for row in self.rows.values() for one in row if one is not None)


def answer(rule: str, one: Compared) -> Answer:
    """Whether the rule is true for a comparison. None: not decided."""
    side, _, number = rule.partition(" ")
    if side in ("below", "above"):
        return (below if side == "below" else above)(one.found, float(number))
    if one.established is not None:
        true, false = WORDS[rule]
        return True if one.established in true else False if one.established in false else None
    return below(one.found) if rule == "lower" else above(one.found) if rule == "higher" else None


@dataclass(frozen=True)
class Judged:
    claim: Claim
    compared: Compared

    @property
    def verdict(self) -> Verdict:
        holds = answer(self.claim.rule, self.compared)
        return in_steps(holds, holds)


def judge(claims: Sequence[Claim], compared: Iterable[Compared]) -> tuple[list[Judged], list[Claim]]:
    """The claims whose comparison was measured, judged, and the other claims."""
    known = {(one.figure, one.a, one.b, *sorted(one.where.items())): one for one in compared}
    judged, open_ones = [], []
    for claim in claims:
        one = known.get((claim.figure, claim.a, claim.b, *sorted(claim.where.items())))
        if one is None:
            open_ones.append(claim)
        else:
            judged.append(Judged(claim, one))
    return judged, open_ones


def verdicts(claims: Sequence[Claim], compared: Iterable[Compared]) -> list[Block]:
    """A table with a row for each claim: the measured values and the verdict."""
    judged, open_ones = judge(claims, compared)
    blocks: list[Block] = []
    if judged:
        rows = [
            [one.claim.words, ", ".join(one.claim.where.values()), one.compared.words, one.verdict] for one in judged
        ]
        blocks.append(Table(heads=["claim", "where", "measured", "verdict"], align="llll", rows=rows))
    if open_ones:
        blocks.append(f"Not decided, because not measured here: {len(open_ones)} of {len(claims)} claims.")
    return blocks
