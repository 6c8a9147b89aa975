"""`make install`: what other programs build against. The examples are built against the installed tree, and run."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import good, run_program
from railyard.base import paths
from railyard.experiment.arenas import ARENAS, load

ROOT = Path(__file__).parent.parent
PUBLIC = [*ROOT.glob("transport/include/xlink/*.h"), *ROOT.glob("lib/driver/include/xlink/*.h")]
HEADER = ROOT / "transport/include/xlink/xlink.h"
COMPLETIONS = "share/bash-completion/completions"
LIBRARIES = ("libxlink", "libxlink-udp")
PREFIX = "/opt/railyard"
PAYLOAD_BYTES = 3_000_000


@dataclass(frozen=True)
class Installed:
    """A tree that was installed under DESTDIR, and how pkg-config finds it."""

    destdir: Path

    @property
    def prefix(self) -> Path:
        return self.destdir / PREFIX.lstrip("/")

    @property
    def lib(self) -> Path:
        return self.prefix / "lib"

    def flags(self, *options: str) -> list[str]:
        environment = {
            **os.environ,
            "PKG_CONFIG_PATH": str(self.lib / "pkgconfig"),
            "PKG_CONFIG_SYSROOT_DIR": str(self.destdir),
        }
        return _output("pkg-config", *options, "libxlink-udp", env=environment).split()

    def private(self) -> list[str]:
        """The libraries with which libxlink.a is linked, in addition to the packages that it requires."""
        lines = (self.lib / "pkgconfig/libxlink.pc").read_text().splitlines()
        return next(line for line in lines if line.startswith("Libs.private:")).split()[1:]

    def compile(self, compiler: str, source: Path, program: Path, *flags: str) -> None:
        before, after = self.flags("--cflags"), self.flags("--libs")
        _output(compiler, *flags, "-Wall", "-Wextra", "-Werror", *before, str(source), "-o", str(program), *after)


def _output(*command: str, env: dict[str, str] | None = None) -> str:
    done = run_program(command, cwd=ROOT, env=env)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    destdir = tmp_path_factory.mktemp("destdir")
    _output("make", "-j2", "install", f"PREFIX={PREFIX}", f"DESTDIR={destdir}")
    return Installed(destdir)


def _declared() -> set[str]:
    """Names that the public headers declare, and possibly more: every xl_ word before a parenthesis."""
    return {name for header in PUBLIC for name in re.findall(r"\b(xl_\w+)\(", header.read_text())}


def _defined(*command: str) -> set[str]:
    return {line.split()[-1] for line in _output(*command).splitlines() if len(line.split()) == 3}


def test_programs_headers_libraries_and_the_pc_file_are_below_the_prefix(installed: Installed) -> None:
    assert {"mpshell", "xlink-server", "xlink-player", "xlink-sim"} <= {
        p.name for p in (installed.prefix / "bin").iterdir()
    }
    assert {p.name for p in (installed.prefix / "include/xlink").iterdir()} == {p.name for p in PUBLIC}
    assert f"-I{installed.prefix}/include" in installed.flags("--cflags")
    version = _output("pkg-config", "--modversion", str(installed.lib / "pkgconfig/libxlink.pc")).strip()
    assert f'#define XL_VERSION "{version}"' in re.sub(r" +", " ", HEADER.read_text())


def test_everybody_can_read_what_root_installs_under_a_narrow_umask(installed: Installed, tmp_path: Path) -> None:
    command = ["make", "-s", "install", f"DESTDIR={tmp_path}"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, umask=0o077)
    closed = [file for file in (tmp_path / "usr").rglob("*") if file.stat().st_mode & 0o044 != 0o044]
    assert not closed


def test_each_arena_finds_its_programs_below_the_prefix(installed: Installed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "IN_CHECKOUT", False)
    monkeypatch.delenv(paths.BIN_VARIABLE, raising=False)
    monkeypatch.setenv("PATH", f"{installed.prefix}/bin:{os.environ['PATH']}")
    for name in ARENAS:
        for program in load(name).program_names:
            assert paths.program(program).resolve().is_relative_to(installed.prefix), f"{name}: {program}"


def _pages(installed: Installed) -> list[Path]:
    return sorted((installed.prefix / "share/man/man1").iterdir())


def _formatted(page: Path, columns: int) -> subprocess.CompletedProcess[str]:
    command = ["groff", "-ww", "-man", "-Tutf8", "-P-c", "-P-b", "-P-u", f"-rLL={columns}n", str(page)]
    return good(run_program(command))


def _help(installed: Installed, program: str) -> str:
    return _output(str(installed.prefix / "bin" / program), "--help")


def test_each_program_has_a_man_page_and_a_completion(installed: Installed) -> None:
    programs = {program.name for program in (installed.prefix / "bin").iterdir()}
    assert {page.name for page in _pages(installed)} == {f"{program}.1" for program in programs}
    assert {file.name for file in (installed.prefix / COMPLETIONS).iterdir()} == programs


@pytest.mark.skipif(shutil.which("groff") is None, reason="there is no groff (Debian package groff-base)")
def test_man_pages_are_sound_and_name_every_option_with_its_meaning(installed: Installed) -> None:
    for page in _pages(installed):
        narrow, wide = (_formatted(page, columns) for columns in (78, 999))
        assert narrow.stderr == wide.stderr == "", page
        shown = " ".join(wide.stdout.split())
        for heading in ("NAME", "SYNOPSIS", "SEE ALSO"):
            assert f" {heading} " in f" {shown} "
        words = re.sub(r"(?m)^usage:", "", _help(installed, page.stem)).split()
        missing = [word for word in words if word not in shown and word.rstrip(":") not in shown]
        assert not missing, page


def _completed(installed: Installed, *words: str) -> set[str]:
    """The completions that bash offers for the last word."""
    program = words[0]
    script = f'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _{program.replace("-", "_")}; '
    script += "printf '%s\\n' \"${COMPREPLY[@]}\""
    file = installed.prefix / COMPLETIONS / program
    return set(_output("bash", "-euc", script, "bash", str(file), *words).split())


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("xlink-server", "--qoe-c"), {"--qoe-control"}),
        (("xlink-server", "--qoe-control", ""), {"on", "off"}),
        (("xlink-server", "--scheme", "xl"), {"xlink", "xlink-lean", "xlink+"}),
        (("xlink-player", "--scheduler", "e"), {"earliest", "ecf"}),
        (("xlink-player", "--path-management", ""), {"on", "off"}),
        (("xlink-player", "--out", "--"), set()),  # the name of a file
        (("saturatr", "s"), {"server"}),
        (("mpshell-ctl", "socket", "d"), {"down", "delay", "duplicate"}),
        (("mpshell", "--nat", "--", "--l"), set()),  # the words are the command's
    ],
)
def test_bash_completes_options_and_their_words(
    installed: Installed, words: tuple[str, ...], offered: set[str]
) -> None:
    assert _completed(installed, *words) == offered


def test_bash_completes_every_option(installed: Installed) -> None:
    for program in (installed.prefix / "bin").iterdir():
        options = re.findall(r"(?m)^  (--[a-z0-9-]+)", _help(installed, program.name))
        assert _completed(installed, program.name, "--") == {*options, "--help"}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_shows_the_public_interface_and_nothing_else(installed: Installed, library: str) -> None:
    shown = _defined("nm", "-D", "--defined-only", str(installed.lib / f"{library}.so"))
    assert shown == _declared() & shown
    wanted = {"xl_endpoint_new", "xl_stream_send", "xl_lb_decode"} if library == "libxlink" else {"xl_udp_flush"}
    assert wanted <= shown
    assert _defined("nm", "-g", "--defined-only", str(installed.lib / f"{library}.a")) == shown


def test_the_transport_needs_no_sockets(installed: Installed) -> None:
    needed = _output("nm", "-D", "--undefined-only", str(installed.lib / "libxlink.so"))
    names = {line.split()[-1].split("@")[0] for line in needed.splitlines() if line.strip()}
    assert "calloc" in names
    assert not names & {"socket", "sendmsg", "recvmsg", "open", "fopen", "clock_gettime", "getrandom"}


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_soname_changes_with_every_interface(installed: Installed, library: str) -> None:
    dynamic = _output("readelf", "-d", str(installed.lib / f"{library}.so"))
    version = _output("pkg-config", "--modversion", str(installed.lib / f"pkgconfig/{library}.pc")).strip()
    major_minor = ".".join(version.split(".")[:2])
    assert f"soname: [{library}.so.{major_minor}]" in dynamic
    assert (installed.lib / f"{library}.so.{major_minor}").exists()


CPP = """
#include <cstring>
#include <string>
%s
int main() {
    xl_config config;
    xl_config_init(&config);
    int error = 0;
    const std::string scheduler = "no-such-scheduler";
    config.scheme.scheduler = scheduler.c_str();
    config.credentials = xl_credentials_client(nullptr);
    xl_endpoint *endpoint = xl_endpoint_new(&config, 0, &error);
    xl_credentials_free(config.credentials);
    return endpoint == nullptr && error == XL_ERR_ARGUMENT && std::strcmp(xl_version(), XL_VERSION) == 0 ? 0 : 1;
}
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler (Debian package g++)")
def test_a_cpp_program_includes_every_public_header_and_links(installed: Installed, tmp_path: Path) -> None:
    source = tmp_path / "link.cc"
    source.write_text(CPP % "\n".join(f"#include <xlink/{header.name}>" for header in sorted(PUBLIC)))
    installed.compile("g++", source, tmp_path / "link", "-std=c++17")
    _output(str(tmp_path / "link"), env={"LD_LIBRARY_PATH": str(installed.lib)})


@pytest.fixture(scope="module")
def examples(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("examples")
    for name in ("serve", "download", "datagrams"):
        installed.compile("cc", ROOT / f"examples/{name}.c", folder / name, "-std=c17", "-D_GNU_SOURCE")
    return folder


@pytest.fixture
def serving(installed: Installed, examples: Path) -> Iterator[str]:
    """The address of the example server."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(installed.lib)}
    with subprocess.Popen(
        [examples / "serve", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True, env=environment
    ) as server:
        assert server.stdout is not None
        yield server.stdout.readline().split()[-1]
        server.send_signal(signal.SIGTERM)


def test_the_examples_download_over_two_paths(installed: Installed, examples: Path, serving: str) -> None:
    printed = _output(str(examples / "download"), serving, str(PAYLOAD_BYTES), "127.0.0.1", "127.0.0.2",
                      env={"LD_LIBRARY_PATH": str(installed.lib)})  # fmt: skip
    assert f"{PAYLOAD_BYTES} bytes received" in printed
    by_path = [int(count) for count in re.findall(r"path \d from 127\.0\.0\.[12]:\d+: (\d+) bytes", printed)]
    assert len(by_path) == 2
    assert all(count > 1000 for count in by_path)


def test_the_examples_exchange_datagrams(installed: Installed, examples: Path, serving: str) -> None:
    printed = _output(str(examples / "datagrams"), serving, "20", "127.0.0.1",
                      env={"LD_LIBRARY_PATH": str(installed.lib)})  # fmt: skip
    assert printed.startswith("20 of 20 datagrams came back")


def test_the_examples_refuse_a_number_that_is_none(installed: Installed, examples: Path) -> None:
    """A server would send 2^64 - 5 bytes for -5."""
    for name, number in (("download", "-5"), ("download", "10x"), ("datagrams", "-5"), ("datagrams", "x")):
        command = [str(examples / name), "127.0.0.1:1", number, "127.0.0.1"]
        environment = {"LD_LIBRARY_PATH": str(installed.lib)}
        done = run_program(command, env=environment, timeout=20)
        assert (done.returncode, done.stderr) == (2, f"'{number}' is not a number from 1 on.\n")


def test_the_examples_refuse_a_server_without_a_port(installed: Installed, examples: Path) -> None:
    """Nobody answers at port 0."""
    for name in ("download", "datagrams"):
        command = [str(examples / name), "127.0.0.1", "1", "127.0.0.1"]
        environment = {"LD_LIBRARY_PATH": str(installed.lib)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=20)
        assert (done.returncode, done.stderr) == (2, "'127.0.0.1' has no port; write it as 192.0.2.1:443.\n")


@pytest.mark.parametrize("folders", [["PREFIX=/opt/my tree"], ["PREFIX=tree"], ["DESTDIR=/tmp/my tree"]])
def test_a_folder_that_cannot_be_installed_into_is_refused(folders: list[str]) -> None:
    """Half of a name with a space was made, and a relative prefix is in no .pc file that helps."""
    command = ["make", "-s", "install", *folders]
    done = run_program(command, cwd=ROOT, timeout=300)
    assert done.returncode == 2
    assert "make install: PREFIX takes an absolute folder without spaces, DESTDIR no spaces; not" in done.stderr
    assert not (ROOT / "tree").exists()


def test_the_examples_link_with_the_archive_alone(
    installed: Installed, examples: Path, serving: str, tmp_path: Path
) -> None:
    program = tmp_path / "download"
    _output("cc", "-std=c17", "-D_GNU_SOURCE", *installed.flags("--cflags"), str(ROOT / "examples/download.c"),
            str(installed.lib / "libxlink-udp.a"), str(installed.lib / "libxlink.a"),
            *_output("pkg-config", "--libs", "gnutls").split(), *installed.private(),
            "-o", str(program))  # fmt: skip
    assert "1000 bytes received" in _output(str(program), serving, "1000", "127.0.0.1")
