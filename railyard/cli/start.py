"""The program `railyard`. Until the modules of its command are loaded, Ctrl-C ends it at once: an import that is
interrupted prints a traceback, or swallows the interrupt."""

import os
import signal
from importlib import import_module

INTERRUPTED = 130  # 128 + SIGINT, as shells have it


def _end(*_: object) -> None:
    os._exit(INTERRUPTED)


def main() -> None:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    import_module("railyard.cli.main").main()


def loaded() -> None:
    """From here on Ctrl-C raises KeyboardInterrupt, and the command ends in its own way."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)
