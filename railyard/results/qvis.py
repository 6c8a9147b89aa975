"""Writes a qlog of the present drafts in the form of main schema 0.3, which qvis reads, for `railyard qlog --qvis`.

The result for FILE_server.sqlog is FILE_server.qvis.sqlog. qvis expects one packet number space and one congestion
window in a trace. So a connection with several paths becomes a file for each path, FILE_server.path0.qvis.sqlog and so
on, with the path's packets and metrics, and the acknowledgements of its packets from any path.
"""

import json
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from railyard.base.errors import UserError
from railyard.base.files import open_regular
from railyard.base.jsonl import NOT_AS_WRITTEN, parse
from railyard.results.qlogdiff import OLD_NAMES

_NAMES = {today: old for old, today in OLD_NAMES.items()}
_CATEGORIES = {"quic": "transport", "http3": "http", "xlink": "xlink", "multipath": "multipath"}
_PACKETS = ("transport:packet_sent", "transport:packet_received")
_ACKS_OF_PATHS = ("path_ack", "ack_mp")
_STREAM_TYPES = {"request": "data"}

MOST_PATHS = 256  # each becomes a file

Record = dict[str, Any]


def _header(record: Record) -> Record:
    fields = record["trace"]["common_fields"]
    common = {"ODCID": fields["group_id"], "time_format": "relative", "protocol_type": ["QUIC"]}
    common["reference_time"] = fields["reference_monotonic_us"] / 1000
    trace = {"vantage_point": record["trace"]["vantage_point"], "common_fields": common}
    return {"qlog_format": "JSON-SEQ", "qlog_version": "0.3", "title": record.get("title", ""), "trace": trace}


def _frame(frame: Record) -> Record:
    old = {key: value for key, value in frame.items() if key not in ("raw", "token", "error")}
    if "length" in (raw := frame.get("raw", frame.get("token", {}).get("raw", {}))):
        old["length"] = raw["length"]
    return old


def _event(record: Record) -> Record:
    name, data = record["name"], dict(record["data"])
    category, _, rest = name.partition(":")
    if "frames" in data:
        data["frames"] = [_frame(frame) for frame in data["frames"]]
    if rest == "parameters_set":
        data["owner"] = data.pop("initiator")
    if name == "http3:stream_type_set":
        kind = data.pop("stream_type")
        data |= {"owner": data.pop("initiator"), "new": _STREAM_TYPES.get(kind, kind)}
    if name in ("http3:frame_created", "http3:frame_parsed") and "raw" in data["frame"]:
        data["length"] = data["frame"]["raw"]["payload_length"]
    return {"time": record["time"], "name": _NAMES.get(name, f"{_CATEGORIES[category]}:{rest}"), "data": data}


def converted(lines: Iterable[str]) -> Iterator[Record]:
    """The header and the events in the older form."""
    for number, line in enumerate(lines, 1):
        try:
            record = parse(line.lstrip("\x1e"))
            yield _event(record) if "name" in record else _header(record)
        except NOT_AS_WRITTEN as error:
            raise UserError(f"line {number} is no record of a qlog of the present drafts.") from error


def _frames_for(event: Record, path: int, path_id: int | None) -> list[Record]:
    """The frames of a packet that belong in the trace of one path: acknowledgements of that path's packets, and other
    frames if the path carried them."""
    carried = event["data"].get("path", 0) == path
    frames = []
    for frame in event["data"].get("frames", []):
        if frame["frame_type"] not in _ACKS_OF_PATHS:
            if carried:
                frames.append(frame)
        elif frame["path_id"] == path_id:
            frames.append({**frame, "frame_type": "ack"})
    return frames


def of_path(events: Iterable[Record], path: int) -> Iterator[Record]:
    """The events of a path, and those that belong to no path."""
    path_id = None
    for event in events:
        data = event["data"]
        belongs = data.get("path", path) == path
        if belongs and "path_id" in data:
            path_id = data["path_id"]
        if event["name"] not in _PACKETS:
            if belongs:
                yield event
            continue
        frames = _frames_for(event, path, path_id)
        if belongs or frames:
            yield {**event, "data": {**data, "frames": frames}}


def _write(target: Path, header: Record, events: Iterable[Record]) -> None:
    with target.open("w", encoding="utf-8") as out:
        for record in chain((header,), events):
            out.write(f"\x1e{json.dumps(record, separators=(',', ':'))}\n")


def _records(file: Path) -> Iterator[Record]:
    with open_regular(file) as stream:
        yield from converted(line.decode(errors="replace") for line in stream)


def _header_and_paths(file: Path) -> tuple[Record, list[int]]:
    """The header and the numbers of the paths with packets. Raises UserError if any part of the file is no qlog."""
    try:
        records = _records(file)
        [header] = islice(records, 1)
        paths = set()
        for event in records:
            if event["name"] in _PACKETS:
                paths.add(event["data"].get("path", 0))
                _frames_for(event, 0, None)
        if len(paths) > MOST_PATHS or not all(type(path) is int for path in paths):
            raise ValueError(f"its paths are not at most {MOST_PATHS} numbers.")
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}.") from None
    except (UserError, *NOT_AS_WRITTEN) as error:
        raise UserError(f"{file}: {error}") from None
    return header, sorted(paths)


def convert(file: Path, folder: Path) -> list[Path]:
    """Writes one file, or one for each path that had packets, into a folder, which is made if need be. The qlog may be
    larger than the memory, so it is read once for each file."""
    header, paths = _header_and_paths(file)
    if len(paths) <= 1:
        targets = [folder / file.with_suffix(".qvis.sqlog").name]
    else:
        targets = [folder / file.with_suffix(f".path{path}.qvis.sqlog").name for path in paths]
    folder.mkdir(parents=True, exist_ok=True)
    for path, target in zip(paths or [0], targets, strict=True):
        titled = {**header, "title": f"{header['title']}, path {path}" if len(targets) > 1 else header["title"]}
        _write(target, titled, of_path(islice(_records(file), 1, None), path))
    return targets
