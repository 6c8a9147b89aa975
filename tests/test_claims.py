"""Claims of studies: each is a row of study.yaml, and all of them are judged by one piece of code."""

import math
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from railyard.stats.intervals import Interval
from railyard.studies.claims import Claim, Compared, judge, verdicts
from railyard.studies.study import CLAIMS, CODE, FILE, Declared, Study, find_study, studies

LOWER = Interval(-32, -48, -17)
HERE = {"pairs": "all pairs"}


def told(rule: str, found: Interval | None, established: str | None = None, b: str | None = "xlink") -> str:
    claim = Claim(figure="rct_p95", a="xlink+", b=b, rule=rule, where=HERE)
    one = Compared(figure="rct_p95", a="xlink+", b=b, where=HERE, found=found, established=established)
    [judged], _ = judge([claim], [one])
    return judged.verdict


@pytest.mark.parametrize(
    ("rule", "found", "established", "verdict"),
    [
        ("lower", LOWER, None, "holds"),
        ("higher", LOWER, None, "does not hold"),
        ("lower", Interval(-5, -19, 5), None, "not decided"),
        ("lower", Interval(-5, -math.inf, math.inf), None, "not decided"),
        ("lower", None, None, "not decided"),
        ("lower", LOWER, "lower", "holds"),
        ("lower", LOWER, "lower here", "not decided"),
        ("lower", LOWER, "n too small", "not decided"),
        ("lower", Interval(0, -1, 1), "alike", "does not hold"),
        ("lower", Interval(9, 2, 12), "higher", "does not hold"),
        ("no worse", Interval(-5, -19, 1), "no worse", "holds"),
        ("no worse", Interval(9, 2, 12), "higher", "does not hold"),
        ("alike", LOWER, "lower", "does not hold"),
        ("below -10", LOWER, None, "holds"),
        ("below -20", LOWER, None, "not decided"),
        ("above 0", LOWER, None, "does not hold"),
    ],
)
def test_a_rule_is_asked_of_the_interval_or_of_what_is_established(
    rule: str, found: Interval | None, established: str | None, verdict: str
) -> None:
    assert told(rule, found, established) == verdict


@pytest.mark.parametrize(
    ("at_least", "at_most", "words"), [(True, False, "≥ −32 % "), (False, True, "≤ −32 % "), (True, True, "– ")]
)
def test_a_difference_to_a_bound_is_one_and_between_two_has_no_value(at_least: bool, at_most: bool, words: str) -> None:
    found = replace(LOWER, at_least=at_least, at_most=at_most)
    one = Compared(figure="rct_p95", a="xlink+", b="xlink", where=HERE, found=found)
    assert one.words == f"{words}[−48, −17]"


def test_a_rule_is_one_of_few() -> None:
    with pytest.raises(ValidationError, match="rule"):
        Claim(figure="rct_p95", a="a", b="b", rule="better")


def test_a_claim_is_asked_only_where_it_was_measured() -> None:
    claim = Claim(figure="rct_p95", a="xlink+", b="xlink", rule="lower", where={"experiment": "heavy"})
    light = Compared(figure="rct_p95", a="xlink+", b="xlink", where={"experiment": "light"}, found=LOWER)
    [said] = verdicts([claim], [light])
    assert said == "Not decided, because not measured here: 1 of 1 claims."


def with_claims(folder: Path, claims: list[dict[str, object]]) -> Study:
    """The study `evaluation` with these claims, and what is kept of it."""
    one = find_study("evaluation")
    declared = yaml.safe_load((one.folder / FILE).read_text()) | {"claims": claims}
    for name in (CODE, "default.json"):
        shutil.copy2(one.folder / name, folder)
    return Study(one.name, folder, Declared.model_validate(declared))


def test_a_claim_is_one_row_and_a_false_one_is_said_not_to_hold(tmp_path: Path) -> None:
    row: dict[str, object] = {"figure": "rct_p95", "a": "xlink+", "b": "xlink", "rule": "lower"}
    row["where"] = {"experiment": "evaluation", "pairs": "all pairs"}
    for rule, verdict in (("lower", "holds"), ("higher", "does not hold")):
        parts = dict(with_claims(tmp_path, [row | {"rule": rule}]).kept("default").parts())
        [line] = parts[CLAIMS].splitlines()[2:]
        assert line.endswith(f"| {verdict} |") and f"against xlink: {rule} |" in line
        assert re.search(r"\| (≤ )?−\d+ % \[−\d+, −\d+\] \|", line)


def test_every_claim_is_of_something_that_is_compared() -> None:
    """The claims of a study that keeps a result are, over all sizes, about all of its rows."""
    for one in studies():
        kept = [one.kept(file.stem) for file in one.folder.glob("*.json")]
        if not one.declared.claims or not kept:
            continue
        compared = [row for measured in kept for row in one.code.compared(measured.data)]
        _, unknown = judge(one.declared.claims, compared)
        assert not unknown, one.name
