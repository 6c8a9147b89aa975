"""Other stacks as schemes: the how-to from its first line to its last, and what goes wrong."""

import json
import os
import re
import shutil
import signal
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from conftest import good, one_sentence, run_program
from in_process import railyard
from railyard.arenas import kernel
from railyard.base.errors import UserError
from railyard.base.paths import PEERS_DIR
from railyard.experiment import stacks
from railyard.experiment.model import load_experiment
from railyard.experiment.stacks import resolve_stack
from railyard.run import runspec, vkernel
from railyard.run.resolve import resolve
from waiting import wait_until_gone

ROOT = Path(__file__).parents[1]
BIN = ROOT / "build" / "bin"
BUILT = {
    "quic-go": "relay",
    "quic-go-10": "relay",
    "noq": "release/noq-peer",
    "tquic": "release/tquic-relay",
    "quiche": "release/quiche-relay",
}  # by `make peers`, in build/peers
HOWTO = ROOT / "docs" / "howto" / "your-own-stack.md"
needs_kernel = pytest.mark.skipif(vkernel.why_not() is not None, reason=f"{vkernel.why_not()}")


def write_stack(folder: Path, **changes: Any) -> Path:
    members = {"name": "mine", "about": "a test's", "licence": "MIT", "client": ["sh", "-c", "exit 3"]}
    members |= {"server": ["sh", "-c", "exit 3"]} | changes
    (folder / "peer.yaml").write_text(json.dumps(members))
    return folder / "peer.yaml"


def write_experiment(folder: Path, schemes: str, bitrate_bps: int = 2_000_000) -> Path:
    file = folder / "one.yaml"
    player = f"{{bitrate_bps: {bitrate_bps}, duration_s: 3, chunk_bytes: 262144}}"
    file.write_text(
        f"name: one\narena: mpshell\npairs: [subway-1]\nschemes: {schemes}\nplayer: {player}\ntime_limit_s: 8\n"
    )
    return file


# Runs that only have to end.
SIDE_BY_SIDE = ("--jobs", "3", "--repeat-budget", "0")


def run(folder: Path, file: str, results: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "RAILYARD_RESULTS": str(results),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    return run_program(
        [sys.executable, "-m", "railyard", "run", file, *options], cwd=folder, env=environment, timeout=200
    )


@pytest.mark.long
@pytest.mark.privileged
@pytest.mark.wall_clock
@pytest.mark.slow
def test_the_how_to_leads_to_a_row_of_the_report(tmp_path: Path) -> None:
    blocks = re.findall(r"^```(\w+) ?(\S*)\n(.*?)^```$", HOWTO.read_text(), re.MULTILINE | re.DOTALL)
    commands = []
    for language, name, text in blocks:
        if language == "sh":
            commands += text.split("\n")[:-1]
        else:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
    assert commands == ["railyard run first.yaml"]
    done = good(run(tmp_path, "first.yaml", tmp_path / "results"))
    assert re.search(r"^ \S+ +sp .*\n +my-stack ", done.stdout, re.MULTILINE), done.stdout
    record = json.loads(next((tmp_path / "results").glob("first-*/runs/*my-stack*/run.json")).read_text())
    assert record["config"]["stack"]["name"] == "aioquic"
    assert set(record["config"]["stack"]["sha256"]) >= {"peer.yaml", "relay.py"}
    folder = next((tmp_path / "results").glob("first-*/runs/*my-stack*"))
    assert json.loads((folder / "relay.jsonl").read_text().splitlines()[0]) == {"event": "ready"}
    assert not list(folder.glob("*.pem")), "the key of the run stays behind"
    report = next((tmp_path / "results").glob("first-*/report.html")).read_text()
    assert "my-stack" in report


@pytest.mark.parametrize(
    ("scheme", "phrase"),
    [
        ("{stack: libxlnk}", "there is no stack 'libxlnk'; did you mean 'libxlink'?"),
        (
            "{stack: libxlink, schedular: x}",
            "stack 'libxlink' has no option 'schedular'; known are cc, ecn, path-mtu-bytes, scheme",
        ),
        ("{stack: libxlink, cc: vegas}", "'cc' of stack 'libxlink' takes cubic, newreno, bbr, not 'vegas'"),
        ("{stack: ./nowhere/peer.yaml}", "nowhere/peer.yaml: there is no such file"),
        ("{stack: ./nowhere}", "nowhere: there is no such file"),
        ("{scheme: stack}", "a stack is named by 'stack: NAME' in place of 'scheme'"),
    ],
)
def test_a_wrong_entry_gets_one_sentence_with_its_line(tmp_path: Path, scheme: str, phrase: str) -> None:
    file = write_experiment(tmp_path, f"[{scheme}]")
    with pytest.raises(UserError) as caught:
        resolve(*load_experiment(file))
    assert phrase in str(caught.value)
    assert f"{file}:4" in str(caught.value) or "nowhere" in phrase


def test_a_stack_is_named_by_its_file_or_its_folder() -> None:
    folder = PEERS_DIR / "tcp"
    assert [stacks.find_stack(name, folder.parent)[0] for name in ("./tcp", "./tcp/peer.yaml")] == [
        folder / "peer.yaml"
    ] * 2


def test_an_unknown_stack_is_named_in_every_arena(tmp_path: Path) -> None:
    file = write_experiment(tmp_path, "[{stack: nosuch}]")
    file.write_text(file.read_text().replace("arena: mpshell", "arena: sim"))
    with pytest.raises(UserError, match="there is no stack 'nosuch'"):
        resolve(*load_experiment(file))


def test_a_missing_program_names_the_command_that_builds_it(tmp_path: Path) -> None:
    file = write_stack(tmp_path, client=["./relay"], build=["cargo", "build"], needs="It needs Rust.")
    with pytest.raises(UserError, match=r"relay is not there; build it with `make peers` \(cargo build\)\. It needs"):
        resolve_stack(str(file), {}, tmp_path)


def test_a_program_without_the_right_to_be_executed_is_not_called_missing(tmp_path: Path) -> None:
    (tmp_path / "relay.py").write_text("print()\n")
    file = write_stack(tmp_path, client=["./relay.py"])
    with pytest.raises(
        UserError, match=r"peer\.yaml: \S*relay\.py is not executable: chmod \+x it, or name its interp"
    ):
        resolve_stack(str(file), {}, tmp_path)


def test_options_go_to_their_sides_and_defaults_are_said(tmp_path: Path) -> None:
    options = {"window": {"sides": ["server"], "default": "9"}, "mode": {"values": ["a", "b"]}}
    file = write_stack(tmp_path, options=options)
    stack = resolve_stack(str(file), {"mode": "a"}, tmp_path)
    assert stack.options == {"window": "9", "mode": "a"}
    assert stack.client[-2:] == ("--mode", "a")
    assert stack.server[-4:] == ("--window", "9", "--mode", "a")


def test_another_relay_program_is_another_run(tmp_path: Path) -> None:
    relay = tmp_path / "relay.sh"
    relay.write_text("exit 1\n")
    write_stack(tmp_path, client=["sh", "./relay.sh"])
    file = write_experiment(tmp_path, "[{stack: ./peer.yaml}]")
    before = resolve(*load_experiment(file))[0].identity()
    assert resolve(*load_experiment(file))[0].identity() == before
    relay.write_text("exit 2\n")
    assert resolve(*load_experiment(file))[0].identity() != before


def test_the_revision_command_runs_once_for_each_state_of_its_files(tmp_path: Path) -> None:
    revision = tmp_path / "revision.sh"
    revision.write_text(f"echo run >>{tmp_path}/runs; echo one\n")
    file = write_stack(tmp_path, revision=["sh", "./revision.sh"])
    assert [resolve_stack(str(file), {}, tmp_path).version for _ in range(3)] == ["one"] * 3
    assert (tmp_path / "runs").read_text() == "run\n"
    revision.write_text("echo another\n")
    assert resolve_stack(str(file), {}, tmp_path).version == "another"


@pytest.mark.privileged
@pytest.mark.wall_clock
def test_relays_that_fail_get_one_sentence_each(tmp_path: Path) -> None:
    stack = resolve_stack("libxlink", {}, tmp_path)
    write_stack(tmp_path, server=["sh", "-c", "echo no such luck >&2; exit 3"])
    write_experiment(tmp_path, "[{stack: ./peer.yaml}]")
    done = run(tmp_path, "one.yaml", tmp_path / "results")
    one_sentence(done, "the server's relay", "ended before it was ready: no such luck")
    write_stack(tmp_path, server=list(stack.server), client=["sh", "-c", "exit 3"])
    done = run(tmp_path, "one.yaml", tmp_path / "results")
    one_sentence(done)
    assert "sh ended before it was ready.\n" in done.stderr
    (tmp_path / "relay.py").write_text("import json\n\njson.loads('')\n")
    write_stack(tmp_path, server=list(stack.server), client=[sys.executable, "./relay.py"])
    done = run(tmp_path, "one.yaml", tmp_path / "results")
    one_sentence(done)
    assert re.search(
        r"ended before it was ready: \S*relay\.py:3: json\.decoder\.JSONDecodeError: Expecting", done.stderr
    )


@pytest.mark.privileged
@pytest.mark.wall_clock
@pytest.mark.long
def test_a_campaign_goes_on_where_a_stack_does_not_start(tmp_path: Path) -> None:
    stack = resolve_stack("libxlink", {}, tmp_path)
    programs = {"ended": ["sh", "-c", "exit 3"], "never-ready": ["sh", "-c", "exec sleep 60"]}
    for name, client in programs.items():
        (tmp_path / name).mkdir()
        write_stack(tmp_path / name, client=client, server=list(stack.server))
    write_experiment(tmp_path, "[{stack: ./ended/peer.yaml}, {stack: ./never-ready/peer.yaml}, {stack: libxlink}]")
    done = good(run(tmp_path, "one.yaml", tmp_path / "results"))
    told = re.findall(r"^subway-1, (\S+): (.*)$", done.stdout, re.MULTILINE)
    assert [label for label, _ in told] == ["ended", "never-ready"]
    assert told[0][1].endswith("sh ended before it was ready.")
    assert told[1][1].endswith("sh was not ready within 15 s.")
    assert summaries(tmp_path / "results")["libxlink"]["outcome"] == "complete"
    record = json.loads(next(tmp_path.glob("results/one-*/campaign.json")).read_text())
    assert record["runs"] == ["subway-1--libxlink--s1"]
    assert [row["label"] for row in record["not_run"]] == ["ended", "never-ready"]


@pytest.mark.privileged
@pytest.mark.wall_clock
@pytest.mark.long
def test_a_relay_that_floods_its_output_dies_or_hangs_ends_a_run_and_not_the_campaign(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "peers" / "libxlink", tmp_path / "mine")
    stack = resolve_stack("libxlink", {}, tmp_path)
    client = [*stack.client, "$@"]
    flood = f"yes '{{}}' & exec {' '.join(client)}"
    dying = f"{' '.join(client)} & sleep 1.5; kill -9 $!"
    hanging = f"{' '.join(client)} & relay=$!; trap 'kill -9 $relay; exit' TERM; sleep 1.5; kill -STOP $relay; wait"
    for name, script in (("flood", flood), ("dying", dying), ("hanging", hanging)):
        (tmp_path / name).mkdir()
        write_stack(tmp_path / name, client=["sh", "-c", script, "sh"], server=list(stack.server))
    write_experiment(
        tmp_path, "[{stack: ./flood/peer.yaml}, {stack: ./dying/peer.yaml}, {stack: ./hanging/peer.yaml}]", 8_000_000
    )
    good(run(tmp_path, "one.yaml", tmp_path / "results"))
    records = {
        path.parent.name: json.loads(path.read_text()) for path in tmp_path.glob("results/one-*/runs/*/run.json")
    }
    outcomes = {name.split("--")[1]: record["outcome"] for name, record in records.items()}
    assert outcomes["dying"] == "connection_lost"
    assert outcomes["hanging"] == "time_limit"
    assert outcomes["flood"] in ("complete", "time_limit")
    relay_log = next(tmp_path.glob("results/one-*/runs/*flood*/relay.jsonl"))
    assert relay_log.stat().st_size <= 16 << 20


@pytest.mark.privileged
@pytest.mark.wall_clock
@pytest.mark.long
def test_a_servers_relay_that_dies_is_named_and_one_that_says_much_is_not_in_the_way(tmp_path: Path) -> None:
    stack = resolve_stack("libxlink", {}, tmp_path)
    relay = '"$@"'
    dying = f"{relay} & sleep 2; echo out of luck >&2; kill -9 $!"
    talking = f"{JUNK.replace(READY, '')} exec {relay}"
    leaving = f"setsid sleep 1000 & exec {relay}"
    for name, script in (("dying", dying), ("talking", talking), ("leaving", leaving)):
        (tmp_path / name).mkdir()
        server = ["sh", "-c", script, "sh", *stack.server]
        write_stack(tmp_path / name, client=list(stack.client), server=server)
    write_experiment(
        tmp_path, "[{stack: ./dying/peer.yaml}, {stack: ./talking/peer.yaml}, {stack: ./leaving/peer.yaml}]", 8_000_000
    )
    done = run(tmp_path, "one.yaml", tmp_path / "results")
    assert done.returncode == 1 and "A program failed in 1 of 3 runs" in done.stdout, done.stdout + done.stderr
    records = {
        path.parent.name.split("--")[1]: json.loads(path.read_text())
        for path in tmp_path.glob("results/one-*/runs/*/run.json")
    }
    assert records["dying"]["outcome"] == "server_died"
    assert records["dying"]["message"] == "the server's relay ended during the run: out of luck"
    assert {records[name]["outcome"] for name in ("talking", "leaving")} <= {"complete", "time_limit"}


# What a relay does, whose own command is "$@", and the run's outcome and message; None: there is no run.
FAULTS = {
    "ended": ("client", "echo no such luck >&2; exit 3", None, "sh ended before it was ready: no such luck"),
    "never-ready": ("client", "exec sleep 100", None, "sh was not ready within 15 s."),
    "no-server": ("server", "echo no such luck >&2; exit 3", None, "sh ended before it was ready: no such luck"),
    "never-ready-server": ("server", "exec sleep 100", None, "sh was not ready within 1 s: it said nothing"),
    "dying": ("client", '"$@" & sleep 0.7; kill -9 $!', "connection_lost", ""),
    "dying-server": (
        "server",
        '"$@" & sleep 0.7; echo out of luck >&2; kill -9 $!',
        "server_died",
        "the server's relay ended during the run: out of luck",
    ),
    "hanging": (
        "client",
        '"$@" & relay=$!; trap "kill -9 $relay; exit" TERM; sleep 0.7; kill -STOP $relay; wait',
        "time_limit",
        "",
    ),
    "flooding": ("server", "yes '{}' >&2 & exec \"$@\"", "complete", ""),
}


@needs_kernel
@pytest.mark.slow
def test_a_relay_that_fails_in_virtual_time_gets_one_sentence_and_the_campaign_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lowers the limits on a relay's output and time, which otherwise cost test time."""
    monkeypatch.setattr(runspec, "RELAY_OUTPUT_BYTES", 1 << 20)
    monkeypatch.setattr(kernel, "RELAY_READY_S", 1)
    stack = resolve_stack("libxlink", {}, tmp_path)
    for name, (side, script, _, _) in FAULTS.items():
        (tmp_path / name).mkdir()
        sides = {"client": list(stack.client), "server": list(stack.server)}
        sides[side] = ["sh", "-c", script, "sh", *sides[side]]
        write_stack(tmp_path / name, **sides)
    schemes = ", ".join(f"{{stack: ./{name}/peer.yaml}}" for name in FAULTS)
    file = write_experiment(tmp_path, f"[{schemes}, {{stack: libxlink}}]", 4_000_000)
    file.write_text(file.read_text().replace("mpshell", "kernel"))
    done = railyard("run", str(file), "--out", str(tmp_path / "results" / "one-1"))
    assert (done.returncode, done.stderr) == (1, ""), "a relay's end is a program's fault"
    told = dict(re.findall(r"^subway-1, (\S+): (.*)$", done.stdout, re.MULTILINE))
    records = {
        path.parent.name.split("--")[1]: json.loads(path.read_text())
        for path in tmp_path.glob("results/one-*/runs/*/run.json")
    }
    for name, (_, _, outcome, words) in FAULTS.items():
        if outcome is None:
            assert told[name].endswith(words), told
        else:
            assert (records[name]["outcome"], records[name]["message"] if words else "") == (outcome, words), name
    assert records["libxlink"]["outcome"] == "complete"
    assert next(tmp_path.glob("results/one-*/runs/*flooding*/relay-server.stderr")).stat().st_size == 1 << 20


def built_stacks() -> list[str]:
    return [name for name, program in BUILT.items() if (ROOT / "build" / "peers" / name / program).is_file()]


def summaries(results: Path) -> dict[str, dict[str, Any]]:
    """The player's last record of each run, by its scheme's label."""
    found = {}
    for path in results.glob("one-*/runs/*/player.jsonl"):
        found[path.parent.name.split("--")[1]] = json.loads(path.read_text().splitlines()[-1])
    return found


@pytest.mark.privileged
@pytest.mark.wall_clock
def test_stacks_of_the_project_play_to_the_end(tmp_path: Path) -> None:
    """The control, and those that `make peers` has built."""
    stacks = ["{stack: libxlink}", *(f"{{stack: {name}}}" for name in built_stacks())]
    write_experiment(tmp_path, f"[{', '.join(stacks)}]")
    good(run(tmp_path, "one.yaml", tmp_path / "results", *SIDE_BY_SIDE))
    outcomes = {label: summary["outcome"] for label, summary in summaries(tmp_path / "results").items()}
    assert outcomes == dict.fromkeys(["libxlink", *built_stacks()], "complete")


def restricted_controller() -> str:
    """A controller that the kernel restricts, if there is one. Only newreno never is."""
    have, free = (
        Path(f"/proc/sys/net/ipv4/tcp_{which}_congestion_control").read_text().split()
        for which in ("available", "allowed")
    )
    return next((name for name in ("cubic", "bbr") if name in have and name not in free), "newreno")


@pytest.mark.privileged
@pytest.mark.wall_clock
def test_relays_of_the_kernels_transports_may_choose_any_of_its_controllers(tmp_path: Path) -> None:
    stacks = [f"{{stack: {name}, cc: {restricted_controller()}}}" for name in ("tcp", "mptcp")]
    write_experiment(tmp_path, f"[{', '.join(stacks)}]")
    done = run(tmp_path, "one.yaml", tmp_path / "results", *SIDE_BY_SIDE)
    outcomes = {label: summary["outcome"] for label, summary in summaries(tmp_path / "results").items()}
    assert sorted(outcomes.values()) == ["complete", "complete"], done.stdout + done.stderr


class Upstream(socketserver.BaseRequestHandler):
    """A server. The first byte selects the answer: F, bytes without end; E, an echo."""

    def handle(self) -> None:
        wish = self.request.recv(1)
        try:
            while wish == b"F":
                self.request.sendall(bytes(65536))
            while piece := self.request.recv(65536):
                self.request.sendall(piece)
        except OSError:
            pass


@contextmanager
def relays(program: str, folder: Path) -> Iterator[Path]:
    """Both relays on loopback and a server behind them; the socket of the client's."""
    socket_file = folder / "socket"
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Upstream) as upstream, ExitStack() as stack:
        upstream.daemon_threads = True
        threading.Thread(target=upstream.serve_forever, daemon=True).start()
        stack.callback(upstream.shutdown)

        def start(*words: str) -> dict[str, Any]:
            relay = stack.enter_context(subprocess.Popen([BIN / program, *words], stdout=subprocess.PIPE, text=True))
            stack.callback(relay.kill)
            assert relay.stdout is not None
            record: dict[str, Any] = json.loads(relay.stdout.readline())
            assert record["event"] == "ready"
            return record

        port = upstream.server_address[1]
        server = start("server", "--listen", "127.0.0.1:0", "--upstream", f"127.0.0.1:{port}")["listen"]
        start("client", "--socket", str(socket_file), "--server", server, "--path", "a:127.0.0.1")
        yield socket_file


def local_connection(socket_file: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(20)
    connection.connect(str(socket_file))
    return connection


@pytest.mark.parametrize("program", ["xlink-relay", "tcp-relay"])
def test_a_relay_passes_half_closes_on_and_outlives_connections_that_break_off(tmp_path: Path, program: str) -> None:
    with relays(program, tmp_path) as socket_file:
        for _ in range(10):
            with local_connection(socket_file) as broken:
                broken.sendall(b"F")
                assert broken.recv(1)
        with local_connection(socket_file) as whole:
            text = os.urandom(300_000)

            def send() -> None:
                whole.sendall(b"E" + text)
                whole.shutdown(socket.SHUT_WR)

            sender = threading.Thread(target=send)
            sender.start()
            came = b"".join(iter(lambda: whole.recv(65536), b""))
            sender.join()
        assert came == text


@needs_kernel
def test_relays_give_the_figures_of_the_direct_transport(tmp_path: Path) -> None:
    """In virtual time, where only the relays differ. MPTCP's scheduler depends on how bytes are written."""
    direct = "{scheme: sp, path: primary}, {scheme: tcp, path: primary}"
    relayed = "{stack: libxlink, scheme: sp, label: r-sp}, {stack: tcp, label: r-tcp}, {stack: mptcp, label: r-mptcp}"
    file = write_experiment(tmp_path, f"[{direct}, {relayed}]")
    file.write_text(file.read_text().replace("mpshell", "kernel"))
    good(run(tmp_path, "one.yaml", tmp_path / "results"))
    medians = {label: summary["rct_s"]["median"] for label, summary in summaries(tmp_path / "results").items()}
    for scheme in ("sp", "tcp"):
        assert medians[f"r-{scheme}"] == pytest.approx(medians[scheme], rel=0.1), medians
    record = json.loads(next(tmp_path.glob("results/one-*/runs/*r-mptcp*/run.json")).read_text())
    assert record["mptcp"]["player"]["MPJoinAckRx"] >= 1 or record["mptcp"]["server"]["MPJoinAckRx"] >= 1


READY = """echo '{"event": "ready"}'"""


def relay_run(folder: Path, script: str, *options: str, player: str = "exit 7") -> subprocess.CompletedProcess[str]:
    """A player over a relay that is a shell script. The relay's standard error goes to a file."""
    command = [str(BIN / "relay-run"), "--path", "a:127.0.0.1", "--server", "127.0.0.1:1"]
    command += [*options, "--out", str(folder / "relay.jsonl"), "--", "sh", "-c", script]
    with (folder / "stderr").open("w") as stderr:
        done = subprocess.run(
            [*command, "--", "sh", "-c", player],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            timeout=60,
            check=False,
        )
    done.stderr = (folder / "stderr").read_text()[-1000:]
    return done


@pytest.mark.parametrize("script", ["exec cat /dev/zero", f"{READY.replace('ready', 'path')}; exec sleep 60"])
def test_a_relay_that_never_gets_ready_gets_one_sentence(tmp_path: Path, script: str) -> None:
    done = relay_run(tmp_path, script, "--wait-ms", "300")
    assert (done.returncode, done.stderr) == (2, "relay-run: sh was not ready within 0.3 s.\n")


# A record of absurd values, a word of JSON, brackets without end, bytes that are no text.
JUNK = f"""echo '{{"event": "path", "bytes_sent": -1e999, "srtt_us": "soon"}}'; echo 3; echo '"ready"'
head -c 100000 /dev/zero | tr '\\0' '['; echo; head -c 5000 /dev/urandom; echo; {READY}
"""


@pytest.mark.parametrize(
    "script",
    [
        f"{JUNK} exec sleep 60",
        f"{READY}; exec cat /dev/zero",  # a line without an end
        f"{READY}; exec yes '{{}}'",
        f"{READY}; exec yes >&2",
        f"{READY}; rm -f $2; exec sleep 60",  # its socket goes away
        f"{READY}; exit 1",
        f"trap '' TERM; {READY}; while :; do sleep 1; done",
    ],
)
def test_a_player_ends_by_itself_whatever_its_relay_does(tmp_path: Path, script: str) -> None:
    done = relay_run(tmp_path, script, player="sleep 0.5; exit 7")
    assert done.returncode == 7
    assert (tmp_path / "relay.jsonl").stat().st_size <= 16 << 20
    assert (tmp_path / "stderr").stat().st_size <= 64 << 20


def test_children_of_a_relay_end_with_it(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = f"(trap '' TERM; exec sleep 100) & echo $! > {pid_file}; {READY}; wait"
    assert relay_run(tmp_path, script).returncode == 7
    wait_until_gone([int(pid_file.read_text())])


@pytest.mark.parametrize(
    ("script", "version"),
    [("exec yes", "y"), ("exec cat /dev/zero", None), ("printf '\\377\\n'", "\ufffd"), ("exec sleep 60", None)],
)
def test_a_revision_command_may_print_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, version: str | None
) -> None:
    if version is None:
        monkeypatch.setattr(stacks, "REVISION_LIMIT_S", 0.3)
    (tmp_path / "revision.sh").write_text(script)
    file = write_stack(tmp_path, revision=["sh", "./revision.sh"])
    assert resolve_stack(str(file), {}, tmp_path).version == version


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("client: [sh", "peer.yaml"),
        ("\0", "peer.yaml"),
        ("[]", "peer.yaml"),
        ("name: mine", "peer.yaml"),
        ("{name: mine, about: a, licence: b, client: [sh], server: []}", "server"),
        ("{name: mine, about: a, licence: b, client: sh, server: [sh]}", "client"),
        ("{name: mine, about: a, licence: b, client: [sh], server: [sh], can: {fly: true}}", "fly"),
        ("{name: ../mine, about: a, licence: b, client: [sh], server: [sh]}", "name"),
        ("{name: mine, about: a, licence: b, client: [./nothing], server: [sh]}", "nothing is not there"),
        ("{name: m, about: a, licence: b, client: [sh], server: [sh], options: {o: {values: [a], default: b}}}", "'o'"),
    ],
)
def test_a_wrong_file_gets_one_sentence(tmp_path: Path, text: str, phrase: str) -> None:
    (tmp_path / "peer.yaml").write_text(text)
    with pytest.raises(UserError) as caught:
        resolve(*load_experiment(write_experiment(tmp_path, "[{stack: ./peer.yaml}]")))
    assert phrase in str(caught.value)
    assert "\n" not in str(caught.value)


def test_relay_run_ends_its_children_with_itself(tmp_path: Path) -> None:
    pid_file, started = tmp_path / "pid", tmp_path / "started"
    relay = ["sh", "-c", f'echo $$ > {pid_file}; echo \'{{"event": "ready"}}\'; exec sleep 60']
    command = [str(BIN / "relay-run"), "--path", "a:127.0.0.1", "--server", "127.0.0.1:1", "--", *relay, "--"]
    with subprocess.Popen([*command, "sh", "-c", f"touch {started}; exec sleep 60"], stderr=subprocess.PIPE) as process:
        while not started.exists():
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


@pytest.mark.parametrize("is_there", [True, False])
def test_picoquic_is_linked_with_its_fast_aead_where_the_build_has_it(tmp_path: Path, is_there: bool) -> None:
    (tmp_path / "lib").mkdir()
    if is_there:
        (tmp_path / "lib" / "libpicotls-fusion.a").touch()
    words = ["make", "-n", "build/peers/picoquic/relay", f"PICOQUIC_DIR={tmp_path}"]
    done = good(run_program(words, cwd=ROOT, timeout=60))
    line = next(line for line in done.stdout.splitlines() if "libpicoquic-core.a" in line)
    libraries = re.findall(r"lib/lib(\S+)\.a", line)
    fusion = ["picotls-fusion"] if is_there else []
    assert libraries[-4 - len(fusion) :] == [
        "picoquic-core", *fusion, "picotls-openssl", "picotls-minicrypto", "picotls-core",
    ]  # fmt: skip
