"""The page of one run: it agrees with the run's own counters, in either arena and for any length."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import FakeRun, good, one_sentence
from in_process import railyard
from railyard.base.errors import UserError
from railyard.base.jsonl import read_jsonl, summary_of
from railyard.report import write_whole
from railyard.report.replay import write_replay
from railyard.report.replay.figure import draw
from railyard.report.replay.series import MAX_BINS, Bins, read_replay
from railyard.results.qlogdiff import InFlight
from railyard.results.records import load_run

PAGE_LIMIT_BYTES = 5_000_000
EXPERIMENT = """
name: replayed
arena: {arena}
pairs: [subway-1]
schemes: {schemes}
seeds: [{seed}]
start_offset_ms: {offset}
player: {{bitrate_bps: {bitrate}, duration_s: {duration}, chunk_bytes: 262144}}
time_limit_s: {limit}
repeat_budget_s: 0  # a page shows a void run as well
"""


def ran(folder: Path, **settings: Any) -> dict[str, Path]:
    """A real campaign; by scheme, the folder of its run."""
    given = {"arena": "sim", "seed": 1, "offset": 20_000, "bitrate": 4_000_000, "duration": 8, "limit": 30} | settings
    file = folder / "replayed.yaml"
    file.write_text(EXPERIMENT.format(**given))
    out = folder / "out"
    good(railyard("run", str(file), "--out", str(out)))
    return {run.name.split("--")[1]: run for run in (out / "runs").iterdir()}


@pytest.fixture(scope="module")
def runs(built: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return ran(tmp_path_factory.mktemp("sim"), schemes="[xlink, cm]")


def links_of(run: Path) -> dict[str, dict[str, Any]]:
    return {path["name"]: path for path in json.loads((run / "mpshell.json").read_text())["paths"]}


def test_every_byte_and_packet_of_the_run_is_in_a_bin(runs: dict[str, Path]) -> None:
    replay = read_replay(runs["xlink"])
    server = summary_of(read_jsonl(runs["xlink"] / "server.jsonl"))
    assert server is not None and server["reinjected_bytes"] > 0
    links = links_of(runs["xlink"])
    for path, counted in zip(replay.paths, server["paths"], strict=True):
        delivered = sum(path.delivered) * replay.bins.width_s * 1e6 / 8
        assert delivered == pytest.approx(links[path.name]["down"]["departed_bytes"], rel=1e-3)
        assert sum(path.sent) == pytest.approx(counted["packets_sent"], abs=2), "the last are sent as the run ends"
        assert sum(path.lost) == counted["packets_lost"]
        assert sum(path.delivered) <= sum(path.capacity)
        assert 10 < max(value for value in path.window_kb if value is not None) < 5000
        assert max(value for value in path.rtt_ms if value is not None) > 2 * links[path.name]["delay_ms"]
    copied = sum(path.copied_kb[-1] for path in replay.paths) * 1000
    assert copied == pytest.approx(server["reinjected_bytes"], rel=1e-3)


def test_bytes_are_in_flight_from_when_they_are_sent(runs: dict[str, Path]) -> None:
    """The metrics of a qlog have them only when an acknowledgement arrives, if they differ from the last ones."""
    flight, sent = InFlight(), {"raw": {"length": 1000}, "frames": [{"frame_type": "stream"}]}
    flight.take("quic:packet_sent", sent)
    flight.take("quic:packet_sent", {"raw": {"length": 50}, "frames": [{"frame_type": "ack_mp"}]})
    assert flight.bytes == 1000
    flight.take("quic:recovery_metrics_updated", {"bytes_in_flight": 400})
    flight.take("quic:packet_sent", sent)
    assert flight.bytes == 1400
    flight.take("quic:recovery_metrics_updated", {"smoothed_rtt": 30})
    assert flight.bytes == 400
    for path in read_replay(runs["xlink"]).paths:
        first = next(k for k, count in enumerate(path.sent) if count > 5)
        assert (path.in_flight_kb[first + 1] or 0) > 5, "the first packets, before they can be acknowledged"


def test_a_migration_is_on_the_page_and_moves_the_packets(runs: dict[str, Path]) -> None:
    replay = read_replay(runs["cm"])
    [moved] = [moment for moment in replay.moments if moment.what.startswith("migrates")]
    assert moved.what == "migrates from wifi to lte"
    wifi, lte = replay.paths
    at = int(moved.t_s / replay.bins.width_s)
    assert sum(wifi.sent[:at]) > 100 and sum(lte.sent[: at - 1]) == 0
    assert sum(lte.sent[at - 1 :]) > 100


def test_strips_share_one_time_axis_and_each_shows_something(runs: dict[str, Path]) -> None:
    figure = draw(read_replay(runs["xlink"])).to_plotly_json()
    axes = [axis for name, axis in figure["layout"].items() if name.startswith("xaxis")]
    assert len(axes) == 8
    assert sum("matches" not in axis for axis in axes) == 1
    used = {trace.get("yaxis", "y") for trace in figure["data"]}
    assert len(used) == 8


def test_a_long_run_is_binned_so_that_its_page_stays_small(tmp_path: Path) -> None:
    run = ran(tmp_path, schemes="[vanilla-mp]", duration=90, bitrate=1_500_000, limit=120)["vanilla-mp"]
    replay = read_replay(run)
    assert replay.end_s > 90 and replay.bins.width_s > 0.05 and replay.bins.count <= MAX_BINS
    assert write_replay(run).stat().st_size < PAGE_LIMIT_BYTES


def test_bins_cover_the_whole_run() -> None:
    for duration in (0.01, 3.0, 19.9, 600.0, 3600.0):
        bins = Bins.over(duration)
        assert bins.end_s >= duration
        assert bins.count <= MAX_BINS


def test_a_run_without_logs_still_has_its_page(make_campaign: Callable[..., Path]) -> None:
    out = make_campaign(FakeRun(label="mptcp", scheme="mptcp", unfinished_s=[2.0], outcome="time_limit"))
    page = write_replay(out / "runs" / FakeRun(label="mptcp").run_id).read_text()
    assert "There is no qlog of the server" in page and "plays again, after 0.50 s" in page and "≥ 2.000" in page


def test_what_the_player_logged_is_on_the_clock_of_the_links(make_campaign: Callable[..., Path]) -> None:
    [run] = (make_campaign(FakeRun()) / "runs").iterdir()
    emulator = json.loads((run / "mpshell.json").read_text())
    (run / "mpshell.json").write_text(json.dumps(emulator | {"t0_monotonic_us": 900_000}))  # the player starts at 1 s
    replay, own = read_replay(run), load_run(run)
    [(begin, end)], chunk = own.stalls, own.chunks[0]
    assert replay.stalls == [pytest.approx((0.1 + begin, 0.1 + end))]
    assert replay.chunks[0][1:] == pytest.approx((0.1 + chunk.request_s, 0.1 + chunk.request_s + chunk.rct_s))
    assert replay.buffer[0][0] == pytest.approx(0.1 + own.buffer_s[0][0], abs=0.001)


def test_a_chunk_that_was_never_requested_has_no_time_of_its_request(make_campaign: Callable[..., Path]) -> None:
    cut = FakeRun(outcome="time_limit", rct_s=[0.5], unfinished_s=[30.0])
    run = make_campaign(cut) / "runs" / cut.run_id
    record = json.loads((run / "run.json").read_text())
    record["config"] |= {"time_limit_s": 60, "player": {"bitrate_bps": 8000, "duration_s": 3, "chunk_bytes": 1000}}
    (run / "run.json").write_text(json.dumps(record))
    rows = write_replay(run).read_text().partition('id="chunk-1"')[2]
    assert re.findall(r'<td class="n">([^<]*)', rows.partition('id="chunk-2"')[2])[:2] == ["–", "≥ 60.000"]
    assert re.findall(r'<td class="n">([^<]*)', rows)[:2] == ["1.100", "≥ 30.000"]


def test_a_damaged_log_ends_in_one_sentence(runs: dict[str, Path], tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(runs["xlink"], broken)
    log = next(broken.glob("qlog/*_server.sqlog"))
    log.write_text('\x1e{"trace": {}}\n')
    with pytest.raises(UserError, match="cannot be read"):
        read_replay(broken)


def test_a_campaigns_report_links_the_pages_of_its_runs(runs: dict[str, Path]) -> None:
    campaign = runs["xlink"].parents[1]
    good(railyard("report", "--replay", str(campaign)))
    page = (campaign / "report.html").read_text()
    for run in runs.values():
        assert f'href="runs/{run.name}/replay.html"' in page
        assert (run / "replay.html").is_file()
    write_whole(campaign.parent)
    whole = (campaign.parent / "report.html").read_text()
    assert f'href="out/runs/{runs["cm"].name}/replay.html"' in whole
    assert "<h1>All campaigns</h1>" in whole and "the paper's" not in whole and "railyard run fig13" not in whole


def test_a_folder_that_is_no_run_is_one_sentence(tmp_path: Path) -> None:
    one_sentence(railyard("report", str(tmp_path)))


@pytest.mark.privileged
def test_a_run_of_the_kernels_mptcp_in_real_time_has_its_links_and_packets(tmp_path: Path) -> None:
    run = ran(tmp_path, arena="mpshell", schemes="[mptcp]", duration=2, bitrate=2_000_000, limit=10)["mptcp"]
    replay = read_replay(run)
    assert not replay.from_qlog
    for path in replay.paths:
        link = links_of(run)[path.name]["down"]
        assert sum(path.delivered) * replay.bins.width_s * 1e6 / 8 == pytest.approx(link["departed_bytes"], rel=0.01)
        assert sum(path.sent) == pytest.approx(link["arrived_packets"], rel=0.01)
    assert write_replay(run).stat().st_size < PAGE_LIMIT_BYTES


@pytest.mark.usefixtures("built")
def test_a_link_that_an_event_takes_down_has_no_capacity_then(tmp_path: Path) -> None:
    file = tmp_path / "tunnel.yaml"
    events = "[{t_s: 2, path: wifi, direction: down, state: down}, {t_s: 4, path: wifi, state: up}]"
    text = EXPERIMENT.format(arena="sim", schemes="[xlink]", seed=1, offset=0, bitrate=2_000_000, duration=6, limit=30)
    file.write_text(f"{text}link_events: {events}\n")
    good(railyard("run", str(file), "--out", str(tmp_path / "out")))
    [folder] = (tmp_path / "out" / "runs").iterdir()
    replay = read_replay(folder)
    wifi = next(path for path in replay.paths if path.name == "wifi")
    begin, end = (int(t_s / replay.bins.width_s) for t_s in (2, 4))
    assert sum(wifi.capacity[begin:end]) == 0 < min(sum(wifi.capacity[:begin]), sum(wifi.capacity[end:]))
    assert sum(wifi.up_capacity[begin:end]) > 0
    told = [(moment.t_s, moment.what) for moment in replay.moments if moment.what.startswith("link event")]
    assert told == [(2, "link event: down wifi:down"), (4, "link event: up wifi")]
