"""Figures and differences as text: rounded, with a sign or with a word for each direction."""

from collections.abc import Sequence


def number(value: float, form: str) -> str:
    """A figure as text, without a sign if it rounds to zero."""
    said = format(value, form)
    return said if float(said) else format(0.0, form)


def signed(value: float, digits: int) -> str:
    """A difference as text: "+3", "−3", "±0"."""
    said = f"{value:+.{digits}f}"
    return said.replace("-", "−") if float(said) else "±0"


def percentage(value: float, digits: int) -> str:
    """A figure as text, without decimals from 100 on, where they are not significant."""
    return number(value, f".{digits}f" if abs(value) < 99.95 else ".0f")


def _rounded(value: float, digits: int) -> float:
    return float(percentage(value, digits))


def one_way(values: Sequence[float], digits: int) -> bool:
    """Whether all values have the direction of the first one. A value that rounds to zero has either."""
    up = _rounded(values[0], digits) >= 0
    return all((end := _rounded(value, digits)) == 0 or (end > 0) == up for value in values)


def directed(value: float, more: str, less: str, unit: str, digits: int) -> str:
    return f"{percentage(abs(value), digits)}{unit} {more if _rounded(value, digits) >= 0 else less}"


def range_words(values: Sequence[float], more: str, less: str, digits: int = 1) -> str:
    """The range of differences as text: "3 % slower to 10 % faster"."""
    low, high = min(values), max(values)
    near, far = sorted((low, high), key=abs)
    if one_way((far, near), digits):
        return f"{percentage(abs(near), digits)} to {directed(far, more, less, ' %', digits)}"
    return " to ".join(directed(end, more, less, " %", digits) for end in (low, high))
