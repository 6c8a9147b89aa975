"""The display of a play under way, which follows the growing files."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from in_process import railyard
from quic_programs import Server, player_command, wait_for_event
from railyard.results.records import load_run
from railyard.run.live import BIN_S, Picture, PlayNow
from railyard.run.progress import PARTIAL
from railyard.run.runspec import RunSpec

YAML = """\
name: unit
arena: sim
pairs: [hsr-1]
schemes: [vanilla-mp]
start_offset_ms: worst_of_primary
player: {duration_s: 8, bitrate_bps: 1500000, chunk_bytes: 65536}
time_limit_s: 20
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a real run that stalls."""
    folder = tmp_path_factory.mktemp("live")
    (folder / "unit.yaml").write_text(YAML)
    assert railyard("run", str(folder / "unit.yaml"), "--out", str(folder / "out")).returncode == 0
    return next((folder / "out" / "runs").iterdir())


@pytest.fixture
def spec(recorded: Path) -> RunSpec:
    config = load_run(recorded).config
    return RunSpec.model_validate(config)


def copier(recorded: Path, folder: Path, name: str) -> Callable[[float], None]:
    """Makes the files of a run grow to a share of their final size, which may end within a line."""
    pairs = [(recorded / "player.jsonl", folder / name)]
    pairs += [(file, folder / "links" / file.name) for file in (recorded / "links").glob("*.log")]

    def grow(share: float) -> None:
        for source, target in pairs:
            target.parent.mkdir(parents=True, exist_ok=True)
            data = source.read_bytes()
            target.write_bytes(data[: round(share * len(data))])

    return grow


@pytest.mark.parametrize("name", ["player.jsonl", ".player/player.jsonl"])
def test_a_play_is_followed_from_its_files_as_they_grow(
    recorded: Path, spec: RunSpec, tmp_path: Path, name: str
) -> None:
    grow, play, times = copier(recorded, tmp_path, name), PlayNow(spec, tmp_path), []
    play.look()
    assert play.state == "waiting for the first frame", "there is no file yet"
    for share in (0.1, 0.3, 0.55, 0.8, 1.0):
        grow(share)
        play.look()
        times.append(play.t_s)
    assert times == sorted(set(times))
    run = load_run(recorded)
    assert run.rebuffer_time_s > 1, "the play is one that stalls"
    assert play.stalled_now_s == pytest.approx(run.rebuffer_time_s, abs=0.01)
    assert (play.stalls, play.first_frame_s) == (run.rebuffer_count, run.first_frame_s)
    for path in run.paths:
        delivered = sum(play.links[path.name].delivered.values()) * BIN_S * 1e6 / 8
        assert delivered == pytest.approx(path.down_bytes, rel=0.01)
        assert 0 < delivered <= sum(play.links[path.name].offered.values()) * BIN_S * 1e6 / 8


def test_the_picture_shows_links_buffer_and_stalls_and_keeps_what_ended(
    recorded: Path, spec: RunSpec, tmp_path: Path
) -> None:
    picture, console = Picture(tmp_path, PARTIAL), Console(width=100)
    copier(recorded, tmp_path / f"{PARTIAL}{spec.run_id}", "player.jsonl")(0.6)
    picture.begin(spec)

    def lines() -> list[str]:
        with console.capture() as caught:
            console.print(picture)
        return caught.get().splitlines()

    head, *links = lines()
    assert head.startswith("hsr-1 vanilla-mp ") and "buffer" in head and "first frame" in head and "stalled" in head
    assert [line.split()[0] for line in links] == [path.name for path in load_run(recorded).paths]
    assert all("Mbps" in line for line in links) and any(set("▁▂▃▄▅▆▇█") & set(line) for line in links)
    picture.end(spec, void=False)
    assert lines() == [f"stalled on hsr-1: vanilla-mp {stalled_at(recorded, spec, tmp_path):.1f} s"]


def stalled_at(recorded: Path, spec: RunSpec, tmp_path: Path) -> float:
    play = PlayNow(spec, tmp_path / f"{PARTIAL}{spec.run_id}")
    play.look()
    return play.stalled_now_s


def test_the_player_writes_what_happens_while_it_plays(tmp_path: Path) -> None:
    """It does not wait until its buffer of four kilobytes is full."""
    server = Server(tmp_path)
    try:
        options = ("--scheme", "sp", "--insecure", "--path", "a:127.0.0.1:wifi", "--bitrate", "100000")
        command = player_command(tmp_path, server.port, *options)
        with subprocess.Popen(command, stderr=subprocess.PIPE) as player:
            try:
                wait_for_event(tmp_path / "player.jsonl", "first_frame")
                assert (tmp_path / "player.jsonl").read_bytes().endswith(b"\n"), "a full buffer ends within a line"
                assert player.poll() is None
            finally:
                player.kill()
    finally:
        server.stop()
