#!/usr/bin/env bash
# One fresh campaign of the demo experiment; results/demo points at the newest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=results/demo-$(date +%Y%m%d-%H%M%S)
mkdir -p results
.venv/bin/railyard run demo --out "$out"
ln -sfn "$(basename "$out")" results/demo
.venv/bin/railyard report "$out" --replay >/dev/null
echo "The report: $PWD/results/demo/report.html"
