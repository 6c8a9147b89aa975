"""The provenance of results: revision, machine, programs, settings."""

import hashlib
import json
import os
import platform
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from railyard import __version__
from railyard.base.files import open_regular
from railyard.base.paths import IN_CHECKOUT, PACKAGE, REVISION_FILE, ROOT

# The folders with the sources of the programs and the orchestrator.
ROOMS = ("transport", "lib", "emulator", "server", "player", "apps", "peers", "railyard", "Makefile")
# Also in a clone of another user's, as root in a container has it: its code runs already. Its index is not written.
GIT = ("git", "--no-optional-locks", "-c", "safe.directory=*")
LIBRARIES = ("gnutls", "libnghttp3", "jansson", "yaml-0.1")
GCM_HEADER = Path("/usr/include/intel-ipsec-mb.h")  # as in the Makefile; pkg-config does not know the library


def _output(*command: str) -> str | None:
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@cache
def git_state() -> dict[str, Any]:
    """Revision and whether the work tree differs from it. Both are None if neither git nor the installed package knows.
    A new file counts only if it can change a program, so a new experiment does not."""
    if not IN_CHECKOUT:
        return _installed_state()
    # The repository around the checkout may be another one, which has no Makefile here.
    found = _output(*GIT, "rev-parse", "HEAD", "HEAD:./Makefile")
    revision = None if found is None else found.splitlines()[0]
    changed = _output(*GIT, "status", "--porcelain", "--untracked-files=no", "--", ".")
    new = _output(*GIT, "status", "--porcelain", "--untracked-files=normal", "--", *ROOMS)
    known = revision is not None and changed is not None and new is not None
    return {"revision": revision, "dirty": bool(changed or new) if known else None}


def _installed_state() -> dict[str, Any]:
    """The state of the checkout that the installed package was made from."""
    try:
        revision_file = json.loads(REVISION_FILE.read_text())
    except (OSError, ValueError):
        return {"revision": None, "dirty": None}
    return {"revision": revision_file["revision"], "dirty": revision_file["dirty"]}


def version_words() -> str:
    """`railyard 0.1.0 (revision 0123456789ab, with changes)`, with what is known of it."""
    state = git_state()
    if state["revision"] is None:
        return f"railyard {__version__}"
    return f"railyard {__version__} (revision {state['revision'][:12]}{', with changes' if state['dirty'] else ''})"


@cache
def _cpu_model() -> str | None:
    names = (line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name"))
    return next((name.partition(":")[2].strip() for name in names), None)


def cpu() -> dict[str, Any]:
    return {"model": _cpu_model(), "cores": len(os.sched_getaffinity(0)), "load_1min": os.getloadavg()[0]}


@cache
def versions() -> dict[str, str | None]:
    library_versions = {name: _output("pkg-config", "--modversion", name) for name in LIBRARIES}
    gcm = re.search(r'IMB_VERSION_STR "(.*)"', GCM_HEADER.read_text()) if GCM_HEADER.is_file() else None
    library_versions["intel-ipsec-mb"] = gcm[1] if gcm else None
    return {"railyard": __version__, "python": platform.python_version(), **library_versions}


def kernel() -> str:
    system = os.uname()
    return f"{system.sysname} {system.release} {system.version} {system.machine}"


def sha256_of(path: Path) -> str:
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


Stamp = tuple[Path, int, int, int, int]


def stamp_of(file: Path) -> Stamp:
    """Properties that change with a file's content."""
    facts = file.stat()
    return file, facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns


@cache
def _sha256(stamp: Stamp) -> str:
    return sha256_of(stamp[0])


def sha256_once(file: Path) -> str:
    """sha256_of() of a file that many runs have. It is read again only if it changed."""
    return _sha256(stamp_of(file))


def code_sha256() -> str:
    """SHA-256 over the Python files of the package."""
    files = sorted(PACKAGE.rglob("*.py"))
    return hashlib.sha256(
        "".join(f"{file.relative_to(PACKAGE)} {sha256_of(file)}\n" for file in files).encode()
    ).hexdigest()


def read_sysctl(name: str) -> str | None:
    try:
        return " ".join(Path("/proc/sys", *name.split(".")).read_text().split())
    except OSError:
        return None


def mptcp_counters(netstat: str) -> dict[str, int]:
    """The MPTcpExt line of /proc/net/netstat as a mapping. Empty if the kernel has no MPTCP."""
    lines = [line.split() for line in netstat.splitlines() if line.startswith("MPTcpExt:")]
    if len(lines) < 2:
        return {}
    return {name: int(value) for name, value in zip(lines[0][1:], lines[1][1:], strict=True)}
