#!/usr/bin/env bash
# Runs a command with a Docker engine: the one that answers, else one of its own, stopped when the command ends.
# Usage: docker/with-engine.sh COMMAND…   Its data stay in RAILYARD_ENGINE_ROOT, so that images are built once.
# Its own engine has no bridge and no firewall rules, so that nothing of it stays in the machine's network.
set -euo pipefail

die() {
    printf 'with-engine: %s\n' "$1" >&2
    exit 2
}

if docker info >/dev/null 2>&1; then
    exec "$@"
fi
[ "$(id -u)" -eq 0 ] || die "no Docker engine answers, and starting one needs root."
command -v dockerd >/dev/null || die "no Docker engine answers, and dockerd is not there; install the Debian package docker.io."
root=${RAILYARD_ENGINE_ROOT:-/var/tmp/railyard-engine}
run=$(mktemp -d -t railyard-engine.XXXXXX)
mkdir -p "$root"
export DOCKER_HOST=unix://$run/docker.sock RAILYARD_BUILD_NETWORK=host
# Where the kernel schedules real-time tasks by group, the engine has to have a share to give away.
budget=()
if [ "$(cat /sys/fs/cgroup/cpu/cpu.rt_runtime_us 2>/dev/null || echo 0)" -ge 950000 ]; then
    budget=(--cpu-rt-period 1000000 --cpu-rt-runtime 950000)
fi
dockerd "${budget[@]}" --data-root "$root" --exec-root "$run/exec" --pidfile "$run/pid" --host "$DOCKER_HOST" \
    --bridge none --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false >"$root/dockerd.log" 2>&1 &
engine=$!
stop() {
    kill "$engine" 2>/dev/null || true
    wait "$engine" || true
    # The engine leaves the mount of the machine's network namespace, which building used.
    for mount in "$run"/exec/netns/*; do
        umount "$mount" 2>/dev/null || true
    done
    rm -rf "$run"
}
trap stop EXIT
until docker info >/dev/null 2>&1; do
    kill -0 "$engine" 2>/dev/null || die "dockerd did not start; see $root/dockerd.log."
    sleep 0.2
done
"$@"
