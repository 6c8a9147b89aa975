#!/usr/bin/env bash
# Which lines the tests reach. C: by the C tests and the fuzzing corpora. Python: by the Python tests, in the processes
# that they start too. What the Python tests reach of the C programs is not counted.
#   coverage.sh [c] [python]
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
OUT=build/coverage
python=.venv/bin/python
status=0
mkdir -p "$OUT/html"

cover_c() {
    find "$OUT" -name '*.gcda' -delete
    scripts/run-c-tests.sh "$OUT" || status=1
    scripts/fuzz.sh replay "$OUT" || status=1
    mkdir -p "$OUT/html/c"
    $python -m gcovr --root . --exclude '.*_test\.c' --exclude 'tests/fuzz/' --exclude 'transport/testing/' --exclude '.*\.h' --gcov-ignore-parse-errors=suspicious_hits.warn_once_per_file \
        --json-summary "$OUT/c.json" --html-details "$OUT/html/c/index.html" "$OUT" >"$OUT/gcovr.log" 2>&1 ||
        { tail -n 15 "$OUT/gcovr.log" >&2; exit 2; }
}

cover_python() {
    $python -m coverage erase
    $python -m coverage run -m pytest || status=1
    $python -m coverage combine --quiet
    $python -m coverage json --quiet -o "$OUT/python.json" || exit 2
    $python -m coverage html --quiet -d "$OUT/html/python" || exit 2
}

rm -f "$OUT/c.json" "$OUT/python.json"
for language in "${@:-c}"; do
    case $language in
    c) cover_c ;;
    python) cover_python ;;
    *) echo "coverage: '$language' is neither c nor python." >&2; exit 2 ;;
    esac
done
$python scripts/coverage-table.py "$OUT"
exit "$status"
