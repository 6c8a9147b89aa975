"""JSON Lines as the programs write them. A program may have died while writing, so the last line may be cut short."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Event = dict[str, Any]


def read_jsonl(path: Path) -> list[Event]:
    """All complete lines of the file; none where there is no file."""
    if not path.is_file():
        return []
    lines = path.read_text(errors="replace").splitlines()
    try:  # most files are complete, and one document is read three times as fast as its lines
        events: list[Any] = json.loads(f"[{','.join(lines)}]")
    except ValueError:
        return _line_by_line(lines)
    return [event for event in events if isinstance(event, dict)] if len(events) == len(lines) else _line_by_line(lines)


def read_object(file: Path) -> Event | None:
    """The JSON object that a file has; None where it is not there, or has none."""
    try:
        value = json.loads(file.read_text())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _line_by_line(lines: list[str]) -> list[Event]:
    events: list[Event] = []
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            break
        if isinstance(event, dict):
            events.append(event)
    return events


def summary_of(events: list[Event]) -> Event | None:
    """The `summary` event, which a program writes last."""
    return next((event for event in reversed(events) if event.get("event") == "summary"), None)
