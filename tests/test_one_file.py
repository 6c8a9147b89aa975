"""What takes one file: a scheduler, by docs/howto/scheduler.md from its first line to its last, and a setting.

Each in a copy of the tree.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import good, run_program
from railyard.base.paths import BIN_VARIABLE, ROOT, changed_since_built

PAGE = ROOT / "docs" / "howto" / "scheduler.md"
STEP = re.compile(
    r"<!-- test: howto(?: file (?P<file>\S+))?(?: exits (?P<status>\d))? -->\n```\w+\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
BUILT = ("bin", "release", "generated")  # taken over, so that make compiles only what is new
STEPS_S = 600
EXPERIMENT = """
name: setting
arena: sim
pairs: [subway-1]
schemes: [{scheme: xlink, standby_probe_ms: 9}]
seeds: 1
player: {bitrate_bps: 3000000, duration_s: 5}
"""

Follow = Callable[..., str]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """What git tracks, as it is in the working tree, and what was built of it; with the compiled modules of Python,
    since each start of `railyard` would compile them anew."""
    if not (ROOT / "build" / "release").is_dir():
        pytest.skip("needs the objects of the programs: run `make build`")
    copy = tmp_path / "tree"
    listed = good(run_program(["git", "ls-files"], cwd=ROOT)).stdout
    for name in listed.splitlines():
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    for name in BUILT:
        if (ROOT / "build" / name).is_dir():
            shutil.copytree(ROOT / "build" / name, copy / "build" / name, symlinks=True)
    for compiled in (ROOT / "railyard").rglob("__pycache__"):
        if (copy / compiled.relative_to(ROOT).parent).is_dir():
            shutil.copytree(compiled, copy / compiled.relative_to(ROOT))
    return copy


@pytest.fixture
def follow(tree: Path, tmp_path: Path) -> Follow:
    """Runs a step (lines for bash) in the copy. Returns its output."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, module in (("railyard", "-m railyard "), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {module}"$@"\n')
        (programs / name).chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("RAILYARD_", "MAKE"))}
    environment |= {"PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(tree), "COLUMNS": "120"}

    def run(step: str, status: int = 0) -> str:
        done = run_program(["bash", "-euo", "pipefail", "-c", step], cwd=tree, env=environment, timeout=STEPS_S)
        assert done.returncode == status, f"{step}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    return run


COMMANDS = """
import json, shlex, sys
sys.path += ["tests", "scripts"]
import reference_pages
from in_process import railyard
said = [railyard(*shlex.split(line)) for line in sys.argv[1:]]
sys.argv[1:] = ["--pages"]
reference_pages.main()
print(json.dumps([(done.returncode, done.stdout + done.stderr) for done in said]))
"""


def said_by(follow: Follow, *commands: str) -> list[tuple[int, str]]:
    """Exit code and output of each command of `railyard` in the copy, in one process. At its end it writes the pages
    that follow from the code."""
    done = follow(shlex.join(["python", "-c", COMMANDS, *commands]))
    return [(code, text) for code, text in json.loads(done.splitlines()[-1])]


@pytest.mark.timeout(900)
def test_the_page_adds_a_scheduler_by_one_file(tree: Path, follow: Follow) -> None:
    text = PAGE.read_text(encoding="utf-8")
    steps = list(STEP.finditer(text))
    assert len(steps) == len(re.findall(r"^```\w+$", text, re.MULTILINE)) > 5, "a block of the page is not followed"
    files = []
    for step in steps:
        if step["file"]:
            files.append(step["file"])
            assert not (tree / step["file"]).exists()
            (tree / step["file"]).write_text(step["text"], encoding="utf-8")
        else:
            follow(step["text"], int(step["status"] or 0))
    own = ["transport/scheduler/widest.c", "transport/scheduler/widest_test.c"]
    assert files == [*own, "my-scheduler.yaml", "train.py"]


@pytest.mark.parametrize(
    ("definition", "sentence"),
    [
        ('const ops op_mine = {.name = "first"};', 'mine.c:2: op_mine takes .name = "mine", and has "first".'),
        ("const ops op_mine = {\n    .run = run,\n};", 'mine.c:2: op_mine takes .name = "mine", and has none.'),
        ('ops op_mine = {.name = "mine"};', "mine.c:2: begin the line with `const ops op_NAME =`"),
        ('static const ops op_mine = {.name = "mine"};', "mine.c:2: begin the line with `const ops op_NAME =`"),
        ('const ops op_Mine = {.name = "Mine"};', "mine.c:2: begin the line with `const ops op_NAME =`"),
    ],
)
def test_a_definition_that_would_not_be_found_by_its_name_ends_the_build(
    tmp_path: Path, definition: str, sentence: str
) -> None:
    """Without that a copy whose name was left as it was would never run, and one without a name end every program."""
    (tmp_path / "first.c").write_text('const ops op_first = {.name = "first"};\n')
    command = [str(ROOT / "scripts" / "registry.sh"), ".", "h.h", "ops", "op_", "all", "first"]

    def register(text: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "mine.c").write_text(text)
        return run_program(command, cwd=tmp_path, timeout=20)

    refused = register(f"/* Mine. */\n{definition}\n")
    assert refused.returncode == 1 and refused.stdout == ""
    assert refused.stderr.startswith(f"./{sentence}") and refused.stderr.count("\n") == 1
    taken = register('const ops op_mine_too = {\n    .run = run,\n    .name = "mine-too",\n};\n')
    assert "= {\n    &op_first,\n    &op_mine_too,\n    NULL,\n};\n" in taken.stdout, taken


def test_a_run_says_that_a_scheduler_was_changed_and_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(BIN_VARIABLE, raising=False)
    files = [tmp_path / name for name in ("Makefile", "transport/scheduler/mine.c", "build/bin/xlink-sim")]
    for time_s, file in enumerate((*files, tmp_path / "transport/scheduler/mine_test.c"), 1):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        os.utime(file, (time_s, time_s))
    assert changed_since_built(["xlink-sim"], tmp_path) is None, "a test is in no program"
    os.utime(files[1], (9, 9))
    told = changed_since_built(["xlink-sim", "mpshell"], tmp_path)
    assert told is not None and told.startswith("transport/scheduler/mine.c has changed since build/bin/xlink-sim was")
    assert told.endswith("run `make build`.")
    assert changed_since_built(["mpshell"], tmp_path) is None
    monkeypatch.setenv(BIN_VARIABLE, str(tmp_path))
    assert changed_since_built(["xlink-sim"], tmp_path) is None, "another build was asked for"


ROW = """
    {"standby_probe_ms", SETTING_WHOLE, FIELD(limits.standby_probe_us), .least = 10, .most = 60000, .scale = 1000,
     .sides = BOTH, .can_reload = true, .value = "MS", .fallback = "1000", .help = "Time between probes."},
"""


def test_a_setting_is_one_row(tree: Path, follow: Follow) -> None:
    """A setting of the transport: options, help, jobs, files, JSON and experiments follow from its row."""
    file = tree / "lib" / "schemes" / "quic_settings.c"
    text = file.read_text(encoding="utf-8")
    file.write_text(
        text.replace("const setting quic_setting_rows[] = {", f"const setting quic_setting_rows[] = {{{ROW}")
    )
    programs = ("server", "player", "load")
    follow(f"make -j2 build/bin/xlink-sim {' '.join(f'build/bin/xlink-{program}' for program in programs)}")
    for program in programs:
        assert "--standby-probe-ms MS" in follow(f"build/bin/xlink-{program} --help")
    wrong = "takes a whole number from 10 to 60000, not"
    assert wrong in follow("build/bin/xlink-server --quic 127.0.0.1:0 --standby-probe-ms 9", 2)
    (tree / "params.yaml").write_text("standby_probe_ms: 9\n")
    assert wrong in follow("build/bin/xlink-server --quic 127.0.0.1:0 --params params.yaml", 2)
    job = '{"scheme": "xlink", "standby_probe_ms": 9}'
    assert wrong in follow(f"echo '{job}' | build/bin/xlink-sim - --out out", 2)
    follow(f"{sys.executable} scripts/reference_pages.py")  # make docs
    for page in ("formats.md", "experiment.schema.json"):
        assert "standby_probe_ms" in (tree / "docs" / "reference" / page).read_text(), page
    (tree / "e.yaml").write_text(EXPERIMENT)
    assert "standby_probe_ms" in follow("railyard run e.yaml", 2)


DISCIPLINE = """
#include "emulator/link/queue.h"

/* Keeps every second packet. */
struct halving {
    uint64_t every;
    uint64_t seen;
};

static void enqueue(link_queue *queue, link_packet *packet, uint64_t now) {
    struct halving *h = queue->state;
    (void)now;
    link_fifo_push(&queue->fifo, packet);
    if (++h->seen % h->every == 0)
        link_queue_drop(queue, link_fifo_pop(&queue->fifo));
}

static link_packet *dequeue(link_queue *queue, uint64_t now) {
    (void)now;
    return link_fifo_pop(&queue->fifo);
}

static const link_queue_option options[] = {
    {"every", offsetof(struct halving, every), LINK_QUEUE_COUNT, 1, 1000, 2},
    {NULL, 0, LINK_QUEUE_COUNT, 0, 0, 0},
};

const link_queue_discipline link_queue_halving = {
    .name = "halving",
    .options = options,
    .state_size = sizeof(struct halving),
    .enqueue = enqueue,
    .dequeue = dequeue,
};
"""
QUEUES = """
name: queue
arena: sim
pairs: [subway-1]
schemes: [xlink]
seeds: 1
player: {bitrate_bps: 1000000, duration_s: 2}
qlog: none
"""


LINK_ROW = """
    {"least_delay_ms", MS(config.least_delay_us), .fallback = "0", .help = "No packet has a shorter delay."},
"""
LINK_MEMBER = "    uint64_t least_delay_us;\n"
LINK_USE = "    delay = delay > link->set.least_delay_us ? delay : link->set.least_delay_us;\n"


@pytest.mark.long
def test_a_link_setting_is_one_row_and_its_use_and_a_queue_discipline_one_file(tree: Path, follow: Follow) -> None:
    """Keys of mpshell, jobs and experiments follow, and values of one direction."""

    def insert(name: str, before: str, line: str) -> None:
        file = tree / "emulator" / "link" / name
        text = file.read_text(encoding="utf-8")
        assert text.count(before) == 1
        file.write_text(text.replace(before, line.lstrip("\n") + before))

    insert("settings.c", '    {"reorder", SETTING_PROBABILITY', LINK_ROW)
    insert("link.h", "    double reorder; ", LINK_MEMBER)
    insert("link.c", "    return delay;\n}", LINK_USE)
    (tree / "emulator" / "link" / "queue_halving.c").write_text(DISCIPLINE)
    follow("make -j2 LTO= build/bin/xlink-sim build/bin/mpshell")  # without optimising as one unit
    (tree / "railyard" / "base" / "settings.json").write_text(follow("build/bin/xlink-sim --describe-settings"))
    firsts = []
    for least in (0, 400):
        links = f"links: {{all: {{down_least_delay_ms: {least}}}}}\n"
        (tree / "e.yaml").write_text(f"{QUEUES}queue: halving:every=50\n{links}")
        follow(f"railyard run e.yaml --out out{least}")
        (run,) = (tree / f"out{least}" / "runs").iterdir()
        events = map(json.loads, (run / "player.jsonl").read_text(encoding="utf-8").splitlines())
        firsts.append(next(event["latency_s"] for event in events if event["event"] == "first_frame"))
        paths = json.loads((run / "mpshell.json").read_text(encoding="utf-8"))["paths"]
        assert all(path["queue"] == "halving:every=50" for path in paths)
        assert sum(path["down"]["queue_drops"] for path in paths) > 0
    assert firsts[1] > firsts[0] + 0.3, firsts
    for wrong, words in (
        ("links: {all: {least_delay_ms: -1}}", "ms from 0 to 3600000"),
        ("queue: halving:often=2", "halving takes every=NUMBER"),
    ):
        (tree / "e.yaml").write_text(f"{QUEUES}{wrong}\n")
        assert words in follow("railyard run e.yaml --out bad", 2)
    shell = "build/bin/mpshell --path wifi:up=1mbps,down=1mbps,delay=1,{} -- true"
    assert "up-least-delay takes ms (0 to 3600000), not 'x'" in follow(shell.format("up-least-delay=x"), 2)
    assert "halving" in follow(shell.format("queue=red"), 2)


FIGURE_ROW = """
    Figure(
        "slow_requests",
        "slow requests",
        "%",
        Ratio(lambda play: sum(chunk.rct_s > 1.2 for chunk in play.chunks), lambda play: len(play.chunks)),
        "Requests that take longer than 1.2 s.",
        where="`chunks.rct_s`",
        head=("slow", "requests"),
        bar_digits=1,
        is_compared=True,
        gate=Gate(0.03),
    ),
"""
PLAYS = """
name: slow
arena: sim
pairs: [subway-1]
schemes: [sp, vanilla-mp]
seeds: 6
start_offset_ms: spread
player: {bitrate_bps: 4000000, duration_s: 3}
qlog: none
"""
NEW_GATE = """
from pathlib import Path
from railyard.gate.compare import compare
from railyard.gate.suite import Floors
from railyard.results.records import load_campaign
runs = [run for run in load_campaign(Path("out"))[1] if run.label == "sp"]
[row] = compare(runs, runs, {run.run_id: ("a", "b") for run in runs}, Floors(), 0.05)
print([(one.figure.name, one.floor) for one in row.comparisons])
"""


def test_a_figure_is_one_row(tree: Path, follow: Follow) -> None:
    """Column, bars, comparison of schemes, metric and floor of the gate, and its definition follow from the row."""
    file = tree / "railyard" / "figures" / "rows.py"
    text = file.read_text(encoding="utf-8")
    before = '    Figure(\n        "efficiency",'
    file.write_text(text.replace(before, f"{FIGURE_ROW.strip(chr(10))}\n{before}"))
    (tree / "slow.yaml").write_text(PLAYS)
    said = said_by(follow, "run slow.yaml --out out", "show out", "compare out", "report out")
    assert [code for code, _ in said] == [0] * 4, said
    assert re.search(r"\bslow\b.*\n.*\brequests\b", said[1][1]), "a column in the terminal"
    assert "slow requests, %" in said[2][1]
    page = (tree / "out" / "report.html").read_text(encoding="utf-8")
    for place in ("<dt>slow requests</dt>", "Slow requests: Requests that take longer", '"slow requests, %"'):
        assert place in page, place
    assert "('slow_requests', 0.03)" in follow(f"python -c '{NEW_GATE}'")
    for name, words in (("metrics.md", "longer than 1.2 s"), ("formats.md", "`slow_requests`")):
        assert words in (tree / "docs" / "reference" / name).read_text(encoding="utf-8"), name
