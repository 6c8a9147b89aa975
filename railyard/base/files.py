"""Writing files: complete or not at all, and in one sentence where that is not possible."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from railyard.base.errors import UserError

SPACE_BYTES = 256 << 10  # when so much cannot be written after a program ended, the disk was full while it ran
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


def check_space(folder: Path, remedy: str) -> None:
    """Raises UserError when the disk is full: then what programs wrote there is cut short."""
    probe = folder / f".space-{os.getpid()}.partial"
    try:
        with probe.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, SPACE_BYTES)
    except OSError as error:
        if error.errno in DISK_FULL:
            raise UserError(f"{folder}: the disk is full. {remedy}") from None
        raise
    finally:
        probe.unlink(missing_ok=True)


@contextmanager
def space_checked(folder: Path, remedy: str) -> Iterator[None]:
    """Around what fails where programs cannot write into the folder. Raises UserError when the disk is full: then this
    is the reason, whatever followed from it."""
    try:
        yield
    except (OSError, ValueError, UserError):
        check_space(folder, remedy)
        raise


@contextmanager
def writing(out: Path) -> Iterator[None]:
    """Around the writing of `out`, whose folder it makes. Raises UserError for an error of the system."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        place = out if error.filename in (None, str(_beside(out))) else error.filename
        raise UserError(f"{place}: cannot be written: {error.strerror or error}; choose another place.") from None


def _beside(file: Path) -> Path:
    return file.with_name(f".{file.name}.partial")


def new_beside(file: Path) -> Path:
    """An empty file, to be written and renamed to `file`. In a folder that came from elsewhere a link to any file may
    have its name: it is removed, and what it leads to stays as it is."""
    partial = _beside(file)
    partial.unlink(missing_ok=True)
    partial.touch(exist_ok=False)
    return partial


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """A file beside, which is renamed at the end of the block: `file` is complete, or as it was."""
    partial = new_beside(file)
    try:
        yield partial
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


def write_whole(file: Path, content: str | bytes | bytearray) -> Path:
    """Writes beside and renames. Returns the file."""
    with replacing(file) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def write_named(out: Path, content: str | bytes | bytearray) -> None:
    """Writes a file that the user named, likewise; what a link leads to, a pipe and a device are written to. Raises
    UserError."""
    with writing(out):
        if out.is_symlink() or (out.exists() and not out.is_file()):
            out.write_bytes(content.encode() if isinstance(content, str) else content)
        else:
            write_whole(out, content)


def open_regular(file: Path) -> BufferedReader:
    """A file to read. Raises OSError where it is a pipe or a device, of which no end need come."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(file))
    raise OSError(errno.EINVAL, "it is no regular file", str(file))


def check_regular(file: Path) -> None:
    """For readers that open a file themselves. Raises OSError where it is a pipe or a device."""
    open_regular(file).close()


def read_regular(file: Path) -> str:
    """The text of such a file. Raises OSError, and ValueError where it is not UTF-8."""
    with open_regular(file) as stream:
        return stream.read().decode("utf-8")
