#!/usr/bin/env bash
# Runs the Python tests in three processes side by side. One runs those on the wall clock, one after the other, which
# mostly wait. All others are a queue of files: the other two processes take them from the beginning, and give way to the
# first, which takes them from the end when it is done.
#   run-py-tests.sh [COMMAND…]    one of the other two begins when COMMAND is done: what else there is to test
# The output of the other two is shown when all are done. Each prints its 25 slowest tests.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

beside=$(mktemp -d -t railyard-tests.XXXXXX)
RAILYARD_TEST_QUEUE=$(mktemp -d -t railyard-queue.XXXXXX)
export RAILYARD_TEST_QUEUE
others=()
trap 'rm -rf "$beside" "$RAILYARD_TEST_QUEUE"; kill -- "${others[@]/#/-}" 2>/dev/null' EXIT

# The tests of the queue, after the command that is named, if one is.
take_files() {
    local status=0
    "$@" || status=$?
    nice -n 10 .venv/bin/python -m pytest --durations=25 -m "not wall_clock and not long and not docker" || status=$?
    return $status
}
set -m # each is a group of processes, which ends together
RAILYARD_TEST_TREE=1 take_files "$@" </dev/null >"$beside/1" 2>&1 &
others+=($!)
take_files </dev/null >"$beside/2" 2>&1 &
others+=($!)
set +m
.venv/bin/python -m pytest -raR --durations=25
status=$?
for number in 1 2; do
    wait "${others[number - 1]}" || status=$?
    cat "$beside/$number"
done
exit "$status"
