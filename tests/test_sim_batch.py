"""`xlink-sim --batch`: many runs of one process, each as by itself; one that dies ends none but its process."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from railyard.base.paths import ROOT, program
from railyard.gate.compare import outputs_sha256
from railyard.run import simbatch
from railyard.run.simbatch import Batches
from waiting import is_running, wait_until

pytestmark = pytest.mark.usefixtures("built")
SECONDS = 72_000


@pytest.fixture
def batch() -> Iterator[subprocess.Popen[str]]:
    command: list[str | Path] = [program("xlink-sim"), "--batch"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def start(process: subprocess.Popen[str], job: Path, out: Path) -> None:
    assert process.stdin is not None
    out.mkdir(exist_ok=True)
    process.stdin.write(f"{job}\t{out}\n")
    process.stdin.flush()


def ended(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def write_job(folder: Path, video_bytes: int = 200_000, **members: Any) -> Path:
    trace = folder / "trace"
    if not trace.exists():
        trace.write_text("".join(f"{t}\n" for t in range(1, 2001)))
    paths = [
        {"name": name, "technology": name, "up": "trace", "down": "trace", "delay_ms": 20} for name in ("wifi", "lte")
    ]
    player = {"video_bytes": video_bytes, "bitrate_bps": 1_000_000, "chunk_bytes": 100_000}
    job = {"scheme": "xlink", "time_limit_s": 2 * SECONDS, "paths": paths, "player": player, "null_crypto": True}
    file = folder / f"job-{len(list(folder.glob('job-*')))}.json"
    file.write_text(json.dumps(job | members))
    return file


def long_job(folder: Path) -> Path:
    """A job that takes half a minute of processor time or more."""
    return write_job(folder, 125_000 * SECONDS)


def alone(job: Path, out: Path) -> int:
    out.mkdir()
    with (out / "sim.stderr").open("wb") as stderr:
        return subprocess.run([program("xlink-sim"), job, "--out", out], stderr=stderr, check=False).returncode


def contents_of(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def wait_begun(out: Path) -> None:
    wait_until((out / "player.jsonl").is_file, "the run does not begin")


def batches_of(process: int) -> list[int]:
    files = Path(f"/proc/{process}/task").glob("*/children")
    children = [int(each) for file in files for each in file.read_text().split()]
    return [child for child in children if b"--batch" in Path(f"/proc/{child}/cmdline").read_bytes()]


def test_a_run_of_a_batch_has_the_bytes_of_one_alone_also_when_its_trace_has_changed(
    batch: subprocess.Popen[str], tmp_path: Path
) -> None:
    real: dict[str, Any] = {"null_crypto": False, "keylog": True, "captures": True}
    jobs = [
        write_job(tmp_path, seed=1),
        write_job(tmp_path, seed=2, qlog=True, **real),
        write_job(tmp_path, seed=2, session="early_data", qlog=True),  # whose tickets have the time of day
    ]
    prints = []
    for number, job in enumerate([*jobs, jobs[1], jobs[0], jobs[0]]):
        if number == 5:  # half of the rate
            (tmp_path / "trace").write_text("".join(f"{t}\n" for t in range(1, 2001) if t % 2 == 0))
        start(batch, job, tmp_path / f"batch{number}")
        assert ended(batch) == alone(job, tmp_path / f"alone{number}") == 0
        prints.append(contents_of(tmp_path / f"batch{number}"))
        assert prints[-1] == contents_of(tmp_path / f"alone{number}")
    assert prints[3:5] == [prints[1], prints[0]]
    assert all(one != other for one, other in combinations([*prints[:3], prints[5]], 2))


def test_a_job_that_is_wrong_ends_no_other(batch: subprocess.Popen[str], tmp_path: Path) -> None:
    start(batch, write_job(tmp_path, scheme="none"), tmp_path / "wrong")
    assert ended(batch) == 2
    assert "none" in (tmp_path / "wrong" / "sim.stderr").read_text()
    start(batch, write_job(tmp_path), tmp_path / "right")
    assert ended(batch) == 0
    assert (tmp_path / "right" / "sim.stderr").read_text() == ""
    assert batch.stdin is not None
    batch.stdin.write("no folder\n")
    batch.stdin.flush()
    assert batch.wait() == 2


def test_after_a_run_that_dies_the_next_one_has_another_process(tmp_path: Path) -> None:
    for name in ("dies", "next"):
        (tmp_path / name).mkdir()

    async def both() -> list[tuple[bool, int | None]]:
        batches = Batches()
        try:
            dying = asyncio.create_task(batches.run(program("xlink-sim"), long_job(tmp_path), tmp_path / "dies", 60))
            await asyncio.to_thread(wait_begun, tmp_path / "dies")
            (process,) = batches_of(os.getpid())
            os.kill(process, signal.SIGKILL)
            return [await dying, await batches.run(program("xlink-sim"), write_job(tmp_path), tmp_path / "next", 60)]
        finally:
            await batches.close()

    assert asyncio.run(both()) == [(True, -signal.SIGKILL), (True, 0)]


def test_a_run_that_does_not_end_is_stopped_and_the_next_one_has_another_process(tmp_path: Path) -> None:
    for name in ("hangs", "next"):
        (tmp_path / name).mkdir()

    async def both() -> list[tuple[bool, int | None]]:
        batches = Batches()
        try:
            return [
                await batches.run(program("xlink-sim"), job, tmp_path / name, limit_s)
                for job, name, limit_s in ((long_job(tmp_path), "hangs", 0.5), (write_job(tmp_path), "next", 60))
            ]
        finally:
            await batches.close()

    assert asyncio.run(both()) == [(True, None), (True, 0)]


def test_ctrl_c_does_not_reach_the_processes_by_themselves(tmp_path: Path) -> None:
    """A terminal sends it to the group of the command, which ends its runs itself."""

    async def groups() -> list[int]:
        batches = Batches()
        try:
            await batches.run(program("xlink-sim"), write_job(tmp_path), tmp_path, 60)
            return [os.getpgid(process) for process in batches_of(os.getpid())]
        finally:
            await batches.close()

    (group,) = asyncio.run(groups())
    assert group != os.getpgrp()


def test_a_program_of_before_is_started_for_each_run(tmp_path: Path) -> None:
    old = tmp_path / "xlink-sim"
    old.write_text('#!/bin/sh\necho "xlink-sim: unknown option" >&2\nexit 2\n')
    old.chmod(0o755)

    async def run() -> tuple[bool, int | None]:
        return await Batches().run(old, write_job(tmp_path), tmp_path, 60)

    assert asyncio.run(run()) == (False, None)


def test_a_caller_that_waits_has_another_process_after_a_run_that_did_not_end(tmp_path: Path) -> None:
    outs = [tmp_path / name for name in ("first", "hangs", "next", "dies", "then", "last")]
    for out in outs:
        out.mkdir()
    short, long = write_job(tmp_path), long_job(tmp_path)
    with simbatch.batch(program("xlink-sim")) as own:
        assert own.run(short, outs[0], 60) == 0
        assert own.run(long, outs[1], 0.5) is None
        written = contents_of(outs[1]).get("player.jsonl", b"")  # nothing, if it was stopped before it began
        assert b'"summary"' not in written, "it did not run to its end"
        assert own.run(short, outs[2], 60) == 0
        (process,) = batches_of(os.getpid())

        def kill() -> None:
            wait_begun(outs[3])
            os.kill(process, signal.SIGKILL)

        with ThreadPoolExecutor(1) as pool:
            dying = pool.submit(kill)
            assert own.run(long, outs[3], 60) == -signal.SIGKILL
            dying.result()
        assert own.run(short, outs[4], 60) == 0
        (process,) = batches_of(os.getpid())
        os.kill(process, signal.SIGKILL)  # between two runs: of neither is it the end
        wait_until(lambda: not is_running(process), "it does not end")
        assert own.run(short, outs[5], 60) == 0
    assert batches_of(os.getpid()) == []
    prints = {outputs_sha256(outs[at]) for at in (0, 2, 4, 5)}
    assert len(prints) == 1


def test_a_program_that_cannot_start_says_why_in_its_first_run(tmp_path: Path) -> None:
    broken = tmp_path / "xlink-sim"
    broken.write_text('#!/bin/sh\necho "xlink-sim: a library is not there" >&2\nexit 127\n')
    broken.chmod(0o755)
    with simbatch.batch(broken) as own:
        for name in ("first", "second"):
            (tmp_path / name).mkdir()
            assert own.run(write_job(tmp_path), tmp_path / name, 60) == 127
            assert "a library is not there" in (tmp_path / name / "sim.stderr").read_text()


CALLER = """
import sys
from pathlib import Path
from railyard.run import simbatch
with simbatch.batch(Path(sys.argv[1])) as own:
    own.run(Path(sys.argv[2]), Path(sys.argv[3]), 600)
"""


def test_a_run_dies_with_its_caller(tmp_path: Path) -> None:
    command: list[str | Path] = [sys.executable, "-c", CALLER, program("xlink-sim"), long_job(tmp_path), tmp_path]
    with subprocess.Popen(command, cwd=ROOT) as caller:
        wait_until(lambda: batches_of(caller.pid), "no process of the batch begins")
        (process,) = batches_of(caller.pid)
        wait_begun(tmp_path)
        caller.kill()
    wait_until(lambda: not is_running(process), "it outlives the caller")
