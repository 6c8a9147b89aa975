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
trap 'echo "report: stopped; the whole runs are kept, and the same command goes on from there." >&2; exit 130' INT TERM
begin=$SECONDS
failed=()
# Figure 13 needs a kernel: in a time-travel kernel it takes 40 s, on the wall clock 16 min.
[ "$size" = small ] || emulator/kernel/build.sh >/dev/null ||
    echo "report: without a time-travel kernel fig13 runs on the wall clock, which takes a quarter of an hour." >&2
names=$(.venv/bin/python -c 'from railyard.studies.exhibits.registry import EXHIBITS; print(*EXHIBITS)') || exit 1
mkdir -p "$out"
export RAILYARD_RESULTS=$out
for name in $names; do
    echo "== $name"
    .venv/bin/railyard run "$name" "${options[@]}" || failed+=("$name")
done
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
    echo "report: these could not be made, see above: ${failed[*]}" >&2
    exit 1
fi
