"""`railyard traces pair`: a pair of two single recordings is marked as recorded separately."""

from pathlib import Path

import pytest

from railyard.traces.index import MADE_OF_SINGLES, read_index
from railyard.traces.recorded import COLUMNS, read_recorded
from railyard.traces.trace import read_trace
from trace_files import railyard_traces

HEADER = (*COLUMNS, "pair_kind", "kind", "resolution_ms")


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    (tmp_path / "bus.down").write_text("".join(f"{ms}\n" for ms in range(10, 5001, 10)))
    (tmp_path / "bus.up").write_text("".join(f"{ms}\n" for ms in range(50, 5001, 50)))
    (tmp_path / "street.down").write_text("".join(f"{ms}\n" for ms in range(20, 8001, 20)))
    rows = (
        ("bus.down", "bus", "LTE", "down", "recorder A", "CC0", "", "single", "saturated-udp", "1"),
        ("street.down", "driving", "5G NSA", "down", "recorder B", "GPL-3.0", "", "single", "tcp-goodput", "1000"),
    )
    (tmp_path / "INDEX.csv").write_text("".join(",".join(row) + "\n" for row in (HEADER, *rows)))
    return tmp_path


def test_a_pair_of_two_singles_says_so_and_loops_as_one(recordings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = recordings / "lib"
    both = ("pair", recordings / "bus.down", recordings / "street.down", "--name", "mixed", "--out", library)
    code, out, err = railyard_traces(*both, "--second-start", "1")
    assert code == 0, err
    assert MADE_OF_SINGLES in out
    assert "street.down: its last 2.000 s of 7.000 s are left out, so that both loop together; --no-cut keeps" in out
    (pair,) = read_index(library / "index.yaml")
    assert (pair.recorded, pair.scenario, pair.licence) == ("separately", "bus; driving", "CC0; GPL-3.0")
    assert pair.source == "recorder A; recorder B"
    lte, nr = pair.paths
    assert (lte.technology, nr.technology) == ("lte", "5g-nsa")
    assert read_trace(lte.downlink).period_ms == read_trace(nr.downlink).period_ms == 5000
    assert read_trace(lte.downlink).sha256 == read_trace(recordings / "bus.down").sha256
    assert read_trace(nr.downlink).opportunities_ms[:2].tolist() == [0, 20], "from 1 s on"
    assert lte.uplink != lte.downlink and nr.uplink == nr.downlink
    assert [(path.kind, path.resolution_ms) for path in pair.paths] == [("saturated-udp", 1), ("tcp-goodput", 1000)]
    monkeypatch.setenv("RAILYARD_TRACE_PATH", str(library))
    assert "not recorded together" in railyard_traces("stats", "mixed")[1]
    assert "(two single recordings)" in railyard_traces("list")[1]


def test_a_recording_beside_a_constant_link_keeps_its_length(recordings: Path) -> None:
    library = recordings / "lib"
    (recordings / "constant.down").write_text("1\n")
    both = ("pair", recordings / "constant.down", recordings / "street.down", "--technologies", "wifi,5g-nsa")
    words = ("--scenario", "driving", "--licence", "CC0-1.0", "--source", "test")
    code, _, err = railyard_traces(*both, *words, "--name", "mixed", "--out", library)
    assert code == 0, err
    (pair,) = read_index(library / "index.yaml")
    assert [read_trace(path.downlink).period_ms for path in pair.paths] == [1, 8000]


def test_lengths_are_kept_if_asked_for(recordings: Path) -> None:
    library = recordings / "lib"
    both = ("pair", recordings / "bus.down", recordings / "street.down", "--name", "mixed", "--out", library)
    code, out, _ = railyard_traces(*both, "--no-cut")
    assert code == 0 and "left out" not in out
    (pair,) = read_index(library / "index.yaml")
    assert [read_trace(path.downlink).period_ms for path in pair.paths] == [5000, 8000]


def test_what_nobody_says_of_a_recording_must_be_given(recordings: Path) -> None:
    (recordings / "INDEX.csv").unlink()
    both: list[str | Path] = [
        "pair",
        recordings / "bus.down",
        recordings / "street.down",
        "--name",
        "mixed",
        "--out",
        recordings / "lib",
    ]
    for more, said in (
        ([], "add --technologies FIRST,SECOND"),
        (["--technologies", "lte,lte"], "add --scenario TEXT"),
        (["--scenario", "bus"], "add --licence TEXT"),
        (["--licence", "CC0"], "add --source TEXT"),
    ):
        both += more
        code, _, err = railyard_traces(*both)
        assert (code, said in err) == (2, True), err
    code, _, err = railyard_traces(*both, "--technologies", "lte,6g")
    assert (code, "such as wifi,lte, not 'lte,6g'" in err) == (2, True), err
    assert not (recordings / "lib").exists()
    code, _, err = railyard_traces(*both, "--source", "mine", "--first-start", "9")
    assert (code, "nothing is left from 9 s on" in err) == (2, True), err
    assert railyard_traces(*both, "--source", "mine")[0] == 0
    assert [path.name for path in read_index(recordings / "lib" / "index.yaml")[0].paths] == ["lte-1", "lte-2"]


def test_kind_and_resolution_of_each_recording_are_taken_from_options(recordings: Path) -> None:
    both = ("pair", recordings / "bus.down", recordings / "street.down", "--name", "p", "--out", recordings / "lib")
    for option, text, said in (
        ("--kinds", "tcp", "--kinds takes two of saturated-udp, saturated-tcp, tcp-goodput, generated, restored"),
        ("--resolutions", "1000", "--resolutions takes two numbers of ms above 0, such as 1000,1, not '1000'"),
        ("--resolutions", "1000,-1", "not '1000,-1'"),
        ("--resolutions", "nan,1", "not 'nan,1'"),
    ):
        code, _, err = railyard_traces(*both, option, text)
        assert (code, said in err) == (2, True), err
    assert railyard_traces(*both, "--kinds", "tcp-goodput,saturated-udp", "--resolutions", "1000,1")[0] == 0
    (pair,) = read_index(recordings / "lib" / "index.yaml")
    said_of_both = [(path.kind, path.resolution_ms) for path in pair.paths]
    assert said_of_both == [("tcp-goodput", 1000), ("saturated-udp", 1)]


def test_a_recording_that_is_missing_or_given_twice_is_said_so(recordings: Path) -> None:
    for first, second, said in (
        ("none.down", "street.down", "none.down: cannot read the trace: no such file or directory"),
        ("bus.down", "bus.down", "both paths would be the same recording"),
    ):
        library = recordings / "lib"
        code, _, err = railyard_traces("pair", recordings / first, recordings / second, "--name", "m", "--out", library)
        assert (code, said in err) == (2, True), err
    assert not (recordings / "lib").exists()


@pytest.mark.parametrize(
    ("kind", "recorded"),
    [("simultaneous", "together"), ("same system, not simultaneous", "separately"), ("", None)],
)
def test_a_collection_tells_how_its_pairs_were_recorded(recordings: Path, kind: str, recorded: str | None) -> None:
    (recordings / "x_b.down").write_text("10\n")
    (recordings / "x_s.down").write_text("10\n")
    rows = (
        ("x_b.down", "bus", "LTE", "down", "a", "b", "x_s.down", f'"{kind}"'),
        ("x_s.down", "bus", "5G", "down", "a", "b", "x_b.down", f'"{kind}"'),
    )
    (recordings / "INDEX.csv").write_text("".join(",".join(row) + "\n" for row in (HEADER, *rows)))
    (pair,) = read_recorded(recordings / "INDEX.csv")
    assert pair.recorded == recorded
    assert bool(pair.caveat) == (recorded == "separately")
