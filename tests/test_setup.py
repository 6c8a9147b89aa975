"""The packages that setup installs: all pinned, and none in a place that others can write to."""

import os
import re
import shutil
import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from conftest import good, run_program
from railyard.base.paths import ROOT

WITH_ENGINE = ROOT / "docker" / "with-engine.sh"
SETUP = ROOT / "scripts" / "setup.sh"
LOCK = ROOT / "requirements.lock"
DEBIAN_PYTHON = "3.11.2"


@cache
def locked() -> dict[str, tuple[str, list[str]]]:
    """Version and hashes of each package of the lock file, by its name."""
    entries = re.findall(
        r"^([a-z0-9-]+)==(\S+)((?: \\\n +--hash=sha256:[0-9a-f]{64})+)$", LOCK.read_text(), re.MULTILINE
    )
    return {name: (version, re.findall("sha256:([0-9a-f]+)", hashes)) for name, version, hashes in entries}


def test_the_lock_file_has_nothing_but_versions_with_their_hashes() -> None:
    lines = [line for line in LOCK.read_text().splitlines() if line and not line.lstrip().startswith("#")]
    packages = [line for line in lines if not line.startswith("    --hash=sha256:")]
    assert len(packages) == len(locked()) and not re.search(r"://|--(index|extra-index|find-links)", LOCK.read_text())


def test_the_lock_file_covers_what_the_project_needs_to_run_be_tested_and_be_built() -> None:
    """After a change of pyproject.toml, `make lock` writes it anew."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    asked = [*project["project"]["dependencies"], *(wanted for extra in extras.values() for wanted in extra)]
    for requirement in map(Requirement, [*asked, *project["build-system"]["requires"]]):
        version, _ = locked()[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), requirement


def test_what_is_installed_is_what_the_lock_file_names_and_needs_nothing_else() -> None:
    for name, (version, _) in locked().items():
        found = metadata.distribution(name)
        assert found.version == version, name
        for requirement in map(Requirement, found.requires or []):
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                needed = canonicalize_name(requirement.name)
                assert needed in locked() and requirement.specifier.contains(locked()[needed][0]), (name, requirement)


def test_what_the_lock_file_names_runs_on_the_python_of_debian_12() -> None:
    """`make lock` in a folder that was set up with PYTHON=/usr/bin/python3 on Debian 12 takes such versions."""
    needs = {name: metadata.metadata(name).json.get("requires_python", "") for name in locked()}
    assert [name for name in needs if not SpecifierSet(str(needs[name])).contains(DEBIAN_PYTHON)] == []


def test_every_action_of_a_workflow_is_named_by_its_commit_with_the_tag_beside_it() -> None:
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.y*ml"))
    uses = [line for file in workflows for line in file.read_text().splitlines() if re.match(r"\s*(- )?uses:", line)]
    assert uses
    for line in uses:
        assert re.search(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


def install_script(file: Path, text: str) -> None:
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


@pytest.mark.privileged
def test_a_docker_client_without_an_engine_makes_setup_install_one(tmp_path: Path) -> None:
    """dockerd is hidden in its own mount namespace, and apt-get only prints its arguments."""
    for name in ("docker", "docker-compose", "debootstrap"):
        install_script(tmp_path / name, "exit 1")
    install_script(tmp_path / "apt-get", f'echo "$*" >>{tmp_path}/asked')
    path = f"{tmp_path}:{os.environ['PATH']}"
    engine = shutil.which("dockerd", path=f"{path}:/usr/sbin:/sbin")
    hide = f"mount --bind /dev/null {engine} && " if engine else ""
    command = ["unshare", "--mount", "sh", "-c", f"{hide} exec {SETUP} docker"]
    good(run_program(command, env=os.environ | {"PATH": path}))
    assert (tmp_path / "asked").read_text().splitlines()[-1].split()[-1] == "docker.io"


@pytest.mark.privileged
@pytest.mark.parametrize("is_updated", [True, False])
def test_setup_says_in_one_table_what_it_installs_and_why(tmp_path: Path, is_updated: bool) -> None:
    """clang-tidy and caddy are hidden, and apt-get only prints its arguments. Few targets need them."""
    update = "true" if is_updated else "false"
    install_script(tmp_path / "apt-get", f'echo "$*" >>{tmp_path}/asked; [ "$1" != update ] || {update}')
    path = f"{tmp_path}:{os.environ['PATH']}"
    programs = [shutil.which(name, path=path) for name in ("clang-tidy", "caddy")]
    hide = "".join(f"mount --bind /dev/null {program} && " for program in programs if program)
    command = ["unshare", "--mount", "sh", "-c", f"{hide} exec {SETUP} tidy peers"]
    done = good(run_program(command, env=os.environ | {"PATH": path}))
    lines = done.stdout.splitlines()
    assert lines[0] == "setup: these Debian packages are missing:"
    why = {line.split()[0]: " ".join(line.split()[1:]) for line in lines[1:] if line.startswith("  ")}
    assert (why["clang-tidy"], why["caddy"]) == ("checks the C sources", "a server of HTTP/3 of others")
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[0].startswith("update")
    if is_updated:
        assert set(why) == {name for line in asked[1:] for name in line.partition("recommends ")[2].split()}
    else:
        assert len(asked) == 1
        assert "apt-get update failed, so nothing can be checked by it; all else goes on" in done.stderr


@pytest.mark.privileged
def test_setup_waits_for_another_installation_and_says_why_an_optional_package_is_missing(tmp_path: Path) -> None:
    install_script(tmp_path / "apt-get", f'echo "$*" >>{tmp_path}/asked; echo "E: no room"; [ "$1" != install ]')
    path = f"{tmp_path}:{os.environ['PATH']}"
    found = shutil.which("caddy", path=path)
    hide = f"mount --bind /dev/null {found} && " if found else ""
    command = ["unshare", "--mount", "sh", "-c", f"{hide} exec {SETUP} peers"]
    done = run_program(command, env=os.environ | {"PATH": path})
    assert "E: no room\nsetup: apt-get could not install" in done.stderr
    assert "DPkg::Lock::Timeout=300" in (tmp_path / "asked").read_text().splitlines()[-1]


@pytest.mark.privileged
def test_setup_installs_nothing_but_one_set_where_that_is_asked_for(tmp_path: Path) -> None:
    install_script(tmp_path / "apt-get", f'echo "$*" >>{tmp_path}/asked; [ "$1" != install ]')
    path = f"{tmp_path}:{os.environ['PATH']}"
    found = shutil.which("debootstrap", path=f"{path}:/usr/sbin:/sbin")
    hide = f"mount --bind /dev/null {found} && " if found else ""
    command = ["unshare", "--mount", "sh", "-c", f"{hide} exec {SETUP} only machine"]
    done = run_program(command, env=os.environ | {"PATH": path})
    assert done.returncode == 2  # it could not be installed
    assert "apt-get could not install debootstrap" in done.stderr
    assert (tmp_path / "asked").read_text().splitlines()[-1].endswith("recommends debootstrap")


def test_every_package_that_setup_installs_has_its_reason_in_the_documentation() -> None:
    rows = good(run_program([SETUP, "--rows"])).stdout.splitlines()
    page = (ROOT / "docs" / "howto" / "install.md").read_text()
    for row in rows:
        _, package, why = row.split("\t")
        [line] = [
            line for line in page.splitlines() if f"`{package}`" in "".join(line.split("|")[2:3]) and why in line
        ][:1]
        assert line.startswith("| ")


@pytest.mark.privileged
@pytest.mark.parametrize("kind", ["folder that others write to", "link of somebody else", "link to nothing"])
def test_the_engine_takes_no_folder_that_others_can_have_made(tmp_path: Path, kind: str) -> None:
    open_folder = tmp_path / "open"
    open_folder.mkdir()
    open_folder.chmod(0o1777)
    target = open_folder / "engine"
    if kind == "link of somebody else":
        target.symlink_to(tmp_path / "elsewhere")
        (tmp_path / "elsewhere").mkdir()
    elif kind == "link to nothing":
        target.symlink_to(tmp_path / "nothing")
    environment = os.environ | {"RAILYARD_ENGINE_ROOT": str(target), "DOCKER_HOST": f"unix://{tmp_path}/none.sock"}
    done = run_program([WITH_ENGINE, "true"], env=environment)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and str(target) in done.stderr
    assert not target.is_dir() or target.is_symlink(), "nothing is made there"
    assert not (tmp_path / "nothing").exists()


def test_the_engines_own_folders_are_below_what_root_alone_writes_to() -> None:
    places = re.findall(
        r"(?:RAILYARD_ENGINE_ROOT:-|mktemp -d |make_private_folder )(/[^\s}]+)", WITH_ENGINE.read_text()
    )
    assert len(places) == 3
    for place in places:
        assert place.startswith(("/var/lib/railyard", "/run/railyard")), place


def test_setup_says_of_each_step_how_long_it_takes_before_it_begins(tmp_path: Path) -> None:
    """With a project that needs nothing, whose environment is made for real."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(SETUP, tmp_path / "scripts")
    (tmp_path / "requirements.lock").write_text("")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "nothing"\nversion = "1"\n')
    done = run_program([tmp_path / "scripts" / "setup.sh"])
    steps = [line for line in done.stdout.splitlines() if line != "setup: ready"]
    assert [line.split()[1] for line in steps][:2] == ["making", "installing"], done
    assert all(re.search(r"\(about \d+ (s|min)\)", line) for line in steps), steps
