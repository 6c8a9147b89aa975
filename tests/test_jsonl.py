"""JSON Lines: the values read from files that are complete, cut, or of another kind."""

from pathlib import Path

import pytest

from railyard.base.jsonl import Event, read_jsonl


@pytest.mark.parametrize(
    ("text", "events"),
    [
        ("", []),
        ('{"a": 1}\n{"a": 2}\n', [{"a": 1}, {"a": 2}]),
        ('{"a": 1}\n{"a": 2', [{"a": 1}]),
        ('{"a": 1}\n7\n{"a": 3}\n', [{"a": 1}, {"a": 3}]),
        ('{"a": 1}\n\n{"a": 3}\n', [{"a": 1}]),
        ('{"a": 1}, {"a": 2}\n{"a": 3}\n', []),
        ('{"a": 1}\n{"a": [2\n3]}\n', [{"a": 1}]),
    ],
)
def test_lines_count_up_to_the_first_that_is_none(tmp_path: Path, text: str, events: list[Event]) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(text)
    assert read_jsonl(file) == events


def test_no_file_has_no_lines(tmp_path: Path) -> None:
    assert read_jsonl(tmp_path / "none.jsonl") == []
