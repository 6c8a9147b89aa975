"""The one kind of error that a user can cause and mend."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from railyard.base.words import printable


class UserError(Exception):
    """One sentence that names the file, the line and the remedy; the program ends with exit code 2 and no traceback.
    It may quote a file of somebody else's."""

    def __str__(self) -> str:
        return printable(super().__str__())


@contextmanager
def reported_by(program: str) -> Iterator[None]:
    """Around the whole of a program: a UserError is printed, and the program ends with exit code 2."""
    try:
        yield
    except UserError as error:
        print(f"{program}: {error}", file=sys.stderr)
        sys.exit(2)
