"""Reads files of zip and tar archives and of folders."""

import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from railyard.base.files import check_regular
from railyard.base.zipped import ZIP_FAULTS
from railyard.traces.trace import TraceError

MAX_BYTES = 500_000_000
"""The largest size of an unpacked file of an archive, in bytes."""


def _find(archive: zipfile.ZipFile, path: Path, member: str) -> zipfile.ZipInfo:
    members = [info for info in archive.infolist() if f"/{info.filename}".endswith(f"/{member}")]
    members = [info for info in members if info.filename == member] or members
    if len(members) != 1:
        raise TraceError(f"{path}: {len(members)} files in it are named '{member}'; name one by its folders too")
    _check_size(path, member, members[0].file_size)
    return members[0]


def _check_size(path: Path, member: str, size: int) -> None:
    if size > MAX_BYTES:
        raise TraceError(f"{path}: '{member}' has more than {MAX_BYTES} bytes; it is not read")


@contextmanager
def unpacked(path: Path, member: str) -> Iterator[Path]:
    """Unpacks a file of an archive into a temporary folder, which is removed afterwards. Raises TraceError."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / Path(member).name
        try:
            with zipfile.ZipFile(path) as archive:
                file.write_bytes(archive.read(_find(archive, path, member)))
        except OSError as error:
            raise TraceError.unreadable(path, error) from error
        except (*ZIP_FAULTS, RuntimeError, NotImplementedError, ValueError) as error:
            raise TraceError(f"{path}: '{member}' cannot be unpacked from it: {error}") from None
        yield file


@contextmanager
def streams(path: Path, wanted: Callable[[str], object]) -> Iterator[Iterator[tuple[str, IO[bytes]]]]:
    """Names and contents of the wanted files of a folder or an archive, or of the one file that `path` is. Nothing is
    unpacked to the disk. Raises TraceError, also while a content is read."""
    try:
        yield _streams(path, wanted)
    except OSError as error:
        raise TraceError.unreadable(path, error) from error
    except (*ZIP_FAULTS, tarfile.TarError, RuntimeError, NotImplementedError) as error:
        raise TraceError(
            f"{path}: this is no whole tar or zip archive ({error}); fetch it again, or name a folder"
        ) from None


def _streams(path: Path, wanted: Callable[[str], object]) -> Iterator[tuple[str, IO[bytes]]]:
    if path.is_file() and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as zipped:
            for info in sorted(zipped.infolist(), key=lambda info: info.filename):
                if wanted(info.filename):
                    _check_size(path, info.filename, info.file_size)
                    with zipped.open(info) as stream:
                        yield info.filename, stream
    elif path.is_file() and tarfile.is_tarfile(path):
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isreg() and wanted(member.name) and (content := archive.extractfile(member)):
                    _check_size(path, member.name, member.size)
                    yield member.name, content
    else:
        below = [file for file in sorted(path.rglob("*")) if file.is_file() and wanted(str(file))]
        for file in below if path.is_dir() else [path]:
            check_regular(file)
            with file.open("rb") as stream:
                yield str(file), stream
