"""A satellite of a low orbit as a model of a link: pauses at boundaries of time, alike in all arenas."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from flat_pair import played
from kernel_machine import needs_kernel
from railyard.base.errors import UserError
from railyard.results.linklog.read import read_link_log
from railyard.results.oracle import paths_of_run

EXPERIMENT = """\
arena: sim
name: leo
pairs: [flat]
schemes: [{scheme: sp, path: wifi}]
start_offset_ms: 0
player: {duration_s: 3, bitrate_bps: 8000000, chunk_bytes: 524288}
time_limit_s: 12
qlog: false
links: {wifi: {leo: "period=1000:step=2:pause=100"}}
"""


def look(folder: Path) -> None:
    """What must hold in any arena."""
    record = json.loads((folder / "run.json").read_text())
    assert record["outcome"] == "complete"
    assert paths_of_run(record["config"]) is None, "the least delay is no bound that says much, so no oracle"
    (wifi, lte) = json.loads((folder / "mpshell.json").read_text())["paths"]
    assert wifi["down"]["settings"]["leo"] == "period=1000:step=2:pause=100" and "leo" not in lte["down"].get(
        "settings", {}
    )
    delay_ms = wifi["delay_ms"]
    since = read_link_log(folder / "links" / "wifi.down.log").arrival_ms % 1000
    assert len(since) > 1000
    held = (since > delay_ms + 4) & (since < 50)
    assert not held.any(), "nothing reaches the queue in the first half of a pause but what came before it"
    assert np.count_nonzero((since >= 50) & (since < 200)) > 100, "it comes afterwards"


@pytest.mark.privileged
@pytest.mark.parametrize("arena", ["sim", "mpshell", pytest.param("kernel", marks=needs_kernel)])
def test_nothing_passes_in_a_pause(arena: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAILYARD_TRACE_PATH", str(tmp_path))
    look(played(tmp_path, EXPERIMENT.replace("arena: sim", f"arena: {arena}")))


@pytest.mark.parametrize("settings", ["leo: oneweb", "up_leo: 'starlink:pause'", "leo: 'pause=x'"])
def test_mistakes_are_told(settings: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAILYARD_TRACE_PATH", str(tmp_path))
    text = EXPERIMENT.partition("links:")[0] + f"links: {{wifi: {{{settings}}}}}\n"
    with pytest.raises(UserError, match=r"links\.wifi\.(up_)?leo: it takes KIND"):
        played(tmp_path, text)
