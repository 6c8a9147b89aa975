#!/usr/bin/env bash
# Makes a bare Debian 12 root in a folder, by debootstrap: what Debian calls minbase, and no more.
# Usage: scripts/bare-root.sh FOLDER [PACKAGE…]   As root. MIRROR= names the mirror; default: the one that this machine's
# apt uses. DEB_CACHE= names a folder that keeps the downloaded packages.
# The root's apt has the mirror and, of this machine's apt, the updates of Debian 12.
set -euo pipefail
SUITE=bookworm

die() {
    printf 'bare-root: %s\n' "$1" >&2
    exit 2
}

root=${1:?usage: bare-root.sh FOLDER [PACKAGE...]}
shift
[ "$(id -u)" -eq 0 ] || die "debootstrap needs root."
export PATH=$PATH:/usr/sbin:/sbin
command -v debootstrap >/dev/null || die "debootstrap is not there; install the Debian package debootstrap."

# URI and suite of each source of Debian 12 that this machine's apt has, as far as it has read their lists.
sources() {
    # shellcheck disable=SC2016  # apt fills these in
    apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' 'Identifier: Packages' 2>/dev/null |
        awk -v suite="$SUITE" '$3 == "main" && ($2 == suite || $2 ~ "^" suite "-(updates|security)$") { print $1, $2 }' |
        sort -u || true
}
sources=$(sources)
if [ -z "$sources" ]; then
    apt-get update -q >/dev/null 2>&1 || true
    sources=$(sources)
fi
MIRROR=${MIRROR:-$(awk -v suite="$SUITE" '$2 == suite { print $1; exit }' <<<"$sources")}
[ -n "$MIRROR" ] || die "apt of this machine has no mirror of $SUITE; name one with MIRROR=."
eval "$(apt-config shell proxy Acquire::http::Proxy)"
[ -z "${proxy:-}" ] || export http_proxy=$proxy

log=$(mktemp -t railyard-root.XXXXXX)
trap 'rm -f "$log"' EXIT
include=$(IFS=,; echo "$*")
[ -z "${DEB_CACHE:-}" ] || mkdir -p "$DEB_CACHE"
# A root that is thrown away, or packed into an image, needs no fsync of each package.
mkdir -p "$root/etc/dpkg/dpkg.cfg.d"
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/90unsafe-io"
if ! debootstrap --variant=minbase ${include:+"--include=$include"} ${DEB_CACHE:+"--cache-dir=$DEB_CACHE"} \
    "$SUITE" "$root" "$MIRROR" >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    die "debootstrap failed; see above."
fi
{
    printf 'deb %s %s main\n' "$MIRROR" "$SUITE"
    awk -v suite="$SUITE" '$2 != suite { print "deb", $1, $2, "main" }' <<<"$sources"
} >"$root/etc/apt/sources.list"
