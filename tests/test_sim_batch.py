"""`xlink-sim --batch`: many runs of one process, each as by itself, and none of them the end of another."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from railyard.base.paths import program, programs_dir
from railyard.gate.compare import outputs_sha256
from railyard.run.simbatch import Batches

pytestmark = pytest.mark.skipif(not (programs_dir() / "xlink-sim").is_file(), reason="needs xlink-sim: `make build`")
SECONDS = 3600


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
    """A job that takes a hundred seconds of processor time or more."""
    return write_job(folder, 125_000 * SECONDS)


def alone(job: Path, out: Path) -> int:
    out.mkdir()
    with (out / "sim.stderr").open("wb") as stderr:
        return subprocess.run([program("xlink-sim"), job, "--out", out], stderr=stderr, check=False).returncode


def test_a_run_of_a_batch_has_the_bytes_of_one_alone_also_when_its_trace_has_changed(
    batch: subprocess.Popen[str], tmp_path: Path
) -> None:
    jobs = [write_job(tmp_path, seed=1), write_job(tmp_path, seed=2, qlog=True, link_logs=True, null_crypto=False)]
    prints = []
    for number, job in enumerate([*jobs, jobs[0]]):
        if number == len(jobs):  # half of the rate
            (tmp_path / "trace").write_text("".join(f"{t}\n" for t in range(1, 2001) if t % 2 == 0))
        start(batch, job, tmp_path / f"batch{number}")
        assert ended(batch) == alone(job, tmp_path / f"alone{number}") == 0
        prints.append(outputs_sha256(tmp_path / f"batch{number}"))
        assert prints[-1] == outputs_sha256(tmp_path / f"alone{number}")
    assert len(set(prints)) == 3


def test_a_job_that_is_wrong_and_a_run_that_dies_end_no_other(batch: subprocess.Popen[str], tmp_path: Path) -> None:
    start(batch, write_job(tmp_path, scheme="none"), tmp_path / "wrong")
    assert ended(batch) == 2
    assert "none" in (tmp_path / "wrong" / "sim.stderr").read_text()
    start(batch, long_job(tmp_path), tmp_path / "killed")
    children = Path(f"/proc/{batch.pid}/task/{batch.pid}/children")
    while not (own := children.read_text().split()):
        time.sleep(0.01)
    os.kill(int(own[0]), signal.SIGKILL)
    assert ended(batch) == -signal.SIGKILL
    start(batch, write_job(tmp_path), tmp_path / "right")
    assert ended(batch) == 0
    assert batch.stdin is not None
    batch.stdin.write("no folder\n")
    batch.stdin.flush()
    assert batch.wait() == 2


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


def test_a_program_of_before_is_started_for_each_run(tmp_path: Path) -> None:
    old = tmp_path / "xlink-sim"
    old.write_text('#!/bin/sh\necho "xlink-sim: unknown option" >&2\nexit 2\n')
    old.chmod(0o755)

    async def run() -> tuple[bool, int | None]:
        return await Batches().run(old, write_job(tmp_path), tmp_path, 60)

    assert asyncio.run(run()) == (False, None)
