"""Prints which lines the tests reach, by room, from the summaries that gcovr and coverage wrote as JSON."""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

Lines = tuple[str, int, int]  # a file, its covered lines, its lines


def of_c(summary: Path) -> list[Lines]:
    return [(f["filename"], f["line_covered"], f["line_total"]) for f in json.loads(summary.read_text())["files"]]


def of_python(summary: Path) -> list[Lines]:
    files = json.loads(summary.read_text())["files"]
    return [(name, f["summary"]["covered_lines"], f["summary"]["num_statements"]) for name, f in files.items()]


def row(name: str, covered: int, count: int) -> str:
    return f"{name:40} {covered:6} of {count:6} lines  {100 * covered / count if count else 100:5.1f} %"


def table(language: str, files: Iterable[Lines]) -> None:
    rooms: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for name, covered, count in files:
        room = str(Path(name).parent)
        rooms[room] = (rooms[room][0] + covered, rooms[room][1] + count)
    print(f"{language}:")
    for room in sorted(rooms):
        print("  " + row(room, *rooms[room]))
    print("  " + row("total", sum(r[0] for r in rooms.values()), sum(r[1] for r in rooms.values())))


def main(folder: Path) -> None:
    for language, read in (("c", of_c), ("python", of_python)):
        summary = folder / f"{language}.json"
        if summary.exists():
            table("C" if language == "c" else "Python", read(summary))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
