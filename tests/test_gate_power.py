"""The gate's power curve: simulated regressions, decided by the gate's own comparison."""

import random
from pathlib import Path

import pytest

from conftest import FakeRun, one_sentence
from in_process import railyard
from railyard.base.plotfile import write_drawn
from railyard.gate import power
from railyard.gate.compare import Places
from railyard.gate.suite import SUITES_DIR, Suite, load_suite
from railyard.results.records import Run, load_run
from railyard.stats.distributions import exact_share

ROWS, PLAYS = 4, 60


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> power.Rows:
    """Noise as after a change without a direction: 5 % of each request, either way."""
    folder = tmp_path_factory.mktemp("power")
    sides: dict[str, list[Run]] = {"one": [], "other": []}
    for label in range(ROWS):
        for seed in range(1, PLAYS + 1):
            drawn = random.Random(f"{label} {seed}")
            rct = [drawn.lognormvariate(-1, 0.5) for _ in range(12)]
            for side, runs in sides.items():
                noisy = [value * drawn.lognormvariate(0, 0.05) for value in rct]
                fake = FakeRun(
                    label=f"s{label}",
                    seed=seed,
                    start_offset_ms=60_000 * seed,
                    rct_s=noisy,
                    first_frame_s=drawn.uniform(0.3, 0.31),
                )
                runs.append(load_run(fake.write(folder / side)))
    return power.rows_of(sides["one"], sides["other"], Places())


@pytest.fixture(scope="module")
def suite() -> Suite:
    return load_suite(SUITES_DIR / "mobility.yaml")[0]


def test_more_windows_find_what_few_do_not(rows: power.Rows, suite: Suite) -> None:
    """Sevenfold times in a fifth of the plays: 4 of 20 give a p of 1/16 at best, 12 of 60 one of 1/4096."""
    grid = [(7.0, 0.2), (7.0, 0.5)]
    few = {one.share: one for one in power.simulate(rows, suite, 20, 40, grid)}
    many = {one.share: one for one in power.simulate(rows, suite, PLAYS, 40, grid)}
    assert few[0.2].rate < 0.1 and many[0.2].rate > 0.9
    assert many[0.5].rate == 1.0
    assert many[0.0].rate <= 0.1, "without a regression an alarm is rare"


def test_which_side_is_the_new_one_does_not_matter_without_a_regression(rows: power.Rows) -> None:
    [play] = rows[0][0]
    first, second = play.as_is
    assert [(b, a) for a, b in first] == second
    assert play.slowed[7.0][0][0][1] == pytest.approx(7 * first[0][1]), "the new version's median"
    assert play.slowed[7.0][0][7] == (0.0, 1.0), "and it is in the tail"


def test_a_regression_and_the_side_belong_to_a_whole_window(tmp_path: Path) -> None:
    """Twelve starts half a second apart are one window: its plays have one side, and all are slow or none."""
    sides: dict[str, list[Run]] = {"one": [], "other": []}
    for seed in range(1, 13):
        for side, rct in (("one", 1.0), ("other", 1.1)):
            fake = FakeRun(seed=seed, start_offset_ms=500 * seed, rct_s=[rct + 0.01 * seed] * 9)
            sides[side].append(load_run(fake.write(tmp_path / side)))
    [[window]] = power.rows_of(sides["one"], sides["other"], Places())
    assert len(window) == 12
    for number in range(20):
        [plays] = power._with_sides(random.Random(number), [window], {0} if number % 2 else set(), 7.0)
        assert len({after > before for (before, after), *_ in plays}) == 1


def test_the_interval_of_a_share_is_clopper_and_pearsons() -> None:
    for hits, count, low, high in ((0, 10, 0, 0.3085), (5, 10, 0.1871, 0.8129), (1, 20, 0.0013, 0.2487)):
        assert exact_share(hits, count) == pytest.approx((low, high), abs=5e-5)


def test_the_table_and_the_curves_show_every_point(tmp_path: Path) -> None:
    rates = [power.AlarmRate(20, 1.0, 0.0, 1, 100, 500, 20)]
    rates += [power.AlarmRate(20, factor, share, 50, 100) for factor in (2.0, 7.0) for share in (0.2, 0.4)]
    text = power.markdown(rates)
    assert "20 windows a row; false alarms 1 % [0, 5]; 4.0 % of the single tests reject:" in text
    assert "| 7 times as long | 50 % [40, 60] | 50 % [40, 60] |" in text
    write_drawn(tmp_path / "power.svg", lambda: power.drawn(rates))
    assert "windows that a regression hits, %" in (tmp_path / "power.svg").read_text()


def test_a_suite_of_kernels_has_no_power_curve() -> None:
    one_sentence(railyard("study", "gate-power", "--set", "suite=mptcp"), "simulates suites of the sim arena")
