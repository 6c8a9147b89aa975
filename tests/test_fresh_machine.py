"""scripts/fresh-machine.sh, and .ci/run, which runs the tests in such a machine or reports why it cannot."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from conftest import run_program
from kernel_machine import children_of
from railyard.base.paths import ROOT
from waiting import wait_until, wait_until_gone

SCRIPT = ROOT / "scripts" / "fresh-machine.sh"
NOWHERE = {"RAILYARD_MACHINES": "/proc/railyard"}  # no folder can be made there

MAKEFILE = """
setup test: ## summaries
	@echo 'C tests: 3 passed in 1 programs, 0 programs failed'
	@echo '=========== 7 passed in 0.01s ==========='
	@exit $(STATUS)
"""


def test_a_target_that_make_does_not_have_is_refused_before_a_machine_is_made() -> None:
    done = subprocess.run(
        [SCRIPT, "test,demo", "tset"], env=os.environ | NOWHERE, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert "no target 'tset'" in line and " test " in line and "fuzz" in line


@pytest.mark.privileged
def test_where_no_machine_can_be_made_a_sentence_says_so_and_the_exit_code_is_125() -> None:
    done = run_program([SCRIPT, "test"], env=os.environ | NOWHERE)
    assert done.returncode == 125
    [line] = done.stderr.splitlines()
    assert "/proc/railyard cannot be written" in line and "RAILYARD_MACHINES" in line


@pytest.mark.privileged
@pytest.mark.parametrize("status", [0, 2])
def test_ci_tests_on_the_machine_itself_and_says_why_where_no_other_can_be_made(tmp_path: Path, status: int) -> None:
    for folder in (".ci", "scripts"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "Makefile").write_text(MAKEFILE)
    environment = os.environ | NOWHERE | {"STATUS": str(status)}
    done = run_program([tmp_path / ".ci" / "run"], env=environment, timeout=60)
    assert done.returncode == status
    [reason] = [line for line in done.stdout.splitlines() if line.startswith("ci: on this machine")]
    assert "/proc/railyard cannot be written" in reason
    summary = done.stdout.partition("---- summary ----\n")[2].splitlines()
    assert summary == [line.split("'")[1] for line in MAKEFILE.splitlines() if "'" in line]


@pytest.mark.privileged
@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_machine_has_make_and_git_and_nothing_of_this_one(tmp_path: Path) -> None:
    """The tree inside has what is not committed yet; the exit code is the target's."""
    for folder in ("docker", "scripts"):
        shutil.copytree(ROOT / folder, tmp_path / "tree" / folder)
    git = ["git", "-C", str(tmp_path / "tree"), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message=x"]):
        subprocess.run([*git, *words], check=True)
    (tmp_path / "tree" / "Makefile").write_text(
        "look: ## about it\n\t@git --version; pwd; ls /work; ls /outer /opt; command -v gcc curl; ps; mount | wc -l\n"
        "\t@unshare --user true && unshare --net true && echo namespaces\nfails: ## at once\n\t@exit 7\n"
    )
    subprocess.run(["chown", "--recursive", "nobody", tmp_path / "tree"], check=True)
    machines = tmp_path / "machines"
    done = run_program(
        [tmp_path / "tree" / "scripts" / "fresh-machine.sh", "look,fails"],
        env=os.environ | {"RAILYARD_MACHINES": str(machines)},
    )
    assert done.returncode == 2, done.stderr  # make's, of a target that failed
    assert "make fails failed" in done.stderr
    assert "/work/railyard\n" in done.stdout and "git version" in done.stdout and "namespaces\n" in done.stdout
    for word in ("gcc", "curl", "outer"):
        assert f"/{word}\n" not in done.stdout
    assert [folder.name for folder in machines.iterdir() if folder.is_dir()] == ["cache"]
    assert str(machines) not in Path("/proc/mounts").read_text()


@pytest.mark.privileged
@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_of_a_machine_is_left_when_it_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    """After SIGKILL, what is left is a folder, which the next start removes."""
    environment = os.environ | {"RAILYARD_MACHINES": str(tmp_path)}

    def start() -> tuple[subprocess.Popen[bytes], list[int]]:
        before = set(tmp_path.glob("root.*/root/debootstrap"))
        making = subprocess.Popen([SCRIPT, "help"], env=environment, stdout=subprocess.DEVNULL)
        wait_until(lambda: set(tmp_path.glob("root.*/root/debootstrap")) - before, "debootstrap to begin", 120)
        below = children_of(making.pid)
        assert len(below) >= 3  # unshare, this script as the first process of its namespace, debootstrap
        return making, below

    making, below = start()
    making.send_signal(number)
    assert making.wait(60) == (143 if number == signal.SIGTERM else -number)
    wait_until_gone(below)
    left = list(tmp_path.glob("root.*"))
    assert bool(left) == (number == signal.SIGKILL)
    making, _ = start()
    making.terminate()
    making.wait(60)
    assert not list(tmp_path.glob("root.*"))
