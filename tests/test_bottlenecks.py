"""Links that paths share, and others' traffic: from an experiment to what connections get."""

import asyncio
import json
import subprocess
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from conftest import run_program
from railyard.arenas.sim import ARENA, job
from railyard.base.errors import UserError
from railyard.base.paths import program
from railyard.experiment.model import load_experiment
from railyard.results.linklog.read import read_link_log
from railyard.run import record as run_record
from railyard.run.campaign import Campaign, run_campaign
from railyard.run.progress import Silent
from railyard.run.resolve import resolve
from railyard.run.runspec import RunSpec

YAML = """\
name: shared
arena: sim
pairs: [subway-1]
schemes: [vanilla-mp]
start_offset_ms: 0
player: {duration_s: 3, bitrate_bps: 2000000, chunk_bytes: 131072}
time_limit_s: 30
bottlenecks:
  core: {rate: 6mbps, delay: 5ms, queue: "droptail:packets=20", cross_profile: others.csv, cross_gaps: random}
  edge: {up_rate: 4mbps, down_rate: 30mbps}
links:
  all: {via: [edge, core]}
link_events:
  - {t_s: 2, path: core, direction: down, cross: "off"}
"""


def specs(folder: Path, text: str = YAML) -> list[RunSpec]:
    (folder / "e.yaml").write_text(text)
    (folder / "others.csv").write_text("0,3\n500,1\n1000,0\n")
    return resolve(*load_experiment(folder / "e.yaml"))


def test_an_experiment_has_bottlenecks(tmp_path: Path) -> None:
    (spec,) = specs(tmp_path)
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    run_record.write(run_dir, asyncio.run(ARENA.execute(spec, run_dir)))
    look(run_dir)


def chunk_times(run_dir: Path) -> list[float]:
    """The time from each chunk's request to its last byte, s."""
    lines = [json.loads(line) for line in (run_dir / "player.jsonl").read_text().splitlines()]
    return [line["rct_s"] for line in lines if line["event"] == "chunk_done"]


@pytest.mark.privileged
def test_mpshell_has_the_same_bottlenecks(tmp_path: Path) -> None:
    times = {}
    for arena in ("sim", "mpshell"):
        campaign = Campaign(tmp_path / arena)
        campaign.runs.mkdir(parents=True)
        run_campaign(campaign, specs(tmp_path, YAML.replace("arena: sim", f"arena: {arena}")), 1, Silent())
        (run_dir,) = campaign.runs.iterdir()
        record = json.loads((run_dir / "run.json").read_text())
        assert record["outcome"] == "complete"
        look(run_dir)
        times[arena] = chunk_times(run_dir)
    assert len(times["mpshell"]) == len(times["sim"]) > 3
    # Of six chunks, the mean: a packet that the queue loses in one arena alone moves the median by up to a fifth.
    assert fmean(times["mpshell"]) == pytest.approx(fmean(times["sim"]), rel=0.15)
    (event,) = json.loads((run_dir / "mpshell.json").read_text())["events"]
    assert event["command"] == "cross core:down off"


def look(run_dir: Path) -> None:
    """Asserts properties of this run's links that hold in every arena."""
    summary = json.loads((run_dir / "mpshell.json").read_text())
    core, edge = summary["bottlenecks"]
    assert (core["name"], core["delay_ms"], edge["name"], edge["delay_ms"]) == ("core", 5.0, "edge", None)
    into, out_of = (
        sum(path["down"][key] for path in summary["paths"]) for key in ("arrived_packets", "departed_packets")
    )
    assert edge["down"]["departed_packets"] == into >= out_of > 500, "down: core, edge, path"
    assert core["down"]["departed_packets"] == edge["down"]["arrived_packets"]
    assert edge["up"]["departed_packets"] == core["up"]["arrived_packets"]
    # 2 Mbps on average until 2 s, in packets of 1504 bytes.
    assert core["down"]["cross_packets"] == pytest.approx(2 * 2e6 / 8 / 1504, rel=0.2)
    assert core["up"]["cross_packets"] > core["down"]["cross_packets"]
    log = read_link_log(run_dir / "links" / "core.down.log")
    assert len(log.departure_ms) == core["down"]["departed_packets"]
    assert int(log.departure_bytes.sum()) == core["down"]["departed_bytes"], "no others' packets in it"


def test_bottlenecks_are_part_of_what_a_run_is(tmp_path: Path) -> None:
    (spec,) = specs(tmp_path)
    (bare,) = specs(tmp_path, YAML.replace("  all: {via: [edge, core]}\n", "  all: {}\n"))
    named = job(spec)
    assert [path["via"] for path in named["paths"]] == ["edge:core"] * 2
    assert named["bottlenecks"][0]["cross_profile"] == str(tmp_path / "others.csv")
    assert spec.identity() != bare.identity()
    (tmp_path / "others.csv").write_text("0,5\n")
    (changed,) = resolve(*load_experiment(tmp_path / "e.yaml"))
    assert changed.identity() != spec.identity()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("via: [edge, core]", "via: [egde]", "there is no bottleneck 'egde'"),
        ("rate: 6mbps, ", "", "a bottleneck needs a rate"),
        ("rate: 6mbps", "rate: fast", "it takes a rate such as 20mbps"),
        ("delay: 5ms", "nat: timeout=30000", "a bottleneck has no 'nat'"),
        ("  core:", "  wifi:", "bottlenecks.wifi: a path of"),
        ("path: core", "path: cord", r"link_events\[0\].path: .* no path 'cord'"),
        ('cross: "off"', "interface: down", "an interface has both directions"),
        ('direction: down, cross: "off"', "nat: rebind", "'core' is a bottleneck, which has no NAT"),
        ('cross: "off"', "cross: much", "it takes a rate such as 2mbps"),
        (', queue: "droptail:packets=20"', "", r"e.yaml:3: .*others' traffic \('cross'\) on 'core' needs a queue"),
        (
            "{via: [edge, core]}",
            "{via: [edge, core], up_queue: infinite, cross: 1mbps}",
            "on 'wifi' needs a queue with a limit",
        ),
        (
            'path: core, direction: down, cross: "off"',
            "path: edge, cross: 1mbps",
            "on 'edge' needs a queue with a limit",
        ),
    ],
)
def test_mistakes_are_told(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        specs(tmp_path, YAML.replace(old, new))


def play(folder: Path, **members: Any) -> dict[str, Any]:
    """A job in which two players, each on links of its own, share `core`; the summary, and bytes of each player."""
    paths = [{"name": name, "rate": "50mbps", "delay_ms": 15, "via": "core"} for name in ("wifi", "lte")]
    core = {"name": "core", "rate": "12mbps", "delay_ms": 5, "queue": "droptail:packets=40"}
    video = {"video_bytes": 1 << 30, "bitrate_bps": 100_000_000, "chunk_bytes": 131_072, "concurrency": 4}
    document: dict[str, Any] = {"scheme": "sp", "time_limit_s": 15, "player": video, "paths": paths, "link_logs": False}
    document |= {"bottlenecks": [core], "players": [{}, {"own_links": True}], "null_crypto": True} | members
    (folder / "job.json").write_text(json.dumps(document))
    subprocess.run([program("xlink-sim"), folder / "job.json", "--out", folder / "out"], check=False, timeout=120)
    summary: dict[str, Any] = json.loads((folder / "out" / "mpshell.json").read_text())
    return summary


def down_bytes(summary: dict[str, Any], player: int) -> int:
    return sum(path["down"]["departed_bytes"] for path in summary["paths"] if path.get("player", 1) == player)


def test_two_viewers_share_a_bottleneck(tmp_path: Path) -> None:
    summary = play(tmp_path)
    first, second = down_bytes(summary, 1), down_bytes(summary, 2)
    assert 0.6 < first / second < 1.67, "two Cubic connections alike"
    (core,) = summary["bottlenecks"]
    assert core["down"]["departed_bytes"] * 8 / 15 == pytest.approx(12e6, rel=0.05), "together they fill it"
    assert core["down"]["queue_drops"] > 0


def test_jobs_are_refused_in_a_sentence(tmp_path: Path) -> None:
    core = {"name": "core", "rate": "12mbps"}
    for members, words in (
        ({"bottlenecks": [core, core]}, 'bottlenecks[1].name "core" is that of bottlenecks[0] too'),
        ({"bottlenecks": [core | {"name": "wifi"}]}, 'name "wifi" is that of paths[0] too'),
        ({"bottlenecks": [core | {"via": "core"}]}, "uplink: a bottleneck has no nat, no wifi, no paging and no via"),
        ({"bottlenecks": []}, "bottlenecks takes an array of 1 to 16 objects"),
        ({"bottlenecks": [core | {"cross": "1mbps"}]}, "others' traffic needs a queue with a limit"),
        ({"bottlenecks": [core | {"name": "other"}]}, 'paths[0].via: "core" is not the name of a bottleneck'),
        ({"scheduler": "clairvoyant", "scheme": "xlink"}, "the scheduler knows what a path's link will do"),
    ):
        paths = [{"name": name, "rate": "9mbps", "delay_ms": 1, "via": "core"} for name in ("wifi", "lte")]
        video = {"video_bytes": 1000, "bitrate_bps": 80_000, "chunk_bytes": 1000}
        document = {"scheme": "sp", "time_limit_s": 5, "player": video, "paths": paths, "bottlenecks": [core]} | members
        (tmp_path / "job.json").write_text(json.dumps(document))
        command = [str(program("xlink-sim")), str(tmp_path / "job.json"), "--out", str(tmp_path / "out")]
        done = run_program(command, timeout=60)
        assert done.returncode == 2
        assert words in done.stderr
