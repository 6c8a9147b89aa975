"""Mistakes of users: one sentence with place and remedy, exit code 2, and no files left behind."""

import os
import re
import socket
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import Done, missing_programs, one_sentence, run_program
from in_process import railyard
from railyard.base import yamlfile
from railyard.base.errors import UserError
from railyard.base.paths import EXPERIMENTS_DIR, PEERS_DIR, PROGRAM_NAMES, TRACES_DIR, programs_dir
from railyard.base.yamlfile import load_yaml, near_miss
from railyard.experiment.model import experiment_of
from railyard.experiment.options import with_options
from railyard.traces.library import SEARCH_PATH_VARIABLE

GOOD = """\
name: bad-input
pairs:
  - subway-1
schemes:
  - sp
  - xlink
seeds: 1
player:
  duration_s: 5
time_limit_s: 20
"""
BIN = programs_dir()


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If nothing is built, stand-ins for programs. They never run: every case here fails before a run starts."""
    if missing_programs() is not None:
        (tmp_path / "bin").mkdir()
        for name in PROGRAM_NAMES:
            (tmp_path / "bin" / name).write_text("#!/bin/sh\nexit 1\n")
            (tmp_path / "bin" / name).chmod(0o755)
        monkeypatch.setenv("RAILYARD_BIN", str(tmp_path / "bin"))


@pytest.fixture(autouse=True)
def no_results(tmp_path: Path) -> Iterator[None]:
    """Input that is wrong leaves no run, not even half of one."""
    yield
    assert not list(tmp_path.glob("out/runs/*"))


def run_yaml(
    tmp_path: Path, text: str, *more: str, prefix: tuple[str, ...] = ()
) -> Done | subprocess.CompletedProcess[str]:
    """`railyard run` of the text, in this process; in one of its own where a program comes before it."""
    file = tmp_path / "e.yaml"
    file.write_text(text)
    arguments = ["run", str(file), "--out", str(tmp_path / "out"), *more]
    if not prefix:
        return railyard(*arguments)
    command = [*prefix, sys.executable, "-m", "railyard", *arguments]
    return run_program(command, timeout=60)


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("  - xlink", "  - xlnk", 6, ("schemes[1]", "unknown scheme 'xlnk'", "did you mean 'xlink'?")),
        ("  - xlink", "  - {scheme: xlink, t_th3_ms: 5}", 6, ("t_th3_ms", "unknown field", "did you mean 't_th")),
        ("  - xlink", "  - {scheme: xlink, t_th1_ms: 9, t_th2_ms: 5}", 6, ("t_th1_ms, 9, is above t_th2_ms, 5",)),
        ("  - xlink", "  - {scheme: xlink, t_th1_ms: 3000}", 6, ("t_th1_ms, 3000, is above t_th2_ms, 2000",)),
        ("  - xlink", "  - {scheme: vanilla-mp, t_th1_ms: 100}", 6, ("is for re-injection, and vanilla-mp copies",)),
        ("  - xlink", "  - {scheme: sp, thresholds: [95, 80]}", 6, ("is for re-injection, and sp copies",)),
        ("  - xlink", "  - {scheme: mptcp, scheduler: ecf}", 6, ("'scheduler' is a parameter of QUIC",)),
        ("  - xlink", "  - {scheme: xlink, sysctls: {net.mptcp.enabled: 1}}", 6, ("'sysctls' is for mptcp and tcp",)),
        ("  - xlink", "  - {scheme: mptcp, sysctls: {net.core.rmem_max: 1}}", 6, ("net.core.rmem_max",)),
        (
            "  - xlink",
            "  - {scheme: mptcp, sysctls: {net.ipv4.tcp_congestion_control: bbr}}",
            6,
            ("has no effect", "give 'cc: bbr' instead"),
        ),
        ("  - xlink", "  - {scheme: mptcp, cc: lia}", 6, ("the kernel has no 'lia'", "cubic, newreno, bbr")),
        ("  - xlink", "  - {scheme: xlink, scheduler: best}", 6, ("unknown scheduler 'best'", "did you mean 'blest'?")),
        ("  - xlink", "  - {scheme: mptcp, ack_path: fastest}", 6, ("'ack_path' is a parameter of QUIC",)),
        ("  - xlink", "  - {scheme: xlink, reinjection: all}", 6, ("unknown reinjection 'all'", "frame, none, stream")),
        (
            "  - xlink",
            "  - {scheme: cm, migrate_after: never}",
            6,
            ("migrate_after: it takes silence|silence:MS|ptos:N (", "not 'never'"),
        ),
        (
            "  - xlink",
            "  - {scheme: xlink, path_events: '2:kill:lte'}",
            6,
            ("path_events: this takes SECONDS:ACTION:PATH", "standby or available, not '2:kill:lte'"),
        ),
        (
            "  - xlink",
            "  - {scheme: mptcp, sysctls: {foo: '1'}}",
            6,
            ("sysctls.foo: this takes the name of a setting that begins with net.mptcp. or net.ipv4., not 'foo'",),
        ),
        ("  - xlink", "  - sp:cable", 6, ("this pair has no path 'cable'",)),
        ("  - xlink", "  - sp", 4, ("two schemes are both called 'sp'", "label")),
        (
            "  - xlink",
            "  - {scheme: xlink, label: é}\n  - {scheme: xlink, label: à}",
            4,
            ("schemes: two runs are both called subway-1--_--s1: ", "only ASCII letters", "a 'label' that differs"),
        ),
        ("seeds: 1", "links:\n  wfi: {loss: 0.1}", 8, ("links.wfi: subway-1 has no path 'wfi'; did you mean 'wifi'?",)),
        (
            "seeds: 1",
            "link_events: [{t_s: 1, path: wfi, state: down}]",
            7,
            ("link_events[0].path: subway-1 has no path 'wfi'; did you mean 'wifi'?",),
        ),
        ("  - subway-1", "  - subwai-1", 3, ("pairs[0]", "'subwai-1'", "did you mean 'subway-1'?")),
        ("duration_s: 5", "duration_s: five", 9, ("player.duration_s", "number", "'five'")),
        ("duration_s: 5", "duration_s: -5", 9, ("player.duration_s", "more than 0", "not -5")),
        ("name: bad-input", "name: a/b", 1, ("name", "letters, digits", "not 'a/b'")),
        ("  - subway-1", "  - subway-1\n  - subway-1", 2, ("pairs", "the same pair is given twice")),
        ("pairs:\n  - subway-1", "pairs: []", 2, ("pairs", "at least 1 entry")),
        ("seeds: 1", "seeds: 1\nqlog: maybe", 8, ("qlog", "'all', 'none' or 'worst'", "'maybe'")),
        ("duration_s: 5", "duratoin_s: 5", 9, ("player.duratoin_s", "did you mean 'duration_s'?")),
        ("duration_s: 5", "duration: 0s", 9, ("player.duration: this takes a value of more than 0",)),
        ("duration_s: 5", "duration: 5m", 9, ("player.duration: '5m' has none of its units", "as duration_s.")),
        ("duration_s: 5", "duration: 5,5s", 9, ("player.duration: '5,5s' is no number with a unit; give one of us",)),
        ("seeds: 1", "seeds:", 7, ("a list of them, not nothing",)),
        ("seeds: 1", "links: {all: {delay_trace: x}}", 7, ("links.all.delay_trace: ", "relative to the experiment")),
        ("seeds: 1", "bottlenecks: {b: {rate: 1mbps, delay_trace: x}}", 7, ("b.delay_trace: there is no file",)),
        ("time_limit_s: 20", "floors: {}", 10, ("floors: ", "this file is for `railyard gate --suite FILE`.")),
        ("time_limit_s: 20", "expect: {}", 10, ("expect: ", "this file is for `railyard stress FILE`.")),
        ("duration_s: 5", "duration_s: 5\n  duration_s: 6", 10, ("player.duration_s", "already given on line 9")),
        ("time_limit_s: 20", "time_limit_s: 2", 10, ("time_limit_s (2) is less than",)),
        ("time_limit_s: 20", "answer_of: dmo", 10, ("there is no experiment 'dmo'", "did you mean 'demo'?")),
        ("time_limit_s: 20", "arena: cloud", 10, ("unknown arena 'cloud'", "mpshell")),
        ("time_limit_s: 20", "queue: red", 10, ("'red' is no queue", "droptail")),
        ("seeds: 1", "seeds: 0", 7, ("seeds", "from 1 to 10000")),
        ("seeds: 1", "seeds: two", 7, ("seeds: this takes how many seeds, or a list of them, not 'two'",)),
        (
            "seeds: 1",
            "start_offset_ms: worst",
            7,
            (": start_offset_ms: this takes 'drawn', ", "or a whole number, not"),
        ),
        ("seeds: 1", "seeds: [1, 1]", 7, ("same seed",)),
        ("name: bad-input\n", "", 1, ("name", "missing")),
        (
            "name: bad-input\npairs:\n  - subway-1",
            "pairs:\n  - subway-1\nnam: x",
            3,
            ("nam: unknown field; did you mean 'name'?",),
        ),
        ("name: bad-input", "name:", 1, ("name: this takes text, not nothing.",)),
        ("name: bad-input", "name: 2024-05-01", 1, ("this takes text, not the date 2024-05-01; put it in quotes.",)),
        ("name: bad-input", "name: 12", 1, ("name: this takes text, not 12; put it in quotes.",)),
        (
            "seeds: 1",
            "link_events: [{t_s: 20, path: lte, state: down}]",
            7,
            ("t_s 20 is not before time_limit_s (20), so that event never comes",),
        ),
        ("seeds: 1", "seeds: [1", 7, ("not valid YAML",)),
        ("seeds: 1", "seeds:1", 7, ("not valid YAML",)),
        ("seeds: 1", 'seeds: "1', 7, ("not valid YAML",)),
        ("name: bad-input", " name: bad-input", 2, ("not valid YAML",)),
        ("seeds: 1", "queue: &q [*q]", 7, ("*q", "more than 100000 values")),
        ("seeds: 1", "queue: " + "[" * 5000, 1, ("too deep",)),
        ("seeds: 1", "description: 2001-13-45", 7, ("'2001-13-45' is no timestamp",)),
        ("seeds: 1", "seeds: !!int two", 7, ("'two' is no int",)),
        ("seeds: 1", "seeds: !!int ''", 7, ("'' is no int",)),
        ("seeds: 1", "seeds: !!bool two", 7, ("'two' is no bool",)),
        ("seeds: 1", "seeds: !!timestamp two", 7, ("'two' is no timestamp",)),
        ("seeds: 1", "seeds: 0b_", 7, ("'0b_' is no int",)),
        ("seeds: 1", f"seeds: {'1' * 5000}", 7, ("is no int",)),
        ("seeds: 1", f"seeds: 0x{'f' * 50}", 7, ("is a number of more than 64 bits",)),
        ("seeds: 1", f"seeds: 1{':1' * 200_000}", 7, ("is no int",)),
    ],
)
def test_a_mistake_in_the_file_is_named_with_its_line(
    programs: None, tmp_path: Path, old: str, new: str, line: int, words: tuple[str, ...]
) -> None:
    assert old in GOOD
    done = run_yaml(tmp_path, GOOD.replace(old, new))
    one_sentence(done, *words)
    found = re.search(r"e\.yaml:(\d+):", done.stderr)
    assert found is not None and int(found[1]) == line, done.stderr


def test_a_mistake_on_the_command_line_names_no_line() -> None:
    one_sentence(railyard("run", "--pair", "subwai-1"), "railyard run --pair: pairs[0]: there is")


def test_aliases_do_not_multiply_memory(tmp_path: Path) -> None:
    """Ten levels of ten aliases: 10^9 values in some hundred bytes."""
    levels = [f"l{level}: &l{level} [{', '.join([f'*l{level - 1}'] * 10)}]" for level in range(1, 10)]
    file = tmp_path / "bomb.yaml"
    file.write_text("\n".join(["l0: &l0 [x, x]", *levels]))
    tracemalloc.start()
    with pytest.raises(UserError, match=r"bomb\.yaml:6: with the alias \*l4 written out the file has more than 100000"):
        load_yaml(file)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 10_000_000


@pytest.mark.parametrize(
    "text", ["a: 1\t\n", "a: [b, c? d]\n", "a: !\n", "\ufeff\na: 1\n", "a: [b,\n", "a: {b: !!int x}\n"]
)
def test_what_yaml_is_does_not_depend_on_libyaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (tmp_path / "one.yaml").write_text(text)

    def said() -> str:
        try:
            return str(load_yaml(tmp_path / "one.yaml"))
        except UserError as error:
            return str(error)

    with_it = said()
    monkeypatch.setattr(yamlfile, "_fast", yamlfile._Loader)
    assert said() == with_it


def test_files_of_the_project_are_read_alike_with_libyaml_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    files = sorted([*EXPERIMENTS_DIR.glob("*.yaml"), *PEERS_DIR.glob("*/peer.yaml"), *TRACES_DIR.glob("*.yaml")])
    with_it = [load_yaml(file) for file in files]
    monkeypatch.setattr(yamlfile, "_fast", yamlfile._Loader)
    assert len(files) > 20 and [load_yaml(file) for file in files] == with_it


def test_an_alias_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "e.yaml"
    file.write_text("a: &a [one, two]\nb: [*a, *a]\n")
    assert load_yaml(file).data == {"a": ["one", "two"], "b": [["one", "two"]] * 2}


def test_an_experiment_that_is_not_there_is_suggested() -> None:
    one_sentence(railyard("run", "smok"), "no experiment 'smok'", "did you mean 'smoke'?")


def test_a_yaml_file_that_is_not_there_is_named() -> None:
    one_sentence(railyard("run", "none.yaml"), "none.yaml", "no such file")


@pytest.mark.parametrize(
    "arguments",
    [["--arena", "cloud"], ["--jobs", "0"], ["--jobs", "many"], ["--frsh"], ["--seeds", "99999999999999999999"]],
)
def test_a_wrong_option_is_one_sentence(programs: None, tmp_path: Path, arguments: list[str]) -> None:
    one_sentence(run_yaml(tmp_path, GOOD, *arguments), arguments[0].lstrip("-"))


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trace library with one pair, `mine`, to spoil."""
    folder = tmp_path / "library"
    folder.mkdir()
    index = ["schema: 1", "pairs:", "  - name: mine", "    scenario: test", "    licence: none", "    source: test"]
    index += ["    paths:"]
    for name in ("wifi", "lte"):
        (folder / f"{name}.down").write_text("".join(f"{ms}\n" for ms in range(1, 40_000, 3)))
        index += [f"      - name: {name}", f"        technology: {name}", f"        uplink: {name}.down"]
        index += [f"        downlink: {name}.down", "        base_rtt_ms: 40", "        queue: droptail:packets=100"]
    (folder / "index.yaml").write_text("\n".join(index) + "\n")
    monkeypatch.setenv(SEARCH_PATH_VARIABLE, str(folder))
    return folder


def test_a_malformed_trace_is_named_with_its_line(programs: None, library: Path, tmp_path: Path) -> None:
    (library / "lte.down").write_text("1\n2\n\n4\n")
    done = run_yaml(tmp_path, GOOD.replace("subway-1", "mine"))
    one_sentence(done, "lte.down:3:", "blank")


def test_a_missing_trace_is_named(programs: None, library: Path, tmp_path: Path) -> None:
    (library / "lte.down").unlink()
    done = run_yaml(tmp_path, GOOD.replace("subway-1", "mine"))
    one_sentence(done, "lte.down", "index.yaml:")


def test_programs_that_were_not_built_are_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAILYARD_BIN", str(tmp_path / "nothing"))
    one_sentence(run_yaml(tmp_path, GOOD), "mpshell is not there", "make build")


@pytest.mark.skipif(os.geteuid() != 0, reason="player and server run as another user only where root starts them")
def test_programs_that_were_built_under_a_narrow_umask_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in PROGRAM_NAMES:
        (tmp_path / name).touch(mode=0o700)
    monkeypatch.setenv("RAILYARD_BIN", str(tmp_path))
    monkeypatch.delenv("SUDO_UID", raising=False)
    done = run_yaml(tmp_path, GOOD)
    one_sentence(done, "/mpshell may be run by its owner alone", f"`chmod -R o+rX {tmp_path}` lets them.")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up capabilities")
def test_no_permission_for_namespaces_and_tun_is_one_sentence(programs: None, tmp_path: Path) -> None:
    powerless = ("setpriv", "--bounding-set", "-net_admin,-sys_admin", "--inh-caps", "-net_admin,-sys_admin", "--")
    done = run_yaml(tmp_path, GOOD, prefix=powerless)
    one_sentence(done, "no permission", "run as root")


# --- the programs themselves ------------------------------------------------------------------------------------------


def program(*command: str) -> subprocess.CompletedProcess[str]:
    name, *arguments = command
    return run_program([str(BIN / name), *arguments], timeout=60)


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(("option", "kind"), [("--quic", socket.SOCK_DGRAM), ("--http1", socket.SOCK_STREAM)])
def test_a_port_in_use_is_named(option: str, kind: socket.SocketKind) -> None:
    with socket.socket(socket.AF_INET, kind) as taken:
        taken.bind(("127.0.0.1", 0))
        if kind == socket.SOCK_STREAM:
            taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = program("xlink-server", option, address)
    one_sentence(done, address, "in use", program="xlink-server")
    assert done.stdout == ""


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("udp-flow", ["say send, sink, ping or echo"]),
        ("udp-flow sned", ["sned", "send, sink, ping, echo"]),
        ("udp-flow send --to 127.0.0.1:9", ["send needs", "--rate BPS"]),
        ("udp-flow send --to 127.0.0.1:9 --rate 1mbps", ["--rate takes bits per second", "not '1mbps'"]),
        ("udp-flow send --to 127.0.0.1 --rate 1e6", ["--to takes ADDR:PORT", "not '127.0.0.1'"]),
        ("udp-flow ping --to [::1]:9 --count -5", ["--count takes a whole number from 1 to", "not '-5'"]),
        ("udp-flow ping --to [::1]:9 --bogus", ["unknown option '--bogus'"]),
        ("udp-flow sink", ["sink needs --bind"]),
        ("mpshell-ctl", ["no socket", "--control"]),
        ("mpshell-ctl /nowhere/s stats", ["/nowhere/s", "is mpshell --control /nowhere/s running?"]),
        ("xlink-server --quic 127.0.0.1:0 --quic 127.0.0.2:0", ["--quic", "once for each IP version"]),
        ("xlink-get", ["at least one URL"]),
        ("xlink-get https://127.0.0.1:9/x", ["--ca FILE", "--insecure"]),
        ("xlink-get --insecure https://a.test/x https://b.test/x", ["one server", "https://b.test/x"]),
        ("xlink-get --insecure --alpn h2 https://127.0.0.1/x", ["--alpn takes h3 or hq-interop", "not 'h2'"]),
        ("xlink-get --insecure --ciphers rc4 https://127.0.0.1:9/x", ["--ciphers takes aes128, aes256", "not 'rc4'"]),
        ("xlink-get --insecure --path 127.0.0.1:5 https://127.0.0.1/x", ["--path '127.0.0.1:5'", "not an IP address"]),
        ("xlink-get https://127.0.0.1/x --insecure --connect 127.0.0.1:9 --path ::1", ["[::1]", "--connect of its IP"]),
        ("xlink-get https://127.0.0.1/x --insecure --path 127.0.0.1 --path-events 1:add:0", ["T:remove|", "'0'"]),
        ("xlink-get https://127.0.0.1/x --insecure --path 127.0.0.1 --path-events 1:remove:1", ["path (1)", "'1'"]),
        ("xlink-get https://127.0.0.1/x --insecure --path 127.0.0.1 --path-events 1:remove:0", ["multipath"]),
        ("xlink-get https://127.0.0.1/x --insecure --path @7", ["--path '@7'", "outside of mpshell"]),
        ("xlink-get https://127.0.0.1/x --insecure --bogus", ["unknown option '--bogus'"]),
        ("xlink-get https://127.0.0.1/x --insecure --dir /no/folder", ["/no/folder of --dir", "No such file"]),
        ("xlink-get https://127.0.0.1/x --insecure --dir /dev/null", ["/dev/null of --dir", "Not a directory"]),
        (
            "xlink-load --server 127.0.0.1:9 --path 127.1.0.1 --scheme xlnk",
            ["xlnk", "takes sp, cm, vanilla-mp, vanilla-mp-2021, xlink, xlink-lean or xlink+"],
        ),
        ("xlink-load --server 127.0.0.1:9 --path 127.1.0.1", ["--ca FILE", "--insecure"]),
        ("xlink-load --server 127.0.0.1:9 --path 127.1.0.1 --ca /no/ca.pem", ["/no/ca.pem", "No such file"]),
    ],
)
def test_a_mistake_on_the_command_line_of_a_program_is_named_with_the_remedy(words: str, parts: list[str]) -> None:
    name, *arguments = words.split()
    one_sentence(program(name, *arguments), *parts, program=name)


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    "words",
    [
        "xlink-sim PIPE --out o",
        "mpshell --path wifi:up=PIPE,down=1mbps,delay=5 -- true",
        "mpshell --config PIPE -- true",
        "xlink-server --quic 127.0.0.1:0 --params PIPE",
    ],
)
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path: Path, words: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    name, *arguments = words.replace("PIPE", str(pipe)).split()
    one_sentence(program(name, *arguments), str(pipe), "it is no regular file", program=name)


def test_names_that_occur_twice_are_listed_once() -> None:
    assert near_miss("zzz", ["one", "two", "one"]) == "known are one, two."
    many = near_miss("zzz", [f"{number:03}" for number in range(300)])
    assert many.startswith("known are 000, 001, ") and many.endswith(", 059 and 240 more.")


def test_a_value_that_is_set_and_is_not_in_the_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "unit.yaml"
    file.write_text("name: unit\narena: sim\npairs: [subway-1]\nschemes: [sp]\nplayer: {duration_s: 5}\n")
    with pytest.raises(UserError) as caught:
        experiment_of(with_options(load_yaml(file), [], None, ["player.concurrency=0"]))
    assert str(caught.value) == f"{file} with --set:5: player.concurrency: this takes a value of at least 1, not 0."
