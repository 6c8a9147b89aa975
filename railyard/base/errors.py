"""The error that a user can cause and correct."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from railyard.base.words import printable

MOST_LETTERS = 300


class UserError(Exception):
    """One sentence that names the file, the line and the remedy; the program ends with exit code 2 and no traceback.
    It may quote a third party's file."""

    def __str__(self) -> str:
        return printable(super().__str__())


def fault_words(error: BaseException) -> str:
    """The kind and the place of an error without a sentence of its own. It may quote a third party's file."""
    import traceback  # noqa: PLC0415  slow to load

    places = [place for place in traceback.extract_tb(error.__traceback__) if "/railyard/" in place.filename]
    at = f" at {places[-1].filename.rpartition('/railyard/')[2]}:{places[-1].lineno}" if places else ""
    return printable(f"{type(error).__name__}{at}: {' '.join(str(error).split())[:MOST_LETTERS]}")


@contextmanager
def reported_by(program: str) -> Iterator[None]:
    """A context for a whole program. Prints a UserError and ends with exit code 2."""
    try:
        yield
    except UserError as error:
        print(f"{program}: {error}", file=sys.stderr)
        sys.exit(2)
