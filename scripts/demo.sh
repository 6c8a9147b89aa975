#!/usr/bin/env bash
# The demo experiment. What is whole is kept, and the same command goes on from there; results/demo names its folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
results=$(realpath -m "${RAILYARD_RESULTS:-results}")
.venv/bin/railyard run demo
.venv/bin/railyard report "$results/demo" --replay >/dev/null
echo "The report: $results/demo/report.html"
echo "Exactly, whatever else this machine does, in virtual time: .venv/bin/railyard run demo --arena kernel"
