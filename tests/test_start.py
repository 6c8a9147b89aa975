"""The command line starts fast: it imports the libraries of the command that is run, and no others."""

import ast
import os
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from unittest.mock import Mock

import pytest
from pydantic import BaseModel, model_serializer

from conftest import good, run_program
from in_process import railyard
from railyard.base.paths import ROOT
from railyard.cli.main import COMMANDS, EXAMPLES, GROUPS, MOVED, main, whole

PROGRAM = """
import os
import sys
from railyard.cli.main import main
try:
    main()
except SystemExit as ended:
    print(ended.code or 0, sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
    print([name for name in sys.modules if name.startswith("railyard.")], file=sys.stderr)
    print(len(os.listdir("/proc/self/task")), file=sys.stderr)
"""
INTERRUPTED_IMPORT = """
import os, signal, sys
module = sys.argv.pop(1)
class Interrupted:
    def find_spec(self, name, *_):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupted())
from railyard.cli.start import main
main()
"""
SLOW = {"dask", "dpkt", "duckdb", "jinja2", "matplotlib", "numpy", "plotly", "pyarrow", "pydantic", "scipy", "yaml"}


@cache
def started(*arguments: str, **environment: str) -> tuple[str, set[str], list[str], int]:
    """The output of a start, the packages and the modules of Railyard that it imports, and its threads at the end."""
    done = good(
        run_program(
            [sys.executable, "-c", PROGRAM, *arguments],
            env={name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"} | environment,
            cwd=ROOT,
        )
    )
    packages, modules, threads = done.stderr.splitlines()[-3:]
    code, _, names = packages.partition(" ")
    assert code == "0"
    return done.stdout, set(ast.literal_eval(names)), ast.literal_eval(modules), int(threads)


def test_the_version_is_printed_without_a_library_but_that_of_the_command_line() -> None:
    printed, packages, modules, _ = started("--version")
    assert printed.startswith("railyard ")
    assert packages & (SLOW | {"rich"}) == set() and len(modules) < 10, modules


@pytest.mark.parametrize("module", ["typer", "railyard.base.words", "railyard.cli.query", "duckdb"])
def test_ctrl_c_during_an_import_ends_the_program_without_a_traceback(module: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED_IMPORT, module, "query"]
    done = run_program(command, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_an_interrupt_within_pydantic_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(BaseModel):
        @model_serializer
        def _serialize(self) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr("railyard.cli.main.app", lambda **_: Interrupted().model_dump())
    assert (railyard().returncode, railyard().stderr) == (130, "")


@pytest.mark.parametrize("incomplete", ["", "re"])
def test_commands_are_completed_without_importing_one(incomplete: str) -> None:
    # The program's name is that of the interpreter's option here, so the variable has it too.
    environment = {"COMP_WORDS": f"railyard {incomplete}", "COMP_CWORD": "1", "__C_COMPLETE": "complete_bash"}
    printed, packages, modules, _ = started(**environment)
    assert printed.split() == [name for name in COMMANDS if name.startswith(incomplete)]
    assert packages & SLOW == set() and len(modules) < 10, modules


def test_completion_after_a_former_name_is_that_after_an_unknown_one() -> None:
    former, unknown = (
        started(COMP_WORDS=f"railyard {name} ", COMP_CWORD="2", __C_COMPLETE="complete_bash") for name in ("list", "no")
    )
    assert former[0] == unknown[0]


def test_help_names_each_command_with_the_first_words_of_its_own_help() -> None:
    printed, packages, *_ = started("--help", COLUMNS="400")
    assert packages & SLOW == set()
    for name, command in whole().commands.items():
        words = " ".join(command.help.split("\n\n")[0].split())
        assert any(name in line.split() and words in line for line in printed.splitlines()), name


def test_help_has_the_commands_in_groups_with_three_examples_each() -> None:
    printed, *_ = started("--help", COLUMNS="100")
    assert [name for name in GROUPS if any(f"─ {name} ─" in line for line in printed.splitlines())] == list(GROUPS)
    assert "─ Commands ─" not in printed
    for group, examples in EXAMPLES.items():
        assert len(examples) == 3 and all(f"   {example}\n" in printed for example in examples), group


@pytest.mark.parametrize("example", [example for examples in EXAMPLES.values() for example in examples])
def test_the_examples_name_commands_and_options_that_there_are(example: str) -> None:
    _, name, *words = example.split()
    command = whole().commands[name]
    while hasattr(command, "commands"):
        command, words = command.commands[words[0]], words[1:]
    command.make_context(name, words)  # parses, and runs nothing


def test_a_campaign_without_a_page_to_write_imports_nothing_that_draws() -> None:
    _, packages, *_ = started("run", "--pair", "subway-1", "--dry-run")
    assert "numpy" in packages
    assert not {"jinja2", "matplotlib", "plotly", "scipy"} & packages


def test_numpy_starts_no_threads() -> None:
    dry_run = ("run", "--pair", "subway-1", "--dry-run")
    assert started(*dry_run)[3] == started(*dry_run, OPENBLAS_NUM_THREADS="1")[3]


def test_a_folder_that_is_gone_is_one_sentence(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    inside = f'cd {shlex.quote(str(gone))} && rmdir "$PWD" && exec "$0" -m railyard show'
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = ["bash", "-c", inside, sys.executable]
    done = run_program(command, env=environment)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert "the current folder: No such file or directory" in done.stderr and "cd to another" in done.stderr


def test_without_an_output_a_command_does_its_work_and_its_files_are_its_own(tmp_path: Path) -> None:
    """A file that takes the place of a standard one would get what programs print."""
    out = tmp_path / "plot.svg"
    inside = f'exec "$0" -m railyard traces stats subway-1 --plot {shlex.quote(str(out))} <&- >&- 2>&-'
    done = subprocess.run(["bash", "-c", inside, sys.executable], check=False, cwd=ROOT)
    assert done.returncode == 0 and out.read_text().endswith("</svg>\n")


def test_letters_that_the_locale_has_not_do_not_end_a_command() -> None:
    command = [sys.executable, "-m", "railyard", "--help"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = run_program(command, cwd=ROOT, env=environment)
    assert (done.returncode, done.stderr) == (0, "") and "pairs ? schemes" in done.stdout


def test_names_are_utf8_in_every_locale(tmp_path: Path) -> None:
    folder = tmp_path / "Straße"
    folder.mkdir()
    for name in ("größe.down", "größe.up"):
        (folder / name).write_text("500\n1000\n")
    link = 'technology: wifi, uplink: größe.up, downlink: größe.down, base_rtt_ms: 20, queue: "droptail:packets=100"'
    about = "{name: mine, scenario: Büro, licence: CC0, source: me"
    paths = ", ".join(f"{{name: {name}, {link}}}" for name in ("a", "b"))
    (folder / "index.yaml").write_text(f"schema: 1\npairs:\n- {about}, paths: [{paths}]}}\n", encoding="utf-8")
    environment = os.environ | {"RAILYARD_TRACE_PATH": str(folder), "LC_ALL": "C", "PYTHONUTF8": "0"}
    environment.pop("PYTHONIOENCODING", None)
    out = str(folder / "öffnen")
    for words in (
        ["traces", "validate", str(folder / "index.yaml")],
        ["run", "smoke", "--arena", "sim", "--pair", "mine", "--seeds", "1", "--out", out],
        ["show", out],
    ):
        done = run_program([sys.executable, "-m", "railyard", *words], cwd=ROOT, env=environment)
        assert done.returncode == 0 and done.stdout.isascii(), done.stderr


def test_a_full_standard_output_is_named_beside_the_results() -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "railyard", "traces", "list"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT)
    assert done.returncode == 2
    assert done.stderr.startswith("railyard: the results or the standard output: No space left on device;")


def test_a_lack_of_memory_is_no_fault_of_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("railyard.cli.main.app", Mock(side_effect=MemoryError))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "railyard: out of memory; what is complete in the results is kept.\n"


def test_without_a_home_nothing_is_said_of_it(tmp_path: Path) -> None:
    environment = {name: text for name, text in os.environ.items() if name not in ("MPLCONFIGDIR", "XDG_CONFIG_HOME")}
    command = [sys.executable, "-m", "railyard", "traces", "stats", "subway-1", "--plot", str(tmp_path / "plot.svg")]
    bare = environment | {"HOME": "/proc/none"}
    done = run_program(command, cwd=ROOT, env=bare)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_file_that_cannot_be_written_is_named_as_it_was_given(tmp_path: Path) -> None:
    long = tmp_path / f"{'x' * 248}.svg"  # the file beside it has a longer name
    done = railyard("traces", "stats", "subway-1", "--plot", str(long))
    assert (done.returncode, done.stderr) == (
        2,
        f"railyard: {long}: cannot be written: File name too long; choose another place.\n",
    )


@pytest.mark.parametrize("words", MOVED)
def test_the_name_that_a_command_had_before_names_the_new_one(words: str) -> None:
    done = railyard(*words.split(), "subway-1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"railyard: `railyard {words}` is `railyard {MOVED[words]}` now.\n"
    assert railyard(*MOVED[words].split()[: len(words.split())], "--help").returncode == 0


def test_a_usage_line_says_once_what_is_optional_and_what_may_be_repeated() -> None:
    usages = {}
    for name in COMMANDS:
        said = railyard(name, "--help").stdout
        usages[name] = next(line.split(f"{name} ", 1)[1].strip() for line in said.splitlines() if "Usage: " in line)
    assert usages["compare"] == "[OPTIONS] {CAMPAIGN} [OTHER]"
    assert usages["qlog"] == "[OPTIONS] {RUN|FILE}..." and usages["clean"] == "[OPTIONS] [FOLDER]..."
    assert not [usage for usage in usages.values() if re.search(r"\[\[|…|[\[{][^]}]* ", usage)]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("run fig1", ["fig1", "fig10"]),
        ("study gen", ["generator"]),
        ("stress 01", ["01-primary-dark"]),
        ("run demo --pair hsr-2", ["hsr-2"]),
    ],
)
def test_names_are_completed(words: str, names: list[str]) -> None:
    line = {"COMP_WORDS": f"railyard {words}", "COMP_CWORD": str(len(words.split()))}
    environment = os.environ | line | {"_RAILYARD_COMPLETE": "complete_bash"}
    program = [
        sys.executable,
        "-c",
        "import sys; sys.argv[0] = 'railyard'; from railyard.cli.start import main; main()",
    ]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split()[: len(names)] == names, done.stderr
