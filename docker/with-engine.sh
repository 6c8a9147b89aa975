#!/usr/bin/env bash
# Runs a command with a Docker engine: the one that answers, else one of its own, stopped when the command ends.
# Usage: docker/with-engine.sh COMMAND…   Its data stay in RAILYARD_ENGINE_ROOT (/var/lib/railyard/engine), so that images
# are built once. That folder and its parents must be root's alone to write: the engine runs as root what it finds there.
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

# Ends the script unless root alone can write to a folder that exists and to all that it lies in. $2 is what it is for.
check_owned_by_root() {
    local folder=$1 owner mode
    while :; do
        read -r owner mode < <(stat -L -c '%u %a' "$folder")
        if [ "$owner" -ne 0 ] || [ $((8#$mode & 8#022)) -ne 0 ]; then
            die "$folder is not root's alone to write, so $2 is no place for an engine; set RAILYARD_ENGINE_ROOT to another one."
        fi
        [ "$folder" != / ] || return 0
        folder=$(dirname "$folder")
    done
}

# Makes a folder that only root can enter. Both its name and what the links in it lead to are checked before.
make_private_folder() {
    local path existing
    for path in "$(realpath -ms "$1")" "$(realpath -m "$1")"; do
        existing=$path
        until [ -e "$existing" ]; do
            [ ! -L "$existing" ] || die "$existing is a link to nothing; remove it."
            existing=$(dirname "$existing")
        done
        check_owned_by_root "$existing" "$1"
    done
    (umask 077 && mkdir -p "$1")
    chmod 0700 "$1"
}

root=${RAILYARD_ENGINE_ROOT:-/var/lib/railyard/engine}
make_private_folder "$root"
make_private_folder /run/railyard
export PATH=$PATH:/usr/sbin:/sbin
command -v dockerd >/dev/null || die "no Docker engine answers, and dockerd is not there; install the Debian package docker.io."
run=$(mktemp -d /run/railyard/engine.XXXXXX)
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
