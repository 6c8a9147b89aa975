#!/usr/bin/env bash
# The demo: build, the answer in virtual time, two pairs live, the page. Completed runs are kept; run the same command
# to resume. results/demo and results/demo-live name the folders.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
results=$(realpath -m "${RAILYARD_RESULTS:-results}")
run() { .venv/bin/railyard run "$@"; }

build() {
    local files
    files=$(make -n build | grep -c 'echo "CC ') || true
    if [ "$files" -gt 20 ]; then
        echo "demo: compiling $files files, once (about $((files / 2 / JOBS + 5)) s on $JOBS cores)"
    fi
    make --no-print-directory -j"$JOBS" build | awk -v total="$files" -v tty="$([ -t 1 ] && echo 1)" '
        /^(CC|LD|AR) / { if ($1 == "CC" && tty) printf "\r       %d of %d ", ++n, total; fflush(); next }
        { print }
        END { if (tty && n) printf "\r\033[K" }'
}

unset MAKEFLAGS MAKELEVEL
JOBS=${JOBS:-$(nproc)}
build
echo "demo: in virtual time, six schemes over twelve pairs, six places each (about 30 s)"
run demo
echo
echo "demo: live, two pairs at their worst places, eight plays of 15 s (about 3 min; up to 2 more if this machine is late)"
status=0
run demo-live || status=$?
if [ "$status" -eq 2 ]; then
    echo "demo: real time is not possible here, see above; the same plays in virtual time:"
    run demo-live --arena sim
elif [ "$status" -ne 0 ]; then
    exit "$status"
fi
.venv/bin/railyard report "$results/demo-live" --replay >/dev/null
echo "The page: $results/demo-live/report.html"
echo "All plays in virtual time: $results/demo/report.html"
