"""The targets of `make` and their variables."""

import re
import subprocess
from pathlib import Path

import pytest

from conftest import good, run_program
from railyard.base.paths import ROOT
from railyard.run.children import make_environment

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PARTS = re.findall(r"^PARTS := \$\(addprefix test-of-,(.*)\)$", MAKEFILE, re.MULTILINE)[0].split()
TAKEN = {"KERNEL_SOURCE", "PREFIX", "DESTDIR"}
"""Variables that the environment may set."""
MOVED = re.findall(r"^NOW_(\S+) := (\S+) (.*)$", MAKEFILE, re.MULTILINE)


def make(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """As from a shell, also where `make test` runs these tests."""
    environment = make_environment() | variables
    return run_program(["make", *words], cwd=ROOT, env=environment)


def explained() -> dict[str, set[str]]:
    """The variables of each target, as `make help` prints them."""
    targets: dict[str, set[str]] = {}
    for line in good(make("--no-print-directory", "help")).stdout.splitlines():
        if match := re.match(r" {6}([A-Z_]+)=.* \S", line):
            targets[list(targets)[-1]].add(match[1])
        elif match := re.match(r"  ([a-z-]+) +\S", line):
            targets[match[1]] = set()
    return targets


@pytest.mark.parametrize(
    ("target", "value"),
    [
        ("test", "PART=x"),
        ("test", "PART="),
        ("fuzz", "DO=run merge"),
        ("coverage", "COVER=c x"),
        ("docker", "IMAGE=x"),
        ("report", "SIZE=huge"),
        ("lint", "TIDY=0"),
        ("interop", "ADD=no"),
        ("fuzz", "ONLY=x"),
    ],
)
def test_a_value_that_a_variable_does_not_take_is_refused_before_anything_is_done(target: str, value: str) -> None:
    done = make("-n", target, value)
    name, _, given = value.partition("=")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"\S+ \*\*\* make {target}: {name} takes .*, not '{given}'\.  Stop\.\n", done.stderr)
    assert name in explained()[target]


def test_a_report_within_a_time_takes_no_size() -> None:
    done = make("-n", "report", "WITHIN=5min", "SIZE=small")
    assert (done.returncode, done.stdout) == (2, "")
    assert "make report: WITHIN takes no SIZE" in done.stderr


@pytest.mark.parametrize("value", ["CASE=x", "PEER=x"])
def test_a_cell_of_the_matrix_that_is_not_known_is_refused_before_stacks_are_built(value: str, shell: Path) -> None:
    recipe = good(make("-n", "interop", value, f"SHELL={shell}")).stdout.splitlines()
    check = next(i for i, line in enumerate(recipe) if line.endswith("--check"))
    assert check < recipe.index("scripts/peers.sh")
    done = subprocess.run(["sh", "-c", recipe[check]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "invalid choice: 'x' (choose from" in done.stderr


@pytest.mark.parametrize(
    ("words", "extras"),
    [
        (("lint", "test", "TIDY=1"), "browser test tidy"),
        (("test", "PART=python", "EXTRAS=fuzz"), "browser fuzz test"),
        (("report", "SIZE=small"), "browser"),
    ],
)
def test_setup_installs_what_all_targets_take_and_what_is_asked_for(
    words: tuple[str, ...], extras: str, shell: Path
) -> None:
    recipe = good(make("-n", *words, f"SHELL={shell}")).stdout.splitlines()
    assert [line for line in recipe if line.startswith("scripts/setup.sh")] == [f"scripts/setup.sh {extras}"]


@pytest.mark.parametrize(("old", "target", "value"), MOVED)
def test_a_target_that_is_a_value_now_names_it(old: str, target: str, value: str) -> None:
    done = make(old)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"`make {old}` is `make {target} {value}` now.  Stop." in done.stderr
    assert old not in explained() and value.partition("=")[0] in explained()[target]


@pytest.fixture
def shell(tmp_path: Path) -> Path:
    """One that runs nothing, and writes what it is to run into the file `asked` beside it."""
    shell = tmp_path / "shell"
    shell.write_text(f'#!/bin/sh\necho "$2" >>{tmp_path}/asked\n')
    shell.chmod(0o755)
    return shell


@pytest.mark.parametrize("part", [*PARTS, "c "])
def test_a_dry_run_of_tests_names_them_and_runs_none(part: str, shell: Path) -> None:
    of_tests = re.compile("run-c-tests|run-py-tests|pytest|with-engine|stress-without")
    done = good(make("-n", "test", f"PART={part}", f"SHELL={shell}"))
    assert of_tests.search(done.stdout)
    assert not of_tests.search((shell.parent / "asked").read_text())


def test_variables_of_the_environment_change_no_target(shell: Path) -> None:
    targets = explained()
    words = ("-n", f"SHELL={shell}", *(target for target, variables in targets.items() if variables))
    others = dict.fromkeys(set().union(*targets.values()) - TAKEN, "1")
    assert len(others) > 20
    assert good(make(*words, **others)).stdout == good(make(*words)).stdout


@pytest.mark.parametrize("limits", [("1h", "-1"), ("60", "many")])
def test_fuzzing_takes_no_limit_that_is_no_number(limits: tuple[str, str]) -> None:
    command = [str(ROOT / "scripts" / "fuzz.sh"), "run", "frame", *limits]
    done = run_program(command)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("fuzz: SECONDS takes a number of seconds")
