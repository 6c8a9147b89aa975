#!/usr/bin/env bash
# Makes a wheel with xlink-sim in it, and with the libraries that it is linked to, for any Linux whose glibc is not older
# than this machine's: the tag says which (manylinux, PEP 600).
#   wheel.sh FOLDER     puts it there; earlier wheels of that folder go
set -euo pipefail
folder=$(realpath -m "${1:?the folder for the wheel}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH=$PWD/.venv/bin:$PATH
program=${RAILYARD_BIN:-build/bin}/xlink-sim
[ -x "$program" ] || {
    echo "wheel: $program is not there or not executable; build the programs with \`make build\`." >&2
    exit 2
}
plain=$(mktemp -d -t railyard-wheel.XXXXXX)
trap 'rm -rf "$plain"' EXIT
RAILYARD_WHEEL_PROGRAMS=$(realpath "$program") \
    pip wheel --disable-pip-version-check --quiet --no-deps --no-build-isolation --wheel-dir "$plain" .
mkdir -p "$folder"
rm -f "$folder"/railyard-*.whl
auditwheel repair --strip --wheel-dir "$folder" "$plain"/railyard-*.whl >"$plain/log" 2>&1 || {
    cat "$plain/log" >&2
    exit 1
}
ls "$folder"/railyard-*.whl
