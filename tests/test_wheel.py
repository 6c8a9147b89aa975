"""The package outside of a checkout: a wheel in a fresh environment, in an empty folder.

Dependencies come from the environment that the tests run in; nothing is downloaded.
"""

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from conftest import good, one_sentence, run_program
from railyard import __version__
from railyard.base.paths import ROOT, programs_dir
from railyard.gate.compare import outputs_sha256
from railyard.run import repeat

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
SHELLS = {"bash": "complete -o default -F", "zsh": "compdef", "fish": "complete --command railyard"}


@dataclass(frozen=True)
class Elsewhere:
    """An installed package, and an empty folder to work in."""

    binaries: Path
    folder: Path
    path: list[Path] = field(default_factory=list)  # where C programs are, beside the system's

    def run(self, program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAILYARD_", "PYTHON"))}
        search = os.pathsep.join([*map(str, self.path), "/usr/bin", "/bin", "/usr/sbin", "/sbin"])
        return run_program(
            [str(self.binaries / program), *arguments], cwd=self.folder, env=kept | {"PATH": search} | environment
        )

    def railyard(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.run("railyard", *arguments, **environment)

    def output(self, *arguments: str, **environment: str) -> str:
        done = self.railyard(*arguments, **environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel in it."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [*PIP, "wheel", str(ROOT), "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)], check=True
    )
    return installed(folder)


def installed(folder: Path) -> Path:
    """Where the programs of an environment are that the one wheel of that folder was installed in."""
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(python),
            "install",
            "--quiet",
            "--no-deps",
            "--no-index",
            str(wheel),
        ],
        check=True,
    )
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    # Files for import paths are not read in a folder that one of them names: the checkout's own is not.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python.parent


@pytest.fixture
def elsewhere(binaries: Path, tmp_path: Path) -> Elsewhere:
    return Elsewhere(binaries, tmp_path, [programs_dir()])


def test_an_experiment_runs_and_leaves_its_results_in_the_current_folder(elsewhere: Elsewhere) -> None:
    elsewhere.output("run", "smoke", "--arena", "sim")
    campaign = elsewhere.folder / "results" / "smoke"
    assert (campaign / "report.html").is_file() and (campaign / "runs.parquet").is_file()
    run = json.loads(next(campaign.glob("runs/*/run.json")).read_text())
    for path in run["config"]["paths"]:
        assert elsewhere.binaries.parent in Path(path["up"]).parents, "the traces are the package's own"
    assert "smoke" in elsewhere.output("show")
    assert [entry.name for entry in elsewhere.folder.iterdir()] == ["results"]


def test_the_project_s_pairs_and_a_figure_s_file_are_found(elsewhere: Elsewhere) -> None:
    assert "hsr-1" in elsewhere.output("traces", "list") and "fig13" in elsewhere.output("show")
    assert elsewhere.railyard("run", "fig13", "--size", "none").stderr.startswith("railyard: unknown size")


def test_the_notebook_of_an_exhibit_has_its_words(elsewhere: Elsewhere) -> None:
    ask = "from railyard.studies.exhibits.notebook import SEEN; print(SEEN.read_text())"
    assert "\n## fig8\n" in elsewhere.run("python", "-c", ask).stdout


def test_the_program_of_an_installed_package_is_shown_with_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    record = {"git": {}, "run_id": "r", "config": {"arena": "sim"}}
    record["commands"] = {"sim": [str(ROOT / "railyard" / "bin" / "xlink-sim"), "/x/.r.partial/r/job.json"]}
    monkeypatch.setattr(repeat, "IN_CHECKOUT", False)
    assert f"{ROOT}/railyard/bin/xlink-sim" in " ".join(repeat.commands(record, Path("/x/r")))


def test_a_stack_of_the_project_is_found_with_its_relays(elsewhere: Elsewhere) -> None:
    ask = "from pathlib import Path; from railyard.experiment.stacks import resolve_stack; "
    ask += "print(*resolve_stack('libxlink', {}, Path()).client)"
    relay = str(programs_dir() / "xlink-relay")
    assert elsewhere.run("python", "-c", ask).stdout.startswith(f"{relay} client --scheme")
    bare = Elsewhere(elsewhere.binaries, elsewhere.folder)
    assert "xlink-relay is not there" in bare.run("python", "-c", ask).stderr


def test_programs_that_are_missing_are_named_with_the_remedy(elsewhere: Elsewhere, binaries: Path) -> None:
    bare = Elsewhere(binaries, elsewhere.folder)
    done = bare.railyard("run", "smoke", "--arena", "sim")
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert re.search(r"xlink-sim is not on PATH; .*make install.*RAILYARD_BIN", done.stderr), done.stderr
    bare.output("run", "smoke", "--arena", "sim", RAILYARD_BIN=str(programs_dir()))


@pytest.mark.long
def test_a_wheel_with_the_simulator_needs_no_build_and_no_rights(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("whole")
    subprocess.run([ROOT / "scripts" / "wheel.sh", folder], check=True, capture_output=True)
    assert re.fullmatch(r"railyard-.*-py3-none-manylinux_2_\d+_x86_64\.whl", next(folder.glob("*.whl")).name)
    whole = Elsewhere(installed(folder), tmp_path_factory.mktemp("anywhere"))
    program = next(folder.glob("venv/lib/*/site-packages/railyard/bin/xlink-sim"))
    linked = good(run_program(["ldd", program])).stdout
    outside = [line.split()[0] for line in linked.splitlines() if "railyard.libs" not in line]
    assert [name for name in outside if not re.search(r"(linux-vdso|ld-linux[^/]*|lib[cm])\.so", name)] == []
    if os.geteuid() == 0:
        for place in (folder, *folder.parents):
            place.chmod(place.stat().st_mode | 0o055)
        os.chown(whole.folder, 65534, 65534)
        confined = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"]
    else:
        confined = []
    run = [*confined, str(whole.binaries / "railyard"), "run", "smoke", "--arena", "sim", "--out"]
    bare = {"PATH": "/usr/bin:/bin", "HOME": str(whole.folder), "MPLCONFIGDIR": str(whole.folder)}
    for name, more in {"own": {}, "built": {"RAILYARD_BIN": str(programs_dir())}}.items():
        done = run_program([*run, name], cwd=whole.folder, env=bare | more)
        assert done.returncode == 0, done.stdout + done.stderr
    for arena, words in (
        ("mpshell", "has the simulator alone: `--arena sim`."),
        ("kernel", "builds in a checkout of Railyard, once for this user; RAILYARD_KERNEL=FILE names another one."),
    ):
        without = run_program([*run[:-2], arena], cwd=whole.folder, env=bare)
        assert without.returncode == 2 and without.stderr.endswith(f"{words}\n"), without.stderr
    runs = [sorted((whole.folder / name / "runs").iterdir()) for name in ("own", "built")]
    assert [outputs_sha256(run) for run in runs[0]] == [outputs_sha256(run) for run in runs[1]]


def test_the_gate_says_that_it_needs_a_checkout(elsewhere: Elsewhere) -> None:
    one_sentence(elsewhere.railyard("gate"), "checkout")


def test_the_version_names_the_revision_that_the_wheel_was_made_from(elsewhere: Elsewhere) -> None:
    head = run_program(["git", "rev-parse", "HEAD"], cwd=ROOT)
    known = rf" \(revision {head.stdout[:12]}(, with changes)?\)" if head.returncode == 0 else ""
    assert re.fullmatch(rf"railyard {re.escape(__version__)}{known}\n", elsewhere.output("--version"))


@pytest.mark.parametrize("shell", SHELLS)
def test_shells_get_a_completion(elsewhere: Elsewhere, shell: str) -> None:
    detection = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    script = elsewhere.output("--show-completion", shell, **detection)
    assert SHELLS[shell] in script and "_RAILYARD_COMPLETE" in script


def test_bash_completes_a_command(elsewhere: Elsewhere) -> None:
    words = {"_RAILYARD_COMPLETE": "complete_bash", "COMP_WORDS": "railyard tra", "COMP_CWORD": "1"}
    assert elsewhere.output(**words).split() == ["traces"]
