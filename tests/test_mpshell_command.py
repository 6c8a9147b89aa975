"""mpshell and its command: exit status, signals, what is left afterwards, bad input."""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from conftest import good, one_sentence, run_program
from mpshell_program import (
    MPSHELL,
    TIMEOUT_S,
    devices,
    path_option,
    processes_with,
    pytestmark,
    run,
    summary_of,
    trace,
    under_way,
)
from waiting import wait_until

__all__ = ["pytestmark", "trace"]


# ---- exit status -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (["true"], 0),
        (["sh", "-c", "exit 7"], 7),
        (["sh", "-c", "kill -TERM $$"], 128 + signal.SIGTERM),
        (["sh", "-c", "kill -KILL $$"], 128 + signal.SIGKILL),
        (["no-such-command-anywhere"], 127),
        (["/etc/passwd"], 126),
    ],
)
def test_exit_status_is_the_commands(trace: Path, command: list[str], status: int) -> None:
    result = run(*path_option("wifi", trace), "--", *command)
    assert result.returncode == status
    if status in {126, 127}:
        assert result.stderr.startswith(f"mpshell: cannot run {command[0]}: ")
        assert result.stderr.count("\n") == 1
    else:
        assert result.stderr == ""


def test_standard_streams_and_open_descriptors_are_the_callers(trace: Path) -> None:
    result = good(
        run_program(
            [MPSHELL, *path_option("wifi", trace), "--", "sh", "-c", "cat; echo err >&2"], input="in", timeout=TIMEOUT_S
        )
    )
    assert (result.stdout, result.stderr) == ("in", "err\n")
    reader, writer = os.pipe()
    command = [str(MPSHELL), *path_option("wifi", trace), "--"]
    command += [sys.executable, "-c", f"import os; os.write({writer}, b'passed')"]
    subprocess.run(command, pass_fds=[writer], timeout=TIMEOUT_S, check=True)
    os.close(writer)
    with os.fdopen(reader) as passed:
        assert passed.read() == "passed"


# ---- nothing is left ---------------------------------------------------------------------------------------------

# Two processes that would live on: one in a session of its own, and the command itself.
LINGER = "setsid sleep {mark} & echo ready; exec sleep {mark}"


READY_LATER = """
import os, time
fd = int(os.environ["MPSHELL_READY_FD"])
time.sleep(0.4)
os.write(fd, b"r")
assert os.read(fd, 1) == b"g"
print(time.monotonic_ns() // 1000)
"""


def test_links_start_when_the_command_is_ready(trace: Path, tmp_path: Path) -> None:
    path, summary = path_option("p0", trace), tmp_path / "s.json"
    began = time.monotonic_ns() // 1000
    done = good(run(*path, "--start-when-ready", "--summary", summary, "--", sys.executable, "-c", READY_LATER))
    t0 = summary_of(summary)["t0_monotonic_us"]
    assert began + 400_000 <= t0 <= int(done.stdout)


def test_links_start_without_a_command_that_never_gets_ready(trace: Path) -> None:
    closing = 'import os; os.close(int(os.environ["MPSHELL_READY_FD"])); os.execlp("sleep", "sleep", "0.1")'
    for command in (["true"], [sys.executable, "-c", closing]):
        good(run(*path_option("p0", trace), "--start-when-ready", "--", *command))


def lingering(trace: Path, mark: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """SIGINT has its default action inside."""
    paths = [*path_option("wifi", trace), *path_option("lte", trace)]
    return under_way(*paths, "--", "sh", "-c", LINGER.format(mark=mark))


def new_devices(before: set[str], shell: subprocess.Popen[str]) -> set[str]:
    return {name for name in devices() - before if name.startswith(f"mp{shell.pid % 100000}-")}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_is_left_after_a_signal(trace: Path, number: signal.Signals) -> None:
    mark = f"{70000 + int(number)}.{os.getpid()}"
    before = devices()
    with lingering(trace, mark) as shell:
        wait_until(lambda: len(processes_with(f"sleep\0{mark}")) == 2, "both commands to run")
        assert len(new_devices(before, shell)) == 2
        shell.send_signal(number)
        status = shell.wait(TIMEOUT_S)
        assert status == (-number if number == signal.SIGKILL else 128 + number)
        wait_until(lambda: not processes_with(mark), "its processes to be gone")
        wait_until(lambda: not new_devices(before, shell), "its devices to be gone")


def test_descendants_do_not_outlive_the_command(trace: Path) -> None:
    mark = f"80000.{os.getpid()}"
    assert run(*path_option("wifi", trace), "--", "sh", "-c", f"setsid sleep {mark} >/dev/null 2>&1 &").returncode == 0
    assert not processes_with(mark)


def test_a_terminal_interrupt_reaches_the_command_once(trace: Path) -> None:
    counter = """
import signal, sys, time
got = []
signal.signal(signal.SIGINT, lambda *_: got.append(1))
print("ready", flush=True)
end = time.monotonic() + 10
while not got and time.monotonic() < end:
    time.sleep(0.01)
time.sleep(0.3)
print(f"interrupts {len(got)}", flush=True)
"""
    command = [str(MPSHELL), *path_option("wifi", trace), "--", sys.executable, "-c", counter]
    child, terminal = pty.fork()
    if child == 0:
        os.execv(command[0], command)  # noqa: S606
    output = b""
    try:
        while (
            not output.endswith((b"interrupts 1\r\n", b"interrupts 2\r\n"))
            and select.select([terminal], [], [], TIMEOUT_S)[0]
        ):
            output += os.read(terminal, 4096)
            if output == b"ready\r\n":
                os.write(terminal, b"\x03")
    finally:
        os.close(terminal)
        _, status = os.waitpid(child, 0)
    assert b"interrupts 1\r\n" in output
    assert os.waitstatus_to_exitcode(status) in {0, 128 + signal.SIGHUP}  # the terminal may close first


def is_pending(process: int, number: signal.Signals) -> bool:
    """The same signal sent again now would be one signal."""
    status = Path(f"/proc/{process}/status").read_text()
    pending = re.findall(r"^(?:Sig|Shd)Pnd:\s(\w+)$", status, re.MULTILINE)
    return any(int(mask, 16) >> (number - 1) & 1 for mask in pending)


def test_a_third_interrupt_ends_a_command_that_ignores_it(trace: Path) -> None:
    with subprocess.Popen(
        [
            MPSHELL,
            *path_option("wifi", trace),
            "--",
            "sh",
            "-c",
            "trap '' INT TERM; echo ready; while :; do sleep 1; done",
        ],
        stdout=subprocess.PIPE,
        text=True,
    ) as shell:
        assert shell.stdout is not None
        assert shell.stdout.readline() == "ready\n"
        for _ in range(3):
            assert shell.poll() is None
            shell.send_signal(signal.SIGTERM)
            wait_until(lambda: not is_pending(shell.pid, signal.SIGTERM), "the signal to be taken")
        assert shell.wait(TIMEOUT_S) == 128 + signal.SIGKILL


def test_a_command_may_delete_a_device(trace: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.json"
    script = f"ip link del lte && {sys.executable} -c 'import time; time.sleep(1)'"
    paths = [*path_option("wifi", trace), *path_option("lte", trace)]
    before = os.times()
    result = run(*paths, "--keep-awake", "off", "--summary", summary, "--", "sh", "-c", script)
    after = os.times()
    assert result.returncode == 0, result.stderr
    used = after.children_user + after.children_system - before.children_user - before.children_system
    assert used < 0.7 * summary_of(summary)["duration_s"], "mpshell spins on the deleted device"


def test_a_caller_that_ignores_sigchld_gets_the_status(trace: Path) -> None:
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = [sys.executable, "-c", ignoring, str(MPSHELL), *path_option("wifi", trace), "--", "sh", "-c", "exit 5"]
    assert subprocess.run(command, timeout=TIMEOUT_S, check=False).returncode == 5


def test_several_shells_at_once_have_addresses_of_their_own(trace: Path) -> None:
    command = [str(MPSHELL), *path_option("wifi", trace), *path_option("lte", trace), "--", "sh", "-c"]
    script = "echo $MPSHELL_PATH_0_ADDR $MPSHELL_PATH_1_ADDR; read line"
    shells = [
        subprocess.Popen([*command, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    addresses = []
    for shell in shells:
        assert shell.stdout is not None
        addresses += shell.stdout.readline().split()
    for shell in shells:
        shell.communicate("\n", timeout=TIMEOUT_S)
        assert shell.returncode == 0
    assert len(addresses) == 8
    assert len(set(addresses)) == 8


# ---- bad input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "where"),
    [("1\n\n2\n", ":2: "), ("1\n2x\n", ":2: "), ("5\n4\n", ":2: "), ("0\n", ":1: "), ("", ":1: ")],
)
def test_a_malformed_trace_is_named_with_its_line(trace: Path, tmp_path: Path, content: str, where: str) -> None:
    bad = tmp_path / "bad.trace"
    bad.write_text(content)
    result = run("--path", f"wifi:up={trace},down={bad},delay=1", "--", "true")
    one_sentence(result, f"{bad}{where}", program="mpshell")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--path", "wifi:up=/no/such,down=/no/such,delay=1", "--", "true"], "/no/such: cannot read the trace"),
        (["--path", "wifi:up={trace},down={trace},delay=x", "--", "true"], "delay takes ms (0 to 3600000), not 'x'"),
        (["--path", "wifi:up={trace},down={trace},delay=1,queue=red", "--", "true"], 'unknown queue discipline "red"'),
        (["--path", "wifi:up={trace},down={trace},delay=1", "--bogus", "--", "true"], "unknown option '--bogus'"),
        (["--path", "wifi:up={trace},down={trace},delay=1"], "no command"),
        (["--", "true"], "no path"),
        (["--path", "wifi:up={trace},down={trace},delay=1", "--watch", "1", "--", "true"], "--watch needs --lateness"),
        (["--path", "wifi:up={trace},down={trace},delay=1", "--summary", "/no/such/dir/s", "--", "true"], "summary"),
        (["--path", "wifi:up={trace},down={trace},delay=1", "--log-dir", "/proc/x", "--", "true"], "log directory"),
    ],
)
def test_bad_input_ends_in_one_sentence(trace: Path, arguments: list[str], says: str) -> None:
    one_sentence(run(*[argument.replace("{trace}", str(trace)) for argument in arguments]), says, program="mpshell")


def test_without_permission_it_says_so(trace: Path) -> None:
    with tempfile.TemporaryDirectory() as name:  # a folder that nobody may enter, with a copy of all that it needs
        public = Path(name)
        public.chmod(0o755)
        copies = [Path(shutil.copy(file, public)) for file in (MPSHELL, trace)]
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        done = run_program([*nobody, copies[0], *path_option("wifi", copies[1]), "--", "true"], timeout=TIMEOUT_S)
    one_sentence(done, "no permission for TUN", "run mpshell as root, or with --virtual", program="mpshell")


def test_a_command_that_succeeded_ends_in_1_where_a_log_or_the_summary_is_incomplete(
    trace: Path, tmp_path: Path
) -> None:
    full = Path("/dev/full")
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "wifi.up.log").symlink_to(full)
    done = run(*path_option("wifi", trace), "--log-dir", str(logs), "--", "true")
    assert done.returncode == 1 and "wifi.up.log is incomplete" in done.stderr
    assert run(*path_option("wifi", trace), "--log-dir", str(logs), "--", "sh", "-c", "exit 7").returncode == 7
    # What is no file is written to, and stays what it is.
    (tmp_path / "device").symlink_to(full)
    done = run(*path_option("wifi", trace), "--summary", str(tmp_path / "device"), "--", "true")
    assert done.returncode == 1 and "cannot write the summary" in done.stderr
    assert (tmp_path / "device").is_symlink()
