"""Traces: reading, measuring, the library of pairs, the generator, and `railyard traces`."""

import csv
import json
import math
import os
import re
import tracemalloc
from dataclasses import replace
from pathlib import Path
from textwrap import indent
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from in_process import railyard
from railyard.base.errors import UserError
from railyard.base.yamlfile import load_yaml, parse
from railyard.traces import find_pair, list_pairs, pair_stats, read_trace, sha256_file, trace_stats
from railyard.traces import library as library_module
from railyard.traces import stats as stats_module
from railyard.traces import trace as trace_module
from railyard.traces.index import TraceIndex, entry_data, read_index, write_entry
from railyard.traces.library import SEARCH_PATH_VARIABLE
from railyard.traces.plot import outages
from railyard.traces.recorded import read_recorded
from railyard.traces.resolution import coarse_words, share_words
from railyard.traces.settings import mpshell_keys
from railyard.traces.stats import autocorrelation_time_s
from railyard.traces.trace import MAX_DIGITS, MAX_MS, Trace, TraceError, format_trace
from trace_files import GENERATED, in_memory, railyard_traces, write

# The names of the paths of these pairs, if the collection has them. It may have other pairs too.
KNOWN_RECORDED = {
    "hsr_0904": ("wifi", "lte"),
    "hsr_1271": ("wifi", "lte"),
    "hsr_1624": ("wifi", "lte"),
    "subway_nyc_a": ("wifi", "lte"),
    "walk_sbu_8_1": ("wifi", "lte"),
    "walk_sbu_13_2": ("wifi", "lte"),
    "drive_me_0528": ("att", "verizon"),
    "leo_me_42": ("verizon", "starlink"),
}


# --- Reading ---------------------------------------------------------------------------------------------------------


def test_a_trace_is_read_with_its_hash_period_and_mean(tmp_path: Path) -> None:
    file = write(tmp_path / "t", "0\n5\n5\n1000\n")
    trace = read_trace(file)
    assert trace.opportunities_ms.tolist() == [0, 5, 5, 1000]
    assert trace.period_ms == 1000
    assert trace.mean_mbps == pytest.approx(4 * 1504 * 8 / 1e6)
    assert trace.sha256 == sha256_file(file) == "ad8122e7295a7b8bfa9c2450f72b8b1ea9b329c3443bd07bf4b8a08a78981724"


def test_the_last_line_needs_no_line_end(tmp_path: Path) -> None:
    assert read_trace(write(tmp_path / "t", "1\n7")).opportunities_ms.tolist() == [1, 7]


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        ("1\n\n3\n", 2, "blank"),
        ("\n3\n", 1, "blank"),
        ("1\n3\n\n", 3, "blank"),
        ("1\n2x\n3\n", 2, "'2x' is not a timestamp"),
        ("1\n 2\n", 2, "' 2' is not a timestamp"),
        ("-1\n2\n", 1, "'-1' is not a timestamp"),
        ("1.5\n2\n", 1, "'1.5' is not a timestamp"),
        ("1\n2\r\n3\n", 2, "LF alone"),
        ("\xef\xbb\xbf1\n2\n", 1, "byte order mark"),
        ("1\n9\n8\n10\n", 3, "timestamp 8 comes after 9"),
        ("0\n0\n", 2, "last timestamp is 0"),
        ("1\n" + "9" * (MAX_DIGITS + 1) + "\n", 2, "digits"),
        ("1\n4294967295\n4294967296\n", 3, "beyond 4294967295 ms"),
        ("1\n\xff\n", 2, "is not a timestamp"),
    ],
)
def test_a_malformed_trace_is_refused_with_file_and_line(tmp_path: Path, content: str, line: int, said: str) -> None:
    file = write(tmp_path / "bad.down", content.encode("latin-1"))
    with pytest.raises(TraceError) as error:
        read_trace(file)
    assert str(error.value).startswith(f"{file}:{line}: ")
    assert said in str(error.value)


def test_an_empty_or_missing_trace_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"nothing\.down: the trace is empty"):
        read_trace(write(tmp_path / "nothing.down", ""))
    with pytest.raises(TraceError, match=r"absent\.down: cannot read the trace: no such file"):
        read_trace(tmp_path / "absent.down")
    with pytest.raises(TraceError, match="cannot read the trace"):
        read_trace(tmp_path)


def slow_parse(data: bytes) -> list[int] | None:
    """The format's definition, line by line; None for what is no trace."""
    lines = data.removesuffix(b"\n").split(b"\n")
    if not all(line.isdigit() and len(line) <= MAX_DIGITS for line in lines):
        return None
    times = [int(line) for line in lines]
    return times if times == sorted(times) and 0 < times[-1] <= MAX_MS else None


@given(data=st.one_of(st.binary(max_size=30), st.text("0123459\n\r -", max_size=30).map(str.encode)))
def test_any_bytes_are_a_trace_or_refused_exactly_as_the_format_says(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    file = write(tmp_path_factory.getbasetemp() / "any.down", data)
    expected, refusals = slow_parse(data), set[str]()
    for piece_bytes in (1, 5, 100):
        with mock.patch.object(trace_module, "_PIECE_BYTES", piece_bytes):
            if expected is not None:
                assert read_trace(file).opportunities_ms.tolist() == expected
                continue
            with pytest.raises(TraceError) as error:
                read_trace(file)
            refusals.add(str(error.value))
    assert len(refusals) == (expected is None)


def test_a_long_trace_takes_the_memory_of_its_file_and_its_timestamps(tmp_path: Path) -> None:
    count = 3_000_000
    file = write(tmp_path / "long.down", "".join(f"{time}\n" for time in range(50_000_000, 50_000_000 + count)))
    tracemalloc.start()
    assert trace_stats(read_trace(file)).opportunities == count
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < file.stat().st_size + 8 * count + 10 * trace_module._PIECE_BYTES


# --- Capacity over time ----------------------------------------------------------------------------------------------


@given(
    times=st.lists(st.integers(0, 400), min_size=1, max_size=40).map(sorted).filter(lambda times: times[-1] > 0),
    bin_ms=st.integers(1, 150),
    duration_ms=st.integers(1, 1500),
    offset_ms=st.integers(0, 1200),
)
def test_bins_count_the_opportunities_of_the_looping_trace(
    times: list[int], bin_ms: int, duration_ms: int, offset_ms: int
) -> None:
    loops = (offset_ms + duration_ms + bin_ms) // times[-1] + 1
    unrolled = [time + loop * times[-1] for loop in range(loops) for time in times]
    starts = [offset_ms + k * bin_ms for k in range(max(duration_ms // bin_ms, 1))]
    expected = [sum(start <= time < start + bin_ms for time in unrolled) for start in starts]
    counts = in_memory(times).counts(bin_ms, duration_ms=duration_ms, start_offset_ms=offset_ms)
    assert counts.tolist() == expected


def test_the_rates_of_a_trace_loop_from_its_offset() -> None:
    trace = in_memory([10, 20, 150, 200])
    packet_in_100_ms = 1504 * 8 / 1e5
    assert trace.rate_mbps(100) / packet_in_100_ms == pytest.approx([3, 1]), "its end is time 0 of the next loop"
    looped = trace.rate_mbps(100, duration_ms=450, start_offset_ms=100)
    assert looped / packet_in_100_ms == pytest.approx([1, 3, 1, 3])
    with pytest.raises(ValueError, match="positive"):
        trace.rate_mbps(0)


# --- Statistics ------------------------------------------------------------------------------------------------------


def steady(rates: list[int]) -> Trace:
    """A trace with given numbers of evenly spaced opportunities in each second. Its period is a whole number of
    seconds."""
    times = [second * 1000 + k * 1000 // rate for second, rate in enumerate(rates) for k in range(rate)]
    return in_memory([*times, len(rates) * 1000])


def test_statistics_of_a_trace_that_was_laid_out_by_hand() -> None:
    fast, slow = 200, 40  # opportunities a second: 2.4 and 0.48 Mbps
    trace = steady([fast, slow, slow, fast, fast, fast, slow, fast, fast, 0])
    stats = trace_stats(trace)
    assert stats.duration_s == 10
    assert stats.opportunities == 6 * fast + 3 * slow + 1
    rates = np.array([fast + 1, slow, slow, fast, fast, fast, slow, fast, fast, 0]) * 1504 * 8 / 1e6
    assert stats.cv == pytest.approx(rates.std() / rates.mean())
    assert stats.ln_mu == pytest.approx(np.log(rates[:9]).mean())
    assert stats.ln_sigma == pytest.approx(np.log(rates[:9]).std())
    assert stats.below_1mbps == pytest.approx(0.4)
    assert (stats.dips.count, stats.dips.length_p50_s, stats.dips.length_max_s) == (3, 1, 2)
    assert stats.dips.length_p90_s == pytest.approx(1.8)
    assert stats.dips.spacing_median_s == pytest.approx(4)  # starts at 1, 6 and 9 s
    assert stats.empty_100ms == pytest.approx(0.1)
    assert stats.gaps_per_minute == pytest.approx(6)
    assert stats.silent_share == pytest.approx(0.1005)
    assert stats.longest_gap_s == pytest.approx(1.005)
    with mock.patch.object(stats_module, "PIECE", 7):
        assert trace_stats(trace) == stats


def test_statistics_have_every_opportunity_that_a_loop_replays() -> None:
    """The last timestamp of this trace has all of its opportunities: 84 a second, as the emulator delivers them."""
    stats = trace_stats(in_memory([1000] * 84))
    assert stats.mean_mbps == pytest.approx(84 * 1504 * 8 / 1e6) and stats.below_1mbps == 0
    both = pair_stats(in_memory([1000] * 84), in_memory([1000] * 84))
    assert both.both_in_dip == both.both_in_dip_if_independent == 0
    for times in ([0, 0, 500, 1000], [1000] * 3, [1, 999, 1500, 2000, 2000]):
        assert in_memory(times).counts(500).sum() == len(times)


def test_statistics_that_have_nothing_to_measure_are_not_numbers() -> None:
    stats = trace_stats(in_memory(list(range(5, 5001, 5))))
    assert stats.dips.count == 0
    assert math.isnan(stats.dips.length_p50_s)
    assert math.isnan(stats.autocorrelation_s)


def test_autocorrelation_time_of_an_ar1_process_is_its_time_constant() -> None:
    draws = np.random.default_rng(7).normal(size=40_000)
    keep, values = math.exp(-1 / 6), [0.0]
    for draw in draws:
        values.append(keep * values[-1] + draw)
    assert autocorrelation_time_s(np.array(values)) == pytest.approx(6, abs=0.5)


def test_pair_statistics_compare_the_traces_over_the_shorter_one() -> None:
    one = steady([200, 40, 200, 40, 200, 40])
    other = steady([100, 40, 100, 100])
    together = pair_stats(one, other)
    assert together.duration_s == 4
    assert together.both_in_dip == pytest.approx(0.25)
    assert together.both_in_dip_if_independent == pytest.approx(0.5 * 0.25)
    assert together.rate_correlation == pytest.approx(np.corrcoef([1, 0, 1, 0], [1, 0, 1, 1])[0, 1])


# --- Index and search path -------------------------------------------------------------------------------------------

INDEX = """\
schema: 1
pairs:
- name: mine
  scenario: walking
  licence: CC0-1.0
  source: made by hand
  paths:
  - {name: wifi, technology: wifi, uplink: a.up, downlink: a.down, base_rtt_ms: 31, queue: 'droptail:packets=50'}
  - {name: lte, technology: lte, uplink: b.down, downlink: b.down, base_rtt_ms: 70, queue: infinite}
"""


def make_library(folder: Path, index: str = INDEX) -> Path:
    for name in ("a.up", "a.down", "b.down"):
        write(folder / name, "1\n1000\n")
    write(folder / "index.yaml", index)
    return folder


def test_a_pair_of_an_index_is_resolved_to_files_and_keys_of_mpshell(tmp_path: Path) -> None:
    (pair,) = read_index(make_library(tmp_path) / "index.yaml")
    wifi, lte = pair.paths
    assert (wifi.uplink, wifi.downlink) == (tmp_path / "a.up", tmp_path / "a.down")
    assert wifi.delay_ms == 15.5
    assert mpshell_keys(wifi.delay_ms, wifi.queue, wifi.settings, {}) == "delay=15.5,queue=droptail:packets=50"
    assert (lte.technology, lte.queue, lte.base_rtt_ms) == ("lte", "infinite", 70)


@pytest.mark.parametrize(
    ("before", "after", "line", "said"),
    [
        ("a.up", "gone.up", 8, "there is no trace"),
        ("technology: wifi", "technology: wify", 8, "'5g-sa', '5g-nsa', 'wifi' or 'lte'"),
        ("licence: CC0-1.0", "licence: CC0-1.0\n  sorce: x", 6, "did you mean 'source'"),
        (INDEX.splitlines()[-1] + "\n", "", 7, "two paths or more"),
        ("name: lte", "name: wifi", 7, "give each a name of its own"),
        ("name: lte", "name: Much_too_long_name", 9, "name"),
        ("queue: infinite", "queue: droptail", 9, "queue"),
        ("base_rtt_ms: 70", "base_rtt_ms: -1", 9, "base_rtt_ms"),
        ("queue: infinite", "queue: infinite, kind: guessed", 9, "kind"),
        ("queue: infinite", "queue: infinite, resolution_ms: 0", 9, "resolution_ms"),
        ("schema: 1", "schema: 2", 1, "schema"),
    ],
)
def test_a_mistake_in_an_index_is_told_with_its_line(
    tmp_path: Path, before: str, after: str, line: int, said: str
) -> None:
    assert before in INDEX
    index = make_library(tmp_path, INDEX.replace(before, after, 1)) / "index.yaml"
    with pytest.raises(UserError) as error:
        read_index(index)
    assert str(error.value).startswith(f"{index}:{line}: ")
    assert said in str(error.value)


def test_a_pair_named_twice_in_an_index_is_refused(tmp_path: Path) -> None:
    index = make_library(tmp_path, INDEX + INDEX.split("pairs:\n")[1]) / "index.yaml"
    with pytest.raises(UserError, match=r"index\.yaml:10: .*'mine' is already in this index"):
        read_index(index)


def test_the_projects_library_needs_no_search_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SEARCH_PATH_VARIABLE, raising=False)
    found = {pair.name for pair in list_pairs()}
    assert {"subway-1", "hsr-1", "walking-1", "driving-nsa-1", "driving-sa-1"} <= set(GENERATED) <= found
    assert {"lab-equal-12"} <= found
    assert [path.technology for path in find_pair("hsr-1").paths] == ["wifi", "lte"]


def test_the_first_library_on_the_search_path_wins_and_the_projects_is_before_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, project = (make_library(tmp_path / name) for name in ("first", "second", "project"))
    monkeypatch.setattr(library_module, "PROJECT_LIBRARY", tmp_path / "nothing")
    monkeypatch.setenv(SEARCH_PATH_VARIABLE, f"{tmp_path}/absent:{first}::{second}")
    assert find_pair("mine").library == first / "index.yaml"
    assert len(list_pairs()) == 1
    monkeypatch.setattr(library_module, "PROJECT_LIBRARY", project)
    assert find_pair("mine").library == project / "index.yaml"


def test_an_unknown_pair_is_told_with_the_near_miss_and_where_was_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    wrong = ":".join(f"{tmp_path}/{name}" for name in ("absent", "empty", "file"))
    monkeypatch.setenv(SEARCH_PATH_VARIABLE, f"{wrong}:{make_library(tmp_path / 'right')}")
    for name, meant in (("hsr_1", "did you mean 'hsr-1'?"), ("my-drive", "add the folder of its library")):
        with pytest.raises(TraceError) as error:
            find_pair(name)
        assert f"no trace pair '{name}'" in str(error.value) and meant in str(error.value)
        assert str(error.value).endswith(
            f" Of {SEARCH_PATH_VARIABLE}, {tmp_path}/absent is not there, {tmp_path}/empty has no index.yaml and "
            f"{tmp_path}/file is a file."
        )


# --- Recorded collections --------------------------------------------------------------------------------------------

CSV_HEADER = "file,scenario,technology,direction,source,licence,pair_with\n"
CSV_ROWS = [
    'ride_7_lteU.down,high-speed rail,"LTE, Carrier U",down,here,MIT,ride_7_lteM.down\n',
    "ride_7_lteM.down,high-speed rail,LTE (stands for the onboard Wi-Fi path),down,here,MIT,ride_7_lteU.down\n",
    "bus.down,bus,LTE,down,there,MIT,\n",
    "drive_1_att.down,driving,AT&T 4G/5G,down,here,MIT,drive_1_verizon.down\n",
    "drive_1_verizon.down,driving,Verizon 4G/5G,down,there,BSD,drive_1_att.down\n",
]


def make_collection(folder: Path, rows: list[str]) -> Path:
    for row in CSV_ROWS:
        write(folder / row.split(",")[0], "1\n1000\n")
    return write(folder / "INDEX.csv", CSV_HEADER + "".join(rows))


def test_pairs_are_derived_from_a_recorded_collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "recorded/drive_1_att.up", "9\n")
    make_collection(tmp_path / "recorded", CSV_ROWS)
    monkeypatch.setenv(SEARCH_PATH_VARIABLE, str(tmp_path))
    ride, drive = find_pair("ride_7"), find_pair("drive_1")
    assert [(path.name, path.technology, path.downlink.name) for path in ride.paths] == [
        ("wifi", "wifi", "ride_7_lteM.down"),
        ("lte", "lte", "ride_7_lteU.down"),
    ]
    assert [path.base_rtt_ms for path in ride.paths] == [90, 60]
    second_carrier, lte = (path.settings for path in ride.paths)
    assert second_carrier == {"up_radio": "promotion=272:tail=10000"}, "it is a cellular path whatever its name"
    assert lte == {"up_radio": "promotion=160:tail=10000"}
    assert all(path.uplink == path.downlink for path in ride.paths)
    assert [(path.name, path.technology) for path in drive.paths] == [("att", "5g-nsa"), ("verizon", "5g-nsa")]
    assert drive.paths[0].uplink.name == "drive_1_att.up"
    assert (drive.licence, ride.licence) == ("MIT; BSD", "MIT")


def test_a_collection_is_checked_and_may_come_from_a_spreadsheet(tmp_path: Path) -> None:
    """With a byte order mark and the line ends of Windows."""
    index = make_collection(tmp_path, CSV_ROWS)
    index.write_bytes(b"\xef\xbb\xbf" + index.read_bytes().replace(b"\n", b"\r\n"))
    assert [pair.name for pair in read_recorded(index)] == ["ride_7", "drive_1"]
    code, out, err = railyard_traces("validate", index)
    assert (code, "2 pairs" in out) == (0, True), err
    index.write_text(index.read_text(encoding="utf-8-sig").replace(",", ";"))
    code, _, err = railyard_traces("validate", index)
    assert code == 2 and "INDEX.csv:1: the column 'file' is missing; add it to the header and the rows, with com" in err
    make_collection(tmp_path, CSV_ROWS)
    write(tmp_path / "drive_1_att.down", "5\n3\n")
    code, _, err = railyard_traces("validate", index)
    assert code == 2 and "drive_1_att.down:2: timestamp 3 comes after 5" in err


WITH_KINDS = CSV_HEADER.replace("\n", ",pair_kind,kind,resolution,resolution_ms,note\n")


@pytest.mark.parametrize(
    ("cells", "kind", "resolution_ms"),
    [
        (",,1 s bins,,goodput of one MPTCP subflow\n", "tcp-goodput", 1000),
        (',,"per packet, 1 ms",,\n', None, 1),
        (",saturated-tcp,1 s bins,250,goodput\n", "saturated-tcp", 250),
        (",,by hand,,\n", None, None),
    ],
)
def test_a_collection_says_what_its_traces_are_and_how_fine(
    tmp_path: Path, cells: str, kind: str | None, resolution_ms: float | None
) -> None:
    index = make_collection(tmp_path, [])
    write(index, WITH_KINDS + "".join(row.rstrip("\n") + "," + cells for row in CSV_ROWS[:2]))
    (pair,) = read_recorded(index)
    assert [(path.kind, path.resolution_ms) for path in pair.paths] == [(kind, resolution_ms)] * 2
    assert bool(coarse_words(pair)) == (resolution_ms is not None and resolution_ms > 200)
    one, other = (replace(path, resolution_ms=step) for path, step in zip(pair.paths, (1000, 1), strict=True))
    assert f"coarser ({one.name} 1000 ms) than" in coarse_words(replace(pair, paths=(one, other)))


@pytest.mark.parametrize("cells", [",guessed,,,\n", ",,,soon,\n", ",,,0,\n", ",,,-5,\n"])
def test_a_kind_or_resolution_that_is_none_is_told_with_its_line(tmp_path: Path, cells: str) -> None:
    index = make_collection(tmp_path, [])
    write(index, WITH_KINDS + CSV_ROWS[0].rstrip("\n") + "," + cells)
    with pytest.raises(TraceError, match=rf"{index}:2: the (kind|resolution) .* correct it"):
        read_recorded(index)


def test_the_share_of_coarse_pairs_is_one_sentence() -> None:
    assert share_words({"one": [1, 100]}) == ""
    assert share_words({"one": [1, 100], "two": [200, 1]}).startswith("Resolution: all 2 pairs show silences of 200 ms")
    said = share_words({"one": [1, 100], "two": [1000, 1], "three": [500, 500], "four": [None, 1]})
    assert said.startswith("Resolution: 2 of 4 pairs (50%) are coarser than silences of 200 ms")
    assert said.endswith("(two, three); of 1 it is not known (four).")


@pytest.mark.parametrize(
    ("rows", "line", "said"),
    [
        (CSV_ROWS[:1], 2, "no row that says the same"),
        (
            [CSV_ROWS[0], CSV_ROWS[1].replace("LTE (stands for the onboard Wi-Fi path)", "carrier pigeon")],
            3,
            "names none",
        ),
        (
            [CSV_ROWS[0].replace("ride_7_lteU", "gone_7_x"), CSV_ROWS[1].replace("ride_7_lteU", "gone_7_x")],
            2,
            "no trace",
        ),
        ([CSV_ROWS[0].replace(",MIT,ride_7_lteM.down", "")], 2, "cells"),
    ],
)
def test_a_mistake_in_a_recorded_collection_is_told_with_its_line(
    tmp_path: Path, rows: list[str], line: int, said: str
) -> None:
    index = make_collection(tmp_path, rows)
    with pytest.raises(TraceError) as error:
        read_recorded(index)
    assert str(error.value).startswith(f"{index}:{line}: ")
    assert said in str(error.value)


def test_a_library_that_cannot_be_read_keeps_nothing_from_pairs_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, good = make_collection(tmp_path / "bad", [CSV_ROWS[0]]), make_library(tmp_path / "good").name
    monkeypatch.setenv(SEARCH_PATH_VARIABLE, f"{tmp_path}/bad:{tmp_path}/{good}")
    assert (find_pair("subway-1").name, find_pair("mine").library.parent.name) == ("subway-1", good)
    (tmp_path / "mine.yaml").write_text("arena: sim\npairs: [mine]\nschemes: [sp]\nname: mine\nseeds: 1\n")
    assert "2 runs in sim" in railyard("run", str(tmp_path / "mine.yaml"), "--dry-run").stdout
    code, out, err = railyard_traces("list")
    assert (code, err.count("\n")) == (0, 1) and "subway-1" in out and "mine" in out
    assert err.startswith(f"railyard: this library cannot be read: {index}:2: ")
    code, _, err = railyard_traces("validate", index)
    assert code == 2 and f"{index}:2: " in err
    for name in ("ride_7", "another"):  # whether it exists is unknown
        code, _, err = railyard_traces("stats", name)
        assert (code, err.count("\n")) == (2, 1)
        assert f"the trace pair '{name}' may be in a library that cannot be read: {index}:2: " in err
    with pytest.raises(UserError, match=r"INDEX.csv:2: "):
        list_pairs()


@pytest.fixture(scope="module")
def recorded_index() -> Path:
    for folder in library_module.search_path():
        if (folder / "recorded" / "INDEX.csv").is_file():
            return folder / "recorded" / "INDEX.csv"
    pytest.skip(f"{SEARCH_PATH_VARIABLE} reaches no collection of recorded traces")


def test_the_recorded_pairs_are_found_with_their_paths(recorded_index: Path) -> None:
    pairs = read_recorded(recorded_index)
    with recorded_index.open(newline="") as stream:
        paired = {row["file"] for row in csv.DictReader(stream) if row["pair_with"]}
    assert paired
    assert sorted(path.downlink.name for pair in pairs for path in pair.paths) == sorted(paired)
    for pair in pairs:
        names = tuple(path.name for path in pair.paths)
        assert names == KNOWN_RECORDED.get(pair.name, names), pair.name


def test_statistics_of_the_recorded_traces_are_those_of_their_index(recorded_index: Path) -> None:
    with recorded_index.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert rows
    for row in rows:
        trace = read_trace(recorded_index.parent / row["file"])
        stats = trace_stats(trace)
        assert trace.sha256.startswith(row["sha256"])
        assert stats.mean_mbps == pytest.approx(float(row["mean_mbps"]), abs=0.006), row["file"]
        empty = trace.counts(100, duration_ms=trace.period_ms) == 0  # the index has those of the first loop
        assert empty.mean() == pytest.approx(float(row["outage_frac_100ms"]), abs=6e-5), row["file"]
        assert abs(stats.empty_100ms - empty.mean()) * len(empty) < 1.5, "the opportunities at its end are in one bin"


# --- Command line ----------------------------------------------------------------------------------------------------


def test_list_names_pairs_paths_and_their_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SEARCH_PATH_VARIABLE, raising=False)
    code, out, _ = railyard_traces("list")
    assert code == 0
    for text in (*GENERATED, "90 ms", "droptail:packets=150"):
        assert text in out


def test_a_narrow_terminal_lists_every_value_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    from railyard.cli.trace_tools import console  # noqa: PLC0415  slow to load

    monkeypatch.delenv(SEARCH_PATH_VARIABLE, raising=False)
    monkeypatch.setattr(console, "_width", 40)
    _, out, _ = railyard_traces("list")
    assert "…" not in out and "104 ms" in out and "droptail:packets=150" in out
    assert all(len(line) <= 40 for line in out.splitlines()[2:-1])


def test_stats_shows_a_pair_and_a_file(tmp_path: Path) -> None:
    code, out, _ = railyard_traces("stats", "hsr-1")
    assert code == 0
    assert "lte down" in out
    assert "if independent" in out
    (kinds,) = [line for line in out.splitlines() if " kind " in line]
    assert kinds.count("generated") == 4
    assert "silent share" in out
    assert "warning" not in out, "steps of 100 ms show silences of 200 ms"
    code, out, _ = railyard_traces("stats", str(write(tmp_path / "t.down", format_trace(range(0, 2001, 10)))))
    assert code == 0
    assert "1.21" in out  # 201 opportunities in 2 s


def test_a_figure_that_rounds_to_zero_has_no_sign(tmp_path: Path) -> None:
    trace = write(tmp_path / "t.down", format_trace([*range(12, 990, 12), 1000]))  # of 0.9986 Mbps
    code, out, _ = railyard_traces("stats", str(trace))
    assert code == 0 and "0.00, 0.00" in out and "-0.00" not in out


def test_user_errors_are_one_sentence_and_exit_code_2(tmp_path: Path) -> None:
    bad, endless = write(tmp_path / "bad.down", "1\nx\n"), write(tmp_path / "endless.down", "4294967295\n")
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    (tmp_path / "pipe").symlink_to(pipe)
    for arguments in (
        ("stats", "no-such-pair"),
        ("stats", str(tmp_path / "absent.down")),
        ("stats", str(bad)),
        ("stats", str(endless)),
        ("validate", str(bad)),
        ("validate", str(tmp_path / "pipe")),
        ("convert", str(tmp_path / "pipe"), "--out", str(tmp_path / "t")),
        ("convert", str(pipe), "--out", str(tmp_path / "t")),
        ("rtt", str(pipe)),
        ("generate", "--out", str(tmp_path)),
        ("generate", "--out", str(tmp_path), "--model", "hsr", "--name", "a/b"),
        ("generate", "--out", str(bad), "--model", "hsr", "--duration", "1"),
        ("generate", "--out", str(tmp_path), "--parameters", str(tmp_path / "absent.yaml")),
    ):
        code, _, err = railyard_traces(*arguments)
        assert code == 2, arguments
        assert err.startswith("railyard: "), arguments
        assert err.count("\n") == 1, arguments


def test_validate_checks_every_file_and_fails_if_one_is_wrong(tmp_path: Path) -> None:
    good, bad = write(tmp_path / "good.down", "1\n2\n"), write(tmp_path / "bad.down", "2\n1\n")
    index = make_library(tmp_path / "library") / "index.yaml"
    code, out, _ = railyard_traces("validate", str(good), str(index))
    assert code == 0
    assert "1 pair" in out and "1 pairs" not in out
    assert railyard_traces("validate", str(good), str(index.parent)) == (0, out, "")
    assert f"{tmp_path}/index.yaml: there is no such index" in railyard_traces("validate", str(tmp_path))[2]
    too_long = "x" * 300
    code, out, err = railyard_traces("validate", too_long, str(bad), str(good))
    assert f"{too_long}: cannot read the trace: " in err
    assert code == 2
    assert f"{bad}:2: timestamp 1 comes after 2" in err
    assert "good.down" in out
    epoch = write(tmp_path / "epoch.down", "1732900000\n1732900001\n")
    assert "give a trace whose timestamps are ms" in railyard_traces("validate", str(epoch))[2]


def test_generate_makes_a_library_that_the_search_path_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "library"
    common = ("generate", "--model", "subway", "--duration", "3", "--out", str(library))
    assert railyard_traces(*common, "--seed", "7")[0] == 0
    assert railyard_traces(*common, "--seed", "8", "--name", "metro")[0] == 0
    before = (library / "metro.lte.down").read_bytes()
    assert railyard_traces(*common, "--seed", "9", "--name", "metro")[0] == 0
    assert (library / "metro.lte.down").read_bytes() != before
    monkeypatch.setenv(SEARCH_PATH_VARIABLE, str(library))
    assert [pair.name for pair in list_pairs() if pair.library.parent == library] == ["subway-7", "metro"]
    assert read_trace(find_pair("metro").paths[1].downlink).period_ms == 3000


# --- Plots -----------------------------------------------------------------------------------------------------------


def test_outages_are_the_silences_of_200_ms_also_across_the_end_of_a_loop() -> None:
    trace = in_memory([100, 199, 400, 600, 700, 1000])
    assert outages(trace, 0, 1000) == [(0.199, 0.4), (0.4, 0.6), (0.7, 1.0)]
    assert outages(trace, 300, 890) == [(0.0, 0.1), (0.1, 0.3), (0.4, 0.7)]
    assert outages(in_memory([300, 450]), 0, 900) == [(0.0, 0.3), (0.45, 0.75)]


def test_plot_draws_all_paths_and_directions_of_a_pair_or_one_trace(tmp_path: Path) -> None:
    for name, magic in (("a.svg", b"<?xml"), ("a.html", b"<!doctype html>")):
        code, out, err = railyard_traces("stats", "hsr-1", "--duration", "20", "--plot", str(tmp_path / name))
        assert code == 0 and "rate correlation" in out, err
        assert (tmp_path / name).read_bytes().startswith(magic)
        content = (tmp_path / name).read_text()
        for title in ("wifi down: mean ", "wifi up: mean ", "lte down: mean ", "lte up: mean "):
            assert title in content, (name, title)
    silent = write(tmp_path / "u.down", "100\n200\n300\n600\n")
    assert railyard_traces("stats", str(silent), "--plot", str(tmp_path / "u.svg"))[0] == 0
    assert "1 outage of 200 ms or more, 50.0% of the time" in (tmp_path / "u.svg").read_text()
    one = write(tmp_path / "t.down", "250\n500\n")
    assert railyard_traces("stats", str(one), "--plot", str(tmp_path / "b.png"))[0] == 0
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")
    assert railyard_traces("stats", str(one), "--bin-ms", "250", "--plot", str(tmp_path / "d.html"))[0] == 0
    assert '"x":[0.0,0.25,0.5],"y":[0.0,0.048,0.048]' in (tmp_path / "d.html").read_text()  # to the last bin's end
    plot = ("--plot", str(tmp_path / "c.svg"))
    for arguments in (("hsr-11", *plot), (str(tmp_path / "gone"), *plot), ("hsr-1", "--plot", str(tmp_path / "a.jpg")),
                      (str(one), "--bin-ms", "9999", *plot), (str(one), "--start", "inf", *plot),
                      (str(one), "--start", "0")):  # fmt: skip
        code, _, err = railyard_traces("stats", *arguments)
        assert (code, err.count("\n")) == (2, 1), arguments
    delays = write(tmp_path / "delays.csv", "0,25\n1000,30\n")
    assert "a delay trace has no capacity to plot; leave out --plot." in railyard_traces("stats", str(delays), *plot)[2]


@pytest.mark.parametrize("indented", [False, True])
def test_an_index_keeps_its_comments_when_a_pair_is_added_or_replaced(tmp_path: Path, indented: bool) -> None:
    library = make_library(tmp_path)
    index = library / "index.yaml"
    [known] = parse(load_yaml(index), TraceIndex).pairs
    one, two = (known.model_copy(update={"name": name}) for name in ("one", "two"))
    write_entry(library, {}, one)
    head, between = "# mine\nschema: 1\npairs: # of 2026\n", "# the second\n"
    written = [f"- name{entry}" for entry in re.split("^- name", index.read_text(), flags=re.MULTILINE)[1:]]
    index.write_text(head + indent(between.join(written), "  " * indented) + "# the end")
    text = index.read_text()
    write_entry(library, {}, two)
    added = indent(f"- name: two\n{written[1].partition(chr(10))[2]}", "  " * indented)
    assert index.read_text() == text.replace("# the end", added + "# the end\n")
    write_entry(library, {}, known.model_copy(update={"scenario": "walking"}))
    assert index.read_text().count("#") == 4 and [pair.name for pair in read_index(index)] == [known.name, "one", "two"]
    assert read_index(index)[0].scenario == "walking"
    index.write_text("{schema: 1, pairs: [" + json.dumps(entry_data(known)) + "]}")
    write_entry(library, {}, two)
    assert [pair.name for pair in read_index(index)] == [known.name, "two"]


def test_an_index_without_pairs_keeps_its_comments(tmp_path: Path) -> None:
    library = make_library(tmp_path)
    index = library / "index.yaml"
    [known] = parse(load_yaml(index), TraceIndex).pairs
    index.write_text("# meine Züge\npairs: []  # none yet\nschema: 1\n# the end")
    write_entry(library, {}, known)
    text = index.read_text()
    assert text.startswith("# meine Züge\npairs:  # none yet\n- name: ") and text.endswith("\nschema: 1\n# the end\n")
    assert [pair.name for pair in read_index(index)] == [known.name]


def test_who_reads_an_index_while_a_pair_is_added_finds_it_whole(tmp_path: Path) -> None:
    library = make_library(tmp_path)
    index = library / "index.yaml"
    before = index.read_text()
    [known] = parse(load_yaml(index), TraceIndex).pairs
    with index.open() as reader:
        write_entry(library, {"more.down": b"1\n"}, known.model_copy(update={"name": "more"}))
        assert reader.read() == before
    assert [pair.name for pair in read_index(index)] == [known.name, "more"]
    assert sorted(file.name for file in library.iterdir()) == ["a.down", "a.up", "b.down", "index.yaml", "more.down"]
