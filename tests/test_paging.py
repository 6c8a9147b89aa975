"""Paging as a model of a link: both directions of a path share a radio that sleeps, in every arena."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flat_pair import played
from kernel_machine import needs_kernel
from railyard.base.errors import UserError

RADIO = '"promotion=300:tail=4000"'
EXPERIMENT = """\
arena: sim
name: paging
pairs: [flat]
schemes: [{scheme: sp, path: lte}]
start_offset_ms: 0
player: {duration_s: 2, bitrate_bps: 2000000, chunk_bytes: 262144}
time_limit_s: 12
qlog: false
"""


def first_frame_ms(folder: Path, arena: str, links: str, monkeypatch: pytest.MonkeyPatch) -> float:
    folder.mkdir()
    monkeypatch.setenv("RAILYARD_TRACE_PATH", str(folder))
    text = EXPERIMENT.replace("arena: sim", f"arena: {arena}") + f"links: {{lte: {{{links}}}}}\n"
    run = played(folder, text)
    assert json.loads((run / "run.json").read_text())["outcome"] == "complete"
    (end,) = [line for line in (run / "player.jsonl").read_text().splitlines() if "first_frame_s" in line]
    return 1000 * float(json.loads(end)["first_frame_s"])


@pytest.mark.parametrize("arena", ["sim", pytest.param("kernel", marks=needs_kernel)])
def test_an_answer_finds_the_radio_awake(arena: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The phone sends first and wakes up. With radios of their own both directions wake up, and with paging one."""
    found = {
        name: first_frame_ms(tmp_path / name, arena, links, monkeypatch)
        for name, links in {
            "awake": 'radio: "off"',
            "up": f"up_radio: {RADIO}",
            "own": f"radio: {RADIO}",
            "paged": f"radio: {RADIO}, paging_ms: 1280",
        }.items()
    }
    assert found["up"] - found["awake"] == pytest.approx(300, abs=2)
    assert found["own"] - found["awake"] >= 600
    assert found["paged"] == pytest.approx(found["up"], abs=2)


def test_a_direction_has_no_paging_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAILYARD_TRACE_PATH", str(tmp_path))
    with pytest.raises(UserError, match="paging is of both directions; leave up- and down- out"):
        played(tmp_path, EXPERIMENT + "links: {lte: {down_paging_ms: 1280}}\n")
