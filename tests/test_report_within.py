"""`railyard report --within`: a report within a given time, whose sizes come from a pilot of other viewers."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import run_program
from plays_of_viewers import read_plays
from railyard.base.errors import UserError
from railyard.cli.report import report_command
from railyard.report.exhibit import ORDER, Claim, Exhibit, Provenance, Wants, load_exhibit
from railyard.studies.exhibits.within import DAYS, PARTS, PILOT_SEED, PLAN_FILE, summary, with_time


@pytest.mark.parametrize("text", ["soon", "5mbps", "0min", "-1s"])
def test_what_is_no_time_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(UserError, match="is no time; give one such as 5min"):
        report_command(None, within=text)


def test_a_report_of_its_own_takes_no_folder() -> None:
    with pytest.raises(UserError, match="leave out DIR"):
        report_command(Path("results"), within="5min")


@pytest.mark.long
def test_a_report_within_a_time_has_every_exhibit_and_counts_no_viewer_of_its_pilot(tmp_path: Path) -> None:
    done = run_program(
        [sys.executable, "-m", "railyard", "report", "--within", "30s"],
        env=os.environ | {"RAILYARD_RESULTS": str(tmp_path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = tmp_path / "within-30s"
    assert (results / "report.html").is_file()
    plan = json.loads((results / PLAN_FILE).read_text())
    assert set(plan["parts"]) == {names[0] for names in PARTS} and plan["pilot_seed_added"] == PILOT_SEED
    for name in ORDER:
        exhibit = load_exhibit(results / name)
        for claim in exhibit.claims:
            if claim.verdict == "not decided" and exhibit.name in {each for names in PARTS for each in names}:
                assert "viewers" in claim.needs and "min here" in claim.needs
    for names in PARTS:
        rows = read_plays(results / names[0] / "plays.parquet")
        viewers = {(row["day"], row["viewer"]) for row in rows}
        assert len(viewers) == DAYS * -(-int(plan["parts"][names[0]]["viewers"]) // DAYS)


def _exhibit(claims: list[Claim]) -> Exhibit:
    made = Provenance(git={}, kernel="", created="2026-01-01T00:00:00+00:00")
    words: dict[str, Any] = dict.fromkeys(("name", "title", "paper_ref", "summary", "command", "arena"), "x")
    return Exhibit(**words, size="brief", claims=claims, provenance=made)


def _claim(name: str, **members: Any) -> Claim:
    words: dict[str, Any] = dict.fromkeys(("claim", "theirs", "ours", "because"), "x")
    return Claim(id=name, **words, **members)


def test_the_summary_counts_the_decided_claims_and_says_what_was_too_long() -> None:
    claims = [_claim(verdict[:3], verdict=verdict) for verdict in ("holds", "partly", "not decided")]
    assert summary([_exhibit(claims), _exhibit([])], 290, 300) == "2 of 3 claims decided in 290 s"
    assert "320 s, 20 s more than asked for" in summary([_exhibit(claims)], 320, 300)


def test_an_open_claim_says_its_minutes_and_a_decided_one_does_not() -> None:
    wants = Wants(units=240, sure=True)
    open_one = _claim("a", verdict="not decided", needs="some 240 viewers", wants=wants)
    decided = open_one.model_copy(update={"id": "d", "verdict": "holds", "needs": ""})
    made = _exhibit([open_one, decided])
    first, second = with_time(made, 0.5).claims
    assert first.needs == "some 240 viewers; that many take about 2 min here" and second.needs == ""
    assert "chosen before they were played" in with_time(made, 0.5).confidence
