#!/bin/sh
# Routes of an endpoint in the networks of quic-network-simulator: the other side is behind the simulator, which has
# address 2 of the endpoint's own network. Elsewhere it changes nothing.
set -eu

v4=$(ip -4 -o address show dev eth0 2>/dev/null | awk '{ split($4, a, "/"); print a[1]; exit }')
v6=$(ip -6 -o address show dev eth0 scope global 2>/dev/null | awk '{ split($4, a, "/"); print a[1]; exit }')
case $v4 in
193.167.*) ;;
*) exit 0 ;;
esac
# The simulator takes packets off the interface as they are: without checksums, or in one piece that the card would have
# cut, they are lost there.
ethtool -K eth0 tx off >/dev/null
ip route replace 193.167.0.0/16 via "${v4%.*}.2"
[ -z "$v6" ] || ip -6 route replace fd00:cafe:cafe::/48 via "${v6%:*}:2"
