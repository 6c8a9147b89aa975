"""Public data sets: a manifest that pins them by URL, size and SHA-256, and the download."""

import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from railyard.base.files import write_named, writing
from railyard.base.models import StrictModel, Text
from railyard.base.provenance import sha256_of
from railyard.base.yamlfile import load_yaml, near_miss, parse
from railyard.traces.convert.delays import DelayFormat, read_delays
from railyard.traces.convert.recipe import PairRecipe, TraceRecipe
from railyard.traces.convert.run import convert_pair, convert_trace
from railyard.traces.index import write_entry
from railyard.traces.names import PairName
from railyard.traces.trace import TraceError

MANIFEST = Path(__file__).with_name("sources.yaml")
DOWNLOADS = "downloads"
TIMEOUT_S = 30.0
MAX_BYTES = 1_000_000_000
"""The most that a manifest may ask for in one file."""
_PIECE = 65_536


class SourceFile(StrictModel):
    """One file to download."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]
    url: Annotated[str, Field(pattern=r"^https?://")]
    bytes: Annotated[int, Field(gt=0, le=MAX_BYTES)] | None = None
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    """Neither: nobody has measured the file yet; the SHA-256 of the first download is recorded beside it and holds."""

    @model_validator(mode="after")
    def _size_and_hash_go_together(self) -> "SourceFile":
        if (self.bytes is None) != (self.sha256 is None):
            raise ValueError("give both bytes and sha256, or neither where the file was never measured")
        return self

    @property
    def most_bytes(self) -> int:
        return MAX_BYTES if self.bytes is None else self.bytes


class NamedTrace(TraceRecipe):
    """A single recording: NAME.down in the library. No index names it."""

    name: PairName


class NamedDelay(StrictModel):
    """A delay trace: NAME.delay in the library."""

    name: PairName
    file: Text
    format: Annotated[DelayFormat | None, Field(alias="from")] = None
    interval_ms: Annotated[float, Field(gt=0)] | None = None


class Source(StrictModel):
    """A data set: its files, and the pairs, single traces and delay traces that are made of them."""

    name: PairName
    title: Text
    licence: Text
    cite: Text
    country: Text
    scenario: Text
    technology: Text
    year: Text
    """The year of the recording; if that is unknown, the year of the publication, and the text says so."""
    files: tuple[SourceFile, ...]
    pairs: tuple[PairRecipe, ...] = ()
    traces: tuple[NamedTrace, ...] = ()
    delays: tuple[NamedDelay, ...] = ()

    @model_validator(mode="after")
    def _recipes_name_files(self) -> "Source":
        names = {file.name for file in self.files}
        paths = [path for pair in self.pairs for path in pair.paths]
        of_pairs = [trace for path in paths for trace in (path.downlink, path.uplink) if trace is not None]
        needed = [trace.file for trace in (*of_pairs, *self.traces)] + [delay.file for delay in self.delays]
        for file in needed:
            if file not in names:
                raise ValueError(f"the data set needs {file}, which is not among the files; add it")
        return self

    @property
    def made(self) -> list[str]:
        """The names of the pairs and traces that are made of it."""
        singles = [f"{trace.name}.down" for trace in self.traces] + [f"{delay.name}.delay" for delay in self.delays]
        return [pair.name for pair in self.pairs] + singles

    @property
    def total_bytes(self) -> int | None:
        """The size of all files. None: a file was never measured."""
        sizes = [file.bytes for file in self.files if file.bytes is not None]
        return sum(sizes) if len(sizes) == len(self.files) else None

    @property
    def size(self) -> str:
        return "size not known" if self.total_bytes is None else f"{self.total_bytes / 1e6:.3f} MB"


class Manifest(StrictModel):
    """A whole manifest."""

    schema_: Annotated[Literal[1], Field(alias="schema")]
    sources: tuple[Source, ...]


def read_manifest(path: Path) -> Manifest:
    """Reads and checks a manifest. Raises UserError with file and line."""
    return parse(load_yaml(path), Manifest)


def find_source(manifest: Manifest, name: str, path: Path) -> Source:
    """The data set of that name. Raises UserError."""
    for source in manifest.sources:
        if source.name == name:
            return source
    raise TraceError(
        f"{path}: there is no data set '{name}' in it; {near_miss(name, [source.name for source in manifest.sources])}"
    )


@contextmanager
def _network_faults(file: SourceFile) -> Iterator[None]:
    """A context that turns errors of the network into one sentence."""
    host = urlsplit(file.url).hostname
    try:
        yield
    except urllib.error.HTTPError as error:
        raise TraceError(
            f"{file.name}: {host} answers {error.code} {error.reason} to {file.url}; correct the URL in the manifest"
        ) from None
    except urllib.error.URLError as error:
        reason = error.reason
        if isinstance(reason, socket.gaierror):
            why = "its name cannot be resolved: there seems to be no network"
        elif isinstance(reason, ssl.SSLError):
            why = f"its certificate is not accepted ({reason.reason})"
        else:
            why = (getattr(reason, "strerror", None) or str(reason)).lower()
        raise TraceError(f"{file.name}: {host} cannot be reached: {why}; try again where it can") from None
    except (TimeoutError, ConnectionError, HTTPException) as error:
        raise TraceError(
            f"{file.name}: the connection to {host} broke ({str(error).lower() or type(error).__name__}); "
            "try again: what has arrived is kept"
        ) from None


def _open(file: SourceFile, have: int) -> HTTPResponse:
    request = urllib.request.Request(file.url, headers={"User-Agent": "railyard"})  # noqa: S310  http(s) by the manifest
    if have:
        request.add_header("Range", f"bytes={have}-")
    response: HTTPResponse = urllib.request.urlopen(request, timeout=TIMEOUT_S)  # noqa: S310
    return response


def download(file: SourceFile, folder: Path, progress: Callable[[int], None] = lambda _: None) -> Path:
    """Downloads and checks a file, unless it is complete already. Continues an incomplete one. Raises TraceError.

    Writes at most the manifest's number of bytes. `progress` gets the number of bytes so far.
    """
    done, part = folder / file.name, folder / f"{file.name}.part"
    pinned = _pinned(file, folder)
    if done.is_file() and pinned is not None and sha256_of(done) == pinned:
        return done
    with writing(done):
        have = part.stat().st_size if part.is_file() else 0
        if have >= file.most_bytes or file.bytes is None:
            part.unlink(missing_ok=True)
            have = 0
        with _network_faults(file):
            _receive(file, part, have, progress)
        _check(file, part, pinned)
        if file.sha256 is None:
            _record(file, folder).write_text(f"{sha256_of(part)}  {file.name}\n", encoding="ascii")
        part.replace(done)
    return done


def _receive(file: SourceFile, part: Path, have: int, progress: Callable[[int], None]) -> None:
    with _open(file, have) as response:
        continued = response.status == 206 and have > 0
        if not continued:
            have = 0  # the server sends the whole file
        with part.open("ab" if continued else "wb") as out:
            while piece := response.read(_PIECE):
                have += len(piece)
                if have > file.most_bytes:
                    out.close()
                    part.unlink()
                    raise TraceError(
                        f"{file.name}: the server sends more than the {file.most_bytes} bytes of the manifest; "
                        "it is not the file that was pinned"
                    )
                out.write(piece)
                progress(have)


def _record(file: SourceFile, folder: Path) -> Path:
    """The file with the SHA-256 of the first download, for a file that the manifest does not pin."""
    return folder / f"{file.name}.sha256"


def _pinned(file: SourceFile, folder: Path) -> str | None:
    """The SHA-256 that a file must have. None: the manifest does not pin it, and there was no download yet."""
    record = _record(file, folder)
    if file.sha256 is not None or not record.is_file():
        return file.sha256
    return record.read_text(encoding="utf-8", errors="replace").split(" ")[0]


def _check(file: SourceFile, part: Path, pinned: str | None) -> None:
    size = part.stat().st_size
    if file.bytes is not None and size < file.bytes:
        raise TraceError(f"{file.name}: only {size} of {file.bytes} bytes arrived; try again: what has arrived is kept")
    digest = sha256_of(part)
    if pinned is not None and digest != pinned:
        part.unlink()
        raise TraceError(
            f"{file.name}: its SHA-256 is {digest}, not {pinned} as pinned; it was removed: do not trust the source"
        )


def fetch_source(source: Source, library: Path, progress: Callable[[str, int], None]) -> list[Path]:
    """Downloads a data set into a library, makes its traces and enters its pairs in the index. Returns the files."""
    folder = library / DOWNLOADS / source.name
    for file in source.files:
        download(file, folder, lambda have, name=file.name: progress(name, have))  # type: ignore[misc]
    written: list[Path] = []
    for recipe in source.pairs:
        files, entry = convert_pair(recipe, lambda name: folder / name)
        written += write_entry(library, files, entry)
    singles = {f"{one.name}.down": convert_trace(folder / one.file, one).data for one in source.traces}
    for one in source.delays:
        singles[f"{one.name}.delay"] = read_delays(folder / one.file, one.format, one.interval_ms).as_bytes()
    for name, data in singles.items():
        write_named(library / name, data)
    return list(dict.fromkeys([*written, *(library / name for name in singles)]))
