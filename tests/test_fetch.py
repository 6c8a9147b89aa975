"""`railyard traces fetch`: with a server on this machine, and without one."""

import contextlib
import hashlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from railyard.traces.fetch import MANIFEST, MAX_BYTES, SourceFile, download, read_manifest
from railyard.traces.index import read_index
from railyard.traces.trace import TraceError, read_trace
from trace_files import railyard_traces

RATES = b"".join(b"%d,%d\n" % (second, 1504 * (second % 7)) for second in range(40_000))


@dataclass
class Server:
    """The server's behaviour, and the requests that it got."""

    url: str = ""
    content: bytes = RATES
    ranges: bool = True
    breaks_after: int | None = None
    asked: list[str | None] = field(default_factory=list)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            state.asked.append(asked)
            if self.path != "/rates.csv":
                self.send_error(404)
                return
            start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and state.ranges else 0
            body = state.content[start:]
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body if state.breaks_after is None else body[: state.breaks_after])

        def handle(self) -> None:
            with contextlib.suppress(ConnectionError):  # the client hangs up on what is too long
                super().handle()

        def log_message(self, *_: object) -> None:
            pass

    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    served = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.url = f"http://127.0.0.1:{served.server_port}/rates.csv"
    yield state
    served.shutdown()
    served.server_close()
    thread.join()


def pinned(server: Server, **changed: object) -> SourceFile:
    entry = {"name": "rates.csv", "url": server.url, "bytes": len(RATES), "sha256": hashlib.sha256(RATES).hexdigest()}
    return SourceFile.model_validate(entry | changed)


def test_a_file_is_downloaded_checked_and_not_asked_for_again(server: Server, tmp_path: Path) -> None:
    told: list[int] = []
    file = download(pinned(server), tmp_path / "new", told.append)
    assert file.read_bytes() == RATES
    assert told == sorted(told) and told[-1] == len(RATES)
    download(pinned(server), tmp_path / "new")
    assert server.asked == [None]


def test_a_broken_download_is_kept_and_continued(server: Server, tmp_path: Path) -> None:
    server.breaks_after = 100_000
    with pytest.raises(TraceError, match="what has arrived is kept"):
        download(pinned(server), tmp_path)
    assert (tmp_path / "rates.csv.part").stat().st_size == 100_000
    server.breaks_after = None
    assert download(pinned(server), tmp_path).read_bytes() == RATES
    assert server.asked == [None, "bytes=100000-"]


def test_where_the_server_cannot_continue_the_download_starts_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / "rates.csv.part").write_bytes(b"x" * 5000)
    server.ranges = False
    assert download(pinned(server), tmp_path).read_bytes() == RATES


def test_another_file_than_the_pinned_one_is_refused_and_removed(server: Server, tmp_path: Path) -> None:
    server.content = RATES[:-1] + b"x"
    with pytest.raises(TraceError, match=r"its SHA-256 is .* not .* as pinned"):
        download(pinned(server), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_no_more_than_the_pinned_bytes_are_written(server: Server, tmp_path: Path) -> None:
    server.content = RATES * 50
    with pytest.raises(TraceError, match="more than the"):
        download(pinned(server), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_and_an_unreachable_server_are_told_in_one_sentence(server: Server, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="answers 404"):
        download(pinned(server, url=server.url + ".gone"), tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(TraceError, match=r"127\.0\.0\.1 cannot be reached: connection refused"):
        download(pinned(server, url=f"http://127.0.0.1:{port}/rates.csv"), tmp_path)


def test_that_there_is_no_network_is_told(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unresolved(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", unresolved)
    with pytest.raises(TraceError, match=r"traces\.invalid cannot be reached: .* there seems to be no network"):
        download(pinned(server, url="http://traces.invalid/rates.csv"), tmp_path)


MANIFEST_TEXT = """\
schema: 1
sources:
- name: walks
  title: Walks
  licence: CC-BY-4.0
  country: Norway
  scenario: walking
  technology: LTE
  year: 2020 to 2021
  cite: Nobody, 2026
  files:
  - {{name: rates.csv, url: '{url}', bytes: {size}, sha256: {sha256}}}
  pairs:
  - name: walk-9
    scenario: walking
    licence: CC-BY-4.0
    source: a server
    paths:
    - {{name: wifi, technology: wifi, downlink: {{file: rates.csv, unit: bytes-per-s, duration_s: 60}}}}
    - {{name: lte, technology: lte, downlink: {{file: rates.csv, unit: bytes-per-s, start_s: 60, duration_s: 60}}}}
"""


def manifest_file(folder: Path, server: Server) -> Path:
    (folder / "sources.yaml").write_text(
        MANIFEST_TEXT.format(url=server.url, size=len(RATES), sha256=hashlib.sha256(RATES).hexdigest())
    )
    return folder / "sources.yaml"


def test_fetch_shows_the_licence_and_downloads_only_when_it_is_accepted(server: Server, tmp_path: Path) -> None:
    common = ("walks", "--manifest", manifest_file(tmp_path, server), "--out", tmp_path / "lib")
    code, out, err = railyard_traces("fetch", *common)
    assert (code, "licence: CC-BY-4.0" in out, "add --accept-licence" in err) == (2, True, True)
    assert not (tmp_path / "lib").exists() and not server.asked
    code, out, err = railyard_traces("fetch", *common, "--accept-licence")
    assert code == 0, err
    assert "licence: CC-BY-4.0" in out and "to replay: walk-9" in out
    (pair,) = read_index(tmp_path / "lib" / "index.yaml")
    assert pair.licence == "CC-BY-4.0"
    wifi, lte = (read_trace(path.downlink) for path in pair.paths)
    assert len(wifi.opportunities_ms) == sum(second % 7 for second in range(60)) + 1
    assert len(lte.opportunities_ms) == sum(second % 7 for second in range(60, 120)) + 1


def test_single_traces_and_delays_of_a_data_set_are_made(server: Server, tmp_path: Path) -> None:
    manifest = manifest_file(tmp_path, server)
    pairs = manifest.read_text().partition("  pairs:\n")
    manifest.write_text(f"""{pairs[0]}  traces:
  - {{name: alone, file: rates.csv, unit: bytes-per-s, duration_s: 60}}
  delays:
  - {{name: slow, file: rates.csv, from: ping}}
""")
    code, _, err = railyard_traces(
        "fetch", "walks", "--manifest", manifest, "--out", tmp_path / "lib", "--accept-licence"
    )
    assert (code, "there is no reply in it as ping prints them" in err) == (2, True)
    manifest.write_text(manifest.read_text().partition("  delays:\n")[0])
    code, out, err = railyard_traces(
        "fetch", "walks", "--manifest", manifest, "--out", tmp_path / "lib", "--accept-licence"
    )
    assert (code, "to replay" in out) == (0, False), err
    assert read_trace(tmp_path / "lib" / "alone.down").period_ms == 60_000
    assert not (tmp_path / "lib" / "index.yaml").exists()


def test_fetch_lists_and_refuses_what_it_does_not_know(server: Server, tmp_path: Path) -> None:
    manifest = manifest_file(tmp_path, server)
    code, out, _ = railyard_traces("fetch", "--manifest", manifest)
    assert (code, "walk-9" in out) == (0, True)
    code, _, err = railyard_traces("fetch", "walk", "--manifest", manifest)
    assert (code, "did you mean 'walks'?" in err) == (2, True)
    manifest.write_text(manifest.read_text().replace("file: rates.csv", "file: other.csv", 1))
    code, _, err = railyard_traces("fetch", "--manifest", manifest)
    assert (code, f"{manifest}:3: " in err, "needs other.csv" in err) == (2, True, True)
    manifest.write_text(manifest.read_text().replace("sha256: ", "sha256: 0"))
    code, _, err = railyard_traces("fetch", "--manifest", manifest)
    assert (code, f"{manifest}:12: sources[0].files[0].sha256" in err) == (2, True)


def test_the_projects_manifest_pins_every_file_at_a_commit() -> None:
    manifest = read_manifest(MANIFEST)
    files = [file for source in manifest.sources for file in source.files if file.sha256 is not None]
    assert len({file.sha256 for file in files}) == len(files) > 10
    for file in files:
        assert file.url.startswith("https://")
        assert len(next(part for part in file.url.split("/") if len(part) == 40)) == 40, "a commit"
    assert max(file.bytes or 0 for file in files) <= MAX_BYTES


def test_the_projects_manifest_has_five_sources_of_three_countries_and_says_how_pairs_were_recorded() -> None:
    sources = read_manifest(MANIFEST).sources
    pinned = [source for source in sources if source.total_bytes is not None]
    assert len(pinned) >= 5 and len({source.country for source in pinned}) >= 3
    assert all(pair.recorded for source in sources for pair in source.pairs)
    names = [name for source in sources for name in source.made]
    assert len(set(names)) == len(names)
    assert [source.name for source in sources if not source.made] == ["hsr-mptcp"], "for `traces rtt` alone"
    binned = ("us-5g-sa-nsa", 42)
    assert (binned[0], len([path for source in sources if source.name == binned[0] for pair in source.pairs
                            for path in pair.paths if path.kind == "tcp-goodput"])) == binned  # fmt: skip


def test_a_file_that_nobody_measured_is_recorded_at_its_first_download(server: Server, tmp_path: Path) -> None:
    file = pinned(server, bytes=None, sha256=None)
    assert download(file, tmp_path).read_bytes() == RATES
    recorded = (tmp_path / "rates.csv.sha256").read_text()
    assert recorded == f"{hashlib.sha256(RATES).hexdigest()}  rates.csv\n"
    download(file, tmp_path)
    assert len(server.asked) == 1, "it is there"
    (tmp_path / "rates.csv").unlink()
    server.content = RATES[:-1] + b"9"
    with pytest.raises(TraceError, match="as pinned; it was removed"):
        download(file, tmp_path)
    assert (tmp_path / "rates.csv.sha256").read_text() == recorded
    with pytest.raises(ValueError, match="both bytes and sha256, or neither"):
        pinned(server, sha256=None)
