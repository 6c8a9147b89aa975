#!/usr/bin/env bash
# Says in one sentence, with exit status 2, why what KERNEL_SOURCE names is no source of a kernel for build.sh. It is a
# file of its own because a change of build.sh makes everybody's kernel another one.
set -euo pipefail
source=${KERNEL_SOURCE:-}
if [ -z "$source" ] || [ ! -e "$source" ]; then exit 0; fi # build.sh says what is missing

die() {
    printf 'kernel: KERNEL_SOURCE: %s %s; name the folder that has Kconfig and arch/um, or its tar archive.\n' "$source" "$1" >&2
    exit 2
}

if [ -d "$source" ]; then
    [ -f "$source/Kconfig" ] && [ -f "$source/arch/um/Makefile" ] || die "is no source of Linux"
else
    # The first names are enough: unpacking all of it takes half a minute. tar ends by SIGPIPE then.
    names=$( (tar -tf "$source" 2>/dev/null || true) | head -n 400 | grep -cE '^(\./)?[^/]+/(Kbuild|Kconfig|CREDITS|Documentation/|COPYING)' || true)
    [ "$names" -gt 0 ] || die "is no tar archive of Linux"
fi
