"""The causes of void runs. Runs whose messages differ only in their numbers have one cause."""

import re
from collections.abc import Sequence

from railyard.results.records import Run

NUMBER = re.compile(r"\d+(?:\.\d+)?")
UNKNOWN = "The emulator was late."


def causes(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """The void runs by cause. Each number in a cause is the largest of its runs."""
    by_cause: dict[str, list[tuple[str, Run]]] = {}
    for run in runs:
        if run.void:
            cause = str(run.record["fidelity"].get("cause") or UNKNOWN)
            by_cause.setdefault(NUMBER.sub("#", cause.replace("p99", "p")), []).append((cause, run))
    return {_largest([cause for cause, _ in same]): [run for _, run in same] for same in by_cause.values()}


def _largest(messages: Sequence[str]) -> str:
    """The first message, with each number replaced by the largest at its place in all messages."""
    numbers = [NUMBER.findall(one) for one in messages]
    largest = iter(max(column, key=float) for column in zip(*numbers, strict=True))
    return NUMBER.sub(lambda _: next(largest), messages[0])
