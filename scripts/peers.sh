#!/usr/bin/env bash
# Fetches and builds the foreign QUIC stacks of `make interop` and those of peers/ that are schemes, of Go and Rust by
# their lock files. Those that Debian has, `make setup` installs (scripts/setup.sh peers).
# What cannot be had stays away, and is a row with its reason in the matrix.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() {
    printf 'peers: %s\n' "$1"
}

# FOLDER WORDS...: runs a build command in the folder. Its tool knows what is up to date. A stack that cannot be built
# leaves the others alone.
build() {
    local folder=$1 tool=$2
    shift
    if ! (cd "$folder" && command -v "$tool") >/dev/null; then
        say "without $folder: $tool is not installed"
    elif ! (cd "$folder" && nice "$@"); then
        say "without $folder: its build failed"
    fi
}

# The stacks of experiments say themselves how they are built. PICOQUIC_DIR and the like name the folder of a stack that
# is installed elsewhere.
for file in peers/*/peer.yaml; do
    folder=$(dirname "$file")
    words=$(sed -n 's/^build: \[\(.*\)\]$/\1/p' "$file" | tr -d ,)
    variable=$(sed -n 's/^needs: "\([A-Z]*_DIR\) .*/\1/p' "$file")
    if [ -n "$variable" ] && [ -z "${!variable:-}" ]; then
        say "without $folder: $variable names no build of it"
    elif [ -n "$words" ]; then
        # shellcheck disable=SC2086 # a list of words
        build "$folder" $words
    fi
done

# The endpoints of the interoperability matrix. CARGO_TARGET_DIR: of quinn, quiche and s2n-quic, if it is to be shared.
out=$PWD/build/peers
for role in client server; do
    build peers/quic-go go build -mod=readonly -o "$out/quic-go/$role" "github.com/quic-go/quic-go/interop/$role"
done
target=${CARGO_TARGET_DIR:-$out/interop}
for stack in quinn quiche s2n-quic; do
    build tests/interop/peers/rust cargo build --locked --quiet --target-dir "$target" --package "interop-$stack"
    [ ! -x "$target/debug/interop-$stack" ] || install "$target/debug/interop-$stack" "$out/"
done
