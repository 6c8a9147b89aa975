#!/usr/bin/env bash
# Fetches and builds the foreign QUIC stacks of `make interop`: Debian's packages as root, Go's by their lock file.
# What cannot be had stays away, and is a row with its reason in the matrix.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() {
    printf 'peers: %s\n' "$1"
}

packages=()
for pair in gtlsclient:ngtcp2-client gtlsserver:ngtcp2-server caddy:caddy; do
    PATH=$PATH:/usr/sbin command -v "${pair%%:*}" >/dev/null || packages+=("${pair##*:}")
done
if [ ${#packages[@]} -gt 0 ]; then
    if [ "$(id -u)" -eq 0 ] && apt-get update -q >/dev/null &&
        DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${packages[@]}" >/dev/null; then
        say "installed ${packages[*]}"
    else
        say "without ${packages[*]}: as root, apt-get install ${packages[*]}"
    fi
fi

source=tests/interop/peers/quic-go
out=$PWD/build/peers/quic-go
if ! command -v go >/dev/null; then
    say "without quic-go: there is no Go toolchain"
elif [ ! -x "$out/server" ] || [ "$source/go.sum" -nt "$out/server" ]; then
    mkdir -p "$out"
    for program in client server; do
        nice go build -C "$source" -mod=readonly -o "$out/$program" "github.com/quic-go/quic-go/interop/$program"
    done
    go list -C "$source" -m -f '{{.Version}}' github.com/quic-go/quic-go >"$out/version"
    say "built quic-go $(cat "$out/version")"
fi

relay=build/peers/quic-go/relay
if command -v go >/dev/null && { [ ! -x "$relay" ] || [ peers/quic-go/main.go -nt "$relay" ] || [ peers/quic-go/go.sum -nt "$relay" ]; }; then
    nice go build -C peers/quic-go -mod=readonly -o "../../$relay" .
    say "built the relay of quic-go"
fi
