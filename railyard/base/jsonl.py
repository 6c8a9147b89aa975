"""JSON Lines as the programs write them. A program may have died while writing, so the last line may be cut short."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Event = dict[str, Any]


def read_jsonl(path: Path) -> list[Event]:
    """All whole lines of the file; none where there is no file."""
    if not path.is_file():
        return []
    events: list[Event] = []
    for line in path.read_text(errors="replace").splitlines():
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
