"""The benchmarks: what they compare is comparable, and what has grown is reported."""

import array
import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from conftest import good, run_program
from railyard.base.errors import UserError
from railyard.base.paths import ROOT, program
from railyard.run.children import make_environment
from railyard.studies.machine import Machine
from railyard.studies.study import CODE, Measured, Study, find_study

REQUESTS = 60


def requests_phase(connections: int) -> dict[str, float]:
    command = [str(program("endpoint-bench")), str(connections), str(REQUESTS)]
    done = good(run_program(command, timeout=60))
    phase: dict[str, float] = json.loads(done.stdout)["requests"]
    return phase


def test_a_request_takes_as_many_packets_of_one_connection_as_of_many() -> None:
    few, many = requests_phase(3), requests_phase(REQUESTS)
    assert many["packets"] >= REQUESTS * 8  # 10 kB, the request, an acknowledgement at least
    assert few["packets"] == pytest.approx(many["packets"], rel=0.2)
    assert few["cpu_s"] > 0


@pytest.mark.parametrize("keys", [[], ["loss=1"], ["nat=timeout=30000", "queue=droptail:packets=2"]])
def test_the_bench_of_links_sends_what_it_is_told(keys: list[str]) -> None:
    done = good(run_program([str(program("link-bench")), "100", *keys]))
    departed = {"": 100, "loss=1": 0}.get("".join(keys), 40)  # two of five at a time
    assert json.loads(done.stdout) == {"arrived": 100, "departed": departed, "inside": 0}
    wrong = run_program([str(program("link-bench")), "1", "x=1"])
    assert wrong.returncode == 2 and '"x" is not one of up=TRACE' in wrong.stderr


@pytest.fixture(scope="module")
def counts() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_instructions", ROOT / "bench" / "instructions.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_instructions"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("bulk", ["figures", "ratios", "machine", "claims"]),
        ("connections", ["cost", "machine"]),
        pytest.param("mpshell-lateness", ["flows", "keep-awake", "machine"], marks=pytest.mark.privileged),
        ("simulator-speed", ["videos", "paths", "players", "traces", "machine"]),
    ],
)
def test_what_a_study_of_speed_keeps_reads_back_as_it_was_measured(name: str, parts: list[str], tmp_path: Path) -> None:
    one = find_study(name)
    measured = one.measure("small", {})
    assert [part for part, _ in measured.parts() if part != "calls"] == parts  # strace may not be there
    copy = Study(one.name, tmp_path, one.declared)
    shutil.copy2(one.folder / CODE, tmp_path)
    measured.write(copy.file("small"))
    assert list(copy.kept("small").parts()) == list(measured.parts())


def test_link_bench_takes_every_model_whose_cost_is_measured(tmp_path: Path) -> None:
    code = find_study("simulator-speed").code
    files = {name: tmp_path / name for name in code.FILES}
    for name, file in files.items():
        file.write_text(code.FILES[name])
    for model, keys in code.LINKS.items():
        command = [str(program("link-bench")), "100", *keys.format(**files).split()]
        assert subprocess.run(command, capture_output=True, check=False).returncode == 0, model


@pytest.mark.parametrize(
    ("share", "turns", "verdict"), [(0.5, 9, "holds"), (0.9, 9, "does not hold"), (0.5, 5, "not decided")]
)
def test_a_goal_of_bulk_transfers_is_judged_on_ratios_of_the_same_turns(share: float, turns: int, verdict: str) -> None:
    """Later turns have more load, more than the difference."""
    study = find_study("bulk")
    code = study.code
    ours, theirs = (
        [code.Turn(mbps=1, server_s_per_gb=load * factor, client_s_per_gb=1) for load, factor in enumerate(factors, 1)]
        for factors in ([share + 0.01 * turn for turn in range(turns)], [1.0] * turns)
    )
    case = code.OfCase(links_mbps=None, turns={"libxlink": ours, "xquic,datagram=1420": theirs})
    machine = Machine(model=None, cores=2, load_1min=(0, 0))
    data = code.Measured(cases={"loopback": case}, datagrams_a_call={}, missing=[], machine=machine)
    rows = dict(Measured(study, None, data, "").parts())["claims"].splitlines()
    [row] = [row for row in rows if row.startswith("| server CPU of libxlink / xquic,datagram=1420: below 0.7 | loop")]
    assert row.endswith(f"] | {verdict} |")


def test_packets_that_use_every_opportunity_of_a_link_use_all_of_it(tmp_path: Path) -> None:
    code = find_study("mpshell-lateness").code
    case, records, ms = code.Case("12 Mbps", "12mbps", 1), tmp_path / "sink", 1_000_000
    times = [code.Opportunities(case.trace).time(number) for number in range(250)]
    records.write_bytes(array.array("Q", [part for ns in times for part in (0, 0, ns)]).tobytes())
    way = {"departed_packets": 250, "device_drops": {}, "write_errors": 0, "lateness_us": {"p99": 0, "max": 0}}
    summary = {"t0_monotonic_us": 0, "cpu_s": 0, "paths": [{"up": way, "down": way, "device_drops": {}}]}
    flow = code._flow(case, records, {"realtime_minus_monotonic_ns": 0, "overflowed": 0}, summary, 0)
    assert (flow.opportunities_used, flow.mbps) == (1, pytest.approx(12, abs=0.001))
    records.write_bytes(array.array("Q", (0, 0, ms)).tobytes())
    with pytest.raises(UserError, match="no packet arrived in time"):
        code._flow(case, records, {"realtime_minus_monotonic_ns": 0, "overflowed": 0}, summary, 0)


def test_an_ordinary_build_replaces_a_simulator_that_was_linked_fast(tmp_path: Path) -> None:
    """Its instructions would be those of another program."""
    environment = make_environment()

    def is_linked(fast: str) -> bool:
        link = "LINK=@touch $@ && echo linked"
        command = ["make", "-s", f"BIN={tmp_path}", f"FAST_LINK={fast}", link, f"{tmp_path}/xlink-sim"]
        done = good(run_program(command, cwd=ROOT, env=environment))
        return "linked" in done.stdout

    assert [is_linked(fast) for fast in ("1", "1", "", "", "1")] == [True, False, True, False, False]


def test_a_job_that_takes_over_two_percent_more_instructions_has_grown(counts: ModuleType) -> None:
    before = {"sim-one": 1_000_000, "sim-two": 1_000_000, "cli": 1_000_000}
    after = {"sim-one": 1_020_000, "sim-two": 1_020_001, "cli": 900_000, "new": 5}
    assert counts.grown(before, after) == ["sim-two"]
    assert counts.grown({}, after) == []


def test_a_commit_says_why_in_a_line_of_its_own(counts: ModuleType) -> None:
    messages = "link: Count drops\n\nCost: one counter a packet, 3 %\n\nwire: Mend it\nThe Cost: none\n"
    assert counts.reasons(messages) == ["one counter a packet, 3 %"]
    assert counts.reasons("wire: Mend it\n") == []


@pytest.mark.parametrize(
    ("file", "part"),
    [
        ("/home/one/tree/transport/wire/cursor.c", "transport/wire"),
        ("lib/video/video.c", "lib/video"),
        ("/another/tree/player/player.c", "player"),
        ("build/generated/transport/scheduler/registry.c", "transport/scheduler"),
        ("./string/../sysdeps/x86_64/multiarch/memmove.S", None),
    ],
)
def test_a_function_counts_for_the_folder_of_its_source(counts: ModuleType, file: str, part: str | None) -> None:
    found = counts.OWN.search(file)
    assert (found and found[1]) == part


@pytest.mark.parametrize("lost", ["<!-- instructions: jobs -->", "<!-- end -->"])
def test_a_table_replaces_the_one_between_its_marks_and_nothing_else(counts: ModuleType, lost: str) -> None:
    page = counts.PAGE.read_text()
    for name in ("jobs", "parts"):
        head, _, rest = page.partition(f"<!-- instructions: {name} -->\n\n")
        old, _, tail = rest.partition("\n\n<!-- end -->")
        assert counts.placed(page, name, old.splitlines()) == page
        other = counts.placed(page, name, ["| other |", "| --- |"])
        assert other.startswith(head) and other.endswith(tail)
        assert len(other) == len(page) - len(old) + len("| other |\n| --- |")
    with pytest.raises(SystemExit, match="no place for a table"):
        counts.placed(page.replace(lost, "", 1), "jobs", ["| other |"])


def test_the_stored_counts_are_those_of_all_jobs(counts: ModuleType) -> None:
    stored = json.loads(counts.STORED.read_text())
    assert list(stored["instructions"]) == [job.name for job in counts.JOBS]
    page = counts.PAGE.read_text()
    assert all(f"{count:,}" in page for count in stored["instructions"].values())
