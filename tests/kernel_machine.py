"""For tests of the time-travel kernel and of the arena of that name."""

import os
import subprocess
from pathlib import Path

import pytest

from conftest import run_program
from railyard.base.paths import program
from railyard.run import vkernel

ALWAYS = os.environ.get("RAILYARD_REQUIRE_KERNEL") == "1"
needs_kernel = pytest.mark.skipif(
    vkernel.why_not() is not None and not ALWAYS, reason=f"{vkernel.why_not()}; make test-long does"
)


def vk(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [str(program("vkernel")), "--folder", str(folder), *arguments]
    return run_program(command, env=os.environ | environment, timeout=120)


def same_files(one: Path, other: Path) -> list[str]:
    """Names of the files that differ, or that only one of the two has."""
    names = {str(file.relative_to(root)) for root in (one, other) for file in root.rglob("*") if file.is_file()}

    def content(root: Path, name: str) -> bytes | None:
        return (root / name).read_bytes() if (root / name).is_file() else None

    return sorted(name for name in names if content(one, name) != content(other, name))


def children_of(pid: int) -> list[int]:
    """All descendants of a process."""
    try:
        own = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return [*own, *(below for child in own for below in children_of(child))]


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().rstrip("\n")
    except OSError:
        return ""
