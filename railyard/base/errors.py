"""The one kind of error that a user can cause and mend."""

from __future__ import annotations


class UserError(Exception):
    """One sentence that names the file, the line and the remedy; the program ends with exit code 2 and no traceback."""
