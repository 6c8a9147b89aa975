"""mpshell --user: COMMAND has no rights over the machine, and still finds its network."""

import json
import os
import pwd
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import good, one_sentence, run_program
from mpshell_program import MPSHELL, TIMEOUT_S, path_option, pytestmark, run, trace

__all__ = ["pytestmark", "trace"]

NOBODY = pwd.getpwnam("nobody")


def status_of(text: str) -> dict[str, str]:
    """The lines of /proc/self/status."""
    return {name: value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}


def test_the_command_is_that_user_without_capabilities(trace: Path) -> None:
    options: list[str | Path] = [*path_option("wifi", trace), "--user", "nobody", "--"]
    result = run(*options, "cat", "/proc/self/status")
    status = status_of(result.stdout)
    assert status["Uid"].split() == [str(NOBODY.pw_uid)] * 4
    assert status["Gid"].split() == [str(NOBODY.pw_gid)] * 4
    assert set(status["Groups"].split()) <= {str(NOBODY.pw_gid)}
    assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert status["NoNewPrivs"] == "1"
    named = run(*options, "sh", "-c", "id -u; echo $HOME $USER $LOGNAME")
    assert named.stdout == f"{NOBODY.pw_uid}\n{NOBODY.pw_dir} nobody nobody\n"


def test_it_can_change_neither_the_machine_nor_its_links(trace: Path) -> None:
    options: list[str | Path] = [*path_option("wifi", trace), "--user", "nobody", "--", "sh", "-c"]
    for attempt in (
        "touch /etc/mpshell-was-here",
        "ip link set dev wifi down",
        "echo 1 >/proc/sys/net/ipv4/ip_forward",
        "kill -0 1",
    ):
        result = run(*options, f"{attempt} 2>/dev/null && echo done")
        assert (result.stdout, result.returncode) == ("", 2 if "echo" in attempt else result.returncode), attempt
        assert result.returncode != 0, attempt
    assert not Path("/etc/mpshell-was-here").exists()


def test_who_called_sudo_is_the_user_unless_another_is_given(trace: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.json"
    environment = os.environ | {"SUDO_UID": str(NOBODY.pw_uid), "SUDO_USER": "nobody"}
    command = [str(MPSHELL), *path_option("wifi", trace), "--summary", str(summary)]

    def whoami(*more: str) -> str:
        done = good(run_program([*command, *more, "--", "id", "-un"], env=environment, timeout=TIMEOUT_S))
        return done.stdout.strip()

    assert whoami() == "nobody"
    assert json.loads(summary.read_text())["user"] == "nobody"
    assert whoami("--user", "root") == "root"
    assert json.loads(summary.read_text())["user"] is None


def test_root_keeps_what_its_network_needs_and_gives_up_the_machine(trace: Path) -> None:
    result = run(*path_option("wifi", trace), "--", "cat", "/proc/self/status")
    mine = int(status_of(Path("/proc/self/status").read_text())["CapEff"], 16)
    for name in ("CapEff", "CapBnd"):
        found = int(status_of(result.stdout)[name], 16)
        gone = {16, 17, 22, 25, 30, 34}  # sys_module, sys_rawio, sys_boot, sys_time, audit_control, syslog
        assert not any(found >> bit & 1 for bit in gone)
        kept = {0, 1, 6, 7, 8, 12, 13, 21, 23}  # dac_override, chown …, setgid, setuid, net_admin, sys_admin, sys_nice
        assert all(found >> bit & 1 for bit in kept if mine >> bit & 1)


@pytest.mark.parametrize(
    ("user", "sudo", "words"),
    [
        ("no-such-user", "", "--user no-such-user: there is no such user"),
        ("4294967290", "", "there is no such user"),
        (None, "3999999999", "SUDO_UID 3999999999"),
    ],
)
def test_an_unknown_user_is_refused_in_one_sentence(trace: Path, user: str | None, sudo: str, words: str) -> None:
    named = [] if user is None else ["--user", user]
    done = run_program(
        [str(MPSHELL), *path_option("wifi", trace), *named, "--", "true"],
        env=os.environ | {"SUDO_UID": sudo},
        timeout=TIMEOUT_S,
    )
    one_sentence(done, words, program="mpshell")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can enter, which tmp_path is not."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def test_the_user_may_use_the_control_socket_and_reads_no_file_of_roots(trace: Path, open_folder: Path) -> None:
    control, secret = open_folder / "control", open_folder / "secret.trace"
    secret.write_text("1\n")
    secret.chmod(0o640)  # for root's group, of which mpshell is, as after any login
    client = f"""
import os, socket
s = socket.socket(socket.AF_UNIX)
s.connect(os.environ["MPSHELL_CONTROL"])
for line in ("loss wifi 0.5", "trace wifi {secret}"):
    s.sendall(line.encode() + b"\\n")
    print(s.recv(4096).decode().strip())
"""
    options: list[str | Path] = [*path_option("wifi", trace), "--user", "nobody", "--control", control]
    done = good(
        run_program(
            [str(MPSHELL), *options, "--", "/usr/bin/python3", "-c", client], extra_groups=[0], timeout=TIMEOUT_S
        )
    )
    loss, trace_answer = done.stdout.splitlines()
    assert json.loads(loss)["ok"]
    assert not json.loads(trace_answer)["ok"]
    assert "Permission denied" in json.loads(trace_answer)["error"]


def test_sysctls_are_set_inside_and_counters_kept(trace: Path, tmp_path: Path) -> None:
    counters = tmp_path / "netstat"
    before = Path("/proc/sys/net/ipv4/tcp_wmem").read_text()
    options: list[str | Path] = [*path_option("wifi", trace), "--user", "nobody", "--netstat", counters]
    setting = "net.ipv4.tcp_wmem=4096 10000 20000"
    result = run(*options, "--sysctl", setting, "--", "cat", "/proc/sys/net/ipv4/tcp_wmem")
    assert result.stdout.split() == ["4096", "10000", "20000"]
    assert Path("/proc/sys/net/ipv4/tcp_wmem").read_text() == before
    assert counters.read_text().startswith("TcpExt: ")


@pytest.mark.parametrize("setting", ["kernel.panic=1", "net.ipv4/../../kernel.panic=1", "net.ipv4.tcp_wmem", "net..=1"])
def test_only_settings_of_the_network_are_taken(trace: Path, setting: str) -> None:
    result = run(*path_option("wifi", trace), "--sysctl", setting, "--", "true")
    assert (result.returncode, result.stderr) == (2, f"mpshell: --sysctl takes net.NAME=VALUE, not '{setting}'.\n")


def test_the_command_leads_mpshell_to_no_file_of_somebody_else(trace: Path) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder, secret = Path(place) / "theirs", Path(place) / "secret"
        folder.mkdir()
        secret.write_text("root's")
        Path(place).chmod(0o755)
        os.chown(folder, NOBODY.pw_uid, NOBODY.pw_gid)
        options: list[str | Path] = [*path_option("wifi", trace), "--user", "nobody"]
        outputs: list[str | Path] = ["--netstat", folder / "netstat", "--summary", folder / "summary"]
        names = ("netstat", "summary", "wifi.up.log")
        plant = f"cd {folder}; for name in {' '.join(names)}; do rm -f $name; ln -s {secret} $name; done"
        planted = run(*options, *outputs, "--", "sh", "-c", plant)
        assert (planted.returncode, secret.read_text()) == (0, "root's")
        assert (folder / "netstat").read_text().startswith("TcpExt: ")
        assert json.loads((folder / "summary").read_text())["user"] == "nobody"
        # A link that is there from the last time is not followed either.
        for name in names:
            (folder / name).unlink()
        for option, name in (("--netstat", "netstat"), ("--summary", "summary"), ("--log-dir", "wifi.up.log")):
            assert run(*options, "--", "sh", "-c", plant).returncode == 0
            done = run(*options, option, folder if option == "--log-dir" else folder / name, "--", "true")
            assert (done.returncode, secret.read_text()) == (2, "root's"), done.stderr
            assert "link" in done.stderr
