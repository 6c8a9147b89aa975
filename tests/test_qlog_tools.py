"""`railyard qlog`: the paths in qlogs of any stack, and traces for Perfetto."""

import datetime
import json
import random
import shutil
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import jsonschema
import pytest
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.logger import QuicLogger
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from conftest import good, one_sentence
from in_process import railyard
from railyard.base.errors import UserError
from railyard.report import perfetto, timeline
from railyard.results.anyqlog import MOST_BYTES, AnyQlog, PathOfLog, SentPacket, read_any_qlog
from railyard.results.explain.flight import Packet, Piece
from railyard.results.qlogdiff import events

QUIC_GO = Path(__file__).parent / "data" / "quic-go_client.sqlog"
EXPERIMENT = """
name: unit
arena: sim
pairs: [subway-1]
schemes: [{scheme: xlink, t_th1_ms: 60000, t_th2_ms: 60000}]
seeds: [1]
start_offset_ms: 0
player: {duration_s: 2, bitrate_bps: 4000000, chunk_bytes: 131072}
time_limit_s: 30
"""
NUMBER = {"type": "number", "minimum": 0}
IDS = {"pid": {"type": "integer", "minimum": 1}, "tid": {"type": "integer", "minimum": 0}}


def phase(letters: str, required: str, **members: Any) -> dict[str, Any]:
    properties = {"ph": {"enum": letters.split()}, "name": {"type": "string", "minLength": 1}, **IDS, **members}
    named = ["ph", "name", "pid", *required.split()]
    return {"type": "object", "properties": properties, "required": named, "additionalProperties": False}


# The form of trace events: what each phase must have.
PHASES = (
    phase("M", "args", args={"type": "object", "required": ["name"]}),
    phase("X", "tid ts dur", ts=NUMBER, dur=NUMBER, args={"type": "object"}),
    phase("b e", "ts cat id", ts=NUMBER, cat={"type": "string"}, id={"type": "string"}, args={"type": "object"}),
    phase("C", "ts args", ts=NUMBER, args={"type": "object", "minProperties": 1,
                                           "additionalProperties": {"type": "number"}}),
    phase("i", "ts tid s", ts=NUMBER, s={"enum": ["g", "p", "t"]}),
    phase("s f", "ts tid cat id", ts=NUMBER, cat={"type": "string"}, id={"type": "integer"}, bp={"const": "e"}),
)  # fmt: skip
VALIDATORS = {
    letter: jsonschema.Draft202012Validator(schema)
    for schema in PHASES
    for letter in schema["properties"]["ph"]["enum"]
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("qlog")


@pytest.fixture
def run(folder: Path) -> Path:
    if not (folder / "out").is_dir():
        (folder / "unit.yaml").write_text(EXPERIMENT)
        good(railyard("run", str(folder / "unit.yaml"), "--out", str(folder / "out")))
    [found] = (folder / "out" / "runs").iterdir()
    return found


@pytest.fixture
def trace(run: Path, folder: Path) -> list[dict[str, Any]]:
    file = folder / "run.json"
    if not file.is_file():
        done = railyard("qlog", str(run), "--perfetto", "--out", str(file))
        assert (done.returncode, done.stdout.strip()) == (0, str(file)), done.stderr
    return checked(file)


def checked(file: Path) -> list[dict[str, Any]]:
    """The events of a trace that has the form of one."""
    document = json.loads(file.read_text(), parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert document.keys() == {"displayTimeUnit", "otherData", "traceEvents"} and document["displayTimeUnit"] == "ms"
    found: list[dict[str, Any]] = document["traceEvents"]
    seen: Counter[tuple[str, str]] = Counter()
    for event in found:
        kind = (event["ph"], event["name"].rstrip("0123456789"))
        seen[kind] += 1
        if seen[kind] <= 50:  # of each phase and name
            VALIDATORS[event["ph"]].validate(event)
    return found


def processes(trace: list[dict[str, Any]]) -> dict[str, int]:
    return {event["args"]["name"]: event["pid"] for event in trace if event["name"] == "process_name"}


def test_a_qlog_that_was_cut_short_is_read_and_a_damaged_one_is_told(run: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    shutil.copytree(run, again)
    [file] = (again / "qlog").glob("*_server.sqlog")
    lines = [f"{line}\n" for line in file.read_text().split("\n")[:60]]
    file.write_text("".join(lines[:40])[:-9])
    assert "A has no further" in railyard("diff", str(again), str(run)).stdout
    file.write_text("".join([*lines[:40], '{"time": \n', *lines[40:]]))
    one_sentence(railyard("diff", str(again), str(run)), f"{file.name}:41 is no event of a qlog")


def test_the_player_and_each_path_are_processes(trace: list[dict[str, Any]]) -> None:
    assert list(processes(trace)) == ["player", "path wifi", "path lte"]


def test_every_packet_of_both_qlogs_is_a_slice(trace: list[dict[str, Any]], run: Path) -> None:
    sent = Counter(
        event["name"] == "quic:packet_sent" and event["data"]["header"]["packet_type"] == "1RTT"
        for file in (run / "qlog").glob("*.sqlog")
        for event in events(file)
    )
    assert sum(event["ph"] == "X" for event in trace) == sent[True] > 300


def test_asynchronous_slices_begin_and_end_within_each_other(trace: list[dict[str, Any]]) -> None:
    open_of: dict[tuple[Any, ...], list[tuple[str, float]]] = {}
    for event in trace:
        if event["ph"] == "b":
            open_of.setdefault((event["pid"], event["cat"], event["id"]), []).append((event["name"], event["ts"]))
        elif event["ph"] == "e":
            name, begin = open_of[event["pid"], event["cat"], event["id"]].pop()
            assert name == event["name"] and begin <= event["ts"]
    assert open_of and not any(open_of.values())
    assert {"queue", "flight"} <= {event["name"] for event in trace if event["ph"] == "b"}


def test_a_packet_waits_in_the_queue_after_its_delay(trace: list[dict[str, Any]]) -> None:
    """Queueing as in the emulated link. `queue_ms`: the value of the link's log."""
    wifi, begins, off_ms = processes(trace)["path wifi"], dict[tuple[Any, ...], Any](), list[float]()
    for event in trace:
        if event["pid"] != wifi or event["name"] not in ("flight", "queue"):
            continue
        key = (event["cat"], event["id"], event["name"])
        if event["ph"] == "b":
            begins[key] = event
        elif event["name"] == "flight":
            assert event["ts"] - begins[key]["ts"] == pytest.approx(52_000)
        else:
            assert begins[key]["ts"] - begins[*key[:2], "flight"]["ts"] == pytest.approx(52_000)
            off_ms.append(abs(begins[key]["args"]["queue_ms"] - (event["ts"] - begins[key]["ts"]) / 1000))
    assert len(off_ms) > 100 and median(off_ms) < 1


def test_a_copy_is_reached_by_an_arrow_from_the_packet_that_had_its_data_first(trace: list[dict[str, Any]]) -> None:
    begins = {event["id"]: event for event in trace if event["ph"] == "s"}
    ends = {event["id"]: event for event in trace if event["ph"] == "f"}
    sent = {(event["pid"], event["tid"], event["ts"]): event["name"] for event in trace if event["ph"] == "X"}
    assert len(begins) > 5 and begins.keys() == ends.keys()
    for number, begin in begins.items():
        end = ends[number]
        assert begin["ts"] <= end["ts"]
        assert (begin["pid"], begin["tid"], begin["ts"]) in sent
        assert sent[end["pid"], end["tid"], end["ts"]].startswith("copy ")


def test_counters_have_windows_capacity_and_the_players_buffer(trace: list[dict[str, Any]]) -> None:
    found = processes(trace)
    names = {(event["pid"], event["name"]) for event in trace if event["ph"] == "C"}
    assert (found["player"], "buffer, s") in names
    for path in ("path wifi", "path lte"):
        for name in ("window, kB", "in flight, kB", "capacity down, Mbps", "RTT, ms"):
            assert (found[path], name) in names


def test_the_table_has_each_path_of_each_end(run: Path) -> None:
    done = railyard("qlog", str(run), "--format", "json")
    rows = json.loads(done.stdout)
    assert [(row["end"], row["path"]) for row in rows] == [
        ("client", "0"), ("client", "1"), ("server", "0"), ("server", "1"),
    ]  # fmt: skip
    for row in rows:
        assert row["acknowledged"] + row["lost"] <= row["sent"] and row["acknowledged"] > 0.8 * row["sent"] - 5
        assert 20 < row["min_rtt_ms"] < 200
    assert rows[0]["received"] <= rows[2]["sent"]


def aioquic_log(folder: Path) -> Path:
    """A transfer between two ends of aioquic, in memory; the server's qlog."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    log = QuicLogger()
    of_client = QuicConfiguration(is_client=True, verify_mode=0, alpn_protocols=["x"])
    of_server = QuicConfiguration(is_client=False, alpn_protocols=["x"], quic_logger=log)
    of_server.certificate, of_server.private_key = certificate, key
    client = QuicConnection(configuration=of_client)
    client.connect(("127.0.0.1", 1), now=0.0)
    server = QuicConnection(
        configuration=of_server, original_destination_connection_id=client.original_destination_connection_id
    )
    for step in range(1, 40):
        moment = step * 0.01
        if step == 8:
            server.send_stream_data(1, bytes(50_000), end_stream=True)
        for source, target in ((client, server), (server, client)):
            for data, _ in source.datagrams_to_send(now=moment):
                target.receive_datagram(data, ("127.0.0.1", 1), now=moment)
    server.close()
    server.datagrams_to_send(now=0.5)
    file = folder / "aioquic.qlog"
    file.write_text(json.dumps(log.to_dict()))
    return file


def only_path(log: AnyQlog) -> Any:
    [path] = log.paths.values()
    return path


def test_a_qlog_of_aioquic_is_read(folder: Path) -> None:
    log = read_any_qlog(aioquic_log(folder))
    path = only_path(log)
    assert log.vantage == "server" and log.paths.keys() == {"0"}
    assert sum(packet.length for packet in path.sent) > 50_000
    assert sum(packet.acked_ms is not None for packet in path.sent) > 30
    assert path.metrics["congestion_window"]


def test_a_qlog_of_quic_go_is_read() -> None:
    log = read_any_qlog(QUIC_GO)
    path = only_path(log)
    assert log.vantage == "client" and log.reference_ms == pytest.approx(1795486124512.7, abs=0.1)
    assert (len(path.sent), len(path.received)) == (11, 39)
    acked = [packet for packet in path.sent if packet.acked_ms is not None]
    assert acked and all(0 <= packet.acked_ms - packet.sent_ms < 100 for packet in acked)
    assert {packet.kind for packet in path.sent} == {"initial", "handshake", "1RTT"}


def test_a_qlog_that_is_too_large_is_refused_before_another_is_read(tmp_path: Path) -> None:
    (tmp_path / "small.sqlog").write_text("no qlog")
    with (tmp_path / "large.sqlog").open("wb") as large:
        large.truncate(MOST_BYTES + 1)
    done = railyard("qlog", str(tmp_path / "small.sqlog"), str(tmp_path / "large.sqlog"))
    one_sentence(done, "large.sqlog: all qlogs together are larger than 1 GiB")


@pytest.mark.parametrize("words", [("explain",), ("qlog",), ("qlog", "--perfetto"), ("qlog", "--page"), ("report",)])
def test_a_run_whose_qlogs_do_not_fit_into_memory_is_refused_at_once(
    run: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """The server's qlog is larger than the limit: it has zeros behind its end."""
    shutil.copytree(run, tmp_path / "run")
    [log] = (tmp_path / "run" / "qlog").glob("*_server.sqlog")
    with log.open("r+b") as large:
        large.truncate(MOST_BYTES + 1)
    done = railyard(*words, str(tmp_path / "run"))
    one_sentence(done, f"{log}: ", "larger than 1 GiB; cut it to the part of interest")


def test_qlogs_of_other_stacks_become_one_trace(folder: Path) -> None:
    file, target = aioquic_log(folder), folder / "others.json"
    good(railyard("qlog", str(file), str(QUIC_GO), "--perfetto", "--out", str(target)))
    trace = checked(target)
    assert list(processes(trace)) == ["server, path 0 (aioquic.qlog)", "client, path 0 (quic-go_client.sqlog)"]
    assert {"acknowledged", "window, kB"} <= {event.get("cat", event["name"]) for event in trace}


def test_qlogs_of_other_stacks_become_one_page(folder: Path) -> None:
    file, target = aioquic_log(folder), folder / "others.html"
    done = railyard("qlog", str(file), str(QUIC_GO), "--page", "--out", str(target))
    assert (done.returncode, done.stdout.strip()) == (0, str(target)), done.stderr
    page = target.read_text()
    assert "aioquic.qlog, quic-go_client.sqlog" in page and "server, path 0" in page and "client, path 0" in page
    logs = [read_any_qlog(file), read_any_qlog(QUIC_GO)]
    drawn = {trace.name: trace for trace in timeline.draw(logs).data}
    for log, name in zip(logs, ("server, path 0", "client, path 0"), strict=True):
        assert sum(drawn[f"{name}, sent"].y) == len(only_path(log).sent)
    windows = only_path(logs[0]).metrics["congestion_window"]
    assert list(drawn["server, path 0, congestion window"].y) == [value / 1000 for _, value in windows]


def test_two_ends_are_drawn_on_the_clock_of_the_machine() -> None:
    early, late = (
        AnyQlog(name, "client", at, {"<b>0": PathOfLog([SentPacket("1RTT", 0, 500.0, 100)])})
        for name, at in (("a", 1000.0), ("b", 3000.0))
    )
    drawn = timeline.draw([early, late])
    first, second = (next(x for x, y in zip(trace.x, trace.y, strict=True) if y) for trace in drawn.data)
    assert second - first == pytest.approx(2.0, abs=0.03)
    trace = json.loads(perfetto.document_of_logs([early, late]))["traceEvents"]
    assert [event["ts"] for event in trace if event["ph"] == "X"] == [0.5e6, 2.5e6]
    assert drawn.data[1].name == "client, path &lt;b&gt;0 (b), sent", "names are another program's"


def test_an_arrow_leads_from_the_first_packet_with_a_frame_to_its_copy() -> None:
    """Not from the packet in which it was sent again after a loss."""
    frame = [Piece(0, 0, 100)]
    sent = [(2, Packet("wifi", number, float(number), frame)) for number in (0, 1)]
    copy = (3, Packet("lte", 0, 2.0, frame, copies={(0, 0)}))
    begin, end = perfetto._flows([copy, *sent])
    assert [(one["ph"], one["pid"], one["ts"]) for one in (begin, end)] == [("s", 2, 0.0), ("f", 3, 2e6)]


def test_logs_without_a_common_clock_begin_together() -> None:
    """Some stacks write times since 1970."""
    logs = [
        AnyQlog(name, name, at, {"0": PathOfLog([SentPacket("1RTT", 0, time_ms, 100)])})
        for name, at, time_ms in (("client", 1000.0, 500.0), ("server", None, 1.7e12))
    ]
    for trace in timeline.draw(logs).data:
        assert next(x for x, y in zip(trace.x, trace.y, strict=True) if y) == 0, trace.name


@pytest.mark.parametrize("time_ms", [-5.0, 1e18, 1e300])
def test_strange_times_are_drawn_in_few_bins(time_ms: float) -> None:
    path = PathOfLog([SentPacket("1RTT", 0, 0.0, 100), SentPacket("1RTT", 1, time_ms, 100)])
    drawn = timeline.draw([AnyQlog("a", "client", None, {"0": path})])
    assert len(drawn.data[0].x) <= 1000


def test_a_log_without_packets_has_no_page() -> None:
    with pytest.raises(UserError, match="nothing to draw"):
        timeline.draw([AnyQlog("a", "client", None, {"0": PathOfLog()})])


def event(time: float, name: str, number: int, **more: Any) -> dict[str, Any]:
    header = {"packet_type": "1RTT", "packet_number": number}
    return {"time": time, "name": name, "data": {"header": header, "raw": {"length": 100}, **more}}


def write_qlog(file: Path, records: list[dict[str, Any]]) -> Path:
    file.write_text("".join(f"\x1e{json.dumps(record)}\n" for record in records))
    return file


def test_paths_times_and_losses_are_those_of_the_events(tmp_path: Path) -> None:
    ack = {"frames": [{"frame_type": "path_ack", "path_id": 1, "acked_ranges": [[0, 2**62]]}]}
    about = {"vantage_point": {"type": "server"}, "common_fields": {"time_format": "delta"}}
    records = [
        {"qlog_version": "0.4", "trace": about},
        event(5, "quic:packet_sent", 0, path_id=0),
        event(5, "quic:packet_sent", 0, path_id=1),
        event(5, "quic:packet_lost", 0, path_id=0),
        event(5, "quic:packet_received", 7, path_id=0, **ack),
    ]
    paths = read_any_qlog(write_qlog(tmp_path / "delta.sqlog", records)).paths
    [first], [second] = paths["0"].sent, paths["1"].sent
    assert (first.sent_ms, first.lost_ms, first.acked_ms) == (5, 15, None)
    assert (second.sent_ms, second.lost_ms, second.acked_ms) == (10, None, 20)


@pytest.mark.parametrize("seed", range(20))
def test_a_packet_is_acknowledged_by_the_first_range_that_has_it(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    records: list[dict[str, Any]] = [{"qlog_version": "0.4", "trace": {"vantage_point": {"type": "server"}}}]
    waiting: dict[int, list[float | None]] = {}  # when acknowledged
    expected = []
    for time in range(200):
        if chance.random() < 0.7:  # in any order, some numbers twice
            waiting[number := chance.randrange(150)] = [None]
            expected.append(waiting[number])
            records.append(event(time, "quic:packet_sent", number))
            continue
        ranges = [[chance.randrange(-9, 160), chance.randrange(160)] for _ in range(chance.randrange(4))]
        for low, high in ranges:
            for number in [number for number in waiting if low <= number <= high]:
                waiting.pop(number)[0] = time
        ack = {"frames": [{"frame_type": "ack", "acked_ranges": ranges}]}
        records.append(event(time, "quic:packet_received", time, **ack))
    [path] = read_any_qlog(write_qlog(tmp_path / "a.sqlog", records)).paths.values()
    assert [packet.acked_ms for packet in path.sent] == [acked for [acked] in expected]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is no qlog"),
        ("{}", "it is no qlog|no packets"),
        ("[" * 100_000, "nested too deeply"),
        ('{"qlog_version":"0.3","traces":[{"events":[{"time":NaN,"name":"a","data":{}}]}]}', "NaN"),
        ('{"trace":{}}\n{"time":1e999,"name":"quic:packet_sent","data":{}}', "no finite number"),
        ('{"trace":[]}\n{}', "no header"),
        ('{"trace":{}}\n{"time":0,"name":"quic:packet_sent","data":{"raw":{"length":1e308}}}', "more than 62 bits"),
        (
            '{"trace":{"common_fields":{"time_format":"delta"}}}\n' + '{"time":1e308,"name":"q:x","data":{}}\n' * 3,
            "inf is no finite number",
        ),
        ('{"trace":{}}\n{"time":0,"name":"quic:packet_sent","data":{"header":{"packet_number":"x"}}}', "no qlog"),
        ('{"trace":{"vantage_point":{"type":"client"}}}\n{"time":0,"name":"x:y","data":{}}', "no packets"),
    ],
)
def test_what_is_no_qlog_ends_in_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "bad.sqlog"
    file.write_text(text)
    with pytest.raises(UserError, match=words) as caught:
        read_any_qlog(file)
    assert str(file) in str(caught.value) and "\n" not in str(caught.value)


def test_runs_and_files_are_not_mixed(run: Path) -> None:
    assert "either one run, or only files" in railyard("qlog", str(run), str(QUIC_GO)).stderr
    assert "give one of them" in railyard("qlog", str(run), "--qvis", "--perfetto").stderr
