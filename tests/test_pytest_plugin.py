"""The pytest fixture: runs in virtual time inside of a project's own tests."""

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from conftest import run_program
from railyard.base.errors import UserError
from railyard.gate.testing import Railyard

# What the author of a scheduler writes; `{limit}` is what the second test allows.
WRITTEN_TESTS = """\
def test_the_video_never_stalls(railyard):
    r = railyard.run(scheme="xlink", pair="driving-nsa-1", seed=3, bitrate_bps=500_000, duration_s=4)
    assert r.outcome == "complete"
    assert r.rebuffer_rate == 0
    assert r.directory.is_relative_to(railyard.run(scheme="sp", pair="hsr-1", duration_s=2).directory.parent)


def test_the_tail_is_short(railyard):
    assert railyard.run(scheme="xlink", pair="subway-1", duration_s=4).rct_p99 < {limit}
"""


def pytest_of(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_scheduler.py").write_text(text)
    return run_program(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_scheduler.py"], cwd=folder, timeout=120
    )


def test_a_project_that_has_the_package_has_the_fixture(tmp_path: Path) -> None:
    assert "railyard" in entry_points(group="pytest11").names
    done = pytest_of(tmp_path, WRITTEN_TESTS.format(limit=60))
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_an_assertion_that_does_not_hold_fails(tmp_path: Path) -> None:
    done = pytest_of(tmp_path, WRITTEN_TESTS.format(limit=0.001))
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout


def test_a_result_has_the_figures_of_the_run(railyard: Railyard, tmp_path: Path) -> None:
    result = railyard.run(scheme="xlink", pair="subway-1", seed=2, duration_s=5, chunk_bytes=131_072)
    assert result.directory.is_relative_to(tmp_path)
    assert (result.directory / "player.jsonl").is_file() and list((result.directory / "qlog").glob("*.sqlog"))
    assert len(result.rct) == len(result.chunks) == -(-5 * 4_000_000 // 8 // 131_072)
    assert min(result.rct) <= result.rct_median <= result.rct_p99 <= result.rct_quantile(1.0) == max(result.rct)
    assert result.first_frame is not None and result.first_frame > 0.104, "not before two round trips"
    assert result.rebuffer_rate >= 0 and result.redundancy > 0
    assert all(0 < share <= 1 for share in result.efficiency)
    assert min(result.down_bytes.values()) > 0, "both paths were used"


def test_the_same_run_twice_gives_the_same_figures_and_another_seed_does_not(railyard: Railyard) -> None:
    first, again, other = (railyard.run("vanilla-mp", "hsr-1", seed=seed, duration_s=3) for seed in (4, 4, 5))
    assert first.directory != again.directory
    assert first.rct == again.rct != other.rct


def test_settings_reach_the_run(railyard: Railyard) -> None:
    settings = {"scheme": "sp:lte", "pair": "subway-1", "start_offset_ms": 1000, "duration_s": 2}
    single = railyard.run(**settings, chunk_bytes=65_536, qlog=False, link_logs=False)  # type: ignore[arg-type]
    assert single.down_bytes["wifi"] == 0 < single.down_bytes["lte"]
    assert single.run.config["start_offset_ms"] == 1000
    assert not list((single.directory / "qlog").glob("*")) and not list((single.directory / "links").glob("*"))
    eager = {"t_th1_ms": 600_000, "t_th2_ms": 600_000, "scheme": "xlink", "pair": "subway-1", "duration_s": 5}
    never = eager | {"reinjection": "none"}
    assert railyard.run(**eager).redundancy > railyard.run(**never).redundancy == 0  # type: ignore[arg-type]


def test_a_stall_is_seen(railyard: Railyard) -> None:
    starved = railyard.run("sp", "subway-1", seed=1, bitrate_bps=40_000_000, duration_s=5, time_limit_s=15)
    assert starved.rebuffer_rate > 0
    assert starved.outcome == "time_limit"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"bitrat_bps": 1}, "there is no setting 'bitrat_bps'; did you mean 'bitrate_bps'?"),
        ({"duration_s": -1}, "duration_s"),
        ({"pair": "subway-11"}, "did you mean 'subway-1'?"),
        ({"scheme": "xlnk"}, "did you mean 'xlink'?"),
        ({"scheme": "mptcp"}, "--arena kernel or mpshell"),
    ],
)
def test_a_mistake_is_one_sentence(railyard: Railyard, settings: dict[str, object], words: str) -> None:
    with pytest.raises(UserError) as caught:
        railyard.run(**({"scheme": "xlink", "pair": "subway-1"} | settings))  # type: ignore[arg-type]
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
