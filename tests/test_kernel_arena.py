"""The kernel arena: runs in a time-travel kernel from the orchestrator.

Most of these tests need a kernel, which takes minutes to build: they skip where none is at hand, and `make test-long`
builds one.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from conftest import good, one_sentence, run_program
from in_process import railyard
from kernel_machine import children_of, name_of, needs_kernel, same_files, vk
from railyard.arenas import kernel
from railyard.base.errors import UserError
from railyard.base.paths import ROOT, program
from railyard.experiment.model import load_experiment
from railyard.experiment.stacks import resolve_stack
from railyard.results.records import Run, load_campaign
from railyard.run import fidelity, vkernel
from railyard.run import record as run_record
from railyard.run.cores import one_core
from railyard.run.resolve import resolve
from railyard.run.runspec import RunSpec
from railyard.studies.agreement import compare_exact
from railyard.traces.library import list_pairs
from small_disk import small_disk
from waiting import wait_until, wait_until_gone

YAML = """\
name: inside
arena: kernel
pairs: [subway-1]
schemes: [sp:primary, vanilla-mp, xlink, mptcp, tcp:primary]
player: {duration_s: 2, bitrate_bps: 2000000, chunk_bytes: 131072}
time_limit_s: 20
"""


def test_a_core_has_one_run_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = sorted(os.sched_getaffinity(0))[:1]
    monkeypatch.setattr("os.sched_getaffinity", lambda _: mine)
    order: list[str] = []

    async def run(name: str) -> None:
        async with one_core() as core:
            assert core == mine[0]
            order.append(f"{name} begins")
            await asyncio.sleep(0.05)
            order.append(f"{name} ends")

    async def both() -> None:
        await asyncio.wait_for(asyncio.gather(run("a"), run("b")), 30)

    asyncio.run(both())
    assert [line.split()[1] for line in order] == ["begins", "ends", "begins", "ends"]


def test_lateness_beyond_the_bound_makes_an_exact_run_void() -> None:
    link = {
        "opportunities": 100,
        "missed": 0,
        "lateness_us": {"p50": 3, "p99": 8, "max": 14, "over_1ms": 0, "count": 9},
    }
    late = link | {"lateness_us": link["lateness_us"] | {"max": 51}}  # type: ignore[operator]
    missed = link | {"missed": 1}

    def judged(down: dict[str, Any], *, exact: bool) -> fidelity.Fidelity:
        path = {"name": "p", "up": link, "down": down, "device_drops": {"inside": 0}}
        return fidelity.judge({"paths": [path], "sched_fifo": True}, exact=exact)

    assert not judged(link, exact=True).void
    assert not judged(late, exact=False).void
    assert judged(late, exact=True).reasons == ["p down: lateness 51 us in virtual time"]
    assert judged(missed, exact=True).reasons == ["p down: 1 opportunities missed in virtual time"]


# ---- runs


def specs_of(tmp_path: Path, text: str = YAML) -> list[RunSpec]:
    (tmp_path / "inside.yaml").write_text(text)
    return resolve(*load_experiment(tmp_path / "inside.yaml"))


def carry_out(spec: RunSpec, folder: Path) -> dict[str, Any]:
    folder.mkdir(parents=True)
    record = asyncio.run(kernel.ARENA.execute(spec, folder))
    run_record.write(folder, record)
    return record


@contextmanager
def busy() -> Iterator[None]:
    """Two busy loops that compete for the cores."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    yield
    for loop in loops:
        loop.kill()
        loop.wait()


@needs_kernel
@pytest.mark.long
def test_every_transport_runs_twice_with_the_same_bytes(tmp_path: Path) -> None:
    for spec in specs_of(tmp_path):
        other = carry_out(spec.model_copy(update={"qlog": True}), tmp_path / "other" / spec.run_id)
        with busy():
            one = carry_out(spec.model_copy(update={"qlog": True}), tmp_path / "one" / spec.run_id)
        assert one["outcome"] == "complete", one
        assert not one["fidelity"]["void"]
        assert one["fidelity"]["lateness_max_us"] <= fidelity.MAX_EXACT_LATENESS_US
        assert one["start_lag_s"] < 0.001
        assert one["identity"] == other["identity"]
        assert same_files(tmp_path / "one" / spec.run_id, tmp_path / "other" / spec.run_id) == ["run.json"]
    joined = json.loads((tmp_path / "one" / "subway-1--mptcp--s1" / "run.json").read_text())["mptcp"]["server"]
    assert joined["MPJoinAckRx"] >= 1  # the kernel's own MPTCP, over both paths


@needs_kernel
def test_where_the_traces_lie_changes_no_byte(tmp_path: Path) -> None:
    """A reviewer's traces are in another folder than the author's: `railyard repeat ARCHIVE`."""
    far = tmp_path / "a" / "folder" / "that is" / "elsewhere"
    far.mkdir(parents=True)

    def elsewhere(file: Path, name: str) -> Path:
        return Path(shutil.copy(file, far / name))

    [spec] = specs_of(tmp_path, YAML.replace("schemes:", "schemes: [vanilla-mp] #"))
    carry_out(spec, tmp_path / "one")
    carry_out(spec.with_files(elsewhere), tmp_path / "other")
    assert same_files(tmp_path / "one", tmp_path / "other") == ["run.json"]


@needs_kernel
def test_no_delivery_is_late_in_virtual_time_when_many_packets_come_at_once(tmp_path: Path) -> None:
    """On the wall clock mpshell then lets deliveries be up to 75 µs late, to wake up less often."""
    send = (
        "import os, socket, time\n"
        "one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "for _ in range(5):\n"
        "    for _ in range(40):\n"
        "        one.sendto(bytes(1000), (os.environ['MPSHELL_GATEWAY'], 9))\n"
        "    time.sleep(0.002)\n"
    )
    shell = [str(program("mpshell")), "--path", "a:up=200mbps,down=200mbps,delay=5", "--summary", "summary.json"]
    good(vk(tmp_path, "--", *shell, "--", sys.executable, "-c", send))
    lateness = json.loads((tmp_path / "summary.json").read_text())["paths"][0]["up"]["lateness_us"]
    assert lateness["count"] >= 50
    assert lateness["max"] <= 20, lateness


@needs_kernel
def test_only_the_worst_run_of_a_scheme_keeps_its_qlogs_where_that_is_asked(tmp_path: Path) -> None:
    (tmp_path / "inside.yaml").write_text(YAML.replace("schemes:", "schemes: [xlink] #") + "seeds: 2\n")
    good(railyard("run", str(tmp_path / "inside.yaml"), "--out", str(tmp_path / "out"), "--qlog", "worst"))
    kept = [any((tmp_path / "out" / "runs" / f"subway-1--xlink--s{seed}" / "qlog").glob("*")) for seed in (1, 2)]
    assert sorted(kept) == [False, True]


AGREEING = """\
name: agreeing
arena: kernel
pairs: [subway-1, hsr-1]
schemes: [sp:primary, cm, vanilla-mp, xlink]
player: {duration_s: 4, bitrate_bps: 2500000, chunk_bytes: 262144}
time_limit_s: 20
"""


@needs_kernel
@pytest.mark.skipif("RAILYARD_KERNEL" in os.environ, reason="another kernel's clock may cost more to read")
def test_the_simulator_agrees_with_programs_in_a_kernel_to_microseconds(tmp_path: Path) -> None:
    """Nothing of the simulator's link, transport or player code decides otherwise than the programs do over sockets
    and devices: each chunk takes as long, but for the microsecond to which clocks are read."""
    (tmp_path / "agreeing.yaml").write_text(AGREEING)
    runs = {}
    for arena in ("sim", "kernel"):
        good(railyard("run", str(tmp_path / "agreeing.yaml"), "--arena", arena, "--out", str(tmp_path / arena)))
        runs[arena] = load_campaign(tmp_path / arena)[1]
    rows = compare_exact(runs["sim"], runs["kernel"])
    assert len(rows) == 8
    assert all(row.before == row.chunks and row.before_us < 1.5 for row in rows), rows


SHARED = """\
bottlenecks:
  core: {rate: 12mbps, delay: 5ms, queue: 'droptail:packets=40', cross: 3mbps, cross_gaps: random}
links: {all: {via: [core]}}
"""


@needs_kernel
@pytest.mark.long
@pytest.mark.skipif("RAILYARD_KERNEL" in os.environ, reason="another kernel's clock may cost more to read")
@pytest.mark.parametrize(
    ("schemes", "links", "limit_us"),
    [
        ("[sp:primary, vanilla-mp]", SHARED, 5),
        ("[sp:primary]", SHARED.replace("[core]}", "[core]}, wifi: {wifi: good}"), 20),  # slots of 9 us
    ],
    ids=["bottleneck", "bottleneck behind Wi-Fi"],
)
def test_links_behind_links_agree_to_microseconds(schemes: str, links: str, limit_us: int, tmp_path: Path) -> None:
    text = AGREEING.replace("[subway-1, hsr-1]", "[subway-1]").replace("[sp:primary, cm, vanilla-mp, xlink]", schemes)
    (tmp_path / "agreeing.yaml").write_text(text + links)
    runs = {}
    for arena in ("sim", "kernel"):
        good(railyard("run", str(tmp_path / "agreeing.yaml"), "--arena", arena, "--out", str(tmp_path / arena)))
        runs[arena] = load_campaign(tmp_path / arena)[1]
    rows = compare_exact(runs["sim"], runs["kernel"])
    assert len(rows) == schemes.count(",") + 1
    assert all(row.before == row.chunks and row.before_us <= limit_us for row in rows), rows


@needs_kernel
def test_a_campaign_of_the_kernel_arena_is_shown_and_repeated(tmp_path: Path) -> None:
    (tmp_path / "inside.yaml").write_text(YAML.replace("schemes:", "schemes: [mptcp] #"))
    good(railyard("run", str(tmp_path / "inside.yaml"), "--out", str(tmp_path / "out")))
    run = tmp_path / "out" / "runs" / "subway-1--mptcp--s1"
    shown = railyard("show", str(run)).stdout
    assert "exact, in virtual time" in shown
    assert f"railyard repeat {run}" in shown
    good(railyard("repeat", str(run), "--yes", "--out", str(tmp_path / "again")))
    assert same_files(run, tmp_path / "again") == ["run.json"]
    assert not (run / ".inside").exists()


@needs_kernel
@pytest.mark.privileged
def test_a_full_disk_ends_a_campaign_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "inside.yaml").write_text(YAML.replace("schemes:", "schemes: [mptcp] #"))
    with small_disk(tmp_path / "disk", "300k") as disk:
        words = ("run", str(tmp_path / "inside.yaml"), "--out", str(disk / "out"))
        one_sentence(railyard(*words), "the disk is full. Completed runs are kept: make room")
        assert list((disk / "out" / "runs").iterdir()) == []
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        good(railyard(*words))


@needs_kernel
def test_nothing_runs_on_after_the_kill_of_a_campaign_and_the_next_start_removes_its_files(
    tmp_path: Path, memory: Path
) -> None:
    (tmp_path / "inside.yaml").write_text(YAML.replace("schemes:", "schemes: [mptcp] #"))
    words = ["run", str(tmp_path / "inside.yaml"), "--out", str(tmp_path / "out"), "--jobs", "1"]
    campaign = subprocess.Popen(
        [sys.executable, "-m", "railyard", *words],
        env=os.environ | {"TMPDIR": str(memory)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    # Before its first run the campaign has other children: for revisions and versions, and a first boot.
    wait_until(lambda: list((tmp_path / "out" / "runs").glob(".partial-*")), "the first run to start", 60)
    inside: list[int] = []

    def all_run() -> bool:
        """vkernel, the kernel, init and a shell."""
        inside[:] = children_of(campaign.pid)
        return len(inside) >= 4 and "vkernel" in map(name_of, inside)

    wait_until(all_run, "the machine to be up", 60)
    campaign.kill()
    campaign.wait(30)
    wait_until_gone(inside)
    assert list(memory.iterdir()) == []
    assert [run.name for run in (tmp_path / "out" / "runs").iterdir()] == [".partial-subway-1--mptcp--s1"]
    good(railyard(*words))
    assert [run.name for run in (tmp_path / "out" / "runs").iterdir()] == ["subway-1--mptcp--s1"]


@needs_kernel
def test_sysctls_of_a_scheme_decide_its_run_and_an_unknown_one_gets_one_sentence(tmp_path: Path) -> None:
    """Without timestamps a segment carries 12 bytes more, so other bytes are in flight at other times."""
    rows = (
        "schemes: [{scheme: tcp, path: primary}, {scheme: tcp, path: primary, sysctls: {net.ipv4.tcp_timestamps: 0}}] #"
    )
    plain, changed = specs_of(tmp_path, YAML.replace("schemes:", rows))
    assert changed.label == "tcp,ipv4.tcp_timestamps=0"
    assert changed.identity() != plain.identity()
    before, after = carry_out(plain, tmp_path / "plain"), carry_out(changed, tmp_path / "changed")
    assert (before["sysctls"].get("net.ipv4.tcp_timestamps"), after["sysctls"]["net.ipv4.tcp_timestamps"]) == (
        None,
        "0",
    )
    assert (tmp_path / "plain" / "player.jsonl").read_text() != (tmp_path / "changed" / "player.jsonl").read_text()
    unknown = changed.model_copy(update={"kernel_sysctls": {"net.mptcp.nothing": "1"}})
    with pytest.raises(UserError, match=r"this kernel does not take net\.mptcp\.nothing=1"):
        carry_out(unknown, tmp_path / "unknown")


@needs_kernel
def test_a_sysctl_that_the_kernel_refuses_ends_its_row_and_no_other(tmp_path: Path) -> None:
    rows = "schemes: [{scheme: tcp, path: primary}, {scheme: mptcp, sysctls: {net.mptcp.nothing: 1}, label: odd}] #"
    (tmp_path / "inside.yaml").write_text(YAML.replace("schemes:", rows))
    done = good(railyard("run", str(tmp_path / "inside.yaml"), "--out", str(tmp_path / "out")))
    assert "this kernel does not take net.mptcp.nothing=1" in " ".join((done.stdout + done.stderr).split())
    campaign, runs = load_campaign(tmp_path / "out")
    assert [run.label for run in runs] == ["tcp"]
    assert [(row["label"], "net.mptcp.nothing=1" in row["reason"]) for row in campaign["not_run"]] == [("odd", True)]


@needs_kernel
def test_limits_of_the_path_manager_decide_how_many_subflows_there_are(tmp_path: Path) -> None:
    rows = "schemes: [mptcp, {scheme: mptcp, mptcp_limits: {subflows: 0}}] #"
    plain, alone = specs_of(tmp_path, YAML.replace("schemes:", rows))
    assert alone.label == "mptcp,subflows=0"
    assert alone.identity() != plain.identity()
    joins = [carry_out(spec, tmp_path / spec.label)["mptcp"]["server"]["MPJoinAckRx"] for spec in (plain, alone)]
    assert joins == [1, 0]
    with pytest.raises(UserError, match="'mptcp_limits' is for mptcp"):
        specs_of(tmp_path, YAML.replace("schemes:", "schemes: [{scheme: xlink, mptcp_limits: {subflows: 1}}] #"))


DARK = """\
name: dark
arena: kernel
pairs: [lab-equal-12]
schemes: [mptcp]
start_offset_ms: 0
player: {duration_s: 4, bitrate_bps: 8000000, chunk_bytes: 262144}
time_limit_s: 20
links: {wifi: {delay_ms: 15}}
link_events: [{t_s: DOWN, path: wifi, state: down}, {t_s: UP, path: wifi, state: up}]
"""


def run_dark(tmp_path: Path, down_s: float, up_s: float) -> tuple[str, Run]:
    """A run of MPTCP whose primary path is down for a while, and the command's output."""
    (tmp_path / "dark.yaml").write_text(DARK.replace("DOWN", str(down_s)).replace("UP", str(up_s)))
    done = good(railyard("run", str(tmp_path / "dark.yaml"), "--out", str(tmp_path / "out")))
    [run] = load_campaign(tmp_path / "out")[1]
    return " ".join(done.stdout.split()), run


@needs_kernel
def test_what_mptcp_sends_again_on_another_subflow_is_its_redundancy(tmp_path: Path) -> None:
    _, run = run_dark(tmp_path, 0.5, 1.2)
    folder = tmp_path / "out" / "runs" / run.run_id
    summary = json.loads((folder / "player.jsonl").read_text().splitlines()[-1])
    server = [json.loads(line) for line in (folder / "server.jsonl").read_text().splitlines()]
    [written] = [event["bytes_written"] for event in server if event["event"] == "connection_closed"]
    # Once the path is back all arrives on each subflow, the copies too.
    copies = sum(flow["bytes_received"] for flow in summary["transport"]["subflows"]) - written
    assert copies > 0
    assert run.reinjected_bytes == copies
    assert run.redundancy == pytest.approx(copies / (written + (run.retransmitted_bytes or 0)))
    assert run.record["mptcp"]["server"]["MPTCPRetrans"] > 0, "the server's counters are kept nowhere else"
    shown = good(railyard("show", str(folder))).stdout
    [of_wifi] = [line.split("│") for line in shown.splitlines() if line.startswith("│ wifi │")]
    assert float(of_wifi[2]) > 1, "MB that the subflow sent"
    assert "15" in next(line for line in shown.splitlines() if "wifi (wifi)" in line).split("│")[3], "delay in force"


@needs_kernel
def test_a_subflow_that_was_reset_is_counted_once(tmp_path: Path) -> None:
    text = DARK.replace("links: {wifi: {delay_ms: 15}}", "links: {wifi: {nat: timeout=300000}, lte: {}}")
    text = text[: text.index("link_events")] + "link_events: [{t_s: 0.5, path: wifi, nat: rebind}]\n"
    [spec] = specs_of(tmp_path, text)
    assert carry_out(spec, tmp_path / "run")["outcome"] == "complete"
    transport = json.loads((tmp_path / "run" / "player.jsonl").read_text().splitlines()[-1])["transport"]
    assert [(flow["path"], flow["remote"].split(":")[1]) for flow in transport["subflows"]] == [
        ("wifi", "8080"),
        ("lte", "8080"),
    ]
    assert transport["subflow_count"] == 2 and all(flow["bytes_received"] > 100_000 for flow in transport["subflows"])


@needs_kernel
def test_plain_tcp_in_place_of_mptcp_is_said(tmp_path: Path) -> None:
    """Linux 6.12 leaves the option out after three SYNs without an answer."""
    said, run = run_dark(tmp_path, 0.0, 3.5)
    assert run.fell_back_to_tcp
    assert {path.name: path.down_bytes > 0 for path in run.paths} == {"wifi": True, "lte": False}
    assert "MPTCP fell back to plain TCP, which uses one path: mptcp in 1 of 1 run." in said
    assert "MPTCP fell back to plain TCP" in (tmp_path / "out" / "report.html").read_text()


@needs_kernel
def test_link_events_happen_at_their_time(tmp_path: Path) -> None:
    events = "link_events: [{t_s: 0.5, path: wifi, state: down}, {t_s: 1.25, path: wifi, state: up, delay_ms: 40}]\n"
    spec = next(s for s in specs_of(tmp_path, YAML + events) if s.scheme == "vanilla-mp")
    record = carry_out(spec, tmp_path / "run")
    done = [(event["t_s"], event["command"], event["done_s"]) for event in record["link_events"]]
    assert [(t, command) for t, command, _ in done] == [(0.5, "down wifi"), (1.25, "up wifi"), (1.25, "delay wifi 40")]
    assert all(0 <= done_s - t < 0.005 for t, _, done_s in done)


def test_identity_has_the_machine_and_not_where_its_file_lies(tmp_path: Path) -> None:
    machine = {"file": "/a/linux", "sha256": "k", "options_sha256": "o", "libraries_sha256": "l"}
    base = {
        **{"experiment": "e", "arena": "kernel", "pair": "p", "label": "mptcp", "scheme": "mptcp", "primary": "wifi"},
        **{"parameters": {}, "congestion": "cubic", "paths": [], "seed": 1, "start_offset_ms": 0, "player": {}},
        **{"time_limit_s": 60, "buffers": {}, "qlog": False, "link_logs": True, "programs_sha256": {}},
    }
    one = RunSpec.model_validate(base | {"kernel": machine}).identity()
    assert RunSpec.model_validate(base | {"kernel": machine | {"file": "/b/linux"}}).identity() == one
    for name, value in (("sha256", "x"), ("options_sha256", "x"), ("libraries_sha256", "x"), ("memory_mb", 512)):
        assert RunSpec.model_validate(base | {"kernel": machine | {name: value}}).identity() != one, name


@needs_kernel
def test_mpshell_in_virtual_time_runs_any_command_twice_with_the_same_bytes(tmp_path: Path) -> None:
    """The working directory has its own name inside, and can be written."""
    command = """
import os, time
print(os.getcwd())
time.sleep(1)
print(time.monotonic())
open("written", "w").write(os.environ["MPSHELL_PATHS"])
"""
    paths = [word for name in ("a", "b") for word in ("--path", f"{name}:up=12mbps,down=12mbps,delay=20")]
    for name in ("one", "other"):
        (tmp_path / "here").mkdir()
        words = [str(program("mpshell")), "--virtual", *paths, "--log-dir", "logs", "--seed", "4", "--"]
        done = good(run_program([*words, sys.executable, "-c", command], cwd=tmp_path / "here", timeout=100))
        assert done.stdout.startswith(f"{tmp_path / 'here'}\n")
        (tmp_path / "here" / "stdout").write_text(done.stdout)
        (tmp_path / "here").rename(tmp_path / name)
    assert (tmp_path / "one" / "written").read_text() == "a b"
    assert same_files(tmp_path / "one", tmp_path / "other") == []


@needs_kernel
def test_packets_that_follow_closely_leave_on_time_in_virtual_time(tmp_path: Path) -> None:
    flood = """
import os, socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(3000):
    s.sendto(bytes(60), (os.environ["MPSHELL_GATEWAY"], 9))
    time.sleep(30e-6)
"""
    words = [
        str(program("mpshell")),
        "--virtual",
        "--path",
        "a:up=400mbps,down=400mbps,delay=20",
        "--summary",
        "s.json",
    ]
    subprocess.run([*words, "--", sys.executable, "-c", flood], cwd=tmp_path, timeout=100, check=True)
    (path,) = json.loads((tmp_path / "s.json").read_text())["paths"]
    assert path["up"]["lateness_us"]["count"] > 2000
    assert path["up"]["lateness_us"]["max"] <= 10


SUITE = """\
name: two-kernels
arena: kernel
pairs: [subway-1]
schemes: [mptcp]
seeds: 5
player: {duration_s: 1, bitrate_bps: 1000000, chunk_bytes: 65536}
time_limit_s: 10
"""


@needs_kernel
def test_the_gate_compares_two_kernels(tmp_path: Path) -> None:
    """The same kernel in another file is the same kernel. A suite without a baseline reports what it needs."""
    (tmp_path / "two.yaml").write_text(SUITE)
    at_hand = vkernel.at_hand()
    assert at_hand is not None
    shutil.copy(at_hand, tmp_path / "linux")
    words = ("gate", "--suite", str(tmp_path / "two.yaml"))
    done = railyard(*words, "--baseline-kernel", str(tmp_path / "linux"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "identical" in done.stdout
    one_sentence(railyard(*words), "--baseline-kernel")


NOBODY = 65534


def nobody_can_run() -> bool:
    """Whether an ordinary user may enter the folders above this tree."""
    test = [
        "setpriv",
        "--reuid",
        str(NOBODY),
        "--regid",
        str(NOBODY),
        "--clear-groups",
        "test",
        "-x",
        str(program("vkernel")),
    ]
    return subprocess.run(test, check=False, capture_output=True).returncode == 0


@pytest.fixture
def readable() -> Iterator[Path]:
    """A folder that every user may enter, which pytest's own is not."""
    folder = Path("/tmp") / f"railyard-test-{os.getpid()}"  # noqa: S108
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


EVERY = """\
name: every
arena: kernel
pairs: PAIRS
schemes: [sp:primary, cm, vanilla-mp, xlink, mptcp, STACKS]
player: {duration_s: 4, bitrate_bps: 4000000, chunk_bytes: 131072}
time_limit_s: 15
"""
PAIRS = {
    "generated": [f"{kind}-{number}" for kind in ("subway", "hsr") for number in range(1, 5)],
    "recorded": [
        *("hsr_0904", "hsr_1271", "hsr_1624", "hsr_0544"),
        *("subway_nyc_a", "subway_nyc_b", "walk_sbu_8_1", "leo_me_42"),
    ],
}


def built_stacks() -> list[str]:
    """libxlink behind a relay, and what `make peers` has built of others."""
    built = ["libxlink"]
    with suppress(UserError):
        resolve_stack("quic-go", {}, ROOT)
        built.append("quic-go")
    return built


@dataclass
class User:
    """How programs are started as some user: with these words before theirs, and this environment (None: the own)."""

    words: list[str] = field(default_factory=list)
    environment: dict[str, str] | None = None


def as_nobody(folder: Path) -> User:
    """An ordinary user without capabilities, whose home is that folder with a kernel."""
    at_hand = vkernel.at_hand()
    assert at_hand is not None
    os.chown(folder, NOBODY, NOBODY)
    shutil.copy(at_hand, folder / "linux")
    own = {"HOME": str(folder), "RAILYARD_KERNEL": str(folder / "linux"), "PYTHONDONTWRITEBYTECODE": "1"}
    words = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--bounding-set=-all"]
    return User(words, os.environ | own)


@needs_kernel
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", PAIRS)
def test_every_scheme_on_every_pair_gives_the_same_bytes_three_times(kind: str, readable: Path) -> None:
    """As the calling user, as an ordinary one (if root calls), and as that one beside two busy loops."""
    missing = set(PAIRS[kind]) - {pair.name for pair in list_pairs()}
    if missing:
        pytest.skip(f"no such pairs here: {', '.join(sorted(missing))}")
    stacks = ", ".join(f"{{stack: {name}}}" for name in built_stacks())
    (readable / "every.yaml").write_text(EVERY.replace("PAIRS", json.dumps(PAIRS[kind])).replace("STACKS", stacks))
    nobody = as_nobody(readable) if os.geteuid() == 0 and nobody_can_run() else User()
    for name, user in (("one", User()), ("two", nobody), ("busy", nobody)):
        loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (name == "busy"))]
        try:
            command = [sys.executable, "-m", "railyard", "run", str(readable / "every.yaml"), "--fresh"]
            command = [*user.words, *command, "--out", str(readable / name)]
            done = run_program(command, env=user.environment)
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()
        assert done.returncode == 0, done.stderr
    runs = sorted((readable / "one" / "runs").iterdir())
    assert len(runs) == len(PAIRS[kind]) * (5 + len(built_stacks()))
    for run in runs:
        for other in ("two", "busy"):
            assert same_files(run, readable / other / "runs" / run.name) == ["run.json"], run.name
        record = json.loads((run / "run.json").read_text())
        assert not record["fidelity"]["void"], run.name
        assert record["outcome"] in ("complete", "time_limit"), run.name


@needs_kernel
@pytest.mark.skipif(os.geteuid() != 0, reason="these tests run as an ordinary user already")
@pytest.mark.skipif(not nobody_can_run(), reason="an ordinary user may not enter the folders above this tree")
def test_an_ordinary_user_without_capabilities_runs_mpshell_inside(readable: Path) -> None:
    nobody = as_nobody(readable)
    mpshell = [str(program("mpshell")), "--path", "a:up=12mbps,down=12mbps,delay=20"]
    inner = ["/bin/sh", "-c", "/bin/id -u >who; /bin/ip -br addr >addresses"]
    good(
        run_program(
            [*nobody.words, str(program("vkernel")), "--folder", str(readable), "--", *mpshell, "--", *inner],
            env=nobody.environment,
            timeout=100,
        )
    )
    assert (readable / "who").read_text() == "0\n"  # inside it is root, with no right over the host
    assert (readable / "who").stat().st_uid == NOBODY
    assert " 100.64.0.2/30 " in (readable / "addresses").read_text(), "the address is the simulator's"


@needs_kernel
@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
@pytest.mark.skipif(not nobody_can_run(), reason="an ordinary user may not enter the folders above this tree")
def test_a_run_whose_keys_another_user_has_is_done_again(readable: Path) -> None:
    """A campaign takes completed runs from folders beside it, but not those that it may not read."""
    (readable / "inside.yaml").write_text(YAML.replace("schemes:", "schemes: [xlink] #"))
    for name, user in (("one", User()), ("two", as_nobody(readable))):
        command = [
            sys.executable,
            "-m",
            "railyard",
            "run",
            str(readable / "inside.yaml"),
            "--out",
            str(readable / name),
        ]
        good(run_program([*user.words, *command], env=user.environment))
    one, two = (readable / name / "runs" / "subway-1--xlink--s1" for name in ("one", "two"))
    assert (one / "player.keys").stat().st_mode & 0o077 == 0
    assert same_files(one, two) == ["run.json"]
