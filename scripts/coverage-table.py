"""Prints which lines are reached, from summaries in JSON.

coverage-table.py FOLDER: by the tests, room by room; gcovr and coverage wrote FOLDER/c.json and FOLDER/python.json.
coverage-table.py FILE: by the fuzzing corpora, by folder and file; llvm-cov exported the file.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

Lines = tuple[str, int, int]  # file, covered lines, all lines


def of_c(summary: Path) -> list[Lines]:
    return [(f["filename"], f["line_covered"], f["line_total"]) for f in json.loads(summary.read_text())["files"]]


def of_python(summary: Path) -> list[Lines]:
    files = json.loads(summary.read_text())["files"]
    return [(name, f["summary"]["covered_lines"], f["summary"]["num_statements"]) for name, f in files.items()]


def of_corpora(summary: Path) -> list[Lines]:
    files = json.loads(summary.read_text())["data"][0]["files"]
    lines = [(str(Path(f["filename"]).resolve().relative_to(Path.cwd())), f["summary"]["lines"]) for f in files]
    reached = [(name, of["covered"], of["count"]) for name, of in lines if of["covered"] > 0]
    return [of for of in reached if of[0].endswith(".c") and not of[0].startswith("tests/fuzz/")]


def row(name: str, files: Iterable[Lines]) -> str:
    each = list(files)
    covered, count = (sum(of[which] for of in each) for which in (1, 2))
    return f"{name} {covered:6} of {count:6} lines  {100 * covered / count if count else 100:5.1f} %"


def by_room(files: Iterable[Lines]) -> dict[str, list[Lines]]:
    rooms: dict[str, list[Lines]] = defaultdict(list)
    for file in sorted(files):
        rooms[str(Path(file[0]).parent)].append(file)
    return dict(sorted(rooms.items()))


def main(place: Path) -> None:
    if place.is_file():
        for room, files in by_room(of_corpora(place)).items():
            print(row(f"{room:40}", files))
            for file in files:
                print(row(f"    {Path(file[0]).name:36}", [file]))
        return
    for language, read in (("C", of_c), ("Python", of_python)):
        summary = place / f"{language.lower()}.json"
        if summary.exists():
            print(f"{language}:")
            every = read(summary)
            for room, files in by_room(every).items():
                print("  " + row(f"{room:40}", files))
            print("  " + row(f"{'total':40}", every))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
