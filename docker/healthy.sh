#!/bin/sh
# Is this container at work? healthy.sh server|outside|client
case $1 in
server) # some socket listens (TCP, state 0A) or is bound (UDP) to a port of the service, 4433 or 8080
    grep -qE '^ *[0-9]+: [0-9A-F]+:(1151|1F90) .* (07|0A) ' /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6 2>/dev/null
    ;;
outside) # mpshell waits at its socket, or has made the devices
    grep -q ' /join/' /proc/net/unix || grep -q '^ *mp[0-9]*-0:' /proc/net/dev
    ;;
client) # the paths' devices are there
    grep -qv -e '^ *lo:' -e '|' /proc/net/dev
    ;;
*)
    echo "usage: healthy.sh server|outside|client" >&2
    exit 2
    ;;
esac
