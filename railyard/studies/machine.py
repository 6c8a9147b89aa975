"""What studies that start programs share: their output, the machine, instructions under callgrind, another revision of
this tree."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import shorten

from railyard.base.errors import UserError
from railyard.base.page import markdown_of
from railyard.base.paths import IN_CHECKOUT, ROOT
from railyard.base.provenance import cpu
from railyard.run.children import built, ends_with_us, make_environment
from railyard.run.confine import may_make_namespaces
from railyard.studies.study import Data

# callgrind counts each byte of a `rep movsb`, but vector copies as single instructions.
VALGRIND_ENV = {"GLIBC_TUNABLES": "glibc.cpu.x86_rep_movsb_threshold=1000000000"}
PYTHON_ENV = {"PYTHONHASHSEED": "0"}
WAIT_S = 900
MOST_LETTERS = 120  # of a command in a message


class Machine(Data):
    """The machine of a measurement."""

    model: str | None
    cores: int
    load_1min: tuple[float, float]  # before and after

    def markdown(self, by: str) -> str:
        """`by`: the version of Railyard that measured."""
        before, after = self.load_1min
        load = f"load of one minute {before:.1f} before, {after:.1f} after"
        return markdown_of([f"Measured by {by}: {self.model}, {self.cores} cores; {load}."])


def machine(load_before: float) -> Machine:
    """The machine, after a measurement. `load_before`: os.getloadavg()[0] before it."""
    now = cpu()
    return Machine(model=now["model"], cores=now["cores"], load_1min=(load_before, now["load_1min"]))


def check_namespaces(study: str, otherwise: str = "") -> None:
    """Raises UserError if this process may not make network namespaces. `otherwise`: what does not need them."""
    if not may_make_namespaces():
        raise UserError(f"{study} makes network namespaces; run it as root{otherwise}.")


def reason(error: UserError) -> str:
    """What an error says, to be kept: without the folder of this tree."""
    return str(error).replace(f"{ROOT}/", "")


def output_of(*command: str | Path, limit_s: float | None = None) -> str:
    """The output of a program, which ends with this process. Raises UserError if it fails, does not end in time or is
    not there."""
    words = shorten(" ".join(map(str, command)), MOST_LETTERS, placeholder="…")
    if shutil.which(command[0]) is None:
        raise UserError(f"the program '{command[0]}' is not there; install it.")
    try:
        done = subprocess.run(
            ends_with_us([*map(str, command)]),
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=limit_s,
        )
    except subprocess.TimeoutExpired:
        raise UserError(f"`{words}` did not end within {limit_s:g} s.") from None
    if done.returncode != 0:
        error = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())
        raise UserError(f"`{words}` ended with {done.returncode}: {error}")
    return done.stdout


# --- instructions -----------------------------------------------------------------------------------------------------


def counted(
    command: Sequence[str | Path], folder: Path, tree: Path = ROOT, profile: str = "/dev/null"
) -> subprocess.Popen[str]:
    """Starts a program under callgrind. Raises UserError."""
    callgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", f"--log-file={folder / 'count'}"]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("RAILYARD", "COV", "PYTHON"))
    }
    try:
        return subprocess.Popen(
            [*callgrind, *map(str, command)],
            env=environment | VALGRIND_ENV | PYTHON_ENV,
            cwd=tree,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    except FileNotFoundError:
        raise UserError("valgrind is not there; install the Debian package valgrind.") from None


def count_of(process: subprocess.Popen[str], folder: Path, codes: Sequence[int] = (0,)) -> int:
    """Waits for the end of a program and returns its instructions. Raises UserError."""
    try:
        _, said = process.communicate(timeout=WAIT_S)
    finally:
        process.kill()
    log = (folder / "count").read_text()
    match = re.search(r"refs:\s+([\d,]+)", log)
    if process.returncode not in codes or match is None:
        raise UserError(f"{process.args!r} ended with {process.returncode}: {said or log}")
    return int(match[1].replace(",", ""))


# --- revisions --------------------------------------------------------------------------------------------------------


def git(*arguments: str) -> str:
    """The output of git in this tree. Raises UserError."""
    return output_of("git", "-C", ROOT, *arguments).strip()


def tree_of(revision: str) -> Path:
    """A copy of a revision in build/bench. Raises UserError."""
    if not IN_CHECKOUT:
        raise UserError("another revision is built from the repository: use a checkout and its .venv.")
    try:
        commit = git("rev-parse", "--verify", f"{revision}^{{commit}}")
    except UserError:
        raise UserError(f"there is no revision '{revision}' in {ROOT}; fetch it, or name another.") from None
    tree = ROOT / "build" / "bench" / commit
    if not tree.exists():
        tree.mkdir(parents=True)
        packed = subprocess.run(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE, check=True)
        subprocess.run(["tar", "-x", "-C", str(tree)], input=packed.stdout, check=True)
    return tree


def build(tree: Path, targets: Iterable[str]) -> None:
    """Makes files of a tree as an ordinary build does. Another revision may not have all of them yet. Raises
    UserError."""
    environment = make_environment()
    command = ["make", "-s", "-k", f"-j{len(os.sched_getaffinity(0))}", *sorted(set(targets))]
    done = built(command, cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
    errors = [line for line in done.stdout.splitlines() if "Error" in line]
    if done.returncode != 0 and (errors or tree == ROOT):
        raise UserError(f"{tree} could not be built: {done.stdout.strip()[-2000:]}")
