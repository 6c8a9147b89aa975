#!/usr/bin/env bash
# Collects the wheels of the image railyard/tool in a folder: the project's, and what it needs in the versions of
# requirements.lock, for the Python of Debian 12. `make docker IMAGE=tool` calls it, so that the image's build needs no
# package index.
#   wheels.sh FOLDER      what was in it goes
set -euo pipefail
folder=$(realpath -m "${1:?the folder for the wheels}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
wheel=$(echo "$PWD"/build/wheel/railyard-*.whl)
[ -f "$wheel" ] || {
    echo "docker: there is no wheel of the project in build/wheel; make it with \`make wheel\`." >&2
    exit 2
}
versions=$(mktemp -t railyard-versions.XXXXXX)
trap 'rm -f "$versions"' EXIT
sed -E '/^ +--hash/d; s/ \\$//' requirements.lock >"$versions"
rm -rf "$folder"
.venv/bin/pip download --disable-pip-version-check --quiet --dest "$folder" --only-binary :all: --python-version 3.11 \
    --platform manylinux2014_x86_64 --platform manylinux_2_28_x86_64 --platform manylinux_2_34_x86_64 \
    --constraint "$versions" "railyard[serve] @ file://$wheel"
