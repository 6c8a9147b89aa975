"""Qlogs follow the schema: the drafts' part and Railyard's. Older ones stay readable."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from quic_programs import Server
from railyard.base.errors import UserError
from railyard.base.paths import ROOT
from railyard.results.qlogdiff import current_name, events
from railyard.results.qvis import convert
from test_get import get

SCHEMA = json.loads((ROOT / "docs" / "reference" / "qlog.schema.json").read_text(encoding="utf-8"))


def validator() -> Draft202012Validator:
    Draft202012Validator.check_schema(SCHEMA)
    return Draft202012Validator(SCHEMA)


def texts_of(file: Path) -> list[str]:
    empty, *texts = file.read_text(encoding="utf-8").split("\x1e")
    assert empty == ""
    return texts


def records_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in texts_of(file)]


def assert_valid(file: Path) -> None:
    """Records that differ in positive numbers only are checked once: the schema has no bound of a number but 0."""
    check, once = validator(), set[str]()
    for text in texts_of(file):
        kind = json.loads(text, parse_int=lambda n: min(int(n), 1), parse_float=lambda x: min(float(x), 0.5))
        if (key := json.dumps(kind)) not in once:
            once.add(key)
            problem = next(iter(check.iter_errors(kind)), None)
            assert problem is None, f"{problem.message if problem else ''} in {text}"


def test_every_record_of_two_programs_is_valid(tmp_path: Path) -> None:
    with Server(tmp_path, "--qlog-dir", str(tmp_path / "qlog"), "--scheme", "xlink", address="0.0.0.0") as server:  # noqa: S104
        paths = ("--path", "127.0.0.1", "--path", "127.0.0.2", "--scheme", "xlink", "--packets-per-key", "400")
        done = get(server.port, *paths, "--qlog-dir", tmp_path / "qlog", names=("synthetic/3000000",))
    assert done.returncode == 0, done.stderr
    names: Counter[str] = Counter()
    for side in ("client", "server"):
        [file] = (tmp_path / "qlog").glob(f"*_{side}.sqlog")
        records = records_of(file)
        assert records[0]["trace"]["vantage_point"] == {"type": side}
        assert records[0]["trace"]["common_fields"]["group_id"] == file.name.split("_")[0]
        assert_valid(file)
        names.update(record["name"] for record in records[1:])
        assert_http3(records, side)
    wanted = {"packet_sent", "packet_received", "parameters_set", "recovery_metrics_updated", "connection_closed"}
    assert {f"quic:{name}" for name in wanted} <= names.keys()


def assert_http3(records: list[dict[str, Any]], side: str) -> None:
    """The settings of both ends, the types of all streams, and the frames of one request and its response."""
    of_http3 = [(record["name"].removeprefix("http3:"), record["data"]) for record in records[1:]]
    parameters = {data["initiator"] for name, data in of_http3 if name == "parameters_set" and "stream_id" not in data}
    assert parameters == {"local", "remote"}
    types = Counter(data["stream_type"] for name, data in of_http3 if name == "stream_type_set")
    assert types == {"request": 1, "control": 2, "qpack_encode": 2, "qpack_decode": 2, "reserved": 2}
    frames = [(name, data["frame"]) for name, data in of_http3 if name in ("frame_created", "frame_parsed")]
    headers = {
        name: {field["name"]: field["value"] for field in frame["headers"]}
        for name, frame in frames
        if frame["frame_type"] == "headers"
    }
    request, response = ("frame_created", "frame_parsed") if side == "client" else ("frame_parsed", "frame_created")
    assert (headers[request][":method"], headers[request][":path"]) == ("GET", "/synthetic/3000000")
    assert (headers[response][":status"], headers[response]["content-length"]) == ("200", "3000000")
    data = [(name, frame["raw"]["payload_length"]) for name, frame in frames if frame["frame_type"] == "data"]
    assert {name for name, _ in data} == {response}
    assert sum(length for _, length in data) == 3_000_000


def test_a_qlog_is_converted_for_tools_of_main_schema_0_3_and_back(tmp_path: Path) -> None:
    with Server(tmp_path, "--qlog-dir", str(tmp_path / "qlog")) as server:
        done = get(server.port, names=("synthetic/100000",))
    assert done.returncode == 0, done.stderr
    [file] = (tmp_path / "qlog").iterdir()
    [target] = convert(file, tmp_path)
    header, *old = records_of(target)
    assert (header["qlog_version"], header["qlog_format"]) == ("0.3", "JSON-SEQ")
    assert header["trace"]["vantage_point"] == {"type": "server"}
    names = {record["name"] for record in old}
    assert {"transport:packet_sent", "transport:parameters_set", "recovery:metrics_updated"} <= names
    assert not any(name.startswith("quic:") for name in names)
    frames = [frame for record in old for frame in record["data"].get("frames", ())]
    assert not any({"raw", "token", "error"} & frame.keys() for frame in frames)
    of_streams = [frame for frame in frames if frame["frame_type"] == "stream" and frame["stream_id"] == 0]
    assert max(frame["offset"] + frame["length"] for frame in of_streams) > 100_000
    today = [record["name"] for record in records_of(file)[1:]]
    assert [current_name(record["name"]) for record in old] == today
    broken = tmp_path / "broken.sqlog"
    broken.write_text("\x1e{}\n")
    with pytest.raises(UserError, match="line 1"):
        convert(broken, tmp_path)


def test_of_several_paths_each_becomes_a_trace_with_the_acknowledgements_of_its_packets(tmp_path: Path) -> None:
    with Server(tmp_path, "--qlog-dir", str(tmp_path / "qlog"), "--scheme", "vanilla-mp", address="0.0.0.0") as server:  # noqa: S104
        paths = ("--path", "127.0.0.1", "--path", "127.0.0.2", "--scheme", "vanilla-mp")
        done = get(server.port, *paths, names=("synthetic/3000000",))
    assert done.returncode == 0, done.stderr
    [file] = (tmp_path / "qlog").iterdir()
    dropped = {"raw": {"length": 60}, "path": 1, "path_id": 1, "trigger": "no_use"}
    with file.open("a", encoding="utf-8") as out:
        out.write("\x1e" + json.dumps({"time": 1.5, "name": "quic:packet_dropped", "data": dropped}) + "\n")
    targets = convert(file, tmp_path)
    assert [target.name.split(".", 1)[1] for target in targets] == ["path0.qvis.sqlog", "path1.qvis.sqlog"]
    for path, target in enumerate(targets):
        of_name = defaultdict[str, list[dict[str, Any]]](list)
        for record in records_of(target)[1:]:
            of_name[record["name"]].append(record["data"])
        assert (dropped in of_name["transport:packet_dropped"]) == (path == 1)
        received = of_name["transport:packet_received"]
        sent = {data["header"]["packet_number"] for data in of_name["transport:packet_sent"] if data["path"] == path}
        kinds = {
            frame["frame_type"] for data in received + of_name["transport:packet_sent"] for frame in data["frames"]
        }
        assert "ack" in kinds
        assert not kinds & {"path_ack", "ack_mp"}
        acked = [
            number
            for data in received
            for frame in data["frames"]
            if frame["frame_type"] == "ack" and data["header"]["packet_type"] == "1RTT"
            for first, last in frame["acked_ranges"]
            for number in range(first, last + 1)
        ]
        assert acked and set(acked) <= sent  # a scheduler may leave one path to little but its validation


def _with(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    record: dict[str, Any] = {
        "time": 1.5,
        "name": "quic:packet_sent",
        "data": {"header": {"packet_type": "1RTT", "packet_number": 3}, "raw": {"length": 50}, "frames": []},
    }
    change(record)
    return record


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.update(name="transport:packet_sent"),
        lambda record: record.update(name="quic:packet_eaten"),
        lambda record: record.update(time=-1),
        lambda record: record.pop("data"),
        lambda record: record["data"]["header"].update(packet_type="short"),
        lambda record: record["data"]["frames"].append({"frame_type": "ack"}),
        lambda record: record["data"]["frames"].append({"frame_type": "stream", "stream_id": "4"}),
        lambda record: record["data"]["frames"].append({"frame_type": "stream", "stream_id": 4, "length": 9}),
        lambda record: record["data"]["frames"].append({"frame_type": "crypto", "offset": 0, "length": 9}),
        lambda record: record["data"]["frames"].append({"frame_type": "datagram", "length": 9}),
        lambda record: record["data"]["frames"].append({"frame_type": "new_token", "length": 9}),
        lambda record: record["data"]["frames"].append(
            {"frame_type": "reset_stream", "stream_id": 4, "error_code": 9, "final_size": 0}
        ),
        lambda record: record["data"]["frames"].append({"frame_type": "stop_sending", "stream_id": 4, "error_code": 9}),
        lambda record: record["data"]["raw"].clear(),
        lambda record: record.update(name="http3:frame_eaten"),
        lambda record: record.update(
            name="http3:frame_parsed", data={"stream_id": 0, "frame": {"frame_type": "headers", "headers": [{}]}}
        ),
        lambda record: record.update(name="http3:stream_type_set", data={"stream_id": 0, "stream_type": "request"}),
        lambda record: record.update(
            name="quic:packet_dropped", data={"raw": {"length": 1}, "trigger": "payload_decrypt_error"}
        ),
        lambda record: record.update(
            name="quic:packet_lost", data={"header": record["data"]["header"], "trigger": "threshold"}
        ),
    ],
)
def test_the_schema_refuses_what_is_not_of_the_drafts(change: Callable[[dict[str, Any]], object]) -> None:
    check = validator()
    assert check.is_valid(_with(lambda record: None))
    assert not check.is_valid(_with(change))


def test_older_qlogs_are_read_with_the_names_of_today(tmp_path: Path) -> None:
    old = [
        "transport:packet_sent",
        "recovery:metrics_updated",
        "recovery:packet_lost",
        "connectivity:connection_closed",
    ]
    old += ["connectivity:connection_started", "multipath:path_new", "xlink:reinjection", "quic:packet_sent"]
    file = tmp_path / "old_server.sqlog"
    header = {"qlog_format": "JSON-SEQ", "qlog_version": "0.3", "trace": {}}
    lines = [header, *({"time": 0, "name": name, "data": {}} for name in old)]
    file.write_text("".join(f"\x1e{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    today = ["quic:packet_sent", "quic:recovery_metrics_updated", "quic:packet_lost", "quic:connection_closed"]
    today += ["xlink:connection_started", "multipath:path_new", "xlink:reinjection", "quic:packet_sent"]
    assert [event["name"] for event in events(file)] == today
    assert [current_name(name) for name in today] == today
