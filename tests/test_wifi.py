"""Wi-Fi as a model of a link: both directions share its airtime, alike in the simulator and in mpshell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flat_pair import played
from railyard.base.errors import UserError
from railyard.results.linklog.read import read_link_log
from railyard.results.oracle import paths_of_run

EXPERIMENT = """\
arena: sim
name: wifi
pairs: [flat]
schemes: [{scheme: sp, path: wifi}]
start_offset_ms: 0
player: {duration_s: 3, bitrate_bps: 8000000, chunk_bytes: 524288}
time_limit_s: 12
qlog: false
links: {wifi: {wifi: "congested:rate=26:suspend=200:every=2000"}}
"""


def look(folder: Path) -> float:
    """What must hold of the Wi-Fi in any arena. Returns the downlink's airtime of a byte, us."""
    record = json.loads((folder / "run.json").read_text())
    assert record["outcome"] == "complete"
    assert paths_of_run(record["config"]) is None, "no opportunities, so no oracle"
    summary = json.loads((folder / "mpshell.json").read_text())
    wifi, lte = summary["paths"]
    up, down = wifi["up"], wifi["down"]
    assert (down["trace"], down["settings"]["wifi"]) == ("26000000bps", "congested:rate=26:suspend=200:every=2000")
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
def test_simulator_and_mpshell_have_the_same_wifi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAILYARD_TRACE_PATH", str(tmp_path))
    airtime = {}
    for arena in ("sim", "mpshell"):
        (tmp_path / arena).mkdir()
        monkeypatch.setenv("RAILYARD_TRACE_PATH", str(tmp_path / arena))
        airtime[arena] = look(played(tmp_path / arena, EXPERIMENT.replace("arena: sim", f"arena: {arena}")))
    assert airtime["mpshell"] == pytest.approx(airtime["sim"], rel=0.15)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("wifi: {wifi: fair}", "links.wifi.wifi: it takes KIND"),
        ("wifi: {up_wifi: good}", "wifi is of both directions; leave up- and down- out"),
        ("wifi: {wifi: 'good:frames=x'}", "links.wifi.wifi: it takes KIND"),
    ],
)
def test_mistakes_are_told(settings: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAILYARD_TRACE_PATH", str(tmp_path))
    text = EXPERIMENT.partition("links:")[0] + f"links: {{{settings}}}\n"
    with pytest.raises(UserError, match=words):
        played(tmp_path, text)
