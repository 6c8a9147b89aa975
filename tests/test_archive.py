"""A campaign as one file, and the check of it. Files of others are hostile."""

import hashlib
import io
import json
import os
import shutil
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from conftest import good, one_sentence
from in_process import railyard
from kernel_machine import needs_kernel
from railyard.base import provenance
from railyard.base.paths import PEERS_DIR
from railyard.results import archive
from railyard.results.archive import MANIFEST, opened, write_archive
from railyard.traces.library import AtHand
from small_disk import small_disk

Members = dict[str, bytes]
Change = Callable[[Members], None]
pytestmark = pytest.mark.usefixtures("built")


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two schemes over a second of video, with qlogs and keys."""
    folder = tmp_path_factory.mktemp("archive")
    settings = ["player.duration_s=1", "player.bitrate=1mbps", "qlog=all", "pcap=true"]
    words = [word for setting in settings for word in ("--set", setting)]
    asked = ("--pair", "subway-1", "--schemes", "vanilla-mp,xlink")
    good(railyard("run", *asked, *words, "--out", str(folder / "small")))
    return folder / "small"


@pytest.fixture
def written(campaign: Path, tmp_path: Path) -> Path:
    write_archive(campaign, tmp_path / "small.zip")
    return tmp_path / "small.zip"


def members(file: Path) -> Members:
    with zipfile.ZipFile(file) as found:
        return {name: found.read(name) for name in found.namelist()}


def pack(file: Path, content: Members) -> None:
    """Writes an archive with these members."""
    with zipfile.ZipFile(file, "w") as made:
        for name, data in content.items():
            made.writestr(name, data)


def record_name(content: Members) -> str:
    return next(name for name in content if name.endswith("/run.json"))


def resigned(content: Members) -> Members:
    """The archive with the hashes in the manifest corrected, as a hostile writer does."""
    manifest = json.loads(content[MANIFEST])
    plain = {name: data for name, data in content.items() if name not in (MANIFEST, archive.README)}
    manifest["files"] = {name: {"sha256": hashlib.sha256(data).hexdigest()} for name, data in plain.items()}
    return content | {MANIFEST: json.dumps(manifest).encode()}


def test_an_archive_is_checked_to_the_byte_where_its_traces_are_not(
    campaign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = good(railyard("archive", str(campaign), "--out", str(tmp_path / "small.zip")))
    assert "8 files with TLS keys left out" in done.stdout and "licence" in done.stdout
    monkeypatch.setattr(archive, "at_hand", lambda: AtHand({}, []))  # a machine without the traces
    done = railyard("repeat", str(tmp_path / "small.zip"), "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "same bytes: 2 of 2 runs" in done.stdout


@pytest.fixture(scope="module")
def at_a_bottleneck(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A play over a bottleneck that others use too, as a file says."""
    folder = tmp_path_factory.mktemp("bottleneck")
    (folder / "others.csv").write_text("0,3\n500,1\n1000,0\n")
    (folder / "shared.yaml").write_text(
        "name: shared\narena: sim\npairs: [subway-1]\nschemes: [xlink]\nseeds: 1\n"
        "bottlenecks: {core: {rate: 8mbps, queue: 'droptail:packets=20', cross_profile: others.csv}}\n"
        "links: {wifi: {via: core}, lte: {via: core}}\n"
        "player: {duration_s: 1, bitrate_bps: 1000000, chunk_bytes: 65536}\ntime_limit_s: 10\n"
    )
    good(railyard("run", str(folder / "shared.yaml"), "--out", str(folder / "out")))
    write_archive(folder / "out", folder / "shared.zip")
    (folder / "others.csv").unlink()
    return folder / "shared.zip"


def test_an_archive_has_the_files_of_bottlenecks(at_a_bottleneck: Path) -> None:
    assert [name for name in members(at_a_bottleneck) if name.endswith("/others.csv")]
    done = railyard("repeat", str(at_a_bottleneck), "--yes")
    assert done.returncode == 0 and "same bytes: 1 of 1 run," in done.stdout, done.stdout + done.stderr


def test_a_bottleneck_s_file_that_an_archive_names_and_has_not_is_not_read(
    at_a_bottleneck: Path, tmp_path: Path
) -> None:
    content = members(at_a_bottleneck)
    name = record_name(content)
    record = json.loads(content[name])
    (bottleneck,) = record["config"]["bottlenecks"]
    bottleneck["files"] = dict.fromkeys(bottleneck["files"], "/etc/hostname")
    pack(tmp_path / "hostile.zip", resigned(content | {name: json.dumps(record).encode()}))
    with opened(tmp_path / "hostile.zip") as found:
        assert found.runs == [] and len(found.not_repeated) == 1


def test_what_is_there_is_replaced_by_an_archive_only_if_it_is_one(campaign: Path, tmp_path: Path) -> None:
    notes, pipe, empty = tmp_path / "notes", tmp_path / "pipe", tmp_path / "empty"
    notes.write_text("by hand")
    empty.touch()
    os.mkfifo(pipe)
    for file in (notes, pipe, tmp_path):
        done = railyard("archive", str(campaign), "--out", str(file))
        one_sentence(done, f"{file}: it is there already and is no archive, so it is not replaced; give another")
    assert notes.read_text() == "by hand" and stat.S_ISFIFO(pipe.stat().st_mode)
    for _ in range(2):
        good(railyard("archive", str(campaign), "--out", str(empty)))
        assert zipfile.is_zipfile(empty)


def test_an_archive_has_no_keys_and_is_the_same_bytes_again(campaign: Path, tmp_path: Path) -> None:
    assert list(campaign.rglob("*.keys")), "nothing to leave out"
    for name in ("a", "b"):
        write_archive(campaign, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    content = members(tmp_path / "a")
    assert not [name for name in content if name.endswith(".keys")]
    assert not [name for name, data in content.items() if b"TRAFFIC_SECRET" in data]
    assert {"campaign/campaign.json", "campaign/runs.parquet", "campaign/report.html", "README.md"} <= content.keys()
    manifest = json.loads(content[MANIFEST])
    assert manifest["environment"][0]["kernel"] and manifest["experiment"]["name"] == "subway-1"


def test_without_its_traces_an_archive_is_checked_with_those_of_the_machine(campaign: Path, tmp_path: Path) -> None:
    write_archive(campaign, tmp_path / "small.zip", with_traces=False)
    assert not [name for name in members(tmp_path / "small.zip") if name.startswith("traces/")]
    with opened(tmp_path / "small.zip") as found:
        assert len(found.runs) == 2


def test_a_run_that_came_out_otherwise_is_named(written: Path) -> None:
    content = members(written)
    name = next(name for name in content if name.endswith("xlink--s1/player.jsonl"))
    content[name] += b"{}\n"
    pack(written, resigned(content))
    done = railyard("repeat", str(written), "--yes")
    assert done.returncode == 1
    assert "subway-1--xlink--s1: not the same: player.jsonl" in done.stdout
    assert "same bytes: 1 of 2 runs" in done.stdout


def _set(content: Members, change: Callable[[dict[str, Any]], None]) -> None:
    record = json.loads(content[record_name(content)])
    change(record)
    content[record_name(content)] = json.dumps(record).encode()


def _climb(content: Members) -> None:
    content["campaign/../../evil"] = b"x"


def _absolute(content: Members) -> None:
    content["/railyard-evil"] = b"x"


def _trace_elsewhere(content: Members) -> None:
    content[f"traces/{'0' * 64}/..%2fevil"] = b"x"


def _wrong_hash(content: Members) -> None:
    content[f"traces/{'0' * 64}/subway-1.lte.down"] = b"1\n"


def _no_runs(content: Members) -> None:
    for name in [name for name in content if name.endswith("run.json")]:
        del content[name]


def _strange_setting(content: Members) -> None:
    _set(content, lambda record: record["config"].update(seed="x"))


def _no_kernel(content: Members) -> None:
    _set(content, lambda record: record["config"].update(arena="kernel"))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (_no_kernel, "config.kernel: a run of the kernel arena names its kernel."),
        (_climb, "is no name of a file in an archive"),
        (_absolute, "is no name of a file in an archive"),
        (_trace_elsewhere, "is no trace under its SHA-256"),
        (_wrong_hash, "is no trace under its SHA-256"),
        (_no_runs, "it has no runs"),
        (_strange_setting, "no run has such a setting"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_hostile_archive_is_refused(written: Path, change: Change, sentence: str) -> None:
    content = members(written)
    change(content)
    pack(written, resigned(content))
    one_sentence(railyard("repeat", str(written), "--yes"), sentence)
    assert not Path("/railyard-evil").exists() and not (written.parent.parent / "evil").exists()


def test_what_is_not_the_file_of_the_manifest_is_refused(written: Path) -> None:
    content = members(written)
    content[record_name(content)] += b" "
    pack(written, content)
    one_sentence(railyard("repeat", str(written), "--yes"), "is not the file of which archive.json has the SHA-256")


def test_a_symbolic_link_in_an_archive_is_refused(written: Path) -> None:
    content = members(written)
    link = zipfile.ZipInfo("campaign/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    pack(written, content)
    with zipfile.ZipFile(written, "a") as made:
        made.writestr(link, "/etc/passwd")
    one_sentence(railyard("repeat", str(written), "--yes"), "'campaign/link' is no name of a file")


@pytest.mark.parametrize("limit", ["MOST_BYTES", "MOST_FILES"])
def test_an_archive_that_is_too_large_is_not_read_and_its_writer_says_so(
    limit: str, campaign: Path, written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, limit, 10)
    one_sentence(railyard("repeat", str(written), "--yes"), "this is not read")
    said = good(railyard("archive", str(campaign), "--out", str(tmp_path / "again.zip"))).stdout
    assert "`railyard repeat` refuses it: it has too many files or bytes." in said


def test_runs_with_the_same_files_have_them_hashed_once(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the program and the traces are read for every run of an archive."""
    hashed = Mock(side_effect=provenance.sha256_of)
    monkeypatch.setattr(provenance, "sha256_of", hashed)
    provenance._sha256.cache_clear()
    with archive.opened(written) as sound:
        assert len(sound.runs) == 2
    files = [call.args[0] for call in hashed.call_args_list]
    assert files and len(files) == len(set(files))


def test_programs_that_an_archive_names_are_not_run(written: Path, tmp_path: Path) -> None:
    content = members(written)
    program = tmp_path / "evil"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    program.chmod(0o755)

    def name_it(record: dict[str, Any]) -> None:
        record["config"]["program"] = str(program)
        record["commands"] = {"sim": [str(program)]}

    _set(content, name_it)
    pack(written, resigned(content))
    done = railyard("repeat", str(written), "--yes")
    assert done.returncode == 0 and "same bytes: 2 of 2" in done.stdout
    assert not (tmp_path / "ran").exists()


@needs_kernel
def test_a_stack_of_the_user_is_named_once_for_the_runs_that_have_it(tmp_path: Path) -> None:
    """Beside runs of a scheme and of a stack of the project, which need no file."""
    own = tmp_path / "own" / "peer.yaml"
    own.parent.mkdir()
    own.write_text((PEERS_DIR / "tcp" / "peer.yaml").read_text().replace("name: tcp", "name: own-tcp"))
    (tmp_path / "small.yaml").write_text(
        "name: small\narena: kernel\npairs: [subway-1]\nschemes: [sp, {stack: tcp}, {stack: ./own/peer.yaml}]\n"
        "seeds: 1\nplayer: {bitrate_bps: 1000000, duration_s: 1}\ntime_limit_s: 20\n"
    )
    good(railyard("run", str(tmp_path / "small.yaml"), "--out", str(tmp_path / "small")))
    write_archive(tmp_path / "small", tmp_path / "small.zip")
    without = good(railyard("repeat", str(tmp_path / "small.zip"), "--yes")).stdout
    assert "not repeated: the stack 'own-tcp' of the run is none of this installation" in without
    assert "name its peer.yaml with --stack FILE" in without and "same bytes: 3 of 3 runs" in without
    named = good(railyard("repeat", str(tmp_path / "small.zip"), "--yes", "--stack", str(own))).stdout
    assert "not repeated" not in named and "same bytes: 4 of 4 runs" in named
    other = railyard("repeat", str(tmp_path / "small.zip"), "--yes", "--stack", str(PEERS_DIR / "mptcp" / "peer.yaml"))
    one_sentence(other, "none of its runs has the stack 'mptcp' that --stack names")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a small disk")
@pytest.mark.parametrize("size", ["300k", "500k", "800k", "1200k"])
def test_a_full_disk_is_the_reason_and_no_difference(
    size: str, written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_disk(tmp_path / "disk", size) as disk:
        monkeypatch.setattr("tempfile.tempdir", str(disk))
        done = railyard("repeat", str(written), "--yes")
    assert (done.returncode == 2 and "No space left on device" in done.stderr) or "the disk is full" in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 no archive", b"text"])
def test_what_is_no_archive_is_said(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "some.zip").write_bytes(data)
    one_sentence(railyard("repeat", str(tmp_path / "some.zip"), "--yes"), "this is no sound archive")


def test_a_damaged_archive_is_said(written: Path) -> None:
    whole = written.read_bytes()
    with zipfile.ZipFile(written) as archive:
        first = archive.infolist()[0].header_offset + 80  # in the packed bytes of the first file
    for place in (len(whole) // 2, first, first + 1, first + 2):
        written.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        one_sentence(railyard("repeat", str(written), "--yes"), "this is no sound archive")


@pytest.mark.parametrize("packing", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_damaged_archive_of_captures_is_said(packing: int, tmp_path: Path) -> None:
    file = tmp_path / "captures.zip"
    with zipfile.ZipFile(file, "w", packing) as archive:
        archive.writestr("a.csv", "frame.time_epoch,tcp.srcport\n" * 100)
    whole = bytearray(file.read_bytes())
    whole[45:55] = b"\xff" * 10
    file.write_bytes(bytes(whole))
    one_sentence(railyard("traces", "rtt", str(file)), str(file))


def test_nothing_is_run_without_consent(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    done = railyard("repeat", str(written))
    assert done.returncode == 2 and "--yes" in done.stdout + done.stderr and "same bytes" not in done.stdout


def test_an_archive_has_the_name_of_a_zip_file(campaign: Path, tmp_path: Path) -> None:
    done = railyard("archive", str(campaign), "--out", str(tmp_path / "c.tar"))
    one_sentence(done, "c.tar: an archive is a ZIP file; give a name with .zip.")
    assert not list(tmp_path.iterdir())


def test_a_folder_without_a_campaign_is_no_archive(campaign: Path, tmp_path: Path) -> None:
    shutil.copytree(campaign, tmp_path / "c")
    (tmp_path / "c" / "campaign.json").unlink()
    done = railyard("archive", str(tmp_path / "c"), "--out", str(tmp_path / "c.zip"))
    one_sentence(done, "no readable campaign.json")
