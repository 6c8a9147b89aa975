"""`railyard traces convert`: every format keeps the measured bytes, and reports mistakes in a file."""

import json
import re
import socket
import struct
import tracemalloc
import zipfile
from contextlib import suppress
from pathlib import Path

import dpkt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from railyard.traces.convert.capacity import cut, from_bins, from_packets, opportunities
from railyard.traces.convert.recipe import TraceRecipe
from railyard.traces.convert.run import convert_trace
from railyard.traces.index import read_index
from railyard.traces.trace import OPPORTUNITY_BYTES, TraceError, read_trace
from trace_files import railyard_traces

EPOCH_NS = 1_340_000_000_000_000_000


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def times_of(path: Path, **options: object) -> list[int]:
    recipe = TraceRecipe.model_validate({"file": str(path), **options})
    return [int(line) for line in convert_trace(path, recipe).data.split()]


# --- From bytes over time to opportunities ---------------------------------------------------------------------------


def test_an_opportunity_stands_where_the_bytes_reach_the_next_multiple_of_1504() -> None:
    # 1000 at 0.2 ms, 600 at 3.7 ms (1600 ≥ 1504), 3000 at 9 ms (4600 ≥ 4512), 100 at 11 ms; the end is at 20 ms.
    delivered = from_packets(np.array([200, 3_700, 9_000, 11_000]), np.array([1000, 600, 3000, 100]), 20_000)
    assert opportunities(delivered).tolist() == [3, 9, 9, 20]  # the last one holds the 188 bytes that were left


def test_bytes_of_a_bin_are_spread_evenly_and_stay_in_it() -> None:
    delivered = from_bins(np.array([0, 1e6, 2e6, 3e6]), np.array([4 * 1504.0, 0, 2 * 1504]))
    assert opportunities(delivered).tolist() == [249, 499, 749, 999, 2499, 2999, 3000]


def test_a_row_of_a_high_rate_takes_little_more_memory_than_its_opportunities() -> None:
    count = 4_000_000
    tracemalloc.start()
    times = opportunities(from_bins(np.array([0.0, 1e9]), np.array([count * 1504.0])))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (len(times), times[0], times[-2], times[-1]) == (count + 1, 0, 999_999, 1_000_000)
    assert most < 4 * times.nbytes


def test_nothing_delivered_is_one_opportunity_at_the_end() -> None:
    assert opportunities(from_bins(np.array([0, 5e5]), np.array([0.0]))).tolist() == [500]


@given(
    arrivals=st.lists(st.tuples(st.integers(0, 99_999), st.integers(1, 9_000)), min_size=1, max_size=60),
)
def test_no_byte_of_packets_is_lost_at_any_time(arrivals: list[tuple[int, int]]) -> None:
    times, sizes = (np.array(column) for column in zip(*sorted(arrivals), strict=True))
    trace = opportunities(from_packets(times, sizes, 100_000))
    assert trace[-1] == 100
    assert 0 < len(trace) * OPPORTUNITY_BYTES - sizes.sum() <= OPPORTUNITY_BYTES
    for ms in range(100):
        offered = int((trace <= ms).sum()) * OPPORTUNITY_BYTES
        measured = int(sizes[times < (ms + 1) * 1000].sum())
        assert measured - OPPORTUNITY_BYTES < offered <= measured


@given(
    rates=st.lists(st.integers(0, 40_000), min_size=1, max_size=30),
    widths=st.lists(st.integers(1, 400), min_size=30, max_size=30),
)
def test_no_byte_of_bins_is_lost_at_any_edge(rates: list[int], widths: list[int]) -> None:
    edges = np.concatenate(([0], np.cumsum(widths[: len(rates)]))) * 1000.0
    trace = opportunities(from_bins(edges, np.array(rates, dtype=float)))
    assert 0 < len(trace) * OPPORTUNITY_BYTES - sum(rates) <= OPPORTUNITY_BYTES
    for place, edge in enumerate(edges[1:-1].tolist()):
        offered = int((trace < edge / 1000).sum()) * OPPORTUNITY_BYTES
        assert abs(offered - sum(rates[: place + 1])) <= OPPORTUNITY_BYTES


def test_a_part_is_cut_out_of_packets_and_of_bins() -> None:
    packets = cut(from_packets(np.array([0, 5_000, 9_000]), np.array([1504, 1504, 1504]), 10_000), 4_000, 4_000)
    assert opportunities(packets).tolist() == [1, 4]
    bins = cut(from_bins(np.array([0, 1e6, 2e6]), np.array([10 * 1504.0, 0])), 5e5, 1e6)
    assert bins.total_bytes == pytest.approx(5 * 1504)
    assert opportunities(bins).tolist() == [99, 199, 299, 399, 499, 1000]
    with pytest.raises(TraceError, match="nothing is left from 3 s on"):
        cut(bins, 3e6, None)


# --- saturatr --------------------------------------------------------------------------------------------------------


def saturatr_line(sender: int, seq: int, at_ms: float) -> str:
    received = EPOCH_NS + round(at_ms * 1e6)
    return (
        f"INCOMING DATA RECEIVED senderid={sender}, seq={seq}, send_time={received - 31_000_000}, "
        f"recv_time={received}, 1delay=0.0310 \n"
    )


def test_the_log_of_the_original_saturatr_is_its_received_packets(tmp_path: Path) -> None:
    ack = "OUTGOING ACK RECEIVED senderid=7, seq=5, send_time=1,  recv_time=2, rtt=0.7456, 1500 => 1500\n"
    lines = [saturatr_line(9, seq, at) for seq, at in enumerate([0, 2.4, 2.6, 30.2])]
    log = write(
        tmp_path / "client", "\n".join([saturatr_line(7, 0, -500), ack]) + "".join([*lines[:2], ack, *lines[2:]])
    )
    # 4 × 1432 bytes: 1504 are reached with the second packet, 3008 with the third, 4512 with the fourth.
    assert times_of(log) == [2, 2, 30, 31]
    assert times_of(log, packet_bytes=1504) == [0, 2, 2, 30, 31]
    assert times_of(log, sender_id=7) == [1]
    assert times_of(log, packet_bytes=1504, t0_epoch_s=EPOCH_NS / 1e9 - 1) == [1000, 1002, 1002, 1030, 1031]
    with pytest.raises(TraceError, match="no session with senderid 8; the log has 7, 9"):
        times_of(log, sender_id=8)


def raw_log(*rows: str) -> str:
    header = "# railyard saturatr raw log 1\n# path: lte\n# direction: down\n# duration_us: 50000\n"
    return header + "received_us,sent_us,seq,ip_bytes,kind,more\n" + "".join(f"{row}\n" for row in rows)


def test_the_raw_log_of_our_saturatr_counts_every_packet_after_the_ramp_up(tmp_path: Path) -> None:
    rows = ("-10,-90,0,1500,data,x", "1500,0,1,1500,data,x", "2999,0,2,800,ack,x", "3000,0,3,700,data,x")
    log = write(tmp_path / "lte.down.csv", raw_log(*rows, "50000,1,4,1500,data,x"))
    # 1504 at 1 ms; 804 and 704 more are 3012 ≥ 3008 at 3 ms; 4 bytes are left for the end.
    assert times_of(log) == [1, 3, 50]


# --- Rates -----------------------------------------------------------------------------------------------------------


def test_rates_hold_from_row_to_row_in_every_unit(tmp_path: Path) -> None:
    header = "time,mbps,kbps,bps,rate_Bps,bytes,packets\n"
    rows = "".join(f"{t},{r * 0.012032:.6f},{r * 12.032:.3f},{r * 12032},{r * 1504},{r * 1504},{r}\n"
                   for t, r in ((100, 4), (101, 0), (102, 2)))  # fmt: skip
    file = write(tmp_path / "r.csv", header + rows)
    expected = [249, 499, 749, 999, 2499, 2999, 3000]
    assert times_of(file) == expected
    for unit, column in (("kbps", "kbps"), ("bps", "4"), ("bytes-per-s", "rate_Bps"), ("bytes", "6"), ("packets", "7")):
        assert times_of(file, unit=unit, rate_column=column) == expected, unit
    in_ms = write(tmp_path / "ms.csv", "0,4\n500,0\n1000,0\n")
    assert times_of(in_ms, unit="packets", time_unit="ms") == [124, 249, 374, 499, 1500]
    bins = write(tmp_path / "bins.csv", "4\n0\n2\n")
    assert times_of(bins, **{"from": "rates", "bin_ms": 1000, "unit": "packets"}) == expected
    assert times_of(file, start_s=1.5, duration_s=1) == [999, 1000]
    assert len(times_of(file, scale=2.0)) == 13


@pytest.mark.parametrize(
    ("content", "options", "where", "said"),
    [
        ("t,r\n0,1\n1,x\n", {}, ":3: ", "no number in column 2"),
        ("protocol,seq,mbps\nTCP,0,1\nTCP,1,2\n", {}, ":2: ", "no number in column 1; correct the row, or give"),
        ("4.2,Mbits/sec\n4.3,Mbits/sec\n", {}, ":1: ", "bin-ms where no column has times"),
        ("t,mbps\n0,1\n1,2,5\n", {}, ":3: ", "this row has 3 cells and the header 2"),
        ("t,r\n1,1\n0,1\n", {}, ":3: ", "earlier than"),
        ("t,r\n0,1\n1,-1\n", {}, ":3: ", "cannot be a rate"),
        ("t,r\n0,1\n1,nan\n", {}, ":3: ", "cannot be a rate"),
        ("t,r\n0,1\n1," + "9" * 1000 + "\n", {}, ":3: ", f"{'9' * 40}… cannot be a rate"),
        ("t,r\n0,1\n1,1e308\n", {}, ":3: ", "1e+308 mbps is more than 100 Tbps; give the column's unit"),
        ("t,r\n0,1\n", {}, ": ", "how long its bin is"),
        ("t,r\n", {}, ": ", "no row of numbers"),
        ("t,r\n0,1\n1,1\n", {"rate_column": "q"}, ": ", "no column 'q'; the columns are t, r"),
        ("t,r\n0,9e4\n9,9e4\n", {"unit": "gbps"}, ": ", "check the unit"),
    ],
)
def test_a_mistake_in_a_table_of_rates_is_told(
    tmp_path: Path, content: str, options: dict[str, object], where: str, said: str
) -> None:
    file = write(tmp_path / "r.csv", content)
    with pytest.raises(TraceError) as error:
        times_of(file, **options)
    assert str(error.value).startswith(f"{file}{where}")
    assert said in str(error.value)


PACKETS = {"unit": "packets", "rate_column": "rate"}
EXPECTED = [249, 499, 749, 999, 2499, 2999, 3000]


@pytest.mark.parametrize(
    "content",
    [
        "t,rate\n2021-05-03T10:00:00Z,4\n2021-05-03T10:00:01Z,0\n2021-05-03T10:00:02Z,2\n",
        "t,rate\n2021-05-03T12:00:00+02:00,4\n2021-05-03T10:00:01Z,0\n2021-05-03T09:00:02.000-01:00,2\n",
        "t;rate\r\n2021-05-03 10:00:00,5;4,0\r\n2021-05-03 10:00:01,5;0\r\n2021-05-03 10:00:02,5;2,0\r\n",
        "t;rate\n100,25;4,0\n101,25;0,0\n102,25;2,0\n",
        "t\trate\n0.0\t4\n1.0\t0\n2.0\t2\n",
        "# one comment, with a comma\nt rate\n0.0 4\n1.0  0\n2.0 2\n",
        "Timestamp,rate\n2019.12.14_10.16.30,4\n2019.12.14_10.16.31,0\n2019.12.14_10.16.32,2\n",
        "time,rate\n2023-04-04 10:07:13 CDT,4\n2023-04-04 10:07:14 CDT,0\n2023-04-04 10:07:15 CDT,2\n",
        "Time,rate\nWed Dec 15 23:59:59 UTC 2021,4\nThu Dec 16 00:00:00 UTC 2021,0\nThu Dec 16 00:00:01 UTC 2021,2\n",
    ],
)
def test_dates_semicolons_and_decimal_commas_are_read(tmp_path: Path, content: str) -> None:
    assert times_of(write(tmp_path / "r.csv", content), **PACKETS) == EXPECTED


def test_fractions_of_a_date_count(tmp_path: Path) -> None:
    rows = "t;rate\n2021-05-03T10:00:00.250Z;2\n2021-05-03T10:00:00.750Z;0\n"
    assert times_of(write(tmp_path / "r.csv", rows), **PACKETS) == [249, 499, 1000]


def test_rows_of_one_time_count_with_their_mean(tmp_path: Path) -> None:
    for rows in ("2021-05-03T10:00:00Z,6\n2021-05-03T10:00:00Z,2\n2021-05-03T10:00:01Z,0\n", "5,6\n5,2\n6,0\n"):
        assert times_of(write(tmp_path / "r.csv", f"t,rate\n{rows}"), **PACKETS) == [249, 499, 749, 999, 2000]


@pytest.mark.parametrize(
    ("header", "row", "options"),
    [
        ("time,throughput_kbps", "{t},{kbps}", {}),
        ("time,rate_KiB/s,rtt_ms", "{t},{kibi_bytes},7", {}),
        ("time;Datenrate [Mbit/s];Straße", "{t};{mbps};Königstraße", {}),
        ("time_ms\tDownload MB/s", "{ms}\t{mega_bytes}", {}),
        ("timestamp,rtt_ms,bytes_received", "16803{t:05},50,{bytes}", {}),
        ("timestamp,mbps", "16803{ms:08},{mbps}", {}),
        ("mbps,time", "{mbps},{t}", {}),
        ("time,latitude,UL_bitrate,DL_bitrate", "{t},51.9,9,{kbps}", {}),  # G-NetTrack's
        ("time,uplink_bps,downlink_bps", "{t},9,{bps}", {}),
        ("time,kbps", "{t},{packets}", {"unit": "packets"}),  # what is given counts more than the name
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_columns_and_units_are_told_by_their_names(
    tmp_path: Path, encoding: str, header: str, row: str, options: dict[str, object]
) -> None:
    lines = [header]
    for t, packets in ((100, 4), (101, 0), (102, 2)):
        bps = packets * 12032
        lines.append(
            row.format(
                t=t, ms=t * 1000, packets=packets, bytes=packets * 1504, bps=bps, kbps=bps / 1e3, mbps=bps / 1e6,
                mega_bytes=bps / 8e6, kibi_bytes=bps / 8192,
            )
        )  # fmt: skip
    file = tmp_path / "r.csv"
    file.write_bytes("\r\n".join([*lines, ""]).encode(encoding))
    assert times_of(file, **options) == EXPECTED


@pytest.mark.parametrize(
    ("header", "rows", "said"),
    [
        (
            "time,latitude,place",
            "{t},5,6",
            "no column is called a rate; give one as rate-column: latitude, place",
        ),
        ("time,rtt_ms", "{t},5", "no column is called a rate"),
        ("time,place,a_mbps,b_mbps", "{t},1,5,6", "several columns may be the rate; .*: a_mbps, b_mbps"),
        ("time,rate", "{t},12000", "half of the rates are above 12000, which is no rate in mbps; give their unit"),
        (
            "time,rate",
            "{t},0\n{t}.4,3\n{t}.8,{t}000",
            "largest rate is 30000, which is no rate in mbps; give their unit",
        ),
        ("time,throughput_kbit", "{t},500", "column 'throughput_kbit' is in kbit, which is no rate; give its unit"),
        ("time,Throughput (KB)", "{t},50", "is in KB, which is no rate; give its unit"),
        ("time,mbps", "{t}000,5", "1000 s apart; give the unit of the times"),
        ("time,rx_bytes", "{t},{t}000", "never decreases, so it is a running total"),
        ("time,mbps", "01/04/2023 10:00:{t:02},5", "write dates as 2021-05-03T10:00:00"),
    ],
)
def test_a_table_that_would_be_misread_is_refused(tmp_path: Path, header: str, rows: str, said: str) -> None:
    text = "\n".join([header, *(rows.format(t=t) for t in range(1, 31)), ""])
    with pytest.raises(TraceError, match=said):
        times_of(write(tmp_path / "r.csv", text))


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        (
            "rates",
            ("--unit", "mbps"),
            "--unit is for rates, and this is read as mahimahi; leave it out or name",
        ),
        ("rates", ("--from", "rates", "--unit", "mbps"), "one column; give it a time and a rate in each line, such as"),
        ("rates", ("--address", "192.0.2.1"), "--address is for pcap, tshark, and this is read as mahimahi"),
        ("rates", ("--unit", "mb"), "Invalid value for '--unit': 'mb' is not one of"),
        ("rates", ("--t0", "5"), "--t0 is for saturatr, pcap, tshark, and"),
        ("rates", ("--start", "inf"), "--start: input should be a finite number"),
        ("rates", ("--seed", "2"), "--seed is for --microstructure"),
        ("pairs.yaml", ("--unit", "mbps"), "leave out all options but --out"),
    ],
)
def test_an_option_of_another_format_is_refused(tmp_path: Path, name: str, options: tuple[str, ...], said: str) -> None:
    file = write(tmp_path / name, "3\n5\n8\n")
    code, _, err = railyard_traces("convert", file, *options, "--out", tmp_path / "r.down")
    assert code == 2 and said in err and not (tmp_path / "r.down").exists()


def test_what_was_decided_of_columns_and_gaps_is_said(tmp_path: Path) -> None:
    file = write(tmp_path / "r.csv", "time,rate,rtt\n0,4,9\n1,4,9\n2,4,9\n302,4,9\n303,4,9\n304,4,9\n")
    code, out, _ = railyard_traces("convert", file, "--out", tmp_path / "r.down")
    assert (code, "; rates in mbps (assumed) from column 'rate'; warning: 300 s without a row, from 2 s on" in out) == (
        0, True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ((0, 1, 2.2, 3.1, 4, 5), None),
        ((-3, -2, -1, 0, 1, 2), None),
        ((0, 2, 4, 19, 21, 23, 25), "; a gap has the rate of the row before: 15 s without a row, from 4 s on"),
        ((0, 1, 2, 5, 6, 7), "; a gap has the rate of the row before: 3 s without a row, from 2 s on"),
        ((0, 1, 2, 5, 6, 8, 9, 10),
         "; 2 gaps, 5 s in all, have the rate of the row before; the longest: 3 s without a row, from 2 s on"),
        ((0, 1, 2, 5, 6, 7, 8, 38, 39), "before: convert the part before or after; 1 other gap likewise"),
    ],
)  # fmt: skip
def test_gaps_of_a_few_rows_are_counted_and_measured(
    tmp_path: Path, times: tuple[float, ...], said: str | None
) -> None:
    file = write(tmp_path / "r.csv", "s,mbps\n" + "".join(f"{time},4\n" for time in times))
    code, out, _ = railyard_traces("convert", file, "--out", tmp_path / "r.down")
    told = out.partition("r.down: ")[2]
    assert (code, "gap" in told, said is None or said in told) == (0, said is not None, True), out


def test_short_gaps_in_a_log_of_bytes_and_places_are_counted(tmp_path: Path) -> None:
    rows = "".join(f"14531217{now:05} {now} 51.0 3.7 6016 1000\n" for now in (1000, 2003, 5000, 6000, 8500))
    code, out, _ = railyard_traces("convert", write(tmp_path / "r.log", rows), "--out", tmp_path / "r.down")
    said = "2 gaps between rows, 3.497 s in all, left out; the longest, of 1.997 s, is before line 3"
    assert (code, said in out) == (0, True), out


@pytest.mark.parametrize("text", [b"\xef\xbb\xbf1\r\n2\r\n1000\r\n", b"1\r2\r1000\r"])
def test_a_trace_with_foreign_line_ends_is_mended(tmp_path: Path, text: bytes) -> None:
    """As the error of a trace that has them says."""
    file = tmp_path / "dos.down"
    file.write_bytes(text)
    assert times_of(file) == [1, 2, 1000]


def test_a_rate_may_have_its_unit_behind_it_and_be_the_first_row(tmp_path: Path) -> None:
    rows = write(tmp_path / "7Train1.csv", "0.048128,Mbits/sec\n0,bits/sec\n24.064,Kbits/sec\n")
    assert times_of(rows, **{"from": "rates", "bin_ms": 1000, "rate_column": "1"}) == EXPECTED


@pytest.mark.parametrize(
    ("row", "said"),
    [("2021-13-03T10:00:01Z;1", "no number in column 1"), ("2021-05-03T09:59:59Z;1", "earlier than"),
     ("2021-05-03T10:00:01Z;1.234,5", "no number in column 2"), ("1;1", "earlier than")],
)  # fmt: skip
def test_a_date_or_number_that_cannot_be_read_is_told(tmp_path: Path, row: str, said: str) -> None:
    file = write(tmp_path / "r.csv", f"t;rate\n2021-05-03T10:00:00Z;1\n{row}\n")
    with pytest.raises(TraceError, match=said) as error:
        times_of(file, **PACKETS)
    assert str(error.value).startswith(f"{file}:3: ")


def test_logs_of_bytes_and_places_are_bins_of_their_own_lengths(tmp_path: Path) -> None:
    rows = ("1453121790686 39287 51.0386528885778 3.73220785642186 6016 1000",
            "1453121791687 40288 51.0386532820580 3.73222847166054 0 1000",
            "1453121792686 41287 51.0386553301824 -3.73225142858955 1504 0600",
            "1453121793686 42287 51.0386567711171 3.73227435543338 1504 0400")  # fmt: skip
    file = write(tmp_path / "report_bus_0001.log", "\n".join(rows) + "\n")
    assert times_of(file) == [249, 499, 749, 999, 2599, 2999, 3000]
    with pytest.raises(TraceError, match=":2: this is no row of ms since 1970"):
        times_of(write(tmp_path / "bad.log", rows[0] + "\nhello\n"), **{"from": "movement"})


def test_a_file_with_nothing_in_it_is_called_empty(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="the file is empty"):
        times_of(write(tmp_path / "nothing.csv", ""))


def test_a_gap_in_a_log_of_bytes_and_places_is_said(tmp_path: Path) -> None:
    rows = "1453121790686 {} 51.0 3.7 6016 1000\n1453121791687 {} 51.0 3.7 6016 1000\n"
    for since_ms, said in ((40_287, False), (69_287, True), (20, False)):
        file = write(tmp_path / "report.log", rows.format(39_287, since_ms))
        code, out, _ = railyard_traces("convert", file, "--out", tmp_path / "r.down")
        assert (code, "; warning: 29 s before line 2 have no row and are left out" in out) == (0, said), out


def test_a_file_of_an_archive_is_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for folder in ("a", "b"):
            archive.writestr(f"set/{folder}/drive.csv", "0,4\n1,0\n2,2\n")
    options = {"unit": "packets", "member": "b/drive.csv"}
    assert times_of(tmp_path / "all.zip", **options) == EXPECTED
    for member, said in (("drive.csv", "2 files in it are named"), ("c.csv", "0 files in it are named")):
        with pytest.raises(TraceError, match=said):
            times_of(tmp_path / "all.zip", **options | {"member": member})
    with pytest.raises(TraceError, match="cannot be unpacked"):
        times_of(write(tmp_path / "no.zip", "hello"), **options)


# --- Captures --------------------------------------------------------------------------------------------------------

HOST, PEER = "10.0.0.2", "192.0.2.9"
HOST6, PEER6 = "2001:db8::2", "2001:db8::9"


def ipv4(source: str, destination: str, length: int) -> bytes:
    head = struct.pack("!BBHHHBBH", 0x45, 0, length, 0, 0, 64, 17, 0)
    return head + socket.inet_aton(source) + socket.inet_aton(destination) + bytes(min(length, 60) - 20)


def ipv6(source: str, destination: str, length: int) -> bytes:
    addresses = socket.inet_pton(socket.AF_INET6, source) + socket.inet_pton(socket.AF_INET6, destination)
    return struct.pack("!IHBB", 6 << 28, length - 40, 17, 64) + addresses


def ethernet(packet: bytes, vlan: bool = False) -> bytes:
    kind = b"\x86\xdd" if packet[0] >> 4 == 6 else b"\x08\x00"
    return bytes(12) + (b"\x81\x00\x00\x05" if vlan else b"") + kind + packet


def capture(path: Path, frames: list[tuple[float, bytes]], link_type: int, *, ng: bool = False) -> Path:
    with path.open("wb") as out:
        writer = (dpkt.pcapng.Writer if ng else dpkt.pcap.Writer)(out, linktype=link_type, snaplen=65_535)
        for at, frame in frames:
            writer.writepkt(frame, ts=1_700_000_000 + at)
    return path


@pytest.mark.parametrize("ng", [False, True])
def test_a_capture_is_split_by_address_and_counted_by_ip_length(tmp_path: Path, ng: bool) -> None:
    arp = bytes(12) + b"\x08\x06" + bytes(28)
    frames = [
        (0.000, ethernet(ipv4(HOST, PEER, 1500))),
        (0.001, arp),
        (0.010, ethernet(ipv4(PEER, HOST, 1500))),  # captured with 60 bytes of its 1500
        (0.0225, ethernet(ipv4(PEER, HOST, 1496), vlan=True)),
        (0.030, ethernet(ipv6(PEER6, HOST6, 1300))),
        (0.040, ethernet(ipv4(PEER, "10.0.0.3", 1500))),
        (0.050, ethernet(ipv4(PEER, HOST, 100))),
    ]
    file = capture(tmp_path / "c", frames, 1, ng=ng)
    # Down: 1504 at 10 ms, 1500 at 22 (3004), 104 at 50 (3108 ≥ 3008): 100 bytes are left for the end, 51 ms.
    assert times_of(file, address=HOST) == [10, 50, 51]
    assert times_of(file, address=HOST, direction="up") == [0, 51]
    assert times_of(file, address=HOST6) == [51]
    assert times_of(file, address=HOST, t0_epoch_s=1_699_999_999) == [1010, 1050, 1051]


def test_captures_of_raw_ip_and_of_linux_cooked_interfaces_are_read(tmp_path: Path) -> None:
    packet = ipv4(PEER, HOST, 1500)
    for link_type, frame in (
        (101, packet),
        (113, bytes(16) + packet),
        (276, bytes(20) + packet),
        (0, bytes(4) + packet),
    ):
        file = capture(tmp_path / f"{link_type}.pcap", [(0, frame), (0.5, frame)], link_type)
        assert times_of(file, address=HOST) == [0, 500, 501], link_type


@pytest.mark.parametrize("ng", [False, True])
def test_a_packet_that_claims_gigabytes_takes_no_memory_for_them(tmp_path: Path, ng: bool) -> None:
    file = capture(tmp_path / "c.pcap", [(0, ethernet(ipv4(PEER, HOST, 1500)))] * 2, 1, ng=ng)
    data = file.read_bytes()
    length = struct.pack("<I", 4_000_000_000)
    at = data.index(b"\x06\0\0\0", 40) + 4 if ng else 24 + 8
    file.write_bytes(data[:at] + length + data[at + 4 :])
    tracemalloc.start()
    with suppress(TraceError):  # pcap: a record that was cut counts by its header
        times_of(file, address=HOST)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 200_000_000


def test_what_is_no_usable_capture_is_told(tmp_path: Path) -> None:
    file = capture(tmp_path / "c.pcap", [(0, ethernet(ipv4(PEER, HOST, 1500)))], 1)
    for options, said in (({}, "needs the address"), ({"address": "x"}, "is not an IP address"),
                          ({"address": PEER}, "no IP packet to 192.0.2.9")):  # fmt: skip
        with pytest.raises(TraceError, match=said):
            times_of(file, **options)
    cut_short = write(tmp_path / "short.pcap", file.read_bytes()[:30])
    with pytest.raises(TraceError, match="not a whole pcap"):
        times_of(cut_short, address=HOST)
    with pytest.raises(TraceError, match="link type 147 is not known"):
        times_of(capture(tmp_path / "u.pcap", [(0, b"")], 147), address=HOST)


# --- iperf3 ----------------------------------------------------------------------------------------------------------


def intervals(*sizes: int, key: str = "sum", first_omitted: bool = False) -> list[dict[str, object]]:
    return [
        {key: {"start": k, "end": k + 1, "bytes": size, "omitted": first_omitted and k == 0}}
        for k, size in enumerate(sizes)
    ]


def test_the_intervals_of_iperf3_are_bins_of_what_was_received(tmp_path: Path) -> None:
    expected = [249, 499, 749, 999, 2000]
    start = {"test_start": {"reverse": 1}}
    received = {"start": start, "intervals": intervals(9999, 4 * 1504, 0, first_omitted=True)}
    received |= {"server_output_json": {"intervals": intervals(7777, 7777)}}
    assert times_of(write(tmp_path / "a.json", json.dumps(received))) == expected
    sent = {"start": {"test_start": {"reverse": 0}}, "intervals": intervals(7777, 7777),
            "server_output_json": {"intervals": intervals(4 * 1504, 0)}}  # fmt: skip
    assert times_of(write(tmp_path / "b.json", json.dumps(sent))) == expected, "the server's, which received"
    both = [a | b for a, b in zip(intervals(1504, 0), intervals(4 * 1504, 0, key="sum_bidir_reverse"), strict=True)]
    file = write(tmp_path / "c.json", json.dumps({"start": {"test_start": {"bidir": 1}}, "intervals": both}))
    assert times_of(file) == expected
    assert times_of(file, direction="up") == [999, 2000]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is not JSON"),
        ('{"error": "unable to connect"}', "it says: unable to connect"),
        ('{"intervals": [{"sum": {"start": 0, "end": 1}}]}', "no start, end and bytes"),
        ('{"intervals": [{"sum": {"start": 1, "end": 0, "bytes": 5}}]}', "no start, end and bytes"),
        ('{"intervals": [7]}', "no start, end and bytes"),
        ('{"intervals": [{"sum": {"start": 0, "end": 1, "bytes": 1e400}}]}', "no start, end and bytes"),
    ],
)
def test_what_is_no_result_of_iperf3_is_told(tmp_path: Path, content: str, said: str) -> None:
    with pytest.raises(TraceError, match=said):
        times_of(write(tmp_path / "x.json", content))


@pytest.mark.parametrize("column", ["ip.len", "tcp.len"])
def test_packets_of_tshark_are_split_by_address(tmp_path: Path, column: str) -> None:
    header = f"frame.time_epoch,ip.src,ip.dst,tcp.srcport,{column}\n"
    more = 0 if column == "ip.len" else 52
    rows = (
        ("1500000000.000000000", "198.51.100.1", "10.0.0.2", 1500 - more),
        ("1500000000.500000000", "10.0.0.2", "198.51.100.1", 1500 - more),
        ("1500000000.250000000", "198.51.100.1", "10.0.0.2", 1500 - more),
        ("1500000001.000000000", "198.51.100.1", "10.0.0.2", ""),
    )
    text = header + "".join(f"{time},{source},{to},443,{size}\n" for time, source, to, size in rows)
    file = write(tmp_path / "p.csv", text)
    assert times_of(file, address="10.0.0.2") == [0, 250, 1001]
    assert times_of(file, address="198.51.100.1") == [500, 1001]
    assert times_of(file, address="10.0.0.2", t0_epoch_s=1_499_999_999.9) == [100, 350, 1101]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("frame.time_epoch,ip.src,ip.dst\n1,a,b\n", ":1: the column ip.len is missing"),
        ("frame.time_epoch,ip.src,ip.len\n1,a,9\n", ":1: the column ip.dst is missing"),
        ("frame.time_epoch,ip.src,ip.dst,ip.len\n1,a,b\n", ":2: the row has not as many cells"),
        ("frame.time_epoch,ip.src,ip.dst,ip.len\nnan,a,b,9\n", ":2: there is no time in s"),
        ("frame.time_epoch,ip.src,ip.dst,ip.len\n1,a,b,70000\n", ":2: there is no time in s"),
        ("frame.time_epoch,ip.src,ip.dst,ip.len\n1,a,c,9\n", "there is no packet of b in it"),
    ],
)
def test_what_are_no_packets_of_tshark_is_told(tmp_path: Path, text: str, said: str) -> None:
    file = write(tmp_path / "p.csv", text)
    with pytest.raises(TraceError, match=re.escape(str(file)) + ".*" + re.escape(said)):
        times_of(file, address="b")


IPERF_TEXT = """\
Start time: 1747682491609
Reverse mode, remote host 192.0.2.1 is sending
[ ID] Interval           Transfer     Bitrate
[  5]   0.00-0.50   sec  2.94 KBytes  48.2 Kbits/sec                  (omitted)
[  5]   0.00-0.10   sec  2.94 KBytes   241 Kbits/sec
[  5]   0.10-0.20   sec  0.00 Bytes  0.00 bits/sec
[  5]   0.20-0.30   sec  1.47 KBytes  120 Kbits/sec    1   37.8 KBytes
- - - - - - - - - - - - - - - - - - - - - - - - -
[  5]   0.00-0.30   sec  9.99 MBytes   2.8 Mbits/sec   28             sender
"""


IBOX = {"bottleneck_bandwidth": 36.096, "buffer_size_packets": 56, "propagation_delay": 231}


def test_a_profile_of_ibox_is_what_its_cross_traffic_leaves(tmp_path: Path) -> None:
    profile = {"config": {"uplink": IBOX | {"cross_traffic_pattern": [0, 24.064, 99]},
                          "downlink": IBOX | {"cross_traffic_pattern": []}}}  # fmt: skip
    file = write(tmp_path / "p.json", json.dumps(profile))
    assert times_of(file) == [333, 666, 999, 1999, 3000]
    done = convert_trace(file, TraceRecipe.model_validate({"file": str(file)}))
    assert (done.format, done.resolution_ms) == ("ibox", 1000)
    assert "propagation delay 231 ms, buffer of 56 packets" in done.note
    for before, after in (("36.096", '"x"'), ("36.096", "1e12"), ("[0, ", "[-1, "), ("uplink", "sidelink")):
        with pytest.raises(TraceError, match="profile of iBox"):
            times_of(write(tmp_path / "bad.json", json.dumps(profile).replace(before, after, 1)))


def test_the_intervals_that_iperf3_prints_are_bins(tmp_path: Path) -> None:
    file = write(tmp_path / "dl.out", IPERF_TEXT)
    assert times_of(file) == [49, 99, 299, 300]
    assert convert_trace(file, TraceRecipe.model_validate({"file": str(file)})).resolution_ms == 100
    several = IPERF_TEXT.replace("0.20-0.30", "0.10-0.20")
    with pytest.raises(TraceError, match="7: the interval does not follow the one before it"):
        times_of(write(tmp_path / "two.out", several))
    with pytest.raises(TraceError, match="there is no interval in it"):
        times_of(write(tmp_path / "none.out", "Interval\n"), **{"from": "iperf-text"})


def test_lines_of_iperf3_may_have_a_time_before_them(tmp_path: Path) -> None:
    lines = [f"Sun Nov 29 10:00:0{number} 2026 {line}" for number, line in enumerate(IPERF_TEXT.splitlines())]
    assert times_of(write(tmp_path / "dl.out", "\n".join(lines) + "\n")) == [49, 99, 299, 300]


def test_times_of_a_day_are_read(tmp_path: Path) -> None:
    rows = "time,kbps\n09:59:59,48.128\n10:00:00.5,24.064\n10:00:01,0\n"
    seconds = "s,kbps\n0,48.128\n1.5,24.064\n2,0\n"
    assert times_of(write(tmp_path / "r.csv", rows)) == times_of(write(tmp_path / "s.csv", seconds))
    with pytest.raises(TraceError, match=":3: the time is earlier than"):
        times_of(write(tmp_path / "m.csv", "time,kbps\n23:59:59,4\n00:00:00,5\n"))


def test_a_network_trace_of_sabre_is_bins_of_their_own_lengths(tmp_path: Path) -> None:
    bins = [{"duration_ms": 1000, "bandwidth_kbps": 24.064, "latency_ms": 40},
            {"duration_ms": 500, "bandwidth_kbps": 0}, {"duration_ms": 500, "bandwidth_kbps": 48.128}]  # fmt: skip
    text = json.dumps(bins, indent=1)
    file = write(tmp_path / "sabre.json", text)
    assert times_of(file) == [499, 999, 1749, 1999, 2000]
    assert convert_trace(file, TraceRecipe.model_validate({"file": str(file)})).format == "sabre"
    for before, after in (
        ("24.064", '"x"'),
        ("1000", "-1"),
        ("1000", "NaN"),
        ('"duration_ms": 500', '"d": 500'),
        ("[", ""),
    ):
        with pytest.raises(TraceError, match="no list of bins with duration_ms and bandwidth_kbps"):
            times_of(write(tmp_path / "bad.json", text.replace(before, after, 1)), **{"from": "sabre"})
    nothing = [{"duration_ms": 0, "bandwidth_kbps": 5}]
    with pytest.raises(TraceError):
        times_of(write(tmp_path / "none.json", json.dumps(nothing)))


@given(data=st.binary(max_size=200))
def test_any_bytes_are_converted_or_refused_in_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    file = write(tmp_path_factory.getbasetemp() / "any", data)
    for form in (
        None,
        "mahimahi",
        "saturatr",
        "raw",
        "rates",
        "movement",
        "pcap",
        "tshark",
        "iperf3",
        "iperf-text",
        "ibox",
    ):
        try:
            times = times_of(file, **{"from": form, "address": HOST})
        except TraceError as error:
            assert "\n" not in str(error)
        else:
            assert times == sorted(times) and times[-1] > 0


# --- Command line ----------------------------------------------------------------------------------------------------

RECIPE = """\
schema: 1
pairs:
- name: my-walk
  scenario: walking
  licence: CC0-1.0
  source: recorded by hand
  paths:
  - name: wifi
    technology: wifi
    downlink: {file: down.csv, unit: packets}
    uplink: {file: up.csv, from: rates, unit: packets}
  - name: lte
    technology: lte
    base_rtt_ms: 61
    queue: droptail:packets=77
    kind: saturated-udp
    downlink: {file: lte.trace, start_s: 0.1}
"""


def test_convert_writes_a_trace_and_says_what_it_read(tmp_path: Path) -> None:
    file = write(tmp_path / "r.csv", "0,4\n1,0\n2,2\n")
    code, out, _ = railyard_traces("convert", file, "--unit", "packets", "--out", tmp_path / "new/r.down")
    assert code == 0
    assert "from rates, 9024 bytes in 3.000 s: 7 opportunities, 0.03 Mbps; resolution 1000 ms; " in out
    assert read_trace(tmp_path / "new/r.down").period_ms == 3000
    for arguments in (("--unit", "furlongs"), ("--start", "9"), ("--rate-column", "q")):
        code, _, err = railyard_traces("convert", file, "--out", tmp_path / "x", *arguments)
        assert code == 2, arguments
        assert not (tmp_path / "x").exists()
    code, _, err = railyard_traces("convert", write(tmp_path / "odd", "hello\n"), "--out", tmp_path / "x")
    assert (
        code,
        "name it: mahimahi, saturatr, raw, rates, movement, pcap, tshark, iperf3, iperf-text, ibox" in err,
    ) == (
        2,
        True,
    )


def test_a_link_log_is_no_measurement(tmp_path: Path) -> None:
    log = Path(__file__).parent / "data/mm-link/once.log"
    code, _, err = railyard_traces("convert", log, "--out", tmp_path / "x")
    assert (code, f"{log}:1: this is a link log, which `railyard link-stats` reads; give a measurement" in err) == (
        2,
        True,
    )


def test_a_recipe_takes_the_number_of_a_column() -> None:
    recipe = TraceRecipe.model_validate({"file": "r.csv", "rate_column": 2, "time_column": "t"})
    assert (recipe.rate_column, recipe.time_column) == ("2", "t")


def test_a_recipe_makes_a_pair_in_a_library(tmp_path: Path) -> None:
    write(tmp_path / "down.csv", "0,4\n1,0\n2,2\n")
    write(tmp_path / "up.csv", "0,1\n1,0\n2,2\n")
    write(tmp_path / "lte.trace", "50\n150\n300\n")
    code, out, err = railyard_traces("convert", write(tmp_path / "recipe.yaml", RECIPE), "--out", tmp_path / "lib")
    assert code == 0, err
    assert "my-walk.wifi.up" in out
    (pair,) = read_index(tmp_path / "lib" / "index.yaml")
    wifi, lte = pair.paths
    assert (wifi.base_rtt_ms, lte.base_rtt_ms, lte.queue, pair.licence) == (30, 61, "droptail:packets=77", "CC0-1.0")
    assert (wifi.settings, lte.settings) == ({}, {"up_radio": "promotion=260:tail=11576"})
    assert lte.uplink == lte.downlink
    assert [(path.kind, path.resolution_ms) for path in pair.paths] == [(None, 1000), ("saturated-udp", None)]
    assert read_trace(lte.downlink).opportunities_ms.tolist() == [50, 200]
    assert read_trace(wifi.uplink).opportunities_ms.tolist() == [999, 2499, 2999, 3000]
    awake = write(tmp_path / "awake.yaml", RECIPE.replace("    base_rtt_ms: 61", "    link: {loss: 0.1}"))
    assert railyard_traces("convert", awake, "--out", tmp_path / "awake")[0] == 0
    assert read_index(tmp_path / "awake" / "index.yaml")[0].paths[1].settings == {"loss": 0.1}
    bad = write(tmp_path / "bad.yaml", RECIPE.replace("unit: packets}", "unit: furlongs}", 1))
    code, _, err = railyard_traces("convert", bad, "--out", tmp_path / "lib")
    assert (code, err.startswith(f"railyard: {bad}:10: pairs[0].paths[0].downlink.unit: ")) == (2, True), err
