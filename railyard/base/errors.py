"""The one kind of error that a user can cause and mend."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from railyard.base.words import printable

MOST_LETTERS = 300


class UserError(Exception):
    """One sentence that names the file, the line and the remedy; the program ends with exit code 2 and no traceback.
    It may quote a file of somebody else's."""

    def __str__(self) -> str:
        return printable(super().__str__())


def fault_words(error: BaseException) -> str:
    """What went wrong where, of an error that nobody put into a sentence. It may quote somebody else's file."""
    import traceback  # noqa: PLC0415  slow to load

    places = [place for place in traceback.extract_tb(error.__traceback__) if "/railyard/" in place.filename]
    at = f" at {places[-1].filename.rpartition('/railyard/')[2]}:{places[-1].lineno}" if places else ""
    return printable(f"{type(error).__name__}{at}: {' '.join(str(error).split())[:MOST_LETTERS]}")


@contextmanager
def reported_by(program: str) -> Iterator[None]:
    """Around the whole of a program: a UserError is printed, and the program ends with exit code 2."""
    try:
        yield
    except UserError as error:
        print(f"{program}: {error}", file=sys.stderr)
        sys.exit(2)
