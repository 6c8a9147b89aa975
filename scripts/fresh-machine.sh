#!/usr/bin/env bash
# Runs targets of the Makefile on a machine that has never seen the project: a bare Debian 12 root with make and git, and
# a clone of this tree with what is not committed yet. Nothing that this machine has installed is in it.
# Usage: scripts/fresh-machine.sh TARGET[,TARGET…]…   As root. Each argument is one machine; its targets run in order.
#
# Exit status: 0; that of the first target that failed; 125, with a sentence, where no such machine can be made.
# RAILYARD_MACHINES (/var/lib/railyard/machines) holds the roots, which are removed afterwards, also those that a killed
# one left, and in `cache` what apt and pip have downloaded.
#
# Taken over from this machine: how it reaches registries (resolver, certificates, the settings of apt, pip, npm, cargo
# and go), the recorded traces beside the tree, and the cache of the time-travel kernel. Mounts and processes are in
# namespaces of their own and end with this script, whatever ends it.
set -euo pipefail

# What a package client needs to work inside as it does outside: variables, and files below /etc and the home folder.
CLIENT_VARIABLES='(https?|ftp|all|no)_proxy|pip_.*|npm_config_.*|cargo_(http|net|registr|source).*'
CLIENT_VARIABLES+='|go(proxy|sumdb|nosumdb|private|noproxy|insecure|flags)|.*(ca_bundle|cert_file|cert_dir|ca_certs|cainfo)'
OTHER_VARIABLES='ci|term|railyard_require_[a-z]+'
CLIENT_FILES=(
    /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/npmrc /etc/apt/auth.conf /etc/apt/auth.conf.d
    /usr/local/share/ca-certificates /etc/ssl/certs/ca-certificates.crt /etc/apt/trusted.gpg.d
)
CLIENT_HOME_FILES=(.pip/pip.conf .config/pip/pip.conf .npmrc .cargo/config .cargo/config.toml .config/go/env)
# What root may do here and the tests use. Where this machine permits one, the new one has to permit it too.
PROBES=(
    'unshare --net true' 'unshare --mount mount -t tmpfs none /mnt' 'unshare --user true'
    'unshare --mount --pid --fork --mount-proc true' 'chrt -f 50 true' 'true 3<>/dev/net/tun'
    "unshare --net sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'" 'test -w /dev/shm'
)

cannot() {
    printf 'fresh-machine: %s\n' "$1" >&2
    exit 125
}

works() { timeout 20 bash -c "$1" >/dev/null 2>&1 </dev/null; }

# --- in the new root --------------------------------------------------------------------------------------------------

run_targets() {
    local targets=$1 probes=$2 probe name status used
    while read -r probe; do
        works "$probe" || cannot "what works on this machine does not work in a root of its own: $probe"
    done <<<"$probes"
    timeout 300 apt-get update -q >/tmp/apt.log 2>&1 || {
        tail -n 5 /tmp/apt.log >&2
        cannot "apt-get update fails in the new root; see above."
    }
    rm -rf /tmp/apt.log /var/lib/apt/lists/*
    cd /work/railyard
    for name in ${targets//,/ }; do
        echo "fresh-machine: make $name"
        SECONDS=0 status=0
        make "$name" || status=$?
        times >/tmp/times # not in a subshell, which has times of its own
        used="$((SECONDS / 60)) min $((SECONDS % 60)) s; processor time of all so far: $(tail -n 1 /tmp/times)"
        if [ $status -ne 0 ]; then
            echo "fresh-machine: make $name failed after $used" >&2
            exit $status
        fi
        echo "fresh-machine: make $name took $used"
    done
}

# --- in mount, PID and IPC namespaces of its own ----------------------------------------------------------------------

# All of this tree: what is committed, changed, and new.
clone_tree() {
    local clone=$1
    printf '[safe]\n\tdirectory = *\n' >"$clone.gitconfig" # the tree may be another user's
    local -x GIT_CONFIG_GLOBAL=$clone.gitconfig
    git clone --quiet --no-hardlinks . "$clone" || return
    git diff --binary HEAD >"$clone.diff"
    [ ! -s "$clone.diff" ] || git -C "$clone" apply "$clone.diff" || return
    git ls-files -z --others --exclude-standard | tar --create --null --files-from=- | tar --extract --directory "$clone"
    rm "$clone.diff" "$clone.gitconfig"
}

take_over_clients() {
    local root=$1 file
    apt-config dump Acquire 2>/dev/null | grep -vE '^Acquire::(IndexTargets|Languages|Gzip|cdrom)|:: ?"";$' \
        >"$root/etc/apt/apt.conf.d/90machine" || true
    for file in "${CLIENT_FILES[@]}"; do
        [ ! -e "$file" ] || { mkdir -p "$(dirname "$root$file")" && cp -rLT "$file" "$root$file"; }
    done
    for file in "${CLIENT_HOME_FILES[@]}"; do
        [ ! -e "$HOME/$file" ] || install -D -m 600 "$HOME/$file" "$root/root/$file"
    done
}

bind() { mkdir -p "$1" "$2" && mount --bind "$1" "$2"; }

mount_all() {
    local root=$1 name
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount -t tmpfs -o mode=755 dev "$root/dev"
    mkdir -p "$root/dev/net" "$root/dev/pts" "$root/dev/shm"
    for name in null zero full random urandom tty net/tun; do
        [ ! -e "/dev/$name" ] || { : >"$root/dev/$name" && mount --bind "/dev/$name" "$root/dev/$name"; }
    done
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
    mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
    ln -s pts/ptmx "$root/dev/ptmx"
    ln -s /proc/self/fd "$root/dev/fd"
    for name in 0=stdin 1=stdout 2=stderr; do ln -s "fd/${name%=*}" "$root/dev/${name#*=}"; done
    bind "$place/cache/apt" "$root/var/cache/apt/archives"
    bind "$place/cache/pip" "$root/root/.cache/pip"
    bind "$kernels" "$root/root/.cache/railyard/kernel"
    [ ! -d ../shared ] || bind "$(realpath ../shared)" "$root/work/shared"
    for name in ${PIP_FIND_LINKS:-}; do
        [ ! -d "$name" ] || bind "$name" "$root$name"
    done
}

make_and_enter() {
    local machine=$1 targets=$2 probes=$3 root=$1/root variable
    local environment=(HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
    echo "fresh-machine: makes a bare Debian 12 root"
    DEB_CACHE=$place/cache/apt timeout 900 "$here/bare-root.sh" "$root" make git ||
        cannot "there is no bare Debian 12 root; see above."
    take_over_clients "$root"
    mkdir -p "$root/work"
    clone_tree "$root/work/railyard" || cannot "this tree cannot be cloned; see above."
    mount_all "$root" || cannot "its folders cannot be mounted; see above."
    shopt -s nocasematch
    while IFS= read -r -d '' variable; do
        if [[ ${variable%%=*} =~ ^($CLIENT_VARIABLES|$OTHER_VARIABLES)$ ]]; then environment+=("$variable"); fi
    done < <(env -0)
    # Not chroot: in one, nobody may make a user namespace.
    mkdir "$root/outer"
    cd "$root"
    pivot_root . outer
    cd /
    umount --lazy /outer
    rmdir /outer
    exec env -i "${environment[@]}" bash -euo pipefail -c \
        "$(declare -f cannot works run_targets); run_targets \"\$@\"" bash "$targets" "$probes"
}

# --- on this machine --------------------------------------------------------------------------------------------------

machine=
child=
# The first process of the namespaces ends all others; its parent returns when they are gone.
stop() {
    local first
    if [ -n "$child" ]; then
        first=$(cat "/proc/$child/task/$child/children" 2>/dev/null) || first=
        kill -KILL "${first:-$child}" 2>/dev/null || true
        wait "$child" 2>/dev/null || true
    fi
    [ -z "$machine" ] || rm -rf --one-file-system "$machine"
}

# A folder for a new root, locked as long as this script runs. Those that are not locked are left from a killed one.
make_folder() {
    local old
    (umask 022 && mkdir -p "$place/cache" 2>/dev/null) ||
        cannot "$place cannot be written; name another folder with RAILYARD_MACHINES."
    exec 8>"$place/.lock"
    flock 8
    for old in "$place"/root.*; do
        [ -d "$old" ] || continue
        exec 9>"$old/lock"
        if flock --nonblock 9; then rm -rf --one-file-system "$old"; fi
        exec 9>&-
    done
    [ "$(df --output=avail -BM "$place" | tail -n 1 | tr -dc 0-9)" -ge 8000 ] ||
        cannot "there are less than 8 GB free in $place; name another folder with RAILYARD_MACHINES."
    machine=$(mktemp -d "$place/root.XXXXXX")
    exec 9>"$machine/lock"
    flock 9
    exec 8>&-
}

run_machine() {
    local targets=$1 probe probes='' status=0
    make_folder
    command -v debootstrap >/dev/null || "$here/setup.sh" only machine || cannot "debootstrap cannot be had; see above."
    for probe in "${PROBES[@]}"; do
        if works "$probe"; then probes+=$probe$'\n'; fi
    done
    setpriv --pdeathsig KILL -- env --default-signal unshare --mount --pid --ipc --fork --kill-child --mount-proc -- \
        bash "$here/fresh-machine.sh" --inside "$machine" "$targets" "${probes%$'\n'}" </dev/null 9>&- &
    child=$!
    wait "$child" || status=$?
    child=
    rm -rf --one-file-system "$machine"
    machine=
    exec 9>&-
    return $status
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/.."
home=~ # without HOME, too
export HOME=$home PATH=$PATH:/usr/sbin:/sbin
place=${RAILYARD_MACHINES:-/var/lib/railyard/machines}
kernels=${RAILYARD_KERNEL_CACHE:-${XDG_CACHE_HOME:-$home/.cache}/railyard/kernel}
if [ "${1:-}" = --inside ]; then
    make_and_enter "${@:2}"
fi
[ $# -gt 0 ] || { echo "usage: scripts/fresh-machine.sh TARGET[,TARGET...]..." >&2; exit 2; }
known=$(sed -n 's/^\([a-z][a-z -]*\):.* ## .*/\1/p' Makefile $(compgen -G 'tests/*/*.mk') | tr '\n' ' ')
for name in ${*//,/ }; do
    [[ " $known" == *" $name "* ]] || {
        echo "fresh-machine: make has no target '$name'; it has ${known% }." >&2
        exit 2
    }
done
[ "$(id -u)" -eq 0 ] || cannot "it needs root, for debootstrap and mounts."
works 'unshare --mount --pid --ipc --fork --mount-proc true' ||
    cannot "this machine permits no mounts in namespaces of their own."
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
for targets in "$@"; do
    run_machine "$targets" || exit $?
done
