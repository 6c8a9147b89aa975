"""The two builds that the gate compares: the baseline revision in a git worktree, and the working tree."""

import fcntl
import filecmp
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from railyard.arenas.kernel import kernel_machine
from railyard.base.errors import UserError
from railyard.base.paths import IN_CHECKOUT, ROOT
from railyard.base.provenance import GIT, git_state, sha256_of
from railyard.run import children
from railyard.run.runspec import KernelMachine

GATE_DIR = ROOT / "build" / "gate"
PROGRAM = "xlink-sim"
SIM_ROOM = "emulator/sim"
BUILT = ".railyard-built"
OBJECTS = ("build/release", "build/generated")
COMPILED_BY = ("Makefile", "tests/fuzz/fuzz.mk", "scripts/registry.sh")  # what else decides what an object is
BUILD_LIMIT_S = 900.0


@dataclass(frozen=True)
class Build:
    """One version: its name in output, its name in file paths, and its program."""

    title: str
    key: str
    program: Path
    program_sha256: str
    # The kernel that runs of this version boot, in the kernel arena. The programs in it are those of the working tree.
    kernel: KernelMachine | None = None

    @property
    def programs_sha256(self) -> dict[str, str] | None:
        """The hashes of the programs of its runs, by name. None: the programs of this installation."""
        return {PROGRAM: self.program_sha256} if self.kernel is None else None

    @cached_property
    def code_sha256(self) -> str:
        """The SHA-256 of the program without debugging information. Programs with equal hashes behave equally."""
        if self.kernel is not None:
            return self.program_sha256
        with tempfile.NamedTemporaryFile(dir=GATE_DIR, prefix="code-") as stripped:
            options = ["--strip-all", "--remove-section=.note.gnu.build-id", "-o", stripped.name]
            subprocess.run(["strip", *options, str(self.program)], check=True, capture_output=True)
            return sha256_of(Path(stripped.name))


def _git(*arguments: str, tree: Path = ROOT) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        return subprocess.run(
            [*GIT, "-C", str(tree), *arguments], capture_output=True, text=True, check=False, env=environment
        )
    except FileNotFoundError:
        raise UserError("the program 'git' is not there; install the Debian package git.") from None


def _git_or_fail(sentence: str, *arguments: str, tree: Path = ROOT) -> None:
    done = _git(*arguments, tree=tree)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise UserError(f"{sentence}{f': {lines[-1]}' if lines else ''}.")


def _make(tree: Path, log: Path, folder: str = "build/bin") -> Path:
    """Builds the program of a tree into a folder of that tree and returns its path. If make fails, the log says why.
    Link-time optimisation is off: it takes longer than it saves in the runs, and outputs are the same."""
    environment = children.make_environment()
    jobs = len(os.sched_getaffinity(0))
    log.parent.mkdir(parents=True, exist_ok=True)
    command = ["make", "-C", str(tree), f"-j{jobs}", f"BIN={folder}", "FAST_LINK=1", f"{folder}/{PROGRAM}"]
    try:
        with log.open("wb") as output:
            done = children.built(command, BUILD_LIMIT_S, stdout=output, stderr=subprocess.STDOUT, env=environment)
    except subprocess.TimeoutExpired:
        raise UserError(f"{PROGRAM} of {tree} was not built within {BUILD_LIMIT_S:g} s, see {log}.") from None
    program = tree / folder / PROGRAM
    if done.returncode != 0 or not program.is_file():
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        error = next((line for line in lines if "error" in line or "***" in line), "make said nothing")
        raise UserError(f"{PROGRAM} of {tree} could not be built, see {log}: {error}")
    return program


def kernels(baseline: Path | None) -> tuple[Build, Build]:
    """The two versions of a suite in the kernel arena: two kernels."""
    if baseline is None:
        raise UserError(
            "a suite in the kernel arena compares two kernels; name the one to compare with by --baseline-kernel FILE."
        )
    builds = []
    for machine, name in ((kernel_machine(baseline), "baseline"), (kernel_machine(), "kernel")):
        title = f"the {name} {machine.file} ({machine.sha256[:12]})"
        builds.append(Build(title, f"kernel-{machine.sha256[:12]}", machine.file, machine.sha256, machine))
    return builds[0], builds[1]


def take_objects(tree: Path) -> None:
    """Copies the objects of the working tree into a tree, so that make compiles only what differs: a file with the same
    content gets the same modification time, and any other file is newer than the objects."""
    if not all(_is_same(name, tree) for name in COMPILED_BY):
        return
    for folder in OBJECTS:
        left_out = shutil.ignore_patterns("*.a", "*.so*")
        shutil.copytree(ROOT / folder, tree / folder, ignore=left_out, dirs_exist_ok=True)
    for name in _git("ls-files", "-z", tree=tree).stdout.split("\0"):
        if _is_same(name, tree):
            shutil.copystat(ROOT / name, tree / name)
        elif (tree / name).is_file():
            (tree / name).touch()


def _is_same(name: str, tree: Path) -> bool:
    files = (ROOT / name, tree / name)
    return all(file.is_file() for file in files) and filecmp.cmp(*files, shallow=False)


@contextmanager
def locked() -> Iterator[None]:
    """Lets one gate at a time run in a tree."""
    if not IN_CHECKOUT:
        raise UserError(
            f"the gate builds two revisions of a checkout, and {ROOT / 'railyard'} is in none; "
            "run `make setup` in a checkout and its .venv/bin/railyard."
        )
    GATE_DIR.mkdir(parents=True, exist_ok=True)
    with (GATE_DIR / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(f"{GATE_DIR}: another gate is running in this tree; wait for it.") from None
        yield


def revision_of(name: str) -> str:
    """The revision of the baseline. Raises UserError if it cannot be one."""
    _git_or_fail(f"{ROOT} is no git repository, so there is no baseline to build", "rev-parse", "--git-dir")
    done = _git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if done.returncode != 0:
        raise UserError(f"there is no revision '{name}' in {ROOT}; fetch it, or name another.")
    revision = done.stdout.strip()
    if not _git("ls-tree", "--name-only", revision, f"{SIM_ROOM}/").stdout.strip():
        raise UserError(
            f"the baseline {name} ({revision[:12]}) has no {PROGRAM}: it is older than the sim arena; "
            "name a later revision with --baseline."
        )
    return revision


def baseline(name: str) -> Build:
    """The build of a revision, in a worktree of its own that later gates use again."""
    revision = revision_of(name)
    whole = GATE_DIR / revision
    tree = whole / _git("rev-parse", "--show-prefix").stdout.strip()  # the project may be a folder of a repository
    if not (whole / BUILT).is_file():
        _git("worktree", "prune")
        if not (whole / ".git").exists():
            shutil.rmtree(whole, ignore_errors=True)
            _git_or_fail(
                f"the baseline {name} cannot be checked out into {whole}",
                *("worktree", "add", "--force", "--detach", str(whole), revision),
            )
        _git_or_fail(f"the baseline in {whole} cannot be restored", "reset", "--hard", revision, tree=whole)
        take_objects(tree)
        _make(tree, GATE_DIR / f"{revision}.build.log")
        (whole / BUILT).touch()
    program = tree / "build" / "bin" / PROGRAM
    return Build(f"{name} ({revision[:12]})", revision[:12], program, sha256_of(program))


def changed_since(name: str) -> list[str]:
    """The files in which the working tree differs from a revision."""
    known = _git("diff", "--name-only", "--relative", "-z", name).stdout
    new = _git("ls-files", "--others", "--exclude-standard", "-z").stdout
    return [file for file in f"{known}{new}".split("\0") if file]


def working_tree() -> Build:
    """The build of the tree as it is now, in a folder of its own: a later `make build` does not disturb the runs."""
    program = _make(ROOT, GATE_DIR / "working.build.log", str((GATE_DIR / "working").relative_to(ROOT)))
    changed = git_state()["dirty"]
    revision = _git("rev-parse", "--verify", "--quiet", "HEAD").stdout.strip()
    title = f"the working tree ({revision[:12] or 'no commit'}{' with changes' if changed else ''})"
    return Build(title, "working", program, sha256_of(program))
