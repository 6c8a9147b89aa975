#!/usr/bin/env bash
# Runs the Python tests in two processes side by side. One runs those on the wall clock, one after the other. All others
# are a queue of files: the second process takes them from the beginning, the first one from the end when it is done.
# The output of the second is shown when both are done. Each prints its 25 slowest tests.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

beside=$(mktemp -t railyard-tests.XXXXXX)
RAILYARD_TEST_QUEUE=$(mktemp -d -t railyard-queue.XXXXXX)
export RAILYARD_TEST_QUEUE
trap 'rm -rf "$beside" "$RAILYARD_TEST_QUEUE"; kill "$other" 2>/dev/null' EXIT
.venv/bin/python -m pytest --durations=25 -m "not wall_clock and not long and not docker" >"$beside" 2>&1 &
other=$!
.venv/bin/python -m pytest -raR --durations=25
status=$?
wait "$other" || status=$?
cat "$beside"
exit "$status"
