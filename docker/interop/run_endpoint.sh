#!/bin/bash
# The endpoint of quic-interop-runner: ROLE, TESTCASE and, of a client, REQUESTS say what to do; files are in /www,
# /downloads, /certs and /logs. The exit code is 127 for a test case that is not supported.
set -u

# Routes of the simulator: by its base image, or by ours.
for setup in /setup.sh /routes.sh; do
    if [ -x "$setup" ]; then
        "$setup" || exit 1
        break
    fi
done

BIN=${XLINK_BIN:-}
LOGS=(--qlog-dir "${QLOGDIR:-/logs/qlog}")
[ -z "${SSLKEYLOGFILE:-}" ] || LOGS+=(--keylog "$SSLKEYLOGFILE")
mkdir -p "${QLOGDIR:-/logs/qlog}"

alpn=${XLINK_ALPN:-hq-interop}
split=none
scheme=sp
read -ra server_options <<<"${XLINK_SERVER_OPTIONS:-} ${XLINK_OPTIONS:-}"
read -ra client_options <<<"${XLINK_OPTIONS:-}"
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
connectionmigration)
    # The runner asks it of servers alone, which have to announce a second address. In the matrix the client moves.
    [ "${ROLE:-}" = client ] || [ -n "${PREFERRED_ADDRESS:-}" ] || exit 127
    scheme=cm
    ;;
preferredaddress) ;;
multipath | multipathabandon | multipathstandby)
    scheme=vanilla-mp
    server_options+=(--dialect ietf)
    # Where nobody says what the paths are, each of the client's addresses makes one.
    LOCAL_ADDRESSES=${LOCAL_ADDRESSES:-$(hostname -I)}
    case $TESTCASE in # seconds after the handshake, and paths in the order of their addresses
    multipathabandon) client_options+=(--path-events 1:remove:0) ;;
    multipathstandby) client_options+=(--path-events 0:standby:1,2:remove:0) ;;
    esac
    ;;
*) exit 127 ;;
esac

# A client of several addresses has a path from each.
for address in ${LOCAL_ADDRESSES:-}; do
    client_options+=(--path "$address")
done

case "${ROLE:-}" in
server)
    [ "${TESTCASE:-}" != preferredaddress ] || server_options+=(--preferred-address "$PREFERRED_ADDRESS")
    exec "${BIN}xlink-server" --quic 0.0.0.0:443 --quic '[::]:443' --scheme "$scheme" --root /www \
        --cert /certs/cert.pem --key /certs/priv.key --out /logs/server.jsonl "${server_options[@]}" "${LOGS[@]}"
    ;;
client)
    if [ -x /wait-for-it.sh ]; then
        /wait-for-it.sh sim:57832 -s -t 30
    elif hostname -I | grep -q '^193\.167\.'; then # the simulator's network
        # shellcheck disable=SC2016
        timeout 30 bash -c 'until (: 3<>/dev/tcp/sim/57832) 2>/dev/null; do sleep 0.1; done' ||
            { echo "the simulator does not listen at sim:57832 after 30 s" >&2 && exit 1; }
    fi
    # shellcheck disable=SC2086 # REQUESTS is a list of URLs
    exec "${BIN}xlink-get" --insecure --scheme "$scheme" --alpn "$alpn" --split "$split" --dir /downloads \
        --time-limit 300 --out /logs/client.jsonl "${client_options[@]}" "${LOGS[@]}" ${REQUESTS:-}
    ;;
*)
    echo "ROLE is '${ROLE:-}': it has to be server or client" >&2
    exit 2
    ;;
esac
