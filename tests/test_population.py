"""The population: drawn from its seed, played exactly, resumed after kill -9, the same on a Dask cluster."""

import json
import os
import pickle
import random
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from conftest import good, run_program
from drawn_viewers import draw_viewers, tasks_of
from in_process import railyard
from plays_of_viewers import plays_of, read_plays
from railyard.base.errors import UserError
from railyard.base.paths import EXPERIMENTS_DIR, ROOT, program
from railyard.base.provenance import sha256_of
from railyard.base.yamlfile import load_yaml
from railyard.figures.rows import REBUFFER_RATE, REINJECTION_COST
from railyard.run.simbatch import batch
from railyard.stats import intervals, quantiles, rates
from railyard.stats.bootstrap import Layout
from railyard.stats.quantiles import Sample
from railyard.stats.statistics import nearest_rank
from railyard.studies.population.campaign import Pace, Viewers, play_missing
from railyard.studies.population.executors import (
    LOCAL_WINDOW,
    Batch,
    DaskExecutor,
    Failed,
    LocalExecutor,
    Played,
    Recipe,
    run_batch,
)
from railyard.studies.population.figures import Plays, What, improvement
from railyard.studies.population.model import Population, load_population
from railyard.studies.population.parts import Parts, part_of
from railyard.studies.population.play import Arm, PlayError, first_frames, play
from railyard.studies.population.run import progress
from railyard.studies.population.scenes import Library
from railyard.studies.population.table import literal
from railyard.studies.population.viewers import Viewer, day_shares
from railyard.studies.study import find_study
from waiting import wait_until

pytestmark = pytest.mark.usefixtures("built")
SP, VANILLA = Arm("sp", "sp"), Arm("vanilla-mp", "vanilla-mp")


@pytest.fixture(scope="module")
def population() -> Population:
    return load_population(load_yaml(EXPERIMENTS_DIR / "population.yaml"))


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pairs")


@pytest.fixture
def draw(population: Population, traces: Path) -> Callable[[list[int], int], list[Viewer]]:
    library = Library(population, traces, recorded=False)
    return lambda days, per_day: draw_viewers(population, library, days, per_day)


@pytest.fixture
def recipe(population: Population, traces: Path) -> Recipe:
    simulator = program("xlink-sim")
    return Recipe(population, str(traces), False, (SP, VANILLA), str(simulator), sha256_of(simulator))


def _rows(played: Played, file: Path) -> list[dict[str, Any]]:
    file.write_bytes(played.part)
    return read_plays(file)


def test_the_same_seed_draws_the_same_viewers_and_a_larger_size_contains_the_smaller(
    draw: Callable[[list[int], int], list[Viewer]],
) -> None:
    few, many = draw([1, 2], 3), draw([1, 2], 5)
    assert few == draw([1, 2], 3)
    assert [viewer for viewer in many if viewer.number <= 3] == few


def test_another_seed_draws_others(population: Population, draw: Any, traces: Path) -> None:
    other = population.model_copy(update={"seed": population.seed + 1})
    library = Library(other, traces.with_name("pairs-of-another-seed"), recorded=False)
    assert draw_viewers(other, library, [1], 3) != draw([1], 3)


def test_a_batch_is_small_however_many_viewers_there_are(recipe: Recipe) -> None:
    """Viewers and the changes of their links, some 90 kB each, are made in the worker."""
    few, many = (len(pickle.dumps(Batch(recipe, 1, tuple((n, (0, 1)) for n in range(1, last))))) for last in (2, 13))
    assert few < 60_000
    assert many - few < 1000


def test_scenes_come_in_proportion_to_their_shares(population: Population) -> None:
    shares = day_shares(population, 0)
    total = sum(scene.share for scene in population.scenes)
    assert shares == pytest.approx([scene.share / total for scene in population.scenes])
    assert day_shares(population, 1) != shares, "a day is a mix of its own"


def test_a_viewer_whose_operator_is_not_the_servers_has_a_longer_secondary_path(
    population: Population, draw: Callable[[list[int], int], list[Viewer]], traces: Path
) -> None:
    plain = population.model_copy(
        update={"cross_isp": population.cross_isp.model_copy(update={"operators": {"A": 1.0}})}
    )
    viewers = draw([1], 12)
    assert any(viewer.cross_isp_percent > 0 for viewer in viewers)
    library = Library(plain, traces, recorded=False)
    for viewer, alone in zip(viewers, draw_viewers(plain, library, [1], 12), strict=True):
        if viewer.pair != alone.pair:  # an operator less is a draw that falls otherwise, but only after the pair's
            pytest.fail("the operators moved the pairs")
        for path, base in zip(viewer.paths, alone.paths, strict=True):
            grown = 1.0 if path.name == viewer.primary else 1 + viewer.cross_isp_percent / 100
            assert path.delay_ms == pytest.approx(base.delay_ms * grown, abs=0.11)


def test_a_play_is_exact_and_does_not_depend_on_its_company(
    population: Population, draw: Callable[[list[int], int], list[Viewer]]
) -> None:
    (viewer,) = draw([1], 1)
    (together,) = tasks_of(population, [viewer], [SP, VANILLA], program("xlink-sim"))
    (alone,) = tasks_of(population, [viewer], [VANILLA], program("xlink-sim"))
    with batch(program("xlink-sim")) as own:
        assert play(together, own)[1] == play(alone, own)[0]


def test_what_decides_the_outcome_is_in_the_identity_and_where_files_lie_is_not(
    population: Population, draw: Callable[[list[int], int], list[Viewer]]
) -> None:
    (viewer,) = draw([1], 1)

    def identity(**change: Any) -> str:
        changed = Viewer(**{**viewer.__dict__, **change})
        (task,) = tasks_of(population, [changed], [SP], program("xlink-sim"))
        return task.identities[0]

    moved = tuple(path.__class__(**{**path.__dict__, "up": "/elsewhere"}) for path in viewer.paths)
    slower = tuple(path.__class__(**{**path.__dict__, "delay_ms": 77.0}) for path in viewer.paths)
    assert identity(paths=moved) == identity()
    assert len({identity(), identity(paths=slower), identity(seed=1), identity(bitrate_bps=999_999)}) == 4


def test_a_batch_that_comes_twice_is_counted_once(recipe: Recipe, tmp_path: Path) -> None:
    parts = Parts(tmp_path / "parts")
    played = run_batch(Batch(recipe, 1, ((1, (0, 1)),)))
    assert parts.add(played.part, 2) == parts.add(played.part, 2)
    parts.add(part_of(_rows(played, tmp_path / "played")[:1]), 1)  # as another division into batches would bring it
    labels = {arm.text: arm.label for arm in recipe.arms}
    assert parts.write_plays(tmp_path / "plays.parquet", labels, [1], 1, []) == 2
    assert [row["arm"] for row in read_plays(tmp_path / "plays.parquet")] == ["sp", "vanilla-mp"]


def test_what_is_missing_is_told_by_arm_day_and_viewer(recipe: Recipe, tmp_path: Path) -> None:
    parts = Parts(tmp_path / "parts")
    parts.add(run_batch(Batch(recipe, 2, ((1, (0, 1)), (3, (1,))))).part, 3)
    done = parts.done([arm.text for arm in recipe.arms], [1, 2], 3)
    assert done.tolist() == [[[False] * 3, [True, False, False]], [[False] * 3, [True, False, True]]]


def test_a_play_that_another_campaign_has_is_taken_from_there_under_the_arms_own_label(
    recipe: Recipe, tmp_path: Path
) -> None:
    played = run_batch(Batch(recipe, 1, ((1, (0,)), (2, (0,)))))
    Parts(tmp_path / "other").add(played.part, 2)
    relabelled = replace(recipe, arms=(replace(SP, label="one path"), VANILLA), others=(str(tmp_path / "other"),))
    again = run_batch(Batch(relabelled, 1, ((1, (0, 1)), (2, (0,)))))
    assert (again.plays, again.borrowed, played.borrowed) == (3, 2, 0)
    rows, before = _rows(again, tmp_path / "again"), _rows(played, tmp_path / "played")
    assert [row["arm"] for row in rows] == ["one path", "vanilla-mp", "one path"]
    assert [row | {"arm": "sp"} for row in (rows[0], rows[2])] == before


@dataclass(frozen=True)
class RowsPlay:
    """A play with the members that figures of other campaigns read."""

    row: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        return self.row[name]

    @property
    def rebuffer_counted_s(self) -> float:
        return float(self.row["rebuffer_time_s"]) + float(self.row["waited_s"] or 0.0)

    @property
    def failed(self) -> bool:
        return self.row["first_frame_s"] is None


def test_sql_over_a_file_gives_the_figures_that_its_rows_give(recipe: Recipe, tmp_path: Path) -> None:
    wanted = tuple((number, (0, 1)) for number in range(1, 25))
    rows = sorted(
        _rows(run_batch(Batch(recipe, 1, wanted)), tmp_path / "rows"), key=lambda row: (row["viewer"], row["arm"])
    )
    # One whose first frame never came.
    rows[2] |= {"first_frame_s": None, "waited_s": 40.0, "play_time_s": 0.0, "rebuffer_time_s": 0.0}
    plays = plays_of(tmp_path, rows)
    assert plays.arms == ["sp", "vanilla-mp"] and plays.count("sp") == plays.viewers() == 24
    own = {arm: [row for row in rows if row["arm"] == arm] for arm in plays.arms}

    def first_frame(row: dict[str, Any]) -> float:
        return float(row["waited_s"] if row["first_frame_s"] is None else row["first_frame_s"])

    values: dict[What, Callable[[dict[str, Any]], list[float]]] = {
        "rct": lambda row: row["rct_s"],
        "first_frame": lambda row: [first_frame(row)],
        "play_time_left": lambda row: [float(round(left)) for left in row["play_time_left_ms"]],
    }
    for what, of in values.items():
        groups = {arm: [of(row) for row in own[arm]] for arm in plays.arms}
        samples = {arm: Sample.of(each, Layout.of_independent(24)) for arm, each in groups.items()}
        for q in (0.05, 0.5, 0.95):
            flat = [value for group in groups["sp"] for value in group]
            assert plays.points(what, "sp", [q]) == [nearest_rank(flat, q)]
            level = plays.quantile(what, "sp", q)
            assert level is not None and level.value == nearest_rank(flat, q)
            assert level.known == quantiles.carries(samples["sp"], q)
            drawn = (quantiles.quantile_bounds(samples[arm], q)[0] for arm in ("vanilla-mp", "sp"))
            expected = intervals.interval(improvement(*drawn), Layout.of_independent(24))
            found = plays.compare_quantile(what, q, "vanilla-mp", "sp", improvement)
            assert found is not None and expected is not None and found.value == expected.value
            assert not found.known or found == expected
    read = {arm: [RowsPlay(row) for row in own[arm]] for arm in plays.arms}
    for figure in (REBUFFER_RATE, REINJECTION_COST):
        for arm in plays.arms:
            assert plays.value(figure, arm) == pytest.approx(figure.value(read[arm]), rel=1e-12)
    ours, theirs = (REBUFFER_RATE.sums(read[arm]) for arm in ("vanilla-mp", "sp"))
    ratio = rates.ratio(ours, theirs, Layout.of_independent(24))
    assert ratio is not None
    improved = plays.rebuffer_improvement("vanilla-mp", "sp")
    assert improved is not None and improved.value == pytest.approx(100 * (1 - ratio.value))


def test_a_part_of_the_viewers_has_their_plays_under_every_arm(recipe: Recipe, tmp_path: Path) -> None:
    rows = _rows(run_batch(Batch(recipe, 1, tuple((number, (0, 1)) for number in range(1, 13)))), tmp_path / "rows")
    for row in rows:
        row["day"], row["scene"] = (1 + row["viewer"] % 2, "it's home" if row["viewer"] < 5 else "subway")
    plays = plays_of(tmp_path, rows)
    assert plays.days == [1, 2] and plays.day(1) is plays.day(1)
    home = plays.where("scene = " + literal("it's home"))
    assert (plays.day(2).viewers(), home.viewers(), home.day(2).viewers(), plays.day(9).viewers()) == (6, 4, 2, 0)
    assert plays.day(9).quantile("rct", "sp", 0.5) is None
    assert home.points("rct", "sp", [1.0]) == [
        max(value for row in rows if row["viewer"] < 5 and row["arm"] == "sp" for value in row["rct_s"])
    ]

    def slowest(arm: str) -> dict[int, float]:
        return {row["viewer"]: max(row["rct_s"]) for row in rows if row["arm"] == arm}

    one, two = slowest("sp"), slowest("vanilla-mp")
    conditions, arms = ["b < a", "b > a AND scene = 'subway'"], {"a": "sp", "b": "vanilla-mp"}
    expected = [sum(two[who] < one[who] for who in one), sum(two[who] > one[who] for who in one if who >= 5)]
    assert plays.viewers_who(conditions, "list_max(rct_s)", arms) == expected
    worst = sorted(one, key=lambda who: one[who])[-3:]
    assert plays.viewers_who(["b < a"], "list_max(rct_s)", arms, ("a", 3)) == [sum(two[w] < one[w] for w in worst)]


def test_a_file_in_which_a_viewer_lacks_an_arm_is_refused(recipe: Recipe, tmp_path: Path) -> None:
    rows = _rows(run_batch(Batch(recipe, 1, ((1, (0, 1)), (2, (0,))))), tmp_path / "rows")
    with pytest.raises(UserError, match="some viewers lack an arm"):
        plays_of(tmp_path, rows)
    (tmp_path / "plays.parquet").write_bytes(b"no plays")
    with pytest.raises(UserError, match="cannot be read"):
        Plays.of_file(tmp_path / "plays.parquet")
    with pytest.raises(UserError, match="no such file"):
        Plays.of_file(tmp_path / "other.parquet")


def test_many_viewers_are_drawn_in_groups_whose_interval_is_about_as_wide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recipe: Recipe
) -> None:
    file = tmp_path / "plays.parquet"
    (one, other) = _rows(run_batch(Batch(recipe, 1, ((1, (0, 1)),))), file)
    drawn = random.Random(5)
    rows = []
    for viewer in range(1, 601):
        own = drawn.random()
        rows += [row | {"viewer": viewer, "rct_s": [own + drawn.random(), own]} for row in (one, other)]
    file.write_bytes(part_of(rows))
    widths = []
    for most in (600, 100):
        monkeypatch.setattr("railyard.studies.population.figures.MOST_UNITS", most)
        found = Plays.of_file(file).compare_quantile("rct", 0.5, "vanilla-mp", "sp", improvement)
        assert found is not None and found.known
        widths.append(found.high - found.low)
    assert widths[1] == pytest.approx(widths[0], rel=0.3)


def test_a_program_that_changed_under_way_is_not_played_with(recipe: Recipe, tmp_path: Path) -> None:
    copy = tmp_path / "xlink-sim"
    shutil.copy(program("xlink-sim"), copy)
    batch = Batch(replace(recipe, program=str(copy)), 1, ((1, (0,)),))
    assert run_batch(batch).plays == 1
    copy.write_bytes(copy.read_bytes() + b"x")
    with pytest.raises(UserError, match="not the program that the campaign began with"):
        run_batch(batch)


def test_a_disk_that_takes_nothing_is_told_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "parts").write_text("a file where the folder should be")
    with pytest.raises(UserError, match="cannot write results there"):
        Parts(tmp_path / "parts").add(b"", 0)


def test_viewers_whose_values_are_alike_carry_a_quantile_later_than_their_number_of_values_says(tmp_path: Path) -> None:
    def needed(alike: bool) -> int:
        drawn = random.Random(3)
        rows: list[dict[str, Any]] = []
        for viewer in range(60):
            own = drawn.random()
            rct = [own + 1e-6 * drawn.random() if alike else drawn.random() for _ in range(20)]
            rows.append({"day": 1, "viewer": viewer, "arm": "a", "rct_s": rct})
        plays = plays_of(tmp_path, rows)
        return plays.to_carry("rct", 0.99, "a")

    assert needed(alike=False) < 100, "1,200 independent values are more than 368"
    assert needed(alike=True) > 300, "1,200 values of 60 viewers are worth about 60"


def test_the_interval_of_a_comparison_is_over_viewers_in_pairs(tmp_path: Path) -> None:
    def row(viewer: int, arm: str, rct: float) -> dict[str, Any]:
        return {"day": 1, "viewer": viewer, "arm": arm, "rct_s": [rct, rct], "play_time_s": 1.0, "rebuffer_time_s": 0.1}

    rows = [row(viewer, arm, (viewer + 1) * factor) for viewer in range(40) for arm, factor in (("a", 1), ("b", 0.5))]
    found = plays_of(tmp_path, rows).compare_quantile("rct", 0.5, "b", "a", improvement)
    assert found is not None
    # Viewers differ forty-fold, arms by a half for each of them: drawn in pairs, the difference has no spread at all.
    assert (found.value, found.low, found.high) == pytest.approx((50, 50, 50))


def test_a_difference_of_stalls_needs_five_viewers_who_stall(tmp_path: Path) -> None:
    def row(viewer: int, arm: str, stalled_s: float) -> dict[str, Any]:
        return {"day": 1, "viewer": viewer, "arm": arm, "play_time_s": 10.0, "rebuffer_time_s": stalled_s}

    def compared(stalling: int) -> Any:
        rows = [row(viewer, "sp", 1.0 if viewer < stalling else 0.0) for viewer in range(100)]
        rows += [row(viewer, "other", 0.5 if viewer < stalling else 0.0) for viewer in range(100)]
        return plays_of(tmp_path, rows).rebuffer_improvement("other", "sp")

    assert compared(5).known and compared(5).low < 50 < compared(5).high
    assert compared(4).value == 50 and not compared(4).known


def test_a_play_that_never_showed_a_frame_stalled_all_the_time_that_was_waited(tmp_path: Path) -> None:
    shown = {"day": 1, "viewer": 1, "arm": "sp", "play_time_s": 10.0, "rebuffer_time_s": 1.0, "waited_s": None}
    never = shown | {"viewer": 2, "play_time_s": 0.0, "rebuffer_time_s": 0.0, "waited_s": 40.0}
    assert plays_of(tmp_path, [shown, never]).value(REBUFFER_RATE, "sp") == pytest.approx(41 / 10)


def test_a_video_that_a_play_never_came_to_has_no_first_frame_and_counts_with_the_whole_play(tmp_path: Path) -> None:
    def row(viewer: int, frames: list[float], stalled_s: float) -> dict[str, Any]:
        played = {"first_frame_s": frames[0], "waited_s": None, "play_time_s": 8.0, "rebuffer_time_s": stalled_s}
        return {"day": 1, "viewer": viewer, "arm": "sp", "first_frames_s": frames} | played

    plays = plays_of(tmp_path, [row(1, [0.5, 0.2], 0.0), row(2, [0.5], 90.0)])
    assert plays.points("later_first_frame", "sp", [0.5, 1.0]) == [0.2, 98.5]


PROCESS = (sys.executable, "-m", "railyard")


def _campaign(out: Path, *more: str) -> list[str]:
    """The words of a campaign over pairs of the library only: nothing is generated first, so it is over in seconds."""
    document = yaml.safe_load((EXPERIMENTS_DIR / "population.yaml").read_text())
    document["scenes"] = [scene for scene in document["scenes"] if scene["name"] in ("driving", "subway", "rail")]
    file = out.with_suffix(".yaml")
    file.write_text(yaml.safe_dump(document))
    settings = (f"population={file}", f"out={out}", "arms=[sp, vanilla-mp]", "days=1", *more)
    return ["study", "population", "--size", "small", *(word for one in settings for word in ("--set", one))]


def _figures(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(row["identity"], row["arm"], tuple(row["rct_s"]), row["stream_bytes_sent"]) for row in rows]


KILLED_AT_ITS_FIRST_PART = """
import os, signal
from railyard.cli import main
from railyard.studies.population.parts import Parts
add = Parts.add
def add_and_die(*arguments):
    add(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)
Parts.add = add_and_die
main.main()
"""


def test_a_campaign_that_was_killed_goes_on_with_nothing_lost_and_nothing_doubled(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    more = ("viewers=36",)
    good(railyard(*_campaign(whole, *more)))
    done = run_program([sys.executable, "-c", KILLED_AT_ITS_FIRST_PART, *_campaign(killed, *more)], cwd=ROOT)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert len(list(killed.glob("parts/part-*"))) == 1 and not (killed / "plays.parquet").exists()
    good(railyard(*_campaign(killed, *more)))
    rows = read_plays(killed / "plays.parquet")
    assert len(rows) == 72
    assert set(Counter(row["identity"] for row in rows).values()) == {1}
    assert _figures(rows) == _figures(read_plays(whole / "plays.parquet"))


class Cluster:
    """A Dask scheduler and its workers, on this machine."""

    def __init__(self, folder: Path) -> None:
        self.address = ""
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []
        self._folder = folder

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        environment = dict(os.environ, DASK_DISTRIBUTED__ADMIN__LOG_LENGTH="0", MALLOC_TRIM_THRESHOLD_="65536")
        command = [sys.executable, "-m", "dask", *words, "--no-dashboard"]
        return subprocess.Popen(command, cwd=self._folder, env=environment, stderr=subprocess.DEVNULL)

    def start_worker(self) -> None:
        more = ("--nthreads", "1", "--no-nanny", "--memory-limit", "0", "--death-timeout", "60")
        self.workers.append(self._start("worker", self.address, *more))

    def complete(self) -> None:
        """Starts what is not running, up to two workers, and waits for them."""
        from distributed import Client  # noqa: PLC0415  slow to import

        if self.scheduler is None or self.scheduler.poll() is not None:
            self.end()
            file = self._folder / "scheduler.json"
            file.unlink(missing_ok=True)
            words = ("--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file), "--no-show")
            self.scheduler = self._start("scheduler", *words)
            wait_until(lambda: file.exists() and file.read_text().endswith("}"), "the scheduler is not up", 60)
            self.address = json.loads(file.read_text())["address"]
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        while len(self.workers) < 2:
            self.start_worker()
        with Client(self.address, timeout=30, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)

    def end(self) -> None:
        for process in filter(None, (*self.workers, self.scheduler)):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.end()


@pytest.fixture
def cluster(started: Cluster) -> Cluster:
    """One for all tests, with a scheduler and two workers: what a test killed is started again."""
    started.complete()
    return started


def _killed_under_way(
    cluster: Cluster, process: subprocess.Popen[bytes] | None, out: Path, *more: str
) -> tuple[int, str]:
    """Kills the process once the first part of a campaign on the cluster is there. Returns the campaign's exit code and
    output."""
    assert process is not None
    command = [*PROCESS, *_campaign(out, *more, f"scheduler={cluster.address}")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT) as campaign:
        wait_until(lambda: list(out.glob("parts/part-*")) or campaign.poll() is not None, "the first part", 60)
        assert campaign.poll() is None, "the campaign was over before anything could be killed"
        process.send_signal(signal.SIGKILL)
        output, _ = campaign.communicate(timeout=120)
    return campaign.returncode, output.decode()


def test_a_dask_worker_that_is_killed_loses_nothing_and_doubles_nothing(cluster: Cluster, tmp_path: Path) -> None:
    out, more = tmp_path / "dask", ("viewers=60",)
    code, output = _killed_under_way(cluster, cluster.workers[0], out, *more)
    assert code == 0, output
    assert cluster.workers[0].wait(10) == -signal.SIGKILL
    rows = read_plays(out / "plays.parquet")
    assert len(rows) == 120
    assert set(Counter((row["viewer"], row["arm"]) for row in rows).values()) == {1}
    good(railyard(*_campaign(tmp_path / "local", *more)))
    assert _figures(rows) == _figures(read_plays(tmp_path / "local" / "plays.parquet"))


def test_plays_without_a_worker_say_so_once_and_go_on_when_one_comes(cluster: Cluster, recipe: Recipe) -> None:
    address, told, workers = cluster.address, list[str](), [*cluster.workers]

    def tell(sentence: str) -> None:
        told.append(sentence)
        cluster.start_worker()

    results = DaskExecutor(address, tell).results(Batch(recipe, 1, ((number, (0,)),)) for number in range(40))
    plays = next(results).plays
    for worker in workers:
        worker.kill()
        worker.wait(10)
    assert plays + sum(played.plays for played in results) == 40
    start = f"dask worker {address} --nthreads 1"
    assert told == [f"{address} has no worker; the plays wait until you start one: `{start}`"]


def test_a_dask_scheduler_that_is_killed_ends_the_campaign_with_one_sentence(cluster: Cluster, tmp_path: Path) -> None:
    code, output = _killed_under_way(cluster, cluster.scheduler, tmp_path / "dask", "viewers=60")
    assert code == 2
    assert "Traceback" not in output and "railyard is at fault" not in output
    assert f"the Dask scheduler at {cluster.address} has ended" in output and "same command to resume" in output


def test_a_worker_with_other_pairs_or_other_code_is_refused(population: Population, recipe: Recipe) -> None:
    """Otherwise it would draw other viewers and count them as the campaign's."""
    there = Library(population, Path(recipe.traces), recorded=False)
    same = replace(recipe, library_sha256=there.sha256)
    assert run_batch(Batch(same, 1, ((1, (0,)),))).plays == 1
    for other, words in (
        (replace(recipe, library_sha256="0" * 64), "has not the pairs .* RAILYARD_TRACE_PATH"),
        (replace(recipe, code_sha256="0" * 64), "another revision of railyard"),
    ):
        with pytest.raises(UserError, match=f"the worker on .* {words}"):
            run_batch(Batch(other, 1, ((1, (0,)),)))


def test_the_time_left_counts_the_plays_that_were_made_since_the_pilot(monkeypatch: pytest.MonkeyPatch) -> None:
    now, told = [0.0], list[str]()
    monkeypatch.setattr("railyard.studies.population.run.time.monotonic", lambda: now[0])
    say = progress(told.append)
    say(0, 400)
    say(400, 400)
    for now[0], done in ((100.0, 60_000), (120.0, 60_100)):
        say(done, 200_000)
    assert told == ["60100 of 200000 plays, 27980 s left"]


def test_a_scheduler_that_is_not_there_is_told_in_one_sentence(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("railyard.studies.population.executors.CONNECT_LIMIT_S", 1)
    with pytest.raises(UserError, match=r"no Dask scheduler at tcp://127\.0\.0\.1:1 .*--set scheduler="):
        list(DaskExecutor("tcp://127.0.0.1:1", print).results([Batch(recipe, 1, ((1, (0,)),))]))


def _die_once(batch: Batch) -> Played:
    flag = Path(os.environ["DIE_ONCE"])
    if not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return Played(batch.key.encode())


def _play_nothing(batch: Batch) -> Played:
    return Played(batch.key.encode())


def _die_on_the_third(batch: Batch) -> Played:
    if batch.wanted[0][0] == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return Played(batch.key.encode())


def test_a_local_worker_that_is_killed_costs_its_batch_only(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIE_ONCE", str(tmp_path / "died"))
    monkeypatch.setattr("railyard.studies.population.executors.run_batch", _die_once)
    batches = [Batch(recipe, 1, ((number, (0,)),)) for number in range(1, 5)]
    found = [played.part.decode() for played in LocalExecutor(2).results(batches)]
    assert (tmp_path / "died").exists()
    assert sorted(found) == sorted(batch.key for batch in batches)


def test_a_batch_that_kills_every_worker_is_set_aside_and_all_others_are_played(
    recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("railyard.studies.population.executors.run_batch", _die_on_the_third)
    batches = [Batch(recipe, 1, ((number, (0,)),)) for number in range(1, 10)]
    found = list(LocalExecutor(2).results(iter(batches)))
    assert sorted(played.part.decode() for played in found if played.part) == sorted(
        batch.key for batch in batches if batch.wanted[0][0] != 3
    )
    (failed,) = [failed for played in found for failed in played.failed]
    assert (failed.day, failed.viewer) == (1, 3) and "workers died" in failed.why


def test_batches_are_taken_when_there_is_room_for_them(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("railyard.studies.population.executors.run_batch", _play_nothing)
    taken = []

    def many() -> Iterator[Batch]:
        for number in range(100):
            taken.append(number)
            yield Batch(recipe, 1, ((number + 1, (0,)),))

    results = LocalExecutor(2).results(many())
    next(results)
    assert len(taken) <= LOCAL_WINDOW * 2
    assert len(list(results)) == 99


def test_a_viewer_on_whom_the_program_crashes_is_set_aside_and_played_by_the_next_command(
    population: Population, draw: Callable[[list[int], int], list[Viewer]], tmp_path: Path, traces: Path
) -> None:
    viewers = draw([1], 4)
    crashes = tmp_path / "crashes"
    crashes.touch()
    script = tmp_path / "xlink-sim"
    script.write_text(
        "#!/bin/bash\nwhile IFS=$'\\t' read -r job out; do\n"
        f'[ -e {crashes} ] && grep -q \'"seed": {viewers[1].seed},\' "$job" && kill -SEGV $$\n'
        f'{program("xlink-sim")} "$job" --out "$out"; echo $?; done\n'
    )
    script.chmod(0o755)
    recipe = Recipe(population, str(traces), False, (SP,), str(script), sha256_of(script))
    parts, who, file = Parts(tmp_path / "parts"), Viewers((1,), 4), tmp_path / "plays.parquet"

    def play_them() -> tuple[list[int], list[Failed]]:
        failed = play_missing(parts, recipe, who, LocalExecutor(2), lambda done, total: None, Pace())
        without = [(one.day, one.viewer) for one in failed]
        parts.write_plays(file, {SP.text: "sp"}, who.days, who.per_day, without)
        return [row["viewer"] for row in read_plays(file)], failed

    there, failed = play_them()
    assert there == [1, 3, 4]
    assert [(one.viewer, "ended with -11" in one.why) for one in failed] == [(2, True)]
    crashes.unlink()
    there, failed = play_them()
    assert there == [1, 2, 3, 4] and not failed


@pytest.mark.parametrize(
    ("does", "why"),
    [
        ("echo 3", "ended with 3 on the viewer .*: it said nothing"),
        ("echo 0", "ended with 0 on the viewer"),
        ("touch $out/{player,server}.jsonl; echo 'a broken word' > $out/sim.stderr; echo -6", "-6 .* a broken word"),
        ("exec sleep 60", r"did not end on the viewer .* within 0\.5 s"),
        ("echo 'no such library' >&2; exit 127", "ended with 127 .* no such library"),
    ],
)
def test_a_play_that_fails_says_how(
    population: Population,
    draw: Callable[[list[int], int], list[Viewer]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    does: str,
    why: str,
) -> None:
    if "sleep" in does:
        monkeypatch.setattr("railyard.studies.population.play.WALL_LIMIT_S", 0.5)
    script = tmp_path / "xlink-sim"
    script.write_text(f"#!/bin/bash\nwhile IFS=$'\\t' read -r job out; do {does}; done\n")
    script.chmod(0o755)
    (task,) = tasks_of(population, draw([1], 1), [SP], script)
    with batch(script) as own, pytest.raises(PlayError, match=why):
        play(task, own)


def test_small_parts_become_large_ones_with_every_play_once(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("railyard.studies.population.parts.PLAYS_A_PART", 3)
    (row,) = _rows(run_batch(Batch(recipe, 1, ((1, (0,)),))), tmp_path / "played")
    parts = Parts(tmp_path / "parts")
    rows = [row | {"identity": f"{number}", "viewer": number} for number in range(1, 9)]
    for one in rows:
        parts.add(part_of([one]), 1)
    assert sorted(pq.read_metadata(file).num_rows for file in parts.folder.glob("part-*")) == [1, 1, 3, 3]
    parts.merge()
    assert sorted(pq.read_metadata(file).num_rows for file in parts.folder.glob("part-*")) == [2, 3, 3]
    parts.write_plays(tmp_path / "plays.parquet", {SP.text: "sp"}, [1], 8, [])
    assert read_plays(tmp_path / "plays.parquet") == rows


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("home, share: 0.64", "home, share: -1", r"scenes\[0\]\.share"),
        ("fitted: fitted/population.yaml", "seed_: 1", "unknown field"),
        ("correlation: 0.1", "correlation: 2", "at most 1"),
        ("name: walking, ", "name: walking, place: {wifi: {}, lte: {}}, ", "a 'model' or a 'place'"),
        ("  - vanilla-mp", "  - mptcp", "mptcp runs in the kernel"),
        ("scenarios: [subway]}", "scenarios: [submarine]}", "the scene subway has no pair"),
        ("model: walking", "model: wading", "did you mean 'walking'"),
        ("    B: {A: 42, C: 54}", "    B: {A: 42}", "increase from B to C is missing"),
    ],
)
def test_a_mistake_in_the_file_is_told_in_one_sentence(tmp_path: Path, before: str, after: str, sentence: str) -> None:
    text = (EXPERIMENTS_DIR / "population.yaml").read_text()
    assert before in text
    file = tmp_path / "wrong.yaml"
    file.write_text(text.replace(before, after))
    with pytest.raises(UserError, match=sentence):
        population = load_population(load_yaml(file))
        Library(population, tmp_path / "traces", recorded=False)


def test_several_videos_share_a_connection_and_the_first_is_as_alone(
    population: Population, draw: Callable[[list[int], int], list[Viewer]]
) -> None:
    (viewer,) = draw([1], 1)
    several = population.model_copy(update={"video": population.video.with_videos(3)})
    with batch(program("xlink-sim")) as own:
        [alone], [session] = (
            play(tasks_of(each, [viewer], [VANILLA], program("xlink-sim"))[0], own) for each in (population, several)
        )
    assert alone["first_frames_s"] == [alone["first_frame_s"]]
    assert len(session["first_frames_s"]) == 3 and session["first_frame_s"] == alone["first_frame_s"]
    assert len(session["rct_s"]) == 3 * len(alone["rct_s"])
    assert max(session["first_frames_s"][1:]) < session["first_frame_s"], "no handshake, and windows have grown"
    assert session["play_time_left_ms"] == alone["play_time_left_ms"], "of the first video alone"
    assert session["identity"] != alone["identity"]
    events = [{"event": "video", "t": 5.0}, {"event": "first_frame", "latency_s": 0.5}, {"event": "summary", "t": 9.0}]
    assert first_frames(events) == [0.5, 4.0], "what never came counts with the time waited"


def test_a_rate_scales_one_path_of_the_places(population: Population, traces: Path) -> None:
    slower = population.with_rate("lte", 0.5)
    assert slower.name == "population-lte-0.5"
    one, other = (draw_viewers(each, Library(each, traces, recorded=False), [1], 6) for each in (population, slower))
    still = [(a, b) for a, b in zip(one, other, strict=True) if a.access]
    assert len(still) > 3
    for a, b in still:
        assert a.paths[0] == b.paths[0], "the other path is as it was"
        assert a.paths[1].mbps / 2 <= b.paths[1].mbps + 0.001 < a.paths[1].mbps, "half, or the least rate of the law"
    halved = [b for a, b in still if b.paths[1].mbps == pytest.approx(a.paths[1].mbps / 2, rel=0.01)]
    assert len(halved) >= len(still) - 1
    with pytest.raises(UserError, match="no scene draws the rate of a path 'lt'; did you mean 'lte'"):
        population.with_rate("lt", 0.5)


def test_a_rate_scales_one_path_of_generated_pairs(tmp_path: Path) -> None:
    usual = load_population(load_yaml(EXPERIMENTS_DIR / "population-slow-lte.yaml"))
    slower = usual.with_rate("lte", 0.5)
    one, other = (
        Library(each, tmp_path / each.name, recorded=False).pair(each.scenes[0], 0) for each in (usual, slower)
    )
    (wifi, lte), (same_wifi, slow_lte) = one.paths, other.paths
    assert wifi.down_sha256 == same_wifi.down_sha256, "the other path is as it was"
    assert slow_lte.mbps == pytest.approx(lte.mbps / 2, rel=0.15)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"rates": {"lte": 0}}, "--set rates.lte: Input should be greater than or equal to 0.01"),
        ({"rates": {"lte": "fast"}}, "--set rates.lte: Input should be a valid number"),
        ({"rates": {"lt": 0.5}}, "no scene draws the rate of a path 'lt'; did you mean 'lte'"),
        ({"arms": ["vanilla"]}, "the population has no arm 'vanilla'; did you mean 'vanilla-mp'"),
        ({"scale": "large"}, "--set scale: Input should be 'small', 'brief', 'default' or 'full'"),
        ({"scheduler": "tcp://127.0.0.1"}, "--set scheduler: String should match pattern"),
    ],
)
def test_a_setting_of_the_study_that_cannot_be_is_refused_in_one_sentence(
    changes: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=re.escape(sentence)):
        find_study("population").measure("small", changes | {"out": tmp_path})
