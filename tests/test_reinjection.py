"""Re-injection in the simulator: the effects of options, multipath against the best single path, cost bounds."""

import json
import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from railyard.base.jsonl import read_jsonl
from railyard.gate.testing import Railyard, Result
from railyard.studies.cost import Study
from railyard.traces.library import list_pairs
from sim_program import simulate

OPPORTUNITY_BYTES = 1504
TRACE_MS = 2000

# ---- the effect of every option ---------


def qlog(result: Result, name: str) -> list[dict[str, Any]]:
    """The data of all events of that name in the server's qlog."""
    file = next((result.directory / "qlog").glob("*_server.sqlog"))
    records = (json.loads(line[1:]) for line in file.read_text().split("\n") if line)
    return [record["data"] for record in records if record.get("name") == name]


def fading(railyard: Railyard, **options: Any) -> Result:
    """Ten seconds of the generated subway pair, at a bit rate that leaves the player little."""
    fixed = {"bitrate_bps": 4_000_000, "duration_s": 8, "chunk_bytes": 262_144, "link_logs": False, "verify": True}
    return railyard.run(scheme="xlink-lean", pair="subway-1", seed=3, **(fixed | options))


def test_each_part_of_reinjection_can_be_switched_off(railyard: Railyard) -> None:
    as_it_is = fading(railyard)
    assert 0 < as_it_is.redundancy < fading(railyard, copy_rule="always").redundancy
    assert fading(railyard, reinjection="none").redundancy == 0
    assert fading(railyard, thresholds="off").redundancy == 0
    open_gate = fading(railyard, qoe_control="off", bitrate_bps=1_500_000)
    assert open_gate.redundancy > 2 * fading(railyard, bitrate_bps=1_500_000).redundancy
    assert {event["why"] for event in qlog(open_gate, "xlink:qoe_gate")} == {"no control"}


def test_what_carries_the_signal_is_what_was_asked_for(railyard: Railyard) -> None:
    def carried(result: Result) -> dict[str, int]:
        text = next((result.directory / "qlog").glob("*_client.sqlog")).read_text()
        sent = [line for line in text.split("\n") if '"quic:packet_sent"' in line]
        return {kind: sum(mark in line for line in sent) for kind, mark in MARKS.items()}

    MARKS = {"ack": '"qoe":{', "signals": '"qoe_control_signals"'}  # noqa: N806
    for carrier in ("ack", "signals", "both", "off"):
        result = fading(railyard, qoe=carrier, duration_s=4)
        counts = carried(result)
        in_acks = counts["ack"] - counts["signals"]  # the frame's own member is called qoe, too
        assert (in_acks > 10) == (carrier in ("ack", "both")), (carrier, counts)
        assert (counts["signals"] > 10) == (carrier in ("signals", "both")), (carrier, counts)
        assert bool(qlog(result, "xlink:qoe_received")) == (carrier != "off")
        if carrier == "off":
            assert {event["why"] for event in qlog(result, "xlink:qoe_gate")} <= {"no signal yet"}


def test_the_qlog_says_why_not_without_growing(railyard: Railyard) -> None:
    result = fading(railyard, copy_rule="always")
    refused = qlog(result, "xlink:reinjection_refused")
    assert {"gate closed", "all copied"} <= {event["why"] for event in refused}
    for event in refused:
        if event["why"] == "gate closed":
            assert event["gate"] in ("above T_th2", "above deliverTime_max")
            assert event["play_time_left_ms"] >= event["t_th1_ms"]
    selected, sent = qlog(result, "multipath:path_selected"), qlog(result, "quic:packet_sent")
    assert 0 < len(selected) < len(sent) / 10
    assert 0 < len(refused) < len(sent) / 10
    assert any(event["why"] == "smallest RTT" for event in selected)
    assert any(event.get("no_window") == [0] for event in selected)


# ---- the first video frame ----


def first_frame(folder: Path, reinjection: str) -> tuple[float, int]:
    """First-frame latency, s, and re-injected bytes. The first frame takes a second on the fast path, and the rest of
    its chunk is three times as long; the slow path goes dark with the end of the frame in flight on it."""
    fast = {"name": "fast", "technology": "wifi", "up": "8mbps", "down": "8mbps", "delay_ms": 15}
    slow = {"name": "slow", "technology": "lte", "up": "4mbps", "down": "4mbps", "delay_ms": 150}
    video = {"video_bytes": 4_000_000, "chunk_bytes": 4_000_000, "bitrate_bps": 4_000_000, "verify": True}
    job = {"seed": 1, "time_limit_s": 60, "scheme": "xlink-lean", "reinjection": reinjection, "link_logs": False}
    job |= {"paths": [fast | {"queue": "droptail:packets=60"}, slow | {"queue": "droptail:packets=100"}]}
    job |= {"player": video | {"first_frame_bytes": 1_000_000}}
    job |= {
        "link_events": [{"t_s": 0.95, "path": "slow", "state": "down"}, {"t_s": 3.5, "path": "slow", "state": "up"}]
    }
    simulate(folder, job)
    player, server = (read_jsonl(folder / name)[-1] for name in ("player.jsonl", "server.jsonl"))
    assert player["outcome"] == "complete"
    return float(player["first_frame_s"]), int(server["reinjected_bytes"])


def test_the_first_frame_does_not_wait_for_a_path_that_went_dark_with_its_end(tmp_path: Path) -> None:
    """Paper, section 5.1: `stream` copies what is unacknowledged once the stream has nothing left to send, and that is
    long after the frame; `frame` copies the frame's packets before the rest of the stream."""
    none, _ = first_frame(tmp_path / "none", "none")
    stream, _ = first_frame(tmp_path / "stream", "stream")
    frame, copied = first_frame(tmp_path / "frame", "frame")
    assert stream == none > 2, "the frame's end is sent again when the slow path's loss is noticed"
    assert frame < 1.5
    assert 0 < copied < 100_000, "what was on the slow path, and not the chunk"


# ---- multipath against the best single path ----


@dataclass(frozen=True)
class Link:
    mbps: float
    delay_ms: int  # one way
    queue_bdp: float  # the queue's size over the bandwidth-delay product

    @property
    def packets(self) -> int:
        """Length of the queue: at least ten, which at 1 Mbps are 120 ms."""
        return max(10, round(self.mbps * 1e6 / 8 * 2 * self.delay_ms / 1000 / OPPORTUNITY_BYTES * self.queue_bdp))

    @property
    def loaded_rtt_s(self) -> float:
        """With its queue full."""
        return 2 * self.delay_ms / 1000 + self.packets * OPPORTUNITY_BYTES * 8 / (self.mbps * 1e6)

    def path(self, name: str, folder: Path) -> dict[str, Any]:
        count = max(1, round(self.mbps * 1e6 / 8 / OPPORTUNITY_BYTES * TRACE_MS / 1000))
        trace = folder / f"{name}.trace"
        trace.write_text("".join(f"{math.ceil((i + 1) * TRACE_MS / count)}\n" for i in range(count)))
        queue = {"queue": f"droptail:packets={self.packets}", "loss": 0}
        return {"name": name, "up": str(trace), "down": str(trace), "delay_ms": self.delay_ms} | queue


LINKS = st.builds(
    Link,
    mbps=st.floats(1, 20).map(lambda x: round(x, 2)),
    delay_ms=st.integers(5, 80),
    queue_bdp=st.floats(0.5, 3).map(lambda x: round(x, 2)),
)


def download_s(folder: Path, paths: list[dict[str, Any]], size: int, scheme: str, primary: str) -> float:
    """One request of `size` bytes, from the end of the handshake to its last byte."""
    player = {"video_bytes": size, "chunk_bytes": size, "bitrate_bps": max(10_000, 8 * size)}
    job = {"seed": 1, "time_limit_s": 600, "scheme": scheme, "primary": primary, "paths": paths, "player": player}
    job |= {"link_logs": False, "null_crypto": True}
    events = read_jsonl(simulate(folder / "out", job) / "player.jsonl")
    return next(float(event["rct_s"]) for event in events if event["event"] == "chunk_done")


def compare_with_single_paths(links: tuple[Link, Link], size: int) -> Iterator[tuple[float, float, float]]:
    """Multipath's time, the best single path's, the slow path's RTT under load; with each path as the primary one."""
    with tempfile.TemporaryDirectory(prefix="railyard-") as name:
        folder = Path(name)
        paths = [link.path(name, folder) for link, name in zip(links, "ab", strict=True)]
        best = min(download_s(folder, paths, size, "sp", primary) for primary in "ab")
        slow = max(link.loaded_rtt_s for link in links)
        for primary in "ab":
            yield download_s(folder, paths, size, "xlink-lean", primary), best, slow


SHARE = 0.10  # x of the property
LONG = 8  # loaded RTTs of the slow path from which on it holds without an exception
EXCEPTION = 1.1  # loaded RTTs of the slow path that a shorter download may lose beyond x


worst: dict[str, tuple[float, tuple[Link, Link]]] = {}  # of all that were drawn, for the table of the results' page


def note(kind: str, loss: float, links: tuple[Link, Link]) -> None:
    worst[kind] = max(worst.get(kind, (loss, links)), (loss, links), key=lambda found: found[0])


def check_long_download(links: tuple[Link, Link], rtts: int) -> None:
    size = round(max(link.mbps for link in links) * 1e6 / 8 * max(link.loaded_rtt_s for link in links) * rtts)
    for took, best, slow in compare_with_single_paths(links, max(size, 100_000)):
        if best >= LONG * slow:
            note("long: longer by, of the best single path's time", took / best - 1, links)
            assert took <= (1 + SHARE) * best, (took, best, slow)


def check_any_download(links: tuple[Link, Link], size: int) -> None:
    for took, best, slow in compare_with_single_paths(links, size):
        if best < LONG * slow:
            note("short: longer by 10 % and, in T", (took - (1 + SHARE) * best) / slow, links)
        assert took <= (1 + SHARE) * best + EXCEPTION * slow, (took, best, slow)


@settings(max_examples=8)
@given(st.tuples(LINKS, LINKS), st.integers(LONG, 12))
def test_a_long_download_is_never_more_than_10_per_cent_slower_than_the_best_single_path(
    links: tuple[Link, Link], rtts: int
) -> None:
    """For scheme xlink-lean over two links of constant rate, whichever is the primary path: a download that takes the
    best single path eight RTTs of the slow path or longer takes multipath at most x = 10 % longer. The RTT is the one
    with the link's queue full. Of 300 drawn, the worst was 5.2 % slower: 17.8 Mbps beside 1 Mbps."""
    check_long_download(links, rtts)


@settings(max_examples=8)
@given(st.tuples(LINKS, LINKS), st.integers(20_000, 2_000_000))
def test_a_short_download_loses_little_more_than_one_round_trip_of_the_slow_path(
    links: tuple[Link, Link], size: int
) -> None:
    """The exceptions. A shorter download can lose more than 10 %, up to 1.1 loaded RTTs of the slow path: the windows
    of new paths are small, so the scheduler fills the slow path's while the fast one's is full; what it put there is
    worth copying only once the fast path has room again; and where the slow path is the primary one, the other one
    opens a round trip later. Of 300 drawn, the worst lost 1.04 of it beyond the 10 %."""
    check_any_download(links, size)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_long_and_short_downloads_over_many_more_links() -> None:
    many = settings(max_examples=300)
    many(given(st.tuples(LINKS, LINKS), st.integers(LONG, 12))(check_long_download))()
    many(given(st.tuples(LINKS, LINKS), st.integers(20_000, 2_000_000))(check_any_download))()
    for kind, (loss, links) in worst.items():
        print(f"{kind}: {loss:.3f}, {links}")


# ---- bounds of cost ----

SETTINGS = ((90, 60), (60, 50), (20, 20))
# The paper's C_min >= β P(Δt < T_th1), C_max <= β P(Δt < T_th2), P over the bytes copied with the gate open. They would
# be exact if the gate did not change the plays: 5 % for what it does. At 20-20 both bounds are one, equal to C.
WITHIN = 0.05


def check_bounds(study: Study, upper: Sequence[tuple[int, int]] = SETTINGS) -> None:
    """Checks the bounds. `upper`: also the upper one."""
    found = {(row.setting, row.rule): row for row in study.rows(SETTINGS)}
    for (setting, rule), row in found.items():
        print(f"{rule} {setting}: {row.least:.4f} <= {row.measured.value:.4f} <= {row.most:.4f}; beta {row.beta:.4f}")
    for (setting, _), row in found.items():
        assert row.measured.value >= (1 - WITHIN) * row.least
        assert row.measured.value <= (1 + WITHIN) * row.most or setting not in upper
    for setting in SETTINGS:
        assert found[setting, "pays"].measured.value < found[setting, "always"].measured.value


def test_the_cost_lies_between_the_papers_bounds(tmp_path: Path) -> None:
    check_bounds(Study(["subway-1", "hsr-1"], 3, (2_500_000, 4_000_000), tmp_path))


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_cost_lies_between_the_papers_bounds_on_recorded_pairs(tmp_path: Path) -> None:
    """The upper one is only checked if both are one number, as others do not hold there
    (docs/results/reinjection.md)."""
    pairs = ["subway_nyc_a", "hsr_1624", "walk_sbu_8_1"]
    known = {pair.name for pair in list_pairs()}
    if not known.issuperset(pairs):
        pytest.skip("the recorded pairs are not on RAILYARD_TRACE_PATH")
    check_bounds(Study(pairs, 10, (1_500_000, 2_500_000, 4_000_000), tmp_path), SETTINGS[2:])
