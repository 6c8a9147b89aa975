"""Numbers in sentences, and text that is safe for a terminal."""

import re
from collections.abc import Sequence

_PICTURES = {code: chr(0x2400 + code) for code in range(32)} | {0x7F: "\u2421"}
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def counted(number: int, thing: str) -> str:
    """ "1 run", "2 runs"."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def printable(text: str) -> str:
    """The text with a picture, or U+FFFD, for each character that controls a terminal, turns the direction of
    writing or stands for a byte that is no UTF-8. Line ends and tabs stay."""
    if text.isprintable():
        return text
    return _CONTROLS.sub(lambda match: _PICTURES.get(ord(match[0]), "\ufffd"), text)
