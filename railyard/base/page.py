"""Tables that a command writes into a page, between the lines `<!-- NAME -->` and `<!-- end of NAME -->`."""

from __future__ import annotations

import textwrap
from pathlib import Path

from railyard.base.errors import UserError

COLUMNS = 120


def _parts(page: Path, name: str) -> tuple[str, str]:
    """What stands before the tables and after them, the markers included."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    try:
        text = page.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{page}: it cannot be read ({error}); name a Markdown file with --page.") from None
    before, first, rest = text.partition(begin)
    _, second, after = rest.partition(end)
    if not first or not second:
        raise UserError(f"{page}: there are no lines '{begin}' and '{end}' in it; add them where the tables go.")
    return before + first, second + after


def check(page: Path, name: str) -> None:
    """Raises UserError where the page has no such place: before a long run."""
    _parts(page, name)


def fill(page: Path, name: str, tables: str) -> None:
    """Puts the tables there, in the place of what was. Lines of prose are broken. Raises UserError."""
    before, after = _parts(page, name)
    page.write_text(f"{before}\n{_broken(tables)}\n{after}", encoding="utf-8")


def _broken(tables: str) -> str:
    lines: list[str] = []
    for line in tables.strip().splitlines():
        if line.startswith("|") or len(line) <= COLUMNS:
            lines.append(line)
        else:
            indent = "  " if line.startswith("- ") else ""
            lines += textwrap.wrap(
                line, COLUMNS, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
            )
    return "\n".join(lines)
