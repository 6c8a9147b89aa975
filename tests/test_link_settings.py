"""Settings of links in experiments and indexes: checked with file and line, given to both arenas, and effective."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from conftest import FakeRun
from in_process import railyard
from railyard.arenas.sim import ARENA, job
from railyard.base.errors import UserError
from railyard.experiment.model import load_experiment
from railyard.report import write_report
from railyard.results.oracle import paths_of_run
from railyard.results.records import load_campaign, load_run
from railyard.run import record as run_record
from railyard.run.resolve import resolve
from railyard.run.runspec import RunSpec, mpshell_command, player_command, server_command
from railyard.traces.index import read_index
from railyard.traces.settings import Value, layered, mpshell_keys

YAML = """\
name: links
arena: sim
pairs: [subway-1]
schemes: [xlink]
start_offset_ms: 0
player: {duration_s: 4, bitrate_bps: 2000000, chunk_bytes: 131072, verify: true}
time_limit_s: 60
links:
  all: {loss: 0.01, down_queue: fq_codel}
  wifi: {delay_trace: wifi.delay, jitter_ms: 1.5, duplicate: 0.02}
  lte: {loss: "ge:p=0.01:r=0.5", onoff: 1000/50, up_delay_ms: 60, once: true}
link_events:
  - {t_s: 1, path: wifi, state: down}
  - {t_s: 2, path: wifi, direction: both, state: up, loss: 0}
"""


def specs(folder: Path, text: str = YAML) -> list[RunSpec]:
    (folder / "e.yaml").write_text(text)
    (folder / "wifi.delay").write_text("0,20\n5000,8.5\n10000,0\n")
    return resolve(*load_experiment(folder / "e.yaml"))


def test_cellular_paths_have_settings_of_their_own(tmp_path: Path) -> None:
    """They override those of all paths and are overridden by those of one path, on each path with a radio that
    sleeps."""
    cellular = "cellular: {loss: 0.02, up_grants: 'sr=10:grant=8'}"
    links = f"links:\n  {cellular}\n  all: {{loss: 0.01, mtu: 1400}}\n  lte: {{loss: 0.03}}"
    found = {}
    for pair in ("subway-1", "hsr-1"):
        head = YAML.split("links:", maxsplit=1)[0].replace("subway-1", pair)
        (spec,) = specs(tmp_path, f"{head}{links}\n")
        for path in spec.paths:
            found[pair, path.name] = (path.settings["loss"], path.settings["mtu"], path.settings.get("up_grants"))
            assert ("up_radio" in path.settings) is ("up_grants" in path.settings)
    assert found == {
        ("subway-1", "wifi"): (0.01, 1400, None),
        ("subway-1", "lte"): (0.03, 1400, "sr=10:grant=8"),
        ("hsr-1", "wifi"): (0.02, 1400, "sr=10:grant=8"),
        ("hsr-1", "lte"): (0.03, 1400, "sr=10:grant=8"),
    }


def test_settings_reach_the_links(tmp_path: Path) -> None:
    (spec,) = specs(tmp_path)
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    run_record.write(run_dir, asyncio.run(ARENA.execute(spec, run_dir)))
    run = load_run(run_dir)
    assert run.outcome == "complete"
    wifi, lte = json.loads((run_dir / "mpshell.json").read_text())["paths"]
    assert (wifi["delay_ms"], wifi["loss"], lte["loss"]) == (None, 0.01, None)
    assert lte["down"]["settings"]["onoff"] == "1000/50"
    assert wifi["up"]["duplicates"] + wifi["down"]["duplicates"] > 0
    assert wifi["up"]["off_losses"] + wifi["down"]["off_losses"] > 0, "packets were sent while the path was down"
    assert "# queue: fq_codel\n" in (run_dir / "links" / "wifi.down.log").read_text()
    for direction in (wifi["up"], wifi["down"], lte["up"], lte["down"]):
        lost = sum(direction.get(key, 0) for key in ("queue_drops", "random_losses", "off_losses", "oversize_drops"))
        inside = direction["inside_packets"] + direction["departed_packets"]
        assert direction["arrived_packets"] + direction.get("duplicates", 0) == lost + inside
    config: dict[str, Any] = json.loads((run_dir / "run.json").read_text())["config"]
    paths = paths_of_run(config)
    assert paths is not None
    assert [path.delay_us for path in paths] == [0, 60000], "the least delay: a delay trace's, an own one"
    assert [path.data_delay_us for path in paths] == [0, 37000]


def test_both_arenas_get_the_same_settings(tmp_path: Path) -> None:
    (spec,) = specs(tmp_path)
    wifi, lte = job(spec)["paths"]
    command = mpshell_command(spec, Path("mpshell"), tmp_path, ["true"])
    options = [command[place + 1] for place, word in enumerate(command) if word == "--path"]
    delay_trace = str(tmp_path / "wifi.delay")
    assert wifi["delay_trace"] == delay_trace
    assert "delay_ms" not in wifi
    assert options[0].endswith(
        f",queue=droptail:packets=100,loss=0.01,down-queue=fq_codel,jitter=1.5,duplicate=0.02,delay-trace={delay_trace}"
    )
    assert (lte["delay_ms"], lte["up_delay_ms"], lte["once"]) == (37.0, 60, True)
    assert ",delay=37,queue=" in options[1]
    assert options[1].endswith(
        "up-radio=promotion=260:tail=11576,loss=ge:p=0.01:r=0.5,down-queue=fq_codel,onoff=1000/50,up-delay=60,once=yes"
    )


def test_ends_search_for_an_mtu_that_links_have(tmp_path: Path) -> None:
    for text, asked in ((YAML, True), (YAML.replace("once: true", "mtu: 1280"), False)):
        (spec,) = specs(tmp_path, text)
        for command in (server_command(spec, Path("s"), tmp_path), player_command(spec, Path("p"), tmp_path)):
            assert ("--path-mtu-bytes" in command) == asked
    changed = spec.link_events[0].model_copy(update={"mtu": 1280})
    (spec,) = specs(tmp_path)
    command = player_command(spec.model_copy(update={"link_events": (changed,)}), Path("p"), tmp_path)
    assert "--path-mtu-bytes" not in command


def test_a_setting_for_both_directions_replaces_one_that_the_pair_has_for_one() -> None:
    pair: dict[str, Value] = {"up_radio": "promotion=160:tail=10000", "loss": 0.1, "down_queue": "codel"}
    assert layered(pair, {"radio": "off"}) == {"loss": 0.1, "down_queue": "codel", "radio": "off"}
    assert layered(pair, {"down_loss": 0.2}) == pair | {"down_loss": 0.2}


def test_settings_are_part_of_what_a_run_is_and_their_absence_is_not(tmp_path: Path) -> None:
    plain = YAML.partition("links:")[0]
    (bare,), (spec,) = specs(tmp_path, plain), specs(tmp_path)
    again = bare.model_copy(update={"paths": tuple(path.model_copy() for path in bare.paths)})
    assert again.identity() == bare.identity() != spec.identity()
    moved = spec.paths[0].model_copy(update={"delay_traces": {"delay_trace": Path("/elsewhere")}})
    assert spec.model_copy(update={"paths": (moved, spec.paths[1])}).identity() == spec.identity()
    told = spec.paths[0].model_copy(update={"kind": "restored", "resolution_ms": 500.0})
    assert told.kind != spec.paths[0].kind
    assert spec.model_copy(update={"paths": (told, spec.paths[1])}).identity() == spec.identity()
    changed = spec.paths[0].model_copy(update={"delay_traces_sha256": {"delay_trace": "0" * 64}})
    assert spec.model_copy(update={"paths": (changed, spec.paths[1])}).identity() != spec.identity()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("loss: 0.01", "loss: 1.5", ("e.yaml:9", "links.all.loss", "Probability", "1.5")),
        ("loss: 0.01", "los: 0.5", ("e.yaml:9", "links.all.los", "did you mean 'loss'?")),
        ("fq_codel", "red", ("e.yaml:9", "links.all.down_queue", "'red'")),
        ("jitter_ms: 1.5", "jitter_ms: yes", ("e.yaml:10", "links.wifi.jitter_ms", "ms from 0")),
        ("ge:p=0.01:r=0.5", "ge:p=2:r=0.5", ("e.yaml:11", "links.lte.loss", "ge:p=P:r=P")),
        ("jitter_ms: 1.5", "radio: of", ("e.yaml:10", "links.wifi.radio", "or off")),
        ("1000/50", "1000", ("e.yaml:11", "links.lte.onoff", "ON/OFF")),
        ("jitter_ms: 1.5", "cross: 5", ("e.yaml:10", "links.wifi.cross", "a rate with its unit, such as 2mbps (")),
        ("  wifi:", "  cable:", ("e.yaml:", "'cable'", "lte")),
        ("delay_trace: wifi.delay", "delay_trace: none.delay", ("e.yaml:10: links.wifi", "none.delay; files")),
        ("path: wifi, state: down", "path: wlan, state: down", ("e.yaml:", "'wlan'")),
        (", state: down", "", ("e.yaml:13", "nothing changes")),
        ("delay_trace: wifi.delay", 'delay_trace: "a\\0b"', ("e.yaml:10", "links.wifi.delay_trace", "it takes a text")),
        # What the programs refuse, and the form of the value does not show.
        ("fq_codel", "droptail:packets=0", ("e.yaml:9", "links.all.down_queue", "packets of 1 to", '"packets=0"')),
        ("1000/50", "1000/0", ("e.yaml:11", "links.lte.onoff: this takes", "of 1 to 3600000 ms, not '1000/0'")),
        ("ge:p=0.01:r=0.5", "ge:p=0.01:p=0.5", ("e.yaml:11", "links.lte.loss", "not 'ge:p=0.01:p=0.5'")),
        ("jitter_ms: 1.5", "reorder: 0.5", ("e.yaml:10", "links.wifi", "reorder needs a reorder-delay")),
        ("jitter_ms: 1.5", "queue: codel:target=0", ("e.yaml:10", "links.wifi.queue", "target of 0.001 to 3600000 ms")),
        ("t_s: 1, path: wifi", "t_s: 1, path: wifi, rate: 0.1bps", ("e.yaml:13", "link_events[0].rate", '"0.1bps"')),
        ("links:", "bottlenecks: {b: {rate: 0.1bps}}\nlinks:", ("e.yaml:8", "bottlenecks.b.rate", "from 1bps to")),
        ("verify: true", "startup_buffer_ms: 600000", ("e.yaml:6", "player: the start-up buffer", "must not exceed")),
        ("verify: true", "fps: 29.97003", ("e.yaml:6", "player.fps", "at most three decimals, not 29.97003")),
        ("[xlink]", "[sp, {scheme: xlink, t_th1_ms: 0.0001}]", ("e.yaml:4", "schemes[1].t_th1_ms", "three decimals")),
        ("[xlink]", "[{scheme: xlink, path_events: '1:remove:5g'}]", ("e.yaml:4", "schemes[0]", "names '5g'")),
        ("arena: sim", "arena: sim\nqueue: codel:target=0", ("e.yaml:3", "queue: ", "path wifi, up: queue codel")),
        ("start_offset_ms: 0", "start_offset_ms: 4294967296", ("e.yaml:5", "start_offset_ms", "at most 4294967295")),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, old: str, new: str, words: tuple[str, ...]) -> None:
    assert old in YAML
    with pytest.raises(UserError) as error:
        specs(tmp_path, YAML.replace(old, new, 1))
    for word in words:
        assert word in str(error.value), (word, str(error.value))


OVERRIDES = """\
links:
  wifi: {delay_ms: 250, down_queue: codel}
  lte: {delay_trace: wifi.delay, queue: "droptail:bytes=80000", loss: 0.02}
"""


def test_what_is_printed_of_a_link_is_what_it_had(tmp_path: Path) -> None:
    """The pair's delay and queue are not shown if the experiment overrides them."""
    specs(tmp_path, YAML.partition("links:")[0] + OVERRIDES)
    out = tmp_path / "out"
    assert railyard("run", str(tmp_path / "e.yaml"), "--out", str(out)).returncode == 0
    page = (out / "report.html").read_text()
    assert "base RTT 500 ms, queue droptail:packets=100, down_queue codel" in page
    assert "lte (lte): queue droptail:bytes=80000, loss 0.02, up_radio" in page and "delay_trace wifi.delay" in page
    (run,) = (out / "runs").iterdir()
    lines = railyard("show", str(run)).stdout.splitlines()
    rows = [line.split("│") for line in lines if "droptail" in line or "codel" in line]
    assert [(row[3].strip(), row[4].strip()) for row in rows] == [
        ("250", "codel"), ("250", "droptail:packets=100"), ("–", "droptail:bytes=80000"), ("–", "droptail:bytes=80000"),
    ]  # fmt: skip
    links = pq.read_table(out / "links.parquet", columns=["path", "direction", "delay_ms", "queue"]).to_pylist()
    assert {(row["path"], row["direction"]): (row["delay_ms"], row["queue"]) for row in links} == {
        ("wifi", "up"): (250, "droptail:packets=100"),
        ("wifi", "down"): (250, "codel"),
        ("lte", "up"): (None, "droptail:bytes=80000"),
        ("lte", "down"): (None, "droptail:bytes=80000"),
    }


def test_links_that_differ_between_schemes_are_told_of_each(make_campaign: Callable[..., Path]) -> None:
    """As in an exhibit that varies the RTT of a path."""

    def path(name: str, delay_ms: float) -> dict[str, Any]:
        traces = dict.fromkeys(("up", "down"), "/gone") | dict.fromkeys(("up_sha256", "down_sha256"), "a" * 64)
        return traces | {"name": name, "technology": name, "delay_ms": delay_ms, "queue": "infinite", "loss": 0.0}

    made = [
        FakeRun(label=f"xlink--{ms}", seed=seed, paths=[path("wifi", 10), path("lte", ms)])
        for ms in (10, 80)
        for seed in (1, 2)
    ]
    out = make_campaign(*made)
    page = write_report(*load_campaign(out), out).read_text()
    assert "wifi (wifi, primary): base RTT 20 ms, queue infinite" in page
    lte = "base RTT 20 ms, queue infinite (xlink--10); base RTT 160 ms, queue infinite (xlink--80)"
    assert f"lte (lte): {lte}" in page


INDEX = """\
schema: 1
pairs:
- name: two
  scenario: test
  licence: none
  source: by hand
  paths:
  - {name: a, technology: wifi, uplink: t, downlink: t, base_rtt_ms: 30, queue: codel,
     link: {loss: 0.1, up_delay_trace: d}}
  - {name: b, technology: lte, uplink: t, downlink: t, base_rtt_ms: 70, queue: 'pie:qdelay_ref=20'}
"""


def test_an_index_may_give_settings_too(tmp_path: Path) -> None:
    (tmp_path / "index.yaml").write_text(INDEX)
    (tmp_path / "t").write_text("1\n")
    with pytest.raises(UserError, match=r"index.yaml:9: pairs\[0\].paths\[0\].link.up_delay_trace: there is no trace"):
        read_index(tmp_path / "index.yaml")
    (tmp_path / "d").write_text("0,5\n")
    (pair,) = read_index(tmp_path / "index.yaml")
    first = pair.paths[0]
    keys = f"down-delay=15,queue=codel,loss=0.1,up-delay-trace={tmp_path}/d"
    assert mpshell_keys(first.delay_ms, first.queue, first.settings, first.delay_traces) == keys
    assert pair.paths[1].queue == "pie:qdelay_ref=20"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("'pie:qdelay_ref=20'", "'droptail:packets=0'", ("index.yaml:10: pairs[0].paths[1].queue: path b, up: queue",)),
        ("loss: 0.1", "onoff: 9/0", ("index.yaml:9: pairs[0].paths[0].link.onoff: this takes", "not '9/0'")),
        ("loss: 0.1", "reorder: 0.5", ("index.yaml:9: pairs[0].paths[0].link: path a, uplink: reorder needs",)),
        ("queue: codel", "queue: 'codel:target=0'", ("index.yaml:8: pairs[0].paths[0].queue: path a, up: queue",)),
    ],
)
def test_what_programs_refuse_of_an_index_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("RAILYARD_TRACE_PATH", str(tmp_path))
    (tmp_path / "index.yaml").write_text(INDEX.replace(old, new))
    (tmp_path / "t").write_text("1\n")
    (tmp_path / "d").write_text("0,5\n")
    with pytest.raises(UserError) as error:
        specs(tmp_path, YAML.partition("links:")[0].replace("subway-1", "two"))
    for word in words:
        assert word in str(error.value), (word, str(error.value))
