"""A file system with little room, for tests of what a full disk does."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A memory disk of a given size (in tmpfs's form: `600k`) at a new folder. Needs root."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        # A machine that was ended may hold its memory here for a moment longer.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
