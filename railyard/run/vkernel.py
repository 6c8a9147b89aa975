"""The file of the time-travel kernel: its place, its options, and its build."""

import hashlib
import os
import platform
import re
import subprocess
from functools import cache
from pathlib import Path

from railyard.base.errors import UserError
from railyard.base.paths import PROGRAM_NAMES, ROOT, program
from railyard.base.provenance import sha256_of
from railyard.run import children

RECIPE = ROOT / "emulator" / "kernel"
MADE_FROM = {"patch": "linux.patch", "options": "options", "recipe": "build.sh"}
MINUTES = 8  # of processor time for a build
# Without one of these options no run can start, or its figures are wrong.
NEEDED = (
    "UML_TIME_TRAVEL_SUPPORT",
    "HOSTFS",
    "BLK_DEV_INITRD",
    "TUN",
    "NET_NS",
    "NET_SCH_FQ",
    "MPTCP",
    "HIGH_RES_TIMERS",
)


def cache_folder() -> Path:
    """The cache of kernels, the same as in emulator/kernel/build.sh."""
    own = os.environ.get("RAILYARD_KERNEL_CACHE")
    xdg = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(own) if own else xdg / "railyard" / "kernel"


def at_hand() -> Path | None:
    """The kernel for runs: $RAILYARD_KERNEL, else the one that `make kernel` made or found last. None: there is
    none."""
    named = os.environ.get("RAILYARD_KERNEL")
    if named:
        return Path(named).resolve()
    link = cache_folder() / "linux"
    return link.resolve() if link.exists() else None


def _first_line(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.partition("\n")[0]


def release() -> str | None:
    """The release of the kernel that runs boot, from its own `--version`. None if no kernel is built."""
    kernel = at_hand()
    return None if kernel is None else _first_line(str(kernel), "--version")


def stale() -> str | None:
    """The part of the cached kernel's origin that has changed since emulator/kernel/build.sh recorded it: source,
    patch, options, recipe, compiler or linker. None: nothing has changed, or RAILYARD_KERNEL names the kernel."""
    if os.environ.get("RAILYARD_KERNEL") or not (cache_folder() / "linux").exists() or not RECIPE.is_dir():
        return None
    record = (cache_folder() / "linux").resolve().parent / "made"
    if not record.is_file():
        return "record of its origin"
    made = dict(line.split("\t", 1) for line in record.read_text().splitlines())
    name, _, facts = made.get("source", "").partition("\t")
    source = Path(name)
    if source.is_file() and facts != f"{source.stat().st_size} {int(source.stat().st_mtime)}":
        return "source"
    for part, file in MADE_FROM.items():
        if part == "patch" and not facts:
            continue  # a folder is built without it
        if made.get(part) != sha256_of(RECIPE / file):
            return part
    for part, tool in (("compiler", os.environ.get("CC", "gcc")), ("linker", "ld")):
        version = _first_line(tool, "--version")
        if version is not None and version != made.get(part):
            return part
    return None


def why_not() -> str | None:
    """Why no run can be done in a kernel on this machine without building one. None: it can."""
    if platform.machine() != "x86_64":
        return f"time travel needs an x86-64 machine, and this is {platform.machine()}"
    if at_hand() is None:
        return "no kernel is at hand: `make kernel` builds one, RAILYARD_KERNEL=FILE names one"
    if (changed := stale()) is not None:
        return f"the kernel in {cache_folder()} has another {changed}: `make kernel` builds the right one"
    return None


def check_recipe() -> None:
    """Raises UserError outside of a checkout, which a build of the kernel needs."""
    if not RECIPE.is_dir():
        raise UserError(
            "the kernel arena needs a kernel, which `make kernel` builds in a checkout of Railyard, once for this "
            "user; RAILYARD_KERNEL=FILE names another one."
        )


def build() -> Path:
    """Builds the kernel. The build shows its progress, and the reason if it fails, on standard error. Raises
    UserError."""
    done = subprocess.run([RECIPE / "check-source.sh"], text=True, check=False)
    if done.returncode == 0:
        done = children.built([str(RECIPE / "build.sh")], stdout=subprocess.PIPE)
    if done.returncode != 0:
        raise UserError("there is no kernel for the kernel arena; see above, or name one with RAILYARD_KERNEL.")
    return Path(done.stdout.strip())


@cache
def options_of(kernel: Path) -> str:
    """The options with which a kernel was built, from its own `--showconfig`."""
    try:
        done = subprocess.run([kernel, "--showconfig"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"{kernel}: it cannot be run as a kernel: {error}.") from None
    return done.stdout


def controllers(kernel: Path) -> list[str]:
    """The congestion controllers of its TCP, which always has Reno."""
    names = re.findall(r"^CONFIG_TCP_CONG_([A-Z0-9_]+)=y$", options_of(kernel), re.MULTILINE)
    return sorted({"reno"} | {name.lower() for name in names if name != "ADVANCED"})


def check(kernel: Path) -> None:
    """Raises UserError if the file is no kernel for this arena or does not boot on this machine."""
    if not os.access(kernel, os.X_OK):
        raise UserError(f"{kernel}: there is no such program; build a kernel with `make kernel`.")
    enabled = set(re.findall(r"^CONFIG_([A-Z0-9_]+)=y$", options_of(kernel), re.MULTILINE))
    missing = [name for name in NEEDED if name not in enabled]
    if missing:
        names = ", ".join(f"CONFIG_{name}" for name in missing)
        raise UserError(
            f"{kernel}: it was built without {names}; build one with the options of emulator/kernel/options "
            "(`make kernel`)."
        )
    if (reason := _why_it_does_not_boot(kernel)) is not None:
        raise UserError(f"{kernel}: it does not boot on this machine: {reason}.")


@cache
def _why_it_does_not_boot(kernel: Path) -> str | None:
    """Why the kernel does not boot, for example because it does not know some of the machine's registers. None: it
    boots. A boot takes 0.1 s."""
    machine = [program("vkernel"), "--kernel", kernel, "--folder", kernel.parent, "--limit", "60", "--", "/bin/true"]
    done = subprocess.run(children.ends_with_us(list(map(str, machine))), capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines() or [f"vkernel ended with {done.returncode}"]
    return lines[-1].removeprefix("vkernel: ").removesuffix(".")


sha256 = cache(sha256_of)


def _libraries_of(file: Path) -> list[Path]:
    done = subprocess.run(["ldd", file], capture_output=True, text=True, check=False)
    return [Path(path) for path in re.findall(r"(/\S+) \(0x", done.stdout)]


@cache
def libraries_sha256() -> str:
    """One hash over the names and contents of the host's libraries that the programs of a run load."""
    libraries = {path for name in PROGRAM_NAMES for path in _libraries_of(program(name))} | set(
        _libraries_of(Path("/bin/sh"))
    )
    text = "".join(f"{path.name} {sha256(path.resolve())}\n" for path in sorted(libraries, key=lambda path: path.name))
    return hashlib.sha256(text.encode()).hexdigest()
