#!/usr/bin/env bash
# Makes the image railyard/base:bookworm by debootstrap, for machines that reach a Debian mirror but no registry.
# Usage: docker/base.sh [IMAGE]. As root. MIRROR= names the mirror; default: the one that this machine's apt uses.
#
# As reproducible as the mirror's state: files that carry a time or a machine's name are removed, the archive is sorted
# and all times are those of SOURCE_DATE_EPOCH. The label railyard.base.sha256 is the hash of the archive.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

IMAGE=${1:-railyard/base:bookworm}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-1700000000}

die() {
    printf 'docker-base: %s\n' "$1" >&2
    exit 2
}

[ "$(id -u)" -eq 0 ] || die "debootstrap needs root."
docker info >/dev/null 2>&1 || die "no Docker engine answers; start one, or set DOCKER_HOST."
work=$(mktemp -d -t railyard-base.XXXXXX)
trap 'rm -rf "$work"' EXIT
"$here/../scripts/bare-root.sh" "$work/root"
root=$work/root
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/* "$root"/tmp/* "$root"/debootstrap \
    "$root"/usr/share/doc/* "$root"/usr/share/man/* "$root"/usr/share/locale/* "$root"/var/cache/ldconfig/aux-cache \
    "$root"/etc/hostname "$root"/etc/resolv.conf "$root"/etc/passwd- "$root"/etc/group- "$root"/etc/shadow- \
    "$root"/etc/gshadow- "$root"/dev/*
: >"$root/etc/machine-id"
mkdir -p "$root/var/cache/apt/archives/partial" "$root/var/lib/apt/lists/partial" "$root/var/log/apt"
# The day on which the passwords were set, in the accounts of the system.
sed -i -E "s/^([^:]*:[^:]*):[0-9]+:/\1:$((SOURCE_DATE_EPOCH / 86400)):/" "$root/etc/shadow"

tar --create --file "$work/root.tar" --directory "$root" --sort=name --numeric-owner --format=gnu \
    --mtime="@$SOURCE_DATE_EPOCH" .
hash=$(sha256sum "$work/root.tar" | cut -d' ' -f1)
docker import --change "LABEL railyard.base.sha256=$hash" --change 'CMD ["/bin/sh"]' \
    "$work/root.tar" "$IMAGE" >/dev/null
echo "docker-base: $IMAGE is $(docker image inspect --format '{{.Id}}' "$IMAGE"), its archive sha256:$hash"
