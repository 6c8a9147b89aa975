"""What several test files share: run folders as the programs leave them, and the conditions of privileged tests."""

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings

from railyard.base.errors import UserError
from railyard.base.paths import PROGRAM_NAMES, programs_dir
from railyard.report.chromium import Browser, find_chromium
from railyard.run import containers

# Examples are the same in every run, and a busy machine fails no test for its time.
settings.register_profile(
    "railyard", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)
settings.load_profile("railyard")

REQUIRE = os.environ.get("RAILYARD_REQUIRE_ALL") == "1"


def missing_programs() -> str | None:
    """The first of the programs that is not built, with the remedy. None: all are there."""
    absent = [name for name in PROGRAM_NAMES if not (programs_dir() / name).is_file()]
    return f"needs {programs_dir() / absent[0]}: run `make build`" if absent else None


def missing_for_real_runs() -> str | None:
    """Why real runs are not possible here, None when they are."""
    if os.geteuid() != 0:
        return "needs root"
    if not Path("/dev/net/tun").exists():
        return "needs /dev/net/tun"
    return missing_programs()


def missing_for_containers() -> str | None:
    """Why no containers can run here, None when they can."""
    try:
        containers.check_engine()
    except UserError as error:
        return f"{error} `make test PART=docker` brings both engine and images."
    return None


# What runs on the wall clock, or compares its own time with others'. `make test` runs these one after the other, and
# everything else beside them and after them: there is never more than one emulator at work.
WALL_CLOCK = (
    "balancer",
    "deployment",
    "interop",
    "mpshell",
    "mpshell_command",
    "mpshell_outside",
    "mpshell_tools",
    "orchestrator",
    "paths",
    "player_tcp",
    "quic_end_to_end",
    "saturatr",
)


def pytest_configure() -> None:
    """A shell starts what runs in its background with SIGINT ignored, which all programs under test would inherit.
    FAST_LINK: trees that tests build link in a second."""
    os.environ.setdefault("FAST_LINK", "1")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_itemcollected(item: pytest.Item) -> None:
    privileged = item.get_closest_marker("privileged") or item.get_closest_marker("docker")
    if privileged or item.path.stem.removeprefix("test_") in WALL_CLOCK:
        item.add_marker(pytest.mark.wall_clock)
        # What else the machine does can be late for one of them, hardly twice. The summary lists what was run again.
        item.add_marker(pytest.mark.flaky(reruns=1, reruns_delay=10))


# A folder that the processes of `make test` share. A file's tests are run by the one that makes a file of its name
# there; those on the wall clock are run first, by the process that has them.
QUEUE = os.environ.get("RAILYARD_TEST_QUEUE")
# These build in the tree, copy what is built there, or hold the lock of its gate. One process runs all of them, the one
# that builds the C tests.
HAS_THE_TREE = "RAILYARD_TEST_TREE" in os.environ
IN_THE_TREE = (
    "arenas",
    "bench",
    "gate",
    "gate_power",
    "install",
    "kernel_arena",
    "one_file",
    "sim",
    "studies",
    "try_scheduler",
)


def is_in_the_tree(item: pytest.Item) -> bool:
    return item.path.stem.removeprefix("test_") in IN_THE_TREE


class Queue:
    def __init__(self, folder: Path, *, has_the_tree: bool) -> None:
        self._folder = folder
        self._has_the_tree = has_the_tree
        self._is_mine: dict[str, bool] = {}

    def order(self, items: list[pytest.Item]) -> None:
        """The process that has tests on the wall clock takes the other files from the end. The one that has the tree
        begins with what it alone may run."""
        on_the_wall = [item for item in items if item.get_closest_marker("wall_clock")]
        if on_the_wall:
            files: dict[Path, list[pytest.Item]] = {}
            for item in items:
                if not item.get_closest_marker("wall_clock"):
                    files.setdefault(item.path, []).append(item)
            items[:] = [*on_the_wall, *(item for file in reversed(files.values()) for item in file)]
        elif self._has_the_tree:
            items.sort(key=is_in_the_tree, reverse=True)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """True: it has been dealt with, by the other process."""
        if item.get_closest_marker("wall_clock"):
            return None
        if is_in_the_tree(item):
            return None if self._has_the_tree else True
        name = item.path.name
        if name not in self._is_mine:
            try:
                (self._folder / name).touch(exist_ok=False)
            except FileExistsError:
                self._is_mine[name] = False
            else:
                self._is_mine[name] = True
        return None if self._is_mine[name] else True


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if QUEUE:
        queue = Queue(Path(QUEUE), has_the_tree=HAS_THE_TREE)
        config.pluginmanager.register(queue)
        queue.order(items)
    reason = missing_for_real_runs()
    if reason is not None and not REQUIRE:
        _skip(items, "privileged", reason)
    # The engine is asked only if a test needs it.
    if any(item.get_closest_marker("docker") for item in items) and os.environ.get("RAILYARD_REQUIRE_DOCKER") != "1":
        reason = missing_for_containers()
        if reason is not None:
            _skip(items, "docker", reason)


def _skip(items: list[pytest.Item], marker: str, reason: str) -> None:
    for item in items:
        if item.get_closest_marker(marker):
            item.add_marker(pytest.mark.skip(reason=reason))


@dataclass
class Done:
    """How a command line ended."""

    returncode: int
    stdout: str
    stderr: str


Ended = TypeVar("Ended", Done, CompletedProcess[str])


def run_program(command: Sequence[str | Path], **options: Any) -> CompletedProcess[str]:
    """A program that has ended, with what it printed as text. `options`: of subprocess.run."""
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def good(done: Ended) -> Ended:
    """How a program ended that must succeed."""
    assert done.returncode == 0, done.stderr
    return done


def one_sentence(done: Done | CompletedProcess[str], *words: str, program: str = "railyard", code: int = 2) -> str:
    """The one line that the program printed on standard error. It must have all the words, and the program the exit
    code."""
    assert done.returncode == code, done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith(f"{program}: "), lines
    assert lines[0].endswith(".") or not program.startswith("xlink-"), lines
    for word in words:
        assert word in lines[0], (word, lines[0])
    return lines[0]


@dataclass
class FakeRun:
    """The figures of a run, from which `write` makes the files that a real run of the programs leaves."""

    pair: str = "subway-1"
    label: str = "xlink"
    scheme: str = "xlink"
    primary: str = "wifi"
    seed: int = 1
    outcome: str = "complete"
    message: str = ""
    rct_s: list[float] = field(default_factory=lambda: [0.5, 0.25, 0.75, 1.0])
    unfinished_s: list[float] = field(default_factory=list)  # time waited for chunks that never completed
    first_frame_s: float | None = 0.4
    play_time_s: float = 10.0
    rebuffer_time_s: float = 0.5
    stream_bytes_sent: int = 1_050_000
    reinjected_bytes: int = 50_000
    down_bytes: tuple[int, int] = (700_000, 400_000)
    void: bool = False
    identity: str = "0" * 64
    paths: list[dict[str, Any]] = field(default_factory=list)
    start_offset_ms: int = 1500

    @property
    def run_id(self) -> str:
        return f"{self.pair}--{self.label.replace(':', '_')}--s{self.seed}"

    def events(self) -> Iterator[dict[str, Any]]:
        yield {"t": 0.0, "event": "start", "monotonic_us": 1_000_000, "argv": ["xlink-player"]}
        now = 0.1
        for chunk, rct in enumerate(self.rct_s):
            yield {"t": now, "event": "request", "chunk": chunk, "first": chunk * 1000, "last": chunk * 1000 + 999}
            now += rct
            done = {"chunk": chunk, "bytes": 1000, "rct_s": rct, "request_t": now - rct}
            yield {"t": now, "event": "chunk_done", **done}
            yield {"t": now, "event": "buffer", "buffered_ms": 900 - chunk, "buffered_bytes": 1, "played_ms": chunk}
        yield {"t": now, "event": "stall_start"}
        yield {"t": now + self.rebuffer_time_s, "event": "stall_end", "duration_s": self.rebuffer_time_s}
        end = now + self.rebuffer_time_s + max([0.0, *self.unfinished_s])
        for index, waited in enumerate(self.unfinished_s, start=len(self.rct_s)):
            first = index * 1000
            yield {"t": end - waited, "event": "request", "chunk": index, "first": first, "last": first + 999}
        summary = {"outcome": self.outcome, "message": self.message, "chunks": len(self.rct_s)}
        summary |= {"bytes": 1000 * len(self.rct_s), "first_frame_s": self.first_frame_s, "handshake_s": 0.1}
        summary |= {"play_time_s": self.play_time_s, "rebuffer_time_s": self.rebuffer_time_s, "rebuffer_count": 1}
        yield {"t": end, "event": "summary", **summary}

    def emulator(self) -> dict[str, Any]:
        late = {"p50": 20, "p99": 2500 if self.void else 150, "max": 3000, "over_1ms": 0, "count": 900}
        link = {"opportunities": 5000, "missed": 0, "queue_drops": 2, "lateness_us": late, "departed_bytes": 50_000}
        drops = {"inside_rx": 0, "inside_tx": 0, "outside_rx": 0, "outside_tx": 0}
        names = ("wifi", "lte")
        paths = [
            {"name": name, "up": link, "down": link | {"departed_bytes": count}, "device_drops": drops}
            for name, count in zip(names, self.down_bytes, strict=True)
        ]
        return {"schema": 1, "sched_fifo": True, "exit": {"code": 0, "signal": None}, "paths": paths}

    def write(self, runs: Path) -> Path:
        from railyard.run.fidelity import judge  # noqa: PLC0415  only where a run is written

        folder = runs / self.run_id
        folder.mkdir(parents=True)
        verdict = judge(self.emulator()).as_json()
        paths = self.paths or [
            {"name": name, "technology": name, "up": f"/gone/{name}.up", "down": f"/gone/{name}.down"}
            | {"up_sha256": "a" * 64, "down_sha256": "b" * 64, "delay_ms": 15.0, "queue": "infinite", "loss": 0.0}
            for name in ("wifi", "lte")
        ]
        config: dict[str, Any] = {"experiment": "unit", "arena": "mpshell", "seed": self.seed}
        config |= {"pair": self.pair, "label": self.label}
        config |= {
            "scheme": self.scheme,
            "primary": self.primary,
            "start_offset_ms": self.start_offset_ms,
            "paths": paths,
        }
        config |= {"programs_sha256": {"mpshell": "c" * 64}}
        record: dict[str, Any] = {"schema": 1, "run_id": self.run_id, "identity": self.identity}
        record |= {"wall_s": 12.0, "config": config}
        record |= {"started": "2026-01-02T03:04:05+00:00", "outcome": self.outcome, "message": self.message}
        record |= {"fidelity": verdict, "tries": [{"fidelity": verdict}]}
        record |= {"kernel": "Linux 6.1", "sysctls": {"a.b": "1"}}
        record |= {"cpu": {"model": "CPU", "cores": 2}, "git": {"revision": "d" * 40, "dirty": False}}
        record |= {"versions": {"python": "3.11"}, "mptcp": {"server": {}, "player": {"MPJoinSynTx": 1}}}
        (folder / "run.json").write_text(json.dumps(record))
        (folder / "mpshell.json").write_text(json.dumps(self.emulator()))
        (folder / "player.jsonl").write_text("".join(json.dumps(event) + "\n" for event in self.events()))
        summary = {"t": 9.0, "event": "summary", "stream_bytes_sent": self.stream_bytes_sent, "migrations": 0}
        summary |= {"reinjected_bytes": self.reinjected_bytes, "retransmitted_bytes": 7}
        (folder / "server.jsonl").write_text(json.dumps(summary) + "\n")
        return folder


@pytest.fixture
def make_campaign(tmp_path: Path) -> Callable[..., Path]:
    """Writes a campaign of the given runs and returns its directory."""

    def make(*runs: FakeRun) -> Path:
        out = tmp_path / "campaign"
        for run in runs:
            run.write(out / "runs")
        experiment: dict[str, Any] = {"name": "unit", "description": "A <campaign> & its figures.", "arena": "mpshell"}
        experiment |= {"player": {"duration_s": 10.0, "bitrate_bps": 4_000_000, "chunk_bytes": 1000}}
        experiment |= {"buffers": {"receive_bytes": 6 << 20, "send_bytes": 4 << 20}, "congestion": "cubic"}
        campaign = {"schema": 1, "experiment": experiment, "command": "railyard run unit --seeds 2"}
        campaign |= {"git": {"revision": "d" * 40, "dirty": True}, "runs": [run.run_id for run in runs]}
        (out / "campaign.json").write_text(json.dumps(campaign))
        return out

    return make


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = find_chromium()
    assert program is not None, "there is no Chromium"
    with Browser(program) as running:
        yield running


@pytest.fixture(scope="session")
def built() -> None:
    """What needs this needs the programs that `make build` makes."""
    reason = missing_programs()
    if reason is not None and not REQUIRE:
        pytest.skip(reason)


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder for the memory of this test's time-travel kernels alone: other tests start theirs at the same time."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)
