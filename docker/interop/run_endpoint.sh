#!/bin/bash
# The endpoint of quic-interop-runner: ROLE, TESTCASE and, of a client, REQUESTS say what to do; files are in /www,
# /downloads, /certs and /logs. The exit code is 127 for a test case that is not supported.
set -u

# Routes of the simulator; only its base image has the script.
[ ! -x /setup.sh ] || /setup.sh

BIN=${XLINK_BIN:-}
LOGS=(--qlog-dir "${QLOGDIR:-/logs/qlog}")
[ -z "${SSLKEYLOGFILE:-}" ] || LOGS+=(--keylog "$SSLKEYLOGFILE")
mkdir -p "${QLOGDIR:-/logs/qlog}"

alpn=${XLINK_ALPN:-hq-interop}
split=none
scheme=sp
read -ra server_options <<<"${XLINK_SERVER_OPTIONS:-} ${XLINK_OPTIONS:-}"
read -ra client_options <<<"${XLINK_OPTIONS:-}"
preferred=()
case "${TESTCASE:-}" in
handshake | transfer | longrtt | multiplexing | ipv6 | ecn | p256) ;;
blackhole | amplificationlimit | transferloss | transfercorruption | rebind-port | rebind-addr) ;;
multiconnect | handshakeloss | handshakecorruption) split=each ;;
chacha20)
    server_options+=(--ciphers chacha20)
    client_options+=(--ciphers chacha20)
    ;;
keyupdate) client_options+=(--packets-per-key 1000) ;;
resumption) split=first ;;
zerortt)
    split=first
    server_options+=(--early-data)
    client_options+=(--early-data)
    ;;
v2)
    server_options+=(--quic-version both)
    client_options+=(--quic-version both)
    ;;
retry) server_options+=(--retry-above 0) ;;
http3) alpn=h3 ;;
connectionmigration) scheme=cm ;;
preferredaddress) ;;
multipath)
    scheme=vanilla-mp
    server_options+=(--dialect ietf)
    ;;
*) exit 127 ;;
esac

# A client of several addresses has a path from each.
for address in ${LOCAL_ADDRESSES:-}; do
    client_options+=(--path "$address")
done

serve() { # ADDR:PORT NAME OPTIONS...
    "${BIN}xlink-server" --quic "$1" --scheme "$scheme" --root /www --cert /certs/cert.pem --key /certs/priv.key \
        --out "/logs/$2.jsonl" "${server_options[@]}" "${LOGS[@]}" "${@:3}" &
}

case "${ROLE:-}" in
server)
    serve '[::]:443' ipv6
    [ "${TESTCASE:-}" != preferredaddress ] || preferred=(--preferred-address "$PREFERRED_ADDRESS")
    serve 0.0.0.0:443 ipv4 "${preferred[@]}"
    trap 'kill $(jobs -p)' TERM INT
    wait
    ;;
client)
    [ ! -x /wait-for-it.sh ] || /wait-for-it.sh sim:57832 -s -t 30
    # shellcheck disable=SC2086 # REQUESTS is a list of URLs
    exec "${BIN}xlink-get" --insecure --scheme "$scheme" --alpn "$alpn" --split "$split" --dir /downloads \
        --time-limit 300 --out /logs/client.jsonl "${client_options[@]}" "${LOGS[@]}" ${REQUESTS:-}
    ;;
*)
    echo "ROLE is '${ROLE:-}': it has to be server or client" >&2
    exit 2
    ;;
esac
