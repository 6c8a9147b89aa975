"""The limits of a hostile program that is root in the time-travel kernel."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import Done, good, run_program
from in_process import railyard
from kernel_machine import needs_kernel, vk
from railyard.base.paths import program
from railyard.experiment.stacks import resolve_stack
from railyard.run import vkernel

pytestmark = needs_kernel

# All that root inside can try on a file of the host by its name.
ATTACK = """
import ctypes, os, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
MS_REMOUNT = 32
victim, folder = sys.argv[1], os.path.dirname(sys.argv[1])
libc.mount(b"none", b"/", None, MS_REMOUNT, None)
os.mkdir("/run/whole")
libc.mount(b"none", b"/run/whole", b"hostfs", 0, b"/")
attempts = [
    lambda at: open(at + victim, "a").write("x"),
    lambda at: os.truncate(at + victim, 0),
    lambda at: os.chmod(at + victim, 0o777),
    lambda at: os.chown(at + victim, 12345, 12345),
    lambda at: os.utime(at + victim, (0, 0)),
    lambda at: os.link(at + victim, at + folder + "/link"),
    lambda at: os.rename(at + victim, at + folder + "/moved"),
    lambda at: os.unlink(at + victim),
    lambda at: os.symlink("x", at + folder + "/symlink"),
    lambda at: os.mkdir(at + folder + "/folder"),
    lambda at: os.mkfifo(at + folder + "/fifo"),
    lambda at: open(at + folder + "/new", "w"),
]
done = []
for at in ("", "/run/whole", "/run/whole/proc/self/root", f"/run/whole/proc/{sys.argv[2]}/root"):
    for number, attempt in enumerate(attempts):
        try:
            attempt(at)
        except OSError:
            continue
        done.append((at, number))
os.mkdir("ours")
open("ours/file", "w").write("written")
os.chmod("ours/file", 0o600)
os.utime("ours/file", (5, 5))
os.rename("ours/file", "ours/other")
print("done:", done)
"""

# Before vkernel starts: as many layers of Landlock as there can be, so that it gets none of its own.
NO_LANDLOCK = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
rules = (ctypes.c_uint64 * 1)(1 << 6)  # the making of character devices
for _ in range(16):
    libc.syscall(446, libc.syscall(444, rules, 8, 0), 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""
# In a user namespace that may have no more namespaces of users and mounts.
NO_NAMESPACES = 'for n in user mnt; do echo 0 >/proc/sys/user/max_${n}_namespaces; done; exec "$@"'


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder that every user can enter, with a file that its owner may write."""
    with tempfile.TemporaryDirectory(prefix="railyard-outside-") as name:
        Path(name).chmod(0o755)
        (Path(name) / "victim").write_text("secret\n")
        yield Path(name)


def facts_of(place: Path) -> list[tuple[str, str, int, int, int]]:
    files = sorted(place.rglob("*")) if place.is_dir() else [place]
    return [(f.name, f.read_text(), (s := f.stat()).st_mode, s.st_uid, s.st_mtime_ns) for f in files]


def attack(folder: Path, victim: Path, *before: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "attack.py").write_text(ATTACK)
    inside = [sys.executable, "attack.py", str(victim), str(os.getpid())]
    command = [*before, str(program("vkernel")), "--folder", str(folder), "--", *inside]
    return run_program(command, env=os.environ | environment, timeout=120)


def test_a_program_that_is_root_inside_changes_nothing_outside_of_its_folder(tmp_path: Path, outside: Path) -> None:
    before = facts_of(outside)
    done = attack(tmp_path, outside / "victim")
    assert (done.returncode, done.stdout) == (0, "done: []\n"), done.stderr
    assert facts_of(outside) == before
    assert (tmp_path / "ours" / "other").read_text() == "written"
    assert (tmp_path / "ours" / "other").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "ours" / "other").stat().st_mtime == 5
    moved = "import os; os.rename('ours/other', 'file')"
    assert vk(tmp_path, "--", sys.executable, "-c", moved).returncode == 0
    assert (tmp_path / "file").read_text() == "written"


def test_the_mounts_alone_keep_the_host_where_there_is_no_landlock(tmp_path: Path, outside: Path) -> None:
    before = facts_of(outside)
    done = attack(tmp_path, outside / "victim", sys.executable, "-c", NO_LANDLOCK)
    assert (done.returncode, done.stdout) == (0, "done: []\n"), done.stderr
    assert facts_of(outside) == before


def test_landlock_alone_keeps_contents_and_names(tmp_path: Path, outside: Path) -> None:
    """Then modes, owners and times of the user's files are not kept (SECURITY.md)."""
    before = [fact[:2] for fact in facts_of(outside)]
    good(attack(tmp_path, outside / "victim", "unshare", "-Ur", "sh", "-c", NO_NAMESPACES, "sh"))
    assert [fact[:2] for fact in facts_of(outside)] == before
    assert (tmp_path / "ours" / "other").read_text() == "written"


def test_without_either_the_machine_does_not_start_unless_asked_to(tmp_path: Path, outside: Path) -> None:
    neither = ("unshare", "-Ur", "sh", "-c", NO_NAMESPACES, "sh", sys.executable, "-c", NO_LANDLOCK)
    refused = attack(tmp_path, outside / "victim", *neither)
    assert refused.returncode == 125
    assert "cannot be confined: this host has no Landlock" in refused.stderr
    assert "RAILYARD_KERNEL_UNCONFINED=1" in refused.stderr
    assert refused.stderr.count("\n") == 1
    asked = good(attack(tmp_path, outside / "victim", *neither, RAILYARD_KERNEL_UNCONFINED="1"))
    assert "done: [('', 0)" in asked.stdout


@pytest.mark.privileged
def test_root_becomes_the_owner_of_the_folder(tmp_path: Path) -> None:
    """The owner may not enter the folders above, nor that of the kernel."""
    home = tmp_path / "home"
    home.mkdir()
    tmp_path.chmod(0o700)
    os.chown(home, 65534, 65534)
    (tmp_path / "secret").write_text("secret\n")
    (tmp_path / "secret").chmod(0o600)
    done = vk(home, "--", "sh", "-c", f"id -u; touch file; cat {tmp_path}/secret; cat /etc/shadow")
    assert done.stdout == "0\n"
    assert "secret" not in done.stdout
    assert done.stderr.count("Permission denied") == 2
    assert (home / "file").stat().st_uid == 65534


@pytest.mark.privileged
def test_a_user_without_rights_is_confined_as_well(outside: Path) -> None:
    folder = outside / "folder"
    folder.mkdir()
    kernel = vkernel.at_hand()
    assert kernel is not None
    shutil.copy(kernel, outside / "linux")
    for path in (folder, outside / "victim"):
        os.chown(path, 65534, 65534)
    before = facts_of(outside / "victim")
    nobody = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all")
    inside = "mount -o remount,rw /; echo x >>$0; chmod 777 $0; touch file; echo $?"
    command = [
        *nobody,
        str(program("vkernel")),
        "--folder",
        str(folder),
        "--",
        "sh",
        "-c",
        inside,
        str(outside / "victim"),
    ]
    own = {"RAILYARD_KERNEL": str(outside / "linux"), "HOME": "/"}
    done = run_program(command, env=os.environ | own, timeout=120)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    assert facts_of(outside / "victim") == before
    assert (folder / "file").stat().st_uid == 65534


def test_the_kernels_process_has_no_rights_and_no_network(tmp_path: Path) -> None:
    """Whatever took the kernel's process over would have these."""
    held = "import os, time; time.sleep(0.1); open('up', 'w'); [os.stat('.') for _ in range(3000000)]"
    machine = subprocess.Popen([str(program("vkernel")), "--folder", str(tmp_path), "--", sys.executable, "-c", held])
    try:
        while not (tmp_path / "up").exists() and machine.poll() is None:
            time.sleep(0.01)
        (kernel,) = Path(f"/proc/{machine.pid}/task/{machine.pid}/children").read_text().split()
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{kernel}/status").read_text().splitlines())
        assert [status[name].strip("0\n ") for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")] == [""] * 4
        assert status["NoNewPrivs"].strip() == "1"
        devices = Path(f"/proc/{kernel}/net/dev").read_text()
        assert [line.split(":")[0].strip() for line in devices.splitlines()[2:]] == ["lo"]
    finally:
        machine.kill()
        machine.wait()


def test_a_program_cannot_turn_its_machine_off(tmp_path: Path) -> None:
    """It could have written a good end to the log before."""
    turn_off = "import ctypes; print(ctypes.CDLL(None).reboot(0x4321fedc))"
    done = vk(tmp_path, "--", "sh", "-c", f'{sys.executable} -c "{turn_off}"; mknod node c 1 1 && echo made; exit 3')
    assert (done.returncode, done.stdout) == (3, "-1\n"), done.stderr


def test_no_byte_of_the_log_reaches_the_terminal_as_an_escape(tmp_path: Path) -> None:
    named = "import ctypes; ctypes.CDLL(None).prctl(15, b'\\033[2Jx\\a'); x = [bytearray(1 << 20) for _ in range(500)]"
    done = vk(tmp_path, "--memory", "64", "--", sys.executable, "-c", named)
    assert "used up, and ?[2Jx? was killed" in done.stderr


RUN = """\
name: hostile
arena: kernel
pairs: [subway-1]
schemes: [{stack: ./peer.yaml, label: hostile}, sp:primary]
player: {duration_s: 2, bitrate_bps: 2000000, chunk_bytes: 131072}
time_limit_s: 20
"""


def play_over(script: str, folder: Path) -> tuple[Done, Path]:
    """A run over a relay whose server's side does that first, and one that does not."""
    good = resolve_stack("libxlink", {}, folder)
    sides = {"client": list(good.client), "server": ["sh", "-c", f'{script}; exec "$@"', "sh", *good.server]}
    (folder / "peer.yaml").write_text(json.dumps({"name": "mine", "about": "a test's", "licence": "MIT"} | sides))
    (folder / "hostile.yaml").write_text(RUN)
    done = railyard("run", str(folder / "hostile.yaml"), "--out", str(folder / "out"))
    return done, folder / "out" / "runs" / "subway-1--hostile--s1"


def test_a_relay_cannot_lead_the_record_of_its_run_to_another_file(outside: Path) -> None:
    victim = outside / "victim"
    victim.chmod(0o666)
    names = "run.json kernel.log spec.json links/x"
    done, run = play_over(f"for name in {names}; do ln -sf {victim} $name; done; ln {victim} hard", outside)
    assert done.returncode == 0, done.stderr
    assert victim.read_text() == "secret\n"
    assert json.loads((run / "run.json").read_text())["outcome"] == "complete"
    assert [file.name for file in run.rglob("*") if file.is_symlink()] == []
    assert "Linux version" in (run / "kernel.log").read_text()
    assert not (run / ".machine").exists()
    if os.geteuid() == 0:
        assert json.loads((run / "run.json").read_text())["user"] == "nobody"


def test_a_relay_that_spoils_the_records_ends_its_run_alone(outside: Path) -> None:
    done, run = play_over("echo '[' >listening.json", outside)
    assert done.returncode == 0, done.stderr
    assert not run.exists()
    assert "left files that are no records of one" in " ".join(done.stdout.split())
    assert (run.parent / "subway-1--sp--s1" / "run.json").is_file()


def test_memory_that_is_used_up_is_said(tmp_path: Path) -> None:
    filling = "x = [bytearray(1 << 20) for _ in range(500)]"
    done = vk(tmp_path, "--memory", "64", "--", sys.executable, "-c", filling)
    assert done.returncode == 137
    assert done.stderr.startswith("vkernel: the machine's memory of 64 MB was used up, and python")
    assert done.stderr.endswith(" was killed; give it more with --memory\n")


def test_a_command_keeps_all_of_its_arguments_and_variables(tmp_path: Path) -> None:
    count = (
        "import os, sys; print(len([n for n in os.environ if n.startswith('V_')]), len(sys.argv), sys.argv[1] == '')"
    )
    variables = {f"V_{number}": "x" for number in range(5000)}
    done = vk(tmp_path, "--", sys.executable, "-c", count, "", *["word"] * 6000, **variables)
    assert done.stdout == "5000 6002 True\n", done.stderr
