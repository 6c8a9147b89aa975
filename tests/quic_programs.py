"""Starts the QUIC programs of the project on the loopback interface, for tests."""

import json
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from conftest import run_program
from railyard.base.paths import program
from waiting import wait_until

VIDEO_BYTES = 10_000_000
VIDEO_URL = f"/synthetic/{VIDEO_BYTES}"
BITRATE_BPS = 80_000_000  # the video plays for one second
TIME_LIMIT_S = 60


def mixed(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finaliser."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def synthetic(first: int, last: int) -> bytes:
    """Bytes first..last (inclusive) of a synthetic video, as lib/video/video.c makes words and blocks of 512 words."""
    begin, end = first // 8, last // 8 + 1
    number: NDArray[np.uint64] = np.arange(begin, end, dtype=np.uint64)
    word = mixed((number % np.uint64(512) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))
    block = mixed(number // np.uint64(512) * np.uint64(0xD1342543DE82EF95))
    return (word ^ block).astype("<u8").tobytes()[first - begin * 8 : last - begin * 8 + 1]


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def events(records: Sequence[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [record for record in records if record["event"] == name]


def read_line(process: subprocess.Popen[bytes], limit_s: float = 20.0) -> str:
    """The first line that the process prints; fails with its error output when none comes."""
    assert process.stdout is not None and process.stderr is not None
    line = b""
    end = time.monotonic() + limit_s
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, end - time.monotonic()))
        piece = process.stdout.read1(4096) if ready else b""  # type: ignore[attr-defined]  # a buffered reader
        if not piece:
            process.kill()
            raise AssertionError(f"nothing was printed: {process.stderr.read().decode()}")
        line += piece
    return line.decode()


class Child:
    """A server program: killed at the end at the latest, and then its exit status is known."""

    def __init__(self, arguments: Sequence[str | Path]) -> None:
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.first_line = read_line(self.process)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=20)
        finally:
            self.process.kill()
            self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
        assert self.process.stdout is not None and self.process.stderr is not None
        self.error_output = self.process.stderr.read().decode()
        self.process.stdout.close()
        self.process.stderr.close()


class Server(Child):
    """xlink-server on 127.0.0.1, any port, all local addresses of the loopback network with `address` 0.0.0.0."""

    def __init__(self, folder: Path, *arguments: str, address: str = "127.0.0.1") -> None:
        self.out = folder / "server.jsonl"
        super().__init__([program("xlink-server"), "--quic", f"{address}:0", "--out", self.out, *arguments])
        self.port = int(json.loads(self.first_line)["quic"].rsplit(":", 1)[1])

    def records(self) -> list[dict[str, Any]]:
        return read_jsonl(self.out)


def player_command(folder: Path, port: int, *arguments: str) -> list[str | Path]:
    """Plays the 10 MB video in chunks of 1 MB into folder/player.jsonl and folder/video."""
    command: list[str | Path] = [program("xlink-player"), "--transport", "quic", "--server", f"127.0.0.1:{port}"]
    command += ["--url", VIDEO_URL, "--chunk-bytes", "1000000", "--bitrate", str(BITRATE_BPS)]
    command += ["--time-limit", str(TIME_LIMIT_S), "--verify", "--out", folder / "player.jsonl"]
    return [*command, "--save", folder / "video", *arguments]


def run_player(folder: Path, port: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = player_command(folder, port, *arguments)
    return run_program(command, timeout=TIME_LIMIT_S + 30)


def wait_for_event(file: Path, name: str, limit_s: float = 20.0) -> None:
    """Waits until a program has written that event."""
    event = f'"event":"{name}"'
    wait_until(lambda: file.exists() and event in file.read_text(encoding="utf-8"), f"no {name} in {file}", limit_s)


def player_summary(folder: Path) -> dict[str, Any]:
    return read_jsonl(folder / "player.jsonl")[-1]
