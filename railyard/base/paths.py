"""Where things stand in the project."""

from __future__ import annotations

import os
from pathlib import Path

from railyard.base.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENTS_DIR = ROOT / "experiments"
RESULTS_DIR = Path(os.environ.get("RAILYARD_RESULTS", ROOT / "results"))  # or another folder
PROGRAM_NAMES = ("mpshell", "xlink-server", "xlink-player")
# What each arena runs.
PROGRAMS_OF_ARENA = {"mpshell": PROGRAM_NAMES, "sim": ("xlink-sim",)}


def programs_dir() -> Path:
    """`build/bin`, or $RAILYARD_BIN: another build, for instance one with sanitizers."""
    return Path(os.environ.get("RAILYARD_BIN", ROOT / "build" / "bin"))


def program(name: str) -> Path:
    """A C program of the project."""
    path = programs_dir() / name
    if not os.access(path, os.X_OK):
        raise UserError(f"{path} is not there or not executable; build the programs with `make build`.")
    return path
