"""Railyard: runs experiments over paired mobility traces and writes their report.

In Python: `import railyard as rr`; then rr.play(), rr.load() and rr.compare(), which railyard/api.py has.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from railyard.api import Campaign, Comparison, Explained, compare, load, play

__version__ = "0.2.0"
__all__ = ["Campaign", "Comparison", "Explained", "__version__", "compare", "load", "play"]


def __getattr__(name: str) -> Any:
    """Imports the members of the API when they are used, so that the command line starts without them."""
    if name not in __all__:
        raise AttributeError(f"module 'railyard' has no attribute '{name}'")
    from railyard import api  # noqa: PLC0415

    return getattr(api, name)


def __dir__() -> list[str]:
    """The names that a notebook completes."""
    return __all__
