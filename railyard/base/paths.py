"""Where things are: in a checkout beside the package, elsewhere in the package's own data and on PATH."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from railyard.base.errors import UserError

PACKAGE = Path(__file__).resolve().parents[1]
ROOT = PACKAGE.parent
"""The folder that the package is in: the checkout, or a folder of installed packages."""
IN_CHECKOUT = (ROOT / "Makefile").is_file() and (ROOT / "experiments").is_dir()

_DATA = ROOT if IN_CHECKOUT else PACKAGE / "data"  # setup.py puts it there
EXPERIMENTS_DIR = _DATA / "experiments"
TRACES_DIR = _DATA / "traces"
REVISION_FILE = PACKAGE / "data" / "revision.json"
"""The revision that an installed package was made from."""

RESULTS_DIR = Path(os.environ.get("RAILYARD_RESULTS", (ROOT if IN_CHECKOUT else Path.cwd()) / "results"))
PROGRAM_NAMES = ("mpshell", "xlink-server", "xlink-player")
# What each arena runs.
PROGRAMS_OF_ARENA = {
    "mpshell": PROGRAM_NAMES,
    "sim": ("xlink-sim",),
    "kernel": (*PROGRAM_NAMES, "vkernel-init", "vkernel-seed.so"),
}

BIN_VARIABLE = "RAILYARD_BIN"


def programs_dir() -> Path:
    """`build/bin` of the checkout, or $RAILYARD_BIN: another build, for instance one with sanitizers."""
    return Path(os.environ.get(BIN_VARIABLE, ROOT / "build" / "bin")).absolute()


def program(name: str) -> Path:
    """A C program of the project; outside of a checkout, where $RAILYARD_BIN is not set, the one on PATH. Raises
    UserError."""
    if not IN_CHECKOUT and BIN_VARIABLE not in os.environ:
        found = shutil.which(name)
        if found is None:
            raise UserError(
                f"the program {name} is not on PATH; install the programs with `make install` in a checkout of "
                f"Railyard, or set {BIN_VARIABLE} to the folder that they are in."
            )
        return Path(found).absolute()
    path = programs_dir() / name
    if not os.access(path, os.X_OK):
        raise UserError(f"{path} is not there or not executable; build the programs with `make build`.")
    return path
