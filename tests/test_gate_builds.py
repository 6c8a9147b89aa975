"""Real gates over real builds, of a copy of the tree."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from conftest import good, one_sentence, run_program
from railyard.base.paths import ROOT
from railyard.gate import build
from railyard.gate.suite import SUITES_DIR
from railyard.run import children
from waiting import wait_until, wait_until_gone

GIT = ("git", "-c", "user.name=unit", "-c", "user.email=unit@localhost", "-c", "init.defaultBranch=main")
LEFT_OUT = ("results", ".venv", ".git", ".*_cache")
BUILT = ("release", "generated")


def left_out(folder: str, names: list[str]) -> set[str]:
    if Path(folder) == ROOT / "build":
        return set(names) - {*BUILT}
    return shutil.ignore_patterns(*LEFT_OUT)(folder, names)


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The tree as it is now, as a repository of its own with its objects, and without programs, as in a fresh checkout:
    its HEAD is the tree, HEAD~1 has no sim."""
    tree = tmp_path_factory.mktemp("gate") / "tree"
    shutil.copytree(ROOT, tree, ignore=left_out, symlinks=True)
    for command in (
        ("init", "--quiet"),
        ("add", "README.md"),
        ("commit", "--quiet", "-m", "Before the sim arena"),
        ("add", "--all"),
        ("commit", "--quiet", "-m", "The tree"),
    ):
        subprocess.run([*GIT, "-C", str(tree), *command], check=True, capture_output=True)
    yield tree
    # At its end pytest has given up its folder, which another process of the tests that ends may be removing.
    shutil.rmtree(tree, ignore_errors=True)


def gate(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_program(
        [sys.executable, "-m", "railyard", "gate", *arguments],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree)},
        timeout=280,
    )


def with_change(tree: Path, file: str, old: str, new: str) -> Callable[[], None]:
    """Changes one place in the tree, and returns what undoes it."""
    path = tree / file
    text = path.read_text()
    assert text.count(old) == 1, f"{file} has changed: adapt this test"
    path.write_text(text.replace(old, new))

    def undo() -> None:
        path.write_text(text)

    return undo


def smaller(folder: Path, **fields: Any) -> Path:
    """The default suite with other values of these fields."""
    suite = yaml.safe_load((SUITES_DIR / "mobility.yaml").read_text(encoding="utf-8"))
    file = folder / "smaller.yaml"
    file.write_text(yaml.safe_dump(suite | fields))
    return file


GATES_BUILD = "from railyard.gate import build; build._make(Path('tree'), Path('log'))"
KERNELS_BUILD = "from railyard.run import vkernel; vkernel.RECIPE = Path(); vkernel.build()"


@pytest.mark.parametrize("code", [GATES_BUILD, KERNELS_BUILD])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_build_ends_with_the_command_that_began_it(tmp_path: Path, code: str, number: signal.Signals) -> None:
    """`make` keeps compilers, which end with it. Here one begins before the trap, which it would inherit until exec."""
    for name, text in (
        ("make", "sleep 50 &\ntrap 'kill $!; exit 1' TERM\necho $$ $! >new; mv new pids; wait"),
        ("build.sh", "exec ./make"),
        ("check-source.sh", ""),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    code = f"import sys; from pathlib import Path; sys.path.insert(0, {str(ROOT)!r}); {code}"
    path = f"{tmp_path}:{os.environ['PATH']}"
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, env=os.environ | {"PATH": path}, stderr=subprocess.DEVNULL
    ) as command:
        wait_until(lambda: (tmp_path / "pids").exists() or command.poll() is not None, "the build to begin")
        command.send_signal(number)
        command.wait(60)
    wait_until_gone([int(word) for word in (tmp_path / "pids").read_text().split()])


def test_a_build_under_nohup_does_not_end_with_its_terminal() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        done = children.built(["sh", "-c", f"kill -HUP {os.getpid()}; echo done"], 60, stdout=subprocess.PIPE)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert (done.returncode, done.stdout) == (0, "done\n")


COMMENT = ("transport/scheduler/scheduler.c", "/* The class", "/* A comment. */\n/* The class")
OTHER_USAGE = ("emulator/sim/main.c", '"usage: xlink-sim JOB', '"usage:  xlink-sim JOB')
SLOWER_PATH = (
    "transport/scheduler/scheduler.c",
    "return a->srtt_us < b->srtt_us;",
    "return a->srtt_us > b->srtt_us;",
)


def test_a_comment_is_identical_without_a_run_and_compiles_one_file_of_the_baseline(
    clone: Path, tmp_path: Path
) -> None:
    undo = with_change(clone, *COMMENT)
    done = gate(clone, "--junit", str(tmp_path / "deep" / "gate.xml"), "--markdown", str(tmp_path / "gate.md"))
    undo()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "gate: identical: both versions are the same program, so nothing was run" in done.stdout
    assert not (clone / "build" / "gate" / "results").exists()
    [log] = (clone / "build" / "gate").glob("????????????????????????????????????????.build.log")
    assert re.findall(r"CC +(\S+)", log.read_text()) == [COMMENT[0]]
    root = ElementTree.parse(tmp_path / "deep" / "gate.xml").getroot()  # noqa: S314  our own output
    assert {(suite.get("tests"), suite.get("failures")) for suite in root} == {("7", "0")}
    assert "| subway | xlink |" in (tmp_path / "gate.md").read_text()


def is_identical(clone: Path, folder: Path, *arguments: str) -> str:
    """The gate's word of another program with the same outputs; returns what it printed."""
    undo = with_change(clone, *OTHER_USAGE)
    done = gate(clone, "--junit", str(folder / "gate.xml"), *arguments)
    undo()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "gate: identical: every output of every run is the same, by hash" in done.stdout
    root = ElementTree.parse(folder / "gate.xml").getroot()  # noqa: S314  our own output
    assert {suite.get("failures") for suite in root} == {"0"}
    return done.stdout


@pytest.mark.slow
def test_another_program_with_the_same_outputs_is_identical(clone: Path, tmp_path: Path) -> None:
    suite = smaller(tmp_path, pairs=["subway-1", "hsr-1"], seeds=3, first_look=1)
    assert "14 rows of 1 plays (14 identical)" in is_identical(clone, tmp_path, "--suite", str(suite))
    assert not (clone / "build" / "bin").exists(), "the gate builds its own programs"


def is_caught(clone: Path, folder: Path, *arguments: str) -> None:
    """The gate's word of a scheduler that prefers the slower path."""
    undo = with_change(clone, *SLOWER_PATH)
    done = gate(clone, "--junit", str(folder / "gate.xml"), "--markdown", str(folder / "gate.md"), *arguments)
    undo()
    assert done.returncode == 1, done.stdout + done.stderr
    root = ElementTree.parse(folder / "gate.xml").getroot()  # noqa: S314  our own output
    failed = {case.get("classname") for case in root.iter("testcase") if case.find("failure") is not None}
    assert {"subway.vanilla-mp", "high-speed rail.vanilla-mp"} <= failed
    assert not {name for name in failed if name and name.partition(".")[2].startswith(("sp", "cm"))}
    text = (folder / "gate.md").read_text()
    assert "first scheduling decision that differs" in text and "**worse**" in text
    assert re.search(
        r"^Exercised, in plays: first frames \d+.* Not exercised: .*--suite congestion", text, re.MULTILINE
    )


@pytest.mark.slow
def test_a_scheduler_that_prefers_the_slower_path_is_caught(clone: Path, tmp_path: Path) -> None:
    """A suite with four plays of each pair under three schemes, enough for a difference in all plays."""
    suite = smaller(tmp_path, schemes=["sp", "cm", "vanilla-mp"], seeds=4, first_look=1)
    is_caught(clone, tmp_path, "--suite", str(suite))


HANGS = (
    "transport/scheduler/minrtt.c",
    "    xl_scheduler_decide_by_rtt(view, out);",
    "    while (view->now > 2000000)\n        *(volatile int *)state = 1;\n    xl_scheduler_decide_by_rtt(view, out);",
)


@pytest.mark.long
def test_a_scheduler_that_hangs_is_a_regression_after_its_first_plays_and_a_baseline_that_hangs_is_none(
    clone: Path, tmp_path: Path
) -> None:
    few = {"schemes": ["vanilla-mp"], "pairs": ["subway-1", "hsr-1"], "seeds": 3, "first_look": 3}
    suite = smaller(tmp_path, **few, time_limit_s=4, player={"bitrate_bps": 4_000_000, "duration_s": 4})
    with_change(clone, *HANGS)
    done = gate(clone, "--suite", str(suite), "--jobs", "2")
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.count("hung: the run did not end on the wall clock and was stopped") == 2
    assert "After plays that hung, 4 plays of the suite were not run" in done.stdout
    subprocess.run([*GIT, "-C", str(clone), "commit", "--quiet", "--all", "-m", "Hangs"], check=True)
    subprocess.run([*GIT, "-C", str(clone), "checkout", "--quiet", "HEAD~1", "--", HANGS[0]], check=True)
    back = gate(clone, "--suite", str(suite), "--baseline", "HEAD")
    subprocess.run([*GIT, "-C", str(clone), "reset", "--quiet", "--hard", "HEAD~1"], check=True)
    assert back.returncode == 0 and "TimeoutExpired" not in back.stderr, back.stdout + back.stderr


@pytest.mark.long
def test_git_bisect_finds_the_commit_by_the_gates_exit_code(clone: Path, tmp_path: Path) -> None:
    """The commands of docs/howto/gate-pull-request.md, with a smaller suite, over four commits."""
    page = (ROOT / "docs" / "howto" / "gate-pull-request.md").read_text(encoding="utf-8")
    recipe = page.split("<!-- test: bisect -->\n```sh\n")[1].split("```")[0]

    def git(*words: str) -> str:
        done = good(run_program([*GIT, "-C", str(clone), *words]))
        return done.stdout.strip()

    start = git("rev-parse", "HEAD")
    for title, change in (
        ("A word", ("README.md", "# Railyard", "# Railyard.")),
        ("Slower path", SLOWER_PATH),
        ("Another word", ("README.md", "# Railyard.", "# Railyard!")),
    ):
        with_change(clone, *change)
        git("commit", "--quiet", "--all", "-m", title)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "railyard").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m railyard "$@"\n')
    (programs / "railyard").chmod(0o755)
    suite = smaller(tmp_path, schemes=["vanilla-mp"], seeds=2, first_look=1)
    words = recipe.replace("--baseline GOOD", f"--baseline GOOD --suite {suite}").replace("GOOD", start)
    path = {"PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(clone)}
    try:
        done = run_program(["sh", "-ec", words], cwd=clone, env=os.environ | path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert re.search(r"^[0-9a-f]{40} is the first bad commit$(?s:.*?)^    Slower path$", done.stdout, re.MULTILINE)
    finally:
        git("reset", "--quiet", "--hard", start)


@pytest.mark.long
def test_another_beta_of_cubic_is_caught_by_the_suite_congestion_and_not_passed_in_silence_by_mobility(
    clone: Path, tmp_path: Path
) -> None:
    undo = with_change(clone, "transport/congestion/cubic.c", "#define BETA             0.7", "#define BETA 0.5")
    found = gate(clone, "--suite", "congestion", "--junit", str(tmp_path / "gate.xml"))
    few = smaller(tmp_path, schemes=["sp", "vanilla-mp"], seeds=4, first_look=1)
    other = gate(clone, "--suite", str(few))
    undo()
    assert found.returncode == 1, found.stdout + found.stderr
    root = ElementTree.parse(tmp_path / "gate.xml").getroot()  # noqa: S314  our own output
    failed = [case for case in root.iter("testcase") if case.find("failure") is not None]
    worse = {(case.get("classname"), case.get("name")) for case in failed}
    assert {("lab-equal-12.sp--shallow", "rct_median"), ("lab-equal-12.vanilla-mp--shallow", "rct_median")} <= worse
    assert not [name for name, _ in worse if "cc=" in str(name)], "other controllers have no such rows"
    told = "transport/congestion changed, and no row exercises windows in steady state, flows in one queue"
    assert told in other.stdout, other.stdout + other.stderr


@pytest.mark.long
def test_both_words_on_the_default_suite(clone: Path, tmp_path: Path) -> None:
    is_identical(clone, tmp_path)
    is_caught(clone, tmp_path)


def test_a_baseline_takes_objects_whose_sources_and_commands_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for tree, text in ((here, "new"), (there, "old")):
        (tree / "scripts").mkdir(parents=True)
        (tree / "tests/fuzz").mkdir(parents=True)
        for name in ("Makefile", "tests/fuzz/fuzz.mk", "scripts/registry.sh", "same.c"):
            (tree / name).write_text(name)
        (tree / "other.c").write_text(text)
        for command in (("init", "--quiet"), ("add", "--all")):
            subprocess.run([*GIT, "-C", str(tree), *command], check=True, capture_output=True)
    for name in ("release", "generated"):
        (here / "build" / name).mkdir(parents=True)
        (here / "build" / name / "same.o").touch()
    for name in ("same.c", "other.c"):
        os.utime(here / name, (1, 1))
    monkeypatch.setattr(build, "ROOT", here)
    (there / "Makefile").write_text("other flags")
    build.take_objects(there)
    assert not (there / "build").exists()
    (there / "Makefile").write_text("Makefile")
    build.take_objects(there)
    taken = (there / "build" / "release" / "same.o").stat().st_mtime
    assert (there / "same.c").stat().st_mtime == 1
    assert (there / "other.c").stat().st_mtime >= taken


def test_the_project_may_be_a_folder_of_a_larger_repository(tmp_path: Path) -> None:
    tree = tmp_path / "project"
    shutil.copytree(ROOT / "railyard", tree / "railyard", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("emulator/sim", "experiments"):
        (tree / folder).mkdir(parents=True)
        (tree / folder / "file").touch()
    (tree / "Makefile").write_text("build/bin/xlink-sim:\n\tmkdir -p $(@D) && touch $@\n")
    (tree / ".gitignore").write_text("/build/\n__pycache__\n")
    for words in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "-m", "All")):
        subprocess.run([*GIT, "-C", str(tmp_path), *words], check=True, capture_output=True)
    for changed in (tmp_path / "elsewhere", tree / "new"):
        changed.touch()
    code = "from railyard.gate import build; print(build.baseline('HEAD').program, *build.changed_since('HEAD'))"
    command, environment = [sys.executable, "-c", code], os.environ | {"PYTHONPATH": str(tree)}
    done = run_program(command, cwd=tree, env=environment)
    assert re.search(r"/build/gate/[0-9a-f]{40}/project/build/bin/xlink-sim new$", done.stdout), done.stderr


@pytest.mark.parametrize(
    ("baseline", "words"),
    [("HEAD~1", "has no xlink-sim: it is older than the sim arena"), ("nowhere", "there is no revision 'nowhere'")],
)
def test_a_baseline_that_cannot_be_run_is_one_sentence_before_anything_is_built(
    clone: Path, baseline: str, words: str
) -> None:
    done = gate(clone, "--baseline", baseline)
    one_sentence(done)
    assert words in done.stderr and "building" not in done.stdout


@pytest.mark.slow
def test_a_tree_that_does_not_compile_is_one_sentence(clone: Path) -> None:
    undo = with_change(clone, "emulator/sim/main.c", "int main(", "int broken int main(")
    done = gate(clone)
    undo()
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "could not be built" in done.stderr and "error" in done.stderr


def test_the_workflow_for_pull_requests_uses_options_that_there_are() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "railyard-gate.yml").read_text())
    [command] = [step["run"] for step in workflow["jobs"]["gate"]["steps"] if "railyard gate" in step.get("run", "")]
    help_text = good(run_program([sys.executable, "-m", "railyard", "gate", "--help"])).stdout
    options = [word for word in command.split() if word.startswith("--")]
    assert options == ["--baseline", "--junit", "--markdown"]
    assert all(option in help_text for option in options)
