#!/usr/bin/env bash
# The demo experiment. What is whole is kept, and the same command goes on from there; results/demo names its folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
.venv/bin/railyard run demo
.venv/bin/railyard report results/demo --replay >/dev/null
echo "The report: $PWD/results/demo/report.html"
