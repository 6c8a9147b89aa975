"""Reports of work under way: completed parts and the time left."""

import io

import pytest
from rich.console import Console

from railyard.base.counting import Lines, duration_words, left_words


def log() -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, width=150), text


@pytest.mark.parametrize(
    ("seconds", "words"), [(8.34, "8.3 s"), (42.2, "42 s"), (185, "3 min 5 s"), (7800, "2 h 10 min")]
)
def test_a_duration_is_in_the_units_that_its_size_asks_for(seconds: float, words: str) -> None:
    assert duration_words(seconds) == words


def test_the_time_left_is_that_of_the_missing_parts_at_the_speed_so_far() -> None:
    assert left_words(30.0, 3, 6) == ", about 1 min 0 s left"
    assert left_words(30.0, 0, 6) == "" and left_words(30.0, 9, 0) == ""


def test_a_log_has_a_line_every_ten_seconds_with_count_and_time_left() -> None:
    console, text = log()
    now = [0.0]
    lines = Lines(console, "gate", 10, lambda: now[0])
    for _ in range(10):
        now[0] += 4
        lines.advance()
    assert text.getvalue().splitlines() == [
        "gate: 3/10 after 12 s, about 28 s left",
        "gate: 6/10 after 24 s, about 16 s left",
        "gate: 9/10 after 36 s, about 4.0 s left",
    ]


def test_short_work_prints_nothing_into_a_log() -> None:
    console, text = log()
    now = [0.0]
    lines = Lines(console, "gate", 10, lambda: now[0])
    for _ in range(10):
        now[0] += 0.9
        lines.advance()
    assert text.getvalue() == ""
