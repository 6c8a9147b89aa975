"""Uplink grants as a model of a link: after a silence a packet waits for an occasion to ask, alike in all arenas."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from flat_pair import played
from railyard.base.errors import UserError
from railyard.results.linklog.read import read_link_log

SR_MS, GRANT_MS = 40, 25
EXPERIMENT = f"""\
arena: sim
name: grants
pairs: [flat]
schemes: [{{scheme: sp, path: wifi}}]
start_offset_ms: 0
player: {{duration_s: 3, bitrate_bps: 8000000, chunk_bytes: 524288}}
time_limit_s: 12
qlog: false
links: {{wifi: {{up_grants: "sr={SR_MS}:grant={GRANT_MS}"}}}}
"""


def look(folder: Path) -> None:
    """What must hold in any arena."""
    record = json.loads((folder / "run.json").read_text())
    assert record["outcome"] == "complete"
    (wifi, _) = json.loads((folder / "mpshell.json").read_text())["paths"]
    assert "grants" in wifi["up"]["settings"] and "grants" not in wifi["down"].get("settings", {})
    arrival_ms = np.asarray(read_link_log(folder / "links" / "wifi.up.log").arrival_ms)
    first = arrival_ms[np.flatnonzero(np.diff(arrival_ms) > SR_MS + GRANT_MS) + 1]
    assert len(first) >= 3, "the player is silent between its requests"
    # They are whole periods apart, or with what does not fit into the first grant; the log rounds to ms.
    off = (first - first[0] + 1) % SR_MS
    with_report = [(off - place) % SR_MS <= 2 for place in (GRANT_MS, -GRANT_MS)]
    assert ((off <= 2) | with_report[0] | with_report[1]).all(), off


@pytest.mark.privileged
@pytest.mark.parametrize("arena", ["sim", "mpshell"])
def test_the_first_packet_after_a_silence_waits_for_an_occasion(
    arena: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAILYARD_TRACE_PATH", str(tmp_path))
    look(played(tmp_path, EXPERIMENT.replace("arena: sim", f"arena: {arena}")))


@pytest.mark.parametrize("settings", ["grants: 'sr=10'", "up_grants: on", "grants: 'sr=10:grant=8:first=x'"])
def test_mistakes_are_told(settings: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAILYARD_TRACE_PATH", str(tmp_path))
    text = EXPERIMENT.partition("links:")[0] + f"links: {{wifi: {{{settings}}}}}\n"
    with pytest.raises(UserError, match=r"links\.wifi\.(up_)?grants: it takes TIMES"):
        played(tmp_path, text)
