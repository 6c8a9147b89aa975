"""Writes a qlog of the present drafts in the form of main schema 0.3, which qvis reads.

`python -m railyard.results.qvis FILE_server.sqlog` writes FILE_server.qvis.sqlog beside it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from railyard.base.errors import UserError
from railyard.results.qlogdiff import OLD_NAMES

_NAMES = {today: old for old, today in OLD_NAMES.items()}
_CATEGORIES = {"quic": "transport", "xlink": "xlink", "multipath": "multipath"}


def _header(record: dict[str, Any]) -> dict[str, Any]:
    fields = record["trace"]["common_fields"]
    common = {"ODCID": fields["group_id"], "time_format": "relative", "protocol_type": ["QUIC"]}
    common["reference_time"] = fields["reference_monotonic_us"] / 1000
    trace = {"vantage_point": record["trace"]["vantage_point"], "common_fields": common}
    return {"qlog_format": "JSON-SEQ", "qlog_version": "0.3", "title": record.get("title", ""), "trace": trace}


def _event(record: dict[str, Any]) -> dict[str, Any]:
    name, data = record["name"], dict(record["data"])
    category, _, rest = name.partition(":")
    if name == "quic:parameters_set":
        data["owner"] = data.pop("initiator")
    return {"time": record["time"], "name": _NAMES.get(name, f"{_CATEGORIES[category]}:{rest}"), "data": data}


def converted(lines: Iterator[str]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line.lstrip("\x1e"))
            record = _event(record) if "name" in record else _header(record)
        except (ValueError, KeyError) as error:
            raise UserError(f"line {number} is no record of a qlog of the present drafts.") from error
        yield f"\x1e{json.dumps(record, separators=(',', ':'))}\n"


def convert(file: Path) -> Path:
    target = file.with_suffix(".qvis.sqlog")
    with file.open(encoding="utf-8") as lines:
        text = "".join(converted(lines))
    target.write_text(text, encoding="utf-8")
    return target


def main() -> None:
    try:
        for name in sys.argv[1:]:
            print(convert(Path(name)))
    except (OSError, UserError) as error:
        print(f"qvis: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
