"""Prints which lines are reached. `make coverage` builds the programs and runs this.

covered.py [c] [python] [corpora]
c: by the C tests and the fuzzing corpora. python: by the Python tests, in the processes that they start too; what they
reach of the C programs is not counted. corpora: by the fuzzing corpora alone, by folder and file.
"""

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "coverage"
CORPORA = ROOT / "build" / "fuzz-coverage"
NO_PRODUCT = (r".*_test\.c", "tests/fuzz/", "transport/testing/", r".*\.h")

Lines = tuple[str, int, int]  # file, covered lines, all lines


def run(*command: str | Path) -> bool:
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def required(*command: str | Path) -> str:
    """The output of a command. If it fails, ends with the last lines that it wrote."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(*(done.stdout + done.stderr).splitlines()[-15:], sep="\n", file=sys.stderr)
        sys.exit(2)
    return done.stdout


def of_c() -> tuple[bool, Iterator[Lines]]:
    for file in OUT.rglob("*.gcda"):
        file.unlink()
    passed = run("scripts/run-c-tests.sh", OUT)
    summary, pages = OUT / "c.json", OUT / "html" / "c"
    pages.mkdir(parents=True, exist_ok=True)
    left_out = (word for pattern in NO_PRODUCT for word in ("--exclude", pattern))
    hits = "--gcov-ignore-parse-errors=suspicious_hits.warn_once_per_file"
    write = ("--json-summary", summary, "--html-details", pages / "index.html")
    required(sys.executable, "-m", "gcovr", "--root", ".", *left_out, hits, *write, OUT)
    files = json.loads(summary.read_text())["files"]
    return passed, ((f["filename"], f["line_covered"], f["line_total"]) for f in files)


def of_python() -> tuple[bool, Iterator[Lines]]:
    coverage = (sys.executable, "-m", "coverage")
    required(*coverage, "erase")
    passed = run(*coverage, "run", "-m", "pytest")
    summary = OUT / "python.json"
    required(*coverage, "combine", "--quiet")
    required(*coverage, "json", "--quiet", "-o", summary)
    required(*coverage, "html", "--quiet", "-d", OUT / "html" / "python")
    files = json.loads(summary.read_text())["files"].items()
    return passed, ((name, f["summary"]["covered_lines"], f["summary"]["num_statements"]) for name, f in files)


def of_corpora() -> tuple[bool, Iterator[Lines]]:
    programs = {file.stem.removesuffix("_fuzz"): file for file in sorted(CORPORA.glob("tests/fuzz/*_fuzz"))}
    for name, program in programs.items():
        required("env", f"LLVM_PROFILE_FILE={CORPORA / name}.profraw", program, f"tests/fuzz/corpus/{name}")
    profile = CORPORA / "all.profdata"
    required("llvm-profdata", "merge", "-sparse", "-o", profile, *(CORPORA / f"{name}.profraw" for name in programs))
    first, *others = programs.values()
    objects = (word for program in others for word in ("-object", program))
    summary = required("llvm-cov", "export", "-summary-only", f"-instr-profile={profile}", first, *objects)
    files = [(Path(f["filename"]), f["summary"]["lines"]) for f in json.loads(summary)["data"][0]["files"]]
    named = [(str((ROOT / file).resolve().relative_to(ROOT)), of["covered"], of["count"]) for file, of in files]
    return True, (of for of in named if of[1] > 0 and of[0].endswith(".c") and not of[0].startswith("tests/fuzz/"))


def row(name: str, files: Iterable[Lines]) -> str:
    each = list(files)
    covered, count = sum(of[1] for of in each), sum(of[2] for of in each)
    return f"{name:42} {covered:6} of {count:6} lines  {100 * covered / count if count else 100:5.1f} %"


READ = {"c": of_c, "python": of_python, "corpora": of_corpora}


def main() -> int:
    OUT.mkdir(parents=True, exist_ok=True)
    all_passed = True
    tables = []
    for what in dict.fromkeys(sys.argv[1:]):
        passed, lines = READ[what]()
        all_passed &= passed
        tables.append((what, sorted(lines)))
    for what, files in tables:
        folders = defaultdict(list)
        for file in files:
            folders[str(Path(file[0]).parent)].append(file)
        print(f"{what}:")
        for folder, inside in sorted(folders.items()):
            print(row(f"  {folder}", inside))
            for file in inside if what == "corpora" else ():
                print(row(f"      {Path(file[0]).name}", [file]))
        print(row("  total", files))
    return 0 if all_passed else 1


if __name__ == "__main__":
    sys.exit(main())
