"""Prints which lines the fuzzing corpora reach, by folder and file, from the summary that llvm-cov exports as JSON."""

import json
import sys
from collections import defaultdict
from pathlib import Path


def share(covered: int, count: int) -> str:
    return f"{covered:6} of {count:6} lines  {100 * covered / count if count else 100:5.1f} %"


def main(summary: str) -> None:
    root = Path.cwd()
    folders: dict[str, list[tuple[str, int, int]]] = defaultdict(list)
    for file in json.loads(Path(summary).read_text())["data"][0]["files"]:
        path = Path(file["filename"]).resolve().relative_to(root)
        if path.suffix != ".c" or path.parts[:2] == ("tests", "fuzz"):
            continue
        lines = file["summary"]["lines"]
        if lines["covered"] > 0:
            folders[str(path.parent)].append((path.name, lines["covered"], lines["count"]))
    for folder in sorted(folders):
        files = folders[folder]
        print(f"{folder:40} {share(sum(f[1] for f in files), sum(f[2] for f in files))}")
        for name, covered, count in sorted(files):
            print(f"    {name:36} {share(covered, count)}")


if __name__ == "__main__":
    main(sys.argv[1])
