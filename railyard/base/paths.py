"""The places of files and programs: in a checkout beside the package, else in the package's data and on PATH."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from railyard.base.errors import UserError

PACKAGE = Path(__file__).resolve().parents[1]
ROOT = PACKAGE.parent
"""The folder that the package is in: the checkout, or a folder of installed packages."""
IN_CHECKOUT = (ROOT / "Makefile").is_file() and (ROOT / "experiments").is_dir()

_DATA = ROOT if IN_CHECKOUT else PACKAGE / "data"  # setup.py puts it there
EXPERIMENTS_DIR = _DATA / "experiments"
TRACES_DIR = _DATA / "traces"
PEERS_DIR = _DATA / "peers"
STUDIES_DIR = _DATA / "studies"
NOTEBOOKS_DIR = _DATA / "notebooks"
REVISION_FILE = PACKAGE / "data" / "revision.json"
"""The revision that an installed package was made from."""

RESULTS_DIR = Path(os.environ.get("RAILYARD_RESULTS", (ROOT if IN_CHECKOUT else Path.cwd()) / "results"))
PROGRAM_NAMES = ("mpshell", "xlink-server", "xlink-player")

BIN_VARIABLE = "RAILYARD_BIN"


def programs_dir() -> Path:
    """`build/bin` of the checkout, or $RAILYARD_BIN: another build, for instance one with sanitizers."""
    return Path(os.environ.get(BIN_VARIABLE, ROOT / "build" / "bin")).absolute()


def program_place(name: str) -> Path:
    """The path of a C program: in programs_dir(). Outside of a checkout and without $RAILYARD_BIN: in the package (from
    a wheel with programs, `make wheel`), then on PATH, then in the folder to which `make install` copies programs that
    are run by other programs only. A missing program has its bare name."""
    if IN_CHECKOUT or BIN_VARIABLE in os.environ:
        return programs_dir() / name
    own = PACKAGE / "bin" / name
    inside = os.pathsep.join(f"{folder}/../libexec/railyard" for folder in os.get_exec_path())
    place = str(own) if own.is_file() else shutil.which(name) or shutil.which(name, path=inside)
    return Path(name) if place is None else Path(place).absolute()


def program(name: str) -> Path:
    """A C program of the project. Raises UserError."""
    path = program_place(name)
    if not path.is_absolute():
        alone = " This installation has the simulator alone: `--arena sim`." if (PACKAGE / "bin").is_dir() else ""
        raise UserError(
            f"the program {name} is not on PATH; install the programs with `make install` in a checkout of "
            f"Railyard, or set {BIN_VARIABLE} to the folder that they are in.{alone}"
        )
    if not os.access(path, os.X_OK):
        raise UserError(f"{path} is not there or not executable; build the programs with `make build`.")
    return path


def program_if_built(name: str) -> Path | None:
    """A C program of the project. None: it is not built."""
    path = program_place(name)
    return path if path.is_absolute() and os.access(path, os.X_OK) else None


LINKED_INTO = {
    "transport/*/*.c": ("xlink-sim", "xlink-server", "xlink-player"),
    "emulator/link/*.c": ("xlink-sim", "mpshell"),
}
"""The folders of schedulers, controllers and queue disciplines, with the programs into which they are linked."""


def changed_since_built(names: Sequence[str], root: Path = ROOT) -> str | None:
    """A sentence if a file of a scheduler or the like has changed since one of the checkout's programs was built."""
    if BIN_VARIABLE in os.environ or not (root / "Makefile").is_file():
        return None
    for files, programs in LINKED_INTO.items():
        built = [place for name in names if name in programs and (place := root / "build" / "bin" / name).is_file()]
        sources = [file for file in root.glob(files) if not file.name.endswith("_test.c")]
        if built and sources:
            newest = max(sources, key=lambda file: file.stat().st_mtime)
            oldest = min(built, key=lambda file: file.stat().st_mtime)
            if newest.stat().st_mtime > oldest.stat().st_mtime:
                file, binary = newest.relative_to(root), oldest.relative_to(root)
                return f"{file} has changed since {binary} was built, and no run has the change: run `make build`."
    return None


def check_tools(packages: Mapping[str, str]) -> None:
    """Raises UserError if a program is not installed; `packages`: of Debian, by program."""
    for tool, package in packages.items():
        if shutil.which(tool) is None:
            raise UserError(f"the program '{tool}' is not there; install the Debian package {package}.")
