"""Writes files completely or not at all, and reports errors in one sentence."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from railyard.base.errors import UserError

SPACE_BYTES = 256 << 10  # if this cannot be written after a program has ended, the disk was full while it ran
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


def check_space(folder: Path, remedy: str) -> None:
    """Raises UserError if the disk is full: then the output of programs there may be cut."""
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
    """A context for programs that write into the folder. If it fails and the disk is full, raises UserError about
    that."""
    try:
        yield
    except (OSError, ValueError, UserError):
        check_space(folder, remedy)
        raise


@contextmanager
def writing(out: Path) -> Iterator[None]:
    """A context for writing `out`, whose folder it makes. Raises UserError for an error of the system."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        place = out if error.filename in (None, str(_beside(out))) else error.filename
        raise UserError(f"{place}: cannot be written: {error.strerror or error}; choose another place.") from None


def _beside(file: Path) -> Path:
    return file.with_name(f".{file.name}.partial")


def new_beside(file: Path) -> Path:
    """Makes an empty file to be written and renamed to `file`. In a folder from elsewhere a link may have its name: the
    link is removed, and its target stays unchanged."""
    partial = _beside(file)
    partial.unlink(missing_ok=True)
    partial.touch(exist_ok=False)
    return partial


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """A context with a new file that is renamed to `file` at its end: `file` is complete or unchanged."""
    partial = new_beside(file)
    try:
        yield partial
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


def write_whole(file: Path, content: str | bytes | bytearray) -> Path:
    """Writes a file completely or not at all. Returns it."""
    with replacing(file) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def write_named(out: Path, content: str | bytes | bytearray) -> None:
    """Writes a file that the user named, completely or not at all. Writes through links, and into pipes and devices.
    Raises UserError."""
    with writing(out):
        if out.is_symlink() or (out.exists() and not out.is_file()):
            out.write_bytes(content.encode() if isinstance(content, str) else content)
        else:
            write_whole(out, content)


def open_regular(file: Path) -> BufferedReader:
    """Opens a file to read. Raises OSError if it is a pipe or a device, which may never end."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(file))
    raise OSError(errno.EINVAL, "it is no regular file", str(file))


def check_regular(file: Path) -> None:
    """Checks a file for readers that open it themselves. Raises OSError if it is a pipe or a device."""
    open_regular(file).close()


def read_regular(file: Path) -> str:
    """The text of a regular file. Raises OSError, or ValueError if it is not UTF-8."""
    with open_regular(file) as stream:
        return stream.read().decode("utf-8")
