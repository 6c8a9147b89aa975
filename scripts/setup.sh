#!/usr/bin/env bash
# Sets up a Debian 12 machine for Railyard: Debian packages that are missing, then the Python environment in .venv.
# Idempotent; says nothing and takes milliseconds when everything is there, else what it installs and why.
#   setup.sh            what a build and a run need: the rows of `base`
#   setup.sh SET…       also the rows of these sets; where they cannot be had, it says so and goes on
#   setup.sh only SET   nothing but the rows of that set, and exit code 2 where they cannot be had
#   setup.sh --rows     prints set, package and reason of each row, separated by tabs: docs/howto/install.md has them
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# SET THING PACKAGE WHY. The Debian package is installed where the thing is not there:
#   bin:NAME a program, pc:NAME a pkg-config module, file:PATH a file, any:FUNCTION what that function looks for.
ROWS='
base    bin:gcc          gcc                 compiles the C programs
base    bin:make         make                runs this
base    bin:pkg-config   pkg-config          finds the C libraries
base    bin:git          git                 says which revision a result is of
base    file:/usr/include/sys/socket.h libc6-dev headers and libraries of C
base    pc:gnutls        libgnutls28-dev     TLS and cryptography of QUIC
base    any:has_gcm      libipsec-mb-dev     AES-GCM of packets, on x86-64
base    pc:libnghttp3    libnghttp3-dev      HTTP/3
base    pc:jansson       libjansson-dev      reads and writes JSON
base    pc:yaml-0.1      libyaml-dev         reads YAML
base    pc:cmocka        libcmocka-dev       runs the C tests
base    bin:clang-format clang-format        checks the layout of the C sources
base    bin:ip           iproute2            makes the devices and routes of mpshell
base    bin:unshare      util-linux          makes namespaces
base    bin:setpriv      util-linux          gives up rights
base    bin:sysctl       procps              sets options of the kernel in a namespace
base    any:has_python   python3             runs railyard
base    any:has_python   python3-venv        makes .venv for it
browser bin:chromium     chromium            prints reports as PDF, and the tests look at pages in it
browser file:/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf fonts-dejavu-core the font of those pages
test    bin:iptables     iptables            mpshell --nat uses it, and one test does
test    bin:groff        groff-base          checks the man pages
test    bin:tshark       tshark              decrypts captures of runs, as one test checks
test    bin:g++          g++                 compiles the public headers as C++
kernel  file:/usr/src/linux-source-6.12.tar.xz linux-source-6.12 the source of the time-travel kernel
kernel  bin:flex         flex                builds it
kernel  bin:bison        bison               builds it
kernel  bin:bc           bc                  builds it
kernel  file:/usr/include/libelf.h libelf-dev builds it
kernel  file:/usr/include/openssl/ssl.h libssl-dev builds it
kernel  bin:xz           xz-utils            unpacks it
kernel  bin:patch        patch               patches it
docker  bin:docker       docker.io           the client of containers
docker  any:has_engine   docker.io           an engine, where none answers
docker  any:has_compose  docker-compose      runs the compose files
docker  bin:debootstrap  debootstrap         makes the base image
fuzz    bin:clang        clang               compiles the harnesses
fuzz    any:has_fuzzer   libclang-rt-14-dev  libFuzzer
fuzz    bin:llvm-cov     llvm                says which lines were reached
tidy    bin:clang-tidy   clang-tidy          checks the C sources
peers   bin:gtlsclient   ngtcp2-client       a QUIC client of others
peers   bin:gtlsserver   ngtcp2-server       a QUIC server of others
peers   bin:caddy        caddy               a server of HTTP/3 of others
peers   bin:cmake        cmake               builds tquic and quiche
peers   bin:g++          g++                 builds tquic and quiche
peers   any:has_libclang libclang-dev        builds quiche and s2n-quic, by the headers of BoringSSL
machine bin:debootstrap  debootstrap         makes the root of make fresh-machine
'
# What is missing without a set.
without() {
    case $1 in
    browser) echo "there is no PDF and the tests that look at pages are skipped" ;;
    test) echo "some tests are skipped" ;;
    kernel) echo "the time-travel kernel cannot be built" ;;
    docker) echo "not all of the containers can be made or tested" ;;
    fuzz) echo "nothing can be fuzzed" ;;
    tidy) echo "nothing can be checked by it" ;;
    peers) echo "those stacks are missing in the matrix" ;;
    machine) echo "no fresh machine can be made" ;;
    esac
}

die() {
    printf 'setup: %s\n' "$1" >&2
    exit 2
}

LOG=$(mktemp -t railyard-setup.XXXXXX)
TICKER=
PYTHON_JOB=
trap 'stop_ticking; stop_python; rm -f "$LOG" "$LOG.python"' EXIT

# On a terminal, the seconds since now, until it is ended.
tick() {
    local begin=$SECONDS
    while sleep 1; do
        printf '\r       %d s\r' $((SECONDS - begin))
    done
}

stop_ticking() {
    [ -z "$TICKER" ] || kill "$TICKER" 2>/dev/null || true
    TICKER=
}

stop_python() { [ -z "$PYTHON_JOB" ] || kill -- -"$PYTHON_JOB" 2>/dev/null || true; }

# Says what is done and how long that usually takes, and does it with its output kept in $LOG.
step() {
    local status=0
    echo "setup: $1"
    if [ -t 1 ] && [ "$BASHPID" = $$ ]; then
        tick &
        TICKER=$!
    fi
    DEBIAN_FRONTEND=noninteractive "${@:2}" >"$LOG" 2>&1 || status=$?
    stop_ticking
    return $status
}

# The same, and without it nothing goes on: shows the end of its output and one sentence if it fails.
required_step() {
    local what=$1 sentence=$2
    if ! step "$what" "${@:3}"; then
        tail -n 15 "$LOG" >&2
        die "$sentence"
    fi
}

# The client alone is no engine: docker.io brings both. An engine that answers may run anywhere.
has_engine() { docker info >/dev/null 2>&1 || present bin:dockerd; }
has_compose() { docker compose version >/dev/null 2>&1 || present bin:docker-compose; }
has_fuzzer() { [ -e "$(clang -print-runtime-dir 2>/dev/null)/libclang_rt.fuzzer-$(uname -m).a" ]; }
has_gcm() { [ "$(uname -m)" != x86_64 ] || [ -e /usr/include/intel-ipsec-mb.h ]; }
has_libclang() { compgen -G '/usr/lib/llvm-*/lib/libclang.so' >/dev/null; }
has_python() { venv_ready || find_python >/dev/null; }

present() {
    case $1 in
    bin:*) [ -x "$(PATH=$PATH:/usr/sbin:/sbin command -v "${1#bin:}")" ] ;;
    pc:*) pkg-config --exists "${1#pc:}" 2>/dev/null ;;
    file:*) [ -e "${1#file:}" ] || [ -e "/usr/include/$(uname -m)-linux-gnu/${1#file:/usr/include/}" ] ;;
    any:*) "${1#any:}" ;;
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

STAMP=.venv/.setup-stamp
WANTED=$(cat pyproject.toml requirements.lock scripts/setup.sh | sha256sum | cut -d' ' -f1)
venv_ready() {
    [ -x .venv/bin/python ] && [ -x .venv/bin/railyard ] && [ "$(cat "$STAMP" 2>/dev/null)" = "$WANTED $PWD" ]
}

# Prints "SET PACKAGE WHY", separated by tabs, for each missing package of the named sets.
missing_of() {
    local set thing package why sets=" $* "
    while read -r set thing package why; do
        if [[ -n $set && $sets == *" $set "* ]] && ! present "$thing" </dev/null; then
            printf '%s\t%s\t%s\n' "$set" "$package" "$why"
        fi
    done <<<"$ROWS"
}

# Makes .venv, with what requirements.lock names and the project itself.
set_up_python() {
    local python version count
    python=$(find_python) ||
        die "no Python 3.11 or newer with the venv module was found; install python3-venv or set PYTHON to one."
    version=$("$python" --version)
    count=$(grep -c '^[a-z].*==' requirements.lock || true)
    if [ -x .venv/bin/python ] && ! .venv/bin/python -c 'import pip' >/dev/null 2>&1; then
        rm -rf .venv
    fi
    [ -x .venv/bin/python ] || required_step "making .venv with $version ($python) (about 10 s)" \
        "could not make the virtual environment .venv." "$python" -m venv --clear .venv
    # What is installed is what the lock file names, by version and hash; no package is built here but the project itself.
    # Python compiles a module when it is first imported; compiling all of them now would take longer than all else here.
    # pip itself comes first: Debian's takes twice the processor time for the others.
    PIP_INSTALL=(.venv/bin/python -m pip install --quiet --disable-pip-version-check)
    LOCKED=("${PIP_INSTALL[@]}" --no-compile --require-hashes --only-binary :all: -r)
    install_locked() { "${LOCKED[@]}" <(sed -n '/^pip==/,/[^\\]$/p' requirements.lock) && "${LOCKED[@]}" requirements.lock; }
    required_step "installing the $count Python packages of requirements.lock into .venv (about 30 s)" \
        "pip could not install the Python packages that requirements.lock names; see above." install_locked
    required_step "installing the project itself (about 5 s)" "pip could not install the project itself; see above." \
        "${PIP_INSTALL[@]}" --no-deps --no-build-isolation -e .
    printf '%s %s\n' "$WANTED" "$PWD" >"$STAMP"
}

# A machine that has just started may still be installing its own updates.
INSTALL=(apt-get install -q -y -o DPkg::Lock::Timeout=300 --no-install-recommends)
sets=("$@")
required=base
case ${1:-} in
--rows)
    while read -r set _ package why; do [ -z "$set" ] || printf '%s\t%s\t%s\n' "$set" "$package" "$why"; done <<<"$ROWS"
    exit
    ;;
only) sets=("${@:2}") required=${2:?usage: setup.sh only SET} ;;
esac
for set in "${sets[@]}"; do
    known=$(awk 'NF && $1 != "base" && !seen[$1]++ { printf "%s ", $1 }' <<<"$ROWS")
    [[ " $known" == *" $set "* ]] || die "there is no set '$set'; it takes some of ${known}or nothing."
done
[ "$required" != base ] || sets=(base "${sets[@]}")

missing=$(missing_of "${sets[@]}")
if [ -z "$missing" ] && { [ "$required" != base ] || venv_ready; }; then
    exit 0
fi
if [ -n "$missing" ]; then
    # Packages of a set, each once.
    packages_of() { awk -F'\t' -v set="$1" '$1 == set && !seen[$2]++ { print $2 }' <<<"$missing"; }
    mapfile -t packages < <(packages_of "$required")
    problem=
    command -v apt-get >/dev/null || problem="this is not Debian"
    [ -n "$problem" ] || [ "$(id -u)" -eq 0 ] || problem="installing them needs root"
    if [ -z "$problem" ]; then
        echo "setup: these Debian packages are missing:"
        awk -F'\t' '!seen[$2]++ { printf "  %-18s %s\n", $2, $3 }' <<<"$missing"
        if ! step "reading the lists of Debian packages (about 10 s)" apt-get update -q; then
            problem="apt-get update failed"
            tail -n 5 "$LOG" >&2
        fi
    fi
    if [ -n "$problem" ] && [ ${#packages[@]} -gt 0 ]; then
        die "these Debian packages are missing, and $problem: ${packages[*]}."
    fi
    if [ ${#packages[@]} -gt 0 ]; then
        required_step "installing Debian packages (about 1 min): ${packages[*]}" "apt-get could not install ${packages[*]}; see above." \
            "${INSTALL[@]}" "${packages[@]}"
    fi
    # pip works while apt-get brings what is optional; as a group of processes, it ends with this script.
    if [ "$required" = base ] && [ ${#sets[@]} -gt 1 ] && ! venv_ready; then
        set -m
        (LOG=$LOG.python && set_up_python) &
        PYTHON_JOB=$!
        set +m
    fi
    for set in "${sets[@]}"; do
        mapfile -t packages < <(packages_of "$set")
        if [ "$set" = "$required" ] || [ ${#packages[@]} -eq 0 ]; then continue; fi
        if [ -n "$problem" ]; then
            echo "setup: ${packages[*]} is missing, and $problem, so $(without "$set"); all else goes on." >&2
        elif ! step "installing ${packages[*]} (about 1 min)" "${INSTALL[@]}" "${packages[@]}"; then
            tail -n 5 "$LOG" >&2
            echo "setup: apt-get could not install ${packages[*]}, so $(without "$set"); all else goes on." >&2
        fi
    done
fi
[ "$required" = base ] || exit 0

if [ -n "$PYTHON_JOB" ]; then
    wait "$PYTHON_JOB" || exit
    PYTHON_JOB=
else
    venv_ready && exit 0
    set_up_python
fi
echo "setup: ready"
