"""The benchmarks: what they compare is comparable, and what has grown is reported."""

import contextlib
import importlib.util
import json
import socket
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from railyard.base.paths import ROOT, program
from railyard.run.runspec import certificate_command

REQUESTS = 60


def requests_phase(connections: int) -> dict[str, float]:
    command = [str(program("endpoint-bench")), str(connections), str(REQUESTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    phase: dict[str, float] = json.loads(done.stdout)["requests"]
    return phase


def test_a_request_takes_as_many_packets_of_one_connection_as_of_many() -> None:
    few, many = requests_phase(3), requests_phase(REQUESTS)
    assert many["packets"] >= REQUESTS * 8  # 10 kB, the request, an acknowledgement at least
    assert few["packets"] == pytest.approx(many["packets"], rel=0.2)
    assert few["cpu_s"] > 0


@pytest.mark.parametrize("keys", [[], ["loss=1"], ["nat=timeout=30000", "queue=droptail:packets=2"]])
def test_the_bench_of_links_sends_what_it_is_told(keys: list[str]) -> None:
    done = subprocess.run([str(program("link-bench")), "100", *keys], capture_output=True, text=True, check=True)
    departed = {"": 100, "loss=1": 0}.get("".join(keys), 40)  # two of five at a time
    assert json.loads(done.stdout) == {"arrived": 100, "departed": departed, "inside": 0}
    wrong = subprocess.run([str(program("link-bench")), "1", "x=1"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2 and '"x" is not one of up=TRACE' in wrong.stderr


def bench(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"bench_{name}", ROOT / "bench" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[f"bench_{name}"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def counts() -> ModuleType:
    return bench("instructions")


def test_the_bench_of_stacks_takes_a_port_that_nobody_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "bench")
    stacks = bench("stacks")
    subprocess.run(certificate_command(tmp_path), check=True, capture_output=True)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams, socket.socket() as streams:
        for taken in (datagrams, streams):
            with contextlib.suppress(OSError):  # then somebody else has it
                taken.bind(("", 4433))
        for name, run in stacks.known(["libxlink", "tcp"]).items():
            assert stacks.measure(run, stacks.Case(name, 1_000_000), tmp_path).mbps > 0


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
