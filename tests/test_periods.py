"""Warnings name traces of unequal length or shorter than a run, and how to get a missing pair."""

from pathlib import Path

import pytest

from railyard.base.errors import UserError
from railyard.base.paths import EXPERIMENTS_DIR
from railyard.experiment.model import load_experiment
from railyard.run.resolve import look_up, resolve, warnings
from railyard.traces.fetch import MANIFEST, read_manifest
from railyard.traces.library import find_pair
from railyard.traces.periods import told_of_runs, unequal
from railyard.traces.trace import TraceError
from trace_files import railyard_traces

INDEX = """\
schema: 1
pairs:
- name: odd-lengths
  scenario: test
  licence: CC0-1.0
  source: test
  paths:
  - {name: wifi, technology: wifi, uplink: a.down, downlink: a.down, base_rtt_ms: 30, queue: infinite}
  - {name: lte, technology: lte, uplink: b.down, downlink: b.down, base_rtt_ms: 70, queue: infinite}
"""
EXPERIMENT = """\
name: odd
arena: sim
pairs: [odd-lengths]
schemes: [sp]
seeds: 1
start_offset_ms: 0
player: {duration_s: %s}
time_limit_s: %s
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "a.down").write_text("".join(f"{ms}\n" for ms in range(10, 20_001, 10)))
    (tmp_path / "b.down").write_text("".join(f"{ms}\n" for ms in range(10, 24_001, 10)))
    (tmp_path / "index.yaml").write_text(INDEX)
    monkeypatch.setenv("RAILYARD_TRACE_PATH", str(tmp_path))
    return tmp_path


def told(library: Path, duration_s: float, time_limit_s: float) -> list[str]:
    (library / "odd.yaml").write_text(EXPERIMENT % (duration_s, time_limit_s))
    return warnings(resolve(*load_experiment(library / "odd.yaml")))


def test_runs_that_reach_the_end_of_unequal_traces_are_warned_of(library: Path) -> None:
    assert told(library, 5, 19) == []
    (warning,) = told(library, 5, 21)
    assert warning.startswith(
        "odd-lengths: Its traces have unequal periods (wifi up 20 s, wifi down 20 s, lte up 24 s,"
    )
    assert "convert --duration" in warning
    (warning,) = told(library, 22, 40)
    assert "A run of 22 s or more is longer than a trace (wifi up 20 s, wifi down 20 s), which repeats" in warning
    assert "unequal" in warning
    assert "A run of 20 s or more is longer" in told(library, 20, 20)[0], "the start-up comes on top"


def test_a_warning_does_not_change_the_identity_of_a_run(library: Path) -> None:
    (library / "odd.yaml").write_text(EXPERIMENT % (5, 21))
    spec = resolve(*load_experiment(library / "odd.yaml"))[0]
    assert spec.pair_caveat
    assert spec.identity() == spec.model_copy(update={"pair_caveat": ""}).identity()


def test_equal_periods_and_constant_links_are_not_warned_of() -> None:
    assert unequal({"a": 20_000, "b": 20_050}) == ""
    assert unequal({"a": 1, "b": 20_000}) == ""
    assert told_of_runs({"a": 1, "b": 2}, 60_000, 1e6) == []
    assert told_of_runs({"a": 20_000, "b": 30_000}, 10_000, 20_000) == []
    assert len(told_of_runs({"a": 20_000, "b": 30_000}, 25_000, 20_001)) == 2


def test_stats_and_validate_tell_of_unequal_periods(library: Path) -> None:
    for arguments in (["stats", "odd-lengths"], ["validate", str(library / "index.yaml")]):
        code, out, _ = railyard_traces(*arguments)
        assert code == 0
        assert "cut all to 20 s" in out


def test_a_recording_that_is_not_at_hand_is_told_where_to_get(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAILYARD_TRACE_PATH", raising=False)
    with pytest.raises(TraceError) as error:
        find_pair("subway_nyc_b")
    assert "did you mean" not in str(error.value)
    assert "add the folder of its library to RAILYARD_TRACE_PATH; `railyard traces fetch` lists" in str(error.value)
    with pytest.raises(TraceError, match="did you mean 'subway-6'"):
        find_pair("subwy-6")
    for source in read_manifest(MANIFEST).sources:
        for pair in source.pairs[-1:]:
            with pytest.raises(TraceError, match=rf"get it with `railyard traces fetch {source.name} --accept-licence"):
                find_pair(pair.name)


def test_the_evaluation_without_its_recordings_tells_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAILYARD_TRACE_PATH", raising=False)
    file = EXPERIMENTS_DIR / "evaluation.yaml"
    experiment, document = load_experiment(file)
    with pytest.raises(UserError) as error:
        look_up(experiment.pairs[0], document, ("pairs", 0))
    message = str(error.value)
    assert message.startswith(f"{file}:8: pairs[0]: there is no trace pair 'subway_nyc_a' on the search path; ")
    assert "get it with `railyard traces fetch nyc-subway --accept-licence --out DIR`" in message
    assert "RAILYARD_TRACE_PATH" in message
    assert "did you mean" not in message
