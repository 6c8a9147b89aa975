"""Places that a rule finds in the traces: those with the least capacity of the primary path."""

import itertools
import json
from pathlib import Path

import pytest

from conftest import good, one_sentence
from in_process import railyard
from railyard.base.errors import UserError
from railyard.experiment.model import load_experiment
from railyard.run.resolve import resolve
from railyard.traces import find_pair, read_trace
from railyard.traces.stretches import worst_stretches
from trace_files import in_memory


def test_the_worst_stretch_has_the_fewest_opportunities_and_the_next_ones_do_not_overlap_it() -> None:
    rates = [5, 5, 1, 0, 5, 5, 2, 1, 5, 5]  # opportunities in each second
    times = [second * 1000 + 100 * k + 50 for second, rate in enumerate(rates) for k in range(rate)]
    found = worst_stretches(in_memory([*times, 10_000]), 2000, 4, 8000)
    assert found[0].start_ms == 1500  # the earliest that has only the one opportunity of the third second
    assert found[0].mbps == pytest.approx(1 * 1504 * 8 / 1e6 / 2)
    starts = sorted(stretch.start_ms for stretch in found)
    assert all(later - earlier >= 2000 for earlier, later in itertools.pairwise(starts))
    assert worst_stretches(in_memory([*times, 10_000]), 2000, 1, 0)[0].start_ms == 0
    assert len(worst_stretches(in_memory([*times, 10_000]), 4000, 9, 6000)) == 2
    with pytest.raises(UserError, match="4294967295 ms in bins of 100 ms are more than 3000000 bins; give a trace"):
        worst_stretches(in_memory([4_294_967_295]), 2000, 1, 4_294_967_295)


PLACED = """\
name: placed
arena: sim
pairs: [subway-1]
schemes: [sp, xlink]
seeds: {seeds}
start_offset_ms: worst_of_primary
player: {{duration_s: {duration}, bitrate_bps: 1000000, chunk_bytes: 65536}}
time_limit_s: {limit}
"""


def test_runs_start_at_the_worst_stretches_of_the_primary_path_and_page_and_terminal_say_so(tmp_path: Path) -> None:
    file = tmp_path / "placed.yaml"
    file.write_text(PLACED.format(seeds=2, duration=5, limit=20))
    specs = resolve(*load_experiment(file))
    trace = read_trace(find_pair("subway-1").paths[0].downlink)
    offsets = {spec.seed: spec.start_offset_ms for spec in specs}
    assert {(spec.seed, spec.start_offset_ms) for spec in specs} == set(offsets.items()), "the same for all schemes"

    def capacity(start_ms: int) -> int:
        return int(trace.counts(5000, duration_ms=5000, start_offset_ms=start_ms)[0])

    assert capacity(offsets[1]) == min(capacity(start) for start in range(0, trace.period_ms - 20_000, 100))
    assert abs(offsets[1] - offsets[2]) >= 5000 and capacity(offsets[1]) <= capacity(offsets[2])
    done = good(railyard("run", str(file), "--out", str(tmp_path / "out")))
    places = " and ".join(f"{offset / 1000:.1f}" for offset in (offsets[1], offsets[2]))
    sentence = f"Starts at {places} s, where wifi, the primary path, has the least capacity over 5 s "
    sentence += "(worst_of_primary, excluding the last 20 s): "
    assert sentence in done.stdout.replace("\n", " ")
    assert sentence in (tmp_path / "out" / "report.html").read_text()
    record = json.loads((tmp_path / "out" / "runs" / specs[0].run_id / "run.json").read_text())
    assert record["config"]["start_offset_ms"] == offsets[specs[0].seed]


def test_more_seeds_than_a_trace_has_stretches_are_refused_with_the_line(tmp_path: Path) -> None:
    file = tmp_path / "placed.yaml"
    file.write_text(PLACED.format(seeds=9, duration=20, limit=20))
    done = railyard("run", str(file), "--out", str(tmp_path / "out"))
    one_sentence(done, f"{file}:5: seeds: the traces of subway-1 have not so many stretches of 20 s")
