#!/usr/bin/env bash
# Builds the time-travel kernel from Debian's source package, `linux.patch` and the file `options`, into a cache outside
# of the tree:
#   $RAILYARD_KERNEL_CACHE, else $XDG_CACHE_HOME/railyard/kernel, else ~/.cache/railyard/kernel
# There a folder for each distinct source, patch, options, compiler, linker and text of this file holds `linux`, `config`
# and `made`, which says what it was made from; the link `linux` names the one that was asked for last. The same key
# gives the same bytes, wherever it is built. Prints that file's name; all else goes to standard error.
#   build.sh            build it, or take it from the cache
#   build.sh --key      print the name of its folder
# KERNEL_SOURCE names another source: a tar archive, or a folder, which is not patched, and built anew where its files
# have changed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=~ # without HOME, too
cache=${RAILYARD_KERNEL_CACHE:-${XDG_CACHE_HOME:-$home/.cache}/railyard/kernel}
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

case $cache in *[[:space:]:]*) die "the kernel's makefiles take no space and no colon in the name of a folder: '$cache'; name another one with RAILYARD_KERNEL_CACHE." ;; esac

writable() {
    mkdir -p "$1" 2>/dev/null && [ -w "$1" ] || die "$1 cannot be written; name another folder with RAILYARD_KERNEL_CACHE."
}

# A folder's own name is its key: what changed in it, make finds out.
key_of_source() {
    if [ -d "$1" ]; then realpath "$1"; else sha256sum <"$1"; fi
}
patches=$here/linux.patch
[ -d "$source" ] && patches=/dev/null
version_of() { "$1" --version | head -n 1; }
key=$({ key_of_source "$source"; cat "$here/options" "$here/build.sh" "$patches"; version_of "$compiler"; version_of ld; } | sha256sum | cut -c1-16)
folder=$cache/$key
[ "${1:-}" = --key ] && { echo "$key"; exit; }

# railyard/run/vkernel.py compares it with what is here now.
made_from() {
    printf 'source\t%s\t%s\n' "$(realpath "$source")" "$([ -d "$source" ] || stat -L -c '%s %Y' "$source")"
    printf 'options\t%s\n' "$(sha256sum <"$here/options" | cut -c1-64)"
    printf 'patch\t%s\n' "$(sha256sum <"$patches" | cut -c1-64)"
    printf 'recipe\t%s\n' "$(sha256sum <"$here/build.sh" | cut -c1-64)"
    printf 'compiler\t%s\n' "$(version_of "$compiler")"
    printf 'linker\t%s\n' "$(version_of ld)"
}

# A cache that cannot be written serves as long as it says what is right.
use() {
    if [ "$(made_from)" != "$(cat "$folder/made" 2>/dev/null)" ]; then
        writable "$folder"
        made_from >"$folder/.made.$$" && mv "$folder/.made.$$" "$folder/made"
    fi
    if [ "$(readlink "$cache/linux")" != "$key/linux" ]; then
        writable "$cache"
        ln -sfn "$key/linux" "$cache/.link.$$" && mv -T "$cache/.link.$$" "$cache/linux"
    fi
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

writable "$cache"
[ ! -e "$cache/.lock" ] || [ -w "$cache/.lock" ] || die "$cache belongs to another user; name another folder with RAILYARD_KERNEL_CACHE."
exec 9>"$cache/.lock"
if ! flock -n 9; then
    echo "kernel: waits for another build in $cache" >&2
    flock 9
fi
if [ -x "$folder/linux" ] && [ ! -d "$source" ]; then use; fi
work=$cache/.work-$key
log=$cache/build.log
[ -d "$source" ] || rm -rf "$work" # of a build that was killed
mkdir -p "$work/object"
: >"$log"

# The program that is waited for; it ends with this one, whatever ends this one.
child=
run() {
    local status=0
    setpriv --pdeathsig TERM -- "$@" &
    child=$!
    wait "$child" || status=$?
    child=
    return $status
}
finish() {
    local status=$?
    if [ -n "$child" ]; then
        kill "$child" 2>/dev/null || true
        wait "$child" || true
    fi
    [ -d "$source" ] || rm -rf "$work"
    exit $status
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
printf 'kernel: builds %s with the options of emulator/kernel/options: about %s minutes of processor time\n' "$source" "$ABOUT" >&2

tree=$source
if [ ! -d "$source" ]; then
    # A third of the source is drivers that no option asks for; their Kconfig files are read all the same.
    mkdir -p "$work/source"
    run tar -xf "$source" -C "$work/source" --strip-components=1 --wildcards --wildcards-match-slash \
        --exclude='*/Documentation/*.rst' --exclude='*/drivers/gpu/*.[ch]' --exclude='*/drivers/media/*.[ch]' \
        --exclude='*/drivers/net/ethernet/*.[ch]' --exclude='*/drivers/net/wireless/*.[ch]' \
        --exclude='*/drivers/infiniband/*.[ch]' --exclude='*/drivers/scsi/*.[ch]' --exclude='*/sound/*.[ch]' \
        --exclude='*/tools/testing/*' --exclude='*/tools/perf/*' --exclude='*.dts' --exclude='*.dtsi' ||
        die "$source cannot be unpacked into $work; is the disk full?"
    patch -d "$work/source" -p1 <"$patches" >>"$log" 2>&1 ||
        die "$source does not take emulator/kernel/linux.patch: see $log; a folder is built without it."
    tree=$work/source
fi

# Who built it where and when gets into the kernel's randomness, and so into every run's keys.
export KBUILD_BUILD_USER=railyard KBUILD_BUILD_HOST=railyard KBUILD_BUILD_VERSION=1
export KBUILD_BUILD_TIMESTAMP='Thu Jan  1 00:00:00 UTC 2026'
# No variable of the caller decides what is built: neither LANG, nor CFLAGS, nor what make hands down.
kept=(PATH="$PATH" HOME="$home" TMPDIR="${TMPDIR:-/tmp}" LC_ALL=C TZ=UTC)
CCACHE_BASEDIR=$work # where ccache is the compiler: what it has of another folder serves here
for name in ${!KBUILD_BUILD_@} ${!CCACHE_@}; do kept+=("$name=${!name}"); done
build() {
    run env -i "${kept[@]}" make -C "$tree" ARCH=um O="$work/object" CC="$compiler" "$@"
}
build KCONFIG_ALLCONFIG="$here/options" allnoconfig >>"$log" 2>&1 || die "the options cannot be set: see $log."
for option in $(sed -n 's/^\(CONFIG_[A-Z0-9_]*=y\)$/\1/p' "$here/options"); do
    grep -qx "$option" "$work/object/.config" || die "this source does not take the option $option: see $log."
done

# One line for each file that is compiled; their number is about the same for every compiler.
FILES=650
show_progress() {
    local count=0 shown=0 percent line
    while read -r line; do
        printf '%s\n' "$line" >>"$log"
        case $line in CC*) count=$((count + 1)) ;; esac
        percent=$((count * 100 / FILES))
        if [ $percent -ge $((shown + 5)) ] && [ $percent -lt 100 ]; then
            shown=$percent
            printf 'kernel: %d %% compiled\n' "$percent" >&2
        fi
    done
}
if ! build -j"$jobs" > >(trap '' INT && show_progress) 2>>"$log"; then
    grep -E 'error|Error|No space' "$log" | head -n 3 >&2 || tail -n 3 "$log" >&2
    die "the build failed; all of its output is in $log."
fi
mkdir -p "$folder"
cp "$work/object/.config" "$folder/config"
cp "$work/object/linux" "$folder/.linux" && mv "$folder/.linux" "$folder/linux"
printf 'kernel: %s\n' "$folder/linux" >&2
use
