"""Reads JSON Lines of the programs. A program may have died while writing, so the last line may be cut."""

import json
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from railyard.base.files import read_regular

Event = dict[str, Any]

NOT_AS_WRITTEN = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
"""Errors from a record that is JSON but not one that a program of the project writes."""


def parse(text: str) -> Any:
    """The value of a JSON text. Raises json.JSONDecodeError, or ValueError for a number of too many digits."""
    try:
        return from_json(text)  # three times as fast as json.loads(), which has better messages and accepts more
    except ValueError:
        pass
    try:
        return json.loads(text)
    except RecursionError:
        raise json.JSONDecodeError("it is nested too deeply", "", 0) from None


def read_json(file: Path) -> Any:
    """The JSON value in a file. Raises OSError, or ValueError if it is no JSON."""
    return parse(read_regular(file))


def read_jsonl(path: Path) -> list[Event]:
    """The values of all complete lines of the file. Empty if there is no file."""
    if not path.is_file():
        return []
    lines = path.read_text(errors="replace").splitlines()
    try:  # most files are complete, and parsing them as one document is three times as fast
        events: list[Any] = parse(f"[{','.join(lines)}]")
    except ValueError:
        return _line_by_line(lines)
    return [event for event in events if isinstance(event, dict)] if len(events) == len(lines) else _line_by_line(lines)


def read_object(file: Path) -> Event | None:
    """The JSON object in a file. None: there is no such file, or it has no object."""
    try:
        value = read_json(file)
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _line_by_line(lines: list[str]) -> list[Event]:
    events: list[Event] = []
    for line in lines:
        try:
            event = parse(line)
        except ValueError:
            break
        if isinstance(event, dict):
            events.append(event)
    return events


def summary_of(events: list[Event]) -> Event | None:
    """The `summary` event, which a program writes last."""
    return next((event for event in reversed(events) if event.get("event") == "summary"), None)
