"""Models of a link, alike in all arenas: uplink grants, a satellite of a low orbit, and Wi-Fi, whose directions share
its airtime."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flat_pair import SINGLE_PATH, played
from kernel_machine import needs_kernel
from railyard.base.errors import UserError
from railyard.results.linklog.read import read_link_log
from railyard.results.oracle import paths_of_run

SR_MS, GRANT_MS = 40, 25
GRANTS = f"sr={SR_MS}:grant={GRANT_MS}"
LEO = "period=1000:step=2:pause=100"
WIFI = "congested:rate=26:suspend=200:every=2000"


def run_over(folder: Path, arena: str, **wifi: str) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """The folder, the record and the emulator's summary of a complete run with these settings of the path wifi."""
    folder.mkdir(exist_ok=True)
    run = played(folder, f"{SINGLE_PATH}arena: {arena}\nlinks: {json.dumps({'wifi': wifi})}\n")
    record, summary = (json.loads((run / name).read_text()) for name in ("run.json", "mpshell.json"))
    assert record["outcome"] == "complete"
    return run, record, summary


@pytest.mark.privileged
@pytest.mark.parametrize("arena", ["sim", "mpshell"])
def test_the_first_packet_after_a_silence_waits_for_an_occasion(arena: str, tmp_path: Path) -> None:
    folder, _, summary = run_over(tmp_path, arena, up_grants=GRANTS)
    (wifi, _) = summary["paths"]
    assert "grants" in wifi["up"]["settings"] and "grants" not in wifi["down"].get("settings", {})
    arrival_ms = np.asarray(read_link_log(folder / "links" / "wifi.up.log").arrival_ms)
    first = arrival_ms[np.flatnonzero(np.diff(arrival_ms) > SR_MS + GRANT_MS) + 1]
    assert len(first) >= 3, "the player is silent between its requests"
    # They are whole periods apart, or with what does not fit into the first grant; the log rounds to ms.
    off = (first - first[0] + 1) % SR_MS
    with_report = [(off - place) % SR_MS <= 2 for place in (GRANT_MS, -GRANT_MS)]
    assert ((off <= 2) | with_report[0] | with_report[1]).all(), off


@pytest.mark.privileged
@pytest.mark.parametrize("arena", ["sim", "mpshell", pytest.param("kernel", marks=needs_kernel)])
def test_nothing_passes_in_a_pause_of_a_satellite(arena: str, tmp_path: Path) -> None:
    folder, record, summary = run_over(tmp_path, arena, leo=LEO)
    assert paths_of_run(record["config"]) is None, "the least delay is no bound that says much, so no oracle"
    (wifi, lte) = summary["paths"]
    assert wifi["down"]["settings"]["leo"] == LEO and "leo" not in lte["down"].get("settings", {})
    since = read_link_log(folder / "links" / "wifi.down.log").arrival_ms % 1000
    assert len(since) > 1000
    held = (since > wifi["delay_ms"] + 4) & (since < 50)
    assert not held.any(), "nothing reaches the queue in the first half of a pause but what came before it"
    assert np.count_nonzero((since >= 50) & (since < 200)) > 100, "it comes afterwards"


def airtime_of_a_byte(folder: Path, arena: str) -> float:
    """Delays of the downlink, µs. Asserts properties of the Wi-Fi that hold in every arena."""
    folder, record, summary = run_over(folder, arena, wifi=WIFI)
    assert paths_of_run(record["config"]) is None, "no opportunities, so no oracle"
    wifi, lte = summary["paths"]
    up, down = wifi["up"], wifi["down"]
    assert (down["trace"], down["settings"]["wifi"]) == ("26000000bps", WIFI)
    assert "airtime_us" not in lte["down"]
    assert down["mpdu_retries"] > 50, "a tenth of the frames are lost"
    assert down["airtime_us"] + up["airtime_us"] < 0.75e6 * summary["duration_s"], "others have their turns"
    log = read_link_log(folder / "links" / "wifi.down.log")
    assert len(log.opportunity_ms) == down["opportunities"] < down["departed_packets"], "packets go together"
    assert int(log.opportunity_bytes.sum()) >= down["departed_bytes"] == int(log.departure_bytes.sum())
    ends = log.opportunity_ms[log.opportunity_ms < 2000]
    assert ((ends < 1805) | (ends >= 1999)).all(), "nothing is sent in a suspension"
    airtime: float = down["airtime_us"] / down["departed_bytes"]
    return airtime


@pytest.mark.privileged
def test_simulator_and_mpshell_have_the_same_wifi(tmp_path: Path) -> None:
    sim, mpshell = (airtime_of_a_byte(tmp_path / arena, arena) for arena in ("sim", "mpshell"))
    assert mpshell == pytest.approx(sim, rel=0.15)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("grants: 'sr=10'", r"links\.wifi\.grants: it takes TIMES"),
        ("up_grants: on", r"links\.wifi\.up_grants: it takes TIMES"),
        ("grants: 'sr=10:grant=8:first=x'", r"links\.wifi\.grants: it takes TIMES"),
        ("leo: oneweb", r"links\.wifi\.leo: it takes KIND"),
        ("up_leo: 'starlink:pause'", r"links\.wifi\.up_leo: it takes KIND"),
        ("leo: 'pause=x'", r"links\.wifi\.leo: it takes KIND"),
        ("wifi: fair", r"links\.wifi\.wifi: it takes KIND"),
        ("up_wifi: good", "wifi is of both directions; leave up- and down- out"),
        ("wifi: 'good:frames=x'", r"links\.wifi\.wifi: it takes KIND"),
        ("down_paging_ms: 1280", "paging is of both directions; leave up- and down- out"),
    ],
)
def test_mistakes_are_told(settings: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=words):
        played(tmp_path, f"{SINGLE_PATH}arena: sim\nlinks: {{wifi: {{{settings}}}}}\n")


PLAYER, SHORT = "duration_s: 3, bitrate_bps: 8000000", "duration_s: 1, bitrate_bps: 8000000"


def first_frame_ms(folder: Path, arena: str, links: str) -> float:
    folder.mkdir()
    text = SINGLE_PATH.replace("path: wifi", "path: lte").replace(PLAYER, SHORT)
    run = played(folder, f"{text}arena: {arena}\nlinks: {{lte: {{{links}}}}}\n")
    assert json.loads((run / "run.json").read_text())["outcome"] == "complete"
    (end,) = [line for line in (run / "player.jsonl").read_text().splitlines() if "first_frame_s" in line]
    return 1000 * float(json.loads(end)["first_frame_s"])


@pytest.mark.parametrize("arena", ["sim", pytest.param("kernel", marks=needs_kernel)])
def test_an_answer_finds_the_radio_awake(arena: str, tmp_path: Path) -> None:
    """The phone sends first and wakes up. With radios of their own both directions wake up, and with paging one."""
    radio = '"promotion=300:tail=4000"'
    links = {"awake": 'radio: "off"', "up": f"up_radio: {radio}", "own": f"radio: {radio}"}
    links["paged"] = f"radio: {radio}, paging_ms: 1280"
    found = {name: first_frame_ms(tmp_path / name, arena, text) for name, text in links.items()}
    assert found["up"] - found["awake"] == pytest.approx(300, abs=2)
    assert found["own"] - found["awake"] >= 600
    assert found["paged"] == pytest.approx(found["up"], abs=2)
