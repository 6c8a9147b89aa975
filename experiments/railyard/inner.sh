#!/bin/sh
# Runs inside the shell's namespace, around the player: inner.sh COUNTERS SYSCTLS -- COMMAND…
# SYSCTLS are words NAME=V1,V2,…; they are set first. The namespace's protocol counters are kept in COUNTERS at the end.
counters=$1
shift
while [ "$1" != -- ]; do
    name=${1%%=*}
    value=$(echo "${1#*=}" | tr , ' ')
    file=/proc/sys/$(echo "$name" | tr . /)
    echo "$value" >"$file" || exit 2
    shift
done
shift
"$@" &
child=$!
trap 'kill -TERM $child 2>/dev/null' TERM INT HUP
wait $child
status=$?
while kill -0 $child 2>/dev/null; do
    wait $child
    status=$?
done
cat /proc/net/netstat >"$counters"
exit $status
