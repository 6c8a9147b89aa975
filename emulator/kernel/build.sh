#!/usr/bin/env bash
# Builds the time-travel kernel from Debian's source package, `clock.patch` and the file `options`, into a cache outside
# of the tree:
#   $RAILYARD_KERNEL_CACHE, else $XDG_CACHE_HOME/railyard/kernel, else ~/.cache/railyard/kernel
# There a folder for each distinct source, patch, options and compiler holds `linux`, `config` and `made`, which says what
# it was made from; the link `linux` names the one that was asked for last. Prints that file's name; all else goes to
# standard error.
#   build.sh            build it, or take it from the cache
#   build.sh --key      print the name of its folder
# KERNEL_SOURCE names another source: a tar archive, or a folder, which is not patched, and built anew where its files
# have changed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${RAILYARD_KERNEL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/railyard/kernel}
source=${KERNEL_SOURCE:-/usr/src/linux-source-6.12.tar.xz}
compiler=${CC:-gcc}
jobs=${JOBS:-$(nproc)}
PACKAGES="linux-source-6.12 flex bison bc libelf-dev libssl-dev xz-utils patch"
ABOUT=8 # minutes of processor time that a build takes

die() {
    printf 'kernel: %s\n' "$1" >&2
    exit 2
}

[ "$(uname -m)" = x86_64 ] || die "time travel needs an x86-64 machine, and this is $(uname -m)."
command -v "$compiler" >/dev/null || die "there is no compiler '$compiler'; install the Debian package gcc."
[ -e "$source" ] || die "there is no source of the kernel at $source; install the Debian package linux-source-6.12, or name another one with KERNEL_SOURCE."

# A folder's own name is its key: what changed in it, make finds out.
key_of_source() {
    if [ -d "$1" ]; then realpath "$1"; else sha256sum <"$1"; fi
}
patches=$here/clock.patch
[ -d "$source" ] && patches=/dev/null
key=$({ key_of_source "$source"; cat "$here/options" "$patches"; "$compiler" --version | head -n 1; } | sha256sum | cut -c1-16)
folder=$cache/$key
[ "${1:-}" = --key ] && { echo "$key"; exit; }

# railyard/run/vkernel.py compares it with what is here now.
made_from() {
    printf 'source\t%s\t%s\n' "$(realpath "$source")" "$([ -d "$source" ] || stat -L -c '%s %Y' "$source")"
    printf 'options\t%s\n' "$(sha256sum <"$here/options" | cut -c1-64)"
    printf 'patch\t%s\n' "$(sha256sum <"$patches" | cut -c1-64)"
    printf 'compiler\t%s\n' "$("$compiler" --version | head -n 1)"
}

use() {
    made_from >"$folder/.made.$$" && mv "$folder/.made.$$" "$folder/made"
    ln -sfn "$key/linux" "$cache/.link.$$" && mv -T "$cache/.link.$$" "$cache/linux"
    echo "$folder/linux"
    exit
}
if [ -x "$folder/linux" ] && [ ! -d "$source" ]; then use; fi

# A header stands for a package of libraries.
for need in bin:flex bin:bison bin:bc bin:xz bin:make bin:patch file:/usr/include/libelf.h file:/usr/include/openssl/ssl.h; do
    case $need in
    bin:*) command -v "${need#bin:}" >/dev/null ;;
    file:*) [ -e "${need#file:}" ] ;;
    esac || die "'${need#*:}' is missing; install the Debian packages $PACKAGES."
done

mkdir -p "$cache"
exec 9>"$cache/.lock"
flock 9 # another build of the same may be under way
if [ -x "$folder/linux" ] && [ ! -d "$source" ]; then use; fi
work=$cache/.work-$key
log=$cache/build.log
mkdir -p "$work/object"
: >"$log"
trap 'status=$?; [ -d "$source" ] || rm -rf "$work"; exit $status' EXIT
printf 'kernel: builds %s with the options of emulator/kernel/options: about %s minutes of processor time\n' "$source" "$ABOUT" >&2

tree=$source
if [ ! -d "$source" ]; then
    # A third of the source is drivers that no option asks for; their Kconfig files are read all the same.
    mkdir -p "$work/source"
    tar -xf "$source" -C "$work/source" --strip-components=1 --wildcards --wildcards-match-slash \
        --exclude='*/Documentation/*.rst' --exclude='*/drivers/gpu/*.[ch]' --exclude='*/drivers/media/*.[ch]' \
        --exclude='*/drivers/net/ethernet/*.[ch]' --exclude='*/drivers/net/wireless/*.[ch]' \
        --exclude='*/drivers/infiniband/*.[ch]' --exclude='*/drivers/scsi/*.[ch]' --exclude='*/sound/*.[ch]' \
        --exclude='*/tools/testing/*' --exclude='*/tools/perf/*' --exclude='*.dts' --exclude='*.dtsi' ||
        die "$source cannot be unpacked into $work; is the disk full?"
    patch -d "$work/source" -p1 <"$patches" >>"$log" 2>&1 ||
        die "$source does not take emulator/kernel/clock.patch: see $log; a folder is built without it."
    tree=$work/source
fi

# Who built it where and when gets into the kernel's randomness, and so into every run's keys.
export KBUILD_BUILD_USER=railyard KBUILD_BUILD_HOST=railyard KBUILD_BUILD_VERSION=1
export KBUILD_BUILD_TIMESTAMP='Thu Jan  1 00:00:00 UTC 2026'
build() {
    make -C "$tree" ARCH=um O="$work/object" CC="$compiler" "$@"
}
KCONFIG_ALLCONFIG=$here/options build allnoconfig >>"$log" 2>&1 || die "the options cannot be set: see $log."
for option in $(sed -n 's/^\(CONFIG_[A-Z0-9_]*=y\)$/\1/p' "$here/options"); do
    grep -qx "$option" "$work/object/.config" || die "this source does not take the option $option: see $log."
done

# One line for each file that is compiled; their number is about the same for every compiler.
FILES=650
count=0
shown=0
if ! build -j"$jobs" 2>>"$log" | while read -r line; do
    printf '%s\n' "$line" >>"$log"
    case $line in CC*) count=$((count + 1)) ;; esac
    percent=$((count * 100 / FILES))
    if [ $percent -ge $((shown + 5)) ] && [ $percent -lt 100 ]; then
        shown=$percent
        printf 'kernel: %d %% compiled\n' "$percent" >&2
    fi
done; then
    grep -E 'error|Error|No space' "$log" | head -n 3 >&2 || tail -n 3 "$log" >&2
    die "the build failed; all of its output is in $log."
fi
mkdir -p "$folder"
cp "$work/object/.config" "$folder/config"
cp "$work/object/linux" "$folder/.linux" && mv "$folder/.linux" "$folder/linux"
printf 'kernel: %s\n' "$folder/linux" >&2
use
