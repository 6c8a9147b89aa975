#!/usr/bin/env bash
# All exhibits that are not there yet, then the whole report: results/report.html and results/report.pdf.
#   report.sh [small|default|full]    a size other than the default has its results in results/SIZE
# An exhibit that fails does not keep the others from the report; the report names it, and the exit status is 1.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
size=${1:-default}
case $size in
default) out=${RAILYARD_RESULTS:-results} options=() ;;
small | full) out=${RAILYARD_RESULTS:-results}/$size options=(--size "$size") ;;
*)
    echo "report: unknown size '$size'; it takes small, default or full." >&2
    exit 2
    ;;
esac
stop() {
    local group
    trap - INT TERM HUP # a second time it is at once
    for group in $(jobs -p); do kill -TERM -- "-$group" 2>/dev/null; done
    wait
    echo "report: stopped. Completed runs are kept; run the same command to resume." >&2
    exit 130
}
trap stop INT TERM HUP
begin=$SECONDS
failed=()
# Figure 13 needs a kernel: in a time-travel kernel it takes 40 s, on the wall clock 16 min.
has_kernel=
if [ "$size" != small ] && emulator/kernel/build.sh >/dev/null; then
    has_kernel=1
elif [ "$size" != small ]; then
    echo "report: without a time-travel kernel fig13 runs on the wall clock, which takes a quarter of an hour." >&2
fi
names=$(.venv/bin/python -c 'from railyard.studies.exhibits.registry import EXHIBITS; print(*EXHIBITS)') || exit 1
mkdir -p "$out"
export RAILYARD_RESULTS=$out
outputs=$(mktemp -d -t railyard-report.XXXXXX) || exit 1
trap 'rm -rf "$outputs"' EXIT

make_exhibit() {
    local status=0
    .venv/bin/railyard run "$1" "${options[@]}" >"$outputs/$1" 2>&1 || status=$?
    printf '== %s\n%s\n' "$1" "$(<"$outputs/$1")"
    [ $status -ne 0 ] || touch "$outputs/$1.made"
}

make_exhibits() {
    local name
    trap exit TERM # once the exhibit that is being made has ended
    for name; do make_exhibit "$name"; done
}

# Two exhibits side by side: while one process draws one, the runs of the other have the other cores. Those of the
# population share plays, so they are made one after the other. Runs on the wall clock have the machine for themselves.
population=() others=()
for name in $names; do
    if grep -q '^kind: population-exhibit' "experiments/$name.yaml"; then population+=("$name"); else others+=("$name"); fi
done
set -m # a process group each, which the trap ends; what reads the terminal would be stopped
make_exhibits "${population[@]}" </dev/null &
[ "$has_kernel" ] || wait
make_exhibits "${others[@]}" </dev/null &
wait
set +m
for name in $names; do [ -e "$outputs/$name.made" ] || failed+=("$name"); done
if [ -e "$out/demo-live/campaign.json" ]; then
    .venv/bin/railyard report "$out/demo-live" --replay || failed+=(demo-live)
fi
pdf=--pdf
if ! .venv/bin/python -c 'import sys; from railyard.report.chromium import find_chromium; sys.exit(find_chromium() is None)'; then
    echo "report: there is no Chromium, so there is no PDF." >&2
    pdf=
fi
.venv/bin/railyard report --all --replay "$out" $pdf || failed+=("report")
echo "report: $((SECONDS - begin)) s"
if [ ${#failed[@]} -gt 0 ]; then
    echo "report: these failed, see above: ${failed[*]}" >&2
    exit 1
fi
