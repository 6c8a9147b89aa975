"""The time-travel kernel as a program: vkernel, and how its kernel is built.

Most of these tests need a kernel, which takes minutes to build: they skip where none is at hand, and `make test-long`
builds one.
"""

import hashlib
import json
import os
import pty
import pwd
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import good, one_sentence, run_program
from kernel_machine import children_of, needs_kernel, vk
from railyard.base.errors import UserError
from railyard.base.paths import ROOT, program
from railyard.run import vkernel
from small_disk import small_disk
from waiting import wait_until, wait_until_gone

SPINNING = "import time; time.sleep(2.5)\nwhile True: pass"


@needs_kernel
def test_a_command_has_streams_status_and_its_folder_and_an_hour_takes_no_time(tmp_path: Path) -> None:
    script = (
        'echo out; echo err >&2; sleep 3600; echo "$(date +%H:%M)" >file; touch /etc/x 2>/dev/null && exit 9; exit 7'
    )
    begin = time.monotonic()
    done = vk(tmp_path, "--", "sh", "-c", script)
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n")
    assert (tmp_path / "file").read_text() == "01:00\n"
    assert time.monotonic() - begin < 1000
    assert vk(tmp_path, "--", "sh", "-c", "kill -TERM $$").returncode == 128 + signal.SIGTERM
    assert vk(tmp_path, "--", "no-such-program").returncode == 127


@needs_kernel
def test_descriptors_have_names_in_dev(tmp_path: Path) -> None:
    script = "cat <(echo in); echo out >/dev/stdout; echo err >/dev/stderr; echo piped | cat /dev/stdin"
    done = vk(tmp_path, "--", "bash", "-c", script)
    assert (done.returncode, done.stdout, done.stderr) == (0, "in\nout\npiped\n", "err\n")


def test_the_kernel_is_found_without_home(tmp_path: Path) -> None:
    command = [str(program("vkernel")), "--folder", str(tmp_path), "--", "true"]
    done = run_program(command, env={"PATH": os.environ["PATH"]})
    home = pwd.getpwuid(os.getuid()).pw_dir
    assert done.returncode == 0 or done.stderr.startswith(f"vkernel: no kernel: {home}/.cache/railyard/kernel/linux: ")


@needs_kernel
def test_randomness_is_a_function_of_the_seed(tmp_path: Path) -> None:
    command = ("--", "sh", "-c", "head -c 16 /dev/urandom | od -An -tx1; cat /proc/sys/kernel/random/uuid")
    drawn = [vk(tmp_path, "--seed", seed, *command).stdout for seed in ("1", "1", "2")]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(drawn[0].split()) == 17


@needs_kernel
def test_a_program_that_never_sleeps_is_named_and_ended(tmp_path: Path) -> None:
    done = vk(tmp_path, "--stall-limit", "4", "--", sys.executable, "-c", SPINNING)
    assert done.returncode == 125
    assert "time stood still at virtual t = 2.5" in done.stderr
    assert f"{sys.executable} was running" in done.stderr


@needs_kernel
def test_in_a_terminal_lines_begin_at_the_left_and_ctrl_c_ends_the_machine(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    script = "echo one; echo two; while sleep 1; do echo on; done"
    command = ["setsid", "--ctty", str(program("vkernel")), "--folder", str(tmp_path), "--", "sh", "-c", script]
    machine = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)
    shown = b""
    while b"on\r\non" not in shown and machine.poll() is None:
        shown += os.read(ours, 4096)
    os.write(ours, b"\x03")
    try:
        assert machine.wait(60) == 128 + signal.SIGINT
    finally:
        machine.kill()
    assert shown.startswith(b"one\r\ntwo\r\non\r\n")


@needs_kernel
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_a_machine_that_is_ended(tmp_path: Path, memory: Path, number: signal.Signals) -> None:
    command = [str(program("vkernel")), "--folder", str(tmp_path), "--", "sh", "-c", "touch up; while :; do :; done"]
    machine = subprocess.Popen(command, env=os.environ | {"TMPDIR": str(memory)}, stderr=subprocess.DEVNULL)
    wait_until((tmp_path / "up").exists, "the shell to run", 60)
    inside = children_of(machine.pid)
    assert len(inside) >= 2  # the kernel and the shell
    machine.send_signal(number)
    machine.wait(30)
    wait_until_gone(inside)
    assert list(memory.iterdir()) == []
    assert [file.name for file in tmp_path.iterdir()] == ["up"]


@needs_kernel
def test_a_forked_process_that_never_sleeps_gets_no_wrong_name(tmp_path: Path) -> None:
    """Above the pages that it has used lies a long environment, in which the name of its program ends."""
    script = "(while :; do :; done) & sleep 100"
    done = vk(tmp_path, "--stall-limit", "2", "--", "sh", "-c", script, LONG="x" * 20000)
    assert done.returncode == 125
    assert done.stderr.endswith("; a forked process was running\n")


@needs_kernel
def test_a_panic_is_said_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "panic.py").write_text(
        'open("/proc/sys/vm/overcommit_memory", "w").write("1")\n'
        'open("/proc/sys/vm/panic_on_oom", "w").write("2")\n'
        "bytearray(500 << 20)\n"
    )
    done = vk(tmp_path, "--memory", "64", "--", sys.executable, "panic.py")
    assert done.returncode == 125
    assert "the kernel panicked at virtual t = 0.0" in done.stderr
    assert done.stderr.endswith(" s: Out of memory: compulsory panic_on_oom is enabled\n")
    assert done.stderr.count("\n") == 1
    assert [file.name for file in tmp_path.iterdir()] == ["panic.py"]


@needs_kernel
@pytest.mark.privileged
@pytest.mark.parametrize("size", ["8m", "24m", "40m"])
def test_no_room_for_the_memory_of_a_machine_is_said(tmp_path: Path, size: str) -> None:
    """With 8 MB the kernel fails early. With more, a program may be the first to fail."""
    filling = "bytearray(500 << 20)"
    with small_disk(tmp_path / "disk", size) as disk:
        done = vk(tmp_path, "--", sys.executable, "-c", filling, TMPDIR=str(disk))
        assert list(disk.iterdir()) == []
    assert done.returncode == 125
    assert done.stderr == (
        f"vkernel: no room for the machine's memory in {disk}; make room, or name another folder with TMPDIR\n"
    )


@needs_kernel
@pytest.mark.parametrize(
    ("arguments", "environment", "says"),
    [
        (("--folder", "/no/folder"), {}, "--folder /no/folder: No such file or directory; name a folder"),
        (("--folder", "/etc/hosts"), {}, "--folder /etc/hosts: Not a directory; name a folder"),
        ((), {"TMPDIR": "/no/folder"}, "no place for the machine's memory: /no/folder: No such file"),
        ((), {"TMPDIR": "/etc/hosts"}, "no place for the machine's memory: /etc/hosts: "),
        (("--at", "/etc/hosts"), {}, "--at takes a folder that the host has, too, not '/etc/hosts'"),
        (("--at", "/"), {}, "the machine has its own /, /proc, /sys, /dev and /run, so the folder cannot be / inside"),
        (("--at", "/var/run"), {}, "the machine has its own /, /proc, /sys, /dev and /run, so the folder cannot be /r"),
        (("--at", "/proc/self/fd"), {}, "the machine has its own /, /proc, /sys, /dev and /run, so the folder cannot"),
    ],
)
def test_a_folder_of_the_host_that_cannot_serve_is_said(
    tmp_path: Path, arguments: tuple[str, ...], environment: dict[str, str], says: str
) -> None:
    one_sentence(vk(tmp_path, *arguments, "--", "true", **environment), f"{says}", program="vkernel")


@needs_kernel
@pytest.mark.privileged
def test_memory_lies_in_tmp_where_dev_shm_is_that_of_a_container(tmp_path: Path) -> None:
    """Small, and mounted noexec: named, it is refused; by itself the machine goes elsewhere."""
    mount = "mount -t tmpfs -o noexec,size=64m tmpfs /dev/shm && exec"
    machine = [str(program("vkernel")), "--folder", str(tmp_path), "--", "echo", "up"]
    (tmp_path / "t m p").mkdir()

    def outcome(temporary: str | None) -> tuple[int, str, str]:
        environment = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
        environment |= {"TMPDIR": temporary} if temporary else {}
        words = ["unshare", "--mount", "sh", "-c", f'{mount} "$@"', "sh", *machine]
        done = run_program(words, env=environment, timeout=100)
        return done.returncode, done.stdout, done.stderr

    assert outcome(None) == (0, "up\n", "")
    assert outcome(str(tmp_path / "t m p")) == (0, "up\n", "")
    code, _, says = outcome("/dev/shm")  # noqa: S108
    assert (code, says.count("\n")) == (2, 1)
    assert "/shm is mounted noexec; name another folder with TMPDIR" in says


@needs_kernel
def test_temporary_files_have_a_place_inside(tmp_path: Path) -> None:
    done = good(vk(tmp_path, "--", "mktemp", TMPDIR="/var/tmp"))  # noqa: S108 - the host's, read-only inside
    assert done.stdout.startswith("/run/tmp/")


FETCH = """
import os, urllib.request
url = "http://" + os.environ["MPSHELL_GATEWAY"] + ":8080/file"
print(urllib.request.urlopen(url).read().decode(), end="")
"""


@needs_kernel
def test_mpshell_inside_does_not_keep_the_core_awake_and_reaches_a_server_outside_its_paths(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content\n")
    mpshell = f"{program('mpshell')} --path a:up=12mbps,down=12mbps,delay=20 --summary summary.json --"
    script = f"{sys.executable} -m http.server 8080 >/dev/null & sleep 1; exec {mpshell} {sys.executable} -c '{FETCH}'"
    done = vk(tmp_path, "--stall-limit", "10", "--", "sh", "-c", script)
    assert (done.returncode, done.stdout) == (0, "content\n"), done.stderr
    awake = json.loads((tmp_path / "summary.json").read_text())["keep_awake"]
    assert (awake["asked"], awake["done"]) == ("auto", False)
    assert awake["because"] == "no timer is late in virtual time"


def test_the_help_says_which_bytes_and_which_rights_are_promised(tmp_path: Path) -> None:
    said = " ".join(vk(tmp_path, "--help").stdout.split())
    assert "RDTSC, RDRAND and CPUID are those of the host" in said
    assert "may read on the host what you may" in said


def test_what_is_no_kernel_is_refused_in_one_sentence(tmp_path: Path) -> None:
    for named, says in ((tmp_path / "none", "no kernel"), (Path("/bin/true"), "no kernel of x86-64 with time travel")):
        done = vk(tmp_path, "--", "true", RAILYARD_KERNEL=str(named))
        assert done.returncode in (2, 125)
        assert says in done.stderr
        assert done.stderr.count("\n") == 1
    (tmp_path / "linux").write_text("#!/bin/sh\necho CONFIG_HOSTFS=y\n")
    (tmp_path / "linux").chmod(0o755)
    with pytest.raises(UserError, match="built without CONFIG_UML_TIME_TRAVEL_SUPPORT"):
        vkernel.check(tmp_path / "linux")


def test_a_kernel_that_does_not_boot_is_refused_before_any_run(tmp_path: Path) -> None:
    options = "".join(f"CONFIG_{name}=y\n" for name in vkernel.NEEDED)
    (tmp_path / "linux").write_text(f"#!/bin/sh\n[ $1 != --showconfig ] || exec echo '{options}'\nexit 1\n")
    (tmp_path / "linux").chmod(0o755)
    with pytest.raises(UserError, match=r"it does not boot on this machine: .*[^.].$"):
        vkernel.check(tmp_path / "linux")


def test_without_a_compiler_or_source_the_build_says_one_sentence(tmp_path: Path) -> None:
    for variables, says in (({"CC": "no-such-cc"}, "no compiler"), ({"KERNEL_SOURCE": "/no/source"}, "no source")):
        done = run_program(
            [ROOT / "emulator" / "kernel" / "build.sh"],
            env=os.environ | {"RAILYARD_KERNEL_CACHE": str(tmp_path), **variables},
            timeout=60,
        )
        one_sentence(done, says, program="kernel")


@pytest.mark.parametrize("kind", ["junk", "folder", "other archive"])
def test_what_is_no_source_of_a_kernel_gets_one_sentence(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "source"
    if kind == "junk":
        source.write_bytes(b"no archive\n" * 1000)
    elif kind == "folder":
        source.mkdir()
    else:
        subprocess.run(["tar", "-cf", source, "-C", ROOT, "emulator"], check=True)
    monkeypatch.setenv("KERNEL_SOURCE", str(source))
    monkeypatch.setenv("RAILYARD_KERNEL_CACHE", str(tmp_path / "cache"))
    with pytest.raises(UserError, match="there is no kernel"):
        vkernel.build()
    said = capfd.readouterr().err
    assert said.startswith(f"kernel: KERNEL_SOURCE: {source} is no ")
    assert said.count("\n") == 1
    assert not (tmp_path / "cache").exists()


def build_sh(folder: Path, cache: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """That folder's build.sh, with a source that is an empty file."""
    if not (folder / "source.tar").exists():  # its time of change is part of what a kernel is made from
        (folder / "source.tar").touch()
    own = {"KERNEL_SOURCE": str(folder / "source.tar"), "RAILYARD_KERNEL_CACHE": str(cache)}
    return run_program([folder / "build.sh", *arguments], env=os.environ | own | environment, timeout=60)


def recipe_in(folder: Path) -> Path:
    folder.mkdir()
    for name in ("build.sh", "linux.patch", "options"):
        shutil.copy(vkernel.RECIPE / name, folder / name)
    return folder


def version_of(name: str) -> str:
    return good(run_program([name, "--version"])).stdout.splitlines()[0]


def tool(folder: Path, name: str, version: str) -> dict[str, str]:
    """An environment whose first program of that name prints that version."""
    folder.mkdir()
    (folder / name).write_text(f'#!/bin/sh\necho "{version}"\n')
    (folder / name).chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def test_a_kernels_key_has_all_that_decides_its_bytes_and_nothing_else(tmp_path: Path) -> None:
    recipe = recipe_in(tmp_path / "recipe")

    def key(**environment: str) -> str:
        done = good(build_sh(recipe, tmp_path / "cache", "--key", **environment))
        return done.stdout

    plain = key()
    assert key(**tool(tmp_path / "same", "gcc", version_of("gcc"))) == plain  # for example with ccache in front of it
    assert key(HOME="", LANG="C", CFLAGS="-O0") == plain
    keys = [plain]
    for name in ("gcc", "ld"):
        keys.append(key(**tool(tmp_path / name, name, "another version")))
    for name in ("build.sh", "options", "linux.patch", "source.tar"):
        with (recipe / name).open("a") as file:
            file.write("# another line\n")
        keys.append(key())
    assert len(set(keys)) == len(keys)
    assert not (tmp_path / "cache").exists()


@pytest.mark.long  # does not take long, but `make test-long` installs what a build needs
def test_a_cache_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused = build_sh(recipe_in(tmp_path / "recipe"), tmp_path / "file" / "cache")
    assert refused.returncode == 2
    assert refused.stderr == (
        f"kernel: {tmp_path}/file/cache cannot be written; name another folder with RAILYARD_KERNEL_CACHE.\n"
    )


def test_a_cache_is_written_to_once_where_it_has_the_kernel(tmp_path: Path) -> None:
    recipe, cache = recipe_in(tmp_path / "recipe"), tmp_path / "cache"
    folder = cache / build_sh(recipe, cache, "--key").stdout.strip()
    folder.mkdir(parents=True)
    (folder / "linux").write_text("#!/bin/sh\n")
    (folder / "linux").chmod(0o755)
    written = build_sh(recipe, cache)
    assert (written.returncode, written.stdout) == (0, f"{folder}/linux\n"), written.stderr
    before = {file: file.lstat().st_mtime_ns for file in cache.rglob("*")}
    assert build_sh(recipe, cache).stdout == written.stdout
    assert {file: file.lstat().st_mtime_ns for file in cache.rglob("*")} == before


SOURCE = Path("/usr/src/linux-source-6.12.tar.xz")


@pytest.mark.long  # likewise
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_of_a_build_runs_on_when_it_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    building = subprocess.Popen(
        [vkernel.RECIPE / "build.sh"],
        env=os.environ | {"RAILYARD_KERNEL_CACHE": str(tmp_path / "cache"), "KERNEL_SOURCE": str(SOURCE)},
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: list(tmp_path.glob("cache/.work-*/source/*")), "the first source", 60)
    below = children_of(building.pid)
    assert len(below) >= 1  # tar
    building.send_signal(number)
    assert building.wait(60) == (143 if number == signal.SIGTERM else -number)
    wait_until_gone(below)
    if number == signal.SIGTERM:  # the next build removes what a killed one leaves
        assert sorted(file.name for file in (tmp_path / "cache").iterdir()) == [".lock", "build.log"]


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        (None, None),
        ("patch\t0", "patch"),
        ("options\t0", "options"),
        ("recipe\t0", "recipe"),
        ("compiler\tcc 1", "compiler"),
        ("linker\tld 1", "linker"),
        ("source\t/etc/hosts\t1 1", "source"),
    ],
)
def test_a_kernel_of_another_origin_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str | None, changed: str | None
) -> None:
    monkeypatch.setenv("RAILYARD_KERNEL_CACHE", str(tmp_path))
    monkeypatch.delenv("RAILYARD_KERNEL", raising=False)
    (tmp_path / "key").mkdir()
    (tmp_path / "key" / "linux").touch()
    (tmp_path / "linux").symlink_to("key/linux")
    assert vkernel.stale() == "record of its origin"
    record = {"source": "source\t/no/source\t1 1"}
    for part, name in (("patch", "linux.patch"), ("options", "options"), ("recipe", "build.sh")):
        record[part] = f"{part}\t{hashlib.sha256((vkernel.RECIPE / name).read_bytes()).hexdigest()}"
    for part, name in (("compiler", "gcc"), ("linker", "ld")):
        record[part] = f"{part}\t{version_of(name)}"
    if line is not None:
        record[line.partition("\t")[0]] = line
    (tmp_path / "key" / "made").write_text("".join(f"{text}\n" for text in record.values()))
    monkeypatch.delenv("CC", raising=False)
    assert vkernel.stale() == changed
    reason = vkernel.why_not()
    assert reason is None if changed is None else f"another {changed}" in str(reason)
