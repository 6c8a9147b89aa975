#!/usr/bin/env bash
# Runs the Python tests in two processes side by side: those on the wall clock, one after the other, and all others,
# whose output is shown when both are done. Each prints its 25 slowest tests.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

beside=$(mktemp -t railyard-tests.XXXXXX)
trap 'rm -f "$beside"; kill "$other" 2>/dev/null' EXIT
.venv/bin/python -m pytest --durations=25 -m "not wall_clock and not long and not docker" >"$beside" 2>&1 &
other=$!
.venv/bin/python -m pytest --durations=25 -m "wall_clock and not long and not docker"
status=$?
wait "$other" || status=$?
cat "$beside"
exit "$status"
