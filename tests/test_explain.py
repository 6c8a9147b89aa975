"""`railyard explain`: the parts of a chunk's completion time add up to it, and a cause that was planted is named."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import FakeRun, good
from in_process import railyard
from railyard.base.errors import UserError
from railyard.report.replay import write_replay
from railyard.results.explain.explanation import Explanation, chosen, explain, explain_all, sentences, waterfall
from railyard.results.explain.flight import NEAR_MS, Link, read_flight
from railyard.results.records import load_run

INDEX = """
schema: 1
pairs:
- name: planted
  scenario: two links of 12 Mbps; the Wi-Fi is silent from 2 to 3 s
  licence: CC0-1.0
  source: a test
  paths:
  - {name: wifi, technology: wifi, uplink: gap, downlink: gap, base_rtt_ms: 30, queue: "droptail:packets=300"}
  - {name: lte, technology: lte, uplink: even, downlink: even, base_rtt_ms: 60, queue: "droptail:packets=300"}
"""
EXPERIMENT = """
name: explained
arena: sim
pairs: [{pair}]
schemes: {schemes}
start_offset_ms: 0
player: {{bitrate_bps: 4000000, duration_s: 8, chunk_bytes: 262144}}
time_limit_s: {limit}
qlog: {qlog}
{links}
"""
GAP_S = (2.0, 3.0)


SCHEMES = "[sp, vanilla-mp, xlink, cm]"


def ran(
    folder: Path, schemes: str = SCHEMES, limit: int = 30, qlog: str = "all", links: str = "", pair: str = "planted"
) -> dict[str, Path]:
    """A campaign over links with a planted gap; by scheme, the folder of its run."""
    library = folder / "library"
    library.mkdir()
    (library / "index.yaml").write_text(INDEX)
    times = range(1, 10_001)
    (library / "even").write_text("".join(f"{t}\n" for t in times))
    (library / "gap").write_text("".join(f"{t}\n" for t in times if not 2000 < t <= 3000))
    file = folder / "explained.yaml"
    file.write_text(EXPERIMENT.format(schemes=schemes, limit=limit, qlog=qlog, links=links, pair=pair))
    good(railyard("run", str(file), "--out", str(folder / "out"), RAILYARD_TRACE_PATH=str(library)))
    return {run.name.split("--")[1]: run for run in (folder / "out" / "runs").iterdir()}


@pytest.fixture(scope="module")
def runs(built: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return ran(tmp_path_factory.mktemp("explained"))


def explained(run: Path) -> list[Explanation]:
    return list(explain_all(run, load_run(run)).values())


@pytest.mark.parametrize("scheme", ["sp", "vanilla-mp", "xlink", "cm"])
def test_the_parts_of_each_chunk_add_up_to_its_completion_time(runs: dict[str, Path], scheme: str) -> None:
    for found in explained(runs[scheme]):
        assert all(part.seconds > 0 for part in found.parts)
        assert sum(part.seconds for part in found.parts) == pytest.approx(found.chunk.rct_s, abs=0.001)
        assert sum(share.new_bytes for share in found.split.shares) >= found.chunk.bytes
        assert found.split.last is not None
        assert not any(part.bound == "not in the logs" for part in found.parts)


def test_a_gap_of_the_trace_is_named_as_an_outage_of_its_length(runs: dict[str, Path]) -> None:
    hit = [
        found
        for found in explained(runs["sp"])
        if found.split.request_s < GAP_S[0] and (found.split.done_s or 0.0) > GAP_S[1]
    ]
    assert len(hit) == 1
    outage_s = sum(part.seconds for part in hit[0].parts if part.bound == "outage" and part.path == "wifi")
    assert outage_s == pytest.approx(GAP_S[1] - GAP_S[0], abs=0.01)
    assert any("wifi offered nothing" in sentence for sentence in sentences(hit[0]))


def test_delays_of_each_direction_and_over_time_are_parts_of_the_time(tmp_path: Path) -> None:
    """The base delay is the minimum of a delay trace; the rest is jitter."""
    (tmp_path / "slow.delay").write_text("0,25\n1000,75\n60000,75\n")
    links = "links: {wifi: {down_delay_trace: slow.delay, up_delay_ms: 40}}"
    found = explained(ran(tmp_path, "[{scheme: sp, path: wifi}]", links=links)["sp"])
    first, last = ({(part.step, part.bound): part.seconds for part in one.parts} for one in (found[0], found[-1]))
    for one in (first, last):
        assert one["request", "base delay"] == pytest.approx(0.04, abs=0.001)
        assert one["delivery", "base delay"] == pytest.approx(0.025, abs=0.001)
    assert ("delivery", "wake-up or jitter") not in first
    assert last["delivery", "wake-up or jitter"] == pytest.approx(0.05, abs=0.001)


def test_a_re_injected_chunk_names_the_copy_and_the_path_that_was_late(tmp_path: Path) -> None:
    copied = [
        (found, part)
        for found in explained(ran(tmp_path, "[xlink]", pair="subway-1")["xlink"])
        for part in found.parts
        if part.bound == "until a copy is sent"
    ]
    assert copied
    for found, part in copied:
        assert found.split.last is not None and found.split.last.copies
        assert part.path != found.split.last.path, "the copy went over another path than the original"


def test_losses_are_named_as_the_time_until_they_are_known(tmp_path: Path, runs: dict[str, Path]) -> None:
    lossy = ran(tmp_path, "[sp]", links="links: {all: {loss: 0.1}}")
    bounds = {part.bound for found in explained(lossy["sp"]) for part in found.parts}
    assert "until the loss is detected" in bounds
    assert "until the loss is detected" not in {part.bound for found in explained(runs["sp"]) for part in found.parts}


def test_a_run_without_qlogs_is_repeated_and_explained_alike(tmp_path: Path, runs: dict[str, Path]) -> None:
    bare = ran(tmp_path, "[xlink]", qlog="none")["xlink"]
    assert not list(bare.glob("qlog/*"))
    before = sorted(bare.rglob("*"))
    assert explain(bare, 3).as_json() == explain(runs["xlink"], 3).as_json()
    assert sorted(bare.rglob("*")) == before, "the run itself stays as it is"


def test_a_chunk_that_did_not_complete_has_no_parts(tmp_path: Path) -> None:
    [*_, last] = explained(
        ran(tmp_path, "[sp]", limit=9, links="link_events: [{t_s: 1, path: wifi, state: down}]")["sp"]
    )
    assert not last.chunk.completed
    assert not last.parts and waterfall(last) == []
    assert "did not complete" in " ".join(sentences(last))


def test_a_packet_is_found_in_the_links_log_by_the_nearest_departure(runs: dict[str, Path]) -> None:
    """The first of several equally near ones, like in a search through all of them."""
    run = next(iter(runs.values()))
    log = next(link.log for link in read_flight(run, load_run(run).config).links.values() if link.log is not None)
    link = Link(10.0, log)
    ends = float(log.departure_ms[0]) - NEAR_MS - 1, float(log.departure_ms[-1]) + NEAR_MS + 1
    times = np.concatenate([log.departure_ms, np.random.default_rng(1).uniform(*ends, 2000), ends])
    assert len(np.unique(log.departure_ms)) < len(log.departure_ms)
    for left_ms in (*times, *(log.departure_ms[1:] + log.departure_ms[:-1]) / 2):
        place = int(np.argmin(np.abs(log.departure_ms - left_ms)))
        near = abs(log.departure_ms[place] - left_ms) <= NEAR_MS
        assert link.waited_ms(float(left_ms)) == (log.delay_ms[place] if near else None)


def test_by_default_the_slowest_chunk_is_explained(runs: dict[str, Path]) -> None:
    run = load_run(runs["sp"])
    assert chosen(run, None).rct_s == max(chunk.rct_s for chunk in run.chunks)


def test_an_unknown_chunk_is_a_mistake(runs: dict[str, Path]) -> None:
    with pytest.raises(UserError, match=r"no chunk 99 was requested; it has 0 to 1\d"):
        explain(runs["sp"], 99)


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"\x1e{}\n",
        b"\xff\x00garbage\n",
        b'\x1e{"trace": []}\n',
        b'\x1e{"trace":{"common_fields":{"reference_monotonic_us":0}}}\n\x1e{"time":1e999,"name":"quic:packet_sent"}\n',
        b'\x1e{"trace":{"common_fields":{"reference_monotonic_us":0}}}\n\x1e{"time":1,"name":"quic:packet_sent","data":[]}\n',
    ],
)
def test_a_damaged_qlog_is_one_sentence(tmp_path: Path, runs: dict[str, Path], damaged: bytes) -> None:
    copy = tmp_path / runs["sp"].name
    shutil.copytree(runs["sp"], copy)
    for log in (copy / "qlog").iterdir():
        log.write_bytes(damaged)
    with pytest.raises(UserError):
        explain(copy, 0)


def test_a_run_on_the_wall_clock_without_qlogs_names_the_command_that_writes_them(
    make_campaign: Callable[..., Path],
) -> None:
    [run] = (make_campaign(FakeRun(scheme="sp", label="sp")) / "runs").iterdir()
    with pytest.raises(UserError, match=r"railyard repeat .* --qlog"):
        explain(run)


def test_json_says_what_the_terminal_says(runs: dict[str, Path]) -> None:
    command = ("explain", str(runs["xlink"]), "--chunk", "2")
    words = railyard(*command, COLUMNS="100").stdout
    told: dict[str, Any] = json.loads(railyard(*command, "--format", "json").stdout)
    assert told["chunk"] == 2 and f"took {told['rct_s']:.3f} s" in words
    assert {part["bound"] for part in told["parts"]} <= {part.bound for part in explain(runs["xlink"], 2).parts}
    assert sum(told["oracle_bytes"].values()) == 262_144
    assert read_flight(runs["xlink"], load_run(runs["xlink"]).config).requests


def test_the_page_of_a_run_explains_each_chunk_where_there_are_qlogs(runs: dict[str, Path]) -> None:
    page = write_replay(runs["cm"]).read_text()
    for chunk in load_run(runs["cm"]).chunks:
        assert f"Chunk {chunk.index} took {chunk.rct_s:.3f} s" in page
