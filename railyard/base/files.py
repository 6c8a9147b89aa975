"""Writing files: complete or not at all, and in one sentence where that is not possible."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from railyard.base.errors import UserError


@contextmanager
def writing(out: Path) -> Iterator[None]:
    """Around the writing of `out`, whose folder it makes. Raises UserError for an error of the system."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise UserError(f"{error.filename or out}: cannot be written: {error.strerror or error}.") from None


def write_whole(file: Path, content: str | bytes) -> Path:
    """Writes beside and renames: the file is complete or not there. Returns it."""
    partial = file.with_name(f".{file.name}.partial")
    partial.write_bytes(content.encode() if isinstance(content, str) else content)
    return partial.replace(file)
