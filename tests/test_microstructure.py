"""`railyard traces convert --microstructure`: bins keep their bytes and get the silences of recordings of packets."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from railyard.traces.convert.microstructure import restored
from railyard.traces.index import read_index
from railyard.traces.stats import trace_stats
from railyard.traces.trace import OPPORTUNITY_BYTES, Trace, TraceError, format_trace, read_trace
from trace_files import in_memory, railyard_traces, write

PERIOD_MS = 60_000
SILENCES_A_MINUTE = 20


def donor(every_ms: int, silent_ms: int = 400) -> Trace:
    """Packets at equal distances, except for a silence every 3 s."""
    return in_memory([ms for ms in range(0, PERIOD_MS, every_ms) if ms % 3000 >= silent_ms] + [PERIOD_MS])


def recording(packets: list[int], bin_ms: int = 1000) -> bytes:
    """The given number of packets in each bin, evenly spread."""
    times = [number * bin_ms + k * bin_ms // count for number, count in enumerate(packets) for k in range(count)]
    return format_trace([*times, len(packets) * bin_ms])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "donor", format_trace(donor(5).opportunities_ms))
    drawn = np.random.default_rng(5)
    write(tmp_path / "bins.down", recording([int(count) for count in drawn.integers(60, 400, 60)]))
    return tmp_path


def convert(folder: Path, out: str, *more: object) -> tuple[int, str, str]:
    arguments = (folder / "bins.down", "--microstructure", folder / "donor", "--out", folder / out, *more)
    return railyard_traces("convert", *(str(argument) for argument in arguments))


def test_every_bin_keeps_its_bytes_and_the_silences_are_those_of_the_donor(folder: Path) -> None:
    code, out, err = convert(folder, "restored.down", "--bin-ms", 1000, "--seed", 3)
    assert code == 0, err
    assert "silences of 1 donors, seed 3; 0% of the time has no stretch of similar rates" in out
    even, found = read_trace(folder / "bins.down"), read_trace(folder / "restored.down")
    assert found.period_ms == even.period_ms == PERIOD_MS
    assert found.counts(1000).tolist() == even.counts(1000).tolist()
    assert trace_stats(even).gaps_per_minute == 0
    assert trace_stats(found).gaps_per_minute == pytest.approx(SILENCES_A_MINUTE, abs=6)
    gaps = np.diff(found.opportunities_ms)
    assert 300 <= np.median(gaps[gaps >= 200]) <= 450


@pytest.mark.parametrize("seed", range(20))
def test_bytes_stay_in_their_bins_whatever_is_drawn(seed: int) -> None:
    drawn = np.random.default_rng(seed)
    bin_ms = int(drawn.choice([200, 500, 1000, 2000]))
    packets = drawn.integers(0, 300, 40) * (drawn.random(40) < 0.7)
    packets[0] = 50
    amounts = packets.astype(np.float64) * OPPORTUNITY_BYTES
    done = restored(amounts, bin_ms, [donor(5), donor(13, 900)], seed).delivered
    edges = np.arange(len(packets) + 1) * bin_ms * 1000.0
    before = np.concatenate(([0.0], done.bytes_until))[np.searchsorted(done.times_us, edges, side="left")]
    assert np.diff(before) == pytest.approx(packets * OPPORTUNITY_BYTES, abs=1e-3)


def test_the_seed_decides_and_the_file_beside_the_trace_says_where_silences_are_from(folder: Path) -> None:
    for name, seed in (("a.down", 3), ("b.down", 3), ("c.down", 4)):
        assert convert(folder, name, "--bin-ms", 1000, "--seed", seed)[0] == 0
    a, b, c = ((folder / name).read_bytes() for name in ("a.down", "b.down", "c.down"))
    assert a == b != c
    said = yaml.safe_load((folder / "a.down.yaml").read_text())
    assert (said["kind"], said["seed"], said["source"]["bin_ms"]) == ("restored", 3, 1000)
    assert said["source"]["sha256"] == read_trace(folder / "bins.down").sha256
    assert [one["sha256"] for one in said["donors"]] == [read_trace(folder / "donor").sha256]
    assert sum(block["length_s"] for block in said["blocks"]) == 60
    assert all(1 <= block["length_s"] <= 5 for block in said["blocks"][:-1])


def test_stretches_of_other_rates_are_no_donors() -> None:
    fast = np.full(30, 3000.0 * OPPORTUNITY_BYTES)
    done = restored(fast, 1000, [donor(5)], 1)
    assert done.even_share == 1.0
    gaps = np.diff(done.delivered.times_us)
    assert gaps.max() <= 1000
    nearer = restored(fast, 1000, [donor(5), in_memory([*sorted(list(range(0, 60_000)) * 3), 60_000])], 1)
    assert nearer.even_share == 0.0 and {block.donor for block in nearer.blocks} == {1}


def test_a_silence_that_reaches_over_the_border_of_blocks_goes_on() -> None:
    """The donor is silent for 1.2 s every 6 s, over the edge of a bin: bins that hold half a silence have few bytes."""
    times = [ms for ms in range(0, PERIOD_MS, 2) if not 5400 <= ms % 6000 < 6600 and ms % 6000 >= 600]
    rates = np.histogram(times, bins=np.arange(0, PERIOD_MS + 1, 1000))[0] * float(OPPORTUNITY_BYTES)
    found = restored(rates, 1000, [in_memory([*times, PERIOD_MS])], 2).delivered
    gaps = np.diff(found.times_us) / 1000
    long = np.sort(gaps[gaps >= 200])[::-1]
    assert len(long) == pytest.approx(9, abs=2)
    assert np.median(long) == pytest.approx(1200, abs=150)


def test_a_recipe_makes_a_pair_that_is_marked_restored(folder: Path) -> None:
    down = "{file: bins.down, from: mahimahi, bin_ms: 1000, microstructure: {donors: [donor], seed: 2}}"
    recipe = f"""\
schema: 1
pairs:
- name: mine
  scenario: walking
  licence: CC0-1.0
  source: by hand
  paths:
  - {{name: wifi, technology: wifi, downlink: {down}}}
  - {{name: lte, technology: lte, downlink: {{file: donor, from: mahimahi}}}}
"""
    code, _, err = railyard_traces("convert", str(write(folder / "r.yaml", recipe)), "--out", str(folder / "lib"))
    assert code == 0, err
    (pair,) = read_index(folder / "lib" / "index.yaml")
    assert [(path.kind, path.resolution_ms) for path in pair.paths] == [("restored", 1), (None, None)]
    assert yaml.safe_load((folder / "lib" / "mine.wifi.down.yaml").read_text())["seed"] == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "it does not say the length of its bins, which get silences; give it in ms, bin-ms"),
        (("--bin-ms", 70), "bins of 70 ms get no silences; they must be a multiple of 50 ms, at most 5 s"),
        (("--bin-ms", 1e9), "it is shorter than one bin of 1000000000 ms"),
        (("--bin-ms", 1000, "--microstructure", "/nowhere"), "/nowhere: cannot read the trace"),
    ],
)
def test_what_cannot_be_restored_is_told(folder: Path, options: tuple[object, ...], said: str) -> None:
    code, _, err = convert(folder, "x.down", *options)
    assert (code, said in err, err.count("\n")) == (2, True, 1), err
    assert not (folder / "x.down").exists()


def test_an_empty_donor_is_refused() -> None:
    with pytest.raises(TraceError, match="there is no packet in this donor"):
        restored(np.full(4, 1e5), 1000, [in_memory([1000])], 1)
