"""One file of a zip archive, for as long as it is read."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from railyard.base.zipped import ZIP_FAULTS
from railyard.traces.trace import TraceError

MAX_BYTES = 500_000_000
"""The most that one file of an archive may unpack to."""


def _find(archive: zipfile.ZipFile, path: Path, member: str) -> zipfile.ZipInfo:
    members = [info for info in archive.infolist() if f"/{info.filename}".endswith(f"/{member}")]
    members = [info for info in members if info.filename == member] or members
    if len(members) != 1:
        raise TraceError(f"{path}: {len(members)} files in it are named '{member}'; name one by its folders too")
    if members[0].file_size > MAX_BYTES:
        raise TraceError(f"{path}: '{member}' has more than {MAX_BYTES} bytes; it is not read")
    return members[0]


@contextmanager
def unpacked(path: Path, member: str) -> Iterator[Path]:
    """A file of an archive in a folder of its own, which is removed afterwards. Raises TraceError."""
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
