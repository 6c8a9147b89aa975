"""The oracle: exact if the answer is known, and never later than a real run."""

import hashlib
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import FakeRun
from railyard.figures.rows import EFFICIENCY
from railyard.gate.testing import Railyard
from railyard.results import oracle
from railyard.results.aggregate import write_parquet
from railyard.results.oracle import (
    PAYLOAD_BYTES,
    TOLERANCE_S,
    Asked,
    InOrder,
    OraclePath,
    bytes_by_path,
    completion_us,
    play_s,
    rct_s,
    request_arrival_us,
)
from railyard.results.records import Chunk, load_run
from railyard.traces.trace import Trace, format_trace, read_trace


def trace(*times_ms: int) -> Trace:
    data = format_trace(list(times_ms))
    return Trace(Path("unit"), np.array(times_ms, dtype=np.int64), hashlib.sha256(data).hexdigest())


EVERY_MS = trace(*range(1, 101))  # 12 Mbps: an opportunity every millisecond
EVERY_2_MS = trace(*range(2, 101, 2))


def path(up: Trace = EVERY_MS, down: Trace = EVERY_MS, delay_ms: float = 10, offset_ms: int = 0) -> OraclePath:
    return OraclePath(up, down, round(delay_ms * 1000), offset_ms)


def test_a_chunk_over_a_constant_rate_takes_what_a_hand_computes() -> None:
    """Requested at 0; queued at 10 ms; departs at 11 ms; data queued at 21 ms; opportunities 22, 23, … ms."""
    assert request_arrival_us([path()], 0) == 11_000
    assert completion_us([path()], 0, 1) == 22_000
    assert completion_us([path()], 0, PAYLOAD_BYTES) == 22_000
    assert completion_us([path()], 0, PAYLOAD_BYTES + 1) == 23_000
    assert completion_us([path()], 0, 500 * PAYLOAD_BYTES) == (21 + 500) * 1000, "the trace of 100 ms loops five times"


def test_a_request_within_a_millisecond_waits_for_the_next_one() -> None:
    assert rct_s([path()], 0.0005, 1) == pytest.approx(0.0215)  # queued at 10.5 ms, departs at 11 ms, as if at 0
    assert rct_s([path(delay_ms=0)], 0.000999, 1) == pytest.approx(0.002 - 0.000999)


def test_both_downlinks_carry_the_chunk_and_the_faster_uplink_the_request() -> None:
    """Request over the path of 10 ms. Of 30 packets, the path of 10 ms carries 20 by 41 ms, that of 40 ms none yet;
    by then 1 ms brings one over each."""
    fast, slow = path(delay_ms=10), path(delay_ms=40)
    assert request_arrival_us([slow, fast], 0) == 11_000
    assert completion_us([fast, slow], 0, 30 * PAYLOAD_BYTES) == 51_000  # 22 to 51 over one; the other begins at 52
    assert completion_us([fast, slow], 0, 34 * PAYLOAD_BYTES) == 53_000  # 32 by 53, and 52, 53 over the other
    assert completion_us([slow], 0, 1) == 82_000


def test_only_in_the_last_millisecond_do_the_first_paths_go_first() -> None:
    """The second path has an opportunity at 23 ms, the first one two at 24 ms."""
    paths = [path(down=trace(24, 24, 100)), path(down=trace(23, 100))]
    assert bytes_by_path(paths, 0, 2 * PAYLOAD_BYTES) == [PAYLOAD_BYTES, PAYLOAD_BYTES]
    assert bytes_by_path(paths, 0, 2 * PAYLOAD_BYTES - 1) == [PAYLOAD_BYTES - 1, PAYLOAD_BYTES]


def test_the_start_offset_and_the_slower_rate_count() -> None:
    """From 51 ms into the trace of 2 ms, opportunities are at 1, 3, … 49 ms, where it loops, then 51, 53, …"""
    shifted = path(down=EVERY_2_MS, delay_ms=0, offset_ms=51)
    assert request_arrival_us([shifted], 0) == 1_000
    assert completion_us([shifted], 0, 24 * PAYLOAD_BYTES) == 49_000
    assert completion_us([shifted], 0, 25 * PAYLOAD_BYTES) == 51_000


times = st.lists(st.integers(0, 400), min_size=1, max_size=60).map(sorted).filter(lambda found: found[-1] > 0)
paths = st.lists(
    st.builds(
        lambda up, down, delay, offset: path(trace(*up), trace(*down), delay, offset),
        times,
        times,
        st.integers(0, 100),
        st.integers(0, 500),
    ),
    min_size=1,
    max_size=3,
)


def opportunities(down: Trace, after_ms: int, until_ms: int, offset_ms: int) -> int:
    """Opportunities counted one by one, over all loops."""
    loops = range((until_ms + offset_ms) // down.period_ms + 1)
    at = [loop * down.period_ms + int(t) - offset_ms for loop in loops for t in down.opportunities_ms]
    return sum(after_ms < t <= until_ms for t in at)


@settings(max_examples=60)
@given(paths, st.integers(0, 300_000), st.integers(1, 60_000))
def test_it_is_the_first_millisecond_with_enough_opportunities(
    found: list[OraclePath], request_us: int, size: int
) -> None:
    sent_ms = request_arrival_us(found, request_us) // 1000
    done_ms = completion_us(found, request_us, size) // 1000

    def carried(until_ms: int) -> int:
        return PAYLOAD_BYTES * sum(
            opportunities(p.down, sent_ms + p.delay_us // 1000, until_ms, p.start_offset_ms) for p in found
        )

    assert carried(done_ms) >= size > carried(done_ms - 1)


@settings(max_examples=60)
@given(paths, st.integers(0, 300_000), st.integers(1, 60_000), st.integers(0, 60_000))
def test_more_bytes_never_arrive_earlier_and_another_path_never_hurts(
    found: list[OraclePath], request_us: int, size: int, more: int
) -> None:
    whole = completion_us(found, request_us, size)
    assert completion_us(found, request_us, size + more) >= whole
    assert completion_us(found[:1], request_us, size) >= whole
    assert completion_us(found, request_us + more, size) >= whole


def test_the_median_efficiency_says_when_it_rests_on_an_unfinished_chunk(tmp_path: Path) -> None:
    run = load_run(FakeRun().write(tmp_path))

    def median(*chunks: Chunk) -> str:
        return EFFICIENCY.text([replace(run, chunks=list(chunks))])

    done = [Chunk(i, 0.0, 1.0, True, 1, oracle_s=share) for i, share in enumerate((0.2, 0.4, 0.9))]
    assert median(*done) == "40.0 %"
    waiting = Chunk(3, 0.0, 2.0, False, 1, oracle_s=1.8)
    assert median(*done, waiting) == "≤ 40.0 %"
    assert median(*done, Chunk(3, 0.0, 2.0, True, 1)) == "–", "without its trace a chunk has none"
    early = Chunk(3, 0.0, 0.1, False, 1, oracle_s=1.0)
    assert early.efficiency == 1.0, "cut off before the oracle's time: all that is known is that it is at most 1"


@pytest.mark.parametrize("scheme", ["sp", "cm", "vanilla-mp", "xlink"])
@pytest.mark.parametrize("pair", ["subway-1", "hsr-1"])
def test_no_run_in_virtual_time_is_earlier_than_the_oracle(scheme: str, pair: str, tmp_path: Path) -> None:
    result = Railyard(tmp_path).run(scheme, pair, seed=2, duration_s=6, chunk_bytes=65_536, link_logs=False)
    known = [(chunk.oracle_s, chunk.rct_s) for chunk in result.chunks if chunk.completed]
    assert len(known) > 10
    assert all(best is not None and best <= rct + TOLERANCE_S for best, rct in known)
    assert all(best is not None and best > 0.05 for best, _ in known), "a round trip at least"


def test_a_run_whose_traces_are_gone_or_changed_has_no_oracle(tmp_path: Path) -> None:
    file = tmp_path / "t.down"
    file.write_bytes(format_trace(range(1, 50)))
    place = {"up": str(file), "down": str(file), "delay_ms": 10.0}
    right = {"up_sha256": read_trace(file).sha256, "down_sha256": read_trace(file).sha256}
    config = {"start_offset_ms": 3, "paths": [place | right]}
    found = oracle.paths_of_run(config)
    assert found is not None and (found[0].delay_us, found[0].start_offset_ms) == (10_000, 3)
    assert oracle.paths_of_run({"start_offset_ms": 3, "paths": [place | right | {"down_sha256": "0"}]}) is None
    gone = place | right | {"up": str(tmp_path / "gone")}
    assert oracle.paths_of_run({"start_offset_ms": 3, "paths": [gone]}) is None


def test_chunks_parquet_has_the_oracle_and_the_efficiency(tmp_path: Path) -> None:
    result = Railyard(tmp_path / "runs").run("xlink", "subway-1", duration_s=3, chunk_bytes=131_072, qlog=False)
    write_parquet([result.run], tmp_path)
    rows = pq.read_table(tmp_path / "chunks.parquet").to_pylist()
    assert [row["oracle_s"] for row in rows] == [chunk.oracle_s for chunk in result.chunks]
    assert [row["oracle_play_s"] for row in rows] == [chunk.oracle_play_s for chunk in result.chunks]
    assert all(row["oracle_play_s"] is not None for row in rows)
    assert all(0 < row["efficiency"] <= 1 for row in rows)
    run = pq.read_table(tmp_path / "runs.parquet").to_pylist()[0]
    assert run["efficiency"] == sorted(row["efficiency"] for row in rows)[(len(rows) - 1) // 2]


def completions_in_order_us(found: list[OraclePath], made: list[tuple[int, int]]) -> list[int]:
    served = InOrder(found)
    return [served.completion_us(request_us, size) for request_us, size in made]


def test_requests_that_are_open_together_follow_each_other() -> None:
    """Alone each takes 21 + 100 ms; the second one's opportunities begin behind the first one's."""
    size = 100 * PAYLOAD_BYTES
    assert completions_in_order_us([path()], [(0, size), (0, size)]) == [121_000, 221_000]
    assert completions_in_order_us([path()], [(0, size), (50_000, size)]) == [121_000, 221_000]
    assert completions_in_order_us([path()], [(0, size), (200_000, size)]) == [121_000, 321_000], "no longer open"
    assert completions_in_order_us([path(), path()], [(0, size), (0, size)]) == [71_000, 121_000]


def test_requests_in_order_share_a_packet() -> None:
    half = PAYLOAD_BYTES // 2
    assert completions_in_order_us([path()], [(0, half)] * 4) == [22_000, 22_000, 23_000, 23_000]
    assert completions_in_order_us([path()], [(0, half), (30_000, half), (30_000, half)]) == [22_000, 52_000, 52_000]
    apart = [(0, half), (30_000, PAYLOAD_BYTES + half), (30_000, PAYLOAD_BYTES)]
    assert completions_in_order_us([path()], apart) == [22_000, 53_000, 54_000], "what was left has passed"


requests = st.lists(st.tuples(st.integers(0, 300_000), st.integers(1, 60_000)), min_size=1, max_size=6).map(sorted)


@settings(max_examples=60)
@given(paths, requests)
def test_the_first_requests_together_are_complete_as_early_as_their_bytes_can_be(
    found: list[OraclePath], made: list[tuple[int, int]]
) -> None:
    done = completions_in_order_us(found, made)
    assert done == sorted(done)
    assert done[0] == completion_us(found, *made[0])
    for k, (request_us, size) in enumerate(made):
        assert done[k] >= completion_us(found, request_us, size), "alone it is earlier"
        together = sum(bytes_of for _, bytes_of in made[: k + 1])
        assert done[k] <= completion_us(found, request_us, together), "and no later than if all were made now"


@settings(max_examples=30)
@given(paths, requests, st.randoms(use_true_random=False))
def test_no_order_completes_the_first_requests_earlier(
    found: list[OraclePath], made: list[tuple[int, int]], rng: Random
) -> None:
    """Opportunity by opportunity, each to any request that is open: the last of the first k is never earlier."""
    done = completions_in_order_us(found, made)
    released = [request_arrival_us(found, request_us) for request_us, _ in made]
    left = [-(-size // PAYLOAD_BYTES) for _, size in made]
    real = [0 for _ in made]
    horizon = max(done) // 1000 + 4000
    slots = sorted(
        (t, number)
        for number, p in enumerate(found)
        for k in range(p.down.count_until(p.start_offset_ms), p.down.count_until(horizon + p.start_offset_ms))
        if (t := p.down.opportunity_ms(k) - p.start_offset_ms) >= 0
    )
    for at_ms, number in slots:
        delay_us = found[number].data_delay_us
        usable = [k for k in range(len(made)) if left[k] and (released[k] + delay_us) // 1000 < at_ms]
        if usable:
            k = rng.choice(usable)
            left[k] -= 1
            real[k] = at_ms * 1000 if left[k] == 0 else real[k]
    for k in range(len(made)):
        if not any(left[: k + 1]):
            assert max(real[: k + 1]) >= done[k]


def test_a_player_of_the_oracle_follows_up_what_completes_earlier() -> None:
    """Two open at a time. The third was made when the first completed, the fourth at a time of its own."""
    size = 100 * PAYLOAD_BYTES
    asked = [Asked(0, 0.3, size), Asked(0, 0.5, size), Asked(0.3, None, size), Asked(0.4, 0.9, size)]
    # Complete after 121, 221, 321 ms; the third is made at 121 ms. The fourth begins on free links.
    assert play_s([path()], asked) == pytest.approx([0.121, 0.221, 0.2, 0.121])
    alone = [Asked(0, 0.3, size), Asked(0.3, 0.6, size), Asked(0.7, 1.0, size)]
    assert play_s([path()], alone) == pytest.approx([0.121] * 3)
    late = [Asked(0, 0.3, size), Asked(0.302, 0.6, size)]
    assert play_s([path()], late) == pytest.approx([0.121, 0.121]), "not because of the first one"
