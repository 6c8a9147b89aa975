"""What pyproject.toml cannot say: an installed package carries traces, experiments and notebooks, and its revision, in
data/.

Programs of C that the variable RAILYARD_WHEEL_PROGRAMS names (their files, separated by colons) go into bin/, and the
wheel is one for this platform then: scripts/wheel.sh.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
DATA = ("traces", "experiments", "studies", "notebooks")
PROGRAMS = [Path(file) for file in os.environ.get("RAILYARD_WHEEL_PROGRAMS", "").split(os.pathsep) if file]


def git(*arguments: str) -> str | None:
    """Its output; none where this is no work tree of Railyard's own."""
    if not (HERE / ".git").exists():
        return None
    try:
        return subprocess.run(
            ("git", "--no-optional-locks", "-c", "safe.directory=*", *arguments),
            cwd=HERE,
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


class BuildWithData(build_py):
    """In a checkout, and so in an editable installation, the package finds its data beside itself."""

    def run(self) -> None:
        # What an earlier build left, for instance of modules that are gone, would go into the wheel.
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        if self.editable_mode:
            return
        data = Path(self.build_lib, "railyard", "data")
        for name in DATA:
            shutil.copytree(HERE / name, data / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        for stack in HERE.glob("peers/*/peer.yaml"):
            place = data / stack.relative_to(HERE)
            place.parent.mkdir(parents=True)
            shutil.copy2(stack, place)
        revision, changed = git("rev-parse", "--verify", "HEAD"), git("status", "--porcelain", "--untracked-files=no")
        if revision is not None and changed is not None:
            (data / "revision.json").write_text(json.dumps({"revision": revision, "dirty": bool(changed)}) + "\n")
        for program in PROGRAMS:
            place = Path(self.build_lib, "railyard", "bin", program.name)
            place.parent.mkdir(exist_ok=True)
            shutil.copy2(program, place)


class WithPrograms(Distribution):
    def has_ext_modules(self) -> bool:
        return bool(PROGRAMS)


class AnyPython(bdist_wheel):
    """The programs run with every Python."""

    def get_tag(self) -> tuple[str, str, str]:
        tag: tuple[str, str, str] = super().get_tag()
        return ("py3", "none", tag[2])


setup(
    cmdclass={"build_py": BuildWithData, "bdist_wheel": AnyPython},
    distclass=WithPrograms,
    options={"build": {"build_base": "build/python"}},
)
