#!/usr/bin/env bash
# Runs the Python tests in three processes side by side. One runs those on the wall clock, one after the other, which
# mostly wait. All others are a queue of files: the other two processes take them from the beginning, and give way to the
# first, which takes them from the end when it is done.
# The output of the other two is shown when all are done. Each prints its 25 slowest tests.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

beside=$(mktemp -d -t railyard-tests.XXXXXX)
RAILYARD_TEST_QUEUE=$(mktemp -d -t railyard-queue.XXXXXX)
export RAILYARD_TEST_QUEUE
others=()
trap 'rm -rf "$beside" "$RAILYARD_TEST_QUEUE"; kill "${others[@]}" 2>/dev/null' EXIT
for number in 1 2; do
    nice -n 10 .venv/bin/python -m pytest --durations=25 -m "not wall_clock and not long and not docker" \
        >"$beside/$number" 2>&1 &
    others+=($!)
done
.venv/bin/python -m pytest -raR --durations=25
status=$?
for number in 1 2; do
    wait "${others[number - 1]}" || status=$?
    cat "$beside/$number"
done
exit "$status"
