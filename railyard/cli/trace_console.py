"""How `railyard traces` speaks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from railyard.base.errors import UserError
from railyard.base.terminal import new_console

console = new_console()


@contextmanager
def one_sentence() -> Iterator[None]:
    """A user's error ends the program with one sentence on stderr and exit code 2."""
    try:
        yield
    except UserError as error:
        typer.echo(f"railyard: {error}", err=True)
        raise typer.Exit(2) from None


def number(value: float, digits: int = 2) -> str:
    return "–" if math.isnan(value) else f"{value:.{digits}f}"


def percent(share: float) -> str:
    return f"{share * 100:.1f} %"
