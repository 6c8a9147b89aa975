"""Viewers who sit still: their networks over time, how much they watch, and the fit of the parameters."""

import math
import statistics
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from drawn_viewers import draw_viewers, tasks_of
from railyard.base.errors import UserError
from railyard.base.paths import EXPERIMENTS_DIR, program
from railyard.base.yamlfile import YamlDocument, load_yaml, parse
from railyard.run.simbatch import batch
from railyard.studies.population.access import Change, Drawn, changes_of, offered, queueing_ms
from railyard.studies.population.executors import Batch, LocalExecutor, Played
from railyard.studies.population.fit import (
    FitSpec,
    Simulator,
    arms_of,
    as_document,
    check,
    fit,
    lowest,
    sandwich,
    surface_of,
)
from railyard.studies.population.model import Fitted, Parameters, PathAccess, Population, Spread, load_population
from railyard.studies.population.play import Arm, Row, play, seen
from railyard.studies.population.scenes import Library
from railyard.studies.population.viewers import Viewer
from railyard.studies.study import find_study

needs_sim = pytest.mark.usefixtures("built")
FITTED = EXPERIMENTS_DIR / "fitted"


@pytest.fixture(scope="module")
def population() -> Population:
    return load_population(load_yaml(EXPERIMENTS_DIR / "population.yaml"))


@pytest.fixture(scope="module")
def viewers(population: Population, tmp_path_factory: pytest.TempPathFactory) -> list[Viewer]:
    still = [scene for scene in population.scenes if scene.place is not None]
    alone = population.model_copy(update={"scenes": still})
    return draw_viewers(alone, Library(alone, tmp_path_factory.mktemp("traces"), recorded=False), [1], 150)


@pytest.fixture(scope="module")
def lte(population: Population) -> PathAccess:
    assert population.access is not None
    return population.access.lte


def test_the_queue_behind_others_follows_lindleys_recursion() -> None:
    load = np.array([0.5, 1.5, 2.0, 0.2, 3.0, 0.0])
    # In steps of 100 ms: -50, +50, +100, -80, +200 beyond the limit of 180, -100.
    assert queueing_ms(load, 180.0).tolist() == pytest.approx([0, 50, 150, 70, 180, 80])


def test_the_load_of_others_has_the_mean_that_was_drawn(lte: PathAccess) -> None:
    means = [offered(lte, 0.3, seed, 600).mean() for seed in range(60)]
    assert statistics.fmean(means) == pytest.approx(0.3, rel=0.1)


def test_a_path_under_load_is_slower_and_longer_at_the_same_time(lte: PathAccess) -> None:
    drawn = Drawn("lte", rate_mbps=10, load=0.8, base_rtt_ms=50, queue_ms=1000, seed=3)
    down = [change for change in changes_of(lte, drawn, 60, None) if change.direction == "down"]
    delays = [change.delay_ms for change in down if change.delay_ms is not None]
    assert min(delays) == 25 and max(delays) > 200
    long = [change.rate_kbps or 0 for change in down if (change.delay_ms or 0) > 100]
    short = [change.rate_kbps or 0 for change in down if (change.delay_ms or 0) < 30]
    assert statistics.fmean(long) < 0.6 * statistics.fmean(short)
    idle = changes_of(lte, Drawn("lte", 10, 0.0, 50, 1000, 3), 60, None)
    assert {change.delay_ms for change in idle if change.direction == "down"} == {25.0}


def test_wifi_that_is_left_behind_weakens_and_is_gone(lte: PathAccess) -> None:
    drawn = Drawn("wifi", rate_mbps=30, load=0.1, base_rtt_ms=20, queue_ms=50, seed=5)
    stays, leaves = (changes_of(lte, drawn, 20, at) for at in (None, 8.0))
    assert not any(change.is_down for change in stays)
    [gone] = [change for change in leaves if change.is_down]
    assert (gone.at_ms, gone.direction) == (8000, "both")

    def last(changes: list[Change]) -> int:
        return max(c.at_ms for c in changes if c.direction == "down" and c.at_ms < 8000 and (c.rate_kbps or 0) > 3000)

    assert last(leaves) < 8000 - 500 < last(stays)


def test_rates_of_both_paths_go_together_as_the_place_says(population: Population, tmp_path: Path) -> None:
    office = next(scene for scene in population.scenes if scene.name == "office")
    assert office.place is not None
    for given in (0.9, -0.9):
        place = office.place.model_copy(update={"correlation": given})
        alone = population.model_copy(update={"scenes": [office.model_copy(update={"place": place})]})
        drawn = draw_viewers(alone, Library(alone, tmp_path, recorded=False), [1], 80)
        logs = np.log(np.array([[float(path.down.removesuffix("kbps")) for path in viewer.paths] for viewer in drawn]))
        assert np.corrcoef(logs.T)[0, 1] == pytest.approx(given, abs=0.12)


def test_the_radio_of_the_second_path_sleeps_in_its_share_of_plays(viewers: list[Viewer], lte: PathAccess) -> None:
    assert lte.radio is not None
    settings = [dict(viewer.paths[1].settings) for viewer in viewers]
    assert all(found["down_radio"] == lte.radio.drx for found in settings)
    assert 0.07 < sum("up_radio" in found for found in settings) / len(settings) < 0.25
    assert not any(viewer.paths[0].settings for viewer in viewers)


def test_viewers_see_a_part_of_the_video_or_all_of_it(population: Population, viewers: list[Viewer]) -> None:
    whole = [viewer for viewer in viewers if viewer.watched_s == viewer.duration_s]
    assert len(whole) / len(viewers) == pytest.approx(population.video.watching.to_the_end, abs=0.13)
    part = [viewer.watched_s / viewer.duration_s for viewer in viewers if viewer not in whole]
    assert statistics.fmean(part) == pytest.approx(1 / 3, abs=0.12)
    for viewer in viewers:
        assert viewer.watched_s <= viewer.fetched_s(population.video) <= viewer.duration_s


def test_what_a_viewer_sees_ends_where_the_viewer_turns_away() -> None:
    def event(t: float, name: str) -> dict[str, Any]:
        return {"t": t, "event": name}

    events = [event(0.5, "play"), event(3.5, "stall_start"), event(4.0, "stall_end"), event(9.0, "stall_start")]
    found = seen(events, 20.0, 2.0)
    assert (found.until_s, found.played_s, found.stalled_s, found.stalls) == (2.5, 2.0, 0.0, 0)
    found = seen(events, 20.0, 5.0)
    assert (found.until_s, found.played_s, found.stalled_s, found.stalls) == (6.0, 5.0, 0.5, 1)
    found = seen(events, 20.0, 30.0)
    assert (found.until_s, found.played_s, found.stalled_s, found.stalls) == (math.inf, 8.0, 11.5, 2)
    assert seen([event(0.1, "request")], 20.0, 5.0).played_s == 0.0


@needs_sim
def test_requests_after_the_viewer_turned_away_do_not_count(population: Population, viewers: list[Viewer]) -> None:
    def rows(watched_s: float) -> Row:
        fast = next(v for v in viewers if v.duration_s > 20 and v.bitrate_bps >= 1_600_000 and v.paths[0].mbps > 15)
        viewer = Viewer(**{**fast.__dict__, "watched_s": watched_s})
        with batch(program("xlink-sim")) as own:
            [row] = play(tasks_of(population, [viewer], [Arm("sp", "sp")], program("xlink-sim"))[0], own)
        return row

    early, late = rows(0.5), rows(15.0)
    assert early["play_time_s"] == 0.5 and late["play_time_s"] == pytest.approx(15.0)
    assert 0 < len(early["rct_s"]) < len(late["rct_s"])
    assert early["rct_s"] == late["rct_s"][: len(early["rct_s"])]
    assert max(early["play_time_left_ms"]) > 0 and len(early["play_time_left_ms"]) <= 6


def _spec(**change: Any) -> FitSpec:
    document = load_yaml(FITTED / "population-fit.yaml")
    return parse(YamlDocument(document.path, document.data | change, {}), FitSpec)


def test_the_sandwich_is_the_variance_of_a_linear_fit() -> None:
    jacobian = np.array([[2.0, 0.0], [0.0, 4.0], [0.0, 0.0]])
    assert sandwich(jacobian, np.zeros((3, 3))).tolist() == [[0.25, 0.0], [0.0, 0.0625]]
    assert sandwich(jacobian, np.diag([3.0, 0.0, 9.0])).tolist() == [[1.0, 0.0], [0.0, 0.0625]]


def test_a_surface_through_points_of_a_plane_is_that_plane_and_its_lowest_point_keeps_the_bounds() -> None:
    draw = np.random.default_rng(1)
    slopes, level, centre = np.array([[2.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([1.0, -1.0, 0.0]), np.ones(2)
    points = centre + draw.uniform(-1, 1, (20, 2))
    found = surface_of(points, level + (points - centre) @ slopes.T, centre)
    assert found.level == pytest.approx(level) and found.slopes == pytest.approx(slopes)
    assert found.noise(centre) == pytest.approx(np.zeros((3, 3)), abs=1e-12)
    # The least (1 + 2 a)² + (-1 + b)² + (a + b)² has 5 a + b = -2 and a + 2 b = 1, so a = -5/9, b = 7/9.
    free = lowest(found, centre - 5, centre + 5)
    assert free - centre == pytest.approx([-5 / 9, 7 / 9])
    # With a held at 0 the rest is least at b = 1/2.
    assert lowest(found, centre, centre + 5) - centre == pytest.approx([0, 0.5], abs=1e-6)


def test_the_noise_of_a_surface_falls_with_the_number_of_points() -> None:
    draw = np.random.default_rng(2)

    def noise(count: int) -> float:
        points = draw.uniform(-1, 1, (count, 1))
        return float(surface_of(points, draw.normal(size=(count, 1)), np.zeros(1)).noise(np.zeros(1))[0, 0])

    # The variance of a mean of n values with variance 1.
    assert noise(50) == pytest.approx(1 / 50, rel=0.6) and noise(5000) == pytest.approx(1 / 5000, rel=0.1)


class Nobody:
    """Plays nothing: what is asked for must be there."""

    def results(self, batches: Iterable[Batch]) -> Iterator[Played]:
        raise AssertionError(f"{len(list(batches))} batches were played again")


@needs_sim
def test_a_fit_finds_the_parameters_that_its_moments_were_made_with(population: Population, tmp_path: Path) -> None:
    spec = _spec()
    truth = {"wifi_mbps": 20.0, "wifi_rtt_ms": 30.0}
    assert population.access is not None
    # Viewers that are similar, so that few of them determine a quantile.
    usual = Parameters(
        **{"wifi_mbps": 36, "wifi_spread": 0.05, "lte_mbps": 8, "lte_spread": 0.8, "wifi_rtt_ms": 12, "lte_rtt_ms": 28},
        **{"wifi_queue_ms": 28, "lte_queue_ms": 500, "wifi_load": 0.04, "lte_load": 0.18, "leaving": 0.002},
    )
    wifi = population.access.wifi.model_copy(update={"rtt": Spread(sigma=0.1, least=4, most=200)})
    home = [scene for scene in population.scenes if scene.name == "home"]
    access = population.access.model_copy(update={"wifi": wifi})
    alone = population.model_copy(update={"scenes": home, "access": access})
    moments = [moment for moment in spec.moments if moment.arm == "sp" and moment.q in (0.5, 0.9)]
    entries = [moment.model_dump() for moment in moments]
    simulator = Simulator(alone, [Arm("sp", "sp")], LocalExecutor(), program("xlink-sim"), tmp_path)
    at_truth = simulator.figures(usual.model_copy(update=truth), 40, 1, moments)
    made = [entry | {"measured": value} for entry, value in zip(entries, at_truth, strict=True)]
    asked = _spec(
        rounds=[{"points": 10, "viewers": 6, "width": 0.6}, {"points": 10, "viewers": 8, "width": 0.3}],
        predictions={"points": 3, "viewers": 8},
        parameters={
            name: {"start": 1.6 * value, "least": value / 4, "most": 4 * value} for name, value in truth.items()
        },
        fixed={name: value for name, value in usual.model_dump().items() if name not in truth},
        moments=made,
        held_out=[made[0]],
    )
    assert [arm.label for arm in arms_of(asked, alone)] == ["sp"]
    told: list[str] = []
    found = fit(asked, simulator, told.append)
    for name, value in truth.items():
        assert abs(math.log(found.parameters[name].value / value)) < 0.2, told
        assert found.parameters[name].low < value < found.parameters[name].high
    assert found.plays == 40 + 60 + 80 + 24
    assert found.predicted[0].low < at_truth[0] < found.predicted[0].high
    stopped = Simulator(alone, simulator.arms, Nobody(), simulator.program, tmp_path)
    assert fit(asked, stopped, told.append).parameters == found.parameters, "all of it was kept"
    # A check plays viewers of its own, with the moments before the held-out figures.
    others = check(asked, simulator, usual.model_copy(update=truth), 40)
    assert others != [*at_truth, at_truth[0]] and others[-1] == others[0]
    assert others[0] == pytest.approx(at_truth[0], rel=0.15)
    document = as_document(asked, found)
    assert Fitted.model_validate(document).parameters.wifi_mbps == pytest.approx(
        found.parameters["wifi_mbps"].value, 1e-3
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"fixed": {"leaving": 0.1}}, "'lte_queue_ms' must stand in 'parameters' or here"),
        ({"fixed": {"leaving": 0.1, "lte_queue_ms": 500, "speed": 1}}, "there is no parameter 'speed'"),
        ({"moments": []}, "at least 1 entry"),
        ({"rounds": [{"points": 9, "viewers": 9, "width": 0.1}]}, "round 1 needs a width and two points more"),
    ],
)
def test_a_mistake_in_the_fits_file_is_told_in_one_sentence(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        _spec(**change)


def test_the_fitted_file_is_of_the_fits_file_as_it_stands() -> None:
    spec, document = _spec(), load_yaml(FITTED / "population.yaml").data
    assert [row["name"] for row in document["moments"]] == [moment.name for moment in spec.moments]
    assert [row["measured"] for row in document["held_out"]] == [moment.measured for moment in spec.held_out]
    for name, value in spec.fixed.items():
        assert document["parameters"][name] == value
    for row, moment in zip(document["moments"], spec.moments, strict=True):
        assert row["residual"] == pytest.approx(moment.residual(row["simulated"]), abs=0.02)


def test_a_new_fit_stands_beside_the_one_in_use() -> None:
    code, used = find_study("population-fit").code, load_yaml(FITTED / "population.yaml").data
    free, fixed, moment = code.Row(name="lte_mbps", value=9, low=8, high=10), "lte_queue_ms", used["moments"][0]
    new = code.Row(name=moment["name"], value=0.25, measured=moment["measured"], residual=-3.24, weight=400)
    unknown = new.model_copy(update={"name": "sp rct p42"})
    weighty = new.model_copy(update={"name": used["moments"][1]["name"], "weight": 100 * used["moments"][1]["weight"]})
    measured = code.Measured(
        viewers=None,
        plays=7,
        distance=5.25,
        parameters=[free, code.Row(name=fixed, value=600, low=500, high=2000.4)],
        moments=[new, weighty, unknown],
        held_out=[],
    )
    parts = dict(code.tables(measured))
    low, high = used["intervals"]["lte_mbps"]
    assert (
        f"| `lte_mbps` | {used['parameters']['lte_mbps']:.3g} | {low:.3g} to {high:.3g} | 9 | 8 to 10 |"
        in parts["parameters"]
    )
    assert f"| `{fixed}` | 500 | – | 600 | 500 to 2000 |" in parts["parameters"], "it is not free in the fit in use"
    assert f"| {moment['simulated']:.3g} | {moment['residual']:+.1f} | 0.25 | -3.2 |" in parts["moments"]
    assert f"| {10 * used['moments'][1]['residual']:+.1f} | 0.25 | -3.2 |" in parts["moments"], "at the same weight"
    assert "| sp rct p42 | 0.294 | 400 | – | – | 0.25 | -3.2 |" in parts["moments"]
