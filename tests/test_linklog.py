"""Link logs: reading, the figures of a log computed by hand and of real runs, and the plots."""

import json
import math
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from conftest import good, one_sentence
from in_process import railyard
from railyard.base.errors import UserError
from railyard.gate.testing import Railyard
from railyard.results.linklog import read
from railyard.results.linklog.plot import binned_mbps
from railyard.results.linklog.read import read_link_log
from railyard.results.linklog.stats import link_stats, signal_delay

# Ten opportunities in 200 ms. Five packets arrive, one is dropped. Written as mm-link does, its base timestamp not 0.
BY_HAND = """\
# mahimahi mm-link (Downlink) [trace with space] > by-hand.down.log
# command line: mm-link a b
# queue: droptail [packets=3]
# init timestamp: 1700000000000
# base timestamp: 50
60 # 1504
70 + 1504
75 + 704
80 # 1504
80 - 1504 10
80 # 1504
80 - 704 5
100 # 1504
120 + 1504
122 + 1504
123 + 1504
123 d 1 1504
160 # 1504
160 - 1504 40
200 # 1504
200 - 1504 78 200412
210 # 1504
220 # 1504
240 # 1504
260 # 1504
"""


def log_file(folder: Path, text: str = BY_HAND) -> Path:
    file = folder / "by-hand.down.log"
    file.write_text(text)
    return file


def test_the_figures_of_a_log_that_was_worked_out_by_hand(tmp_path: Path) -> None:
    stats = link_stats(read_link_log(log_file(tmp_path)))
    assert (stats.direction, stats.trace, stats.queue) == ("Downlink", "trace with space", "droptail [packets=3]")
    assert stats.duration_s == pytest.approx(0.200)  # 60 to 260
    assert stats.opportunities == 10
    assert stats.capacity_mbps == pytest.approx(10 * 1504 * 8 / 0.2 / 1e6)
    assert (stats.arrived_packets, stats.arrived_bytes) == (5, 4 * 1504 + 704)
    assert (stats.departed_packets, stats.departed_bytes) == (4, 3 * 1504 + 704)
    assert stats.throughput_mbps == pytest.approx(5216 * 8 / 0.2 / 1e6)
    assert stats.utilisation == pytest.approx(5216 / 15040)
    assert (stats.dropped_packets, stats.dropped_bytes, stats.drop_share) == (1, 1504, 0.2)
    # Delays 5, 10, 40, 78: the median is the one at index 2, the 95th percentile at index floor(3.8) = 3.
    assert (stats.delay_median_ms, stats.delay_p95_ms, stats.delay_max_ms) == (40, 78, 78)


def test_the_signal_delay_is_the_least_time_to_get_through_from_each_millisecond(tmp_path: Path) -> None:
    times, delays = signal_delay(read_link_log(log_file(tmp_path)))
    # Departed packets arrived at 20, 25, 70 and 72 ms after the base, and took 10, 5, 40 and 78 ms.
    assert (times[0], times[-1], len(delays)) == (20, 72, 53)
    by_ms = dict(zip(times.tolist(), delays.tolist(), strict=True))
    assert [by_ms[t] for t in (20, 21, 24, 25)] == [10, 9, 6, 5]
    assert [by_ms[t] for t in (26, 69, 70, 71, 72)] == [84, 41, 40, 79, 78]
    # 53 values; index floor(0.95 × 53) = 50 of the sorted ones: from the top 84, 83, 82.
    assert link_stats(read_link_log(tmp_path / "by-hand.down.log")).signal_delay_p95_ms == 82


def test_the_signal_delay_counts_a_later_packet_that_overtook_an_earlier_one(tmp_path: Path) -> None:
    text = "# base timestamp: 0\n10 + 1504\n12 + 104\n15 - 104 3\n60 # 1504\n60 - 1504 50\n"
    times, delays = signal_delay(read_link_log(log_file(tmp_path, text)))
    assert (times.tolist(), delays.tolist()) == ([10, 11, 12], [5, 4, 3])  # fq_codel serves a sparse flow first


@pytest.mark.parametrize(
    ("log", "figures"),
    [
        ("droptail", "3.71 3.41 91.8% 29 29"),
        ("drophead", "3.75 3.56 94.9% 16 16"),
        ("infinite", "0.66 0.57 86.0% 369 388"),
        ("once", "0.85 0.57 66.7% 73 77"),
    ],
)
def test_the_figures_of_logs_of_mm_link_are_those_that_mahimahi_s_scripts_print(log: str, figures: str) -> None:
    stats = link_stats(read_link_log(Path(__file__).parent / f"data/mm-link/{log}.log"))
    delays = f"{stats.delay_p95_ms:.0f} {stats.signal_delay_p95_ms:.0f}"
    assert f"{stats.capacity_mbps:.2f} {stats.throughput_mbps:.2f} {stats.utilisation:.1%} {delays}" == figures


def test_packets_far_apart_do_not_take_memory_for_each_millisecond_between(tmp_path: Path) -> None:
    apart = BY_HAND + "21600300 + 1504\n21600300 - 1504 1\n"
    with pytest.raises(UserError, match=r"by-hand\.down\.log: its packets arrive over 21600229 ms, more than 21600000"):
        link_stats(read_link_log(log_file(tmp_path, apart)))


def test_rates_are_binned_from_the_edge_on() -> None:
    rates = binned_mbps(np.array([0.0, 9, 10, 25]), np.array([125, 125, 1250, 2500]), np.array([0.0, 10, 20, 30]))
    assert rates.tolist() == pytest.approx([0.2, 1.0, 2.0])


def test_a_log_without_departures_has_figures_all_the_same(tmp_path: Path) -> None:
    stats = link_stats(read_link_log(log_file(tmp_path, "# base timestamp: 0\n0 # 1504\n1000 # 1504\n")))
    assert stats.throughput_mbps == 0
    assert math.isnan(stats.delay_p95_ms) and math.isnan(stats.drop_share)


@pytest.mark.parametrize(
    ("text", "where", "said"),
    [
        (BY_HAND.replace("75 + 704", "75 * 704"), ":8: ", "is no event"),
        (BY_HAND.replace("80 - 704 5", "80 - 704"), ":12: ", "is no event"),
        (BY_HAND.replace("75 + 704", "75 + -704"), ":8: ", "is no event"),
        (BY_HAND.replace("75 + 704", "nan + 704"), ":8: ", "is no event"),
        (BY_HAND.replace("base timestamp: 50", "base timestamp: x"), ":5: ", "whole number"),
        (BY_HAND.replace("# base timestamp: 50\n", ""), ": ", "base timestamp"),
        ("# base timestamp: 0\n", ": ", "no event"),
    ],
)
def test_a_malformed_log_is_refused_with_file_and_line(tmp_path: Path, text: str, where: str, said: str) -> None:
    file = log_file(tmp_path, text)
    with pytest.raises(UserError) as error:
        read_link_log(file)
    assert str(error.value).startswith(f"{file}{where}")
    assert said in str(error.value)


PLAIN = BY_HAND.replace(" 200412", "") + "261 c 100\n262 s 100\n263 x 2 200\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),  # read at once; the others are not
        ("80 - 704 5\n", "80 - 704\n80 - 704 5 5\n"),
        ("75 + 704\n", "75 +704 1\n"),
        ("75 + 704\n", "7 5 + 704\n"),
        ("75 + 704\n", " + 704\n"),
        ("75 + 704\n", "75 + \n"),
        ("75 + 704\n", "75 + 9999999999999999\n"),
        ("75 + 704\n", "75.5\t+ 704 7\n# a remark\n"),
        ("263 x 2 200\n", "263 x 2 200"),
        ("263 x 2 200\n", "263"),
    ],
)
def test_a_log_is_read_at_once_as_line_by_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    file = log_file(tmp_path, PLAIN.replace(old, new, 1))
    added: list[bool] = []
    add_all = read._Events.add_all

    def noted(events: read._Events, text: bytes) -> bool:
        added.append(add_all(events, text))
        return added[-1]

    def found() -> dict[str, object] | str:
        try:
            log = vars(read_link_log(file))
        except UserError as error:
            return str(error)
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in log.items()}

    monkeypatch.setattr(read._Events, "add_all", noted)
    at_once = found()
    monkeypatch.setattr(read._Events, "add_all", lambda *_: False)
    assert found() == at_once
    assert added == [old == new]


def test_the_figures_of_a_run_are_the_counters_of_its_links(tmp_path: Path) -> None:
    runs = Railyard(tmp_path / "runs")
    result = runs.run(
        "vanilla-mp", "subway-1", bitrate_bps=40_000_000, duration_s=4, time_limit_s=6,
        queue="droptail:packets=30", qlog=False, link_logs=True,
    )  # fmt: skip
    counters = json.loads((result.directory / "mpshell.json").read_text())
    dropped = 0
    for path in counters["paths"]:
        for direction in ("up", "down"):
            counted = path[direction]
            stats = link_stats(read_link_log(result.directory / "links" / f"{path['name']}.{direction}.log"))
            assert stats.opportunities == counted["opportunities"]
            # The log begins at the queue, the counter before the delay: the rest was on its way when the run ended.
            assert 0 <= counted["arrived_packets"] - stats.arrived_packets <= counted["inside_packets"]
            waiting = stats.arrived_packets - stats.departed_packets - stats.dropped_packets
            assert 0 <= waiting <= counted["inside_packets"]
            assert stats.departed_packets == counted["departed_packets"]
            assert stats.departed_bytes == counted["departed_bytes"]
            assert stats.dropped_packets == counted["queue_drops"]
            dropped += stats.dropped_packets
    assert dropped > 0, "the queue of 30 packets was to overflow"


def test_link_stats_prints_a_table_or_json_of_files_and_directories(tmp_path: Path) -> None:
    file = log_file(tmp_path)
    table = good(railyard("link-stats", str(file)))
    for text in ("by-hand.down", "34.7%", "1 (20.00%)"):
        assert text in table.stdout
    (row,) = json.loads(railyard("link-stats", "--format", "json", str(tmp_path)).stdout)
    assert row["delay_p95_ms"] == 78
    one_sentence(railyard("link-stats", str(tmp_path / "absent.log")), "absent.log: cannot be read: no such file")


def test_link_stats_plots_a_log_of_one_instant_without_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "one.log"
    file.write_text("# base timestamp: 0\n5 # 1504\n5 + 1500\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = railyard("link-stats", str(file), "--plot", str(tmp_path / "one.svg"))
    assert (done.returncode, done.stderr) == (0, "")


def test_link_stats_plots_every_format_and_equal_logs_give_equal_svg(tmp_path: Path) -> None:
    file = log_file(tmp_path)
    for name, magic in (("a.svg", b"<?xml"), ("a.png", b"\x89PNG"), ("a.html", b"<!doctype html>")):
        good(railyard("link-stats", str(file), str(file), "--bin-ms", "20", "--plot", str(tmp_path / name)))
        assert (tmp_path / name).read_bytes().startswith(magic)
    svg = (tmp_path / "a.svg").read_text()
    figures = "by-hand.down: capacity 0.60, ingress 0.27, egress 0.21 Mbps; utilisation 34.7%; 1 packet dropped"
    page = (tmp_path / "a.html").read_text()
    for text in (figures, "95th percentile 78 ms per packet", "drops"):
        assert text in svg and text in page
    capacity = re.search(r'"name":"capacity".*?"x":\[(.*?)\],"y":\[(.*?)\]', page)
    assert capacity is not None, page[-2000:]
    assert capacity[1].count(",") == capacity[2].count(",") == 11  # of the eleven bins of 20 ms the last one too
    good(railyard("link-stats", str(file), str(file), "--bin-ms", "20", "--plot", str(tmp_path / "b.svg")))
    assert (tmp_path / "b.svg").read_text() == svg
    good(railyard("link-stats", str(file), "--log-delay", "--plot", str(tmp_path / "log.svg")))
    assert "mathdefault" not in (tmp_path / "log.svg").read_text()
    refused = railyard("link-stats", str(file), "--plot", str(tmp_path / "a.txt"))
    assert (refused.returncode, "ends in .svg, .png, .pdf, .html" in refused.stderr) == (2, True)
    alone = railyard("link-stats", str(file), "--bin-ms", "20")
    assert (alone.returncode, "give --plot FILE too" in alone.stderr) == (2, True)
