#!/usr/bin/env bash
# Builds the relay of peers/quic-go with an initial congestion window of 10 packets, as in RFC 9002, instead of 32.
# quic-go has no setting for it, so this builds a copy of the module with the constant changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../quic-go"
out=$PWD/../../build/peers/quic-go-10
mkdir -p "$out"
of_module=$(go list -mod=readonly -m -f '{{.Dir}}' github.com/quic-go/quic-go)
if [ -z "$of_module" ]; then
    go mod download
    of_module=$(go list -mod=readonly -m -f '{{.Dir}}' github.com/quic-go/quic-go)
fi
file=internal/congestion/cubic_sender.go
rm -rf "$out/module"
cp -r "$of_module" "$out/module"
chmod -R u+w "$out/module"
sed -i 's/^\(\tinitialCongestionWindow *= \)32$/\110/' "$out/module/$file"
if cmp -s "$of_module/$file" "$out/module/$file"; then
    echo "quic-go-10: $of_module/$file has no initial congestion window of 32 packets; see what this version has." >&2
    exit 2
fi
cp go.mod "$out/go.mod" && cp go.sum "$out/go.sum"
go mod edit -replace "github.com/quic-go/quic-go=$out/module" "$out/go.mod"
go build -mod=readonly -modfile "$out/go.mod" -o "$out/relay" .
