#!/usr/bin/env bash
# Sets up a Debian 12 machine for Railyard: Debian packages that are missing, then the Python environment in .venv.
# Idempotent; says nothing and takes milliseconds when everything is there.
#   setup.sh            what a build and a run need
#   setup.sh browser    also what looks at pages and prints them; where that cannot be had, it says so and goes on
#   setup.sh fuzz       also what fuzzing needs, likewise
#   setup.sh kernel     also what builds the time-travel kernel, likewise
#   setup.sh tidy       also clang-tidy, likewise
#   setup.sh docker     also an engine and what makes a base image, likewise
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

die() {
    printf 'setup: %s\n' "$1" >&2
    exit 2
}

LOG=$(mktemp -t railyard-setup.XXXXXX)
TICKER=
trap 'stop_ticking; rm -f "$LOG"' EXIT

# On a terminal, the seconds since now, until it is ended.
tick() {
    local begin=$SECONDS
    while sleep 1; do
        printf '\r       %d s\r' $((SECONDS - begin))
    done
}

# Says what is done and how long that usually takes, and does it with its output kept; shows the end of that output and
# one sentence if it fails.
quietly() {
    local what=$1 sentence=$2
    shift 2
    echo "setup: $what"
    if [ -t 1 ]; then
        tick &
        TICKER=$!
    fi
    if ! "$@" >"$LOG" 2>&1; then
        tail -n 15 "$LOG" >&2
        die "$sentence"
    fi
    stop_ticking
}

stop_ticking() {
    [ -z "$TICKER" ] || kill "$TICKER" 2>/dev/null || true
    TICKER=
}

# What a build and a run need, as "thing to look for=Debian package that brings it".
#   bin:NAME a program, pc:NAME a pkg-config module, file:PATH a file.
NEEDS=(
    bin:gcc=gcc bin:make=make bin:pkg-config=pkg-config bin:git=git bin:ip=iproute2 bin:unshare=util-linux
    bin:setpriv=util-linux bin:sysctl=procps file:/usr/include/sys/socket.h=libc6-dev pc:gnutls=libgnutls28-dev
    pc:libnghttp3=libnghttp3-dev pc:jansson=libjansson-dev pc:yaml-0.1=libyaml-dev pc:cmocka=libcmocka-dev bin:clang-format=clang-format
)

# Chromium prints the report as PDF, and the tests look at the pages in it. Without it there is no PDF, and those tests skip.
EXTRAS=()
without=
case ${1:-} in
"") ;;
browser)
    EXTRAS=(bin:chromium=chromium file:/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf=fonts-dejavu-core)
    without="there will be no PDF"
    ;;
docker)
    # The client alone is no engine: docker.io brings both. An engine that answers may run anywhere.
    EXTRAS=(bin:docker=docker.io bin:debootstrap=debootstrap)
    docker info >/dev/null 2>&1 || EXTRAS+=(bin:dockerd=docker.io)
    docker compose version >/dev/null 2>&1 || EXTRAS+=(bin:docker-compose=docker-compose)
    without="not all of the containers can be made or tested"
    ;;
kernel)
    EXTRAS=(file:/usr/src/linux-source-6.12.tar.xz=linux-source-6.12 bin:flex=flex bin:bison=bison bin:bc=bc
        file:/usr/include/libelf.h=libelf-dev file:/usr/include/openssl/ssl.h=libssl-dev bin:xz=xz-utils bin:patch=patch)
    without="the time-travel kernel cannot be built"
    ;;
fuzz)
    EXTRAS=(bin:clang=clang "file:$(clang -print-runtime-dir 2>/dev/null)/libclang_rt.fuzzer-$(uname -m).a=libclang-rt-14-dev"
        bin:llvm-cov=llvm)
    without="nothing can be fuzzed"
    ;;
tidy)
    EXTRAS=(bin:clang-tidy=clang-tidy)
    without="nothing can be checked by it"
    ;;
*) die "unknown argument '$1'; it takes 'browser', 'docker', 'fuzz', 'kernel', 'tidy' or nothing." ;;
esac

present() {
    case $1 in
    bin:*) [ -x "$(PATH=$PATH:/usr/sbin:/sbin command -v "${1#bin:}")" ] ;;
    pc:*) pkg-config --exists "${1#pc:}" 2>/dev/null ;;
    file:*) [ -e "${1#file:}" ] || [ -e "/usr/include/$(uname -m)-linux-gnu/${1#file:/usr/include/}" ] ;;
    esac
}

# An interpreter of at least 3.11 that can make virtual environments. `python3` on PATH may be any build of it.
usable_python() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3 /usr/bin/python3 python3.13 python3.12 python3.11; do
        if usable_python "$candidate"; then
            "$candidate" -c 'import sys; print(sys.executable)'
            return 0
        fi
    done
    return 1
}

missing=()
for need in "${NEEDS[@]}"; do
    present "${need%%=*}" || missing+=("${need#*=}")
done
wanted=()
for need in "${EXTRAS[@]}"; do
    present "${need%%=*}" || wanted+=("${need#*=}")
done
if [ ${#wanted[@]} -gt 0 ]; then
    mapfile -t wanted < <(printf '%s\n' "${wanted[@]}" | sort -u)
    if command -v apt-get >/dev/null && [ "$(id -u)" -eq 0 ]; then
        echo "setup: installing Debian packages: ${wanted[*]}"
        { DEBIAN_FRONTEND=noninteractive apt-get update -q &&
            DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${wanted[@]}"; } >"$LOG" 2>&1 ||
            echo "setup: apt-get could not install ${wanted[*]}, so $without; all else goes on." >&2
    else
        echo "setup: ${wanted[*]} is missing, and installing it needs root on Debian, so $without; all else goes on." >&2
    fi
fi
STAMP=.venv/.setup-stamp
WANTED=$(cat pyproject.toml requirements.lock scripts/setup.sh | sha256sum | cut -d' ' -f1)
venv_ready() {
    [ -x .venv/bin/python ] && [ -x .venv/bin/railyard ] && [ "$(cat "$STAMP" 2>/dev/null)" = "$WANTED $PWD" ]
}
if [ ${#missing[@]} -eq 0 ] && venv_ready; then
    exit 0
fi
if ! venv_ready && ! find_python >/dev/null; then
    missing+=(python3 python3-venv)
fi

if [ ${#missing[@]} -gt 0 ]; then
    mapfile -t packages < <(printf '%s\n' "${missing[@]}" | sort -u)
    command -v apt-get >/dev/null || die "these are missing and this is not Debian, so install them yourself: ${packages[*]}."
    [ "$(id -u)" -eq 0 ] || die "these Debian packages are missing, and installing them needs root: ${packages[*]}."
    export DEBIAN_FRONTEND=noninteractive
    quietly "reading the lists of Debian packages (about 10 s)" \
        "apt-get update failed; see above, then run this again." apt-get update -q
    quietly "installing Debian packages (about 1 min): ${packages[*]}" \
        "apt-get could not install ${packages[*]}; see above." apt-get install -q -y --no-install-recommends "${packages[@]}"
fi

venv_ready && exit 0
python=$(find_python) || die "no Python 3.11 or newer with the venv module was found; install python3-venv or set PYTHON to one."
version=$("$python" --version)
if [ -x .venv/bin/python ] && ! .venv/bin/python -c 'import pip' >/dev/null 2>&1; then
    rm -rf .venv
fi
[ -x .venv/bin/python ] || quietly "making .venv with $version ($python) (about 10 s)" \
    "could not make the virtual environment .venv." "$python" -m venv --clear .venv
# What is installed is what the lock file names, by version and hash; no package is built here but the project itself.
# Python compiles a module when it is first imported; compiling all of them now would take longer than all else here.
quietly "installing the Python packages of requirements.lock (about 30 s)" \
    "pip could not install the Python packages that requirements.lock names; see above." \
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes \
    --only-binary :all: -r requirements.lock
quietly "installing the project itself (about 5 s)" "pip could not install the project itself; see above." \
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
printf '%s %s\n' "$WANTED" "$PWD" >"$STAMP"
echo "setup: ready"
