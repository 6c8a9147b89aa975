#!/usr/bin/env bash
# Fetches and builds the foreign QUIC stacks of `make interop` and those of peers/ that are schemes: Debian's packages as
# root, those of Go and Rust by their lock files.
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

# NAME PROGRAM: the relay of peers/NAME in Rust; cargo sees by itself what has changed.
build_rust() {
    if ! command -v cargo >/dev/null; then
        say "without $1: there is no Rust toolchain"
    elif nice cargo build --release --locked --quiet --manifest-path "peers/$1/Cargo.toml" --target-dir "build/peers/$1"; then
        say "built the relay of $("build/peers/$1/release/$2" version)"
    else
        say "without $1: it cannot be built, see above"
    fi
}
build_rust noq noq-peer
build_rust tquic tquic-relay # BoringSSL comes with it: cmake and a C++ compiler build it

# Relays over stacks that are installed elsewhere: PICOQUIC_DIR and XQUIC_DIR name their folders.
for stack in picoquic xquic; do
    folder=${stack^^}_DIR
    if [ -n "${!folder:-}" ]; then
        make --no-print-directory "build/peers/$stack/relay" && say "built the relay of $stack"
    else
        say "without $stack: $folder names no build of it"
    fi
done
