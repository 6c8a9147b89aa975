"""Light traces: folders of CellReplay and LeoReplayer become pairs, which the simulator and mpshell read."""

from pathlib import Path

import pytest

from conftest import good, run_program
from in_process import railyard
from railyard.base.paths import programs_dir
from railyard.results.oracle import paths_of_run
from railyard.results.records import load_campaign
from railyard.traces.index import read_index
from railyard.traces.light import read_light_trace, read_size_latency
from railyard.traces.trace import TraceError
from trace_files import railyard_traces, write

LIGHT = "0 40 0 0 3 3 9\n1000 80 0 5\n2000 40 0\n"
WORDS = ("--scenario", "driving", "--licence", "CC0-1.0", "--source", "test", "--technologies", "lte,wifi")


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    for way in ("up", "down"):
        write(tmp_path / f"cell/{way}-heavy-pdo", "".join(f"{ms}\n" for ms in range(10, 5001, 10)))
        write(tmp_path / f"cell/{way}-delay-light-pdo", LIGHT)
    write(tmp_path / "cell/latency-offset-up", "100 -1.5\n200 0\n")
    write(tmp_path / "leo/bw_1.txt", "".join(f"{ms}\n" for ms in range(1, 4001)))
    write(tmp_path / "leo/delay_1.txt", "12\n16.5\n14\n")
    return tmp_path


def paired(recordings: Path, *folders: str) -> tuple[int, str, str]:
    files = [str(recordings / folder) for folder in folders]
    return railyard_traces("pair", *files, *WORDS, "--name", "p", "--out", str(recordings / "lib"))


def test_folders_of_both_emulators_become_a_pair(recordings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, err = paired(recordings, "cell", "leo")
    assert code == 0, err
    (pair,) = read_index(recordings / "lib/index.yaml")
    cell, leo = pair.paths
    assert sorted(cell.delay_traces) == ["down_light_trace", "up_light_trace", "up_size_latency"]
    assert cell.delay_traces["down_light_trace"].read_text() == LIGHT
    assert cell.settings["opportunity_bytes"] == 1400
    assert leo.delay_traces["delay_trace"].read_text() == "0,12.000\n10,16.500\n20,14.000\n30,12.000\n"
    assert leo.uplink == leo.downlink and cell.uplink != cell.downlink
    monkeypatch.setenv("RAILYARD_TRACE_PATH", str(recordings / "lib"))
    stats = railyard_traces("stats", "p")[1]
    assert "3 rows in 2 s; one-way delay p50 40 ms, at most 80 ms; trains of 2 packets (p50) in 5 ms (p50)" in stats
    assert railyard_traces("validate", str(recordings / "lib/index.yaml"))[0] == 0
    write(cell.delay_traces["up_light_trace"], "0 40 0\n0 x\n")
    code, out, err = railyard_traces("validate", str(recordings / "lib/index.yaml"))
    assert (code, ":2: '0 x' is no 'ms delay_ms offset_ms ...'" in (out + err).replace("\n", "")) == (2, True)


def test_a_folder_that_is_neither_is_refused(recordings: Path) -> None:
    (recordings / "cell/up-heavy-pdo").unlink()
    code, _, err = paired(recordings, "cell", "leo")
    assert (code, "this is no folder of CellReplay" in err) == (2, True)
    assert not (recordings / "lib").exists()


def test_a_run_has_the_files_their_hashes_and_no_oracle(recordings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert paired(recordings, "cell", "leo")[0] == 0
    experiment = write(
        recordings / "e.yaml",
        "name: e\narena: sim\npairs: [p]\nschemes: [{scheme: sp, path: lte}]\nlinks: {lte: {light_gap_ms: 30}}\n"
        "player: {bitrate_bps: 200000, duration_s: 2, chunk_bytes: 25000, first_frame_bytes: 5000}\n",
    )
    monkeypatch.setenv("RAILYARD_TRACE_PATH", str(recordings / "lib"))
    out = recordings / "out"
    good(railyard("run", str(experiment), "--out", str(out), "--qlog", "none"))
    (run,) = load_campaign(out)[1]
    assert set(run.config["paths"][0]["delay_traces_sha256"]) == {
        "down_light_trace", "up_light_trace", "up_size_latency"
    }  # fmt: skip
    assert run.config["paths"][0]["settings"]["light_gap_ms"] == 30
    assert paths_of_run(run.config) is None
    assert run.handshake_s is not None and 0.07 < run.handshake_s < 0.5, "delays of 40 ms, and a wake-up"


def test_mpshell_takes_the_same_settings(recordings: Path) -> None:
    missing = recordings / "none"
    path = f"lte:up=12mbps,down=12mbps,light-trace={missing}"
    command = [str(programs_dir() / "mpshell"), "--path", path, "--", "true"]
    done = run_program(command)
    assert (done.returncode, f"light-trace: {missing}: cannot read" in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("text", ["", "0\n", "0 -1\n", "0 1 0  2\n", "0 1 x\n", "5 1\n4 1\n", "0 3600001\n", "0 1\n\n"])
def test_a_wrong_light_trace_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(TraceError, match=rf"light:{max(1, text.count(chr(10)))}: .*(correct|sort)"):
        read_light_trace(write(tmp_path / "light", text))


@pytest.mark.parametrize("text", ["", "100\n", "200 1\n", "100 1\n300 1\n", "100 --1\n"])
def test_wrong_latencies_of_sizes_are_refused_with_their_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(TraceError, match=rf"sizes:{max(1, text.count(chr(10)))}: .*sizes are 100, 200, 300"):
        read_size_latency(write(tmp_path / "sizes", text))
