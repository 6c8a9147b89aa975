"""Figures and tables over a population: verdicts follow from the figures. tests/test_exhibits.py makes them."""

from pathlib import Path

import pytest

from plays_of_viewers import plays_of
from railyard.base.errors import UserError
from railyard.base.paths import EXPERIMENTS_DIR
from railyard.base.style import scheme_styles
from railyard.base.yamlfile import load_yaml
from railyard.report.exhibit import Column, Table, Wants
from railyard.results.tables import Value
from railyard.stats.intervals import Interval
from railyard.studies.exhibits import population_first_frame, population_frame, population_gate, verdicts
from railyard.studies.population.model import load_exhibit_spec
from railyard.studies.study import Measured, find_study

needs_sim = pytest.mark.usefixtures("built")


def test_an_arm_that_the_population_has_not_is_told_in_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "fig1c.yaml"
    file.write_text((EXPERIMENTS_DIR / "fig1c.yaml").read_text().replace("vanilla-mp]", "vanila-mp]"))
    with pytest.raises(UserError, match=r"arms\[1\].*did you mean 'vanilla-mp'"):
        load_exhibit_spec(load_yaml(file))


UP, DOWN, UNSURE = Interval(20, 10, 30), Interval(-20, -30, -10), Interval(20, -5, 40)


def test_a_comparison_by_size_leaves_out_the_rest_of_a_video(tmp_path: Path) -> None:
    row = {"day": 1, "viewer": 1, "arm": "sp", "duration_s": 10.0, "bitrate_bps": 2_000_000, "rct_s": [1.0, 2.0, 0.1]}
    plays = plays_of(tmp_path, [row])
    assert sorted(plays.of_size(1_000_000).sample("rct", "sp").values) == [1.0, 2.0]
    assert list(plays.of_size(2_500_000).sample("rct", "sp").values) == [1.0]
    assert plays.of_size(9_000_000).sample("rct", "sp").count == 0
    assert plays.sample("rct", "sp").count == 3


def test_worse_holds_only_if_the_interval_says_so() -> None:
    assert verdicts.worse(UP, [DOWN]) == "holds"
    assert verdicts.worse(UNSURE, [UP, DOWN]) == "partly"
    assert verdicts.worse(UNSURE, [UNSURE]) == "not decided"
    assert verdicts.worse(DOWN, [DOWN]) == "does not hold"
    assert verdicts.worse(None, [None]) == "not decided"


def test_the_axis_of_a_rate_of_0_begins_at_0() -> None:
    style = scheme_styles(["sp"])["sp"]
    zero, unknown, less = Interval(0, 0, 0), Interval.alone(0.0), Interval(1, -1, 3)
    for values, expected in (([zero, None, unknown], "nonnegative"), ([zero, less], "normal")):
        curve = population_frame.Curve("sp", style, values)
        drawn = population_frame.curves("rate", "Rate", [1, 2, 3], [curve], ("day", "%"), "Rates by day.")
        assert drawn.figure["layout"]["yaxis"]["rangemode"] == expected


def test_a_change_is_a_sentence_whichever_way_it_goes() -> None:
    assert [population_frame.change(one, "fewer", "more") for one in (UP, DOWN, None)] == [
        "20.0 % fewer [10.0, 30.0]",
        "20.0 % more [10.0, 30.0]",
        "not comparable (single path has none)",
    ]


def test_better_by_a_range_needs_a_gain_beyond_chance_that_meets_the_range() -> None:
    assert verdicts.within(UP, 19, 50) == "holds"
    assert verdicts.within(UP, 25, 50) == "partly", "20 % is less than 25"
    assert verdicts.within(Interval(99, 95, 100), 24, 68) == "partly", "all of the interval is above the range"
    assert verdicts.within(Interval(10, -5, 25), 19, 50) == "not decided", "the claim may be true or false"
    assert verdicts.within(Interval(1, -2, 4), 19, 50) == "does not hold", "nowhere near 19 %"
    assert verdicts.within(DOWN, 19, 50) == "does not hold"
    assert verdicts.within(None, 19, 50) == verdicts.within(Interval.alone(30.0), 19, 50) == "not decided"


def test_a_claim_that_is_not_decided_says_how_many_viewers_would_decide_it() -> None:
    open_one = Interval(10, -5, 25)
    assert verdicts.outlook("not decided", open_one, 700)["needs"].startswith("some 3219 viewers instead of 700")
    assert "needs" not in verdicts.outlook("holds", open_one, 700)
    assert verdicts.outlook("not decided", None, 700)["needs"].startswith("no number of viewers can be given")


def test_better_by_one_figure_needs_it_in_the_interval() -> None:
    assert verdicts.agrees(UP, 28) == "holds"
    assert verdicts.agrees(UP, 35) == "partly"
    assert verdicts.agrees(Interval(10, -5, 25), 20) == "not decided"
    assert verdicts.agrees(DOWN, 20) == "does not hold" == verdicts.agrees(Interval(1, -2, 4), 20)


def test_a_cost_is_judged_on_the_papers_form() -> None:
    about = Interval(14, 13, 15)
    assert verdicts.cost(about, Interval(5, 4, 6), 15, 1.5) == "holds"
    assert verdicts.cost(Interval(40, 39, 41), about, 15, 1.5) == "partly", "its own form alone is about right"
    assert verdicts.cost(Interval(29, 28, 30), Interval(5, 4, 6), 15, 1.5) == "partly"
    assert verdicts.cost(Interval(6, 5, 7), Interval(5, 4, 6), 15, 1.5) == "does not hold"
    assert verdicts.cost(Interval(9, 5, 13), Interval(5, 4, 6), 15, 1.5) == "not decided"
    assert verdicts.cost(None, None, 15, 1.5) == "not decided"


def test_the_bounds_of_cost_are_asked_of_every_setting_whose_bounds_are_apart() -> None:
    assert population_gate.bounds_of("95-80", 15) == pytest.approx((0.75, 3))
    kept: dict[str, Interval | None] = {"95-80": Interval(2, 1, 2.9), "60-50": Interval(7, 6.1, 7.4), "1-1": UP}
    assert population_gate.within_bounds(kept, 15) == (True, True)
    assert population_gate.within_bounds(kept | {"60-50": Interval(9, 8, 10)}, 15) == (True, False)
    assert population_gate.within_bounds(kept | {"95-80": Interval(0.5, 0.4, 0.6)}, 15) == (False, True)
    assert population_gate.within_bounds(kept | {"95-80": Interval(1, 0.5, 3.5)}, 15) == (None, None)
    assert population_gate.within_bounds(kept | {"95-80": None}, 15) == (None, None)


def test_what_section_7_1_concludes_follows_the_figures() -> None:
    assert population_gate.needs_copies(UP, UP) == "holds"
    assert population_gate.needs_copies(DOWN, UP) == "partly"
    assert population_gate.needs_copies(DOWN, UNSURE) == "not decided"
    assert population_gate.needs_copies(DOWN, DOWN) == "does not hold"
    little = Interval(1, -1, 3)
    assert population_gate.diminishes(UP, [little, DOWN], 5) == "holds"
    assert population_gate.diminishes(UP, [little, UP], 5) == "partly"
    assert population_gate.diminishes(UP, [little, Interval(4, -8, 16)], 5) == "not decided", "it may gain 16 %"
    assert population_gate.diminishes(UNSURE, [DOWN], 5) == "not decided"
    assert population_gate.diminishes(DOWN, [DOWN], 5) == "does not hold"


def test_the_first_frame_needs_both_halves_of_the_claim() -> None:
    better = Interval(40, 30, 50)
    assert population_first_frame.verdict(better, DOWN, 32) == "holds"
    assert population_first_frame.verdict(better, UP, 32) == "partly"
    assert population_first_frame.verdict(UP, DOWN, 32) == "partly", "its interval does not reach 32 %"
    assert population_first_frame.verdict(UNSURE, DOWN, 32) == "not decided"
    assert population_first_frame.verdict(DOWN, DOWN, 32) == "does not hold"


def test_acceleration_is_judged_by_percentiles_and_by_their_order() -> None:
    assert population_first_frame.helps({0.5: UNSURE, 0.99: UP}) == "holds"
    assert population_first_frame.helps({0.5: UP, 0.99: UNSURE}) == "partly"
    assert population_first_frame.helps({0.5: UNSURE, 0.99: None}) == "not decided"
    assert population_first_frame.helps({0.5: DOWN, 0.99: DOWN}) == "does not hold"
    small, middle, large = (Interval(value, value, value) for value in (1.0, 2.0, 3.0))
    assert population_first_frame.grows({0.5: small, 0.9: middle, 0.99: large}) == "holds"
    assert population_first_frame.grows({0.5: small, 0.9: large, 0.99: middle}) == "partly"
    assert population_first_frame.grows({0.5: large, 0.9: small, 0.99: middle}) == "does not hold"


def test_a_claim_says_how_many_viewers_decide_it_or_carry_its_interval_at_least() -> None:
    assert verdicts.outlook("not decided", Interval(-20, -50, 10), 8)["wants"] == Wants(units=37, sure=True)
    unknown = verdicts.outlook("not decided", Interval.alone(-20), 40, carry=368)
    assert unknown["wants"] == Wants(units=368, sure=False)
    assert unknown["needs"] == "at least 368 viewers instead of 40: fewer do not carry an interval"


def test_of_two_boundaries_the_one_that_is_sooner_passed_counts() -> None:
    far = Interval(-1, -21, 19)
    assert verdicts.wants(far, 100, verdicts.least(far, 20.0)) == verdicts.wants(far, 100, (20.0,))
    assert verdicts.least(Interval(30, 10, 50), 20.0) == (0.0,)
    assert verdicts.nearer(Interval(2, 1, 3), 2.1, 1.5) == (2.1 / 1.5,)


def test_an_interval_stands_in_the_cell_of_its_figure() -> None:
    names = (("day", ""), ("left", "ms"), ("gain", "%"), ("95 % interval", "%"), ("paper", "%"))
    columns = [Column(name=name, unit=unit) for name, unit in names]
    ends = population_frame.span(Interval(3.5, -0.04, 8))
    rows: list[list[Value]] = [
        ["1 | 2", 2133.0, 3.54, ends, 9],
        ["3", 2.0, 3.5, ends, 9],
        ["all", None, None, None, None],
    ]
    heads = "| day | left (ms) | gain (%) | paper (%) |\n| --- | ---: | ---: | ---: |"
    both = "| 1 \\| 2 | 2133 | 3.54 [0.0 to 8.0] | 9 |\n| 3 | 2 | 3.50 [0.0 to 8.0] | 9 |"
    assert Table(title="t", columns=columns, rows=rows).markdown == f"{heads}\n{both}\n| all | – | – | – |"


@needs_sim
def test_the_study_keeps_the_tables_and_the_verdicts_of_exhibits(tmp_path: Path) -> None:
    study = find_study("population-exhibits")
    measured = study.measure("small", {"exhibits": ["table1", "fig1c"], "out": tmp_path})
    parts = dict(measured.parts())
    assert list(parts) == ["table1-1", "fig1c-1", "fig1c-2", "fig1c-3", "fig1c-4", "claims"]
    found = measured.data.exhibits["table1"]
    assert parts["table1-1"] == found.tables[0].markdown and "| all | 6 |" in parts["table1-1"]
    _, _, stalls, rct = parts["claims"].splitlines()
    assert stalls.startswith("| `table1`: Vanilla multipath stalls more than single path. |")
    assert rct.endswith(f"| **{measured.data.exhibits['fig1c'].claims[0].verdict}** |")
    again = study.code.Measured.model_validate_json(measured.data.model_dump_json())
    assert dict(Measured(study, measured.settings, again, "").parts()) == parts
    with pytest.raises(UserError, match="kind: this takes 'population-exhibit', not 'exhibit'"):
        study.measure("small", {"exhibits": ["fig13"]})
