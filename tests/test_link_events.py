"""`link_events` of an experiment: both arenas make the same changes, and a late event makes a run void."""

import json
from pathlib import Path
from typing import Any

import pytest

from flat_pair import played
from railyard.base.errors import UserError
from railyard.experiment.model import LinkEvent, load_experiment
from railyard.run.fidelity import MAX_EVENT_LATENESS_US, judge
from railyard.run.linkevents import DoneEvent, commands
from railyard.run.resolve import resolve

EXPERIMENT = """\
name: events
pairs: [flat]
schemes: [xlink-lean]
start_offset_ms: 0
player: {duration_s: 3, bitrate_bps: 4000000, chunk_bytes: 131072, max_buffer_ms: 1000}
time_limit_s: 12
qlog: false
links: {wifi: {nat: timeout=30000}}
link_events:
  - {t_s: 0.6, path: wifi, state: down}
  - {t_s: 0.8, path: lte, direction: down, loss: 0.1, delay_ms: 45}
  - {t_s: 1.2, path: lte, direction: down, loss: 0}
  - {t_s: 1.4, path: lte, mtu: 600, direction: down}
  - {t_s: 1.6, path: lte, mtu: 1500, duplicate: 0.2, reorder: 0.1, reorder_delay_ms: 20}
  - {t_s: 2.2, path: wifi, state: up}
  - {t_s: 2.3, path: wifi, nat: rebind}
  - {t_s: 11.5, path: lte, state: down}
"""


def carried(folder: Path, link: str, first_s: float, last_s: float) -> int:
    """Bytes that left a link in a span of time, by its log."""
    total = 0
    for line in (folder / "links" / f"{link}.log").read_text().splitlines():
        words = line.split()
        if len(words) == 4 and words[1] == "-" and first_s <= int(words[0]) / 1000 < last_s:
            total += int(words[2])
    return total


def play(tmp_path: Path, arena: str) -> tuple[Path, dict[str, Any]]:
    """The folder and the record of the experiment's run."""
    folder = played(tmp_path, f"arena: {arena}\n{EXPERIMENT}", arena)
    return folder, json.loads((folder / "run.json").read_text())


def look(folder: Path, record: dict[str, Any]) -> dict[str, Any]:
    """The effect of an event on the links, from the run's files."""
    wifi, lte = json.loads((folder / "mpshell.json").read_text())["paths"]
    return {
        "outcome": record["outcome"],
        "wifi carries before": carried(folder, "wifi.down", 0.0, 0.6) > 0,
        "wifi carries while down": carried(folder, "wifi.down", 0.63, 1.39) > 0,
        "lte carries meanwhile": carried(folder, "lte.down", 0.63, 1.39) > 0,
        "wifi carries again": carried(folder, "wifi.down", 1.4, 9) > 0,
        "lost while down": wifi["up"].get("off_losses", 0) + wifi["down"].get("off_losses", 0) > 0,
        "the server sees another port": wifi["up"]["nat_mappings"] == 2,
        "lost for their size": lte["down"]["oversize_drops"] > 0 == lte["up"]["oversize_drops"],
        "doubled": lte["down"].get("duplicates", 0) > 0,
        "reordered": lte["down"].get("reordered", 0) > 0,
        "lost at random": lte["down"]["random_losses"] > 0,
        "lte lost nothing": "off_losses" not in lte["down"],
    }


@pytest.mark.privileged
def test_a_path_goes_down_and_up_in_both_arenas(tmp_path: Path) -> None:
    virtual = look(*play(tmp_path, "sim"))
    expected = dict.fromkeys(virtual, True) | {"outcome": "complete", "wifi carries while down": False}
    assert virtual == expected
    folder, record = play(tmp_path, "mpshell")
    assert look(folder, record) == expected
    commands_done = ["down wifi", "delay lte:down 45", "loss lte:down 0.1", "loss lte:down 0", "mtu lte:down 600"]
    commands_done += ["mtu lte 1500", "reorder lte 0.1 20", "duplicate lte 0.2", "up wifi", "rebind wifi"]
    listed = json.loads((folder / "mpshell.json").read_text())["events"]
    assert [event["command"] for event in listed] == commands_done, "the emulator's own account"
    events = record["link_events"]
    assert [(event["command"], event["t_s"]) for event in events[:-1]] == list(
        zip(commands_done, [0.6, 0.8, 0.8, 1.2, 1.4, 1.6, 1.6, 1.6, 2.2, 2.3], strict=True)
    )
    assert [event["done_s"] for event in events[:-1]] == pytest.approx([event["t_s"] for event in listed], abs=1e-6)
    assert events[-1]["done_s"] is None, "the run ended before"
    late = any(event["done_s"] - event["t_s"] > MAX_EVENT_LATENESS_US / 1e6 for event in events[:-1])
    assert any("link event" in reason for reason in record["fidelity"]["reasons"]) == late
    assert all(event["done_s"] >= event["t_s"] for event in events[:-1])


def path_states(folder: Path, name: str) -> list[str]:
    lines = [json.loads(line) for line in (folder / "player.jsonl").read_text().splitlines()]
    return [line["state"] for line in lines if line["event"] == "path" and line["name"] == name]


@pytest.mark.long
@pytest.mark.privileged
def test_an_interface_goes_and_returns_in_both_arenas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = "  - {t_s: 0.6, path: wifi, interface: down}\n  - {t_s: 1.4, path: wifi, interface: up}\n"
    text = EXPERIMENT.partition("link_events:")[0].replace("duration_s: 3", "duration_s: 5") + f"link_events:\n{events}"
    monkeypatch.setattr(f"{__name__}.EXPERIMENT", text)
    for arena in ("sim", "mpshell"):
        folder, record = play(tmp_path, arena)
        assert record["outcome"] == "complete"
        assert carried(folder, "wifi.down", 0.63, 1.39) == 0 < carried(folder, "lte.down", 0.63, 1.39)
        assert path_states(folder, "wifi") == ["validating", "active", "closed", "validating", "active"]
        assert carried(folder, "wifi.down", 2.7, 9) > 0, "as a new path"
        (drops, _) = (path["device_drops"] for path in json.loads((folder / "mpshell.json").read_text())["paths"])
        assert sum(drops.values()) == 0, "links stop before the device and start after it"


def test_a_late_or_forgotten_event_makes_a_run_void() -> None:
    summary = {"duration_s": 10.0, "paths": [], "sched_fifo": True}
    good = [DoneEvent(1.0, "down wifi", 1.0 + MAX_EVENT_LATENESS_US / 2e6), DoneEvent(10.5, "up wifi")]
    assert not judge(summary, good).void
    late = judge(summary, [DoneEvent(1.0, "down wifi", 1.0125)])
    assert late.reasons == ["link event 'down wifi' at 1 s: 12.5 ms late"]
    assert judge(summary, [DoneEvent(9.0, "up wifi")]).reasons == ["link event 'up wifi' at 9 s: not done"]


def test_an_event_is_one_command_for_each_change() -> None:
    event = LinkEvent(
        t_s=1, path="nr", direction="up", state="up", delay_ms=0.00001, loss="ge:p=0.1:r=0.5", rate="2mbps"
    )
    assert commands(event) == ["up nr:up", "delay nr:up 0.00001", "loss nr:up ge:p=0.1:r=0.5", "rate nr:up 2mbps"]
    assert commands(LinkEvent(t_s=1, path="nr", loss=1)) == ["loss nr 1"]
    assert commands(LinkEvent(t_s=1, path="nr", reorder=0, mtu=1280)) == ["mtu nr 1280", "reorder nr 0"]
    assert commands(LinkEvent(t_s=1, path="nr", direction="down", nat="rebind")) == ["rebind nr"]
    assert commands(LinkEvent(t_s=1, path="nr", interface="down")) == ["interface nr down"]


def test_an_event_without_later_fields_is_recorded_as_before() -> None:
    recorded = LinkEvent(t_s=1, path="nr", state="down").model_dump(mode="json")
    assert list(recorded) == ["t_s", "path", "direction", "state", "delay_ms", "loss", "rate"]
    assert LinkEvent(t_s=1, path="nr", mtu=1280).model_dump(mode="json") == recorded | {"state": None, "mtu": 1280}


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        ("nat: rebind", "rebinds the NAT of 'wifi', which has none; give it 'nat' in 'links'"),
        ("reorder: 0.1", "a reorder above 0 and a reorder_delay_ms go together"),
        ("interface: up, direction: up", "an interface has both directions"),
        (
            "rate: 1000000",
            r"rate: this takes a rate with its unit, such as 1\.5mbps \(bps, .*\), not 1000000\.",
        ),
        ("cross: 5", r"cross: this takes a rate with its unit, such as 1\.5mbps \(bps, .* or gbps\), not 5\."),
        ("rate: 1furlong", r"rate: this takes a rate such as 1\.5mbps \(bps, kbps, mbps or gbps\), not '1furlong'"),
        ("mtu: 67", "this takes a value of at least 68, not 67"),
    ],
)
def test_a_wrong_event_is_named_with_its_line(event: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "e.yaml"
    file.write_text(f"name: e\npairs: [subway-1]\nschemes: [sp]\nlink_events: [{{t_s: 1, path: wifi, {event}}}]\n")
    with pytest.raises(UserError, match=rf"e\.yaml:\d: .*{sentence}"):
        resolve(*load_experiment(file))


def test_events_stand_in_the_order_of_their_times(tmp_path: Path) -> None:
    file = tmp_path / "e.yaml"
    file.write_text(EXPERIMENT.replace("t_s: 0.6", "t_s: 1.5"))
    with pytest.raises(UserError, match=r"e\.yaml:9: link_events: an event comes before"):
        load_experiment(file)


@pytest.mark.parametrize("rate", ["0mbps", "0.00kbps"])
def test_an_outage_is_a_state_and_no_rate_of_nothing(rate: str, tmp_path: Path) -> None:
    file = tmp_path / "e.yaml"
    file.write_text(
        f"name: e\npairs: [subway-1]\nschemes: [sp]\nlink_events:\n  - {{t_s: 1, path: wifi, rate: {rate}}}\n"
    )
    with pytest.raises(UserError, match=rf"e\.yaml:5: link_events\[0\]\.rate: '{rate}' is no rate; .*'state: down'"):
        load_experiment(file)
