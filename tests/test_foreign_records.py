"""Third parties' results: records are shown and compared, but no program that they name is run."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import good, one_sentence
from in_process import railyard
from railyard.base.paths import ROOT, program
from railyard.report.replay.series import Bins
from railyard.run.runspec import RunSpec

Change = Callable[[dict[str, Any], Path], None]
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the simulator."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "unit.yaml").write_text(
        "name: unit\narena: sim\npairs: [subway-1]\nschemes: [xlink]\nseeds: 1\n"
        "player: {duration_s: 2, bitrate_bps: 1000000}\ntime_limit_s: 10\n"
    )
    good(railyard("run", str(folder / "unit.yaml"), "--out", str(folder / "out")))
    [run] = (folder / "out" / "runs").iterdir()
    return run


def forged(recorded: Path, folder: Path, change: Change) -> Path:
    """A copy of the run with a changed record. `trap`: a program that makes `folder/trapped`."""
    trap = folder / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {folder}/trapped\n")
    trap.chmod(0o755)
    run = folder / "run"
    shutil.copytree(recorded, run)
    record = json.loads((run / "run.json").read_text())
    change(record, trap)
    (run / "run.json").write_text(json.dumps(record))
    return run


def _program(record: dict[str, Any], trap: Path) -> None:
    record["config"]["program"] = str(trap)


def test_the_program_that_a_record_names_is_not_run(recorded: Path, tmp_path: Path) -> None:
    run = forged(recorded, tmp_path, _program)
    done = railyard("repeat", str(run), "--yes", "--out", str(tmp_path / "again"))
    assert not (tmp_path / "trapped").exists()
    assert done.returncode == 0 and str(program("xlink-sim")) in done.stdout, done.stderr
    assert (tmp_path / "again" / "player.jsonl").read_bytes() == (recorded / "player.jsonl").read_bytes()


def test_a_program_that_the_user_names_is_run(recorded: Path, tmp_path: Path) -> None:
    other = tmp_path / "xlink-sim"
    other.write_text(f'#!/bin/sh\ntouch {tmp_path}/used\nexec {program("xlink-sim")} "$@"\n')
    other.chmod(0o755)
    again = tmp_path / "again"
    done = good(railyard("repeat", str(recorded), "--yes", "--program", str(other), "--out", str(again)))
    assert (tmp_path / "used").exists() and "it may differ: xlink-sim is another build" in done.stdout
    record = json.loads((again / "run.json").read_text())
    spec, then = (
        RunSpec.model_validate(one["config"]) for one in (record, json.loads((recorded / "run.json").read_text()))
    )
    assert spec.programs_sha256 != then.programs_sha256


def test_nothing_is_run_without_consent(recorded: Path, tmp_path: Path) -> None:
    done = railyard("repeat", str(recorded), "--out", str(tmp_path / "again"))
    one_sentence(done, "--yes")
    assert f"{program('xlink-sim')} {tmp_path}/again/job.json" in done.stdout
    assert not (tmp_path / "again").exists()


def _stack(name: str) -> Change:
    def change(record: dict[str, Any], trap: Path) -> None:
        command = [str(trap)]
        stack: dict[str, Any] = {
            "name": name,
            "about": "",
            "file": str(trap),
            "client": command,
            "server": command,
            "options": {},
        }
        stack |= {"multipath": False, "version": None, "sha256": {"peer.yaml": "0" * 64}}
        record["config"] |= {"scheme": "stack", "arena": "sim", "stack": stack}

    return change


@pytest.mark.parametrize("name", ["unknown", "../evil", "evil.yaml", "{}/evil", "../../../../../../../..{}/evil"])
def test_a_stack_is_one_of_this_installation(name: str, recorded: Path, tmp_path: Path) -> None:
    name = name.format(tmp_path)
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil" / "peer.yaml").write_text(
        "{name: evil, about: evil, licence: none, client: [../trap], server: [../trap]}"
    )
    run = forged(recorded, tmp_path, _stack(name))
    done = railyard("repeat", str(run), "--yes", "--out", str(tmp_path / "again"))
    assert not (tmp_path / "trapped").exists()
    assert (
        done.returncode == 2 and done.stderr.count("\n") == 1 and (name in done.stderr or "stack.name" in done.stderr)
    ), done.stderr


def test_a_stack_for_a_run_that_has_none_is_refused(recorded: Path, tmp_path: Path) -> None:
    peer = str(ROOT / "peers" / "quic-go" / "peer.yaml")
    done = railyard("repeat", str(recorded), "--yes", "--stack", peer, "--out", str(tmp_path / "again"))
    one_sentence(done, "--stack")
    assert not (tmp_path / "again").exists()


def _event(record: dict[str, Any], trap: Path) -> None:
    record["config"]["link_events"] = [{"t_s": 1, "path": f"wifi; {trap}", "state": "down"}]


def _sysctl(record: dict[str, Any], trap: Path) -> None:
    record["config"]["kernel_sysctls"] = {"kernel.core_pattern": f"|{trap}"}


def _path(record: dict[str, Any], trap: Path) -> None:
    record["config"]["paths"][0]["name"] = f"../{trap}"


@pytest.mark.parametrize("change", [_event, _sysctl, _path])
def test_settings_that_no_run_has_are_refused(change: Change, recorded: Path, tmp_path: Path) -> None:
    run = forged(recorded, tmp_path, change)
    one_sentence(railyard("repeat", str(run), "--yes", "--out", str(tmp_path / "again")), "run.json")
    assert not (tmp_path / "again").exists()


def _escapes(record: dict[str, Any], trap: Path) -> None:
    """In every text of the record that is not looked up."""
    record["message"] = f"[link=file:///etc]ended[/oops] {ESCAPES}"
    record["started"] += ESCAPES
    record["fidelity"] |= {"void": True, "reasons": [ESCAPES], "cause": f"{ESCAPES} [/none]"}
    record["commands"]["sim"].append(ESCAPES)
    record["git"]["revision"] = f"$(touch {trap}){ESCAPES}"
    record["config"] |= {"experiment": ESCAPES, "congestion": ESCAPES, "pair_caveat": ESCAPES, "pair": ESCAPES}
    record["config"] |= {"label": f"{ESCAPES}[/b]", "scheme": ESCAPES, "primary": ESCAPES}


@pytest.mark.parametrize("command", [["show"], ["repeat"], ["repeat", "--yes"], ["diff"], ["compare"]])
def test_no_text_of_a_record_controls_the_terminal(command: list[str], recorded: Path, tmp_path: Path) -> None:
    run = forged(recorded, tmp_path, _escapes)
    more = [str(run)] if command == ["diff"] else ["--out", str(tmp_path / "again")] if "repeat" in command else []
    done = railyard(command[0], str(run), *command[1:], *more)
    assert done.stdout + done.stderr
    for letter in "\x1b\x07\x9b\u202e":
        assert letter not in done.stdout + done.stderr, done
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [["show"], ["show", "hostile"], ["query", "SELECT * FROM campaigns"]])
def test_no_text_of_a_campaign_controls_the_terminal(command: list[str], recorded: Path, tmp_path: Path) -> None:
    campaign = tmp_path / "results" / "hostile"
    shutil.copytree(recorded.parents[1], campaign)
    for name in ("campaign.json", "runs/subway-1--xlink--s1/run.json"):
        record = json.loads((campaign / name).read_text())
        if name == "campaign.json":
            record |= {"command": f"{ESCAPES}[/b]"}
            record["experiment"] |= {"description": f"{ESCAPES}[/b]", "name": ESCAPES}
            record["git"]["revision"] = ESCAPES
        else:
            _escapes(record, tmp_path)
        (campaign / name).write_text(json.dumps(record))
    for file in campaign.glob("*.parquet"):
        file.unlink()
    done = railyard(*command, "--results", str(tmp_path / "results"))
    for letter in "\x1b\x07\x9b\u202e":
        assert letter not in done.stdout + done.stderr, done
    assert "Traceback" not in done.stderr and ("hostile" in done.stdout or done.returncode == 2), done


@pytest.mark.parametrize("started", ["yesterday", "2026-13-01T00:00:00+00:00", 5, "2026-11-23T20:00:00"])
def test_a_time_that_is_none_ends_in_one_sentence(started: object, recorded: Path, tmp_path: Path) -> None:
    """The last one names no zone: it is read as UTC."""
    campaign = tmp_path / "results" / "foreign"
    shutil.copytree(recorded.parents[1], campaign)
    for file in campaign.glob("*.parquet"):
        file.unlink()
    for name in ("campaign.json", "runs/subway-1--xlink--s1/run.json"):
        record = json.loads((campaign / name).read_text()) | {"started": started}
        (campaign / name).write_text(json.dumps(record))
    where = ("--results", str(tmp_path / "results"))
    for command in (("show",), ("clean", "--older-than", "1d"), ("query", "SELECT started FROM campaigns, runs")):
        done = railyard(*command, *where)
        assert "Traceback" not in done.stderr, done
        if command[0] == "query" and started != "2026-11-23T20:00:00":
            assert done.returncode == 2 and "this run cannot be read" in done.stderr, done


@pytest.fixture
def foreign(recorded: Path, tmp_path: Path) -> Path:
    """A copy of the campaign."""
    return Path(shutil.copytree(recorded.parents[1], tmp_path / "foreign"))


def _set(*place: str | int, to: object) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        record = json.loads(data)
        inner = record
        for name in place[:-1]:
            inner = inner[name]
        inner[place[-1]] = to
        return json.dumps(record).encode()

    return change


def _whole(text: bytes) -> Callable[[bytes], bytes]:
    return lambda _: text


DEEP = b"[" * 100_000
RUN = "runs/subway-1--xlink--s1"
DAMAGES: list[tuple[str, Callable[[bytes], bytes], tuple[str, ...]]] = [
    ("run.json", _whole(DEEP), ("show", "diff", "archive")),
    ("run.json", _whole(b"[null]"), ("show", "archive")),
    ("run.json", _set("config", "paths", to=5), ("show", "archive")),
    ("run.json", _set("config", "label", to=["x"]), ("show", "report")),
    ("run.json", _set("fidelity", "void", to="no"), ("compare",)),
    ("run.json", _set("fidelity", "lateness_p99_us", to=10**400), ("show", "report")),
    ("run.json", _set("git", to=None), ("show", "report", "archive")),
    ("mpshell.json", _whole(DEEP), ("explain", "report run")),
    ("mpshell.json", _whole(b'""'), ("compare",)),
    ("mpshell.json", _set("paths", 0, "down", "departed_bytes", to="many"), ("show", "report")),
    ("mpshell.json", _set("paths", 0, "up", to=["x"]), ("explain", "report run")),
    ("player.jsonl", _whole(DEEP + b"\n"), ("show",)),
    ("player.jsonl", _whole(b'{"event": "request", "t": "now", "chunk": {}}\n'), ("show", "report run")),
    ("player.jsonl", _whole(b'{"event": "request", "t": 0, "chunk": [1], "first": 0, "last": 1}\n'), ("show",)),
    ("server.jsonl", _whole(b'{"event": "summary", "t": 1, "stream_bytes_sent": "x"}\n'), ("show", "report")),
    (
        "qlog",
        lambda data: data + b'\x1e{"name": 5, "time": 1, "data": {}}\n',
        ("diff", "explain", "qvis", "report run"),
    ),
    ("qlog", lambda data: data + b"\x1e[1]\n", ("diff", "qvis")),
    ("qlog", lambda data: data + b'\x1e{"name": "quic:packet_sent", "time": 1, "data": []}\n', ("diff", "qvis")),
    ("qlog", lambda data: b"\x1e5\n" + data, ("qvis", "explain", "report run")),
    ("../../campaign.json", _set("runs", to=5), ("report", "compare")),
    ("../../campaign.json", _set("runs", to=["../../elsewhere"]), ("report", "compare")),
    ("../../campaign.json", _set("not_run", to=[5]), ("report", "compare")),
]


@pytest.mark.parametrize(("name", "change", "commands"), DAMAGES)
def test_a_record_that_no_program_writes_ends_in_one_sentence(
    name: str, change: Callable[[bytes], bytes], commands: tuple[str, ...], foreign: Path
) -> None:
    """Or it is left out, if a command does not need it."""
    run = foreign / RUN
    files = sorted((run / "qlog").iterdir()) if name == "qlog" else [run / name]
    for file in files:
        file.write_bytes(change(file.read_bytes()))
    (foreign / "runs.parquet").unlink()
    lines = {
        "explain": ("explain", str(run), "--chunk", "0"),
        "diff": ("diff", str(run), str(run)),
        "qvis": ("qlog", str(run), "--qvis", "--out", str(foreign / "qvis")),
        "archive": ("archive", str(foreign), "--out", str(foreign / "a.zip")),
        "report run": ("report", str(run)),
        "show": ("show", str(run)),
        "show all": ("show", "--results", str(foreign)),
    }
    for command in (*commands, "show all"):
        done = railyard(*lines.get(command, (command, str(foreign))))
        assert "Error at" not in done.stderr, done
        if done.returncode:
            assert done.returncode == 2 and done.stderr.count("\n") == 1, (command, done)
            assert not (foreign / command).exists()


def test_a_path_whose_directions_differ_in_delay_has_no_delay_of_its_own(foreign: Path) -> None:
    file = foreign / RUN / "mpshell.json"
    file.write_bytes(_set("paths", 0, "delay_ms", to=None)(file.read_bytes()))
    (foreign / "runs.parquet").unlink()
    for command in (("show", str(foreign / RUN)), ("report", str(foreign))):
        assert (done := railyard(*command)).returncode == 0, done


@pytest.mark.parametrize("partial", [".report.html.partial", ".runs.parquet.partial", f"{RUN}/.replay.html.partial"])
def test_a_link_of_a_foreign_folder_is_not_written_through(partial: str, foreign: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine")
    (foreign / partial).symlink_to(mine)
    done = railyard("report", str(foreign), "--replay")
    assert done.returncode == 0 and mine.read_text() == "mine", done.stderr


def test_pages_and_figures_stay_within_a_foreign_folder(foreign: Path, tmp_path: Path) -> None:
    elsewhere = Path(shutil.copytree(foreign / RUN, tmp_path / "elsewhere"))
    (foreign / "runs" / "another").symlink_to(elsewhere)
    one_sentence(railyard("report", str(foreign), "--replay"), "a link out of the campaign")
    (foreign / "figures").symlink_to(elsewhere)
    one_sentence(railyard("figures", str(foreign), "--format", "svg"), "a link out of the results' folder")
    assert not (elsewhere / "replay.html").exists() and not list(elsewhere.glob("*.svg"))


@pytest.mark.parametrize("name", ["trace", "mpshell.json", "qlog"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(name: str, foreign: Path, tmp_path: Path) -> None:
    """Like a device, which never ends."""
    run, pipe = foreign / RUN, tmp_path / "pipe"
    os.mkfifo(pipe)
    if name == "trace":
        record = json.loads((run / "run.json").read_text())
        record["config"]["paths"][0]["up"] = str(pipe)
        (run / "run.json").write_text(json.dumps(record))
    else:
        file = sorted((run / "qlog").iterdir())[0] if name == "qlog" else run / name
        file.unlink()
        file.symlink_to(pipe)
    for command in ("show", run), ("report", run), ("diff", run, run), ("compare", foreign):
        done = railyard(*map(str, command))
        assert done.returncode in (0, 2) and "Error at" not in done.stderr, done


def test_settings_of_a_record_do_not_make_chunks_without_end(foreign: Path) -> None:
    file = foreign / RUN / "run.json"
    record = json.loads(file.read_text()) | {"outcome": "connect_failed"}
    record["config"]["player"] |= {"duration_s": 1e12, "chunk_bytes": 1}
    file.write_text(json.dumps(record))
    one_sentence(railyard("show", str(foreign / RUN)), "more than 1000000 chunks")


def test_times_of_a_log_do_not_make_bins_without_end() -> None:
    assert [Bins.over(seconds).count for seconds in (1.0, 8000.0, 1e12)] == [50, 800, 800]


def test_an_error_that_nothing_foresaw_is_one_sentence_and_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> None:
        raise KeyError("\x1b[2J")

    monkeypatch.setattr("railyard.cli.main.app", fail)
    done = railyard("show")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "\x1b" not in done.stderr
    monkeypatch.setenv("RAILYARD_TRACEBACK", "1")
    with pytest.raises(KeyError):
        railyard("show")
