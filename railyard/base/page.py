"""The contents of a page of results: tables and paragraphs, and their Markdown."""

import textwrap
from collections.abc import Iterable, Sequence
from typing import Protocol

from railyard.base.models import StrictModel

COLUMNS = 120
RULES = {"l": "---", "r": "---:"}


class Table(StrictModel):
    heads: list[str]
    align: str
    """One letter a column: `l` for text, `r` for numbers."""
    rows: list[list[str]]

    @property
    def markdown(self) -> str:
        rules = [RULES[side] for side in self.align]
        return "\n".join(f"| {' | '.join(cells)} |" for cells in (self.heads, rules, *self.rows))


def cell(text: str) -> str:
    """The text as it stands in a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def table_lines(heads: Sequence[str], *rows: Sequence[str]) -> list[str]:
    """A table of Markdown whose columns are of text."""
    return [f"| {' | '.join(cells)} |" for cells in (heads, [RULES["l"]] * len(heads), *rows)]


class HasMarkdown(Protocol):
    @property
    def markdown(self) -> str: ...


Block = Table | str
"""A string is a paragraph, or a list of lines."""


def markdown_of(blocks: Iterable[HasMarkdown | str]) -> str:
    return "\n\n".join(_broken(block) if isinstance(block, str) else block.markdown for block in blocks)


def _broken(text: str) -> str:
    """The text, broken into lines that fit on a page."""
    lines: list[str] = []
    for line in text.splitlines():
        if len(line) <= COLUMNS:
            lines.append(line)
            continue
        indent = "  " if line.startswith("- ") else ""
        lines += textwrap.wrap(line, COLUMNS, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)
