"""`railyard study validate`: live downloads from lists of packets, distances with known answers, emulated downloads."""

import io
import json
import math
import os
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from conftest import good, one_sentence
from in_process import railyard
from kernel_machine import needs_kernel
from railyard.base.errors import UserError
from railyard.base.page import markdown_of
from railyard.stats.statistics import ks_distance
from railyard.studies.claims import judge
from railyard.studies.study import find_study
from railyard.studies.validation import distances, models, page
from railyard.studies.validation.downloads import (
    LIVE,
    Download,
    even,
    fit,
    live_archive,
    odd,
    packets_of,
    read_downloads,
)
from railyard.traces.index import Pair, PairPath
from railyard.traces.library import SEARCH_PATH_VARIABLE
from railyard.traces.light import read_light_trace
from railyard.traces.trace import format_trace, read_trace

HEADER = (
    "frame.time_epoch,ip.src,ip.dst,tcp.srcport,tcp.dstport,tcp.seq,tcp.ack,tcp.len,tcp.flags,"
    "tcp.analysis.bytes_in_flight,tcp.analysis.ack_rtt,tcp.options.mptcp.rawdataack,tcp.options.mptcp.rawdataseqno"
)
EPOCH = 1_529_184_900
PORTS = {"U": 40_000, "M": 50_000}
SEGMENT = 1_228
SYN, ACK, RST = 2, 16, 4

REAL = [Path(name) / LIVE for name in os.environ.get("RAILYARD_TRACE_PATH", "").split(":") if name]
needs_live = pytest.mark.skipif(
    not any(file.is_file() for file in REAL), reason=f"no folder of RAILYARD_TRACE_PATH has {LIVE}"
)


class Capture:
    """The packets of one subflow, as a client captures them."""

    def __init__(self, carrier: str, at_s: float) -> None:
        self.carrier, self.at_s, self.rows = carrier, at_s, [HEADER]

    def packet(
        self, t: float, flags: int, *, up: bool, seq: int = 1, ack: int = 1, length: int = 0, dsn: str = ""
    ) -> None:
        client, server = ("192.168.43.2", PORTS[self.carrier]), ("203.0.113.1", 8000)
        (source, port), (target, to) = (client, server) if up else (server, client)
        cells = (f"{self.at_s + t:.6f}", source, target, port, to, seq, ack, length, f"0x{flags:08x}", "", "", "", dsn)
        self.rows.append(",".join(str(cell) for cell in cells))

    def handshake(self, t: float, syn_rtt: float) -> float:
        self.packet(t, SYN, up=True, seq=0, ack=0)
        self.packet(t + syn_rtt, SYN | ACK, up=False, seq=0)
        self.packet(t + syn_rtt, ACK, up=True)
        return t + syn_rtt

    def data(self, t: float, dsn: int, length: int, seq: int = 1) -> None:
        self.packet(t, ACK, up=False, seq=seq, ack=126, length=length, dsn=str(dsn % (1 << 32)))

    @property
    def text(self) -> str:
        return "\n".join(self.rows) + "\n"


def named(number: int, size_kb: int, carrier: str) -> str:
    return f"mouse/client.{EPOCH + 15 * number}.olia.laptop#3.M.D{size_kb}.wlan12.{carrier}3.pcap.csv"


def capture(
    number: int,
    *,
    size_kb: int = 64,
    u: tuple[float, float] = (0.2, 0.04),
    m: tuple[float, float] = (0.4, 0.1),
    spacing_s: float = 0.001,
    first_dsn: int = 1_000,
    lost: bool = False,
) -> dict[str, str]:
    """A download that begins on U. `u`, `m`: SYN and next RTT. Every fourth segment comes over M, `spacing_s` apart."""
    first, second = Capture("U", EPOCH + 15 * number), Capture("M", EPOCH + 15 * number)
    ready = first.handshake(0.0, u[0])
    first.packet(ready, ACK | 8, up=True, length=125, dsn="7")
    reply = ready + u[1]
    first.packet(reply, ACK, up=False, ack=126)
    joined = second.handshake(ready, m[0])
    second.packet(joined + m[1], ACK, up=False)
    first.data(reply, first_dsn, 203)
    size, sent, count = 1000 * size_kb, 0, 0
    while sent < size - SEGMENT * lost:
        length = min(SEGMENT, size - sent)
        flow, begin, index = (
            (second, joined + m[1], count // 4) if count % 4 == 3 else (first, reply, count - count // 4)
        )
        flow.data(begin + spacing_s * (index + 1), first_dsn + 203 + sent, length, seq=2 + sent)
        sent, count = sent + length, count + 1
    return {named(number, size_kb, "U"): first.text, named(number, size_kb, "M"): second.text}


def archive(file: Path, captures: Sequence[dict[str, str]]) -> Path:
    with tarfile.open(file, "w:xz") as tar:
        for name, text in (item for one in captures for item in one.items()):
            info = tarfile.TarInfo(f"hsr_mptcp/{name}")
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return file


def read(tmp_path: Path, *captures: dict[str, str]) -> list[Download]:
    return read_downloads(archive(tmp_path / "live.tar.xz", captures))


# ---- live downloads


def test_a_download_has_its_start_its_round_trips_and_its_finish(tmp_path: Path) -> None:
    (one,) = read(tmp_path, capture(1))
    segments = math.ceil(64_000 / SEGMENT) // 4  # over M, after 0.2 + 0.4 + 0.1 s
    assert (one.number, one.controller, one.size_bytes, one.primary) == (1, "olia", 64_000, "U")
    assert one.duration_s == pytest.approx(0.2 + 0.4 + 0.1 + 0.001 * segments, abs=1e-5)
    u, m = one.subflow("U"), one.subflow("M")
    assert u is not None
    assert m is not None
    assert (u.syn_rtt_s, u.next_rtt_s, u.wake_up_s) == pytest.approx((0.2, 0.04, 0.16), abs=1e-5)
    assert (m.syn_rtt_s, m.next_rtt_s, m.wake_up_s) == pytest.approx((0.4, 0.1, 0.3), abs=1e-5)


def test_the_rate_of_the_first_arrivals_is_that_of_ten_segments_with_data(tmp_path: Path) -> None:
    flow = Capture("U", EPOCH)
    ready = flow.handshake(0.0, 0.2)
    flow.packet(ready, ACK, up=True, length=125, dsn="7")
    flow.packet(ready + 0.1, ACK, up=False, ack=126)
    flow.data(ready + 0.1, 0, 203)
    for number in range(20):  # after the header the server waits; after ten segments the link is slower
        t = ready + 0.15 + (0.001 * number if number < 10 else 0.009 + 0.004 * (number - 9))
        flow.data(t, 203 + SEGMENT * number, SEGMENT, seq=204 + SEGMENT * number)
    (one,) = read(tmp_path, {named(0, 64, "U"): flow.text})
    found = one.subflow("U")
    assert found is not None
    assert found.first_rate_bps == pytest.approx(8 * (SEGMENT + 76) / 0.001, rel=1e-3)


def test_a_file_folder_and_zip_are_read_alike(tmp_path: Path) -> None:
    import zipfile  # noqa: PLC0415

    captures = capture(1) | capture(2, size_kb=256)
    for name, text in captures.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with zipfile.ZipFile(tmp_path / "live.zip", "w") as zipped:
        for name, text in captures.items():
            zipped.writestr(name, text)
    assert read(tmp_path, captures) == read_downloads(tmp_path / "mouse") == read_downloads(tmp_path / "live.zip")


def test_data_sequence_numbers_may_pass_the_end_of_their_range(tmp_path: Path) -> None:
    (one,) = read(tmp_path, capture(1, first_dsn=(1 << 32) - 30_000))
    (other,) = read(tmp_path, capture(1))
    assert one.duration_s == other.duration_s


def test_a_download_that_lacks_a_byte_or_came_from_an_earlier_connection_is_not_finished(tmp_path: Path) -> None:
    short = capture(1, lost=True)
    stranger = Capture("U", EPOCH + 15)
    stranger.data(0.0, 64_000, SEGMENT)  # as if it were the byte that is missing, of a connection without a SYN
    line = stranger.rows[1].replace(str(PORTS["U"]), "39999")
    name = named(1, 64, "U")
    (one,) = read(tmp_path, short | {name: short[name] + line + "\n"})
    assert one.duration_s is None
    assert one.primary == "U"


@pytest.mark.parametrize(
    ("again_s", "answer", "next_rtt_s"),
    [(None, ACK, 0.1), (None, RST, None), (0.06, ACK, None)],
    ids=["answered", "reset", "sent twice"],
)
def test_the_next_round_trip_needs_one_packet_and_its_answer(
    tmp_path: Path, again_s: float | None, answer: int, next_rtt_s: float | None
) -> None:
    flow = Capture("M", EPOCH + 15)
    flow.packet(0.0, SYN, up=True, seq=0, ack=0)
    flow.packet(1.0, SYN, up=True, seq=0, ack=0)
    flow.packet(1.2, SYN | ACK, up=False, seq=0)
    flow.packet(1.2, ACK, up=True)
    if again_s is not None:
        flow.packet(1.2 + again_s, ACK, up=True)
    flow.packet(1.3, answer, up=False)
    (download,) = read(tmp_path, capture(1) | {named(1, 64, "M"): flow.text})
    found = download.subflow("M")
    assert found is not None
    assert found.syns == 2
    assert found.syn_rtt_s == pytest.approx(1.2)
    assert found.next_rtt_s == (None if next_rtt_s is None else pytest.approx(next_rtt_s))
    assert found.wake_up_s is None


def test_an_empty_list_is_a_download_that_did_not_begin(tmp_path: Path) -> None:
    (one,) = read(tmp_path, {named(1, 64, "U"): HEADER + "\n", named(1, 64, "M"): HEADER + "\n"})
    assert (one.primary, one.duration_s) == (None, None)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"frame.time_epoch,ip.src\n", "x.csv:1: there is no column ip.dst; print it with tshark -e ip.dst."),
        (HEADER.encode() + b"\n1,2\n", "x.csv:2: this is no packet as tshark prints it"),
        (HEADER.encode() + b"\n" + b"nan,a,b,1,2,0,0,0,0x2,,,,\n", "x.csv:2: this is no packet"),
        (HEADER.encode() + b"\n" + b"1,a,b,1,2,-5,0,0,0x2,,,,\n", "x.csv:2: this is no packet"),
        (HEADER.encode() + b"\n" + b"1,a,b,1,2,0,0," + b"9" * 5000 + b",0x2,,,,\n", "x.csv:2: this is no packet"),
        (b"\xff\xfe\x00", "x.csv:1: there is no column"),
        (b"", "x.csv:1: there is no column"),
        (b"\x00" * ((16 << 20) + 1), "x.csv: it is larger than 16 MiB"),
    ],
)
def test_what_is_no_list_of_packets_is_refused_with_file_and_line(data: bytes, sentence: str) -> None:
    with pytest.raises(UserError, match=r"x\.csv") as refused:
        packets_of("x.csv", data)
    assert sentence in str(refused.value)


def test_an_archive_of_too_many_packets_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("railyard.studies.validation.downloads.MAX_PACKETS", 100)
    with pytest.raises(UserError, match="more than 100 packets"):
        read(tmp_path, capture(1, size_kb=256))


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    whole = archive(tmp_path / "live.tar.xz", [capture(1)]).read_bytes()
    for number, data in enumerate((whole[: len(whole) // 2], b"no archive", b"")):
        (tmp_path / f"{number}").write_bytes(data)
        with pytest.raises(UserError, match=r"no whole tar or zip archive|no list of packets"):
            read_downloads(tmp_path / f"{number}")
    with pytest.raises(UserError, match="cannot be read"):
        read_downloads(tmp_path / "missing")
    done = railyard("study", "validate", "--set", f"live={tmp_path / '1'}")
    one_sentence(done, "no list of packets of a download in this folder, tar or zip archive")


def test_the_archive_of_live_downloads_is_found_on_the_search_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SEARCH_PATH_VARIABLE, f"{tmp_path / 'empty'}:{tmp_path}")
    with pytest.raises(UserError, match="railyard traces fetch hsr-mptcp"):
        live_archive(None)
    (tmp_path / LIVE).parent.mkdir()
    (tmp_path / LIVE).touch()
    assert live_archive(None) == tmp_path / LIVE
    assert live_archive(tmp_path / "named") == tmp_path / "named"


@needs_live
def test_the_recorded_downloads_are_those_of_the_page() -> None:
    downloads = read_downloads(next(file for file in REAL if file.is_file()))
    assert (len(downloads), sum(one.duration_s is not None for one in downloads)) == (89, 84)
    assert {one.size_bytes for one in downloads} == {64_000, 256_000, 1_024_000}
    assert len(even(downloads)) == 42
    assert len([one for one in odd(downloads) if one.duration_s is not None]) == 42
    assert 0.03 < fit(downloads, "U").rtt_s < fit(downloads, "M").rtt_s < 0.1


# ---- distances


ALL = distances.all_groups(100)


def groups(values: Sequence[float]) -> list[list[float]]:
    return [[value] for value in values]


def test_ks_is_the_largest_distance_of_the_distributions() -> None:
    live = groups(range(1, 101))
    assert distances.ks_of(live, live)(ALL) == 0
    assert distances.ks_of(live, groups([value + 25 for value in range(1, 101)]))(ALL) == pytest.approx(0.25)
    assert distances.ks_of(live, groups([*range(1, 91), *[math.inf] * 10]))(ALL) == pytest.approx(0.1)
    assert ks_distance(np.array([1.0]), np.array([math.inf])) == 1


def test_ratios_and_error_are_those_of_the_quantiles() -> None:
    live = groups([float(value) for value in range(1, 101)])
    doubled = groups([2.0 * value for value in range(1, 101)])
    assert [distances.ratio_of(live, doubled, q)(ALL) for q in distances.QUANTILES] == [2, 2, 2, 2]
    assert math.exp(distances.log_error_of(live, doubled)(ALL)) == pytest.approx(2)
    tail = groups([*range(1, 81), *(2 * value for value in range(81, 101))])
    assert math.exp(distances.log_error_of(live, tail)(ALL)) == pytest.approx(2 ** (1 / 4))


def test_samples_are_circular_blocks_of_neighbours() -> None:
    for sample in distances.resamples(12, seed=3, number=50):
        assert len(sample) == 12
        steps = np.diff(sample) % 12
        assert all(steps[index] == 1 for index in range(11) if index % distances.BLOCK != distances.BLOCK - 1)
    assert [list(one) for one in distances.resamples(12, 3, 5)] == [list(one) for one in distances.resamples(12, 3, 5)]


def test_an_interval_of_a_mean_share_covers_it_as_often_as_it_says() -> None:
    generator = np.random.default_rng(1)
    covered = 0
    for trial in range(200):
        hits = [[bool(hit)] for hit in generator.random(60) < 0.6]
        found = distances.interval(distances.share_of(hits), 60, distances.resamples(60, trial, 400))
        covered += found.low <= 0.6 <= found.high
    assert 165 <= covered <= 200  # blocks of five make 60 downloads twelve: somewhat below 95 %


def test_a_verdict_is_given_where_the_difference_is_clear() -> None:
    generator = np.random.default_rng(2)
    live = groups(list(np.exp(generator.normal(0, 0.5, 60))))
    good = groups(list(np.exp(generator.normal(0, 0.5, 60))))
    bad = groups(list(np.exp(generator.normal(1.5, 0.5, 60))))
    samples = distances.resamples(60, 1, 400)
    assert distances.verdict(live, good, bad, samples, 8).word == "better"
    assert distances.verdict(live, bad, good, samples, 8).word == "worse"
    assert distances.verdict(live, good, good, samples, 8).word == "no verdict"
    never = groups([math.inf] * 60)
    assert distances.verdict(live, never, good, samples, 8).word == "worse"


def test_a_prediction_has_its_bias_and_its_error() -> None:
    live, predicted = [1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 1.2, 0.5]
    sample = distances.all_groups(4)
    assert math.exp(distances.bias_of(live, predicted)(sample)) == pytest.approx(1.2)
    assert math.exp(distances.miss_of(live, predicted)(sample)) == pytest.approx(2)
    assert distances.within_of(live, predicted)(sample) == 0.25


# ---- the figures of the page


def constructed(tmp_path: Path) -> list[Download]:
    return read(tmp_path, *(capture(number, spacing_s=0.001 * (1 + number % 3)) for number in range(1, 25)))


def test_a_model_that_gives_the_live_durations_is_perfect_and_a_slow_one_is_worse(tmp_path: Path) -> None:
    downloads = constructed(tmp_path)
    took = {("connected", "mptcp", one.number): [one.duration_s or 0.0] * 2 for one in even(downloads)}
    took |= {("syn", "mptcp", one.number): [3 * (one.duration_s or 0.0)] * 2 for one in even(downloads)}
    for scheme, factor in (("mptcp", 2), ("tcp-U", 1), ("tcp-M", 3)):
        took |= {("radio", scheme, one.number): [factor * (one.duration_s or 0.0)] * 2 for one in even(downloads)}
    pairs = {(one.number, repeat): "hsr-1" for one in downloads for repeat in range(2)}
    found = page.analyse(downloads, ["connected", "syn", "radio", "bins"], [], took, pairs, seed=1)
    pooled = {row.model: row for row in found.rows if row.size_bytes is None}
    assert pooled["connected"].ks.value == 0
    assert [ratio.value for ratio in pooled["syn"].ratios] == pytest.approx([3, 3, 3, 3])
    assert pooled["syn"].verdict is not None
    assert pooled["syn"].verdict.word == "worse"
    assert found.left_out == ["bins"]
    faster = {one.against: one.faster.value for one in found.findings if one.size_bytes is None}
    assert faster == {"poorer": 1, "better": 0, "better of each run": 0}
    study = find_study("validate")
    measured = study.code.Measured(found=found, runs=60, repeats=2, by="")
    judged, _ = judge(study.declared.claims, study.code.compared(measured))
    assert [(one.compared.words, one.verdict) for one in judged if one.claim.figure == "faster_runs"] == [
        ("100 %", "holds"),
        ("0 %", "holds"),
    ]
    text = markdown_of(page.blocks(found, ""))
    assert "- Better than `connected`: none. Worse: `syn`, `radio`." in text
    assert "- Too slow at the median (the interval is above 1): `syn`, `radio`. Too fast: none." in text
    assert "Left out, because their traces were not at hand: `bins`." in text
    result = json.loads(page.write(tmp_path, found, took).read_text())
    assert result["judges"] == 12


# ---- models


def test_the_models_share_their_draws_and_differ_in_their_links(tmp_path: Path) -> None:
    downloads = constructed(tmp_path)
    unconditional, conditional = models.models(downloads)
    of_name = {model.name: model for model in (*unconditional, *conditional)}
    one, drawn = even(downloads)[0], models.draw(1, 2, 0)
    assert drawn == models.draw(1, 2, 0) != models.draw(2, 2, 0)
    assert of_name["syn"].choose(one, drawn)["M"] == models.Link(193)
    assert of_name["radio"].choose(one, drawn)["U"] == models.Link(60, 119)
    fitted = of_name["fitted"].choose(one, drawn)["M"]
    assert fitted is not None
    assert (fitted.rtt_ms, fitted.wake_up_ms) == pytest.approx((100, 300), abs=0.01)
    own = of_name["first-arrivals"].choose(one, drawn)["U"]
    assert own is not None
    assert (own.rtt_ms, own.wake_up_ms) == pytest.approx((40, 160), abs=0.01)
    assert of_name["own-rtt"].choose(one, drawn)["U"] == models.Link(own.rtt_ms)


def test_an_emulated_download_has_the_primary_path_the_size_and_the_wake_up_of_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "kernel_machine", lambda: None)
    downloads = constructed(tmp_path)
    unconditional, conditional = models.models(downloads)
    here = models.Stage(models.rail_pairs(), models.Workshop(tmp_path / "traces"), 1, {})
    runs = models.plan(here, unconditional, conditional, even(downloads)[:1], 2)
    assert len({run.spec.run_id for run in runs}) == len(runs)
    radio = next(run.spec for run in runs if (run.model, run.scheme) == ("radio", "mptcp"))
    lte = next(path for path in radio.paths if path.name == "lte")
    assert radio.primary == "lte"
    assert radio.player.video_bytes == radio.player.chunk_bytes == 64_000
    assert (lte.delay_ms, lte.settings) == (30, {"up_radio": "promotion=119:tail=11576"})
    assert {run.scheme: run.spec.primary for run in runs if run.model == "radio"} == {
        "mptcp": "lte",
        "tcp-U": "lte",
        "tcp-M": "wifi",
    }
    library = next(run.spec for run in runs if run.model == "library")
    pair = next(pair for pair in here.pairs["generated"] if pair.name == library.pair)
    assert [(path.delay_ms, path.queue, path.settings) for path in library.paths] == [
        (path.delay_ms, path.queue, path.settings) for path in models.carriers_of(pair).values()
    ]
    light = next(run.spec for run in runs if run.model == "light")
    rows = read_light_trace(light.paths[0].delay_traces["down_light_trace"])
    assert [row.at_ms for row in rows] == [1000 * n for n in range(len(rows))] and rows[0].offsets_ms[0] == 0
    assert len(rows[0].offsets_ms) >= 3 and rows[-1].offsets_ms == ()
    assert light.paths[0].settings["light_gap_ms"] == rows[0].delay_ms
    delayed = next(run.spec for run in runs if run.model == "delay-trace")
    assert all(path.delay_traces for path in delayed.paths)
    constant = next(run.spec for run in runs if run.model == "first-arrivals")
    assert {path.queue for path in constant.paths} == {models.QUEUE}


def test_recorded_pairs_get_the_silences_of_the_transfers_beside_the_downloads(tmp_path: Path) -> None:
    captures = capture(1)
    for carrier in ("U", "M"):  # 1.2 Mbps for 20 s, and half of each second is silent
        flow = Capture(carrier, EPOCH)
        for number in range(2_000):
            t = number // 100 + 0.005 * (number % 100)
            flow.data(t, SEGMENT * number, SEGMENT, seq=1 + SEGMENT * number)
        epoch = next(epoch for epoch, of in models.DONORS if of == carrier)
        captures[f"elephant/client.{epoch}.olia.laptop#3.M.F100.wlan3.{carrier}3.pcap.csv"] = flow.text
    live = archive(tmp_path / "live.tar.xz", [captures])
    even_s = np.arange(0, 20_000, 12)  # about 1 Mbps, evenly
    for name in ("lteU", "lteM"):
        (tmp_path / f"{name}.down").write_bytes(format_trace([*even_s, 20_000]))
    paths = tuple(
        PairPath(name, "lte", tmp_path / f"{name}.down", tmp_path / f"{name}.down", rtt, "infinite")
        for name, rtt in (("lteU", 60), ("lteM", 90))
    )
    pair = Pair("hsr_x", models.SCENARIO, "MIT", "recorded", paths, tmp_path)
    workshop = models.Workshop(tmp_path / "made")
    (restored,) = models.with_restored({"recorded": [pair]}, live, workshop, 1)["restored"]
    for path in restored.paths:
        trace = read_trace(path.downlink)
        assert path.uplink == path.downlink
        assert list(trace.counts(1000)) == pytest.approx(list(read_trace(paths[0].downlink).counts(1000)), abs=1)
        assert np.diff(trace.opportunities_ms).max() >= 400
    again = models.with_restored({"recorded": [pair]}, archive(tmp_path / "none.tar.xz", [capture(1)]), workshop, 1)
    assert again["restored"] == []


@needs_kernel
def test_emulated_downloads_take_as_long_as_their_links_allow(tmp_path: Path) -> None:
    file = archive(tmp_path / "live.tar.xz", [capture(number, spacing_s=0.002) for number in range(1, 4)])
    out = tmp_path / "out"
    changes = (f"live={file}", "models=[constant, first-arrivals]", f"out={out}")
    done = good(railyard("study", "validate", "--size", "small", *(word for one in changes for word in ("--set", one))))
    result = json.loads((out / page.RESULT).read_text())
    took = {one["model"]: one["s"][0] for one in result["durations"]}
    # Handshake and request over U, 40 ms each, and 64 kB at 5 Mbps and less; the wake-up of 160 ms comes once.
    assert 0.08 < took["constant"] < 0.4
    assert took["first-arrivals"] == pytest.approx(took["constant"] + 0.16, abs=0.03)
    assert "| `first arrivals` |" in done.stdout
    assert "Kernel MPTCP against" not in done.stdout, "the model of the findings was not asked for"
